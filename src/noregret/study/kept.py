"""A record, what is made of it, and where it lives: kept together, so that the three never disagree."""

from __future__ import annotations

import heapq
import math
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ParamSpec, TypeVar, final

from ..checks import shown
from ..errors import NoRegretError, StorageError
from ..garbage import no_collection
from ..record import Record
from ..trial import Trial
from .goal import AnyPolicy, AnyState, Goal, begun

if TYPE_CHECKING:
    from ..storage import Storage, StoredStudy
    from ..storage.base import Identity, Writer
    from .integrity import Auditor

P = ParamSpec("P")
R = TypeVar("R")

UNKNOWN = ""  # no stamp of a storage


@final
class Place:
    """Where a study is stored.

    Args:
        storage: that has it.
        study: as the storage knows it.
        auditor: that checks what comes out of it.
    """

    def __init__(self, storage: Storage, study: StoredStudy, auditor: Auditor) -> None:
        self.storage, self.study, self._auditor = storage, study, auditor
        self.stamp = UNKNOWN

    def news(self, known: Record) -> tuple[Sequence[Trial], str]:
        """What is not in the record yet, and the stamp of the one that has it."""
        stamp = self.stamp if known.order else UNKNOWN
        return self.checked(self.storage.news(self.study, since=known.order, stamp=stamp), known)

    def checked(self, found: tuple[Sequence[Trial], str], known: Record) -> tuple[Sequence[Trial], str]:
        """News, after a look at them."""
        trials, stamp = found
        same = known.order > 0 and stamp == self.stamp
        return (() if same else self._auditor.news(trials, known)), stamp


@final
class Kept:
    """The record of a study, and the state after it.

    The state is a cache: whatever goes wrong in the middle of a call (an error, an interrupt, a disk that is full), the
    next call makes it afresh from the record.

    Args:
        policy: of the study.
        goal: of the study.
        seed: of the study.
        clock: gives Unix seconds.
        place: where it is stored; None for nowhere.
    """

    def __init__(
        self, policy: AnyPolicy, goal: Goal, seed: int, clock: Callable[[], float], place: Place | None
    ) -> None:
        self._policy, self._goal, self._seed, self._clock = policy, goal, seed, clock
        self.place = place
        self.lock = threading.RLock()
        self._timed = policy.pending.in_time
        self.record, self.state = Record(), begun(policy, goal, seed=seed)
        self._looked: AnyState | None = None
        self._whole = place is None  # whether record and state agree with each other, and with what is stored
        self._order = 0  # of the last event when they did last
        self._changes: dict[int, Trial | None] = {}  # in this call: trials as they were before, None for new ones
        self._leases: list[tuple[float, int]] = []  # (when it ends, trial), a heap
        self.writer: Writer | None = None  # of the storage, in a call that writes
        if place is not None:
            with self.lock:
                self.rebuild(self.state)

    # -- writing -------------------------------------------------------------------------------------------------

    def write(self, act: Callable[P, R], *args: P.args, **more: P.kwargs) -> R:
        """Do something of which `put` is told, all of it or nothing, while nobody else writes."""
        with self.lock:
            if not self._whole:
                self.rebuild()
            if self.place is None:
                if self._leases:
                    self._expire()
                result = act(*args, **more)
            else:
                result = self._write(self.place, act, *args, **more)
            if not self._whole:
                self._order, self._whole = self.record.order, True
                self._changes.clear()
            return result

    def _write(self, place: Place, act: Callable[P, R], *args: P.args, **more: P.kwargs) -> R:
        with place.storage.writing(place.study) as writer:
            record = self.record
            stamp = place.stamp if record.order else UNKNOWN
            self.apply(*place.checked(writer.news(since=record.order, stamp=stamp), record))
            if self._leases:
                self._expire()
            self.writer = writer
            try:
                result = act(*args, **more)
            finally:
                self.writer = None
            if self._changes:
                from ..storage.base import Change

                changes = [Change(before, self.record[number]) for number, before in self._changes.items()]
                stamp = writer.save(changes, order=self.record.order)
        if self._changes:
            place.stamp = stamp
        return result

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

    def deciding(self) -> None:
        """The state is about to take in what was told.

        If the trial is not recorded after all, that was too early for a replay to repeat: then it is made afresh.
        """
        self._whole = False

    def _expire(self) -> None:
        """Give up trials whose time is over: an event like any other, so that a replay sees it where it was."""
        now = self.now()
        while self._leases and self._leases[0][0] <= now:
            until, number = heapq.heappop(self._leases)
            trial = self.record[number]
            if trial.state == "pending":
                lease = until - trial.asked_at
                reason = f"its lease of {lease:g} s ran out"
                self.put(trial.given_up(reason=reason, order=self.record.order + 1, time=now))

    # -- reading -------------------------------------------------------------------------------------------------

    def sync(self) -> None:
        """Catch up with what other processes wrote."""
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
        self._leases = [(t.lease_until, t.number) for t in record if t.lease_until is not None and t.state == "pending"]
        heapq.heapify(self._leases)
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


def found_again(url: str, name: str, known: Identity | None) -> tuple[Storage, str]:
    """The storage of a study that was pickled, and the study's name by now.

    It may have been renamed since, and its old name given to another.

    Args:
        url: of the storage.
        name: that it had.
        known: its identity; None in what older versions pickled.
    """
    from ..storage import opened

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
