"""A time limit for an evaluation, which runs in a process of its own, since only a process can be ended from outside.

Python cannot stop a thread that hangs in C code.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from typing import Any, final
from uuid import uuid4

from ..errors import InvalidInput, exception_text
from .outcome import Outcome

LONGEST = 1e8  # Seconds.
# Seconds after which an idle process ends by itself, since its owner may have been killed. The time is shorter in a
# worker of a user's executor, because the shutdown of that executor waits for the process.
IDLE, IDLE_IN_WORKER = 60.0, 2.0

Task = Callable[[Any], Outcome]

_task: list[Task] = []  # The task of this process, if it evaluates.


def _receive(task: Task) -> None:
    _task[:] = [task]


def _ready() -> None:
    """Returns nothing. A call that succeeds shows that the process has started and holds the task."""


def _evaluate(at: Any) -> Outcome:
    return _task[0](at)._replace(error=None)  # Some exceptions cannot be sent to another process.


@final
class TimeLimited:
    """A task with a time limit, which ends the task and every process that it has started.

    Each calling thread has one process, which stays for the next call with all that its modules loaded or cached. The
    time limit ends the process. A `TimeLimited` may be sent to other processes, which then have a process each.

    Args:
        task: a function from parameters or a point to an outcome.
        seconds: time limit of one call, not counting the start of the process.
    """

    def __init__(self, task: Task, seconds: float, *, token: str = "") -> None:
        self._task, self._seconds, self._token = task, seconds, token or uuid4().hex
        self._idle = IDLE_IN_WORKER if token else IDLE
        self._own = threading.local()
        self._pools: list[Any] = []

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self._token, self._task, self._seconds)

    def __call__(self, at: Any) -> Outcome:
        """Returns the outcome. It has a reason if there was no answer in time, or if the process died."""
        pool = self._ready_pool()
        try:
            outcome: Outcome = pool.submit(_evaluate, at).result(timeout=self._seconds)
        except TimeoutError:
            self._end(pool)
            return Outcome(reason=f"no answer within {self._seconds:g} s")
        except BrokenExecutor as error:
            self._end(pool)
            return Outcome(reason=f"its process ended without an answer{_status(error)}: out of memory, or a crash?")
        except BaseException:  # After an interrupt no caller waits for the answer.
            self._end(pool)
            raise
        return outcome

    def start(self) -> None:
        """Starts this thread's process now, with an error if the objective cannot be sent to a process."""
        self._ready_pool()

    def close(self) -> None:
        """Ends the processes, and with them the calls of other threads."""
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
        except Exception as error:  # Users' objects may raise anything when they are sent.
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
    """Allows child processes in a daemonic process, such as a worker of a Dask cluster.

    The children end by themselves after some idle seconds, and when this process ends.
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


_received: dict[str, TimeLimited] = {}  # Tasks sent to this process. Later calls reuse their processes.


def _unpickled(token: str, task: Task, seconds: float) -> TimeLimited:
    return _received.setdefault(token, TimeLimited(task, seconds, token=token))


def _status(error: BrokenExecutor) -> str:
    """Returns the exit status of a process that ended by itself, in brackets."""
    codes = re.findall(r"\{(.*?)\}", str(error))
    return f" ({codes[-1]})" if codes else ""
