"""The interface of kernels, and the operators that combine them.

| symbol | name | meaning | shape |
|---|---|---|---|
| k | `kernel(A, B)` | covariance of f between the rows of A and B | (n, m) |
| k(x, x) | `kernel.diagonal(A)` | prior variance, `scale` for stationary kernels | (n,) |
| theta | `log_parameters` | logarithms of the parameters that a fit may change | (p,) |
| W | `weights` | weights of a sum of derivatives of k | (m, n) |

Gradients are always those of a weighted sum of covariances. Posterior means, posterior variances and likelihoods need
nothing else, and it avoids the (m, n, d) array of all derivatives.

Gradients and variances from values of a covariance function, for kernels of your own.

| symbol | name | meaning | shape |
|---|---|---|---|
| h_j | `steps` | step of the differences along column j, in the units of the points | (d,) |
| W | `weights` | weights of a sum of derivatives of k | (m, n) |

Central differences are right to about eight digits if k varies over distances not far below a thousandth of the spread
of the points. At a kink of k at coinciding points they give 0, by symmetry.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, Literal, NamedTuple, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import LARGEST_REWARD, Array, IndexArray, finite_array, many, number, points_array, shown
from .._utils.copying import take_back
from ..errors import InvalidInput

STEP = 1e-5  # relative step of central differences, for which truncation and rounding are about equal
LARGE = 2**14  # numbers in points, from which a copy takes longer than a check
FEW = 16  # distances that are computed before the import of SciPy's function would pay
ROUGH = 1e-8  # Share of the largest covariance that is rounding.
BLOCK = 32  # rows whose covariances are computed together for their variances

Covariance = Callable[[Array, Array], Array]


def diagonal(kernel: Covariance, points: Array) -> Array:
    """Returns k(x, x) of every row, `(n,)`, by blocks and never from the whole matrix."""
    blocks = (points[start : start + BLOCK] for start in range(0, len(points), BLOCK))
    return np.concatenate([np.zeros(0), *(np.asarray(kernel(block, block)).diagonal() for block in blocks)])


def input_gradient(kernel: Covariance, X: Array, B: Array, weights: Array) -> Array:
    """Returns rows sum_j weights[i, j] * d k(x_i, b_j) / d x_i, `(m, d)`."""

    def change(up: Array, down: Array) -> Array:
        return np.asarray(np.einsum("ij,ij->i", weights, kernel(up, B) - kernel(down, B)))

    return _slopes(change, X, _steps(np.concatenate([X, B])))


def feature_gradient(features: Callable[[Array], Array | None], X: Array, weights: Array) -> Array:
    """Returns rows d (weights[i]^T phi(x_i)) / d x_i, `(m, d)`, or zeros if there are no features."""

    def change(up: Array, down: Array) -> Array:
        above, below = features(up), features(down)
        return np.zeros(len(up)) if above is None or below is None else np.einsum("ij,ij->i", weights, above - below)

    return _slopes(change, X, _steps(X)) if len(X) else np.zeros(X.shape)


def diagonal_gradient(variances: Callable[[Array], Array], X: Array) -> Array:
    """Returns the gradient of the prior variance at every row, `(m, d)`."""
    return _slopes(lambda up, down: variances(up) - variances(down), X, _steps(X))


def pullback(matrix: Callable[[Array], Array], parameters: Array, weights: Array) -> Array:
    """Returns sum_ij weights_ij * dK_ij / d parameter, `(p,)`, for K = `matrix(parameters)`."""
    shifts = STEP * np.eye(len(parameters))
    changes = [np.vdot(weights, matrix(parameters + shift) - matrix(parameters - shift)) for shift in shifts]
    return np.asarray(changes, dtype=np.float64) / (2.0 * STEP)


def _slopes(change: Callable[[Array, Array], Array], X: Array, steps: Array) -> Array:
    gradient = np.zeros(X.shape)
    for j, step in enumerate(steps):
        up, down = X.copy(), X.copy()
        up[:, j] += step
        down[:, j] -= step
        # Rounding of large coordinates may have changed the step, so the actual step divides.
        gradient[:, j] = change(up, down) / (up[:, j] - down[:, j])
    return gradient


def _steps(points: Array) -> Array:
    """Returns shares of the spread of the points, or of their size if all points coincide."""
    spread, size = np.ptp(points, axis=0), np.abs(points).max(axis=0)
    # A step must not vanish in the rounding of large coordinates.
    lengths = np.where(spread > 0.0, spread, np.where(size > 0.0, size, 1.0))
    return np.asarray(STEP * np.maximum(lengths, 1e-6 * size))


class Derivatives(NamedTuple):
    """Largest variances over a box.

    Attributes:
        value: of f.
        first: of the slopes, `(d,)`.
        second: of the second derivatives, `(d, d)`.
        stationary: True if the kernel is stationary with a spectrum that is symmetric in every coordinate. Then f
            and its slopes at one point are uncorrelated, and so are slopes in different coordinates.
    """

    value: float
    first: Array
    second: Array
    stationary: bool

    def plus(self, other: Derivatives) -> Derivatives:
        """Returns the variances of a sum of independent processes, which add."""
        return Derivatives(
            self.value + other.value,
            self.first + other.first,
            self.second + other.second,
            self.stationary and other.stationary,
        )

    def times(self, other: Derivatives) -> Derivatives:
        """Returns the variances for a product of kernels, the covariance of f g for independent f and g of mean 0.

        For stationary kernels, frequencies of the product are sums of independent ones, so E (a + b)_i^2 (a + b)_j^2 is
        multiplied out. For other kernels, the bound is the product rule and Minkowski's inequality for standard
        deviations.
        """
        a, b = self, other
        with np.errstate(invalid="ignore"):
            if a.stationary and b.stationary:
                first = a.first * b.value + a.value * b.first
                mixed = np.outer(a.first, b.first)
                second = a.second * b.value + a.value * b.second + mixed + mixed.T + 4.0 * np.diag(a.first * b.first)
            else:
                f, g = np.sqrt(a.value), np.sqrt(b.value)
                first = (np.sqrt(a.first) * g + f * np.sqrt(b.first)) ** 2
                mixed = np.outer(np.sqrt(a.first), np.sqrt(b.first))
                second = (np.sqrt(a.second) * g + f * np.sqrt(b.second) + mixed + mixed.T) ** 2
        # 0 times infinity is NaN, and stands for a derivative that does not exist.
        first, second = (np.where(np.isnan(each), np.inf, each) for each in (first, second))
        return Derivatives(a.value * b.value, first, second, a.stationary and b.stationary)

    def on(self, columns: Sequence[int], dimension: int) -> Derivatives:
        """Returns the variances of a process that sees only these columns of `dimension` columns."""
        first, second = np.zeros(dimension), np.zeros((dimension, dimension))
        first[list(columns)] = self.first
        second[np.ix_(columns, columns)] = self.second
        return Derivatives(self.value, first, second, self.stationary)


def unknown(dimension: int) -> Derivatives:
    """Returns infinite variances, for an unknown process."""
    return Derivatives(np.inf, np.full(dimension, np.inf), np.full((dimension, dimension), np.inf), False)


Rows = IndexArray | slice
Pullback = Callable[[Array], Array]
Matrices = Callable[[Array], tuple[Array, Pullback]]
ALL = slice(None)
LENGTHSCALES = (1e-100, 1e300)  # lengthscales for which distances do not overflow
POWERS = {"lengthscale": 1.0, "period": 1.0, "slope": -2.0}  # power of a length of the points, by kind


class Hyperparameter(NamedTuple):
    """The description of one entry of `log_parameters`, by which a fit chooses priors and bounds.

    Attributes:
        kind: "slope" is the scale of a linear kernel (reward^2 / point^2). "period" is a length of the points.
            "angle" is the lengthscale of a periodic kernel, a pure number. "odds" is lambda / (1 - lambda) of a
            mixture, a pure number.
        columns: columns of the points that it acts on.
        dimension: number of columns that its kernel sees.
    """

    kind: Literal["lengthscale", "scale", "slope", "period", "angle", "odds"]
    columns: tuple[int, ...]
    dimension: int


class Kernel(ABC):
    """A covariance function. `kernel(A, B)` takes `(n, d)` and `(m, d)` and returns `(n, m)`.

    A kernel of your own derives from `PointKernel`, or from `Stationary` if it is a function of a distance. These bases
    leave the least to be written. `variance`, `smoothness`, `rank`, `features`, `columns` and `derivatives` are known
    properties of a kernel beyond its values. An unknown property is None (or infinite), and a caller that needs it then
    reports what it does instead.
    """

    __array_ufunc__: ClassVar[None] = None  # makes numpy leave `np.float64(2) * kernel` to `__rmul__`

    def __init_subclass__(cls) -> None:
        """Lets `cross_and_pullback` follow the values and gradients."""
        super().__init_subclass__()
        take_back(cls, "cross_and_pullback", Kernel.cross_and_pullback, ("__call__", "input_gradient"))

    @abstractmethod
    def __call__(self, A: npt.ArrayLike, B: npt.ArrayLike) -> Array:
        """Returns the covariances between the rows of A and of B, `(n, m)`."""

    @abstractmethod
    def diagonal(self, A: npt.ArrayLike) -> Array:
        """Returns the prior variances k(x, x) of the rows of A, `(n,)`, without the whole matrix."""

    @abstractmethod
    def between_arms(self, points: Array, rows: Rows, columns: Rows) -> Array:
        """Returns the covariances between arms given by index, where `points` `(N, d)` holds all arms."""

    @abstractmethod
    def arm_variances(self, points: Array) -> Array:
        """Returns the prior variance of every arm, `(N,)`."""

    @abstractmethod
    def input_gradient(self, X: npt.ArrayLike, B: npt.ArrayLike, weights: npt.ArrayLike) -> Array:
        """Returns rows sum_j weights[i, j] * d k(x_i, b_j) / d x_i, `(m, d)`.

        If k has a kink (a Matern kernel of nu <= 1/2 at coinciding points) the term counts as 0. Kernels without
        coordinates (`Empirical`) raise an error.

        Args:
            X: `(m, d)`.
            B: `(n, d)`.
            weights: `(m, n)`.
        """

    @abstractmethod
    def diagonal_gradient(self, X: npt.ArrayLike) -> Array:
        """Returns the gradient of the prior variance k(x, x) at every row of X, `(m, d)`."""

    @property
    @abstractmethod
    def log_parameters(self) -> Array:
        """Logarithms of the lengthscales, then of the scale, `(p,)`, with left before right in sums and products."""

    @abstractmethod
    def hyperparameters(self, columns: Sequence[int]) -> tuple[Hyperparameter, ...]:
        """Returns descriptions of the entries of `log_parameters`, for a kernel that sees these columns."""

    @abstractmethod
    def with_log_parameters(self, values: npt.ArrayLike) -> Kernel:
        """Returns a kernel of the same structure with these `log_parameters` `(p,)`."""

    def matrix_and_pullback(self, X: npt.ArrayLike) -> tuple[Array, Pullback]:
        """Returns K = k(X, X) and its pullback, which share the most expensive computations.

        The pullback is the function weights -> sum_ij weights_ij * dK_ij / d log_parameters, `(p,)`. K must not be
        overwritten before the pullback has been called. A kernel overrides this method or `matrices`.
        """
        return self.matrices(X)(self.log_parameters)

    def matrices(self, X: npt.ArrayLike) -> Matrices:
        """Returns `matrix_and_pullback` as a function of `log_parameters` `(p,)`, for the many steps of a fit.

        A kernel that overrides it computes once what depends on the points alone.
        """
        return lambda values: self.with_log_parameters(values).matrix_and_pullback(X)

    @abstractmethod
    def scaled(self, factor: float) -> Kernel:
        """Returns the kernel factor * k, also written `factor * kernel`.

        Variances are multiplied, so an amplitude a needs the factor a**2. The factor multiplies an existing scale if
        there is one, so that a fit does not have two scales that cannot be told apart.
        """

    def cross_and_pullback(self, B: Array, X: Array) -> tuple[Array, Pullback]:
        """Returns k(B, X) `(n, m)` and its pullback by X, for posteriors, which need both at the same points.

        The pullback maps k times the weights of `input_gradient`, `(k, m, n)`, to k times its rows, `(k, m, d)`. A
        kernel that overrides it computes distances once. Here both arguments are arrays of finite points.
        """

        def pullback(weights: Array) -> Array:
            rows = weights.reshape(len(weights) * len(X), len(B))
            return self.input_gradient(np.concatenate([X] * len(weights)), B, rows).reshape(len(weights), *X.shape)

        return self(B, X), pullback

    def derivatives(self, lower: Array, upper: Array) -> Derivatives:  # noqa: ARG002 - nothing is known here
        """Returns the largest variances of samples and their derivatives on a box (see `kernels.derivatives`).

        Infinite entries are unknown. A width that needs them then uses differences, warns, and does not count as
        proved.
        """
        return unknown(len(lower))

    def rescaled(self, factors: Array) -> Kernel:
        """Returns the same kernel for points whose columns have been multiplied by `factors` `(d,)`, for fits.

        Parameters that are lengths of the points are multiplied if there are any. Otherwise the points are divided
        first.
        """
        known = self.hyperparameters(range(len(factors)))
        if not any(parameter.kind in POWERS for parameter in known):
            from . import Stretched

            return Stretched(self, tuple(factors.tolist()))
        values, logs = self.log_parameters.copy(), np.log(factors)
        for i, parameter in enumerate(known):
            if parameter.kind in POWERS:
                own = logs[list(parameter.columns)]
                if len(own) > 1 and np.ptp(own) > 1e-12:
                    raise InvalidInput(
                        "A fit needs a lengthscale for each dimension where columns have different ranges: "
                        f"{shown(self)} has one for several of them. Give a list.",
                        advice="Such as lengthscale=[1.0, 20.0].",
                    )
                values[i] += POWERS[parameter.kind] * own[0]
        return self.with_log_parameters(values)

    @property
    def variance(self) -> float | None:
        """Prior variance k(x, x) if it is the same at every x, otherwise None."""
        return None

    @property
    def smoothness(self) -> float | None:
        """Alpha of Avanesov's schedules: nu of a Matern kernel, possibly infinite, or None if unknown."""
        return None

    @property
    def approximates(self) -> bool:
        """True if it stands for another kernel, so that bounds under it are proved for no f of that kernel."""
        return False

    def rank(self, dimension: int) -> int | None:  # noqa: ARG002 - most have none
        """Returns the number of functions that span all samples, or None if it is infinite.

        Args:
            dimension: number of columns of the points.
        """
        return None

    def features(self, points: npt.ArrayLike) -> Array | None:  # noqa: ARG002 - most have infinitely many
        """Returns phi(x) of every row, `(n, r)`, where k(x, x') = phi(x)^T phi(x') and `rank` returns r.

        None means that features are unknown, which may not depend on the points. With features a posterior at points
        costs r^2 a round, whatever n.
        """
        return None

    def feature_gradient(self, X: npt.ArrayLike, weights: npt.ArrayLike) -> Array:
        """Returns rows d (weights[i]^T phi(x_i)) / d x_i, `(m, d)`, by differences.

        Args:
            X: `(m, d)`.
            weights: `(m, r)`.
        """
        return feature_gradient(self.features, points_array("X", X), np.asarray(weights))

    def columns(self, dimension: int) -> frozenset[int]:
        """Returns the columns that the kernel sees, of points with `dimension` columns."""
        return frozenset(range(dimension))

    @final
    def on(self, *dimensions: int) -> Kernel:
        """Returns this kernel on some columns only: `Matern().on(0) * Linear().on(1, 2)`."""
        from . import Active

        return Active(self, dimensions)

    def __add__(self, other: Kernel) -> Kernel:
        from . import Sum

        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Kernel | float) -> Kernel:
        from . import Product

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
    """A kernel of the coordinates of points: the base of kernels of your own.

    A kernel of your own is a frozen dataclass decorated with `nilregret.slots.described`, whose fields are its
    description. Only `__call__` is **needed**, symmetric and positive semi-definite. The other methods have a fallback
    from values of the kernel:

    | method | fallback |
    |---|---|
    | `diagonal` | blocks of the matrix |
    | `input_gradient`, `diagonal_gradient` | central differences, about eight digits |
    | `log_parameters`, `hyperparameters`, `with_log_parameters` (go together) | a fit leaves the kernel as it is |
    | `matrix_and_pullback`, `matrices` (one suffices) | central differences in `log_parameters` |
    | `scaled`, `rescaled` | wrappers that multiply the variance, and divide the points |
    | `derivatives` | unknown: widths from slopes are assumed, with a warning |
    | `variance`, `smoothness`, `rank` | None: callers ask for a number, or report what is missing |
    | `features` (with `rank`: r functions span all samples) | None: a round costs n^2 on boxes and under contexts |
    | `feature_gradient` | central differences |
    | `approximates` (it stands for another kernel, so nothing is proved) | False |

    Sample paths are drawn by joint sampling (`gp.paths`), and integrals are quasi-Monte Carlo
    (`theory.change.geometry`). `nilregret.theory.change.geometry.product_average.register(MyKernel)` adds a
    closed form of the integrals. `nilregret.theory.rates.growth_rate.register(MyKernel)` adds a growth rate of the
    information gain.

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
        """Returns the covariances between arms given by index."""
        return self(points[rows], points[columns])

    @final
    def arm_variances(self, points: Array) -> Array:
        """Returns the prior variance of every arm, `(N,)`."""
        return self.diagonal(points)

    def diagonal(self, A: npt.ArrayLike) -> Array:
        """Returns the prior variances k(x, x) of the rows of A, `(n,)`."""
        return diagonal(self, points_array("A", A))

    def input_gradient(self, X: npt.ArrayLike, B: npt.ArrayLike, weights: npt.ArrayLike) -> Array:
        """Returns rows sum_j weights[i, j] * d k(x_i, b_j) / d x_i, `(m, d)`, by differences."""
        first, second = points_pair(X, B)
        return input_gradient(self, first, second, weights_array(weights, (len(first), len(second))))

    def diagonal_gradient(self, X: npt.ArrayLike) -> Array:
        """Returns the gradient of the prior variance at every row, `(m, d)`.

        The gradient is 0 if the kernel has a `variance`, and otherwise computed by differences.
        """
        points = points_array("X", X)
        if self.variance is not None:
            return np.zeros(points.shape)
        return diagonal_gradient(self.diagonal, points)

    @property
    def log_parameters(self) -> Array:
        """Empty array, since a fit changes nothing."""
        return np.empty(0)

    def hyperparameters(self, columns: Sequence[int]) -> tuple[Hyperparameter, ...]:  # noqa: ARG002 - has none
        """Returns an empty tuple. A kernel with a length of the points here must list all its lengths."""
        return ()

    def with_log_parameters(self, values: npt.ArrayLike) -> Kernel:
        """Returns the kernel itself."""
        parameter_values(values, 0)
        return self

    def matrix_and_pullback(self, X: npt.ArrayLike) -> tuple[Array, Pullback]:
        """Returns K, and its pullback by `matrices` if the kernel overrides it, or by differences."""
        if type(self).matrices is not Kernel.matrices:
            return super().matrix_and_pullback(X)
        points = points_array("X", X)

        def matrix(parameters: Array) -> Array:
            return self.with_log_parameters(parameters)(points, points)

        return self(points, points), lambda weights: pullback(matrix, self.log_parameters, weights)

    def scaled(self, factor: float) -> Kernel:
        """Returns the kernel factor * k."""
        from . import Multiplied

        return Multiplied(self, factor)


def check_kernel(name: str, value: object) -> None:
    """Raises an error if the value is no kernel."""
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


def check_covariance(kernel: object, K: Array, count: int) -> None:
    """Raises `InvalidInput` unless the matrix of a kernel at `count` points is a covariance, up to rounding."""
    fault, advice = "", ""
    if np.shape(K) != (count, count):
        fault = f"returned shape {np.shape(K)} for {many(count, 'point')}: it must be ({count}, {count})."
    elif not np.isfinite(K).all():
        fault = (
            "is not finite on this domain: usually its lengthscales or scales and the coordinates are too many powers "
            "of ten apart for floats."
        )
        advice = "Use other units for the coordinates, or other lengthscales. "
    elif not _is_covariance(K[:BLOCK, :BLOCK]):
        fault = "is no covariance: its matrix is not symmetric, or has a negative eigenvalue."
    if fault:
        advice += "Of a kernel of your own, `nilregret.testing.check_kernel` says what is wrong."
        raise InvalidInput(f"The kernel {shown(kernel)} {fault}", advice=advice)


def _is_covariance(K: Array) -> bool:
    size = float(np.abs(K).max(initial=0.0)) or 1.0
    return bool((np.abs(K - K.T) <= ROUGH * size).all() and (np.linalg.eigvalsh(K / size) >= -ROUGH * len(K)).all())


def scale_number(value: object) -> float:
    """Returns a valid `scale`, or raises an error."""
    why = "It is the prior variance k(x, x)."
    return number("scale", value, low=0.0, high=LARGEST_REWARD, open_low=True, why=why)


def points_pair(A: npt.ArrayLike, B: npt.ArrayLike) -> tuple[Array, Array]:
    """Returns both arguments as points of one domain, or raises an error."""
    first = points_to_read("A", A)
    second = first if B is A else points_to_read("B", B)
    if first.shape[1] != second.shape[1]:
        raise InvalidInput(
            f"A has {many(first.shape[1], 'column')} and B has {second.shape[1]}: both are points of one domain."
        )
    return first, second


def points_to_read(name: str, value: npt.ArrayLike) -> Array:
    """Returns points `(n, d)` to be read alone, without a copy of a large array."""
    large = type(value) is np.ndarray and value.size > LARGE and value.ndim == 2 and value.dtype == np.float64
    return np.asarray(value) if large and np.isfinite(value).all() else points_array(name, value)


def squared_distances(first: Array, second: Array) -> Array:
    """Returns sum_k (a_k - b_k)^2 of each row a of `first` `(n, d)` and b of `second` `(m, d)`, `(n, m)`.

    The columns are summed in order, so both ways give the same bits. SciPy's is slow to import, and faster between many
    rows of several columns.
    """
    if min(len(first), len(second), first.shape[1]) > 1 and len(first) * len(second) > FEW:
        from scipy.spatial.distance import cdist

        return np.asarray(cdist(first, second, "sqeuclidean"))
    result = np.zeros((len(first), len(second)))
    with np.errstate(over="ignore", invalid="ignore"):  # Tiny lengthscales make infinite distances.
        for a, b in zip(first.T, second.T, strict=True):
            difference = a[:, None] - b
            difference *= difference
            result += difference
    return result


def weights_array(weights: npt.ArrayLike, shape: tuple[int, ...]) -> Array:
    """Returns weights of the shape of their covariances, without a copy or a check for NaN (inner loop)."""
    result = np.asarray(weights, dtype=np.float64)
    if result.shape != shape:
        raise InvalidInput(f"`weights` has shape {result.shape}: it must be {shape}, one weight for each covariance.")
    return result


def parameter_values(values: npt.ArrayLike, count: int) -> Array:
    """Returns `count` log parameters, or raises an error."""
    result = finite_array("values", values)
    if result.shape != (count,):
        raise InvalidInput(
            f"`values` has shape {result.shape} and the kernel has {count} log parameters: see `log_parameters`."
        )
    return result


def checked_lengths(name: str, value: object, *, why: str) -> float | tuple[float, ...]:
    """Returns one positive number or one for each dimension, or raises an error."""
    low, high = LENGTHSCALES
    if not isinstance(value, list | tuple) and getattr(value, "shape", ()) == ():
        return number(name, value, low=low, high=high, why=why)
    given = finite_array(name, value).ravel()  # type: ignore[arg-type]  # refused there
    if not given.size:
        raise InvalidInput(f"`{name}` is empty: give one number, or one for each dimension.")
    if not (given.min() >= low and given.max() <= high):  # together, since a fit makes a kernel in every step
        for each in given.tolist():
            number(name, each, low=low, high=high, why=why)
    return tuple(given.tolist())
