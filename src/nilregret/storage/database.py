"""A database as `SqlStorage` uses it: connections, transactions, and the format mark."""

from __future__ import annotations

import stat
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar, final

import sqlalchemy as sql

from .._utils.checks import shown, storable
from .._utils.files import kind_of
from ..errors import InvalidInput, StorageError
from .base import Summary
from .rows import FIXED, KINDS, OUTCOME, TOLD
from .tables import FORMAT, LATER, STUDY_FORMAT, Tables

T = TypeVar("T")
SCHEME, ENCODING = "sqlite:///", sys.getfilesystemencoding()
LOCK_SECONDS = 300.0  # Seconds to wait for other writers, each of which takes milliseconds.


class Database(ABC):
    """A database with the tables of a storage.

    Attributes:
        url: as given, without a password.
        place: a URL that opens the database again from any process.
        tables: of the storage.
        engine: of SQLAlchemy. Its driver takes parameters by name.
    """

    url: str
    place: str
    tables: Tables
    engine: sql.Engine
    lacks: tuple[str, ...] = ()  # What `has_tables` missed, since the tables are of an earlier version (`LATER`).

    @final
    def upgrade(self, connection: sql.Connection) -> None:
        """Adds the tables and columns that tables of an earlier version lack."""
        for name in self.lacks:
            table, column = self._part(name)
            if column is None:
                table.create(connection)
                continue
            kind = column.type.compile(self.engine.dialect)
            kind += "" if column.nullable else " NOT NULL DEFAULT 0"
            connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {column.name} {kind}")
        self.lacks = ()

    @final
    def missing_of(self, there: Mapping[str, Collection[str]]) -> tuple[str, ...]:
        """Returns what tables of an earlier version lack, or nothing if these are of no earlier version.

        Args:
            there: the names of the columns of each table, by its name.
        """
        parts = {name: self._part(name) for name in LATER[0]}
        found = tuple(
            name
            for name, (table, column) in parts.items()
            if table.name not in there or (column is not None and column.name not in there[table.name])
        )
        return found if found in LATER else ()

    def _part(self, name: str) -> tuple[sql.Table, sql.Column[Any] | None]:
        """Returns a table, and a column of it or None, by an entry of `LATER`."""
        of, _, column = name.partition(".")
        table: sql.Table = getattr(self.tables, of)
        return table, table.c[column] if column else None

    @final
    def text(self, statement: Any) -> str:
        """Returns a statement as text for the driver, which takes a dict of parameters."""
        return str(statement.compile(dialect=self.engine.dialect))

    @final
    def made(self, make: Callable[[Database], T]) -> T:
        """Returns `make(self)` of the first database of this dialect.

        All databases of a dialect have the same tables. Making their statements takes longer than opening one.
        """
        key = make, self.engine.dialect.name
        if key not in _MADE:
            _MADE[key] = make(self)
        found: T = _MADE[key]
        return found

    @abstractmethod
    def transaction(self, *, write: bool) -> AbstractContextManager[sql.Connection]:
        """Opens a transaction, which commits at the end and rolls back on an error.

        Database errors inside it become `StorageError`s. A write transaction may lock the whole database.
        """

    @abstractmethod
    def rows(self, statement: str, parameters: Mapping[str, Any]) -> Sequence[Any]:
        """Returns the rows of one statement, without a transaction around it."""

    def version(self) -> object:
        """Returns a value that changes when another connection commits than the writer's, or the writer rolls back.

        It is None where asking for it would cost no less than reading.
        """
        return None

    @abstractmethod
    def has_tables(self, connection: sql.Connection) -> bool:
        """Returns whether our tables are there.

        Args:
            connection: in a transaction.

        Raises:
            StorageError: the tables are damaged, belong to another program, or are of another format.
        """

    @abstractmethod
    def mark(self, connection: sql.Connection) -> None:
        """Marks new tables as ours, with their format."""

    @abstractmethod
    def lock_tables(self, connection: sql.Connection) -> None:
        """Prevents other processes from making or changing tables until the transaction ends."""

    @abstractmethod
    def check_integrity(self, connection: sql.Connection) -> None:
        """Raises `StorageError` if pages of the database are damaged."""

    @abstractmethod
    def look_only(self) -> bool:
        """Returns whether tables of an earlier version that cannot be written to are read from now on."""

    @abstractmethod
    def gone(self, name: str) -> str:
        """Returns a sentence that says why a study may no longer be there."""

    @abstractmethod
    def close(self) -> None:
        """Closes all connections."""


