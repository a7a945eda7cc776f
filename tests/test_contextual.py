"""Linear models of arms under contexts, and the default of `auto` where every reward counts."""

import numpy as np
import pytest

import nilregret as nr
from nilregret.errors import InvalidInput
from nilregret.gp.context_bank import EARLY, ContextPosterior
from nilregret.gp.linear_model import Candidate
from nilregret.slots import ArmModels, GaussianDraws, Hallucinated, Ignored, Imputed, SlidingWindow
from nilregret.slots.scores import ExpectedImprovement, ThompsonSample, UpperConfidenceBound
from nilregret.testing import check_policy

from .marks import nightly

ARMS = nr.Arms(np.arange(4.0)[:, None])
SQUARE = nr.Box([0.0, 0.0], [1.0, 1.0])
LINEAR = Candidate(waves=False)


def observed(n, seed=0):
    """Rows (context, arm) and rewards, which are linear in the context."""
    rng = np.random.default_rng(seed)
    arms, contexts = rng.integers(4, size=n), rng.random((n, 2))
    slopes = np.random.default_rng(9).standard_normal((4, 2))
    rewards = np.einsum("ij,ij->i", contexts, slopes[arms]) + 0.1 * rng.standard_normal(n)
    return np.column_stack([contexts, arms]), rewards


def learned(rows, rewards, *candidates):
    posterior = ContextPosterior(nr.Matern(2.5), ARMS, 2, candidates or (LINEAR,), regularization=1.0)
    posterior.extend(rows, rewards)
    return posterior


def play(policy, rounds, reward, *, seed=0, contexts=2, every=1):
    study, rng, waiting = nr.Study(policy, seed=seed), np.random.default_rng(seed + 50), []
    for t in range(rounds):
        waiting.append(study.ask(rng.random(contexts)))
        if t % every == every - 1:
            for trial in reversed(waiting):
                study.tell(trial, reward(trial))
            waiting = []
    return study


def curved(trial):
    """At most 1, of an arm that depends on the distance of the context from the middle."""
    distance = np.hypot(*(trial.context - 0.5))
    return float(trial.arm == min(int(distance / 0.13), 3))


# -- the posterior -----------------------------------------------------------------------------------------------------


def test_a_linear_model_is_ridge_regression_about_a_common_constant():
    rows, rewards = observed(EARLY)
    posterior = learned(rows, rewards)
    model = posterior._models[0]
    target = (rewards - rewards.mean()) / rewards.std()
    z = (rows[:, :2] - rows[:, :2].mean(0)) / rows[:, :2].std(0)
    Z = np.column_stack([np.ones(len(z)), z / np.sqrt(2)])
    mean, std = posterior.predict(np.column_stack([np.tile(rows[0, :2], (4, 1)), np.arange(4.0)]))
    constant = np.array([model._constant, 0.0, 0.0])
    for arm in range(4):
        own = rows[:, 2] == arm
        precision = Z[own].T @ Z[own] + 0.3 * np.eye(3)
        weights = np.linalg.solve(precision, Z[own].T @ target[own] + 0.3 * constant)
        assert mean[arm] == pytest.approx(Z[0] @ weights * rewards.std() + rewards.mean(), rel=1e-9)
        spread = np.sqrt(model.noise * Z[0] @ np.linalg.solve(precision, Z[0])) * rewards.std()
        assert std[arm] == pytest.approx(spread, rel=1e-6)


BANK = [LINEAR, Candidate(), Candidate(shared=True, behind=3.0), Candidate(length=0.3, behind=3.0)]


