"""How many trials of a study wait for an answer, counted where it matters and not at each call."""

from __future__ import annotations

from typing import final

from ..study.several import Turn
from .problems import Problem


@final
class Tally:
    """Of one study in one process."""

    def __init__(self) -> None:
        self._pending = 0
        self._checked = -1  # length of the record when they were last counted

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
