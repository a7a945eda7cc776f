"""Endpoints of actions: a form, its confirmation, and what came of it. Each action is an operation of the API."""

from __future__ import annotations

import hashlib
import json
import secrets
from typing import Any
from urllib.parse import parse_qsl, unquote

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Message

from ...._utils.errors import InvalidInput, NoRegretError
from ....storage import Storage
from ...addresses import segment
from ...audit import audited, entries
from ...auth.token_store import token_store
from ...note_messages import AuditEntry
from ...problems import Problem, problem_of
from ...worker import StudyWorker
from ..rendering import caller_of, page
from ..views.forms import ACTIONS, Call, call, fields, point_text, seal, tags_text
from ..views.pictures import short
from .common import STUDY, study_name, with_error_pages, worker_of

FORM = "application/x-www-form-urlencoded"
MOST_ENTRIES, FORM_BYTES, KEY_BYTES = 400, 131_072, 16
AUDITED = ("trial-note", "retire-arm")  # actions whose operations keep the log themselves, as those by PATCH do
AUDIT_ROWS = 200
STALE = "This form is of another study or action, or of notes that changed meanwhile. Open it again, and send that."


def _action(request: Request) -> str:
    action: str = request.path_params["action"]
    if action not in ACTIONS:
        raise Problem(404, "not_found", f"There is no action {action[:40]!r}.")
    return action


@with_error_pages
async def form(request: Request) -> Response:
    """Shows the form of an action."""
    action, worker = _action(request), await worker_of(request, fresh=True)
    given = {name: value[:200] for name, value in request.query_params.items()}
    return await _form(request, worker, action, given)


async def _form(
    request: Request, worker: StudyWorker, action: str, given: dict[str, str], *, refused: str = "", status: int = 200
) -> Response:
    if action in ("note", "tags") and action not in given:
        given = given | {"note": worker.notes.note, "tags": tags_text(worker.notes.tags)}
    shown = await worker.read(lambda study: fields(study, action, given))
    return _page(request, worker, action, given, status=status, fields=shown, refused=refused)


def _page(
    request: Request, worker: StudyWorker, action: str, given: dict[str, str], *, status: int = 200, **more: Any
) -> Response:
    base: dict[str, Any] = {"fields": [], "refused": "", "said": "", "done": "", "hidden": {}, "next": None}
    return page(
        request, "action.html", status=status, name=study_name(request), action=action, which=ACTIONS[action],
        seal=_seal(worker, action), key=given.get("key") or secrets.token_hex(KEY_BYTES),
        **(base | more),
    )  # fmt: skip


def _seal(worker: StudyWorker, action: str) -> str:
    return seal(worker.stored.identity, action, worker.notes if action in ("note", "tags") else None)


@with_error_pages
async def act(request: Request) -> Response:
    """Asks for a confirmation of an action, or does it if it is confirmed."""
    action, worker = _action(request), await worker_of(request, fresh=True)
    given = await given_of(request)
    if not secrets.compare_digest(given.get("seal", "").encode(), _seal(worker, action).encode()):
        raise Problem(409, "conflict", STALE)
    try:
        wanted = await worker.read(lambda study: call(study, action, given))
    except InvalidInput as error:
        return await _form(request, worker, action, given, refused=str(error), status=422)
    if given.get("confirmed") != "yes":
        hidden = {name: value for name, value in given.items() if name not in ("confirmed", "seal", "key")}
        return _page(request, worker, action, given, said=wanted.said, hidden=hidden)
    try:
        done = await _done(request, worker, action, wanted, given.get("key", ""))
    except (Problem, NoRegretError) as error:
        problem = problem_of(error)
        return await _form(request, worker, action, given, refused=problem.sentence, status=problem.status)
    decided = [f" It chose {point_text(each)}." for each in done.get("decisions", [])]
    said = "".join([wanted.said, *decided])
    return _page(request, worker, action, given, done=said, next=_next(worker, wanted, done))


