"""Responses with security headers, and with a time limit for clients that do not read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import final

from starlette.types import Message, Send

from ..wire.limits import Limits
from ..wire.problems import Problem

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
