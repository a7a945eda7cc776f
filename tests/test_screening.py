"""Decisions among many arms: rough variances find the arms that may win, and these are predicted exactly."""

import numpy as np
import pytest

import nilregret as nr
from nilregret.gp import arm_blocks
from nilregret.gp.arm_blocks import ArmBlocks
from nilregret.gp.screening import Moments
from tests.test_arm_blocks import played


@pytest.mark.parametrize("halved", [1, 128], ids=["lower triangles", "whole"])
@pytest.mark.parametrize("keep", [1.0, 0.9])
def test_rough_variances_are_within_their_bounds(keep, halved, monkeypatch):
    monkeypatch.setattr(arm_blocks, "HALVED", halved)
    arms, Z, y = played(0, 60, count=4, size=30)
    blocks = ArmBlocks(4, 30, 0.3, rooted=False, keep=keep)
    for number, (arm, z, target) in enumerate(zip(arms, Z, y, strict=True), start=1):
        blocks.now = number
        blocks.add(arm, z, target)
        for at in (Z[-1], 1e-3 * Z[0]):
            mean, variance, error = blocks.predict_roughly(at, 0.5)
            exact = blocks.predict(at, 0.5)
            np.testing.assert_allclose(mean, exact[0], rtol=1e-10, atol=1e-12)
            assert (np.abs(variance - exact[1]) <= error).all()
            assert (error <= 0.02 * at @ at).all()
    blocks.grow(1)
    assert len(blocks.predict_roughly(Z[0])[1]) == 5


@pytest.mark.parametrize(
    ("world", "reward"), [("stationary", "bernoulli"), ("switching", None)], ids=["clicks", "a world that changes"]
)
def test_the_same_arms_are_played(world, reward, monkeypatch):
    """Among few arms all are predicted exactly, which shows what the quick way must play."""
    found = []
    for large in (0.0, 1e12):
        monkeypatch.setattr(arm_blocks, "LARGE", large)
        policy = nr.auto(nr.Arms(range(12)), context=nr.Box([0] * 3, [1] * 3), reward=reward, world=world)
        study, rng = nr.Study(policy, seed=1), np.random.default_rng(1)
        weights, arms = rng.standard_normal((12, 3)), []
        for number in range(150):
            context = rng.random(3)
            trial = study.ask(context, exclude=[int(rng.integers(12))])
            chance = 1.0 / (1.0 + np.exp(-(weights[trial.arm] @ (context - 0.5))))
            if number % 40 == 39:
                study.fail(trial, "no answer")  # Arms that are set aside must not hide the best of the others.
            else:
                study.tell(trial, float(rng.random() < chance))
            arms.append(trial.arm)
        found.append(arms)
    assert found[0] == found[1]
    assert len(set(found[0])) > 3


def test_only_arms_that_may_win_are_predicted_exactly():
    mean, variance = np.tile([0.0, 1.0, 0.9, -3.0], 3), np.tile([1.0, 0.01, 0.01, 1.0], 3)
    rough = Moments(mean, variance, np.full(12, 1e-4))
    assert rough.scores(np.tile([1.0, 1.0, 1.0, -1.0], 3))[1].tolist() == [1, 5, 9]
    assert rough._replace(error=np.full(12, 10.0)).scores(np.ones(12))[1] is None
