"""Clicks, counts and bounded rewards: constants, posteriors, bounds, and how they go with the rest."""

import math
import re

import numpy as np
import pytest
from scipy.stats import binom

import nilregret as nr
from nilregret import testing
from nilregret.gp import RatePosterior, RatePrior
from nilregret.gp.binomial_counts import _likelihoods
from nilregret.slots.envelope import ConstantWidth
from nilregret.slots.widths.likelihood_ratio import LikelihoodRatio, _divergence, _inverted, _largest_variance

from .conformance.test_policies import POLICIES
from .marks import nightly, thinned

ARMS = nr.Arms.grid(0, 1, 12)
X = ARMS.points[:, 0]
KERNEL = nr.SquaredExponential(0.2)
ROUGH = nr.Matern(0.5, 0.3)  # of which features leave out nothing on 12 arms
RATES = 0.1 + 0.5 * np.exp(-0.5 * ((X - 0.6) / 0.15) ** 2)
KINDS = {"bernoulli": nr.slots.Bernoulli(), "poisson": nr.slots.Poisson(), "bounded": nr.slots.Bounded()}


def drawn(kind, rates, rng):
    """A reward of every arm."""
    if kind == "poisson":
        return rng.poisson(rates).astype(float)
    return rng.beta(2.0 * rates, 2.0 * (1.0 - rates)) if kind == "bounded" else (rng.random(len(rates)) < rates) * 1.0


def play(policy, rounds, *, kind="bernoulli", seed=0, study=None, goal="maximize", told=lambda y: y):
    study = nr.Study(policy, seed=seed, goal=goal) if study is None else study
    for t in range(len(study.trials), len(study.trials) + rounds):
        trial = study.ask()
        study.tell(trial, told(drawn(kind, RATES, np.random.default_rng([seed, t]))[trial.arm]))
    return study


def arms_of(study):
    return [trial.arm for trial in study.trials]


# -- constants ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ceiling", [None, 1e-6, 0.02, 0.1, 0.3, 0.4999, 0.49999999, 0.5])
def test_the_noise_of_clicks_is_sub_gaussian_below_the_ceiling_and_no_smaller_would_do_at_it(ceiling):
    kind = nr.slots.Bernoulli(ceiling=ceiling)
    top = 1.0 if ceiling is None else ceiling
    s = np.concatenate([np.linspace(-60, 60, 4001), [2.0 * math.log((1 - top) / top)] if 0 < top < 1 else []])
    s = s[np.abs(s) > 1e-3]
    for p in top * np.linspace(0.001, 1.0, 60):
        log_mgf = np.logaddexp(np.log1p(-p) - s * p if p < 1 else -np.inf, math.log(p) + s * (1.0 - p))
        assert (log_mgf <= 0.5 * s**2 * kind.noise**2 * (1 + 1e-9) + 1e-12).all(), p
    p = 0.5 if ceiling is None else ceiling
    at = 2.0 * math.log((1 - p) / p) if p < 0.49 else 1e-2
    log_mgf = np.logaddexp(np.log1p(-p) - at * p, math.log(p) + at * (1.0 - p))
    assert log_mgf == pytest.approx(0.5 * at**2 * kind.noise**2, rel=1e-4)


