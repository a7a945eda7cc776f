"""Worker of one study: requests wait in its queue, and share a transaction.

A thread takes the waiting commands, runs them in one transaction and commits once. More commands gather during a
commit, so batches grow with the load and no command waits without load. The workers of all studies share a few threads,
which tenants take in turn. If commands are left after a transaction, the worker queues again behind other studies of
its tenant. So a busy study delays the others by one transaction. A command for many decisions takes as many
transactions as it needs.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar, final, get_args

from ..._utils.checks import many
from ...storage import StoredStudy
from ...storage.record import held_from
from ...storage.trial import TrialState
from ...study.explanation import Explanation
from ...study.inputs import DRAWS
from ...study.study import Study
from ...study.transaction import Failed, Going, NotYet, Transaction
from ..wire.problems import Problem
from ..wire.settings import Settings
from .deadlines import Deadlines, Rule
from .study_notes import NONE
from .threads import TenantThreads, deliver


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
        asked = [trial for trial in trials if trial.as_corrected().told_order != trial.asked_order]
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
