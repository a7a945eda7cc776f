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
    "Linear": (nr.Linear(scale=0.5), POINTS),
    "Empirical": (nr.Empirical(COVARIANCE), INDICES),
    "Sum": (nr.SquaredExponential(0.4) + nr.Linear(), POINTS),
    "Product": (nr.Matern(2.5, 0.7) * nr.Linear(scale=2.0), POINTS),
    "Sum of empirical and smooth": (nr.Empirical(COVARIANCE) + nr.SquaredExponential(3.0), INDICES),
}


@pytest.fixture(params=KERNELS.values(), ids=KERNELS.keys())
def case(request):
    return request.param


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
