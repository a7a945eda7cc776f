"""A function of arms, with one number for each arm."""

from __future__ import annotations

from typing import final

import numpy as np
import numpy.typing as npt

from ..._utils.checks import Array, finite_array, frozen, shown
from ..._utils.errors import InvalidInput
from ...domains.domain import Arms


@final
class ArmFunction:
    """A function of arms, defined by its values: `Environment(function, domain=function.arms)`.

    Args:
        arms: the arms.
        values: value at every arm, `(N,)`.
    """

    def __init__(self, arms: Arms, values: npt.ArrayLike) -> None:
        if not isinstance(arms, Arms):
            raise InvalidInput(f"`arms` must be Arms, not {shown(arms)}.")
        self.arms, self.values = arms, frozen(finite_array("values", values))
        if self.values.shape != (len(arms),):
            raise InvalidInput(
                f"`values` has shape {self.values.shape}: it must be ({len(arms)},), one number for each arm."
            )

    def __call__(self, points: npt.ArrayLike) -> Array:
        """Values at points `(n, d)`, `(n,)`. An error if a point is no arm."""
        # An environment asks for all arms at once. Each has its own value, also if two arms coincide.
        if np.array_equal(np.asarray(points), self.arms.points):
            return self.values.copy()
        return np.asarray(self.values[self.arms.index(points)])
