"""Shared parts of the pages' endpoints: errors as pages, and reading a study in a thread."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....errors import NoRegretError
from ....study.study import Study
from ...wire.messages import name_in
from ...wire.problems import Problem, problem_of
from ...work.workers import StudyWorker, StudyWorkers
from ..rendering import caller_of, page

R = TypeVar("R")
STUDY = "/studies/{name}"
PART = STUDY + "/part"  # parts of pages, which htmx loads

FOR_PEOPLE = {  # sentences by kind of problem, in place of those that name addresses of the API
    "not_found": "There is no page at this address.",
    "no_study": "There is no study of this name that you may see. It may have been renamed or deleted.",
}

Endpoint = Callable[[Request], Awaitable[Response]]


def with_error_pages(endpoint: Endpoint) -> Endpoint:
    """Returns the endpoint with its errors rendered as pages."""

    @wraps(endpoint)
    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except (Problem, NoRegretError) as error:
            return error_page(request, problem_of(error))

    return answer


def error_page(request: Request, problem: Problem) -> Response:
    """Returns a problem as a page, or as a part of a page if htmx asks."""
    template = "refused.html" if request.headers.get("hx-request") else "error.html"
    sentence = FOR_PEOPLE.get(problem.kind, problem.sentence)
    return page(request, template, status=problem.status, sentence=sentence, code=problem.status)


def study_name(request: Request) -> str:
    """Returns the name of the study that the address names."""
    return name_in(request.path_params["name"])


async def worker_of(request: Request, *, fresh: bool = False) -> StudyWorker:
    """Returns the worker of the study that the address names (see `StudyWorkers.get`)."""
    workers: StudyWorkers = request.app.state.workers
    return await workers.get(caller_of(request).tenant, study_name(request), fresh=fresh)


async def read(request: Request, function: Callable[[Study], R]) -> R:
    """Returns the result of a function of the study that the address names, called in a reading thread."""
    return await (await worker_of(request)).read(function)


def base_of(request: Request) -> str:
    """Returns the address of the service, as the caller knows it."""
    return str(request.base_url).rstrip("/")


def part(name: str, template: str, view: Callable[[Study, dict[str, str]], dict[str, Any]]) -> Route:
    """Returns the route of a part of a page: a view of a study, given the query of the address."""

    @with_error_pages
    async def endpoint(request: Request) -> Response:
        query = dict(request.query_params)
        found = await read(request, lambda opened: view(opened, query))
        return page(request, template, name=study_name(request), **found)

    return Route(f"{PART}/{name}", endpoint)
