"""How many trials of a study are in which state, counted where somebody asks and something has changed."""

from __future__ import annotations

from typing import NamedTuple, final, get_args

from .._utils.checks import many
from ..storage.trial import TrialState
from ..study.study import Study
from ..study.transaction import Transaction
from .deadlines import Waiting
from .problems import Problem


class Counts(NamedTuple):
    """Of a record.

    Attributes:
        order: of its last event.
        states: trials in each.
        observations: trials that nobody had asked for.
        answers: to those that somebody had, what stands for an answer after a deadline among them.
        late: of these, after the deadline.
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
        """Trials that somebody had asked for."""
        return sum(self.states.values()) - self.observations


@final
class StudyCounts:
    """Of one study in one process."""

    def __init__(self) -> None:
        self._counts: Counts | None = None
        self._pending = 0
        self._checked = -1  # length of the record when they were last counted

    def counts(self, study: Study, waiting: Waiting) -> Counts:
        """Counted anew where the record has changed.

        Args:
            study: whose trials are counted.
            waiting: what its rule says of them.
        """
        kept = study.replica
        with kept.lock:
            kept.sync()
            known, order = self._counts, kept.record.order
            if known is not None and known.order == order:
                return known
            trials = kept.record[:]
        states: dict[str, int] = dict.fromkeys(get_args(TrialState), 0)
        for trial in trials:
            states[trial.state] += 1
        asked = [trial for trial in trials if trial.righted().told_order != trial.asked_order]
        answered = [trial for trial in asked if not trial.open]
        self._counts = Counts(
            order, states, len(trials) - len(asked), len(answered), sum(map(waiting.late, answered)),
            sum(trial.feasible is False for trial in trials),
        )  # fmt: skip
        return self._counts

    def check(self, turn: Transaction, most: int, wanted: int) -> None:
        """Refuse more decisions where too many wait for an answer.

        Raises:
            Problem: 429.
        """
        trials = turn.trials
        if self._checked < 0 or self._pending + len(trials) - self._checked + wanted > most:
            self._pending = sum(trial.state == "pending" for trial in trials)
            self._checked = len(trials)
        if self._pending + len(trials) - self._checked + wanted > most:
            raise Problem(
                429, "pending", f"{many(self._pending, 'decision')} of this study without an answer: no more than "
                f"{most} may wait. Tell what came of them; with a `deadline` they are given up by themselves.",
            )  # fmt: skip
