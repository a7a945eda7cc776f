"""Functions drawn from a Gaussian process."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import overload

import numpy as np

from ..._utils.checks import Array, integer, number, shown
from ..._utils.errors import InvalidInput
from ..._utils.randomness import world_generator
from ...domains.domain import Arms, Box, Domain, Space, check_domain
from ...gp import Path, PointPosterior, sample_path
from ...kernels import ALL, Kernel, check_kernel
from .arm_function import ArmFunction

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
    points, with the kernel's own interpolation between them (`gp/prior_paths.py`).

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
