"""The application: routes from lists, errors as sentences, and what begins and ends with the process."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from .._utils.errors import InvalidInput
from ..storage import MemoryStorage, SqlStorage, Storage
from .auth.middleware import Gate
from .auth.tokens import Tokens
from .openapi import document
from .operations import Endpoint, Operation
from .problems import HANDLERS
from .read_routes import HEALTH, LOOKING
from .service import Service
from .settings import LEAVING, Settings
from .write_routes import DECIDING

OPERATIONS: tuple[Operation, ...] = (*DECIDING, *LOOKING, *HEALTH)  # those that are called most come first


def create_app(
    storage: Storage, settings: Settings | None = None, *, gate: Middleware | None = None,
    routes: Sequence[BaseRoute] = (), clock: Callable[[], float] = time.time,
) -> Starlette:  # fmt: skip
    """The service as an ASGI application, behind a gate.

    Args:
        storage: of all studies; a database, or `MemoryStorage` for tests.
        settings: of the process; the defaults unless given.
        gate: what stands before everything and finds out who calls. Unless given, that of a service which its own
            machine alone can reach: open to it for as long as no token was ever made, and else to tokens.
        routes: further ones, of the dashboard.
        clock: Unix seconds.
    """
    if not isinstance(storage, SqlStorage | MemoryStorage):
        raise InvalidInput(
            "The service keeps notes of the requests that it has answered beside the trials, and this storage cannot: "
            "use a database ('sqlite:///studies.db', 'postgresql://...') or `MemoryStorage()`."
        )
    chosen = settings or Settings()
    service = Service(storage, chosen, clock)
    before = Middleware(Gate, tokens=Tokens(storage), local=True, limits=chosen.limits) if gate is None else gate
    written = document(OPERATIONS)
    endpoints = [Endpoint(operation, service) for operation in OPERATIONS]

    async def openapi(_: Request) -> Response:
        return Response(written, media_type="application/json")

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[dict[str, Any]]:
        await service.desks.thread(service.prepare)
        yield {LEAVING: service.streams.end}
        service.streams.end()
        service.desks.close()

    app = Starlette(
        routes=[*(each.route() for each in endpoints), Route("/openapi.json", openapi), *routes],
        exception_handlers=HANDLERS, lifespan=lifespan, middleware=[before],
    )  # fmt: skip
    app.router.redirect_slashes = False  # the redirection would name a scheme and a host that a proxy may have changed
    app.state.service = service
    app.state.desks = service.desks
    return app
