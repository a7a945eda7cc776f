"""Counts of the trials of a study by state, updated when the record has changed."""

from __future__ import annotations

from typing import NamedTuple, final, get_args

from .._utils.checks import many
from ..storage.trial import TrialState
from ..study.study import Study
from ..study.transaction import Transaction
from .deadlines import Deadlines
from .problems import Problem


class Counts(NamedTuple):
    """Counts of the trials on record.

    Attributes:
        order: of the last event on record.
        states: number of trials in each state.
        observations: trials that no caller had asked for.
        answers: decisions with a reward or a failure, also one that the deadline rule recorded.
        late: answers that came after the deadline.
        violations: trials that violated a constraint.
    """

    order: int
    states: dict[str, int]
    observations: int
    answers: int
    late: int
    violations: int

    @property
    def decisions(self) -> int:
        """Number of trials that a caller had asked for."""
        return sum(self.states.values()) - self.observations


@final
class StudyCounts:
    """The counts of one study in one process, cached."""

    def __init__(self) -> None:
        self._counts: Counts | None = None
        self._pending = 0
        self._checked = -1  # length of the record when pending trials were last counted

    def current(self, study: Study, deadlines: Deadlines) -> Counts:
        """Returns the counts of a study, counted again if the record has changed.

        Args:
            study: to count.
            deadlines: of the study, which say what is late.
        """
        replica = study.replica
        with replica.lock:
            replica.sync()
            known, order = self._counts, replica.record.order
            if known is not None and known.order == order:
                return known
            trials = replica.record[:]
        states: dict[str, int] = dict.fromkeys(get_args(TrialState), 0)
        for trial in trials:
            states[trial.state] += 1
        asked = [trial for trial in trials if trial.as_corrected().told_order != trial.asked_order]
        answered = [trial for trial in asked if not trial.open]
        self._counts = Counts(
            order, states, len(trials) - len(asked), len(answered), sum(map(deadlines.late, answered)),
            sum(trial.feasible is False for trial in trials),
        )  # fmt: skip
        return self._counts

    def check(self, transaction: Transaction, most: int, wanted: int) -> None:
        """Checks that `wanted` more pending decisions are at most `most`.

        Raises:
            Problem: 429, too many decisions wait for an answer.
        """
        trials = transaction.trials
        if self._checked < 0 or self._pending + len(trials) - self._checked + wanted > most:
            self._pending = sum(trial.state == "pending" for trial in trials)
            self._checked = len(trials)
        if self._pending + len(trials) - self._checked + wanted > most:
            raise Problem(
                429, "pending", f"{many(self._pending, 'decision')} of this study without an answer: no more than "
                f"{most} may wait. Tell what came of them; with a `deadline` they are given up by themselves.",
            )  # fmt: skip
