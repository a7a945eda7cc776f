"""A record, what is made of it, and where it lives: kept together, so that the three never disagree.

A storage may let only one write at a time, of all studies. So a decision is made before the transaction that records
it: what is known is read, the decision is made of it, and the transaction then sees whether anything was written
meanwhile. Where it was, the decision is taken back and made again of all that is known. After some such attempts it is
made within the transaction, in which nobody is faster.
"""

from __future__ import annotations

import heapq
import math
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast, final

from .._utils.checks import shown
from .._utils.errors import NoRegretError, StorageError
from .._utils.garbage import no_collection
from ..storage.record import Record
from ..storage.trial import Trial
from .direction import AnyPolicy, AnyState, Goal, begun, copied

if TYPE_CHECKING:
    from ..storage import Storage, StoredStudy
    from ..storage.base import Identity, Writer
    from .audit import Auditor

P = ParamSpec("P")
R = TypeVar("R")

UNKNOWN = ""  # no stamp of a storage
BATCH = 1000  # trials that are given up in one transaction
ATTEMPTS = 4  # at a decision before the transaction that records it; the last one is made within
QUICK = 0.01  # seconds: what is decided faster may be decided within it, where others write to the same study
FADING = 0.9  # of the time that calls take: what a slow one took is remembered for some calls
COMPANY = 100  # calls after which those others are taken to have gone
PATIENCE = 0.25  # seconds that a reader waits for a call that waits for the storage


@final
class StoredStudyHandle:
    """Where a study is stored.

    Args:
        storage: that has it.
        study: as the storage knows it.
        auditor: that checks what comes out of it.
    """

    def __init__(self, storage: Storage, study: StoredStudy, auditor: Auditor) -> None:
        from ..storage.base import KeepsNotes

        self.storage, self.study, self._auditor = storage, study, auditor
        self.keeps_notes = isinstance(storage, KeepsNotes)
        self.stamp = UNKNOWN

    def known(self, record: Record) -> str:
        """The stamp of a record."""
        return self.stamp if record.order else UNKNOWN

    def news(self, known: Record) -> tuple[Sequence[Trial], str]:
        """What is not in the record yet, and the stamp of the one that has it."""
        return self.checked(self.storage.news(self.study, since=known.order, stamp=self.known(known)), known)

    def checked(self, found: tuple[Sequence[Trial], str], known: Record) -> tuple[Sequence[Trial], str]:
        """News, after a look at them."""
        trials, stamp = found
        same = known.order > 0 and stamp == self.stamp
        return (() if same else self._auditor.news(trials, known)), stamp


@final
class Jotter:
    """The notes of a call: those that are there, and those that are written when it is recorded.

    Args:
        place: of the study, where notes are kept.
    """

    def __init__(self, place: StoredStudyHandle) -> None:
        self._place = place
        self.written: dict[str, str] = {}

    def noted(self, keys: Sequence[str]) -> dict[str, str]:
        """The notes under these keys, where there are any."""
        storage: Any = self._place.storage
        found: dict[str, str] = storage.noted(self._place.study, keys)
        return found

    def hand_over(self, writer: Any) -> None:
        """Write them."""
        if self.written:
            writer.note(self.written)


class _More:
    """What comes of a call that was not begun: there was too much to be recorded before it."""


@final
class _Lock:
    """The lock of record and state: where holding it ends by an interrupt, the state is made afresh.

    A state learns when it is looked at, so that also a look may leave it half changed.
    """

    def __init__(self, lock: threading.RLock, kept: Replica) -> None:
        self._lock, self._kept = lock, kept

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and not issubclass(kind, NoRegretError):
            self._kept.distrust()
        self._lock.release()


