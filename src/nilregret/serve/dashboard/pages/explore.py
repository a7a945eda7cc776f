"""Endpoints of the tab Explore: what is believed of the function."""

from __future__ import annotations

from functools import partial
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..rendering import page
from ..views.explored import importance_view, parallel_view
from ..views.posterior import posterior_view
from .common import PART, STUDY, part, read, study_name, with_error_pages
from .study import tab


@with_error_pages
async def beliefs(request: Request) -> Response:
    """Shows the posterior through a point and under a context, both chosen by a form."""
    query = dict(request.query_params)
    found = await read(request, partial(posterior_view, query=query))
    template = "pictures.html" if request.headers.get("hx-target") == "beliefs-pictures" else "beliefs.html"
    return page(request, template, name=study_name(request), **found)


ROUTES = [
    Route(f"{STUDY}/explore", tab("explore.html", lambda _, query: {"query": urlencode(query)})),
    Route(f"{PART}/beliefs", beliefs),
    part("importance", "importance.html", lambda opened, query: importance_view(opened, query.get("channel", ""))),
    part("parallel", "parallel.html", lambda opened, _: parallel_view(opened)),
]
