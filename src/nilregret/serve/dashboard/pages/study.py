"""Endpoints of a study's tabs: Overview, Health and Settings. Other tabs have modules of their own."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...._utils.checks import whole_in
from ....domains.domain import Arms
from ....policy.policy import Policy
from ....study.study import Study
from ...watch.signals import signals_of
from ...work.study_notes import StudyNotes
from ..rendering import caller_of, page
from ..views.curves import NO_CURVE, curves_view, reports
from ..views.front import front_view
from ..views.health import health
from ..views.progress import channels_of, progress
from ..views.settings import settings
from ..views.standing import next_step, standing, standing_status
from ..views.status import is_unchanged
from .common import PART, STUDY, Endpoint, base_of, part, read, study_name, with_error_pages, worker_of


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
        "at": at, "next": next_step(at), "signals": signals_of(study, now=time.time()),
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
]
