"""Every kernel joins by one line in KERNELS."""

import json

import numpy as np
import pytest

import nilregret as nr
from nilregret import kernels, serialize, testing

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
    "RationalQuadratic": (nr.kernels.RationalQuadratic(0.7, 0.4, scale=1.7), POINTS),
    "RationalQuadratic, per dimension": (nr.kernels.RationalQuadratic(30.0, [0.4, 2.0]), POINTS),
    "Periodic": (nr.kernels.Periodic(1.3, 0.7, scale=1.7), POINTS),
    "Periodic, per dimension": (nr.kernels.Periodic([1.3, 0.4], [0.7, 2.0]), POINTS),
    "Periodic that fades": (nr.kernels.Periodic(0.9).on(1) * nr.Matern(2.5, 2.0).on(1) + 0.3 * nr.Linear(), POINTS),
    "Scaled": (2.5 * (nr.Matern(1.5, 0.7) * nr.Linear() + nr.kernels.RationalQuadratic().on(0)), POINTS),
    "Linear": (nr.Linear(scale=0.5), POINTS),
    "Intercept": (nr.kernels.Intercept(scale=0.5), POINTS),
    "RandomFeatures": (nr.kernels.RandomFeatures(nr.Matern(2.5, [0.7, 0.3], scale=1.7), 5), POINTS),
    "RandomFeatures and others": (
        nr.kernels.RandomFeatures(nr.SquaredExponential(0.8), 4, 1) * nr.Linear() + nr.kernels.Intercept(),
        POINTS,
    ),
    "Empirical": (nr.kernels.Empirical(COVARIANCE), INDICES),
    "Sum": (nr.SquaredExponential(0.4) + nr.Linear(), POINTS),
    "Product": (nr.Matern(2.5, 0.7) * nr.Linear(scale=2.0), POINTS),
    "Active": (nr.Matern(2.5, [0.7, 0.3], scale=1.3).on(1, 0), POINTS),
    "Active, one column": (nr.SquaredExponential(0.4).on(1), POINTS),
    "Context times point": (nr.SquaredExponential(0.9).on(0) * (nr.Matern(1.5, 0.4).on(1) + nr.Linear()), POINTS),
    "Empirical on a column": (
        nr.kernels.Empirical(COVARIANCE).on(1) * nr.Matern(2.5, 3.0).on(0),
        np.hstack([INDICES, INDICES]),
    ),
    "Sum of empirical and smooth": (nr.kernels.Empirical(COVARIANCE) + nr.SquaredExponential(3.0), INDICES),
    "Multiplied": (kernels.Multiplied(nr.Matern(2.5, 0.7), 0.4), POINTS),
    "Tied": (nr.kernels.Tied(nr.Matern(2.5, 0.7, scale=1.3), [0, 0]), POINTS),
    "Tied, each for itself": (nr.kernels.Tied(nr.SquaredExponential([0.7, 0.3]), [1, 0]) + nr.Linear(), POINTS),
    "Overlap": (nr.kernels.Overlap([0, 0], scale=1.7), POINTS),
    "Overlap of two": (nr.kernels.Overlap((1, 0)), POINTS),
    "Mixture": (nr.kernels.Mixture(nr.kernels.Overlap([0, 0]), nr.Matern(2.5, 0.7).on(1), 0.3, scale=1.7), POINTS),
    "Mixture with another variance": (nr.kernels.Mixture(nr.Linear(), nr.SquaredExponential(0.6, scale=0.4)), POINTS),
    "Of finite rank": (
        0.5 * (nr.Linear().on(1) * nr.kernels.Overlap([0, 0], scale=1.7))
        + nr.kernels.Mixture(nr.Linear(), nr.kernels.Overlap([0, 0]), 0.3),
        POINTS,
    ),
    "Of finite rank, wrapped": (
        kernels.Multiplied(kernels.Stretched(nr.Linear(scale=0.3), [2.0, 0.5]), 0.4)
        + nr.kernels.Rounded(nr.Linear(), nr.Space(x=nr.Float(-2, 3), n=nr.Int(-2, 4))),
        POINTS,
    ),
    "Rounded": (nr.kernels.Rounded(nr.Matern(2.5, [0.7, 0.3]), nr.Space(x=nr.Float(0, 1), n=nr.Int(1, 4))), POINTS),
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


def test_table_is_complete():
    def final(cls):
        """Returns the classes of the package without a class derived from them in the package."""
        children = [child for child in cls.__subclasses__() if child.__module__.startswith("nilregret")]
        return [leaf for child in children for leaf in final(child)] if children else [cls]

    assert set(final(kernels.Kernel)) == {type(kernel) for kernel, _ in KERNELS.values()}


def test_keeps_the_promises_of_every_kernel(case):
    testing.check_kernel(*case)


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
        np.testing.assert_allclose(twice(points, points), 2.0 * kernel(points, points), rtol=1e-14, atol=1e-15)
        assert len(twice.log_parameters) == len(kernel.log_parameters)
        assert serialize.loads(serialize.dumps(twice)) == twice
    for factor in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(nr.errors.InvalidInput, match="factor"):
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


def test_bad_points_are_refused(case):
    kernel, points = case
    with pytest.raises(nr.errors.InvalidInput, match="not finite"):
        kernel(np.full((2, points.shape[1]), np.nan), points)
    with pytest.raises(nr.errors.InvalidInput, match="columns"):
        kernel(np.zeros((2, points.shape[1] + 1)), points)


def test_gradients_need_coordinates_and_fitting_weights(case):
    kernel, points = case
    if any(case is KERNELS[name] for name in WITHOUT_COORDINATES):
        with pytest.raises(nr.errors.InvalidInput, match="no gradient"):
            kernel.input_gradient(points, points, np.zeros((12, 12)))
        with pytest.raises(nr.errors.InvalidInput, match="no gradient"):
            kernel.diagonal_gradient(points)
    else:
        with pytest.raises(nr.errors.InvalidInput, match=r"`weights` has shape \(12,\): it must be \(12, 12\)"):
            kernel.input_gradient(points, points, np.zeros(12))


@pytest.mark.parametrize("name", sorted(set(KERNELS) - set(WITHOUT_COORDINATES)))
def test_cross_and_pullback_are_values_and_gradients(name):
    """Kernels that share the distances agree to the bit with those that call both methods, as one's own kernels do."""
    kernel, points = KERNELS[name]
    B, X = points, np.vstack([points[:2], points[:5] + 0.1])
    weights = np.random.default_rng(0).standard_normal((2, len(X), len(B)))
    cross, pullback = kernel.cross_and_pullback(B, X)
    slow, slowly = nr.kernels.Kernel.cross_and_pullback(kernel, B, X)
    np.testing.assert_array_equal(cross, kernel(B, X))
    np.testing.assert_array_equal(slow, cross)
    np.testing.assert_array_equal(pullback(weights), slowly(weights))


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
        with pytest.raises(nr.errors.InvalidInput, match="`values`"):
            kernel.with_log_parameters(wrong)
