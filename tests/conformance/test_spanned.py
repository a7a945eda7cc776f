"""The posterior in a span: of kernels of finite rank it is the dense one, of a sketch as near to it as it says."""

import numpy as np
import pytest

import nilregret as nr
from nilregret.gp import PointPosterior, Terms, WeightSpacePosterior, choice
from nilregret.gp.choice import posterior_at_points
from nilregret.gp.paths import drawn_path
from nilregret.kernels import Multiplied, Stretched

from ..reference import Dense, rkhs_norm_of_mean

POINTS = np.random.default_rng(1).uniform(-1, 1, (40, 4))
KERNELS = {
    "linear": nr.Linear(scale=0.7),
    "bilinear": nr.Linear().on(0, 1) * nr.Linear(scale=2.0).on(2, 3),
    "one task for each option": nr.kernels.Overlap([0, 0, 1], scale=1.3).on(1, 2, 3)
    * (nr.Linear() + nr.Linear().on(0)),
    "mixture": nr.kernels.Mixture(nr.Linear().on(0, 1), nr.kernels.Overlap([0, 0]).on(2, 3), 0.3, scale=0.4),
    "wrapped": Multiplied(Stretched(nr.Linear(), [2.0, 0.5, 1.0, 1.0]), 0.4),
}
TERMS = Terms(accuracy=0.1, oversampling=4.0, growth=4.0, most=1000, seed=0)


@pytest.fixture(params=KERNELS.values(), ids=KERNELS.keys())
def kernel(request):
    return request.param


def check(posterior, observations, tol=1e-8):
    rows, targets = zip(*observations, strict=True) if observations else ((), ())
    ridge, seen = posterior.regularization, POINTS[list(rows)]
    dense = Dense(posterior.kernel(POINTS, POINTS), rows, targets, ridge)
    mean, std = posterior.predict(POINTS)
    np.testing.assert_allclose(mean, dense.mean, atol=tol)
    np.testing.assert_allclose(posterior.mean(POINTS), dense.mean, atol=tol)
    np.testing.assert_allclose(std**2, dense.covariance.diagonal(), atol=tol)
    np.testing.assert_allclose(posterior.covariance(POINTS[:4]), dense.covariance[:4, :4], atol=tol)
    np.testing.assert_allclose(posterior.cross_covariance(POINTS[:3], POINTS[3:9]), dense.covariance[:3, 3:9], atol=tol)
    scale = 1.0 + abs(dense.log_determinant) + abs(dense.quadratic_form)
    assert (posterior.count, posterior.shortfall) == (len(rows), 0.0)
    assert len(posterior.points) == len(posterior.landmarks) == len(set(rows))
    assert posterior.log_determinant == pytest.approx(dense.log_determinant, abs=tol * scale)
    assert posterior.quadratic_form == pytest.approx(dense.quadratic_form, abs=tol * scale)
    if rows:
        assert posterior.mean_norm == pytest.approx(
            rkhs_norm_of_mean(posterior.kernel, seen, np.array(targets), ridge), abs=1e-6
        )
        np.testing.assert_allclose(posterior.landmark_means(), posterior.means_of(posterior.points), atol=tol)


