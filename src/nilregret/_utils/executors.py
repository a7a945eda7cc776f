"""Independent computations on an executor, in batches, since one call each would cost more than the computation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from typing import Any, TypeVar
from uuid import uuid4

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
