"""The interface of a storage: what a study needs to keep its record."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Self, cast

from .._utils.checks import shown
from ..errors import InvalidInput
from .changes import StudyChange
from .trial import Report, Trial, TrialState

Identity = tuple[int, int, float]  # Of a study, under any name.


class StoredStudy(NamedTuple):
    """A study in a storage, without its trials.

    Attributes:
        id: unique within the storage.
        name: unique within the storage.
        policy: JSON.
        goal: "maximize" or "minimize".
        seed: a whole number of any size.
        about: facts, JSON.
        created_at: Unix seconds.

    >>> import nilregret as nr
    >>> from nilregret.storage import MemoryStorage
    >>> records = MemoryStorage()
    >>> study = nr.Study(nr.auto(nr.Box(0, 1)), storage=records, name="a", goal="minimize")
    >>> records.find("a").goal
    'minimize'
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
        """The parts that a new name does not change, and that another study of the same name does not share."""
        return self.id, self.seed, self.created_at


class News(NamedTuple):
    """The changes of a record.

    Attributes:
        trials: every trial with an event not earlier than the last known one, by number. Empty if the known stamp is
            still right.
        stamp: identifies the record. Each change gives a new stamp, and two different records have different ones.
        arms: every change of the study, of arms or others, not earlier than the last known event. Empty likewise.
        steps: every report of a trial, not earlier than the last known event. Empty likewise. The trials need not have
            them in their curves.

    >>> import nilregret as nr
    >>> from nilregret.storage import MemoryStorage
    >>> records = MemoryStorage()
    >>> study = nr.Study(nr.auto(nr.Box(0, 1)), storage=records, name="a")
    >>> _ = study.ask()
    >>> len(records.news(records.find("a"), since=0, stamp="").trials)
    1
    """

    trials: Sequence[Trial]
    stamp: str
    arms: Sequence[StudyChange] = ()
    steps: Sequence[Report] = ()


def nothing_new(stamp: str) -> News:
    """Returns the news of a record that is known. Each transaction asks for them, and this makes them in one step."""
    return tuple.__new__(News, ((), stamp, (), ()))


class Change(NamedTuple):
    """A changed trial.

    Attributes:
        before: the earlier version, or None for a new trial.
        after: the new version.

    >>> import nilregret as nr
    >>> from nilregret.storage import Change
    >>> study = nr.Study(nr.auto(nr.Box(0, 1)))
    >>> Change(before=None, after=study.ask()).after.state
    'pending'
    """

    before: Trial | None
    after: Trial


class Outcome(NamedTuple):
    """State of a trial, and its reward or None."""

    state: TrialState
    reward: float | None


COUNTED: tuple[TrialState, ...] = ("observed", "failed", "abandoned", "stopped", "pending")


class Summary(NamedTuple):
    """A summary of a study for lists, for which no trials are read.

    Attributes:
        trials: number of trials.
        observed: number of trials with a reward.
        failed: number of failed trials.
        abandoned: number of abandoned trials without a later answer.
        stopped: number of stopped trials.
        best: best reward told, without trials that are known to violate a constraint, or None. Of several
            objectives it is the best of the first one.
        last_at: time of the last question or answer, Unix seconds, or None without trials.

    >>> import nilregret as nr
    >>> from nilregret.storage import Summary
    >>> study = nr.Study(nr.auto(nr.Box(0, 1)))
    >>> _ = study.tell(study.ask(), 0.5)
    >>> Summary.of(study.trials, "maximize").best
    0.5
    """

    trials: int = 0
    observed: int = 0
    failed: int = 0
    abandoned: int = 0
    stopped: int = 0
    best: float | None = None
    last_at: float | None = None

    @property
    def pending(self) -> int:
        """Number of pending trials."""
        return self.trials - self.observed - self.failed - self.abandoned - self.stopped

    @classmethod
    def of(cls, trials: Iterable[Trial], goal: str) -> Self:
        """Returns the summary of trials.

        Args:
            trials: of a study.
            goal: of the study.
        """
        return cast(Self, cls().after([Change(None, trial) for trial in trials], goal))

    def after(self, changes: Sequence[Change], goal: str) -> Self | None:
        """Returns the summary after changes, or None if the best reward may be gone: then all trials must be read."""
        new, counts = 0, dict.fromkeys(COUNTED, 0)
        best, last, better = self.best, self.last_at, max if goal == "maximize" else min
        for before, trial in changes:
            value = trial.reward if trial.constraints is None else _admitted(trial)
            if before is None:
                new += 1
            else:
                counts[before.state] -= 1
                if before.reward is not None and _admitted(before) == self.best != value:
                    return None
            counts[trial.state] += 1
            at = trial.asked_at if trial.told_at is None else trial.told_at
            last = at if last is None or at > last else last
            if value is not None:
                best = value if best is None else better(best, value)
        return tuple.__new__(type(self), (
            self.trials + new, self.observed + counts["observed"], self.failed + counts["failed"],
            self.abandoned + counts["abandoned"], self.stopped + counts["stopped"], best, last,
        ))  # fmt: skip  # A call less in each transaction.


