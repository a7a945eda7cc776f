"""What is to be known of somebody's executor: how many workers it has, and whether they can be sent an objective."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

from .._utils.checks import integer
from .._utils.errors import InvalidInput, exception_text
from .limits import Task

MOST_IN_FLIGHT = 10_000
# Packages whose workers get what the standard pickle cannot send, lambdas for one, by cloudpickle.
SENT_BY_VALUE = ("distributed", "loky")


def at_once(executor: Executor | None, in_flight: int | None) -> int:
    """How many evaluations are under way at a time: as many as said, or as there are workers."""
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
    """Refuse what processes cannot be sent: each trial would fail for that, and stay on record."""
    dumps = None if executor is None else _dumps(executor)
    if dumps is None:
        return
    try:
        dumps(task)
    except Exception as error:  # whatever an object of the user's raises when it is to be sent
        raise InvalidInput(
            f"The objective cannot be sent to the processes of `executor` ({exception_text(error)}). Usually it is a "
            "lambda, is defined inside a function, or uses an open file, connection or lock: define it at the top of a "
            "module and make what it uses inside it, or take a ThreadPoolExecutor, or loky's processes."
        ) from error


def _workers(executor: Executor) -> int | None:
    """Evaluations that it can run at once, if it says so: the threads of all workers where it is a cluster of Dask."""
    count = getattr(executor, "_max_workers", None)
    threads = getattr(getattr(executor, "_client", None), "nthreads", None)
    if count is None and callable(threads):
        count = sum(threads().values()) or None
    return count


def _dumps(executor: Executor) -> Callable[[Any], bytes] | None:
    """As what it evaluates is sent; None where nothing is, or nobody knows."""
    packages = {each.__module__.partition(".")[0] for each in type(executor).__mro__}
    if not packages.isdisjoint(SENT_BY_VALUE):
        import cloudpickle

        return cloudpickle.dumps  # type: ignore[no-any-return]
    from concurrent.futures import ProcessPoolExecutor  # loads multiprocessing, which who has no executor does not need

    return pickle.dumps if isinstance(executor, ProcessPoolExecutor) else None
