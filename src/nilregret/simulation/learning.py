"""The trials that many worlds learn from, each with its target.

| symbol | name | meaning | shape |
|---|---|---|---|
| S, T | | worlds, rounds | |
| ytilde | `targets` | value that the posterior has learned, less the prior mean | (S, T) |
"""

from __future__ import annotations

from functools import partial
from typing import cast, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, IndexArray
from ..gp.low_rank_arms import ArmBeliefs
from ..policy.policy import Policy
from ..slots.envelope import Window
from ..storage.trial import Trial
from .late_answers import Told


@final
class Learning:
    """The beliefs of S worlds, with the trials that they have learned.

    Args:
        policy: the policy of all worlds.
        beliefs: the beliefs, without observations.
        rewards: the rewards of each trial, `(S, T)`, told or not, which a simulation fills.
        clock: the time of each question, seconds, `(T,)`.

    Attributes:
        cells: the arm of each trial in the beliefs' table, `(S, T)`.
        known: True for trials whose own reward counts, `(S, T)`.
    """

    def __init__(self, policy: Policy, beliefs: ArmBeliefs, rewards: Array, clock: Array) -> None:
        self.policy, self.beliefs, self._rewards, self._clock = policy, beliefs, rewards, clock
        worlds = len(rewards)
        self.cells = np.zeros(rewards.shape, dtype=np.intp)
        self.known = np.zeros(rewards.shape, dtype=bool)
        self._targets = np.zeros(rewards.shape)
        self._imputed, self._dropped = self.known.copy(), self.known.copy()  # by a stand-in, and for good
        self._least = np.full(worlds, np.inf)  # smallest reward told
        self._stands_in = policy.pending.stand_in(0.0) is not None

    def learn_at_once(self, t: int, cells: IndexArray, rewards: Array) -> None:
        """Learns the reward of each world's trial t, told at once."""
        self.cells[:, t], self.known[:, t] = cells, True
        self.beliefs.observed.append(cells, rewards - self.policy.prior_mean)

    def learn(self, t: int, cells: IndexArray, came: Told) -> None:
        """Learns the answers that came since trial t was asked for, and imputes what is missing.

        Args:
            t: number of the last trial.
            cells: its cell in each world, `(S,)`.
            came: the answers.
        """
        self.cells[:, t] = cells
        told = came.by_number()
        if self._stands_in:
            self._learn_censored(t, told)
            return
        self.known[told.worlds, told.numbers] = True
        late = told.numbers < t
        self._append(told.some(late))
        if self.beliefs.with_pending is not self.beliefs.observed:
            self.beliefs.with_pending.append(cells, np.zeros(len(cells)))
        self._append(told.some(~late))

    def _append(self, told: Told) -> None:
        """Observes answers, the first of each world, then the second, and so on."""
        targets = self._rewards[told.worlds, told.numbers] - self.policy.prior_mean
        cells, ranks = self.cells[told.worlds, told.numbers], told.ranks
        for rank in range(int(ranks.max(initial=-1)) + 1):
            which = ranks == rank
            everywhere = int(which.sum()) == len(self._rewards)
            self.beliefs.observed.append(cells[which], targets[which], None if everywhere else told.worlds[which])

    # -- censored rewards ----------------------------------------------------------------------------------------

    def _learn_censored(self, t: int, told: Told) -> None:
        """Learns answers in time, and the stand-in for all others (see `Censored`)."""
        worlds, numbers, _ = told
        values = self._rewards[worlds, numbers]
        before = self._least.copy()
        np.minimum.at(self._least, worlds, values)
        counts = self._counting(t, told)
        self.known[worlds[counts], numbers[counts]] = True
        self._dropped[worlds[~counts], numbers[~counts]] = True
        late = counts & (numbers < t)
        self._revise(worlds[late], numbers[late], values[late] - self.policy.prior_mean)
        self._imputed[worlds[late], numbers[late]] = False
        stand_in = self._stand_in()
        now = counts & (numbers == t)
        targets = stand_in.copy()
        targets[worlds[now]] = values[now] - self.policy.prior_mean
        self._imputed[:, t] = ~self.known[:, t]
        self._targets[:, t] = targets
        self.beliefs.observed.append(self.cells[:, t], targets)
        lowered = self._imputed[:, : t + 1] & (self._least < before)[:, None]
        for some in (lowered & self._dropped[:, : t + 1], lowered & ~self._dropped[:, : t + 1]):
            where, which = np.nonzero(some & (self._targets[:, : t + 1] != stand_in[:, None]))
            self._revise(where, which, stand_in[where], together=True)

    def _counting(self, t: int, told: Told) -> npt.NDArray[np.bool_]:
        """Returns True for answers that come in time, `(k,)`."""
        part, point = self.policy.pending, self.policy.domain.points[0]
        counts = np.ones(len(told.worlds), dtype=bool)
        for i, (number, time) in enumerate(zip(told.numbers.tolist(), told.times.tolist(), strict=True)):
            asked = Trial(number, point, 0, None, 0, self._clock.item(number))
            counts[i] = part.counts(asked.answered(reward=0.0, order=1, time=time), partial(int, t - number))
        return counts

    def _stand_in(self) -> Array:
        """Returns the target of each world's unanswered trials, `(S,)`."""
        part, mean = self.policy.pending, self.policy.prior_mean
        lowest = part.lowest(cast(float, np.where(self._least < np.inf, self._least, mean)), mean)
        return np.broadcast_to(np.asarray(part.stand_in(lowest)) - mean, self._least.shape)

    def _revise(self, worlds: IndexArray, numbers: IndexArray, targets: Array, *, together: bool = False) -> None:
        """Replaces targets. Those of a world are as many updates, or one if they change together."""
        changes = targets - self._targets[worlds, numbers]
        moved = changes != 0.0
        if not moved.any():
            return
        worlds, numbers, changes = worlds[moved], numbers[moved], changes[moved]
        self._targets[worlds, numbers] += changes
        updates = np.bincount(worlds, minlength=len(self._rewards))
        self.beliefs.observed.revise(
            worlds, self.cells[worlds, numbers], changes, np.minimum(updates, 1) if together else updates
        )

    # -- reading -------------------------------------------------------------------------------------------------

    def recent(self, t: int, window: Window) -> Array:
        """Returns posterior deviations at the trials of a window before round t that count, `(S, k)`, or 0."""
        first = max(0, t - int(min(window.length, t)))
        if window.in_time:
            first = int(np.searchsorted(self._clock[:t], self._clock[t] - window.length))
        counts = self.known[:, first:t] | self._imputed[:, first:t]
        if self.beliefs.with_pending is not self.beliefs.observed:
            counts = np.ones_like(counts)
        return np.where(counts, self.beliefs.predict(self.cells[:, first:t])[1], 0.0)

    def best_rewards(self, t: int, rows: IndexArray, now: IndexArray) -> Array:
        """Returns the best reward that counts under each world's context, `(S, 1)`, or -inf before the first.

        Args:
            t: the round.
            rows: the context of each round, `(S, T)`.
            now: the context of this round, `(S,)`.
        """
        counted = self.known[:, :t] & (rows[:, :t] == now[:, None])
        rewards = np.where(counted, self._rewards[:, :t], -np.inf)
        return np.asarray(rewards.max(axis=1, keepdims=True, initial=-np.inf))
