"""`nr.evaluate`: the value of other policies on a log, its interval, and what breaks it."""

import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import nilregret as nr
from nilregret.evaluation.estimators import (
    RewardModel,
    effective_sample_size,
    estimates,
    gain_interval,
    lower_bound,
    mean_interval,
)
from nilregret.evaluation.log import features_of

# Of obp 0.4.1 on `rows_for_obp`, by `_estimate_round_rewards(...).mean()`, with tau=2 for "switch".
OBP = {
    "snips": 0.41098537015563863, "dr": 0.47032136981848466, "ips": 0.3067411646425935,
    "switch": 0.40201731356790904, "model": 0.49815441230032503,
}  # fmt: skip


def rows_for_obp():
    rng, n, count = np.random.default_rng(0), 200, 4
    action, p = rng.integers(0, count, n), rng.uniform(0.05, 1.0, n)
    pi, q, r = rng.dirichlet(np.ones(count), n), rng.uniform(0, 1, (n, count)), rng.uniform(-1, 2, n)
    return action, p, pi, q, r


def world(seed=0, n=600, count=4, floor=0.2):
    """A log of a policy that looks at the context, with clicks: columns, and the click rates `(n, count)`."""
    rng = np.random.default_rng(seed)
    context = rng.normal(size=(n, 2))
    rates = 1.0 / (1.0 + np.exp(1.0 - context @ rng.normal(size=(2, count))))
    p = np.full((n, count), floor / count)
    p[np.arange(n), (context[:, 0] > 0).astype(int)] += 1.0 - floor
    action = (p.cumsum(1) > rng.random((n, 1))).argmax(1)
    reward = (rng.random(n) < rates[np.arange(n), action]).astype(float)
    return dict(context=context, action=action, propensity=p[np.arange(n), action], reward=reward), rates


