"""The SQLite file: where it is, whose it is, and connections that never make a file by accident.

The file is in WAL mode with `synchronous = FULL`: a commit is one append to the file beside it (`-wal`) that reached
the disk. One connection writes; whoever reads has another one, so that readers wait for nobody. Connections are kept,
which has three consequences. A file that is moved or deleted meanwhile would be written to without anybody noticing, so
it is looked for before each transaction. SQLite forbids to use a connection across a fork, so they are closed before
one. And the last connection to be closed takes the `-wal` file into the database, so all are closed when the storage is
let go of, at the latest when Python ends.
"""

from __future__ import annotations

import os
import random
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast, final

import sqlalchemy as sql
from sqlalchemy import exc

from .._utils.checks import shown, storable
from .._utils.errors import InvalidInput, StorageError
from .database import LOCK_SECONDS, Database, newer
from .notes import notes_table
from .tables import ADDED, FORMAT, Tables, tables

APPLICATION_ID = 0x6E726774  # "nrgt", in the header of every file made here (SQLite's `application_id`)
IDLE = 8  # connections that wait for readers
PRIVATE = 0o600  # who may read and write a file that holds secrets: its owner
SHORT = 0.05  # seconds that SQLite itself waits for a lock, ever more lazily; then we begin anew with it
PAGES = 100  # of the write-ahead log after which it is taken into the file
SCHEME = "sqlite:///"
NOWHERE = (0, 0)