def test_the_noise_follows_and_bounded_rewards_have_half_their_range():
    assert nr.gp_ucb(ARMS, KERNEL, reward="bernoulli").noise == 0.5
    assert nr.gp_ucb(ARMS, KERNEL, reward=nr.slots.Bounded(low=-1, high=5)).noise == 3.0
    assert nr.gp_ucb(ARMS, KERNEL, reward=nr.slots.Poisson(ceiling=4)).noise == 2.0
    assert nr.igp_ucb(ARMS, KERNEL, reward="bernoulli", norm_bound=1, width="amm").regularization == 0.25
    with pytest.raises(nr.errors.InvalidInput, match=r"the noise follows, here 0\.5: leave `noise` out"):
        nr.gp_ucb(ARMS, KERNEL, noise=0.1, reward="bernoulli")
    with pytest.raises(nr.errors.InvalidInput, match=r"`noise` is 0\.1, and for Bernoulli"):
        nr.gp_ucb(ARMS, KERNEL, reward="bernoulli").using(noise=0.1)
    with pytest.raises(TypeError, match=r"'noise', the standard deviation .* reward='bernoulli'"):
        nr.gp_ucb(ARMS, KERNEL)
    with pytest.raises(nr.errors.InvalidInput, match="`reward` is 'binary': it must be one of"):
        nr.gp_ucb(ARMS, KERNEL, reward="binary")
    with pytest.raises(nr.errors.InvalidInput, match="fills the slot `reward` itself"):
        nr.gp_ucb_noisy_constraints(ARMS, KERNEL, noise=0.1, norm_bound=1, epoch=5, epochs=2, reward="bernoulli")


@pytest.mark.parametrize(
    ("reward", "wrong", "error", "right"),
    [
        ("bernoulli", (0.5, -1, 2), "neither 0 nor 1", (0, 1, True, False)),
        ("poisson", (0.5, -1), "is no count", (0, 1, 17)),
        ("bounded", (-0.1, 1.1), r"outside of \[0, 1\]", (0, 0.5, 1)),
    ],
)
@pytest.mark.parametrize("goal", ["maximize", "minimize"])
def test_what_cannot_be_is_refused_when_it_is_told(reward, wrong, error, right, goal):
    study = nr.Study(nr.gp_ucb(ARMS, KERNEL, reward=reward), goal=goal)
    trial = study.ask()
    for value in wrong:
        with pytest.raises(nr.errors.InvalidInput, match=error):
            study.tell(trial, value)
        with pytest.raises(nr.errors.InvalidInput, match=error):
            study.add([0.5], value)
    for value in right:
        study.tell(study.ask(), value)


def test_what_is_proved():
    def igp(**known):
        return nr.igp_ucb(ARMS, KERNEL, norm_bound=1.0, **known).valid_for

    for width in ("ay", "amm", "dmm", "best", "lr"):
        assert igp(reward="bernoulli", width=width) == "f"
        assert igp(reward=nr.slots.Bernoulli(ceiling=0.1), width=width) == "f"
        assert igp(reward=nr.slots.Bounded(low=-2), width=width) == "f"
        assert igp(reward=nr.slots.Poisson(ceiling=0.1), width=width) == ("f" if width == "lr" else "none")
    assert igp(reward="bernoulli") == "f"
    assert igp(reward="bernoulli", width="lr", guess_norm=True) == "none"
    assert nr.gp_ucb(ARMS, KERNEL, noise=0.5).valid_for == "f"
    assert nr.gp_ucb(ARMS, KERNEL, reward="bernoulli").valid_for == "none"  # no sample of a process, no Gaussian noise
    with pytest.raises(nr.errors.InvalidInput, match="Likelihood ratios are for clicks"):
        nr.igp_ucb(ARMS, KERNEL, noise=0.5, norm_bound=1.0, width="lr")
    with pytest.raises(nr.errors.InvalidInput, match="Likelihood ratios are for clicks"):
        nr.igp_ucb(nr.Box(0, 1), KERNEL, reward="bernoulli", norm_bound=1.0, width="lr")


# -- the posterior -----------------------------------------------------------------------------------------------------


class Fixed:
    """Rewards of which nothing is learned but scales: their variances are given."""

    start = (0.3, 0.2, 0.1)

    def __init__(self, variances):
        self._variances = variances

    def variances(self, mean, plays, scatter):
        return self._variances

    def unit(self, mean, variance):
        return 0.3


def dense(posterior, rewards):
    """Mean and covariance of f by the textbook, from (arm, reward), under what the posterior has learned."""
    m, smooth, own = posterior.scales
    K = smooth**2 * ROUGH.between_arms(ARMS.points, slice(None), np.arange(12)) + own**2 * np.eye(12)
    arms, y = np.array([arm for arm, _ in rewards]), np.array([reward for _, reward in rewards])
    total = K[np.ix_(arms, arms)] + np.diag(posterior._noise[arms])
    gain = np.linalg.solve(total, K[arms]).T
    return m + gain @ (y - m), K - gain @ K[arms], total, y - m


