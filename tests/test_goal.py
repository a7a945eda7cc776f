"""Studies that minimise are the ones that maximise minus f, seen in the units told."""

import pickle
import sqlite3
from contextlib import closing

import numpy as np
import pytest

import nilregret as nr
from nilregret.algorithms.baselines.admm import admmbo
from nilregret.slots.explore import UniformExploration

ARMS = nr.Arms.grid(0, 1, 12)
BOX = nr.Box([0.0, 0.0], [1.0, 1.0])
SPACE = nr.Space(rate=nr.Float(1e-3, 1.0, log=True), kind=nr.Choice("a", "b"), layers=nr.Int(1, 4))
KERNEL = nr.Matern(2.5, 0.3)
FEW = nr.slots.PointSearch(candidates=32, around=8, starts=1)


def over(make, domain, kernel=KERNEL, **options):
    """Makes the policy from its prior mean and its worst value, in the units told."""
    return lambda **places: make(domain, kernel, noise=0.1, **{**options, **places})


# How a policy is made; and those of its options that are places in the units of the reward, as of losses.
POLICIES = {
    "arms": (over(nr.gp_ucb, ARMS), {}),
    "a prior mean": (over(nr.gp_ucb, ARMS), {"prior_mean": 0.5}),
    "box": (over(nr.gp_ucb, BOX, search=FEW), {"prior_mean": 0.25}),
    "space": (over(nr.expected_improvement, SPACE, nr.Matern(2.5, 0.5), search=FEW), {}),
    "thompson": (over(nr.gp_ts, ARMS, norm_bound=1.0), {}),
    "refit": (over(nr.gp_ucb, BOX, search=FEW, refit=nr.slots.Refit(every=4)), {"prior_mean": 0.5}),
    "failures": (over(nr.gp_ucb, ARMS, pending=nr.slots.Ignored(failed="worst")), {"prior_mean": 0.5}),
    "nearest": (over(nr.gp_ucb, ARMS, pending=nr.slots.NearestMeans(neighbours=2)), {"prior_mean": 0.5}),
    "censored": (over(nr.gp_ucb_sdf, ARMS, window=2), {"minimum": 2.0}),
    "censored, unknown": (over(nr.gp_ucb_sdf, ARMS, window=2, minimum=None), {"prior_mean": 0.5}),
    "contexts": (over(nr.gp_ucb, ARMS, nr.Matern(2.5, (0.5, 0.3)), context=nr.Box([0.0], [1.0])), {"prior_mean": 0.5}),
    "change": (over(nr.gp_ucb, ARMS, memory=nr.slots.RestartEvery(10), explore=UniformExploration(1.0)), {}),
    "constraints": (
        over(nr.gp_ucb_noisy_constraints, ARMS, norm_bound=1.0, epoch=4, epochs=4, constraints=2),
        {"prior_mean": 0.5},
    ),
    "script": (lambda: admmbo(BOX, first=(3, 3), candidates=50), {}),
}


def loss(trial):
    seen = 0.0 if trial.context is None else float(trial.context[0])
    return float(np.cos(7.0 * trial.point.sum() + seen)) + 0.5


def context(policy, step):
    return None if policy.context is None else [step % 3 / 3.0]


def play(study, steps, sign):
    for step in steps:
        trial = study.ask(context(study.policy, step))
        g = [0.2 - trial.point[0]] * study.policy.constraint_count or None
        if step % 5 == 3:
            continue
        if step % 7 == 5 and study.policy.algorithm != "admmbo":
            study.fail(trial, "it broke")
            continue
        study.tell(trial, sign * loss(trial), constraints=g)
    return study


def made(name, sign):
    make, places = POLICIES[name]
    return make(**{key: sign * value for key, value in places.items()})


