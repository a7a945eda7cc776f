"""The rounds of a run as arrays, which a simulation fills one by one."""

from __future__ import annotations

from typing import final

import numpy as np

from .._utils.checks import Array
from ..domains.domain import Arms, Domain
from .environments.environment import Play


@final
class Columns:
    """The plays and answers of a run so far, with the attributes of a `Run`.

    Args:
        domain: the points that may be played.
        contexts: the contexts, or None.
        noise: noise of each reward, `(T,)`, which becomes the rewards.
        constraint_noise: noise of the constraint values, `(T, m)`, which becomes the observed ones.
    """

    def __init__(self, domain: Domain, contexts: Domain | None, noise: Array, constraint_noise: Array) -> None:
        rounds = len(noise)
        self.arms = np.full(rounds, -1, dtype=np.intp)
        self._table = domain.points if isinstance(domain, Arms) else np.zeros((0, domain.dimension))  # Of all arms.
        self._points = None if isinstance(domain, Arms) else np.zeros((rounds, domain.dimension))
        self.contexts = np.zeros((rounds, 0 if contexts is None else contexts.dimension))
        self.explored = np.zeros(rounds, dtype=bool)
        self.rewards, self.regret = noise, np.zeros(rounds)
        self.answered_by = np.full(rounds, rounds, dtype=np.intp)
        self.told_constraints, self.constraints = constraint_noise, np.zeros(constraint_noise.shape)
        self.multipliers = np.full(constraint_noise.shape, np.nan)

    def record(self, play: Play, value: float, best: float) -> float:
        """Records a decision with its expected reward and the best one, and returns its noisy reward."""
        t, arm = play.number, play.arm
        if arm is not None:
            self.arms[t] = arm
        if self._points is not None:
            self._points[t] = play.point
        if play.context is not None:
            self.contexts[t] = play.context
        if play.explored:
            self.explored[t] = True
        reward = value + self.rewards.item(t)
        self.rewards[t], self.regret[t] = reward, best - value
        return reward

    def record_constraints(self, t: int, values: Array, multipliers: Array) -> None:
        """Records the expected constraint values of a round, `(m,)`, and the multipliers, if the policy has as many."""
        self.constraints[t] = values
        self.told_constraints[t] += values
        if len(multipliers) == len(values):
            self.multipliers[t] = multipliers

    def point(self, t: int) -> Array:
        """Returns the point of a round, `(d,)`."""
        point: Array = self._table[self.arms[t]] if self._points is None else self._points[t]
        return point

    @property
    def points(self) -> Array:
        """The played points, `(T, d)`."""
        return self._table[self.arms] if self._points is None else self._points
