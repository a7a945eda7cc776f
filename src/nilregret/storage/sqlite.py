"""A SQLite file: its path, its format, and transactions that never make a file by accident.

The file is in WAL mode with `synchronous = FULL`. A commit appends to the file beside it (`-wal`) and reaches the disk.
One connection writes. Each reader has a connection of its own, so readers wait for no writer. Open connections have
three consequences. A file may be moved or deleted meanwhile, and writes to it would be lost unnoticed. So each
transaction first checks that the file is there. SQLite forbids the use of a connection after a fork, so connections are
closed before a fork. The last connection to be closed moves the `-wal` file into the database. So all are closed when
the storage is dropped, at the latest when Python ends.
"""

from __future__ import annotations

import os
import random
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, final

import sqlalchemy as sql
from sqlalchemy import exc

from .._utils.checks import shown
from .._utils.executors import POOL, READER, WRITER, survives_forks
from ..errors import StorageError
from .database import LOCK_SECONDS, SCHEME, STEP, Database, file_of, newer, older
from .tables import FORMAT, STOPPED, VISIT, Tables, tables

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
        self._mode, self.lacks = "rw", tuple[str, ...]()
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
        return self._connection  # type: ignore[no-any-return]

    def begin_again(self) -> sql.Connection | None:
        """Returns the connection in a new transaction that writes, if it has written to this file and nobody waits.

        Returns None if `begin` has to do more. It costs a fraction of what `begin` does.
        """
        if not self._wal:
            return None
        try:
            found = os.stat(self._name)  # noqa: PTH116 - as `_inode`, in a call less
            if (found.st_dev, found.st_ino) != self.inode:
                return None
            self._raw.execute("BEGIN IMMEDIATE")
        except (OSError, sqlite3.OperationalError):
            return None
        return self._connection  # type: ignore[no-any-return]

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
            self._process, self.inode = os.getpid(), inode
            connection = self.engine.connect()
            self._raw = connection.connection.driver_connection
            self._connection = connection
            for name in ("", *self.lacks) if self.lacks else ():
                self._raw.execute(EARLIER[name])
        return self._raw  # type: ignore[no-any-return]  # `cast` is a call

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
            return raw, self._rollbacks, raw.execute("PRAGMA data_version").fetchone()[0]
        except sqlite3.Error:  # The caller reads, and finds the same error.
            return None
        finally:
            self.lock.release()

    def _is_in_place(self) -> bool:
        return self._process == os.getpid() and _inode(self._name) == self.inode

    def commit(self) -> None:
        """Commits the transaction."""
        if self._connection.in_transaction():  # SQLAlchemy has begun one.
            self._connection.commit()
        if self._raw.in_transaction:
            self._raw.execute("COMMIT")  # A prepared statement, which `commit` is not.

    def rollback(self) -> None:
        """Rolls the transaction back."""
        self._rollbacks += 1
        if self._connection is not None:
            with suppress(exc.DatabaseError, sqlite3.Error):  # SQLite may have rolled back by itself.
                self._connection.rollback()
                self._raw.rollback()

    def close(self) -> None:
        """Closes the connection if this process opened it."""
        connection, self._connection, self._raw, self._wal = self._connection, None, None, False
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
        self.lacks: tuple[str, ...] = ()  # What a file of an earlier version lacks that cannot be written to.
        self.inode = NOWHERE  # The file in use.
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
            found.taken, found.lacks = self._closed, self.lacks
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


EARLIER = {  # Statements that add what a read-only file of an earlier version lacks, for one connection.
    "": "PRAGMA temp_store = MEMORY",
    "steps": f"CREATE TEMP TABLE steps (study, {', '.join(STEP)})",
    f"studies.{STOPPED}": f"CREATE TEMP VIEW studies AS SELECT *, 0 AS {STOPPED} FROM main.studies",
    f"trials.{VISIT}": f"CREATE TEMP VIEW trials AS SELECT *, NULL AS {VISIT} FROM main.trials",
}
PRIVATE = 0o600  # Mode of a file with secrets: only its owner can use it.


