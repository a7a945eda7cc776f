"""Calibration of the threshold by simulation of stationary runs, as Remark 3.1 of Avanesov asks.

For each simulated run of m uniform pairs of one function, let S = max over all tests of Delta^2_n n^e. S is the least
constant with which theta_n = constant * n^{-e} raises no false alarm in that run. The constant is the k-th smallest of
R such S, with k = ceil((1 - rate)(R + 1)). A further run of the same kind exceeds it with probability (R + 1 - k) / (R
+ 1) <= rate on average over the calibration. Given the calibration, this probability has the distribution Beta(R + 1 -
k, k), for any continuous distribution of S.
"""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np
import numpy.typing as npt

from ..._utils.checks import LARGEST_REWARD, LARGEST_SEED, Array, finite_array, frozen, integer, many, number
from ..._utils.dataclass import dataclass
from ..._utils.randomness import Draws, Rng
from ...domains.domain import Arms, Domain, check_domain
from ...domains.search.designs import uniform
from ...errors import InvalidInput
from ...kernels import Kernel, check_kernel
from ...kernels.factorization import LEAST_REGULARIZATION, covariance_root, draws_of_root
from .detector import ChangeDetector
from .geometry import make_geometry
from .schedules import STEEPEST, PowerLaw, Schedule, detection_exponent, smoothness, uniform_count

MOST_RUNS, MOST_PAIRS = 1_000_000, 10_000  # limits of the simulation, where a run of m pairs takes O(m^3)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """A threshold and its precision.

    Attributes:
        threshold: constant * n^{-e}, for a detector.
        rate: false-alarm probability of a whole run, as requested.
        rate_error: standard deviation, over calibrations, of the threshold's actual probability.
        lower: lower end of a 95% confidence interval for the constant of exactly `rate`.
        upper: upper end, infinite if the runs were too few.
        count: uniform pairs in a run.
        maxima: S of every run, sorted, `(runs,)`.

    >>> import nilregret as nr
    >>> found = nr.theory.calibrate_threshold(
    ...     nr.Matern(2.5, 1.0), domain=nr.Arms.grid(0, 5, 11), noise=0.1, count=8, runs=20
    ... )
    >>> round(found.threshold.exponent, 3)
    -0.857
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
        """Constant of the threshold, reward units squared."""
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
    """Returns a threshold that stationary runs exceed with probability `rate`.

    The runs are samples of the prior, with points drawn uniformly and Gaussian noise. Functions with reward 0
    everywhere would not do: most of Delta^2 comes from the function values in the two halves, not from the noise.

    Args:
        kernel: prior covariance, also of the simulated functions.
        domain: domain of the points.
        noise: standard deviation of the noise, reward units.
        count: uniform pairs of a run. Give this or `horizon`.
        horizon: rounds without a change, of which Algorithm 2 plays some uniformly.
        exploration: xi of Algorithm 2.
        rate: false-alarm probability of a run.
        runs: R, at least 1 / rate - 1.
        seed: seed of the simulation. Run i has a stream of its own.
        exponent: -e. The default is Theorem 3.1's, with -1 (that of infinite alpha) for kernels that state no
            smoothness.
        ridge: ridge of the detector, as in `detect_change`.
        distance: distance of the detector, as in `detect_change`.
        weights: weights of the detector, as in `detect_change`.

    >>> import nilregret as nr
    >>> found = nr.theory.calibrate_threshold(
    ...     nr.Matern(2.5, 1.0), domain=nr.Arms.grid(0, 5, 11), noise=0.1, count=8, runs=20
    ... )
    >>> found.lower <= found.constant <= found.upper
    True
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
    maxima = np.sort(np.array([_largest(detector, domain, m, noise, growth, seed, run) for run in range(runs)]))
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
    detector: ChangeDetector, domain: Domain, count: int, noise: float, growth: Array, seed: int, run: int
) -> float:
    """Returns S of one run."""
    rng = Draws(f"calibration {seed} {run}")
    points = uniform_points(domain, count, rng)
    rewards = _prior_sample(detector, points, rng) + noise * rng.standard_normal(count)
    detector.reset()
    largest = 0.0
    for point, reward in zip(points, rewards.tolist(), strict=True):
        detector.add(point, reward)
        largest = max(largest, float((detector.distances * growth[: len(detector.distances)]).max(initial=0.0)))
    return largest


def _prior_sample(detector: ChangeDetector, points: Array, rng: Rng) -> Array:
    """Returns a sample of the Gaussian process at the points, `(n,)`."""
    root = covariance_root(detector.covariances(points))
    return np.asarray(draws_of_root(root, rng, 1)[0])


def uniform_points(domain: Domain, count: int, rng: Rng) -> Array:
    """Returns points `(count, d)` drawn uniformly, as forced rounds draw them.

    In a space all values of a choice or a whole number are as likely.

    >>> import nilregret as nr
    >>> import numpy as np
    >>> nr.theory.uniform_points(nr.Box([0, 0], [1, 1]), 5, np.random.default_rng(0)).shape
    (5, 2)
    """
    if isinstance(domain, Arms):
        return np.asarray(domain.points[rng.integers(len(domain), size=count)])
    return uniform(domain, count, rng)


def _beta_deviation(a: int, b: int) -> float:
    return math.sqrt(a * b / (a + b + 1)) / (a + b)


def _interval(maxima: Array, rate: float) -> tuple[float, float]:
    """Returns order statistics between which the (1 - rate) quantile lies with probability at least 0.95."""
    from scipy.stats import binom

    runs = len(maxima)
    low, high = (int(binom.ppf(level, runs, 1.0 - rate)) for level in (0.025, 0.975))
    padded = np.concatenate([[0.0], maxima, [math.inf]])
    return float(padded[low]), float(padded[high + 1])


CANDIDATES = np.logspace(-4.0, 2.0, 25)  # in units of the prior variance


@final
@dataclass(frozen=True, slots=True, eq=False)
class RidgeChoice:
    """The ridge with the smallest leave-one-out error.

    Attributes:
        ridge: n rho, in units of k: a bandit's `regularization`.
        pairs: n.
        candidates: ridges tried, ascending, `(c,)`.
        errors: mean squared leave-one-out error of each, reward units squared, `(c,)`.

    >>> import nilregret as nr
    >>> points = [[i / 9] for i in range(10)]
    >>> rewards = [x * (1 - x) for (x,) in points]
    >>> choice = nr.theory.cross_validate_ridge(points, rewards, nr.Matern(2.5, 0.3), domain=nr.Box(0, 1))
    >>> len(choice.candidates), round(choice.schedule(2.5, 1).exponent, 3)
    (25, 0.143)
    """

    ridge: float
    pairs: int
    candidates: Array
    errors: Array

    @property
    def rho(self) -> float:
        """Ridge / n, the paper's regularization parameter."""
        return self.ridge / self.pairs

    def schedule(self, alpha: float, dimension: int) -> PowerLaw:
        """Returns the detector's n -> n rho_n of eq. 3.5 through this ridge: c = ridge / n^{1 / (2 alpha + d + 1)}."""
        exponent = 1.0 - detection_exponent(alpha, dimension)
        return PowerLaw(self.ridge / self.pairs**exponent, exponent)