class ListedStudy(NamedTuple):
    """A study in a list, without its policy, which may be large.

    Attributes:
        id: see `StoredStudy`, as the next.
        name: unique within the storage.
        goal: "maximize" or "minimize".
        created_at: Unix seconds.
        summary: of its trials.

    >>> import nilregret as nr
    >>> from nilregret.storage import MemoryStorage
    >>> records = MemoryStorage()
    >>> study = nr.Study(nr.auto(nr.Box(0, 1)), storage=records, name="a")
    >>> [listed.name for listed in records.listed()]
    ['a']
    """

    id: int
    name: str
    goal: str
    created_at: float
    summary: Summary


def _admitted(trial: Trial) -> float | None:
    """Returns the reward, or None if the trial is known to violate a constraint."""
    return None if trial.feasible is False else trial.reward


class Writer(ABC):
    """A write transaction on one study. No other process writes to the study meanwhile.

    Attributes:
        stamp: of the record, or None if only `news` tells it.

    >>> import nilregret as nr
    >>> from nilregret.storage import MemoryStorage, Writer
    >>> records = MemoryStorage()
    >>> study = nr.Study(nr.auto(nr.Box(0, 1)), storage=records, name="a")
    >>> with records.writing(records.find("a")) as writer:
    ...     print(isinstance(writer, Writer))
    True
    """

    stamp: str | None = None

    @abstractmethod
    def news(self, *, since: int, stamp: str) -> News:
        """Returns the changes since an event.

        Args:
            since: order of that event.
            stamp: of the record at that event.
        """

    @abstractmethod
    def save(self, changes: Sequence[Change], *, order: int) -> str:
        """Writes changes and returns the new stamp. A transaction calls it at most once.

        Args:
            changes: each trial at most once. Empty if only notes are written, which need a new stamp too.
            order: of the last event after the changes.
        """


class KeepsArms(ABC):
    """A writer that also keeps changes of arms. A study on a storage without such writers keeps its arms."""

    @abstractmethod
    def save_arms(self, changes: Sequence[StudyChange]) -> None:
        """Writes new changes. A transaction calls it at most once, before `save`."""


class KeepsChanges(KeepsArms):
    """A writer whose `save_arms` and news also have changes that are not of arms.

    They are all in one sequence, in order. After the first one that is not of arms, older programs must not write.
    """


class KeepsSteps(KeepsChanges):
    """A writer that also keeps the reports of trials, and has them in its news."""

    @abstractmethod
    def save_steps(self, reports: Sequence[Report]) -> None:
        """Writes new reports. A transaction calls it at most once, before `save`. Their trials may be as they were."""