def test_the_posterior_is_that_of_the_textbook_whatever_was_taken_back():
    rng = np.random.default_rng(0)
    posterior = RatePosterior(ROUGH, ARMS.points, RatePrior(Fixed(rng.uniform(0.05, 0.2, 12)), 0.0), regularization=1.0)
    rewards = []
    for step in range(70):
        arm, reward = int(rng.integers(9)), float(rng.random())
        posterior.append(arm, reward)
        rewards.append((arm, reward))
        if step % 5 == 3:
            posterior.forget(*rewards.pop(int(rng.integers(len(rewards)))))
        if step % 7 == 2:
            changed = int(rng.integers(len(rewards)))
            posterior.revise(*rewards[changed], 0.25)
            rewards[changed] = rewards[changed][0], 0.25
        if step % 11 == 6:
            arms, old = zip(*rewards[-5:], strict=True)
            posterior.revise_all(arms, old, [0.75, 0.5, 0.25, 0.0, 1.0])
            rewards[-5:] = zip(arms, [0.75, 0.5, 0.25, 0.0, 1.0], strict=True)
        if step in (5, 30, 69):
            mean, covariance, total, _beyond = dense(posterior, rewards)
            found, std = posterior.predict()
            np.testing.assert_allclose(found, mean, atol=1e-10)
            np.testing.assert_allclose(std, np.sqrt(covariance.diagonal()), atol=1e-9)
            np.testing.assert_allclose(posterior.covariance(np.arange(12)), covariance, atol=1e-10)
            np.testing.assert_allclose(posterior.predict([3, 11])[1], std[[3, 11]])
            noise = np.log(posterior._noise[[arm for arm, _ in rewards]]).sum()
            assert posterior.log_determinant_ratio == pytest.approx(np.linalg.slogdet(total)[1] - noise)
    means = [mean for arm in range(9) for a, mean in rewards if a == arm]
    assert posterior.averages[3] == pytest.approx(np.mean([reward for arm, reward in rewards if arm == 3]))
    assert posterior.count == len(rewards) == len(means)


def test_samples_have_the_posteriors_moments():
    rng = np.random.default_rng(1)
    posterior = RatePosterior(ROUGH, ARMS.points, RatePrior(nr.slots.Bernoulli(), 0.0), regularization=0.25)
    for t in range(60):
        posterior.append(t % 7, float(rng.random() < RATES[t % 7]))
    drawn = posterior.sample(rng, size=20_000)
    mean, std = posterior.predict()
    # Of 20,000 draws means are within 4.5 of their deviations in all but 1e-4 of all tests.
    assert (np.abs(drawn.mean(axis=0) - mean) < 4.5 * std / math.sqrt(20_000)).all()
    np.testing.assert_allclose(
        np.cov(drawn.T), posterior.covariance(np.arange(12)), atol=4.5 * 1.5 * std.max() ** 2 / 141
    )


def test_the_likelihood_is_that_of_the_averages_with_the_mean_integrated_out():
    rng = np.random.default_rng(2)
    averages, total, features = rng.random(6), rng.uniform(0.1, 0.3, 6), rng.normal(size=(6, 3))
    fits = []
    for flat in (1e6, 1e8):  # m ~ N(0, flat): its own factor is the same for all scales
        K = np.diag(total) + features @ features.T + flat
        fit = -0.5 * (averages @ np.linalg.solve(K, averages) + np.linalg.slogdet(K)[1]) + 0.5 * math.log(flat)
        fits.append(fit)
    (_, found), (_, mean) = _likelihoods(averages, np.stack([2 * total, total]), features)
    assert found == pytest.approx(fits[1], abs=1e-4)
    inverse = np.linalg.inv(np.diag(total) + features @ features.T)
    assert mean == pytest.approx((inverse @ averages).sum() / inverse.sum())


