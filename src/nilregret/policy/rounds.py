"""The rounds of a run: how many there were, since when trials count, and what was asked for."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from typing import final

from .._utils.checks import Array
from .._utils.copying import Copyable
from ..slots.envelope import Window
from ..slots.no_worse import Budget
from ..storage.record import Trial


@final
class Rounds(Copyable):
    """The rounds of a run so far.

    Args:
        seed: the seed of the run.
        window: the window of trials on whose uncertainty the width depends, or None.
        budgets: the budgets of `nr.NoWorse`, as they begin.

    Attributes:
        count: trials so far.
        since: the number of the first trial that counts since the last restart.
        last: the point of the latest trial, or None.
        uniform: numbers of forced uniform rounds that count.
        extra_plays: plays beyond one for each trial that counts.
    """

    OWNED = ("uniform", "_recent", "_added")
    OWNED_EACH = ("budgets",)

    def __init__(self, seed: int, window: Window | None, budgets: Sequence[Budget] = ()) -> None:
        self.seed, self.budgets = seed, list(budgets)
        self.count = self.since = self.extra_plays = 0
        self.last: Array | None = None
        self.uniform: list[int] = []
        self._window = window
        self._recent: deque[Trial] = deque()  # trials of the window, answered or not
        self._added: list[int] = []  # numbers of trials that were added with their reward, ascending

    @property
    def number(self) -> int:
        """The round t = 1, 2, ... since the last restart. Every play counts, answered or not."""
        return self.count - self.since + 1 + self.extra_plays

    def record(self, trial: Trial) -> None:
        """Records a trial that was asked for."""
        self.last = trial.point
        self.extra_plays += trial.repeats - 1
        if trial.explored:
            self.uniform.append(trial.number)
        for budget in self.budgets:
            budget.ask(trial)
        if self._window is not None:
            self._recent.append(trial)
            while self._recent and self._is_past(self._window, trial):
                self._recent.popleft()

    def play(self, point: Array, *, explored: bool) -> None:
        """Records a play that is no trial, in a run without a window."""
        self.last = point
        if explored:
            self.uniform.append(self.count)
        self.count += 1

    def observe(self, trial: Trial, order: int) -> None:
        """Records a trial whose reward was told by the event of this order."""
        was_added = trial.asked_order == order
        if trial.repeats > 1:
            self.extra_plays += trial.times - (1 if was_added else trial.repeats)
        for budget in self.budgets:
            budget.tell(trial, added=was_added)
        if was_added:
            self._added.append(trial.number)

    def asked_since(self, trial: Trial) -> int:
        """Returns the number of questions after that of a trial. Trials that were added are no questions."""
        return self.count - trial.number - 1 - len(self._added) + bisect_right(self._added, trial.number)

    def _is_past(self, window: Window, latest: Trial) -> bool:
        if window.in_time:
            return self._recent[0].asked_at < latest.asked_at - window.length
        return len(self._recent) > window.length

    def recent(self, now: float) -> list[Trial]:
        """Returns the trials of the window that ends at `now`, in Unix seconds."""
        if self._window is not None and self._window.in_time:
            return [trial for trial in self._recent if trial.asked_at >= now - self._window.length]
        return list(self._recent)

    def restart(self, first: int) -> None:
        """Forgets trials before number `first`."""
        self.since = first
        self.forget_before(first)
        self._recent = deque(trial for trial in self._recent if trial.number >= first)

    def forget_before(self, first: int) -> None:
        """Forgets forced uniform rounds before number `first`."""
        self.uniform = [number for number in self.uniform if number >= first]
