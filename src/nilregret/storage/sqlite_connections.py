"""Connections to a SQLite file: one that writes, and a pool of those that read."""

from __future__ import annotations

import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import sqlalchemy as sql
from sqlalchemy import exc

from .._utils.forks import POOL, READER, survives_forks
from .database import LOCK_SECONDS

R = TypeVar("R")

APPLICATION_ID = 0x6E696C72  # "nilr", in the header of every file made here (SQLite's `application_id`).
OLD_APPLICATION_ID = 0x6E726774  # "nrgt", of files of versions before 1.0.
IDLE = 8  # Connections of readers that stay open.
SHORT = 0.05  # Seconds that SQLite waits for a lock, ever more lazily. After that we try again ourselves.
PAGES = 100  # Pages of the write-ahead log after which it is moved into the file.
NOWHERE = (0, 0)
FORKED = "another thread was using it when this process was forked"


class SqliteConnection:
    """A connection to a file, for one thread at a time. It opens when it is needed."""

    def __init__(self, path: Path, rank: int = READER) -> None:
        self.lock = threading.RLock()
        self._path, self._name = path, str(path)
        self.engine = sql.create_engine("sqlite://", creator=self.connect, poolclass=sql.NullPool, paramstyle="named")
        sql.event.listen(self.engine, "connect", _prepare)
        self._connection: Any = None  # SQLAlchemy's connection, or None.
        self._raw: Any = None  # The driver's connection.
        self._process = os.getpid()
        self.inode = NOWHERE  # The file on which it was opened.
        self.taken = 0  # When a pool gave it out: see `ReaderPool`.
        self._wal = False
        self._rollbacks = 0
        self._mode = "rw"
        survives_forks(self, rank, before=SqliteConnection.close_if_idle)

    @property
    def fork_lock(self) -> threading.RLock:
        """See `Forkable`."""
        return self.lock

    def after_fork(self) -> None:
        """Makes a new lock in a forked process. If the connection was in use, the process cannot use the file."""
        self.lock = threading.RLock()
        if self._connection is not None:
            _IN_USE.add(self.inode)
            self.close()

    def connect(self, mode: str | None = None) -> sqlite3.Connection:
        """Returns a connection of the driver.

        Args:
            mode: SQLite's mode. "rw" makes no file, because a file deleted in use is no empty database.
        """
        path = f"{self._path.as_uri()}?mode={mode or self._mode}"
        return sqlite3.connect(path, uri=True, timeout=SHORT, check_same_thread=False, isolation_level=None)

    def begin(self, *, write: bool) -> sql.Connection:
        """Returns the connection in a new transaction.

        After any error, one of this call included, the caller rolls back.
        """
        self._patiently(partial(self._begin, write=write), write=write)
        return cast(sql.Connection, self._connection)

    def rows(self, statement: str, parameters: Mapping[str, Any]) -> Sequence[Any]:
        """Returns the rows that one statement reads, which needs no transaction around it."""
        return self._patiently(lambda: self._opened().execute(statement, parameters).fetchall(), write=False)

    def _patiently(self, act: Callable[[], R], *, write: bool) -> R:
        """Runs a first statement, again and again while others hold the file."""
        if self._mode != "rw":  # This mode sees no changes, and by now the file may be writable.
            self.close()
            self._mode = "rw"
        until = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                return act()
            except UnicodeDecodeError as error:  # SQLite quotes a damaged table definition.
                self.close()
                raise sqlite3.DatabaseError(f"malformed database schema ({error})") from error
            except (exc.OperationalError, sqlite3.OperationalError) as error:
                self.rollback()
                if not write and self._mode == "rw" and self._unwritable(str(error)):
                    self.close()
                    self._mode = "ro&immutable=1"
                elif "locked" not in str(error) or time.monotonic() > until:
                    raise
                time.sleep(random.uniform(0.0, SHORT / 5))  # Random, so that waiting writers do not collide.

    def _begin(self, *, write: bool) -> None:
        raw = self._opened()
        if not write:
            raw.execute("BEGIN")
            raw.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()  # The transaction sees this moment.
            return
        if not self._wal and self._pragma("PRAGMA application_id") == APPLICATION_ID:
            with suppress(sqlite3.OperationalError):  # Another process may have it open in its old mode.
                self._pragma("PRAGMA journal_mode = WAL")
            self._wal = True
        raw.execute("BEGIN IMMEDIATE")

    def _unwritable(self, cause: str) -> bool:
        """Returns whether the file must be read as one that does not change, for lack of write access."""
        log = Path(f"{self._path}-wal")
        return ("unable to open" in cause or "readonly" in cause) and self._path.exists() and not log.exists()

    def _opened(self) -> sqlite3.Connection:
        inode = _inode(self._name)
        if self._connection is not None and inode != self.inode:
            # The file has been moved, deleted or replaced. The write-ahead log goes into the old file. The caller
            # checks whether the new file holds the same studies.
            with suppress(sqlite3.Error):
                self._pragma("PRAGMA wal_checkpoint(TRUNCATE)")
            self.close()
        if inode in _IN_USE:
            raise sqlite3.OperationalError(FORKED)
        if self._connection is None:
            self._process, self.inode, self._wal = os.getpid(), inode, False
            connection = self.engine.connect()
            self._raw = connection.connection.driver_connection
            self._connection = connection
        return cast(sqlite3.Connection, self._raw)

    def _pragma(self, statement: str) -> Any:
        """Runs a statement that cannot be in a transaction, and returns its first value."""
        return self._raw.execute(statement).fetchone()[0]

    def version(self) -> object:
        """Returns a value that changes when another connection commits, this one rolls back, or a new one is opened.

        It is None if the connection is closed, another thread uses it, or the file is no longer there.
        """
        if not self.lock.acquire(blocking=False):
            return None
        try:
            raw = self._raw
            if raw is None or not (raw.in_transaction or self._is_in_place()):
                return None
            return raw, self._rollbacks, self._pragma("PRAGMA data_version")
        except sqlite3.Error:  # The caller reads, and finds the same error.
            return None
        finally:
            self.lock.release()

    def _is_in_place(self) -> bool:
        return self._process == os.getpid() and _inode(self._name) == self.inode

    def commit(self) -> None:
        """Commits the transaction."""
        self._connection.commit()  # If SQLAlchemy has begun one.
        self._raw.commit()

    def rollback(self) -> None:
        """Rolls the transaction back."""
        self._rollbacks += 1
        if self._connection is not None:
            with suppress(exc.DatabaseError, sqlite3.Error):  # SQLite may have rolled back by itself.
                self._connection.rollback()
                self._raw.rollback()

    def close(self) -> None:
        """Closes the connection if this process opened it."""
        connection, self._connection, self._raw = self._connection, None, None
        if connection is not None and self._process == os.getpid():
            with suppress(exc.DatabaseError):
                connection.close()
        elif connection is not None:
            _FOREIGN.append(connection)

    def close_if_idle(self) -> None:
        """Closes the connection unless a thread uses it."""
        if self.lock.acquire(blocking=False):
            try:
                if self._connection is not None and not self._raw.in_transaction:
                    self.close()
            finally:
                self.lock.release()


