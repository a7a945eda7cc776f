"""Rewards without noise: bounds that hold with certainty, a regret that stops growing, and answers that contradict."""

from statistics import NormalDist

import numpy as np
import pytest

import nilregret as nr
from nilregret.algorithms.arguments import EXACT
from nilregret.environments import rkhs_function
from nilregret.errors import InvalidInput, NoRegretWarning
from nilregret.gp.choice import posterior_at_points, posterior_on_arms
from nilregret.slots.envelope import Progress
from nilregret.slots.widths.mixtures import AnyRidge, NoiseFree

B = 2.0
ARMS, MATERN, SMOOTH = nr.Arms.grid(0, 1, 60), nr.Matern(2.5, 0.2), nr.SquaredExponential(0.2)
LINE = nr.Arms.grid(0, 1, 500)


def play(policy, f, rounds, noise=0.0):
    study, rng = nr.Study(policy, seed=0), np.random.default_rng(0)
    for _ in range(rounds):
        trial = study.ask()
        study.tell(trial, float(f(trial.point[None])[0]) + noise * rng.normal())
    return study


@pytest.mark.parametrize("kernel", [MATERN, SMOOTH, nr.Matern(0.5, 0.2)], ids=repr)
@pytest.mark.parametrize("ridge", [EXACT, 1e-3, 1.0])
def test_the_bounds_hold_with_certainty_for_every_lambda(kernel, ridge):
    """|f - mu| <= s sqrt(B^2 - y^T (K + lambda I)^{-1} y) <= B s at every arm, after answers anywhere."""
    width = NoiseFree(norm_bound=B)
    for seed in range(4):
        truth = rkhs_function(kernel, ARMS, norm=B, seed=seed)(ARMS.points)
        posterior, last = posterior_on_arms(ARMS, kernel, ridge), B
        for t, arm in enumerate(np.random.default_rng(seed).integers(60, size=80)):
            mean, std = posterior.predict()
            now = width.width(t + 1, Progress(posterior))
            assert now <= last * (1.0 + 1e-12)  # More of the norm has been seen.
            assert (np.abs(truth - mean) <= now * std + 1e-12).all()
            posterior.append(int(arm), float(truth[arm]))
            last = now


def test_rounding_does_not_break_the_bounds_of_a_nearly_singular_kernel():
    truth = rkhs_function(SMOOTH, LINE, norm=B, seed=1)(LINE.points)
    posterior, at_points = posterior_on_arms(LINE, SMOOTH, EXACT), posterior_at_points(SMOOTH, 1, EXACT)
    width = NoiseFree(norm_bound=B)
    for arm in np.random.default_rng(0).permutation(500):
        for _ in range(1 + arm % 3):  # Repeats of a third of the points, each 3 times.
            posterior.append(int(arm), float(truth[arm]))
        at_points.append(LINE.points[arm], float(truth[arm]))
    for known, points in ((posterior, None), (at_points, LINE.points)):
        mean, std = known.predict(points)
        now = width.width(1, Progress(known))
        assert 1e-3 * B <= now < 0.1 * B
        assert (np.abs(truth - mean) <= now * std).all()
        np.testing.assert_allclose(mean, truth, atol=1e-6)


@pytest.mark.parametrize("kernel", [MATERN, SMOOTH], ids=["Matern", "SE"])
def test_no_worse_arm_is_played_twice_and_the_regret_stops(kernel):
    """An arm worse by more than 2 B sqrt(lambda) is played once at most, so that all regret comes early."""
    for seed in range(3):
        f = rkhs_function(kernel, ARMS, norm=B, seed=seed)
        policy = nr.igp_ucb(ARMS, kernel, noise=0, norm_bound=B)
        run = nr.simulate(policy, nr.Environment(f, domain=ARMS, noise=0.0), 100, seed=seed)
        truth = f(ARMS.points)
        worse = np.flatnonzero(truth.max() - truth > 2.0 * B * np.sqrt(EXACT))
        assert np.bincount(run.arms, minlength=60)[worse].max() <= 1
        assert run.cumulative_regret[-1] == pytest.approx(run.cumulative_regret[39], abs=1e-6)
        paper = nr.simulate(policy.using(confidence=AnyRidge(norm_bound=B, noise=0.0, regularization=EXACT)),
                            nr.Environment(f, domain=ARMS, noise=0.0), 100, seed=seed)  # fmt: skip
        assert run.cumulative_regret[-1] <= paper.cumulative_regret[-1] + 1e-6  # Iwazaki 2025: the width B
        assert paper.cumulative_regret[-1] == pytest.approx(paper.cumulative_regret[59], abs=1e-6)


def test_noise_0_plays_the_noise_free_rule_and_claims_f():
    policy = nr.igp_ucb(ARMS, 4.0 * MATERN, noise=np.int64(0), norm_bound=B)
    assert (policy.confidence, policy.regularization) == (NoiseFree(norm_bound=B), pytest.approx(4.0 * EXACT))
    assert policy.valid_for == "f"
    assert nr.Policy.from_json(policy.to_json()) == policy
    assert nr.igp_ucb(ARMS, MATERN, noise=0, norm_bound=B, horizon=50, width="best").confidence == policy.confidence
    assert nr.gp_ucb(ARMS, MATERN, noise=0, norm_bound=B, width="rkhs").valid_for == "f"
    told = nr.igp_ucb(ARMS, MATERN, noise=0, norm_bound=B, regularization=1e-3)
    assert (told.regularization, told.valid_for) == (1e-3, "f")
    box = nr.igp_ucb(nr.Box(0, 1), MATERN, noise=0, norm_bound=B)
    assert (box.regularization, box.valid_for) == (EXACT, "f")
    assert nr.igp_ucb(ARMS, MATERN, noise=0.1, norm_bound=B).using(confidence=policy.confidence).valid_for == "none"


