"""The constant of the threshold by simulation, as Remark 3.1 of Avanesov asks: large enough for stationary data.

For each simulated run of m uniform pairs of one function, S = max over all tests of Delta^2_n n^e: the least constant
with which theta_n = constant * n^{-e} raises no false alarm in that run. The constant is the k-th smallest of R such
S, k = ceil((1 - rate)(R + 1)). A further run of the same kind exceeds it with probability (R + 1 - k) / (R + 1) <= rate
on average over the calibration, and given the calibration with a Beta(R + 1 - k, k) probability, whatever the
distribution of S (if continuous).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from ..._utils.checks import LARGEST_REWARD, LARGEST_SEED, Array, frozen, integer, many, number
from ..._utils.errors import InvalidInput
from ...domains.domain import Arms, Domain, Space, check_domain
from ...gp.factorization import covariance_root
from ...kernels import Kernel, check_kernel
from .detector import ChangeDetector
from .schedules import STEEPEST, PowerLaw, Schedule, detection_exponent, smoothness, uniform_count

MOST_RUNS, MOST_PAIRS = 1_000_000, 10_000  # simulated; a run of m pairs costs O(m^3)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """A threshold and how well it is known.

    Attributes:
        threshold: constant * n^{-e}, to be given to a detector.
        rate: the false-alarm probability asked for, of a whole run.
        rate_error: standard deviation, over calibrations, of the probability that the threshold has.
        lower: from here to `upper` lies, with 95% confidence, the constant of exactly `rate`.
        upper: see `lower`; infinite where the runs were too few to say.
        count: uniform pairs in a run.
        maxima: S of every run, sorted, `(runs,)`.
    """

    threshold: PowerLaw
    rate: float
    rate_error: float
    lower: float
    upper: float
    count: int
    maxima: Array

    @property
    def constant(self) -> float:
        """The constant of the threshold, reward units squared."""
        return self.threshold.constant


def calibrate_threshold(
    kernel: Kernel,
    *,
    domain: Domain,
    noise: float,
    count: int | None = None,
    horizon: int | None = None,
    exploration: float = 3**0.5,
    rate: float = 0.1,
    runs: int = 200,
    seed: int = 0,
    exponent: float | None = None,
    ridge: Schedule | None = None,
    distance: str = "average",
    weights: npt.ArrayLike | None = None,
) -> Calibration:
    """A threshold that stationary runs exceed with probability `rate`.

    The runs are samples of the prior (functions with a reward of 0 everywhere would not do: most of Delta^2 comes from
    what the two halves saw of the function, not from the noise), points drawn uniformly, Gaussian noise.

    Args:
        kernel: prior covariance, also of the simulated functions.
        domain: where.
        noise: standard deviation of the noise, reward units.
        count: uniform pairs of a run; or
        horizon: rounds without a change, of which Algorithm 2 plays some uniformly (`exploration` is its xi).
        exploration: xi.
        rate: false-alarm probability of a run.
        runs: R; at least 1 / rate - 1.
        seed: of the simulation; run i uses `default_rng([seed, i])`.
        exponent: -e. Default: Theorem 3.1's, with that of infinite alpha, -1, for kernels that state no smoothness.
        ridge: as of `detect_change`, and as the detector will have it.
        distance: likewise.
        weights: likewise.
    """
    check_domain("domain", domain)
    check_kernel("kernel", kernel)
    m = _count(count, horizon, exploration)
    level = number("rate", rate, low=1.0 / MOST_RUNS, high=1.0, open_high=True)
    noise = number("noise", noise, low=0.0, high=LARGEST_REWARD, why="It is a standard deviation.")
    runs, seed = integer("runs", runs, low=1, high=MOST_RUNS), integer("seed", seed, low=0, high=LARGEST_SEED)
    k = _rank(level, runs)
    if exponent is None:
        alpha = smoothness(kernel)
        exponent = -detection_exponent(math.inf if alpha is None else alpha, domain.dimension)
    detector = ChangeDetector(
        kernel, domain=domain, threshold=math.inf, ridge=ridge, distance=distance, weights=weights
    )
    exponent = number("exponent", exponent, low=-STEEPEST, high=STEEPEST, why="It is the power of n, minus e.")
    growth = np.arange(1.0, m // 2 + 1) ** -exponent
    maxima = np.sort(np.array([_largest(detector, domain, m, noise, growth, [seed, run]) for run in range(runs)]))
    lower, upper = _interval(maxima, level)
    threshold, error = PowerLaw(float(maxima[k - 1]), exponent), _beta_deviation(runs + 1 - k, k)
    return Calibration(threshold, level, error, lower, upper, m, frozen(maxima))


def _count(count: int | None, horizon: int | None, exploration: float) -> int:
    exploration = number("exploration", exploration, low=0.0)
    if (count is None) == (horizon is None):
        raise InvalidInput("Give either `count`, the uniform pairs of a run, or `horizon`, its rounds.")
    if horizon is not None:
        count = uniform_count(integer("horizon", horizon, low=2), exploration=exploration)
    return integer("count", count, low=2, high=MOST_PAIRS, why="A test needs two pairs.")


def _rank(rate: float, runs: int) -> int:
    """Returns k, the place of the constant among the maxima of R runs."""
    k = math.ceil((1.0 - rate) * (runs + 1) - 1e-9)
    if k > runs:
        raise InvalidInput(
            f"{many(runs, 'run')} cannot show a false-alarm rate of {rate:g}: it takes at least "
            f"{math.ceil(1 / rate - 1)}, and ten times as many for a reliable constant."
        )
    return k


def _largest(
    detector: ChangeDetector, domain: Domain, count: int, noise: float, growth: Array, key: list[int]
) -> float:
    """S of one run."""
    rng = np.random.default_rng(key)
    points = uniform_points(domain, count, rng)
    rewards = _prior_sample(detector, points, rng) + noise * rng.standard_normal(count)
    detector.reset()
    largest = 0.0
    for point, reward in zip(points, rewards.tolist(), strict=True):
        detector.add(point, reward)
        largest = max(largest, float((detector.distances * growth[: len(detector.distances)]).max(initial=0.0)))
    return largest


def _prior_sample(detector: ChangeDetector, points: Array, rng: np.random.Generator) -> Array:
    """A sample of the Gaussian process at the points, `(n,)`."""
    root = covariance_root(detector.covariances(points))
    return np.asarray(root @ rng.standard_normal(root.shape[1]))


def uniform_points(domain: Domain, count: int, rng: np.random.Generator) -> Array:
    """Points `(count, d)` drawn uniformly (of a space: uniformly in the encoding, then snapped)."""
    if isinstance(domain, Arms):
        return np.asarray(domain.points[rng.integers(len(domain), size=count)])
    points = rng.uniform(domain.lower, domain.upper, (count, domain.dimension))
    return domain.snap(points) if isinstance(domain, Space) else points


def _beta_deviation(a: int, b: int) -> float:
    return math.sqrt(a * b / (a + b + 1)) / (a + b)


def _interval(maxima: Array, rate: float) -> tuple[float, float]:
    """Order statistics between which the (1 - rate) quantile lies with probability at least 0.95."""
    from scipy.stats import binom

    runs = len(maxima)
    low, high = (int(binom.ppf(level, runs, 1.0 - rate)) for level in (0.025, 0.975))
    padded = np.concatenate([[0.0], maxima, [math.inf]])
    return float(padded[low]), float(padded[high + 1])
