"""A database as `SqlStorage` uses it: connections, transactions, and what is written on the door."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, final

import sqlalchemy as sql

from .._utils.errors import StorageError
from .tables import Tables

LOCK_SECONDS = 300.0  # how long to wait while others write; each of them takes milliseconds


class Database(ABC):
    """Where the tables are.

    Attributes:
        url: as it was given, without a password.
        place: a URL that opens it again from anywhere.
        tables: their names here.
        notes: the one that is made where notes are written.
        engine: of the database; its driver takes parameters by name.
    """

    url: str
    place: str
    tables: Tables
    notes: sql.Table
    engine: sql.Engine

    @final
    def text(self, statement: Any) -> str:
        """A statement as the driver takes it, with a dict of parameters."""
        return str(statement.compile(dialect=self.engine.dialect))

    @abstractmethod
    def transaction(self, *, write: bool) -> AbstractContextManager[sql.Connection]:
        """A transaction; it commits at the end, and leaves no trace on an error.

        Database errors in it become `StorageError`s. Where it writes, it may hold a lock of the whole database.
        """

    def rows(self, statement: str, parameters: Mapping[str, Any]) -> Sequence[Any]:
        """What one statement reads, as of `text`: a transaction of its own."""
        with self.transaction(write=False) as connection:
            cursor = connection.connection.cursor()
            cursor.execute(statement, parameters)
            return cursor.fetchall()

    @abstractmethod
    def format(self, connection: sql.Connection) -> int:
        """The format of our tables, 0 where there are none yet; an error where they are another program's, or damaged.

        Args:
            connection: in a transaction.
        """

    @abstractmethod
    def mark(self, connection: sql.Connection, format: int) -> None:  # noqa: A002 - what it is called everywhere
        """Note that the tables are ours and of this format."""

    @abstractmethod
    def columns(self, connection: sql.Connection, table: sql.Table) -> set[str]:
        """The names of a table's columns."""

    @abstractmethod
    def lock_tables(self, connection: sql.Connection) -> None:
        """Make sure that nobody else makes or changes tables until the end of the transaction."""

    @abstractmethod
    def check_whole(self, connection: sql.Connection) -> None:
        """Refuse a database in which pages are damaged."""

    @abstractmethod
    def gone(self, name: str) -> str:
        """Why a study of this name may no longer be there, a sentence."""

    @abstractmethod
    def close(self) -> None:
        """Let go of connections."""


def newer(url: str, format: int, known: int) -> StorageError:  # noqa: A002 - likewise
    """What to say of a database that a newer version has written."""
    return StorageError(
        f"{url} was written by a newer version of nilregret (format {format}, this one reads {known}). Upgrade "
        "nilregret; nothing in it has been touched."
    )
