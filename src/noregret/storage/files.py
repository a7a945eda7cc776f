"""The SQLite file: where it is, whose it is, and connections that never make one by accident."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import sqlalchemy as sql

from ..checks import shown
from ..errors import InvalidInput, StorageError
from ..study.integrity import storable

LOCK_SECONDS = 60.0  # how long to wait while another process writes
APPLICATION_ID = 0x6E726774  # "nrgt", in the header of every file made here (SQLite's `application_id`)


class File:
    """One SQLite file that may be somebody else's.

    Args:
        url: as of `SqlStorage`.
        make: whether to make the file where there is none.
    """

    def __init__(self, url: str, *, make: bool) -> None:
        self.url = url
        self.path = _path(url, make=make).absolute()
        # No pool: a connection to a file costs little, and none is left open in forks, threads and notebooks.
        self.engine = sql.create_engine("sqlite://", creator=self._connect, poolclass=sql.NullPool)
        sql.event.listen(self.engine, "connect", _leave_transactions_to_us)
        sql.event.listen(self.engine, "begin", _begin)
        if make and not self.path.exists():
            self._make()

    def _connect(self, mode: str = "rw") -> sqlite3.Connection:
        # "rw" makes no file: one that was deleted while it was in use is an error, not an empty database.
        return sqlite3.connect(f"{self.path.as_uri()}?mode={mode}", uri=True, timeout=LOCK_SECONDS)

    def _make(self) -> None:
        try:
            self._connect("rwc").close()
        except sqlite3.OperationalError as error:
            raise StorageError(
                f"The storage {self.url} could not be made: {error}. {self.remedy(str(error))}"
            ) from error

    def remedy(self, cause: str) -> str:
        """What to try where SQLite says this."""
        if "locked" in cause:
            return (
                f"Another process has been writing for more than {LOCK_SECONDS:.0f} s; try again, or stop that process."
            )
        if "no such table" in cause or "no such column" in cause:
            return "The file has been replaced by another since it was opened, or damaged; nothing was written."
        if "not a database" in cause or "malformed" in cause or "decode" in cause:
            return "The file is not a SQLite database, or it is damaged; choose another file, or restore a copy."
        if "unable to open" in cause and not self.path.exists():
            return "The file has been deleted or moved: put it back (or open the study anew, which begins it anew)."
        if "readonly" in cause or "unable to open" in cause:
            return "The file or its folder cannot be written to; check the permissions, or choose another place."
        return "What was recorded before is still there."


def format_of(connection: sql.Connection, url: str, tables: sql.MetaData, added: dict[str, dict[str, int]]) -> int:
    """The format of the tables in a file of ours, 0 where there are none yet.

    An error where the file is another program's, or ours and damaged.

    Args:
        connection: to the file.
        url: for errors.
        tables: that a file of ours has.
        added: of each table, columns that the first format did not have, each with the format it came with.
    """
    mark = connection.exec_driver_sql("PRAGMA application_id").scalar_one()
    made = connection.exec_driver_sql("SELECT name, type FROM sqlite_master WHERE name NOT GLOB 'sqlite_*'")
    there = {row[0]: row[1] for row in made}
    if not there and mark in (0, APPLICATION_ID):
        return 0
    wanted = {name: {column.name for column in table.columns} for name, table in tables.tables.items()}
    first = {name: names - added.get(name, {}).keys() for name, names in wanted.items()}
    columns = {name: columns_of(connection, name) if there.get(name) == "table" else set() for name in wanted}
    # Files from before there was a mark have these tables and nothing else.
    ours = all(first[name] <= columns[name] <= wanted[name] for name in wanted)
    if mark != APPLICATION_ID and (mark != 0 or there.keys() != wanted.keys() or not ours):
        raise StorageError(
            f"{url} is a database of another program (it has {_listed(there)}): nothing in it was touched. "
            "Choose another file for the storage."
        )
    for name, names in first.items():
        missing = names - columns[name]
        if missing:
            what = f"no column {min(missing)!r} of {name!r}" if columns[name] else f"no table {name!r}"
            raise StorageError(f"{url} has {what}: it has been damaged. Restore a copy.")
    lacking = [came for name, new in added.items() for column, came in new.items() if column not in columns[name]]
    return min(lacking, default=max(came for new in added.values() for came in new.values()) + 1) - 1


def check_whole(connection: sql.Connection, url: str) -> None:
    """Refuse a file in which pages are damaged, or an index says something else than its table."""
    found = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one()
    if found != "ok":
        raise StorageError(f"{url} has been damaged ({shown(found)}). Restore a copy; nothing was written.")


def mark(connection: sql.Connection) -> None:
    """Make the file ours."""
    connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")


def columns_of(connection: sql.Connection, table: str) -> set[str]:
    """The names of a table's columns."""
    return {row[1] for row in connection.exec_driver_sql(f"PRAGMA table_info({table})")}


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
    if not isinstance(url, str) or not url.startswith("sqlite:"):
        kind = "only SQLite is supported" if isinstance(url, str) and "://" in url else "it must be a URL"
        raise InvalidInput(f"`storage` is {shown(url)}: {kind}; {hint}.")
    path = url.removeprefix("sqlite:///")
    if path == url or path in ("", ":memory:") or "\0" in path:
        raise InvalidInput(
            f"`storage` is {shown(url)}, which names no file. For a study in memory leave it out; else {hint}."
        )
    if not storable(path):
        raise InvalidInput(f"`storage` is {shown(url)}, which cannot be written as UTF-8: rename the file or folder.")
    return path


def _leave_transactions_to_us(connection: Any, _: Any) -> None:
    # Python's driver would begin transactions by itself, and only before the first write.
    connection.isolation_level = None
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA trusted_schema = OFF")  # the file may come from anybody


def _begin(connection: sql.Connection) -> None:
    write = connection.get_execution_options().get("noregret_write", True)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
