"""Algorithm 1 on every tail of a growing list of pairs: lines 10-18 of Avanesov's Algorithm 2.

| symbol | name | meaning | shape |
|---|---|---|---|
| m | `count` | pairs so far | |
| n | | half-size of a test, 1 .. floor(m / 2) | |
| a_{j,n} | `_fits[j][n - 1]` | weights of the mean fitted on the n pairs that end with pair j | (n,) |
| V | | row n: -a_{m-n,n} and a_{m,n} at the pairs they belong to | (floor(m / 2), m) |

The ridge depends on n, so no factorisation of one size serves another. Windows can be shared, however: the second half
of size n at time m is the first half of size n at time m + n. Each half is fitted once. The distances of all half-sizes
are then the diagonal of V g V^T, two matrix products.
"""

from __future__ import annotations

import math
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dposv

from ..._utils.checks import LARGEST_REWARD, Array, finite_array, frozen, many, number, shown
from ..._utils.copying import Copyable
from ..._utils.dataclass import dataclass
from ...domains.coordinates import named_points
from ...domains.domain import Domain
from ...errors import InvalidInput
from ...kernels import Kernel
from ...kernels.factorization import LEAST_REGULARIZATION
from .geometry import Geometry, Places, make_geometry
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


FIRST_ROOM = 32  # initial capacity, in pairs


@final
class GramMatrices(Copyable):
    """Both matrices, which grow by a row and a column for each pair in O(m q).

    Copies share memory until one of them grows.
    """

    def __init__(self, geometry: Geometry) -> None:
        self.geometry = geometry
        self.size = 0
        self._arrays: list[Array] = []  # places, traces, rewards, K and g, of which the last two are square
        self._shared = False

    @property
    def traces(self) -> Array:
        """Traces of the pairs, `(m, q)`."""
        return self._arrays[1][: self.size]

    @property
    def rewards(self) -> Array:
        """y, `(m,)`."""
        return self._arrays[2][: self.size]

    @property
    def covariances(self) -> Array:
        """K, `(m, m)`."""
        return self._arrays[3][: self.size, : self.size]

    @property
    def overlaps(self) -> Array:
        """g, `(m, m)`."""
        return self._arrays[4][: self.size, : self.size]

    def append(self, place: Places, reward: float) -> None:
        """Adds a pair with a place of shape `(1,)` or `(1, d)`."""
        trace = self.geometry.traces(place)
        self._make_room(place, trace)
        i, j = self.size, self.size + 1
        places, traces, rewards, covariances, overlaps = self._arrays
        places[i], traces[i], rewards[i] = place[0], trace[0], reward
        covariances[i, :j] = covariances[:j, i] = self.geometry.covariances(place, places[:j])[0]
        overlaps[i, :j] = overlaps[:j, i] = self.geometry.overlaps(trace, traces[:j])[0]
        self.size = j

    def _make_room(self, place: Places, trace: Array) -> None:
        room = len(self._arrays[2]) if self._arrays else 0
        if self.size < room and not self._shared:
            return
        m, more = self.size, max(FIRST_ROOM, room if self.size < room else 2 * room)
        shapes = [(more, *place.shape[1:]), (more, trace.shape[1]), (more,), (more, more), (more, more)]
        fresh = [np.empty(shape) for shape in shapes]
        for position, (old, new) in enumerate(zip(self._arrays, fresh, strict=False)):
            if position < 3:
                new[:m] = old[:m]
            else:
                new[:m, :m] = old[:m, :m]
        self._arrays, self._shared = fresh, False

    def copy(self) -> Self:
        """Returns a copy in O(1). Whichever of the two grows first copies the arrays."""
        self._shared = bool(self._arrays)
        return super().copy()


LARGEST_CACHED = 192  # largest half whose fit is cached, which limits the cache to 30 MB


