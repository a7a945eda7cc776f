"""Endpoints of the pages and their parts, a module for each page. Each reads a study in a thread."""

from starlette.routing import Route

from .. import files
from . import actions, studies, study, trials

ROUTES = [
    *studies.ROUTES, *study.ROUTES, *trials.ROUTES, *actions.ROUTES,
    Route("/static/{file:path}", files.static), Route("/favicon.ico", files.favicon),
]  # fmt: skip

__all__ = ["ROUTES"]