@final
class SqliteDatabase(Database):
    """A SQLite file, which may belong to another program.

    Args:
        url: see `SqlStorage`.
        make: if False, a missing file is an error.
        private: if True, only its owner can read a new file.
    """

    def __init__(self, url: str, *, make: bool, private: bool = False) -> None:
        self.url = url
        self.path = file_of(url, make=make).absolute()
        self.place = f"{SCHEME}{self.path}"
        self.tables = TABLES
        self._writer = SqliteConnection(self.path, WRITER)
        self._readers = ReaderPool(self.path)
        self.engine = self._writer.engine
        weakref.finalize(self, close_all, self._writer, self._readers)
        if make and not self.path.exists():
            self._make(private=private)

    def _make(self, *, private: bool) -> None:
        try:
            if private:  # SQLite gives the files beside it the same mode.
                with suppress(OSError):  # SQLite reports a folder that cannot be written.
                    os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE))
            connection = self._writer.connect("rwc")
            with suppress(sqlite3.OperationalError):  # Another process makes it too, or the disk has no WAL.
                connection.execute("PRAGMA journal_mode = WAL")
            connection.close()
        except sqlite3.OperationalError as error:
            raise StorageError(
                f"The storage {self.url} could not be made: {error}. {self._remedy(str(error), making=True)}"
            ) from error

    def transaction(self, *, write: bool) -> AbstractContextManager[sql.Connection]:
        """Opens a transaction. A writer locks the file from the start, and a reader sees the file as it was then."""
        return _Transaction(self, write=write)

    def rows(self, statement: str, parameters: Mapping[str, Any]) -> Sequence[Any]:
        """Returns the rows of one statement, without a transaction around it."""
        used = self.take(write=False)
        try:
            found = used.rows(statement, parameters)
            self.follow(used)
        except (exc.DatabaseError, sqlite3.Error) as error:
            raise self.unusable(error) from error
        else:
            return found
        finally:
            self.give_back(used)

    def take(self, *, write: bool) -> SqliteConnection:
        """Returns a connection for this thread alone."""
        if not write:
            return self._readers.take()
        self._writer.lock.acquire()
        return self._writer

    def give_back(self, used: SqliteConnection) -> None:
        """Ends the use of a connection."""
        if used is self._writer:
            used.lock.release()
        else:
            self._readers.give_back(used)

    def follow(self, used: SqliteConnection) -> None:
        """Closes connections to an earlier file, if another one is under the path now."""
        if used.inode != self._readers.inode:
            self._readers.inode = used.inode
            self._readers.close()
            self._writer.close_if_idle()

    def unusable(self, error: exc.DatabaseError | sqlite3.Error) -> StorageError:
        """Returns what an error of SQLite means for the storage."""
        cause = str(error.orig if isinstance(error, exc.DatabaseError) else error)
        return StorageError(f"The storage {self.url} could not be used: {cause}. {self._remedy(cause)}")

    def version(self) -> object:
        """Returns a value that changes when others commit. It is None while the writer is closed or busy."""
        return self._writer.version()

    def close(self) -> None:
        """Closes files and connections. The next call opens them again."""
        self._readers.close()
        with self._writer.lock:
            self._writer.close()

    def _remedy(self, cause: str, *, making: bool = False) -> str:
        """Returns advice for an error message of SQLite."""
        if "locked" in cause:
            return (
                f"Other processes have been writing for more than {LOCK_SECONDS:.0f} s; try again, or stop one that "
                "holds the file."
            )
        if FORKED in cause:
            return "Fork before threads use the study, or start processes by 'spawn' or 'forkserver'."
        if "no such table" in cause or "no such column" in cause:
            return "The file has been replaced by another since it was opened, or damaged; nothing was written."
        if "not a database" in cause or "malformed" in cause or "decode" in cause:
            return "The file is not a SQLite database, or it is damaged; choose another file, or restore a copy."
        if "unable to open" in cause and not making and not self.path.exists():
            return "The file has been deleted or moved: put it back (or open the study anew, which begins it anew)."
        if "readonly" in cause or "unable to open" in cause or "is a view" in cause:
            return "The file or its folder cannot be written to; check the permissions, or choose another place."
        if "full" in cause or "disk I/O" in cause:
            return (
                "Make room on the disk and go on: nothing of this call was recorded, and all that was before is there."
            )
        return "What was recorded before is still there."

    def look_only(self) -> bool:
        """Reads a file of an earlier version that cannot be written to. Returns True."""
        self._readers.lacks = self._writer.lacks = self.lacks
        self.close()
        return True

    # -- whose it is ---------------------------------------------------------------------------------------------

    def has_tables(self, connection: sql.Connection) -> bool:
        """Returns whether our tables are there."""
        known: int = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
        mark = connection.exec_driver_sql("PRAGMA application_id").scalar_one()
        made = connection.exec_driver_sql("SELECT name, type FROM sqlite_master WHERE name NOT GLOB 'sqlite_*'")
        there = {row[0]: row[1] for row in made if row[1] != "index"}
        if not there and mark in (0, APPLICATION_ID):
            return False
        if mark == OLD_APPLICATION_ID:
            raise older(self.url)
        if mark != APPLICATION_ID:
            raise StorageError(
                f"{self.url} is a database of another program (it has {_listed(there)}): nothing in it was touched. "
                "Choose another file for the storage."
            )
        if known > FORMAT:
            raise newer(self.url, known)
        known_columns = {
            name: {row[1] for row in connection.exec_driver_sql(f"PRAGMA table_info({name})")}
            for name in self.tables.metadata.tables
            if name in there
        }
        self.lacks = self.missing_of(known_columns)
        for name, table in self.tables.metadata.tables.items():
            if name in self.lacks:
                continue
            columns = known_columns.get(name, set())
            missing = {column.name for column in table.columns if f"{name}.{column.name}" not in self.lacks} - columns
            if missing or there.get(name) != "table":
                what = f"no column {min(missing)!r} of {name!r}" if columns and missing else f"no table {name!r}"
                raise StorageError(f"{self.url} has {what}: it has been damaged. Restore a copy.")
        return True

    def mark(self, connection: sql.Connection) -> None:
        """Marks new tables as ours, with their format."""
        connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.exec_driver_sql(f"PRAGMA user_version = {FORMAT}")

    def lock_tables(self, connection: sql.Connection) -> None:
        """Returns at once, because a writer has locked the whole file."""

    def check_integrity(self, connection: sql.Connection) -> None:
        """Raises `StorageError` if a page is damaged, or if an index disagrees with its table."""
        found = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one()
        if found != "ok":
            raise StorageError(f"{self.url} has been damaged ({shown(found)}). Restore a copy; nothing was written.")

    def gone(self, name: str) -> str:
        """Returns a sentence that says why a study may no longer be there."""
        return (
            f"{self.url} no longer holds the study {name!r} that was opened: it has been deleted, or the file has been "
            "replaced by another. Nothing was written. Open the study anew to work with the file as it is now."
        )


