"""Stationary kernels with a lengthscale for each group of columns.

| symbol | name | meaning | shape |
|---|---|---|---|
| g(k) | `groups` | the group of column k | (d,) |
| l_g | `kernel.lengthscale` | the lengthscale of group g | (m,) |
| r^2 | | sum over the columns k of (x_k - x'_k)^2 / l_g(k)^2 | any |

With G as in `stationary`, the derivative by log l_g is the sum over the group's columns of those by log l_k, by the
chain rule for l_k = l_g(k).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, IndexArray, integer, many, shown
from .._utils.dataclass import replace
from ..errors import InvalidInput
from ..serialize import description
from .base import Derivatives, Hyperparameter, Matrices, PointKernel, Pullback, parameter_values
from .stationary import Stationary


@final
@description(frozen=True)
class Tied(PointKernel):
    """A stationary kernel in which the columns of a group share a lengthscale: `Tied(Matern(), (0, 1, 1, 1))`.

    A choice of a `Space` has a column for each option. With a lengthscale for each column a fit learns one for each
    option. Tied, it learns one for each parameter. These are fewer, and the prior of a fit counts parameters rather
    than columns. `kernel_for` makes the kernel for a domain.

    Attributes:
        kernel: `Matern`, `SquaredExponential`, `RationalQuadratic` or a `Stationary` kernel of your own, with a
            lengthscale for each group (or one number, from which all groups start).
        groups: number of the group of each column of the points, counted from 0.

    Raises:
        InvalidInput: a kernel that is not `Stationary`, groups that are not counted from 0 without gaps,
            lengthscales that are not as many as the groups.

    >>> import nilregret as nr
    >>> kernel = nr.kernels.Tied(nr.Matern(2.5, [0.2, 0.5]), (0, 1, 1))
    >>> kernel([[0.0, 0.0, 0.0]], [[0.0, 0.0, 0.5]]).round(3)
    array([[0.524]])
    """

    kernel: Stationary
    groups: tuple[int, ...]

    def __post_init__(self) -> None:
        groups = checked_groups(self.groups)
        count = max(groups) + 1
        if not isinstance(self.kernel, Stationary):
            raise InvalidInput(
                f"`kernel` must be a stationary kernel, not one of type {type(self.kernel).__name__}. "
                "Sums and products are made of tied kernels.",
                advice="Such as Matern(2.5, lengthscale=0.2); and Tied(...) + Tied(...).",
            )
        lengthscale = self.kernel.lengthscale
        if not isinstance(lengthscale, tuple):
            object.__setattr__(self, "kernel", replace(self.kernel, lengthscale=(lengthscale,) * count))  # type: ignore[type-var]  # all are dataclasses
        elif len(lengthscale) != count:
            raise InvalidInput(
                f"The kernel has {len(lengthscale)} lengthscales and there are {count} groups of columns: give one for "
                "each group, or one number for all."
            )
        object.__setattr__(self, "groups", groups)

    @cached_property
    def expanded(self) -> Stationary:
        """Stationary kernel with the same covariances and a lengthscale for each column, `(d,)`."""
        lengthscale = np.asarray(self.kernel.lengthscale)[self._index]
        return replace(self.kernel, lengthscale=tuple(lengthscale.tolist()))  # type: ignore[type-var]  # see above

    @cached_property
    def _index(self) -> IndexArray:
        return np.array(self.groups, dtype=np.intp)

    def __call__(self, A: npt.ArrayLike, B: npt.ArrayLike) -> Array:
        """Returns the covariances between the rows of A and of B, `(n, m)`."""
        return self.expanded(A, B)

    def diagonal(self, A: npt.ArrayLike) -> Array:
        """Returns the prior variances of the rows of A, `(n,)`."""
        return self.expanded.diagonal(A)

    def input_gradient(self, X: npt.ArrayLike, B: npt.ArrayLike, weights: npt.ArrayLike) -> Array:
        """Returns rows sum_j weights[i, j] * d k(x_i, b_j) / d x_i, `(m, d)`."""
        return self.expanded.input_gradient(X, B, weights)

    @property
    def log_parameters(self) -> Array:
        """Log lengthscales of the groups, then log scale, `(m + 1,)`."""
        return self.kernel.log_parameters

    def hyperparameters(self, columns: Sequence[int]) -> tuple[Hyperparameter, ...]:
        """Returns a lengthscale for each group, and the scale.

        The kernel counts as one that sees as many dimensions as there are groups.
        """
        if len(columns) != len(self.groups):
            raise InvalidInput(
                f"The kernel says of {many(len(self.groups), 'column')} which group they are in, and the points have "
                f"{len(columns)}. A choice of k options has k columns; `kernel_for` counts them."
            )
        count = max(self.groups) + 1
        members: list[list[int]] = [[] for _ in range(count)]
        for column, group in zip(columns, self.groups, strict=True):
            members[group].append(column)
        scale = Hyperparameter("scale", tuple(columns), count)
        return (*(Hyperparameter("lengthscale", tuple(group), count) for group in members), scale)

    def with_log_parameters(self, values: npt.ArrayLike) -> Tied:
        """Returns the same kernel with these lengthscales of the groups and scale, given by their logarithms."""
        given = parameter_values(values, len(self.log_parameters))
        return Tied(self.kernel.with_log_parameters(given), self.groups)

    def matrices(self, X: npt.ArrayLike) -> Matrices:
        """Returns K, and the pullback by the groups' log lengthscales and log scale, by log parameters."""
        inside, places = self.expanded.matrices(X), np.append(self._index, max(self.groups) + 1)  # the scale is last

        def at(values: Array) -> tuple[Array, Pullback]:
            matrix, pullback = inside(values[places])
            return matrix, lambda weights: np.bincount(places, weights=pullback(weights)).astype(np.float64)

        return at

    def scaled(self, factor: float) -> Tied:
        """Returns the same kernel with `factor` times the scale."""
        return Tied(self.kernel.scaled(factor), self.groups)

    def derivatives(self, lower: Array, upper: Array) -> Derivatives:
        """Returns variances from the moments of the spectrum (see `Stationary.derivatives`)."""
        return self.expanded.derivatives(lower, upper)

    @property
    def variance(self) -> float:
        """Scale."""
        return self.kernel.variance

    @property
    def smoothness(self) -> float | None:
        """Smoothness of the kernel inside."""
        return self.kernel.smoothness

    def rank(self, dimension: int) -> int | None:
        """Returns the rank of the kernel inside."""
        return self.expanded.rank(dimension)


def checked_groups(groups: object) -> tuple[int, ...]:
    """Returns numbers of groups from 0 without gaps, or raises an error."""
    several = isinstance(groups, list | tuple | range) or (isinstance(groups, np.ndarray) and groups.ndim == 1)
    if not several:
        raise InvalidInput(f"`groups` is {shown(groups)}: give the group of each column, such as (0, 1, 1, 1).")
    numbers: tuple[int, ...] = tuple(groups)  # type: ignore[arg-type]  # it is a sequence
    if set(map(type, numbers)) != {int}:  # a slow check, and a fit makes a kernel in every step
        numbers = tuple(integer("groups", each, low=0) for each in numbers)
    if not numbers or (distinct := set(numbers)) != set(range(len(distinct))):
        raise InvalidInput(
            f"`groups` is {shown(list(numbers))}: groups are counted from 0 and each has a column, such as "
            "(0, 1, 1, 1)."
        )
    return numbers
