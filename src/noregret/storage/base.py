"""What a study needs of the place that keeps its record."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

from ..trial import Trial

Identity = tuple[int, int, float]  # of a study, under whatever name


class StoredStudy(NamedTuple):
    """What a storage knows of a study besides its trials.

    Attributes:
        id: within the storage.
        name: likewise, and no two have the same.
        policy: JSON.
        goal: "maximize" or "minimize".
        seed: a whole number of any size.
        about: facts, JSON.
        created_at: Unix seconds.
    """

    id: int
    name: str
    policy: str
    goal: str
    seed: int
    about: str
    created_at: float

    @property
    def identity(self) -> Identity:
        """What stays when it is renamed, and what another study of its name has not."""
        return self.id, self.seed, self.created_at


class News(NamedTuple):
    """What has changed in a record.

    Attributes:
        trials: by number, every one that had a part in the last event known or in a later one; none where the stamp
            is the one that was known.
        stamp: differs after each change, and between two records that are not the same.
    """

    trials: Sequence[Trial]
    stamp: str


class Change(NamedTuple):
    """A trial as it was, None where it is new, and as it is now."""

    before: Trial | None
    after: Trial


class Writer(ABC):
    """A study in a transaction in which nobody else writes to it."""

    @abstractmethod
    def news(self, *, since: int, stamp: str) -> News:
        """What has changed since the event of this order, at which the record had this stamp."""

    @abstractmethod
    def save(self, changes: Sequence[Change], *, order: int) -> str:
        """Write what has changed, at most once a transaction; returns the stamp of the record from now on.

        Args:
            changes: each trial at most once; none where notes alone are written, which needs a new stamp, too.
            order: of the last event, after them.
        """


class Notes(ABC):
    """What some writers can note of a study besides its trials, in the same transaction: texts under keys (ASCII)."""

    @abstractmethod
    def noted(self, keys: Sequence[str]) -> dict[str, str]:
        """The notes under these keys, where there are any."""

    @abstractmethod
    def note(self, notes: Mapping[str, str]) -> None:
        """Write notes, in place of those under the same keys."""


class KeepsNotes(ABC):
    """A storage whose writers are `Notes`."""

    @abstractmethod
    def noted(self, study: StoredStudy, keys: Sequence[str]) -> dict[str, str]:
        """The notes of a study under these keys, where there are any; waits for no writer."""


class StoredState(NamedTuple):
    """What was made of a record, kept to spare the next one who opens the study the making.

    Attributes:
        key: of the program that made it, the study's description, and the machine.
        record: SHA-256 of all events up to `order`, hexadecimal.
        order: of the last event that is in it.
        digest: SHA-256 of the content, hexadecimal.
        content: an image (`noregret.image`).
    """

    key: str
    record: str
    order: int
    digest: str
    content: bytes


class States(ABC):
    """What some storages can keep of a study besides its trials: one cached state, which nothing depends on.

    It is kept in a transaction of its own, and goes with the study. What comes out of it may have been damaged or made
    up: who reads it checks it.
    """

    @abstractmethod
    def state(self, study: StoredStudy, *, key: str, most: int) -> StoredState | None:
        """The one there is, where it has this key and no more than `most` bytes; else None."""

    @abstractmethod
    def keep_state(self, study: StoredStudy, state: StoredState) -> bool:
        """Put one in the place of the one there is, unless that has the same key and as many events, or more.

        Returns whether it was put there.
        """

    @abstractmethod
    def drop_state(self, study: StoredStudy) -> bool:
        """Throw it away; whether there was one."""


class Storage(ABC):
    """A place for the records of studies: a file, a server, memory.

    A study is found by its name. Its events are numbered 1, 2, ... without gaps, which a storage need not know: it
    keeps trials, and lets one writer at a time go on with a study. Its errors are of the class `StorageError`, and
    leave what was recorded as it was. One object may be used by several studies and threads.
    """

    @property
    @abstractmethod
    def place(self) -> str:
        """In words, for people; a URL that opens it again from anywhere, if it has one."""

    @property
    @abstractmethod
    def shared(self) -> bool:
        """Whether other processes reach the same place by `place`: then studies in it can be copied and pickled."""

    @abstractmethod
    def names(self) -> list[str]:
        """Names of all studies, oldest first."""

    @abstractmethod
    def find(self, name: str) -> StoredStudy | None:
        """The study of this name, or None."""

    @abstractmethod
    def find_or_make(self, name: str, *, policy: str, goal: str, seed: int, about: str) -> StoredStudy:
        """The study of this name; where there is none, a new one of this policy (JSON), goal, seed and facts (JSON)."""

    @abstractmethod
    def rename(self, name: str, new: str) -> None:
        """Give a study another name, which none may have; studies that are open go on under the new one."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Remove a study and its trials; whoever has it open is told at the next call."""

    @abstractmethod
    def news(self, study: StoredStudy, *, since: int, stamp: str) -> News:
        """What has changed since the event of this order, at which the record had this stamp; all of it since 0."""

    @abstractmethod
    def writing(self, study: StoredStudy) -> AbstractContextManager[Writer]:
        """A transaction in which nobody else writes to the study; an error in it leaves no trace."""

    @abstractmethod
    def close(self) -> None:
        """Let go of files and connections; the next call opens them again."""
