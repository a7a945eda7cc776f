"""Records that live as long as the process: for tests, and for studies that several threads or names share."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import final

from .._utils.checks import new_study_name, shown
from .._utils.errors import InvalidInput, StorageError
from .base import Change, KeepsNotes, News, Notes, Storage, StoredStudy, Writer
from .trial import Trial


@dataclass
class _Kept:
    study: StoredStudy
    trials: list[Trial] = field(default_factory=list)
    last: list[int] = field(default_factory=list)  # the last event of each
    order: int = 0
    saved: int = 0  # how often
    notes: dict[str, str] = field(default_factory=dict)


@final
class MemoryStorage(Storage, KeepsNotes):
    """Studies by name, in this process alone: `Study(policy, storage=MemoryStorage(), name="a")`."""

    place = "memory"
    shared = False

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._studies: dict[str, _Kept] = {}
        self._made = 0
        self._notes: dict[str, str] = {}  # of no study

    def names(self) -> list[str]:
        """See `Storage`."""
        with self._lock:
            return list(self._studies)

    def find(self, name: str) -> StoredStudy | None:
        """See `Storage`."""
        with self._lock:
            kept = self._studies.get(name)
            return None if kept is None else kept.study

    def find_or_make(self, name: str, *, policy: str, goal: str, seed: int, about: str) -> StoredStudy:
        """See `Storage`."""
        with self._lock:
            if name not in self._studies:
                self._made += 1
                self._studies[name] = _Kept(StoredStudy(self._made, name, policy, goal, seed, about, time.time()))
            return self._studies[name].study

    def rename(self, name: str, new: str) -> None:
        """See `Storage`."""
        new_study_name("new", new)
        with self._lock:
            if name not in self._studies or new in self._studies:
                there = name in self._studies
                what = f"there is a study {shown(new)} already" if there else f"there is no study {shown(name)}"
                raise InvalidInput(f"{shown(name)} in memory cannot become {shown(new)}: {what}.")
            kept = self._studies.pop(name)
            kept.study = kept.study._replace(name=new)
            self._studies[new] = kept

    def delete(self, name: str) -> None:
        """See `Storage`."""
        with self._lock:
            if self._studies.pop(name, None) is None:
                raise InvalidInput(f"There is no study {shown(name)} in memory; there are {list(self._studies)}.")

    def news(self, study: StoredStudy, *, since: int, stamp: str) -> News:
        """See `Storage`."""
        with self._lock:
            return _Writer(self._found(study)).news(since=since, stamp=stamp)

    @contextmanager
    def writing(self, study: StoredStudy) -> Iterator[Writer]:
        """See `Storage`."""
        with self._lock:
            kept = self._found(study)
            before = list(kept.trials), list(kept.last), kept.order, kept.saved, dict(kept.notes)
            try:
                yield _Writer(kept)
            except BaseException:
                kept.trials, kept.last, kept.order, kept.saved, kept.notes = before
                raise

    def keep_notes(self) -> None:
        """There is always room for them."""

    def read_notes(self, study: StoredStudy, keys: Sequence[str]) -> dict[str, str]:
        """See `KeepsNotes`."""
        with self._lock:
            return _Writer(self._found(study)).read_notes(keys)

    def notes(self, study: StoredStudy | None, prefix: str) -> dict[str, str]:
        """The notes of a study (those of none) whose keys begin so."""
        with self._lock:
            notes = self._notes if study is None else self._found(study).notes
            return {key: value for key, value in notes.items() if key.startswith(prefix)}

    def count_notes(self, study: StoredStudy, prefix: str, *, unlike: str = "") -> int:
        """How many notes of a study have keys that begin so, and values that do not begin so ("...%")."""
        other = unlike.removesuffix("%")
        return sum(not (other and value.startswith(other)) for value in self.notes(study, prefix).values())

    def note_once(self, key: str, value: str) -> str:
        """Write a note of no study, where there is none under the key; returns the one there is then."""
        with self._lock:
            return self._notes.setdefault(key, value)

    def _found(self, study: StoredStudy) -> _Kept:
        for kept in self._studies.values():
            if kept.study.id == study.id:
                return kept
        raise StorageError(f"The study {study.name!r} has been deleted from memory; nothing was written.")

    def close(self) -> None:
        """Nothing is open."""


@final
class _Writer(Writer, Notes):
    def __init__(self, kept: _Kept) -> None:
        self._kept = kept

    def read_notes(self, keys: Sequence[str]) -> dict[str, str]:
        """See `Notes`."""
        return {key: self._kept.notes[key] for key in keys if key in self._kept.notes}

    def write_notes(self, notes: Mapping[str, str]) -> None:
        """See `Notes`."""
        self._kept.notes.update(notes)

    def news(self, *, since: int, stamp: str) -> News:
        """See `Writer`."""
        kept = self._kept
        now = str(kept.saved)
        if now == stamp:
            return News((), now)
        return News([t for t, last in zip(kept.trials, kept.last, strict=True) if last >= since], now)

    def save(self, changes: Sequence[Change], *, order: int) -> str:
        """See `Writer`."""
        kept = self._kept
        for _, trial in changes:
            kept.trials[trial.number : trial.number + 1] = [trial]
            kept.last[trial.number : trial.number + 1] = [trial.last_order]
        kept.order = order
        kept.saved += 1
        return str(kept.saved)
