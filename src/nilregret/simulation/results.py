"""What a simulation gives: arrays by round, or entries for runs of equal plays from which they follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, IndexArray
from .._utils.randomness import simulation_generator
from . import metrics


@final
@dataclass(frozen=True, kw_only=True)
class Entries:
    """Runs of equal plays, n of them in T rounds, in order.

    Attributes:
        points: what was played, `(n, d)`.
        arms: which arms, `(n,)`; -1 on continuous domains.
        explored: whether it was a forced uniform round, `(n,)`.
        plays: how often, `(n,)`; T together.
        means: average reward, `(n,)`.
        scatters: sum of squared deviations of the rewards from it, `(n,)`.
        expected: expected reward of each play, `(n,)`.
        regret: of each play, `(n,)`.
        noise: standard deviation of the rewards about what is expected.
        seed: of the noise: each reward follows from it again.
    """

    points: Array
    arms: IndexArray
    explored: npt.NDArray[np.bool_]
    plays: npt.NDArray[np.int64]
    means: Array
    scatters: Array
    expected: Array
    regret: Array
    noise: float
    seed: int

    def __len__(self) -> int:
        return len(self.plays)

    @property
    def rounds(self) -> int:
        """T."""
        return int(self.plays.sum())

    def by_round(self, name: str) -> Any:
        """The array of this name that a `Run` has."""
        if name in ("points", "arms", "explored", "regret"):
            return np.repeat(getattr(self, name), self.plays, axis=0)
        if name == "rewards":
            rng = simulation_generator(self.seed, "rewards")
            return np.repeat(self.expected, self.plays) + self.noise * rng.standard_normal(self.rounds)
        if name in ("answered_by", "limited_by"):  # with the last of its run
            return np.repeat(np.cumsum(self.plays) - 1, self.plays)
        return () if name == "restarts" else np.zeros((self.rounds, 0))


@final
@dataclass(frozen=True)
class Run:
    """What happened in T rounds; with replicates (`replicate`), every array has a leading axis of them.

    Of a policy with `switching` only `entries` are kept, one for each run of equal plays; each array below is made of
    them whenever it is looked at. `total_regret` needs none of them.

    Attributes:
        points: what was played, `(T, d)`.
        arms: which arms, `(T,)`; -1 on continuous domains.
        contexts: what was known before each round, `(T, c)`; c = 0 without contexts.
        explored: whether the round was a forced uniform one, `(T,)`.
        rewards: noisy rewards, `(T,)`, those included whose answer came late or never.
        regret: best expected reward of the round, under its context and of points that satisfy the constraints, minus
            the played point's, `(T,)`; negative where a point that violates them beats the best one that does not.
        answered_by: the round by whose end the answer was known, `(T,)`; T where it was not by the last.
        limited_by: likewise of the constraint values, where they are told by themselves.
        constraints: expected constraint values g, `(T, m)`; m = 0 without constraints.
        told_constraints: what was told of them, noise and all, `(T, m)`.
        multipliers: of the constraints, in force in each round, `(T, m)`; NaN where the policy has none.
        restarts: rounds at which the policy cut its memory; with replicates one tuple for each.
        entries: runs of equal plays, where the policy decides rarely; else None.
    """

    points: Array
    arms: npt.NDArray[np.intp]
    contexts: Array
    explored: npt.NDArray[np.bool_]
    rewards: Array
    regret: Array
    answered_by: npt.NDArray[np.intp]
    limited_by: npt.NDArray[np.intp]
    constraints: Array
    told_constraints: Array
    multipliers: Array
    restarts: tuple[Any, ...]
    entries: Entries | None = None

    @classmethod
    def of(cls, entries: Entries) -> Run:
        """The run of these entries."""
        run = cls.__new__(cls)
        object.__setattr__(run, "entries", entries)
        return run

    def __getattr__(self, name: str) -> Any:
        """An array of rounds, of a run that keeps entries alone: Python asks here for what is not there."""
        entries = self.__dict__.get("entries")
        if entries is None or name not in Run.__dataclass_fields__:
            raise AttributeError(f"`Run` has no attribute {name!r}.")
        return entries.by_round(name)

    @property
    def total_regret(self) -> Any:
        """Cumulative regret of all T rounds, a number, or `(replicates,)`."""
        if self.entries is not None:
            return float(self.entries.regret @ self.entries.plays)
        return self.regret.sum(axis=-1)

    @property
    def cumulative_regret(self) -> Array:
        """Sum of the regret up to each round, `(T,)`."""
        return metrics.cumulative_regret(self.regret)

    @property
    def average_regret(self) -> Array:
        """Cumulative regret divided by the number of rounds, `(T,)`."""
        return metrics.average_regret(self.regret)

    @property
    def simple_regret(self) -> Array:
        """Smallest regret of a round whose answer was known by then, `(T,)`."""
        return metrics.simple_regret(self.regret, answered_by=self.answered_by)

    @property
    def violations(self) -> Array:
        """By how much each round violated the constraints: the sum of the positive parts of its g, `(T,)`."""
        return np.asarray(np.maximum(self.constraints, 0.0).sum(axis=-1))

    @property
    def violation(self) -> Array:
        """V_t, the norm of the positive part of the summed constraint values, `(T,)`."""
        return metrics.violation(self.constraints)

    @property
    def realised_violation(self) -> Array:
        """V_t of the constraint values as told, noise and all (Shi & Eryilmaz 2022, appendix D), `(T,)`."""
        return metrics.violation(self.told_constraints)

    @property
    def strong_violation(self) -> Array:
        """Sum of the positive parts of the constraint values up to each round, `(T,)`."""
        return metrics.strong_violation(self.constraints)
