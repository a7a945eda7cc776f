"""Limits on connections that uvicorn does not have, and answers in one write.

uvicorn waits for the headers of a request for ever. When it closes a connection, it waits for ever until the client has
taken what is still to be sent. If there are too many connections, uvicorn refuses new ones, so silent connections would
keep the others out. Here a slow connection is aborted, and so is the one that has been silent for longest.

uvicorn also writes the head and the body of an answer one by one. Each write is a system call that wakes up the client.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, cast, final

from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from .settings import LEAVING

HEAD = b"HTTP/1.1 "  # how an answer begins
CHECKS = 5  # looks for slow connections within the time limit


@final
class JoiningTransport:
    """A transport that sends the head of an answer with the next write, if that follows at once.

    Args:
        transport: of the event loop.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._head = b""
        self.is_closing = transport.is_closing
        self.get_extra_info = transport.get_extra_info
        self.pause_reading = transport.pause_reading
        self.resume_reading = transport.resume_reading
        self.abort = transport.abort

    def write(self, data: bytes) -> None:
        """Writes the data. The head of an answer waits for the body until the event loop's next iteration."""
        if self._head:
            data, self._head = self._head + data, b""
        elif data.startswith(HEAD):
            self._head = data
            self._loop.call_soon(self._flush)
            return
        self._transport.write(data)

    def close(self) -> None:
        """Closes the transport after everything has been sent."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._head:
            self.write(b"")


@final
class Connection(H11Protocol):
    """A connection of uvicorn that knows since when it has been silent.

    Attributes:
        silent_since: seconds of the monotonic clock: when the connection was made, or its last answer was complete.
    """

    silent_since = 0.0

    @property
    def silent(self) -> bool:
        """True if no request is being answered."""
        return self.cycle is None or self.cycle.response_complete or self.transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begins to serve the connection (see `asyncio.Protocol`)."""
        self.silent_since = time.monotonic()
        super().connection_made(cast(asyncio.Transport, JoiningTransport(cast(asyncio.Transport, transport))))

    def on_response_complete(self) -> None:
        """Goes on to the next request of the connection."""
        self.silent_since = time.monotonic()
        super().on_response_complete()

    def shutdown(self) -> None:
        """Tells the application that the server stops: streams must end before uvicorn calls `lifespan`."""
        super().shutdown()
        leaving = self.app_state.get(LEAVING)
        if leaving is not None:
            leaving()


@final
class LimitedConnections:
    """Makes the connections of one server, for `http` of `uvicorn.Config`, and aborts those that are too slow.

    Args:
        seconds: until the headers of a request must have come, and until a closed connection must have taken the rest.
        most: connections at once.
    """

    def __init__(self, seconds: float, most: int) -> None:
        self._seconds, self._most = seconds, most
        self._task: asyncio.Task[None] | None = None

    def __call__(
        self, config: Config, server_state: ServerState, app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> Connection:  # fmt: skip
        """Returns a new connection, with the arguments that uvicorn gives."""
        made, loop = Connection(config, server_state, app_state, _loop), asyncio.get_running_loop()
        connections = cast(set[Connection], server_state.connections)
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._abort_slow(connections))
        loop.call_soon(loop.call_soon, self.make_room, connections)  # the new connection is in the set by then
        return made

    def make_room(self, connections: set[Connection]) -> None:
        """Aborts the connections that have been silent for longest, as many as there are too many."""
        if len(connections) <= self._most:
            return
        there = [each for each in connections if not each.transport.is_closing()]
        silent = sorted((each for each in there if each.silent), key=lambda each: each.silent_since)
        for each in silent[: max(0, len(there) - self._most)]:
            each.transport.abort()
            connections.discard(each)  # uvicorn discards it a moment later; until then it would count

    async def _abort_slow(self, connections: set[Connection]) -> None:
        while True:
            await asyncio.sleep(self._seconds / CHECKS)
            if not connections:
                return
            late = time.monotonic() - self._seconds
            for each in [each for each in connections if each.silent and each.silent_since < late]:
                each.transport.abort()
