"""The three kinds of domains: arms, boxes and spaces of named parameters.

| symbol | name | meaning | shape |
|---|---|---|---|
| D | `Arms.points` | the decision set, one arm a row | (N, d) |
| x | point | an arm's coordinates, as the kernel sees them | (d,) |

A `Space` of named parameters is encoded into the unit cube, with one column for a number and one for each option of a
choice. Thus one lengthscale means the same share of the range of each parameter.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .._utils.checks import Array, shown
from ..errors import InvalidInput
from .box import Box
from .parameters import Choice, Float
from .space import Arms, Space

ELSEWHERE = 1e-6  # share of a range by which another machine may decide otherwise

__all__ = ["Arms", "Box", "Domain", "Space", "check_domain", "count_of_points", "enclosing_box", "sides"]

Domain = Arms | Box | Space


def count_of_points(domain: Domain) -> int | None:
    """Returns the number of arms, or of combinations of whole numbers and choices, or None if it is infinite.

    With conditional parameters the number is an upper bound.
    """
    if isinstance(domain, Arms):
        return len(domain)
    if isinstance(domain, Box):
        return None
    counts = [
        len(p.options) if isinstance(p, Choice) else p.count
        for p in domain.parameters.values()
        if not isinstance(p, Float)
    ]
    return math.prod(counts) if len(counts) == len(domain.parameters) else None


def check_domain(name: str, value: object) -> None:
    """Raises an error if the value is no domain."""
    if not isinstance(value, Arms | Box | Space):
        advice = "Write nr.Space(**parameters)." if isinstance(value, dict) else ""
        if isinstance(value, list):
            advice = "Ranges of coordinates are nr.Box(lows, highs); points that may be played are nr.Arms(points)."
        raise InvalidInput(f"`{name}` must be Arms, a Box or a Space, not {shown(value)}.", advice=advice)


def enclosing_box(domain: Domain, context: Domain | None = None) -> Box:
    """Returns the smallest box that holds every (context, point) row.

    A coordinate in which all points are equal gets side 1.
    """
    lower, upper = [], []
    for part in [domain] if context is None else [context, domain]:
        corners = part.points if isinstance(part, Arms) else np.stack([part.lower, part.upper])
        lower.append(corners.min(axis=0))
        upper.append(corners.max(axis=0))
    low, high = np.concatenate(lower), np.concatenate(upper)
    return Box(low, np.where(high > low, high, low + 1.0))


def sides(domain: Domain, context: Domain | None = None) -> Array:
    """Returns the unit of length of each column of a (context, point) row, `(c + d,)`.

    The unit is 1 for parameters of a space, and otherwise a side of the enclosing box. Arms that were added
    (`Arms.with_more`) do not change it.
    """
    founding = domain.founding if isinstance(domain, Arms) else domain
    box = enclosing_box(founding, context)
    parts = [domain] if context is None else [context, domain]
    encoded = [isinstance(part, Space) or (isinstance(part, Arms) and part.space is not None) for part in parts]
    unit = np.repeat(encoded, [part.dimension for part in parts])
    return np.where(unit, 1.0, box.upper - box.lower)


def alike(domain: Domain, one: Array, other: Array) -> bool:
    """Returns whether two points `(d,)` can be one decision on two machines, which round differently."""
    return bool((np.abs(one - other) <= ELSEWHERE * sides(domain)).all())


if TYPE_CHECKING:
    from typing_extensions import TypeVar

    D = TypeVar("D", bound=Domain, default=Any)  # a bare `Study` is of any domain
else:
    from typing import TypeVar

    D = TypeVar("D")
