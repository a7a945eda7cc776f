"""Intervals of logs whose units visit often, and what is estimated where a unit keeps its arm."""

from types import SimpleNamespace

import numpy as np
import pytest

import nilregret as nr
from nilregret.evaluation.estimators import effective_sample_size, gain_interval, lower_bound, mean_interval
from nilregret.evaluation.slates import evaluate_slates
from nilregret.serve.api.read_routes import _reply
from nilregret.serve.dashboard.views.comparison import compare
from nilregret.serve.dashboard.views.value_of_learning import value_view
from nilregret.study.visits import correlation, earlier, error_of_mean, shared_of, units_of, visits


def sticky_log(seed, units=60, visits=10, alike=0.5, rates=(0.3, 0.5)):
    """Units that keep their arm of two, with rewards whose correlation within a unit is given."""
    rng = np.random.default_rng([seed, 44])
    arms = np.repeat(rng.integers(0, 2, units), visits)
    size = (1.0 / alike - 1.0) if alike else np.inf
    p = np.array(
        [[rng.beta(rate * size, (1.0 - rate) * size) if alike else rate for rate in rates] for _ in range(units)]
    )
    rewards = rng.random(units * visits) < np.repeat(p, visits, axis=0)[np.arange(units * visits), arms]
    order = rng.permutation(units * visits)  # Visits of units alternate.
    unit = np.repeat(np.arange(units), visits)
    log = {"action": arms, "propensity": np.full(len(arms), 0.5), "reward": rewards * 1.0, "unit": unit}
    return {name: column[order] for name, column in log.items()}


def without(log, *names):
    return {name: column for name, column in log.items() if name not in names}


def test_units_of_one_visit_change_nothing():
    log = sticky_log(0, units=200, visits=1)
    found, plain = nr.evaluate(log, 1), nr.evaluate(without(log, "unit"), 1)
    assert found.to_dict() == plain.to_dict()
    assert found.units is None
    assert "units" not in found.to_dict()


def test_rows_that_repeat_another_add_nothing():
    log = sticky_log(1, units=200, visits=1)
    again = {name: np.repeat(column, 7) for name, column in log.items()}
    one, found = nr.evaluate(log, 1), nr.evaluate(again, 1)
    assert (found.units, found.rows) == (200, 1400)
    for name in ("value", "lower", "upper", "effective_sample_size"):
        assert getattr(found, name) == pytest.approx(getattr(one, name), abs=2e-6)
    assert [*found.gain] == pytest.approx([*one.gain], abs=2e-6)
    assert [*found.logged_interval] == pytest.approx([*one.logged_interval], abs=2e-6)
    assert [*found.check.uniform] == pytest.approx([*one.check.uniform], abs=1e-5)
    assert [*found.check.actions[1]] == pytest.approx([*one.check.actions[1]], abs=1e-5)


@pytest.mark.parametrize("worlds", [60, pytest.param(400, marks=pytest.mark.nightly)])
def test_intervals_hold_where_units_come_back_and_naive_ones_fail(worlds):
    # Correct 95% intervals miss more than 8 of 60, or 37 of 400, with probability below 1e-3.
    missed = np.zeros((2, 3), dtype=int)
    for seed in range(worlds):
        log = sticky_log(seed)
        w, r, units = 2.0 * (log["action"] == 1), log["reward"], log["unit"]
        for row, of in enumerate((units, None)):
            value = mean_interval(w, r, 0.05, units=of)
            gain = gain_interval(w, r, 0.05, units=of)
            own = mean_interval(np.ones(len(r)), r, 0.05, units=of)
            for column, (interval, truth) in enumerate(((value, 0.5), (gain, 0.1), (own, 0.4))):
                missed[row, column] += not interval.lower <= truth <= interval.upper
    assert (missed[0] <= (8 if worlds == 60 else 37)).all()
    assert missed[1, 0] > worlds / 8  # The naive interval of the value.


def test_a_bound_holds_under_visits_of_any_number():
    # The capital at the true mean has an expectation of at most 1, so a bound of 5% fails in 5% of worlds at most.
    rng, failed = np.random.default_rng(5), 0
    for _ in range(300):
        sizes = rng.integers(1, 21, 40)
        units = np.repeat(np.arange(40), sizes)
        rewards = np.repeat(rng.random(40) < 0.3, sizes) * 1.0
        failed += lower_bound(rewards, 0.05, units=units) > 0.3
    assert failed <= 28  # Binomial (300, .05): above with probability 1e-3.


def test_a_floor_still_makes_intervals_narrower():
    log = sticky_log(3, units=400, visits=3)
    free, told = nr.evaluate(log, 1), nr.evaluate(log, 1, floor=0.5)
    assert told.upper - told.lower < free.upper - free.lower


def test_names_of_units():
    assert units_of(["a", None, "b", "a", float("nan"), "", None]).tolist() == [0, 1, 2, 0, 3, 4, 5]
    assert units_of([1, 2, None, None]) is None
    assert units_of([[1], [1], 1, True]).tolist() == [0, 0, 1, 1]


