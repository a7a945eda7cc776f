"""Endpoints of the list of studies, of their comparison, and of the form that makes a study by an operation of the API.

The list comes from stored summaries, without opening a study.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from ....errors import InvalidInput, NoRegretError
from ...auth.tokens import own_among, own_names
from ...wire.messages import segment
from ...wire.problems import Problem, problem_of
from ...work.study_notes import notes_of
from ...work.workers import NotesStorage
from ..rendering import caller_of, page
from ..views import new_study
from ..views.compared import FEWEST, MOST, StudyFacts, compared_view, facts_of
from ..views.studies_list import DAYS, LATEST, SORTS, STATES, Wanted, digest, items_of, listed, objectives_of, row
from .actions import ADDRESS_BYTES, called, given_of
from .common import base_of, with_error_pages


@with_error_pages
async def form(request: Request) -> Response:
    """Shows an empty form, or the request that the values in the address stand for."""
    given = dict(request.query_params)
    return _shown(request, given) if given else _page(request, {})


@with_error_pages
async def make(request: Request) -> Response:
    """Goes to the request that the form stands for, or sends it if it is confirmed. Both answers are redirections.

    What is too long for an address, and a request that is refused, are answered at once.
    """
    given = {key: value for key, value in (await given_of(request)).items() if value}
    if given.pop("confirmed", "") != "yes":
        query = urlencode(given)
        fits = 0 < len(query) <= ADDRESS_BYTES
        return RedirectResponse(f"/new?{query}", 303) if fits else _shown(request, given)
    try:
        name, body = _wanted(given)
        await called(request, "PUT", f"/v1/studies/{segment(name)}", body, "")
    except (Problem, NoRegretError) as error:
        problem = problem_of(error)
        return _page(request, given, refused=problem.sentence, status=problem.status)
    return RedirectResponse(f"/studies/{segment(name)}/settings", 303)


def _wanted(given: dict[str, str]) -> tuple[str, dict[str, Any]]:
    """Returns the name of the study and the request that makes it.

    Raises:
        InvalidInput: a value cannot be used.
    """
    name = given.get("name", "").strip()
    if not name:
        raise InvalidInput("The study needs a name.")
    return name, new_study.request_of(given)


def _shown(request: Request, given: dict[str, str]) -> Response:
    try:
        name, body = _wanted(given)
    except InvalidInput as error:
        return _page(request, given, refused=str(error), status=422)
    except Problem as problem:
        return _page(request, given, refused=problem.sentence, wrong=problem.field, status=422)
    return _page(request, given, code=new_study.code_of(name, body, base_of(request)))


def _page(request: Request, given: dict[str, str], *, status: int = 200, **more: Any) -> Response:
    base: dict[str, Any] = {"refused": "", "wrong": "", "code": []}
    return page(
        request, "new.html", status=status, given=given, types=new_study.TYPES, answers=new_study.ANSWERS,
        waiting=new_study.WAITING, rewards=new_study.REWARDS, senses=new_study.SENSES, goals=new_study.GOALS,
        parameters=new_study.PARAMETERS, contexts=new_study.CONTEXTS, each=new_study.EACH, rules=new_study.RULES,
        objectives=new_study.OBJECTIVES, counting=new_study.COUNTING, collecting=new_study.COLLECTING, **(base | more),
    )  # fmt: skip


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


async def home(_: Request) -> Response:
    """Redirects to the list of studies."""
    return RedirectResponse("/studies", 303)


@with_error_pages
async def studies(request: Request) -> Response:
    """Shows the studies of the caller that the query asks for."""
    return page(request, "studies.html", **await _list(request))


@with_error_pages
async def studies_list(request: Request) -> Response:
    """Shows the list again, or answers 204 if it is the same."""
    found = await _list(request)
    if request.query_params.get("known") == found["known"]:
        return Response(status_code=204)
    return page(request, "list.html", **found)


async def _list(request: Request) -> dict[str, Any]:
    query = {name: value for name, value in request.query_params.items() if name != "known"}
    wanted = Wanted.of(query)
    workers, tenant = request.app.state.workers, caller_of(request).tenant
    rows, facts = await workers.lookup(_rows, workers.storage, tenant, wanted, tenant=tenant)
    others = urlencode([(name, value) for name, value in query.items() if name != "page" and value])
    return {
        "rows": rows, "facts": facts, "known": digest(rows, facts), "wanted": wanted, "query": others,
        "states": STATES, "ages": DAYS, "sorts": SORTS,
    }  # fmt: skip


def _rows(storage: NotesStorage, tenant: str, wanted: Wanted) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    now, studies = time.time(), {study.name: study for study in storage.listed()}
    own = [(name, studies[stored]) for name, stored in own_among(storage, list(studies), tenant).items()]
    notes = notes_of(storage, [study for _, study in own])
    items = items_of(storage, own, notes, now=now)
    shown, facts = listed(items, wanted, now=now)
    outcomes = storage.latest([item.stored.id for item in shown], LATEST)
    return [
        row(item, [each.reward for each in outcomes.get(item.stored.id, [])], objectives_of(storage, item))
        for item in shown
    ], facts


async def api(request: Request) -> Response:
    """Shows the OpenAPI document."""
    return page(request, "api.html", api=json.loads(request.app.state.openapi))


ROUTES = [
    Route("/", home),
    Route("/studies", studies),
    Route("/list", studies_list),
    Route("/docs", api),
    Route("/compare", compare),
    Route("/new", form, methods=["GET"]),
    Route("/new", make, methods=["POST"]),
]
