"""Values of policies of slates from logs of slates."""

import re
from itertools import permutations

import numpy as np
import pytest

import nilregret as nr
from nilregret.errors import InvalidInput, NoRegretWarning
from nilregret.evaluation.slates import SLATE_ESTIMATORS, law_of, pseudo_inverse

COUNT, PLACES = 5, 3
LOGGED, OTHER = np.array([0.3, 0.25, 0.2, 0.15, 0.1]), np.array([0.1, 0.15, 0.2, 0.25, 0.3])
SLATES = list(permutations(range(COUNT), PLACES))
# Of `SlateStandardIPS`, `SlateRewardInteractionIPS` and `SlateIndependentIPS` of obp 0.4.1 on the log of `logged`.
OBP = {"slate": 2.269074563296785, "cascade": 1.8254302676263459, "independent": 1.3841489542028087}

pytestmark = pytest.mark.filterwarnings("ignore::nilregret.errors.NoRegretWarning")


def drawn(chances):
    def given(slate):
        left, found = np.ones(COUNT, dtype=bool), []
        for arm in slate:
            found.append(chances[arm] / chances[left].sum())
            left[arm] = False
        return found

    return given


def logged(reward=lambda i, place, arm: float((7 * i + 3 * place + arm) % 3 == 0), chances=LOGGED):
    """Returns a log with each slate once."""
    log = {"slate": [], "place": [], "action": [], "propensity": [], "reward": []}
    for i, slate in enumerate(SLATES):
        for place, (arm, chance) in enumerate(zip(slate, drawn(chances)(slate), strict=True)):
            for name, value in zip(log, (i, place, arm, chance, reward(i, place, arm)), strict=True):
                log[name].append(value)
    return log


def named(chances):
    return dict(enumerate(chances.tolist()))


def test_estimates_are_those_of_obp():
    found = nr.evaluate(logged(), named(OTHER), estimator="pi", logging=named(LOGGED))
    for name, value in OBP.items():
        assert found.estimates[name] == pytest.approx(value, abs=1e-10)
    alone = nr.evaluate(logged(), named(OTHER), estimator="cascade")
    assert alone.value == found.estimates["cascade"]
    assert np.isnan(alone.estimates["pi"])


@pytest.mark.parametrize("policy", [named(OTHER), "uniform", [4, 0, 2]])
def test_estimates_are_exact_where_each_slate_is_logged_as_often_as_it_is_probable(policy):
    """All are unbiased if a reward depends on its place and arm alone, and here the log is its own mean."""
    worth = np.random.default_rng(0).random((PLACES, COUNT))
    uniform = np.full(COUNT, 1.0 / COUNT)
    log = logged(lambda i, place, arm: float(worth[place, arm]), uniform)
    sums = np.array([sum(worth[place, arm] for place, arm in enumerate(slate)) for slate in SLATES])
    if isinstance(policy, list):
        chances = np.array([float(slate == tuple(policy)) for slate in SLATES])
    else:
        each = drawn(uniform if policy == "uniform" else OTHER)
        chances = np.array([np.prod(each(slate)) for slate in SLATES])
    found = nr.evaluate(log, policy, estimator="pi", logging="uniform")
    for name in SLATE_ESTIMATORS:
        assert found.estimates[name] == pytest.approx(float(chances @ sums), abs=1e-10)
    assert found.logged == pytest.approx(sums.mean())
    assert found.overlap == pytest.approx(1.0)


def test_the_pseudo_inverse_of_independent_places():
    """Two places of their own arms: q^T Gamma^+ 1_s = 1 - L + sum_l pi(s_l) / mu(s_l) (Swaminathan et al. 2017)."""
    first, second = np.array([0.5, 0.3, 0.2, 0.0]), np.array([0.0, 0.0, 0.0, 1.0])
    law = law_of(lambda before: second if before else first, 2, 4)
    other = law_of(lambda before: second if before else np.array([0.1, 0.2, 0.7, 0.0]), 2, 4)
    weights = other.marginals @ pseudo_inverse(law.gamma)
    for arm, ratio in enumerate((0.2, 2.0 / 3.0, 3.5)):
        assert weights[[arm, 7]].sum() == pytest.approx(1.0 - 2.0 + ratio + 1.0, abs=1e-10)


def test_weights_of_the_logs_own_policy_are_1():
    found = nr.evaluate(logged(), named(LOGGED), estimator="wpi", logging=named(LOGGED))
    assert all(value == pytest.approx(found.logged) for value in found.estimates.values())
    assert found.effective_sample_size == pytest.approx(len(SLATES))


# -- studies ---------------------------------------------------------------------------------------------------------

RATES = np.array([0.05, 0.1, 0.2, 0.3, 0.4])


def study(slates, *, context=None, seed=0):
    policy = nr.auto(nr.Arms(range(COUNT)), context=context, reward="bernoulli")
    made, rng = nr.Study(policy, seed=seed, propensities=True), np.random.default_rng(seed)
    for _ in range(slates):
        at = None if context is None else {"x": float(rng.random())}
        page = made.ask(at, count=PLACES, slate=True)
        made.tell_slate(page, [float(rng.random() < RATES[trial.arm]) for trial in page])
    return made


