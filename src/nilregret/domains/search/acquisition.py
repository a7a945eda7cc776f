"""The function that a search maximises over a domain."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..._utils.checks import Array


class AcquisitionFunction(NamedTuple):
    """A function to maximise, of rows in the domain's (encoded) coordinates.

    Attributes:
        values: maps points `(m, d)` to values `(m,)`.
        slopes: maps points `(m, d)` to values `(m,)` and gradients `(m, d)`.
        resolution: difference of values that does not matter. With 0, a search ends at a small share of their range.
        rough: maps points `(m, d)` to approximate values `(m,)`, by which many points are ranked before the best of
            them are valued. None if nothing is much cheaper than `values`.
    """

    values: Callable[[Array], Array]
    slopes: Callable[[Array], tuple[Array, Array]]
    resolution: float = 0.0
    rough: Callable[[Array], Array] | None = None
