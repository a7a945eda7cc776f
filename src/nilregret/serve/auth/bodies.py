"""Bodies of requests, read completely within limits of size and time before anything else happens."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from starlette.types import Message, Receive

from ..wire.limits import Limits
from ..wire.problems import Problem

LEFT = 65_536  # bytes of a refused body that are still read, so that the client reads the answer


def announced(headers: Mapping[str, str]) -> int | None:
    """Returns the length that the headers announce, or None.

    Raises:
        Problem: 400, `Content-Length` is no number.
    """
    if "transfer-encoding" in headers:
        return None
    said = headers.get("content-length", "0")
    if not (said.isascii() and said.isdecimal() and len(said) < 20):
        raise Problem(400, "malformed", "`Content-Length` is no length.")
    return int(said)


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
        raise too_large(limits)
    try:
        async with asyncio.timeout(limits.body_seconds):
            return await _whole(receive, limits)
    except TimeoutError:
        raise Problem(
            408, "slow", f"The body did not come within {limits.body_seconds:g} s.", headers={"Connection": "close"}
        ) from None


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
            raise too_large(limits)
        more = message.get("more_body", False)
    return b"".join(parts)


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


def too_large(limits: Limits) -> Problem:
    """Returns the refusal of a body over the limit."""
    return Problem(
        413, "too_large",
        f"The body is larger than the {limits.body_bytes} bytes that this service takes. Send it in parts.",
        headers={"Connection": "close"},
    )  # fmt: skip
