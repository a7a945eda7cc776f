"""Operations under /v1 on the arms, the space and the name of a study, its notes, and the points to try first."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from msgspec import Meta
from starlette.types import ASGIApp

from ..._utils.checks import LONGEST_NAME, new_study_name, shown
from ...algorithms.schema import parameter, within
from ...domains.domain import Arms, Space, changed_space, count_of_points
from ...domains.options import readable
from ...errors import InvalidInput
from ...policy.policy import Policy
from ...serialize import to_plain
from ...study.queue import Enqueued
from ...study.spaces import Arm
from ...study.study import Study
from ...study.transaction import Transaction
from ...study.visits import asked_of
from ..auth.tokens import OPERATOR, of_others, stored_name
from ..watch.audit import AuditEntry, audited, entries, note_writing
from ..wire import change_messages as c
from ..wire.decision_ids import IdempotentRequest
from ..wire.messages import NEW_PATTERN, Reply, Request
from ..wire.problems import Problem, about
from ..wire.settings import Limits
from ..work.study_notes import StudyNotes, as_trial_note, change_study
from ..work.workers import Action, Change, Recorded, StudyWorker
from .operations import AGAIN, Operation, ParsedRequest, ResponseInfo, Service, json_of
from .size_limits import check_arms, check_columns, check_posterior
from .write_routes import STUDY

ARMS = f"{STUDY}/arms"
ARM = ARMS + "/{arm:int}"


def _adding(body: c.ArmsRequest, request: IdempotentRequest, limits: Limits, worker: StudyWorker) -> Action:
    """Checks the size of the study with more arms, and returns the action that adds them."""
    new = body.arms
    places = [_place(arm) for arm in new]
    if len({type(place) for place in places}) > 1:
        raise InvalidInput("`arms`: give points or parameters, the same for all arms of one request.")
    names, facts = [arm.name for arm in new], [arm.about for arm in new]

    def action(transaction: Transaction) -> Recorded:
        reply = request.stored_reply(transaction)
        if reply is not None:
            listed = worker.study.replica.roster.listed()
            return Recorded([listed[number] for number in reply.numbers], again=True)
        about("arms", _check_size, worker.study.policy, places, limits)
        arms: list[Arm] = about("arms", transaction.add_arms, places, names, facts)
        request.store(transaction, [arm.number for arm in arms])
        return Recorded(arms, again=False)

    return action


def _check_size(policy: Any, places: list[Any], limits: Limits) -> None:
    """Refuses arms with which the study would be too large."""
    if not isinstance(policy, Policy) or not isinstance(policy.domain, Arms):
        return  # `Transaction.add_arms` refuses the policy
    contexts = 1 if policy.context is None else count_of_points(policy.context) or 1
    check_arms((len(policy.domain) + len(places)) * contexts, limits)
    check_posterior(policy.with_arms(policy.domain.with_more(places)), limits)


def _place(arm: c.NewArm) -> Any:
    if (arm.point is None) == (arm.parameters is None):
        raise InvalidInput("`arms`: each arm has either a `point` or `parameters`.")
    return arm.point if arm.parameters is None else arm.parameters


def arm_said(arm: Arm) -> c.ArmSaid:
    """Returns an arm as a reply."""
    return c.ArmSaid(arm.number, arm.point.tolist(), readable(arm.parameters), *arm[3:])


async def list_arms(service: Service, request: ParsedRequest) -> ASGIApp:
    """Returns all arms of a study."""
    worker = await request.worker(service)
    return json_of(c.ArmsSaid(await worker.read(lambda study: [arm_said(arm) for arm in study.arms])))


async def add_arms(service: Service, request: ParsedRequest) -> ASGIApp:
    """Adds arms to a study."""
    worker = await request.worker(service)
    idempotent = IdempotentRequest.of("arms", request.key, request.body)
    added = Change(partial(_adding, request.body, idempotent, service.settings.limits), idempotent.keys)
    what = ("add arms", {"arms": len(request.body.arms)})
    done: Recorded = await audited(worker, request.caller, service.clock(), what, lambda: worker.run(added))
    return json_of(c.ArmsSaid([arm_said(arm) for arm in done.value]), 201, AGAIN if done.again else ())


async def put_arm(service: Service, request: ParsedRequest) -> ASGIApp:
    """Describes an arm, and retires it or brings it back."""
    return await _changed(service, request, "change an arm", request.body)


async def retire_arm(service: Service, request: ParsedRequest) -> ASGIApp:
    """Retires an arm."""
    return await _changed(service, request, "retire-arm", c.ArmRequest(retired=True))


async def _changed(service: Service, request: ParsedRequest, action: str, body: c.ArmRequest) -> ASGIApp:
    worker, number = await request.worker(service), request.path["arm"]

    def change(transaction: Transaction) -> Arm:
        arm: Arm = about("arm", transaction.describe_arm, number, body.name, body.about)
        return arm if body.retired is None else transaction.move_arm(number, "retired" if body.retired else "restored")

    what = (action, {"arm": number, "name": body.name, "retired": body.retired})
    command = Change(lambda _: change)
    arm: Arm = await audited(worker, request.caller, service.clock(), what, lambda: worker.run(command))
    return json_of(arm_said(arm))


ARM_OPERATIONS = [
    Operation(
        method="GET", path=ARMS, name="arms", summary="List the arms of a study, with the retired ones.",
        handler=list_arms, answers={200: ResponseInfo("By number.", c.ArmsSaid)},
    ),
    Operation(
        method="POST", path=ARMS, name="addArms", summary="Add arms to a running study.",
        text="They get the next numbers, and the next decision may play them. What is known of similar arms is known "
        "of them at once. With an `Idempotency-Key` the same request again adds nothing.",
        handler=add_arms, body=c.ArmsRequest, repeatable=True, answers={201: ResponseInfo("Added.", c.ArmsSaid)},
    ),
    Operation(
        method="PUT", path=ARM, name="putArm", summary="Describe an arm, retire it or bring it back.",
        text="The same again changes nothing.", handler=put_arm, body=c.ArmRequest,
        answers={200: ResponseInfo("The arm.", c.ArmSaid)},
    ),
    Operation(
        method="DELETE", path=ARM, name="retireArm", summary="Retire an arm: no later decision plays it.",
        text="It keeps its number. What was learned of it still teaches about similar arms, and decisions that wait "
        "for its reward may be told. The same again changes nothing.",
        handler=retire_arm, answers={200: ResponseInfo("The arm.", c.ArmSaid)},
    ),
]  # fmt: skip


QUEUE = f"{STUDY}/enqueue"
ENTRY = QUEUE + "/{entry:int}"


def _enqueuing(body: c.EnqueueRequest, request: IdempotentRequest, worker: StudyWorker) -> Action:
    """Returns the action that enqueues points to try first."""
    points, replica = [_place_of(entry) for entry in body.entries], worker.study.replica

    def action(transaction: Transaction) -> Recorded:
        reply = request.stored_reply(transaction)
        if reply is not None:
            known = [replica.queue.entries[number] for number in reply.numbers]
            return Recorded([entry.told(replica.policy.domain) for entry in known], again=True)
        entries: list[Enqueued] = about("entries", transaction.enqueue, points)
        request.store(transaction, [entry.number for entry in entries])
        return Recorded(entries, again=False)

    return action


def _place_of(entry: c.NewEntry) -> Any:
    given = [each for each in (entry.parameters, entry.point, entry.arm) if each is not None]
    if len(given) != 1:
        raise InvalidInput("`entries`: each has exactly one of `parameters`, `point` and `arm`.")
    return given[0]


def entry_said(entry: Enqueued) -> c.EntrySaid:
    """Returns an entry as a reply."""
    named: Any = readable(entry.named)
    kind = {dict: "parameters", list: "point", int: "arm"}[type(named)]
    return c.EntrySaid(entry.number, entry.whole, entry.enqueued_at, **{kind: named})


def _waiting(study: Study) -> c.QueueSaid:
    return c.QueueSaid([entry_said(entry) for entry in study.enqueued])


async def list_entries(service: Service, request: ParsedRequest) -> ASGIApp:
    """Returns what waits to be tried."""
    worker = await request.worker(service)
    return json_of(await worker.read(_waiting))


async def enqueue(service: Service, request: ParsedRequest) -> ASGIApp:
    """Enqueues points to try first."""
    worker = await request.worker(service)
    idempotent = IdempotentRequest.of("enqueue", request.key, request.body)
    command = Change(partial(_enqueuing, request.body, idempotent), idempotent.keys)
    what = ("enqueue", {"entries": len(request.body.entries)})
    done: Recorded = await audited(worker, request.caller, service.clock(), what, partial(worker.run, command))
    return json_of(c.QueueSaid([entry_said(each) for each in done.value]), 201, AGAIN if done.again else ())


async def withdraw(service: Service, request: ParsedRequest) -> ASGIApp:
    """Takes an entry out of the queue, and returns what waits then."""
    worker, entry = await request.worker(service), request.path["entry"]
    command = Change(lambda _: lambda transaction: about("entry", transaction.withdraw, entry))
    what = ("withdraw", {"entry": entry})
    await audited(worker, request.caller, service.clock(), what, partial(worker.run, command))
    return json_of(await worker.read(_waiting))


def _widening(body: c.WidenRequest, request: IdempotentRequest, limits: Limits, worker: StudyWorker) -> Action:
    """Reads the parameters, and returns the action that changes a space of a study."""
    given = [(name, tables) for name in ("parameters", "context") if (tables := getattr(body, name)) is not None]
    if len(given) != 1:
        raise InvalidInput("A change is of `parameters` or of `context`: give exactly one of them.")
    ((entry, tables),) = given
    of_context = entry == "context"
    parameters = {name: within(f"{entry}.{name}", parameter, table) for name, table in tables.items()}

    def action(transaction: Transaction) -> Recorded:
        policy = worker.study.policy
        now = policy.context if of_context else policy.domain
        if request.stored_reply(transaction) is not None:
            return Recorded(to_plain(now), again=True)
        if isinstance(now, Space):
            about(entry, lambda: check_columns(changed_space(now, parameters), limits))
        space = about(entry, partial(transaction.widen, of_context=of_context), parameters, body.was)
        request.store(transaction, [])
        return Recorded(to_plain(space), again=False)

    return action


async def widen(service: Service, request: ParsedRequest) -> ASGIApp:
    """Records another space of a study, and returns it."""
    worker, idempotent = await request.worker(service), IdempotentRequest.of("widen", request.key, request.body)
    command = Change(partial(_widening, request.body, idempotent, service.settings.limits), idempotent.keys)
    what = ("widen", {"parameters": ", ".join(request.body.parameters or request.body.context or ())})
    done: Recorded = await audited(worker, request.caller, service.clock(), what, partial(worker.run, command))
    return json_of(c.SpaceSaid(done.value), 200, AGAIN if done.again else ())


async def forget(service: Service, request: ParsedRequest) -> ASGIApp:
    """Removes the link from a unit to its decisions. The audit log does not name the unit."""
    worker, unit = await request.worker(service), request.body.unit
    about("unit", asked_of, None, unit)
    command = Change(lambda _: lambda transaction: transaction.forget(unit))
    done = await audited(worker, request.caller, service.clock(), ("forget", {}), partial(worker.run, command))
    return json_of(c.Forgotten(done))


QUEUE_OPERATIONS = [
    Operation(
        method="POST", path=f"{STUDY}/forget", name="forget", summary="Forget a unit.",
        text="Nothing says any more whose its decisions are. They stay on record, and still belong together. The next "
        "decision for it is that of a new unit.",
        handler=forget, body=c.ForgetRequest, answers={200: ResponseInfo("It is forgotten.", c.Forgotten)},
    ),
    Operation(
        method="GET", path=QUEUE, name="enqueued", summary="List the points that wait to be tried first.",
        handler=list_entries, answers={200: ResponseInfo("In their order.", c.QueueSaid)},
    ),
    Operation(
        method="POST", path=QUEUE, name="enqueue", summary="Name points to try first.",
        text="Each is one of the next decisions, once, in this order, and marked `enqueued`. Of `parameters` some may "
        "be named alone: the policy chooses the others. With an `Idempotency-Key` the same request again adds nothing.",
        handler=enqueue, body=c.EnqueueRequest, repeatable=True,
        answers={201: ResponseInfo("They wait.", c.QueueSaid)},
    ),
    Operation(
        method="DELETE", path=ENTRY, name="withdraw", summary="Take a point out that waits to be tried first.",
        handler=withdraw, answers={200: ResponseInfo("What waits then.", c.QueueSaid)},
    ),
    Operation(
        method="POST", path=f"{STUDY}/widen", name="widen",
        summary="Change the space of a running study, or of its contexts.",
        text="Ranges become wider or narrower, choices get or lose options, and parameters may be new. Every trial so "
        "far still teaches, and a pending one may be told. If the space is so already, nothing is recorded. An option "
        "of a context that was unknown so far takes over the decisions that came with it.",
        handler=widen, body=c.WidenRequest, repeatable=True,
        answers={200: ResponseInfo("The space of now.", c.SpaceSaid)},
    ),
]  # fmt: skip


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
