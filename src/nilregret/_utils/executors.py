"""Independent computations on an executor, in batches, and forks of a process in which other threads work.

A call for each computation would cost more than the computation. Before a fork, calls end, and the child has locks of
its own.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from typing import Any, Protocol, TypeVar

from ..errors import InvalidInput
from .checks import shown

S = TypeVar("S")
T = TypeVar("T")

BATCHES = 100  # largest number of batches, enough for a few hundred workers to end at about the same time

HOPELESS = 10  # The run ends after this many failures before any value, or cancellations in a row.


def check_executor(executor: object) -> None:
    """Raises an error if the value is neither an executor nor None."""
    if executor is None or isinstance(executor, Executor):
        return
    hint = " Of a client of Dask it is `client.get_executor()`." if hasattr(executor, "get_executor") else ""
    raise InvalidInput(f"`executor` must be a concurrent.futures.Executor, not {shown(executor)}.{hint}")


def results_of(executor: Executor, one: Callable[[S], T], items: Sequence[S]) -> Iterator[T]:
    """Yields `one` of each item, in order. An error or an interrupt cancels batches that have not begun."""
    from uuid import uuid4

    length = -(-len(items) // BATCHES)
    token = uuid4().hex  # makes a Dask cluster compute the calls again
    batches = [items[start : start + length] for start in range(0, len(items), length)]
    futures = [executor.submit(_each, one, batch, token) for batch in batches]
    try:
        for future in futures:
            yield from future.result()
    finally:
        for future in futures:
            future.cancel()


def _each(one: Callable[[Any], Any], batch: Sequence[Any], token: str) -> list[Any]:  # noqa: ARG001
    return [one(item) for item in batch]


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
