"""Operations under /v1 on notes beside a study, on its name, and on its audit log."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from msgspec import Meta
from starlette.types import ASGIApp

from ..._utils.checks import LONGEST_NAME, new_study_name, shown
from ...errors import InvalidInput
from ..auth.tokens import OPERATOR, of_others, stored_name
from ..watch.audit import audited, entries, note_writing
from ..wire.messages import NEW_PATTERN, AuditEntry, Reply, Request
from ..wire.problems import Problem, about
from ..work.study_notes import StudyNotes, as_trial_note, change_study
from ..work.workers import StudyWorker
from .operations import Operation, ParsedRequest, ResponseInfo, Service, json_of
from .write_routes import STUDY

Text = Annotated[str, Meta(max_length=10_000)]
NewName = Annotated[
    str,
    Meta(min_length=1, max_length=LONGEST_NAME, description="A new name.", extra_json_schema={"pattern": NEW_PATTERN}),
]
Tag = Annotated[str, Meta(min_length=1, max_length=60)]


class StudyChangeRequest(Request, frozen=True):
    """Changes of a study that its policy does not see. Entries that are left out stay as they are."""

    name: NewName | None = None
    archived: Annotated[bool | None, Meta(description="Whether lists leave it out.")] = None
    paused: Annotated[bool | None, Meta(description="Whether the service refuses to decide.")] = None
    note: Text | None = None
    tags: Annotated[list[Tag], Meta(max_length=20)] | None = None


class StudyChanged(Reply, frozen=True):
    """The name and the notes of a study."""

    name: str
    archived: bool
    paused: bool
    note: str
    tags: list[str]


class TrialNoteRequest(Request, frozen=True):
    """A note on a trial. An empty one takes it back."""

    note: Text


class TrialNoted(Reply, frozen=True):
    """A trial and its note."""

    number: int
    note: str


class AuditLog(Reply, frozen=True):
    """The audit log of a study, the latest entry first."""

    entries: list[AuditEntry]
    more: bool


class AuditQuery(Request, frozen=True):
    """A part of the audit log."""

    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    before: Annotated[float | None, Meta(description="Unix seconds: only earlier entries.")] = None


async def update_study(service: Service, request: ParsedRequest) -> ASGIApp:
    """Updates the name and the notes of a study."""
    body = request.body
    worker = await service.workers.get(request.caller.tenant, request.path["name"], fresh=True)
    wanted: dict[str, Any] = {
        name: value for name in body.__struct_fields__ if (value := getattr(body, name)) is not None
    }
    act = partial(_updated, service, worker, wanted)
    return json_of(await audited(worker, request.caller, service.clock(), ("update", wanted), act))


async def _updated(service: Service, worker: StudyWorker, wanted: dict[str, Any]) -> StudyChanged:
    name = wanted.get("name", worker.name)
    notes = await service.workers.in_thread(_change, service, worker, wanted, name, tenant=worker.tenant)
    worker.notes = notes
    if name != worker.name:
        service.workers.forget(worker)
    return _said(name, notes)


def _change(service: Service, worker: StudyWorker, wanted: dict[str, Any], new: str) -> StudyNotes:
    storage, tenant = service.storage, worker.tenant
    if not new.strip() or (tenant == OPERATOR and of_others(storage, [new])):
        raise Problem(422, "invalid", "The name begins like those of another tenant, or is blank.", field="name")
    changes = {name: tuple(value) if name == "tags" else value for name, value in wanted.items() if name != "name"}
    before, after = (stored_name(storage, tenant, name) for name in (worker.name, new))
    if new != worker.name:
        about("name", new_study_name, "name", after)
    try:
        return change_study(storage, worker.stored, changes, name=before, new=after)
    except InvalidInput:
        said = f"There is a study {shown(new)} already, or this one was renamed meanwhile; nothing was changed."
        raise Problem(409, "conflict", said, field="name") from None


def _said(name: str, notes: StudyNotes) -> StudyChanged:
    return StudyChanged(name, notes.archived, notes.paused, notes.note, list(notes.tags))


async def note_trial(service: Service, request: ParsedRequest) -> ASGIApp:
    """Writes a note on a trial."""
    worker, number = await request.worker(service), request.path["number"]
    count = await worker.read(lambda study: len(study.trials))
    if number >= count:
        raise Problem(404, "no_decision", f"This study has no decision {number} so far.", field="number")
    text = request.body.note
    what = ("note on a trial", {"number": number, "note": text})
    command = note_writing(as_trial_note(number, text))
    await audited(worker, request.caller, service.clock(), what, partial(worker.run, command))
    return json_of(TrialNoted(number, text))


async def audit(service: Service, request: ParsedRequest) -> ASGIApp:
    """Returns the audit log of a study."""
    worker, query = await request.worker(service), request.query
    found, more = await worker.read(lambda _: entries(service.storage, worker, limit=query.limit, before=query.before))
    return json_of(AuditLog(found, more))


NOTE_OPERATIONS = [
    Operation(
        method="PATCH", path=STUDY, name="updateStudy", summary="Rename, archive, pause or annotate a study.",
        text="The policy sees none of it. A paused study answers asks with a 409, and takes rewards all the same. The "
        "same again changes nothing.",
        handler=update_study, body=StudyChangeRequest,
        answers={200: ResponseInfo("Its name and notes.", StudyChanged)},
    ),
    Operation(
        method="PUT", path=STUDY + "/trials/{number:int}/note", name="noteTrial", summary="Write a note on a trial.",
        handler=note_trial, body=TrialNoteRequest, answers={200: ResponseInfo("It is on record.", TrialNoted)},
    ),
    Operation(
        method="GET", path=STUDY + "/audit", name="audit", summary="What was done to the study by hand, by whom.",
        text="Making it, actions on the dashboard, and changes of its name, notes and arms. For admins.",
        handler=audit, query=AuditQuery, answers={200: ResponseInfo("The latest first.", AuditLog)},
    ),
]  # fmt: skip
