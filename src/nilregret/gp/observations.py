"""Distinct points observed, with the number of observations, average target and scatter of each.

An observation may have a `weight`, the common noise variance lambda divided by its own. It then counts as so many
observations, exactly: sums are of weights, averages are weighted, and scatter is the weighted sum of squares.
"""

from __future__ import annotations

import numpy as np

from .._utils.checks import Array, IndexArray
from .._utils.copying import Copyable
from ..errors import InvalidInput

FIRST_ROOM = 64  # distinct points for which memory is allocated at first, and doubled when it is used up
ROWS = ("_points", "_plays", "_told", "_average", "_scatter")


class Observations(Copyable):
    """A table of distinct points `(d,)` and their targets, which may be added, changed and removed in O(1).

    Args:
        dimension: number of columns d of a point.
        ordered: True to keep the points in order of first observation, so that removing a point costs O(n).
    """

    OWNED = ("_place", *ROWS)

    def __init__(self, dimension: int, *, ordered: bool = False) -> None:
        self.size = 0  # n, distinct points
        self._ordered = ordered
        self._place: dict[bytes, int] = {}
        self._points = np.zeros((FIRST_ROOM, dimension))
        self._plays, self._told = np.zeros(FIRST_ROOM), np.zeros(FIRST_ROOM, dtype=np.int64)
        self._average, self._scatter = np.zeros(FIRST_ROOM), np.zeros(FIRST_ROOM)

    @property
    def points(self) -> Array:
        """Distinct points, `(n, d)`. If not `ordered`, the last point takes the place of a removed one."""
        return self._points[: self.size]

    @property
    def plays(self) -> Array:
        """Number of observations of each point by their weights, `(n,)`."""
        return self._plays[: self.size]

    @property
    def average(self) -> Array:
        """Average target of each point, `(n,)`."""
        return self._average[: self.size]

    @property
    def scatter(self) -> float:
        """Sum over points of squared deviations of the targets from their average."""
        return float(np.maximum(self._scatter[: self.size], 0.0).sum())

    @property
    def noisy(self) -> bool | None:
        """True if repeated points had different targets, False if they had equal ones, None if none was repeated."""
        again = self._told[: self.size] > 1
        return bool(self._scatter[: self.size][again].any()) if again.any() else None

    def told(self, place: int) -> int:
        """Returns the number of observations of the point at a place, whatever their weights."""
        return self._told.item(place)

    def add(self, point: Array, target: float, *, count: int = 1, scatter: float = 0.0, weight: float = 1.0) -> int:
        """Adds `count` observations of a point with this average and scatter, and returns the place of the point."""
        place = self._place.setdefault(point.tobytes(), self.size)
        if place == self.size:
            self._make_room()
            self._points[place], self._plays[place], self._told[place] = point, 0.0, 0
            self._average[place] = self._scatter[place] = 0.0
            self.size += 1
        worth = count * weight
        plays, average = self._plays.item(place) + worth, self._average.item(place)
        self._told[place] += count
        change = target - average
        average += change * worth / plays
        self._plays[place], self._average[place] = plays, average
        self._scatter[place] += change * (target - average) * worth + weight * scatter
        return place

    def revise(self, point: Array, old: float, new: float) -> int:
        """Replaces the target of one observation of weight 1, and returns the place of the point."""
        place = self.place(point)
        before = self._average[place]
        self._average[place] += (new - old) / self._plays[place]
        self._scatter[place] += (new - old) * ((new - self._average[place]) + (old - before))
        return place

    def remove(self, point: Array, target: float, *, count: int = 1, scatter: float = 0.0, weight: float = 1.0) -> None:
        """Removes `count` observations of a point with this average and scatter."""
        place = self.place(point)
        worth = count * weight
        plays, left = self._plays.item(place) - worth, self._told.item(place) - count
        if not left:
            self._remove_point(place)
            return
        change = target - self._average[place]
        self._plays[place], self._told[place] = plays, left
        self._average[place] -= change * worth / plays
        self._scatter[place] -= change * (target - self._average[place]) * worth + weight * scatter
        if left == 1:
            self._scatter[place] = 0.0

    def find(self, point: Array) -> int | None:
        """Returns the place of a point, or None if the point has no observation."""
        return self._place.get(point.tobytes())

    def find_all(self, points: Array) -> IndexArray:
        """Returns the place of each point `(m, d)`, `(m,)`, or -1 for one without an observation."""
        width, raw = points.shape[1] * points.itemsize, points.tobytes()
        known = self._place
        return np.array([known.get(raw[at : at + width], -1) for at in range(0, len(raw), width)], dtype=np.intp)

    def place(self, point: Array) -> int:
        """Returns the place of a point, or raises an error if the point has no observation."""
        place = self.find(point)
        if place is None:
            raise InvalidInput(f"The point {point.tolist()} has no observation to change or forget.")
        return place

    def _remove_point(self, place: int) -> None:
        last = self.size - 1
        del self._place[self._points[place].tobytes()]
        if self._ordered:
            for name in ROWS:
                array = getattr(self, name)
                array[place:last] = array[place + 1 : self.size].copy()
            self._place = {key: at - (at > place) for key, at in self._place.items()}
        elif place < last:
            for name in ROWS:
                array = getattr(self, name)
                array[place] = array[last]
            self._place[self._points[place].tobytes()] = place
        self.size = last

    def _make_room(self) -> None:
        if self.size == len(self._plays):
            for name in ROWS:
                array = getattr(self, name)
                setattr(self, name, np.concatenate([array, np.zeros_like(array)]))
