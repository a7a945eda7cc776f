"""One run at a time on a storage: a second one could not tell a trial that is evaluated from one that a crash left."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from .._utils.errors import StorageError
from ..study.study import Study

if TYPE_CHECKING:
    from ..storage import Storage

SCHEME = "sqlite:///"


def finished(study: Study, trials: int) -> bool:
    """Whether there is nothing left to evaluate."""
    return len(study.trials) >= trials and all(trial.state != "pending" for trial in study.trials)


@contextmanager
def alone(study: Study, storage: str | Storage | None, *, trials: int) -> Iterator[None]:
    """Nobody else runs trials of this storage meanwhile.

    The operating system releases the lock, however the process ends. A finished study is only looked at, which takes
    no lock: it may lie where nothing can be written. A server has no lock that ends with a process and needs no
    session: there runs are not kept apart.
    """
    place = storage if isinstance(storage, str) or storage is None else storage.place
    if place is None or not place.startswith(SCHEME) or finished(study, trials):
        yield
        return
    with closing(_lock(place)):
        yield


def _lock(storage: str) -> sqlite3.Connection:
    """A lock that ends with the process at the latest: the write lock of an empty database beside the real one."""
    path = storage.removeprefix(SCHEME) + ".lock"
    try:
        lock = sqlite3.connect(path, timeout=0.0, isolation_level=None)
    except sqlite3.OperationalError as error:
        raise StorageError(
            f"The lock {path} could not be made ({error}): the folder must be one in which files can be made."
        ) from error
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.DatabaseError as error:
        lock.close()
        if "locked" not in str(error):
            raise StorageError(
                f"The lock {path} could not be taken ({error}): it must be a file that can be written to, and nobody "
                "else's."
            ) from error
        raise StorageError(
            f"Another process is tuning in {storage} ({error}). Wait for it or stop it; to tune several things at once "
            "give each its own storage."
        ) from error
    return lock