def test_it_learns_how_much_arms_resemble_their_neighbours_and_what_their_noise_is():
    arms, rng = nr.Arms.grid(0, 1, 60), np.random.default_rng(3)
    x = arms.points[:, 0]
    for values, alike in ((0.05 + 0.4 * np.exp(-50 * (x - 0.4) ** 2), True), (rng.uniform(0.05, 0.45, 60), False)):
        posterior = RatePosterior(
            nr.SquaredExponential(0.15), arms.points, RatePrior(nr.slots.Bernoulli(), 0.0), regularization=1
        )
        for arm in np.tile(np.arange(60), 60):
            posterior.append(int(arm), float(rng.random() < values[arm]))
        mean, smooth, own = posterior.scales
        assert (smooth > 4 * own) == alike
        assert (own > 2 * smooth) != alike
        error = np.abs(posterior.predict()[0] - values).mean()
        assert error < (0.03 if alike else 0.06)
        assert mean == pytest.approx(values.mean(), abs=0.15)
        np.testing.assert_allclose(posterior._noise, values * (1 - values), atol=0.1)


def test_bounded_rewards_are_as_noisy_as_they_were_seen_to_be():
    rng, kind = np.random.default_rng(4), nr.slots.Bounded()
    plays, scatter = np.full(12, 30), np.where(np.arange(12) < 6, 0.3, 3.0)
    variances = kind.variances(np.full(12, 0.5), plays, scatter)
    assert (variances[:6] < variances[6:]).all()
    assert ((variances > 0.3 / 39) & (variances < 3.0 / 29)).all()
    assert not kind.variances(rng.random(12), np.ones(12, dtype=int), np.zeros(12)).any()  # nothing can be said yet


# -- likelihood ratios -------------------------------------------------------------------------------------------------


def test_the_ratio_is_a_supermartingale_at_the_truth():
    """Its expectation is 1 for clicks and counts and at most 1 for shares, whatever was predicted."""
    counts, points = np.arange(60), (np.arange(4000) + 0.5) / 4000
    log_factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, 60)))])
    for p in (0.02, 0.3, 0.8):
        for q in (0.01, 0.4, 0.9):
            assert p * (q / p) + (1 - p) * ((1 - q) / (1 - p)) == pytest.approx(1.0)
            weights = np.exp(counts * math.log(p) - p - log_factorials)
            assert (weights * np.exp(counts * math.log(q / p) - (q - p))).sum() == pytest.approx(1.0)
            density = points ** (2 * p - 1) * (1 - points) ** (2 * (1 - p) - 1)  # a beta distribution of mean p
            density /= density.sum()
            mean = float(density @ points)
            ratio = (q / mean) ** points * ((1 - q) / (1 - mean)) ** (1 - points)
            assert float(density @ ratio) <= 1.0 + 1e-12


@pytest.mark.parametrize("counts", [False, True])
def test_divergences_are_inverted_and_bounded_below_by_the_largest_variance_between(counts):
    a, b = np.meshgrid(np.linspace(0, 1, 21), np.linspace(0.01, 0.99, 29))
    d = _divergence(a.ravel(), b.ravel(), counts=counts)
    v = _largest_variance(np.minimum(a, b).ravel(), np.maximum(a, b).ravel(), counts=counts)
    assert (d >= (a - b).ravel() ** 2 / (2 * v) - 1e-12).all()
    average, plays = np.array([0.0, 0.02, 0.5, 0.98, 1.0, 0.0]), np.array([40, 7, 1, 30, 3, 0])
    lower, upper = _inverted(average, plays, 4.0, counts=counts)
    for end, inner in ((lower, lower < average - 1e-6), (upper, upper > average + 1e-6)):
        inner &= (plays > 0) & (end > 1e-6) & ((end < 1 - 1e-6) | counts)
        assert inner.any()
        np.testing.assert_allclose(
            plays[inner] * _divergence(average[inner], end[inner], counts=counts), 4.0, rtol=1e-4
        )
    assert (lower[0], lower[5], upper[5] >= 1.0) == (0.0, 0.0, True)


