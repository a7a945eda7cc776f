"""A desk for each study: calls wait there, a thread takes all that wait, does them and commits once.

While a commit runs the next calls gather, so batches grow with the load by themselves and nobody waits when there is
none. All desks share a few threads, which tenants take in turn; a desk that still has calls after its turn goes to the
end of its tenant's queue, so a busy study holds up the others for one turn at most. A call that asks for many decisions
is done in as many turns as it takes.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol, TypeVar, final

from .._utils.errors import InvalidInput, StorageError
from ..storage import MemoryStorage, SqlStorage, StoredStudy, Summary
from ..study.explain import DRAWS
from ..study.explanation import Explanation
from ..study.study import Study
from ..study.transaction import Failed, Going, NotYet, Transaction
from .auth.caller import OPERATOR
from .auth.tenants import BETWEEN, missing, stored_name
from .counts import StudyCounts
from .deadlines import Rule, Waiting
from .problems import Problem
from .settings import Settings
from .threads import TenantThreads, deliver

R = TypeVar("R")
NotesStorage = SqlStorage | MemoryStorage  # storages that keep notes
Act = Callable[[Transaction], Any]
CLERKS = 2  # threads for looks into the storage


class Command(Protocol):
    """Something to be done to a study."""

    def keys(self, desk: StudyWorker) -> Sequence[str]:
        """Of the notes that it looks for."""

    def prepared(self, desk: StudyWorker) -> Act:
        """What is left once everything that can be checked beforehand has been."""


class _Waiting(NamedTuple):
    call: Command
    future: asyncio.Future[Any]  # of the loop in which somebody waits
    act: Act | None = None  # what is left of it, once that is known


@final
class StudyWorker:
    """One study, as one server process has it open.

    Args:
        tenant: whose it is.
        name: as the tenant knows it.
        study: open.
        stored: as the storage knows it.
        settings: of the service.
        writers: threads for `do`.
        readers: threads for `look`.
    """

    def __init__(
        self, tenant: str, name: str, study: Study, stored: StoredStudy, settings: Settings,
        writers: TenantThreads, readers: TenantThreads,
    ) -> None:  # fmt: skip
        self.tenant, self.name, self.study, self.stored = tenant, name, study, stored
        self.waiting, self.tally = Waiting(Rule.of(dict(study.about))), StudyCounts()
        self._settings, self._writers, self._readers = settings, writers, readers
        self._lock = threading.Lock()
        self._queue: deque[_Waiting] = deque()
        self._at_work = False
        self._explaining: dict[tuple[int, int], asyncio.Future[Explanation]] = {}
        self.checked_at = time.monotonic()

    # -- for the event loop --------------------------------------------------------------------------------------

    async def do(self, call: Command) -> Any:
        """What comes of a call, once it is on disk.

        Raises:
            Problem: 503, too many wait already.
        """
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        with self._lock:
            if len(self._queue) >= self._settings.waiting:
                raise Problem(
                    503, "busy", "More calls are waiting for this study than it can answer; try again in a second.",
                    headers={"Retry-After": "1"},
                )  # fmt: skip
            self._queue.append(_Waiting(call, future))
            begin, self._at_work = not self._at_work, True
        if begin:
            self._writers.submit(self.tenant, self._turn)
        return await future

    async def look(self, see: Callable[[Study], R]) -> R:
        """What `see(study)` gives, from a thread that may take its time."""
        return await self._readers.run(self.tenant, lambda: see(self.study))

    async def explained(self, number: int, *, draws: int = DRAWS) -> Explanation:
        """Why a trial was chosen: played again once for all who ask for it at a time, which may take seconds."""
        key = number, draws
        if key not in self._explaining:
            self._explaining[key] = asyncio.ensure_future(self.look(lambda study: study.explain(number, draws=draws)))
            self._explaining[key].add_done_callback(lambda done: self._said(key, done))
        return await asyncio.shield(self._explaining[key])

    def _said(self, key: tuple[int, int], done: asyncio.Future[Explanation]) -> None:
        del self._explaining[key]
        if not done.cancelled():
            done.exception()  # which nobody may be there to hear any more

    # -- in a thread ---------------------------------------------------------------------------------------------

    def _turn(self) -> None:
        """Do what waits, and commit; whatever happens, each call is answered, now or at the next turn."""
        with self._lock:
            count = min(len(self._queue), self._settings.turn_calls)
            calls = [self._queue.popleft() for _ in range(count)]
        left: list[_Waiting] = []
        going: list[_Waiting] = []
        answers: list[tuple[asyncio.Future[Any], Any, BaseException | None]] = []
        try:
            left, going = self._done(calls, answers)
        except BaseException as error:
            answers = [(each.future, None, error) for each in calls]
        deliver(answers)
        with self._lock:
            self._queue.extendleft(reversed(left))
            self._queue.extend(going)  # behind those that have come meanwhile
            again = self._at_work = bool(self._queue)
        if again:
            self._writers.submit(self.tenant, self._turn)

    def _done(
        self, calls: Sequence[_Waiting], answers: list[tuple[asyncio.Future[Any], Any, BaseException | None]]
    ) -> tuple[list[_Waiting], list[_Waiting]]:
        """Answers those that it came to; the others are left, or go on."""
        acts: list[tuple[_Waiting, Act]] = []
        for each in calls:
            if each.future.cancelled():
                continue  # whoever asked is gone, and nothing has been begun
            try:
                acts.append((each, each.act or each.call.prepared(self)))
            except Exception as error:
                answers.append((each.future, None, error))
        if not acts:
            return [], []
        keys = [key for each, _ in acts for key in each.call.keys(self)]
        turn_of_all = [self.waiting.sweep, *(act for _, act in acts)]
        swept, *found = self.study.group_commit(turn_of_all, keys=keys, seconds=self._settings.turn_seconds)
        if not isinstance(swept, Failed):
            self.waiting.confirm()
        left: list[_Waiting] = []
        going: list[_Waiting] = []
        for (each, act), result in zip(acts, found, strict=True):
            if isinstance(result, NotYet):
                left.append(each._replace(act=act))
            elif isinstance(result, Going):
                going.append(each._replace(act=result.then))
            elif isinstance(result, Failed):
                answers.append((each.future, None, result.error))
            else:
                answers.append((each.future, result, None))
        return left, going


@final
class StudyWorkers:
    """The desks of one server process.

    Args:
        storage: of all studies.
        settings: of the service.
        clock: Unix seconds.
    """

    def __init__(self, storage: NotesStorage, settings: Settings, clock: Callable[[], float] = time.time) -> None:
        self.storage, self._settings, self._clock = storage, settings, clock
        self._writers = TenantThreads(settings.writers, "nilregret-writer", most=max(1, settings.writers - 1))
        self._readers = TenantThreads(settings.readers, "nilregret-reader", most=max(1, settings.readers - 1))
        self._clerks = TenantThreads(CLERKS, "nilregret-clerk")
        self._lock = threading.Lock()
        self._desks: OrderedDict[str, StudyWorker] = OrderedDict()  # by name in the storage, longest unused first
        self._opening: dict[str, Future[StudyWorker]] = {}
        self._ready = False  # whether the storage can keep notes by now

    async def of(self, tenant: str, name: str) -> StudyWorker:
        """The desk of a study.

        Raises:
            Problem: 404, there is none for this tenant.
        """
        stored_as = await self._stored_as(tenant, name)
        desk = self._known(stored_as, tenant)
        if desk is None and stored_as in self._desks:
            desk = await self.quickly(self._still, stored_as, tenant, tenant=tenant)
        if desk is not None:
            return desk
        with self._lock:  # one thread opens it, however many ask meanwhile
            opening = self._opening.get(stored_as)
            if opening is None:
                opening = self._opening[stored_as] = self._readers.future(
                    tenant, lambda: self._found(tenant, name, stored_as)
                )
        opening.add_done_callback(lambda _: self._opening.pop(stored_as, None))
        return await asyncio.shield(asyncio.wrap_future(opening))

    async def _stored_as(self, tenant: str, name: str) -> str:
        """Returns the name in the storage, which is asked on a thread where a tenant may have the name."""
        if BETWEEN in name and tenant == OPERATOR:
            return await self.quickly(stored_name, self.storage, tenant, name, tenant=tenant)
        return stored_name(self.storage, tenant, name)

    async def summary(self, tenant: str, name: str) -> tuple[StoredStudy, Summary] | None:
        """What a list says of a study that is not open in this process; None of one that is, or is not there."""
        stored_as = await self._stored_as(tenant, name)
        if stored_as in self._desks:
            return None
        found = await self.quickly(self.storage.summaries, stored_as, tenant=tenant)
        return found[0] if found else None

    async def thread(self, do: Callable[..., R], *args: Any, tenant: str = OPERATOR) -> R:
        """What a function gives that may take its time, from a thread for looking, in this tenant's turn."""
        return await self._readers.run(tenant, lambda: do(*args))

    async def quickly(self, do: Callable[..., R], *args: Any, tenant: str = OPERATOR) -> R:
        """Likewise of one that takes no more than a look into the storage: it does not wait for those that do."""
        return await self._clerks.run(tenant, lambda: do(*args))

    @property
    def open(self) -> list[StudyWorker]:
        """Those that are open in this process."""
        with self._lock:
            return list(self._desks.values())

    def close(self) -> None:
        """Let the calls under way come to their end, and go."""
        self._writers.close(drop=False)
        self._readers.close(drop=True)
        self._clerks.close(drop=True)
        self.storage.close()

    def _known(self, stored: str, tenant: str) -> StudyWorker | None:
        with self._lock:
            desk = self._desks.get(stored)
            if (
                desk is None
                or desk.tenant != tenant
                or time.monotonic() - desk.checked_at > self._settings.recheck_seconds
            ):
                return None
            self._desks.move_to_end(stored)
            return desk

    def _still(self, stored_as: str, tenant: str) -> StudyWorker | None:
        """The one that is open, where its name still stands for it."""
        stored = self.storage.find(stored_as)
        with self._lock:
            desk = self._desks.get(stored_as)
            # A tenant may be new, and the study was the operator's until then.
            now = None if stored is None else (tenant, stored.identity)
            if desk is not None and (desk.tenant, desk.stored.identity) == now:
                desk.checked_at = time.monotonic()
                return desk
            self._desks.pop(stored_as, None)
            return None

    def _found(self, tenant: str, name: str, stored_as: str) -> StudyWorker:
        """Open it."""
        if self.storage.find(stored_as) is None:
            raise missing(name)
        return self._kept(stored_as, self._opened(tenant, name, stored_as))

    def _opened(self, tenant: str, name: str, stored_as: str) -> StudyWorker:
        if not self._ready:
            self.storage.keep_notes()
            self._ready = True
        try:
            study = Study.open(storage=self.storage, name=stored_as, clock=self._clock)
        except InvalidInput as error:
            if self.storage.find(stored_as) is None:  # deleted a moment ago
                raise missing(name) from None
            raise StorageError(f"Study {stored_as!r} cannot be opened: {error}") from error
        study.quiet = True
        stored = self.storage.find(stored_as)
        if stored is None:
            raise missing(name)
        return StudyWorker(tenant, name, study, stored, self._settings, self._writers, self._readers)

    def _kept(self, stored_as: str, desk: StudyWorker) -> StudyWorker:
        with self._lock:
            self._desks[stored_as] = desk
            while len(self._desks) > self._settings.open_studies:
                self._desks.popitem(last=False)
        return desk
