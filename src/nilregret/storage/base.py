"""What a study needs of the place that keeps its record."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Self

from .trial import Trial

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


class Summary(NamedTuple):
    """What a list says of a study, which need not be opened for it.

    Attributes:
        trials: how many there are.
        observed: how many of them have a reward.
        failed: how many have failed.
        abandoned: how many were given up and not answered since.
        best: reward told, of trials of which it is not known that they violate a constraint; or None.
        last_at: when something was last asked or told, Unix seconds; None in a study without trials.
    """

    trials: int = 0
    observed: int = 0
    failed: int = 0
    abandoned: int = 0
    best: float | None = None
    last_at: float | None = None

    @property
    def pending(self) -> int:
        """How many wait for an answer."""
        return self.trials - self.observed - self.failed - self.abandoned

    @classmethod
    def of(cls, trials: Iterable[Trial], goal: str) -> Self:
        """Of these trials."""
        return cls()._with(goal, [Change(None, trial) for trial in trials])

    def after(self, changes: Sequence[Change], goal: str) -> Self | None:
        """As it is after these; None where the best may have been taken back, so that all trials must be looked at."""
        for before, trial in changes:
            if before is not None and _admitted(before) == self.best is not None and _admitted(trial) != self.best:
                return None
        return self._with(goal, changes)

    def _with(self, goal: str, changes: Iterable[Change]) -> Self:
        counts = {"trials": self.trials, "observed": self.observed, "failed": self.failed, "abandoned": self.abandoned}
        counts["pending"] = self.pending
        best, last, better = self.best, self.last_at, max if goal == "maximize" else min
        for before, trial in changes:
            if before is None:
                counts["trials"] += 1
            else:
                counts[before.state] -= 1
            counts[trial.state] += 1
            value, at = _admitted(trial), trial.asked_at if trial.told_at is None else trial.told_at
            last = at if last is None else max(last, at)
            if value is not None:
                best = value if best is None else better(best, value)
        del counts["pending"]
        return self._replace(**counts, best=best, last_at=last)


def _admitted(trial: Trial) -> float | None:
    """The reward, unless it is known that the trial violated a constraint."""
    return None if trial.feasible is False else trial.reward


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
    def read_notes(self, keys: Sequence[str]) -> dict[str, str]:
        """The notes under these keys, where there are any."""

    @abstractmethod
    def write_notes(self, notes: Mapping[str, str]) -> None:
        """Write notes, in place of those under the same keys."""


class KeepsNotes(ABC):
    """A storage whose writers are `Notes`."""

    @abstractmethod
    def read_notes(self, study: StoredStudy, keys: Sequence[str]) -> dict[str, str]:
        """The notes of a study under these keys, where there are any; waits for no writer."""


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

    def summaries(self, name: str | None = None) -> list[tuple[StoredStudy, Summary]]:
        """All studies, oldest first, or the one of this name, and what a list says of each.

        A storage may know without reading the trials.
        """
        names = self.names() if name is None else [name]
        found = ((study, self.news(study, since=0, stamp="")) for study in map(self.find, names) if study)
        return [(study, Summary.of(news.trials, study.goal)) for study, news in found]

    @abstractmethod
    def writing(self, study: StoredStudy) -> AbstractContextManager[Writer]:
        """A transaction in which nobody else writes to the study; an error in it leaves no trace."""

    @abstractmethod
    def close(self) -> None:
        """Let go of files and connections; the next call opens them again."""
