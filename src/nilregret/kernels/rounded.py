"""A kernel of points rounded to valid parameters: whole numbers, and one option of each choice.

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
    """k(T(x), T(x')), T the nearest point that encodes parameters of a space: whole numbers, one option.

    All points of a policy on a space encode parameters already, since its search snaps them, so there the kernel
    changes nothing. It is for points from elsewhere, such as a relaxed search of your own. Slopes along rounded columns
    are 0.

    Attributes:
        kernel: any kernel.
        space: space of the last columns of the points. Columns before these, of a context, are not rounded.

    >>> import nilregret as nr
    >>> space = nr.Space(layers=nr.Int(1, 5))
    >>> nr.kernels.Rounded(nr.Matern(2.5, 0.5), space)([[0.26]], [[0.24]])  # both stand for 2 layers
    array([[1.]])
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
        """Returns True where a small step of a coordinate also moves T, `(n, d)`."""
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
        """Returns the covariances between the rows of A and of B, `(n, m)`."""
        first, second = points_pair(A, B)
        one = self._inside(first)
        return self.kernel(one, one if second is first else self._inside(second))

    def rescaled(self, factors: Array) -> Kernel:
        """Returns the kernel inside, rescaled, if the space's columns keep their unit.

        Otherwise the points are divided first.
        """
        if bool((factors[len(factors) - self.space.dimension :] == 1.0).all()):
            return Rounded(self.kernel.rescaled(factors), self.space)
        return MAKE["stretched"](self, tuple(factors.tolist()))
