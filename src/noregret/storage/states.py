"""The cached state of each study, in a table of its own: one row a study.

The table is made at the first write to it and no study needs it, so the format of the studies' tables does not change
with it: a version that knows nothing of it goes on with the studies. It refers to a study by `notes.owner` and not by a
foreign key: a study that such a version deletes leaves a row behind that no other study ever takes for its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import final

import sqlalchemy as sql

from .base import StoredState, StoredStudy
from .database import Database
from .notes import owner


@final
class StateRows:
    """The table.

    Args:
        database: that it is in, or will be.
    """

    def __init__(self, database: Database) -> None:
        self._database, self._there = database, False
        prefix = database.tables.studies.name.removesuffix("studies")
        self._table = sql.Table(
            f"{prefix}states",
            sql.MetaData(),
            sql.Column("study", sql.Text, primary_key=True),  # see `owner`
            sql.Column("key", sql.Text, nullable=False),
            sql.Column("record", sql.Text, nullable=False),  # SHA-256 of the events that are in it, hexadecimal
            sql.Column("events", sql.BigInteger, nullable=False),  # how many
            sql.Column("made_at", sql.Double, nullable=False),  # Unix seconds, for people
            sql.Column("digest", sql.Text, nullable=False),  # SHA-256 of the content, hexadecimal
            sql.Column("content", sql.LargeBinary, nullable=False),
        )
        self._put = sql.text(_put(self._table.name))

    def read(self, study: StoredStudy, *, key: str, most: int) -> StoredState | None:
        """See `States.state`."""
        columns = self._table.c
        with self._database.transaction(write=False) as connection:
            if not self._is_there(connection):
                return None
            # A row that is of no use is not fetched, nor one that is larger than any that was written.
            wanted = sql.select(columns.key, columns.record, columns.events, columns.digest, columns.content).where(
                columns.study == owner(study), columns.key == key, sql.func.length(columns.content) <= most
            )
            row = connection.execute(wanted).one_or_none()
        if row is None:
            return None
        kinds = tuple(map(type, row))
        return StoredState(*row) if kinds == (str, str, int, str, bytes) else StoredState(key, "", 0, "", b"")

    def keep(self, study: StoredStudy, state: StoredState, *, current: Callable[[sql.Connection], None]) -> bool:
        """See `States.keep_state`.

        Args:
            study: whose it is.
            state: to be kept.
            current: sees to it, in a transaction that writes, that the studies' tables are there.
        """
        with self._database.transaction(write=True) as connection:
            if not self._is_there(connection):
                current(connection)
                self._database.lock_tables(connection)
                self._table.metadata.create_all(connection)
            values = state._asdict() | {"study": owner(study), "made_at": time.time()}
            kept = connection.execute(self._put, values).rowcount > 0
        self._there = True
        return kept

    def drop(self, study: StoredStudy) -> bool:
        """See `States.drop_state`."""
        with self._database.transaction(write=True) as connection:
            return self.drop_in(connection, study)

    def drop_in(self, connection: sql.Connection, study: StoredStudy) -> bool:
        """Likewise, in a transaction that writes."""
        if not self._is_there(connection):
            return False
        return connection.execute(sql.delete(self._table).where(self._table.c.study == owner(study))).rowcount > 0

    def _is_there(self, connection: sql.Connection) -> bool:
        self._there = self._there or self._table.name in sql.inspect(connection).get_table_names()
        return self._there


def _put(table: str) -> str:
    """One statement, so that of two writers at a time the one with more events wins."""
    columns = ("key", "record", "events", "made_at", "digest", "content")
    changes = ", ".join(f"{column} = excluded.{column}" for column in columns)
    return (
        f"INSERT INTO {table} (study, {', '.join(columns)}) "
        "VALUES (:study, :key, :record, :order, :made_at, :digest, :content) "
        f"ON CONFLICT (study) DO UPDATE SET {changes} "
        f"WHERE {table}.key <> excluded.key OR {table}.events < excluded.events"
    )