@final
class File(Database):
    """One SQLite file that may be somebody else's.

    Args:
        url: as of `SqlStorage`.
        make: whether to make the file where there is none.
        private: whether a file that is made can be read by its owner alone.
    """

    def __init__(self, url: str, *, make: bool, private: bool = False) -> None:
        self.url = url
        self.path = _path(url, make=make).absolute()
        self.place = f"{SCHEME}{self.path}"
        self.tables, self.notes = TABLES, NOTES
        self._kept = _Kept(self.path)  # that writes
        self._readers = _Readers(self.path)
        self.engine = self._kept.engine
        weakref.finalize(self, _close, self._kept, self._readers)
        if make and not self.path.exists():
            self._make(private=private)

    def _make(self, *, private: bool) -> None:
        try:
            if private:  # SQLite gives the files beside it the same mode
                with suppress(OSError):  # of a folder that cannot be written to SQLite says so, too
                    os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE))
            connection = self._kept.connect("rwc")
            with suppress(sqlite3.OperationalError):  # another process makes it, too; or no WAL on this disk
                connection.execute("PRAGMA journal_mode = WAL")
            connection.close()
        except sqlite3.OperationalError as error:
            raise StorageError(
                f"The storage {self.url} could not be made: {error}. {self._remedy(str(error), making=True)}"
            ) from error

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[sql.Connection]:
        """See `Database`; a writer has the file for itself from the start, a reader sees it as it was then."""
        try:
            with self._kept.lock if write else self._readers.one() as found:
                kept = self._kept if write else cast(_Kept, found)
                try:
                    connection = kept.begin(write=write)
                    if self._readers.see(kept.inode):
                        self._kept.leave()
                    yield connection
                    kept.commit()
                except BaseException:  # an interrupt as soon as the transaction has begun, too
                    kept.rollback()
                    raise
        except (exc.DatabaseError, sqlite3.Error) as error:
            cause = str(error.orig if isinstance(error, exc.DatabaseError) else error)
            raise StorageError(f"The storage {self.url} could not be used: {cause}. {self._remedy(cause)}") from error

    def close(self) -> None:
        """See `Database`."""
        self._readers.close()
        with self._kept.lock:
            self._kept.close()

    def _remedy(self, cause: str, *, making: bool = False) -> str:
        """What to try where SQLite says this."""
        if "locked" in cause:
            return (
                f"Other processes have been writing for more than {LOCK_SECONDS:.0f} s; try again, or stop one that "
                "holds the file."
            )
        if "no such table" in cause or "no such column" in cause:
            return "The file has been replaced by another since it was opened, or damaged; nothing was written."
        if "not a database" in cause or "malformed" in cause or "decode" in cause:
            return "The file is not a SQLite database, or it is damaged; choose another file, or restore a copy."
        if "unable to open" in cause and not making and not self.path.exists():
            return "The file has been deleted or moved: put it back (or open the study anew, which begins it anew)."
        if "readonly" in cause or "unable to open" in cause:
            return "The file or its folder cannot be written to; check the permissions, or choose another place."
        if "full" in cause or "disk I/O" in cause:
            return (
                "Make room on the disk and go on: nothing of this call was recorded, and all that was before is there."
            )
        return "What was recorded before is still there."

    # -- whose it is ---------------------------------------------------------------------------------------------

    def format(self, connection: sql.Connection) -> int:
        """See `Database`."""
        known: int = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
        ours = connection.exec_driver_sql("PRAGMA application_id").scalar_one()
        if ours == APPLICATION_ID and known > FORMAT:
            raise newer(self.url, known, FORMAT)
        return self._format_of(connection, ours)

    def _format_of(self, connection: sql.Connection, mark: int) -> int:
        """By the columns there are: files say their format only since format 5."""
        made = connection.exec_driver_sql("SELECT name, type FROM sqlite_master WHERE name NOT GLOB 'sqlite_*'")
        there = {row[0]: row[1] for row in made if row[1] != "index"}
        if not there and mark in (0, APPLICATION_ID):
            return 0
        each = self.tables.metadata.tables.items()
        wanted = {name: {column.name for column in table.columns} for name, table in each}
        first = {name: names - ADDED.get(name, {}).keys() for name, names in wanted.items()}
        columns = {
            name: self.columns(connection, table) if there.get(name) == "table" else set() for name, table in each
        }
        # Files from before there was a mark have these tables and nothing else.
        ours = all(first[name] <= columns[name] <= wanted[name] for name in wanted)
        if mark != APPLICATION_ID and (mark != 0 or there.keys() != wanted.keys() or not ours):
            raise StorageError(
                f"{self.url} is a database of another program (it has {_listed(there)}): nothing in it was touched. "
                "Choose another file for the storage."
            )
        for name, names in first.items():
            missing = names - columns[name]
            if missing:
                what = f"no column {min(missing)!r} of {name!r}" if columns[name] else f"no table {name!r}"
                raise StorageError(f"{self.url} has {what}: it has been damaged. Restore a copy.")
        lacking = [came for name, new in ADDED.items() for column, came in new.items() if column not in columns[name]]
        return min(lacking, default=FORMAT + 1) - 1

    def mark(self, connection: sql.Connection, format: int) -> None:  # noqa: A002 - as in `Database`
        """See `Database`."""
        connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.exec_driver_sql(f"PRAGMA user_version = {format}")

    def columns(self, connection: sql.Connection, table: sql.Table) -> set[str]:
        """See `Database`."""
        return {row[1] for row in connection.exec_driver_sql(f"PRAGMA table_info({table.name})")}

    def lock_tables(self, connection: sql.Connection) -> None:
        """Who writes has the file for itself."""

    def check_whole(self, connection: sql.Connection) -> None:
        """Refuse a file in which pages are damaged, or an index says something else than its table."""
        found = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one()
        if found != "ok":
            raise StorageError(f"{self.url} has been damaged ({shown(found)}). Restore a copy; nothing was written.")

    def gone(self, name: str) -> str:
        """See `Database`."""
        return (
            f"{self.url} no longer holds the study {name!r} that was opened: it has been deleted, or the file has been "
            "replaced by another. Nothing was written. Open the study anew to work with the file as it is now."
        )


