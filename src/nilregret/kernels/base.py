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
from typing import ClassVar, Literal, NamedTuple, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import LARGEST_REWARD, Array, IndexArray, finite_array, many, number, points_array, shown
from .._utils.errors import InvalidInput
from . import differences
from .derivatives import Derivatives, unknown

Rows = IndexArray | slice
Pullback = Callable[[Array], Array]
ALL = slice(None)
LENGTHSCALES = (1e-100, 1e300)  # within which distances measured by them do not overflow
POWERS = {"lengthscale": 1.0, "period": 1.0, "slope": -2.0}  # of a length of the points, by kind of parameter
# How kernels are combined and wrapped ("sum", "product", "active", "multiplied", "stretched"): filled by `combined` and
# `wrapped`, which need this module.
MAKE: dict[str, Callable[..., Kernel]] = {}


class Hyperparameter(NamedTuple):
    """What one entry of `log_parameters` is: a fit chooses priors and bounds by it."""

    # slope: the scale of a linear kernel, reward^2 / point^2; period: a length of the points; angle: the lengthscale of
    # a periodic kernel, a pure number; odds: lambda / (1 - lambda) of a mixture, a pure number.
    kind: Literal["lengthscale", "scale", "slope", "period", "angle", "odds"]
    columns: tuple[int, ...]  # the columns of the points that it acts on
    dimension: int  # of how many columns its kernel sees


class Kernel(ABC):
    """A covariance function. `kernel(A, B)` takes `(n, d)` and `(m, d)` and returns `(n, m)`.

    One of your own derives from `PointKernel`, or from `Stationary` where it is a function of a distance: they leave
    the least to be written. `variance`, `smoothness`, `rank`, `features`, `columns` and `derivatives` say what is known
    of a kernel beyond its values; what is not known is None (infinite), and whoever asks then says what it does
    without.
    """

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
    def with_log_parameters(self, values: npt.ArrayLike) -> Kernel:
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

    def derivatives(self, lower: Array, upper: Array) -> Derivatives:  # noqa: ARG002 - nothing is known here
        """Largest variances of samples and their derivatives on a box (see `kernels.derivatives`); may be infinite.

        Infinite means that nothing is known: a width that needs them then takes differences, warns, and is not called
        proved.
        """
        return unknown(len(lower))

    def rescaled(self, factors: Array) -> Kernel:
        """The same kernel for points whose columns have been multiplied by `factors` `(d,)`; for fits.

        By the parameters that are lengths of the points, where there are any; else the points are divided first.
        """
        known = self.hyperparameters(range(len(factors)))
        if not any(parameter.kind in POWERS for parameter in known):
            return MAKE["stretched"](self, tuple(factors.tolist()))
        values = self.log_parameters.copy()
        for i, parameter in enumerate(known):
            if parameter.kind in POWERS:
                own = np.log(factors[list(parameter.columns)])
                if np.ptp(own) > 1e-12:
                    raise InvalidInput(
                        "A fit needs a lengthscale for each dimension where the box has sides of different lengths: "
                        f"{shown(self)} has one for several of them. Give a list.",
                        advice="Such as lengthscale=[1.0, 20.0].",
                    )
                values[i] += POWERS[parameter.kind] * own[0]
        return self.with_log_parameters(values)

    @property
    def variance(self) -> float | None:
        """k(x, x) where it is the same at every x, else None."""
        return None

    @property
    def smoothness(self) -> float | None:
        """Alpha of Avanesov's schedules: nu of a Matern kernel, possibly infinite; None where it is not stated."""
        return None

    def rank(self, dimension: int) -> int | None:  # noqa: ARG002 - most have none
        """How many functions span all samples, on points of so many columns; None where they are not finitely many."""
        return None

    def features(self, points: npt.ArrayLike) -> Array | None:  # noqa: ARG002 - most have infinitely many
        """phi(x) of every row, `(n, r)`, where k(x, x') = phi(x)^T phi(x') and `rank` says r; None where nobody knows.

        Whether it is None may not hang on the points. A posterior at points then costs r^2 a round, whatever n.
        """
        return None

    def feature_gradient(self, X: npt.ArrayLike, weights: npt.ArrayLike) -> Array:
        """Row i is d (weights[i]^T phi(x_i)) / d x_i, `(m, d)`, for X `(m, d)`, weights `(m, r)`; by differences."""
        return differences.feature_gradient(self.features, points_array("X", X), np.asarray(weights))

    def columns(self, dimension: int) -> frozenset[int]:
        """Which of so many columns of the points the kernel sees."""
        return frozenset(range(dimension))

    @final
    def parameter_gradient(self, X: npt.ArrayLike, weights: npt.ArrayLike) -> Array:
        """sum_ij weights_ij * d k(x_i, x_j) / d `log_parameters`, `(p,)`, for X `(n, d)` and weights `(n, n)`."""
        matrix, pullback = self.matrix_and_pullback(X)
        return pullback(weights_array(weights, matrix.shape))

    @final
    def on(self, *dimensions: int) -> Kernel:
        """This kernel, seeing only these columns of the points: `Matern().on(0) * Linear().on(1, 2)`."""
        return MAKE["active"](self, dimensions)

    def __add__(self, other: Kernel) -> Kernel:
        return MAKE["sum"](self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Kernel | float) -> Kernel:
        return MAKE["product"](self, other) if isinstance(other, Kernel) else self.__rmul__(other)

    def __rmul__(self, factor: float) -> Kernel:
        if not isinstance(factor, int | float | np.integer | np.floating):
            return NotImplemented
        return self.scaled(
            number(
                "factor", factor, low=0.0, high=LARGEST_REWARD, open_low=True, why="It multiplies the prior variance."
            )
        )


