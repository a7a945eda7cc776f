"""Constraint values that are expected of unanswered trials: those of the nearest answered point."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

import numpy as np

from .._utils.checks import Array
from .._utils.copying import Copyable
from ..storage.trial import Trial
from .engines.base import row_of

SAME = 1e-12  # largest difference of two distances that count as equal, in units of the domain's sides


@final
class ConstraintMeans(Copyable):
    """The average constraint values at each answered (context, point).

    Args:
        sides: sides of the domain, `(c + d,)`, the units of distances.
    """

    OWNED = ("_sums",)

    def __init__(self, sides: Array) -> None:
        self._sides = np.where(sides > 0.0, sides, 1.0)
        self._sums: dict[bytes, tuple[Array, Array, int]] = {}  # row, sum of the values, and number of trials
        self._changed = False

    def add(self, trial: Trial) -> None:
        """Adds the constraint values of a trial, if it has a reward and such values."""
        if trial.reward is not None and trial.constraints is not None:
            row = row_of(trial) / self._sides
            _, total, count = self._sums.get(row.tobytes(), (row, np.zeros(len(trial.constraints)), 0))
            self._sums[row.tobytes()] = row, total + trial.constraints, count + 1
            self._changed = True

    def reset(self, trials: Iterable[Trial]) -> None:
        """Replaces all values by those of these trials."""
        self._sums, self._changed = {}, True
        for trial in trials:
            self.add(trial)

    def take_changed(self) -> bool:
        """Returns whether a value has changed since the last call."""
        changed, self._changed = self._changed, False
        return changed

    def nearest(self, trial: Trial) -> Array | None:
        """Returns the average values at the answered point nearest to a trial, `(m,)`, or None before the first.

        If several points are equally near, their averages are averaged.
        """
        if not self._sums:
            return None
        row = row_of(trial) / self._sides
        same = self._sums.get(row.tobytes())
        if same is not None:
            return np.asarray(same[1] / same[2])
        known = list(self._sums.values())
        distances = np.linalg.norm(np.array([at for at, _, _ in known]) - row, axis=1)
        near = np.flatnonzero(distances <= distances.min() + SAME)
        return np.asarray(np.mean([known[i][1] / known[i][2] for i in near], axis=0))
