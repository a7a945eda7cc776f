"""Contexts that change a setting of the whole process."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod

from .forks import survives_forks


class ProcessSetting(ABC):
    """A context that changes a setting of the process, which several threads may enter at once.

    The first thread that enters changes the setting, and the last one that leaves restores it. If each thread restored
    the value that it found, overlapping threads would leave the changed value behind.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        survives_forks(self)

    @property
    def fork_lock(self) -> threading.Lock:
        """See `Forkable`."""
        return self._lock

    def after_fork(self) -> None:
        """Restores the value in a forked process, in which no thread is inside."""
        self._lock = threading.Lock()
        if self._inside:
            self._inside = 0
            self._restore()

    @abstractmethod
    def _change(self) -> None:
        """Sets the new value and keeps the old value."""

    @abstractmethod
    def _restore(self) -> None:
        """Restores the old value."""

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._change()
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._restore()
