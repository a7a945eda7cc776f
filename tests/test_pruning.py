"""Pruning rules against hand calculations, against Optuna's, and what stopped trials teach."""

import math

import numpy as np
import pytest
from scipy.stats import t as student
from scipy.stats import truncnorm

import nilregret as nr
from nilregret.slots.pruning import Course, Courses

SPACE = nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1))


def course(number, values, *, steps=None, final="last", stopped=False):
    steps = np.arange(1, len(values) + 1) if steps is None else np.array(steps)
    reward = values[-1] if final == "last" else final
    return Course(number, np.zeros(1), steps, np.array(values, dtype=float), final is not None, stopped, reward)


def courses(this, others, length=None):
    return Courses(course(len(others), this, final=None), others, length)


def curves(count, length, seed):
    rng = np.random.default_rng(seed)
    finals, starts, rates = rng.normal(size=count), rng.normal(size=count), rng.uniform(0.1, 1.0, count)
    steps = np.arange(1, length + 1)
    return (
        finals[:, None]
        - (finals - starts)[:, None] * np.exp(-np.outer(rates, steps))
        + 0.05 * rng.normal(size=(count, length))
    )


def stops(rule, told, goal, *, trials):
    """The step at which each trial stops, or None, if curves come one after the other."""
    study, found = nr.Study(nr.auto(SPACE, pruning=rule), goal=goal), []
    for values in told[:trials]:
        trial = study.ask()
        for step, value in enumerate(values, start=1):
            if not study.report(trial, step, value):
                study.stop(trial)
                break
        else:
            study.tell(trial, values[-1])
        found.append(None if trial is not None and study.trials[trial.number].state == "observed" else step)
    return found


def optuna_stops(pruner, told, goal):
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study, found = optuna.create_study(direction=goal, pruner=pruner(optuna.pruners)), []
    for values in told:
        trial, at = study.ask({"x": optuna.distributions.FloatDistribution(0, 1)}), None
        for step, value in enumerate(values, start=1):
            trial.report(value, step)
            if step < len(values) and trial.should_prune():
                at = step
                break
        study.tell(trial, None if at else values[-1], state=optuna.trial.TrialState.PRUNED if at else None)
        found.append(at)
    return found


@pytest.mark.parametrize("goal", ["maximize", "minimize"])
def test_median_is_that_of_optuna(goal):
    told = curves(30, 9, 0)
    ours = stops(nr.slots.Median(steps=9), told, goal, trials=30)
    assert ours == optuna_stops(lambda of: of.MedianPruner(n_startup_trials=5, n_warmup_steps=0), told, goal)
    assert 5 < sum(at is not None for at in ours) < 25


@pytest.mark.parametrize("goal", ["maximize", "minimize"])
def test_halving_is_that_of_optuna(goal):
    told = curves(30, 27, 1)
    ours = stops(nr.slots.Halving(steps=27, factor=3, first=1 / 9, trials=None), told, goal, trials=30)
    halving = optuna_stops(lambda of: of.SuccessiveHalvingPruner(min_resource=3, reduction_factor=3), told, goal)
    assert ours == halving
    assert {3, 9} <= set(ours)
    first = stops(nr.slots.Halving(steps=27, factor=3, first=1 / 9), told, goal, trials=30)
    assert first == [*halving[:12], *[None] * 18]  # later trials may not be stopped


def test_halving_by_hand():
    rule = nr.slots.Halving(factor=2.0, first=0.25)
    assert rule.rungs(8) == [2, 4]
    others = [course(0, [0.0, 5.0]), course(1, [0.0, 3.0]), course(2, [0.0])]
    assert rule.verdict(courses([0.0, 4.0], others, 8)) == "stop"  # one of three goes on, and two reached the rung
    assert rule.verdict(courses([0.0, 6.0], others, 8)) == "go"
    assert rule.verdict(courses([0.0, 0.0, 0.0], others, 8)) == "go"  # between rungs
    assert rule.verdict(courses([0.0, 4.0], others)) == "go"  # T is not known
    paused = nr.slots.Halving(factor=2.0, first=0.25, pause=True)
    assert paused.verdict(courses([0.0, 4.0], others, 8)) == "wait"
    assert paused.verdict(courses([0.0, 4.0], [*others, course(3, [0.0, 1.0])], 8)) == "go"  # two of four
    assert "place 2 of 3" in rule.why(courses([0.0, 4.0], others, 8))


