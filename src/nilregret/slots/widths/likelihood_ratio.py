"""Bounds from the likelihood of clicks, counts and bounded rewards, which need no constant of their noise.

| symbol | name | meaning | shape |
|---|---|---|---|
| p | | expected rewards, scaled to [0, 1] for bounded rewards | (N,) |
| B | `norm_bound` | bound on ||p - m||_k, reward units, with m the prior mean | scalar |
| n, ybar | | number of rewards of each arm, and their average | (N,) |
| q_s | `_predictions` | predictions of p before reward s, by two rules | (2, N) |
| rho | `_radius` | bound on the log likelihood of p below the largest one, nats | scalar |
| V | | largest variance of a reward between ybar and the possible p | (N,) |

Emmenegger, Mutny & Krause 2023 (Likelihood ratio confidence sets for sequential decision making), with weights 1. With
any q_s that was known before y_s, prod_s L(y_s, q_s) / L(y_s, p) is a supermartingale at the true p. Its expectation is
1 for clicks (L = p^y (1 - p)^(1 - y)) and counts (L = p^y e^-p / y!). It is at most 1 for rewards in [0, 1], as L is
then convex in y and so below its chord. The average over two rules and over independent priors of each rate (the third
rule) is such a supermartingale, too. With probability 1 - delta it stays below 1 / delta in all rounds (Ville). As
max_p L is attained at the averages,

    sum_i n_i d(ybar_i, p_i) <= rho = ln(1 / delta) + ln max_p prod L(y_s, p) - ln (1/3) sum_rules prod L(y_s, q_s),

with d(a, b) the Kullback-Leibler divergence. Each term alone bounds one p_i. d(a, b) is also the integral of (a - u) /
v(u) from b to a, with v(u) the variance u (1 - u) or u. Hence d(a, b) >= (a - b)^2 / 2 V. So p lies in the ellipsoid
sum_i (n_i / V_i) (ybar_i - p_i)^2 <= 2 rho as well as in the ball of radius B. As for the dual mixture
(`slots.widths.mixtures`), for every alpha,

    |p(x) - mu_alpha(x)| <= s_alpha(x) sqrt((2 rho + alpha B^2 - q(alpha)) / alpha),

with mu, s and q for noise variances V / n and the regularization alpha. V comes from the bounds of the round before,
which hold at the same time. All bounds hold in all rounds, so they are computed again only after a share `STALE` of new
rewards.

`RateQuantiles` are bounds of the same rewards: quantiles of each arm's rate by its own rewards.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple, cast, final

import numpy as np

from ..._utils.checks import LARGEST_REWARD, Array, IndexArray, flag, number, settle
from ..._utils.copying import Copyable
from ...errors import InvalidInput
from ...gp import Posterior, RatePosterior
from ...gp.binomial_counts import OwnRates
from ...gp.spectrum import Spectrum, spectrum_of_features, spectrum_of_points
from ...gp.tidal import rates_of
from ...kernels.factorization import pivoted_cholesky, tolerance
from ...serialize import description
from ..base import Policy
from ..envelope import Bounds, Confidence, Envelope, Guess, Progress, Symmetric, checked_delta
from ..rewards import KnownReward

STALE = 0.02  # share of new rewards after which bounds are computed again
RATIOS = np.geomspace(0.003, 300.0, 11)  # values of alpha B^2 / 2 rho
PASSES = 2  # The second pass uses the variances that remain after the first.
STEPS = 9  # Newton steps for the inverse of a divergence
LEAST = 0.2  # share of the average rate, lower limit of predictions
FEATURES = 128  # largest rank of features, beyond which the kernel matrix of the arms is used
EDGE = 1e-12  # distance of predictions from 0 and 1


@final
@description(frozen=True, kw_only=True)
class LikelihoodRatio(Confidence):
    """Bounds from the likelihood of the rewards against that of their predictions, within a ball of the kernel's RKHS.

    They are for finitely many arms (and contexts) under `reward=`. If no p satisfies both, `norm_bound` was too small.
    It is then raised, `study.norm_bounds` shows the new value, and nothing counts as proved from then on.

    Attributes:
        guessed: True if `norm_bound` is only a first guess.
    """

    norm_bound: float  # B
    delta: float = 0.1
    guessed: bool = False

    def __post_init__(self) -> None:
        from .self_normalized import checked_bound

        settle(
            self,
            norm_bound=checked_bound(self.norm_bound),
            delta=checked_delta(self.delta),
            guessed=flag("guessed", self.guessed),
        )

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` unless rewards have a known likelihood on finitely many arms."""
        super().check(policy)
        reward = policy.objective.learned(policy)
        if reward is None:
            raise InvalidInput(
                "Likelihood ratios are for clicks, counts and bounded rewards (`reward` 'bernoulli', 'poisson' or "
                "'bounded') on finitely many arms and contexts, of one function, without `refit`, drift, or "
                "constraints of their own posteriors. Say what the rewards are, or take another width."
            )
        (low, width), top = reward.span, reward.top
        high = math.inf if reward.counts else low + width
        high = high if top is None else min(high, top)
        center = -policy.prior_mean if reward.losses else policy.prior_mean
        if not low <= center <= high:  # Bounds from a ball around an impossible mean would exclude all possible means.
            raise InvalidInput(
                f"`prior_mean` is {center:g}, and no expected reward lies there: of {reward} they are in [{low:g}, "
                f"{high:g}]. Usually it was left at 0, or is in other units than the rewards. Give a typical reward: "
                "`norm_bound` says how far from it f may be."
            )

    @property
    def valid_for(self) -> str:
        """Claim "f", unless the norm was guessed."""
        return "none" if self.guessed else "f"

    @property
    def likelihood(self) -> bool:
        """True."""
        return True

    def guess(self) -> LikelihoodSet:
        """Returns a set without rewards. It also tests a norm bound that was given."""
        return LikelihoodSet(self)

    def bounds(self, t: int, progress: Progress) -> LikelihoodBounds:  # noqa: ARG002
        """Returns the bounds of this round."""
        found = progress.guess if isinstance(progress.guess, LikelihoodSet) else self.guess()
        posterior = progress.posterior if progress.answers is None else progress.answers
        return LikelihoodBounds(*found.bounds(cast("RatePosterior", posterior)))