@pytest.mark.parametrize("n", [8, 34, EARLY + 40])
def test_what_is_forgotten_leaves_nothing(n):
    rows, rewards = observed(n + 3)
    known, wanted = learned(rows, rewards, *BANK), learned(rows[:n], rewards[:n], *BANK)
    for row, reward in zip(rows[n:][::-1], rewards[n:][::-1], strict=True):
        known.forget(row, reward)
    assert known.count == n
    for found, expected in zip(known.predict(rows[:9]), wanted.predict(rows[:9]), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(known.weights, wanted.weights, atol=1e-4)


@pytest.mark.parametrize("n", [8, EARLY + 1, EARLY + 10])
def test_a_revised_reward_counts_as_the_new_one(n):
    rows, rewards = observed(n)
    known, other = learned(rows, rewards, LINEAR), rewards.copy()
    other[-1] += 1.0
    known.revise(rows[-1], rewards[-1], other[-1])
    for found, expected in zip(known.predict(rows[:9]), learned(rows, other, LINEAR).predict(rows[:9]), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-3)


def test_models_that_begin_later_have_learned_the_same():
    rows, rewards = observed(EARLY + 30)
    posterior = learned(rows[:EARLY], rewards[:EARLY], *BANK)
    assert len(posterior._models) == 1
    early = posterior.copy()
    posterior.append(rows[9], 5.0)
    posterior.forget(rows[9], 5.0)
    posterior.extend(rows[EARLY:], rewards[EARLY:])
    assert len(posterior._models) == len(BANK)
    assert len(early._models) == 1
    while early._late:
        early._make_next()
    early.extend(rows[EARLY:], rewards[EARLY:])
    np.testing.assert_allclose(posterior.weights, early.weights, atol=0.02)


def test_rows_of_one_context_and_of_several_are_predicted_alike():
    rows, rewards = observed(80)
    posterior = learned(rows, rewards, *BANK, Candidate(keep=0.99, behind=3.0))
    together = posterior.predict(rows[:6])
    apart = np.array([posterior.predict(np.column_stack([np.tile(r[:2], (4, 1)), np.arange(4.0)])) for r in rows[:6]])
    each = apart[np.arange(6), :, rows[:6, 2].astype(int)].T
    np.testing.assert_allclose(together, each, rtol=1e-9)
    np.testing.assert_allclose(np.sqrt(posterior.covariance(rows[:6]).diagonal()), together[1], rtol=1e-9)


def test_models_that_predict_better_take_over():
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.random((400, 2)), rng.integers(4, size=400)])
    wavy = np.sin(6 * rows[:, 0]) + 0.05 * rng.standard_normal(400)
    assert learned(rows, wavy, LINEAR, Candidate(behind=10.0)).weights[1] > 0.99
    flat = rows[:, 0] + 0.05 * rng.standard_normal(400)
    assert learned(rows, flat, Candidate(), LINEAR._replace(behind=10.0)).weights[1] > 0.99
    of_arms = np.cos(rows[:, 2]) + rows[:, 0] + 0.05 * rng.standard_normal(400)
    assert learned(rows[:150], of_arms[:150], Candidate(), Candidate(shared=True, behind=3.0)).weights[1] > 0.5


@pytest.mark.parametrize("precision", [0.3, 1e-3])
@pytest.mark.parametrize("count", [20, 40, 48, 70])
def test_what_was_revised_or_forgotten_leaves_nothing_behind(count, precision):
    rows, rewards = observed(count)
    model, extra = Candidate(precision=precision), rows[0] + [0.01, 0.01, 0.0]
    straight, forgotten = learned(rows, rewards, model), learned(rows, rewards, model)
    revised = learned(rows, rewards + np.eye(count)[-2], model)
    revised.revise(rows[-2], rewards[-2] + 1.0, rewards[-2])
    forgotten.append(extra, 3.0)
    forgotten.forget(extra, 3.0)
    near = 2e-3 if count > EARLY else 1e-12  # The common mean of the constants is estimated now and then.
    for other in (revised, forgotten):
        for found, expected in zip(other.predict(rows[:12]), straight.predict(rows[:12]), strict=True):
            np.testing.assert_allclose(found, expected, atol=near)


def test_units_of_contexts_make_no_difference():
    """Distances of a row from itself are rounding, which has no unit."""
    rows, rewards = observed(120)
    scaled = rows * [1e3, 1e-3, 1.0] + [5.0, 0.3, 0.0]
    one, other = (learned(each, rewards, Candidate(), Candidate(length=0.3)) for each in (rows, scaled))
    for found, expected in zip(other.predict(scaled[:20]), one.predict(rows[:20]), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-9)


