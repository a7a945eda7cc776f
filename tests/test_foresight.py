"""Fits that foresee: predictions of the latest rewards tell jagged objectives from smooth ones."""

import numpy as np
import pytest

import nilregret as nr
from nilregret.gp.fitting import Fit, fit
from nilregret.gp.foresight import FEWEST, foreseen, rougher
from nilregret.slots import Refit

SMOOTH = nr.Matern(2.5, [0.5, 0.5])


def rewards(X, roughness, rng):
    return np.sin(3 * X[:, 0]) - (X[:, 1] - 0.4) ** 2 + roughness * rng.standard_normal(len(X))


def drawn(n, roughness, seed):
    """Points of a search, of which the last third is close together."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 2))
    X[-(n // 3) :] = 0.4 + 0.2 * X[-(n // 3) :]
    return X, rewards(X, roughness, rng)


def test_each_reward_is_predicted_from_all_before_it():
    X, y = drawn(9, 0.3, 0)
    given = Fit(SMOOTH, 0.2, 0.1, 0.0, 0.0, True, "")
    total = 0.0
    for i in range(5, 9):
        C, k = SMOOTH(X[:i], X[:i]) + 0.04 * np.eye(i), SMOOTH(X[i : i + 1], X[:i])[0]
        mean = 0.1 + k @ np.linalg.solve(C, y[:i] - 0.1)
        std = np.sqrt(1.0 + 0.04 - k @ np.linalg.solve(C, k))
        total -= np.log(std) + np.log1p(((y[i] - mean) / std) ** 2)
    assert foreseen(given, X, y, 5) == pytest.approx(total)


def of_noise(low, high):
    def fitted(X, y):
        return fit(SMOOTH, X, y, bounds={"noise": (low, high), "scale": (1.0, 1.0)}, fit_mean=True)

    return fitted


@pytest.mark.parametrize("seed", range(3))
def test_rough_rewards_are_told_from_smooth_ones(seed):
    ways = of_noise(0.01, 0.02), of_noise(0.4, 3.0)
    assert not rougher(*ways, *drawn(30, 0.0, seed))
    assert rougher(*ways, *drawn(30, 0.5, seed))
    assert not rougher(*ways, *drawn(FEWEST - 1, 0.5, seed))  # too few to tell


def refitted(refit, X, y):
    return refit(SMOOTH, X, y, np.ones(2), noise=0.1, seed=0)


def test_a_nugget_is_assumed_if_rough_fits_foresee_better(monkeypatch):
    X, y = drawn(30, 0.0, 0)
    assert refitted(Refit(nugget=0.2), X, y) == refitted(Refit(), X, y)
    monkeypatch.setattr("nilregret.slots.refit.rougher", lambda *_: True)
    smooth, rough = (refitted(Refit(nugget=nugget), X, y).regularization for nugget in (0.0, 0.2))
    assert smooth < 0.2**2 <= rough
    assert refitted(Refit(nugget=0.2, noise="given"), X, y) == refitted(Refit(noise="given"), X, y)


def test_constraints_assume_no_nugget():
    assert Refit(nugget=0.2).of_constraint(warp="none", given=False).nugget == 0.0
