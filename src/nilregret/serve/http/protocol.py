"""HTTP/1.1 on one connection: llhttp parses requests, an ASGI application answers them, one after the other.

uvicorn's own protocols have no limit on what is read before a request is complete, and take twice the time. llhttp is
strict. Two lengths of a body, bare line feeds, folded headers and unknown methods are errors, which end the connection.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Any, cast, final
from urllib.parse import unquote

import httptools
from uvicorn.protocols.utils import get_local_addr, get_remote_addr

from ..wire.settings import EXCHANGE, LEAVING
from .exchange import STATUS, Exchange, Serving

VERSIONS = ("1.1", "1.0")
BUSY = 2  # times the most connections, since those that are busy or closing are not cut off
MOST_PIPELINED = 32  # requests of a connection that wait for the answer to an earlier one
READ_AHEAD = 65_536  # bytes of a body that wait for the application


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

    def eof_received(self) -> bool:
        """Returns True if a client that sends nothing more waits for answers, which it gets.

        A stream of events never ends, so its client is taken to be gone.
        """
        if self._exchange is None or self._exchange.endless:
            return False
        self._refuse(400)  # the request whose body is not complete, if there is one
        return True

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
        method, version = self._parser.get_method(), self._parser.get_http_version().encode()
        self._parser = httptools.HttpRequestParser(self)
        if method == b"CONNECT":
            self._refuse(400)
            return
        lines = [b"%s %s HTTP/%s" % (method, self._url, version)]
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