def test_why_halving_stops_is_said_at_the_rung():
    others = [course(i, [0.9, 0.1], steps=[3, 10]) for i in range(5)]
    this = Courses(course(5, [0.5], steps=[4], final=None), others, 10)
    rule = nr.slots.Halving()
    assert rule.verdict(this) == "stop"
    assert "place 6 of 6" in rule.why(this)


def test_median_compares_no_step_with_a_later_one():
    finished = [course(i, [0.55, 0.6, 0.7, 0.8], steps=[5, 10, 15, 20]) for i in range(6)]
    rule = nr.slots.Median()
    for steps, verdict in (([1], "go"), ([4], "go"), ([5], "stop"), ([7], "stop")):
        this = Courses(course(6, [0.45], steps=steps, final=None), finished, 20)
        assert rule.verdict(this) == verdict


def test_rungs_are_reached_between_irregular_steps():
    rule = nr.slots.Halving(factor=2.0, first=0.5)
    others = [course(0, [1.0, 5.0], steps=[3, 6]), course(1, [1.0, 4.0], steps=[2, 7])]
    this = Courses(course(2, [9.0, 3.0], steps=[4, 9], final=None), others, 10)
    assert rule.verdict(this) == "stop"  # the rung is 5, and 5.0 and 4.0 were reported first after it


def test_predicted_by_hand():
    told = curves(20, 16, 3)
    others = [course(i, values) for i, values in enumerate(told[:-1])]
    this = list(told[-1][:4])
    rule = nr.slots.Predicted(level=0.2)
    assert rule.rungs(16) == [1, 2, 4, 8]
    finals = told[:-1, -1]
    floor = finals.max() - 4.0 * (finals.max() - np.median(finals))
    clipped = np.maximum(told[:, [3, 1]], floor)
    features = np.column_stack([clipped[:, 0], clipped[:, 0] - clipped[:, 1]])
    rows, y = features[:-1], np.maximum(finals, floor)
    z, at = ((each - rows.mean(0)) / rows.std(0) for each in (rows, features[-1]))
    inverse = np.linalg.inv(z.T @ z + np.eye(2))
    weights = inverse @ z.T @ (y - y.mean())
    left = y - y.mean() - z @ weights
    n = len(y)
    variance = (left @ left + 0.001 * n * y.var()) / (n - 3)
    mean, scale = y.mean() + at @ weights, math.sqrt(variance * (1 + 1 / n + at @ inverse @ at))
    found = courses(this, others, 16)
    np.testing.assert_allclose(rule.expected(found), (mean, scale), rtol=1e-12)
    chance = student.sf((finals.max() - mean) / scale, n - 3)
    assert rule.chance(found) == pytest.approx(chance, rel=1e-9)
    assert rule.verdict(found) == ("go" if chance >= 0.2 else "stop")
    assert rule.verdict(courses(this, others[:9], 16)) == "go"  # too few have finished
    assert rule.verdict(courses([*this, 0.0], others, 16)) == "go"  # no rung


def test_a_prediction_survives_a_broken_curve_and_equal_ones():
    others = [course(i, [0.1 * i] * 8) for i in range(11)]
    broken = [*others, course(11, [0.0, -1e300, -1e300, -1e300, -1e300, -1e300, -1e300, 0.2])]
    mean, scale = nr.slots.Predicted().expected(courses([0.3] * 4, broken, 8))
    assert abs(mean - 0.3) < 0.2
    assert scale < 1.0
    same = [course(i, [0.5] * 8) for i in range(12)]
    assert nr.slots.Predicted().verdict(courses([0.5] * 4, same, 8)) == "go"