# -- the policy --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [(1e6, 0.0), (1e-9, 0.0), (1.0, 1e4), (-1.0, 0.0)], ids=str)
def test_units_of_rewards_make_no_difference(unit):
    scale, shift = unit

    def reward(trial):
        return float(np.sin(3 * trial.context[0] + trial.arm) + 0.1 * np.cos(40 * trial.number))

    policy = nr.auto(ARMS, context=SQUARE)
    if scale < 0:  # losses
        study, rng = nr.Study(policy, seed=0, goal="minimize"), np.random.default_rng(50)
        for _ in range(70):
            trial = study.ask(rng.random(2))
            study.tell(trial, -reward(trial))
    else:
        study = play(policy, 70, lambda trial: scale * reward(trial) + shift)
    assert [t.arm for t in study.trials] == [t.arm for t in play(policy, 70, reward).trials]


@pytest.mark.parametrize("world", ["stationary", "switching"])
def test_a_reopened_study_goes_on_as_if_it_had_never_ended(tmp_path, world):
    policy, url = nr.auto(ARMS, context=SQUARE, world=world), f"sqlite:///{tmp_path}/s.db"
    study, rng = nr.Study(policy, seed=0, storage=url, name="s"), np.random.default_rng(0)
    waiting = []
    for t in range(90):
        waiting.append(study.ask(rng.random(2)))
        if t % 5 == 4:
            for trial in waiting[::-1][:4]:
                study.tell(trial, curved(trial))
            waiting = waiting[:1]
    again = nr.Study(policy, seed=0, storage=url, name="s")
    assert again.ask([0.2, 0.9]).arm == study.ask([0.2, 0.9]).arm
    for found, expected in zip(again.predict(context=[0.3, 0.3]), study.predict(context=[0.3, 0.3]), strict=True):
        assert np.array_equal(found, expected)
    assert nr.Policy.from_json(policy.to_json()) == policy


@pytest.mark.parametrize("every", [1, 20])
def test_curved_borders_are_learned_with_prompt_and_late_answers(every):
    study = play(nr.auto(ARMS, context=SQUARE), 400, curved, every=every)
    assert np.mean([trial.reward for trial in study.trials[-100:]]) > 0.6  # at random, .25


def test_a_switch_is_followed():
    study = play(
        nr.auto(ARMS, context=SQUARE, world="switching"), 500, lambda t: float(t.arm == (0 if t.number < 250 else 3))
    )
    assert np.mean([trial.reward for trial in study.trials[-50:]]) > 0.8


def test_named_and_categorical_contexts():
    context = nr.Space(hour=nr.Float(0, 24), device=nr.Choice("phone", "tablet", "desk"))
    study, rng = nr.Study(nr.auto(ARMS, context=context, reward="bernoulli"), seed=0), np.random.default_rng(1)
    for _ in range(200):
        trial = study.ask({"hour": float(rng.uniform(0, 24)), "device": str(rng.choice(["phone", "tablet", "desk"]))})
        best = {"phone": 0, "tablet": 1, "desk": 2}[trial.context_parameters["device"]]
        study.tell(trial, float(trial.arm == best))
    assert np.mean([trial.reward for trial in study.trials[-50:]]) > 0.9


def test_arms_nearby_help_where_arms_are_many():
    arms = nr.Arms.grid(0, 1, 60)
    study = play(
        nr.auto(arms, context=nr.Box([0.0], [1.0])), 200, lambda t: -abs(float(t.point[0] - t.context[0])), contexts=1
    )
    assert np.mean([trial.reward for trial in study.trials[-50:]]) > -0.1  # at random, -1/3


@pytest.mark.parametrize(
    "reward", [lambda t: 1.0, lambda t: float(t.number > 60), lambda t: 1e12], ids=["equal", "late", "large"]
)
def test_rewards_that_are_long_equal(reward):
    study = play(nr.auto(ARMS, context=SQUARE), 70, reward)
    assert np.isfinite(study.predict(context=[0.5, 0.5])).all()
    assert len({trial.arm for trial in study.trials[:40]}) == 4


