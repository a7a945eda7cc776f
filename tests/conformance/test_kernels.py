"""Every kernel joins by one line in KERNELS."""

import json

import numpy as np
import pytest

import noregret as nr
from noregret import kernels, serialize

COVARIANCE = np.cov(np.random.default_rng(3).standard_normal((30, 12)), rowvar=False)

# name -> (a kernel, the points it is tried on)
POINTS = np.random.default_rng(4).uniform(-1, 2, (12, 2))
INDICES = np.arange(12.0)[:, None]
KERNELS = {
    "SquaredExponential": (nr.SquaredExponential(0.4, scale=1.7), POINTS),
    "SquaredExponential, per dimension": (nr.SquaredExponential([0.4, 2.0]), POINTS),
    "Matern 1/2": (nr.Matern(0.5, 0.7, scale=0.3), POINTS),
    "Matern 3/2": (nr.Matern(1.5, [0.7, 0.2]), POINTS),
    "Matern 5/2": (nr.Matern(2.5, 0.7), POINTS),
    "Matern 0.8": (nr.Matern(0.8, 0.7), POINTS),
    "Matern 40": (nr.Matern(40.0, 0.7, scale=2.0), POINTS),
    "Matern 1000": (nr.Matern(1000.0, 0.7), POINTS),
    "RationalQuadratic": (nr.RationalQuadratic(0.7, 0.4, scale=1.7), POINTS),
    "RationalQuadratic, per dimension": (nr.RationalQuadratic(30.0, [0.4, 2.0]), POINTS),
    "Periodic": (nr.Periodic(1.3, 0.7, scale=1.7), POINTS),
    "Periodic, per dimension": (nr.Periodic([1.3, 0.4], [0.7, 2.0]), POINTS),
    "Periodic that fades": (nr.Periodic(0.9).on(1) * nr.Matern(2.5, 2.0).on(1) + 0.3 * nr.Linear(), POINTS),
    "Scaled": (2.5 * (nr.Matern(1.5, 0.7) * nr.Linear() + nr.RationalQuadratic().on(0)), POINTS),
    "Linear": (nr.Linear(scale=0.5), POINTS),
    "Empirical": (nr.Empirical(COVARIANCE), INDICES),
    "Sum": (nr.SquaredExponential(0.4) + nr.Linear(), POINTS),
    "Product": (nr.Matern(2.5, 0.7) * nr.Linear(scale=2.0), POINTS),
    "Active": (nr.Matern(2.5, [0.7, 0.3], scale=1.3).on(1, 0), POINTS),
    "Active, one column": (nr.SquaredExponential(0.4).on(1), POINTS),
    "Context times point": (nr.SquaredExponential(0.9).on(0) * (nr.Matern(1.5, 0.4).on(1) + nr.Linear()), POINTS),
    "Empirical on a column": (
        nr.Empirical(COVARIANCE).on(1) * nr.Matern(2.5, 3.0).on(0),
        np.hstack([INDICES, INDICES]),
    ),
    "Sum of empirical and smooth": (nr.Empirical(COVARIANCE) + nr.SquaredExponential(3.0), INDICES),
    "Multiplied": (kernels.Multiplied(nr.Matern(2.5, 0.7), 0.4), POINTS),
    "Stretched": (kernels.Stretched(nr.Matern(2.5, [0.7, 0.3]) + nr.Linear(), [2.0, 0.5]), POINTS),
}


WITHOUT_COORDINATES = {"Empirical", "Empirical on a column", "Sum of empirical and smooth"}
SMOOTH = {name: case for name, case in KERNELS.items() if name not in WITHOUT_COORDINATES}


@pytest.fixture(params=KERNELS.values(), ids=KERNELS.keys())
def case(request):
    return request.param


@pytest.fixture(params=SMOOTH.values(), ids=SMOOTH.keys())
def smooth(request):
    return request.param


def central_differences(function, at, step=1e-5):
    """The gradient of a function of an array, by Richardson-extrapolated central differences."""
    gradient = np.zeros(at.shape)
    for index in np.ndindex(at.shape):
        shift = np.zeros(at.shape)
        shift[index] = step
        near = (function(at + shift) - function(at - shift)) / (2 * step)
        far = (function(at + 2 * shift) - function(at - 2 * shift)) / (4 * step)
        gradient[index] = (4 * near - far) / 3
    return gradient