def test_counts_of_units():
    units = np.array([3, 1, 3, 3, 1])
    assert earlier(units, np.array([1, 2, 1, 4, 1])).tolist() == [0, 0, 1, 2, 2]
    assert visits(units) == pytest.approx(13 / 5)
    assert visits(None) == 1.0
    assert effective_sample_size(np.ones(5), units) == pytest.approx(25 / 13)
    values = np.array([1.0, 0.0, 1.0, 1.0, 0.0])
    assert error_of_mean(values, units) == pytest.approx(np.sqrt(2 * 1.2**2) / 5)
    assert error_of_mean(values, None) == pytest.approx(np.sqrt(0.24 / 5))


@pytest.mark.parametrize("alike", [0.0, 0.3, 0.8])
def test_the_correlation_of_visits_is_found(alike):
    found = [
        correlation(log["reward"], log["action"], log["unit"])
        for log in (sticky_log(seed, units=100, visits=6, alike=alike) for seed in range(20))
    ]
    assert np.mean(found) == pytest.approx(alike, abs=0.05)  # Six standard errors.


def test_the_correlation_is_the_worst_where_nothing_tells():
    two, arms = np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1])
    assert correlation(np.array([1.0, 0.0, 1.0, 1.0]), arms, two) == 1.0
    assert correlation(np.array([1.0, 0.0, 1.0, 1.0]), np.arange(4), two) == 0.0
    assert correlation(np.zeros(4), np.zeros(4, dtype=int), two) == 0.0


def test_few_units_are_said():
    log = {"action": [0, 1] * 200, "propensity": [0.5] * 400, "reward": [0.0, 1.0] * 200, "unit": ["cm"] * 400}
    with pytest.warns(nr.errors.NoRegretWarning, match="the 400 rows of 1 unit say as much as 1 of"):
        found = nr.evaluate(log, 1)
    assert found.lower < 0.01 < 0.99 < found.upper
    assert "400 decisions of 1 unit say as much as 1 units of the policy's own" in str(found)


def carried(seed, units=400, most=4):
    """Visits whose reward depends on the arm and on how often the unit has seen it, and on a context of the visit."""
    rng = np.random.default_rng(seed)
    rows = []
    for unit in range(units):
        first = len(rows)
        context = float(rng.integers(0, 2))
        p = 0.8 if context else 0.5
        arm = int(rng.random() < p)
        for visit in range(1 + unit % most):
            mean = 0.3 + 0.1 * visit * arm + 0.2 * arm * context
            rows.append({
                "number": len(rows), "context": float(rng.integers(0, 2)) if visit else context, "action": arm,
                "propensity": p if arm else 1.0 - p, "reward": float(rng.random() < mean), "unit": f"user {unit}",
                "kept": first if visit else None,
            })  # fmt: skip
    return rows


def test_the_value_is_that_of_a_policy_that_is_sticky_too():
    # A policy that plays arm 1 for units whose first context is 1. Truth is the mean over 1 to 4 visits.
    count = np.array([0, 1, 2, 3])
    treated = np.concatenate([0.5 + 0.1 * count[:n] for n in range(1, 5)])
    truth = 0.5 * treated.mean() + 0.5 * 0.3
    found = [nr.evaluate(carried(seed), lambda context: int(context == 1.0), estimator="ips") for seed in range(12)]
    values = np.array([each.value for each in found])
    assert abs(values.mean() - truth) < 4 * values.std(ddof=1) / np.sqrt(12)
    assert all(each.lower <= truth <= each.upper for each in found)
    fresh = nr.evaluate([without(row, "kept") for row in carried(0)], lambda context: int(context == 1.0))
    assert fresh.value != found[0].value  # Without `kept` each visit is a decision of its own.


def test_a_column_kept_needs_the_numbers():
    rows = [without(row, "number") for row in carried(0, units=5)]
    with pytest.raises(
        nr.errors.InvalidInput, match="`kept` names the decisions whose action is kept by their numbers"
    ):
        nr.evaluate(rows, "uniform")


def test_a_policy_that_learns_keeps_arms_where_the_log_does():
    rows = carried(1, units=120)
    policy = nr.auto(nr.Arms(range(2)), reward="bernoulli", context=nr.Box([0.0], [1.0]))
    first = [{**row, "context": [row["context"]]} for row in rows]
    found = nr.evaluate(first, policy)
    assert 0 < found.learned < len(rows)


def test_a_study_with_sticky_visitors(tmp_path):
    study = nr.Study(
        nr.auto(nr.Arms(range(2)), reward="bernoulli").using(explore=nr.slots.Uniform(0.5)),
        propensities=True,
        sticky=True,
    )
    rng = np.random.default_rng(0)
    for visit in range(120):
        trial = study.ask(unit=f"user {visit % 40}")
        study.tell(trial, float(rng.random() < 0.3 + 0.2 * trial.arm))
    found = nr.evaluate(study, "uniform")
    assert (found.units, found.rows) == (40, 120)
    assert found.to_dict()["units"] == 40
    assert _reply(found).units == 40
    study.export(tmp_path / "log.csv")
    exported = nr.evaluate(tmp_path / "log.csv", "uniform", floor=0.25)
    for name in ("value", "lower", "upper", "units", "effective_sample_size"):
        assert getattr(found, name) == pytest.approx(getattr(exported, name), abs=1e-9)


