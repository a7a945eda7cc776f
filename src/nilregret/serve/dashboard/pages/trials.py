"""Endpoints of the tab Trials: the grid and its downloads, the record of a trial, and why it was chosen."""

from __future__ import annotations

import asyncio
import hashlib
import time
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ....errors import InvalidInput
from ....study.study import Study
from ...api.replies import download
from ...wire.problems import Problem
from ...work.collected import COLLECTED, Collected
from ...work.study_notes import notes_on_trials
from ..rendering import page
from ..views.grid import Query, as_csv, as_json, grid_view
from ..views.trials import explanation_view, rewards_view, trial_record
from .common import PART, STUDY, read, study_name, with_error_pages, worker_of
from .study import frame

EXPLAINING = 2  # concurrent replays, so that some reading threads stay free for cheaper pages
FILES = {"csv": (as_csv, "text/csv; charset=utf-8"), "json": (as_json, "application/json")}
KNOWN = "known"  # the entry of a live grid's query that tells what is shown already


async def _grid(request: Request, *, framed: bool) -> dict[str, Any]:
    """Returns the grid of the query with people's notes on its trials. A query that does not fit shows all trials."""
    query: Query = request.query_params.multi_items()
    worker = await worker_of(request)

    def view(opened: Study) -> dict[str, Any]:
        around = frame(opened, worker.notes, now=time.time()) if framed else {}
        try:
            return around | grid_view(opened, query)
        except InvalidInput as error:
            return around | grid_view(opened, []) | {"refused": str(error)}

    found = await worker.read(view)
    notes = await trial_notes(request, found["numbers"])
    shown = repr([notes, *(found[key] for key in ("rows", "heads", "all", "count", "pages", "refused"))])
    return found | {"written": notes, KNOWN: hashlib.sha256(shown.encode("utf-8", "replace")).hexdigest()[:16]}


async def trial_notes(request: Request, numbers: list[int]) -> dict[int, str]:
    """Returns the notes that people wrote on these trials of the study that the address names."""
    worker, workers = await worker_of(request), request.app.state.workers
    found: dict[int, str] = await workers.lookup(
        notes_on_trials, workers.storage, worker.stored, numbers, tenant=worker.tenant
    )
    return {number: text for number, text in found.items() if text}


@with_error_pages
async def trials(request: Request) -> Response:
    """Shows the tab: filters, and a page of the grid."""
    found = await _grid(request, framed=True)
    return page(request, "trials.html", status=_status(found), name=study_name(request), **found)


@with_error_pages
async def grid(request: Request) -> Response:
    """Shows a page of the grid alone, or answers 204 if a live grid would show nothing new."""
    found = await _grid(request, framed=False)
    known = request.query_params.get(KNOWN)
    if known == found[KNOWN]:
        return Response(status_code=204)
    shown = page(request, "grid.html", status=_status(found), name=study_name(request), **found)
    if known is None and request.headers.get("hx-current-url", "").partition("?")[0].endswith("/trials"):
        shown.headers["HX-Replace-Url"] = request.url.path.replace("/part/grid", "/trials") + "?" + found["query"]
    return shown


def _status(found: dict[str, Any]) -> int:
    return 422 if found["refused"] else 200


@with_error_pages
async def as_file(request: Request) -> Response:
    """Sends the trials that a query selects, all pages of them, as CSV or JSON."""
    query = request.query_params.multi_items()
    ending = request.path_params["ending"]
    if ending not in FILES:
        raise Problem(404, "no_page", "Trials are here as `trials.csv` and `trials.json`.")
    write, media = FILES[ending]
    worker = await worker_of(request)
    return await download(worker, f"trials.{ending}", media, lambda opened, path: write(opened, query, path))


@with_error_pages
async def trial(request: Request) -> Response:
    """Shows the record of a trial."""
    number = request.path_params["number"]
    found = await read(request, lambda opened: (trial_record(opened, number), len(opened.trials)))
    if found[0] is None:
        raise Problem(404, "no_trial", f"There is no trial {number}: this study has {found[1]:,}, numbered from 0.")
    note = (await trial_notes(request, [number])).get(number, "")
    rewards = rewards_view(await _collected(request, number))
    return page(request, "trial.html", name=study_name(request), trial=found[0], note=note, rewards=rewards)


async def _collected(request: Request, number: int) -> Collected:
    """Returns the rewards of a trial that came so far, in a study that collects several."""
    worker, workers = await worker_of(request), request.app.state.workers
    if worker.deadlines.rule.reward is None:
        return Collected()
    key = f"{COLLECTED}:{number}"
    found = await workers.lookup(workers.storage.read_notes, worker.stored, [key], tenant=worker.tenant)
    return Collected.of(found.get(key))


@with_error_pages
async def why(request: Request) -> Response:
    """Shows why a trial was chosen, which takes a replay of the record up to this trial."""
    number, state = request.path_params["number"], request.app.state
    if not hasattr(state, "explaining"):
        state.explaining = asyncio.Semaphore(EXPLAINING)
    async with state.explaining:
        found = await (await worker_of(request)).explain(number)
    return page(request, "why.html", **explanation_view(found))


ROUTES = [
    Route(f"{STUDY}/trials", trials),
    Route(f"{PART}/grid", grid),
    Route(f"{STUDY}/trials.{{ending}}", as_file),
    Route(f"{STUDY}/trials/{{number:int}}", trial),
    Route(f"{STUDY}/trials/{{number:int}}/why", why),
]
