"""Checks of a kernel."""

from __future__ import annotations

import copy

import numpy as np
import numpy.typing as npt

from .. import serialize
from .._utils.checks import Array, points_array
from ..errors import InvalidInput
from ..kernels import Kernel
from ..kernels.stationary import Stationary
from .driver import central_differences, close, promise, refused

COUNT = 10  # random points
DESCRIBE = "Make it a frozen dataclass, decorated with `nilregret.slots.described`, whose fields are plain values."
CENTRE, SIZES, SPREADS, WIDE = 0.5, (4, 30, 100), (0.02, 0.1, 0.5, 1.5), (5.0, 20.0)  # of points for eigenvalues


def check_kernel(kernel: Kernel, points: npt.ArrayLike | None = None) -> None:
    """Raises an `AssertionError` if a kernel breaks a promise.

    The matrix is symmetric and positive semi-definite, with the right diagonal. If no `points` are given or the kernel
    is stationary, eigenvalues are looked at for 4 to 100 random points, near and far. Gradients agree with differences.
    Products of features, if there are any, are the covariances. Parameters and the description survive a round trip.
    Copies share no data with the original. A kernel without gradients raises `InvalidInput` for them, and then works on
    arms alone.

    Args:
        kernel: any kernel.
        points: points of the checks, `(n, d)`, at least 4 distinct rows. The default is random points in [-1, 2]^2. A
            kernel with a lengthscale for each dimension, or a kernel of indices, needs points of its own.
    """
    promise(isinstance(kernel, Kernel), f"This is no `Kernel`: {kernel!r}. One of your own derives from `PointKernel`.")
    given = np.random.default_rng(4).uniform(-1.0, 2.0, (COUNT, 2)) if points is None else points
    X = points_array("points", given).copy()
    name = type(kernel).__name__
    promise(serialize.is_described(kernel), f"`{name}` is not decorated with `nilregret.slots.described`. {DESCRIBE}")
    found = kernel.profile(np.ones(2)) if isinstance(kernel, Stationary) else (None, len)
    promise(
        isinstance(found, tuple) and len(found) == 2 and callable(found[1]),
        f"`{name}.profile` must return two things, kappa(r) and a function that returns -kappa'(r) / r, as in `return "
        f"value, lambda: slope`; it returns {found!r}.",
    )
    promise(len(X) >= 4, "A check at less than 4 points would not see much: give more `points`.")
    _check_matrix(kernel, X)
    _check_arms(kernel, X)
    _check_description(kernel, X)
    _check_factor(kernel, X)
    _check_input_gradients(kernel, X)
    _check_features(kernel, X)
    _check_parameters(kernel, X)
    if points is None or isinstance(kernel, Stationary):
        _check_eigenvalues(kernel, X.shape[1])


def _check_matrix(kernel: Kernel, X: Array) -> None:
    name, before, n = type(kernel).__name__, X.copy(), len(X)
    K = kernel(X, X)
    promise(
        isinstance(K, np.ndarray) and K.shape == (n, n) and K.dtype == np.float64 and bool(np.isfinite(K).all()),
        f"`{name}`: k(X, X) of {n} points must be a finite array of floats, ({n}, {n}); it is {K!r}.",
    )
    promise(np.array_equal(K, K.T), f"`{name}` is not symmetric to the last bit: k(a, b) and k(b, a) differ.")
    _check_least(name, K, "")
    promise(
        close(kernel.diagonal(X), K.diagonal(), 1e-12),
        f"`{name}.diagonal(X)` is {kernel.diagonal(X)}, and the diagonal of its matrix {K.diagonal()}.",
    )
    part = kernel(X[:3], X[2:])
    promise(
        part.shape == (3, n - 2) and close(part, K[:3, 2:], 1e-12),
        f"`{name}`: the covariances of some of the points are not those in the matrix of all.",
    )
    promise(kernel(X[:0], X).shape == (0, n), f"`{name}`: of no points there are no covariances, (0, {n}).")
    K[:] = 0.0
    promise(
        np.array_equal(X, before) and bool(np.any(kernel(X, X))),
        f"`{name}` writes into the points that it is given, or keeps the matrix that it gave away.",
    )
    promise(
        _has_nothing_of_nan(kernel, X),
        f"`{name}` has covariances of points that are NaN: refuse these by an `InvalidInput` "
        "(`nilregret._utils.checks.points_array`), or let what comes of them be NaN.",
    )


