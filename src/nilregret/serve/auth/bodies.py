"""Bodies of requests, read completely within limits of size and time before anything else happens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import final

from starlette.types import Message, Receive, Send

from ..._utils.checks import whole_in
from ..wire.problems import Problem
from ..wire.settings import Limits

LINES = frozenset({"application/x-ndjson", "application/ndjson", "application/jsonl", "application/jsonlines"})
LEFT = 65_536  # bytes of a refused body that are still read, so that the client reads the answer


def announced(headers: Mapping[str, str]) -> int | None:
    """Returns the length that the headers announce, or None.

    Raises:
        Problem: 400, `Content-Length` is no number.
    """
    if "transfer-encoding" in headers:
        return None
    length = whole_in(headers.get("content-length", "0"), digits=19)
    if length is None or length < 0:
        raise Problem(400, "malformed", "`Content-Length` is no length.")
    return length


async def read(receive: Receive, headers: Mapping[str, str], limits: Limits) -> bytes | None:
    """Returns the body, or None if the client has closed the connection.

    Args:
        receive: of ASGI.
        headers: by lower-case name.
        limits: of the service.

    Raises:
        Problem: 413, the body is too large. 408, the body is too slow.
    """
    length = announced(headers)
    if length == 0:
        return b""
    if length is not None and length > limits.body_bytes:
        raise too_large(limits.body_bytes)
    try:
        async with asyncio.timeout(limits.body_seconds):
            return await _whole(receive, limits)
    except TimeoutError:
        raise _too_slow(limits, "The body") from None


async def _whole(receive: Receive, limits: Limits) -> bytes | None:
    parts: list[bytes] = []
    have, more = 0, True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            return None
        parts.append(message.get("body", b""))
        have += len(parts[-1])
        if have > limits.body_bytes:
            raise too_large(limits.body_bytes)
        more = message.get("more_body", False)
    return b"".join(parts)


def is_lines(headers: Mapping[str, str]) -> bool:
    """Returns whether the headers announce JSON lines, which are taken in pieces."""
    return headers.get("content-type", "").partition(";")[0].strip().lower() in LINES


@final
class LongBody:
    """An ASGI `receive` that passes on the parts of a body that is not read whole.

    The server reads no further than what was passed on, so memory stays flat.

    Args:
        receive: of the server.
        headers: by lower-case name.
        limits: of the service. Size is limited for all parts, and time for each.
        still_valid: checks before each part whether the caller still has access, or None.

    Attributes:
        on_part: called whenever a part is asked for.
        read: whether the body has come to its end.

    Raises:
        Problem: 413, the headers announce too large a body.
    """

    def __init__(
        self, receive: Receive, headers: Mapping[str, str], limits: Limits,
        still_valid: Callable[[], Awaitable[bool]] | None,
    ) -> None:  # fmt: skip
        self._receive, self._limits, self._still_valid = receive, limits, still_valid
        length = announced(headers)
        if length is not None and length > limits.lines_bytes:
            raise too_large(limits.lines_bytes)
        self._have, self.read = 0, length == 0
        self.on_part: Callable[[], object] = lambda: None

    async def __call__(self) -> Message:
        """Returns the next part, or a message of the server after the last one (see the ASGI interface).

        Raises:
            Problem: 408, the part is too slow. 413, the body is too large.
        """
        if self.read:
            return await self._receive()
        self.on_part()
        if self._still_valid is not None and not await self._still_valid():
            raise AccessRevoked
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                message = await self._receive()
        except TimeoutError:
            raise _too_slow(self._limits, "The next part of the body") from None
        self._have += len(message.get("body", b""))
        if self._have > self._limits.lines_bytes:
            raise too_large(self._limits.lines_bytes)
        self.read = message["type"] != "http.request" or not message.get("more_body", False)
        return message

    async def drain(self) -> None:
        """Reads and drops the rest of a body that was refused, so that the client reads the answer."""
        with suppress(Problem, AccessRevoked, TimeoutError):
            async with asyncio.timeout(self._limits.body_seconds):
                while not self.read:
                    await self()


def replay(body: bytes, receive: Receive) -> Receive:
    """Returns an ASGI `receive` that gives the whole body first, then the messages of the server."""
    waiting = [body]

    async def next_message() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return next_message


async def drop(receive: Receive, headers: Mapping[str, str], limits: Limits) -> bool:
    """Reads and drops the rest of a body. Returns False if the connection must be closed instead."""
    try:
        length = announced(headers)
        if length == 0:
            return True
        if length is None or length > LEFT:
            return False
        async with asyncio.timeout(min(1.0, limits.body_seconds)):
            while True:
                message = await receive()
                if message["type"] != "http.request" or not message.get("more_body", False):
                    return bool(message["type"] == "http.request")
    except (TimeoutError, Problem):
        return False


def _too_slow(limits: Limits, what: str) -> Problem:
    sentence = f"{what} did not come within {limits.body_seconds:g} s."
    return Problem(408, "slow", sentence, headers={"Connection": "close"})


def too_large(most: int) -> Problem:
    """Returns the refusal of a body of more than so many bytes."""
    return Problem(
        413, "too_large",
        f"The body is larger than the {most} bytes that this service takes. Send it in parts.",
        headers={"Connection": "close"},
    )  # fmt: skip


HEADERS = {
    b"content-security-policy": (
        b"default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"same-origin",  # otherwise some browsers send `Origin: null` with a form
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
}
NO_STORE = (b"cache-control", b"no-store")  # unless the application sets it, as for static files
ALL = [*HEADERS.items(), NO_STORE]
NAMES = frozenset(name for name, _ in ALL)


@final
class SecuredResponse:
    """An ASGI `send` that adds security headers and limits the time of each part.

    Args:
        send: of the server.
        limits: of the service, with the seconds that a client has to take a part.

    Attributes:
        still_valid: checks before each part but the last whether the caller still has access.
        on_start: called when the response begins.
        body_read: whether the request has been read to its end.
        started: whether a part of the response has been sent.
    """

    def __init__(self, send: Send, limits: Limits) -> None:
        self._send, self._limits = send, limits
        self.still_valid: Callable[[], Awaitable[bool]] | None = None
        self.on_start: Callable[[], None] | None = None
        self.body_read = self.started = False

    async def __call__(self, message: Message) -> None:
        """Sends a part (see the ASGI interface)."""
        if message["type"] == "http.response.start":
            self.started = True
            if self.on_start is not None:
                self.on_start()
            message = {**message, "headers": _secured(list(message.get("headers", ())))}
        elif message.get("more_body") and self.still_valid is not None and not await self.still_valid():
            raise AccessRevoked
        async with asyncio.timeout(self._limits.send_seconds):
            await self._send(message)

    async def refuse(self, problem: Problem, *, close: bool) -> None:
        """Sends a refusal, unless the response has started.

        Args:
            problem: reason of the refusal.
            close: whether the connection ends after the refusal.
        """
        if self.started:
            return
        body = problem.body()
        headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in problem.headers.items()]
        headers += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if close and not any(name == b"connection" for name, _ in headers):
            headers.append((b"connection", b"close"))
        await self({"type": "http.response.start", "status": problem.status, "headers": headers})
        await self({"type": "http.response.body", "body": body})


class AccessRevoked(Exception):
    """The caller lost access while a response was being sent."""


def _secured(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    there = {name.lower() for name, _ in headers}
    if NAMES.isdisjoint(there):  # the usual case, and the fast one
        return headers + ALL
    headers += [(name, value) for name, value in HEADERS.items() if name not in there]
    if NO_STORE[0] not in there:
        headers.append(NO_STORE)
    return headers
