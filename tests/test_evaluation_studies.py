"""Evaluation of the log of a study, and of policies that learn on the way."""

import warnings

import numpy as np
import pytest

import nilregret as nr
from nilregret._utils.randomness import Draws
from nilregret.evaluation.target import Choices, Probabilities
from nilregret.study.definition import RULE

from .test_evaluation import cautioned

ARMS = nr.Arms.grid(0, 1, 4)
RATES = np.array([0.2, 0.3, 0.4, 0.7])
FEW = pytest.mark.filterwarnings("ignore:The estimate rests on few")


def study(rounds=300, policy=None, propensities=True, **more):
    """A study of clicks with a floor of a fifth."""
    policy = policy or nr.gp_ts(ARMS, nr.SquaredExponential(0.3), reward="bernoulli", v=0.6).using(
        explore=nr.slots.Uniform(0.2)
    )
    made, rng = nr.Study(policy, propensities=propensities, **more), np.random.default_rng(5)
    for _ in range(rounds):
        trial = made.ask()
        made.tell(trial, float(rng.random() < RATES[trial.arm]))
    return made


@pytest.fixture(scope="module")
def clicks():
    return study()


@FEW
def test_the_log_of_a_study(clicks):
    for arm, rate in enumerate(RATES):
        result = nr.evaluate(clicks, arm)
        assert result.lower < rate < result.upper
        assert result.rows == 300
        assert result.check.passed
    assert nr.evaluate(clicks, {3: 1.0}).value == result.value


def test_a_study_knows_its_floor(clicks):
    with pytest.MonkeyPatch.context() as patch:
        told = nr.evaluate(clicks, "uniform", floor=0.05)
        patch.setattr(nr.slots.Uniform, "floor", 0.0)
        unknown = nr.evaluate(clicks, "uniform")
    known = nr.evaluate(clicks, "uniform")
    assert (known.lower, known.upper) == (told.lower, told.upper)
    assert (known.lower, known.upper) != (unknown.lower, unknown.upper)


@FEW
def test_a_share_bounds_the_weights_of_its_arm_alone():
    shares = nr.slots.Shares({0: 0.2, 2: 0.1})
    policy = nr.gp_ts(ARMS, nr.SquaredExponential(0.3), reward="bernoulli", v=0.6).using(explore=shares)
    made = study(policy=policy)
    known = {wanted: nr.evaluate(made, wanted) for wanted in (0, 3)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nr.slots.Shares, "floors", lambda _, count: np.zeros(count))
        unknown = {wanted: nr.evaluate(made, wanted) for wanted in (0, 3)}
    assert known[0].upper < unknown[0].upper
    assert known[3].upper == unknown[3].upper
    least = np.array([0.2, 0.0, 0.1, 0.0])
    assert Choices(np.array([2, 0])).largest(least) == 10.0
    assert Choices(np.array([1])).largest(least) is None
    assert Probabilities(np.array([0.5, 0.0, 0.5, 0.0])).largest(least) == 5.0
    assert Probabilities(np.full(4, 0.25)).largest(least) is None


@FEW
@pytest.mark.filterwarnings("ignore:Only")
@pytest.mark.parametrize("how", ["retired", "left out"])
def test_a_floor_says_nothing_of_an_arm_that_could_not_be_played(how):
    """Half of its rewards are unknown, so its value may be half of what the others say."""
    policy = nr.irgp_ucb(nr.Arms.grid(0, 1, 3), nr.Matern(2.5, 0.3), noise=0.3).using(explore=nr.slots.Uniform(0.6))
    made, rng = nr.Study(policy, propensities=True), np.random.default_rng(0)
    for number in range(200):
        if how == "retired" and number == 100:
            made.retire_arm(2)
        trial = made.ask(among=[0, 1] if how == "left out" and number >= 100 else None)
        made.tell(trial, float(rng.random() < (0.2, 0.3, 0.9)[trial.arm]))
    found = nr.evaluate(made, 2)
    assert found.lower < 0.45 < 0.9 < found.upper
    if how == "retired":  # The record knows it, while `among` of a decision is not on record.
        assert found.overlap == 0.5
        assert "Only 50% of the policy's choices are ones that the log's policy ever makes." in found.cautions[0]


def test_a_study_with_a_floor_is_not_told_to_take_one():
    result, said = cautioned(study(60), 0)
    assert result.effective_sample_size < 30
    assert "There is a floor already" in said
    assert "at random" not in said


def test_the_best_arm_is_flattered(clicks):
    with pytest.warns(nr.errors.NoRegretWarning, match="by means of the very log"):
        result = nr.evaluate(clicks, "best")
    assert result.value == nr.evaluate(clicks, 3).value