def _check_eigenvalues(kernel: Kernel, dimension: int) -> None:
    random = np.random.default_rng(8)
    for spread in SPREADS + WIDE * isinstance(kernel, Stationary):
        for n in SIZES:
            X = CENTRE + spread * random.uniform(-1.0, 1.0, (n, dimension))
            _check_least(type(kernel).__name__, kernel(X, X), f" within {spread:g} of {CENTRE:g}")


def _check_least(name: str, K: Array, where: str) -> None:
    least = float(np.linalg.eigvalsh(K)[0])
    promise(
        least > -1e-10 * np.abs(K).max(),
        f"`{name}` is not positive semi-definite: its matrix at {len(K)} points{where} has the eigenvalue {least:g}, "
        "so that it is no covariance. Usually the formula holds in fewer dimensions, or not for these parameters.",
    )


def _has_nothing_of_nan(kernel: Kernel, X: Array) -> bool:
    try:
        return bool(np.isnan(kernel(np.full((2, X.shape[1]), np.nan), X)).all())
    except InvalidInput:
        return True


def _check_arms(kernel: Kernel, X: Array) -> None:
    name, K = type(kernel).__name__, kernel(X, X)
    rows, columns = np.array([3, 1, 1]), np.array([0, 2])
    promise(
        close(kernel.between_arms(X, rows, columns), K[np.ix_(rows, columns)], 1e-12)
        and close(kernel.between_arms(X, slice(None), columns), K[:, columns], 1e-12)
        and close(kernel.arm_variances(X), K.diagonal(), 1e-12),
        f"`{name}`: covariances between arms by number (`between_arms`, `arm_variances`) are not those of the points.",
    )


def _check_description(kernel: Kernel, X: Array) -> None:
    name = type(kernel).__name__
    text = serialize.dumps(kernel)
    again = serialize.loads(text)
    why = DESCRIBE
    promise(type(again) is type(kernel) and again == kernel, f"`{name}` comes back from its JSON as {again!r}. {why}")
    promise(serialize.dumps(again) == text, f"`{name}` is written otherwise once it has come back from its JSON. {why}")
    promise(np.array_equal(again(X, X), kernel(X, X)), f"`{name}` from its JSON has other covariances. {why}")
    promise(copy.deepcopy(kernel) == kernel, f"A copy of `{name}` is not equal to it. {why}")
    promise(
        not refused(lambda: hash(kernel), TypeError) and hash(again) == hash(kernel), f"`{name}` has no hash. {why}"
    )
    promise(refused(lambda: setattr(kernel, "scale", 2.0), AttributeError), f"`{name}` can be changed. {why}")


def _check_factor(kernel: Kernel, X: Array) -> None:
    name = type(kernel).__name__
    twice = 2.0 * kernel
    promise(
        close(twice(X, X), 2.0 * kernel(X, X), 1e-12) and close(twice.diagonal(X), 2.0 * kernel.diagonal(X), 1e-12),
        f"`2.0 * kernel` has not twice the variances of `{name}`: see `scaled`.",
    )
    promise(
        serialize.loads(serialize.dumps(twice)) == twice,
        f"`2.0 * kernel` of `{name}` does not come back from its JSON.",
    )


def _check_input_gradients(kernel: Kernel, X: Array) -> None:
    name, half = type(kernel).__name__, len(X) // 2
    A, B = X[:half] + 0.01, X[half:]
    weights = np.random.default_rng(5).standard_normal((len(A), len(B)))
    try:
        found, diagonal = kernel.input_gradient(A, B, weights), kernel.diagonal_gradient(A)
    except InvalidInput:  # The kernel works on arms alone.
        promise(
            refused(lambda: kernel.diagonal_gradient(X), InvalidInput),
            f"`{name}` has a `diagonal_gradient` and no `input_gradient`: it has both or neither.",
        )
        return
    expected = central_differences(lambda moved: float(np.vdot(weights, kernel(moved, B))), A)
    promise(
        close(found, expected, 1e-5),
        f"`{name}.input_gradient` is not the derivative of the covariances: {found[0]}, and by differences "
        f"{expected[0]}.",
    )
    expected = central_differences(lambda moved: float(kernel.diagonal(moved).sum()), A)
    promise(close(diagonal, expected, 1e-5), f"`{name}.diagonal_gradient` is not the derivative of `diagonal`.")
    at = kernel.input_gradient(X, X, np.eye(len(X)))
    promise(
        close(at, kernel.diagonal_gradient(X) / 2.0, 1e-9),
        f"`{name}.input_gradient` at coinciding points must be half the gradient of k(x, x) (0 for a stationary "
        f"kernel), kinks included; it is {at[0]}.",
    )
    empty = np.zeros((0, X.shape[1]))
    promise(
        kernel.input_gradient(empty, X, np.zeros((0, len(X)))).shape == empty.shape
        and not kernel.input_gradient(X, empty, np.zeros((len(X), 0))).any(),
        f"`{name}.input_gradient` without points is empty, and towards none 0.",
    )
    promise(
        refused(lambda: kernel.input_gradient(X, X, np.zeros(len(X))), InvalidInput),
        f"`{name}.input_gradient` takes weights of a wrong shape: refuse them by an `InvalidInput`.",
    )


