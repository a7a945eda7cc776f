"""HTTP/1.1 on one connection: llhttp parses requests, an ASGI application answers them, one after the other.

uvicorn's own protocols have no limit on what is read before a request is complete, and take twice the time. llhttp is
strict. Two lengths of a body, bare line feeds, folded headers and unknown methods are errors, which end the connection.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, NamedTuple, cast, final
from urllib.parse import unquote

import httptools
from starlette.types import ASGIApp, Message, Scope
from uvicorn.protocols.utils import get_local_addr, get_remote_addr
from uvicorn.server import ServerState

from .limits import Limits
from .settings import EXCHANGE, LEAVING

LOG, LINES = logging.getLogger("nilregret.serve"), logging.getLogger("uvicorn.access")
VERSIONS = ("1.1", "1.0")
BUSY = 2  # times the most connections, since those that are busy or closing are not cut off
MOST_PIPELINED = 32  # requests of a connection that wait for the answer to an earlier one
READ_AHEAD = 65_536  # bytes of a body that wait for the application
STATUS = {each.value: f"HTTP/1.1 {each.value} {each.phrase}\r\n".encode() for each in HTTPStatus}
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
SHOWN = ("method", "path", "http_version")  # in the log
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


@final
class Connection(asyncio.Protocol):
    """A connection, with the callbacks of the parser.

    Args:
        serving: what the connections share.

    Attributes:
        transport: of the event loop.
        silent_since: seconds of the monotonic clock: when the connection was made, or its last answer was complete.
        writable: set while the client takes what is sent.
    """

    transport: asyncio.Transport

    def __init__(self, serving: Serving) -> None:
        self.serving = serving
        self.silent_since = time.monotonic()
        self.writable = asyncio.Event()
        self.writable.set()
        self._parser = httptools.HttpRequestParser(self)
        self._exchange: Exchange | None = None  # whose answer is being made
        self._coming: Exchange | None = None  # whose body is being read
        self._waiting: deque[Exchange] = deque()
        self._unfinished = 0  # bytes since the parser last came to the end of something
        self._data, self._begun = b"", False  # with the request line, and whether headers are being read
        self._url, self._headers = b"", list[tuple[bytes, bytes]]()
        self._paused = self._ended = False  # whether reading waits, and whether nothing is read any more

    @property
    def silent(self) -> bool:
        """True if no request is being answered."""
        return self._exchange is None or self.transport.is_closing()

    # -- of the event loop -------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begins to serve the connection (see `asyncio.Protocol`)."""
        self.transport = cast(asyncio.Transport, transport)
        self._addresses = get_remote_addr(self.transport), get_local_addr(self.transport)
        self.serving.state.connections.add(cast(Any, self))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - as asyncio has it
        """Tells the application that the client is gone."""
        self.serving.state.connections.discard(cast(Any, self))
        self._ended = True
        self._waiting.clear()
        for each in (self._exchange, self._coming):
            if each is not None:
                each.disconnect()
        self.writable.set()

    def pause_writing(self) -> None:
        """Lets the application wait until the client has taken what was sent."""
        self.writable.clear()

    def resume_writing(self) -> None:
        """Lets the application go on."""
        self.writable.set()

    def data_received(self, data: bytes) -> None:
        """Parses what has come."""
        if self._ended:
            return
        self._unfinished += len(data)
        self._data = self._data + data if self._begun else data
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._without_upgrade(data[upgrade.args[0] :])
        except httptools.HttpParserError:
            self._refuse(400)
        else:
            if self._unfinished > self.serving.limits.header_bytes:
                self._refuse(431)

    def _without_upgrade(self, rest: bytes) -> None:
        """Parses a request anew that wants another protocol, which the service does not speak, and gets this one."""
        method, self._parser = self._parser.get_method(), httptools.HttpRequestParser(self)
        if method == b"CONNECT":
            self._refuse(400)
            return
        lines = [b"%s %s HTTP/1.1" % (method, self._url)]
        self._begun = False
        lines += [b"%s: %s" % each for each in self._headers if each[0] != b"upgrade"]
        self.data_received(b"\r\n".join([*lines, b"", rest]))

    def _refuse(self, status: int) -> None:
        """Ends the connection, after the answers to earlier requests."""
        self._ended = True
        coming, self._coming = self._coming, None
        if coming is not None and coming in self._waiting:
            self._waiting.remove(coming)
        if self._exchange is not None and self._exchange is not coming:
            self._exchange.keep_alive &= bool(self._waiting)
            return
        if coming is None or not coming.started:
            self.transport.write(STATUS[status] + b"connection: close\r\ncontent-length: 0\r\n\r\n")
        if coming is not None:
            coming.disconnect()
        self.transport.close()

    def shutdown(self) -> None:
        """Ends the connection after its request, because the server stops. Streams must end before."""
        if self._exchange is None:
            self.transport.close()
        else:
            self._exchange.keep_alive = False
        leaving = self.serving.app_state.get(LEAVING)
        if leaving is not None:
            leaving()

    # -- of the parser -----------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Begins a request."""
        self._url, self._headers, self._coming, self._begun = b"", [], None, True

    def on_url(self, url: bytes) -> None:
        """Takes a part of the address."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Takes a header, or refuses what stands behind a body in chunks."""
        if self._coming is not None:
            raise ValueError("Trailers are not supported.")
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Begins to answer the request."""
        self._unfinished, self._begun = 0, False
        parser = self._parser
        if parser.should_upgrade():
            return
        serving, version, method = self.serving, parser.get_http_version(), parser.get_method()
        if len(serving.state.connections) > BUSY * serving.limits.connections:
            self._refuse(503)
            return
        exact = b"%s %s HTTP/" % (method, self._url) in self._data  # llhttp skips spaces, and knows other protocols
        if not exact or version not in VERSIONS or len(self._waiting) >= MOST_PIPELINED:
            raise ValueError("This is no request that can be answered.")
        raw, _, query = self._url.partition(b"?")
        path = raw.decode("ascii")
        scope = {
            "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": version,
            "method": method.decode("ascii"), "scheme": "http", "root_path": "",
            "path": unquote(path) if "%" in path else path, "raw_path": raw, "query_string": query,
            "headers": self._headers, "client": self._addresses[0], "server": self._addresses[1],
            "state": self.serving.app_state.copy(),
        }  # fmt: skip
        exchange = self._coming = Exchange(self, scope, keep_alive=version == "1.1" and parser.should_keep_alive())
        scope["extensions"] = {EXCHANGE: exchange}
        if self._exchange is None:
            self._answer(exchange)
        else:
            self._waiting.append(exchange)
            self.pause_reading()

    def on_body(self, body: bytes) -> None:
        """Takes a part of a body."""
        self._unfinished = 0
        if self._coming is not None and self._coming.take(body) > READ_AHEAD:
            self.pause_reading()

    def on_message_complete(self) -> None:
        """Ends the body of a request."""
        self._unfinished = 0
        if self._coming is not None:
            self._coming.end()
            self._coming = None

    # -- of the exchange ---------------------------------------------------------------------------------------------

    def _answer(self, exchange: Exchange) -> None:
        self._exchange = exchange
        task = asyncio.get_running_loop().create_task(exchange.run(self.serving.app))
        self.serving.state.tasks.add(task)
        task.add_done_callback(self.serving.state.tasks.discard)

    def pause_reading(self) -> None:
        """Reads nothing, until `resume_reading`."""
        if not self._paused and not self.transport.is_closing():
            self._paused = True
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        """Reads on."""
        if self._paused and not self.transport.is_closing():
            self._paused = False
            self.transport.resume_reading()

    def answered(self, exchange: Exchange) -> None:
        """Goes on to the next request, or closes the connection, after an answer."""
        self.silent_since = time.monotonic()
        self.serving.state.total_requests += 1
        self._exchange = None
        if not exchange.keep_alive:
            self._ended = True
            self._waiting.clear()
            self.transport.close()
        elif self._waiting:
            following = self._waiting.popleft()
            following.keep_alive &= not self._ended or bool(self._waiting)
            self._answer(following)
        elif not self.transport.is_closing():
            self.resume_reading()


@final
class Exchange:
    """A request and its answer, as `receive` and `send` of ASGI.

    Args:
        connection: of both.
        scope: of ASGI.
        keep_alive: whether the connection goes on afterwards.
    """

    def __init__(self, connection: Connection, scope: Scope, *, keep_alive: bool) -> None:
        self.keep_alive, self.started = keep_alive, False
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
            LOG.error("A request was left without an answer: %s", self._scope["path"])
        except Exception as error:
            LOG.error("A request failed: %s", self._scope["path"], exc_info=error)
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
        headers = self._scope["headers"]
        if self._more and not self._body and (b"expect", b"100-continue") in headers and not self.started:
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
            LINES.info('%s - "%s %s HTTP/%s" %d', client, *(scope[each] for each in SHOWN), status)
        for name, value in headers:
            if name == b"content-length":
                length = int(value)
            elif name == b"connection" and value.lower() == b"close":
                self.keep_alive = False
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
