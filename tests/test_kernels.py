import math

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as sk

import nilregret as nr
from nilregret._utils.randomness import Draws
from nilregret.gp import PointPosterior, sample_path
from nilregret.kernels import stationary as pairs
from nilregret.kernels.base import squared_distances
from nilregret.kernels.stationary import _matern_bessel, _matern_debye

A = np.random.default_rng(0).uniform(-2, 2, (15, 3))
B = np.random.default_rng(1).uniform(-2, 2, (9, 3))


def test_squared_exponential_and_linear_formulas():
    r2 = ((A[:, None] - B[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(nr.SquaredExponential(0.7, scale=3)(A, B), 3 * np.exp(-r2 / (2 * 0.49)), rtol=1e-13)
    np.testing.assert_allclose(nr.Linear(scale=2)(A, B), 2 * A @ B.T, rtol=1e-13)


@pytest.mark.parametrize("nu", [0.1, 0.5, 0.9, 1.0, 1.5, 2.0, 2.2, 2.5, 3.5, 7.0])
def test_matern_agrees_with_scikit_learn(nu):
    np.testing.assert_allclose(nr.Matern(nu, 0.8)(A, B), sk.Matern(length_scale=0.8, nu=nu)(A, B), atol=1e-13)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_closed_forms_agree_with_the_bessel_form(nu):
    s = np.concatenate([[0.0], np.geomspace(1e-9, 30, 200)])
    distances = (s / math.sqrt(2 * nu))[:, None]
    np.testing.assert_allclose(nr.Matern(nu)(distances, [[0.0]])[:, 0], _matern_bessel(nu, s), atol=1e-14)


def test_large_nu_goes_over_smoothly_into_the_squared_exponential():
    r = np.linspace(0, 5, 60)
    for nu in (80.0, 101.0, 400.0):
        s = math.sqrt(2 * nu) * r
        np.testing.assert_allclose(_matern_bessel(nu, s.copy()) if nu < 150 else _matern_debye(nu, s),
                                   _matern_debye(nu, s), atol=1e-10)  # fmt: skip
    np.testing.assert_allclose(_matern_debye(1e7, math.sqrt(2e7) * r), np.exp(-(r**2) / 2), atol=1e-6)


@pytest.mark.parametrize("nu", [0.05, 2.2, 99.0, 101.0])
def test_coinciding_and_nearly_coinciding_points(nu):
    kernel = nr.Matern(nu, 1.0)
    values = kernel([[0.0]], np.array([0.0, 1e-300, 1e-30, 1e-9])[:, None])[0]
    assert values[0] == 1.0
    assert (np.diff(values) <= 0).all()
    assert np.isfinite(values).all()


def test_lengthscale_for_each_dimension():
    stretched = nr.Matern(2.5, [1.0, 2.0, 4.0])(A, B)
    np.testing.assert_allclose(stretched, nr.Matern(2.5)(A / [1, 2, 4], B / [1, 2, 4]), rtol=1e-14)
    assert nr.Matern(2.5, np.array([1.0, 2.0])) == nr.Matern(2.5, (1.0, 2.0))


def test_sums_and_products():
    left, right = nr.Matern(1.5, 0.5), nr.Linear()
    np.testing.assert_allclose((left + right)(A, B), left(A, B) + right(A, B))
    np.testing.assert_allclose((left * right)(A, B), left(A, B) * right(A, B))
    assert left + right == nr.kernels.Sum(left, right)
    assert left + right != right + left
    with pytest.raises(TypeError):
        left + 1


def test_scale_is_the_prior_variance():
    for kernel in (nr.SquaredExponential(0.3, scale=2.5), nr.Matern(1.5, 2.0, scale=2.5), nr.Matern(0.7, scale=2.5)):
        np.testing.assert_array_equal(kernel(A, A).diagonal(), 2.5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nr.SquaredExponential(0.0), "`lengthscale` is 0"),
        (lambda: nr.SquaredExponential([0.1, -1.0]), "`lengthscale` is -1"),
        (lambda: nr.SquaredExponential([]), "empty"),
        (lambda: nr.SquaredExponential(float("inf")), "finite"),
        (lambda: nr.SquaredExponential("long"), "must be a number"),
        (lambda: nr.Matern(nu=-1.0), "`nu` is -1"),
        (lambda: nr.Matern(scale=0.0), "`scale` is 0"),
        (lambda: nr.Linear(scale=-2), "`scale` is -2"),
        (lambda: nr.Matern(2.5, [1.0, 2.0])(A, B), "2 lengthscales"),
        (lambda: nr.Linear().on(), "at least one column"),
        (lambda: nr.Linear().on(1, 1), "none of them twice"),
        (lambda: nr.Linear().on(-1), "at least 0"),
        (lambda: nr.kernels.Active(nr.Linear(), [0.5]), "whole number"),
        (lambda: nr.kernels.Active("linear", [0]), "must be a kernel"),
        (lambda: nr.Linear().on(0, 3)(A, B), r"columns \[0, 3\] and the points have 3"),
        (lambda: nr.Matern(2.5, [1.0, 2.0]).on(0)(A, B), "2 lengthscales and the points have 1"),
        (lambda: nr.kernels.Empirical(np.zeros((2, 3))), "square"),
        (lambda: nr.kernels.Empirical(np.zeros((2, 2))), "zero everywhere"),
        (lambda: nr.kernels.Empirical([[1.0, 0.5], [0.0, 1.0]]), "not symmetric"),
        (lambda: nr.kernels.Empirical([[1.0, 2.0], [2.0, 1.0]]), "not positive semi-definite.*eigenvalue is -1"),
        (lambda: nr.kernels.Empirical([[1.0, np.nan], [np.nan, 1.0]]), "not finite"),
        (lambda: nr.kernels.Empirical(np.eye(3))([[3]], [[0]]), "arm indices 0 .. 2"),
        (lambda: nr.kernels.Empirical(np.eye(3))([[0.5]], [[0]]), "arm indices"),
    ],
)
def test_bad_kernels_are_explained(make, message):
    with pytest.raises(nr.errors.InvalidInput, match=message):
        make()


def test_covariances_singular_by_rounding_are_welcome():
    rows = np.random.default_rng(2).standard_normal((5, 20))
    kernel = nr.kernels.Empirical(np.cov(rows, rowvar=False))
    assert np.linalg.matrix_rank(kernel.covariance) < 20


def test_active_sees_its_columns_only():
    kernel = nr.Matern(2.5, [0.5, 2.0])
    np.testing.assert_array_equal(kernel.on(2, 0)(A, B), kernel(A[:, [2, 0]], B[:, [2, 0]]))
    assert kernel.on(2, 0) == nr.kernels.Active(kernel, [2, 0]) == nr.kernels.Active(kernel, np.array([2, 0]))
    assert kernel.on(2, 0) != kernel.on(0, 2)
    nested = kernel.on(1, 0).on(2, 0)  # columns 1, 0 of columns 2, 0
    np.testing.assert_array_equal(nested(A, B), kernel.on(0, 2)(A, B))
    assert nested.hyperparameters(range(3)) == kernel.on(0, 2).hyperparameters(range(3))
    gradient = kernel.on(2, 0).input_gradient(A, B, np.ones((15, 9)))
    assert (gradient[:, 1] == 0).all()
    assert (gradient[:, [0, 2]] != 0).all()


def test_tasks_are_numbered_by_a_column():
    covariance = np.array([[1.0, 0.3], [0.3, 2.0]])
    kernel = nr.kernels.Empirical(covariance).on(0) * nr.Matern(2.5, 0.7).on(1)
    points = np.array([[0, 0.1], [1, 0.2], [0, 0.9], [1, 0.9]])
    matern = nr.Matern(2.5, 0.7)(points[:, 1], points[:, 1])
    np.testing.assert_allclose(kernel(points, points), covariance[np.ix_([0, 1, 0, 1], [0, 1, 0, 1])] * matern)
    assert kernel.between_arms(points, slice(None), np.array([3])).shape == (4, 1)
    with pytest.raises(nr.errors.InvalidInput, match=r"arm indices 0 \.\. 1"):
        kernel([[2.0, 0.0]], points)


def test_what_the_log_parameters_are():
    kernel = nr.Matern(2.5, [0.5, 2.0]).on(1, 3) + nr.Linear(scale=4.0) * nr.SquaredExponential(0.3, scale=2.0).on(0)
    np.testing.assert_allclose(np.exp(kernel.log_parameters), [0.5, 2.0, 1.0, 4.0, 0.3, 2.0])
    assert kernel.hyperparameters(range(4)) == (
        ("lengthscale", (1,), 2),
        ("lengthscale", (3,), 2),
        ("scale", (1, 3), 2),
        ("slope", (0, 1, 2, 3), 4),
        ("lengthscale", (0,), 1),
        ("scale", (0,), 1),
    )


@pytest.mark.parametrize("nu", [0.3, 0.5, 0.7, 1.0, 1.001, 1.5, 2.5, 3.2, 100.5, 101.5, 300.0])
def test_slope_of_matern_kernels_of_any_smoothness(nu):
    kernel, x = nr.Matern(nu, 0.8), np.linspace(0.01, 3, 40)[:, None]
    step = 1e-5
    expected = (kernel(x + step, [[0.0]]) - kernel(x - step, [[0.0]])) / (2 * step)
    np.testing.assert_allclose(kernel.input_gradient(x, [[0.0]], np.ones((40, 1))), expected, atol=2e-7, rtol=2e-7)
    near = kernel.input_gradient([[0.0], [1e-300], [1e-20]], [[0.0]], np.ones((3, 1)))
    assert np.isfinite(near).all()
    assert near[0] == 0.0


def test_gradients_far_from_the_origin():
    weights = np.random.default_rng(2).standard_normal((15, 9))
    kernel = nr.SquaredExponential([0.4, 1.0, 2.0])
    near = kernel.input_gradient(A, B, weights)
    np.testing.assert_allclose(kernel.input_gradient(A + 1e6, B + 1e6, weights), near, atol=1e-8)
    square = np.eye(15) + weights @ weights.T
    near, far = (kernel.matrix_and_pullback(at)[1](square) for at in (A, A + 1e6))
    np.testing.assert_allclose(far, near, rtol=1e-7)


@pytest.mark.parametrize("nu", [0.3, 0.5, 1.0, 1.5, 2.5, 50.0, 99.0, 150.0, 1e7, 1e12, 1e50])
def test_far_apart_points_are_uncorrelated(nu):
    values = nr.Matern(nu, 1e-6)([[0.0]], [[1.0], [1e3], [1e150]])[0]
    np.testing.assert_array_equal(values, 0.0)


@pytest.mark.parametrize("nu", [1e7, 1e10, 1e16, 1e50])
def test_huge_nu_is_the_squared_exponential(nu):
    r = np.linspace(0, 8, 50)[:, None]
    np.testing.assert_allclose(nr.Matern(nu)(r, [[0.0]]), nr.SquaredExponential()(r, [[0.0]]), atol=2.0 / nu + 1e-9)


def test_slightly_negative_eigenvalues_are_set_to_zero():
    """They pass as rounding, but left alone a factorisation would amplify them."""
    kernel = nr.kernels.Empirical([[1.0, 0.0, 0.0], [0.0, 2e-14, 9e-9], [0.0, 9e-9, 0.0]])
    assert np.linalg.eigvalsh(kernel.covariance)[0] > -1e-20
    study = nr.Study(nr.gp_ucb(nr.Arms.grid(0, 1, 3), kernel, noise=0.1))
    before = study.predict()[1]
    for _ in range(30):
        study.add(0.0, 1.0)
    np.testing.assert_allclose(study.predict()[1][1:], before[1:], atol=1e-6)


def test_periodic_is_its_formula_and_repeats():
    rng = np.random.default_rng(0)
    A, B = rng.uniform(-40, 40, (9, 2)), rng.uniform(-40, 40, (7, 2))
    kernel = nr.kernels.Periodic([24.0, 7.0], [0.8, 1.5], scale=2.0)
    sines = np.sin(np.pi * (A[:, None] - B) / [24.0, 7.0]) ** 2 / np.square([0.8, 1.5])
    np.testing.assert_allclose(kernel(A, B), 2.0 * np.exp(-2.0 * sines.sum(axis=2)), rtol=1e-12)
    np.testing.assert_allclose(kernel(A + np.array([48.0, -70.0]), B), kernel(A, B), rtol=1e-12)
    now = 1.7e9 + np.array([[0.0], [3600.0]])  # seconds since 1970, an hour apart
    near = nr.kernels.Periodic(86400.0)(now % 86400.0, now % 86400.0)
    np.testing.assert_allclose(nr.kernels.Periodic(86400.0)(now, now), near, rtol=1e-9)
    with pytest.raises(nr.errors.InvalidInput, match="2 periods and the points have 3 dimensions"):
        kernel(np.zeros((1, 3)), np.zeros((1, 3)))
    for wrong in (dict(period=0.0), dict(period=[]), dict(lengthscale=-1.0), dict(scale=0.0)):
        with pytest.raises(nr.errors.InvalidInput, match=next(iter(wrong))):
            nr.kernels.Periodic(**wrong)


def test_rational_quadratic_agrees_with_scikit_learn():
    for alpha in (0.3, 1.0, 8.0):
        theirs = sk.RationalQuadratic(length_scale=0.5, alpha=alpha)(A, B)
        np.testing.assert_allclose(nr.kernels.RationalQuadratic(alpha, 0.5, scale=2.0)(A, B), 2.0 * theirs, rtol=1e-12)
    near = nr.kernels.RationalQuadratic(1e9, 0.5)(A, B)
    np.testing.assert_allclose(near, nr.SquaredExponential(0.5)(A, B), atol=1e-7)
    with pytest.raises(nr.errors.InvalidInput, match="alpha"):
        nr.kernels.RationalQuadratic(0.0)


@pytest.mark.parametrize(
    "kernel",
    [
        nr.kernels.Periodic(0.7, 0.6, scale=2.0),
        nr.kernels.Periodic(0.7, 1e-4),  # harmonics in their normal limit
        nr.kernels.RationalQuadratic(1.5, 0.2),
        3.0 * nr.kernels.Periodic(0.7).on(0) * nr.Matern(2.5, 0.5).on(0) + 0.5 * nr.Linear(),
    ],
    ids=["periodic", "periodic, rough", "rational quadratic", "fading, scaled"],
)
def test_paths_have_the_kernels_covariance(kernel):
    """Over 300 paths of 256 waves: standard errors are at most 0.082 of the largest variance, 4 of them allowed."""
    points = np.array([[0.0], [0.05], [0.2], [0.7], [0.95]])
    rng = np.random.default_rng(0)
    values = np.array([sample_path(PointPosterior(kernel, 1, 1.0), rng, waves=256)(points) for _ in range(300)])
    size = float(kernel.diagonal(points).max())
    np.testing.assert_allclose(values.T @ values / 300, kernel(points, points), atol=0.33 * size)


def test_a_path_of_a_periodic_kernel_repeats():
    path = sample_path(PointPosterior(nr.kernels.Periodic(24.0, 0.7), 1, 1.0), np.random.default_rng(0))
    hours = np.linspace(0, 24, 50)[:, None]
    np.testing.assert_allclose(path(hours), path(hours + 240.0), atol=1e-9)


def test_a_fit_keeps_a_period_unless_it_has_bounds():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 100, (60, 1))
    y = np.sin(2 * np.pi * X[:, 0] / 24.0) + 0.05 * rng.standard_normal(60)
    start = nr.kernels.Periodic(23.0, 0.5)
    for prior in ("hvarfner", None):
        kept = nr.gp.fit(start, X, y, prior=prior)
        assert kept.kernel.period == pytest.approx(23.0, rel=1e-12)
        assert kept.kernel.lengthscale != 0.5
        free = nr.gp.fit(start, X, y, prior=prior, bounds={"period": (20.0, 28.0)})
        assert free.kernel.period == pytest.approx(24.0, rel=0.01)
        assert free.log_likelihood > kept.log_likelihood
        narrow = nr.gp.fit(start, X, y, prior=prior, bounds={"angle": (0.9, 0.9)})
        assert narrow.kernel.lengthscale == pytest.approx(0.9)


