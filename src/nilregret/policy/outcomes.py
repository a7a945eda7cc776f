"""Rewards and failures of the trials of one output, and its trials without an answer of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, final

import numpy as np

from .._utils.checks import Array
from .._utils.copying import Copyable, independent
from ..slots.pending import Pending
from ..storage.record import Trial
from .engines import Engine


@final
class Outcomes:
    """The rewards and failures of the trials that count.

    Args:
        engine: the engine of the policy. It is told which points to set aside.
        sets_aside: whether failures set points aside. Only the outcomes of the reward do so.

    Attributes:
        count: outcomes of trials that counted when the outcomes came in.
        least: the smallest reward, or None before the first.
        failed: failed trials by number.
        points: counts of answers and failures by point, or None before the first failure.
    """

    def __init__(self, engine: Engine[Any], *, sets_aside: bool) -> None:
        self.engine, self._sets_aside = engine, sets_aside
        self.count = 0
        self.least: float | None = None
        self.failed: dict[int, Trial] = {}
        self._best: dict[bytes, float] | None = None  # by context, made at the first question for the best reward
        self.points: FailedPoints | None = None  # most studies have no failure

    def observe(self, trial: Trial, *, counts: bool = False) -> None:
        """Counts an outcome and updates the smallest reward. If the trial `counts`, its reward is recorded (`add`)."""
        reward = trial.reward
        self.count += 1
        if reward is not None and (self.least is None or reward < self.least):
            self.least = reward
        if counts and not (self._best is None and self.points is None):
            self.add(trial)

    def observe_reward(self, reward: float, context: Array | None) -> None:
        """Counts the reward of a play that is no trial and counts, in a run without failures."""
        self.count += 1
        if self.least is None or reward < self.least:
            self.least = reward
        if self._best is not None:
            _raise_best(self._best, reward, context)

    def add(self, trial: Trial) -> None:
        """Records the reward of a trial that counts from now on."""
        if trial.reward is not None:
            if self._best is not None:
                _raise_best(self._best, trial.reward, trial.context)
            if self.points is not None:
                self.points.count(trial, self.engine, answers=1)

    def remove(self, trial: Trial) -> None:
        """Removes the reward of a trial that no longer counts."""
        if self.points is not None and trial.reward is not None:
            self.points.count(trial, self.engine, answers=-1)

    def fail(self, trial: Trial, counted: Iterable[Trial]) -> None:
        """Sets the point of a failed trial aside, unless a trial that counts was answered there.

        Args:
            trial: the failed trial.
            counted: the trials that count.
        """
        if not self._sets_aside:
            return
        self.failed[trial.number] = trial
        if self.points is None:
            self.points = FailedPoints(other for other in counted if other.reward is not None)
        self.points.count(trial, self.engine, failures=1)

    def forget_failures(self, first: int) -> None:
        """Forgets failures of trials before number `first`."""
        if self.points is not None:
            for number in [number for number in self.failed if number < first]:
                self.points.count(self.failed.pop(number), self.engine, failures=-1)

    def forget_best(self) -> None:
        """Discards the best rewards. They are computed anew when needed."""
        self._best = None

    def restart(self, first: int, counted: list[Trial]) -> None:
        """Keeps the outcomes of trials from number `first` on.

        Args:
            first: the first number that counts.
            counted: the trials that count, all from `first` on.
        """
        self.least = min((trial.reward for trial in counted if trial.reward is not None), default=None)
        failed, self.failed, self.points, self._best = self.failed, {}, None, None
        if self._sets_aside:
            self.engine.allow_all()
        for number, trial in failed.items():
            if number >= first:
                self.fail(trial, counted)

    def best(self, context: Array | None, counted: Iterable[Trial]) -> float | None:
        """Returns the best reward that counts under a context, or None before the first."""
        if self._best is None:
            self._best = {}
            for trial in counted:
                if trial.reward is not None:
                    _raise_best(self._best, trial.reward, trial.context)
        return self._best.get(_key_of(context))

    def copy(self, engine: Engine[Any]) -> Outcomes:
        """Returns an independent copy."""
        return independent(self, ("failed", "points"), fresh={"engine": engine, "_best": None})


def _raise_best(best: dict[bytes, float], reward: float, context: Array | None) -> None:
    key = _key_of(context)
    best[key] = max(reward, best.get(key, -np.inf))


def best_at(trials: Iterable[Trial], points: Array, context: Array | None) -> float | None:
    """Returns the best reward at the points `(n, d)` under a context, or None before the first."""
    known, under = {point.tobytes() for point in points}, _key_of(context)
    rewards = (
        trial.reward
        for trial in trials
        if trial.reward is not None and trial.point.tobytes() in known and _key_of(trial.context) == under
    )
    return max(rewards, default=None)


def _key_of(context: Array | None) -> bytes:
    return b"" if context is None else context.tobytes()


@final
class FailedPoints(Copyable):
    """Counts of answers and failures by point.

    A point is set aside while it has a failure and no answer. Two counts make this independent of the order in which
    outcomes come in or leave.

    Args:
        answered: the answered trials that count.
    """

    OWNED = ("_answers", "_failures")

    def __init__(self, answered: Iterable[Trial]) -> None:
        self._answers = Counter(trial.point.tobytes() for trial in answered)
        self._failures: Counter[bytes] = Counter()

    def count(self, trial: Trial, engine: Engine[Any], *, answers: int = 0, failures: int = 0) -> None:
        """Adds to the numbers of answers and failures at a point, and tells the engine if its state changes."""
        key = trial.point.tobytes()
        before = self._is_aside(key)
        self._answers[key] += answers
        self._failures[key] += failures
        if before != self._is_aside(key):
            (engine.allow if before else engine.set_aside)(trial)

    def _is_aside(self, key: bytes) -> bool:
        return self._failures[key] > 0 and not self._answers[key]


@final
class PendingTrials(Copyable):
    """The trials of one output that are imputed, or wait for an answer.

    Args:
        part: the slot `pending` of the policy.

    Attributes:
        waits: the part's memory of delays in this run, or None.
        open: unanswered trials by number. It stays empty if the part does not use them.
        fresh: open trials that the posterior has not learned yet.
        abandoned: abandoned trials by number. They count as nothing until an answer comes.
        dropped: numbers of trials whose own outcome does not count: a late reward, or a failure that is imputed.
    """

    OWNED = ("waits", "open", "fresh", "abandoned", "dropped")

    def __init__(self, part: Pending) -> None:
        self.waits = part.waits()
        self._ignores = not part.revises
        self.open: dict[int, Trial] = {}
        self.fresh: list[Trial] = []
        self.abandoned: dict[int, Trial] = {}
        self.dropped: set[int] = set()

    def record(self, trial: Trial) -> None:
        """Records a trial that was asked for.

        The posterior learns an imputed value at the next decision. Without delays the answer is known by then, so
        nothing is imputed.
        """
        if not self._ignores:
            self.open[trial.number] = trial
            self.fresh.append(trial)
            if self.waits is not None:
                self.waits.ask(trial)

    def abandon(self, trial: Trial) -> bool:
        """Stops imputing a trial. Returns whether the trial was open."""
        asked = self.open.pop(trial.number, None)
        if asked is None:
            return False
        self.abandoned[trial.number] = asked
        self._remove_fresh(asked)
        if self.waits is not None:
            self.waits.hear(trial)
        return True

    def close(self, trial: Trial) -> Trial | None:
        """Takes in an outcome. Returns the trial as it was asked for, or None if it was not open."""
        asked = self.open.pop(trial.number, None) or self.abandoned.pop(trial.number, None)
        if self.waits is not None:
            self.waits.hear(trial)
        if asked is not None:
            self._remove_fresh(asked)
        return asked

    def _remove_fresh(self, asked: Trial) -> None:
        if self.fresh:
            self.fresh = [other for other in self.fresh if other is not asked]

    def forget_before(self, first: int) -> None:
        """Forgets trials before number `first`."""
        self.open = {number: trial for number, trial in self.open.items() if number >= first}
        self.fresh = [trial for trial in self.fresh if trial.number >= first]
        self.abandoned = {number: trial for number, trial in self.abandoned.items() if number >= first}
        self.dropped = {number for number in self.dropped if number >= first}
        if self.waits is not None:
            self.waits.forget(first)

    def is_answer(self, number: int) -> bool:
        """Returns whether a trial counts by its own reward."""
        return number not in self.open and number not in self.dropped
