"""Rounds that ask again at points that were tried, since their answers were noisy.

| symbol | name | meaning | shape |
|---|---|---|---|
| mu, C | `mean`, `covariance` | posterior of f at the points tried | (n,), (n, n) |
| sigma_n | `noise` | standard deviation of the noise of one answer | scalar |
| s_ij | | C_ij / (C_ii + sigma_n^2)^{1/2}, how far an answer at i moves the mean at j, times Z | (n, n) |
| Z | | a standard normal number | |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from .._utils.checks import Array, integer, number, settle
from .._utils.randomness import Randomness
from .._utils.serialize import described
from ..errors import InvalidInput
from .explore import COUNTED, MOST_ROUNDS, Explore, Situation

VALUES = np.linspace(-6.0, 6.0, 193)  # values of Z over which a knowledge gradient is averaged,
DENSITIES = np.exp(-0.5 * VALUES**2) / np.exp(-0.5 * VALUES**2).sum()  # and how likely each is


@final
@described
@dataclass(frozen=True, kw_only=True)
class AskAgain(Explore):
    """Last rounds of a known budget that decide between the points tried, if their answers are noisy.

    Each of these rounds asks again at the point whose answer is worth most for the choice of the best. That is the
    point i with the largest knowledge gradient E max_j (mu_j + s_ij Z) - max_j mu_j (Frazier, Powell & Dayanik 2009).

    A round is not forced if the noise is a small share of what f varies by. It is not forced either if points were
    asked for twice and always gave the same answer, since then there is no noise. So an objective without noise, which
    a fit takes for a noisy one, loses one round.

    Attributes:
        budget: number of trials in all.
        rounds: number of the last of them that ask again.
        noise: least standard deviation of the noise, as a share of the prior deviation of f.
    """

    budget: int
    rounds: int = 3
    noise: float = 0.3

    def __post_init__(self) -> None:
        settle(
            self,
            budget=integer("budget", self.budget, low=1, why="It is how many trials there will be."),
            rounds=integer("rounds", self.rounds, low=1, high=MOST_ROUNDS, why=COUNTED),
            noise=number("noise", self.noise, low=0.0, why="It is a share of the prior deviation of f."),
        )
        if self.rounds >= self.budget:
            raise InvalidInput(
                f"`rounds` is {self.rounds} of a budget of {self.budget}: some rounds must try points first. Take "
                "fewer rounds."
            )

    def due(self, uniform: int, history: int, randomness: Randomness) -> bool:  # noqa: ARG002
        """Returns True in the last rounds of the budget."""
        return self.budget - self.rounds <= randomness.number < self.budget

    @property
    def uniform(self) -> bool:
        """False, since the points are those of earlier trials."""
        return False

    def places(self, situation: Situation) -> Array:
        """Returns the point to ask for again, `(1, d)`, or none if the noise is small."""
        tried = situation.answered()
        if tried is None or not tried.noisy or tried.noise_share < self.noise:
            return np.zeros((0, situation.domain.dimension))
        best = int(knowledge_gradients(tried.mean, tried.covariance, tried.noise).argmax())
        return tried.points[best : best + 1]


def knowledge_gradients(mean: Array, covariance: Array, noise: float) -> Array:
    """Returns the expected rise of the best posterior mean of n points by one answer at each of them, `(n,)`.

    The expectation is a sum over values of Z, whose error is below a half percent of the largest.

    Args:
        mean: posterior mean, `(n,)`.
        covariance: posterior covariance, `(n, n)`.
        noise: standard deviation of the noise of the answer.
    """
    moves = covariance / np.sqrt(np.maximum(covariance.diagonal(), 0.0) + noise**2)[:, None]
    after = mean[None, :, None] + moves[:, :, None] * VALUES
    return np.asarray(after.max(axis=1) @ DENSITIES - mean.max())
