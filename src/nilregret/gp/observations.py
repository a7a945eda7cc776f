"""Distinct points observed, with what was observed at each: plays, average target, scatter around it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array
from .._utils.copying import Copyable
from .._utils.errors import InvalidInput

FIRST_ROOM = 64  # distinct points for which room is made at first; doubled when it is used up


class Observations(Copyable):
    """Points `(d,)` and their targets, which may be added, changed and taken out. O(1) each."""

    OWNED = ("_place", "_points", "_plays", "_average", "_scatter")

    def __init__(self, dimension: int) -> None:
        self.size = 0  # n, distinct points
        self._place: dict[bytes, int] = {}
        self._points = np.zeros((FIRST_ROOM, dimension))
        self._plays = np.zeros(FIRST_ROOM, dtype=np.int64)
        self._average, self._scatter = np.zeros(FIRST_ROOM), np.zeros(FIRST_ROOM)

    @property
    def points(self) -> Array:
        """The distinct points, `(n, d)`; one that is taken out leaves its place to the last."""
        return self._points[: self.size]

    @property
    def plays(self) -> npt.NDArray[np.int64]:
        """Observations of each, `(n,)`."""
        return self._plays[: self.size]

    @property
    def average(self) -> Array:
        """Average target of each, `(n,)`."""
        return self._average[: self.size]

    @property
    def scatter(self) -> float:
        """Sum over points of squared deviations of the targets from their average."""
        return float(np.maximum(self._scatter[: self.size], 0.0).sum())

    @property
    def noisy(self) -> bool:
        """Whether points that came again had several targets, or none came again."""
        again = self.plays > 1
        return not again.any() or bool(self._scatter[: self.size][again].any())

    def add(self, point: Array, target: float) -> None:
        """One more observation at a point."""
        place = self._place.setdefault(point.tobytes(), self.size)
        if place == self.size:
            self._make_room()
            self._points[place], self._plays[place] = point, 0
            self._average[place] = self._scatter[place] = 0.0
            self.size += 1
        plays, average = self._plays.item(place) + 1, self._average.item(place)
        change = target - average
        average += change / plays
        self._plays[place], self._average[place] = plays, average
        self._scatter[place] += change * (target - average)

    def revise(self, point: Array, old: float, new: float) -> None:
        """The target of one observation becomes another."""
        place = self.place(point)
        before = self._average[place]
        self._average[place] += (new - old) / self._plays[place]
        self._scatter[place] += (new - old) * ((new - self._average[place]) + (old - before))

    def remove(self, point: Array, target: float) -> None:
        """Take one observation out."""
        place = self.place(point)
        plays = int(self._plays[place]) - 1
        if not plays:
            self._remove_point(place)
            return
        change = target - self._average[place]
        self._plays[place] = plays
        self._average[place] -= change / plays
        self._scatter[place] = 0.0 if plays == 1 else self._scatter[place] - change * (target - self._average[place])

    def place(self, point: Array) -> int:
        """Where a point stands; an error where it has no observation."""
        place = self._place.get(point.tobytes())
        if place is None:
            raise InvalidInput(f"The point {point.tolist()} has no observation to change or forget.")
        return place

    def _remove_point(self, place: int) -> None:
        last = self.size - 1
        del self._place[self._points[place].tobytes()]
        if place < last:
            for array in (self._points, self._plays, self._average, self._scatter):
                array[place] = array[last]
            self._place[self._points[place].tobytes()] = place
        self.size = last

    def _make_room(self) -> None:
        if self.size == len(self._plays):
            for name in ("_points", "_plays", "_average", "_scatter"):
                array = getattr(self, name)
                setattr(self, name, np.concatenate([array, np.zeros_like(array)]))
