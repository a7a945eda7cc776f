"""A database as `SqlStorage` uses it: connections, transactions, and the format mark."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, final

import sqlalchemy as sql

from ..errors import StorageError
from .tables import FORMAT, Tables

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

    @final
    def text(self, statement: Any) -> str:
        """Returns a statement as text for the driver, which takes a dict of parameters."""
        return str(statement.compile(dialect=self.engine.dialect))

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
    def gone(self, name: str) -> str:
        """Returns a sentence that says why a study may no longer be there."""

    @abstractmethod
    def close(self) -> None:
        """Closes all connections."""


def newer(what: str, format: int) -> StorageError:  # noqa: A002 - SQLite's own word
    """Returns the error about a database or study that a newer version wrote."""
    return StorageError(
        f"{what} was written by a newer version of nilregret (format {format}, this one reads {FORMAT}). Upgrade "
        "nilregret; nothing in it has been touched."
    )


def older(url: str) -> StorageError:
    """Returns the error about a database that a version before 1.0 wrote."""
    return StorageError(
        f"{url} was written by a version of nilregret before 1.0, whose tables this one does not read; nothing in it "
        "has been touched. Write each study to a file with that version (`nilregret export NAME trials.jsonl`), and "
        "read the file into a new study (`nilregret import`)."
    )