class ReaderPool:
    """Connections of readers. Each transaction has one for itself.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._idle: list[SqliteConnection] = []
        self._closed = 0  # The number of calls of `close`.
        self._inode = NOWHERE
        survives_forks(self, POOL)

    @property
    def fork_lock(self) -> threading.Lock:
        """See `Forkable`."""
        return self._lock

    def after_fork(self) -> None:
        """Makes a new lock in a forked process."""
        self._lock = threading.Lock()

    def take(self) -> SqliteConnection:
        """Returns a connection that no other thread uses until it is given back."""
        with self._lock:
            found = self._idle.pop() if self._idle else SqliteConnection(self._path)
            found.taken = self._closed
        found.lock.acquire()
        return found

    def give_back(self, used: SqliteConnection) -> None:
        """Ends the use of a connection, and closes it if `close` was called meanwhile."""
        used.lock.release()
        with self._lock:
            again = used.taken == self._closed and len(self._idle) < IDLE
            if again:
                self._idle.append(used)
        if not again:
            used.close()

    def follow(self, inode: tuple[int, int]) -> bool:
        """Records the file in use. If the file is another one now, closes old connections and returns True."""
        other, self._inode = inode != self._inode, inode
        if other:
            self.close()
        return other

    def close(self) -> None:
        """Closes idle connections now, and the others after their transactions."""
        with self._lock:
            idle, self._idle = self._idle, []
            self._closed += 1
        for each in idle:
            each.close()


def close_all(writer: SqliteConnection, readers: ReaderPool) -> None:
    """Closes all connections."""
    readers.close()
    writer.close()


_IN_USE: set[tuple[int, int]] = set()  # Files that a thread of the parent process was using when this one was forked.
_FOREIGN: list[Any] = []  # Connections of the parent process, which must not be closed here.


def _inode(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)  # noqa: PTH116 - four times as fast with a string, and used in each transaction
    except OSError:
        return NOWHERE
    return found.st_dev, found.st_ino


def _prepare(connection: Any, _: Any) -> None:
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {PAGES}")
    connection.execute("PRAGMA trusted_schema = OFF")  # The file may come from an untrusted source.
