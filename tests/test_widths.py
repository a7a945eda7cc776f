"""Widths against their printed formulas, what they assume, and the norm bound found by doubling."""

import dataclasses
import math

import numpy as np
import pytest
from scipy.special import zeta
from scipy.stats import norm

import nilregret as nr
from nilregret.gp import DistinctArmsPosterior, LowRankPosterior, PointPosterior
from nilregret.gp.choice import posterior_on_arms
from nilregret.gp.information_gain import GreedyDesign
from nilregret.policy.state import State
from nilregret.slots.envelope import CompactBayes, FiniteBayes, PointwiseBayes, Progress
from nilregret.slots.widths.self_normalized import (
    BoundedNoise,
    ConstantGain,
    GreedyGain,
    KernelUcb,
    RateGain,
    RealisedGain,
    SelfNormalized,
)
from nilregret.theory.series import EvenSeries, PowerSeries

from .reference import rkhs_norm_of_mean

ARMS = nr.Arms.grid(0, 1, 50)
KERNEL = nr.SquaredExponential(0.2)


def progress(plays=12, regularization=1.0):
    posterior = posterior_on_arms(ARMS, KERNEL, regularization)
    rng = np.random.default_rng(0)
    for arm in rng.integers(0, 50, plays):
        posterior.append(int(arm), float(rng.normal()))
    design = GreedyDesign(KERNEL, ARMS, regularization)
    return Progress(posterior, design=lambda: design)


def test_igp_ucb_and_gp_ts_as_printed():
    B, R, delta = 2.5, 0.3, 0.05
    now = progress()
    gamma = now.posterior.information_gain
    for parts in (1, 2):
        width = SelfNormalized(norm_bound=B, noise=R, delta=delta, parts=parts)
        assert width.width(13, now) == pytest.approx(B + R * math.sqrt(2 * (gamma + 1 + math.log(parts / delta))))
    greedy = SelfNormalized(norm_bound=B, noise=R, gain=GreedyGain(), delta=delta)
    bound = GreedyDesign(KERNEL, ARMS, 1.0).bound(12)  # gamma_{t-1}
    assert greedy.width(13, now) == pytest.approx(B + R * math.sqrt(2 * (bound + 1 + math.log(1 / delta))))
    assert bound > gamma
    fixed = SelfNormalized(norm_bound=B, noise=R, gain=ConstantGain(value=1.0), delta=delta)
    assert fixed.width(999, now) == pytest.approx(B + R * math.sqrt(2 * (2 + math.log(1 / delta))))
    rate = SelfNormalized(norm_bound=B, noise=R, gain=RateGain(kernel=KERNEL, dimension=1), delta=delta)
    assert rate.width(101, now) == pytest.approx(B + R * math.sqrt(2 * (math.log(100) ** 2 + 1 + math.log(1 / delta))))
    assert rate.width(1, now) == rate.width(2, now)  # a logarithm of 0 or 1 counts as 0


def test_theorem_3_as_printed():
    B, delta, t = 2.0, 0.1, 25
    now = progress(regularization=0.01)
    width = BoundedNoise(norm_bound=B, gain=GreedyGain(), delta=delta)
    gamma = GreedyDesign(KERNEL, ARMS, 0.01).bound(t)
    beta = 2 * B**2 + 300 * gamma * math.log(t / delta) ** 3
    assert width.width(t, now) == pytest.approx(math.sqrt(beta))
    fifth = BoundedNoise(norm_bound=B, gain=GreedyGain(), delta=delta, scale=0.2)
    assert fifth.width(t, now) == pytest.approx(math.sqrt(0.2 * beta))


