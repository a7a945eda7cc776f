"""Forks of a process in which other threads work: calls end before the fork, and the child has locks of its own."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

SECONDS = 5.0  # A fork waits this long for the calls of other threads.


class Forkable(Protocol):
    """An object with a lock. In a forked process the threads that might release the lock do not exist."""

    @property
    def fork_lock(self) -> Any:
        """The lock, which a thread holds across its fork."""

    def after_fork(self) -> None:
        """Makes a new lock in the forked process. If the thread does not hold the old one, a call may be half done."""


F = TypeVar("F", bound=Forkable)

# By the order in which calls take their locks, so that a fork waits for calls and no call waits for a fork.
WRITER, RECORD, POOL, READER = range(4)
_KNOWN: tuple[weakref.WeakKeyDictionary[Any, Callable[[Any], None] | None], ...] = tuple(
    weakref.WeakKeyDictionary() for _ in range(4)
)
_thread = threading.local()


def survives_forks(forkable: F, rank: int = RECORD, *, before: Callable[[F], None] | None = None) -> None:
    """Makes an object usable in forked processes.

    Args:
        forkable: the object.
        rank: objects of lower rank are locked first.
        before: is called before each fork, under the lock.
    """
    _KNOWN[rank][forkable] = before


def _hold() -> None:
    until = time.monotonic() + SECONDS
    _thread.held = held = list[tuple[Forkable, Any]]()
    for known in _KNOWN:
        for each, before in list(known.items()):
            lock = each.fork_lock
            if lock.acquire(timeout=max(until - time.monotonic(), 0.0)):
                held.append((each, lock))
                if before is not None:
                    before(each)


def _let_go() -> None:
    for _, lock in reversed(_thread.held):
        lock.release()
    _thread.held = []


def _renew() -> None:
    _thread.held = []
    for known in _KNOWN:
        for each in list(known):
            each.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold, after_in_parent=_let_go, after_in_child=_renew)
