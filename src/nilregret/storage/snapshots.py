"""Snapshots of what was learned from long records, in a table of their own in the database of the studies.

A snapshot is a cache. Its table is made with the first snapshot, and another program may empty it at any time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, final

import sqlalchemy as sql

from .base import StoredStudy
from .database import Database
from .rows import KINDS, RowReader, owner
from .trial import Trial

HEAD = -1  # part of the row that names the parts, which is written last


def _statements(database: Database) -> tuple[sql.Table, str, str]:
    """Returns the table, and statements that read trials and the number of events."""
    notes, trials, studies = database.tables.notes.name, database.tables.trials.c, database.tables.studies.c
    table = sql.Table(
        f"{notes.removesuffix('notes')}snapshots",
        sql.MetaData(),
        sql.Column("study", sql.Text, primary_key=True),  # as of notes
        sql.Column("version", sql.Text, primary_key=True),  # of the snapshot
        sql.Column("part", sql.Integer, primary_key=True),
        sql.Column("data", sql.LargeBinary, nullable=False),
    )
    whole = sql.type_coerce(trials.explored, sql.Integer).label("explored")  # as in `Statements`
    columns = [whole if name == "explored" else trials[name] for name in KINDS]
    one: dict[str, sql.BindParameter[Any]] = {name: sql.bindparam(name) for name in ("study", "first", "before")}
    between = sql.select(*columns).where(
        trials.study == one["study"], trials.number >= one["first"], trials.number < one["before"]
    )
    events = sql.select(studies.events).where(studies.id == one["study"])
    return table, database.text(between.order_by(trials.number)), database.text(events)


@final
class Snapshots:
    """The snapshots of the studies in a database, and reading of single trials.

    Args:
        database: of the studies.
    """

    def __init__(self, database: Database) -> None:
        self._database, (self._table, self._between, self._events) = database, database.made(_statements)

    def events(self, study: StoredStudy) -> int:
        """Returns the number of events of a study."""
        found = self._database.rows(self._events, {"study": study.id})
        return found[0][0] if found and type(found[0][0]) is int else 0

    def trials(self, study: StoredStudy, first: int, before: int) -> list[Trial]:
        """Returns the trials from one number to before another, not yet checked."""
        rows = self._database.rows(self._between, {"study": study.id, "first": first, "before": before})
        return RowReader().trials(rows)

    def read(self, study: StoredStudy) -> tuple[bytes, list[bytes]] | None:
        """Returns the head and the parts of a study's snapshot, or None if there is none."""
        table, mine = self._table, self._table.c.study == owner(study)
        with self._database.transaction(write=False) as connection:
            if not sql.inspect(connection).has_table(table.name):
                return None
            heads = sql.select(table.c.version, table.c.data).where(mine, table.c.part == HEAD)
            for version, head in connection.execute(heads):
                parts = sql.select(table.c.data).where(mine, table.c.version == version, table.c.part > HEAD)
                return head, list(connection.execute(parts.order_by(table.c.part)).scalars())
        return None

    def write(self, study: StoredStudy, head: bytes, parts: Iterable[bytes]) -> None:
        """Writes a snapshot in place of an earlier one, in several transactions: until the last one, that one stays."""
        table, database, version = self._table, self._database, os.urandom(8).hex()
        mine = {"study": owner(study), "version": version}
        with database.transaction(write=True) as connection:
            table.create(connection, checkfirst=True)
        count = 0
        for number, data in enumerate(parts):
            count = number + 1
            with database.transaction(write=True) as connection:
                connection.execute(sql.insert(table).values(**mine, part=number, data=data))
        with database.transaction(write=True) as connection:
            own = table.c.study == mine["study"], table.c.version == version
            there = connection.execute(sql.select(sql.func.count()).select_from(table).where(*own)).scalar_one()
            if there != count:  # Another process has written one meanwhile, and removed parts of this one.
                connection.execute(sql.delete(table).where(*own))
                return
            earlier = table.c.study == mine["study"], table.c.version != version
            connection.execute(sql.delete(table).where(*earlier))
            connection.execute(sql.insert(table).values(**mine, part=HEAD, data=head))

    def delete(self, connection: sql.Connection, study: StoredStudy) -> None:
        """Removes the snapshot of a study, inside a transaction."""
        if sql.inspect(connection).has_table(self._table.name):
            connection.execute(sql.delete(self._table).where(self._table.c.study == owner(study)))