def test_table_is_complete():
    def final(cls):
        return [cls] if not cls.__subclasses__() else [leaf for child in cls.__subclasses__() for leaf in final(child)]

    assert {cls for cls in final(kernels.Kernel) if cls.__module__.startswith("noregret")} == {
        type(kernel) for kernel, _ in KERNELS.values()
    }


def test_symmetric_and_positive_semi_definite(case):
    kernel, points = case
    matrix = kernel(points, points)
    assert matrix.shape == (12, 12)
    assert matrix.dtype == np.float64
    np.testing.assert_array_equal(matrix, matrix.T)
    assert np.linalg.eigvalsh(matrix)[0] > -1e-12 * np.abs(matrix).max()


def test_diagonal_and_blocks_agree_with_the_matrix(case):
    kernel, points = case
    matrix = kernel(points, points)
    np.testing.assert_allclose(kernel.diagonal(points), matrix.diagonal(), rtol=1e-14)
    np.testing.assert_allclose(kernel(points[:5], points[3:]), matrix[:5, 3:], rtol=1e-14)


def test_arms_by_index_agree_with_points(case):
    kernel, points = case
    matrix = kernel(points, points)
    rows, columns = np.array([3, 1, 1]), np.array([0, 7])
    np.testing.assert_allclose(kernel.between_arms(points, rows, columns), matrix[np.ix_(rows, columns)], rtol=1e-14)
    np.testing.assert_allclose(kernel.between_arms(points, slice(None), columns), matrix[:, columns], rtol=1e-14)
    np.testing.assert_allclose(kernel.arm_variances(points), matrix.diagonal(), rtol=1e-14)


def test_frozen_comparable_and_round_trips_through_json(case):
    kernel, points = case
    text = serialize.dumps(kernel)
    again = serialize.loads(text)
    assert again == kernel
    assert hash(again) == hash(kernel)
    assert again != nr.SquaredExponential(123.0)
    assert serialize.dumps(again) == text
    assert json.loads(text)["type"] == type(kernel).__name__
    np.testing.assert_array_equal(again(points, points), kernel(points, points))
    with pytest.raises(AttributeError):
        kernel.scale = 2.0


def test_a_number_multiplies_the_variance(case):
    kernel, points = case
    for twice in (2.0 * kernel, kernel * 2, np.float64(2.0) * kernel):
        assert type(twice) is type(kernel)
        np.testing.assert_allclose(twice(points, points), 2.0 * kernel(points, points), rtol=1e-14)
        assert len(twice.log_parameters) == len(kernel.log_parameters)
        assert serialize.loads(serialize.dumps(twice)) == twice
    for factor in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(nr.InvalidInput, match="factor"):
            factor * kernel
    for wrong in ("2", None, np.ones(2), 1j):
        with pytest.raises(TypeError):
            wrong * kernel


def test_derivatives_bound_what_the_kernel_says(smooth):
    """Var df/dx_j and Var d^2f/dx_i dx_j by differences of the kernel, at random points of the box."""
    kernel, _ = smooth
    lower, upper, h = np.array([-1.0, -0.5]), np.array([2.0, 1.5]), 1e-3
    bound = kernel.derivatives(lower, upper)
    exact = bound.stationary
    for at in np.random.default_rng(7).uniform(lower, upper, (6, 2)):
        assert kernel.diagonal(at[None])[0] <= bound.value * (1 + 1e-12)
        for i in range(2):
            ends = at + np.outer([0.5, -0.5], h * np.eye(2)[i])
            seen = float([1, -1] @ kernel(ends, ends) @ [1, -1]) / h**2
            assert seen <= bound.first[i] * 1.001 + 1e-6
            if exact and np.isfinite(bound.second).all():
                assert seen == pytest.approx(bound.first[i], rel=1e-3, abs=1e-6)
            for j in range(2):
                wide = 0.01
                steps = [a * np.eye(2)[i] + b * np.eye(2)[j] for a in (0.5, -0.5) for b in (0.5, -0.5)]
                corners = at + wide * np.array(steps)
                seen_ij = float([1, -1, -1, 1] @ kernel(corners, corners) @ [1, -1, -1, 1]) / wide**4
                assert seen_ij <= bound.second[i, j] * 1.01 + 1e-3
                if exact and np.isfinite(bound.second).all():
                    assert seen_ij == pytest.approx(bound.second[i, j], rel=0.1, abs=1e-3)


