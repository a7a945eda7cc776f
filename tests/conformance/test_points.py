"""The posterior at points agrees with the dense reference, whatever happened to it."""

import tracemalloc
import weakref

import numpy as np
import pytest

import nilregret as nr
from nilregret.domains.search.boxes import PointSearch
from nilregret.gp import (
    AveragedPoints,
    Bank,
    CandidateMoments,
    PointBelief,
    PointPosterior,
    sample_path,
    triangle,
)
from nilregret.gp.choice import posterior_at_points
from nilregret.policy.engines.points import PointEngine

from ..marks import nightly
from ..reference import Dense

POINTS = np.random.default_rng(1).uniform(0, 1, (40, 2))
KERNELS = {
    "smooth": nr.SquaredExponential(0.5),
    "very smooth": nr.SquaredExponential(3.0),
    "rough": nr.Matern(0.5, 0.3),
    "Matern 5/2, scaled": nr.Matern(2.5, [0.3, 1.0], scale=4.0),
    "rank 2": nr.Linear(),
    "sum of parts": nr.Matern(2.5, 0.3).on(0) + nr.SquaredExponential(0.5).on(1) * nr.Linear(scale=0.5).on(0),
}
DIFFERENTIABLE = [name for name in KERNELS if name != "rough"]


@pytest.fixture(params=KERNELS.values(), ids=KERNELS.keys())
def kernel(request):
    return request.param


@pytest.fixture(params=[7, 256])
def block(request, monkeypatch):
    monkeypatch.setattr(triangle, "BLOCK", request.param)
    monkeypatch.setattr(triangle, "FIRST", 3)


def test_few_observations_take_little_memory():
    kernel, candidates = nr.Matern(2.5, 0.3), np.random.default_rng(2).uniform(0, 1, (1000, 2))
    kernel(POINTS, POINTS)  # The first time imports libraries.
    tracemalloc.start()
    try:
        posterior = PointPosterior(kernel, 2, 0.05)
        standing = CandidateMoments(posterior, candidates)
        posterior.extend(POINTS, np.ones(len(POINTS)))
        standing.predict()
        assert tracemalloc.get_traced_memory()[0] < 1_000_000  # 512 kB of it are 64 rows at the candidates
    finally:
        tracemalloc.stop()


def test_predictions_at_candidates_end_with_their_posterior():
    """A fit replaces the posterior, and rows at its candidates would stay for nothing."""
    engine = PointEngine(nr.Box([0, 0], [1, 1]), None, PointSearch(), seed=0)
    belief = PointBelief(PointPosterior(nr.Matern(2.5, 0.3), 2, 0.05))
    engine.predict_candidates(belief, POINTS)
    before = weakref.ref(engine._moments_of(belief.observed, POINTS))
    del belief
    assert before() is None


def check(posterior, observations, tol=1e-8):
    rows, targets = zip(*observations, strict=True) if observations else ((), ())
    dense = Dense(posterior.kernel(POINTS, POINTS), rows, targets, posterior.regularization)
    mean, std = posterior.predict(POINTS)
    np.testing.assert_allclose(mean, dense.mean, atol=tol)
    np.testing.assert_allclose(posterior.mean(POINTS), dense.mean, atol=tol)
    np.testing.assert_allclose(std**2, dense.covariance.diagonal(), atol=tol)
    np.testing.assert_allclose(posterior.covariance(POINTS[:4]), dense.covariance[:4, :4], atol=tol)
    scale = 1.0 + abs(dense.log_determinant) + abs(dense.quadratic_form)
    assert posterior.count == len(rows)
    assert posterior.rank == len(set(rows))
    assert posterior.log_determinant == pytest.approx(dense.log_determinant, abs=tol * scale)
    assert posterior.information_gain == pytest.approx(dense.information_gain, abs=tol * scale)
    assert posterior.quadratic_form == pytest.approx(dense.quadratic_form, abs=tol * scale)
    if rows:
        seen = posterior.predict(posterior.points)[0]
        np.testing.assert_allclose(posterior.landmark_means(), seen, atol=tol)


def test_append_revise_forget_in_any_mixture(kernel, block):
    rng = np.random.default_rng(7)
    posterior, observations, snapshots = PointPosterior(kernel, 2, 0.05), [], []
    standing = CandidateMoments(posterior, POINTS)
    for step in range(150):
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
        if step % 4 == 0:
            np.testing.assert_allclose(standing.predict(), posterior.predict(POINTS), atol=1e-7)
        if step % 15 == 0:
            check(posterior, observations)
            snapshots.append((posterior.copy(), posterior.predict(POINTS)))
    for copy, before in snapshots:  # shared blocks have not been written into
        np.testing.assert_allclose(copy.predict(POINTS), before, atol=1e-12)
        copy.append([0.5, 0.5], 1.0)
    check(posterior, observations)
    for row, target in reversed(observations):
        posterior.forget(POINTS[row], target)
    check(posterior, [])


