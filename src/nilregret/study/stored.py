"""A stored study, read through an auditor, and found again after a pickle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, final

from .._utils.checks import shown
from .._utils.errors import NoRegretError, StorageError
from ..storage.base import KeepsArms, KeepsNotes, News, Writer
from ..storage.record import Record

if TYPE_CHECKING:
    from ..storage import Storage, StoredStudy
    from ..storage.base import Identity
    from .audit import Auditor

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

    def stamp_of(self, record: Record) -> str:
        """Returns the stamp that the storage gave to this record."""
        return self.stamp if record.order else UNKNOWN

    def news(self, known: Record) -> News:
        """Returns trials and changes of arms that the record lacks, and the stamp of the stored record."""
        return self.audited(self.storage.news(self.study, since=known.order, stamp=self.stamp_of(known)), known)

    def audited(self, found: News, known: Record) -> News:
        """Returns the news after the auditor has checked them."""
        same = known.order > 0 and found.stamp == self.stamp
        return News((), found.stamp) if same else self._auditor.news(found, known)

    def read_notes(self, keys: Sequence[str]) -> dict[str, str]:
        """Returns the notes of the study under these keys. A storage without notes has none."""
        if not keys or not self.keeps_notes:
            return {}
        storage: Any = self.storage
        found: dict[str, str] = storage.read_notes(self.study, keys)
        return found


def arms_writer(writer: Writer) -> KeepsArms:
    """Returns a writer that keeps changes of arms, or raises an error."""
    if not isinstance(writer, KeepsArms):
        raise NoRegretError(
            "The storage of this study keeps no changes of arms, so its arms stay as they are; nothing was recorded.",
            advice="SQLite, PostgreSQL and memory keep them. A storage of your own needs `KeepsArms`.",
        )
    return writer


def find_again(url: str, name: str, known: Identity | None) -> tuple[Storage, str]:
    """Returns the storage of a pickled study and the name that the study has now.

    The study may have been renamed since, and its old name given to another study.

    Args:
        url: of the storage.
        name: that the study had.
        known: its identity, or None in a pickle of an older version.

    Raises:
        StorageError: the storage no longer holds the study.
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
