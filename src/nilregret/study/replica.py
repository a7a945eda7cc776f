"""A replica of a study in this process: its record and state, in step with the storage.

A storage may allow only one write transaction at a time for all studies. A call therefore decides before its
transaction: it reads what is known, decides, and then opens the transaction. If another process has written meanwhile,
the call is rolled back and runs again on the new record. After some attempts the call runs inside the transaction,
where no other process can be faster. Quick calls run there at once, and so ask only once what is new.
"""

from __future__ import annotations

import math
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast, final

from .._utils.executors import survives_forks
from .._utils.numerals import exact
from .._utils.process_setting import no_collection
from ..errors import InvalidInput, NoRegretError
from ..policy.fits import FitJob, LateFits
from ..policy.policy import Policy
from ..policy.state import State
from ..storage.base import News
from ..storage.changes import ARM_KINDS, StudyChange
from ..storage.record import Event, Record
from ..storage.trial import EventKind, Fit, Report, Trial, Verdict
from . import direction, snapshots
from .best import FirstAnswers
from .direction import PLAIN, AnyPolicy, AnyState, Goal, Version, goals_in
from .inputs import Inputs
from .leases import Leases, abandon_expired
from .lessons import Lessons
from .queue import Queue
from .spaces import Roster
from .stored import UNKNOWN, InvalidatingLock, StoredStudyHandle, save_call
from .visits import Units

if TYPE_CHECKING:
    from ..storage.base import Writer


P = ParamSpec("P")
R = TypeVar("R")

OF_DOMAIN = (*ARM_KINDS, "widened")  # Changes with which the policy plays other points.
BATCH = 1000  # Trials that one transaction abandons at most.
ATTEMPTS = 4  # Attempts at one call. The last one runs inside the transaction.
QUICK = 0.01  # Seconds: a faster call may run inside the transaction if other processes write to the same study.
INSTANT = 0.0005  # Seconds, a fraction of a commit: a faster call that surely writes runs inside the transaction.
FADING = 0.9  # Share of the duration of earlier calls that stays: a slow call is remembered for some calls.
CONTENTION = 100  # Calls for which other writers are expected after they were last seen.
PATIENCE = 0.25  # Seconds that a reader waits for a call that waits for the storage.


class _NotBegun:
    """The result of a call that did not begin, because expired leases filled the transaction."""