@final
class Replica:
    """The record of a study, and the state after it.

    The state is a cache: whatever goes wrong in the middle of a call (an error, an interrupt, a disk that is full), the
    next call makes it afresh from the record. `lock` is of record and state, and never held while a call waits for the
    storage to write.

    Args:
        policy: of the study.
        goal: of the study.
        seed: of the study.
        clock: gives Unix seconds.
        place: where it is stored; None for nowhere.
    """

    def __init__(
        self, policy: AnyPolicy, goal: Goal, seed: int, clock: Callable[[], float], place: StoredStudyHandle | None
    ) -> None:
        self._policy, self._goal, self._seed, self._clock = policy, goal, seed, clock
        self.place = place
        lock = threading.RLock()
        self.lock = _Lock(lock, weakref.proxy(self))  # no cycle: a study that is let go of closes its files at once
        self._timed = policy.pending.in_time
        self.record, self.state = Record(), begun(policy, goal, seed=seed)
        self._looked: AnyState | None = None
        self._whole = place is None  # whether record and state agree with each other, and with what is stored
        self._order = 0  # of the last event when they did last
        self._changes: dict[int, Trial | None] = {}  # in this call: trials as they were before, None for new ones
        self._leases: list[tuple[float, int]] = []  # (when it ends, trial), a heap
        self.notes: Jotter | None = None  # of the call that writes, where the storage keeps some
        self._calls = threading.RLock()  # one of this process writes at a time
        self._recorded = threading.Condition(lock)
        self._ahead = False  # whether record and state are those of a call that is not in the storage yet
        self._before: AnyState | None = None  # the state before it, where a copy is cheaper than to make it afresh
        self._took = 0.0  # seconds, calls of late
        self._company = 0  # calls in which it is still expected that others write to this study
        if place is not None:
            with self.lock:
                self.rebuild(self.state)

    # -- writing -------------------------------------------------------------------------------------------------

    def write(self, act: Callable[P, R], *args: P.args, **more: P.kwargs) -> R:
        """Do something of which `put` is told, all of it or nothing, as if nobody else wrote meanwhile.

        Where somebody did, it is taken back and done again.
        """
        if self.place is not None:
            with self._calls:
                while True:
                    result = self._write(self.place, lambda: act(*args, **more))
                    if not isinstance(result, _More):
                        return result
        with self.lock:
            if not self._whole:
                self.rebuild()
            self._expire()
            result = act(*args, **more)
            self._agree()
            return result

    def _write(self, place: StoredStudyHandle, act: Callable[[], R]) -> R | _More:
        result: Any = None
        for left in reversed(range(ATTEMPTS)):
            with self.lock:
                self.sync()
                quick = self._took < QUICK
                within = left == 0 or (quick and self._company > 0)
                if not within:
                    self._before = None if quick else copied(self.state)
                    result = self._done(place, act)
                    if self._is_said():
                        return cast(R, result)
            try:
                with place.storage.writing(place.study) as writer, self.lock:
                    if within:
                        self._take_in(place, writer)
                        result = self._done(place, act)
                    stamp = self._saved(place, writer)
                with self.lock:
                    if self._ahead and stamp is not None:  # else a reader has taken it back, and will read it again
                        self._agree(stamp)
                if stamp is not None:
                    return cast(R, result)
            finally:
                with self.lock:
                    self._ahead, self._before = False, None
                    self._recorded.notify_all()
        raise RuntimeError("The last attempt stands.")

    def _done(self, place: StoredStudyHandle, act: Callable[[], R]) -> R | _More:
        """What comes of it; record and state are then ahead of the storage."""
        self.notes = Jotter(place) if place.keeps_notes else None
        begin = time.thread_time()  # of the processor: on a busy machine nothing is quick
        result = _More() if self._expire(most=BATCH) else act()
        self._took = max(time.thread_time() - begin, FADING * self._took)
        self._ahead = True
        return result

    def _is_said(self) -> bool:
        """Whether there is nothing to record after all."""
        if self._changes or (self.notes is not None and self.notes.written):
            return False
        self._agree()
        return True

    def _take_in(self, place: StoredStudyHandle, writer: Writer) -> None:
        """Catch up, in a transaction."""
        if not self._whole:
            self.rebuild()
        record = self.record
        changed, stamp = place.checked(writer.news(since=record.order, stamp=place.known(record)), record)
        self._company = COMPANY if changed else self._company - 1
        self.apply(changed, stamp)

    def _saved(self, place: StoredStudyHandle, writer: Writer) -> str | None:
        """The stamp of the record with what was done; None where it was taken back."""
        if not self._ahead:
            return None
        if writer.news(since=self._order, stamp=place.stamp).stamp != place.stamp:
            self._company = COMPANY
            self._take_back()
            return None
        from ..storage.base import Change

        stamp = place.stamp
        if self._changes or (self.notes is not None and self.notes.written):
            changes = [Change(before, self.record[number]) for number, before in self._changes.items()]
            stamp = writer.save(changes, order=self.record.order)
        if self.notes is not None:
            self.notes.hand_over(writer)
        return stamp

    def _agree(self, stamp: str | None = None) -> None:
        """Record and state are what is stored, under this stamp; None for the one that is known."""
        if self.place is not None and stamp is not None:
            self.place.stamp = stamp
        self._order, self._whole, self._ahead = self.record.order, True, False
        self._changes.clear()

    def _take_back(self) -> None:
        """Be as before the call that is not in the storage yet."""
        self.record.take_back(self._order, self._changes)
        state, self._before = self._before, None
        if state is None:
            state = begun(self._policy, self._goal, seed=self._seed)
            state.receive(self.record.righted())
        self.state, self._looked, self._leases = state, None, _leases_of(self.record)
        self._agree()

    def put(self, trial: Trial) -> Trial:
        """One thing has happened to a trial."""
        self._whole = False  # until the call is over
        record = self.record
        if self.place is not None and trial.number not in self._changes:
            self._changes[trial.number] = record[trial.number] if trial.number < len(record) else None
        event = record.take(trial)
        if event.kind == "corrected":
            self.state = begun(self._policy, self._goal, seed=self._seed)
            self.state.receive(record.righted())
        else:
            self.state.receive((event,))
            if trial.lease_until is not None and event.kind == "asked":
                heapq.heappush(self._leases, (trial.lease_until, trial.number))
        self._looked = None
        return trial

    def distrust(self) -> None:
        """Something went wrong on the way: the next call makes record and state afresh."""
        self._whole, self._looked = False, None

    def deciding(self) -> None:
        """The state is about to take in what was told.

        If the trial is not recorded after all, that was too early for a replay to repeat: then it is made afresh.
        """
        self._whole = False

    def _expire(self, *, most: float = math.inf) -> bool:
        """Give up trials whose time is over: an event like any other, so that a replay sees it where it was.

        Returns whether there are more of them.
        """
        if not self._leases:
            return False
        now, count = self.now(), 0
        while self._leases and self._leases[0][0] <= now:
            if count >= most:
                return True
            count += 1
            until, number = heapq.heappop(self._leases)
            trial = self.record[number]
            if trial.state == "pending":
                lease = until - trial.asked_at
                reason = f"its lease of {lease:g} s ran out"
                self.put(trial.given_up(reason=reason, order=self.record.order + 1, time=now))
        return False

    # -- reading -------------------------------------------------------------------------------------------------

    def sync(self) -> None:
        """Catch up with what other processes wrote."""
        if self._ahead:
            self._recorded.wait_for(lambda: not self._ahead, PATIENCE)
        if self._ahead:  # the call waits for a storage that somebody holds; who looks does not
            self._take_back()
        if not self._whole:
            self.rebuild()
        if self.place is not None:
            self.apply(*self.place.news(self.record))

    def look(self) -> AnyState:
        """A state that has taken in everything, to look at."""
        self.sync()
        if self._looked is None:
            self._looked = self.state.settled()
        return self._looked

    def rebuild(self, fresh: AnyState | None = None) -> None:
        """Everything afresh from the record; from the stored one where there is a storage.

        Args:
            fresh: a state before any event, where there is one.
        """
        with no_collection:
            self._rebuild(fresh)

    def _rebuild(self, fresh: AnyState | None) -> None:
        record, state = Record(), begun(self._policy, self._goal, seed=self._seed) if fresh is None else fresh
        self._changes.clear()
        known, stamp = (self.record.as_of(self._order), UNKNOWN) if self.place is None else self.place.news(record)
        events = record.apply(known)
        if any(trial.corrected for trial in record):  # as if the right answer had come first
            events = record.righted()
        state.receive(events)
        self.record, self.state, self._looked, self._order = record, state, None, record.order
        self._leases = _leases_of(record)
        if self.place is not None:
            self.place.stamp = stamp
        self._whole = True  # last: an interrupt before this line leaves the rebuilding to the next call

    def apply(self, changed: Sequence[Trial], stamp: str = UNKNOWN) -> None:
        """Take in what others wrote, after which the stored record has this stamp."""
        if not changed:
            if self.place is not None:
                self.place.stamp = stamp
            return
        self._whole = False  # until record and state agree again
        events = self.record.apply(changed)
        if any(event.kind == "corrected" for event in events):
            self.state = begun(self._policy, self._goal, seed=self._seed)
            self.state.receive(self.record.righted())
        else:
            self.state.receive(events)
        for trial in changed:
            if trial.lease_until is not None and trial.state == "pending":
                heapq.heappush(self._leases, (trial.lease_until, trial.number))
        self._looked = None
        if self.place is not None:
            self.place.stamp = stamp
        self._order, self._whole = self.record.order, True

    # -- time ----------------------------------------------------------------------------------------------------

    def now(self) -> float:
        """The time; where waiting is measured by it, it must not go back."""
        now = float(self._clock())
        if not math.isfinite(now):
            raise NoRegretError(f"The clock says {now}, which is no time in seconds; nothing was recorded.")
        if not self._timed:
            return now
        if len(self.record):
            last = self.record[-1].asked_at
            if now < last:
                raise NoRegretError(
                    f"The clock has gone back by {last - now:g} s since the last question, and this policy measures "
                    "how long it waits for answers. Set the clock right and try again; nothing was recorded.",
                    advice="Or pass `clock=` to the study.",
                )
        return now


def _leases_of(record: Record) -> list[tuple[float, int]]:
    """When which pending trials end, a heap."""
    found = [(t.lease_until, t.number) for t in record if t.lease_until is not None and t.state == "pending"]
    heapq.heapify(found)
    return found


def found_again(url: str, name: str, known: Identity | None) -> tuple[Storage, str]:
    """The storage of a study that was pickled, and the study's name by now.

    It may have been renamed since, and its old name given to another.

    Args:
        url: of the storage.
        name: that it had.
        known: its identity; None in what older versions pickled.
    """
    from ..storage.opening import opened

    storage = opened(url, make=False)
    if known is None:
        return storage, name
    for candidate in (name, *storage.names()):
        found = storage.find(candidate)
        if found is not None and found.identity == known:
            return storage, candidate
    raise StorageError(
        f"{url} no longer holds the study {shown(name)} that was copied or pickled: it has been deleted, or the file "
        "has been replaced by another. Open a study by its name to work with the storage as it is now."
    )