def truth(rng, spread=0.12):
    """Rates about 0.3, and their norm."""
    weights = rng.normal(size=4)
    centers = rng.integers(12, size=4)
    K = KERNEL.between_arms(ARMS.points, slice(None), np.arange(12))
    f = K[:, centers] @ weights
    scale = spread / np.abs(f).max()
    return 0.3 + scale * f, scale * math.sqrt(weights @ K[np.ix_(centers, centers)] @ weights)


@pytest.mark.parametrize("kind", thinned(KINDS, "bernoulli"))
def test_bounds_hold_in_all_rounds_at_once(kind):
    """40 runs of 15 rounds; delta = 0.1."""
    failed = 0
    for run in range(40):
        rng = np.random.default_rng([run, 12])
        rates, norm = truth(rng)
        policy = nr.igp_ucb(ARMS, KERNEL, reward=KINDS[kind], norm_bound=norm, prior_mean=0.3, width="lr")
        study, inside = nr.Study(policy, seed=run), True
        for _ in range(15):
            lower, upper = study.bounds()
            inside &= bool(((lower <= rates + 1e-9) & (rates <= upper + 1e-9)).all())
            trial = study.ask()
            study.tell(trial, drawn(kind, rates, rng)[trial.arm])
        failed += not inside
    assert binom.sf(failed - 1, 40, 0.1) > 1e-4  # a sound bound fails this test once in 10,000


def test_the_bounds_of_much_data_are_narrow_and_around_the_truth():
    policy = nr.igp_ucb(ARMS, KERNEL, reward="bernoulli", norm_bound=2.0, width="lr")
    study = nr.Study(policy, seed=0)
    for arm in np.tile(np.arange(12), 250):
        study.add(ARMS.points[arm], float(np.random.default_rng([5, len(study.trials)]).random() < RATES[arm]))
    lower, upper = study.bounds()
    assert ((lower <= RATES) & (upper >= RATES)).all()
    dual = nr.Study(nr.igp_ucb(ARMS, KERNEL, reward="bernoulli", norm_bound=2.0, width="dmm"), seed=0)
    for trial in study.trials:
        dual.add(trial.point, trial.reward)
    wide = np.subtract(*dual.bounds()[::-1])
    assert (upper - lower)[RATES < 0.15].mean() < 0.85 * wide[RATES < 0.15].mean()  # where clicks are less noisy


def test_a_norm_that_was_told_too_small_is_raised_and_nothing_counts_as_proved_then():
    policy = nr.igp_ucb(ARMS, KERNEL, reward="bernoulli", norm_bound=0.02, width="lr")
    study = nr.Study(policy, seed=0)
    assert study.norm_bounds == [(0, 0.02)]
    for arm in np.tile(np.arange(12), 60):
        study.add(ARMS.points[arm], float(np.random.default_rng([6, len(study.trials)]).random() < RATES[arm]))
    (_, first), *raised = study.norm_bounds
    assert raised
    assert raised[-1][1] >= 2 * first
    lower, upper = study.bounds()
    assert ((lower <= RATES) & (upper >= RATES)).all()


# -- together with the rest --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in POLICIES if not re.search("constraints|hypervolume", name)])
@pytest.mark.parametrize("reward", ["bernoulli", "poisson"])
@pytest.mark.filterwarnings(
    "ignore::nilregret.errors.NoRegretWarning"
)  # some lambdas are large for a kernel of scale 1
def test_every_algorithm_takes_clicks_and_counts(name, reward):
    known = {"noise": None, "domain": ARMS, "minimum": 0.0} if "sdf" in name else {"noise": None, "domain": ARMS}
    policy = POLICIES[name](reward=reward, **known)
    assert policy.objective == KINDS[reward]
    assert nr.Policy.from_json(policy.to_json()) == policy
    study = play(policy, 24, kind=reward)
    assert arms_of(play(nr.Policy.from_json(policy.to_json()), 24, kind=reward)) == arms_of(study)


