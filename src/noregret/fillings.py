"""What unanswered trials count as where that depends on the answers: a second posterior, of the answers alone."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping

import numpy as np

from .checks import Array, IndexArray
from .engines import Engine, row_of
from .parts.pending import NearestMeans
from .record import Trial


class Filling:
    """The answers alone, in an engine of their own, and the values of unanswered trials by them.

    Args:
        part: how a value is made of them.
        engine: a fresh one.
        sides: of the domain, `(c + d,)`, the units of distances.
    """

    def __init__(self, part: NearestMeans, engine: Engine, sides: Array) -> None:
        self._part, self._engine, self._sides = part, engine, np.where(sides > 0.0, sides, 1.0)
        self._told: dict[int, tuple[Trial, float]] = {}
        self._points: dict[bytes, Trial] = {}  # the earliest answered trial at each distinct row
        self._trials: list[Trial] = []  # these by number, so that what came in when leaves no trace
        self._rows: Array = np.zeros((0, len(sides)))

    def take(self, answers: Mapping[int, tuple[Trial, float]]) -> None:
        """These answers, trials with their targets, and no others."""
        gone = [number for number in self._told if number not in answers]
        for number in gone:
            self._engine.forget(*self._told.pop(number))
        fresh = [answer for number, answer in answers.items() if number not in self._told]
        for number, (trial, old) in self._told.items():
            self._engine.revise(trial, old, answers[number][1])
        self._told = dict(answers)
        if fresh:
            self._engine.learn([trial for trial, _ in fresh], [target for _, target in fresh])
        if gone:
            self._points, self._trials, self._rows = {}, [], self._rows[:0]
        for trial, _ in self._told.values() if gone else fresh:
            self._place(trial)

    def _place(self, trial: Trial) -> None:
        """There is an answer here now."""
        key = row_of(trial).tobytes()
        known = self._points.get(key)
        if known is not None and known.number < trial.number:
            return
        if known is not None:
            self._rows = np.delete(self._rows, self._trials.index(known), axis=0)
            self._trials.remove(known)
        place = bisect(self._trials, trial.number, key=lambda other: other.number)
        self._points[key] = trial
        self._trials.insert(place, trial)
        self._rows = np.insert(self._rows, place, self._row(trial), axis=0)

    def value(self, trial: Trial) -> float:
        """What an unanswered trial counts as, in the posterior's units."""

        def means(which: IndexArray) -> Array:
            return self._engine.answered_means([self._trials[i] for i in which])

        value = self._part.value(self._row(trial), self._rows, means)
        return 0.0 if value is None else value

    def _row(self, trial: Trial) -> Array:
        return np.asarray(row_of(trial) / self._sides)

    def copy(self) -> Filling:
        """An independent filling in the same state."""
        other = Filling.__new__(Filling)
        other.__dict__.update(self.__dict__)
        other._engine, other._told, other._points = self._engine.copy(), self._told.copy(), self._points.copy()
        other._trials = self._trials.copy()
        return other