_MADE: dict[tuple[Callable[[Database], Any], str], Any] = {}


def newer(what: str, format: int, known: int = FORMAT) -> StorageError:  # noqa: A002 - SQLite's own word
    """Returns the error about a database or study that a newer version wrote."""
    return StorageError(
        f"{what} was written by a newer version of nilregret (format {format}, this one reads {known}). Upgrade "
        "nilregret; nothing in it has been touched."
    )


def older(url: str) -> StorageError:
    """Returns the error about a database with tables from before format 1."""
    return StorageError(
        f"{url} was written by an earlier version of nilregret, whose tables this one does not read; nothing in it "
        "has been touched. With that version write each study to a file (`nilregret export STORAGE STUDY "
        "trials.jsonl`). Then make the study anew in another storage, and read the file (`nilregret import STORAGE "
        "STUDY trials.jsonl`)."
    )


HEAD = ("seed", "created_at", "stamp", "arms")  # Columns of a study's row, as the next.
SUMMARY = Summary._fields
STEP = ("event", "at", "trial", "step", "value", "verdict")  # Columns of a report, in the order of `Report`.
LISTED = ("id", "name", "goal", "created_at")  # Columns of a study in a list, before its summary.


class Statements:
    """The statements of studies and trials.

    They are made once, and those of each call are text for the driver. Making one takes much longer than executing it.

    Args:
        database: of the statements.
    """

    def __init__(self, database: Database) -> None:
        studies, trials = database.tables.studies, database.tables.trials
        sought: sql.BindParameter[Any] = sql.bindparam("sought")
        since: sql.BindParameter[Any] = sql.bindparam("since")

        self.names = sql.select(studies.c.name).order_by(studies.c.id)
        whole_row = sql.select(studies)
        listed = sql.select(*(studies.c[name] for name in (*LISTED, *SUMMARY))).order_by(studies.c.id)
        self.listed = database.text(listed)
        last = f"SELECT state, reward FROM {trials.name} WHERE study = :sought ORDER BY number DESC LIMIT :most"
        self.latest = database.text(sql.text(last))
        self.find, self.every = whole_row.where(studies.c.name == sought), whole_row.order_by(studies.c.id)
        head = sql.select(*(studies.c[name] for name in (*HEAD, *SUMMARY))).where(studies.c.id == sought)
        self.head, self.lock = database.text(head), database.text(head.with_for_update())
        # In SQLite the column `explored` may hold any number, which the checks must see unchanged.
        whole = sql.type_coerce(trials.c.explored, sql.Integer).label("explored")
        columns = [whole if name == "explored" else trials.c[name] for name in KINDS]
        everything = sql.select(*columns).where(trials.c.study == sought).order_by(trials.c.number)
        self.all = database.text(everything)
        self.changed = database.text(everything.where(trials.c.last_order >= since))
        # Writers pass values by position, which is faster: see `SqlWriter.save` for their order.
        mark = "?" if database.engine.dialect.name == "sqlite" else "%s"
        inserted = ("study", "last_order", *FIXED, *OUTCOME)
        self.insert = f"INSERT INTO {trials.name} ({', '.join(inserted)}) VALUES ({', '.join([mark] * len(inserted))})"
        asked = ("study", "last_order", *FIXED, "state")
        self.insert_asked = f"INSERT INTO {trials.name} ({', '.join(asked)}) VALUES ({', '.join([mark] * len(asked))})"
        outcome, counted = ([f"{name} = {mark}" for name in names] for names in (OUTCOME, SUMMARY))
        as_before = f"WHERE study = {mark} AND number = {mark} AND last_order = {mark}"
        self.update = f"UPDATE {trials.name} SET last_order = {mark}, {', '.join(outcome)} {as_before}"
        told = ", ".join(f"{name} = {mark}" for name in ("last_order", *TOLD))
        self.update_told = f"UPDATE {trials.name} SET {told} {as_before}"
        events = f"events = {mark}, stamp = {mark}"
        arms = database.tables.arms
        changes = sql.select(arms.c.event, arms.c.at, arms.c.kind, arms.c.arms).where(arms.c.study == sought)
        self.arms = database.text(changes.where(arms.c.event >= since).order_by(arms.c.event))
        self.insert_arms = f"INSERT INTO {arms.name} (study, event, at, kind, arms) VALUES ({', '.join([mark] * 5)})"
        self.last_arms = f"UPDATE {studies.name} SET arms = {mark} WHERE id = {mark}"
        self._of_reports(database, mark)
        raised = f"SET format = {STUDY_FORMAT} WHERE id = {mark} AND format < {STUDY_FORMAT}"
        self.raise_format = f"UPDATE {studies.name} {raised}"
        self.named = f"SELECT id FROM {studies.name} WHERE name = {mark}"
        self.rename = f"UPDATE {studies.name} SET name = {mark}, stamp = {mark} WHERE id = {mark} AND name = {mark}"
        self.count = f"UPDATE {studies.name} SET {events}, {', '.join(counted)} WHERE id = {mark}"

    def _of_reports(self, database: Database, mark: str) -> None:
        steps = database.tables.steps
        mine = steps.c.study == sql.bindparam("sought")
        found = sql.select(*(steps.c[name] for name in STEP)).where(mine, steps.c.event >= sql.bindparam("since"))
        self.steps = database.text(found.order_by(steps.c.event))
        named = ("study", *STEP)
        self.insert_steps = f"INSERT INTO {steps.name} ({', '.join(named)}) VALUES ({', '.join([mark] * len(named))})"


