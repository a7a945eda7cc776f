"""Endpoints of the pages and their parts. Each reads a study in a thread and changes nothing."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import Any, TypeVar
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from ..._utils.errors import InvalidInput, NoRegretError
from ...study.study import Study
from ..addresses import name_in
from ..auth.tenants import own_names
from ..problems import Problem, problem_of
from ..worker import StudyWorker
from . import files
from .rendering import caller_of, page
from .views.api import api_view
from .views.changes import changes
from .views.constraints import constraints_view, has_constraints
from .views.delays import delays
from .views.posterior import posterior_view
from .views.progress import progress
from .views.status import description, is_unchanged, status, status_of_summary
from .views.trials import explanation_view, trial_record, trials_page
from .views.value_of_learning import value_view

R = TypeVar("R")
LONGEST_NUMBER = 10  # digits of a typed number
EXPLAINING = 2  # concurrent replays, so that some reading threads stay free for cheaper pages

Endpoint = Callable[[Request], Awaitable[Response]]


def with_error_pages(endpoint: Endpoint) -> Endpoint:
    """Returns the endpoint with its errors rendered as pages."""

    @wraps(endpoint)
    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except (Problem, NoRegretError) as error:
            problem = problem_of(error)
            template = "refused.html" if request.headers.get("hx-request") else "error.html"
            return page(request, template, status=problem.status, sentence=problem.sentence, code=problem.status)

    return answer


async def _read(request: Request, read: Callable[[Study], R]) -> R:
    """Returns the result of a function of the study that the address names, called in a reading thread."""
    return await (await _worker(request)).read(read)


async def _worker(request: Request) -> StudyWorker:
    worker: StudyWorker = await request.app.state.workers.get(caller_of(request).tenant, _name(request))
    return worker


def _name(request: Request) -> str:
    return name_in(request.path_params["name"])


async def home(_: Request) -> Response:
    """Redirects to the list of studies."""
    return RedirectResponse("/studies", 303)


@with_error_pages
async def studies(request: Request) -> Response:
    """Shows all studies of the caller. Each row loads its content when it becomes visible."""
    names = await _names(request)
    return page(request, "studies.html", names=names, known=_hash(names), again=False)


@with_error_pages
async def studies_list(request: Request) -> Response:
    """Shows the list again, or answers 204 if the studies are the same. Rows refresh by themselves."""
    names = await _names(request)
    known = _hash(names)
    if request.query_params.get("known") == known:
        return Response(status_code=204)
    return page(request, "list_again.html", names=names, known=known, again=True)


async def _names(request: Request) -> list[str]:
    workers, tenant = request.app.state.workers, caller_of(request).tenant
    return list(await workers.lookup(own_names, workers.storage, tenant, tenant=tenant))


def _hash(names: list[str]) -> str:
    return hashlib.sha256("\0".join(names).encode("utf-8", "surrogatepass")).hexdigest()[:16]


async def api(request: Request) -> Response:
    """Shows the operations of the API, each with a form that sends it."""
    return page(request, "api.html", api=api_view(request.app.state.openapi))


async def row(request: Request) -> Response:
    """Shows a row of the list with its status or error, or answers 204 if nothing has changed."""
    name, known = _name(request), request.query_params.get("known", "")

    def read(opened: Study) -> dict[str, Any] | None:
        now = time.time()
        return None if is_unchanged(opened, known, now=now) else status(opened, now=now)

    try:
        workers, tenant = request.app.state.workers, caller_of(request).tenant
        stored = await workers.summary(tenant, name)
        found = await _read(request, read) if stored is None else status_of_summary(*stored, now=time.time())
    except (Problem, NoRegretError) as error:
        problem = problem_of(error)
        return page(request, "row.html", status=problem.status, name=name, at=None, sentence=problem.sentence)
    return Response(status_code=204) if found is None else page(request, "row.html", name=name, at=found)


@with_error_pages
async def study(request: Request) -> Response:
    """Shows a study with its status and its progress. The other parts load afterwards."""
    query = dict(request.query_params)

    def read(opened: Study) -> dict[str, Any]:
        return {
            "at": status(opened, now=time.time()), "facts": description(opened), "picture": progress(opened),
            "limited": has_constraints(opened),
        }  # fmt: skip

    return page(request, "study.html", name=_name(request), query=urlencode(query), **await _read(request, read))


@with_error_pages
async def head(request: Request) -> Response:
    """Shows the status of a study again, or answers 204 if nothing has changed."""
    known = request.query_params.get("known", "")

    def read(opened: Study) -> dict[str, Any] | None:
        now = time.time()
        return None if is_unchanged(opened, known, now=now) else {"at": status(opened, now=now)}

    found = await _read(request, read)
    if found is None:
        return Response(status_code=204)
    moved = known.partition("_")[0] != found["at"]["known"].partition("_")[0]
    headers = {"HX-Trigger": "study-changed"} if moved else None
    return page(request, "head.html", headers=headers, name=_name(request), **found)


@with_error_pages
async def worth_part(request: Request) -> Response:
    """Shows what learning has cost and gained."""
    text = request.query_params.get("baseline", "")

    def read(opened: Study) -> dict[str, Any]:
        try:
            return value_view(opened, baseline=_baseline(text)) | {"refused": ""}
        except InvalidInput as error:  # The form stays on the page and shows the error.
            return value_view(opened) | {"refused": str(error)}

    found = await _read(request, read)
    return page(
        request, "worth.html", status=422 if found["refused"] else 200, name=_name(request), baseline=text, **found
    )


def _baseline(text: str) -> int | None:
    if text and not (text.isdecimal() and len(text) < LONGEST_NUMBER):
        raise InvalidInput(f"The trial to compare with is {text[:20]!r}: it must be the number of a trial.")
    return int(text) if text else None


@with_error_pages
async def beliefs_part(request: Request) -> Response:
    """Shows the posterior through a point and under a context, both chosen by a form."""
    query = dict(request.query_params)
    found = await _read(request, partial(posterior_view, query=query))
    template = "pictures.html" if request.headers.get("hx-target") == "beliefs-pictures" else "beliefs.html"
    return page(request, template, name=_name(request), **found)


@with_error_pages
async def trial(request: Request) -> Response:
    """Shows the record of a trial."""
    number = request.path_params["number"]
    found = await _read(request, lambda opened: (trial_record(opened, number), len(opened.trials)))
    if found[0] is None:
        raise Problem(404, "no_trial", f"There is no trial {number}: this study has {found[1]:,}, numbered from 0.")
    return page(request, "trial.html", name=_name(request), trial=found[0])


@with_error_pages
async def why(request: Request) -> Response:
    """Shows why a trial was chosen, which takes a replay of the record up to this trial."""
    number, state = request.path_params["number"], request.app.state
    if not hasattr(state, "explaining"):
        state.explaining = asyncio.Semaphore(EXPLAINING)
    async with state.explaining:
        found = await (await _worker(request)).explain(number)
    return page(request, "why.html", **explanation_view(found))


def _part(template: str, view: Callable[[Study, dict[str, str]], dict[str, Any]]) -> Endpoint:
    """Returns an endpoint that shows a view of a study, given the query of the address."""

    @with_error_pages
    async def endpoint(request: Request) -> Response:
        query = dict(request.query_params)
        found = await _read(request, lambda opened: view(opened, query))
        return page(request, template, name=_name(request), **found)

    return endpoint


ROUTES = [
    Route("/", home),
    Route("/studies", studies),
    Route("/list", studies_list),
    Route("/docs", api),
    Route("/studies/{name}", study),
    Route("/studies/{name}/row", row),
    Route("/studies/{name}/head", head),
    Route(
        "/studies/{name}/progress",
        _part("figure.html", lambda opened, _: {"key": "progress", "picture": progress(opened)}),
    ),
    Route("/studies/{name}/worth", worth_part),
    Route("/studies/{name}/beliefs", beliefs_part),
    Route("/studies/{name}/waits", _part("waits.html", lambda opened, _: delays(opened, now=time.time()))),
    Route("/studies/{name}/changes", _part("changes.html", lambda opened, _: {"changes": changes(opened)})),
    Route("/studies/{name}/budgets", _part("budgets.html", lambda opened, _: {"budgets": constraints_view(opened)})),
    Route("/studies/{name}/trials", _part("trials.html", trials_page)),
    Route("/studies/{name}/trials/{number:int}", trial),
    Route("/studies/{name}/trials/{number:int}/why", why),
    Route("/static/{file:path}", files.static),
    Route("/favicon.ico", files.favicon),
]
