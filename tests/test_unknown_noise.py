"""Noise that nobody knows: its bound as printed, in all rounds, whatever is played; and what it is part of."""

import functools
import math

import numpy as np
import pytest
from scipy.stats import binom

import nilregret as nr
from nilregret.environments import rkhs_function
from nilregret.gp import PointPosterior
from nilregret.gp.choice import posterior_on_arms
from nilregret.slots.envelope import Progress
from nilregret.slots.objective import MultiplicativePenalty
from nilregret.slots.refit import Refit
from nilregret.slots.widths.mixtures import AnalyticMixture, AnyRidge
from nilregret.slots.widths.self_normalized import SCALES, UNKNOWN, RealisedGain, SelfNormalized, noise_bound

from .marks import nightly

ARMS = nr.Arms.grid(0, 1, 12)
KERNEL = nr.Matern(2.5, 0.3)
DELTA = 0.1


def by_hand(arms, targets, lam, delta, *, replicates=True):
    """The bound from the sums of its derivation, one answer after the other."""
    X = ARMS.points[arms]
    squares, spread, within, said = 0.0, 0.0, 0.0, np.zeros(len(SCALES))
    for t in range(len(arms)):
        K = KERNEL(X[:t], X[:t]) + lam * np.eye(t)
        k = KERNEL(X[:t], X[t : t + 1])[:, 0]
        mean, variance = (k @ np.linalg.solve(K, targets[:t]), 1.0 - k @ np.linalg.solve(K, k)) if t else (0.0, 1.0)
        squares += lam / (lam + variance) * (targets[t] - mean) ** 2
        spread += math.log((lam + variance) / lam)
        before = targets[:t][arms[:t] == arms[t]]
        if len(before):
            w = len(before) / (len(before) + 1)
            within += w * (targets[t] - before.mean()) ** 2
            said += np.log1p(2 * SCALES * w)
    least, n = 2 * math.log(2 * len(SCALES) / delta), len(arms)
    first = n * np.log1p(2 * SCALES * math.exp(-spread / n)) - least
    found = [(2 * SCALES * squares / first)[first > 0].min(initial=UNKNOWN**2)]
    if replicates:
        found.append((2 * SCALES * within / (said - least))[said > least].min(initial=UNKNOWN**2))
    return math.sqrt(min(found))


@pytest.mark.parametrize("count", [1, 2, 5, 40])
def test_the_bound_is_that_of_the_derivation(count):
    rng = np.random.default_rng(count)
    arms = rng.integers(0, 4, count)
    targets = rng.normal(size=count)
    for lam in (0.05, 1.0):
        posterior, points = posterior_on_arms(ARMS, KERNEL, lam), PointPosterior(KERNEL, 1, lam)
        assert noise_bound(posterior, DELTA) == 0.0  # nothing told, no noise
        for arm, target in zip(arms, targets, strict=True):
            posterior.append(int(arm), float(target))
            points.append(ARMS.points[arm], float(target))
        assert noise_bound(posterior, DELTA) == pytest.approx(by_hand(arms, targets, lam, DELTA), rel=1e-6)
        wanted = by_hand(arms, targets, lam, DELTA, replicates=False)
        assert noise_bound(points, DELTA) == pytest.approx(wanted, rel=1e-6)


def test_it_comes_close_to_the_truth():
    posterior, rng = posterior_on_arms(ARMS, KERNEL, 1.0), np.random.default_rng(0)
    found = {}
    for n in range(1, 3001):
        posterior.append(int(rng.integers(12)), 3.0 + 0.2 * rng.normal())
        if n in (100, 3000):
            found[n] = noise_bound(posterior, 0.05) / 0.2
    assert 1.0 < found[3000] < 1.08 < found[100] < 1.6


def chaser(posterior, values, rng, rounds):
    """Plays the arm whose average is the highest again, as whoever looks for the best does: its noise is no chance."""
    lowest = math.inf
    for _ in range(rounds):
        arm = int(posterior.predict()[0].argmax()) if rng.random() < 0.7 else int(rng.integers(12))
        posterior.append(arm, values[arm] + rng.normal())
        lowest = min(lowest, noise_bound(posterior, DELTA))
    return lowest


@pytest.mark.parametrize("runs", [80, *nightly(400)])
def test_it_holds_in_all_rounds_whatever_is_played(runs):
    """Runs of noise 1: it is below in a share that is no more than delta (a test at 5%, of fixed seeds)."""
    failures = 0
    for seed in range(runs):
        rng = np.random.default_rng([7, seed])
        failures += chaser(posterior_on_arms(ARMS, KERNEL, 1.0), rng.normal(size=12), rng, 25) < 1.0
    assert binom.sf(failures - 1, runs, DELTA) > 0.05


@pytest.mark.parametrize("width", ["igp", *nightly("amm")])
def test_f_stays_inside_although_nobody_knows_the_noise(width):
    """60 runs each, of little and much noise; with probability 0.9 and more none would fail in that share."""
    failures = 0
    for seed in range(60):
        f, noise = rkhs_function(KERNEL, ARMS, norm=2.0, seed=seed)(ARMS.points), (0.05, 1.0)[seed % 2]
        ridge = None if width == "igp" else 0.1
        policy = nr.igp_ucb(ARMS, KERNEL, noise="unknown", norm_bound=2.0, width=width, regularization=ridge)
        assert policy.valid_for == "f"
        study, rng, outside = nr.Study(policy, seed=seed), np.random.default_rng([8, seed]), False
        for _ in range(25):
            lower, upper = study.bounds()
            outside = outside or bool(((f < lower - 1e-9) | (f > upper + 1e-9)).any())
            trial = study.ask()
            study.tell(trial, f[trial.arm] + noise * rng.normal())
        failures += outside
    assert failures <= 60 * DELTA