def test_200_random_problems_agree_with_the_dense_reference():
    rng = np.random.default_rng(0)
    for number in range(200):
        kernel = list(KERNELS.values())[number % len(KERNELS)]
        posterior = PointPosterior(kernel, 2, 10.0 ** rng.uniform(-3, 0.5))
        rows = rng.choice(rng.choice(40, size=rng.integers(1, 20)), size=rng.integers(1, 40))
        observations = [(int(row), float(y)) for row, y in zip(rows, rng.standard_normal(len(rows)), strict=True)]
        for row, target in observations:
            posterior.append(POINTS[row], target)
        check(posterior, observations)


def test_many_at_once_are_the_same_as_one_by_one(kernel, block):
    rng = np.random.default_rng(6)
    single, many = PointPosterior(kernel, 2, 0.05), PointPosterior(kernel, 2, 0.05)
    standing = CandidateMoments(many, POINTS)
    observations = []
    for size in (1, 30, 12, 0, 20):  # new points, repeats among them, repeats of what was there
        rows, targets = rng.integers(0, 35, size), rng.standard_normal(size)
        many.extend(POINTS[rows], targets)
        for row, target in zip(rows, targets, strict=True):
            single.append(POINTS[row], target)
            observations.append((int(row), float(target)))
        np.testing.assert_allclose(many.predict(POINTS), single.predict(POINTS), atol=1e-10)
        np.testing.assert_allclose(standing.predict(), single.predict(POINTS), atol=1e-9)
        np.testing.assert_allclose(many.weights, single.weights, atol=1e-8)
        np.testing.assert_array_equal(many.points, single.points)
        np.testing.assert_array_equal(many.plays, single.plays)
        np.testing.assert_allclose(many.average, single.average, atol=1e-14)
    check(many, observations)


def test_pivots_do_not_fall_below_the_ridge():
    """Coinciding points but for rounding, almost no noise: what is left of the variance is all rounding."""
    posterior = PointPosterior(nr.SquaredExponential(1.0), 1, 1e-11)
    posterior.extend(0.5 + 1e-9 * np.arange(30)[:, None], np.ones(30))
    assert (posterior.factor_rows(0, 30).diagonal() >= np.sqrt(1e-11)).all()
    np.testing.assert_allclose(posterior.predict([[0.5]])[0], 1.0, atol=1e-3)


def test_narrow_products_in_pieces(monkeypatch):
    monkeypatch.setattr(triangle, "BLOCK", 32)
    rng = np.random.default_rng(9)
    factor = triangle.GrowingTriangle()
    for size in range(150):
        factor.append(0.1 * rng.standard_normal(size), 1.0)
    right = rng.standard_normal((150, 5))
    whole = factor.solve(right)
    monkeypatch.setattr(triangle, "SMALL", 32 * 5 * 7)  # seven columns at a time
    np.testing.assert_allclose(factor.solve(right), whole, atol=1e-12)
    np.testing.assert_allclose(factor.dense() @ whole, right, atol=1e-12)
    np.testing.assert_allclose(factor.dense().T @ factor.solve_transposed(right), right, atol=1e-12)
    np.testing.assert_allclose(factor.solve(right[:, 0]), whole[:, 0], atol=1e-12)


def test_what_was_asked_in_between_leaves_no_trace(kernel):
    """A replay asks other questions at other times; the next decision must be the same to the last bit."""
    quiet, curious = PointPosterior(kernel, 2, 0.1), PointPosterior(kernel, 2, 0.1)
    rng = np.random.default_rng(3)
    for t in range(60):
        row, target = int(rng.integers(0, 40)), float(rng.standard_normal())
        for posterior in (quiet, curious):
            posterior.append(POINTS[row], target)
        if t % 3 == 0:
            curious.predict(POINTS)
            curious.weights  # noqa: B018
            curious.copy().append([0.3, 0.3], 1.0)
    np.testing.assert_array_equal(quiet.predict(POINTS), curious.predict(POINTS))
    np.testing.assert_array_equal(quiet.weights, curious.weights)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_agree_with_finite_differences(name):
    posterior = PointPosterior(KERNELS[name], 2, 0.05)
    rng = np.random.default_rng(5)
    for row in rng.integers(0, 20, 30):
        posterior.append(POINTS[row], float(rng.standard_normal()))
    points = rng.uniform(0.05, 0.95, (10, 2))
    found = posterior.gradients(points)
    np.testing.assert_allclose((found.mean, found.std), posterior.predict(points), atol=1e-10)
    step = 1e-5
    for j, direction in enumerate(np.eye(2) * step):
        ahead, behind = posterior.predict(points + direction), posterior.predict(points - direction)
        slopes = [(a - b) / (2 * step) for a, b in zip(ahead, behind, strict=True)]
        np.testing.assert_allclose(found.mean_gradient[:, j], slopes[0], atol=1e-6, rtol=1e-6)
        np.testing.assert_allclose(found.std_gradient[:, j], slopes[1], atol=1e-6, rtol=1e-6)


