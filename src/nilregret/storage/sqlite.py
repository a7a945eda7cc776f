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
import sqlite3
import weakref
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, final

import sqlalchemy as sql
from sqlalchemy import exc

from .._utils.checks import shown, storable
from .._utils.forks import WRITER
from ..errors import InvalidInput, StorageError
from .database import LOCK_SECONDS, Database, newer, older
from .sqlite_connections import APPLICATION_ID, FORKED, OLD_APPLICATION_ID, ReaderPool, SqliteConnection, close_all
from .tables import FORMAT, Tables, tables

PRIVATE = 0o600  # Mode of a file with secrets: only its owner can use it.
SCHEME = "sqlite:///"


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
        self.path = _path(url, make=make).absolute()
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
        if self._readers.follow(used.inode):
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
        if "readonly" in cause or "unable to open" in cause:
            return "The file or its folder cannot be written to; check the permissions, or choose another place."
        if "full" in cause or "disk I/O" in cause:
            return (
                "Make room on the disk and go on: nothing of this call was recorded, and all that was before is there."
            )
        return "What was recorded before is still there."

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
        for name, table in self.tables.metadata.tables.items():
            columns = {row[1] for row in connection.exec_driver_sql(f"PRAGMA table_info({name})")}
            missing = {column.name for column in table.columns} - columns
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
        self._used = self._database.take(write=self._write)
        try:
            connection = self._used.begin(write=self._write)
            self._database.follow(self._used)
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


def _path(url: object, *, make: bool) -> Path:
    """Returns the path in an SQLite URL.

    Raises:
        InvalidInput: no file is there, or none can be made.
    """
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
