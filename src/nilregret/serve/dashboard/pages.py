"""The pages: what each address shows. All of them look at a study in a thread, and change nothing."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import Any, TypeVar

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
from .views.beliefs import beliefs
from .views.budgets import budgets, is_limited
from .views.changes import changes
from .views.progress import progress
from .views.standing import described, standing, summed_up, unchanged
from .views.trials import listed, one, reasons
from .views.waits import waits
from .views.worth import worth

R = TypeVar("R")
LONGEST_NUMBER = 10  # digits of one that is typed
EXPLAINING = 2  # replays at once: of the threads that look some are left for those who look at less

Endpoint = Callable[[Request], Awaitable[Response]]


def shown(endpoint: Endpoint) -> Endpoint:
    """An endpoint whose errors are pages, too."""

    @wraps(endpoint)
    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except (Problem, NoRegretError) as error:
            problem = problem_of(error)
            template = "refused.html" if request.headers.get("hx-request") else "error.html"
            return page(request, template, status=problem.status, sentence=problem.sentence, code=problem.status)

    return answer


async def _look(request: Request, see: Callable[[Study], R]) -> R:
    """What is seen of the study that the address names."""
    return await (await _worker(request)).read(see)


async def _worker(request: Request) -> StudyWorker:
    worker: StudyWorker = await request.app.state.workers.get(caller_of(request).tenant, _name(request))
    return worker


def _name(request: Request) -> str:
    return name_in(request.path_params["name"])


async def home(_: Request) -> Response:
    """The first page is the list of studies."""
    return RedirectResponse("/studies", 303)


@shown
async def studies(request: Request) -> Response:
    """All studies of the caller; what each has come to is looked at when its row is on the screen."""
    names = await _names(request)
    return page(request, "studies.html", names=names, known=_stamp(names), again=False)


@shown
async def studies_list(request: Request) -> Response:
    """The list, again; nothing where there are the same studies as before. Rows look for themselves what is new."""
    names = await _names(request)
    known = _stamp(names)
    if request.query_params.get("known") == known:
        return Response(status_code=204)
    return page(request, "list_again.html", names=names, known=known, again=True)


async def _names(request: Request) -> list[str]:
    workers, tenant = request.app.state.workers, caller_of(request).tenant
    return list(await workers.lookup(own_names, workers.storage, tenant, tenant=tenant))


def _stamp(names: list[str]) -> str:
    return hashlib.sha256("\0".join(names).encode("utf-8", "surrogatepass")).hexdigest()[:16]


async def row(request: Request) -> Response:
    """A line of that list; nothing where it says the same as before, and the reason where it cannot be told."""
    name, known = _name(request), request.query_params.get("known", "")

    def see(given: Study) -> dict[str, Any] | None:
        now = time.time()
        return None if unchanged(given, known, now=now) else standing(given, now=now)

    try:
        workers, tenant = request.app.state.workers, caller_of(request).tenant
        stored = await workers.summary(tenant, name)
        found = await _look(request, see) if stored is None else summed_up(*stored, now=time.time())
    except (Problem, NoRegretError) as error:
        problem = problem_of(error)
        return page(request, "row.html", status=problem.status, name=name, at=None, sentence=problem.sentence)
    return Response(status_code=204) if found is None else page(request, "row.html", name=name, at=found)


@shown
async def study(request: Request) -> Response:
    """A study: its head and its progress at once, the rest as soon as it is there."""
    query = dict(request.query_params)

    def see(given: Study) -> dict[str, Any]:
        return {
            "at": standing(given, now=time.time()), "facts": described(given), "picture": progress(given),
            "limited": is_limited(given),
        }  # fmt: skip

    return page(request, "study.html", name=_name(request), query=_again(query), **await _look(request, see))


@shown
async def head(request: Request) -> Response:
    """The head of a study's page, again; nothing where it says the same as before."""
    known = request.query_params.get("known", "")

    def see(given: Study) -> dict[str, Any] | None:
        now = time.time()
        return None if unchanged(given, known, now=now) else {"at": standing(given, now=now)}

    found = await _look(request, see)
    if found is None:
        return Response(status_code=204)
    moved = known.partition("_")[0] != found["at"]["known"].partition("_")[0]
    headers = {"HX-Trigger": "study-changed"} if moved else None
    return page(request, "head.html", headers=headers, name=_name(request), **found)


