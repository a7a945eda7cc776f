"""What goes out: the headers that tell browsers what a page may do, and an end for who does not listen."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import final

from starlette.types import Message, Send

from ..limits import Limits
from ..problems import Problem

HEADERS = {
    b"content-security-policy": (
        b"default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"same-origin",  # without a referrer some browsers send `Origin: null` with a form
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
}
STORED_NOWHERE = (b"cache-control", b"no-store")  # unless the application says otherwise, as of its static files
ALL = [*HEADERS.items(), STORED_NOWHERE]
NAMES = frozenset(name for name, _ in ALL)


@final
class Answer:
    """An answer on its way out.

    Args:
        send: to the server.
        limits: of which one is how long a part of it may wait to be taken.
        still: whether who asked for it may still have it; looked at before each part that is not the last.
        began: called when it begins.

    Attributes:
        heard: whether the request has been read to its end.
        started: whether a part of the answer has been sent.
    """

    def __init__(
        self, send: Send, limits: Limits, *, still: Callable[[], Awaitable[bool]] | None = None,
        began: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        self._send, self._limits = send, limits
        self.still, self.began = still, began
        self.heard = self.started = False

    async def __call__(self, message: Message) -> None:
        """Send a part; as the ASGI interface has it."""
        if message["type"] == "http.response.start":
            self.started = True
            if self.began is not None:
                self.began()
            message = {**message, "headers": _dressed(list(message.get("headers", ())))}
        elif message.get("more_body") and self.still is not None and not await self.still():
            raise GoneError
        async with asyncio.timeout(self._limits.send_seconds):
            await self._send(message)

    async def tell(self, problem: Problem, *, close: bool) -> None:
        """Send a refusal, unless something else has begun to be sent.

        Args:
            problem: why.
            close: whether the connection ends with it.
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


class GoneError(Exception):
    """Who asked may no longer have the answer."""


def _dressed(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    there = {name.lower() for name, _ in headers}
    if NAMES.isdisjoint(there):  # mostly
        return headers + ALL
    headers += [(name, value) for name, value in HEADERS.items() if name not in there]
    if STORED_NOWHERE[0] not in there:
        headers.append(STORED_NOWHERE)
    return headers
