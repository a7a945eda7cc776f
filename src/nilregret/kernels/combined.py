"""Kernels made of kernels: sums, products, kernels of some columns, and k(T(x), T(x')) for a map T of points.

`Multiplied` and `Stretched` are for kernels of your own without a parameter for their variance or the units of points.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Self, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import LARGEST_REWARD, Array, IndexArray, integer, many, number, points_array, shown
from .._utils.dataclass import dataclass, replace
from ..domains.conditions import Mask
from ..domains.domain import Space
from ..errors import InvalidInput
from ..serialize import description
from .base import (
    Derivatives,
    Hyperparameter,
    Kernel,
    Matrices,
    PointKernel,
    Pullback,
    Rows,
    check_kernel,
    checked_lengths,
    parameter_values,
    points_pair,
    weights_array,
)


class Wrapper(PointKernel):
    """A kernel k(T(x), T(x')), whose parameters are those of k, the kernel inside.

    A subclass writes T as `_inside` and the chain rule as `_outside`.
    """

    kernel: Kernel

    def _inside(self, points: Array) -> Array:
        """Returns T of every row."""
        return points

    def _outside(self, gradient: Array, points: Array) -> Array:  # noqa: ARG002 - T may be the same everywhere
        """Returns the gradients at some points from the gradients at T of these points."""
        return gradient

    def _with(self, kernel: Kernel) -> Self:
        return replace(self, kernel=kernel)  # type: ignore[type-var]  # all are dataclasses

    def __call__(self, A: npt.ArrayLike, B: npt.ArrayLike) -> Array:
        """Returns the covariances between the rows of A and of B, `(n, m)`."""
        first, second = points_pair(A, B)
        return self.kernel(self._inside(first), self._inside(second))

    def diagonal(self, A: npt.ArrayLike) -> Array:
        """Returns the prior variances of the rows of A, `(n,)`."""
        return self.kernel.diagonal(self._inside(points_array("A", A)))

    def input_gradient(self, X: npt.ArrayLike, B: npt.ArrayLike, weights: npt.ArrayLike) -> Array:
        """Returns the gradients by the chain rule, `(m, d)`."""
        first, second = points_pair(X, B)
        return self._outside(self.kernel.input_gradient(self._inside(first), self._inside(second), weights), first)

    def diagonal_gradient(self, X: npt.ArrayLike) -> Array:
        """Returns the gradients of the prior variances by the chain rule, `(m, d)`."""
        points = points_array("X", X)
        return self._outside(self.kernel.diagonal_gradient(self._inside(points)), points)

    @property
    def log_parameters(self) -> Array:
        """Log parameters of the kernel inside."""
        return self.kernel.log_parameters

    def hyperparameters(self, columns: Sequence[int]) -> tuple[Hyperparameter, ...]:
        """Returns the hyperparameters of the kernel inside."""
        return self.kernel.hyperparameters(columns)

    def with_log_parameters(self, values: npt.ArrayLike) -> Self:
        """Returns the same wrapper of the kernel inside with these log parameters."""
        return self._with(self.kernel.with_log_parameters(values))

    def matrix_and_pullback(self, X: npt.ArrayLike) -> tuple[Array, Pullback]:
        """Returns K and its pullback, from the kernel inside."""
        return self.kernel.matrix_and_pullback(self._inside(points_array("X", X)))

    def matrices(self, X: npt.ArrayLike) -> Matrices:
        """Returns K and its pullback by log parameters, from the kernel inside."""
        return self.kernel.matrices(self._inside(points_array("X", X)))

    def scaled(self, factor: float) -> Kernel:
        """Returns the same wrapper of the kernel inside, multiplied."""
        return self._with(self.kernel.scaled(factor))

    @property
    def variance(self) -> float | None:
        """Prior variance of the kernel inside."""
        return self.kernel.variance

    @property
    def approximates(self) -> bool:
        """True if the kernel inside stands for another kernel."""
        return self.kernel.approximates

    def rank(self, dimension: int) -> int | None:
        """Returns the rank of the kernel inside."""
        return self.kernel.rank(dimension)

    def features(self, points: npt.ArrayLike) -> Array | None:
        """Returns the features of the kernel inside."""
        return self.kernel.features(self._inside(points_array("points", points)))

    def feature_gradient(self, X: npt.ArrayLike, weights: npt.ArrayLike) -> Array:
        """Returns the gradients of weighted features by the chain rule, `(m, d)`."""
        points = points_array("X", X)
        return self._outside(np.asarray(self.kernel.feature_gradient(self._inside(points), weights)), points)

    def columns(self, dimension: int) -> frozenset[int]:
        """Returns the columns that the kernel inside sees."""
        return self.kernel.columns(dimension)


# A kernel of points rounded to valid parameters: whole numbers, and one option of each choice.
#
# Source: Garrido-Merchan & Hernandez-Lobato 2020, "Dealing with categorical and integer-valued variables in Bayesian
# optimization with Gaussian processes", eqs. 8 and 9.


@final
@description(frozen=True)
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
            if not parameter.real:
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
        return Stretched(self, tuple(factors.tolist()))


@final
@description(frozen=True)
class Multiplied(Wrapper):
    """factor * k, for a kernel without a scale, made by `factor * kernel`. A fit keeps the factor."""

    kernel: Kernel
    factor: float

    def __post_init__(self) -> None:
        check_kernel("kernel", self.kernel)
        object.__setattr__(self, "factor", number("factor", self.factor, low=0.0, high=LARGEST_REWARD, open_low=True))

    def __call__(self, A: npt.ArrayLike, B: npt.ArrayLike) -> Array:
        """Returns the covariances between the rows of A and of B, `(n, m)`."""
        return self.factor * self.kernel(A, B)

    def diagonal(self, A: npt.ArrayLike) -> Array:
        """Returns the prior variances of the rows of A, `(n,)`."""
        return self.factor * self.kernel.diagonal(A)

    def input_gradient(self, X: npt.ArrayLike, B: npt.ArrayLike, weights: npt.ArrayLike) -> Array:
        """Returns the gradients of the kernel inside, multiplied, `(m, d)`."""
        return self.factor * self.kernel.input_gradient(X, B, weights)

    def diagonal_gradient(self, X: npt.ArrayLike) -> Array:
        """Returns the gradients of the kernel inside, multiplied, `(m, d)`."""
        return self.factor * self.kernel.diagonal_gradient(X)

    def matrix_and_pullback(self, X: npt.ArrayLike) -> tuple[Array, Pullback]:
        """Returns K and the pullback of the kernel inside, multiplied."""
        return self.matrices(X)(self.log_parameters)

    def matrices(self, X: npt.ArrayLike) -> Matrices:
        """Returns K and the pullback of the kernel inside by log parameters, multiplied."""
        inside = self.kernel.matrices(X)

        def at(values: Array) -> tuple[Array, Pullback]:
            matrix, pullback = inside(values)
            return self.factor * matrix, lambda weights: self.factor * pullback(weights)

        return at

    def scaled(self, factor: float) -> Multiplied:
        """Returns a kernel with the product of both factors."""
        return Multiplied(self.kernel, factor * self.factor)

    def rescaled(self, factors: Array) -> Multiplied:
        """Returns the same multiple of the kernel inside, rescaled."""
        return Multiplied(self.kernel.rescaled(factors), self.factor)

    def derivatives(self, lower: Array, upper: Array) -> Derivatives:
        """Returns the variances of the kernel inside, multiplied."""
        inside = self.kernel.derivatives(lower, upper)
        first, second = self.factor * inside.first, self.factor * inside.second
        return Derivatives(self.factor * inside.value, first, second, inside.stationary)

    @property
    def variance(self) -> float | None:
        """Prior variance of the kernel inside, multiplied."""
        return None if self.kernel.variance is None else self.factor * self.kernel.variance

    @property
    def smoothness(self) -> float | None:
        """Smoothness of the kernel inside."""
        return self.kernel.smoothness

    def features(self, points: npt.ArrayLike) -> Array | None:
        """Returns the features of the kernel inside, times the root of the factor."""
        inside = self.kernel.features(points)
        return None if inside is None else np.sqrt(self.factor) * inside

    def feature_gradient(self, X: npt.ArrayLike, weights: npt.ArrayLike) -> Array:
        """Returns the gradients of the kernel inside, times the root of the factor, `(m, d)`."""
        return np.asarray(np.sqrt(self.factor) * self.kernel.feature_gradient(X, weights))


@final
@description(frozen=True)
class Stretched(Wrapper):
    """k(x / factors, x' / factors): a kernel in other units of the points, for a kernel without lengths."""

    kernel: Kernel
    factors: tuple[float, ...]

    def __post_init__(self) -> None:
        check_kernel("kernel", self.kernel)
        factors = checked_lengths("factors", self.factors, why="The points of the kernel inside are divided by it.")
        object.__setattr__(self, "factors", factors if isinstance(factors, tuple) else (factors,))

    def _inside(self, points: Array) -> Array:
        if points.shape[1] != len(self.factors):
            raise InvalidInput(
                f"The kernel has {many(len(self.factors), 'factor')} and points {many(points.shape[1], 'column')}: "
                "one each."
            )
        return np.asarray(points / np.asarray(self.factors))

    def _outside(self, gradient: Array, points: Array) -> Array:  # noqa: ARG002 - the same everywhere
        return np.asarray(gradient / np.asarray(self.factors))

    def rescaled(self, factors: Array) -> Kernel:
        """Returns a kernel with the product of both factors, or the kernel inside if all factors are 1."""
        both = np.asarray(self.factors) * factors
        return self.kernel if np.allclose(both, 1.0, rtol=0.0, atol=1e-14) else Stretched(self.kernel, tuple(both))

    def derivatives(self, lower: Array, upper: Array) -> Derivatives:
        """Returns the variances by the chain rule."""
        inside = self.kernel.derivatives(self._inside(lower[None])[0], self._inside(upper[None])[0])
        squares = np.square(self.factors)
        second = inside.second / np.outer(squares, squares)
        return Derivatives(inside.value, inside.first / squares, second, inside.stationary)

    @property
    def smoothness(self) -> float | None:
        """Smoothness of the kernel inside."""
        return self.kernel.smoothness


@dataclass(frozen=True)
class Pair(Kernel):
    """A kernel made of two kernels, whose covariances are combined entry by entry."""

    left: Kernel
    right: Kernel

    def __post_init__(self) -> None:
        check_kernel("left", self.left)
        check_kernel("right", self.right)

    @abstractmethod
    def _combined(self, left: Array, right: Array) -> Array:
        """Returns covariances of this kernel from those of `left` and `right`."""

    def __call__(self, A: npt.ArrayLike, B: npt.ArrayLike) -> Array:
        """Returns the covariances between the rows of A and of B, `(n, m)`."""
        return self._combined(self.left(A, B), self.right(A, B))

    def diagonal(self, A: npt.ArrayLike) -> Array:
        """Returns the prior variances of the rows of A, `(n,)`."""
        return self._combined(self.left.diagonal(A), self.right.diagonal(A))

    def between_arms(self, points: Array, rows: Rows, columns: Rows) -> Array:
        """Returns the covariances between arms given by index."""
        left, right = (kernel.between_arms(points, rows, columns) for kernel in (self.left, self.right))
        return self._combined(left, right)

    def arm_variances(self, points: Array) -> Array:
        """Returns the prior variance of every arm, `(N,)`."""
        return self._combined(self.left.arm_variances(points), self.right.arm_variances(points))

    @property
    def log_parameters(self) -> Array:
        """Log parameters of `left`, then of `right`."""
        return np.concatenate([self.left.log_parameters, self.right.log_parameters])

    def hyperparameters(self, columns: Sequence[int]) -> tuple[Hyperparameter, ...]:
        """Returns the hyperparameters of `left`, then of `right`."""
        return self.left.hyperparameters(columns) + self.right.hyperparameters(columns)

    def with_log_parameters(self, values: npt.ArrayLike) -> Kernel:
        """Returns the same combination of both kernels with these log parameters."""
        first = len(self.left.log_parameters)
        both = parameter_values(values, first + len(self.right.log_parameters))
        return self._of(self.left.with_log_parameters(both[:first]), self.right.with_log_parameters(both[first:]))

    def rescaled(self, factors: Array) -> Self:
        """Returns the same combination of both kernels in these units of the points."""
        return self._of(self.left.rescaled(factors), self.right.rescaled(factors))

    def _of(self, left: Kernel, right: Kernel) -> Self:
        return replace(self, left=left, right=right)

    @property
    def variance(self) -> float | None:
        """Prior variance, if those of both kernels are the same everywhere."""
        left, right = self.left.variance, self.right.variance
        return None if left is None or right is None else float(self._combined(np.array(left), np.array(right)))

    @property
    def approximates(self) -> bool:
        """True if one of the kernels stands for another kernel."""
        return self.left.approximates or self.right.approximates

    def columns(self, dimension: int) -> frozenset[int]:
        """Returns the columns that at least one of the kernels sees."""
        return self.left.columns(dimension) | self.right.columns(dimension)


@final
@description(frozen=True)
class Sum(Pair):
    """k(x, x') = left(x, x') + right(x, x'): rewards that are sums of independent effects.

    >>> import nilregret as nr
    >>> (nr.Linear() + nr.SquaredExponential(1.0))([[1.0]], [[1.0]])
    array([[2.]])
    """

    def _combined(self, left: Array, right: Array) -> Array:
        return left + right

    def input_gradient(self, X: npt.ArrayLike, B: npt.ArrayLike, weights: npt.ArrayLike) -> Array:
        """Returns the sum of both gradients, `(m, d)`."""
        return self.left.input_gradient(X, B, weights) + self.right.input_gradient(X, B, weights)

    def diagonal_gradient(self, X: npt.ArrayLike) -> Array:
        """Returns the sum of both gradients, `(m, d)`."""
        return self.left.diagonal_gradient(X) + self.right.diagonal_gradient(X)

    def scaled(self, factor: float) -> Sum:
        """Returns the sum of both kernels, multiplied."""
        return Sum(self.left.scaled(factor), self.right.scaled(factor))

    def derivatives(self, lower: Array, upper: Array) -> Derivatives:
        """Returns the sums of both variances, since the terms are independent processes."""
        return self.left.derivatives(lower, upper).plus(self.right.derivatives(lower, upper))

    def rank(self, dimension: int) -> int | None:
        """Returns the sum of both ranks, an upper bound."""
        left, right = self.left.rank(dimension), self.right.rank(dimension)
        return None if left is None or right is None else left + right

    def features(self, points: npt.ArrayLike) -> Array | None:
        """Returns the features of both kernels, side by side."""
        left = self.left.features(points)
        right = None if left is None else self.right.features(points)
        return None if left is None or right is None else np.hstack([left, right])

    def feature_gradient(self, X: npt.ArrayLike, weights: npt.ArrayLike) -> Array:
        """Returns the sum of both gradients, `(m, d)`."""
        given = np.asarray(weights)
        first = self.left.features(X)
        split = 0 if first is None else first.shape[1]
        return self.left.feature_gradient(X, given[:, :split]) + self.right.feature_gradient(X, given[:, split:])

    def matrices(self, X: npt.ArrayLike) -> Matrices:
        """Returns the sum of both matrices, and the pullbacks of both terms, by log parameters."""
        of_left, of_right, first = self.left.matrices(X), self.right.matrices(X), len(self.left.log_parameters)

        def at(values: Array) -> tuple[Array, Pullback]:
            (left, left_pullback), (right, right_pullback) = of_left(values[:first]), of_right(values[first:])
            return left + right, lambda weights: np.concatenate([left_pullback(weights), right_pullback(weights)])

        return at


@final
@description(frozen=True)
class Product(Pair):
    """k(x, x') = left(x, x') * right(x, x'): two points are alike only if both factors say so.

    >>> import nilregret as nr
    >>> (nr.Linear() * nr.SquaredExponential(1.0))([[2.0]], [[2.0]])
    array([[4.]])
    """

    def _combined(self, left: Array, right: Array) -> Array:
        return left * right

    def input_gradient(self, X: npt.ArrayLike, B: npt.ArrayLike, weights: npt.ArrayLike) -> Array:
        """Returns the gradients by the product rule, `(m, d)`."""
        left, right = self.left(X, B), self.right(X, B)
        given = weights_array(weights, left.shape)
        return self.left.input_gradient(X, B, given * right) + self.right.input_gradient(X, B, given * left)

    def diagonal_gradient(self, X: npt.ArrayLike) -> Array:
        """Returns the gradients by the product rule, `(m, d)`."""
        left, right = self.left.diagonal(X)[:, None], self.right.diagonal(X)[:, None]
        return left * self.right.diagonal_gradient(X) + right * self.left.diagonal_gradient(X)

    def scaled(self, factor: float) -> Product:
        """Returns the product with the left factor multiplied."""
        return Product(self.left.scaled(factor), self.right)

    def derivatives(self, lower: Array, upper: Array) -> Derivatives:
        """Returns the variances of the product of two independent processes."""
        return self.left.derivatives(lower, upper).times(self.right.derivatives(lower, upper))

    def rank(self, dimension: int) -> int | None:
        """Returns the product of both ranks, an upper bound."""
        left, right = self.left.rank(dimension), self.right.rank(dimension)
        return None if left is None or right is None else left * right

    def features(self, points: npt.ArrayLike) -> Array | None:
        """Returns all products of a feature of `left` and a feature of `right`."""
        left = self.left.features(points)
        right = None if left is None else self.right.features(points)
        if left is None or right is None:
            return None
        return np.asarray((left[:, :, None] * right[:, None, :]).reshape(len(left), left.shape[1] * right.shape[1]))

    def feature_gradient(self, X: npt.ArrayLike, weights: npt.ArrayLike) -> Array:
        """Returns the gradients by the product rule, `(m, d)`."""
        left, right = self.left.features(X), self.right.features(X)
        if left is None or right is None:
            return np.zeros(points_array("X", X).shape)
        given = np.asarray(weights).reshape(len(left), left.shape[1], right.shape[1])
        by_left = self.left.feature_gradient(X, np.einsum("ijk,ik->ij", given, right))
        return by_left + self.right.feature_gradient(X, np.einsum("ijk,ij->ik", given, left))

    def matrices(self, X: npt.ArrayLike) -> Matrices:
        """Returns the product of both matrices, and the pullback by the product rule, by log parameters."""
        of_left, of_right, first = self.left.matrices(X), self.right.matrices(X), len(self.left.log_parameters)

        def at(values: Array) -> tuple[Array, Pullback]:
            (left, left_pullback), (right, right_pullback) = of_left(values[:first]), of_right(values[first:])
            return left * right, lambda weights: np.concatenate(
                [left_pullback(weights * right), right_pullback(weights * left)]
            )

        return at


@final
@description(frozen=True)
class Active(Wrapper):
    """A kernel that sees only some columns of its points, in the order given: `Active(kernel, [0, 1])`.

    A product of two such kernels is a kernel on (context, point). An `Empirical` kernel inside reads its one column as
    an index, so `Empirical(C).on(0) * Matern().on(1, 2)` relates the tasks numbered in column 0.

    >>> import nilregret as nr
    >>> nr.Matern(2.5, 0.5).on(1)([[9.0, 0.0]], [[0.0, 0.0]])
    array([[1.]])
    """

    kernel: Kernel
    dimensions: tuple[int, ...]

    def __post_init__(self) -> None:
        check_kernel("kernel", self.kernel)
        why = "It is the index of a column of the points, from 0."
        given = self.dimensions
        several = isinstance(given, list | tuple | range) or (isinstance(given, np.ndarray) and given.ndim)
        listed = list(given) if several else [given]
        columns = tuple(integer("dimensions", column, low=0, why=why) for column in listed)
        if not columns or len(set(columns)) < len(columns):
            raise InvalidInput(f"`dimensions` is {list(columns)}: name at least one column, and none of them twice.")
        object.__setattr__(self, "dimensions", columns)

    @cached_property
    def _places(self) -> IndexArray:
        return np.array(self.dimensions)

    def _inside(self, points: Array) -> Array:
        if max(self.dimensions) >= points.shape[1]:
            raise InvalidInput(
                f"The kernel sees the columns {list(self.dimensions)} and the points have {points.shape[1]}: "
                "columns are counted from 0."
            )
        return points[:, self._places]

    def _outside(self, gradient: Array, points: Array) -> Array:
        result = np.zeros(points.shape)
        result[:, list(self.dimensions)] = gradient
        return result

    def hyperparameters(self, columns: Sequence[int]) -> tuple[Hyperparameter, ...]:
        """Returns the hyperparameters of the kernel inside, which sees some of the columns."""
        return self.kernel.hyperparameters([columns[dimension] for dimension in self.dimensions])

    def derivatives(self, lower: Array, upper: Array) -> Derivatives:
        """Returns the variances of the kernel inside, and 0 in the columns that it does not see."""
        inside = self.kernel.derivatives(self._inside(lower[None])[0], self._inside(upper[None])[0])
        return inside.on(self.dimensions, len(lower))

    def rescaled(self, factors: Array) -> Active:
        """Returns the kernel inside, rescaled by the factors of the columns that it sees."""
        return Active(self.kernel.rescaled(self._inside(factors[None])[0]), self.dimensions)

    def rank(self, dimension: int) -> int | None:  # noqa: ARG002 - it sees its own columns
        """Returns the rank of the kernel inside."""
        return self.kernel.rank(len(self.dimensions))

    def columns(self, dimension: int) -> frozenset[int]:  # noqa: ARG002 - it sees its own columns
        """Returns those of its columns that the kernel inside sees."""
        return frozenset(self.dimensions[i] for i in self.kernel.columns(len(self.dimensions)))
