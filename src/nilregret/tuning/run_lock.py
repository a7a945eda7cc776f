"""A lock that allows one run at a time on an SQLite storage.

A second run could not distinguish trials under evaluation from trials that a crash left pending.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from ..errors import StorageError
from ..study.study import Study

if TYPE_CHECKING:
    from ..storage import Storage

SCHEME = "sqlite:///"


def finished(study: Study, trials: int) -> bool:
    """Returns whether there is nothing left to evaluate."""
    return len(study.trials) >= trials and all(trial.state != "pending" for trial in study.trials)


@contextmanager
def run_lock(study: Study, storage: str | Storage | None, *, trials: int) -> Iterator[None]:
    """Holds the lock of a storage while the block runs.

    The operating system releases the lock, however the process ends. A finished study is only read, which takes no
    lock, since its folder may not be writable. A database server has no lock that ends with a process and needs no
    session, so runs on a server are not kept apart.

    Raises:
        StorageError: if another process holds the lock, or the lock cannot be made.
    """
    place = storage if isinstance(storage, str) or storage is None else storage.place
    if place is None or not place.startswith(SCHEME) or finished(study, trials):
        yield
        return
    with closing(_lock(place)):
        yield


def _lock(storage: str) -> sqlite3.Connection:
    """Returns the write lock of an empty database beside the real one, which ends with the process."""
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
