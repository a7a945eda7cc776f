"""Records that live as long as the process: for tests, and for studies that several threads share."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import final

from .._utils.checks import new_study_name, shown
from .._utils.executors import WRITER, survives_forks
from ..errors import InvalidInput, StorageError
from .base import Change, KeepsNotes, KeepsSteps, ListedStudy, News, Storage, StoredStudy, Writer, taken
from .changes import StudyChange
from .trial import NO_CURVE, Report, Trial


@dataclass
class _StoredRecord:
    study: StoredStudy
    trials: list[Trial] = field(default_factory=list)
    changes: tuple[StudyChange, ...] = ()
    steps: list[Report] = field(default_factory=list)
    order: int = 0
    saved: int = 0  # The number of saves.
    notes: dict[str, str] = field(default_factory=dict)


@final
class MemoryStorage(Storage, KeepsNotes):
    """A storage in this process alone: `Study(policy, storage=MemoryStorage(), name="a")`.

    >>> import nilregret as nr
    >>> from nilregret.storage import MemoryStorage
    >>> records = MemoryStorage()
    >>> study = nr.Study(nr.auto(nr.Box(0, 1)), storage=records, name="a")
    >>> records.names()
    ['a']
    """

    place = "memory"
    shared = False

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._studies: dict[str, _StoredRecord] = {}
        self._made = 0
        self._notes: dict[str, str] = {}  # Notes that belong to no study.
        survives_forks(self, WRITER)

    @property
    def fork_lock(self) -> threading.RLock:
        """See `Forkable`."""
        return self._lock

    def after_fork(self) -> None:
        """Makes a new lock in a forked process, whose records are a copy."""
        self._lock = threading.RLock()

    def names(self) -> list[str]:
        """Returns the names of all studies, oldest first."""
        with self._lock:
            return list(self._studies)

    def find(self, name: str) -> StoredStudy | None:
        """Returns the study of this name, or None."""
        with self._lock:
            stored = self._studies.get(name)
            return None if stored is None else stored.study

    def find_or_make(self, name: str, *, policy: str, goal: str, seed: int, about: str) -> StoredStudy:
        """Returns the study of this name, and makes it if there is none."""
        with self._lock:
            if name not in self._studies:
                self._made += 1
                self._studies[name] = _StoredRecord(
                    StoredStudy(self._made, name, policy, goal, seed, about, time.time())
                )
            return self._studies[name].study

    def rename(self, name: str, new: str) -> None:
        """Gives a study a new name, which no other study may have. Open studies go on under the new name."""
        with self._lock:
            study = self.find(name)
            if study is None:
                raise taken(name, new, there=False)
            with self.writing(study) as writer:
                writer.rename(name, new)

    def delete(self, name: str) -> None:
        """Removes a study and its trials. A program that has it open gets an error at its next call."""
        with self._lock:
            if self._studies.pop(name, None) is None:
                raise InvalidInput(f"There is no study {shown(name)} in memory; there are {list(self._studies)}.")

    def news(self, study: StoredStudy, *, since: int, stamp: str) -> News:
        """Returns the changes since an event."""
        with self._lock:
            return self._writer(study).news(since=since, stamp=stamp)

    @contextmanager
    def writing(self, study: StoredStudy) -> Iterator[_Writer]:
        """Opens a write transaction on a study. An error inside it rolls the transaction back."""
        with self._lock:
            writer = self._writer(study)
            try:
                yield writer
            except BaseException:
                writer.roll_back()
                raise

    def read_notes(self, study: StoredStudy, keys: Sequence[str]) -> dict[str, str]:
        """Returns the notes on record under these keys."""
        with self._lock:
            return self._writer(study).read_notes(keys)

    def notes_named(self, key: str, studies: Sequence[StoredStudy | ListedStudy]) -> dict[int, str]:
        """Returns the notes of several studies under one key, by the id of the study."""
        wanted = {(study.id, study.created_at) for study in studies}
        with self._lock:
            kept = [(stored.study, stored.notes) for stored in self._studies.values() if key in stored.notes]
        return {study.id: notes[key] for study, notes in kept if (study.id, study.created_at) in wanted}

    def notes(self, study: StoredStudy | None, prefix: str) -> dict[str, str]:
        """Returns the notes with this prefix of their keys, of a study or of none."""
        with self._lock:
            notes = self._notes if study is None else self._found(study).notes
            return {key: value for key, value in notes.items() if key.startswith(prefix)}

    def count_notes(self, study: StoredStudy, prefix: str, *, unlike: str = "") -> int:
        """Returns the number of notes of a study with this prefix of their keys.

        Args:
            study: of the notes.
            prefix: of the keys.
            unlike: pattern "...%" of values that do not count.
        """
        other = unlike.removesuffix("%")
        return sum(not (other and value.startswith(other)) for value in self.notes(study, prefix).values())

    def note_once(self, key: str, value: str) -> str:
        """Writes a note of no study unless the key has one, and returns the note on record."""
        with self._lock:
            return self._notes.setdefault(key, value)

    def _writer(self, study: StoredStudy) -> _Writer:
        return _Writer(self._found(study), self._studies)

    def _found(self, study: StoredStudy) -> _StoredRecord:
        for stored in self._studies.values():
            if stored.study.id == study.id:
                return stored
        raise StorageError(f"The study {study.name!r} has been deleted from memory; nothing was written.")

    def close(self) -> None:
        """Returns at once, because nothing is open."""


@final
class _Writer(Writer, KeepsSteps):
    def __init__(self, stored: _StoredRecord, studies: dict[str, _StoredRecord]) -> None:
        self._stored, self._studies, self._name = stored, studies, stored.study.name
        self._before: list[tuple[int, list[Trial]]] = []  # Trials before their changes, none if they are new.
        self._known = stored.order, stored.saved, stored.notes, stored.changes
        self._steps = len(stored.steps)

    def read_notes(self, keys: Sequence[str]) -> dict[str, str]:
        return {key: self._stored.notes[key] for key in keys if key in self._stored.notes}

    def write_notes(self, notes: Mapping[str, str]) -> None:
        self._stored.notes = {key: value for key, value in {**self._stored.notes, **notes}.items() if value}

    def rename(self, name: str, new: str) -> None:
        new_study_name("new", new)
        if name != self._name or self._studies.get(new, self._stored) is not self._stored:
            raise taken(name, new)
        self._call(new)
        self._stored.saved += 1

    def _call(self, name: str) -> None:
        stored = self._studies.pop(self._stored.study.name)
        stored.study = stored.study._replace(name=name)
        self._studies[name] = stored

    def news(self, *, since: int, stamp: str) -> News:
        stored = self._stored
        now = str(stored.saved)
        if now == stamp:
            return News((), now)
        changed = [trial for trial in stored.trials if trial.last_order >= since]
        first = bisect_left(stored.steps, since, key=lambda report: report.order)
        return News(changed, now, [change for change in stored.changes if change.order >= since], stored.steps[first:])

    def save_arms(self, changes: Sequence[StudyChange]) -> None:
        self._stored.changes += tuple(changes)

    def save_steps(self, reports: Sequence[Report]) -> None:
        self._stored.steps += reports

    def save(self, changes: Sequence[Change], *, order: int) -> str:
        stored = self._stored
        for _, trial in changes:
            place = slice(trial.number, trial.number + 1)
            self._before.append((trial.number, stored.trials[place]))
            stored.trials[place] = [trial if trial.curve is NO_CURVE else trial._replace(curve=NO_CURVE)]
        stored.order = order
        stored.saved += 1
        return str(stored.saved)

    def roll_back(self) -> None:
        """Restores the record as it was when the transaction began."""
        stored = self._stored
        for number, trials in reversed(self._before):
            stored.trials[number : number + 1] = trials
        stored.order, stored.saved, stored.notes, stored.changes = self._known
        del stored.steps[self._steps :]
        if stored.study.name != self._name:
            self._call(self._name)
