"""The ASGI application of the service."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ...errors import InvalidInput
from ...storage import MemoryStorage, SqlStorage, Storage
from ..auth.login import wants_page
from ..auth.middleware import AccessMiddleware, ErrorPage
from ..auth.tokens import Tokens
from ..wire.problems import HANDLERS, problem_of, response_of
from ..wire.settings import LEAVING, Settings
from .change_routes import ARM_OPERATIONS, NOTE_OPERATIONS, QUEUE_OPERATIONS
from .openapi import document
from .operations import Endpoint, Operation, Service, direct_calls
from .read_routes import EVALUATION_OPERATIONS, HEALTH_OPERATIONS, READ_OPERATIONS
from .write_routes import WRITE_OPERATIONS

# The router tries them in order, so those that are called most come first.
OPERATIONS: tuple[Operation, ...] = (
    *WRITE_OPERATIONS, *ARM_OPERATIONS, *QUEUE_OPERATIONS, *READ_OPERATIONS, *EVALUATION_OPERATIONS, *NOTE_OPERATIONS,
    *HEALTH_OPERATIONS,
)  # fmt: skip


def create_app(
    storage: Storage, settings: Settings | None = None, *, access: Middleware | None = None,
    routes: Sequence[BaseRoute] = (), error_page: ErrorPage | None = None, clock: Callable[[], float] = time.time,
) -> Starlette:  # fmt: skip
    """Returns the service as an ASGI application, behind a middleware that checks access.

    Args:
        storage: of all studies. A database, or `MemoryStorage` for tests.
        settings: of the process. The defaults unless given.
        access: the middleware. The default fits a service that only its own machine can reach: requests of that machine
            need no token until the first token is made.
        routes: further routes, of the dashboard.
        error_page: returns a problem as a page, for browsers that ask for a page.
        clock: Unix seconds.
    """
    if not isinstance(storage, SqlStorage | MemoryStorage):
        raise InvalidInput(
            "The service keeps notes of the requests that it has answered beside the trials, and this storage cannot: "
            "use a database ('sqlite:///studies.db', 'postgresql://...') or `MemoryStorage()`."
        )
    chosen = settings or Settings()
    service = Service(storage, chosen, clock)
    if access is None:
        access = Middleware(AccessMiddleware, tokens=Tokens(storage), local=True, limits=chosen.limits)
    written = _document()
    endpoints = [Endpoint(operation, service) for operation in OPERATIONS]
    calls = direct_calls(endpoints)

    async def openapi(_: Request) -> Response:
        return Response(written, media_type="application/json")

    async def tell(request: Request, error: Exception) -> Response:
        problem = problem_of(error)
        if error_page is None or not wants_page(request.headers, request.method, request.url.path):
            answer = response_of(problem)
        else:
            answer = error_page(request, problem)
        if problem.status == 405:  # Starlette names the methods of the first route at the address
            at = [each for each in app.routes if isinstance(each, Route) and each.path_regex.match(request.url.path)]
            answer.headers["Allow"] = ", ".join(sorted({method for each in at for method in each.methods or ()}))
        return answer

    app = Starlette(
        routes=[*(each.route for each in endpoints), Route("/openapi.json", openapi), *routes],
        exception_handlers=dict.fromkeys(HANDLERS, tell), lifespan=_lifespan(service),
        middleware=[access, Middleware(calls)],
    )  # fmt: skip
    app.router.redirect_slashes = False  # a redirection names scheme and host, which a proxy may have changed
    app.state.service = service
    app.state.openapi = written
    app.state.workers = service.workers
    app.state.api = calls(app.router)  # for pages that act
    return app


@cache
def _document() -> bytes:
    """Returns the OpenAPI document, which takes longer to write than all else of an application."""
    return document(OPERATIONS)


def _lifespan(service: Service) -> Callable[[Any], AbstractAsyncContextManager[dict[str, Any]]]:
    """Returns a context in which the application runs."""

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[dict[str, Any]]:
        await service.workers.in_thread(service.prepare)
        webhook = service.settings.webhook
        tasks = [asyncio.create_task(service.metrics.keep_published())]
        tasks += [] if webhook is None else [asyncio.create_task(service.sender(webhook).run())]
        yield {LEAVING: service.streams.end}
        service.streams.end()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        service.workers.close()

    return lifespan
