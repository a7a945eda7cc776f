"""Metrics of runs. Rounds are along the last axis, so replicates may be along the first.

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
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, finite_array, integer, listed, many, shown
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
    """Returns V_t = ||[g(x_1) + ... + g(x_t)]^+||_2 (Shi & Eryilmaz 2022, section 2), `(..., T)`.

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