@pytest.mark.parametrize(
    "more",
    [
        {"width": "igp"},
        {"information_gain": "greedy"},
        {"memory": nr.slots.SlidingWindow(20)},
        {"refit": nr.slots.Refit(every=10)},
        {"constraints": nr.EveryRound()},
        {"v": 1.0, "norm_bound": None},
    ],
    ids=str,
)
def test_the_paper_is_played_where_more_is_said(more):
    policy = nr.igp_ucb(ARMS, MATERN, **({"noise": 0, "norm_bound": B, "horizon": 50} | more))
    assert policy.regularization == 1.0 + 2 / 50
    assert not isinstance(policy.confidence, NoiseFree)
    assert nr.gp_ts(ARMS, MATERN, noise=0, norm_bound=B).regularization == 1.0  # No theorem says otherwise.


@pytest.mark.parametrize(
    "make",
    [nr.gp_ucb, nr.irgp_ucb, nr.expected_improvement, nr.gp_bucb, nr.algorithms.greedy_variance, nr.algorithms.asy_ts],
)
def test_noise_0_interpolates_elsewhere_and_claims_nothing(make):
    policy = make(ARMS, 9.0 * SMOOTH, noise=0)
    assert (policy.regularization, policy.valid_for) == (pytest.approx(9.0 * EXACT), "none")
    study = play(policy, rkhs_function(SMOOTH, ARMS, norm=B, seed=0), 8)
    seen = np.array([trial.point for trial in study.trials])
    mean, _ = study.predict(seen)
    np.testing.assert_allclose(mean, [trial.reward for trial in study.trials], atol=1e-4)


@pytest.mark.parametrize(("told", "noise"), [(B, 0.1), (0.4 * B, 0.0)], ids=["noise", "norm"])
def test_answers_that_no_such_function_gives_are_said(told, noise):
    policy = nr.igp_ucb(ARMS, MATERN, noise=0, norm_bound=told)
    with pytest.warns(NoRegretWarning, match=r"need a function of norm [\d.]+ or more, and `norm_bound` is") as caught:
        study = play(policy, rkhs_function(MATERN, ARMS, norm=B, seed=0), 12, noise)
    assert len(caught) == 1
    assert list(study.remarks) == ["norm"]
    assert study.width == told  # The bound stays: noise would need any norm.
    assert study.replica.state.reward.valid_for == "none"
    assert study.norm_bounds == [(0, told)]


def test_two_answers_at_a_point_are_said_and_a_correction_heals():
    study = nr.Study(nr.igp_ucb(ARMS, MATERN, noise=0, norm_bound=B), seed=0)
    study.add(ARMS.points[3], 0.5)
    study.add(ARMS.points[3], 0.6)
    with pytest.warns(NoRegretWarning, match=r"`noise` is 0"):
        study.ask()
    study.tell(1, 0.5 + 1e-6, revise=True)  # Rounding of a program is no noise.
    study.ask()
    assert study.remarks == {}


def test_a_guessed_norm_is_doubled():
    policy = nr.igp_ucb(ARMS, MATERN, noise=0, norm_bound=0.1, guess_norm=True)
    assert policy.valid_for == "none"
    study = play(policy, rkhs_function(MATERN, ARMS, norm=B, seed=0), 30)
    assert study.norm_bounds[-1][1] >= B
    assert study.remarks == {}


def test_what_does_not_go_together_is_refused():
    policy = nr.igp_ucb(ARMS, MATERN, noise=0, norm_bound=B)
    with pytest.raises(InvalidInput, match="width without noise bounds one function"):
        policy.using(memory=nr.slots.Discount(0.1))
    with pytest.raises(InvalidInput, match="nobody knows the norm"):
        policy.using(refit=nr.slots.Refit(every=5))
    study = nr.Study(policy)
    with pytest.raises(InvalidInput, match="values of f"):
        study.tell(study.ask(), 0.1, std=0.2)


def test_constraints_have_a_width_for_their_noise():
    policy = nr.igp_ucb(ARMS, MATERN, noise=0, norm_bound=B)
    limited = policy.using(constraints=nr.EveryRound(noise=0.1, kernel=MATERN)).of_channel(1)
    assert limited.confidence == AnyRidge(norm_bound=B, noise=0.1, regularization=0.1**2)


def test_a_resumed_study_decides_the_same(tmp_path):
    policy, f = nr.igp_ucb(ARMS, MATERN, noise=0, norm_bound=B), rkhs_function(MATERN, ARMS, norm=B, seed=2)
    whole = play(policy, f, 12)
    place = f"sqlite:///{tmp_path}/a.db"
    for _ in range(12):
        study = nr.Study(policy, seed=0, storage=place)
        trial = study.ask()
        study.tell(trial, float(f(trial.point[None])[0]))
    assert [trial.arm for trial in study.trials] == [trial.arm for trial in whole.trials]
    assert study.width == whole.width


def test_expected_improvement_improves_on_the_best_posterior_mean():
    """Wang et al. 2025, BPMI: the incumbent is the highest posterior mean over the whole domain, without a margin."""
    study = play(nr.expected_improvement(ARMS, SMOOTH, noise=0.1), rkhs_function(SMOOTH, ARMS, norm=B, seed=0), 6)
    mean, std = study.predict()
    z = (mean - mean.max()) / std
    normal = NormalDist()
    improvement = [s * (normal.pdf(x) + x * normal.cdf(x)) for s, x in zip(std, z, strict=True)]
    assert study.ask().arm == int(np.argmax(improvement))