@final
class ChangeDetector(Copyable):
    """A change test after every pair, of all even-sized tails, that reuses the results of earlier tests.

    Its state is a function of the pairs since the last `reset` alone. The same pairs give the same results to the bit.

    >>> import nilregret as nr
    >>> detector = nr.theory.ChangeDetector(nr.Matern(2.5), domain=nr.Arms.grid(0, 5, 101))
    >>> bool(detector.add(1.0, 0.3)), detector.count
    (False, 1)
    """

    OWNED = ("_values", "_grams", "_fits")

    def __init__(
        self,
        kernel: Kernel,
        *,
        domain: Domain,
        threshold: Schedule | None = None,
        ridge: Schedule | None = None,
        distance: str = "average",
        weights: npt.ArrayLike | None = None,
    ) -> None:
        """Makes a detector with the arguments of `detect_change`. With `threshold=math.inf` it detects nothing."""
        geometry = make_geometry(kernel, domain, distance=distance, weights=weights)
        self._schedules = make_schedules(
            geometry, dimension=domain.dimension, threshold=threshold, ridge=ridge, distance=distance
        )
        self._values: list[tuple[float, float]] = []  # theta_n and n rho_n, as far as they were needed
        self._values_for(1)  # Errors of schedules are raised here.
        self._grams = GramMatrices(geometry)
        self._fits: dict[int, list[Array]] = {}
        self._distances: Array = frozen(np.zeros(0))

    @property
    def count(self) -> int:
        """Pairs since the last reset."""
        return self._grams.size

    @property
    def distances(self) -> Array:
        """Delta^2 of the last tests, for n = 1 .. floor(count / 2)."""
        return self._distances

    def covariances(self, points: npt.ArrayLike) -> Array:
        """Returns the prior covariance between points of the domain, `(n, n)`."""
        geometry = self._grams.geometry
        places = geometry.place("points", points)
        return geometry.covariances(places, places)

    def add(self, point: Any, reward: float) -> ChangeTest:
        """Adds a uniformly drawn pair, then tests every tail of 2n pairs, n = 1 .. floor(count / 2).

        Args:
            point: `(d,)`, for arms that of an arm, for a space also a dict.
            reward: reward minus the prior mean.

        Returns:
            The test of the smallest n that found a change, else the one that came closest. With fewer than two pairs
            nothing is tested, and `half` is 0. After a detection the caller calls `reset`.
        """
        geometry = self._grams.geometry
        one = point if named_points(point) is not None else finite_array("point", point)[None]
        place = geometry.place("point", one)
        if len(place) != 1:
            raise InvalidInput(f"`point` is {shown(point)}: `add` takes one point at a time.")
        why = "Leave out pairs without an answer."
        value = number("reward", reward, low=-LARGEST_REWARD, high=LARGEST_REWARD, why=why)
        schedules = self._values_for((self.count + 1) // 2)
        self._grams.append(place, value)
        if not schedules:
            return NO_TEST
        differences = self._differences(self.count // 2)
        self._distances = frozen(self._squared_norms(differences))
        thresholds = np.array([threshold for threshold, _ in schedules])
        above = np.flatnonzero(self._distances > thresholds)  # line 12, Algorithm 1
        best = int(above[0] if above.size else (self._distances / thresholds).argmax())
        error = 0.0 if geometry.exact else geometry.squared_norm(differences[best], self._grams.traces)[1]
        return ChangeTest(bool(above.size), float(self._distances[best]), float(thresholds[best]), best + 1, error)

    def reset(self) -> None:
        """Drops all pairs (lines 13-14). Kernel, domain and schedules stay."""
        self._grams = GramMatrices(self._grams.geometry)
        self._fits = {}
        self._distances = frozen(np.zeros(0))

    def _values_for(self, halves: int) -> list[tuple[float, float]]:
        for n in range(len(self._values) + 1, halves + 1):
            self._values.append(self._schedules.at(n))
        return self._values[:halves]

    def _differences(self, halves: int) -> Array:
        """Returns the rows of V for n = 1 .. `halves` and caches the second halves."""
        m, y, K = self.count, self._grams.rewards, self._grams.covariances.copy()
        variances, diagonal = K.diagonal().copy(), K.reshape(-1)[:: m + 1]
        V, seconds = np.zeros((halves, m)), []
        for n in range(1, halves + 1):
            start, cut, row = m - 2 * n, m - n, V[n - 1]
            np.add(variances, self._values[n - 1][1], out=diagonal)
            known, second = self._fits.get(cut, ()), mean_weights(K[cut:, cut:], y[cut:])
            first = known[n - 1] if n <= len(known) else mean_weights(K[start:cut, start:cut], y[start:cut])
            np.negative(first, out=row[start:cut])
            row[cut:] = second
            if n <= LARGEST_CACHED:
                seconds.append(second)
        self._fits[m] = seconds
        for j in [j for j, windows in self._fits.items() if j + len(windows) <= m]:
            del self._fits[j]  # No later test begins with any of these windows.
        return V

    def _squared_norms(self, differences: Array) -> Array:
        """Returns Delta^2 (eq. 2.4) of every row."""
        squares = np.einsum("ij,ij->i", differences @ self._grams.overlaps, differences)
        return np.asarray(np.maximum(squares, 0.0))