@FEW
@pytest.mark.parametrize("context", [None, nr.Arms([0.0, 1.0])])
def test_best_is_the_arm_that_the_study_recommends_under_its_budget(context):
    policy = nr.gp_ucb(
        ARMS, nr.SquaredExponential(0.3), noise=0.3, context=context, constraints=nr.OnAverage(noise=0.1)
    )
    made = nr.Study(policy.using(explore=nr.slots.Uniform(0.3)), propensities=True, seed=1)
    for i in range(80):
        trial = made.ask(context=None if context is None else i % 2)
        made.tell(trial, RATES[trial.arm], constraints=[RATES[trial.arm] - 0.35])
    seen = None if context is None else 0
    assert (made.predict(context=seen)[0].argmax(), made.best(context=seen).arm) == (3, 1)
    with pytest.warns(nr.errors.NoRegretWarning, match="by means of the very log"):
        assert nr.evaluate(made, "best").value == nr.evaluate(made, 1).value


def test_a_floor_makes_each_choice_possible_while_few_decisions_count():
    now, policy = 0.0, nr.auto(nr.Arms(np.arange(9.0)[:, None])).using(explore=nr.slots.Uniform(0.1))
    rule = {"deadline": 3600.0, "on_deadline": "reward", "default_reward": 0.0}
    study = nr.Study(policy, propensities=True, clock=lambda: now, about={RULE: rule})
    taken = {study.tell(study.ask(), 1.0).arm for _ in range(4)}
    now = 3601.0
    for _ in range(60):
        study.ask()
    with pytest.warns(nr.errors.NoRegretWarning, match="Wait: 60 decisions do not count yet") as said:
        found = nr.evaluate(study, min({*range(9)} - taken))
    assert found.overlap == 1.0
    assert "None of the log's 4 decisions" in str(said[0].message)


@FEW
def test_an_arm_is_named_by_its_parameters():
    space = nr.Space(banner=nr.Choice("sale", "new"), price=nr.Int(5, 6))
    made = study(200, nr.auto(space.grid(2)).using(explore=nr.slots.Uniform(0.5)))
    arm = next(trial for trial in made.trials if trial.parameters == {"banner": "sale", "price": 6}).arm
    assert nr.evaluate(made, {"banner": "sale", "price": 6}).value == nr.evaluate(made, arm).value
    with pytest.raises(nr.errors.InvalidInput, match=r"go from 0 to 0.5, and their sum is 0.5: they must"):
        nr.evaluate(made, {0: 0.5})


@FEW
def test_a_text_names_the_number_of_an_arm_or_an_option_unless_it_fits_two(clicks):
    space = nr.Space(discount=nr.Choice("none", "5 percent", "0", "3"))
    made = study(200, nr.auto(space.grid()).using(explore=nr.slots.Uniform(0.5)))
    wanted = nr.evaluate(made, {0: 0.7, 1: 0.3}).value
    assert nr.evaluate(made, {"none": 0.7, "1": 0.3}).value == nr.evaluate(made, {"none": 0.7, 1: 0.3}).value == wanted
    assert nr.evaluate(made, "5 percent").value == nr.evaluate(made, 1).value
    assert nr.evaluate(made, "3").value == nr.evaluate(made, 3).value
    with pytest.raises(nr.errors.InvalidInput, match=r"no action of the log. There is \[0, 1, 2, 3\]. A"):
        nr.evaluate(made, {"0": 1.0})  # Arm 0 or 2.
    log = {name: clicks.to_pandas()[name] for name in ("arm", "propensity", "reward")}
    assert nr.evaluate(log, {"3": 1.0}).value == nr.evaluate(clicks, 3).value


def test_exports_of_a_study_are_logs(clicks, tmp_path):
    wanted = nr.evaluate(clicks, "uniform", floor=0.05)
    for name in ("trials.csv", "trials.jsonl"):
        result = nr.evaluate(clicks.export(tmp_path / name), "uniform", floor=0.05)
        assert (result.value, result.lower) == (wanted.value, wanted.lower)
    assert nr.evaluate(clicks.to_pandas(), "uniform").value == wanted.value


@FEW
def test_what_is_left_out_is_counted():
    made = study(60)
    made.add(ARMS.points[0], 1.0)
    made.fail(made.ask(), "broken")
    made.ask()
    with pytest.warns(nr.errors.NoRegretWarning, match="1 of 61 decisions with a reward has no propensity"):
        result = nr.evaluate(made, "uniform")
    assert result.rows == 60
    assert result.left_out == {"added without being asked for": 1, "failed": 1, "without a reward": 1}
    with pytest.warns(nr.errors.NoRegretWarning, match="has no propensity"):
        assert nr.evaluate(made, "uniform", default_reward=0.0).rows == 61


def test_losses_of_a_study_that_minimises():
    policy = nr.gp_ts(ARMS, nr.SquaredExponential(0.3), noise=0.5, v=0.5).using(explore=nr.slots.Uniform(0.5))
    made = study(80, policy=policy, goal="minimize")
    assert 0.2 < nr.evaluate(made, "uniform").value < 0.6