def test_a_share_of_the_stops_runs_on():
    told = [[1.0] * 9] * 6 + [[0.0] * 9] * 40
    study = nr.Study(nr.auto(SPACE, pruning=nr.slots.Median(steps=9, explore=0.25)))
    for values in told:
        trial = study.ask()
        verdicts = [study.report(trial, step, value) for step, value in enumerate(values[:3], start=1)]
        assert len(set(verdicts)) == 1  # the same trials are spared at each step
        study.tell(trial, values[-1]) if all(verdicts) else study.stop(trial)
    spared = [trial for trial in study.trials if "spared" in {report.verdict for report in trial.curve}]
    assert 4 <= len(spared) <= 18
    assert all(trial.state == "observed" for trial in spared)


def seen(study, number):
    """The value that the model has learned of a trial."""
    return study.replica.current().reward.posterior.entries[number].trial


@pytest.mark.parametrize("goal", ["maximize", "minimize"])
def test_what_a_stopped_trial_teaches(goal):
    told = curves(14, 8, 5)
    found = {}
    for learned in ("last", "predicted", "censored", "nothing"):
        study = nr.Study(nr.gp_ucb(nr.Arms.grid(0, 1, 9), nr.SquaredExponential(0.3), noise=0.1).using(
            pruning=nr.slots.Predicted(steps=8, learned=learned)
        ), goal=goal)  # fmt: skip
        for values in told[:-1]:
            trial = study.ask()
            for step, value in enumerate(values, start=1):
                study.report(trial, step, value)
            study.tell(trial, values[-1])
        trial = study.ask()
        for step, value in enumerate(told[-1][:4], start=1):
            study.report(trial, step, value)
        study.stop(trial)
        entries = study.replica.current().reward.posterior.entries
        assert study.best().number != trial.number
        found[learned] = seen(study, trial.number) if trial.number in entries else None
        again = nr.Study(study.policy, goal=goal)
        again.replica.adopt(study.replica.record)
        assert again.ask().point.tolist() == study.ask().point.tolist()
    sign = 1.0 if goal == "maximize" else -1.0
    others = [course(i, sign * values) for i, values in enumerate(told[:-1])]
    mean, scale = nr.slots.Predicted(steps=8).expected(courses(sign * told[-1][:4], others, 8))
    best = (sign * told[:-1, -1]).max()
    assert found["nothing"] is None
    assert found["last"].reward == sign * told[-1][3]
    assert found["predicted"].reward == pytest.approx(mean)
    below = truncnorm(-np.inf, (best - mean) / scale, mean, scale)
    assert found["censored"].reward == pytest.approx(below.mean(), rel=1e-6)
    assert found["censored"].std is None


def test_of_says_which_value_counts():
    best, last = nr.slots.Never(of="best"), nr.slots.Never()
    for rule, value in ((best, 0.2), (last, 0.6)):
        study = nr.Study(
            nr.gp_ucb(nr.Box(0, 1), nr.SquaredExponential(0.3), noise=0.1).using(pruning=rule), goal="minimize"
        )
        trial = study.ask()
        for step, loss in enumerate((0.5, 0.2, 0.6), start=1):
            study.report(trial, step, loss)
        study.stop(trial)
        assert seen(study, 0).reward == -value


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: nr.slots.Median(finished=0), "`finished`"),
        (lambda: nr.slots.Halving(factor=1.0), "`factor`"),
        (lambda: nr.slots.Halving(first=0.0), "`first`"),
        (lambda: nr.slots.Halving(trials=0), "`trials`"),
        (lambda: nr.slots.Predicted(level=1.0), "`level`"),
        (lambda: nr.slots.Never(steps=0), "`steps`"),
        (lambda: nr.slots.Never(of="mean"), "`of`"),
        (lambda: nr.slots.Never(explore=2), "`explore`"),
        (lambda: nr.slots.Never(learned="all"), "`learned`"),
        (lambda: nr.auto(SPACE, pruning="medain"), "median"),
        (lambda: nr.auto(SPACE, pruning=5), "`pruning` is 5"),
        (lambda: nr.auto(SPACE, objectives=2, pruning="median"), "several objectives"),
        (lambda: nr.auto(SPACE, context=nr.Box(0, 1), pruning="median"), "contexts"),
    ],
)
def test_bad_arguments_are_refused(make, said):
    with pytest.raises(nr.NoRegretError, match=said):
        make()