@final
class LikelihoodBounds(Bounds):
    """Bounds of all arms, computed before.

    Args:
        lower, upper: bounds in reward units, `(N,)`.
    """

    pointwise: ClassVar[bool] = False

    def __init__(self, lower: Array, upper: Array) -> None:
        self._lower, self._upper = lower, upper

    def __call__(self, mean: Array, std: Array, rows: Any = None) -> Envelope:
        """Returns the bounds of some arms, or of all."""
        some = slice(None) if rows is None else rows
        return Envelope(mean, std, lower=self._lower[some].copy(), upper=self._upper[some].copy())


class _Model(NamedTuple):
    """Prior on all arms."""

    features: Array | None  # (N, r), or None if the rank is too large
    left_out: Array  # (N,)
    gram: Array | None  # (N, N) without features

    def spectrum(self, weights: Array, average: Array) -> Spectrum:
        """Returns the spectrum of averages `(N,)` with variance 1 / weights, and weight 0 without rewards."""
        if self.features is not None:
            return spectrum_of_features(self.features, self.left_out, weights, average, 0.0)
        seen, gram = np.flatnonzero(weights), cast("Array", self.gram)
        return spectrum_of_points(
            gram[np.ix_(seen, seen)], weights[seen], average[seen], 0.0,
            covariance=lambda points: gram[seen] if points is None else gram[np.ix_(seen, points)],
            variance=lambda points: gram.diagonal() if points is None else gram.diagonal()[points],
        )  # fmt: skip


def _model(posterior: RatePosterior) -> _Model:
    prior = posterior.prior
    fine = tolerance(prior.variance, 1e-6 * prior.size**2)
    found = pivoted_cholesky(prior.kernel, prior.points, tol=fine, max_rank=min(FEATURES, len(prior.points)))
    left = np.maximum(prior.variance - np.einsum("nr,nr->n", found.features, found.features), 0.0)
    whole = None if found.complete else prior.columns(np.arange(len(prior.points)))
    return _Model(found.features if found.complete else None, left, whole)


class _Rewards(NamedTuple):
    plays: IndexArray
    total: Array  # sum of rewards in units of p, which lies in [0, 1] except for counts