def test_any_pi_t_of_lemma_5_1():
    """2 log(|D| pi_t / delta) with sum 1 / pi_t = 1: 5,000 terms, and the rest by an integral."""
    last = 5000
    for series, tail in (
        (PowerSeries(2.0), 6 / math.pi**2 / (last + 0.5)),
        (PowerSeries(1.5), 2 / zeta(1.5) / math.sqrt(last + 0.5)),
        (EvenSeries(700), 3 / math.pi**2 / (last - 700 + 0.5)),
    ):
        assert sum(math.exp(-series.log(t)) for t in range(1, last + 1)) + tail == pytest.approx(1.0, abs=1e-8)
        finite = FiniteBayes(size=40, delta=0.05, series=series)
        compact = CompactBayes(dimension=1, side=1.0, log_a=1.0, b=2.0, delta=0.05, series=series)
        for t in (1, 10, 699, 700, 701, 5000):
            width = finite.width(t, progress())
            assert width == pytest.approx(math.sqrt(2 * math.log(40 * math.exp(series.log(t)) / 0.05)))
            reach = 2 * math.log(t**2 * 2.0 * math.sqrt(math.log(4 / 0.05) + 1))
            beta = 2 * math.log(4 * math.exp(series.log(t)) / 0.05) + reach  # Lemma 5.8
            assert compact.width(t, progress()) == pytest.approx(math.sqrt(beta))
        assert finite.valid_for == "f"
        assert compact.valid_for == "played"
    assert EvenSeries(10**400).log(1) == pytest.approx(math.log(2) + 400 * math.log(10))
    own = FiniteBayes(size=40, delta=0.05, series=PowerSeries(2.0)).width(9, progress())
    assert own == pytest.approx(FiniteBayes(size=40, delta=0.05).width(9, progress()))
    even = nr.gp_ucb(ARMS, KERNEL, noise=0.1, series=nr.slots.EvenSeries(50))
    assert nr.Policy.from_json(even.to_json()) == even
    assert even.confidence.width(1, progress()) == even.confidence.width(50, progress())
    assert nr.gp_ucb(ARMS, KERNEL, noise=0.1, series=1.5).confidence.series == nr.slots.PowerSeries(1.5)


def test_the_norm_of_theorem_3_can_be_guessed():
    """Doubled until the posterior mean's norm is what the guess and the noise allow; the width follows."""
    policy = nr.gp_ucb(ARMS, KERNEL, noise=0.1, width="rkhs", guess_norm=True)
    assert policy.valid_for == "none"
    study = nr.Study(policy, seed=0)
    for _ in range(15):
        trial = study.ask()
        study.tell(trial, 20.0 * math.exp(-((trial.point[0] - 0.3) ** 2) / 0.08))
    guess = study.norm_bounds[-1][1]
    assert 8.0 < guess < 64.0
    assert math.log2(guess) == round(math.log2(guess))
    gamma = GreedyDesign(KERNEL, ARMS, 0.1**2).bound(16)
    beta = 2 * guess**2 + 300 * gamma * math.log(16 / 0.1) ** 3
    assert study.width == pytest.approx(math.sqrt(beta))
    posterior = study.replica.current().reward.posterior.belief.observed
    spread = math.sqrt(2 * (posterior.information_gain + 1 + math.log(1 / 0.1)))  # R / sqrt(lambda) = 1
    assert guess / 2 < posterior.mean_norm - spread <= guess


def test_v_of_your_own():
    for make in (nr.igp_ucb, nr.gp_ts):
        policy = make(ARMS, KERNEL, noise=0.1, v=nr.theory.PowerLaw(0.5, 0.25))
        assert policy.valid_for == "none"
        assert policy.confidence.width(16, progress()) == 1.0
        assert nr.Policy.from_json(policy.to_json()) == policy
        assert make(ARMS, KERNEL, noise=0.1, v=2).confidence.width(7, progress()) == 2.0
        with pytest.raises(nr.errors.InvalidInput, match="`v` replaces that width"):
            make(ARMS, KERNEL, noise=0.1, v=1.0, guess_norm=True)
    with pytest.raises(nr.errors.InvalidInput, match="need `norm_bound`"):
        nr.gp_ts(nr.Box([0], [1]), KERNEL, noise=0.1, v=1.0, lipschitz="kernel")


def test_the_other_widths():
    assert KernelUcb(eta=0.6, regularization=4.0).width(7, progress()) == pytest.approx(0.3)
    assert PointwiseBayes(delta=0.1).width(7, progress()) == pytest.approx(norm.ppf(0.95))
    assert PointwiseBayes(delta=1e-200).width(7, progress()) == pytest.approx(-norm.ppf(0.5e-200))
    assert math.isfinite(PointwiseBayes(delta=5e-324).width(7, progress()))


