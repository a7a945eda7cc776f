"""What constraint values are expected of trials without any: those at the answered point that is nearest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

import numpy as np

from .._utils.checks import Array
from ..storage.record import Trial
from .engines.base import row_of

SAME = 1e-12  # difference up to which two distances, in units of the domain's sides, are the same


@final
class Charged:
    """The constraint values told at each (context, point).

    Args:
        sides: of the domain, `(c + d,)`, the units of distances.
    """

    def __init__(self, sides: Array) -> None:
        self._sides = np.where(sides > 0.0, sides, 1.0)
        self._told: dict[bytes, tuple[Array, Array, int]] = {}  # row, sum of the values there, and how many they are
        self._news = False

    def hear(self, trial: Trial) -> None:
        """Constraint values, where a trial has some."""
        if trial.reward is not None and trial.constraints is not None:
            row = row_of(trial) / self._sides
            _, total, count = self._told.get(row.tobytes(), (row, np.zeros(len(trial.constraints)), 0))
            self._told[row.tobytes()] = row, total + trial.constraints, count + 1
            self._news = True

    def forget(self, left: Iterable[Trial]) -> None:
        """Only these trials count any more."""
        self._told, self._news = {}, True
        for trial in left:
            self.hear(trial)

    def is_news(self) -> bool:
        """Whether anything has changed since this was last asked."""
        news, self._news = self._news, False
        return news

    def nearest(self, trial: Trial) -> Array | None:
        """The average of the values at the answered point nearest to a trial, `(m,)`; None before the first.

        Of points that are equally near, over all of them.
        """
        if not self._told:
            return None
        row = row_of(trial) / self._sides
        same = self._told.get(row.tobytes())
        if same is not None:
            return np.asarray(same[1] / same[2])
        known = list(self._told.values())
        distances = np.linalg.norm(np.array([at for at, _, _ in known]) - row, axis=1)
        near = np.flatnonzero(distances <= distances.min() + SAME)
        return np.asarray(np.mean([known[i][1] / known[i][2] for i in near], axis=0))

    def copy(self) -> Charged:
        """An independent one in the same state."""
        other = Charged.__new__(Charged)
        other._sides, other._told, other._news = self._sides, self._told.copy(), self._news
        return other
