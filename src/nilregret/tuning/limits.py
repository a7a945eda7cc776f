"""A time limit for an evaluation: it runs in a process of its own, the only thing that can be ended from outside.

A thread cannot: Python has no way to stop one that does not listen, and an objective that hangs in C code never does.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from typing import Any, final
from uuid import uuid4

from .._utils.errors import InvalidInput, exception_text
from .answers import Outcome

LONGEST = 1e8  # seconds
# Seconds after which a process that nobody asks ends by itself: should its owner have been killed; and in the worker of
# somebody else's pool, which waits for it when the pool is shut down.
IDLE, IDLE_ABROAD = 60.0, 2.0

Task = Callable[[Any], Outcome]

_task: list[Task] = []  # of this process, where it is one that evaluates


def _receive(task: Task) -> None:
    _task[:] = [task]


def _ready() -> None:
    """Nothing: whoever has its answer knows that the process has started and holds the task."""


def _evaluate(at: Any) -> Outcome:
    return _task[0](at)._replace(error=None)  # not every exception can be sent


@final
class Limited:
    """A task that is ended when it takes too long, and with it every process that it has started.

    Each thread that calls it has one process, which stays for the next call: what a module has loaded or cached is
    there still, until a time limit ends it. It may itself be sent to processes, which then have a process each.

    Args:
        task: from where to evaluate to what came of it.
        seconds: that one call may take, not counting the start of the process.
    """

    def __init__(self, task: Task, seconds: float, *, token: str = "") -> None:
        self._task, self._seconds, self._token = task, seconds, token or uuid4().hex
        self._idle = IDLE_ABROAD if token else IDLE
        self._own = threading.local()
        self._pools: list[Any] = []

    def __reduce__(self) -> tuple[Any, ...]:
        return _here, (self._token, self._task, self._seconds)

    def __call__(self, at: Any) -> Outcome:
        """What came of it; a reason where there was no answer in time, or the process died."""
        pool = self._ready_pool()
        try:
            outcome: Outcome = pool.submit(_evaluate, at).result(timeout=self._seconds)
        except TimeoutError:
            self._end(pool)
            return Outcome(reason=f"no answer within {self._seconds:g} s")
        except BrokenExecutor as error:
            self._end(pool)
            return Outcome(reason=f"its process ended without an answer{_status(error)}: out of memory, or a crash?")
        except BaseException:  # an interrupt: nobody waits for the answer any more
            self._end(pool)
            raise
        return outcome

    def start(self) -> None:
        """Start this thread's process now: an objective that cannot be sent to one is an error."""
        self._ready_pool()

    def close(self) -> None:
        """End the processes, and with them the calls that other threads are waiting for."""
        for pool in self._pools[:]:
            self._end(pool)

    def _ready_pool(self) -> Any:
        import loky

        pool = getattr(self._own, "pool", None)
        if pool is None or pool not in self._pools:
            pool = loky.ProcessPoolExecutor(
                max_workers=1, timeout=self._idle, initializer=_receive, initargs=(self._task,)
            )
            self._pools.append(pool)
            self._own.pool = pool
        try:
            with _may_have_children():
                pool.submit(_ready).result()
        except Exception as error:  # whatever an object of the user's raises when it is to be sent
            self._end(pool)
            raise InvalidInput(
                f"The process that a time limit needs could not start with this objective ({exception_text(error)}). "
                "Usually it, or something that it uses, cannot be sent to another process: define it in a module, "
                "make what it uses (files, connections, models) inside it, or leave `timeout` out."
            ) from error
        return pool

    def _end(self, pool: Any) -> None:
        if pool in self._pools:
            self._pools.remove(pool)
        pool.shutdown(wait=True, kill_workers=True)


@contextmanager
def _may_have_children() -> Iterator[None]:
    """Start processes in one that must have none, as the workers of clusters of Dask are started.

    What it must not leave behind ends by itself: when nobody asks it for some seconds, and when this process ends.
    """
    from multiprocessing import current_process

    ours: dict[str, Any] = getattr(current_process(), "_config", {})
    forbidden = ours.get("daemon", False)
    if forbidden:
        ours["daemon"] = False
    try:
        yield
    finally:
        if forbidden:
            ours["daemon"] = True


_sent: dict[str, Limited] = {}  # to this process: one that comes with every call keeps its processes


def _here(token: str, task: Task, seconds: float) -> Limited:
    return _sent.setdefault(token, Limited(task, seconds, token=token))


def _status(error: BrokenExecutor) -> str:
    """Of a process that ended by itself."""
    codes = re.findall(r"\{(.*?)\}", str(error))
    return f" ({codes[-1]})" if codes else ""