def check_same(down, up):
    assert len(down.trials) == len(up.trials)
    for one, other in zip(down.trials, up.trials, strict=True):
        assert np.array_equal(one.point, other.point)
        assert (one.arm, one.explored, one.state) == (other.arm, other.explored, other.state)
        assert one.reward == (None if other.reward is None else -other.reward)
    assert down.best().number == up.best().number
    assert down.restarts == up.restarts
    assert np.array_equal(down.multipliers, up.multipliers, equal_nan=True)
    assert down.norm_bounds == up.norm_bounds
    assert (down.minimum is None) == (up.minimum is None)
    if up.minimum is not None:
        assert down.minimum == -up.minimum
    if up.policy.algorithm == "admmbo":
        return
    points, seen = [trial.point for trial in up.trials[:4]], context(up.policy, 1)
    (mean, std), (other, same) = down.predict(points, context=seen), up.predict(points, context=seen)
    assert np.array_equal(mean, -other)
    assert np.array_equal(std, same)
    assert (std >= 0.0).all()
    (lower, upper), (low, high) = down.bounds(points, context=seen), up.bounds(points, context=seen)
    assert np.array_equal(lower, -high)
    assert np.array_equal(upper, -low)
    assert down.width == up.width
    assert down.information_gain == up.information_gain


@pytest.mark.parametrize("name", POLICIES)
def test_minimising_f_is_maximising_minus_f_bit_for_bit(name):
    down, up = nr.Study(made(name, 1.0), goal="minimize", seed=3), nr.Study(made(name, -1.0), seed=3)
    check_same(play(down, range(12), 1.0), play(up, range(12), -1.0))


