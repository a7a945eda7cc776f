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
from .table import ArmFunction

MOST_FUNCTIONS = 1_000_000
SETTLED = 2048  # points of a box, a power of two, at which a joint sample is right


@overload
def gp_sample(kernel: Kernel, domain: Arms, *, seed: int | Sequence[int], waves: int = ...) -> ArmFunction: ...
@overload
def gp_sample(kernel: Kernel, domain: Box | Space, *, seed: int | Sequence[int], waves: int = ...) -> Path: ...


def gp_sample(kernel: Kernel, domain: Domain, *, seed: int | Sequence[int], waves: int = 1024) -> ArmFunction | Path:
    """A function drawn from the Gaussian process with mean 0 and this kernel, a function of points `(n, d)`.

    Args:
        kernel: the covariance; on a box or space any kernel of coordinates.
        domain: on arms the joint sample is exact; elsewhere it is a path of random waves, whose covariance is right to
            a few thousandths in few dimensions, or a joint sample at quasi-random points with the kernel's own
            interpolation between them, where the kernel's spectrum is not known (`gp/prior_paths.py`).
        seed: the same for the same sample; functions of different seeds are independent.
        waves: how many a path has, a power of two.
    """
    check_domain("domain", domain)
    check_kernel("kernel", kernel)
    if isinstance(domain, Arms):
        return ArmFunction(domain, prior_values(kernel, domain, seed))
    nothing_seen = PointPosterior(kernel, domain.dimension, regularization=1.0)
    path = sample_path(nothing_seen, world_generator(seed, "function"), waves=waves)
    return path.fix(_spread(domain, SETTLED))


def _spread(domain: Box | Space, count: int) -> Array:
    """Quasi-random points of the domain, always the same, `(count, d)`."""
    from scipy.stats import qmc

    unit = qmc.Sobol(domain.dimension, scramble=True, rng=np.random.default_rng(0)).random(count)
    points = domain.lower + unit * (domain.upper - domain.lower)
    return domain.snap(points) if isinstance(domain, Space) else points


def drifting_samples(
    kernel: Kernel, arms: Arms, *, rounds: int, rate: float, seed: int | Sequence[int]
) -> list[ArmFunction]:
    """A function for each round, f_{t+1} = sqrt(1 - rate) f_t + sqrt(rate) g_{t+1}, each g_t a sample of the prior.

    The world of TV-GP-UCB (Bogunovic, Scarlett & Cevher 2016, eq. 3), for
    `Environment(functions, domain=arms, change_points=range(1, rounds))`.

    Args:
        kernel: the covariance of f_t, for every t.
        arms: N of them; the functions take 8 N `rounds` bytes.
        rounds: T.
        rate: the share of f that is new in each round.
        seed: as of `gp_sample`, whose sample is the first function.
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
    """An exact joint sample at arms, `(N,)`."""
    return _symmetric_root(kernel, arms) @ world_generator(seed, "function").standard_normal(len(arms))


@lru_cache(maxsize=2)  # replicates draw from one kernel again and again
def _symmetric_root(kernel: Kernel, arms: Arms) -> Array:
    """K^{1/2}, `(N, N)`.

    Unlike a pivoted Cholesky factor it depends on K continuously, so that rounding does not change a seed's sample.
    """
    values, vectors = np.linalg.eigh(kernel.between_arms(arms.points, ALL, ALL))
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)
