"""Coordinates as users give them: numbers, rows of tables, parameters by name, and their checks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, IndexArray, finite_array, only_entry, points_array, shown
from .._utils.numerals import exact
from ..errors import InvalidInput

MOST_ARMS = 1_000_000  # largest grid or sample, since a mistyped count should not fill the memory
FARTHEST = 1e100  # largest coordinate, so that squares of distances do not overflow
SAME_POINT = 1e-9  # tolerance for a point that names an arm, as a share of the arms' extent in each coordinate


def check_size(name: str, coordinates: Array) -> None:
    """Raises an error for coordinates whose squares would overflow."""
    if np.abs(coordinates).max(initial=0.0) > FARTHEST:
        raise InvalidInput(
            f"`{name}` has a coordinate beyond {exact(FARTHEST)}, where distances overflow: change the unit."
        )


def check_count(count: int, most: int = MOST_ARMS) -> None:
    """Raises an error for a grid of too many arms before it is made."""
    if count > most:
        raise InvalidInput(
            f"This grid would have {count:,} arms, and the most is {most:,}. Take fewer values of each "
            "dimension, or give the domain itself, which is then searched without a grid."
        )


def named_points(points: Any, *, columns: bool = True) -> list[Mapping[str, Any]] | None:
    """Returns points given by name, as dicts, or None if they are coordinates.

    Args:
        points: one dict, a list of them, a table's row, a table, or coordinates.
        columns: True if the names of a table's columns identify the parameters. Otherwise their order does.
    """
    if isinstance(points, Mapping):
        return [points]
    if isinstance(points, Sequence) and points and all(isinstance(point, Mapping) for point in points):
        return list(points)
    if not columns or not (callable(getattr(points, "to_numpy", None)) or hasattr(points, "column_names")):
        return None
    is_row = getattr(points, "columns", None) is None
    names = getattr(points, "index", ()) if is_row else getattr(points, "column_names", points.columns)
    if not len(names) or not all(isinstance(name, str) for name in names):
        return None
    if is_row:
        return [dict(zip(names, np.asarray(points.to_numpy(), dtype=object), strict=True))]
    from .._utils.tables import table_of

    table = table_of(points, "the table of points")
    return None if table is None else list(table.rows())


def refuse_lists(name: str, points: Any, names: Collection[str]) -> None:
    """Raises an error, with the dict to write, for numbers without names that are no arrays of encoded points.

    Args:
        name: of the argument.
        points: not given by name.
        names: of the parameters.
    """
    if _is_encoded(points):
        return
    given = [only_entry(each) for each in (points if isinstance(points, list | tuple | range) else [points])]
    known = len(given) == len(names) and not any(isinstance(each, list | tuple | np.ndarray) for each in given)
    plain = [each.item() if isinstance(each, np.generic) else each for each in given]
    values = map(shown, plain) if known else ["..."] * len(names)
    written = ", ".join(f'"{key}": {value}' for key, value in zip(names, values, strict=True))
    raise InvalidInput(
        f"`{name}` is {shown(points)}: these parameters have names, and a list would be read as shares of their "
        f"ranges (0.5 is the middle). Write {{{written}}}.",
        advice="An array, such as `trial.point`, is taken as the kernel sees it.",
        topic="named" if name != "context" else "",
    )


def _is_encoded(points: Any) -> bool:
    """Returns whether all points are arrays, as the kernel sees points, and no lists of numbers."""
    if isinstance(points, list | tuple) and points:
        return all(map(_is_encoded, points))
    shape = getattr(points, "shape", ())
    return isinstance(shape, tuple) and shape != () and not callable(getattr(points, "to_numpy", None))


def one_row(name: str, points: Any, dimension: int) -> None:
    """Raises an error for coordinates that are not one point, since `add` and contexts take one at a time."""
    if named_points(points) is not None:
        return
    given = finite_array(name, points)
    rows = given.size if dimension == 1 else 1 if given.ndim < 2 else len(given)
    if rows != 1:
        lies = " The points of this domain have one coordinate, so a list is read as so many of them." * (
            dimension == 1
        )
        raise InvalidInput(f"`{name}` must be one point at a time; {rows} were given.{lies}")


def as_rows(name: str, points: npt.ArrayLike, dimension: int) -> Array:
    """Returns points as `(n, d)`. A single number is a point of one dimension."""
    # + 0.0 turns -0.0 into 0.0, so that equal points have equal bytes.
    return points_array(name, np.atleast_1d(finite_array(name, points)), dimension=dimension) + 0.0


def inside_box(name: str, points: npt.ArrayLike, lower: Array, upper: Array) -> Array:
    """Returns points `(n, d)` within a box. Points within 1e-9 of its sides are moved onto them.

    Raises:
        InvalidInput: a point outside of the box.
    """
    X = as_rows(name, points, len(lower))
    if ((lower <= X) & (upper >= X)).all():  # as in nearly every round
        return X
    margin = SAME_POINT * (upper - lower)
    outside = ((lower - margin > X) | (upper + margin < X)).any(axis=1)
    if outside.any():
        row = X[int(np.flatnonzero(outside)[0])]
        raise InvalidInput(
            f"`{name}` {shown(row.tolist())} lies outside the box from {shown(lower.tolist())} to "
            f"{shown(upper.tolist())}. "
            "Make the box larger, or leave the point out."
        )
    return np.clip(X, lower, upper)


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
