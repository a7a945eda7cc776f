"""Finding rows of a table of points by their coordinates, exactly or to 1e-9 of the extent of the points."""

from __future__ import annotations

from functools import cached_property
from typing import final

import numpy as np

from .._utils.checks import Array, IndexArray
from .coordinates import SAME_POINT


@final
class PointLookup:
    """An index of points `(N, d)` by their coordinates.

    Parameters typed by hand and coordinates that went through text differ in the last digits. Therefore a point is
    found if each coordinate is within `SAME_POINT` of the extent of the points in that coordinate.
    """

    def __init__(self, points: Array) -> None:
        self._points = points

    @cached_property
    def _exact(self) -> dict[bytes, int]:
        """Row by the bytes of its point, the first row if points coincide."""
        return {row.tobytes(): index for index, row in reversed(list(enumerate(self._points)))}

    @cached_property
    def _resolution(self) -> Array:
        """Largest distance at which a point is found, for each coordinate, `(d,)`."""
        extent, size = np.ptp(self._points, axis=0), np.abs(self._points).max(axis=0)
        return SAME_POINT * np.where(extent > 0.0, extent, np.where(size > 0.0, size, 1.0))

    @cached_property
    def _keys(self) -> tuple[Array, Array, IndexArray]:
        """Weights of the coordinates `(d,)`, ascending keys of the points `(N,)`, and the row of each key `(N,)`.

        A key is the weighted sum of coordinates, so near points have near keys.
        """
        golden = (np.arange(1, self._points.shape[1] + 1) * 0.6180339887498949) % 1.0
        weights = (0.5 + 0.5 * golden) * SAME_POINT / self._resolution
        keys = (self._points - self._points[0]) @ weights
        order = np.argsort(keys, kind="stable")
        return weights, keys[order], order

    def find(self, row: Array) -> int | None:
        """Returns the row of a point `(d,)`, or None if there is none within the resolution."""
        found = self._exact.get(row.tobytes())
        if found is not None:
            return found
        near = self._near(row)
        gaps = self._gaps(near, row)
        return int(near[gaps.argmin()]) if (gaps <= 1.0).any() else None

    def nearest(self, row: Array) -> int:
        """Returns the row nearest to a point `(d,)`, with each coordinate in units of the resolution."""
        return int(self._gaps(slice(None), row).argmin())

    def coinciding(self, rows: IndexArray) -> IndexArray:
        """Returns all rows with the same points as some rows, `(n,)`."""
        first, last = self._range(self._points[rows])
        alone = last - first == 1
        found = [rows[alone]]
        for point in np.unique(self._points[rows[~alone]], axis=0):
            near = self._near(point)
            found.append(near[(self._points[near] == point).all(axis=1)])
        return np.concatenate(found)

    def _gaps(self, rows: IndexArray | slice, row: Array) -> Array:
        """Returns distances of a point from some rows, in units of the resolution, `(n,)`."""
        return np.asarray((np.abs(self._points[rows] - row) / self._resolution).max(axis=1))

    def _near(self, row: Array) -> IndexArray:
        """Returns rows, ascending, that include all rows within the resolution of a point, `(n,)`."""
        (first,), (last,) = self._range(row[None])
        return np.sort(self._keys[2][first:last])

    def _range(self, rows: Array) -> tuple[IndexArray, IndexArray]:
        """Returns, for each point `(n, d)`, where its near rows begin and end in the order of the keys, each `(n,)`."""
        weights, keys, _ = self._keys
        sought = (rows - self._points[0]) @ weights
        rounding = 16.0 * np.finfo(float).eps * (np.abs(self._points[0]) + np.abs(rows))
        reach = 1.01 * ((self._resolution + rounding) @ weights)
        return np.searchsorted(keys, sought - reach, side="left"), np.searchsorted(keys, sought + reach, side="right")
