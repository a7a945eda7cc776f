"""How many trials of a study are in which state, counted where somebody asks and something has changed."""

from __future__ import annotations

from typing import NamedTuple, final, get_args

from ..study.several import Turn
from ..study.study import Study
from ..trial import TrialState
from .problems import Problem


class Counts(NamedTuple):
    """Of a record.

    Attributes:
        order: of its last event.
        states: trials in each.
        answers: trials that were answered.
        late: of these, after they had been given up.
        violations: trials that violated a constraint.
    """

    order: int
    states: dict[str, int]
    answers: int
    late: int
    violations: int

    @property
    def trials(self) -> int:
        """All of them."""
        return sum(self.states.values())


@final
class Tally:
    """Of one study in one process."""

    def __init__(self) -> None:
        self._counts: Counts | None = None
        self._pending = 0
        self._checked = -1  # length of the record when they were last counted

    def counts(self, study: Study) -> Counts:
        """Counted anew where the record has changed."""
        trials = study.trials
        known, order = self._counts, study._kept.record.order
        if known is None or known.order != order:
            states: dict[str, int] = dict.fromkeys(get_args(TrialState), 0)
            for trial in trials:
                states[trial.state] += 1
            known = self._counts = Counts(
                order, states, sum(not trial.open for trial in trials), sum(trial.late for trial in trials),
                sum(trial.feasible is False for trial in trials),
            )  # fmt: skip
        return known

    def check(self, turn: Turn, most: int, wanted: int) -> None:
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
                429, "pending", f"{self._pending} decisions of this study wait for an answer, and no more than {most} "
                "may. Tell what came of them; with a `deadline` they are given up by themselves.",
            )  # fmt: skip