def test_studies_that_say_nothing(clicks):
    with pytest.raises(nr.errors.InvalidInput, match="are its arms: leave out `actions`"):
        nr.evaluate(clicks, "uniform", actions=range(4))
    with pytest.raises(nr.errors.InvalidInput, match="No row of the log has a propensity"):
        nr.evaluate(study(5, propensities=False), "uniform")
    for domain in (nr.Box(0, 1), nr.Space(coupon=nr.Choice("a", "b", "c", "d"))):  # Four coupons are no continuum.
        with pytest.raises(nr.errors.InvalidInput, match=r"^The study does not decide among arms\. Only choices of"):
            nr.evaluate(nr.Study(nr.auto(domain)), "uniform")


@FEW
def test_contexts_of_a_study_reach_a_function():
    space = nr.Space(device=nr.Choice("mobile", "web"))
    policy = nr.gp_ts(ARMS, nr.SquaredExponential(0.5), noise=0.5, v=0.5, context=space).using(
        explore=nr.slots.Uniform(0.5)
    )
    made, rng, seen = nr.Study(policy, propensities=True), np.random.default_rng(0), []
    for i in range(60):
        trial = made.ask(context={"device": ("mobile", "web")[i % 2]})
        made.tell(trial, float(rng.random() < 0.5))
    nr.evaluate(made, lambda context: seen.append(context["device"]) or [0.25] * 4)
    assert seen == ["mobile", "web"] * 30
    with pytest.warns(nr.errors.NoRegretWarning, match="by means of the very log"):
        nr.evaluate(made, "best")


# -- policies that learn ---------------------------------------------------------------------------------------------


def uniform_log(n=240, seed=0):
    rng = np.random.default_rng(seed)
    action = rng.integers(0, 4, n)
    return {
        "action": action, "propensity": np.full(n, 0.25), "reward": (rng.random(n) < RATES[action]).astype(float),
    }  # fmt: skip


def test_a_policy_learns_from_the_rows_that_it_would_have_made():
    policy = nr.gp_ucb(ARMS, nr.SquaredExponential(0.3), noise=0.5)
    log = uniform_log() | {"propensity": np.tile([0.25, 0.5], 120)}  # a fourth is the least: half of the others count
    result, _ = cautioned(log, policy)
    by_hand, made, drawn = [], nr.Study(policy, seed=0), Draws("replay 0").random(240)
    for action, p, reward, draw in zip(*(log[name] for name in ("action", "propensity", "reward")), drawn, strict=True):
        chances = made.probabilities()
        by_hand.append(chances[action] / p)
        if draw * p < 0.25 * chances[action]:
            made.add(ARMS.points[action], reward)
    weights = np.array(by_hand)
    assert result.learned == len(made.trials) > 20
    assert result.value == pytest.approx((weights * log["reward"]).sum() / weights.sum())
    assert "it took in" in str(result)


def test_a_replay_is_a_pure_function_of_its_seed():
    policy = nr.gp_ts(ARMS, nr.SquaredExponential(0.3), noise=0.5, v=0.5)
    one, two, other = (nr.evaluate(uniform_log(120), policy, seed=seed).to_dict() for seed in (1, 1, 2))
    assert one == two != other


def test_a_policy_of_other_arms_is_refused():
    with pytest.raises(nr.errors.InvalidInput, match="decides among 4 arms"):
        nr.evaluate(uniform_log(), nr.gp_ucb(nr.Arms.grid(0, 1, 5), nr.SquaredExponential(0.3), noise=0.5))


def test_a_metric_may_be_the_reward_of_an_evaluation(tmp_path):
    policy = nr.auto(nr.Arms(range(2)), reward="bernoulli").using(explore=nr.slots.Uniform(1.0))
    study = nr.Study(policy, propensities=True)
    for i in range(200):
        trial = study.ask(facts={"price": float(i % 3)})
        study.tell(trial, trial.arm, metrics={"purchase": 1.0 - trial.arm} if i % 2 else None)
    known = [trial for trial in study.trials if trial.metrics]
    of_zero = sum(trial.arm == 0 for trial in known) / sum(trial.arm == 0 for trial in study.trials)
    for ending in ("csv", "jsonl"):
        study.export(tmp_path / f"log.{ending}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nr.errors.NoRegretWarning)  # They are few.
        assert nr.evaluate(study, 0, reward="metrics.purchase").rows == len(known)
        for log in (study, tmp_path / "log.csv", tmp_path / "log.jsonl"):
            found = nr.evaluate(log, 0, reward="metrics.purchase", default_reward=0.0)
            assert (found.value, found.rows) == (pytest.approx(of_zero), 200)
            assert not [each for each in found.cautions if "not read" in each]
        assert nr.evaluate(study, 0, reward="reward").value == nr.evaluate(study, 0).value
        priced = nr.evaluate(tmp_path / "log.jsonl", "uniform", reward="facts.price", reward_range=(0, 2))
        assert priced.value == pytest.approx(1.0, abs=0.2)
    with pytest.raises(nr.errors.InvalidInput, match=r"no trial has this metric. There are: 'metrics.purchase'"):
        nr.evaluate(study, 0, reward="metrics.other")
    with pytest.raises(nr.errors.InvalidInput, match=r"no column metrics.other"):
        nr.evaluate(tmp_path / "log.csv", 0, reward="metrics.other")