class PointKernel(Kernel):
    """A kernel that needs nothing of an arm but its coordinates: what one of your own derives from.

    A frozen dataclass decorated with `nilregret.slots.described`, whose fields are its description.
    **Needed** is
    `__call__` alone, symmetric and positive semi-definite. The rest has a fallback, from values of the kernel:

    | method | where it is not written |
    |---|---|
    | `diagonal` | blocks of the matrix |
    | `input_gradient`, `diagonal_gradient` | central differences, about eight digits |
    | `log_parameters`, `hyperparameters`, `with_log_parameters` (go together) | a fit leaves the kernel as it is |
    | `matrix_and_pullback` | central differences in `log_parameters` |
    | `scaled`, `rescaled` | wrappers that multiply the variance, and divide the points |
    | `derivatives` | nothing is known: widths from slopes are assumed, with a warning |
    | `variance`, `smoothness`, `rank` | None: what hangs on them asks for a number, or says what it lacks |
    | `features` (with `rank`: r functions span all samples) | None: a round costs n^2 on boxes and under contexts |
    | `feature_gradient` | central differences |

    Sample paths are drawn by joint sampling (`posterior.paths`), integrals are quasi-Monte Carlo (`change.geometry`);
    a closed form joins by `nilregret.theory.change.box_averages.product_average.register(MyKernel)`, a growth rate of
    the information gain by `nilregret.theory.rates.growth_rate.register(MyKernel)`.

    >>> from dataclasses import dataclass
    >>> import numpy as np, nilregret as nr
    >>> from nilregret.slots import described
    >>> @described
    ... @dataclass(frozen=True)
    ... class Brownian(nr.kernels.PointKernel):
    ...     start: float = 0.0
    ...     def __call__(self, A, B):
    ...         return np.minimum(np.asarray(A), np.asarray(B).T) - self.start
    >>> policy = nr.gp_ucb(nr.Arms.grid(0.1, 1.0, 10), Brownian(), noise=0.1)
    """

    @final
    def between_arms(self, points: Array, rows: Rows, columns: Rows) -> Array:
        """The covariances between arms given by index."""
        return self(points[rows], points[columns])

    @final
    def arm_variances(self, points: Array) -> Array:
        """The prior variance of every arm, `(N,)`."""
        return self.diagonal(points)

    def diagonal(self, A: npt.ArrayLike) -> Array:
        """The prior variances k(x, x) of the rows of A, `(n,)`."""
        return differences.diagonal(self, points_array("A", A))

    def input_gradient(self, X: npt.ArrayLike, B: npt.ArrayLike, weights: npt.ArrayLike) -> Array:
        """Row i is sum_j weights[i, j] * d k(x_i, b_j) / d x_i, `(m, d)`; by differences."""
        first, second = points_pair(X, B)
        return differences.input_gradient(self, first, second, weights_array(weights, (len(first), len(second))))

    def diagonal_gradient(self, X: npt.ArrayLike) -> Array:
        """The gradient of the prior variance at every row, `(m, d)`: 0 where that is `variance`, else differences."""
        points = points_array("X", X)
        if self.variance is not None:
            return np.zeros(points.shape)
        return differences.diagonal_gradient(self.diagonal, points)

    @property
    def log_parameters(self) -> Array:
        """Empty: a fit changes nothing."""
        return np.empty(0)

    def hyperparameters(self, columns: Sequence[int]) -> tuple[Hyperparameter, ...]:  # noqa: ARG002 - has none
        """Empty. A kernel that lists a length of the points here must list every length that it has."""
        return ()

    def with_log_parameters(self, values: npt.ArrayLike) -> Kernel:
        """The kernel itself."""
        parameter_values(values, 0)
        return self

    def matrix_and_pullback(self, X: npt.ArrayLike) -> tuple[Array, Pullback]:
        """K, and its derivatives by `log_parameters`, by differences."""
        points = points_array("X", X)

        def matrix(parameters: Array) -> Array:
            return self.with_log_parameters(parameters)(points, points)

        return self(points, points), lambda weights: differences.pullback(matrix, self.log_parameters, weights)

    def scaled(self, factor: float) -> Kernel:
        """The kernel factor * k."""
        return MAKE["multiplied"](self, factor)


