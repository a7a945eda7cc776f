"""Results of a simulation: arrays by round, or entries for runs of equal plays."""

from __future__ import annotations

from typing import Any, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, IndexArray, many
from .._utils.dataclass import dataclass
from .._utils.numerals import numeral
from .._utils.randomness import simulation_generator
from ..domains.domain import Arms, Domain
from ..environments.environment import Play
from . import metrics


@final
@dataclass(frozen=True, kw_only=True)
class Entries:
    """The n runs of equal plays in T rounds, in order.

    Attributes:
        points: played points, `(n, d)`.
        arms: played arms, `(n,)`. -1 on continuous domains.
        explored: whether the decision was a forced uniform one, `(n,)`.
        plays: number of plays, `(n,)`, with sum T.
        means: average reward, `(n,)`.
        scatters: sum of squared deviations of the rewards from the average, `(n,)`.
        expected: expected reward of each play, `(n,)`.
        regret: regret of each play, `(n,)`.
        noise: standard deviation of the rewards about the expected reward.
        seed: seed of the noise, from which each reward follows again.
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
        """Returns the array of this name of a `Run`."""
        if name in ("points", "arms", "explored", "regret"):
            return np.repeat(getattr(self, name), self.plays, axis=0)
        if name == "rewards":
            rng = simulation_generator(self.seed, "rewards")
            return np.repeat(self.expected, self.plays) + self.noise * rng.standard_normal(self.rounds)
        if name in ("answered_by", "limited_by"):  # Both are those of the last play of an entry.
            return np.repeat(np.cumsum(self.plays) - 1, self.plays)
        return () if name == "restarts" else np.zeros((self.rounds, 0))


@final
@dataclass(frozen=True)
class Run:
    """The record of T rounds. With replicates (`replicate`), every array has a leading axis for them.

    A policy with `switching` has `entries` only, one for each run of equal plays. Then each array below is computed
    from the entries on every access. `total_regret` needs no array.

    Attributes:
        points: played points, `(T, d)`.
        arms: played arms, `(T,)`. -1 on continuous domains.
        contexts: context of each round, `(T, c)`. c = 0 without contexts.
        explored: whether the round was a forced uniform one, `(T,)`.
        rewards: noisy rewards, `(T,)`, also those whose answer came late or never.
        regret: best expected reward of the round minus that of the played point, `(T,)`. The best one is under the
            round's context, among points that satisfy the constraints. The regret of a point that violates them may be
            negative.
        answered_by: the round by whose end the answer was known, `(T,)`. T if it was not known by the last round.
        limited_by: the same for the constraint values, if they are told separately.
        constraints: expected constraint values g, `(T, m)`. m = 0 without constraints.
        told_constraints: observed constraint values with noise, `(T, m)`.
        multipliers: multipliers of the constraints in each round, `(T, m)`. NaN if the policy has none.
        restarts: rounds at which the policy cut its memory. With replicates one tuple for each.
        entries: runs of equal plays if the policy decides rarely, else None.
        batched: True if all replicates advanced together, as arrays of all worlds (see `replicate`).
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
    batched: bool = False

    @classmethod
    def of(cls, entries: Entries) -> Run:
        """Returns the run of these entries."""
        run = cls.__new__(cls)
        object.__setattr__(run, "entries", entries)
        return run

    def __getattr__(self, name: str) -> Any:
        """An array of rounds, computed from the entries of a run that has no arrays."""
        entries = self.__dict__.get("entries")
        if entries is None or name not in Run.__dataclass_fields__:
            raise AttributeError(f"`Run` has no attribute {name!r}.")
        return entries.by_round(name)

    def __repr__(self) -> str:
        rounds = many(self.rewards.shape[-1], "round")
        if self.rewards.ndim == 1:
            return f"Run({rounds}, total regret {numeral(float(self.total_regret))})"
        average = numeral(float(np.mean(self.total_regret)))
        return f"Run({many(len(self.rewards), 'replicate')} of {rounds}, total regret {average} on average)"

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
        """Smallest regret of the rounds with a known answer so far, `(T,)`.

        Under noise nobody knows which round that is. A recommended point, such as `study.best()`, may be worse.
        """
        return metrics.simple_regret(self.regret, answered_by=self.answered_by)

    @property
    def violations(self) -> Array:
        """Violation of each round, the sum of the positive parts of its g, `(T,)`."""
        return np.asarray(np.maximum(self.constraints, 0.0).sum(axis=-1))

    @property
    def violation(self) -> Array:
        """V_t, the norm of the positive part of the summed constraint values, `(T,)`."""
        return metrics.violation(self.constraints)

    @property
    def realised_violation(self) -> Array:
        """V_t of the observed constraint values with noise (Shi & Eryilmaz 2022, appendix D), `(T,)`."""
        return metrics.violation(self.told_constraints)

    @property
    def strong_violation(self) -> Array:
        """Sum of the positive parts of the constraint values up to each round, `(T,)`."""
        return metrics.strong_violation(self.constraints)


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
