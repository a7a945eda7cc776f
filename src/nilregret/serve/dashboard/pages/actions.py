"""Endpoints of actions: a form, its confirmation, and what came of it. Each action is an operation of the API."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Message

from ....errors import InvalidInput, NoRegretError
from ....storage import Storage
from ....study.study import Study
from ...auth.tokens import token_store
from ...watch.audit import AuditEntry, audited, entries
from ...wire.messages import segment
from ...wire.problems import Problem, problem_of
from ...work.workers import StudyWorker
from ..rendering import DID, caller_of, page
from ..views import forms
from ..views.pictures import short
from .common import STUDY, study_name, with_error_pages, worker_of
from .trials import trial_notes

FORM = "application/x-www-form-urlencoded"
MOST_ENTRIES, FORM_BYTES, KEY_BYTES = 400, 131_072, 16
ADDRESS_BYTES = 5000  # of values in an address, which stand in `Referer` too: headers have 16 KiB in all
AUDITED = (
    "trial-note",
    "retire-arm",
    "enqueue",
)  # actions whose operations keep the log themselves, as those by PATCH do
AUDIT_ROWS = 200
STALE = (
    "This form is of another study or action, or what it showed has changed meanwhile. Open it again, and send that."
)


def _action(request: Request) -> str:
    action: str = request.path_params["action"]
    if action not in forms.ACTIONS:
        raise Problem(404, "not_found", f"There is no action {action[:40]!r}.")
    return action


@with_error_pages
async def form(request: Request) -> Response:
    """Shows the form of an action, or asks for a confirmation if the address has the values of a sent form."""
    action, worker = _action(request), await worker_of(request, fresh=True)
    given = dict(request.query_params)
    return await (_confirmation if "seal" in given else _form)(request, worker, action, given)


@with_error_pages
async def act(request: Request) -> Response:
    """Goes to the confirmation of an action, or does it if it is confirmed. Both answers are redirections.

    So no page of a browser's history sends a form again. Values that are too long for an address, and an action that is
    refused, are answered at once.
    """
    action, worker = _action(request), await worker_of(request, fresh=True)
    given = await given_of(request)
    here = f"/studies/{segment(worker.name)}/actions/{action}"
    if given.get("confirmed") != "yes":
        query = urlencode(given)
        if "seal" in given and len(query) <= ADDRESS_BYTES:
            return RedirectResponse(f"{here}?{query}", 303)
        return await _confirmation(request, worker, action, given)
    there = await _there(request, worker, action, given)
    same = await worker.read(lambda study: _same(study, action, given, there))
    if there and same:
        return RedirectResponse(_after(worker, action, given), 303)  # a double click
    _check_seal(worker, action, given, there)
    try:
        wanted = await worker.read(lambda study: forms.call(study, action, given))
        done = await _done(request, worker, action, wanted, given.get("key", ""))
    except (Problem, NoRegretError) as error:
        return await _form(request, worker, action, given, refused=problem_of(error))
    return RedirectResponse(_after(worker, action, given, done), 303)


async def _form(
    request: Request, worker: StudyWorker, action: str, given: dict[str, str], *, refused: Problem | None = None
) -> Response:
    """Shows the fields of an action, with the sentence of a refusal: beside its field if this is of an objective."""
    status, sentence = (200, "") if refused is None else (refused.status, refused.sentence)
    if action in forms.SHOWING:
        try:
            await worker.read(lambda study: forms.number_of(study, given))
        except InvalidInput as error:
            sentence, status = ("", 200) if "trial" not in given else (str(error), 422)
            asked = [forms.trial_field(given)]
            return _page(request, worker, action, given, {}, status=status, fields=asked, refused=sentence, sends="get")
    there = await _there(request, worker, action, given)
    shown = await worker.read(lambda study: forms.fields(study, action, there | given))
    hidden = {"trial": given["trial"]} if action in forms.SHOWING else {}
    beside = [
        field["key"] for field in shown if field["beside"] and refused is not None and field["key"] == refused.field
    ]
    return _page(
        request, worker, action, given, there, status=status, fields=shown, hidden=hidden, refused=sentence,
        wrong="".join(beside),
    )  # fmt: skip


async def _confirmation(request: Request, worker: StudyWorker, action: str, given: dict[str, str]) -> Response:
    there = await _there(request, worker, action, given)
    _check_seal(worker, action, given, there)
    try:
        wanted = await worker.read(lambda study: forms.call(study, action, given))
    except InvalidInput as error:
        return await _form(request, worker, action, given, refused=Problem(422, "invalid", str(error)))
    except Problem as problem:
        return await _form(request, worker, action, given, refused=problem)
    hidden = {name: value for name, value in given.items() if name not in ("confirmed", "seal", "key")}
    return _page(request, worker, action, given, there, said=wanted.said, hidden=hidden, change=urlencode(hidden))


def _page(
    request: Request, worker: StudyWorker, action: str, given: dict[str, str], there: dict[str, str], *,
    status: int = 200, **more: Any,
) -> Response:  # fmt: skip
    base: dict[str, Any] = {
        "fields": [],
        "refused": "",
        "wrong": "",
        "said": "",
        "hidden": {},
        "change": "",
        "sends": "post",
    }
    return page(
        request, "action.html", status=status, name=study_name(request), action=action, which=forms.ACTIONS[action],
        seal=_seal(worker, action, there), key=given.get("key") or secrets.token_hex(KEY_BYTES), **(base | more),
    )  # fmt: skip


async def _there(request: Request, worker: StudyWorker, action: str, given: dict[str, str]) -> dict[str, str]:
    """Returns what is on record of that which an action replaces, by field of its form."""
    if action == "note":
        return {"note": worker.notes.note}
    if action == "tags":
        return {"tags": forms.tags_text(worker.notes.tags)}
    if action not in forms.SHOWING:
        return {}
    try:
        number = await worker.read(lambda study: forms.number_of(study, given))
    except InvalidInput:
        return {}
    if action == "trial-note":
        return {"note": (await trial_notes(request, [number])).get(number, "")}
    return await worker.read(lambda study: forms.answer_of(study, number))


def _same(study: Study, action: str, given: dict[str, str], there: dict[str, str]) -> bool:
    """Returns whether a form wants what is on record already."""
    try:
        return forms.call(study, action, given).body == forms.call(study, action, given | there).body
    except (InvalidInput, Problem):  # the record has no answer that could be typed
        return False


def _seal(worker: StudyWorker, action: str, there: dict[str, str]) -> str:
    return forms.seal(worker.stored.identity, action, there)


def _check_seal(worker: StudyWorker, action: str, given: dict[str, str], there: dict[str, str]) -> None:
    if not secrets.compare_digest(given.get("seal", "").encode(), _seal(worker, action, there).encode()):
        raise Problem(409, "conflict", STALE)


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


async def _done(request: Request, worker: StudyWorker, action: str, wanted: forms.Call, key: str) -> dict[str, Any]:
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
        key: of the form, or nothing. With the body it makes the `Idempotency-Key`.

    Raises:
        Problem: the operation was refused.
    """
    sent, received = json.dumps(body).encode(), list[Message]()
    headers = [(b"content-type", b"application/json")]
    if key:  # of a form, which may be sent with other values after a step back
        headers.append((b"idempotency-key", hashlib.sha256(key.encode() + b"\0" + sent).hexdigest().encode()))
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
        raise Problem(status, fault["kind"], fault["sentence"], field=forms.field_of(fault.get("field", "")))
    return reply


def _after(worker: StudyWorker, action: str, given: dict[str, str], done: Mapping[str, Any] | None = None) -> str:
    """Returns the address of the page that shows what an action did."""
    done = {} if done is None else done
    name = done.get("name", worker.name) if action == "rename" else worker.name
    number = done["decisions"][0]["number"] if "decisions" in done else done.get("number", given.get("trial"))
    at = "" if number is None else f"/trials/{number}"
    return f"/studies/{segment(name)}{at}?{DID}={action}"


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