def _check_features(kernel: Kernel, X: Array) -> None:
    name, found, rank = type(kernel).__name__, kernel.features(X), kernel.rank(X.shape[1])
    if found is None:
        return
    promise(
        found.shape == (len(X), rank) and close(found @ found.T, kernel(X, X), 1e-10),
        f"`{name}.features(X)` has the shape {found.shape} where `rank` says {rank} of them, or their products are not "
        "the covariances.",
    )
    none = kernel.features(X[:0])
    promise(none is not None and none.shape == (0, rank), f"`{name}.features` of no points is empty, (0, {rank}).")
    A, weights = X + 0.01, np.random.default_rng(7).standard_normal(found.shape)
    expected = central_differences(lambda moved: float(np.vdot(weights, np.asarray(kernel.features(moved)))), A)
    promise(
        close(kernel.feature_gradient(A, weights), expected, 1e-5),
        f"`{name}.feature_gradient` is not the derivative of the features.",
    )


def _check_parameters(kernel: Kernel, X: Array) -> None:
    name, theta = type(kernel).__name__, kernel.log_parameters
    kinds = kernel.hyperparameters(range(X.shape[1]))
    promise(
        theta.shape == (len(kinds),),
        f"`{name}` has {theta.shape} `log_parameters` and says what {len(kinds)} of them are (`hyperparameters`).",
    )
    promise(
        close(kernel.with_log_parameters(theta)(X, X), kernel(X, X), 1e-10),
        f"`{name}.with_log_parameters(kernel.log_parameters)` is another kernel. They are logarithms.",
    )
    moved = kernel.with_log_parameters(theta + 0.3)
    promise(
        type(moved) is type(kernel) and close(moved.log_parameters, theta + 0.3, 1e-10),
        f"`{name}.with_log_parameters` gives a kernel with other `log_parameters`: {moved.log_parameters}.",
    )
    promise(
        refused(lambda: kernel.with_log_parameters(np.zeros(len(theta) + 1)), InvalidInput),
        f"`{name}.with_log_parameters` takes too many of them: refuse that by an `InvalidInput`.",
    )
    _check_parameter_gradients(kernel, X)


def _check_parameter_gradients(kernel: Kernel, X: Array) -> None:
    name, theta = type(kernel).__name__, kernel.log_parameters
    weights = np.random.default_rng(6).standard_normal((len(X), len(X)))
    weights += weights.T
    repeated = np.vstack([X[:-1], X[:1]])  # makes a distance of exactly 0 outside the diagonal
    for points in (X, repeated):
        matrix, pullback = kernel.matrix_and_pullback(points)
        promise(
            close(matrix, kernel(points, points), 1e-10),
            f"`{name}.matrix_and_pullback` gives another matrix than `kernel(X, X)`.",
        )
        found = pullback(weights)
        expected = central_differences(
            lambda t, at=points: float(np.vdot(weights, kernel.with_log_parameters(t)(at, at))),  # type: ignore[misc]
            theta,
        )
        promise(
            close(found, expected, 1e-5),
            f"`{name}.matrix_and_pullback`: the derivatives in `log_parameters` are {found}, and by differences "
            f"{expected}.",
        )
        values, at_theta = kernel.matrices(points)(theta)
        promise(
            close(values, matrix, 1e-10) and close(at_theta(weights), found, 1e-5),
            f"`{name}.matrices` and `{name}.matrix_and_pullback` differ.",
        )