def test_what_is_proved_says_so():
    def valid(policy):
        return policy.confidence.valid_for

    assert valid(nr.igp_ucb(ARMS, KERNEL, noise=0.1, norm_bound=1.0)) == "f"
    assert valid(nr.igp_ucb(ARMS, KERNEL, noise=0.1, norm_bound=1.0, horizon=50, information_gain="greedy")) == "f"
    assert valid(nr.gp_ts(nr.Box([0], [1]), KERNEL, noise=0.1, norm_bound=1.0)) == "f"
    assert valid(nr.igp_ucb(ARMS, KERNEL, noise=0.1, norm_bound=1.0, regularization=0.01)) == "none"
    assert valid(nr.igp_ucb(ARMS, KERNEL, noise=0.1, norm_bound=1.0, information_gain="rate")) == "none"
    assert valid(nr.igp_ucb(ARMS, KERNEL, noise=0.1, norm_bound=1.0, information_gain=1.0)) == "none"
    assert valid(nr.igp_ucb(ARMS, KERNEL, noise=0.1, guess_norm=True)) == "none"
    assert valid(nr.gp_ucb(ARMS, KERNEL, noise=0.1, width="rkhs", norm_bound=1.0)) == "f"
    realised = nr.gp_ucb(ARMS, KERNEL, noise=0.1, width="rkhs", norm_bound=1.0, information_gain="realised")
    assert isinstance(realised.confidence.gain, RealisedGain)
    assert valid(realised) == "none"
    assert valid(nr.kernel_ucb(ARMS, KERNEL, noise=0.1, eta=1.0)) == "none"
    assert valid(nr.expected_improvement(ARMS, KERNEL, noise=0.1)) == "f"  # Theorem 1 holds whatever is played
    assert valid(nr.expected_improvement(nr.Box([0], [1]), KERNEL, noise=0.1)) == "none"


def test_lambda_is_the_papers():
    assert nr.igp_ucb(ARMS, KERNEL, noise=0.1, norm_bound=1.0, horizon=400).regularization == 1.005
    assert nr.igp_ucb(ARMS, KERNEL, noise=0.1, norm_bound=1.0, horizon=10**400).regularization == 1.0
    assert nr.gp_ts(ARMS, KERNEL, noise=0.1, norm_bound=1.0).regularization == 1.0
    assert nr.gp_ts(ARMS, KERNEL, noise=0.1, norm_bound=1.0, regularization=0.01).regularization == 0.01
    assert nr.algorithms.greedy_mean(ARMS, KERNEL, noise=0.1).regularization == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nr.igp_ucb(ARMS, KERNEL, noise=0.1), "`norm_bound` is missing"),
        (lambda: nr.gp_ts(ARMS, KERNEL, noise=0.1), "`norm_bound` is missing"),
        (lambda: nr.gp_ucb(ARMS, KERNEL, noise=0.1, width="rkhs"), "Theorem 3, which needs `norm_bound`"),
        (lambda: nr.igp_ucb(ARMS, KERNEL, noise=0.1, norm_bound=-1.0), "`norm_bound` is -1"),
        (lambda: nr.igp_ucb(ARMS, KERNEL, noise=0.1, norm_bound=1.0, horizon=0), "`horizon`"),
        (lambda: nr.gp_ucb(ARMS, KERNEL, noise=0.1, width="wide"), "`width`"),
        (lambda: nr.igp_ucb(ARMS, KERNEL, noise=0.1, norm_bound=1.0, information_gain="x"), "`information_gain`"),
        (
            lambda: nr.igp_ucb(nr.Box([0], [1]), KERNEL, noise=0.1, norm_bound=1.0, information_gain="greedy"),
            "finitely many arms",
        ),
        (lambda: nr.gp_ucb(nr.Box([0], [1]), nr.Matern(1.5, 0.2), noise=0.1, width="compact"), "nu > 2"),
        (lambda: nr.igp_ucb(ARMS, KERNEL, noise=0.1, guess_norm=True, refit=nr.slots.Refit()), "refitted"),
        (lambda: nr.gp_ts(ARMS, KERNEL, noise=0.1, norm_bound=1.0, lipschitz=5.0), "discretisation of a box"),
        (lambda: nr.gp_ts(ARMS, KERNEL, noise=0.1, norm_bound=1.0, grid=5), "discretisation of a box"),
        (lambda: nr.gp_ts(ARMS, KERNEL, noise=0.1, norm_bound=1.0, growth=2.0), "which is missing"),
        (
            lambda: nr.gp_ts(nr.Box([0], [1]), KERNEL, noise=0.1, norm_bound=1.0, lipschitz=1.0, grid=5),
            "give one",
        ),
        (lambda: nr.gp_ts(nr.Box([0], [1]), KERNEL, noise=0.1, norm_bound=1.0, lipschitz="x"), "`lipschitz`"),
        (lambda: nr.gp_ucb(ARMS, KERNEL, noise=0.1, series="x"), "`series` is 'x'"),
        (lambda: nr.gp_ucb(ARMS, KERNEL, noise=0.1, series=1.0), "`power` is 1"),
        (lambda: nr.gp_ucb(ARMS, KERNEL, noise=0.1, guess_norm=np.ones(2), width="rkhs"), "`guess_norm`"),
        (lambda: nr.gp_ts(nr.Box([0], [1]), KERNEL, noise=0.1, norm_bound=1.0, growth=np.ones(2)), "`growth`"),
        (lambda: nr.gp_ts(nr.Box([0], [1]), KERNEL, noise=0.1, v=np.ones(2)), "`v`"),
        (
            lambda: nr.gp_ucb(ARMS, KERNEL, noise=0.1, width="rkhs", norm_bound=1.0, series=3.0),
            "Theorem 3 has no pi_t",
        ),
        (lambda: nr.gp_ucb(ARMS, KERNEL, noise=0.1, guess_norm=True), "belongs to Theorem 3"),
        (lambda: nr.igp_ucb(ARMS, KERNEL, noise=0.1, guess_norm=2.0), "`guess_norm` must be True or False"),
        (lambda: nr.igp_ucb(ARMS, KERNEL, noise=0.1, norm_bound=1e300), "`norm_bound` is 1e"),
        (lambda: nr.igp_ucb(ARMS, KERNEL, noise=0.1, norm_bound=1.0, horizon=np.ones(2)), "`horizon` must be a whole"),
        (lambda: nr.gp_ucb(ARMS, KERNEL, noise=0.1, width=np.ones(2)), "`width`"),
        (lambda: nr.gp_ucb(ARMS, KERNEL, noise=0.1, pending=np.ones(2)), "`pending`"),
        (lambda: nr.expected_improvement(ARMS, KERNEL, noise=0.1, incumbent=np.ones(2)), "`incumbent`"),
        (lambda: nr.expected_improvement(ARMS, KERNEL, noise=0.1, margin=1e300), "`margin` is 1e"),
        (lambda: nr.kernel_ucb(ARMS, KERNEL, noise=0.1, eta=1e300), "`eta` is 1e"),
    ],
)
def test_bad_input_names_the_assumption(make, message):
    with pytest.raises(nr.errors.InvalidInput, match=message):
        make()


