"""Functions whose norm in the kernel's Hilbert space (RKHS) is known exactly.

| symbol | name | meaning | shape |
|---|---|---|---|
| x_i | `centers` | centers of the kernel functions | (m, d) |
| alpha | `weights` | f = sum_i alpha_i k(., x_i) | (m,) |
| B | `norm` | RKHS norm of f: B^2 = alpha^T K alpha, K = k(centers, centers) | |

B bounds this norm in Chowdhury and Gopalan (2017), and its square in Theorem 3 of Srinivas et al. (2010).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import final, overload

import numpy as np
import numpy.typing as npt

from .._utils.checks import (
    LARGEST_REWARD,
    LARGEST_VARIANCE,
    Array,
    finite_array,
    frozen,
    integer,
    many,
    number,
    points_array,
    shown,
)
from .._utils.randomness import world_generator
from ..domains.coordinates import MOST_ARMS
from ..domains.domain import Arms, Box, Domain, Space, check_domain
from ..domains.search.designs import uniform
from ..errors import InvalidInput
from ..gp import Path, PointPosterior, sample_path
from ..kernels import ALL, Kernel, check_kernel
from .true_outputs import ArmFunction

MOST_FUNCTIONS = 1_000_000
JOINT = 2048  # The number of points (a power of two) at which a joint sample on a box is exact.


@overload
def gp_sample(kernel: Kernel, domain: Arms, *, seed: int | Sequence[int], waves: int = ...) -> ArmFunction: ...
@overload
def gp_sample(kernel: Kernel, domain: Box | Space, *, seed: int | Sequence[int], waves: int = ...) -> Path: ...


def gp_sample(kernel: Kernel, domain: Domain, *, seed: int | Sequence[int], waves: int = 1024) -> ArmFunction | Path:
    """Returns a sample of the Gaussian process with mean 0 and this kernel, a function of points `(n, d)`.

    On arms the joint sample is exact. Elsewhere the sample is a path of random waves, whose covariance is exact to a
    few thousandths in few dimensions. If the kernel's spectrum is unknown, the sample is a joint one at quasi-random
    points, with the kernel's own interpolation between them (`gp/paths.py`).

    Args:
        kernel: the covariance. On a box or space any kernel of coordinates.
        domain: domain of the points.
        seed: seed of the sample. Functions of different seeds are independent.
        waves: number of waves of a path, a power of two.
    """
    check_domain("domain", domain)
    check_kernel("kernel", kernel)
    if isinstance(domain, Arms):
        return ArmFunction(domain, prior_values(kernel, domain, seed))
    prior = PointPosterior(kernel, domain.dimension, regularization=1.0)
    path = sample_path(prior, world_generator(seed, "function"), waves=waves)
    return path.fix(_spread(domain, JOINT))


def _spread(domain: Box | Space, count: int) -> Array:
    """Returns quasi-random points of the domain, always the same, `(count, d)`."""
    from scipy.stats import qmc

    unit = qmc.Sobol(domain.dimension, scramble=True, rng=np.random.default_rng(0)).random(count)
    points = domain.lower + unit * (domain.upper - domain.lower)
    return domain.snap(points) if isinstance(domain, Space) else points


def drifting_samples(
    kernel: Kernel, arms: Arms, *, rounds: int, rate: float, seed: int | Sequence[int]
) -> list[ArmFunction]:
    """Returns a function for each round, f_{t+1} = sqrt(1 - rate) f_t + sqrt(rate) g_{t+1}, with g_t from the prior.

    This is the model of TV-GP-UCB (Bogunovic, Scarlett & Cevher 2016, eq. 3), for
    `Environment(functions, domain=arms, change_points=range(1, rounds))`.

    Args:
        kernel: the covariance of f_t, for every t.
        arms: the N arms. The functions take 8 N `rounds` bytes.
        rounds: T.
        rate: the share of f that is new in each round.
        seed: seed as of `gp_sample`, whose sample is the first function.
    """
    check_kernel("kernel", kernel)
    if not isinstance(arms, Arms):
        raise InvalidInput(f"`arms` must be Arms, not {shown(arms)}.")
    rounds = integer("rounds", rounds, low=1, high=MOST_FUNCTIONS)
    rate = number("rate", rate, low=0.0, high=1.0, why="It is the share of f that is new in each round.")
    root, rng = _symmetric_root(kernel, arms), world_generator(seed, "function")
    values, functions = np.zeros(len(arms)), []
    for t in range(rounds):
        new = root @ rng.standard_normal(len(arms))
        values = new if t == 0 else math.sqrt(1.0 - rate) * values + math.sqrt(rate) * new
        functions.append(ArmFunction(arms, values))
    return functions


def prior_values(kernel: Kernel, arms: Arms, seed: int | Sequence[int]) -> Array:
    """Returns an exact joint sample at arms, `(N,)`."""
    return _symmetric_root(kernel, arms) @ world_generator(seed, "function").standard_normal(len(arms))


@lru_cache(maxsize=2)  # Replicates often draw from the same kernel.
def _symmetric_root(kernel: Kernel, arms: Arms) -> Array:
    """Returns K^{1/2}, `(N, N)`.

    Unlike a pivoted Cholesky factor, K^{1/2} is continuous in K, so rounding does not change the sample of a seed.
    """
    values, vectors = np.linalg.eigh(kernel.between_arms(arms.points, ALL, ALL))
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


CENTERS = 20  # The number of kernel functions in a random function on a continuous domain.


@final
class RKHSFunction:
    """f = sum_i alpha_i k(., x_i), a function of points `(n, d)` whose norm is known exactly.

    Args:
        kernel: k.
        centers: the x_i, `(m, d)`.
        weights: the alpha_i, `(m,)`.
    """

    def __init__(self, kernel: Kernel, centers: npt.ArrayLike, weights: npt.ArrayLike) -> None:
        check_kernel("kernel", kernel)
        self.kernel = kernel
        self.centers = frozen(points_array("centers", centers))
        self.weights = frozen(finite_array("weights", weights))
        if self.weights.shape != (len(self.centers),):
            raise InvalidInput(
                f"`weights` has shape {self.weights.shape}: it must be ({len(self.centers)},), one for each center."
            )

    def __call__(self, points: npt.ArrayLike) -> Array:
        """Values at points `(n, d)`, `(n,)`."""
        return np.asarray(self.kernel(points, self.centers) @ self.weights)

    @cached_property
    def norm(self) -> float:
        """The RKHS norm, sqrt(alpha^T K alpha)."""
        return math.sqrt(max(float(self.weights @ self(self.centers)), 0.0))

    def scaled(self, norm: float) -> RKHSFunction:
        """Returns the function times the factor that gives this norm."""
        norm = number("norm", norm, low=0.0, high=LARGEST_REWARD, open_low=True)
        if self.norm == 0.0:
            raise InvalidInput("This function is zero everywhere: no factor gives it another norm.")
        return RKHSFunction(self.kernel, self.centers, self.weights * (norm / self.norm))


def rkhs_function(
    kernel: Kernel, domain: Domain, *, seed: int | Sequence[int], norm: float | None = None, centers: int | None = None
) -> RKHSFunction:
    """Returns a random function of the RKHS: standard normal weights, at every arm or at uniformly drawn centers.

    Args:
        kernel: k.
        domain: domain of the centers.
        seed: seed of centers and weights.
        norm: the RKHS norm, random unless given.
        centers: number of centers. On arms it is the number of arms that are centers, all unless given. Elsewhere it is
            20 unless given.
    """
    check_domain("domain", domain)
    rng = world_generator(seed, "function")
    count = None if centers is None else integer("centers", centers, low=1, high=MOST_ARMS)
    if isinstance(domain, Arms):
        points = domain.points
        if count is not None and count > len(points):
            raise InvalidInput(f"`centers` is {count} for {many(len(points), 'arm')}: a center is one of them.")
        if count is not None:
            points = points[np.sort(rng.choice(len(points), count, replace=False))]
    else:
        points = uniform(domain, CENTERS if count is None else count, rng)
    function = RKHSFunction(kernel, points, rng.standard_normal(len(points)))
    return function if norm is None else function.scaled(norm)


def rkhs_fit(kernel: Kernel, arms: Arms, values: npt.ArrayLike, *, regularization: float) -> RKHSFunction:
    """Returns the posterior mean K (K + lambda I)^{-1} values of a GP, as a function with an exact RKHS norm.

    The function is the smoothest one near the values: it minimises |f - values|^2 + lambda |f|_k^2. Its norm shows
    which B a function such as a benchmark needs under a kernel.

    Args:
        kernel: k.
        arms: arms of the values.
        values: one value for each arm, `(N,)`.
        regularization: lambda, in units of the values squared.
    """
    from scipy.linalg import cho_factor, cho_solve

    if not isinstance(arms, Arms):
        raise InvalidInput(f"`arms` must be Arms, not {shown(arms)}.")
    targets = finite_array("values", values)
    if targets.shape != (len(arms),):
        raise InvalidInput(f"`values` has shape {targets.shape}: it must be ({len(arms)},), one for each arm.")
    ridge = number("regularization", regularization, low=0.0, high=LARGEST_VARIANCE, open_low=True)
    check_kernel("kernel", kernel)
    matrix = kernel.between_arms(arms.points, ALL, ALL).copy()
    matrix[np.diag_indices_from(matrix)] += ridge
    return RKHSFunction(kernel, arms.points, cho_solve(cho_factor(matrix, lower=True), targets))


def rkhs_posterior_mean(kernel: Kernel, arms: Arms, *, seed: int | Sequence[int], share: float = 0.01) -> RKHSFunction:
    """Returns a test function of Chowdhury and Gopalan (2017, section 6): K (K + lambda I)^{-1} y, y ~ N(0, K).

    The paper takes lambda = R^2 = 1% of the function's range. Here lambda is `share` of the range of y, which is known
    before f. R is then `range_noise(f(arms.points))`.

    Args:
        kernel: k.
        arms: the decision set, in the paper `Box(0, 1).sample(100, seed=...)`.
        seed: seed of y.
        share: lambda divided by the range of y.
    """
    rewards = prior_values(kernel, arms, seed)
    return rkhs_fit(kernel, arms, rewards, regularization=range_noise(rewards, share=share) ** 2)


def range_noise(values: npt.ArrayLike, *, share: float = 0.01) -> float:
    """Returns the standard deviation R with R^2 = `share` of the range (Chowdhury and Gopalan 2017, section 6)."""
    numbers = finite_array("values", values)
    if np.abs(numbers).max(initial=0.0) > LARGEST_REWARD:
        raise InvalidInput(f"`values` has one beyond {LARGEST_REWARD:g}: change the unit.")
    spread = float(np.ptp(numbers)) if numbers.size else 0.0
    if spread == 0.0:
        raise InvalidInput("`values` are all the same: a share of their range is no noise.")
    return math.sqrt(number("share", share, low=0.0, high=LARGEST_REWARD, open_low=True) * spread)


def literal_norm(kernel: Kernel, arms: Arms, values: npt.ArrayLike) -> float:
    """Returns sqrt(f^T K f), with f the vector of values: B as Chowdhury and Gopalan (2017, section 6) print it.

    This is not the RKHS norm, which is sqrt(f^T K^{-1} f). It is usually far larger (tens against 2 to 4).
    """
    check_kernel("kernel", kernel)
    numbers = finite_array("values", values)
    if not isinstance(arms, Arms) or numbers.shape != (len(arms),):
        raise InvalidInput(f"`values` has shape {numbers.shape}: `arms` must be Arms, with one value for each.")
    return math.sqrt(max(float(numbers @ kernel.between_arms(arms.points, ALL, ALL) @ numbers), 0.0))