@pytest.mark.parametrize(
    "policy",
    [
        nr.gp_ucb(ARMS, KERNEL, reward="poisson", width=ConstantWidth(value=1.0), memory=nr.slots.SlidingWindow(9)),
        nr.gp_ts(ARMS, KERNEL, reward="bounded", v=0.6, pending=nr.slots.Imputed(minimum=0.0), prior_mean=0.2),
        nr.igp_ucb(ARMS, KERNEL, reward="bernoulli", norm_bound=1.0, width="lr", context=nr.Arms.grid(0, 1, 3)),
        *nightly(
            nr.auto(ARMS, reward="bernoulli"),
            nr.gp_bucb(ARMS, KERNEL, reward="bernoulli", beta=1.0),
            nr.auto(ARMS, reward="bernoulli", context=nr.Arms.grid(0, 1, 3), world="switching", answers="late"),
        ),
    ],
    ids=["counts in a window", "imputed", "likelihood ratios", "auto", "hallucinated", "switching"],
)
def test_it_keeps_the_promises_of_every_policy(policy):
    testing.check_policy(policy, rounds=20)


def test_the_learned_posterior_is_for_what_nothing_fixes():
    def learned(policy):
        return policy.objective.learned(policy) is not None

    assert learned(nr.gp_ucb(ARMS, KERNEL, reward="bernoulli"))
    assert learned(nr.igp_ucb(ARMS, KERNEL, reward="bernoulli", norm_bound=1.0, width="lr"))
    assert not learned(nr.igp_ucb(ARMS, KERNEL, reward="bernoulli", norm_bound=1.0))  # a theorem with a fixed lambda
    assert not learned(nr.gp_ucb(nr.Box(0, 1), KERNEL, reward="bernoulli"))
    assert not learned(nr.gp_ucb(ARMS, KERNEL, reward="bernoulli", refit=nr.slots.Refit(every=5)))
    assert not learned(nr.gp_ucb(ARMS, KERNEL, reward="bernoulli", memory=nr.slots.Discount(0.1)))
    assert not learned(nr.gp_ucb(ARMS, KERNEL, reward="bernoulli", constraints=nr.EveryRound(count=1, noise=0.1)))
    assert not learned(nr.gp_ucb(ARMS, KERNEL, noise=0.5))


@pytest.mark.parametrize("scale", [2.0**-20, 2.0**14])  # powers of 4: nothing is rounded otherwise
def test_the_scale_of_the_kernel_counts_for_nothing_where_scales_are_learned(scale):
    """Not even for a warning, which would fail this test."""
    told = arms_of(play(nr.gp_ts(ARMS, KERNEL, reward="bernoulli", v=0.6), 40))
    assert arms_of(play(nr.gp_ts(ARMS, scale * KERNEL, reward="bernoulli", v=0.6), 40)) == told


def test_failures_that_are_minimised_are_successes_that_are_maximised():
    for make in (lambda: nr.gp_ts(ARMS, KERNEL, reward="bernoulli", v=0.6),
                 lambda: nr.gp_ucb(ARMS, KERNEL, reward="bernoulli", width=ConstantWidth(value=1.0))):  # fmt: skip
        wins = play(make(), 80)
        losses = play(make(), 80, goal="minimize", told=lambda y: 1.0 - y)
        assert arms_of(losses) == arms_of(wins)
        np.testing.assert_allclose(losses.predict()[0], 1.0 - wins.predict()[0], atol=1e-9)
    policy = nr.igp_ucb(ARMS, KERNEL, reward="bernoulli", norm_bound=1.0, prior_mean=0.5, width="lr")
    wins, losses = play(policy, 30), play(policy, 30, goal="minimize", told=lambda y: 1.0 - y)
    np.testing.assert_allclose(losses.bounds()[0], 1.0 - wins.bounds()[1], atol=1e-6)