@pytest.mark.parametrize("engine", ["features", "played", "points"])
def test_norm_of_the_posterior_mean(engine):
    kernel = nr.Matern(1.5, 0.3) if engine == "played" else KERNEL
    arms = nr.Arms(np.random.default_rng(5).uniform(size=(400, 2))) if engine == "played" else ARMS
    rng = np.random.default_rng(1)
    plays = rng.integers(0, len(arms), 30)
    plays[5:9] = plays[0]
    targets = rng.normal(size=30)
    if engine == "points":
        posterior = PointPosterior(kernel, 1, 0.05)
    else:
        posterior = posterior_on_arms(arms, kernel, 0.05)
        assert isinstance(posterior, {"features": LowRankPosterior, "played": DistinctArmsPosterior}[engine])
    for arm, target in zip(plays, targets, strict=True):
        posterior.append(arms.points[arm] if engine == "points" else int(arm), float(target))
    wanted = rkhs_norm_of_mean(kernel, arms.points[plays], targets, 0.05)
    assert posterior.mean_norm == pytest.approx(wanted, rel=1e-6)


def test_a_norm_is_guessed_by_doubling():
    """f has norm 20: a first guess of 1 is contradicted by what is seen, and never doubled beyond twice the truth."""
    f = 20.0 * KERNEL(ARMS.points, np.array([[0.3]]))[:, 0]
    policy = nr.igp_ucb(ARMS, KERNEL, noise=0.1, guess_norm=True)
    study = nr.Study(policy, seed=0)
    rng = np.random.default_rng(0)
    for _ in range(60):
        trial = study.ask()
        study.tell(trial, float(f[trial.arm] + 0.1 * rng.normal()))
    guesses = study.norm_bounds
    assert guesses[0] == (0, 1.0)
    assert [round_ for round_, _ in guesses] == sorted({round_ for round_, _ in guesses})
    assert 10.0 <= guesses[-1][1] <= 32.0
    assert all(math.log2(guess).is_integer() for _, guess in guesses)
    gain = study.information_gain
    assert study.width == pytest.approx(guesses[-1][1] + 0.1 * math.sqrt(2 * (gain + 1 + math.log(10))))
    again = nr.Study(policy, seed=0)
    for trial in study.trials:
        again.add(trial.point, trial.reward)
    assert again.norm_bounds[-1][1] == guesses[-1][1]
    assert nr.Study(nr.igp_ucb(ARMS, KERNEL, noise=0.1, norm_bound=2.0)).norm_bounds == []


