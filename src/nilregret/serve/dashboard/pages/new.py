"""Endpoints of the form that makes a study, by the same operation as the API."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from ...._utils.errors import InvalidInput, NoRegretError
from ...addresses import segment
from ...problems import Problem, problem_of
from ..rendering import page
from ..views.new_study import (
    ANSWERS,
    CONTEXTS,
    PARAMETERS,
    REWARDS,
    SENSES,
    TYPES,
    WAITING,
    code_of,
    request_of,
)
from .actions import called, given_of
from .common import base_of, with_error_pages


@with_error_pages
async def form(request: Request) -> Response:
    """Shows an empty form."""
    return _page(request, {})


@with_error_pages
async def make(request: Request) -> Response:
    """Shows the request that the form stands for, or sends it if it is confirmed."""
    given = await given_of(request)
    name = given.get("name", "").strip()
    try:
        if not name:
            raise InvalidInput("The study needs a name.")
        body = request_of(given)
    except InvalidInput as error:
        return _page(request, given, refused=str(error), status=422)
    if given.get("confirmed") != "yes":
        return _page(request, given, code=code_of(name, body, base_of(request)))
    try:
        await called(request, "PUT", f"/v1/studies/{segment(name)}", body, "")
    except (Problem, NoRegretError) as error:
        problem = problem_of(error)
        return _page(request, given, refused=problem.sentence, status=problem.status)
    return RedirectResponse(f"/studies/{segment(name)}/settings", 303)


def _page(request: Request, given: dict[str, str], *, status: int = 200, **more: Any) -> Response:
    base: dict[str, Any] = {"refused": "", "code": []}
    given = {key: value for key, value in given.items() if key != "confirmed"}
    return page(
        request, "new.html", status=status, given=given, types=TYPES, answers=ANSWERS, waiting=WAITING,
        rewards=REWARDS, senses=SENSES, parameters=PARAMETERS, contexts=CONTEXTS, **(base | more),
    )  # fmt: skip


ROUTES = [Route("/new", form, methods=["GET"]), Route("/new", make, methods=["POST"])]