@final
class LikelihoodSet(Copyable, Guess):
    """Predictions of rewards before they came, and the set of p that they leave.

    Attributes:
        bound: current B.
        history: (round, B) of the first value and of each replacement.
    """

    OWNED = ("history", "_log_likelihoods")

    def __init__(self, confidence: LikelihoodRatio) -> None:
        self._confidence, self.bound = confidence, confidence.norm_bound
        self.history: list[tuple[int, float]] = [(0, self.bound)]
        self._rewards: _Rewards | None = None
        self._predictions = np.zeros((2, 0))
        self._log_likelihoods = np.zeros(2)  # log likelihood of each rule's predictions
        self._bounds_of_p: tuple[Array, Array] | None = None  # bounds of p
        self._due: float = 0
        self._model: _Model | None = None

    def check(self, rounds: int, posterior: Posterior) -> None:
        """Adds the predictions of new rewards, predicts the next ones, and raises B if no p is left."""
        known = cast("RatePosterior", posterior)
        seen = self._record(known)
        if known.count >= self._due:
            self._due = known.count + max(1, int(STALE * known.count))
            self._bound(rounds, known, seen)

    def bounds(self, posterior: RatePosterior) -> tuple[Array, Array]:
        """Returns lower and upper bounds of f, in the sign of the targets, in reward units, `(N,)` each."""
        reward, low, width = _likelihood_of(posterior)
        if self._bounds_of_p is None:  # Before the first reward there is the ball alone. Reads change nothing.
            far, sign = self.bound * np.sqrt(posterior.prior.variance), -1.0 if reward.losses else 1.0
            lower = np.maximum(sign * posterior.center - far, low)
            upper = sign * posterior.center + far
            top = math.inf if reward.top is None else reward.top
            lower, upper = np.minimum(lower, top), np.maximum(np.minimum(upper, top), low)
        else:
            lower, upper = (low + width * each for each in self._bounds_of_p)
        return (-upper, -lower) if reward.losses else (lower, upper)

    def _record(self, posterior: RatePosterior) -> _Rewards:
        reward, low, width = _likelihood_of(posterior)
        average = posterior.averages
        average = ((-average if reward.losses else average) - low) / width
        plays = posterior.plays.copy()
        seen, before = _Rewards(plays, plays * average), self._rewards
        # Without earlier or with dropped rewards the set begins again.
        if before is None or (plays < before.plays).any():
            before, self._log_likelihoods = _Rewards(np.zeros_like(plays), np.zeros(len(plays))), np.zeros(2)
            start = np.full(len(plays), 0.5)
            self._predictions, self._bounds_of_p = np.stack([start, start]), None
        new = np.flatnonzero(plays != before.plays)
        if len(new):
            gained = seen.total[new] - before.total[new]
            many = plays[new] - before.plays[new]
            self._log_likelihoods += _log_likelihood(gained, many, self._predictions[:, new], counts=reward.counts).sum(
                axis=1
            )
        self._rewards = seen
        self._predictions = self._predicted(posterior, seen, reward, (low, width))
        return seen

    def _predicted(
        self, posterior: RatePosterior, seen: _Rewards, reward: KnownReward, at: tuple[float, float]
    ) -> Array:
        """Returns predictions by the average of all arms, and by the posterior."""
        pooled = (float(seen.total.sum()) + 0.5) / (posterior.count + 1.0)
        mean = posterior.reward_means
        mean = ((-mean if reward.losses else mean) - at[0]) / at[1]
        guesses = np.stack([np.full(len(mean), pooled), np.maximum(mean, LEAST * pooled)])
        return np.asarray(np.clip(guesses, EDGE, LARGEST_REWARD if reward.counts else 1.0 - EDGE))

    def _radius(self, seen: _Rewards, average: Array, *, counts: bool) -> float:
        best = float(_log_likelihood(seen.total, seen.plays, average, counts=counts).sum())
        rules = [*self._log_likelihoods, _mixed(seen, counts=counts)]
        together = float(np.logaddexp.reduce(rules)) - math.log(len(rules))
        return math.log(1.0 / self._confidence.delta) + max(best - together, 0.0)

    def _bound(self, rounds: int, posterior: RatePosterior, seen: _Rewards) -> None:
        """Computes the bounds of p from `seen` and B."""
        reward, low, width = _likelihood_of(posterior)
        counts = reward.counts
        average = np.divide(seen.total, seen.plays, out=np.zeros(len(seen.plays)), where=seen.plays > 0)
        radius = self._radius(seen, average, counts=counts)
        lower, upper = _inverted(average, seen.plays, radius, counts=counts)
        if reward.top is not None:
            upper = np.minimum(upper, (reward.top - low) / width)
        if self._bounds_of_p is not None:
            lower, upper = np.maximum(lower, self._bounds_of_p[0]), np.minimum(upper, self._bounds_of_p[1])
        center = ((-posterior.center if reward.losses else posterior.center) - low) / width
        for _ in range(PASSES if seen.plays.any() else 0):
            found = self._smooth(rounds, posterior, seen, average, (lower, upper), (center, radius))
            if found is None:  # B was raised, so earlier bounds of p do not hold.
                self._bounds_of_p = None
                self._bound(rounds, posterior, seen)
                return
            lower, upper = found
        crossed = lower > upper  # for an empty set, or by rounding
        self._bounds_of_p = np.where(crossed, upper, lower), np.where(crossed, lower, upper)

    def _smooth(
        self,
        rounds: int,
        posterior: RatePosterior,
        seen: _Rewards,
        average: Array,
        sides: tuple[Array, Array],
        about: tuple[float, float],  # m and rho
    ) -> tuple[Array, Array] | None:
        """Returns the part of `sides` inside the ball around m, or None if the ball has to grow.

        `sides` are the bounds of each p by its own rewards.
        """
        reward, _, width = _likelihood_of(posterior)
        center, radius = about
        if self._model is None:
            self._model = _model(posterior)
        largest = _largest_variance(np.minimum(sides[0], average), np.maximum(sides[1], average), counts=reward.counts)
        weights = np.divide(seen.plays, largest, out=np.zeros(len(average)), where=seen.plays > 0)
        # The kernel and B are in reward units.
        spectrum = self._model.spectrum(weights / width**2, (average - center) * width)
        ridges = RATIOS * 2.0 * radius / self.bound**2
        slack = 2.0 * radius - spectrum.misfit(ridges)
        needed = math.sqrt(max(float((-slack / ridges).max()), 0.0))
        if needed > self.bound:
            self.bound *= 2.0 ** math.ceil(math.log2(2.0 * needed / self.bound))
            self.history.append((rounds, self.bound))
            return None
        means, stds = spectrum.moments(None, ridges)
        half = np.sqrt(np.maximum(slack / ridges + self.bound**2, 0.0))[:, None] * stds
        lower, upper = (means - half).max(axis=0) / width + center, (means + half).min(axis=0) / width + center
        return np.maximum(lower, sides[0]), np.minimum(upper, sides[1])


