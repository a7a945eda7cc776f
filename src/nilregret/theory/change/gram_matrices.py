"""Kernel and overlap matrices of pairs that come one at a time.

| symbol | name | meaning | shape |
|---|---|---|---|
| K | `covariances` | k(x_i, x_j) of the pairs so far | (m, m) |
| g | `overlaps` | overlaps of their kernel functions over the domain, see `geometry` | (m, m) |
| y | `rewards` | | (m,) |
"""

from __future__ import annotations

from typing import Self, final

import numpy as np

from ..._utils.checks import Array
from ..._utils.copying import Copyable
from .geometry import Geometry, Places

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
