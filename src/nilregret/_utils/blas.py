"""A context with one BLAS thread, where results must not depend on the number of processors.

Sums that several threads share are rounded differently, which changes decisions on boxes and fits. So the same record
would continue differently on another machine.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from .process_setting import ProcessSetting

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")


@cache
def _controller() -> ThreadpoolController:
    """Returns the controller of the loaded BLAS libraries, whose search takes a millisecond."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


class OneThread(ProcessSetting):
    """A context in which BLAS has one thread. Entering costs some microseconds."""

    _before: list[tuple[Any, int]]  # libraries with several threads, and how many

    def __reduce__(self) -> str:
        return "one_thread"  # Each process has one, so pickles refer to the one of the process that reads them.

    def _change(self) -> None:
        libraries = [library for library in _controller().lib_controllers if library.user_api == "blas"]
        self._before = [(library, threads) for library in libraries if (threads := library.get_num_threads()) != 1]
        for library, _ in self._before:
            library.set_num_threads(1)

    def _restore(self) -> None:
        for library, threads in self._before:
            library.set_num_threads(threads)


one_thread = OneThread()


def with_one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Returns the function, always run with one BLAS thread."""

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with one_thread:
            return function(*args, **kwargs)

    return limited
