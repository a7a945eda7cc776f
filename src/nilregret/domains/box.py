"""Boxes of real coordinates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, finite_array, frozen, integer, many
from .._utils.numerals import exact
from .._utils.randomness import world_generator
from ..errors import InvalidInput
from ..serialize import described
from .conditions import Mask
from .coordinates import MOST_ARMS, check_count, check_size, inside_box
from .parameters import Float, Parameter
from .space import Arms

SHARE = Float(0.0, 1.0)  # of a side of the box


@described
@dataclass(frozen=True, eq=False)
class Box:
    """All points between `lower` and `upper`, arrays `(d,)` (or numbers, for one dimension), both ends included.

    >>> import nilregret as nr
    >>> box = nr.Box([0.0, -1.0], [1.0, 1.0])
    >>> box.dimension, box.grid(3).points.shape
    (2, (9, 2))
    """

    lower: Array
    upper: Array

    if TYPE_CHECKING:  # arguments are converted

        def __init__(self, lower: npt.ArrayLike, upper: npt.ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        lower, upper = (np.atleast_1d(finite_array(name, getattr(self, name))) for name in ("lower", "upper"))
        if lower.ndim != 1 or lower.shape != upper.shape or lower.size == 0:
            raise InvalidInput(
                f"Box needs `lower` and `upper` of one shape (d,), not {lower.shape} and {upper.shape}: one number for "
                "each dimension."
            )
        wrong = np.flatnonzero(lower >= upper)
        if wrong.size:
            i = int(wrong[0])
            raise InvalidInput(
                f"Box needs lower < upper; in dimension {i} they are {exact(lower[i])} and {exact(upper[i])}. "
                + ("Leave that dimension out." if lower[i] == upper[i] else "Usually the two are swapped.")
            )
        check_size("lower", lower)
        check_size("upper", upper)
        object.__setattr__(self, "lower", frozen(lower + 0.0))
        object.__setattr__(self, "upper", frozen(upper + 0.0))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Box)
            and np.array_equal(self.lower, other.lower)
            and np.array_equal(self.upper, other.upper)
        )

    def __hash__(self) -> int:
        return hash((self.lower.tobytes(), self.upper.tobytes()))

    @property
    def dimension(self) -> int:
        """Number of coordinates of a point."""
        return int(self.lower.size)

    def columns(self) -> list[tuple[Parameter, slice]]:
        """Returns each coordinate, as a real parameter in [0, 1], with its column."""
        return [(SHARE, slice(i, i + 1)) for i in range(self.dimension)]

    def snap(self, points: Array) -> Array:
        """Returns the points `(n, d)`, since all coordinates are real."""
        return points

    def active(self, points: Array) -> Mask | None:  # noqa: ARG002 - has no conditions
        """Returns None: all coordinates always count."""
        return None

    def inside(self, name: str, points: npt.ArrayLike) -> Array:
        """Returns checked points `(n, d)`. Points within 1e-9 of the box's sides are moved onto them."""
        return inside_box(name, points, self.lower, self.upper)

    def grid(self, per_dimension: int | Sequence[int]) -> Arms:
        """Returns arms at every combination of evenly spaced coordinates, ends included. The last varies fastest.

        Args:
            per_dimension: one number for all dimensions, or one for each. With 1 the middle is taken.

        >>> import nilregret as nr
        >>> nr.Box(0.0, 1.0).grid(3).points[:, 0]
        array([0. , 0.5, 1. ])
        """
        single = isinstance(per_dimension, str | bytes) or not isinstance(per_dimension, Sequence)
        listed = [per_dimension] * self.dimension if single else list(cast("Sequence[int]", per_dimension))
        if len(listed) != self.dimension:
            raise InvalidInput(
                f"`per_dimension` has {many(len(listed), 'entry')} where the box has "
                f"{many(self.dimension, 'dimension')}: give one number for all, or one for each."
            )
        counts = [integer("per_dimension", count, low=1) for count in listed]
        check_count(math.prod(counts))
        columns = [
            np.linspace(low, high, count) if count > 1 else np.array([(low + high) / 2.0])
            for low, high, count in zip(self.lower, self.upper, counts, strict=True)
        ]
        return Arms(np.stack(np.meshgrid(*columns, indexing="ij"), axis=-1).reshape(-1, self.dimension))

    def sample(self, count: int, *, seed: int | Sequence[int]) -> Arms:
        """Returns `count` arms drawn uniformly from the box, the same for the same seed.

        >>> import nilregret as nr
        >>> len(nr.Box([0.0, 0.0], [1.0, 1.0]).sample(100, seed=1))
        100
        """
        shape = (integer("count", count, low=1, high=MOST_ARMS), self.dimension)
        return Arms(world_generator(seed, "arms").uniform(self.lower, self.upper, shape))
