"""Workers of all studies that one server process has open.

Requests to a study wait in the queue of its worker, and share a transaction.
A thread takes the waiting commands, runs them in one transaction and commits once. More commands gather during a
commit, so batches grow with the load and no command waits without load. The workers of all studies share a few threads,
which tenants take in turn. If commands are left after a transaction, the worker queues again behind other studies of
its tenant. So a busy study delays the others by one transaction. A command for many decisions takes as many
transactions as it needs.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, TypeVar, final, get_args

from ..._utils.checks import many
from ...errors import InvalidInput, NoRegretError, StorageError
from ...storage import MemoryStorage, SqlStorage, StoredStudy, Summary
from ...storage.record import held_from
from ...storage.trial import TrialState, was_asked
from ...study.explanation import Explanation
from ...study.inputs import DRAWS
from ...study.late_fits import FitMode
from ...study.study import Study
from ...study.transaction import Failed, Going, NotYet, Transaction
from ..auth.tokens import BETWEEN, OPERATOR, missing, owners, stored_name
from ..wire.problems import Problem
from ..wire.settings import Settings
from .deadlines import Deadlines, Rule
from .study_notes import NONE, notes_of
from .threads import TenantExecutor, TenantThreads, deliver


class Counts(NamedTuple):
    """Counts of the trials on record.

    Attributes:
        states: number of trials in each state.
        observations: trials that no caller had asked for.
        answers: decisions with a reward or a failure, also one that the deadline rule recorded, and stopped ones.
        late: answers that came after the deadline.
        violations: trials that violated a constraint.
    """

    states: dict[str, int]
    observations: int
    answers: int
    late: int
    violations: int

    @property
    def decisions(self) -> int:
        """Number of trials that a caller had asked for."""
        return sum(self.states.values()) - self.observations


def counts_of(study: Study, deadlines: Deadlines) -> Counts:
    """Returns the counts of a study, counted again after an event.

    Args:
        study: to count.
        deadlines: of the study, which say what is late.
    """

    def counted() -> Counts:
        trials = study.replica.snapshot()
        states: dict[str, int] = dict.fromkeys(get_args(TrialState), 0)
        for trial in trials:
            states[trial.state] += 1
        asked = [trial for trial in trials if was_asked(trial)]
        answered = [trial for trial in asked if not trial.open]
        late, violations = sum(map(deadlines.late, answered)), sum(trial.feasible is False for trial in trials)
        return Counts(states, len(trials) - len(asked), len(answered), late, violations)

    return study.replica.kept("counts", counted)


@final
class PendingCount:
    """The number of trials of a study that wait for their answer, as one process last counted them."""

    def __init__(self) -> None:
        self._pending = 0
        self._checked = -1  # length of the record when pending trials were last counted

    def pass_over(self, count: int) -> None:
        """Notes that so many new trials have their answer, so that `check` need not count all trials again."""
        if self._checked >= 0:
            self._checked += count

    def check(self, transaction: Transaction, most: int, wanted: int) -> None:
        """Checks that `wanted` more pending decisions are at most `most`.

        Raises:
            Problem: 429, too many decisions wait for an answer.
        """
        trials = transaction.trials
        if self._checked < 0 or self._pending + len(trials) - self._checked + wanted > most:
            self._pending = sum(trial.state == "pending" for trial in held_from(trials, 0))
            self._checked = len(trials)
        if self._pending + len(trials) - self._checked + wanted > most:
            raise Problem(
                429, "pending", f"{many(self._pending, 'decision')} of this study without an answer: no more than "
                f"{most} may wait. Tell what came of them; with a `deadline` they are given up by themselves.",
            )  # fmt: skip


R = TypeVar("R")
Action = Callable[[Transaction], Any]
Answers = list[tuple[asyncio.Future[Any], Any, BaseException | None]]


class Command(Protocol):
    """A change of a study."""

    def note_keys(self, worker: StudyWorker) -> Sequence[str]:
        """Returns the keys of the notes that the command reads."""

    def prepare(self, worker: StudyWorker) -> Action:
        """Checks the command, and returns what remains to be done in a transaction."""


@final
class Change(NamedTuple):
    """A command that a function prepares.

    Attributes:
        make: checks the command, and returns what remains to be done in a transaction.
        keys: of the notes that the command reads.
    """

    make: Callable[[StudyWorker], Action]
    keys: Sequence[str] = ()

    def note_keys(self, worker: StudyWorker) -> Sequence[str]:  # noqa: ARG002
        """Returns the keys of the notes that the command reads."""
        return self.keys

    def prepare(self, worker: StudyWorker) -> Action:
        """Checks the command, and returns what remains to be done in a transaction."""
        return self.make(worker)


class Recorded(NamedTuple):
    """Result of a command: what it recorded, and whether the request is a retry."""

    value: Any
    again: bool


class _Queued(NamedTuple):
    command: Command
    future: asyncio.Future[Any]
    action: Action | None = None  # what remains to be done, once the command has been prepared


@final
class StudyWorker:
    """An open study of one server process, with the queue of its commands.

    Args:
        tenant: owner of the study.
        name: of the study, as the tenant knows it.
        study: the open study.
        stored: the study as the storage knows it.
        settings: of the service.
        writers: threads for `run`.
        readers: threads for `read`.

    Attributes:
        notes: on the study, as they were read a short time ago.
    """

    def __init__(
        self, tenant: str, name: str, study: Study, stored: StoredStudy, settings: Settings,
        writers: TenantThreads, readers: TenantThreads,
    ) -> None:  # fmt: skip
        self.tenant, self.name, self.study, self.stored = tenant, name, study, stored
        self.deadlines, self.counts = Deadlines(Rule.of(dict(study.about))), PendingCount()
        self._settings, self._writers, self._readers = settings, writers, readers
        self._lock = threading.Lock()
        self._queue: deque[_Queued] = deque()
        self._running = False
        self._explaining: dict[tuple[int, int], asyncio.Future[Explanation]] = {}
        self.checked_at = time.monotonic()
        self.notes = NONE

    # -- in the event loop -------------------------------------------------------------------------------------------

    async def run(self, command: Command) -> Any:
        """Queues a command and returns its result, once that is on disk.

        Raises:
            Problem: 503, too many commands are waiting.
        """
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        with self._lock:
            if len(self._queue) >= self._settings.waiting:
                raise Problem(
                    503, "busy", "More calls are waiting for this study than it can answer; try again in a second.",
                    headers={"Retry-After": "1"},
                )  # fmt: skip
            self._queue.append(_Queued(command, future))
            begin, self._running = not self._running, True
        if begin:
            self._writers.submit(self.tenant, self._run_batch)
        return await future

    async def read(self, query: Callable[[Study], R]) -> R:
        """Returns `query(study)`, called in a reading thread."""
        return await self._readers.run(self.tenant, lambda: query(self.study))

    async def explain(self, number: int, *, draws: int = DRAWS) -> Explanation:
        """Returns why a trial was chosen. Concurrent requests for a trial share one replay, which may take seconds."""
        key = number, draws
        if key not in self._explaining:
            self._explaining[key] = asyncio.ensure_future(self.read(lambda study: study.explain(number, draws=draws)))
            self._explaining[key].add_done_callback(lambda done: self._forget(key, done))
        return await asyncio.shield(self._explaining[key])

    def _forget(self, key: tuple[int, int], done: asyncio.Future[Explanation]) -> None:
        del self._explaining[key]
        if not done.cancelled():
            done.exception()  # marks an error as read: asyncio logs unread ones, and all callers may be gone

    # -- in a thread -------------------------------------------------------------------------------------------------

    def _run_batch(self) -> None:
        """Runs the waiting commands in one transaction. Every command is answered, now or by a later batch."""
        with self._lock:
            count = min(len(self._queue), self._settings.turn_calls)
            batch = [self._queue.popleft() for _ in range(count)]
        left: list[_Queued] = []
        unfinished: list[_Queued] = []
        answers: Answers = []
        try:
            left, unfinished = self._run(batch, answers)
        except BaseException as error:
            answers = [(each.future, None, error) for each in batch]
        deliver(answers)
        with self._lock:
            self._queue.extendleft(reversed(left))
            self._queue.extend(unfinished)  # behind commands that have come meanwhile
            again = self._running = bool(self._queue)
        if again:
            self._writers.submit(self.tenant, self._run_batch)

    def _run(self, batch: Sequence[_Queued], answers: Answers) -> tuple[list[_Queued], list[_Queued]]:
        """Adds to `answers`, and returns the commands that have not begun and those that have only begun."""
        prepared: list[tuple[_Queued, Action]] = []
        for each in batch:
            if each.future.cancelled():
                continue  # the caller is gone, and nothing has begun
            try:
                prepared.append((each, each.action or each.command.prepare(self)))
            except Exception as error:
                answers.append((each.future, None, error))
        if not prepared:
            return [], []
        keys = [key for each, _ in prepared for key in each.command.note_keys(self)]
        actions = [self.deadlines.sweep, *(action for _, action in prepared)]
        swept, *results = self.study.group_commit(actions, keys=keys, seconds=self._settings.turn_seconds)
        if not isinstance(swept, Failed):
            self.deadlines.confirm()
        left: list[_Queued] = []
        unfinished: list[_Queued] = []
        for (each, action), result in zip(prepared, results, strict=True):
            if isinstance(result, NotYet):
                left.append(each._replace(action=action))
            elif isinstance(result, Going):
                unfinished.append(each._replace(action=result.then))
            elif isinstance(result, Failed):
                answers.append((each.future, None, result.error))
            else:
                answers.append((each.future, result, None))
        return left, unfinished


LOG = logging.getLogger("nilregret.serve")
NotesStorage = SqlStorage | MemoryStorage  # storages that keep notes
LOOKUP_THREADS = 2


@final
class StudyWorkers:
    """The workers of one server process.

    Args:
        storage: of all studies.
        settings: of the service.
        clock: Unix seconds.

    Attributes:
        errors: of studies, outside of requests, by tenant and name.
    """

    def __init__(self, storage: NotesStorage, settings: Settings, clock: Callable[[], float] = time.time) -> None:
        self.storage, self._settings, self._clock = storage, settings, clock
        self._writers = TenantThreads(settings.writers, "nilregret-writer", most=max(1, settings.writers - 1))
        self._readers = TenantThreads(settings.readers, "nilregret-reader", most=max(1, settings.readers - 1))
        self._fitters = TenantThreads(settings.fitters, "nilregret-fitter") if settings.fitters else None
        self._lookups = TenantThreads(LOOKUP_THREADS, "nilregret-lookup")
        self._lock = threading.Lock()
        self._workers: OrderedDict[str, StudyWorker] = OrderedDict()  # by name in the storage, longest unused first
        self._opening: dict[str, Future[StudyWorker]] = {}
        self.errors: Counter[tuple[str, str]] = Counter()

    async def get(self, tenant: str, name: str, *, fresh: bool = False) -> StudyWorker:
        """Returns the worker of a study, and opens the study if necessary.

        Args:
            tenant: owner of the study.
            name: of the study, as the tenant knows it.
            fresh: whether the storage is asked anew which study has the name.

        Raises:
            Problem: 404, the tenant has no such study.
        """
        stored_as = await self._stored_as(tenant, name)
        worker = None if fresh else self._recent(stored_as, tenant)
        if worker is None and stored_as in self._workers:
            worker = await self.lookup(self._recheck, stored_as, tenant, tenant=tenant)
        if worker is not None:
            return worker
        with self._lock:  # concurrent requests share one opening
            opening = self._opening.get(stored_as)
            if opening is None:
                opening = self._opening[stored_as] = self._readers.future(
                    tenant, lambda: self._open(tenant, name, stored_as)
                )
        opening.add_done_callback(lambda _: self._opening.pop(stored_as, None))
        return await asyncio.shield(asyncio.wrap_future(opening))

    async def summary(self, tenant: str, name: str) -> tuple[StoredStudy, Summary] | None:
        """Returns the summary of a stored study. None if the study is open in this process or does not exist."""
        stored_as = await self._stored_as(tenant, name)
        if stored_as in self._workers:
            return None
        found = await self.lookup(self.storage.summaries, stored_as, tenant=tenant)
        return found[0] if found else None

    async def in_thread(self, do: Callable[..., R], *args: Any, tenant: str = OPERATOR) -> R:
        """Returns `do(*args)`, called in a reading thread when it is the tenant's turn."""
        return await self._readers.run(tenant, lambda: do(*args))

    async def lookup(self, do: Callable[..., R], *args: Any, tenant: str = OPERATOR) -> R:
        """Returns `do(*args)` from a thread for short queries of the storage, which long reads cannot occupy."""
        return await self._lookups.run(tenant, lambda: do(*args))

    async def open_recent(self, *, since: float, most: int = 128) -> None:
        """Opens the studies with an event since a time.

        Args:
            since: Unix seconds.
            most: number of studies. The latest are opened.
        """

        def names() -> list[tuple[str, str]]:
            found = [(known.last_at or 0.0, stored.name) for stored, known in self.storage.summaries()]
            recent = sorted(each for each in found if each[0] >= since)[-min(most, self._settings.open_studies) :]
            return owners(self.storage, [name for _, name in recent])

        for tenant, name in await self.lookup(names):
            with self.isolated(tenant, name):
                await self.get(tenant, name)

    @contextmanager
    def isolated(self, tenant: str, name: str) -> Iterator[None]:
        """Logs and counts an error of a study in this block, so that work for other studies goes on."""
        try:
            yield
        except Exception as error:
            known = isinstance(error, NoRegretError | Problem)  # it was deleted or damaged, or the storage is away
            trace = None if known or self.errors[tenant, name] else error
            self.errors[tenant, name] += 1
            said = f"{type(error).__name__}: {error}"
            LOG.error("Study %r of tenant %r was left out: %s", name, tenant, said, exc_info=trace)

    def forget(self, worker: StudyWorker) -> None:
        """Drops the worker of a study that has another name now."""
        with self._lock:
            for name in [name for name, each in self._workers.items() if each is worker]:
                del self._workers[name]

    @property
    def open(self) -> list[StudyWorker]:
        """The workers of the studies that are open in this process."""
        with self._lock:
            return list(self._workers.values())

    def close(self) -> None:
        """Waits for commands and running reads, and closes the storage."""
        self._writers.close(drop=False)
        self._readers.close(drop=True)
        self._lookups.close(drop=True)
        if self._fitters is not None:
            self._fitters.close(drop=True)
        self.storage.close()

    async def _stored_as(self, tenant: str, name: str) -> str:
        """Returns the name in the storage, which is queried in a thread if a tenant may own the name."""
        if BETWEEN in name and tenant == OPERATOR:
            return await self.lookup(stored_name, self.storage, tenant, name, tenant=tenant)
        return stored_name(self.storage, tenant, name)

    def _recent(self, stored_as: str, tenant: str) -> StudyWorker | None:
        """Returns the worker if the storage was asked for its name a short time ago."""
        with self._lock:
            worker = self._workers.get(stored_as)
            if worker is None or worker.tenant != tenant:
                return None
            if time.monotonic() - worker.checked_at > self._settings.recheck_seconds:
                return None
            self._workers.move_to_end(stored_as)
            return worker

    def _recheck(self, stored_as: str, tenant: str) -> StudyWorker | None:
        """Returns the worker if its name still means the same study, and drops the worker otherwise."""
        stored = self.storage.find(stored_as)
        notes = NONE if stored is None else notes_of(self.storage, [stored])[0]
        with self._lock:
            worker = self._workers.get(stored_as)
            # A study of the operator becomes a tenant's when a tenant of that name gets its first token.
            now = None if stored is None else (tenant, stored.identity)
            if worker is not None and (worker.tenant, worker.stored.identity) == now:
                worker.checked_at, worker.notes = time.monotonic(), notes
                return worker
            self._workers.pop(stored_as, None)
            return None

    def _open(self, tenant: str, name: str, stored_as: str) -> StudyWorker:
        if self.storage.find(stored_as) is None:
            raise missing(name)
        try:
            fits: FitMode = "inline" if self._fitters is None else TenantExecutor(self._fitters, tenant)
            study = Study.open(storage=self.storage, name=stored_as, clock=self._clock, fits=fits)
        except InvalidInput as error:
            if self.storage.find(stored_as) is None:  # the study was deleted a moment ago
                raise missing(name) from None
            raise StorageError(f"Study {stored_as!r} cannot be opened: {error}") from error
        study.quiet = True
        if study.late_fits is not None:
            study.late_fits.begin()  # so that pages show what a fresh study in Python does
        stored = self.storage.find(stored_as)
        if stored is None:
            raise missing(name)
        worker = StudyWorker(tenant, name, study, stored, self._settings, self._writers, self._readers)
        (worker.notes,) = notes_of(self.storage, [stored])
        with self._lock:
            self._workers[stored_as] = worker
            while len(self._workers) > self._settings.open_studies:
                self._workers.popitem(last=False)
        return worker
