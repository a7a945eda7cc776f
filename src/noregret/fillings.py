"""The answers alone, for parts that make of them what unanswered trials count as."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, final

import numpy as np

from .checks import Array, IndexArray
from .engines import Engine, Units, row_of
from .parts.pending import Answers
from .posterior import Belief
from .record import Trial


@final
class AnswersAlone(Answers):
    """A second belief, which has learned nothing but answers.

    Args:
        engine: of the policy.
        belief: that has learned nothing.
        units: of its targets.
        sides: of the domain, `(c + d,)`, the units of distances.
    """

    def __init__(self, engine: Engine[Any], belief: Belief[Any], units: Units, sides: Array) -> None:
        self._engine, self._belief, self._units = engine, belief, units
        self._sides = np.where(sides > 0.0, sides, 1.0)
        self._told: dict[int, tuple[Trial, float]] = {}
        self._points: dict[bytes, Trial] = {}  # one answered trial at each distinct row
        self.rows: Array = np.zeros((0, len(sides)))

    def take(self, answers: Mapping[int, tuple[Trial, float]]) -> None:
        """These answers, trials with their targets, and no others."""
        engine, belief = self._engine, self._belief
        gone = [number for number in self._told if number not in answers]
        for number in gone:
            trial, target = self._told.pop(number)
            engine.drop(belief, engine.cell(trial), target)
        fresh = [answer for number, answer in answers.items() if number not in self._told]
        for number, (trial, old) in self._told.items():
            engine.revise(belief, engine.cell(trial), old, answers[number][1])
        self._told = dict(answers)
        if fresh:
            engine.put(belief, [engine.cell(trial) for trial, _ in fresh], [target for _, target in fresh])
        if gone:
            self._points, self.rows = {}, self.rows[:0]
        self._place(list(self._told.values()) if gone else fresh)

    def _place(self, answers: list[tuple[Trial, float]]) -> None:
        """Where there are answers now."""
        known = len(self._points)
        for trial, _ in answers:
            self._points.setdefault(row_of(trial).tobytes(), trial)
        new = [self.row(trial) for trial in islice(self._points.values(), known, None)]
        if new:
            self.rows = np.concatenate([self.rows, np.array(new)])

    def row(self, trial: Trial) -> Array:
        """(context, point) in units of the sides."""
        return np.asarray(row_of(trial) / self._sides)

    def means(self, which: IndexArray) -> Array:
        """Posterior means, reward units."""
        trials = list(self._points.values())
        means = self._engine.means(self._belief, [trials[i] for i in which])
        return means * self._units.unit + self._units.center

    def copy(self, engine: Engine[Any]) -> AnswersAlone:
        """An independent one in the same state."""
        other = AnswersAlone.__new__(AnswersAlone)
        other.__dict__.update(self.__dict__)
        other._engine, other._belief = engine, self._belief.copy()
        other._told, other._points = self._told.copy(), self._points.copy()
        return other
