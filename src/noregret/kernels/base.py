"""What every kernel can do, and how kernels combine.

| symbol | name | meaning | shape |
|---|---|---|---|
| k | `kernel(A, B)` | covariance of f between the rows of A and B | (n, m) |
| k(x, x) | `kernel.diagonal(A)` | prior variance, `scale` for stationary kernels | (n,) |
| theta | `log_parameters` | logarithms of what a fit may change | (p,) |
| W | `weights` | what a sum of derivatives of k is weighted with | (m, n) |

Gradients are always taken of a weighted sum of covariances. That is what a posterior mean, a posterior variance and
a likelihood need, and it spares the (m, n, d) array of all derivatives.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, Self, final

import numpy as np
import numpy.typing as npt

from ..checks import LARGEST_REWARD, Array, IndexArray, finite_array, integer, number, points_array, shown
from ..errors import InvalidInput
from ..serialize import described
from .derivatives import Derivatives

Rows = IndexArray | slice
Pullback = Callable[[Array], Array]
ALL = slice(None)


class Hyperparameter(NamedTuple):
    """What one entry of `log_parameters` is: a fit chooses priors and bounds by it."""

    # slope: the scale of a linear kernel, reward^2 / point^2; period: a length of the points; angle: the lengthscale of
    # a periodic kernel, a pure number.
    kind: Literal["lengthscale", "scale", "slope", "period", "angle"]
    columns: tuple[int, ...]  # the columns of the points that it acts on
    dimension: int  # of how many columns its kernel sees


class Kernel(ABC):
    """A covariance function. `kernel(A, B)` takes `(n, d)` and `(m, d)` and returns `(n, m)`."""

    __array_ufunc__: ClassVar[None] = None  # so that numpy leaves `np.float64(2) * kernel` to `__rmul__`

    @abstractmethod
    def __call__(self, A: npt.ArrayLike, B: npt.ArrayLike) -> Array:
        """The covariances between the rows of A and of B, `(n, m)`."""

    @abstractmethod
    def diagonal(self, A: npt.ArrayLike) -> Array:
        """The prior variances k(x, x) of the rows of A, `(n,)`, without the whole matrix."""

    @abstractmethod
    def between_arms(self, points: Array, rows: Rows, columns: Rows) -> Array:
        """The covariances between arms given by index, where `points` `(N, d)` holds all arms."""

    @abstractmethod
    def arm_variances(self, points: Array) -> Array:
        """The prior variance of every arm, `(N,)`."""

    @abstractmethod
    def input_gradient(self, X: npt.ArrayLike, B: npt.ArrayLike, weights: npt.ArrayLike) -> Array:
        """Row i is sum_j weights[i, j] * d k(x_i, b_j) / d x_i, `(m, d)`, for X `(m, d)`, B `(n, d)`, weights `(m, n)`.

        Where k has a kink (a Matern kernel of nu <= 1/2 at coinciding points) the term counts as 0. Errors for kernels
        without coordinates (`Empirical`).
        """

    @abstractmethod
    def diagonal_gradient(self, X: npt.ArrayLike) -> Array:
        """The gradient of the prior variance k(x, x) at every row of X, `(m, d)`."""

    @property
    @abstractmethod
    def log_parameters(self) -> Array:
        """The logarithms of the lengthscales, then of the scale, `(p,)`; of sums and products left before right."""

    @abstractmethod
    def hyperparameters(self, columns: Sequence[int]) -> tuple[Hyperparameter, ...]:
        """What the entries of `log_parameters` are, for a kernel that sees these columns of the points."""

    @abstractmethod
    def with_log_parameters(self, values: npt.ArrayLike) -> Self:
        """A kernel of the same structure with these `log_parameters` `(p,)`."""

    @abstractmethod
    def matrix_and_pullback(self, X: npt.ArrayLike) -> tuple[Array, Pullback]:
        """K = k(X, X) `(n, n)`, and the function weights -> sum_ij weights_ij * dK_ij / d log_parameters, `(p,)`.

        What costs most is shared between the two. K must not be written to before the function has been called.
        """

    @abstractmethod
    def scaled(self, factor: float) -> Kernel:
        """The kernel factor * k, also written `factor * kernel`: variances are multiplied, so for an amplitude a, a**2.

        The factor goes into the scales there are, so that a fit has no second scale to tell apart from the first.
        """

    @abstractmethod
    def derivatives(self, lower: Array, upper: Array) -> Derivatives:
        """Largest variances of samples and their derivatives on a box (see `kernels.derivatives`); may be infinite."""

    @final
    def parameter_gradient(self, X: npt.ArrayLike, weights: npt.ArrayLike) -> Array:
        """sum_ij weights_ij * d k(x_i, x_j) / d `log_parameters`, `(p,)`, for X `(n, d)` and weights `(n, n)`."""
        matrix, pullback = self.matrix_and_pullback(X)
        return pullback(weights_array(weights, matrix.shape))

    @final
    def on(self, *dimensions: int) -> Active:
        """This kernel, seeing only these columns of the points: `Matern().on(0) * Linear().on(1, 2)`."""
        return Active(self, dimensions)

    def __add__(self, other: Kernel) -> Sum:
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Kernel | float) -> Kernel:
        return Product(self, other) if isinstance(other, Kernel) else self.__rmul__(other)

    def __rmul__(self, factor: float) -> Kernel:
        if not isinstance(factor, int | float | np.integer | np.floating):
            return NotImplemented
        return self.scaled(
            number(
                "factor", factor, low=0.0, high=LARGEST_REWARD, open_low=True, why="It multiplies the prior variance."
            )
        )


class PointKernel(Kernel):
    """A kernel that needs nothing of an arm but its coordinates."""

    @final
    def between_arms(self, points: Array, rows: Rows, columns: Rows) -> Array:
        """The covariances between arms given by index."""
        return self(points[rows], points[columns])

    @final
    def arm_variances(self, points: Array) -> Array:
        """The prior variance of every arm, `(N,)`."""
        return self.diagonal(points)


def scale_number(value: object) -> float:
    """A valid `scale`, or an error."""
    why = "It is the prior variance k(x, x)."
    return number("scale", value, low=0.0, high=LARGEST_REWARD, open_low=True, why=why)


def check_kernel(name: str, value: object) -> None:
    """Refuse what is no kernel."""
    if not isinstance(value, Kernel):
        raise InvalidInput(f"`{name}` must be a kernel such as Matern(2.5, lengthscale=0.2), not {shown(value)}.")


def points_pair(A: npt.ArrayLike, B: npt.ArrayLike) -> tuple[Array, Array]:
    """Both as points of one domain, or an error."""
    first = points_array("A", A)
    second = first if B is A else points_array("B", B)
    if first.shape[1] != second.shape[1]:
        raise InvalidInput(
            f"A has {first.shape[1]} columns and B has {second.shape[1]}: both are points of one domain."
        )
    return first, second


def weights_array(weights: npt.ArrayLike, shape: tuple[int, ...]) -> Array:
    """Weights of the shape of the covariances they belong to; neither copied nor searched for NaN (inner loop)."""
    result = np.asarray(weights, dtype=np.float64)
    if result.shape != shape:
        raise InvalidInput(f"`weights` has shape {result.shape}: it must be {shape}, one weight for each covariance.")
    return result


def parameter_values(values: npt.ArrayLike, count: int) -> Array:
    """`count` log parameters, or an error."""
    result = finite_array("values", values)
    if result.shape != (count,):
        raise InvalidInput(
            f"`values` has shape {result.shape} and the kernel has {count} log parameters: see `log_parameters`."
        )
    return result


@final
@described
@dataclass(frozen=True)
class Sum(Kernel):
    """k(x, x') = left(x, x') + right(x, x'): rewards that are sums of independent effects."""

    left: Kernel
    right: Kernel

    def __post_init__(self) -> None:
        check_kernel("left", self.left)
        check_kernel("right", self.right)

    def __call__(self, A: npt.ArrayLike, B: npt.ArrayLike) -> Array:
        """The covariances between the rows of A and of B, `(n, m)`."""
        return self.left(A, B) + self.right(A, B)

    def diagonal(self, A: npt.ArrayLike) -> Array:
        """The sum of both diagonals."""
        return self.left.diagonal(A) + self.right.diagonal(A)

    def between_arms(self, points: Array, rows: Rows, columns: Rows) -> Array:
        """The covariances between arms given by index."""
        return self.left.between_arms(points, rows, columns) + self.right.between_arms(points, rows, columns)

    def arm_variances(self, points: Array) -> Array:
        """The prior variance of every arm, `(N,)`."""
        return self.left.arm_variances(points) + self.right.arm_variances(points)

    def input_gradient(self, X: npt.ArrayLike, B: npt.ArrayLike, weights: npt.ArrayLike) -> Array:
        """The sum of both gradients, `(m, d)`."""
        return self.left.input_gradient(X, B, weights) + self.right.input_gradient(X, B, weights)

    def diagonal_gradient(self, X: npt.ArrayLike) -> Array:
        """The sum of both gradients, `(m, d)`."""
        return self.left.diagonal_gradient(X) + self.right.diagonal_gradient(X)

    @property
    def log_parameters(self) -> Array:
        """Those of `left`, then those of `right`."""
        return np.concatenate([self.left.log_parameters, self.right.log_parameters])

    def hyperparameters(self, columns: Sequence[int]) -> tuple[Hyperparameter, ...]:
        """Those of `left`, then those of `right`."""
        return self.left.hyperparameters(columns) + self.right.hyperparameters(columns)

    def scaled(self, factor: float) -> Sum:
        """Both terms multiplied."""
        return Sum(self.left.scaled(factor), self.right.scaled(factor))

    def derivatives(self, lower: Array, upper: Array) -> Derivatives:
        """The terms are independent processes."""
        return self.left.derivatives(lower, upper).plus(self.right.derivatives(lower, upper))

    def with_log_parameters(self, values: npt.ArrayLike) -> Sum:
        """The sum of both kernels with these log parameters."""
        return Sum(*_split(self.left, self.right, values))

    def matrix_and_pullback(self, X: npt.ArrayLike) -> tuple[Array, Pullback]:
        """The sum of both matrices; the derivatives are those of its terms."""
        left, left_pullback = self.left.matrix_and_pullback(X)
        right, right_pullback = self.right.matrix_and_pullback(X)
        return left + right, lambda weights: np.concatenate([left_pullback(weights), right_pullback(weights)])


@final
@described
@dataclass(frozen=True)
class Product(Kernel):
    """k(x, x') = left(x, x') * right(x, x'): two points are alike only if both factors say so."""

    left: Kernel
    right: Kernel

    def __post_init__(self) -> None:
        check_kernel("left", self.left)
        check_kernel("right", self.right)

    def __call__(self, A: npt.ArrayLike, B: npt.ArrayLike) -> Array:
        """The covariances between the rows of A and of B, `(n, m)`."""
        return self.left(A, B) * self.right(A, B)

    def diagonal(self, A: npt.ArrayLike) -> Array:
        """The product of both diagonals."""
        return self.left.diagonal(A) * self.right.diagonal(A)

    def between_arms(self, points: Array, rows: Rows, columns: Rows) -> Array:
        """The covariances between arms given by index."""
        return self.left.between_arms(points, rows, columns) * self.right.between_arms(points, rows, columns)

    def arm_variances(self, points: Array) -> Array:
        """The prior variance of every arm, `(N,)`."""
        return self.left.arm_variances(points) * self.right.arm_variances(points)

    def input_gradient(self, X: npt.ArrayLike, B: npt.ArrayLike, weights: npt.ArrayLike) -> Array:
        """By the product rule: each factor's gradient, weighted with the other factor too, `(m, d)`."""
        left, right = self.left(X, B), self.right(X, B)
        given = weights_array(weights, left.shape)
        return self.left.input_gradient(X, B, given * right) + self.right.input_gradient(X, B, given * left)

    def diagonal_gradient(self, X: npt.ArrayLike) -> Array:
        """By the product rule, `(m, d)`."""
        left, right = self.left.diagonal(X)[:, None], self.right.diagonal(X)[:, None]
        return left * self.right.diagonal_gradient(X) + right * self.left.diagonal_gradient(X)

    @property
    def log_parameters(self) -> Array:
        """Those of `left`, then those of `right`."""
        return np.concatenate([self.left.log_parameters, self.right.log_parameters])

    def hyperparameters(self, columns: Sequence[int]) -> tuple[Hyperparameter, ...]:
        """Those of `left`, then those of `right`."""
        return self.left.hyperparameters(columns) + self.right.hyperparameters(columns)

    def scaled(self, factor: float) -> Product:
        """The left factor multiplied."""
        return Product(self.left.scaled(factor), self.right)

    def derivatives(self, lower: Array, upper: Array) -> Derivatives:
        """Those of the product of two independent processes."""
        return self.left.derivatives(lower, upper).times(self.right.derivatives(lower, upper))

    def with_log_parameters(self, values: npt.ArrayLike) -> Product:
        """The product of both kernels with these log parameters."""
        return Product(*_split(self.left, self.right, values))

    def matrix_and_pullback(self, X: npt.ArrayLike) -> tuple[Array, Pullback]:
        """The product of both matrices; the derivatives follow the product rule."""
        left, left_pullback = self.left.matrix_and_pullback(X)
        right, right_pullback = self.right.matrix_and_pullback(X)
        return left * right, lambda weights: np.concatenate(
            [left_pullback(weights * right), right_pullback(weights * left)]
        )


@final
@described
@dataclass(frozen=True)
class Active(PointKernel):
    """A kernel that sees only some columns of its points, in the order given: `Active(kernel, [0, 1])`.

    A product of two is a kernel on (context, point). An `Empirical` kernel inside reads its one column as an index, so
    `Empirical(C).on(0) * Matern().on(1, 2)` relates the tasks numbered in column 0.
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

    def _select(self, points: Array) -> Array:
        if max(self.dimensions) >= points.shape[1]:
            raise InvalidInput(
                f"The kernel sees the columns {list(self.dimensions)} and the points have {points.shape[1]}: "
                "columns are counted from 0."
            )
        return points[:, list(self.dimensions)]

    def _spread(self, gradient: Array, like: Array) -> Array:
        result = np.zeros(like.shape)
        result[:, list(self.dimensions)] = gradient
        return result

    def __call__(self, A: npt.ArrayLike, B: npt.ArrayLike) -> Array:
        """The covariances between the rows of A and of B, `(n, m)`."""
        first, second = points_pair(A, B)
        return self.kernel(self._select(first), self._select(second))

    def diagonal(self, A: npt.ArrayLike) -> Array:
        """The prior variances of the rows of A, `(n,)`."""
        return self.kernel.diagonal(self._select(points_array("A", A)))

    def input_gradient(self, X: npt.ArrayLike, B: npt.ArrayLike, weights: npt.ArrayLike) -> Array:
        """The gradient in the columns it sees, 0 in the others, `(m, d)`."""
        first, second = points_pair(X, B)
        return self._spread(self.kernel.input_gradient(self._select(first), self._select(second), weights), first)

    def diagonal_gradient(self, X: npt.ArrayLike) -> Array:
        """The gradient in the columns it sees, 0 in the others, `(m, d)`."""
        points = points_array("X", X)
        return self._spread(self.kernel.diagonal_gradient(self._select(points)), points)

    @property
    def log_parameters(self) -> Array:
        """Those of the kernel inside."""
        return self.kernel.log_parameters

    def hyperparameters(self, columns: Sequence[int]) -> tuple[Hyperparameter, ...]:
        """Those of the kernel inside, which sees a part of the columns."""
        return self.kernel.hyperparameters([columns[dimension] for dimension in self.dimensions])

    def scaled(self, factor: float) -> Active:
        """The kernel inside multiplied."""
        return Active(self.kernel.scaled(factor), self.dimensions)

    def derivatives(self, lower: Array, upper: Array) -> Derivatives:
        """Those of the kernel inside, 0 in the columns that it does not see."""
        inside = self.kernel.derivatives(self._select(lower[None])[0], self._select(upper[None])[0])
        return inside.on(self.dimensions, len(lower))

    def with_log_parameters(self, values: npt.ArrayLike) -> Active:
        """The kernel inside with these log parameters, on the same columns."""
        return Active(self.kernel.with_log_parameters(values), self.dimensions)

    def matrix_and_pullback(self, X: npt.ArrayLike) -> tuple[Array, Pullback]:
        """Those of the kernel inside."""
        return self.kernel.matrix_and_pullback(self._select(points_array("X", X)))


def _split(left: Kernel, right: Kernel, values: npt.ArrayLike) -> tuple[Kernel, Kernel]:
    first, second = len(left.log_parameters), len(right.log_parameters)
    both = parameter_values(values, first + second)
    return left.with_log_parameters(both[:first]), right.with_log_parameters(both[first:])