@pytest.mark.parametrize(("place", "usual"), [(2, 0.0), (30, 0.0), (45, 0.0), (57, 0.0), (90, 0.0), (57, 0.1)])
def test_the_first_reward_that_differs_judges_no_model(place, usual):
    """Equal rewards have no unit, so nothing says how large an error is. The average of 50 times .1 is not .1."""
    rows, _ = observed(100)
    clicks = usual + (np.arange(100) == place)
    posterior = learned(rows[: place + 1], clicks[: place + 1], *BANK)
    behind = np.array([BANK[j].behind for j in posterior._models])
    np.testing.assert_array_equal(posterior._log_weights[list(posterior._models)], -behind)
    posterior.extend(rows[place + 1 :], clicks[place + 1 :])
    losses = learned(rows, -1e3 * clicks, *BANK)
    np.testing.assert_allclose(losses.weights, posterior.weights, atol=1e-9)


def share_of_the_best(zeros, seed, rounds, **options):
    """Share of the best of three arms in the last quarter, whose first answers are zeros whatever is played."""
    study, rng, best = nr.Study(nr.auto(nr.Arms(range(3)), **options), seed=seed), np.random.default_rng([seed, 99]), 0
    for t in range(rounds):
        context, luck = rng.random(4), rng.random()
        trial = study.ask(context if options.get("context") else None)
        study.tell(trial, float(t >= zeros and luck < (0.05, 0.2, 0.05)[trial.arm]))
        best += t >= 0.75 * rounds and trial.arm == 1
    return best / (rounds // 4)


@pytest.mark.parametrize(
    ("options", "seed", "rounds"),
    [
        ({"context": nr.Box([0.0] * 4, [1.0] * 4), "reward": "bernoulli"}, 0, 500),
        ({"regret": "cumulative"}, 0, 400),
        *nightly(*[({"context": nr.Box([0.0] * 4, [1.0] * 4)}, seed, 700) for seed in (2, 3)]),
        *nightly(*[({"regret": "cumulative"}, seed, 400) for seed in (4, 5)]),
    ],
)
def test_clicks_that_are_rare_at_first_are_learned(options, seed, rounds):
    """A click moved the weights of models by hundreds of nats, and three arms with fifty zeros were taken for one."""
    assert share_of_the_best(50, seed, rounds, **options) > 0.9


def test_clicks_numbers_and_losses_are_decided_alike():
    """Under contexts the kind of reward makes no difference, in any unit, however rare clicks are."""
    chosen = []
    for unit, options, goal in (
        (1.0, {"reward": "bernoulli"}, "maximize"),
        (1e3, {}, "maximize"),
        (-1.0, {}, "minimize"),
    ):
        study, rng = nr.Study(nr.auto(ARMS, context=SQUARE, **options), seed=1, goal=goal), np.random.default_rng(4)
        for t in range(90):
            trial = study.ask(rng.random(2))
            study.tell(trial, unit * float(rng.random() < 0.2 and t > 55))
        chosen.append([trial.arm for trial in study.trials])
    assert chosen[0] == chosen[1] == chosen[2]


def test_failures_teach_nothing():
    study = nr.Study(nr.auto(ARMS, context=SQUARE), seed=0)
    for t in range(20):
        trial = study.ask([0.05 * t, 0.5])
        if trial.arm == 1:
            study.fail(trial, "no answer")
        else:
            study.tell(trial, 1.0)
    assert study.best(context=[0.5, 0.5]).arm != 1


def test_multipliers_revise_targets_and_no_model_drifts_then():
    policy = nr.gp_ucb_noisy_constraints(
        ARMS, nr.Matern(2.5, 0.3), noise=0.1, norm_bound=1, epoch=20, epochs=4, constraints=1, step=0.1, context=SQUARE
    ).using(refit=ArmModels(), score=GaussianDraws())
    assert all(model.keep == 1.0 for model in policy.models)
    study, rng = nr.Study(policy), np.random.default_rng(0)
    for _ in range(90):
        at = rng.uniform(0, 1, 2)
        trial = study.ask(at)
        study.tell(trial, float(trial.arm * at[0]), constraints=[at[1] - 0.3])
    assert np.isfinite(study.predict(context=[0.4, 0.6])).all()


def test_probabilities_of_choices_are_those_of_the_draws():
    study = play(nr.auto(ARMS, context=SQUARE), 60, curved)
    at = np.array([0.4, 0.6])
    mean, std = study.predict(context=at)
    draws = mean + 0.3 * std * np.random.default_rng(0).standard_normal((20_000, 4))
    shares = np.bincount(draws.argmax(axis=1), minlength=4) / len(draws)
    for _ in range(4):
        trial = study.ask(at)
        assert study.explain(trial.number).propensity.value == pytest.approx(shares[trial.arm], abs=0.02)


# -- which policy ------------------------------------------------------------------------------------------------------

MODELS = (ArmModels, GaussianDraws)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"context": SQUARE}, MODELS),
        ({"context": nr.Arms(np.arange(40.0)), "reward": "bernoulli"}, MODELS),
        ({"context": nr.Arms([0, 1, 2]), "reward": "bernoulli"}, (type(None), ThompsonSample)),
        ({"context": nr.Arms([0, 1, 2])}, (nr.slots.Refit, UpperConfidenceBound)),
        ({"context": SQUARE, "regret": "simple"}, (nr.slots.Refit, UpperConfidenceBound)),
        ({"context": SQUARE, "answers": "unknown"}, (nr.slots.Refit, UpperConfidenceBound)),
        ({"reward": "bernoulli"}, (type(None), ThompsonSample)),
        ({"regret": "cumulative"}, (nr.slots.Refit, nr.slots.Score)),
        ({}, (nr.slots.Refit, nr.slots.Score)),
    ],
    ids=str,
)
def test_which_policy(options, expected):
    policy = nr.auto(ARMS, **options)
    assert isinstance(policy.refit, expected[0])
    assert isinstance(policy.score, expected[1])