def test_append_revise_forget_in_any_mixture(kernel):
    rng = np.random.default_rng(7)
    posterior, observations, snapshots = posterior_at_points(kernel, 4, 0.05), [], []
    assert isinstance(posterior, WeightSpacePosterior)
    for step in range(400):  # past a refinement of the mean
        action = rng.choice(["append", "append", "revise", "revise all", "forget"]) if observations else "append"
        which = int(rng.integers(len(observations))) if observations else 0
        if action == "append":
            row, target = int(rng.integers(0, 25)), float(rng.standard_normal())
            posterior.append(POINTS[row], target)
            observations.append((row, target))
        elif action == "revise":
            row, old = observations[which]
            new = float(rng.standard_normal())
            posterior.revise(POINTS[row], old, new)
            observations[which] = (row, new)
        elif action == "revise all":
            rows, old = zip(*observations[which:], strict=True)
            posterior.revise_all(POINTS[list(rows)], old, new := rng.standard_normal(len(rows)).tolist())
            observations[which:] = zip(rows, new, strict=True)
        else:
            row, target = observations.pop(which)
            posterior.forget(POINTS[row], target)
        if step % 50 == 0:
            check(posterior, observations)
            snapshots.append((posterior.copy(), posterior.predict(POINTS)))
    for copy, before in snapshots:
        np.testing.assert_allclose(copy.predict(POINTS), before, atol=1e-12)
        copy.append(POINTS[0], 1.0)
    check(posterior, observations)
    for row, target in reversed(observations):
        posterior.forget(POINTS[row], target)
    check(posterior, [])


def test_little_noise_and_all_at_once(kernel):
    """lambda a millionth of the signal; together as one by one; and what is forgotten leaves almost nothing known."""
    rng, single, many = np.random.default_rng(3), *(posterior_at_points(kernel, 4, 1e-6) for _ in range(2))
    rows = rng.integers(0, 40, 300)
    truth = kernel(POINTS, POINTS[:6]) @ rng.standard_normal(6)
    targets = truth[rows] + 1e-3 * rng.standard_normal(300)
    many.extend(POINTS[rows], targets)
    for row, target in zip(rows, targets, strict=True):
        single.append(POINTS[row], target)
    np.testing.assert_allclose(single.predict(POINTS), many.predict(POINTS), atol=1e-8)
    check(many, [(int(row), float(target)) for row, target in zip(rows, targets, strict=True)], tol=1e-7)
    for row, target in zip(rows[:298], targets[:298], strict=True):
        many.forget(POINTS[row], target)
    check(many, [(int(row), float(target)) for row, target in zip(rows[298:], targets[298:], strict=True)], tol=1e-7)


def test_a_hundred_thousand_observations_leave_no_drift():
    rng, kernel = np.random.default_rng(5), KERNELS["bilinear"]
    posterior = posterior_at_points(kernel, 4, 0.01)
    rows, targets = rng.integers(0, 40, 100_000), rng.standard_normal(100_000)
    for start in range(0, 100_000, 1000):
        posterior.extend(POINTS[rows[start : start + 1000]], targets[start : start + 1000])
    plays, sums = np.bincount(rows, minlength=40), np.bincount(rows, weights=targets, minlength=40)
    K = kernel(POINTS, POINTS)
    M = K + 0.01 * np.diag(1.0 / plays)
    np.testing.assert_allclose(posterior.mean(POINTS), K @ np.linalg.solve(M, sums / plays), atol=1e-8)
    variances = (K - K @ np.linalg.solve(M, K)).diagonal()
    np.testing.assert_allclose(posterior.predict(POINTS)[1] ** 2, variances, atol=1e-8)
    exact = float(np.linalg.slogdet(np.eye(40) + np.sqrt(np.outer(plays, plays)) * K / 0.01)[1])
    assert posterior.log_determinant_ratio == pytest.approx(exact, abs=1e-8)


def test_several_regularizations_at_once(kernel):
    rng = np.random.default_rng(2)
    dense, spanned = PointPosterior(kernel, 4, 0.1), posterior_at_points(kernel, 4, 0.1)
    ridges = np.array([0.01, 0.1, 3.0])
    for step in range(30):  # asked in between, so that what is kept is updated
        row, target = int(rng.integers(40)), float(rng.standard_normal())
        for posterior in (dense, spanned):
            posterior.append(POINTS[row], target)
            if step % 7 == 6:
                posterior.forget(POINTS[row], target)
        if step % 5 == 0:
            ours, theirs = spanned.spectrum(), dense.spectrum()
            np.testing.assert_allclose(ours.misfit(ridges), theirs.misfit(ridges), atol=1e-8)
            assert ours.log_determinant_ratio(0.1) == pytest.approx(theirs.log_determinant_ratio(0.1), abs=1e-8)
            for one, other in zip(ours.moments(POINTS, ridges), theirs.moments(POINTS, ridges), strict=True):
                np.testing.assert_allclose(one, other, atol=1e-7)