def test_gradients_where_nothing_is_uncertain():
    posterior = PointPosterior(nr.Linear(), 2, 0.1)
    posterior.append([1.0, 1.0], 1.0)
    assert np.isfinite(posterior.gradients(np.zeros((1, 2))).std_gradient).all()


def test_noise_variance_of_a_millionth_of_the_signal(kernel):
    rng = np.random.default_rng(8)
    matrix = kernel(POINTS, POINTS)
    size = float(matrix.diagonal().max())
    values, vectors = np.linalg.eigh(matrix)
    truth = vectors @ (np.sqrt(np.maximum(values, 0)) * rng.standard_normal(40))
    posterior, observations = PointPosterior(kernel, 2, 1e-6 * size), []
    for _ in range(60):
        row = int(rng.integers(0, 25))
        observations.append((row, float(truth[row] + 1e-3 * np.sqrt(size) * rng.standard_normal())))
        posterior.append(POINTS[row], observations[-1][1])
    check(posterior, observations, tol=1e-7 * size)


@pytest.mark.parametrize("n", [400, *nightly(1500)])
@pytest.mark.parametrize("name", [name for name in KERNELS if name not in ("rank 2", "sum of parts")] + ["a sum"])
def test_paths_have_the_posterior_mean_and_covariance(name, n):
    """Tails at 6 standard errors plus the stated error of the waves: fails below 1e-6 if right; fixed seeds."""
    kernel = (
        nr.Matern(2.5, 0.3).on(0) * nr.SquaredExponential(0.5).on(1) + nr.Linear() if name == "a sum" else KERNELS[name]
    )
    posterior = PointPosterior(kernel, 2, 0.1)
    rng = np.random.default_rng(2)
    for row in (0, 1, 2, 3, 4, 4, 4):
        posterior.append(POINTS[row], float(rng.standard_normal()))
    some = np.concatenate([POINTS[3:5], POINTS[20:23]])
    values = np.array([sample_path(posterior, np.random.default_rng([1, i]), waves=256)(some) for i in range(n)])
    mean, exact = posterior.predict(some)[0], posterior.covariance(some)
    error = 0.01 * float(kernel.diagonal(some).max())  # of 256 waves
    assert (np.abs(values.mean(axis=0) - mean) <= 6 * np.sqrt(exact.diagonal() / n) + 1e-9).all()
    spread = np.sqrt((np.outer(exact.diagonal(), exact.diagonal()) + exact**2) / n)
    assert (np.abs(np.cov(values, rowvar=False) - exact) <= 6 * spread + error).all()


def test_joint_samples_have_the_posterior_mean_and_covariance(kernel):
    """Tails at 6 standard errors: fails below 1e-6 if right; fixed seed."""
    posterior = PointPosterior(kernel, 2, 0.1)
    for row in (0, 1, 2, 2):
        posterior.append(POINTS[row], 1.0)
    some, n = POINTS[1:6], 20_000
    samples = posterior.sample(np.random.default_rng(0), some, size=n)
    exact = posterior.covariance(some)
    assert (np.abs(samples.mean(axis=0) - posterior.mean(some)) <= 6 * np.sqrt(exact.diagonal() / n) + 1e-12).all()
    spread = np.sqrt((np.outer(exact.diagonal(), exact.diagonal()) + exact**2) / n)
    assert (np.abs(np.cov(samples, rowvar=False) - exact) <= 6 * spread + 1e-12).all()


def test_a_path_is_one_function_with_the_gradient_it_says():
    posterior = PointPosterior(nr.Matern(2.5, 0.3) + nr.Linear(), 2, 0.1)
    for row in range(6):
        posterior.append(POINTS[row], 1.0)
    path = sample_path(posterior, np.random.default_rng(0))
    np.testing.assert_array_equal(path(POINTS), path(POINTS))
    value, gradient = path.slope(POINTS[10])
    assert value == pytest.approx(path(POINTS[10:11])[0])
    step = 1e-6 * np.eye(2)
    numeric = [(path((POINTS[10] + s)[None]) - path((POINTS[10] - s)[None]))[0] / 2e-6 for s in step]
    np.testing.assert_allclose(gradient, numeric, atol=1e-6, rtol=1e-6)


