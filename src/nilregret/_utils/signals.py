"""Handlers of signals for the time of a block."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


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
