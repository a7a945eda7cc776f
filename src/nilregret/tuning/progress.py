"""One line that says how far a run is and what the best value is; failed trials are said above it."""

from __future__ import annotations

import sys
from operator import gt, lt
from types import TracebackType
from typing import Self, final

from tqdm import tqdm

from ..storage.record import Trial
from ..study.study import Study
from .result import briefly


@final
class Bar:
    """A progress bar on stderr where somebody looks, in a terminal or notebook; failures are said wherever it goes.

    Args:
        name: of the study.
        trials: wanted in all.
        goal: of the study.
        show: whether to say anything.
    """

    def __init__(self, name: str, trials: int, *, goal: str, show: bool) -> None:
        self._show = show and sys.stderr is not None
        self._ended = self._unmet = 0
        self._best: float | None = None
        self._better = gt if goal == "maximize" else lt
        looked_at = self._show and (sys.stderr.isatty() or "ipykernel" in sys.modules)
        self._bar = tqdm(
            total=trials, desc=name, unit="trial", file=sys.stderr, disable=not looked_at, dynamic_ncols=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()

    def begun(self, study: Study) -> None:
        """Show where the study stands before anything is evaluated."""
        for trial in study.trials:
            self._take(trial)
        self._bar.initial = self._ended  # what was evaluated in an earlier run took none of this one's time
        self._refresh()

    def ended(self, trial: Trial) -> None:
        """Show one trial more."""
        self._take(trial)
        if trial.state == "failed":
            self.say(f"trial {trial.number} failed: {trial.reason}")
        elif trial.state == "abandoned" and trial.abandoned is not None:
            self.say(f"trial {trial.number} was abandoned: {trial.abandoned.reason}")
        self._refresh()

    def _take(self, trial: Trial) -> None:
        self._ended += trial.state != "pending"
        self._unmet += trial.feasible is False
        if trial.feasible is False or trial.reward is None:
            return
        if self._best is None or self._better(trial.reward, self._best):
            self._best = trial.reward

    def _refresh(self) -> None:
        self._bar.n = self._ended
        none = "nothing feasible yet" if self._unmet else "no value yet"
        self._bar.set_postfix_str(none if self._best is None else f"best {briefly(self._best)}")

    def say(self, text: str) -> None:
        """A line of its own."""
        if self._show:
            tqdm.write(text, file=sys.stderr)