def test_bad_calls_are_refused_and_change_nothing():
    posterior = PointPosterior(nr.Matern(2.5, 0.3), 2, 0.1)
    posterior.append(POINTS[0], 1.0)
    before = posterior.predict(POINTS)
    for call, message in [
        (lambda: posterior.append([0.1], 1.0), "1 column where"),
        (lambda: posterior.append([0.1, np.nan], 1.0), "not finite"),
        (lambda: posterior.append(POINTS[1], np.inf), "finite"),
        (lambda: posterior.extend(POINTS[1:3], [1.0]), "one target for each"),
        (lambda: posterior.extend(POINTS[1:3], [1.0, np.nan]), "not finite"),
        (lambda: posterior.revise(POINTS[1], 1.0, 2.0), "no observation"),
        (lambda: posterior.forget(POINTS[1], 1.0), "no observation"),
        (lambda: posterior.predict(), "continuous"),
        (lambda: posterior.sample(np.random.default_rng(0)), "continuous"),
        (
            lambda: sample_path(PointPosterior(nr.kernels.Empirical(np.eye(2)), 1, 0.1), np.random.default_rng(0)),
            "Paths are drawn",
        ),
    ]:
        with pytest.raises(nr.errors.InvalidInput, match=message):
            call()
    np.testing.assert_array_equal(posterior.predict(POINTS), before)


def _with_pending(seed, posterior):
    """A belief with answers out of order, repeats, changed answers, and questions that were taken back."""
    rng, belief = np.random.default_rng(seed), PointBelief(posterior, apart=True)
    rows, waiting, told = rng.uniform(size=(30, 2)), [], []
    for _ in range(40):
        row = rows[rng.integers(len(rows))]
        belief.put_all([row], [None])
        waiting.append(row)
        if len(waiting) > 5:
            told.append((waiting.pop(int(rng.integers(len(waiting)))), float(rng.standard_normal())))
            belief.fill_all([told[-1][0]], [told[-1][1]])
        if rng.random() < 0.1:
            belief.drop(waiting.pop(), None)
        if rng.random() < 0.1 and told:
            row, value = told.pop(int(rng.integers(len(told))))
            belief.revise(row, value, value + 1.0)
            told.append((row, value + 1.0))
        yield belief


@pytest.mark.parametrize("seed", range(4))
def test_under_pending_trials_one_matrix_serves_mean_and_variance(seed):
    """The mean of the answers and the variance of all questions, as if each posterior predicted by itself."""
    points = np.random.default_rng(99).uniform(size=(20, 2))
    standing = None
    for step, belief in enumerate(_with_pending(seed, PointPosterior(nr.Matern(2.5, 0.3), 2, 0.01))):
        if step % 3 or belief.weights is None:
            continue
        standing = standing or CandidateMoments(belief.with_pending, points)
        mean, std = belief.observed.mean(points), belief.with_pending.predict(points)[1]
        slopes = belief.observed.mean_gradient(points)[1], belief.with_pending.gradients(points).std_gradient
        found = belief.gradients(points)
        for got in (belief.copy().predict(points), standing.predict(weights=belief.weights), (found.mean, found.std)):
            np.testing.assert_allclose(got, (mean, std), rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(found[2:], slopes, rtol=1e-6, atol=1e-6)
        if step % 2:  # the own mean of a posterior with targets of 0
            np.testing.assert_allclose(standing.predict(), (np.zeros(20), std), rtol=1e-8, atol=1e-8)
    assert standing is not None


def test_other_posteriors_predict_mean_and_variance_by_themselves():
    kernel = nr.Matern(2.5, 0.3)
    bank = Bank((kernel, nr.Matern(2.5, 0.6)), (1.0, 2.0), None)
    spanned = posterior_at_points(nr.Linear(), 2, 0.01)
    averaged = AveragedPoints(bank, [PointPosterior(one, 2, 0.01) for one in bank.kernels])
    for posterior in (spanned, averaged):
        *_, belief = _with_pending(0, posterior)
        assert belief.weights is None
        mean, std = belief.predict(POINTS[:, :2])
        np.testing.assert_allclose(mean, belief.observed.mean(POINTS[:, :2]))
        np.testing.assert_allclose(std, belief.with_pending.predict(POINTS[:, :2])[1])
    *_, plain = _with_pending(0, PointPosterior(kernel, 2, 0.01))
    while plain.with_pending.count > plain.observed.count:
        plain.fill_all([plain.with_pending.points[0]], [0.0])
    assert plain.weights is None  # nothing is pending, so one posterior has both