def file_of(url: object, *, make: bool) -> Path:
    """Returns the path in an SQLite URL.

    Raises:
        InvalidInput: no file is there, or none can be made.
    """
    path = Path(_path_in(url))
    try:
        folder, there = kind_of(path.parent), kind_of(path)
    except OSError as error:
        raise InvalidInput(f"`storage` {shown(url)} cannot be used: {error.strerror}. Choose another name.") from error
    if folder != stat.S_IFDIR:
        raise InvalidInput(f"`storage` is in the folder {str(path.parent)!r}, which does not exist: make it first.")
    if not there and any(each in path.name for each in (".db#", ".sqlite#", ".sqlite3#")):
        file, _, name = str(url).rpartition("#")
        raise InvalidInput(f"`storage` is {shown(url)}: give the study apart, storage={file!r} with name={name!r}.")
    if not make and not there:
        raise InvalidInput(f"`storage` {url!r}: there is no such file.")
    if there not in (0, stat.S_IFREG):
        raise InvalidInput(f"`storage` {url!r} is a folder or a device; it must be a file.")
    return path


def _path_in(url: object) -> str:
    hint = "write 'sqlite:///studies.db' (three slashes, then a relative path; four for an absolute one)"
    path = str(url).removeprefix(SCHEME)
    if path == url or path in ("", ":memory:") or "\0" in path:
        raise InvalidInput(
            f"`storage` is {shown(url)}, which names no file. For a study in memory leave it out; else {hint}."
        )
    if not storable(path) or not storable(path, ENCODING):
        raise InvalidInput(f"`storage` is {shown(url)}: file names are in {ENCODING}. Rename it, or set PYTHONUTF8=1.")
    return path
