"""Limits on connections that uvicorn does not have.

uvicorn waits for the headers of a request for ever. When it closes a connection, it waits for ever until the client has
taken what is still to be sent. If there are too many connections, uvicorn refuses new ones, so silent connections would
keep the others out. Here a slow connection is aborted, and so is the one that has been silent for longest.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, cast, final

from uvicorn.config import Config
from uvicorn.server import ServerState

from ..wire.limits import Limits
from .exchange import Serving
from .protocol import Connection

CHECKS = 5  # looks for slow connections within the time limit


@final
class LimitedConnections:
    """Makes the connections of one server, for `http` of `uvicorn.Config`, and aborts those that are too slow.

    Args:
        limits: of the service. A connection has `header_seconds` until the headers of a request have come, and until
            it has taken the rest after its end.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._task: asyncio.Task[None] | None = None
        self._serving: Serving | None = None

    def __call__(
        self, config: Config, server_state: ServerState, app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> Connection:  # fmt: skip
        """Returns a new connection, with the arguments that uvicorn gives."""
        loop = asyncio.get_running_loop()
        if self._serving is None:
            app = cast(Any, config.loaded_app)
            self._serving = Serving(app, server_state, app_state, self._limits, config.access_log)
        connections = cast(set[Connection], server_state.connections)
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._abort_slow(connections))
        loop.call_soon(loop.call_soon, self.make_room, connections)  # the new connection is in the set by then
        return Connection(self._serving)

    def make_room(self, connections: set[Connection]) -> None:
        """Aborts the connections that have been silent for longest, as many as there are too many."""
        if len(connections) <= self._limits.connections:
            return
        there = [each for each in connections if not each.transport.is_closing()]
        silent = sorted((each for each in there if each.silent), key=lambda each: each.silent_since)
        for each in silent[: max(0, len(there) - self._limits.connections)]:
            each.transport.abort()
            connections.discard(each)  # uvicorn discards it a moment later; until then it would count

    async def _abort_slow(self, connections: set[Connection]) -> None:
        while True:
            await asyncio.sleep(self._limits.header_seconds / CHECKS)
            if not connections:
                return
            late = time.monotonic() - self._limits.header_seconds
            for each in [each for each in connections if each.silent and each.silent_since < late]:
                each.transport.abort()
