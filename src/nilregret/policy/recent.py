"""The trials asked for most recently, on which a width may depend."""

from __future__ import annotations

from collections import deque
from typing import final

from ..slots.envelope import Window
from ..storage.record import Trial


@final
class Recent:
    """Those of a window, answered or not."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._asked: deque[Trial] = deque()

    def ask(self, trial: Trial) -> None:
        """One more; those that are in no window from now on are left behind."""
        self._asked.append(trial)
        while self._asked and self._is_past(trial):
            self._asked.popleft()

    def _is_past(self, latest: Trial) -> bool:
        if self._window.in_time:
            return self._asked[0].asked_at < latest.asked_at - self._window.length
        return len(self._asked) > self._window.length

    def restart(self, first: int) -> None:
        """Trials before this one count no more."""
        self._asked = deque(trial for trial in self._asked if trial.number >= first)

    def trials(self, now: float) -> list[Trial]:
        """Those of the window that ends now, Unix seconds."""
        if self._window.in_time:
            return [trial for trial in self._asked if trial.asked_at >= now - self._window.length]
        return list(self._asked)

    def copy(self) -> Recent:
        """An independent one in the same state."""
        other = Recent(self._window)
        other._asked = self._asked.copy()
        return other