def test_the_score_without_contexts_follows_what_counts():
    box = nr.Box([0.0], [1.0])
    assert isinstance(nr.auto(box).score, ExpectedImprovement)
    assert nr.auto(box, regret="cumulative").score != nr.auto(box).score
    assert nr.auto(ARMS, regret="cumulative").score != nr.auto(ARMS).score
    assert nr.auto(ARMS, regret="simple") == nr.auto(ARMS)
    with pytest.raises(InvalidInput, match="regret"):
        nr.auto(box, regret="least")


def test_answers_and_worlds_choose_parts():
    made = {world: nr.auto(ARMS, context=SQUARE, world=world) for world in ("stationary", "switching", "drifting")}
    assert [policy.refit.changing for policy in made.values()] == [False, True, True]
    assert all(policy.memory.keeps_all for policy in made.values())
    assert isinstance(nr.auto(ARMS, context=SQUARE, answers="silent no").pending, Imputed)
    assert isinstance(nr.auto(ARMS, context=SQUARE, answers="late", parallel=4).pending, Ignored)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"pending": Hallucinated()}, "cannot shrink the variance"),
        ({"score": ThompsonSample()}, "GaussianDraws"),
        ({"sketch": nr.slots.Sketch()}, "needs no sketch"),
        ({"memory": nr.slots.Discount(0.01)}, "SlidingWindow"),
        ({"domain": nr.Box([0.0], [1.0])}, "finitely many arms"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_models_refuse(parts, said):
    with pytest.raises(InvalidInput, match=said):
        nr.auto(ARMS, context=SQUARE).using(**parts)


@pytest.mark.parametrize("wrong", [{"lengths": ()}, {"precision": 0.0}, {"changing": True, "drift": 0.0}], ids=str)
def test_wrong_models(wrong):
    with pytest.raises(InvalidInput):
        ArmModels(**wrong)


@pytest.mark.parametrize(
    "options",
    [{}, {"memory": SlidingWindow(20)}, {"answers": "silent no"}, {"constraints": 1}, {"world": "switching"}],
    ids=str,
)
def test_promises(options):
    memory = options.pop("memory", None)
    policy = nr.auto(ARMS, context=SQUARE, **options)
    check_policy(policy if memory is None else policy.using(memory=memory), rounds=12)
