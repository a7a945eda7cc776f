"""The volume of the front after each trial, and the volume that each trial has alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._utils.checks import Array
from ..policy.state import State
from ..storage.record import Trial
from ..theory.fronts import hypervolume
from .front import compared


def volumes(values: Array, reference: Array) -> Array:
    """Returns the volume of the front of the first n rows for each n, `(n,)`.

    A point adds what it has alone less what the front has of that: the volume of the front cut off at the point.

    Args:
        values: objectives of trials in their order, all maximised, `(n, k)`. NaN adds nothing.
        reference: `(k,)`.
    """
    front, total, found = np.zeros((0, len(reference))), 0.0, []
    for row in values:
        if (row > reference).all() and not (front >= row).all(axis=1).any():
            total += float(np.prod(row - reference)) - hypervolume(np.minimum(front, row), reference)
            front = np.concatenate([front[~(front <= row).all(axis=1)], row[None]])
        found.append(total)
    return np.array(found)


def believed_values(study: Any) -> Array:
    """Returns the posterior means of now at each trial, all maximised, `(trials, k)`.

    A trial that cannot be on the front has NaN, since it failed, waits, or violates a constraint.
    """
    trials, retired = list[Trial](study.trials), study.replica.roster.retired
    kept = [trial for trial in trials if trial.arm not in retired]

    def read(state: State) -> tuple[list[Trial], Array]:
        return compared(study.policy, state, kept)

    each, means = study.replica.query(read)
    at = {trial.point.tobytes(): i for i, trial in enumerate(each)}
    found = np.full((len(trials), len(study.goals)), np.nan)
    for i, trial in enumerate(trials):
        place = at.get(trial.point.tobytes())
        if place is not None and trial.values is not None and trial.feasible is not False:
            found[i] = means[place]
    return found


def own_volumes(values: Array, reference: Array) -> Array:
    """Returns the volume that each row has alone, `(n,)`. NaN stays NaN."""
    return np.asarray(np.prod(np.maximum(values - reference, 0.0), axis=1))
