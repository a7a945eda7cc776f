"""Algorithm 1 of Avanesov's GP-UCB-CPD: a test for a change between two halves of some pairs.

| symbol | name | meaning | shape |
|---|---|---|---|
| n | `half` | pairs in each half | |
| mu_1, mu_2 | | posterior means fitted on the first and the second half | |
| n rho_n | `ridge` | added to the diagonal of each half's kernel matrix | as k |
| Delta^2 | `distance` | squared L2 distance of the two means over the domain | reward units^2 |
| theta_n | `threshold` | a change is reported if Delta^2 > theta_n | reward units^2 |
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dposv

from ..._utils.checks import LARGEST_REWARD, Array, finite_array, many
from ..._utils.errors import InvalidInput
from ...domains.domain import Domain
from ...kernels import Kernel
from ...kernels.factorization import LEAST_REGULARIZATION
from .geometry import Geometry, make_geometry
from .schedules import Schedule, default_ridge, default_threshold, schedule_value, smoothness


@final
@dataclass(frozen=True, slots=True)
class ChangeTest:
    """Result of a test, which is true in an `if` if the test found a change.

    Attributes:
        changed: True if `distance` exceeds `threshold`.
        distance: Delta^2, averaged (or integrated) over the domain, reward units squared.
        threshold: theta_n, in the same units.
        half: n, the pairs in each half, or 0 if there were too few for any test.
        error: standard error of `distance` if it is quasi-Monte Carlo, 0 if it is exact.

    >>> import nilregret as nr
    >>> test = nr.theory.ChangeTest(changed=True, distance=0.5, threshold=0.2, half=40)
    >>> bool(test)
    True
    """

    changed: bool
    distance: float
    threshold: float
    half: int
    error: float = 0.0

    def __bool__(self) -> bool:
        return self.changed


NO_TEST = ChangeTest(changed=False, distance=0.0, threshold=math.inf, half=0)


@dataclass(frozen=True, slots=True)
class Schedules:
    """A threshold and a ridge for every half-size n."""

    threshold: Schedule
    ridge: Schedule
    least_ridge: float

    def at(self, n: int) -> tuple[float, float]:
        """Returns (theta_n, n rho_n), checked."""
        ridge = schedule_value("ridge", self.ridge, n)
        if not self.least_ridge <= ridge < math.inf:
            raise InvalidInput(
                f"`ridge` is {ridge:g} for n = {n}: it must be finite and at least {self.least_ridge:g}, which is "
                f"{LEAST_REGULARIZATION:g} of the prior variance; below, rounding decides. The paper's is about 2."
            )
        return schedule_value("threshold", self.threshold, n), ridge


def make_schedules(
    geometry: Geometry, *, dimension: int, threshold: Schedule | None, ridge: Schedule | None, distance: str
) -> Schedules:
    """Returns the given schedules, and for missing ones those of Theorem 3.1 with the constants of `schedules`."""
    kernel, size = geometry.kernel, geometry.variance
    alpha = smoothness(kernel)
    if threshold is None:
        threshold = default_threshold(alpha, dimension, size, kernel=kernel)
    if ridge is None:
        ridge = default_ridge(alpha, dimension, size, distance=distance)
    return Schedules(threshold, ridge, LEAST_REGULARIZATION * size)


def detect_change(
    points: Any,
    rewards: npt.ArrayLike,
    kernel: Kernel,
    *,
    domain: Domain,
    threshold: Schedule | None = None,
    ridge: Schedule | None = None,
    distance: str = "average",
    weights: npt.ArrayLike | None = None,
) -> ChangeTest:
    """Tests whether the function changed between the first and the second half of 2n pairs (Avanesov, Algorithm 1).

    Args:
        points: `(2n, d)`, in the order in which they were played. The theory needs points drawn uniformly.
        rewards: `(2n,)`. Subtract their prior mean beforehand, since the prior mean is 0 here.
        kernel: prior covariance.
        domain: domain over which the two means are compared.
        threshold: theta_n, reward units squared: a number or a function of n (`PowerLaw`). The default is that of the
            paper's experiments, 2.6 * prior variance * n^{-(2 alpha + d) / (2 alpha + d + 1)}. Kernels other than
            `Matern` and `SquaredExponential` have no default.
        ridge: n rho_n, in units of the kernel: a number or a function of n. The default is c * prior variance * n^{1 /
            (2 alpha + d + 1)} with c = 2 for the average and 10 for the integral.
        distance: "average" (1 / abs(D) times the integral) or "integral" (as eq. 2.4 has it).
        weights: quadrature weights of arms, `(N,)`, equal by default.

    Returns:
        A `ChangeTest`. `distance` is exact to rounding on arms. On boxes it is exact for `SquaredExponential`,
        `Linear`, `Matern` of half-integer nu in one dimension, and products of these on separate columns. Elsewhere it
        is quasi-Monte Carlo with the standard error `error`.

    Raises:
        InvalidInput: for an odd number of pairs or fewer than two, and values that are not finite or out of the domain.

    >>> import nilregret as nr
    >>> domain, points = nr.Box(0, 1), [[(7 * i % 40) / 39] for i in range(40)]
    >>> rewards = [float(i >= 20) for i in range(40)]
    >>> nr.theory.detect_change(points, rewards, nr.Matern(2.5, 0.3), domain=domain).changed
    True
    """
    geometry = make_geometry(kernel, domain, distance=distance, weights=weights)
    schedules = make_schedules(
        geometry, dimension=domain.dimension, threshold=threshold, ridge=ridge, distance=distance
    )
    places, y = geometry.place("points", points), finite_array("rewards", rewards)
    n = _half(len(places), y)
    theta, lam = schedules.at(n)
    first, second = (
        mean_weights(geometry.covariances(places[half], places[half]) + lam * np.eye(n), y[half])
        for half in (slice(n), slice(n, 2 * n))
    )
    squared, error = geometry.squared_norm(np.concatenate([first, -second]), geometry.traces(places))  # eq. 2.4
    return ChangeTest(squared > theta, squared, theta, n, error)


def mean_weights(matrix: Array, rewards: Array) -> Array:
    """Returns the weights a = (K + ridge I)^{-1} y `(n,)` of the posterior mean sum_i a_i k(., x_i), eq. 2.2.

    Args:
        matrix: K + ridge I, `(n, n)`.
        rewards: y, `(n,)`.
    """
    _, solution, failed = dposv(matrix, rewards)
    if failed:
        raise InvalidInput(
            "The kernel matrix plus ridge is not positive definite: usually the kernel is not one, or `ridge` is too "
            "small for it. Use a larger `ridge`."
        )
    return solution  # type: ignore[no-any-return]  # LAPACK wrappers have no types


def _half(pairs: int, rewards: Array) -> int:
    if rewards.shape != (pairs,):
        raise InvalidInput(f"`rewards` has shape {rewards.shape} for {many(pairs, 'point')}: one for each point.")
    if pairs < 2 or pairs % 2:
        raise InvalidInput(
            f"There are {pairs} pairs: two halves of one size need an even number of them, at least 2. Usually one "
            "pair too many was kept; leave the oldest out."
        )
    if np.abs(rewards).max() > LARGEST_REWARD:
        raise InvalidInput(f"A reward is beyond {LARGEST_REWARD:g}, where its square may overflow: change the unit.")
    return pairs // 2
