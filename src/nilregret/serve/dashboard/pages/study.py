"""Endpoints of a study's tabs: Overview, Explore, Health, Settings and Worth. The tab Trials has its own module."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...._utils.checks import whole_in
from ....domains.domain import Arms
from ....errors import InvalidInput
from ....evaluation.estimators import ESTIMATORS
from ....policy.policy import Policy
from ....study.study import Study
from ...api.read_routes import evaluated, policy_of
from ...watch.signals import signals_of
from ...wire.advice import sentence_of
from ...work.study_notes import StudyNotes
from ..rendering import caller_of, page
from ..views.explored import importance_view, parallel_view
from ..views.front import front_view
from ..views.health import health
from ..views.pictures import has_front, one_reward_alone
from ..views.posterior import posterior_view
from ..views.progress import NO_CURVE, channels_of, curves_view, progress, reports
from ..views.settings import settings
from ..views.standing import next_step, standing, standing_status
from ..views.status import is_unchanged
from ..views.value_of_learning import ADDRESS, evaluation_request, evaluation_view, recorded, value_view
from .common import PART, STUDY, Endpoint, base_of, part, read, study_name, with_error_pages, worker_of


@with_error_pages
async def beliefs(request: Request) -> Response:
    """Shows the posterior through a point and under a context, both chosen by a form."""
    query = dict(request.query_params)
    found = await read(request, partial(posterior_view, query=query))
    template = "pictures.html" if request.headers.get("hx-target") == "beliefs-pictures" else "beliefs.html"
    return page(request, template, name=study_name(request), **found)


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


def tab(template: str, view: Callable[[Study, dict[str, str]], dict[str, Any]]) -> Endpoint:
    """Returns an endpoint that shows a tab of a study: its status, and a view given the query of the address."""

    @with_error_pages
    async def endpoint(request: Request) -> Response:
        query = dict(request.query_params)
        worker = await worker_of(request)
        found = await worker.read(lambda opened: frame(opened, worker.notes, now=time.time()) | view(opened, query))
        return page(request, template, name=study_name(request), **found)

    return endpoint


def _progress(study: Study, query: dict[str, str]) -> dict[str, Any]:
    """Returns the picture of all trials, or of those between two places."""
    first, last = (whole_in(query.get(name, "")) for name in ("from", "to"))
    between = None if first is None or last is None else (float(first), float(last))
    return progress(study, between=between, key=query.get("channel", ""))


def _overview(study: Study, query: dict[str, str]) -> dict[str, Any]:
    shown = {
        "picture": progress(study),
        "channels": channels_of(study, ""),
        "curves": curves_view(study) or (NO_CURVE if reports(study) else None),
    }
    return shown | front_view(study, query)


def frame(study: Study, notes: StudyNotes, *, now: float) -> dict[str, Any]:
    """Returns what each tab may show: the status of the study, the next step, and its signals."""
    at = standing_status(study, now=now, paused=notes.paused)
    return {
        "at": at, "next": next_step(study, at), "signals": signals_of(study, now=time.time()),
        "notes": notes, "of_arms": isinstance(study.policy, Policy) and isinstance(study.policy.domain, Arms),
    }  # fmt: skip


@with_error_pages
async def signals(request: Request) -> Response:
    """Shows the signals of a study."""
    found = await read(request, lambda opened: signals_of(opened, now=time.time()))
    return page(request, "signals.html", name=study_name(request), signals=found)


@with_error_pages
async def head(request: Request) -> Response:
    """Shows the state of a study again, which every tab has at its top, or answers 204 if nothing has changed."""
    known, worker = request.query_params.get("known", ""), await worker_of(request)
    paused = worker.notes.paused

    def view(opened: Study) -> dict[str, Any] | None:
        now = time.time()
        if is_unchanged(opened, known, now=now, paused=paused):
            return None
        return {"at": standing_status(opened, now=now, paused=paused)}

    found = await worker.read(view)
    if found is None:
        return Response(status_code=204)
    return page(request, "live.html", headers={"HX-Trigger": "study-changed"}, name=study_name(request), **found)


@with_error_pages
async def standing_part(request: Request) -> Response:
    """Shows where a study stands, with the verdict whether it has settled."""
    worker = await worker_of(request)
    found = await worker.read(lambda opened: standing(opened, now=time.time(), paused=worker.notes.paused))
    return page(request, "standing.html", name=study_name(request), **found)


@with_error_pages
async def settings_tab(request: Request) -> Response:
    """Shows the settings of a study, with code to go on with it. The place of the storage is for local callers."""
    worker, caller = await worker_of(request), caller_of(request)
    url = getattr(request.app.state.workers.storage, "url", None) if caller.token is None else None
    base, name = base_of(request), study_name(request)
    found = await worker.read(
        lambda opened: frame(opened, worker.notes, now=time.time()) | settings(opened, name, worker.stored, base, url)
    )
    return page(request, "settings.html", name=name, **found)


ROUTES = [
    Route(STUDY, tab("overview.html", _overview)),
    Route(f"{STUDY}/health", tab("health.html", lambda opened, _: health(opened, now=time.time()))),
    Route(f"{PART}/health", tab("health_parts.html", lambda opened, _: health(opened, now=time.time()))),
    Route(f"{STUDY}/settings", settings_tab),
    Route(f"{PART}/head", head),
    Route(f"{PART}/signals", signals),
    Route(f"{PART}/standing", standing_part),
    part("progress", "figure.html", lambda opened, query: {"key": "progress", "picture": _progress(opened, query)}),
    part("curves", "figure.html", lambda opened, _: {"key": "curves", "picture": curves_view(opened) or NO_CURVE}),
    part("front", "front.html", front_view),
    part("front-now", "front_now.html", front_view),
    Route(f"{STUDY}/worth", tab("worth.html", lambda _, query: {"query": urlencode(query)})),
    Route(f"{PART}/worth", worth),
    Route(f"{PART}/evaluation", evaluation),
    Route(f"{STUDY}/explore", tab("explore.html", lambda _, query: {"query": urlencode(query)})),
    Route(f"{PART}/beliefs", beliefs),
    part("importance", "importance.html", lambda opened, query: importance_view(opened, query.get("channel", ""))),
    part("parallel", "parallel.html", lambda opened, _: parallel_view(opened)),
]