def test_a_refit_rescales_a_period_with_the_box():
    kernel = nr.kernels.Periodic(24.0, 0.7).on(0) * nr.Matern(2.5, 3.0).on(1)
    sides = np.array([48.0, 10.0])
    inner = kernel.rescaled(1.0 / sides)
    points = np.random.default_rng(0).uniform(0, sides, (6, 2))
    np.testing.assert_allclose(inner(points / sides, points / sides), kernel(points, points), rtol=1e-9)
    policy = nr.gp_ucb(
        nr.Box([0.0], [10.0]), kernel, noise=0.1, context=nr.Box([0.0], [48.0]), refit=nr.slots.Refit(every=4)
    )
    study = nr.Study(policy, seed=0)
    for hour in (1.0, 7.0, 13.0, 20.0, 26.0, 44.0):
        trial = study.ask([hour])
        study.tell(trial, float(np.sin(2 * np.pi * hour / 24.0) - (trial.point[0] - 4.0) ** 2 / 10.0))
    found = study.replica.current().kernel
    assert found.left.kernel.period == pytest.approx(24.0)


def test_columns_that_do_not_differ_change_no_bit(monkeypatch):
    """Of a choice with hundreds of options only few columns differ in some points."""
    rng = np.random.default_rng(0)
    points = np.zeros((40, 300))
    points[:, [0, -1]] = rng.random((40, 2))
    points[np.arange(40), rng.integers(1, 299, 40)] = np.sqrt(0.5)
    kernel = nr.Matern(2.5, tuple(rng.uniform(0.1, 2.0, 300)))
    weights, found = rng.standard_normal((25, 25)), []
    for wide in (64, 1000):
        monkeypatch.setattr(pairs, "WIDE", wide)
        matrix, pullback = kernel.matrix_and_pullback(points[:25])
        found.append((kernel(points[:25], points[25:]), matrix, pullback(weights)))
    assert np.array_equal(found[0][0], found[1][0])
    for some, whole in zip(found[0][1:], found[1][1:], strict=True):
        np.testing.assert_allclose(some, whole, rtol=1e-12, atol=1e-13)
    same = np.repeat(points[:1], 3, axis=0)
    monkeypatch.setattr(pairs, "WIDE", 64)
    np.testing.assert_allclose(kernel(same, same), 1.0)
    np.testing.assert_allclose(kernel.matrix_and_pullback(same)[0], 1.0)