@final
class _Transaction(AbstractContextManager[sql.Connection]):
    """A transaction, as a context. A generator in its place would cost more than a statement.

    Args:
        database: of the transaction.
        write: if True, the file is locked.
    """

    def __init__(self, database: SqliteDatabase, *, write: bool) -> None:
        self._database, self._write = database, write

    def __enter__(self) -> sql.Connection:
        self._used = used = self._database.take(write=self._write)
        try:
            connection = used.begin_again() if self._write else None
            if connection is None:
                connection = used.begin(write=self._write)
                self._database.follow(used)
        except BaseException as error:  # Interrupts included, because the transaction may have begun.
            self.__exit__(type(error), error, None)
            raise
        return connection

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        used = self._used
        try:
            if error is None:
                used.commit()
        except BaseException as failure:
            self._roll_back(failure)
            raise
        else:
            if error is not None:
                self._roll_back(error)
        finally:
            self._database.give_back(used)

    def _roll_back(self, error: BaseException) -> None:
        """Rolls back after an error, and raises it as a `StorageError` if it is one of SQLite."""
        self._used.rollback()
        if isinstance(error, exc.DatabaseError | sqlite3.Error):
            raise self._database.unusable(error) from error


TABLES: Tables = tables()


def _listed(there: dict[str, str]) -> str:
    if not there:
        return "a mark that is not ours"
    names = sorted(there)
    return f"{'table' if len(names) == 1 else 'tables'} {', '.join(map(shown, names[:4]))}{', ...' * (len(names) > 4)}"