SKETCHED = {"a sketch": nr.SquaredExponential(0.8).on(0, 1) + 0.2 * nr.Linear().on(2)}
ALL = KERNELS | SKETCHED


def some(name, count=30, seed=5):
    """A posterior with some observations."""
    posterior = posterior_at_points(ALL[name], 4, 0.05, terms=TERMS)
    rng = np.random.default_rng(seed)
    for row in rng.integers(0, 20, count):
        posterior.append(POINTS[row], float(rng.standard_normal()))
    return posterior


@pytest.mark.parametrize("name", [name for name in ALL if name != "one task for each option"])
def test_gradients_agree_with_finite_differences(name):
    posterior, points = some(name), np.random.default_rng(6).uniform(0.1, 0.9, (10, 4))
    found = posterior.gradients(points)
    np.testing.assert_allclose((found.mean, found.std), posterior.predict(points), atol=1e-10)
    step = 1e-5
    for j, direction in enumerate(np.eye(4) * step):
        ahead, behind = posterior.predict(points + direction), posterior.predict(points - direction)
        slopes = [(a - b) / (2 * step) for a, b in zip(ahead, behind, strict=True)]
        np.testing.assert_allclose(found.mean_gradient[:, j], slopes[0], atol=1e-6, rtol=1e-6)
        np.testing.assert_allclose(found.std_gradient[:, j], slopes[1], atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("name", ALL)
def test_paths_and_samples_have_the_posterior_mean_and_covariance(name):
    """Tails at 6 standard errors plus the stated error of the waves: fails below 1e-6 if right; fixed seeds."""
    posterior, n, at = some(name, count=6), 400 if name in SKETCHED else 1500, POINTS[18:23]
    mean, exact = posterior.predict(at)[0], posterior.covariance(at)
    paths = np.array([drawn_path(posterior, np.random.default_rng([1, i]))(at) for i in range(n)])
    joint = posterior.sample(np.random.default_rng(0), at, size=n)
    error = 0.003 * float(posterior.kernel.diagonal(at).max()) if name in SKETCHED else 1e-12
    spread = np.sqrt((np.outer(exact.diagonal(), exact.diagonal()) + exact**2) / n)
    for values in (paths, joint):
        assert (np.abs(values.mean(axis=0) - mean) <= 6 * np.sqrt(exact.diagonal() / n) + 1e-9).all()
        assert (np.abs(np.cov(values, rowvar=False) - exact) <= 6 * spread + error).all()


@pytest.mark.parametrize("name", ["bilinear", "a sketch"])
def test_a_path_is_one_function_with_the_gradient_it_says(name):
    posterior = some(name)
    path = drawn_path(posterior, np.random.default_rng(0)).widened(1.7)
    values, gradients = path.slopes(POINTS[10:13])
    np.testing.assert_array_equal(values, path(POINTS[10:13]))
    for j, step in enumerate(1e-6 * np.eye(4)):
        numeric = (path(POINTS[10:13] + step) - path(POINTS[10:13] - step)) / 2e-6
        np.testing.assert_allclose(gradients[:, j], numeric, atol=1e-6, rtol=1e-6)
    mean, wide = posterior.mean(POINTS), drawn_path(posterior, np.random.default_rng(0))
    np.testing.assert_allclose(path(POINTS) - mean, 1.7 * (wide(POINTS) - mean), atol=1e-9)


def test_bad_calls_are_refused_and_change_nothing():
    posterior = some("bilinear")
    before = posterior.predict(POINTS)
    for call, message in [
        (lambda: posterior.append([0.1], 1.0), "1 column where"),
        (lambda: posterior.extend(POINTS[1:3], [1.0]), "one target for each"),
        (lambda: posterior.extend(POINTS[1:3], [1.0, np.nan]), "not finite"),
        (lambda: posterior.revise(POINTS[39], 1.0, 2.0), "no observation"),
        (lambda: posterior.forget(POINTS[39], 1.0), "no observation"),
        (lambda: posterior.predict(), "continuous"),
        (lambda: posterior.sample(np.random.default_rng(0)), "continuous"),
        (lambda: posterior_at_points(nr.Linear(), 4, 1e-15).append(POINTS[0], 1.0), "`regularization` is 1e-15"),
    ]:
        with pytest.raises(nr.errors.InvalidInput, match=message):
            call()
    np.testing.assert_array_equal(posterior.predict(POINTS), before)


def test_which_posterior_suits_a_kernel(monkeypatch):
    assert isinstance(posterior_at_points(nr.Matern(2.5), 4, 0.1), PointPosterior)
    assert isinstance(posterior_at_points(nr.Matern(2.5) * nr.Linear(), 4, 0.1), PointPosterior)
    assert isinstance(posterior_at_points(nr.Matern(2.5), 4, 0.1, terms=TERMS), WeightSpacePosterior)
    assert posterior_at_points(KERNELS["bilinear"], 4, 0.1, terms=TERMS).rank == 4
    monkeypatch.setattr(choice, "MOST_FEATURES", 3)
    assert isinstance(posterior_at_points(KERNELS["bilinear"], 4, 0.1), PointPosterior)


# -- how far a sketch is off -----------------------------------------------------------------------------------------

SMOOTH = nr.SquaredExponential(0.3)


def sketched(terms, count=500, ridge=0.01, seed=0, targets=None):
    """A sketch and the exact posterior of the same observations, some of them repeated."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (count, 2))
    X[::5] = X[0]
    y = rng.standard_normal(count) if targets is None else targets(X)
    sketch, exact = posterior_at_points(SMOOTH, 2, ridge, terms=terms), PointPosterior(SMOOTH, 2, ridge)
    for x, target in zip(X, y, strict=True):
        sketch.append(x, target)
    exact.extend(X, y)
    return sketch, exact, X


@pytest.mark.parametrize("ridge", [0.01, 1.0])
@pytest.mark.parametrize(("accuracy", "most"), [(0.1, 1000), (1.0, 1000), (0.1, 12), (1e-3, 1000)])
def test_variances_and_gain_are_as_near_as_it_says(accuracy, most, ridge):
    sketch, exact, X = sketched(TERMS._replace(accuracy=accuracy, most=most), ridge=ridge)
    rho = sketch.shortfall
    assert 0.0 < rho <= accuracy or most == 12
    assert sketch.rank <= min(most, len(sketch.points) - 1)
    Z = sketch.span.features(X)
    left = float(np.trace(SMOOTH(X, X) - Z @ Z.T))
    assert rho**2 * ridge == pytest.approx(left, rel=1e-6, abs=1e-9)
    at = np.random.default_rng(9).uniform(-0.2, 1.2, (200, 2))
    factor = rho / 2 + np.sqrt(1 + rho**2 / 4)
    ratio = sketch.predict(at)[1] / exact.predict(at)[1]
    assert (ratio <= factor + 1e-6).all()
    assert (ratio >= 1 / factor - 1e-6).all()
    assert sketch.log_determinant_ratio >= exact.log_determinant_ratio - 1e-6
    inside = np.linalg.slogdet(np.eye(len(X)) + Z @ Z.T / ridge)[1]
    assert sketch.log_determinant_ratio == pytest.approx(inside + rho**2, abs=1e-5)


@pytest.mark.parametrize("most", [5, 12, 40])
def test_the_mean_is_off_by_no_more_than_the_norm_allows(most):
    """Step 3 of the proof without noise, for several f and far too few inducing points: |f - mu'| <= s' B (1 + rho)."""
    for seed in range(12):
        rng = np.random.default_rng([seed, 8])
        centres, weights = rng.uniform(0, 1, (8, 2)), rng.standard_normal(8)
        weights /= np.sqrt(weights @ SMOOTH(centres, centres) @ weights)

        def f(rows, centres=centres, weights=weights):
            return SMOOTH(rows, centres) @ weights

        sketch, _, _ = sketched(TERMS._replace(most=most), count=120, seed=seed, targets=f)
        at = rng.uniform(0, 1, (300, 2))
        mean, std = sketch.predict(at)
        assert (np.abs(f(at) - mean) <= std * (1 + sketch.shortfall) + 1e-7).all()


def test_the_noise_is_bounded_whatever_the_inducing_points():
    """Step 3: the noise's part of mu' - f is at most s' / sqrt(lambda) times its norm under the exact matrix."""
    for seed, most in ((0, 5), (1, 12), (2, 40)):
        eta = np.random.default_rng([seed, 4]).standard_normal(120)
        sketch, _, X = sketched(TERMS._replace(most=most), count=120, seed=seed, targets=lambda X, eta=eta: eta)
        K = SMOOTH(X, X)
        norm = np.sqrt(eta @ K @ np.linalg.solve(K + 0.01 * np.eye(120), eta))
        mean, std = sketch.predict(np.random.default_rng(3).uniform(0, 1, (300, 2)))
        assert (np.abs(mean) <= std / 0.1 * norm + 1e-7).all()


def test_it_is_a_function_of_what_happened():
    rng = np.random.default_rng(4)
    quiet, curious = (posterior_at_points(SMOOTH, 2, 0.01, terms=TERMS) for _ in range(2))
    other = posterior_at_points(SMOOTH, 2, 0.01, terms=TERMS._replace(seed=1))
    for t in range(150):
        x, y = rng.uniform(0, 1, 2), float(rng.standard_normal())
        for posterior in (quiet, curious, other):
            posterior.append(x, y)
        if t % 3 == 0:
            curious.predict(rng.uniform(0, 1, (5, 2)))
            curious.spectrum()
            curious.copy().append([0.3, 0.3], 1.0)
    np.testing.assert_array_equal(quiet.landmarks, curious.landmarks)
    np.testing.assert_array_equal(quiet.predict(POINTS[:, :2]), curious.predict(POINTS[:, :2]))
    assert not np.array_equal(quiet.landmarks, other.landmarks)
    np.testing.assert_allclose(quiet.predict(POINTS[:, :2]), other.predict(POINTS[:, :2]), atol=0.1)


@pytest.mark.parametrize("together", [1, 100])
def test_revising_and_forgetting_in_a_sketch(together):
    rng = np.random.default_rng(6)
    X, y = rng.uniform(0, 1, (300, 2)), rng.standard_normal(300)
    sketch, exact = posterior_at_points(SMOOTH, 2, 0.01, terms=TERMS), PointPosterior(SMOOTH, 2, 0.01)
    for start in range(0, 300, together):
        sketch.extend(X[start : start + together], y[start : start + together])
    for i in range(0, 200):
        sketch.forget(X[i], y[i])
    for i in range(200, 210):
        sketch.revise(X[i], y[i], 2.0)
        y[i] = 2.0
    exact.extend(X[200:], y[200:])
    assert sketch.count == 100
    assert sketch.shortfall <= 0.1
    (mean, std), (exact_mean, exact_std) = (posterior.predict(POINTS[:, :2]) for posterior in (sketch, exact))
    np.testing.assert_allclose(std / exact_std, 1.0, atol=0.06)
    np.testing.assert_allclose(mean, exact_mean, atol=0.1)
    for i in range(200, 300):
        sketch.forget(X[i], y[i])
    assert (sketch.count, len(sketch.points)) == (0, 0)
    np.testing.assert_allclose(sketch.predict(POINTS[:, :2]), [np.zeros(40), np.ones(40)], atol=1e-6)
