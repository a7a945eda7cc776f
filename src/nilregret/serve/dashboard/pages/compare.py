"""Endpoints of the comparison of studies."""

from __future__ import annotations

import asyncio
import time

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....errors import InvalidInput
from ...auth.caller import own_names
from ..rendering import caller_of, page
from ..views.compared import FEWEST, MOST, StudyFacts, compared_view, facts_of
from .common import with_error_pages


@with_error_pages
async def compare(request: Request) -> Response:
    """Shows the studies that the query names, or a form that asks for them."""
    names = list(dict.fromkeys(name for name in request.query_params.getlist("study") if name))
    workers, tenant = request.app.state.workers, caller_of(request).tenant
    known = await workers.lookup(own_names, workers.storage, tenant, tenant=tenant)
    others = [name for name in known if name not in names]
    if len(names) < FEWEST:
        return page(request, "compare.html", names=names, others=others, found=None, most=MOST)
    if len(names) > MOST:
        raise InvalidInput(f"{len(names)} studies are named: at most {MOST} are compared at once, so leave some out.")

    async def facts(name: str) -> StudyFacts:
        worker = await workers.get(tenant, name)
        return await worker.read(lambda study: facts_of(study, name, now=time.time(), paused=worker.notes.paused))  # type: ignore[no-any-return]

    found = compared_view(await asyncio.gather(*map(facts, names)))
    return page(request, "compare.html", names=names, others=others, found=found, most=MOST)


ROUTES = [Route("/compare", compare)]
