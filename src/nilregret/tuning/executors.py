"""Checks of a user's executor: the number of workers, and whether the objective can be sent to them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

from .._utils.checks import integer
from .._utils.errors import InvalidInput, exception_text
from .time_limit import Task

MOST_IN_FLIGHT = 10_000
# Packages that send by cloudpickle, which can send lambdas and other objects that the standard pickle cannot.
SENT_BY_VALUE = ("distributed", "loky")


def in_flight_count(executor: Executor | None, in_flight: int | None) -> int:
    """Returns the number of evaluations at a time: `in_flight`, or the number of workers."""
    if executor is None:
        if in_flight not in (None, 1):
            raise InvalidInput("`in_flight` is for an `executor`; without one there is one evaluation at a time.")
        return 1
    workers = _workers(executor) if in_flight is None else in_flight
    if workers is None:
        raise InvalidInput(
            f"`executor` does not say how many workers it has ({type(executor).__name__}), or has none yet: give "
            "`in_flight=`, how many evaluations shall be under way at once."
        )
    return integer("in_flight", workers, low=1, high=MOST_IN_FLIGHT)


def check_sendable(task: Task, executor: Executor | None) -> None:
    """Raises an error if the task cannot be sent to processes. Otherwise each trial would fail and stay on record."""
    dumps = None if executor is None else _dumps(executor)
    if dumps is None:
        return
    try:
        dumps(task)
    except Exception as error:  # Users' objects may raise anything when they are sent.
        raise InvalidInput(
            f"The objective cannot be sent to the processes of `executor` ({exception_text(error)}). Usually it is a "
            "lambda, is defined inside a function, or uses an open file, connection or lock: define it at the top of a "
            "module and make what it uses inside it, or take a ThreadPoolExecutor, or loky's processes."
        ) from error


def _workers(executor: Executor) -> int | None:
    """Returns the number of workers (of threads, for a Dask cluster), or None if unknown."""
    count = getattr(executor, "_max_workers", None)
    threads = getattr(getattr(executor, "_client", None), "nthreads", None)
    if count is None and callable(threads):
        count = sum(threads().values()) or None
    return count


def _dumps(executor: Executor) -> Callable[[Any], bytes] | None:
    """Returns the function that serialises tasks for the executor, or None if nothing is sent, or if unknown."""
    packages = {each.__module__.partition(".")[0] for each in type(executor).__mro__}
    if not packages.isdisjoint(SENT_BY_VALUE):
        import cloudpickle

        return cloudpickle.dumps  # type: ignore[no-any-return]
    from concurrent.futures import ProcessPoolExecutor  # This loads multiprocessing.

    return pickle.dumps if isinstance(executor, ProcessPoolExecutor) else None
