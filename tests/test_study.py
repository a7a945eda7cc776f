import contextlib
from fractions import Fraction

import numpy as np
import pytest

import nilregret as nr

from .marks import nightly

ARMS = nr.Arms.grid(0, 1, 20)
POLICY = nr.gp_ucb(ARMS, nr.SquaredExponential(0.2), noise=0.1, delta=0.05, scale=0.5)


def test_width_is_theorem_1():
    study = nr.Study(POLICY)
    for t in range(1, 6):
        beta = 0.5 * 2 * np.log(20 * t**2 * np.pi**2 / (6 * 0.05))
        assert study.width == pytest.approx(np.sqrt(beta), rel=1e-14)
        mean, std = study.predict()
        lower, upper = study.bounds()
        np.testing.assert_allclose(upper, mean + np.sqrt(beta) * std)
        np.testing.assert_allclose(lower, mean - np.sqrt(beta) * std)
        study.tell(study.ask(), 0.3)


def test_it_plays_the_highest_upper_bound():
    study = nr.Study(POLICY, seed=3)
    for _ in range(30):
        upper = study.bounds()[1]
        trial = study.ask()
        assert upper[trial.arm] == pytest.approx(upper.max(), abs=1e-9)
        study.tell(trial, float(np.sin(6 * trial.point[0])))


@pytest.mark.parametrize("each", [25, *nightly(100)])
def test_the_first_arm_is_a_uniform_draw(each):
    """Chi-square over seeds and 20 equal arms; a uniform draw fails with probability 1e-4; fixed seeds."""
    from scipy.stats import chi2

    counts = np.bincount([nr.Study(POLICY, seed=seed).ask().arm for seed in range(20 * each)], minlength=20)
    assert ((counts - each) ** 2 / each).sum() < chi2.ppf(1 - 1e-4, df=19)


def test_information_gain_is_the_log_determinant():
    study = nr.Study(POLICY)
    for _ in range(12):
        study.tell(study.ask(), 0.0)
    X = np.array([trial.point for trial in study.trials])
    K = POLICY.kernel(X, X)
    assert study.information_gain == pytest.approx(0.5 * np.linalg.slogdet(np.eye(12) + K / 0.01)[1], rel=1e-10)


def test_trials_carry_what_they_should():
    ticks = iter(range(100, 200))
    study = nr.Study(POLICY, clock=lambda: float(next(ticks)))
    trial = study.ask()
    assert (trial.number, trial.state, trial.explored, trial.parameters, trial.context) == (
        0,
        "pending",
        False,
        None,
        None,
    )
    assert trial.point.shape == (1,)
    assert ARMS.points[trial.arm] == trial.point
    told = study.tell(trial, 1.5)
    assert (told.reward, told.state, told.asked_at, told.told_at) == (1.5, "observed", 100.0, 101.0)
    assert study.trials[0] == told != trial
    assert [t.number for t in study.ask(count=3)] == [1, 2, 3]
    assert "4 trials: 1 observed, 3 pending, 0 failed" in repr(study)


def test_parameters_are_decoded():
    space = nr.Space(C=nr.Float(0.1, 10, log=True), kind=nr.Choice("a", "b"))
    study = nr.Study(nr.gp_ucb(space.grid(3), nr.Matern(), noise=0.1))
    trial = study.ask()
    assert set(trial.parameters) == {"C", "kind"}
    added = study.add({"C": 10.0, "kind": "b"}, 2.0)
    assert added.parameters == {"C": 10.0, "kind": "b"}
    assert study.best() == added
    mean, _ = study.predict({"C": 10.0, "kind": "b"})
    assert mean.shape == (1,)
    assert mean[0] > 1.0


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_rewards_must_be_finite(value):
    study = nr.Study(POLICY)
    trial = study.ask()
    with pytest.raises(nr.errors.InvalidInput, match=r"`reward`.*study.fail"):
        study.tell(trial, value)
    with pytest.raises(nr.errors.InvalidInput, match="`reward`"):
        study.add(0.0, value)
    assert study.trials[0].state == "pending"
    study.tell(trial, 1.0)


@pytest.mark.parametrize("value", [1e101, -1e300, 10**400])
def test_rewards_must_not_overflow_what_is_computed_from_them(value):
    study = nr.Study(POLICY)
    with pytest.raises(nr.errors.InvalidInput, match="`reward`"):
        study.tell(study.ask(), value)
    for reward in (1e100, -1e100, 1e100):
        study.tell(study.ask(), reward)
    assert np.isfinite(study.predict()).all()
    study.ask()


