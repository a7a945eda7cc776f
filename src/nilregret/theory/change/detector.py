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

from typing import Any, final

import numpy as np
import numpy.typing as npt

from ..._utils.checks import LARGEST_REWARD, Array, finite_array, frozen, number, shown
from ..._utils.copying import Copyable
from ..._utils.errors import InvalidInput
from ...domains.coordinates import named_points
from ...domains.domain import Domain
from ...kernels import Kernel
from .algorithm import NO_TEST, ChangeTest, make_schedules, mean_weights
from .geometry import make_geometry
from .gram_matrices import GramMatrices
from .schedules import Schedule

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