async def given_of(request: Request) -> dict[str, str]:
    """Returns the entries of a sent form, each of which stands in it once.

    Raises:
        Problem: the body is no form.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await request.body()
    if kind != FORM or len(body) > FORM_BYTES:
        raise Problem(415, "form", "An action takes the form of its page.")
    try:
        pairs = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, strict_parsing=bool(body), max_num_fields=MOST_ENTRIES,
            errors="strict",
        )  # fmt: skip
    except ValueError:  # no ASCII, no UTF-8, or too many entries
        raise Problem(400, "form", "The form cannot be read.") from None
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Problem(400, "form", "An entry stands twice in the form.")
    return found


async def _done(request: Request, worker: StudyWorker, action: str, wanted: Call, key: str) -> dict[str, Any]:
    """Calls the operation of the API in the caller's name, and returns its reply."""
    service, caller = request.app.state.service, caller_of(request)
    path = wanted.path
    if wanted.trial is not None:
        path = path.replace("{id}", service.ids.of(caller.tenant, worker.stored, wanted.trial))

    async def send() -> dict[str, Any]:
        return await called(request, wanted.method, f"/v1/studies/{segment(worker.name)}{path}", wanted.body, key)

    if action in AUDITED or wanted.method == "PATCH":
        return await send()
    what = (action, wanted.body | ({} if wanted.trial is None else {"trial": wanted.trial}))
    return await audited(worker, caller, service.clock(), what, send)


async def called(request: Request, method: str, path: str, body: dict[str, Any], key: str) -> dict[str, Any]:
    """Returns the reply of an operation of the API, called in the caller's name.

    Args:
        request: of a page.
        method: of HTTP.
        path: of the operation.
        body: JSON.
        key: `Idempotency-Key`, or nothing.

    Raises:
        Problem: the operation was refused.
    """
    sent, received = json.dumps(body).encode(), list[Message]()
    headers = [(b"content-type", b"application/json")]
    if key:
        headers.append((b"idempotency-key", hashlib.sha256(key.encode()).hexdigest().encode()))
    scope = {
        **{name: request.scope[name] for name in request.scope if name not in ("path_params", "endpoint", "route")},
        "method": method, "path": unquote(path), "raw_path": path.encode(), "query_string": b"", "headers": headers,
    }  # fmt: skip

    async def receive() -> Message:
        return {"type": "http.request", "body": sent, "more_body": False}

    async def send(message: Message) -> None:
        received.append(message)

    await request.app.state.api(scope, receive, send)
    status = received[0]["status"]
    reply: dict[str, Any] = msgspec.json.decode(b"".join(message.get("body", b"") for message in received))
    if status >= 400:
        fault = reply["error"]
        raise Problem(status, fault["kind"], fault["sentence"])
    return reply


def _next(worker: StudyWorker, wanted: Call, done: dict[str, Any]) -> tuple[str, str] | None:
    """Returns an address to go to and its name."""
    name = done.get("name", worker.name) if wanted.method == "PATCH" else worker.name
    here = f"/studies/{segment(name)}"
    if "decisions" in done:
        number = done["decisions"][0]["number"]
        return f"{here}/trials/{number}", f"Trial {number}"
    number = done.get("number")
    return (here, "Back to the study") if number is None else (f"{here}/trials/{number}", f"Trial {number}")


@with_error_pages
async def audit(request: Request) -> Response:
    """Shows the audit log of a study."""
    worker, storage = await worker_of(request), request.app.state.workers.storage
    found, more = await worker.read(lambda _: entries(storage, worker, limit=AUDIT_ROWS, before=None))
    rows = [(entry, _arguments(entry)) for entry in found]
    abouts = await request.app.state.workers.lookup(_abouts, storage, caller_of(request).tenant)
    return page(request, "audit.html", name=study_name(request), rows=rows, more=more, abouts=abouts)


def _abouts(storage: Storage, tenant: str) -> dict[str, str]:
    """Returns what the tokens of a tenant are for, by their ids."""
    return {each.id: each.about for each in token_store(storage).records()[0] if each.tenant == tenant and each.about}


def _arguments(entry: AuditEntry) -> str:
    return "; ".join(f"{name}: {_said(value)}" for name, value in entry.arguments.items())[:400]


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(_said, value)) or "none" if isinstance(value, list) else short(value)


ROUTES = [
    Route(f"{STUDY}/actions/{{action}}", form, methods=["GET"]),
    Route(f"{STUDY}/actions/{{action}}", act, methods=["POST"]),
    Route(f"{STUDY}/audit", audit),
]
