"""The progress of a run: one live view in a terminal, a line in a notebook, a line for each improvement in a pipe."""

from __future__ import annotations

import sys
import time
from collections import Counter, deque
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO, final

import numpy as np

from .._utils.checks import Array, many
from .._utils.numerals import numeral, numerals
from ..errors import printable
from ..storage.record import Trial
from ..study.direction import signs_of
from ..study.formatting import where
from ..study.study import Study

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live
    from rich.progress import Progress
    from rich.table import Table

    from .loop import TimeLeft

LAST = 5  # Trials in the live view.
BEST, ON_FRONT = "best", "on the front"  # States of a trial that no earlier one beats.
OFTEN = 0.1  # Seconds between two drawings.
REASONS = 3  # Reasons of failures that stay on the screen above the view.


def _problem(trial: Trial) -> str | None:
    """Returns a line about a failed or abandoned trial, None about any other."""
    if trial.state == "failed":
        return f"trial {trial.number} failed: {trial.reason}"
    if trial.state == "abandoned" and trial.abandoned is not None:
        return f"trial {trial.number} was abandoned: {trial.abandoned.reason}"
    return None


@final
class Bar:
    """The progress of a run, on stderr unless another output is given.

    A terminal has one view, a few lines that are redrawn. It is drawn in this thread after a trial, so that processes
    may be forked meanwhile. What the objective prints appears above it.

    Args:
        name: name of the study.
        trials: number of trials wanted in all, or None for as many as there is time for.
        goals: goal of each objective of the study.
        show: whether to show anything.
        file: where to write, stderr unless given.
        summary: whether a line at the end says how many trials there are and which is best.
    """

    def __init__(
        self, name: str, trials: int | None, *, goals: Sequence[str], show: bool = True, file: TextIO | None = None,
        summary: bool = True,
    ) -> None:  # fmt: skip
        self._file = sys.stderr if file is None else file
        self._show = show and self._file is not None
        self._summary, self._name, self._trials = summary, printable(name), trials
        self._signs = signs_of(goals)
        self._front: list[Trial] = []  # Trials that no other one beats in the values told: the best, of one objective.
        self._counts: Counter[str] = Counter()
        self._reasons: set[str] = set()
        self._last: deque[tuple[Trial, str]] = deque(maxlen=LAST)
        self._live: Live | None = None
        self._begun = False
        self._full_setting: Array | None = None  # Of a policy with `fidelity`.
        self._time: TimeLeft | None = None
        self._drawn = 0.0
        self._written = 0  # Characters of the line of a notebook.

    def __enter__(self) -> Self:
        from ..study.terminal import can_redraw

        if self._show and can_redraw(self._file):
            self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._summary and self._last:
            self.say(self._line)
        if self._live is not None:
            self._live.stop()
            self._live = None

    def begun(self, study: Study, time: TimeLeft | None = None) -> None:
        """Counts the trials on record before the first evaluation. `time` is that of the run."""
        self._full_setting = study.inputs.full
        for trial in study.trials:
            self._count(trial)
        self._time, self._begun = time, not self._full
        if self._live is not None:
            self._task = self._progress.add_task("", total=1.0, done="", left="")
        self._draw(force=True)

    def ended(self, trial: Trial) -> None:
        """Shows one more trial."""
        word = self._count(trial)
        self._last.append((trial, word))
        problem = _problem(trial)
        if problem is not None and self._is_news(problem.partition(": ")[2]):
            self.say(problem)
        elif word in (BEST, ON_FRONT) and not self._redraws:
            so_far = "best so far" if word == BEST else ON_FRONT
            self.say(f"trial {trial.number}: {so_far} {_value(trial)}, {where(trial)}")
        self._draw(force=self._full)

    def say(self, text: str) -> None:
        """Writes a line above the view."""
        if not self._show:
            return
        if self._live is not None:
            self._live.console.print(printable(text))
        else:
            print("\r" * bool(self._written) + f"{printable(text):{self._written}}", file=self._file, flush=True)
            self._written = 0

    @property
    def _redraws(self) -> bool:
        return self._live is not None or self._in_notebook

    @property
    def _in_notebook(self) -> bool:
        return self._show and self._live is None and "ipykernel" in sys.modules

    def _is_news(self, reason: str) -> bool:
        """Returns whether to write a reason. A pipe has each, a screen the first few different ones."""
        if not self._redraws:
            return True
        new = reason not in self._reasons and len(self._reasons) < REASONS
        self._reasons.add(reason)
        return new

    def _count(self, trial: Trial) -> str:
        """Counts a trial that has ended. Returns its state, "best" if it is the best so far, or nothing."""
        if trial.state == "pending":
            return "pending"
        self._counts["not feasible" if trial.feasible is False else trial.state] += 1
        if trial.feasible is False or trial.reward is None:
            return "not feasible" if trial.feasible is False else trial.state
        if trial.context is not None and not np.all(trial.context == self._full_setting):
            return ""  # Its setting is cheaper than the full one.
        single = len(self._signs) == 1  # The first of equal trials is the best one, and a front has them all.
        if any(self._beats(other, trial, or_equals=single) for other in self._front):
            return ""
        self._front = [other for other in self._front if not self._beats(trial, other)] + [trial]
        return BEST if single else ON_FRONT

    def _beats(self, one: Trial, other: Trial, *, or_equals: bool = False) -> bool:
        """Returns whether a trial was told values at least as good as those of another, and one better value."""
        rises = [sign * (a - b) for sign, a, b in zip(self._signs, one.values or (), other.values or (), strict=True)]
        return min(rises) >= 0.0 and (or_equals or max(rises) > 0.0)

    @property
    def _best(self) -> Trial | None:
        """The best trial so far of one objective."""
        return self._front[-1] if self._front and len(self._signs) == 1 else None

    @property
    def _full(self) -> bool:
        """True if there are as many trials as wanted."""
        return self._trials is not None and self._counts.total() >= self._trials

    @property
    def _share(self) -> float:
        """The share of the run that is over, by its trials or by its time."""
        trials = 0.0 if self._trials is None else min(self._counts.total() / self._trials, 1.0)
        return trials if self._time is None else max(trials, 1.0 - self._time.left / self._time.seconds)

    @property
    def _line(self) -> str:
        """The state of the run in a line."""
        done = self._counts.total()
        of = many(done, "trial") if self._full or self._trials is None else f"{done} of {many(self._trials, 'trial')}"
        seconds = 0.0 if self._time is None or self._full else self._time.left
        left = f", {_minutes(seconds)} left" if seconds else ""
        return f"{self._name}: {of}{left}, {self._outcome}"

    @property
    def _outcome(self) -> str:
        """The best trial, and how many were of no use."""
        bad = [f"{self._counts[s]} {s}" for s in ("stopped", "failed", "abandoned", "not feasible") if self._counts[s]]
        best = "nothing feasible yet" if self._counts["not feasible"] else "no value yet"
        if self._best is not None:
            best = f"best {_value(self._best)} (trial {self._best.number})"
        elif self._front:
            best = f"front of {many(len(self._front), 'trial')}"
        return ", ".join([best, *bad])

    # -- drawing -------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        from rich.live import Live
        from rich.progress import BarColumn, Progress, TextColumn

        from ..study.terminal import console, is_terminal

        screen = console(self._file)
        name = TextColumn(self._name[: max(8, screen.width // 4)], style="bold", markup=False)
        columns = (
            name, BarColumn(bar_width=None), TextColumn("{task.fields[done]}", style="progress.download"),
            TextColumn("{task.fields[left]} left", style="cyan"),
        )  # fmt: skip
        self._progress: Progress = Progress(*columns, console=screen, auto_refresh=False, expand=True)
        self._live = Live(
            get_renderable=self._view, console=screen, auto_refresh=False, transient=True,
            redirect_stdout=is_terminal(sys.stdout), redirect_stderr=is_terminal(sys.stderr),
        )  # fmt: skip
        self._live.start()
        screen.show_cursor(True)  # A killed run must not leave a terminal without its cursor.

    def _draw(self, *, force: bool) -> None:
        now = time.monotonic()
        if not self._begun or (not force and now - self._drawn < OFTEN):
            return
        self._drawn = now
        if self._live is not None:
            count = self._counts.total()
            done = many(count, "trial") if self._trials is None else f"{count}/{self._trials}"
            self._progress.update(self._task, completed=self._share, done=done, left=self._left)
            self._live.refresh()
        elif self._in_notebook:
            print(f"\r{self._line:{self._written}}", end="", file=self._file, flush=True)
            self._written = len(self._line)

    @property
    def _left(self) -> str:
        """The time that is left: that of the run, or until all trials have ended if they are as fast as the last."""
        expected = self._progress.tasks[self._task].time_remaining
        known = [each for each in (expected, None if self._time is None else self._time.left) if each is not None]
        return _minutes(min(known)) if known else "--:--"

    def _view(self) -> Group:
        from rich.console import Group
        from rich.text import Text

        if not self._begun:
            return Group()
        best = Text(self._outcome, no_wrap=True, overflow="ellipsis")
        at = "" if self._best is None else where(self._best)
        parts = [best, Text(printable(f"at {at}"), no_wrap=True, overflow="ellipsis")] if at else [best]
        return Group(self._progress.get_renderable(), *parts, self._trials_view())

    def _trials_view(self) -> Table:
        """Returns the last trials: number, value, state, and the point or the reason."""
        from rich.table import Table

        from ..study.terminal import STYLES

        grid = Table.grid(padding=(0, 2, 0, 0), expand=True)
        for justify, ratio in (("right", None), ("right", None), ("left", None), ("left", 1)):
            grid.add_column(justify=justify, ratio=ratio, no_wrap=True, overflow="ellipsis")  # type: ignore[arg-type]
        told = iter(numerals([value for trial, _ in self._last for value in trial.values or ()]))
        for trial, word in self._last:
            reason = trial.reason if trial.state == "stopped" else (_problem(trial) or "").partition(": ")[2]
            if word == BEST and trial is not self._best:
                word = "better"  # It was the best when it came.
            value = ", ".join(next(told) for _ in trial.values or ())
            grid.add_row(str(trial.number), value, word, printable(reason or where(trial)), style=STYLES.get(word))
        return grid


def _minutes(seconds: float) -> str:
    """Returns a time as h:mm:ss, or mm:ss if it is less than an hour."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes:02d}:{rest:02d}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def _value(trial: Trial) -> str:
    return ", ".join(map(numeral, trial.values or ()))
