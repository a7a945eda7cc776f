"""A limit on how long something may take, for things that mostly take no time at all.

To send a part of an answer, or to take a body that has come with its headers, waits for nothing in all but a few
requests; a timer for each of them would cost more than what it watches over. So it is set only where one has to wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator
from typing import Any, Generic, TypeVar, final

R = TypeVar("R")


async def timely(seconds: float, what: Awaitable[R]) -> R:
    """What comes of `what`.

    Raises:
        TimeoutError: it took longer.
    """
    does = what.__await__()
    try:
        waits_for = does.send(None)
    except StopIteration as done:
        result: R = done.value
        return result
    async with asyncio.timeout(seconds):
        return await _Begun(does, waits_for)


@final
class _Begun(Generic[R]):
    """Something that has been begun, and waits for something else."""

    def __init__(self, does: Generator[Any, Any, R], waits_for: Any) -> None:
        self._does, self._waits_for = does, waits_for

    def __await__(self) -> Generator[Any, Any, R]:
        """As if it had been awaited from its beginning: what it waits for goes out, what comes goes in."""
        does, waits_for = self._does, self._waits_for
        while True:
            try:
                try:
                    came = yield waits_for
                except GeneratorExit:
                    does.close()
                    raise
                except BaseException as error:
                    waits_for = does.throw(error)
                else:
                    waits_for = does.send(came)
            except StopIteration as done:
                result: R = done.value
                return result