def _likelihood_of(posterior: RatePosterior) -> tuple[KnownReward, float, float]:
    """Returns the reward model, with low and width of the rewards scaled to [0, 1], or 0 and 1 for counts."""
    reward = cast("KnownReward", posterior.rates)
    return reward, *reward.span


def _log_likelihood(total: Array, plays: IndexArray, rate: Array, *, counts: bool) -> Array:
    """Returns the log likelihood of rewards with sum `total`, without terms that do not depend on the rate."""
    with np.errstate(divide="ignore", invalid="ignore"):
        won = np.where(total > 0.0, total * np.log(rate), 0.0)
        if counts:
            return np.asarray(won - plays * rate)
        lost = plays - total
        return np.asarray(won + np.where(lost > 0.0, lost * np.log1p(-rate), 0.0))


def _mixed(seen: _Rewards, *, counts: bool) -> float:
    """Returns the log likelihood averaged over Jeffreys' priors of each arm's rate.

    It covers rewards that came all at once, too.
    """
    from scipy.special import betaln, gammaln  # slow to import

    if counts:  # The priors are gamma distributions of shape 1/2 and rate 1.
        shape = seen.total + 0.5
        return float((gammaln(shape) - shape * np.log1p(seen.plays) - gammaln(0.5)).sum())
    return float((betaln(seen.total + 0.5, seen.plays - seen.total + 0.5) - betaln(0.5, 0.5)).sum())