@pytest.mark.parametrize("name", ["a prior mean", "space", "constraints"])
def test_a_reopened_study_goes_on_in_its_direction(name, tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    down, up = nr.Study(made(name, 1.0), goal="minimize", seed=3, storage=url), nr.Study(made(name, -1.0), seed=3)
    check_same(play(down, range(5), 1.0), play(up, range(5), -1.0))
    again = nr.Study.open(storage=url)
    assert again.goal == "minimize"
    assert again.policy == down.policy
    assert list(again.trials) == list(down.trials)
    assert pickle.loads(pickle.dumps(again)).goal == "minimize"
    check_same(play(again, range(5, 8), 1.0), play(up, range(5, 8), -1.0))


def test_everything_is_in_the_units_told():
    policy = nr.gp_ucb(ARMS, nr.Matern(2.5, 0.3, scale=0.01), noise=0.01, prior_mean=0.5)
    study = nr.Study(policy, goal="minimize")
    assert study.goal == "minimize"
    assert study.policy is policy
    np.testing.assert_allclose(study.predict()[0], 0.5)
    lower, upper = study.bounds()
    assert (lower < 0.5).all()
    assert (upper > 0.5).all()
    for _ in range(12):
        trial = study.ask()
        told = study.tell(trial, 0.4 + (float(trial.point[0]) - 0.3) ** 2)
        assert told.reward == 0.4 + (float(trial.point[0]) - 0.3) ** 2
        assert study.trials[told.number].reward == told.reward
    assert study.add([0.0], 0.49).reward == 0.49
    best = study.best()
    assert best.reward == min(trial.reward for trial in study.trials)
    assert abs(best.point[0] - 0.3) < 0.06
    mean, _ = study.predict()
    assert ARMS.points[mean.argmin(), 0] == pytest.approx(0.3, abs=0.06)
    assert 0.35 < mean.min() < 0.45
    assert repr(study).startswith("Study('study', gp_ucb, goal='minimize', seed=0, ")
    assert "goal" not in repr(nr.Study(policy))
    with pytest.raises(nr.errors.TrialError, match=r"told already \(reward 0\.49\)"):
        study.tell(12, 0.1)


def test_the_best_under_a_context_is_the_lowest():
    policy = nr.gp_ucb(ARMS, nr.Matern(2.5, (0.5, 0.3)), noise=0.01, context=nr.Box([0.0], [1.0]))
    study = nr.Study(policy, goal="minimize")
    for x, value in ((0.0, 0.6), (5 / 11, -0.8), (1.0, 0.7)):
        study.add([x], value, context=[0.5])
    assert study.best(context=[0.5]).number == study.best(context=[0.6]).number == 1


@pytest.mark.parametrize(
    ("goal", "meant"),
    [
        ("min", "minimize"), ("max", "maximize"), ("Minimize", "minimize"), ("minimise", "minimize"),
        ("MAXIMISE", "maximize"), ("minimum", "minimize"), ("down", None), ("", None), (None, None), (-1, None),
        (True, None), (["minimize"], None),
    ],
)  # fmt: skip
def test_a_goal_is_one_of_two_words(goal, meant):
    with pytest.raises(nr.errors.InvalidInput, match=r"`goal` is .* it must be 'maximize' or 'minimize'") as raised:
        nr.Study(nr.gp_ucb(ARMS, KERNEL, noise=0.1), goal=goal)
    assert (f"Did you mean {meant!r}?" in str(raised.value)) == (meant is not None)
    assert ("Did you mean" in str(raised.value)) == (meant is not None)


def test_another_goal_is_another_study(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    policy = nr.gp_ucb(ARMS, KERNEL, noise=0.1)
    nr.Study(policy, goal="minimize", storage=url)
    nr.Study(policy, goal="minimize", storage=url)
    with pytest.raises(nr.errors.InvalidInput, match='other values: goal \\("minimize" then, "maximize" now\\)'):
        nr.Study(policy, storage=url)


def execute(path, *statements):
    with closing(sqlite3.connect(path)) as file, file:
        for statement in statements:
            file.execute(statement)


@pytest.mark.parametrize("change", ["SET goal = 'upwards'", "SET goal = ''", "SET goal = 1"])
def test_a_damaged_goal_is_refused(tmp_path, change):
    url = f"sqlite:///{tmp_path}/a.db"
    nr.Study(nr.gp_ucb(ARMS, KERNEL, noise=0.1), goal="minimize", storage=url)
    execute(tmp_path / "a.db", f"UPDATE studies {change}")
    with pytest.raises(nr.errors.StorageError, match="has been damaged: `goal` is"):
        nr.Study.open(storage=url)


def test_a_silent_trial_counts_as_the_largest_loss(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    policy = nr.gp_ucb_sdf(ARMS, KERNEL, noise=0.01, window=1, minimum=1.0)
    study = nr.Study(policy, goal="minimize", storage=url)
    assert study.minimum == 1.0
    np.testing.assert_allclose(study.predict()[0], 1.0)
    silent = study.ask()
    assert study.predict([silent.point])[0] == pytest.approx(1.0)
    with pytest.raises(
        nr.errors.InvalidInput, match=r"`reward` is 1\.5, worse than the declared worst .* of 1 .* a larger"
    ):
        study.tell(silent, 1.5)
    study.tell(silent, -4.0)
    execute(tmp_path / "a.db", "UPDATE trials SET reward = 1.5")
    with pytest.raises(nr.errors.StorageError, match=r"Trial 0 .* worse than the declared worst"):
        nr.Study.open(storage=url)
    unknown = nr.Study(nr.gp_ucb_sdf(ARMS, KERNEL, noise=0.01, window=1, minimum=None), goal="minimize")
    unknown.add([0.0], 0.3)
    unknown.add([1.0], -0.3)
    unknown.ask()
    assert unknown.minimum == 0.3


def test_cautions_quote_what_was_told():
    study = nr.Study(nr.gp_ucb(ARMS, KERNEL, noise=0.1, prior_mean=3.0), goal="minimize")
    for arm in range(3):
        study.add(ARMS.points[arm], 100.0)
    with pytest.warns(nr.errors.NoRegretWarning, match="half of the 4 told are 97 or more from the prior mean of 3,"):
        study.add(ARMS.points[3], 100.0)
    fits = nr.Study(nr.gp_ucb(ARMS, KERNEL, noise=0.1, prior_mean=100.0), goal="minimize")
    for arm in range(4):
        fits.add(ARMS.points[arm], 100.0)


def test_zero_has_no_sign():
    study = nr.Study(nr.gp_ucb(ARMS, KERNEL, noise=0.1), goal="minimize")
    assert not np.signbit(study.predict()[0]).any()