def test_input_is_not_changed_or_kept(case):
    kernel, points = case
    before = points.copy()
    first = kernel(points, points)
    first[:] = 0.0
    np.testing.assert_array_equal(points, before)
    assert kernel(points, points)[0, 0] > 0.0


def test_bad_points_are_refused(case):
    kernel, points = case
    with pytest.raises(nr.InvalidInput, match="not finite"):
        kernel(np.full((2, points.shape[1]), np.nan), points)
    with pytest.raises(nr.InvalidInput, match="columns"):
        kernel(np.zeros((2, points.shape[1] + 1)), points)


def test_input_gradients_agree_with_central_differences(smooth):
    kernel, points = smooth
    weights = np.random.default_rng(5).standard_normal((5, 7))
    X, B = points[:5] + 0.01, points[5:]
    expected = central_differences(lambda moved: np.vdot(weights, kernel(moved, B)), X)
    np.testing.assert_allclose(kernel.input_gradient(X, B, weights), expected, atol=1e-6, rtol=1e-6)
    expected = central_differences(lambda moved: kernel.diagonal(moved).sum(), X)
    np.testing.assert_allclose(kernel.diagonal_gradient(X), expected, atol=1e-6, rtol=1e-6)


def test_input_gradients_at_coinciding_points_are_finite(smooth):
    kernel, points = smooth
    gradient = kernel.input_gradient(points, points, np.eye(len(points)))
    # d k(x, b) / d x at b = x is half of the gradient of k(x, x).
    np.testing.assert_allclose(gradient, kernel.diagonal_gradient(points) / 2, atol=1e-12)


def test_gradients_without_points_are_empty_or_zero(smooth):
    kernel, points = smooth
    empty = np.zeros((0, points.shape[1]))
    assert kernel.input_gradient(empty, points, np.zeros((0, 12))).shape == empty.shape
    np.testing.assert_array_equal(kernel.input_gradient(points, empty, np.zeros((12, 0))), np.zeros(points.shape))


def test_gradients_need_coordinates_and_fitting_weights(case):
    kernel, points = case
    if any(case is KERNELS[name] for name in WITHOUT_COORDINATES):
        with pytest.raises(nr.InvalidInput, match="no gradient"):
            kernel.input_gradient(points, points, np.zeros((12, 12)))
        with pytest.raises(nr.InvalidInput, match="no gradient"):
            kernel.diagonal_gradient(points)
    else:
        with pytest.raises(nr.InvalidInput, match=r"`weights` has shape \(12,\): it must be \(12, 12\)"):
            kernel.input_gradient(points, points, np.zeros(12))


def test_log_parameters_round_trip(case):
    kernel, points = case
    theta = kernel.log_parameters
    assert theta.shape == (len(kernel.hyperparameters(range(points.shape[1]))),)
    again = kernel.with_log_parameters(theta)
    np.testing.assert_allclose(again(points, points), kernel(points, points), rtol=1e-13)
    changed = kernel.with_log_parameters(theta + 0.3)
    assert type(changed) is type(kernel)
    np.testing.assert_allclose(changed.log_parameters, theta + 0.3, rtol=1e-14, atol=1e-15)
    for wrong in (np.zeros(len(theta) + 1), np.full(len(theta) + 1, np.nan)):
        with pytest.raises(nr.InvalidInput, match="`values`"):
            kernel.with_log_parameters(wrong)


def test_parameter_gradients_agree_with_central_differences(case):
    kernel, points = case
    weights = np.random.default_rng(6).standard_normal((12, 12))
    weights += weights.T
    repeated = np.vstack([points[:11], points[:1]])  # a distance of exactly 0 outside the diagonal too
    for X in (points, repeated):
        theta = kernel.log_parameters
        expected = central_differences(lambda t, X=X: np.vdot(weights, kernel.with_log_parameters(t)(X, X)), theta)
        np.testing.assert_allclose(kernel.parameter_gradient(X, weights), expected, atol=1e-6, rtol=1e-6)
        np.testing.assert_allclose(kernel.matrix_and_pullback(X)[0], kernel(X, X), rtol=1e-12)