def check_kernel(name: str, value: object) -> None:
    """Refuse what is no kernel."""
    if not isinstance(value, Kernel):
        raise InvalidInput(
            f"`{name}` must be a kernel, not {shown(value)}.", advice="Such as Matern(2.5, lengthscale=0.2)."
        )
    try:
        hash(value)
    except TypeError as error:
        raise InvalidInput(
            f"`{name}` is {shown(value)}, which cannot be told from others ({error}). A kernel of your own is a frozen "
            "dataclass of numbers and tuples: make tuples of lists and arrays in its `__post_init__`."
        ) from error


def scale_number(value: object) -> float:
    """A valid `scale`, or an error."""
    why = "It is the prior variance k(x, x)."
    return number("scale", value, low=0.0, high=LARGEST_REWARD, open_low=True, why=why)


def points_pair(A: npt.ArrayLike, B: npt.ArrayLike) -> tuple[Array, Array]:
    """Both as points of one domain, or an error."""
    first = points_array("A", A)
    second = first if B is A else points_array("B", B)
    if first.shape[1] != second.shape[1]:
        raise InvalidInput(
            f"A has {many(first.shape[1], 'column')} and B has {second.shape[1]}: both are points of one domain."
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


def checked_lengths(name: str, value: object, *, why: str) -> float | tuple[float, ...]:
    """One positive number or one for each dimension, or an error."""
    low, high = LENGTHSCALES
    if not isinstance(value, list | tuple) and getattr(value, "shape", ()) == ():
        return number(name, value, low=low, high=high, why=why)
    given = finite_array(name, value).ravel()  # type: ignore[arg-type]  # refused there
    if not given.size:
        raise InvalidInput(f"`{name}` is empty: give one number, or one for each dimension.")
    if not (given.min() >= low and given.max() <= high):  # all at once: a fit makes a kernel in every step
        for each in given.tolist():
            number(name, each, low=low, high=high, why=why)
    return tuple(given.tolist())
