"""Endpoints of the tab Worth: what learning has cost, and what it has gained."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...._utils.checks import whole_in
from ....errors import InvalidInput
from ....evaluation.estimators import ESTIMATORS
from ....study.study import Study
from ...api.evaluations import evaluated, policy_of
from ...wire.advice import sentence_of
from ..rendering import caller_of, page
from ..views.evaluation import ADDRESS, evaluation_request, evaluation_view, recorded
from ..views.pictures import has_front, one_reward_alone
from ..views.value_of_learning import value_view
from .common import PART, STUDY, read, study_name, with_error_pages
from .study import tab

WHY_NOT = (
    'its decisions have no recorded probabilities. Studies on arms record them if they are put with `"propensities": '
    "true`."
)


@with_error_pages
async def worth(request: Request) -> Response:
    """Shows what learning has cost and gained."""
    text = request.query_params.get("baseline", "")

    def view(opened: Study) -> dict[str, Any]:
        try:
            return value_view(opened, baseline=_baseline(text)) | {"refused": ""}
        except InvalidInput as error:  # The form stays on the page and shows the error.
            return value_view(opened) | {"refused": str(error)}

    found = await read(request, view)
    status = 422 if found["refused"] else 200
    return page(request, "value.html", status=status, name=study_name(request), baseline=text, **found)


def _baseline(text: str) -> int | None:
    number = whole_in(text)
    if text and (number is None or number < 0):
        raise InvalidInput(f"The trial to compare with is {text[:20]!r}: it must be the number of a trial.")
    return number


@with_error_pages
async def evaluation(request: Request) -> Response:
    """Shows what another policy would have earned, and a form that names the policy."""
    query = {name: request.query_params.get(name, "") for name in ADDRESS}
    asked = bool(query["policy"].strip() or query["like"].strip())
    other = await _policy_of(request, query["like"].strip())

    def view(opened: Study) -> dict[str, Any]:
        why_not = one_reward_alone(opened, "what another policy would have earned") or WHY_NOT
        known = recorded(opened) and not has_front(opened)
        if not (known and asked):
            return {"recorded": known, "why_not": why_not, "result": None}
        said = evaluation_request(query | ({"policy": "best"} if other is not None else {}))
        limits = request.app.state.service.settings.limits
        policy = policy_of(limits, said.policy) if other is None else other
        return {"recorded": True, "result": evaluation_view(evaluated(opened, policy, said), opened.goals[0])}

    refused = ""
    try:
        found = await read(request, view)
    except InvalidInput as error:  # The form stays on the page and shows the error.
        found, refused = {"recorded": True, "result": None}, sentence_of(error)
    return page(
        request, "evaluation.html", status=422 if refused else 200, name=study_name(request), query=query,
        estimators=ESTIMATORS, refused=refused, **found,
    )  # fmt: skip


async def _policy_of(request: Request, name: str) -> Any:
    """Returns the policy of another study of the caller, or None without a name."""
    if not name:
        return None
    other = await request.app.state.workers.get(caller_of(request).tenant, name)
    return other.study.policy


ROUTES = [
    Route(f"{STUDY}/worth", tab("worth.html", lambda _, query: {"query": urlencode(query)})),
    Route(f"{PART}/worth", worth),
    Route(f"{PART}/evaluation", evaluation),
]