def taken(name: str, new: str, *, there: bool = True) -> InvalidInput:
    """Returns the error that a study cannot get a new name. It may not even be there."""
    what = f"there is a study {shown(new)} already, or {shown(name)} has another name by now"
    what = what if there else f"there is no study {shown(name)}"
    return InvalidInput(f"{shown(name)} cannot become {shown(new)}: {what}.")


class KeepsNotes(ABC):
    """A storage whose writers have `read_notes`, `write_notes` and `rename`.

    Notes are texts under ASCII keys. They belong to a study and are committed with its trials.
    """

    @abstractmethod
    def read_notes(self, study: StoredStudy, keys: Sequence[str]) -> dict[str, str]:
        """Returns the notes of a study under these keys. It does not wait for a writer."""


class Storage(ABC):
    """A place for the records of studies: a file, a server, or memory.

    A study is found by its name. Its events are numbered 1, 2, ... without gaps. A storage does not check that: it
    keeps trials, and allows one writer at a time for each study. It raises `StorageError` and then leaves the record
    as it was. Several studies and threads may use one storage.

    >>> import nilregret as nr
    >>> from nilregret.storage import MemoryStorage, Storage
    >>> isinstance(MemoryStorage(), Storage)
    True
    """

    @property
    @abstractmethod
    def place(self) -> str:
        """The place in words, or a URL that opens the storage again from any process, if there is one."""

    @property
    @abstractmethod
    def shared(self) -> bool:
        """True if other processes reach the storage by `place`. Only then can its studies be copied and pickled."""

    @abstractmethod
    def names(self) -> list[str]:
        """Returns the names of all studies, oldest first."""

    @abstractmethod
    def find(self, name: str) -> StoredStudy | None:
        """Returns the study of this name, or None."""

    @abstractmethod
    def find_or_make(self, name: str, *, policy: str, goal: str, seed: int, about: str) -> StoredStudy:
        """Returns the study of this name, and makes it if there is none.

        Args:
            name: of the study.
            policy: JSON.
            goal: "maximize" or "minimize".
            seed: a whole number of any size.
            about: facts, JSON.
        """

    @abstractmethod
    def rename(self, name: str, new: str) -> None:
        """Gives a study a new name, which no other study may have. Open studies go on under the new name."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Removes a study and its trials. A program that has it open gets an error at its next call."""

    @abstractmethod
    def news(self, study: StoredStudy, *, since: int, stamp: str) -> News:
        """Returns the changes of a study since an event.

        Args:
            study: as the storage gave it.
            since: order of that event, or 0 for the whole record.
            stamp: of the record at that event.
        """

    def summaries(self, name: str | None = None) -> list[tuple[StoredStudy, Summary]]:
        """Returns all studies with their summaries, oldest first.

        A storage may know the summaries without reading the trials.

        Args:
            name: of the only study to return, or None.
        """
        names = self.names() if name is None else [name]
        found = ((study, self.news(study, since=0, stamp="")) for study in map(self.find, names) if study)
        return [(study, Summary.of(news.trials, study.goal)) for study, news in found]

    def listed(self) -> list[ListedStudy]:
        """Returns all studies with their summaries and without their policies, oldest first."""
        return [
            ListedStudy(study.id, study.name, study.goal, study.created_at, known) for study, known in self.summaries()
        ]

    def latest(self, ids: Sequence[int], count: int) -> dict[int, list[Outcome]]:
        """Returns the outcomes of the last `count` trials of studies, oldest first, by the id of the study.

        Args:
            ids: of the studies.
            count: number of trials.
        """
        wanted, found = set(ids), {}
        for study, _ in self.summaries():
            if study.id in wanted:
                trials = self.news(study, since=0, stamp="").trials[-count:]
                found[study.id] = [Outcome(trial.state, trial.reward) for trial in trials]
        return found

    @abstractmethod
    def writing(self, study: StoredStudy) -> AbstractContextManager[Writer]:
        """Opens a write transaction on a study. An error inside it rolls the transaction back."""

    @abstractmethod
    def close(self) -> None:
        """Closes files and connections. The next call opens them again."""
