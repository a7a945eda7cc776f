"""One BLAS thread where results must not depend on how many processors there are.

Sums that several threads share are rounded differently, and a decision on a box, or a fit, carries that on: the same
record would go on differently elsewhere.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")


@cache
def _controller() -> ThreadpoolController:
    """Finding the loaded BLAS libraries takes a millisecond, so it is done once."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


class OneThread:
    """A context in which BLAS has one thread; some 10 us, nested next to nothing.

    The number belongs to the process. So the first to come sets it and the last to leave puts the old one back: were
    each to do so for itself, two threads of Python that overlap would leave 1 behind.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._limit: Any = None

    def __reduce__(self) -> str:
        return "one_thread"  # there is one in each process: what is sent to another one uses the one there

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._limit = _controller().limit(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._limit.restore_original_limits()


one_thread = OneThread()


def with_one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """The function, always run with one BLAS thread."""

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with one_thread:
            return function(*args, **kwargs)

    return limited
