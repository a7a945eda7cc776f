"""Trials of one output without an answer of their own."""

from __future__ import annotations

from typing import final

from .._utils.copying import Copyable
from ..slots.pending import Pending
from ..storage.record import Trial


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