@pytest.mark.parametrize(
    "value",
    ["1.0", None, [1.0], np.zeros(2), 1j, np.array("a"), np.array(1j), np.ma.masked, np.datetime64("2026-01-01")],
)
def test_rewards_must_be_numbers(value):
    study = nr.Study(POLICY)
    with pytest.raises(nr.errors.InvalidInput, match="`reward` must be a number"):
        study.tell(study.ask(), value)


@pytest.mark.parametrize(
    "value",
    [1, np.float32(0.5), np.int64(3), np.array(2.0), -1e100, True, np.False_, np.array(True), Fraction(1, 3)],
)
def test_any_real_number_is_a_reward(value):
    study = nr.Study(POLICY)
    assert study.tell(study.ask(), value).reward == float(value)
    assert type(study.trials[0].reward) is float


def test_unknown_and_answered_trials_are_explained():
    study = nr.Study(POLICY)
    with pytest.raises(nr.errors.TrialError, match="no trial yet"):
        study.tell(0, 1.0)
    trial = study.ask()
    for number in (1, -1, "0", None, 0.0, True, np.int64(7)):
        with pytest.raises(nr.errors.TrialError, match=r"There is no trial .*trials 0 \.\. 0"):
            study.tell(number, 1.0)
    study.tell(np.int64(0), 1.0)
    with pytest.raises(nr.errors.TrialError, match=r"told already \(reward 1\.0\)"):
        study.tell(trial, 2.0)
    with pytest.raises(nr.errors.TrialError, match="told already"):
        study.fail(0, "x")
    other = nr.Study(POLICY, seed=1).ask()
    assert other.arm != trial.arm
    with pytest.raises(nr.errors.TrialError, match="another study"):
        study.tell(other, 1.0)
    assert len(study.trials) == 1


def test_other_nonsense_is_explained():
    study = nr.Study(POLICY)
    with pytest.raises(nr.errors.TrialError, match="No trial has been answered"):
        study.best()
    with pytest.raises(nr.errors.InvalidInput, match="`count` is 0"):
        study.ask(count=0)
    with pytest.raises(nr.errors.InvalidInput, match="no context"):
        study.ask([1.0])
    with pytest.raises(nr.errors.InvalidInput, match="not one of the arms"):
        study.add(0.123, 1.0)
    with pytest.raises(nr.errors.InvalidInput, match="one point at a time"):
        study.add([[0.0], [1.0]], 1.0)
    with pytest.raises(nr.errors.InvalidInput, match="no named parameters"):
        study.add({"x": 0.0}, 1.0)
    with pytest.raises(nr.errors.InvalidInput, match="not one of the arms"):
        study.predict([[0.33]])
    with pytest.raises(nr.errors.InvalidInput, match="`reason`"):
        study.fail(study.ask(), " ")
    with pytest.raises(nr.errors.InvalidInput, match="`seed` is -1"):
        nr.Study(POLICY, seed=-1)
    with pytest.raises(nr.errors.InvalidInput, match="`policy`"):
        nr.Study("gp_ucb")


def test_when_every_arm_has_failed_it_says_so():
    study = nr.Study(nr.gp_ucb(nr.Arms.grid(0, 1, 3), nr.SquaredExponential(0.2), noise=0.1))
    assert {study.fail(study.ask(), "broken").arm for _ in range(3)} == {0, 1, 2}
    with pytest.raises(nr.NoRegretError, match="Everything that could be asked for has failed"):
        study.ask()
    study.add(1.0, 0.5)
    assert study.ask().arm == 2


def test_an_answered_arm_survives_a_later_failure():
    study = nr.Study(nr.gp_ucb(nr.Arms.grid(0, 1, 2), nr.SquaredExponential(0.2), noise=0.1))
    for arm in (0, 1):
        study.add(ARMS.points[-1] * arm, 10.0 if arm else 0.0)
    trial = study.ask()
    assert trial.arm == 1
    study.fail(trial, "a hiccup")
    assert study.ask().arm == 1


def test_what_a_caller_does_to_the_parameters_does_not_reach_the_record():
    space = nr.Space(x=nr.Float(0, 1))
    study = nr.Study(nr.gp_ucb(space.grid(3), nr.Matern(), noise=0.1))
    trial = study.ask()
    trial.parameters.clear()
    study.tell(trial, 1.0)
    assert set(study.best().parameters) == {"x"}


