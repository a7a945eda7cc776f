"""A request and its answer on a connection, as `receive` and `send` of ASGI."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, NamedTuple, Protocol, final

from starlette.types import ASGIApp, Message, Scope
from uvicorn.server import ServerState

from ..wire.limits import Limits

LOG, LINES = logging.getLogger("nilregret.serve"), logging.getLogger("uvicorn.access")
STATUS = {each.value: f"HTTP/1.1 {each.value} {each.phrase}\r\n".encode() for each in HTTPStatus}
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
NO_BODY = (204, 304)  # statuses of answers without a body
FAILED: list[Message] = [
    {"type": "http.response.start", "status": 500, "headers": [(b"content-length", b"0"), (b"connection", b"close")]},
    {"type": "http.response.body"},
]


class Serving(NamedTuple):
    """State that the connections of a server share.

    Attributes:
        app: that answers.
        state: of the server: its connections, its tasks, and the headers of every answer.
        app_state: of the application.
        limits: of the service.
        log: whether each request gets a line in the log.
    """

    app: ASGIApp
    state: ServerState
    app_state: dict[str, Any]
    limits: Limits
    log: bool


class Line(Protocol):
    """A connection, as an exchange on it sees it.

    Attributes:
        serving: what the connections share.
        transport: of the event loop.
        writable: set while the client takes what is sent.
    """

    serving: Serving
    transport: asyncio.Transport
    writable: asyncio.Event

    def resume_reading(self) -> None:
        """Reads on."""

    def answered(self, exchange: Exchange) -> None:
        """Goes on to the next request, or closes the connection, after an answer."""


@final
class Exchange:
    """A request and its answer, as `receive` and `send` of ASGI.

    Args:
        connection: of both.
        scope: of ASGI.
        keep_alive: whether the connection goes on afterwards.

    Attributes:
        started: whether a part of the answer was sent.
        endless: whether the answer is a stream of events, which only its client or the server ends.
    """

    def __init__(self, connection: Line, scope: Scope, *, keep_alive: bool) -> None:
        self.keep_alive, self.started, self.endless = keep_alive, False, False
        self._connection, self._scope = connection, scope
        self._body: list[bytes] = []
        self._size = 0
        self._more, self._gone, self._done = True, False, False
        self._news: asyncio.Future[None] | None = None
        self._head, self._chunked, self._left = b"", False, 0

    async def run(self, app: ASGIApp) -> None:
        """Lets the application answer. What it does not catch is logged, and ends the connection."""
        try:
            await app(self._scope, self.receive, self.send)
            if self._done or self._gone:
                return
            LOG.error("A request was left without an answer: %r", self._scope["path"])
        except Exception as error:
            LOG.error("A request failed: %r", self._scope["path"], exc_info=error)
        finally:
            if not (self._done or self._gone):
                await self._fail()

    async def _fail(self) -> None:
        if self.started:
            self._connection.transport.close()
        else:
            for message in FAILED:
                await self.send(message)

    # -- of the connection -------------------------------------------------------------------------------------------

    def take(self, body: bytes) -> int:
        """Takes a part of the body, and returns the bytes that wait for the application."""
        self._body.append(body)
        self._size += len(body)
        self._tell()
        return self._size

    def end(self) -> None:
        """Ends the body."""
        self._more = False
        self._tell()

    def disconnect(self) -> None:
        """Ends both, because the client is gone."""
        self._gone = True
        self._tell()

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    # -- of the application ------------------------------------------------------------------------------------------

    @property
    def whole(self) -> bool:
        """True if the whole body has come, for which nobody needs to wait."""
        return not self._more

    @property
    def writable(self) -> bool:
        """True if the client takes what is sent, so that `send` does not wait."""
        return self._connection.writable.is_set()

    async def receive(self) -> Message:
        """Returns a part of the body, or that the client is gone. After the answer that is said, too."""
        waits = any(name == b"expect" and value.lower() == b"100-continue" for name, value in self._scope["headers"])
        if waits and self._more and not self._body and not self.started:
            self._connection.transport.write(CONTINUE)
        while not (self._body or self._gone or self._done) and (self._more or self._size < 0):
            self._connection.resume_reading()
            self._news = asyncio.get_running_loop().create_future()
            await self._news
        if self._gone or self._done:
            return {"type": "http.disconnect"}
        body, self._body = b"".join(self._body), []
        self._size = 0 if self._more else -1  # after the end only the client's leaving is news
        return {"type": "http.request", "body": body, "more_body": self._more}

    async def send(self, message: Message) -> None:
        """Sends a part of the answer, and waits while the client takes nothing."""
        connection = self._connection
        if not connection.writable.is_set():
            await connection.writable.wait()
        if self._gone:
            return
        if not self.started:
            self._start(message["status"], list(message.get("headers", ())))
            return
        if self._done:
            raise RuntimeError("The answer is complete.")
        more = message.get("more_body", False)
        data, self._head = self._head + self._framed(message.get("body", b""), more=more), b""
        connection.transport.write(data)
        if not more:
            self._done = True
            self._tell()
            if self._left:
                raise RuntimeError("The answer is shorter than its headers say.")
            connection.answered(self)

    def _start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        """Keeps the head for the first part of the body. A stream's goes out by itself, before its first event."""
        self.started = True
        self.keep_alive &= not self._more  # the rest of a body would be taken for a request, and could be long
        scope, length = self._scope, None
        if self._connection.serving.log:
            client = ":".join(map(str, scope["client"] or ()))
            shown = scope["method"], scope["raw_path"].decode("ascii"), scope["http_version"]
            LINES.info('%s - "%s %s HTTP/%s" %d', client, *shown, status)
        for name, value in headers:
            if name == b"content-length":
                length = int(value)
            elif name == b"connection" and value.lower() == b"close":
                self.keep_alive = False
            elif name == b"content-type":
                self.endless = value.startswith(b"text/event-stream")
        empty = scope["method"] == "HEAD" or status in NO_BODY
        self._chunked = length is None and not empty
        self._left = 0 if empty or length is None else length
        if self._chunked:
            headers.append((b"transfer-encoding", b"chunked"))
        if not self.keep_alive:
            headers.append((b"connection", b"close"))
        self._head = _head(status, [*self._connection.serving.state.default_headers, *headers])
        if self._chunked:
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        if self._head and not self._gone:
            self._connection.transport.write(self._head)
            self._head = b""

    def _framed(self, body: bytes, *, more: bool) -> bytes:
        if self._chunked:
            chunk = b"%x\r\n%s\r\n" % (len(body), body) if body else b""
            return chunk if more else chunk + b"0\r\n\r\n"
        if self._scope["method"] == "HEAD":
            return b""
        if len(body) > self._left:
            raise RuntimeError("The answer is longer than its headers say.")
        self._left -= len(body)
        return body


def _head(status: int, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    lines = [b"%s: %s\r\n" % each for each in headers]
    head = b"".join([STATUS[status], *lines, b"\r\n"])
    if head.count(b"\n") != len(lines) + 2 or head.count(b"\r") != len(lines) + 2:
        raise ValueError("A header of an answer has more than one line.")
    return head
