"""A stored study, found or made, and read through an auditor."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast, final

from .._utils.checks import new_study_name
from ..errors import InvalidInput, NoRegretError, StorageError
from ..serialize import loads
from ..storage.base import Change, KeepsArms, KeepsChanges, KeepsNotes, KeepsSteps, News, Writer
from ..storage.changes import ARM_KINDS, StudyChange
from ..storage.record import Record
from ..storage.trial import Report
from .audit import Auditor
from .definition import policy_in_force
from .direction import AnyPolicy, Goal
from .spaces import Spaces

if TYPE_CHECKING:
    from ..storage import Storage, StoredStudy
    from ..storage.base import Identity
    from ..storage.snapshots import Snapshots
    from ..storage.trial import Trial

UNKNOWN = ""  # The stamp of a record that was not read from a storage.


@final
class StoredStudyHandle:
    """A stored study, read through an auditor.

    Args:
        storage: that holds the study.
        study: as the storage knows it.
        auditor: checks every trial that is read.
    """

    def __init__(self, storage: Storage, study: StoredStudy, auditor: Auditor) -> None:
        self.storage, self.study, self._auditor = storage, study, auditor
        self.keeps_notes = isinstance(storage, KeepsNotes)
        self.stamp = UNKNOWN

    def news(self, known: Record) -> News | None:
        """Returns trials and changes that the record lacks, checked, or None if the storage has this record."""
        found = self.storage.news(self.study, since=known.order, stamp=self.stamp if known.order else UNKNOWN)
        return self._audited(found, known)

    def news_in(self, writer: Writer, known: Record) -> News | None:
        """Returns the same inside a transaction."""
        if known.order and writer.stamp == self.stamp:  # Most transactions.
            return None
        return self._audited(writer.news(since=known.order, stamp=self.stamp if known.order else UNKNOWN), known)

    def whole(self) -> News:
        """Returns the whole record as the storage has it, checked."""
        return self._auditor.news(self.storage.news(self.study, since=0, stamp=UNKNOWN), Record())

    def _audited(self, found: News, known: Record) -> News | None:
        same = known.order > 0 and found.stamp == self.stamp
        return None if same else self._auditor.news(found, known)

    @property
    def snapshots(self) -> Snapshots | None:
        """The snapshots of the storage, or None if it keeps none."""
        return getattr(self.storage, "snapshots", None)

    def prepare(self, known: Record) -> None:
        """Reads the changes of a record that was not read trial by trial."""
        self._auditor.prepare(known)

    def early(self, first: int, before: int) -> list[Trial]:
        """Returns the trials from one number to before another, as the storage has them now.

        Raises:
            StorageError: one of them is gone or damaged.
        """
        found = [] if self.snapshots is None else self.snapshots.trials(self.study, first, before)
        if [trial.number for trial in found] != list(range(first, before)):
            raise StorageError(
                f"Trials {first} .. {before - 1} of study {self.study.name!r} are no longer all in the storage. "
                "Usually the file has been edited or damaged. Restore a copy."
            )
        return self._auditor.again(found)

    def read_notes(self, keys: Sequence[str]) -> dict[str, str]:
        """Returns the notes of the study under these keys. A storage without notes has none."""
        if not keys or not self.keeps_notes:
            return {}
        storage: Any = self.storage
        found: dict[str, str] = storage.read_notes(self.study, keys)
        return found


def found_or_made(
    policy: AnyPolicy, given: str | Storage | None, *, goal: Goal, seed: int, name: str, facts: Mapping[str, Any]
) -> tuple[AnyPolicy, StoredStudyHandle | None]:
    """Returns the policy of a study, in the order on record, and its handle, or None for a study in memory.

    Args:
        policy: with which the study is made or resumed.
        given: storage, or None.
        goal: of the study.
        seed: of the study.
        name: of the study.
        facts: about the study.

    Raises:
        InvalidInput: the stored study was made with other ones.
    """
    if given is None:
        return policy, None
    from ..storage.sql import opened

    storage, where = opened(given), words_of(given)
    try:
        new_study_name("name", name)
    except InvalidInput:
        if storage.find(name) is None:  # A study of such a name, which another program has made, goes on.
            raise
    about = json.dumps(facts, sort_keys=True)
    stored = storage.find_or_make(name, policy=policy.to_json(), goal=goal, seed=seed, about=about)
    policy = policy_in_force(stored, partial(space_now, storage, stored), policy, goal, seed, about, where)
    return policy, StoredStudyHandle(storage, stored, Auditor(policy, goal, f"study {name!r} in {where}"))


def space_now(storage: Storage, stored: StoredStudy) -> StoredStudy:
    """Returns a stored study as if it had been made with its space of now."""
    widened = [change for change in storage.news(stored, since=0, stamp=UNKNOWN).arms if change.kind == "widened"]
    try:
        policies = Spaces(loads(stored.policy), widened).policies if widened else ()
    except InvalidInput:  # The auditor says what has been damaged.
        return stored
    return stored._replace(policy=policies[-1].to_json()) if policies else stored


def changes_writer(writer: Writer, changes: Sequence[StudyChange]) -> KeepsArms:
    """Returns a writer that keeps these changes, or raises an error."""
    plain = all(change.kind in ARM_KINDS for change in changes)
    if not isinstance(writer, KeepsArms if plain else KeepsChanges):
        what, needs = ("of arms", "KeepsArms") if plain else ("such as points to try first", "KeepsChanges")
        raise NoRegretError(
            f"The storage of this study keeps no changes {what}, so the study stays as it is; nothing was recorded.",
            advice=f"SQLite, PostgreSQL and memory keep them. A storage of your own needs `{needs}`.",
        )
    return cast(KeepsArms, writer)


def steps_writer(writer: Writer) -> KeepsSteps:
    """Returns a writer that keeps reports of trials, or raises an error."""
    if not isinstance(writer, KeepsSteps):
        raise NoRegretError(
            "The storage of this study keeps no reports of trials; nothing was recorded.",
            advice="SQLite, PostgreSQL and memory keep them. A storage of your own needs `KeepsSteps`.",
        )
    return writer


def save_call(
    writer: Writer, before: Mapping[int, Trial | None], record: Record, new: Sequence[StudyChange],
    notes: Mapping[str, str],
) -> str:  # fmt: skip
    """Writes what a call has changed, and returns the new stamp.

    Args:
        writer: of the transaction.
        before: the changed trials as they were, None for new ones.
        record: after the call.
        new: changes of the study.
        notes: new notes.
    """
    if new:
        changes_writer(writer, new).save_arms(new)
    trials, each, reports = record.trials, list[Change](), list[Report]()
    for number, known in before.items():
        trial: Trial = trials[number]
        each.append(tuple.__new__(Change, (known, trial)))  # A call less in each transaction.
        if trial.curve:
            reports += trial.curve[known and len(known.curve) :]
    if reports:
        steps_writer(writer).save_steps(sorted(reports))
        # A report leaves the row of its trial as it is.
        each = [one for one in each if one.before is None or one.before.last_order != one.after.last_order]
    stamp = writer.save(each, order=record.order)
    if notes:
        cast(Any, writer).write_notes(notes)
    return stamp


def words_of(storage: str | Storage) -> str:
    """Returns what an error calls a storage."""
    return storage if isinstance(storage, str) else str(getattr(storage, "url", storage.place))


def portable(study: Any) -> Callable[[], Any]:
    """Returns a function to pickle that makes a study of this record, which then goes its own way.

    A study in a storage that processes share is opened again instead, so that all copies share its record. A clock and
    functions that the study calls stay behind, and fits that an executor makes wait for `fit_pending`.
    """
    handle, replica = study.replica.handle, study.replica
    if handle is not None and handle.storage.shared:
        return partial(_same, study)
    with replica.lock:
        replica.sync()
        record = replica.record.as_of(replica.record.order)
    return partial(_of_record, type(study), replica.made, {
        "goal": study.goal, "seed": study.seed, "name": study.name, "about": study.about,
        "fits": "inline" if study.late_fits is None else "pending",
    }, record)  # fmt: skip


def _same(study: Any) -> Any:
    return study


def _of_record(cls: Any, policy: Any, given: dict[str, Any], record: Record) -> Any:
    study = cls(policy, **given)
    study.replica.adopt(record)
    return study


def reopened(cls: Any, url: str, name: str, given: dict[str, Any], known: Identity) -> Any:
    """Returns the stored study that a pickle names (see `find_again`)."""
    from ..storage.sql import find_again

    storage, name = find_again(url, name, known)
    return cls.open(storage=storage, name=name, **given)


class Invalidated(Protocol):
    """The owner of a cache."""

    def invalidate(self) -> None:
        """Marks the cache as possibly wrong."""


@final
class InvalidatingLock:
    """The lock of a cache, whose owner is invalidated if an interrupt ends the block.

    A cache may learn when it is read, so even a query may leave it half changed.
    """

    def __init__(self, lock: threading.RLock, owner: Invalidated) -> None:
        self._lock, self._owner = lock, owner

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and not issubclass(kind, NoRegretError):
            self._owner.invalidate()
        self._lock.release()
