"""Connections: those on which nothing comes must not use up the place for others, and an answer goes out in one piece.

uvicorn waits for the headers of a request for ever, and, when it closes a connection, for the other side to take what
is still to be sent. Here whoever is too slow is cut off, and where there are too many connections the one that has
been silent for longest.

It also writes the head of an answer and its body one by one, each a call into the system that wakes up who asked.
"""

from __future__ import annotations

import asyncio
import time
import weakref
from typing import Any, cast, final

from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from .settings import LEAVING

HEAD = b"HTTP/1.1 "  # how an answer begins
PARTS = 5  # of the time that is given, after each of which one looks


def watched(
    config: Config, server_state: ServerState, app_state: dict[str, Any],
    _loop: asyncio.AbstractEventLoop | None = None, *, seconds: float, most: int,
) -> asyncio.Protocol:  # fmt: skip
    """A connection as uvicorn makes them (its `http` may be any callable), with somebody who looks after it.

    Args:
        config: of the server.
        server_state: likewise; has its connections.
        app_state: likewise.
        _loop: likewise.
        seconds: in which the headers of a request must have come, and the rest of a closed connection be taken.
        most: connections at once.
    """
    watch = _WATCHES.get(server_state)
    if watch is None:
        watch = _WATCHES[server_state] = _Watch(server_state, seconds, most)
    made = _Connection(config, server_state, app_state, _loop)
    watch.begin(made)
    return _Front(made)


@final
class _Front(asyncio.Protocol):
    """What the loop sees of a connection: as it is, but for how it writes.

    Args:
        made: by uvicorn.
    """

    def __init__(self, made: H11Protocol) -> None:
        self._made = made

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`, as of the others."""
        self._made.connection_made(cast(asyncio.Transport, _Joining(cast(asyncio.Transport, transport))))

    def connection_lost(self, exc: Exception | None) -> None:
        """Likewise."""
        self._made.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Likewise."""
        self._made.data_received(data)

    def eof_received(self) -> None:
        """Likewise."""
        self._made.eof_received()

    def pause_writing(self) -> None:
        """Likewise."""
        self._made.pause_writing()

    def resume_writing(self) -> None:
        """Likewise."""
        self._made.resume_writing()


@final
class _Joining:
    """A transport that sends the head of an answer with what is written next, if that comes at once.

    Args:
        transport: of the loop.
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
        """Now, but for a head, which waits for the body no longer than till whoever writes lets others do something."""
        if self._head:
            data, self._head = self._head + data, b""
        elif data.startswith(HEAD):
            self._head = data
            self._loop.call_soon(self._go_on)
            return
        self._transport.write(data)

    def close(self) -> None:
        """Once all has been sent."""
        self._go_on()
        self._transport.close()

    def _go_on(self) -> None:
        if self._head:
            self.write(b"")


@final
class _Connection(H11Protocol):
    """One that tells the application when the server begins to stop: streams without an end are then to end."""

    def shutdown(self) -> None:
        """As uvicorn does; it waits for what is being answered, and calls `lifespan` after that."""
        super().shutdown()
        leaving = self.app_state.get(LEAVING)
        if leaving is not None:
            leaving()


class _Watch:
    """Over the connections of one server."""

    def __init__(self, state: ServerState, seconds: float, most: int) -> None:
        self._connections: set[Any] = state.connections
        self._seconds, self._most = seconds, most
        self._silent: dict[Any, tuple[Any, float]] = {}  # of connections: the last request, and since when
        self._born: weakref.WeakKeyDictionary[Any, float] = weakref.WeakKeyDictionary()
        self._task: asyncio.Task[None] | None = None

    def begin(self, made: Any) -> None:
        """Look from now on, for as long as there are any; at once when the one that comes now is there."""
        self._born[made] = time.monotonic()
        loop = asyncio.get_running_loop()
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._look())
        loop.call_soon(loop.call_soon, self._make_room)

    def _make_room(self) -> None:
        """Cut off who has been silent for longest, as many as are too many."""
        if len(self._connections) <= self._most:
            return
        self._note()
        there = [each for each in self._connections if not each.transport.is_closing()]
        silent = sorted((each for each in there if each in self._silent), key=lambda each: self._silent[each][1])
        for each in silent[: max(0, len(there) - self._most)]:
            each.transport.abort()
            self._connections.discard(each)  # as it will do itself in a moment; till then it takes up nobody's place

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(self._seconds / PARTS)
            if not self._connections:
                return
            self._note()
            late = time.monotonic() - self._seconds
            for connection in [each for each, (_, since) in self._silent.items() if since < late]:
                connection.transport.abort()

    def _note(self) -> None:
        """Who is silent, and since when: a request that is being answered makes a connection anything but that."""
        now, before = time.monotonic(), self._silent
        self._silent = {}
        for each in self._connections:
            if each.cycle is None or each.cycle.response_complete or each.transport.is_closing():
                known = before.get(each)
                since = self._born.get(each, now) if each.cycle is None else now
                self._silent[each] = known if known and known[0] is each.cycle else (each.cycle, since)


_WATCHES: weakref.WeakKeyDictionary[ServerState, _Watch] = weakref.WeakKeyDictionary()
