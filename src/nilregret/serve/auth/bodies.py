"""The body of a request: read to its end before anything is done with it, within its size and its time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from starlette.types import Message, Receive

from ..limits import Limits
from ..problems import Problem

LEFT = 65_536  # bytes of a body that nobody wants and that are still taken, so that the answer is heard


def announced(headers: Mapping[str, str]) -> int | None:
    """How long the body will be; None where that is not said.

    Raises:
        Problem: 400, what is said is no length.
    """
    if "transfer-encoding" in headers:
        return None
    said = headers.get("content-length", "0")
    if not (said.isascii() and said.isdecimal() and len(said) < 20):
        raise Problem(400, "malformed", "`Content-Length` is no length.")
    return int(said)


async def read(receive: Receive, headers: Mapping[str, str], limits: Limits) -> bytes | None:
    """All of it; None where the caller is gone.

    Raises:
        Problem: 413 too large, 408 too slow.
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


def given(body: bytes, receive: Receive) -> Receive:
    """As the application hears it: the whole body at once, then whatever comes."""
    waiting = [body]

    async def next_message() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return next_message


async def drop(receive: Receive, headers: Mapping[str, str], limits: Limits) -> bool:
    """Take what comes of a body that nobody wants; False where the connection must end instead."""
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
    """What is told of a body over the limit."""
    return Problem(
        413, "too_large",
        f"The body is larger than the {limits.body_bytes} bytes that this service takes. Send it in parts.",
        headers={"Connection": "close"},
    )  # fmt: skip
