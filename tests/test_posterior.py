"""What is particular to the arms engines; what they share is in conformance."""

import numpy as np
import pytest

import nilregret as nr
from nilregret.gp import DistinctArmsPosterior, LowRankPosterior
from nilregret.gp.choice import posterior_on_arms
from nilregret.kernels.factorization import covariance_root, pivoted_cholesky
from nilregret.policy.state import State

from .reference import Dense

LINE = nr.Arms.grid(0, 1, 1000)


def test_smooth_kernels_get_features_and_rough_ones_the_arms_played():
    smooth = posterior_on_arms(LINE, nr.SquaredExponential(0.2), 0.025)
    assert isinstance(smooth, LowRankPosterior)
    assert smooth.rank < 25
    square = np.stack(np.meshgrid(*[np.linspace(0, 6, 31)] * 2), axis=-1).reshape(-1, 2)
    rough = posterior_on_arms(nr.Arms(square), nr.Matern(2.5, 1.0), 0.01)
    assert isinstance(rough, DistinctArmsPosterior)
    assert rough.rank == 0
    assert posterior_on_arms(nr.Arms(square), nr.Linear(), 0.01).rank == 2


def test_features_reproduce_the_kernel_within_the_tolerance():
    kernel = nr.SquaredExponential(0.2)
    K = kernel(LINE.points, LINE.points)
    for tol in (1e-4, 1e-8, 1e-12):
        factor = pivoted_cholesky(kernel, LINE.points, tol=tol, max_rank=100)
        left = K - factor.features @ factor.features.T
        assert factor.complete
        assert factor.residual <= tol
        assert np.abs(left).max() <= tol + 1e-14
    cut = pivoted_cholesky(kernel, LINE.points, tol=1e-12, max_rank=5)
    assert not cut.complete
    assert cut.features.shape == (1000, 5)


def test_the_documented_error_bound_holds():
    """Posterior under truncated features against the dense one: both inequalities of `factorization`."""
    kernel, ridge, tol = nr.Matern(2.5, 0.3), 0.01, 1e-5
    points = np.linspace(0, 1, 80)[:, None]
    factor = pivoted_cholesky(kernel, points, tol=tol, max_rank=80)
    assert 0 < factor.residual <= tol
    rng = np.random.default_rng(0)
    arms, y = rng.integers(0, 80, 60), rng.standard_normal(60)
    K, cut = kernel(points, points), factor.features @ factor.features.T
    exact, less = Dense(K, arms, y, ridge), Dense(cut, arms, y, ridge)

    def weights(matrix):
        return np.linalg.solve(matrix[np.ix_(arms, arms)] + ridge * np.eye(60), matrix[arms])

    size, cut_size = (1 + np.abs(weights(m)).sum(axis=0) for m in (K, cut))
    gap = exact.covariance.diagonal() - less.covariance.diagonal()
    assert (gap >= -1e-12).all()
    assert (gap <= factor.residual * cut_size**2 + 1e-12).all()
    bound = factor.residual / ridge * size * np.abs(y - less.mean[arms]).sum()
    assert (np.abs(exact.mean - less.mean) <= bound + 1e-12).all()
    assert np.abs(exact.mean - less.mean).max() > 1e-9  # the bound is not tested on nothing


def test_root_of_a_singular_covariance():
    rows = np.random.default_rng(1).standard_normal((4, 30))
    matrix = rows.T @ rows
    root = covariance_root(matrix)
    assert root.shape == (30, 4)
    np.testing.assert_allclose(root @ root.T, matrix, atol=1e-12)


@pytest.mark.parametrize("lengthscale", [0.05, 1.0])
def test_the_played_engine_survives_noise_at_the_edge_of_rounding(lengthscale):
    """Far below what any engine can resolve, it must still give finite means and variances within the prior's."""
    square = np.random.default_rng(2).uniform(0, 1, (400, 2))
    posterior = DistinctArmsPosterior(posterior_on_arms(nr.Arms(square), nr.Matern(2.5, 0.1), 1.0).prior, 1e-12)
    posterior = DistinctArmsPosterior(type(posterior.prior)(nr.SquaredExponential(lengthscale), square), 1e-12)
    rng = np.random.default_rng(3)
    for t in range(1500):
        posterior.append(int(rng.integers(0, 150)), float(rng.standard_normal()))
        if t % 3 == 2:
            posterior.append(7, 1.0)
            posterior.forget(7, 1.0)
    mean, std = posterior.predict()
    assert np.isfinite(mean).all()
    assert (std <= 1.0 + 1e-6).all()


@pytest.mark.parametrize("kind", ["features", "played", "rates"])
@pytest.mark.parametrize("known", [0, 3, 200])
def test_many_at_once_are_as_one_by_one_to_the_bit(kind, known):
    """Whatever was known before, and wherever everything is computed from the sums again."""
    rng = np.random.default_rng(known)
    if kind == "rates":
        policy = nr.auto(nr.Arms.grid(0, 1, 30), reward="bernoulli")
        make = lambda: State(policy, seed=0).reward.posterior.belief.observed  # noqa: E731
    else:
        kernel = nr.SquaredExponential(0.3) if kind == "features" else nr.Matern(0.5, 0.1)
        make = lambda: posterior_on_arms(nr.Arms.grid(0, 1, 30 if kind == "features" else 400), kernel, 0.1)  # noqa: E731
    one, many = make(), make()
    assert type(one).__name__.lower().startswith({"features": "lowrank", "played": "distinct", "rates": "rate"}[kind])
    arms = rng.integers(30, size=known + 900).tolist()
    targets = [float(x) for x in rng.random(len(arms)) < 0.4]
    for posterior in (one, many):
        for arm, target in zip(arms[:known], targets[:known], strict=True):
            posterior.append(arm, target)
    for arm, target in zip(arms[known:], targets[known:], strict=True):
        one.append(arm, target)
    many.append_all(arms[known:], targets[known:])
    for posterior in (one, many):  # and what comes later
        posterior.append(arms[0], targets[0])
        posterior.revise(arms[5], targets[5], 0.25)
        posterior.forget(arms[5], 0.25)
    for mine, other in zip(one.predict(), many.predict(), strict=True):
        assert mine.tobytes() == other.tobytes()
    assert one.log_determinant_ratio == many.log_determinant_ratio
    assert one.quadratic_form == many.quadratic_form
    assert (one.count, one.plays.tolist()) == (many.count, many.plays.tolist())