@shown
async def progress_part(request: Request) -> Response:
    """How it went."""
    return page(request, "figure.html", key="progress", picture=await _look(request, progress))


@shown
async def worth_part(request: Request) -> Response:
    """What learning cost, and what it is worth."""
    text = request.query_params.get("baseline", "")

    def see(given: Study) -> dict[str, Any]:
        try:
            return worth(given, baseline=_baseline(text)) | {"refused": ""}
        except InvalidInput as error:  # the form stays, and says so
            return worth(given) | {"refused": str(error)}

    found = await _look(request, see)
    return page(
        request, "worth.html", status=422 if found["refused"] else 200, name=_name(request), baseline=text, **found
    )


def _baseline(text: str) -> int | None:
    if text and not (text.isdecimal() and len(text) < LONGEST_NUMBER):
        raise InvalidInput(f"The trial to compare with is {text[:20]!r}: it must be the number of a trial.")
    return int(text) if text else None


@shown
async def beliefs_part(request: Request) -> Response:
    """The posterior, through a point and under a context that the form chooses."""
    query = dict(request.query_params)
    found = await _look(request, partial(beliefs, query=query))
    template = "pictures.html" if request.headers.get("hx-target") == "beliefs-pictures" else "beliefs.html"
    return page(request, template, name=_name(request), **found)


@shown
async def waits_part(request: Request) -> Response:
    """Pending and late answers."""
    found = await _look(request, partial(waits, now=time.time()))
    return page(request, "waits.html", name=_name(request), **found)


@shown
async def changes_part(request: Request) -> Response:
    """Restarts and the evidence."""
    return page(request, "changes.html", name=_name(request), changes=await _look(request, changes))


@shown
async def budgets_part(request: Request) -> Response:
    """What constraints have used, and what violating them costs."""
    return page(request, "budgets.html", name=_name(request), budgets=await _look(request, budgets))


@shown
async def trials(request: Request) -> Response:
    """The list of trials."""
    found = await _look(request, partial(listed, query=dict(request.query_params)))
    return page(request, "trials.html", name=_name(request), **found)


@shown
async def trial(request: Request) -> Response:
    """One trial: what is on record of it, and room for the reasons."""
    number = request.path_params["number"]
    found = await _look(request, lambda given: (one(given, number), len(given.trials)))
    if found[0] is None:
        raise Problem(404, "no_trial", f"There is no trial {number}: this study has {found[1]:,}, numbered from 0.")
    return page(request, "trial.html", name=_name(request), trial=found[0])


@shown
async def why(request: Request) -> Response:
    """Why it was chosen; that takes as long as playing the record again up to there."""
    number, state = request.path_params["number"], request.app.state
    if not hasattr(state, "explaining"):
        state.explaining = asyncio.Semaphore(EXPLAINING)
    async with state.explaining:
        found = await (await _worker(request)).explain(number)
    return page(request, "why.html", **reasons(found))


def _again(query: dict[str, str]) -> str:
    """A query as it came, for the parts of the page."""
    from urllib.parse import urlencode

    return urlencode(query)


ROUTES = [
    Route("/", home),
    Route("/studies", studies),
    Route("/list", studies_list),
    Route("/studies/{name}", study),
    Route("/studies/{name}/row", row),
    Route("/studies/{name}/head", head),
    Route("/studies/{name}/progress", progress_part),
    Route("/studies/{name}/worth", worth_part),
    Route("/studies/{name}/beliefs", beliefs_part),
    Route("/studies/{name}/waits", waits_part),
    Route("/studies/{name}/changes", changes_part),
    Route("/studies/{name}/budgets", budgets_part),
    Route("/studies/{name}/trials", trials),
    Route("/studies/{name}/trials/{number:int}", trial),
    Route("/studies/{name}/trials/{number:int}/why", why),
    Route("/static/{file:path}", files.static),
    Route("/favicon.ico", files.favicon),
]
