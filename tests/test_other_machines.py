"""Another processor or another C library rounds last bits differently. Decisions do not follow that."""

import re
from pathlib import Path

import numpy as np
import pytest

import nilregret as nr
from nilregret.gp.arms import Prior
from nilregret.gp.distinct_arms import DistinctArmsPosterior
from nilregret.gp.feature_maps import NystromFeatures
from nilregret.gp.low_rank_arms import MAX_RANK, LowRankPosterior
from nilregret.kernels.factorization import covariance_root, pivoted_cholesky
from nilregret.slots.propensities import JointNormals

SQUARE = nr.Arms(np.stack(np.meshgrid(np.linspace(0, 1, 6), np.linspace(0, 1, 6)), -1).reshape(-1, 2))
ROUGH = nr.Matern(2.5, 0.3)


def rounded_otherwise(matrix, seed):
    """A symmetric matrix with last bits as another machine may have them."""
    noise = np.random.default_rng(seed).integers(-1, 2, matrix.shape)
    return matrix * (1.0 + np.finfo(float).eps * np.tril(noise) + np.finfo(float).eps * np.tril(noise, -1).T)


class Elsewhere:
    """A kernel as another machine computes it."""

    def __init__(self, kernel, points, seed):
        self.matrix = rounded_otherwise(kernel(points, points), seed)

    def arm_variances(self, points):
        return self.matrix.diagonal().copy()

    def diagonal(self, points):
        return self.matrix.diagonal().copy()

    def between_arms(self, points, rows, columns):
        return self.matrix[rows][:, columns]

    def __call__(self, points, others):
        return self.matrix


def drawn_by_pivots(kernel):
    found = pivoted_cholesky(kernel, SQUARE.points, tol=1e-14, max_rank=len(SQUARE)).features
    return found @ np.random.default_rng(1).standard_normal(found.shape[1])


def drawn_by_root(kernel):
    root = covariance_root(kernel(SQUARE.points, SQUARE.points))
    return root @ np.random.default_rng(1).standard_normal(root.shape[1])


def drawn_in_span(kernel):
    span = NystromFeatures(kernel, SQUARE.points, 1e-8, 20)
    return span.points @ np.random.default_rng(1).standard_normal(2)


def propensities(kernel):
    return JointNormals(np.zeros(len(SQUARE)), kernel(SQUARE.points, SQUARE.points)).probabilities(1.0)


@pytest.mark.parametrize("draw", [drawn_by_pivots, drawn_by_root, drawn_in_span, propensities])
@pytest.mark.parametrize("kernel", [ROUGH, nr.SquaredExponential(0.3)], ids=["rough", "smooth"])
def test_arms_that_mirror_each_other_are_drawn_alike_however_last_bits_are_rounded(draw, kernel):
    plain = draw(kernel)
    for seed in range(5):
        np.testing.assert_allclose(draw(Elsewhere(kernel, SQUARE.points, seed)), plain, rtol=0.0, atol=1e-6)


@pytest.mark.parametrize("made", [LowRankPosterior, DistinctArmsPosterior])
def test_a_draw_takes_as_many_numbers_whatever_the_rank(made):
    """The rank of a smooth kernel is where rounding begins: one feature more is not another draw."""
    arms, kernel = nr.Arms.grid(0, 1, 40), nr.SquaredExponential(0.3)
    drawn = []
    for less in (0, 1):
        prior = Prior(kernel, arms.points)
        factor = pivoted_cholesky(kernel, arms.points, tol=1e-14, max_rank=MAX_RANK)
        factor = factor._replace(features=factor.features[:, : factor.features.shape[1] - less])
        prior._root = factor.features
        posterior = LowRankPosterior(prior, factor, 0.1) if made is LowRankPosterior else made(prior, 0.1)
        posterior.append(3, 1.0)
        rng = np.random.default_rng(0)
        drawn.append(np.append(posterior.sample(rng, size=3), 1e-3 * rng.standard_normal()))
    np.testing.assert_allclose(*drawn, rtol=0.0, atol=1e-5)


def test_what_ties_is_sorted_stably():
    """NumPy's other sorts order ties by the instructions of the processor."""
    for path in Path(nr.__file__).parent.rglob("*.py"):
        for call in re.findall(r"argsort\(.*", path.read_text()):
            assert "stable" in call, f"{path.name}: {call}"
