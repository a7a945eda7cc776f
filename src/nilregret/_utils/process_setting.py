"""Contexts that change a setting of the whole process."""

from __future__ import annotations

import gc
import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, final

from .executors import survives_forks

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


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


# A context with one BLAS thread, where results must not depend on the number of processors.
#
# Sums that several threads share are rounded differently, which changes decisions on boxes and fits. So the same
# record would continue differently on another machine.

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
        self._release()
        for library, _ in self._before:
            library.set_num_threads(1)

    def _restore(self) -> None:
        self._release()
        for library, threads in self._before:
            library.set_num_threads(threads)
        self._release()

    def _release(self) -> None:
        """Lets the thread of Python that comes next set the threads of OpenBLAS.

        From threadpoolctl 3.8 on the first one that sets them may do so alone, and others are ignored in silence.
        """
        library = next((each for each, _ in self._before if hasattr(each, "clear_controlling_thread")), None)
        if library is not None:
            library.clear_controlling_thread(force=True)  # of all libraries


one_thread = OneThread()


def with_one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Returns the function, always run with one BLAS thread."""

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with one_thread:
            return function(*args, **kwargs)

    return limited


# A pause of garbage collection while a long record is read.
#
# All objects that are made then stay. A record of 50,000 trials is some 300,000 objects, and repeated collections
# would take a third of the time.


@final
class NoCollection(ProcessSetting):
    """A context without garbage collection. Objects outside of reference cycles are still freed at once."""

    _was = False

    def _change(self) -> None:
        self._was = gc.isenabled()
        gc.disable()

    def _restore(self) -> None:
        if self._was:
            gc.enable()


no_collection = NoCollection()


@contextmanager
def handled(handler: Callable[..., object], *numbers: signal.Signals) -> Iterator[None]:
    """Handles signals within a block, or within the calls of a decorated function, and gives them back at its end.

    Args:
        handler: of the signals.
        numbers: of the signals. SIGTERM if none are given.
    """
    before = {each: signal.signal(each, handler) for each in numbers or (signal.SIGTERM,)}
    try:
        yield
    finally:
        for each, earlier in before.items():
            signal.signal(each, signal.SIG_DFL if earlier is None else earlier)  # None: not a handler of Python


def interrupt(*_: object) -> None:
    """Ends what runs as Ctrl-C does, so that nothing is lost (a handler of signals).

    Raises:
        KeyboardInterrupt: always.
    """
    raise KeyboardInterrupt
