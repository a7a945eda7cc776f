"""Independent computations on somebody's executor, in batches: one call each would cost more than many of them take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from typing import Any, TypeVar
from uuid import uuid4

from .checks import shown
from .errors import InvalidInput

S = TypeVar("S")
T = TypeVar("T")

BATCHES = 100  # at most: enough for a few hundred workers to end at about the same time


def check_executor(executor: object) -> None:
    """Refuse what is none; None is no executor."""
    if executor is None or isinstance(executor, Executor):
        return
    hint = " Of a client of Dask it is `client.get_executor()`." if hasattr(executor, "get_executor") else ""
    raise InvalidInput(f"`executor` must be a concurrent.futures.Executor, not {shown(executor)}.{hint}")


def results_of(executor: Executor, one: Callable[[S], T], items: Sequence[S]) -> Iterator[T]:
    """`one` of each item, in their order; an error or an interrupt cancels what has not begun."""
    length = -(-len(items) // BATCHES)
    token = uuid4().hex  # by which a cluster of Dask tells the calls of this time from those of another
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
