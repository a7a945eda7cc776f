"""Operations under /v1 on the points to try first, and on the space of a running study."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple, final

from starlette.types import ASGIApp

from ...algorithms.schema import parameter, within
from ...domains.changed import changed_space
from ...domains.domain import Space
from ...domains.options import readable
from ...errors import InvalidInput
from ...serialize import to_plain
from ...study.queue import Enqueued
from ...study.study import Study
from ...study.transaction import Transaction
from ..watch.audit import audited
from ..wire import messages as m
from ..wire.decision_ids import IdempotentRequest
from ..wire.limits import Limits
from ..wire.problems import about
from ..work.worker import Action, StudyWorker
from .operations import AGAIN, Operation, ParsedRequest, ResponseInfo, Service, json_of
from .size_limits import check_columns
from .write_routes import STUDY

QUEUE = f"{STUDY}/enqueue"
ENTRY = QUEUE + "/{entry:int}"


class EnqueueResult(NamedTuple):
    """Result of `Enqueue`: the entries, and whether the request is a retry."""

    entries: list[Enqueued]
    again: bool


@final
class Enqueue(NamedTuple):
    """Enqueues points to try first."""

    body: m.EnqueueRequest
    request: IdempotentRequest

    def note_keys(self, worker: StudyWorker) -> list[str]:  # noqa: ARG002
        """Returns the key of the note about the request."""
        return [] if self.request.key is None else [self.request.key]

    def prepare(self, worker: StudyWorker) -> Action:
        """Returns the action that enqueues the points."""
        points, replica = [_place(entry) for entry in self.body.entries], worker.study.replica

        def action(transaction: Transaction) -> EnqueueResult:
            reply = self.request.stored_reply(transaction)
            if reply is not None:
                known = [replica.queue.entries[number] for number in reply.numbers]
                return EnqueueResult([entry.told(replica.policy.domain) for entry in known], again=True)
            entries: list[Enqueued] = about("entries", transaction.enqueue, points)
            self.request.store(transaction, [entry.number for entry in entries])
            return EnqueueResult(entries, again=False)

        return action


@final
class Withdraw(NamedTuple):
    """Takes an entry out of the queue."""

    entry: int

    def note_keys(self, worker: StudyWorker) -> list[str]:  # noqa: ARG002
        """Returns no keys."""
        return []

    def prepare(self, worker: StudyWorker) -> Action:  # noqa: ARG002
        """Returns the action that takes the entry out."""
        return lambda transaction: about("entry", transaction.withdraw, self.entry)


def _place(entry: m.NewEntry) -> Any:
    given = [each for each in (entry.parameters, entry.point, entry.arm) if each is not None]
    if len(given) != 1:
        raise InvalidInput("`entries`: each has exactly one of `parameters`, `point` and `arm`.")
    return given[0]


def entry_said(entry: Enqueued) -> m.EntrySaid:
    """Returns an entry as a reply."""
    named: Any = readable(entry.named)
    kind = {dict: "parameters", list: "point", int: "arm"}[type(named)]
    return m.EntrySaid(entry.number, entry.whole, entry.enqueued_at, **{kind: named})


def _waiting(study: Study) -> m.QueueSaid:
    return m.QueueSaid([entry_said(entry) for entry in study.enqueued])


async def list_entries(service: Service, request: ParsedRequest) -> ASGIApp:
    """Returns what waits to be tried."""
    worker = await request.worker(service)
    return json_of(await worker.read(_waiting))


async def enqueue(service: Service, request: ParsedRequest) -> ASGIApp:
    """Enqueues points to try first."""
    worker = await request.worker(service)
    command = Enqueue(request.body, IdempotentRequest.of("enqueue", request.key, request.body))
    what = ("enqueue", {"entries": len(request.body.entries)})
    done: EnqueueResult = await audited(worker, request.caller, service.clock(), what, partial(worker.run, command))
    return json_of(m.QueueSaid([entry_said(each) for each in done.entries]), 201, AGAIN if done.again else ())


async def withdraw(service: Service, request: ParsedRequest) -> ASGIApp:
    """Takes an entry out of the queue, and returns what waits then."""
    worker, command = await request.worker(service), Withdraw(request.path["entry"])
    what = ("withdraw", {"entry": command.entry})
    await audited(worker, request.caller, service.clock(), what, partial(worker.run, command))
    return json_of(await worker.read(_waiting))


class WidenResult(NamedTuple):
    """Result of `Widen`: the space of now, and whether the request is a retry."""

    space: Any
    again: bool


@final
class Widen(NamedTuple):
    """Changes the space of a study."""

    body: m.WidenRequest
    request: IdempotentRequest
    limits: Limits

    def note_keys(self, worker: StudyWorker) -> list[str]:  # noqa: ARG002
        """Returns the key of the note about the request."""
        return [] if self.request.key is None else [self.request.key]

    def prepare(self, worker: StudyWorker) -> Action:
        """Reads the parameters, and returns the action that changes the space."""
        parameters = {
            name: within(f"parameters.{name}", parameter, table) for name, table in self.body.parameters.items()
        }

        def action(transaction: Transaction) -> WidenResult:
            domain = worker.study.policy.domain
            if self.request.stored_reply(transaction) is not None:
                return WidenResult(to_plain(domain), again=True)
            if isinstance(domain, Space):
                about("parameters", lambda: check_columns(changed_space(domain, parameters), self.limits))
            space = about("parameters", transaction.widen, parameters, self.body.was)
            self.request.store(transaction, [])
            return WidenResult(to_plain(space), again=False)

        return action


async def widen(service: Service, request: ParsedRequest) -> ASGIApp:
    """Records another space of a study, and returns it."""
    worker, idempotent = await request.worker(service), IdempotentRequest.of("widen", request.key, request.body)
    command = Widen(request.body, idempotent, service.settings.limits)
    what = ("widen", {"parameters": ", ".join(request.body.parameters)})
    done: WidenResult = await audited(worker, request.caller, service.clock(), what, partial(worker.run, command))
    return json_of(m.SpaceSaid(done.space), 200, AGAIN if done.again else ())


QUEUE_OPERATIONS = [
    Operation(
        method="GET", path=QUEUE, name="enqueued", summary="List the points that wait to be tried first.",
        handler=list_entries, answers={200: ResponseInfo("In their order.", m.QueueSaid)},
    ),
    Operation(
        method="POST", path=QUEUE, name="enqueue", summary="Name points to try first.",
        text="Each is one of the next decisions, once, in this order, and marked `enqueued`. Of `parameters` some may "
        "be named alone: the policy chooses the others. With an `Idempotency-Key` the same request again adds nothing.",
        handler=enqueue, body=m.EnqueueRequest, repeatable=True,
        answers={201: ResponseInfo("They wait.", m.QueueSaid)},
    ),
    Operation(
        method="DELETE", path=ENTRY, name="withdraw", summary="Take a point out that waits to be tried first.",
        handler=withdraw, answers={200: ResponseInfo("What waits then.", m.QueueSaid)},
    ),
    Operation(
        method="POST", path=f"{STUDY}/widen", name="widen", summary="Change the space of a running study.",
        text="Ranges become wider or narrower, choices get or lose options, and parameters may be new. Every trial so "
        "far still teaches, and a pending one may be told. If the space is so already, nothing is recorded.",
        handler=widen, body=m.WidenRequest, repeatable=True,
        answers={200: ResponseInfo("The space of now.", m.SpaceSaid)},
    ),
]  # fmt: skip