@final
class Replica:
    """The record of a study, and the policy's state after that record.

    The state is a cache. If anything goes wrong during a call (an error, an interrupt, a full disk), the next call
    rebuilds it from the record. `lock` guards record and state, and no call holds it while it waits for the storage.

    Args:
        policy: with which the study was made.
        goal: of the study, of the first of several objectives.
        seed: of the study.
        clock: returns Unix seconds.
        handle: of the stored study, or None if the study is in memory alone.
        late: fits that are made apart from decisions. None if a decision makes the fit that is due.

    Attributes:
        roster: the arms of the study as they are now.
        inputs: checks of what users pass, for these arms.
        queue: the points to try first.
        record: all trials known here.
        state: the policy's state after them.
        leases: of the trials that may be abandoned.
        firsts: the earliest answered trial of each arm, for `best`.
        lock: of record and state.
        fork_lock: the same lock (see `Forkable`), for calls that invalidate the replica before they change anything.
        made: the policy with which the study was made.
        goals: the goal of each objective.
        notes: new notes of the call that is being written.
        lessons: what events teach.
        due: the event after which a snapshot is written.
        identity: of the study, for its snapshots.
    """

    def __init__(
        self, policy: AnyPolicy, goal: Goal, seed: int, clock: Callable[[], float], handle: StoredStudyHandle | None,
        late: LateFits | None = None,
    ) -> None:  # fmt: skip
        self.made, self._goal, self._seed, self.clock, self._late = policy, goal, seed, clock, late
        self.goals = goals_in(policy, goal)
        self.roster, self.inputs, self.queue = Roster(policy, ()), Inputs(policy, goal), Queue()
        self.handle = handle
        self._make_locks()
        self._timed = policy.pending.in_time
        self.record = Record()
        self._current: Version | None = None
        self._valid = handle is None  # Whether record, state and storage agree.
        self._saved_order = 0  # The order of the last event for which they agreed.
        self._changes: dict[int, Trial | None] = {}  # Trials before this call, None for new ones.
        self._new: list[StudyChange] = []  # Changes of the study in this call.
        self.leases = Leases()
        self.lessons = Lessons(policy, goal)
        self.notes: dict[str, str] = {}  # Of this call. In memory they are all that there is.
        self.sticky: float | None = None  # Seconds for which a unit keeps its arm, or None for no time.
        self._uncommitted = False  # Whether record and state include a call that is not in the storage yet.
        self._awaited = False  # Whether a reader waits for its commit.
        self._backup: AnyState | None = None  # The state before that call, if a copy is cheaper than a rebuild.
        self._seconds = 0.0  # The duration of recent calls.
        self._contention = 0  # Calls for which other writers are still expected.
        self.due, self.identity = math.inf, snapshots.Known(policy, goal, seed)
        survives_forks(self)
        with self.lock:
            self.rebuild()

    def _make_locks(self) -> None:
        self.fork_lock = lock = threading.RLock()
        # A proxy avoids a cycle, so that a dropped study closes its files.
        self.lock = InvalidatingLock(lock, weakref.proxy(self))
        self._writing = threading.RLock()  # One thread of this process writes at a time.
        self._committed = threading.Condition(lock)

    def after_fork(self) -> None:
        """Makes new locks in a forked process. The next call undoes what another thread had begun."""
        if self._uncommitted or not self.fork_lock.acquire(blocking=False):
            self._uncommitted, self._backup = False, None
            self.invalidate()
        self._make_locks()

    # -- writing -------------------------------------------------------------------------------------------------

    def write(self, act: Callable[P, R], *args: P.args, **more: P.kwargs) -> R:
        """Runs a call and commits what it `put`, all or nothing. If another process was faster, the call runs again."""
        if self.handle is not None:
            return self._write(self.handle, partial(act, *args, **more), surely=False)
        with self.fork_lock:  # Whatever an interrupt leaves half done has set `_valid` to False.
            if not self._valid:
                self.rebuild()
            if self.leases.heap:
                abandon_expired(self)
            result = act(*args, **more)
            self.settle(self.record.order)
            return result

    def write_surely(self, act: Callable[P, R], *args: P.args, **more: P.kwargs) -> R:
        """Runs a call that records something unless it fails, as `write` does."""
        if self.handle is None:
            return self.write(act, *args, **more)
        return self._write(self.handle, partial(act, *args, **more), surely=True)

    def _write(self, handle: StoredStudyHandle, act: Callable[[], R], *, surely: bool) -> R:
        with self._writing:
            while isinstance(result := self._commit(handle, act, surely=surely), _NotBegun):
                pass
        if self.record.order >= self.due:
            snapshots.keep(self)
        return result

    def begin(self) -> float | None:
        """Begins a plain call, which `settle` ends, and returns its time, Unix seconds. The caller holds `fork_lock`.

        Returns None, and changes nothing, if the state must be made anew first or a lease runs.
        """
        if not self._valid or self.leases.heap:
            return None
        now = self.now()
        self._valid, self._current = False, None
        return now

    def settle(self, order: int) -> None:
        """Ends a call in memory after the event of this order, with which record and state agree."""
        self.record.order, self._saved_order, self._valid = order, order, True

    def _commit(self, handle: StoredStudyHandle, act: Callable[[], R], *, surely: bool) -> R | _NotBegun:
        result: Any = None
        for left in reversed(range(ATTEMPTS)):
            quick = self._seconds < QUICK
            within = self._valid and ((quick and self._contention > 0) or (surely and self._seconds < INSTANT))
            if not within:
                with self.lock:
                    self.sync()
                    if not (within := left == 0):
                        self._backup = None if quick else direction.copy_of_state(self.state)
                        result = self._run(act)
                        if not (self._changes or self._new or self.notes):  # A report changes its trial.
                            self._mark_saved()
                            return result  # type: ignore[no-any-return]  # `cast` is a call
            committed: str | None = None
            try:
                with handle.storage.writing(handle.study) as writer, self.lock:
                    if within:
                        self._catch_up(handle, writer)
                        result = self._run(act)
                    elif not self._is_next(handle, writer):
                        continue
                    stamp = self._save(handle, writer)
                committed = stamp
            finally:
                with self.fork_lock:  # If an interrupt ends this, `_valid` is still False.
                    # If a reader has rolled the call back meanwhile, it will read the call again from the storage.
                    if self._uncommitted and committed is not None:
                        self._mark_saved(committed)
                    self._uncommitted, self._backup = False, None
                    if self._awaited:
                        self._awaited = False
                        self._committed.notify_all()
            if committed is not None:
                return result  # type: ignore[no-any-return]
        raise RuntimeError("The last attempt stands.")

    def _run(self, act: Callable[[], R]) -> R | _NotBegun:
        """Runs a call. Record and state are then ahead of the storage."""
        self.notes = {}
        begin = time.thread_time()  # Processor time, because on a busy machine no call is quick.
        result = _NotBegun() if self.leases.heap and abandon_expired(self, most=BATCH) else act()
        self._seconds = max(time.thread_time() - begin, FADING * self._seconds)
        self._uncommitted = True
        return result

    def _catch_up(self, handle: StoredStudyHandle, writer: Writer) -> None:
        """Reads what other processes wrote, inside a transaction."""
        if not self._valid:
            self.rebuild()
        news = handle.news_in(writer, self.record)
        self._contention = CONTENTION if news and (news.trials or news.steps) else self._contention - 1
        if news is not None:
            self.apply(news)

    def _is_next(self, handle: StoredStudyHandle, writer: Writer) -> bool:
        """Returns whether a call that decided before its transaction may be written. Else it is rolled back."""
        if not self._uncommitted:
            return False
        if writer.news(since=self._saved_order, stamp=handle.stamp).stamp == handle.stamp:
            return True
        self._contention = CONTENTION
        self._roll_back()
        return False

    def _save(self, handle: StoredStudyHandle, writer: Writer) -> str:
        """Writes the call and returns the new stamp."""
        if not (self._changes or self._new or self.notes):
            return handle.stamp
        return save_call(writer, self._changes, self.record, self._new, self.notes)

    def _mark_saved(self, stamp: str | None = None) -> None:
        """Notes that record and state equal the stored record, under a new stamp or the known one."""
        if self.handle is not None and stamp is not None:
            self.handle.stamp = stamp
        self._saved_order, self._uncommitted, self._backup = self.record.order, False, None
        self._changes.clear()
        self._new.clear()
        self._valid = True  # This comes last, for an interrupt.

    def _roll_back(self) -> None:
        """Restores record and state to before the call that is not in the storage yet."""
        if self._backup is None and not isinstance(self.record.trials, list):
            self._uncommitted = False
            self.rebuild()  # From the snapshot, which is sooner than a replay.
            return
        self.record.roll_back(self._saved_order, self._changes)
        if self._new:
            self._adopt_all()
        self.lessons.forget()
        if self._backup is None:
            self._replay()
        else:
            self.state, self._backup, self.firsts = self._backup, None, FirstAnswers()
        self._current, self.leases = None, Leases(self.record.at_hand)
        self._mark_saved()

    def _learned(self, events: Sequence[Event]) -> Sequence[Event]:
        """Returns new events as the state learns from them: in the space of now, and in rewards."""
        return direction.as_learned(events, self.lessons, self.record, self.roster.spaces, self.goals)

    def _replay(self) -> None:
        """Makes the state anew from the record."""
        self.lessons.forget()
        self.firsts = FirstAnswers()
        with no_collection:
            self.state = direction.state_after(self.policy, self._goal, self.trials, seed=self._seed, late=self._late)
        snapshots.let_go(self)

    @property
    def policy(self) -> AnyPolicy:
        """The policy on the arms, or in the space, of now."""
        return self.roster.policy

    @property
    def trials(self) -> Sequence[Trial]:
        """All trials known here, each at its place in the space of now."""
        spaces = self.roster.spaces
        return self.record if spaces is None else [spaces.moved(trial) for trial in self.record]

    def _adopt(self, changes: Sequence[StudyChange]) -> bool:
        """Takes over new changes on record. Returns whether the state is of other arms."""
        for change in changes:
            self.queue.add(change)
        return any(change.kind in OF_DOMAIN for change in changes) and self._adopt_arms()

    def _adopt_all(self) -> None:
        """Takes over all changes on record."""
        self.queue = Queue(self.record.changes)
        self._adopt_arms()

    def _adopt_arms(self) -> bool:
        """Takes over the arms, or the space, on record. Returns whether the state is of another domain."""
        before = self.roster
        self.roster = Roster(self.made, self.record.changes)
        if self.roster.plays_as(before):
            self.roster.policy, self.roster.spaces = before.policy, before.spaces
            return False
        if self.roster.spaces is not None:  # Each call then moves all trials to their places in the space of now.
            self.record.trials = list(self.record.trials)
        self.inputs = Inputs(self.policy, self._goal)
        return True

    def change(self, change: StudyChange) -> None:
        """Records a change that has just happened. If it is of arms, the state takes them over, or is made anew."""
        self._valid = False  # Until the call is over.
        if self.handle is not None:
            self._new.append(change)
        self.record.change(change)
        snapshots.let_go(self)
        if self._adopt([change]) and not self._extended([change]):
            self._replay()
        self._current = None

    def _extended(self, changes: Sequence[StudyChange]) -> bool:
        """Lets the state take over the new arms, to the bit as a replay would. Returns False if it cannot."""
        state, policy, kinds = self.state, self.policy, [change.kind for change in changes]
        if "widened" in kinds or not isinstance(state, State) or not isinstance(policy, Policy):
            return False
        return state.add_arms(direction.policy_of_rewards(policy, self._goal))

    def checked(self, check: Callable[[], R]) -> R:
        """Returns the result of a check that depends on the arms. Another process may have added some.

        Raises:
            InvalidInput: the check fails, with the arms of all processes.
        """
        before = self.policy
        try:
            return check()
        except InvalidInput:
            with self.lock:
                self.sync()
            if self.policy is before:
                raise
            return check()

    def put(self, trial: Trial, kind: EventKind) -> Trial:
        """Records a trial to which an event has just happened, and returns it."""
        self.note_change(trial.number)
        record, spaces = self.record, self.roster.spaces
        event = record.update(trial, kind)
        if kind == "corrected":
            self._replay()
        else:
            # A call less in most rounds.
            plain = spaces is None and kind != "stopped" and self.lessons.slates is None and self.goals == PLAIN
            self.state.receive((event,) if plain else self._learned((event,)))
            if trial.lease_until is not None and kind == "asked":
                self.leases.add(trial)
        return trial if spaces is None else spaces.moved(trial)

    def note_change(self, number: int) -> None:
        """Notes that a call is about to add or change the trial of this number."""
        self._valid, self._current = False, None  # Until the call is over.
        if self.handle is not None and number not in self._changes:
            self._changes[number] = self.record.trials[number] if number < len(self.record.trials) else None

    @property
    def units(self) -> Units:
        """The units of the study, within a call."""
        return Units(self.note, self.notes.__setitem__)

    def note(self, key: str) -> str | None:
        """Returns the note under a key, with those of this call, or None. Within a call only: see `write`."""
        if key in self.notes or self.handle is None:
            return self.notes.get(key)
        return self.handle.read_notes([key]).get(key)

    def report(self, trial: Trial, step: int, value: float) -> Trial:
        """Records a report of a trial with the verdict of the pruning rule, and returns the trial."""
        record, before = self.record, self.record[trial.number]
        report = Report(record.order + 1, self.now(), trial.number, step, value, "go")
        found = before.with_report(report)
        if (verdict := self.verdict(found)) != "go":
            found = before.with_report(report._replace(verdict=verdict))
        self._valid = False  # Until the call is over.
        if self.handle is not None:
            self._changes.setdefault(trial.number, before)
        record.report(found)
        return self.roster.moved(found)

    def verdict(self, trial: Trial) -> Verdict:
        """Returns the verdict of the pruning rule on a trial after its last report."""
        return self.lessons.curves.verdict(self.roster.moved(trial), self.trials, seed=self._seed)

    def invalidate(self) -> None:
        """Marks record and state as possibly wrong: unless a write ends well, the next call rebuilds them."""
        self._valid, self._current = False, None

    def adopt(self, record: Record) -> None:
        """Takes over a record of the same policy, goal and seed. The next call makes the state of it."""
        with self.lock:
            self.record, self._saved_order = record, record.order
            self._adopt_all()
            self.invalidate()

    # -- reading -------------------------------------------------------------------------------------------------

    def sync(self) -> None:
        """Reads what other processes wrote. The caller holds `lock`."""
        if self._uncommitted:
            self._awaited = True
            self._committed.wait_for(lambda: not self._uncommitted, PATIENCE)
        if self._uncommitted:  # The call waits for a storage that another process holds. A reader does not wait.
            self._roll_back()
        if not self._valid:
            self.rebuild()
        if self.handle is not None and (news := self.handle.news(self.record)) is not None:
            self.apply(news)

    def current(self) -> AnyState:
        """Returns a state for queries that has learned all trials of all processes. The caller holds `lock`."""
        self.sync()
        return self._settled()

    def _settled(self) -> AnyState:
        now = self._version()
        if now.state is None:
            now.state = self.state.settled()
        return now.state

    def _version(self) -> Version:
        if self._current is None:
            self._current = Version()
        return self._current

    # -- fits apart from decisions -------------------------------------------------------------------------------

    def fit_jobs(self) -> list[FitJob]:
        """Returns the fits that are due by what is known and committed here, and not in force. No storage is read."""
        with self.lock:
            state = self.state
            if not isinstance(state, State) or not state.may_fit() or self._uncommitted or not self._valid:
                return []  # the call that is being written looks again when it is done
            return cast(State, self._settled()).fit_jobs()

    def offer(self, job: FitJob, fit: Fit) -> None:
        """Lets a fit come into force with the next decision."""
        with self.lock:
            cast(LateFits, self._late).ready[job.channel] = job, fit
            self._current = None

    def query(self, read: Callable[[AnyState], R]) -> R:
        """Returns a function's result for a state that has learned all trials of all processes."""
        with self.lock:
            return read(self.current())

    def kept(self, key: Any, make: Callable[[], R]) -> R:
        """Returns what a function computes of the study, computed once until an event other than a report.

        Args:
            key: names the function and its arguments.
            make: computes the result. It runs without the lock.
        """
        with self.lock:
            self.sync()
            version = self._version()
        return version.of(key, make)

    def snapshot(self) -> Sequence[Trial]:
        """Returns all trials of all processes as they are now.

        `record` itself goes on. A reader of it may see a late event and miss an earlier one of a trial read before.
        """
        with self.lock:
            self.sync()
            return self.trials[:]

    def rebuild(self) -> None:
        """Rebuilds record and state, from the storage if there is one."""
        record, handle = Record(), self.handle
        self._changes.clear()
        self._new.clear()
        if handle is not None and (found := snapshots.read(handle, self.identity)) is not None:
            self._open(handle, *found)
            return
        if handle is None:
            earlier = self.record.as_of(self._saved_order)
            news = News(earlier, UNKNOWN, earlier.changes)
        else:
            news = handle.whole()
        record.apply(news.trials, news.arms, news.steps)
        self.record = record
        self._adopt_all()
        self._replay()
        self._current, self._saved_order = None, record.order
        self.leases = Leases(record)
        if handle is not None:
            handle.stamp = news.stamp
        self.due = snapshots.LEAST if snapshots.can_have(handle, self.state, record) else math.inf
        self._valid = True  # This comes last: after an earlier interrupt the next call rebuilds again.

    # -- snapshots -----------------------------------------------------------------------------------------------

    @property
    def in_step(self) -> bool:
        """True if record, state and storage agree. The caller holds `lock`."""
        return self._valid and not self._uncommitted

    def _open(self, handle: StoredStudyHandle, record: Record, state: State) -> None:
        """Takes over record and state as a snapshot has them, and reads what has happened since."""
        self.record, self.state, self._valid, self.firsts = record, state, True, FirstAnswers()
        self._adopt_all()
        snapshots.let_go(self)
        self.leases, self.due = Leases(record.at_hand), record.order + snapshots.EVERY
        self._current, self._saved_order, handle.stamp = None, record.order, UNKNOWN
        self.sync()

    def apply(self, news: News) -> None:
        """Adds trials and changes that other processes wrote."""
        changed, stamp, changes, steps = news
        if changed or changes or steps:
            self._valid = False  # Until record and state agree again.
            events = self.record.apply(changed, changes, steps)
            more = bool(changes) and self._adopt(changes)
            if any(event.kind == "corrected" for event in events) or (more and not self._extended(changes)):
                self._replay()
            else:
                self.state.receive(self._learned(events))
            for trial in changed:
                if trial.state == "pending":
                    self.leases.add(trial)
            self._current = None
        if self.handle is not None:
            self.handle.stamp = stamp
        if changed or changes or steps:
            self._saved_order, self._valid = self.record.order, True

    # -- time ----------------------------------------------------------------------------------------------------

    def now(self) -> float:
        """Returns the time in Unix seconds.

        Raises:
            NoRegretError: the clock gives no finite number. Or it has gone back since the last question, and the policy
                measures waiting times.
        """
        now = float(self.clock())
        if not math.isfinite(now):
            raise NoRegretError(f"The clock says {now}, which is no time in seconds; nothing was recorded.")
        if self._timed and self.record.trials and now < (last := self.record.trials[-1].asked_at):
            raise NoRegretError(
                f"The clock has gone back by {exact(last - now)} s since the last question, and this policy measures "
                "how long it waits for answers. Set the clock right and try again; nothing was recorded.",
                advice="Or pass `clock=` to the study.",
            )
        return now