class _Kept:
    """A connection to a file, of one thread at a time: made when it is needed, and as often."""

    def __init__(self, path: Path) -> None:
        self.lock = threading.RLock()
        self._path = path
        self.engine = sql.create_engine("sqlite://", creator=self.connect, poolclass=sql.NullPool, paramstyle="named")
        sql.event.listen(self.engine, "connect", _prepare)
        self._connection: Any = None  # of SQLAlchemy, or None
        self._raw: Any = None  # the driver's own
        self._process = os.getpid()
        self.inode = NOWHERE  # of the file that it was opened on
        self._wal = False
        self._mode = "rw"
        _ALL.add(self)

    def connect(self, mode: str | None = None) -> sqlite3.Connection:
        """A connection; "rw" makes no file: one that was deleted while it was in use is no empty database."""
        path = f"{self._path.as_uri()}?mode={mode or self._mode}"
        return sqlite3.connect(path, uri=True, timeout=SHORT, check_same_thread=False, isolation_level=None)

    def begin(self, *, write: bool) -> sql.Connection:
        """The connection, in a new transaction; whoever asks for it rolls back on any error, also one of this call."""
        if self._mode != "rw":  # it has not been told of changes, and perhaps it can be written to by now
            self.close()
            self._mode = "rw"
        if self._process != os.getpid():  # forked in spite of all: closing it here would harm the other process
            self.close()
        until = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                self._begin(write=write)
            except UnicodeDecodeError as error:  # SQLite quotes the damaged definition of a table
                self.close()
                raise sqlite3.DatabaseError(f"malformed database schema ({error})") from error
            except (exc.OperationalError, sqlite3.OperationalError) as error:
                self.rollback()
                if not write and self._mode == "rw" and self._unwritable(str(error)):
                    self.close()
                    self._mode = "ro&immutable=1"
                elif "locked" not in str(error) or time.monotonic() > until:
                    raise
                time.sleep(random.uniform(0.0, SHORT / 5))  # so that not all come back at once
            else:
                return cast(sql.Connection, self._connection)

    def _begin(self, *, write: bool) -> None:
        raw = self._opened()
        if not write:
            raw.execute("BEGIN")
            raw.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()  # now is what will be read
            return
        if not self._wal and self._directly("PRAGMA application_id") == APPLICATION_ID:
            with suppress(sqlite3.OperationalError):  # others have it open as it was: so it stays, this time
                self._directly("PRAGMA journal_mode = WAL")
            self._wal = True
        raw.execute("BEGIN IMMEDIATE")

    def _unwritable(self, cause: str) -> bool:
        """Whether the file may be read as one that does not change: SQLite cannot make the files beside it."""
        log = Path(f"{self._path}-wal")
        return ("unable to open" in cause or "readonly" in cause) and self._path.exists() and not log.exists()

    def _opened(self) -> sqlite3.Connection:
        inode = _inode(self._path)
        if self._connection is not None and inode != self.inode:
            # It has been moved, deleted or replaced. What is only in the write-ahead log goes into the file, which has
            # another name by now, or none; whether the new one holds the same studies others will see.
            with suppress(sqlite3.Error):
                self._directly("PRAGMA wal_checkpoint(TRUNCATE)")
            self.close()
        if self._connection is None:
            self._process, self.inode, self._wal = os.getpid(), inode, False
            connection = self.engine.connect()
            self._raw = connection.connection.driver_connection
            self._connection = connection
        return cast(sqlite3.Connection, self._raw)

    def _directly(self, statement: str) -> Any:
        """What cannot be in a transaction; the first value of its answer."""
        return self._raw.execute(statement).fetchone()[0]

    def commit(self) -> None:
        """End the transaction well."""
        self._connection.commit()  # if SQLAlchemy had a part in it
        self._raw.commit()

    def rollback(self) -> None:
        """End the transaction as if it had not been."""
        if self._connection is not None:
            with suppress(exc.DatabaseError, sqlite3.Error):  # SQLite may have done so by itself
                self._connection.rollback()
                self._raw.rollback()

    def close(self) -> None:
        """Close the connection, if it is this process's."""
        connection, self._connection, self._raw = self._connection, None, None
        if connection is not None and self._process == os.getpid():
            with suppress(exc.DatabaseError):
                connection.close()
        elif connection is not None:
            _LOST.append(connection)

    def leave(self) -> None:
        """Close the connection, unless it is in use."""
        if self.lock.acquire(blocking=False):
            try:
                if self._connection is not None and not self._raw.in_transaction:
                    self.close()
            finally:
                self.lock.release()


