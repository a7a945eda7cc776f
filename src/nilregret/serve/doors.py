"""The way from an address to the operation behind it, and of what comes of it back.

A decision takes less than a millisecond of processor, and the way through a router, its middleware and its objects for
requests and answers takes a good part of that. So the operations stand before the router, which has the rest: pages,
methods that an address does not take, and addresses at which there is nothing.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, final

import msgspec
from starlette.convertors import Convertor
from starlette.routing import Route, compile_path
from starlette.types import ASGIApp, Receive, Scope, Send

from .operations import Operation, read
from .problems import problem_of, response_of
from .service import Service


@final
class Door:
    """An operation at work.

    Args:
        operation: what is done.
        service: to whose studies.
    """

    def __init__(self, operation: Operation, service: Service) -> None:
        self.operation, self._service = operation, service
        self._decoder = None if operation.body is None else msgspec.json.Decoder(operation.body)
        self._seconds = service.metrics.seconds(operation.name)

    def route(self) -> Route:
        """As Starlette has it."""
        return Route(self.operation.path, self, methods=[self.operation.method], name=self.operation.name)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A request that a route has led here; as the ASGI interface has it."""
        reply = await self.reply(scope, receive, scope["path_params"])
        await reply(scope, receive, send)

    async def reply(self, scope: Scope, receive: Receive, path: Mapping[str, Any]) -> ASGIApp:
        """What comes of a request; the gate has read its body, and hands it over whole."""
        operation = self.operation
        body = (await receive()).get("body", b"") if self._decoder is not None else b""
        heard = read(operation, self._decoder, scope, body, path)
        began = time.perf_counter()
        try:
            return await operation.do(self._service, heard)
        finally:
            self._seconds.observe(time.perf_counter() - began)


class _Known(NamedTuple):
    address: re.Pattern[str]
    kinds: Mapping[str, Convertor[Any]]
    door: Door


@final
class Doors:
    """An application with doors before it; what opens none of them goes on to it.

    Args:
        app: the rest.
        doors: those that are called most come first.
    """

    def __init__(self, app: ASGIApp, doors: Iterable[Door]) -> None:
        self._app = app
        self._known: dict[tuple[str, int], list[_Known]] = {}  # by method and the slashes in the address
        for door in doors:
            address, _, kinds = compile_path(door.operation.path)
            at = door.operation.method, door.operation.path.count("/")
            self._known.setdefault(at, []).append(_Known(address, kinds, door))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request; as the ASGI interface has it."""
        found = self._found(scope) if scope["type"] == "http" and not scope.get("root_path") else None
        if found is None:
            await self._app(scope, receive, send)
            return
        door, path = found
        try:
            reply = await door.reply(scope, receive, path)
        except Exception as error:  # whatever it is: it is logged where it must be, and nothing of it is told
            reply = response_of(problem_of(error))
        await reply(scope, receive, send)

    def _found(self, scope: Scope) -> tuple[Door, dict[str, Any]] | None:
        path: str = scope["path"]
        for known in self._known.get((scope["method"], path.count("/")), ()):
            found = known.address.fullmatch(path)
            if found is not None:
                return known.door, {name: known.kinds[name].convert(text) for name, text in found.groupdict().items()}
        return None