@pytest.mark.parametrize("few", [1, 9])
def test_options_that_few_points_have_not_are_merged_to_the_bit(few):
    rng = Draws("merged")

    def rows(n):
        two, one = np.zeros((n, 200)), np.zeros((n, 90))
        two[np.arange(n), rng.integers(100, size=n)] = two[np.arange(n), 100 + rng.integers(100, size=n)] = np.sqrt(0.5)
        one[np.arange(n), rng.integers(90, size=n)] = np.sqrt(0.5)
        return np.hstack([rng.random((n, 2)), two, rng.random((n, 70)), one, rng.random((n, 80))])

    unit = np.concatenate(
        [[0.3, 0.7], np.full(200, 0.9), np.linspace(0.2, 0.4, 69), [0.2], np.full(90, 0.3), [0.6] * 80]
    )
    points, others = rows(150), rows(few)
    for first, second in ((points, others), (others, points)):
        some, more, lengths = pairs.merged(first, second, unit)
        assert some.shape[1] == more.shape[1] == len(lengths) <= 2 + 2 * few + 2 + 70 + few + 1 + 80
        found, whole = squared_distances(some / lengths, more / lengths), squared_distances(first / unit, second / unit)
        assert np.array_equal(found, whole)


def test_the_distances_of_many_options_pass_few_columns(monkeypatch):
    """A search goes over the columns of the options tried, not over those of 1,000 options."""
    widths = []

    def noted(first, second):
        widths.append((first.shape[1], len(first) * len(second)))
        return squared_distances(first, second)

    monkeypatch.setattr(pairs, "squared_distances", noted)
    study = nr.Study(nr.auto(nr.Space(kind=nr.Choice(*range(1000)), x=nr.Float(0, 1))), seed=0)
    for n in range(30):
        study.add({"kind": 30 * n, "x": n / 30}, float(n % 5))
    study.tell(study.ask(), 0.5)
    widths.clear()
    study.ask()
    assert max(width for width, count in widths if count >= pairs.FEW_PAIRS) <= 64
