"""Endpoints of the form that makes a study, by the same operation as the API."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from ....errors import InvalidInput, NoRegretError
from ...wire.messages import segment
from ...wire.problems import Problem, problem_of
from ..rendering import page
from ..views.new_study import (
    ANSWERS,
    COLLECTING,
    CONTEXTS,
    COUNTING,
    EACH,
    GOALS,
    OBJECTIVES,
    PARAMETERS,
    REWARDS,
    RULES,
    SENSES,
    TYPES,
    WAITING,
    code_of,
    request_of,
)  # fmt: skip
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
    return name, request_of(given)


def _shown(request: Request, given: dict[str, str]) -> Response:
    try:
        name, body = _wanted(given)
    except InvalidInput as error:
        return _page(request, given, refused=str(error), status=422)
    except Problem as problem:
        return _page(request, given, refused=problem.sentence, wrong=problem.field, status=422)
    return _page(request, given, code=code_of(name, body, base_of(request)))


def _page(request: Request, given: dict[str, str], *, status: int = 200, **more: Any) -> Response:
    base: dict[str, Any] = {"refused": "", "wrong": "", "code": []}
    return page(
        request, "new.html", status=status, given=given, types=TYPES, answers=ANSWERS, waiting=WAITING,
        rewards=REWARDS, senses=SENSES, parameters=PARAMETERS, contexts=CONTEXTS, goals=GOALS, each=EACH,
        objectives=OBJECTIVES, rules=RULES, counting=COUNTING, collecting=COLLECTING, **(base | more),
    )  # fmt: skip


ROUTES = [Route("/new", form, methods=["GET"]), Route("/new", make, methods=["POST"])]