def test_chance_of_a_sum_counts_pairs_of_one_unit():
    units, arms = [5, None, 5, 5, 2, 2], [0, 0, 0, 0, 1, 1]
    answered = [
        SimpleNamespace(number=9 + i, visit=unit, unit=unit, point=np.array([float(arm)]))
        for i, (unit, arm) in enumerate(zip(units, arms, strict=True))
    ]
    shared = shared_of(answered, np.array([1.0, 0.0, 1.0, 1.0, 1.0, 0.0]))
    assert shared.said == (3, shared.correlation)
    assert shared.doubt == pytest.approx(np.sqrt(1.0 + shared.correlation * (14 / 6 - 1.0)))
    plays, rho = np.ones(6, dtype=int), shared.correlation
    pairs = np.array([0, 0, 1, 3, 3, 4])  # of one unit so far
    assert shared.chance(2.0, plays) == pytest.approx(4.0 * (np.arange(1, 7) + 2.0 * rho * pairs))
    assert shared.chance(2.0, plays, 2) == pytest.approx(4.0 * (np.array([1.0, 2.0]) + 2.0 * rho * np.array([0, 1])))
    alone = shared_of(answered[1:2], np.zeros(1))
    assert (alone.said, alone.doubt) == (None, 1.0)
    assert alone.chance(2.0, plays).tolist() == [4.0, 8.0, 12.0, 16.0, 20.0, 24.0]


def test_worth_says_that_visitors_came_back():
    study = nr.Study(nr.auto(nr.Arms(range(2)), reward="bernoulli"), sticky=True)
    rng = np.random.default_rng(0)
    rates = rng.beta(0.3, 0.5, (20, 2))
    for visit in range(80):
        trial = study.ask(unit=f"user {visit % 20}")
        study.tell(trial, float(rng.random() < rates[visit % 20, trial.arm]))
    found = compare(study)
    assert found.alike[0] == 20
    assert 0.3 < found.alike[1] < 0.9
    assert any("The answers are of 20 units." in note for note in value_view(study)["notes"])


def test_a_certainty_counts_visitors_and_not_visits():
    # Two arms that were played for the same ten visitors each, once and 20 times over.
    policy = nr.auto(nr.Arms(range(2)), reward="bernoulli")
    study, plain = nr.Study(policy, sticky=True), nr.Study(policy)
    rates = np.random.default_rng(3).random(20) < 0.4
    for visit in range(200):
        trial = study.ask(unit=str(visit % 20))
        told = study.tell(trial, float(rates[visit % 20]))
        plain.add(told.point, told.reward)
    assert abs(study.certainty().probability - 0.5) < abs(plain.certainty().probability - 0.5)
    study = nr.Study(policy)
    for visit in range(20):
        study.tell(study.ask(unit=str(visit)), float(rates[visit]))
    known = study.certainty()
    again = nr.Study(policy)
    for visit in range(20):
        again.tell(again.ask(), float(rates[visit]))
    assert known == again.certainty()


def test_slates_of_one_unit_count_once():
    rng, rows = np.random.default_rng(0), []
    for slate in range(300):
        for place, action in enumerate(rng.permutation(4)[:2].tolist()):
            clicked = float(rng.random() < 0.2 + 0.1 * action)
            rows.append({"slate": slate, "place": place, "action": action, "propensity": 1 / (4 - place),
                         "reward": clicked, "unit": f"u{slate}"})  # fmt: skip
    again = [{**row, "slate": f"{row['slate']} {i}"} for i in range(3) for row in rows]
    one = evaluate_slates(rows, "uniform", estimator="wpi", logging="uniform")
    found = evaluate_slates(again, "uniform", estimator="wpi", logging="uniform")
    naive = evaluate_slates([without(row, "unit") for row in again], "uniform", estimator="wpi", logging="uniform")
    assert (found.lower, found.upper) == pytest.approx((one.lower, one.upper))
    assert found.effective_sample_size == pytest.approx(one.effective_sample_size)
    assert naive.upper - naive.lower < 0.6 * (found.upper - found.lower)


def test_a_slate_that_is_kept_has_the_law_of_its_draw():
    policy = nr.gp_ts(nr.Arms.grid(0, 1, 3), nr.SquaredExponential(0.3), noise=0.5, v=0.5)
    study = nr.Study(policy.using(pending="ignore"), propensities=True, sticky=True)
    rng = np.random.default_rng(0)
    for visit in range(60):
        for trial in study.ask(count=2, slate=True, unit=f"user {visit % 30}"):
            study.tell(trial, float(rng.random() < 0.2 + 0.2 * trial.arm))
    assert sum(trial.kept is not None for trial in study.trials) == 60
    with pytest.warns(nr.errors.NoRegretWarning, match="too few for the interval"):
        found = evaluate_slates(study, "uniform", estimator="pi")
    assert (found.slates, dict(found.left_out)) == (60, {})
    assert found.effective_sample_size <= 30