def test_a_right_guess_is_kept():
    """Over 100 runs of norm 2 with a guess of 2, a doubling has probability at most delta = 0.1 each: more than 22 of
    them would happen once in 10,000 times (binomial); in fact the bound is far from tight."""
    f = 2.0 * KERNEL(ARMS.points, np.array([[0.6]]))[:, 0]
    doubled = 0
    for seed in range(100):
        study = nr.Study(nr.igp_ucb(ARMS, KERNEL, noise=0.5, norm_bound=2.0, guess_norm=True), seed=seed)
        rng = np.random.default_rng(seed)
        for _ in range(20):
            trial = study.ask()
            study.tell(trial, float(f[trial.arm] + 0.5 * rng.normal()))
        doubled += len(study.norm_bounds) > 1
    assert doubled <= 22


@pytest.mark.parametrize(
    "more",
    [
        {"memory": nr.slots.RestartEvery(10)},  # delta is spent anew in every period
        {"memory": nr.slots.SlidingWindow(10)},
        {"pending": "hallucinate"},
        {"pending": nr.slots.Censored.within(5, minimum=0.0)},  # the targets are not rewards
        {"refit": nr.slots.Refit()},
    ],
)
def test_nothing_is_proved_for_rules_that_the_theorems_do_not_know(more):
    for policy in (
        nr.gp_ucb(ARMS, KERNEL, noise=0.1, **more),
        nr.igp_ucb(ARMS, KERNEL, noise=0.1, norm_bound=1.0, **more),
    ):
        assert policy.confidence.valid_for == "f"
        assert policy.valid_for == "none"
        assert State(policy, seed=0).valid_for == "none"


def test_the_censored_width_is_for_censored_targets():
    policy = nr.gp_ucb_sdf(ARMS, KERNEL, noise=0.1, norm_bound=1.0, reward_bound=1.0, window=5, minimum=0.0)
    assert policy.valid_for == "rho_m f"


@pytest.mark.parametrize("more", [{"late": "accept"}, {"minimum": None}, {"prior_mean": 0.5}])
def test_theorem_1_is_for_late_answers_dropped_and_a_prior_mean_at_a_known_minimum(more):
    assert nr.gp_ucb_sdf(ARMS, KERNEL, noise=0.1, window=5, **more).valid_for == "none"
    assert nr.gp_ucb_sdf(ARMS, KERNEL, noise=0.1, window=5, minimum=0.5).valid_for == "rho_m f"


@pytest.mark.parametrize("pending", [nr.slots.Ignored(), nr.slots.Censored.within(6, minimum=0.0)])
def test_the_censored_width_is_for_the_censoring_of_its_window(pending):
    policy = nr.gp_ucb_sdf(ARMS, KERNEL, noise=0.1, window=5)
    assert dataclasses.replace(policy, pending=pending).valid_for == "none"


@pytest.mark.parametrize("value", ["x", [1], {}, 1 + 2j, 0.0, float("nan")])
def test_an_odd_ridge_is_refused_by_name(value):
    shi = {"noise": 0.1, "norm_bound": 1.0, "epoch": 5, "epochs": 3}
    for make, given in (
        (nr.gp_ucb_sdf, {"noise": 0.1, "window": 3}),
        (nr.igp_ucb, {"noise": 0.1, "norm_bound": 1.0}),
        (nr.gp_ucb_noiseless_constraints, shi),
        (nr.gp_ucb_noisy_constraints, shi),
    ):
        with pytest.raises(nr.errors.InvalidInput, match="regularization"):
            make(ARMS, KERNEL, regularization=value, **given)


@pytest.mark.parametrize("domain", [ARMS, nr.Box([0.0], [1.0])])
def test_a_guess_is_held_against_the_answers_whatever_is_pending(domain):
    """With every trial answered at once, hallucinating changes nothing, and the guess must grow alike."""
    guesses = []
    for pending in ("ignore", "hallucinate"):
        study = nr.Study(nr.igp_ucb(domain, KERNEL, noise=0.1, guess_norm=True, pending=pending), seed=1)
        for _ in range(6):
            study.tell(study.ask(), 20.0)
        guesses.append(study.norm_bounds)
    assert guesses[0] == guesses[1]
    assert guesses[0][-1][1] > 1.0


def test_a_band_is_that_of_the_bounds_only_where_they_are_proved():
    space = nr.Space(x=nr.Float(0.0, 1.0))
    for memory, label in ((None, "proved"), (nr.slots.SlidingWindow(5), "deviations")):
        study = nr.Study(nr.igp_ucb(space, KERNEL, noise=0.1, norm_bound=1.0, memory=memory))
        study.tell(study.ask(), 0.5)
        assert study.band(np.array([[0.5]])).band == label