@pytest.mark.parametrize("rule", ["gp_ucb", "expected_improvement", "probability_of_improvement"])
def test_decisions_do_not_depend_on_the_units_or_the_level_of_rewards(rule):
    def arms(level, unit):
        kernel = nr.SquaredExponential(0.2, scale=unit**2)
        study = nr.Study(getattr(nr.algorithms, rule)(ARMS, kernel, noise=0.1 * unit, prior_mean=level), seed=3)
        for _ in range(30):
            trial = study.ask()
            study.tell(trial, level + unit * float(np.sin(6 * trial.point[0])))
        return [trial.arm for trial in study.trials]

    assert arms(0.0, 1.0) == arms(1e6, 1.0) == arms(0.0, 1e-6) == arms(1.0, 1e-6)
    assert arms(0.0, 1.0) == arms(0.0, 2.0**20) == arms(0.0, 2.0**40)


def test_a_box_is_searched_whatever_the_level_of_rewards():
    """At a level of 2^34 a difference of 1 is less than 1e-10 of it, and far more than its rounding."""
    points = []
    for level in (0.0, 2.0**34):
        study = nr.Study(
            nr.algorithms.greedy_mean(nr.Box([0.0], [1.0]), nr.Matern(), noise=0.1, prior_mean=level), seed=3
        )
        for x, reward in ((0.1, 0.0), (0.4, 1.0), (0.9, -1.0)):
            study.add([x], level + reward)
        points.append(study.ask().point[0])
    assert points[0] == pytest.approx(points[1], abs=1e-4)


def test_bounds_are_called_valid_only_where_the_theorem_holds():
    valid = [
        nr.gp_ucb(ARMS, nr.Matern(), noise=0.1, **more).confidence.valid_for
        for more in ({}, {"regularization": 0.1**2}, {"scale": 0.2}, {"regularization": 1e-4})
    ]
    assert valid == ["f", "f", "none", "none"]


@pytest.mark.parametrize("kernel", [nr.Linear(), nr.SquaredExponential(0.2)])
def test_a_domain_about_which_nothing_can_be_learnt(kernel):
    """A kernel of rank 0, and noise that drowns everything, are dull but no reason to fall over."""
    study = nr.Study(nr.gp_ucb(nr.Arms([0.0]), kernel, noise=1e6))
    for _ in range(3):
        study.tell(study.ask(), 1.0)
    assert np.isfinite(study.predict()).all()


@pytest.mark.parametrize("where", ["record", "state"])
def test_interrupts_while_looking_or_asking_leave_the_record_whole(monkeypatch, tmp_path, where):
    """An interrupt between two changes that belong together, and another one during the repair."""
    from nilregret.policy import state
    from nilregret.storage import record

    url = f"sqlite:///{tmp_path}/a.db"
    for storage in (None, url):
        writer = nr.Study(POLICY, seed=2, storage=storage)
        reader = nr.Study(POLICY, seed=2, storage=storage) if storage else writer
        for _ in range(5):
            writer.tell(writer.ask(), 0.5)
        target, name = (record.Record, "apply") if where == "record" else (state.State, "receive")
        for call in (reader.predict, reader.ask, reader.best):
            with monkeypatch.context() as patch:
                patch.setattr(target, name, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
                for _ in range(2):
                    with contextlib.suppress(KeyboardInterrupt):
                        call()
        asked = [trial.number for trial in reader.trials if trial.state == "pending"]
        twin = nr.Study(POLICY, seed=2)
        for _ in range(5):
            twin.tell(twin.ask(), 0.5)
        twin_pending = [twin.ask() for _ in asked]
        np.testing.assert_array_equal(reader.predict(), twin.predict())
        assert [t.arm for t in reader.trials][5:] == [t.arm for t in twin_pending]
        assert reader.ask().arm == twin.ask().arm


def test_times_are_no_rewards():
    study = nr.Study(POLICY)
    with pytest.raises(nr.errors.InvalidInput, match="`reward` must be a number"):
        study.tell(study.ask(), np.timedelta64(3, "s"))


def test_the_trials_of_an_arm_share_its_point():
    study = nr.Study(nr.gp_ucb(nr.Arms.grid(0, 1, 3), nr.Matern(2.5, 0.2), noise=0.3), seed=0)
    for _ in range(8):
        study.tell(study.ask(), 0.5)
    assert len({id(trial.point) for trial in study.trials}) == len({trial.arm for trial in study.trials})
