"""The axes of a domain as people see them: named parameters, or coordinates; and points that differ along one only."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array
from ..domains.domain import Arms, Domain, Space, sides
from ..domains.parameters import Choice, Float, Parameter

SAME = 1e-9  # shares of a side by which two points may differ and still agree in a coordinate


class Axis(NamedTuple):
    """A parameter, or a coordinate.

    Attributes:
        name: of it.
        parameter: its values; of a coordinate a `Float` between the lowest and the highest.
        columns: of a point that belong to it.
    """

    name: str
    parameter: Parameter
    columns: slice


def space_of(domain: Domain) -> Space | None:
    """The named parameters behind the points of a domain; None where it has none."""
    return domain.space if isinstance(domain, Arms) else domain if isinstance(domain, Space) else None


def settings_at(domain: Domain, point: Array) -> tuple[tuple[str, Any], ...] | None:
    """Returns the named parameters of a point, or None if its domain has none."""
    space = space_of(domain)
    return None if space is None else tuple(space.decode(point).items())


def axes(domain: Domain) -> list[Axis]:
    """Named parameters with their columns of a point; else the coordinates in which points differ."""
    space = space_of(domain)
    if space is not None:
        return [Axis(name, *of) for name, of in zip(space.parameters, space.columns(), strict=True)]
    corners = domain.points if isinstance(domain, Arms) else np.stack([domain.lower, domain.upper])
    names = ["point"] if domain.dimension == 1 else [f"point[{i}]" for i in range(domain.dimension)]
    ends = zip(corners.min(axis=0).tolist(), corners.max(axis=0).tolist(), strict=True)
    return [
        Axis(name, Float(low, high), slice(i, i + 1))
        for i, (name, (low, high)) in enumerate(zip(names, ends, strict=True))
        if low < high
    ]


def value_at(domain: Domain, point: Array, axis: Axis) -> Any:
    """The value of a parameter or coordinate at a point."""
    if space_of(domain) is None:
        return float(point[axis.columns.start])
    return axis.parameter.decode(point[axis.columns])


def agrees(domain: Domain, points: Array, other: Array, but: tuple[Axis, ...]) -> npt.NDArray[np.bool_]:
    """Which points `(n, d)` agree with another one, `(d,)`, outside of some axes."""
    mine = np.concatenate([np.arange(len(other))[axis.columns] for axis in but])
    others = np.delete((points - other) / sides(domain), mine, axis=1)
    return np.asarray((np.abs(others) <= SAME).all(axis=1))


def active_axes(domain: Domain, point: Array) -> list[Axis]:
    """Those that count at a point: all, but for parameters whose conditions do not hold there."""
    counting = domain.active(point[None]) if isinstance(domain, Space) else None
    return [axis for axis in axes(domain) if counting is None or counting[0, axis.columns.start]]


def line_through(domain: Domain, point: Array, axis: Axis, *, count: int) -> tuple[list[Any], Array]:
    """Points that differ from one along an axis only: its values there, and the points `(n, d)`.

    Args:
        domain: of the points; of arms those that there are.
        point: `(d,)`.
        axis: of the domain.
        count: of points along a real parameter.
    """
    if isinstance(domain, Arms):
        points = domain.points[agrees(domain, domain.points, point, (axis,))]
        if not isinstance(axis.parameter, Choice):
            points = points[np.argsort(points[:, axis.columns.start])]
    else:
        values = axis.parameter.values(count)
        points = np.repeat(point[None], len(values), axis=0)
        named = isinstance(domain, Space)
        points[:, axis.columns] = [axis.parameter.encode(value) if named else [value] for value in values]
        points = domain.snap(points) if isinstance(domain, Space) else points
    return [value_at(domain, each, axis) for each in points], points