def cautioned(*given, **more):
    """The result, and its cautions in one text; each is a warning too."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        result = nr.evaluate(*given, **more)
    assert tuple(str(each.message) for each in said) == result.cautions
    return result, "\n".join(result.cautions)


def test_estimators_are_those_of_obp():
    action, p, pi, q, r = rows_for_obp()
    rows = np.arange(len(r))
    found = estimates(r, pi[rows, action] / p, q[rows, action], (pi * q).sum(1), most=2.0)
    assert found == pytest.approx(OBP, abs=1e-12)


@pytest.mark.parametrize("estimator", ["snips", "dr", "ips", "switch"])
def test_the_value_is_the_estimate_asked_for(estimator):
    log, rates = world(n=4000)
    result = nr.evaluate(log, 2, estimator=estimator)
    assert result.value == result.estimates[estimator]
    assert result.lower < rates[:, 2].mean() < result.upper
    assert abs(result.value - rates[:, 2].mean()) < 0.1
    assert 0.0 < result.effective_sample_size < result.rows == 4000
    assert 0.8 < result.overlap <= 1.0


def test_forms_of_a_policy_agree():
    log, _ = world()
    n = len(log["reward"])
    forms = [
        2, {2: 1.0}, [2] * n, np.eye(4)[2], np.tile(np.eye(4)[2], (n, 1)), lambda _: 2, lambda _: np.int64(2),
        lambda _: [0, 0, 1, 0],
    ]  # fmt: skip
    results = [nr.evaluate(log, form) for form in forms]
    for result in results[1:]:
        assert result.estimates == pytest.approx(results[0].estimates, abs=1e-12)
        assert (result.lower, result.upper) == (results[0].lower, results[0].upper)
    uniform = nr.evaluate(log, "uniform")
    assert nr.evaluate(log, np.full((n, 4), 0.25)).estimates == pytest.approx(uniform.estimates, abs=1e-12)


def test_a_function_sees_the_contexts():
    log, rates = world(n=3000)
    result = nr.evaluate(log, lambda context: int(context[0] > 0))
    chosen = (log["context"][:, 0] > 0).astype(int)
    assert result.estimates == pytest.approx(nr.evaluate(log, chosen).estimates)
    assert result.lower < rates[np.arange(3000), chosen].mean() < result.upper


def test_tables_and_frames_agree():
    log, _ = world(n=500)
    frame = pd.DataFrame({name: log[name] for name in ("action", "propensity", "reward")})
    frame["context.0"], frame["context.1"] = log["context"].T
    one, two = nr.evaluate(log, 1), nr.evaluate(frame, 1)
    assert one.to_dict() == two.to_dict()
    by_name = nr.evaluate(
        {"arm": [f"arm {each}" for each in log["action"]], "propensity": log["propensity"], "reward": log["reward"]},
        "arm 1",
    )
    assert by_name.value == one.value


def test_losses_and_other_ranges_are_those_of_rewards_scaled():
    log, _ = world()
    plain = nr.evaluate(log, 1)
    scaled = nr.evaluate(log | {"reward": 10.0 * log["reward"] - 5.0}, 1, reward_range=(-5, 5))
    assert scaled.value == pytest.approx(10 * plain.value - 5)
    assert (scaled.lower, scaled.upper) == pytest.approx((10 * plain.lower - 5, 10 * plain.upper - 5))
    with pytest.raises(nr.errors.InvalidInput, match=r"lie outside \[0, 1\].*from -5 to 5.*reward_range"):
        nr.evaluate(log | {"reward": 10.0 * log["reward"] - 5.0}, 1)


# -- intervals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("floor", [0.0, 0.05, 0.2])
def test_intervals_hold_on_adaptive_logs(floor):
    """Misses of 80 worlds, with the floor told and not, are at most what 5% would give with probability .999."""
    misses = {None: 0, "floor": 0, "gain": 0}
    for seed in range(80):
        weights, rewards, truth, least, own = adaptive_log(seed, floor)
        gain = gain_interval(weights, rewards, 0.05)
        misses["gain"] += not gain.lower <= truth - own <= gain.upper
        for name, largest in ((None, None), ("floor", 1.0 / least if least else None)):
            found = mean_interval(weights, rewards, 0.05, largest=largest)
            misses[name] += not found.lower <= truth <= found.upper
    assert max(misses.values()) <= binom.ppf(0.999, 80, 0.05)


def adaptive_log(seed, floor, n=150, count=3):
    """Weights and rewards of a fixed arm on a log of Thompson sampling, whose beliefs narrow the propensities."""
    rng = np.random.default_rng(seed)
    rates, target = rng.uniform(0.2, 0.8, count), seed % count
    wins, losses = np.ones(count), np.ones(count)
    weights, rewards, own = np.zeros(n), np.zeros(n), np.zeros(n)
    for t in range(n):
        if t % 5 == 0:  # propensities that are exact: those of the best of 200 draws, as shares
            best = rng.beta(wins, losses, (200, count)).argmax(1)
            p = (1 - floor) * np.bincount(best, minlength=count) / 200 + floor / count
        arm = rng.choice(count, p=p)
        reward = float(rng.random() < rates[arm])
        wins[arm] += reward
        losses[arm] += 1 - reward
        weights[t], rewards[t], own[t] = (arm == target) / p[arm], reward, p @ rates
    return weights, rewards, rates[target], floor / count, own.mean()


def test_bounds_are_exact_for_a_constant():
    """Of n ones, the capital against m is a mixture of (1 + f (1 / m - 1))^n, so the bound solves an equation."""
    bound = lower_bound(np.ones(50), 0.025)
    from nilregret.evaluation.estimators import BETS, PRIOR

    capital = np.average((1 + BETS * (1 / bound - 1)) ** 50, weights=PRIOR)
    assert capital == pytest.approx(40.0, rel=1e-3)
    assert lower_bound(np.ones(30), 0.025, zeros=20) == pytest.approx(
        lower_bound(np.append(np.ones(30), np.zeros(20)), 0.025), abs=1e-9
    )


def test_a_gain_is_known_better_than_both_values():
    log, rates = world(n=3000, floor=0.3)
    near = np.where(log["context"][:, 0] > 0, 1, 2)  # differs from the log's policy in half of the contexts
    result, rows = nr.evaluate(log, near), np.arange(3000)
    usual = (log["context"][:, 0] > 0).astype(int)
    truth = rates[rows, near].mean() - (0.7 * rates[rows, usual] + 0.3 * rates.mean(1)).mean()
    assert result.gain.lower < truth < result.gain.upper
    apart = result.upper - result.logged_interval.lower - (result.lower - result.logged_interval.upper)
    assert result.gain.upper - result.gain.lower < 0.8 * apart


def test_a_floor_makes_intervals_narrower():
    log, _ = world(n=3000)
    plain, known = nr.evaluate(log, 2), nr.evaluate(log, 2, floor=0.05)
    assert known.upper - known.lower < 0.9 * (plain.upper - plain.lower)
    with pytest.raises(nr.errors.InvalidInput, match=r"`floor` is 0.2, and the log has a propensity of 0.05"):
        nr.evaluate(log, 2, floor=0.2)


def test_large_weights_widen_and_never_break():
    n = 200
    log = {"action": np.zeros(n, int), "propensity": np.full(n, 0.9), "reward": np.full(n, 0.5)}
    log["action"][7], log["propensity"][7] = 1, 1e-6
    result, said = cautioned(log, 1)
    assert "the largest weight is 1000000" in said
    assert result.largest_weight == pytest.approx(1e6)
    assert (result.lower, result.upper) == (0.0, 1.0)
    assert result.effective_sample_size == pytest.approx(1.0)
    assert effective_sample_size(np.array([1e200, 1e200])) == pytest.approx(2.0)


# -- the reward model ----------------------------------------------------------------------------------------------


def test_the_reward_model_leaves_a_row_out_of_its_own_prediction():
    rng = np.random.default_rng(1)
    x, actions, rewards = rng.normal(size=(60, 2)), rng.integers(0, 3, 60), rng.normal(size=60)
    before = RewardModel(x, actions, rewards, 3).predict()
    rewards[11] += 1000.0
    after = RewardModel(x, actions, rewards, 3).predict()
    np.testing.assert_allclose(after[11], before[11])
    assert not np.allclose(after, before)


def test_the_reward_model_learns_each_action():
    rng = np.random.default_rng(2)
    x, actions = rng.normal(size=(2000, 2)), rng.integers(0, 3, 2000)
    rates = np.column_stack([x[:, 0], -x[:, 0], np.ones(2000)])
    found = RewardModel(x, actions, rates[np.arange(2000), actions], 3).predict()
    assert np.abs(found - rates).max() < 0.1


def test_features_of_contexts_of_any_kind():
    assert features_of(None, 3).shape == (3, 0)
    np.testing.assert_array_equal(features_of([[1, 2], [3, None]], 2), [[1, 2], [3, 2]])
    mixed = [{"age": 3, "city": "a"}, {"age": 5, "city": "b"}, {"city": "a", "deep": {"x": 1.0}}]
    np.testing.assert_array_equal(features_of(mixed, 3), [[3, 1, 1, 0], [5, 1, 0, 1], [4, 1, 1, 0]])


# -- what breaks it ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "value", "sentence"),
    [
        ("propensity", 0.0, r"Row 5 has the propensity 0: it must lie in \(0, 1\]"),
        ("propensity", 1.5, r"Row 5 has the propensity 1.5"),
        ("propensity", -0.1, r"Row 5 has the propensity -0.1"),
        ("propensity", np.inf, r"Row 5 has the propensity inf"),
        ("reward", np.inf, r"Row 5 has the reward inf"),
        ("reward", 2.0, r"1 reward of the log lie"),
    ],
)
def test_values_that_cannot_be_used_are_named(column, value, sentence):
    log, _ = world(n=50)
    log[column] = log[column].copy()
    log[column][5] = value
    with pytest.raises(nr.errors.InvalidInput, match=sentence):
        nr.evaluate(log, 0)


@pytest.mark.parametrize(
    ("change", "policy", "sentence"),
    [
        (lambda log: {}, 0, "no column action"),
        (lambda log: {name: log[name] for name in ("action", "reward")}, 0, "no column propensity"),
        (lambda log: {name: column[:0] for name, column in log.items()}, 0, "no decisions"),
        (lambda log: log | {"propensity": [None] * 60}, 0, "No row of the log has a propensity"),
        (lambda log: log | {"reward": [None] * 60}, 0, "has a reward yet"),
        (lambda log: log | {"id": [1, 2, 1, *range(3, 60)]}, 0, "Rows 0 and 2 have the same id, 1"),
        (lambda log: log | {"reward": ["x"] * 60}, 0, "Row 0 of `log` has 'x' in column reward"),
        (lambda log: log, 9, "chooses 9, which is no action of the log"),
        (lambda log: log, "unifrom", "chooses 'unifrom', which is no action .* Did you mean 'uniform'"),
        (lambda log: log, "best", '"best" is what a study thinks best'),
        (lambda log: log, [0.5, 0.5, 0.5, 0.5], "must be at least 0 and sum to 1"),
        (lambda log: log, np.zeros((3, 3)), r"of shape \(3, 3\)"),
        (lambda log: log, [[1], [2, 3]], "of shape"),
        (lambda log: log, lambda _: [0.5, 0.5], "at row 0: it must return an action"),
        (lambda log: log, lambda _: 1 / 0, "The policy failed at row 0.*ZeroDivisionError"),
        (lambda log: log, {}, "sum to 1"),
        (lambda log: log, {0: "x"}, "`policy` must be a number"),
        (lambda log: log, lambda _: ["a", "b", "c", "d"], "at row 0: it must return an action"),
        (lambda log: log | {"action": [[0]] * 60}, 0, r"Row 0 has the action \[0\]: it must be a number or a text"),
        (lambda log: log | {"action": [0.5, np.nan] * 30}, 0, "Row 1 has the action None"),
        (lambda log: log | {"id": [[1]] * 60}, 0, "the same id"),
        (lambda log: 3, 0, "`log` is 3"),
        (lambda log: log | {"reward": [0, 1]}, 0, "context 60, action 60, propensity 60, reward 2"),
        (lambda log: log | {"context": np.zeros((59, 2))}, "uniform", "context 59, action 60"),
        (lambda log: log, nr.auto(nr.Arms(range(8))), "among 4 arms, .* and this one has 8 arms"),
    ],
)
def test_logs_and_policies_that_cannot_be_used(change, policy, sentence):
    log, _ = world(n=60)
    with pytest.raises(nr.errors.InvalidInput, match=sentence):
        nr.evaluate(change(log), policy)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"estimator": "dm"}, "`estimator` is 'dm'"),
        ({"delta": 0}, "`delta`"),
        ({"reward_range": 1}, "must be .lowest, highest."),
        ({"reward_range": (1, 1)}, r"`reward_range` is \(1, 1\): the lowest must be below the highest\.$"),
        ({"reward_range": (1, 0)}, r"is \(1, 0\): the lowest must be below the highest\. Usually the two are swapped"),
        ({"actions": [0, 1]}, r"none of \[0, 1\]"),
        ({"actions": [0, 1, 2, 3, 3]}, "names an action twice"),
    ],
)
def test_arguments_that_cannot_be_used(given, sentence):
    log, _ = world(n=60)
    with pytest.raises(nr.errors.InvalidInput, match=sentence):
        nr.evaluate(log, 0, **given)


def test_a_floor_leaves_no_choice_out_whatever_the_mean_of_the_weights():
    log, _ = world(n=400)
    floor = float(np.min(log["propensity"]))
    assert [cautioned(log, action, floor=floor)[0].overlap for action in range(3)] == [1.0] * 3
    assert min(cautioned(log, action)[0].overlap for action in range(3)) < 1.0


def test_actions_that_the_log_never_took_have_no_overlap():
    log, _ = world(n=100)
    result, said = cautioned(log, 4, actions=range(5))
    assert "None of the log's 100 decisions" in said
    assert "nr.slots.Uniform" in said
    assert np.isnan(result.value)
    assert str(result).startswith("The policy's value is not estimated (95% interval 0 to 1)")
    assert (result.lower, result.upper) == (0.0, 1.0)
    assert result.overlap == result.effective_sample_size == 0.0
    assert result.to_dict()["value"] is None
    json.dumps(result.to_dict(), allow_nan=False)


def test_a_part_of_the_choices_is_missing():
    log, _ = world(n=2000)
    half = lambda context: 0 if context[0] > 0 else 4  # noqa: E731
    assert re.search("Only some (4|5)[0-9]% of the policy's choices", cautioned(log, half, actions=range(5))[1])


def test_a_log_without_chance_and_one_action_alone():
    log, _ = world(n=100)
    assert "left nothing to chance" in cautioned(log | {"propensity": np.ones(100)}, log["action"])[1]
    alone = nr.evaluate({"action": ["a"] * 40, "propensity": [1] * 40, "reward": [True, False] * 20}, "a")
    assert alone.value == alone.logged == 0.5
    assert alone.cautions == ()


def test_wrong_propensities_are_noticed_and_right_ones_are_not():
    log, _ = world(n=2000)
    assert nr.evaluate(log, 1).check.passed
    for wrong in (np.full(2000, 0.25), 0.7 * log["propensity"]):
        result, said = cautioned(log | {"propensity": wrong}, 1)
        assert "The propensities of the log are not right" in said
        assert not result.check.passed


def test_rewards_that_are_missing_more_often_for_some_actions():
    log, _ = world(n=2000)
    late = np.random.default_rng(3).random(2000) < np.where(log["action"] == 1, 0.6, 0.1)
    log["reward"] = np.where(late, np.nan, log["reward"])
    result, said = cautioned(log, 0)
    assert "missing more often for some actions" in said
    assert result.left_out == {"without a reward": late.sum()}
    assert "without a reward" in str(result)
    assert nr.evaluate(log, 0, default_reward=0.0).rows == 2000


def test_rewards_that_are_all_alike_where_others_are_missing():
    """Only yeses are in the file, as where a no is never told: their mean says nothing of the policy."""
    log, _ = world(n=2000)
    log["reward"] = np.where(log["reward"] > 0.0, 1.0, np.nan)
    log["propensity"] = log["propensity"] * np.random.default_rng(0).uniform(0.99, 1.0, 2000)
    result, said = cautioned(log, 0)
    assert f"All {result.rows} rewards are 1, and {2000 - result.rows:,} decisions have none" in said
    assert "`default_reward=`" in said
    assert "changed on the way" not in said


def test_a_value_that_changes_on_the_way_is_said():
    log, _ = world(n=2000)
    log["reward"] = np.where(np.arange(2000) < 1000, log["reward"], 1.0)
    assert "changed on the way" in cautioned(log, 0)[1]


# -- what is said --------------------------------------------------------------------------------------------------


def test_the_answer_in_sentences():
    log, _ = world(n=4000)
    said = str(nr.evaluate(log, "uniform"))
    assert said.startswith("The policy's value is 0.")
    assert "95% interval" in said
    assert "say as much as" in said
    sure = {"action": [0, 1] * 500, "propensity": [0.5] * 1000, "reward": [0, 1] * 500}
    assert "The policy's is higher, by" in str(nr.evaluate(sure, 1))
    assert "The policy's is lower, by" in str(nr.evaluate(sure, 0))
    assert "Which one is higher is not established." in str(nr.evaluate(sure, "uniform"))
    assert repr(nr.evaluate(sure, 1)).startswith("Evaluation(value=1, lower=0.")


def test_the_picture(tmp_path):
    log, _ = world()
    result = nr.evaluate(log, 1)
    figure = result.plot(tmp_path / "values.png")
    assert (tmp_path / "values.png").read_bytes().startswith(b"\x89PNG")
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == ["self-normalised IPS (value)", "doubly robust", "IPS", "switch"]


def test_empty_cells_of_frames():
    frame = pd.DataFrame({"action": ["a", "b", "a", "b"] * 20, "propensity": [0.5] * 80, "id": [None, *range(79)]})
    frame["action"] = frame["action"].astype("string")
    frame["reward"] = pd.array([1, 0, None, 1] * 20, dtype="Int64")
    frame["context.hour"] = pd.array([1, None] * 40, dtype="Int64")
    result, _ = cautioned(frame, lambda context: "a" if context["hour"] == 1 else "b")
    assert (result.rows, result.left_out) == (60, {"without a reward": 20})


def test_a_number_is_no_text():
    log = {"action": [1, "1", 2, "a"] * 50, "propensity": [0.25] * 200, "reward": [1, 0, 0, 0] * 50}
    assert nr.evaluate(log, 1).value == 1.0
    assert nr.evaluate(log, "1").value == 0.0


def test_one_row_and_ten_thousand_actions():
    one, _ = cautioned({"action": ["a"], "propensity": [0.5], "reward": [1]}, "a")
    assert (one.value, one.rows) == (1.0, 1)
    rng = np.random.default_rng(0)
    log = {"action": rng.integers(0, 10_000, 500), "propensity": np.full(500, 1e-4), "reward": rng.random(500)}
    assert nr.evaluate(log, "uniform", actions=range(10_000)).overlap == pytest.approx(1.0)


def test_without_propensities_the_reward_model_alone_speaks():
    rng = np.random.default_rng(0)
    context, action = rng.random((400, 1)), rng.integers(0, 2, 400)
    reward = (rng.random(400) < np.where(action == 1, context[:, 0], 0.3)).astype(float)
    log = {"context": context, "action": action, "reward": reward}
    with pytest.warns(nr.errors.NoRegretWarning, match="the value is that of the reward model alone"):
        found = nr.evaluate(log, lambda x: int(x[0] > 0.3), estimator="model")
    truth = np.where(context[:, 0] > 0.3, context[:, 0], 0.3).mean()
    assert abs(found.value - truth) < 0.07
    assert (found.lower, found.upper, found.estimates.keys()) == (0.0, 1.0, {"model"})
    assert found.gain.lower < 0.0 < found.gain.upper
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["estimator"] == "model"
    with pytest.warns(nr.errors.NoRegretWarning):
        assert nr.evaluate(log | {"propensity": [None] * 400}, 1, estimator="model").rows == 400
    with pytest.raises(nr.errors.InvalidInput, match="No row of the log has a propensity"):
        nr.evaluate(log | {"propensity": [None] * 400}, 1)
    with pytest.raises(nr.errors.InvalidInput, match="No row of the log has a propensity"):
        nr.evaluate(log, nr.auto(nr.Arms(range(2)), reward="bernoulli"), estimator="model")