def _divergence(a: Array, b: Array, *, counts: bool) -> Array:
    """Returns d(a, b) of one reward, nats."""
    one = np.ones(1, dtype=np.int64)
    return _log_likelihood(a, one, a, counts=counts) - _log_likelihood(a, one, b, counts=counts)


def _inverted(average: Array, plays: IndexArray, radius: float, *, counts: bool) -> tuple[Array, Array]:
    """Returns the interval n d(ybar, p) <= radius, slightly too wide, `(N,)` each.

    Newton's steps from outside stay outside. The first point follows from d(a, b) >= (a - b)^2 / 2 V.
    """
    arms = len(plays)
    share = np.divide(radius, plays, out=np.full(arms, 1e9), where=plays > 0)
    high, low = average + share + np.sqrt(share * (share + 2.0 * average)), average - np.sqrt(2.0 * average * share)
    if not counts:
        rest = 1.0 - average
        high = np.minimum(np.minimum(high, average + np.sqrt(2.0 * rest * share)), 1.0 - EDGE)
        low = np.maximum(low, average - share - np.sqrt(share * (share + 2.0 * rest)))
    ends, start = np.concatenate([np.maximum(low, EDGE), high]), np.concatenate([average, average])
    for _ in range(STEPS):
        excess = _divergence(start, ends, counts=counts) - np.concatenate([share, share])
        # In ln p, or ln p / (1 - p), d is convex as well and nearly straight far out. Its slope there is p - a.
        beyond = ends - start
        step = np.divide(excess, beyond, out=np.zeros(2 * arms), where=(excess > 0.0) & (beyond != 0.0))
        odds = ends * np.exp(-step) if counts else ends / (1.0 - ends) * np.exp(-step)
        ends = odds if counts else odds / (1.0 + odds)
    lower, upper = ends[:arms], ends[arms:]
    seen = plays > 0
    lower = np.where(seen & (lower > EDGE), lower, 0.0)
    if counts:
        return lower, np.where(seen, upper, LARGEST_REWARD)
    return lower, np.where(seen & (upper < 1.0 - EDGE), upper, 1.0)


def _largest_variance(low: Array, high: Array, *, counts: bool) -> Array:
    """Returns the largest v(u) for low <= u <= high."""
    if counts:
        return np.asarray(high)
    nearest = np.clip(0.5, low, high)
    return np.asarray(nearest * (1.0 - nearest))


@final
@description(frozen=True, kw_only=True)
class RateQuantiles(Confidence):
    """Bounds of a rate that an arm's own rewards leave possible, for which nothing is proved.

    They are those of exact intervals of clicks (Clopper & Pearson 1934) or counts (Garwood 1936). They are widened to
    the posterior mean, and forget that the policy chose what was played. They stay within the possible
    rates. Where no `RatePosterior` learns the rewards, they are that many standard deviations.

    Attributes:
        deviations: the bounds have the probability of so many standard deviations of a normal law to either side.
    """

    deviations: float = 2.0

    def __post_init__(self) -> None:
        why = "It is how far to either side the bounds reach."
        settle(self, deviations=number("deviations", self.deviations, low=0.0, high=LARGEST_REWARD, why=why))

    def bounds(self, t: int, progress: Progress) -> Bounds:  # noqa: ARG002
        """Returns the quantiles of the rates of all rewards so far."""
        answers = progress.posterior if progress.answers is None else progress.answers
        rates = rates_of(answers)
        return Symmetric(self.deviations) if rates is None else _Quantiles(rates, self.deviations)


@final
class _Quantiles(Bounds):
    """The quantiles of one round."""

    pointwise: ClassVar[bool] = False
    moves: ClassVar[bool] = True

    def __init__(self, posterior: RatePosterior, deviations: float) -> None:
        self._posterior, self._deviations = posterior, deviations

    def __call__(self, mean: Array, std: Array, rows: Any = None) -> Envelope:
        known = self._posterior.reward_means
        cells = None if rows is None else np.asarray(rows, dtype=np.intp)
        low, high = OwnRates(self._posterior).quantiles(self._deviations, cells)
        known = known if cells is None else known[cells]
        lower, upper = mean + np.minimum(low - known, 0.0), mean + np.maximum(high - known, 0.0)
        return Envelope(mean, std, lower=lower, upper=upper)
