"""A kernel that sees points as what they stand for: whole numbers rounded, one option of each choice.

Source: Garrido-Merchan & Hernandez-Lobato 2020, "Dealing with categorical and integer-valued variables in Bayesian
optimization with Gaussian processes", eqs. 8 and 9.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, many, shown
from .._utils.errors import InvalidInput
from .._utils.serialize import described
from ..domains.conditions import Mask
from ..domains.domain import Space
from ..domains.parameters import Float
from .base import MAKE, Kernel, check_kernel, points_pair
from .wrapper import Wrapper


@final
@described
@dataclass(frozen=True)
class Rounded(Wrapper):
    """k(T(x), T(x')), T the nearest point that stands for parameters of a space: whole numbers, one option.

    All points of a policy on a space stand for parameters already, its search snaps them: there it changes nothing. It
    is for points that come from elsewhere, such as a relaxed search of one's own. Slopes along what is rounded are 0.

    Attributes:
        kernel: any.
        space: whose columns are the last ones of the points; those before, of a context, stay as they are.
    """

    kernel: Kernel
    space: Space

    def __post_init__(self) -> None:
        check_kernel("kernel", self.kernel)
        if not isinstance(self.space, Space):
            raise InvalidInput(f"`space` must be a Space, not {shown(self.space)}.")

    def _inside(self, points: Array) -> Array:
        first = points.shape[1] - self.space.dimension
        if first < 0:
            raise InvalidInput(
                f"The points have {many(points.shape[1], 'column')} and the space {self.space.dimension}: its own "
                "are the last."
            )
        return np.concatenate([points[:, :first], self.space.snap(points[:, first:])], axis=1)

    def _moving(self, points: Array) -> Mask:
        """Where a small step of a coordinate is one of T as well, `(n, d)`."""
        first = points.shape[1] - self.space.dimension
        own = points[:, first:]
        result = np.ones(points.shape, dtype=bool)
        result[:, first:] = (own >= self.space.lower) & (own <= self.space.upper)
        for parameter, columns in self.space.columns():
            if not isinstance(parameter, Float):
                result[:, first:][:, columns] = False
        active = self.space.active(self.space.snap(own))
        if active is not None:
            result[:, first:] &= active
        return result

    def _outside(self, gradient: Array, points: Array) -> Array:
        return np.where(self._moving(points), gradient, 0.0)

    def __call__(self, A: npt.ArrayLike, B: npt.ArrayLike) -> Array:
        """The covariances between the rows of A and of B, `(n, m)`."""
        first, second = points_pair(A, B)
        one = self._inside(first)
        return self.kernel(one, one if second is first else self._inside(second))

    def rescaled(self, factors: Array) -> Kernel:
        """The kernel inside, as a space's columns keep their unit; where they do not, the points are divided first."""
        if bool((factors[len(factors) - self.space.dimension :] == 1.0).all()):
            return Rounded(self.kernel.rescaled(factors), self.space)
        return MAKE["stretched"](self, tuple(factors.tolist()))
