"""The posterior of the answered trials alone, for parts that impute from it."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping
from functools import partial
from typing import Any, final

import numpy as np

from .._utils.checks import Array, IndexArray
from .._utils.copying import independent
from ..domains.domain import Arms
from ..gp import Belief
from ..slots.pending import Answers
from ..storage.trial import Trial
from .answer_noise import AnswerNoise
from .engines import Engine, row_of


@final
class AnswersAlone(Answers):
    """A second belief, which has learned answers and no imputed values.

    Args:
        engine: the engine of the policy.
        belief: an empty belief.
        noise: the units of its targets, and the noise of answers with a standard deviation of their own.
        sides: sides of the domain, `(c + d,)`, the units of distances.
    """

    def __init__(self, engine: Engine[Any], belief: Belief[Any], noise: AnswerNoise, sides: Array) -> None:
        self._engine, self._belief, self._noise = engine, belief, noise
        self._sides = np.where(sides > 0.0, sides, 1.0)
        self._answers: dict[int, tuple[Trial, float]] = {}
        self._points: dict[bytes, Trial] = {}  # the earliest answered trial at each distinct row
        self._trials: list[Trial] = []  # these trials by number, whatever the order of the answers
        self.rows: Array = np.zeros((0, len(sides)))

    def add_arms(self, arms: Arms) -> bool:
        """Takes over more arms (see `State.add_arms`)."""
        return bool(self._belief.add_arms(arms))  # type: ignore[attr-defined]  # at points

    def update(self, answers: Mapping[int, tuple[Trial, float]]) -> None:
        """Replaces the answers by these trials with their targets."""
        belief, entry = self._belief, partial(self._noise.entry, self._engine)
        gone = [number for number in self._answers if number not in answers]
        for number in gone:
            trial, target = self._answers.pop(number)
            belief.drop(entry(trial), target)
        fresh = [answer for number, answer in answers.items() if number not in self._answers]
        for number, (trial, old) in self._answers.items():
            belief.revise(entry(trial), old, answers[number][1])
        self._answers = dict(answers)
        if fresh:
            belief.put_all([entry(trial) for trial, _ in fresh], [target for _, target in fresh])
        if gone:
            self._points, self._trials, self.rows = {}, [], self.rows[:0]
        for trial, _ in self._answers.values() if gone else fresh:
            self._add_point(trial)

    def _add_point(self, trial: Trial) -> None:
        key = row_of(trial).tobytes()
        known = self._points.get(key)
        if known is not None and known.number < trial.number:
            return
        if known is not None:
            self.rows = np.delete(self.rows, self._trials.index(known), axis=0)
            self._trials.remove(known)
        place = bisect(self._trials, trial.number, key=lambda other: other.number)
        self._points[key] = trial
        self._trials.insert(place, trial)
        self.rows = np.insert(self.rows, place, self.row(trial), axis=0)

    def row(self, trial: Trial) -> Array:
        """Returns (context, point) in units of the sides."""
        return np.asarray(row_of(trial) / self._sides)

    def means(self, which: IndexArray) -> Array:
        """Returns posterior means in reward units."""
        means = self._engine.means(self._belief, [self._trials[i] for i in which])
        return self._noise.units.back(means)

    def advance(self, round_: int) -> None:
        """Moves the belief to a round, if f drifts."""
        self._belief.advance(round_)

    def copy(self, engine: Engine[Any]) -> AnswersAlone:
        """Returns an independent copy."""
        return independent(self, ("_belief", "_answers", "_points", "_trials"), fresh={"_engine": engine})
