"""Blocks of weights, one for each arm: they are the dense solve of each arm's observations, also after very many."""

import numpy as np
import pytest

from nilregret.errors import InvalidInput
from nilregret.gp import arm_blocks
from nilregret.gp.arm_blocks import ArmBlocks, root_of_rows

KINDS = pytest.mark.parametrize("rooted", [True, False], ids=["roots", "covariances"])


@pytest.fixture(params=[1, 128], ids=["lower triangles", "whole"])
def halved(request, monkeypatch):
    """The number of features from which half of a covariance is kept."""
    monkeypatch.setattr(arm_blocks, "HALVED", request.param)


def played(seed, rounds, count=3, size=4):
    rng = np.random.default_rng(seed)
    return rng.integers(count, size=rounds), rng.standard_normal((rounds, size)), rng.standard_normal(rounds)


def dense(arm, arms, Z, y, ridge):
    """Covariance and mean of one block's weights from all of its observations."""
    own = Z[arms == arm]
    covariance = np.linalg.inv(np.eye(Z.shape[1]) + own.T @ own / ridge)
    return covariance, covariance @ own.T @ y[arms == arm] / ridge


def filled(observations, ridge, **options):
    arms, Z, y = observations
    blocks = ArmBlocks(3, Z.shape[1], ridge, **options)
    for arm, z, target in zip(arms, Z, y, strict=True):
        blocks.add(arm, z, target)
    return blocks


def agrees(blocks, observations, ridge, tolerance):
    z = np.random.default_rng(5).standard_normal(blocks.size)
    mean, variance = blocks.predict(z)
    for arm in range(3):
        covariance, weights = dense(arm, *observations, ridge)
        assert mean[arm] == pytest.approx(z @ weights, rel=tolerance, abs=tolerance)
        assert variance[arm] == pytest.approx(z @ covariance @ z, rel=tolerance)
        assert blocks.predict_one(arm, z) == pytest.approx((mean[arm], variance[arm]), rel=1e-9, abs=1e-12)
        (moved,) = blocks.moved(np.array([arm]), z[None])
        np.testing.assert_allclose(moved, covariance @ z, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(blocks.covariance(2)[arm], covariance[:2, :2], rtol=tolerance, atol=tolerance)


@KINDS
@pytest.mark.parametrize("ridge", [1.0, 0.01, 1e-6])
@pytest.mark.usefixtures("halved")
def test_blocks_are_the_dense_solve_of_each_arms_observations(rooted, ridge):
    observations = played(0, 60)
    agrees(filled(observations, ridge, rooted=rooted), observations, ridge, 1e-7)


@KINDS
def test_rounding_stays_small_over_very_many_updates(rooted):
    """A hundred thousand observations of few features, some of which come and go."""
    arms, Z, y = observations = played(1, 100_000)
    blocks = filled(observations, 0.01, rooted=rooted)
    for arm, z, target in zip(arms[:500], Z[:500], y[:500], strict=True):
        assert blocks.remove(arm, z, target)
        blocks.add(arm, z, target)
    agrees(blocks, observations, 0.01, 1e-7)


@KINDS
@pytest.mark.usefixtures("halved")
def test_targets_change_and_observations_go(rooted):
    arms, Z, y = played(2, 40)
    blocks = filled((arms, Z, y), 0.1, rooted=rooted)
    blocks.revise(arms[7], Z[7], 3.0 - y[7])
    y[7] = 3.0
    before = blocks.copy()
    assert blocks.remove(arms[9], Z[9], y[9])
    left = np.delete(arms, 9), np.delete(Z, 9, axis=0), np.delete(y, 9)
    agrees(blocks, left, 0.1, 1e-9)
    agrees(before, (arms, Z, y), 0.1, 1e-9)
    logs = [np.linalg.slogdet(dense(arm, *left, 0.1)[0])[1] for arm in range(3)]
    assert blocks.log_ratio == pytest.approx(-sum(logs))


@KINDS
@pytest.mark.usefixtures("halved")
def test_a_block_is_renewed_where_little_would_be_left(rooted):
    blocks, z = ArmBlocks(2, 3, 1e-6, rooted=rooted), np.array([1.0, 2.0, 0.5])
    blocks.add(1, z, 1.0)
    blocks.add(1, 20.0 * z, 21.0)
    assert not blocks.remove(1, 20.0 * z, 21.0)
    blocks.renew(1, root_of_rows(z[None] / 1e-3, 3))
    for _ in range(2):
        blocks.refine(1, z[None], np.array([1]), np.array([1.0]))
    assert blocks.predict_one(1, z) == pytest.approx((1.0, 1e-6), rel=1e-5)


def test_rows_of_several_arms_are_read_together():
    observations = played(3, 30)
    blocks, rows = filled(observations, 0.1), np.random.default_rng(4).standard_normal((5, 4))
    for at in (np.array([2, 0, 0, 1, 2]), np.arange(3)):
        some = rows[: len(at)]
        halves = blocks.halves(at, some)
        whole = blocks.covariance()[at]
        np.testing.assert_allclose((halves**2).sum(axis=1), np.einsum("ni,nij,nj->n", some, whole, some))
        np.testing.assert_allclose(blocks.from_halves(at, halves), np.einsum("nij,nj->ni", whole, some))


@pytest.mark.usefixtures("halved")
def test_blocks_drift_to_their_prior():
    """An Ornstein-Uhlenbeck process of the weights, filtered round by round, without the shortcuts."""
    arms, Z, y = played(6, 50)
    keep, ridge, blocks = 0.9, 0.3, ArmBlocks(3, 4, 0.3, keep=0.9)
    covariance, mean = np.stack([np.eye(4)] * 3), np.zeros((3, 4))
    for now, (arm, z, target) in enumerate(zip(arms, Z, y, strict=True)):
        if now:
            covariance, mean = keep**2 * covariance + (1 - keep**2) * np.eye(4), keep * mean
        blocks.now = now
        means, variances = blocks.predict(z)
        np.testing.assert_allclose(means, mean @ z, atol=1e-10)
        np.testing.assert_allclose(variances, covariance @ z @ z, atol=1e-10)
        np.testing.assert_allclose(blocks.predict_one(1, z), (means[1], variances[1]), atol=1e-12)
        np.testing.assert_allclose(blocks.moved(np.arange(3), np.tile(z, (3, 1))), covariance @ z, atol=1e-10)
        np.testing.assert_allclose(blocks.covariance(2), covariance[:, :2, :2], atol=1e-10)
        blocks.add(arm, z, target)
        towards = covariance[arm] @ z
        mean[arm] += towards * (target - z @ mean[arm]) / (ridge + z @ towards)
        covariance[arm] -= np.outer(towards, towards) / (ridge + z @ towards)
    with pytest.raises(InvalidInput, match="drift"):
        blocks.revise(0, Z[0], 1.0)