def test_it_takes_the_place_of_r_and_half_of_delta():
    posterior, rng = posterior_on_arms(ARMS, KERNEL, 1.0), np.random.default_rng(1)
    for arm in rng.integers(0, 12, 30):
        posterior.append(int(arm), float(rng.normal()))
    now, R = Progress(posterior), noise_bound(posterior, 0.05)
    for parts in (1, 2):
        unknown = SelfNormalized(norm_bound=2.0, noise=None, gain=RealisedGain(), parts=parts)
        known = SelfNormalized(norm_bound=2.0, noise=R, gain=RealisedGain(), parts=parts, delta=0.05)
        assert unknown.width(31, now) == pytest.approx(known.width(31, now))
    for part in (AnyRidge, AnalyticMixture):
        unknown = part(norm_bound=2.0, noise=None, regularization=1.0)
        assert unknown.width(31, now) == pytest.approx(
            part(norm_bound=2.0, noise=R, regularization=1.0, delta=0.05).width(31, now)
        )


@pytest.mark.parametrize("make", [nr.igp_ucb, nr.gp_ts])
def test_it_repeats_and_goes_through_json(make):
    policy = make(ARMS, KERNEL, noise="unknown", norm_bound=2.0, horizon=50)
    assert policy.noise == math.sqrt(policy.regularization) == math.sqrt(1.04)
    assert policy.confidence.noise is None
    assert nr.Policy.from_json(policy.to_json()) == policy
    study, again = nr.Study(policy, seed=3), nr.Study(nr.Policy.from_json(policy.to_json()), seed=3)
    for each in (study, again):
        for i in range(12):
            trial = each.ask()
            each.tell(trial, math.sin(i) * 4.0)  # far more than lambda says: nobody complains
    assert [trial.arm for trial in study.trials] == [trial.arm for trial in again.trials]
    assert study.width == again.width
    assert study.explain(7).repeated


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"noise": "large"}, "`noise`"),
        ({"guess_norm": True}, "Neither norm nor noise is known"),
        ({"width": "dmm", "regularization": 0.1}, "'igp', 'ay' and 'amm'"),
        ({"width": "amm"}, "give `regularization`"),
        ({"v": 1.0, "norm_bound": None}, "needs none"),
        ({"refit": Refit()}, "the kernel is refitted"),
        ({"memory": nr.slots.Discount(0.01)}, "f drifts"),
        ({"width": AnyRidge(norm_bound=1.0, noise=1.0, regularization=1.0), "norm_bound": None}, "is a part"),
    ],
)
def test_what_does_not_go_with_it_is_refused(told, why):
    with pytest.raises(nr.errors.InvalidInput, match=why):
        nr.igp_ucb(ARMS, KERNEL, **{"noise": "unknown", "norm_bound": 2.0} | told)


@pytest.mark.parametrize(
    "algorithm",
    [nr.gp_ucb, nr.expected_improvement, nr.gp_bucb, functools.partial(nr.algorithms.lb_gp_ucb, norm_bound=1.0)],
)
def test_policies_that_cannot_bound_the_noise_say_which_can(algorithm):
    with pytest.raises(nr.errors.InvalidInput, match=r"for the widths of `igp_ucb` and `gp_ts` alone.*nr\.auto"):
        algorithm(nr.Arms.grid(0, 1, 5), nr.Matern(2.5, 0.2), noise="unknown")
    with pytest.raises(nr.errors.InvalidInput, match="leave it out where it is not known"):
        nr.auto(nr.Arms.grid(0, 1, 5), noise="unknown")


@pytest.mark.parametrize("width", ["igp", "ay", "amm"])
def test_it_is_for_gaussian_rewards_of_a_function_that_was_there_before(width):
    """Clicks are not Gaussian; and an f that is chosen after the noise, by multipliers that weigh anew, may hide it."""
    known, unknown = (
        nr.igp_ucb(ARMS, KERNEL, noise=noise, norm_bound=2.0, width=width, regularization=1.5)
        for noise in (1.0, "unknown")
    )
    for reward in (nr.slots.Bernoulli(), nr.slots.Poisson(), nr.slots.Bounded()):
        with pytest.raises(nr.errors.InvalidInput, match="Gaussian rewards"):
            unknown.using(objective=reward)
    once, again = (MultiplicativePenalty(epoch=5, epochs=epochs) for epochs in (1, 3))
    assert known.using(objective=once).valid_for == unknown.using(objective=once).valid_for == "f"
    assert known.using(objective=again).valid_for == ("none" if width == "amm" else "f")
    assert unknown.using(objective=again).valid_for == "none"


def test_a_function_chosen_after_the_noise_hides_it():
    """Why: where f is less by what the noise seems to show, little of the noise is left to see."""
    arms, kernel, lam = nr.Arms.grid(0, 1, 80), nr.Matern(0.5, 0.02), 0.1
    K, noise = kernel(arms.points, arms.points), np.random.default_rng(2).normal(size=80)
    hiding = -K @ np.linalg.solve(K + lam * np.eye(80), noise)
    bounds = []
    for f in (np.zeros(80), hiding):
        posterior = posterior_on_arms(arms, kernel, lam)
        for arm in range(80):
            posterior.append(arm, float(f[arm] + noise[arm]))
        bounds.append(noise_bound(posterior, DELTA))
    assert bounds[1] < 0.5 < 1.0 < bounds[0]
