"""What constraint values are expected of trials without any: those at the answered point that is nearest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

import numpy as np

from ..checks import Array
from ..record import Trial
from .engines.base import row_of


@final
class Charged:
    """The constraint values told at each (context, point).

    Args:
        sides: of the domain, `(c + d,)`, the units of distances.
    """

    def __init__(self, sides: Array) -> None:
        self._sides = np.where(sides > 0.0, sides, 1.0)
        self._told: dict[bytes, tuple[Array, Array, int]] = {}  # row, sum of the values there, and how many they are

    def hear(self, trial: Trial) -> None:
        """Constraint values, where a trial has some."""
        if trial.reward is not None and trial.constraints is not None:
            row = row_of(trial) / self._sides
            _, total, count = self._told.get(row.tobytes(), (row, np.zeros(len(trial.constraints)), 0))
            self._told[row.tobytes()] = row, total + trial.constraints, count + 1

    def forget(self, left: Iterable[Trial]) -> None:
        """Only these trials count any more."""
        self._told = {}
        for trial in left:
            self.hear(trial)

    def nearest(self, trial: Trial) -> Array | None:
        """The average of the values at the answered point nearest to a trial, `(m,)`; None before the first."""
        if not self._told:
            return None
        row = row_of(trial) / self._sides
        same = self._told.get(row.tobytes())
        if same is None:
            known = list(self._told.values())
            distances = np.linalg.norm(np.array([at for at, _, _ in known]) - row, axis=1)
            same = known[int(distances.argmin())]
        _, total, count = same
        return np.asarray(total / count)

    def copy(self) -> Charged:
        """An independent one in the same state."""
        other = Charged.__new__(Charged)
        other._sides, other._told = self._sides, self._told.copy()
        return other
