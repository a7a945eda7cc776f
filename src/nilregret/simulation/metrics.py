"""Metrics and results of runs. Rounds are along the last axis, so replicates may be along the first.

| symbol | name | meaning | shape |
|---|---|---|---|
| r_t = f(x*) - f(x_t) | `regret` | regret of each round | (..., T) |
| R_t | `cumulative_regret` | sum of r_1 .. r_t | (..., T) |
| R_t / t | `average_regret` | goes to 0 for a no-regret policy | (..., T) |
| | `simple_regret` | f(x*) minus the best f among plays answered so far | (..., T) |
| [r_t]^+ | `positive_regret` | sum of the positive parts, where plays may beat the best feasible point | (..., T) |
| g_t | `constraints` | constraint values of each round, satisfied when <= 0 | (..., T, m) |
| V_t | `violation` | norm of the positive part of g_1 + ... + g_t: rounds may compensate for each other | (..., T) |
| | `regret_by_period` | regret of each stationary period, against its own maximum | (..., K) |
| | `strong_violation` | sum of the positive parts: no round compensates for a violation | (..., T) |
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, IndexArray, finite_array, integer, listed, many, shown
from .._utils.dataclass import dataclass
from .._utils.numerals import numeral
from .._utils.randomness import simulation_generator
from ..domains.domain import Arms, Domain
from ..environments.environment import Play
from ..environments.true_outputs import ascending_rounds
from ..errors import InvalidInput

ROUNDS = "They are rounds, counted from 0."


def cumulative_regret(regret: npt.ArrayLike) -> Array:
    """Returns R_t = r_1 + ... + r_t (Srinivas et al. 2010, section 2)."""
    return np.cumsum(_per_round("regret", regret), axis=-1)


def average_regret(regret: npt.ArrayLike) -> Array:
    """Returns R_t / t."""
    total = cumulative_regret(regret)
    return np.asarray(total / np.arange(1, total.shape[-1] + 1))


def simple_regret(
    regret: npt.ArrayLike, *, answered: npt.ArrayLike | None = None, answered_by: npt.ArrayLike | None = None
) -> Array:
    """Returns the smallest regret of an answered round so far, infinite before the first answer.

    Args:
        regret: regret of each round, `(..., T)`.
        answered: True if the answer of a round was known by its end, `(..., T)`. All are True unless given.
        answered_by: instead, the round (counted from 0) by whose end each answer was known, `(..., T)`. T or more for
            answers that came too late.
    """
    values = _per_round("regret", regret)
    if answered is not None and answered_by is not None:
        raise InvalidInput("Give either `answered` or `answered_by`: they say the same in two ways.")
    if answered_by is not None:
        known = _like("answered_by", finite_array("answered_by", answered_by), values)
        if (known < 0.0).any() or (known != np.floor(known)).any():
            raise InvalidInput("`answered_by` holds rounds: whole numbers from 0.")
        return _known_minimum(values, known)
    if answered is not None:
        values = np.where(_like("answered", _flags("answered", answered), values), values, np.inf)
    return np.asarray(np.minimum.accumulate(values, axis=-1))


def _known_minimum(values: Array, answered_by: npt.NDArray[Any]) -> Array:
    rounds = values.shape[-1]
    best = np.full((*values.shape[:-1], rounds + 1), np.inf)
    flat, by, regrets = best.reshape(-1, rounds + 1), answered_by.reshape(-1, rounds), values.reshape(-1, rounds)
    for row, known, regret in zip(flat, np.minimum(by, rounds).astype(np.intp), regrets, strict=True):
        np.minimum.at(row, known, regret)
    return np.asarray(np.minimum.accumulate(best[..., :rounds], axis=-1))


def positive_regret(regret: npt.ArrayLike) -> Array:
    """Returns the sum of the positive parts of the regret up to each round.

    Points that violate constraints may have a negative regret.
    """
    return cumulative_regret(np.maximum(_per_round("regret", regret), 0.0))


def violation(constraints: npt.ArrayLike) -> Array:
    """Returns V_t = ||[g(x_1) + ... + g(x_t)]^+||_2 (Shi & Eryilmaz 2022, eq. 7), `(..., T)`.

    Args:
        constraints: values of each round, `(..., T, m)`.
    """
    total = np.cumsum(_constraint_values(constraints), axis=-2)
    return np.asarray(np.linalg.norm(np.maximum(total, 0.0), axis=-1))


def strong_violation(constraints: npt.ArrayLike) -> Array:
    """Returns the sum of [g]^+ over rounds and constraints up to each round, `(..., T)`, an upper bound of V_t."""
    return np.cumsum(np.maximum(_constraint_values(constraints), 0.0).sum(axis=-1), axis=-1)


def recent_violation(constraints: npt.ArrayLike, *, rounds: int = 100) -> Array:
    """Returns the share of the last `rounds` rounds that violated some constraint, `(...,)`."""
    rounds = integer("rounds", rounds, low=1)
    last = _constraint_values(constraints)[..., -rounds:, :]
    return np.asarray((last > 0.0).any(axis=-1).mean(axis=-1))


def regret_by_period(regret: npt.ArrayLike, change_points: Sequence[int]) -> Array:
    """Returns the regret of each stationary period (Avanesov, eq. 1.2, cut at the change points), `(..., K)`.

    Args:
        regret: regret of each round against the maximum of its own period, `(..., T)`, as `run.regret` has it.
        change_points: the first rounds, counted from 0, of all periods but the first.
    """
    values = _per_round("regret", regret)
    return np.add.reduceat(values, [0, *_changes(change_points, values.shape[-1])], axis=-1)


class Detections(NamedTuple):
    """The agreement of a policy's restarts with the true changes.

    Attributes:
        delays: rounds from each change to the first restart before the next change. Infinite if there is none.
        missed: changes without a restart of their own.
        false_alarms: all other restarts, those before the first change included.
    """

    delays: Array
    missed: int
    false_alarms: int


def detections(restarts: Sequence[int], change_points: Sequence[int], rounds: int) -> Detections:
    """Compares restarts with the true change points of a run, all counted from 0.

    A restart in the very round of a change has delay 0 (only an oracle is that early). A change detected in the last
    round would restart with the first round after the run, which counts as well.
    """
    rounds = integer("rounds", rounds, low=1)
    changes = _changes(change_points, rounds)
    cuts = np.sort(
        np.array([integer("restarts", cut, low=0) for cut in listed("restarts", restarts, why=ROUNDS)], dtype=np.int64)
    )
    delays = np.full(len(changes), np.inf)
    for i, (start, end) in enumerate(itertools.pairwise([*changes, rounds + 1])):
        own = cuts[(cuts >= start) & (cuts < end)]
        delays[i] = own[0] - start if len(own) else np.inf
    missed = int(np.isinf(delays).sum())
    return Detections(delays, missed, len(cuts) - (len(changes) - missed))


def _per_round(name: str, values: npt.ArrayLike) -> Array:
    """Returns the checked numbers of one or more rounds, `(..., T)`."""
    result = finite_array(name, values)
    if result.ndim == 0 or result.shape[-1] == 0:
        raise InvalidInput(f"`{name}` has shape {result.shape}: it must be (..., T), a number for each round.")
    return result


def _constraint_values(constraints: npt.ArrayLike) -> Array:
    result = finite_array("constraints", constraints)
    if result.ndim < 2 or result.shape[-2] == 0:
        raise InvalidInput(
            f"`constraints` has shape {result.shape}: it must be (..., T, m), a row for each round and a column for "
            "each constraint."
        )
    return result


def _flags(name: str, values: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    try:
        result = np.asarray(values)
    except ValueError:  # The lists have different lengths.
        result = np.zeros(0)
    if result.dtype.kind != "b":
        raise InvalidInput(f"`{name}` is {shown(values)}: it must be True or False for each round.")
    return result


def _like(name: str, values: npt.NDArray[Any], regret: Array) -> npt.NDArray[Any]:
    if values.shape != regret.shape:
        raise InvalidInput(f"`{name}` has shape {values.shape} and `regret` {regret.shape}: they must be the same.")
    return values


def _changes(change_points: Sequence[int], rounds: int) -> list[int]:
    """Returns the change points of a run, after checks."""
    changes = ascending_rounds(change_points)
    if changes and changes[-1] >= rounds:
        raise InvalidInput(
            f"`change_points` has {changes[-1]}, beyond the last of {many(rounds, 'round')} (counted from 0)."
        )
    return changes


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
        return cumulative_regret(self.regret)

    @property
    def average_regret(self) -> Array:
        """Cumulative regret divided by the number of rounds, `(T,)`."""
        return average_regret(self.regret)

    @property
    def simple_regret(self) -> Array:
        """Smallest regret of the rounds with a known answer so far, `(T,)`.

        Under noise nobody knows which round that is. A recommended point, such as `study.best()`, may be worse.
        """
        return simple_regret(self.regret, answered_by=self.answered_by)

    @property
    def violations(self) -> Array:
        """Violation of each round, the sum of the positive parts of its g, `(T,)`."""
        return np.asarray(np.maximum(self.constraints, 0.0).sum(axis=-1))

    @property
    def violation(self) -> Array:
        """V_t, the norm of the positive part of the summed constraint values, `(T,)`."""
        return violation(self.constraints)

    @property
    def realised_violation(self) -> Array:
        """V_t of the observed constraint values with noise (Shi & Eryilmaz 2022, appendix D), `(T,)`."""
        return violation(self.told_constraints)

    @property
    def strong_violation(self) -> Array:
        """Sum of the positive parts of the constraint values up to each round, `(T,)`."""
        return strong_violation(self.constraints)


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