def cross_validate_ridge(
    points: Any, rewards: npt.ArrayLike, kernel: Kernel, *, domain: Domain, candidates: npt.ArrayLike | None = None
) -> RidgeChoice:
    """Returns the ridge that predicts left-out rewards best (Avanesov, Remark 3.1: on the uniformly sampled pairs).

    Args:
        points: `(n, d)`, n >= 2, of the domain.
        rewards: `(n,)`. Subtract their prior mean beforehand, since the prior mean is 0 here.
        kernel: prior covariance.
        domain: domain of the points.
        candidates: ridges to choose from, in units of k, by default 25 from 1e-4 to 100 prior variances. Ties go to the
            largest.

    Raises:
        InvalidInput: for fewer than two pairs, values that are not finite, ridges that are not positive.

    >>> import nilregret as nr
    >>> points = [[i / 9] for i in range(10)]
    >>> rewards = [x * (1 - x) for (x,) in points]
    >>> nr.theory.cross_validate_ridge(points, rewards, nr.Matern(2.5, 0.3), domain=nr.Box(0, 1)).ridge
    0.0001
    """
    geometry = make_geometry(kernel, domain)
    places, y = geometry.place("points", points), finite_array("rewards", rewards)
    if y.shape != (len(places),) or len(y) < 2:
        raise InvalidInput(
            f"`rewards` has shape {y.shape} for {many(len(places), 'point')}: it takes two pairs at least, and one "
            "reward for each point."
        )
    if np.abs(y).max() > LARGEST_REWARD:
        raise InvalidInput(f"A reward is beyond {LARGEST_REWARD:g}, where its square may overflow: change the unit.")
    least = LEAST_REGULARIZATION * geometry.variance
    ridges = geometry.variance * CANDIDATES if candidates is None else np.sort(finite_array("candidates", candidates))
    if ridges.ndim != 1 or len(ridges) == 0 or ridges[0] < least:
        raise InvalidInput(f"`candidates` must be a list of ridges, each at least {least:g}: below, rounding decides.")
    values, vectors = np.linalg.eigh(geometry.covariances(places, places))
    inverse = 1.0 / (np.maximum(values, 0.0) + ridges[:, None])  # eigenvalues of M, one row for each ridge
    residuals = ((inverse * (vectors.T @ y)) @ vectors.T) / (inverse @ (vectors.T**2))
    errors = (residuals**2).mean(axis=1)
    best = int(np.flatnonzero(errors == errors.min())[-1])
    return RidgeChoice(float(ridges[best]), len(y), frozen(ridges), frozen(errors))