class _Readers:
    """Connections that read: each transaction has one for itself.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._idle: list[_Kept] = []
        self._closed = 0  # how often
        self._inode = NOWHERE

    @contextmanager
    def one(self) -> Iterator[_Kept]:
        """One that nobody else uses meanwhile."""
        with self._lock:
            kept = self._idle.pop() if self._idle else _Kept(self._path)
            closed = self._closed
        try:
            with kept.lock:
                yield kept
        finally:
            with self._lock:
                again = closed == self._closed and len(self._idle) < IDLE
                if again:
                    self._idle.append(kept)
            if not again:
                kept.close()

    def see(self, inode: tuple[int, int]) -> bool:
        """Take note of the file in use; whether it was another one before, to which no connection must linger."""
        other, self._inode = inode != self._inode, inode
        if other:
            self.close()
        return other

    def close(self) -> None:
        """Close those that nobody uses now, and the others after that."""
        with self._lock:
            idle, self._idle = self._idle, []
            self._closed += 1
        for kept in idle:
            kept.close()


def _close(kept: _Kept, readers: _Readers) -> None:
    readers.close()
    kept.close()


TABLES: Tables = tables()
NOTES: sql.Table = notes_table()
_ALL: weakref.WeakSet[_Kept] = weakref.WeakSet()
_LOST: list[Any] = []  # connections of another process, kept from being closed


def _inode(path: Path) -> tuple[int, int]:
    try:
        found = os.stat(path)  # noqa: PTH116 - once in each transaction, and four times as fast
    except OSError:
        return NOWHERE
    return found.st_dev, found.st_ino


def _prepare(connection: Any, _: Any) -> None:
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {PAGES}")
    connection.execute("PRAGMA trusted_schema = OFF")  # the file may come from anybody


def _before_fork() -> None:
    for kept in list(_ALL):
        kept.leave()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork)


def _listed(there: dict[str, str]) -> str:
    if not there:
        return "a mark that is not ours"
    names = sorted(there)
    return f"{'table' if len(names) == 1 else 'tables'} {', '.join(map(shown, names[:4]))}{', ...' * (len(names) > 4)}"


def _path(url: object, *, make: bool) -> Path:
    """The path in an SQLite URL, where a file is or may be made."""
    path = Path(_database(url))
    try:
        folder, there, regular = path.parent.is_dir(), path.exists(), path.is_file()
    except OSError as error:
        raise InvalidInput(f"`storage` {shown(url)} cannot be used: {error.strerror}. Choose another name.") from error
    if not folder:
        raise InvalidInput(f"`storage` is in the folder {str(path.parent)!r}, which does not exist: make it first.")
    if not make and not there:
        raise InvalidInput(f"`storage` {url!r}: there is no such file.")
    if there and not regular:
        raise InvalidInput(f"`storage` {url!r} is a folder or a device; it must be a file.")
    return path


def _database(url: object) -> str:
    hint = "write 'sqlite:///studies.db' (three slashes, then a relative path; four for an absolute one)"
    path = str(url).removeprefix(SCHEME)
    if path == url or path in ("", ":memory:") or "\0" in path:
        raise InvalidInput(
            f"`storage` is {shown(url)}, which names no file. For a study in memory leave it out; else {hint}."
        )
    if not storable(path):
        raise InvalidInput(f"`storage` is {shown(url)}, which cannot be written as UTF-8: rename the file or folder.")
    return path
