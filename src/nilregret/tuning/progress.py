"""A progress bar that shows the number of trials and the best value, below lines about the trials."""

from __future__ import annotations

import sys
from collections.abc import Callable
from operator import gt, lt
from types import TracebackType
from typing import Self, TextIO, final

from tqdm import tqdm

from ..storage.record import Trial
from ..study.study import Study
from .result import briefly


def failure(trial: Trial, best: str) -> str | None:  # noqa: ARG001 - Other lines say the best value.
    """Returns a line about a failed or abandoned trial, None about any other."""
    if trial.state == "failed":
        return f"trial {trial.number} failed: {trial.reason}"
    if trial.state == "abandoned" and trial.abandoned is not None:
        return f"trial {trial.number} was abandoned: {trial.abandoned.reason}"
    return None


@final
class Bar:
    """A progress bar in a terminal or notebook. Lines about trials appear wherever the output goes.

    Args:
        name: name of the study.
        trials: number of trials wanted in all.
        goal: goal of the study.
        show: whether to show anything.
        file: where to write, stderr unless given.
        leave: whether the bar stays when the run has ended.
        line: returns the line about a trial, or None. It is called with the trial and the best value in words.
    """

    def __init__(
        self,
        name: str,
        trials: int,
        *,
        goal: str,
        show: bool = True,
        file: TextIO | None = None,
        leave: bool = True,
        line: Callable[[Trial, str], str | None] = failure,
    ) -> None:
        self._file = sys.stderr if file is None else file
        self._show = show and self._file is not None
        self._line = line
        self._ended = self._infeasible = 0
        self._best: float | None = None
        self._better = gt if goal == "maximize" else lt
        visible = self._show and (self._file.isatty() or "ipykernel" in sys.modules)
        self._bar = tqdm(
            total=trials, desc=name, unit="trial", file=self._file, disable=not visible, leave=leave, dynamic_ncols=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()

    def begun(self, study: Study) -> None:
        """Shows the trials on record before the first evaluation."""
        for trial in study.trials:
            self._count(trial)
        self._bar.initial = self._ended  # Trials of an earlier run took no time of this one.
        self._refresh()

    def ended(self, trial: Trial) -> None:
        """Shows one more trial."""
        self._count(trial)
        line = self._line(trial, self._best_text)
        if line is not None:
            self.say(line)
        self._refresh()

    def say(self, text: str) -> None:
        """Writes a line above the bar."""
        if self._show:
            tqdm.write(text, file=self._file)
            self._file.flush()

    @property
    def _best_text(self) -> str:
        none = "nothing feasible yet" if self._infeasible else "no value yet"
        return none if self._best is None else f"best {briefly(self._best)}"

    def _count(self, trial: Trial) -> None:
        self._ended += trial.state != "pending"
        self._infeasible += trial.feasible is False
        if trial.feasible is False or trial.reward is None:
            return
        if self._best is None or self._better(trial.reward, self._best):
            self._best = trial.reward

    def _refresh(self) -> None:
        self._bar.n = self._ended
        self._bar.set_postfix_str(self._best_text)