@pytest.mark.parametrize("slates", [15, pytest.param(150, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("context", [None, nr.Space(x=nr.Float(0, 1))])
def test_a_study_knows_the_law_of_its_slates(context, slates):
    log = study(slates, context=context)
    found = nr.evaluate(log, "uniform", estimator="wpi")
    assert found.slates == slates
    assert found.left_out == {}
    assert abs(found.value - 3.0 * RATES.mean()) < 4.0 * (found.upper - found.lower) / 3.92
    own = nr.evaluate(log, lambda context: [4, 3, 2], estimator="independent")
    assert abs(own.value - RATES[2:].sum()) < 4.0 * (own.upper - own.lower) / 3.92
    assert "Which" not in str(own)


@pytest.mark.nightly
def test_intervals_hold_the_truth():
    """Of 100 intervals of 95%, 87 or more hold the truth with a probability above 1 - 1e-3 each."""
    held = {"cascade": 0, "independent": 0, "pi": 0}
    for seed in range(100):
        rng = np.random.default_rng(seed)
        order = [rng.permutation(COUNT)[:PLACES] for _ in range(400)]
        log = {name: [] for name in ("slate", "place", "action", "propensity", "reward")}
        for i, slate in enumerate(order):
            for place, arm in enumerate(slate.tolist()):
                row = (i, place, arm, 1.0 / (COUNT - place), float(rng.random() < RATES[arm]))
                for name, value in zip(log, row, strict=True):
                    log[name].append(value)
        for name in held:
            found = nr.evaluate(log, named(OTHER), estimator=name, logging="uniform")
            truth = law_of(lambda before: left_of(OTHER, before), PLACES, COUNT).marginals @ np.tile(RATES, PLACES)
            held[name] += found.lower <= truth <= found.upper
    assert min(held.values()) >= 87


def left_of(chances, before):
    left = chances.copy()
    left[list(before)] = 0.0
    return left / left.sum()


def test_an_export_is_a_log(tmp_path):
    log = study(30)
    log.export(tmp_path / "slates.csv")
    ours, theirs = (nr.evaluate(each, "uniform", estimator="cascade") for each in (log, tmp_path / "slates.csv"))
    assert theirs.value == pytest.approx(ours.value)
    assert theirs.slates == 30


def test_slates_without_all_answers_are_left_out():
    log = study(20)
    log.ask(count=3, slate=True)
    found = nr.evaluate(log, "uniform", estimator="slate")
    assert found.left_out == {"without all rewards": 1}
    assert nr.evaluate(log, "uniform", estimator="slate", default_reward=0.0).slates == 21
    log.tell_slate(log.ask(count=3, slate=True, among=[0, 1, 2]), clicked=[])
    assert nr.evaluate(log, "uniform", estimator="pi").left_out == {
        "without all rewards": 1, "among other arms than all (`among` or `exclude`)": 1
    }  # fmt: skip


def test_best_flatters_and_what_the_log_lacks_is_said():
    log = study(60)
    with pytest.warns(NoRegretWarning, match="flatters"):
        nr.evaluate(log, "best", estimator="cascade")
    fixed = {"slate": [0, 0], "place": [0, 1], "action": [0, 1], "propensity": [1.0, 1.0], "reward": [1.0, 0.0]}
    with pytest.warns(NoRegretWarning, match="never has some of the policy's arms in their places: 100.0%"):
        found = nr.evaluate(fixed, [1, 0], estimator="independent", logging=[0, 1])
    assert found.value == 0.0
    assert found.overlap == 0.0


@pytest.mark.parametrize(
    ("change", "more", "sentence"),
    [
        ({}, {"estimator": "ip"}, "`estimator` is 'ip'"),
        ({}, {"estimator": "pi"}, "The log's policy is not known, and 'pi' needs"),
        ({"propensity": [0.0] * 180}, {}, "they must lie in (0, 1]"),
        ({"action": [0] * 180}, {}, "has an action twice"),
        (
            {"reward": [None] * 180},
            {},
            "so nothing can be evaluated. 60 slates without",
        ),
        ({}, {"policy": [0, 1]}, "The policy has 2 places, and a slate of the log has more"),
        ({}, {"policy": [0, 0, 1]}, "each place has another arm"),
        ({}, {"policy": [0, 1, 9]}, "`policy` has the action 9"),
        ({}, {"policy": np.full(5, 0.3)}, "probabilities are at least 0 and sum to 1"),
        ({}, {"policy": nr.auto(nr.Arms(range(5)))}, "which is no policy of slates"),
        ({}, {"policy": "worst"}, "which is no policy of slates"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(change, more, sentence):
    given = {"policy": "uniform", "estimator": "cascade"} | more
    with pytest.raises(InvalidInput, match=re.escape(sentence)):
        nr.evaluate(logged() | change, given.pop("policy"), **given)


def test_a_study_without_slates_is_refused():
    with pytest.raises(InvalidInput, match="The study has no slates"):
        nr.evaluate(nr.Study(nr.auto(nr.Arms(range(5)), reward="bernoulli")), "uniform", estimator="pi")
    made = nr.Study(nr.auto(nr.Arms(range(40)), reward="bernoulli"), seed=0, propensities=True)
    made.tell_slate(made.ask(count=5, slate=True), clicked=[])
    with pytest.raises(InvalidInput, match="for more than 2,000 sets of arms"):
        nr.evaluate(made, "uniform", estimator="pi")
