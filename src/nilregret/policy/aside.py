"""Which points are set aside because nothing but failures is known of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from ..storage.record import Trial
from .engines import Engine


class Aside:
    """Points where a trial that counts has failed, and none that counts was answered.

    Two counts for each point, so that this is so at all times, whatever comes in or leaves, in whatever order.
    """

    def __init__(self, answered: Iterable[Trial]) -> None:
        self._answers = Counter(trial.point.tobytes() for trial in answered)
        self._failures: Counter[bytes] = Counter()

    def answer(self, trial: Trial, engine: Engine[Any], change: int) -> None:
        """One answered trial more, or (-1) less."""
        key = trial.point.tobytes()
        before = self._answers[key]
        self._answers[key] += change
        if self._failures[key] and not (before and self._answers[key]):
            (engine.forgive if change > 0 else engine.fail)(trial)

    def failure(self, trial: Trial, engine: Engine[Any], change: int) -> None:
        """One failed trial more, or (-1) less."""
        key = trial.point.tobytes()
        before = self._failures[key]
        self._failures[key] += change
        if not self._answers[key] and not (before and self._failures[key]):
            (engine.fail if change > 0 else engine.forgive)(trial)

    def copy(self) -> Aside:
        """An independent copy."""
        other = Aside([])
        other._answers, other._failures = self._answers.copy(), self._failures.copy()
        return other
