"""uvicorn's HTTP/1.1 on one connection, with the limits that uvicorn lacks.

llhttp parses requests strictly, and an error ends the connection. The limits mend what uvicorn alone does:

- It waits for ever for the headers of a request.
- It waits for ever until a client has taken the rest of a closed connection.
- It reads headers of any length and any number of pipelined requests.
- It drops the answers to a client that ends its side.
- It drops what stands behind an `Upgrade`, which some clients send with each first request.

`tests/test_http_sockets.py` and `tests/test_protocol.py` attack each limit.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, cast, final

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from ..wire.settings import LEAVING, Limits

VERSIONS = ("1.1", "1.0")
BUSY = 2  # times the most connections, since those that are busy or closing are not cut off
MOST_PIPELINED = 32  # requests of a connection that wait for the answer to an earlier one
CHECKS = 5  # looks at a connection within its time limit


def configured(app: Any, limits: Limits, **more: Any) -> Config:
    """Returns the configuration of a server of HTTP with these limits.

    Args:
        app: ASGI application, or a function that makes it (with `factory=True`).
        limits: of the service.
        **more: further arguments of `uvicorn.Config`.
    """
    http: Any = partial(LimitedProtocol, limits=limits)  # uvicorn calls it as it would call a class
    return Config(app, http=http, ws="none", limit_concurrency=BUSY * limits.connections + 1, **more)


@final
class LimitedProtocol(HttpToolsProtocol):
    """A connection with limits. Its arguments but the last are those of uvicorn.

    Args:
        config: of the server.
        server_state: with the other connections.
        app_state: of the application, with a function to call when the server begins to stop.
        _loop: event loop.
        limits: of the service. A connection has `header_seconds` until the headers of a request have come, and until
            it has taken the rest after its end.

    Attributes:
        silent_since: seconds of the loop's clock: when the connection was made, or its last answer was complete.
    """

    def __init__(
        self, config: Config, server_state: ServerState, app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None, *, limits: Limits,
    ) -> None:  # fmt: skip
        super().__init__(config, server_state, app_state, _loop)
        self.silent_since = self.loop.time()
        self._limits = limits
        self._answering: RequestResponseCycle | None = None  # the last one whose answer was begun
        self._unfinished = 0  # bytes since the parser last came to the end of something
        self._head, self._in_head = b"", False  # bytes with the request line, and whether headers are being read
        self._ended = False  # whether nothing is read any more

    @property
    def silent(self) -> bool:
        """True if no request is being answered."""
        return self.cycle is None or self.cycle.response_complete or self.transport.is_closing()

    # -- of the event loop -------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn
        """Begins to serve the connection."""
        super().connection_made(transport)
        self.timeout_keep_alive_handler()
        if len(self.connections) > self._limits.connections:
            self.loop.call_soon(self._make_room)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tells the application that the client is gone."""
        self._unset_keepalive_if_required()
        _disconnect(self._answering)
        super().connection_lost(exc)

    def timeout_keep_alive_handler(self) -> None:
        """Aborts the connection if it has been silent for too long, and otherwise looks again later."""
        seconds = self._limits.header_seconds
        if self.silent and self.loop.time() - self.silent_since >= seconds:
            self.transport.abort()
        else:
            self.timeout_keep_alive_task = self.loop.call_later(seconds / CHECKS, self.timeout_keep_alive_handler)

    def _make_room(self) -> None:
        """Aborts the connections that have been silent for longest, as many as there are too many."""
        there = [each for each in cast(set[LimitedProtocol], self.connections) if not each.transport.is_closing()]
        silent = sorted((each for each in there if each.silent), key=lambda each: each.silent_since)
        for each in silent[: max(0, len(there) - self._limits.connections)]:
            each.transport.abort()
            self.connections.discard(each)  # uvicorn discards it a moment later; until then it would count

    def data_received(self, data: bytes) -> None:
        """Parses what has come."""
        if self._ended or self.transport.is_closing():
            return
        self._unfinished += len(data)
        self._head = self._head + data if self._in_head else data
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._parse_without_upgrade(data[upgrade.args[0] :])
        except httptools.HttpParserError:
            self._refuse(400)
        else:
            if self._unfinished > self._limits.header_bytes:
                self._refuse(431)

    def eof_received(self) -> bool:  # type: ignore[override]  # uvicorn closes the connection
        """Returns True if a client that sends nothing more waits for answers, which it gets.

        A stream of events never ends, so its client is taken to be gone.
        """
        if self.silent or self._answering is None or _listens(self._answering):
            return False
        if not self._ended:
            self._refuse(400)  # the request whose body is not complete, if there is one
        return True

    def shutdown(self) -> None:
        """Ends the connection after its request, because the server stops. Streams must end before."""
        super().shutdown()
        leaving = self.app_state.get(LEAVING)
        if leaving is not None:
            leaving()

    # -- of the parser -----------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Begins a request."""
        self._in_head = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Takes a header, or refuses what stands behind a body in chunks."""
        if not self._in_head:
            raise ValueError("Trailers are not supported.")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begins to answer the request, or lets it wait for the answers to earlier requests."""
        self._unfinished, self._in_head = 0, False
        if self.parser.should_upgrade():
            return
        version = self.parser.get_http_version()
        line = b"%s %s HTTP/%s\r\n" % (self.parser.get_method(), self.url, version.encode())
        plain = line in self._head and self.url[:1] == b"/" and b"#" not in self.url  # llhttp takes other forms, too
        if not plain or version not in VERSIONS or len(self.pipeline) >= MOST_PIPELINED:
            raise ValueError("This is no request that can be answered.")
        super().on_headers_complete()
        if not self.pipeline:
            self._answering = self.cycle

    def on_body(self, body: bytes) -> None:
        """Takes a part of a body."""
        self._unfinished = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Ends the body of a request."""
        self._unfinished = 0
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def _parse_without_upgrade(self, rest: bytes) -> None:
        """Parses a request anew that wants another protocol, which the service does not speak, and gets this one."""
        method, version = self.parser.get_method(), self.parser.get_http_version().encode()
        self.parser = httptools.HttpRequestParser(self)
        if method == b"CONNECT":
            self._refuse(400)
            return
        lines = [b"%s %s HTTP/%s" % (method, self.url, version)]
        lines += [b"%s: %s" % each for each in self.headers if each[0] != b"upgrade"]
        self.data_received(b"\r\n".join([*lines, b"", rest]))

    # -- of requests -------------------------------------------------------------------------------------------------

    def on_response_complete(self) -> None:
        """Goes on to the next request, or closes the connection if the body of the last one has not come."""
        self.server_state.total_requests += 1
        self.silent_since = self.loop.time()
        if self.transport.is_closing():
            return
        if self.pipeline:
            self._answering, app = self.pipeline.pop()
            self._start_asgi_task(self._answering, app)
        elif self.cycle.more_body:  # the rest could be long
            self.transport.close()
        else:
            self.flow.resume_reading()

    def _refuse(self, status: int) -> None:
        """Ends the connection, after the answers to earlier requests."""
        self._ended = True
        coming = self.cycle if self.cycle is not None and self.cycle.more_body else None  # whose body has not come
        if coming is not None and coming is not self._answering:
            self.pipeline.popleft()
        last = self.pipeline[0][0] if self.pipeline else self._answering
        if last is not None and last is not coming and not last.response_complete:
            last.keep_alive = False
            return
        if coming is None or not coming.response_started:
            self.transport.write(STATUS_LINE[status] + b"connection: close\r\ncontent-length: 0\r\n\r\n")
        _disconnect(coming)
        self.transport.close()


def _disconnect(cycle: RequestResponseCycle | None) -> None:
    """Tells the application of a request that its client is gone."""
    if cycle is not None:
        cycle.disconnected = True
        cycle.message_event.set()


def _listens(cycle: RequestResponseCycle) -> bool:
    """Returns whether a request asks for a stream of events."""
    return any(name == b"accept" and b"text/event-stream" in value for name, value in cycle.scope["headers"])