def test_late_clicks_count_as_what_is_expected_of_their_silence():
    policy = nr.gp_ts(ARMS, KERNEL, reward="bernoulli", v=0.6, pending=nr.slots.Imputed(minimum=0.0))
    rng = np.random.default_rng(7)

    def played(study, start, stop):
        for _ in range(start, stop):
            trial = study.ask()
            if rng.random() < RATES[trial.arm]:
                waiting.append((trial, trial.number + int(rng.integers(5))))
            for late, due in [each for each in waiting if each[1] <= trial.number]:
                waiting.remove((late, due))
                study.tell(late, 1.0)
        return study

    waiting = []
    study = played(nr.Study(policy, seed=0), 0, 150)
    mean = study.predict()[0]
    assert mean[int(RATES.argmax())] == mean.max() or RATES[int(mean.argmax())] > 0.45
    again = nr.Study(policy, seed=0)
    again.replica.rebuild()
    study.replica.rebuild()
    np.testing.assert_array_equal(study.predict()[0], mean)  # replayed from the record, bit for bit


def test_likelihood_ratios_are_described():
    part = LikelihoodRatio(norm_bound=2.0, delta=0.05, guessed=True)
    assert (part.valid_for, part.likelihood, part.sub_gaussian) == ("none", True, False)
    for wrong in ({"norm_bound": 0.0}, {"norm_bound": 1.0, "delta": 1.0}):
        with pytest.raises(nr.errors.InvalidInput):
            LikelihoodRatio(**wrong)
    for wrong in (
        lambda: nr.slots.Bernoulli(ceiling=0.6),
        lambda: nr.slots.Bounded(low=1, high=1),
        lambda: nr.slots.Poisson(ceiling=0),
    ):
        with pytest.raises(nr.errors.InvalidInput):
            wrong()


@pytest.mark.parametrize(
    ("reward", "prior_mean"),
    [
        ("bernoulli", -1.0),
        ("bernoulli", 2.0),
        (nr.slots.Bernoulli(ceiling=0.05), 0.5),
        ("poisson", -0.1),
        (nr.slots.Bounded(low=1.0, high=2.0), 0.0),
    ],
)
def test_likelihood_ratios_want_a_prior_mean_that_there_can_be(reward, prior_mean):
    """A ball about what cannot be left bounds beside the truth, which were called proved."""
    arms, kernel = nr.Arms.grid(0, 1, 5), nr.SquaredExponential(0.2)
    with pytest.raises(nr.errors.InvalidInput, match=r"no expected reward lies there.* Give a typical reward"):
        nr.igp_ucb(arms, kernel, reward=reward, norm_bound=1.0, prior_mean=prior_mean, width="lr")


def test_likelihood_ratios_take_the_prior_mean_of_losses():
    arms, kernel = nr.Arms.grid(0, 1, 5), nr.SquaredExponential(0.2)
    policy = nr.igp_ucb(arms, kernel, reward="bernoulli", norm_bound=1.0, prior_mean=0.1, width="lr")
    study = nr.Study(policy, seed=0, goal="minimize")
    for loss in (0, 1, 0):
        study.tell(study.ask(), loss)
    lower, upper = study.bounds()
    assert (lower >= 0.0).all()
    assert (lower < upper).all()
    assert (upper <= 1.0).all()


@pytest.mark.parametrize("limits", [{}, {"constraints": nr.OnAverage()}])
def test_where_only_a_yes_is_told_bounds_hold_the_rates(limits):
    """All that is told is 1, in which a fit finds no noise."""
    space, rng = nr.Space(x=nr.Float(0, 1)), np.random.default_rng(0)
    study = nr.Study(nr.auto(space, reward="bernoulli", answers="silent no", **limits), seed=0)
    for _ in range(40):
        trial = study.ask()
        if rng.random() < 0.5 * trial.parameters["x"]:
            study.tell(trial, 1.0, **({"constraints": [-0.1]} if limits else {}))
    points = np.linspace(0.0, 1.0, 21)
    lower, upper = study.bounds(points[:, None])
    assert np.mean((lower <= 0.5 * points) & (0.5 * points <= upper)) >= 0.8
