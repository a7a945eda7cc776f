"""Axes of a domain: its named parameters or coordinates, and points that differ along one axis only."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array
from ..domains.domain import Arms, Domain, Space, sides
from ..domains.parameters import Choice, Float, Parameter

SAME = 1e-9  # Tolerance of two equal coordinates, as a share of the side.


class Axis(NamedTuple):
    """A parameter or a coordinate of a domain.

    Attributes:
        name: shown to people.
        parameter: its values. A coordinate is a `Float` between its lowest and highest value.
        columns: columns of a point that hold it.
    """

    name: str
    parameter: Parameter
    columns: slice


def space_of(domain: Domain) -> Space | None:
    """Returns the named parameters behind the points of a domain, or None if it has none."""
    return domain.space if isinstance(domain, Arms) else domain if isinstance(domain, Space) else None


def settings_at(domain: Domain, point: Array) -> tuple[tuple[str, Any], ...] | None:
    """Returns the named parameters of a point, or None if its domain has none."""
    space = space_of(domain)
    return None if space is None else tuple(space.decode(point).items())


def axes(domain: Domain) -> list[Axis]:
    """Returns the named parameters with their columns of a point, else the coordinates in which points differ."""
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
    """Returns the value of a parameter or coordinate at a point."""
    if space_of(domain) is None:
        return float(point[axis.columns.start])
    return axis.parameter.decode(point[axis.columns])


def agrees(domain: Domain, points: Array, other: Array, but: tuple[Axis, ...]) -> npt.NDArray[np.bool_]:
    """Returns which points `(n, d)` agree with another point `(d,)` outside of some axes, `(n,)`."""
    mine = np.concatenate([np.arange(len(other))[axis.columns] for axis in but])
    others = np.delete((points - other) / sides(domain), mine, axis=1)
    return np.asarray((np.abs(others) <= SAME).all(axis=1))


def active_axes(domain: Domain, point: Array) -> list[Axis]:
    """Returns the axes that count at a point: all but parameters whose conditions do not hold there."""
    counting = domain.active(point[None]) if isinstance(domain, Space) else None
    return [axis for axis in axes(domain) if counting is None or counting[0, axis.columns.start]]


def line_through(domain: Domain, point: Array, axis: Axis, *, count: int) -> tuple[list[Any], Array]:
    """Returns the values of an axis and the points `(n, d)` that differ from one point along that axis only.

    Args:
        domain: of the points. Of arms, only existing arms are returned.
        point: `(d,)`.
        axis: along which the points differ.
        count: number of points on a real parameter of a continuous domain.
    """
    if isinstance(domain, Arms):
        points = domain.points[agrees(domain, domain.points, point, (axis,))]
        if not isinstance(axis.parameter, Choice):
            points = points[np.argsort(points[:, axis.columns.start], kind="stable")]
    else:
        values = axis.parameter.values(count)
        points = np.repeat(point[None], len(values), axis=0)
        named = isinstance(domain, Space)
        points[:, axis.columns] = [axis.parameter.encode(value) if named else [value] for value in values]
        points = domain.snap(points) if isinstance(domain, Space) else points
    return [value_at(domain, each, axis) for each in points], points
