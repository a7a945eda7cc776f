"""The best rewards that count, by context."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

import numpy as np

from .._utils.checks import Array
from ..storage.record import Trial


@final
class BestRewards:
    """The best reward under each very context, kept up to date as rewards come in.

    Args:
        trials: those that count, in any order.
    """

    def __init__(self, trials: Iterable[Trial]) -> None:
        self._best: dict[bytes, float] = {}
        for trial in trials:
            self.hear(trial)

    def hear(self, trial: Trial) -> None:
        """One more; without a reward it is none."""
        if trial.reward is not None:
            key = _key_of(trial.context)
            self._best[key] = max(trial.reward, self._best.get(key, -np.inf))

    def under(self, context: Array | None) -> float | None:
        """The best under this very context; None before the first."""
        return self._best.get(_key_of(context))


def best_at(trials: Iterable[Trial], points: Array, context: Array | None) -> float | None:
    """The best reward at some points `(n, d)` under this very context; None before the first."""
    known, under = {point.tobytes() for point in points}, _key_of(context)
    rewards = (
        trial.reward
        for trial in trials
        if trial.reward is not None and trial.point.tobytes() in known and _key_of(trial.context) == under
    )
    return max(rewards, default=None)


def _key_of(context: Array | None) -> bytes:
    return b"" if context is None else context.tobytes()
