"""Small facts beside the trials of a study, written in the transaction that writes trials: what a service remembers.

A note is a text under a key. Such as: the decision that was given for this request. If it stood in a transaction of its
own, a crash between the two would give a second decision to whoever repeats the request, or none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import sqlalchemy as sql

from .base import StoredStudy

NOBODY = ""  # of notes that belong to no study


def owner(study: StoredStudy) -> str:
    """Whose notes: numbers of studies that were deleted may be given again, and their notes must not."""
    return f"{study.id}:{study.created_at!r}"


def notes_table(prefix: str = "") -> sql.Table:
    """The table of this name, with metadata of its own: made where somebody writes notes, and no study needs it.

    So the format of the other tables does not change with it: older versions do not look at it.
    """
    return sql.Table(
        f"{prefix}notes",
        sql.MetaData(),
        sql.Column("study", sql.Text, primary_key=True),  # see `owner`
        sql.Column("key", sql.Text, primary_key=True),
        sql.Column("value", sql.Text, nullable=False),
    )


@final
class NoteStatements:
    """The statements, as text for the driver.

    Args:
        notes: the table.
        dialect: of the database.
        text: of a statement, as the driver takes it with a dict of parameters.
    """

    def __init__(self, notes: sql.Table, dialect: str, text: Callable[[Any], str]) -> None:
        self._lists = dialect == "postgresql"  # whether the driver takes a list; else JSON
        among = "= ANY(:keys)" if self._lists else "IN (SELECT value FROM json_each(:keys))"
        read = f"SELECT key, value FROM {notes.name} WHERE study = :study AND "
        self._one, self._several = (text(sql.text(f"{read} key {which}")) for which in ("= :key", among))
        self.under = text(sql.text(f"{read} key >= :low AND key < :high"))
        under = f"FROM {notes.name} WHERE study = :study AND key >= :low AND key < :high"
        self.count = text(sql.text(f"SELECT count(*) {under} AND value NOT LIKE :unlike"))
        put = f"INSERT INTO {notes.name} (study, key, value) VALUES (:study, :key, :value) ON CONFLICT (study, key) DO"
        self.write = text(sql.text(f"{put} UPDATE SET value = excluded.value"))
        self.once = text(sql.text(f"{put} NOTHING"))

    def read(self, study: str, keys: Sequence[str]) -> tuple[str, dict[str, Any]]:
        """The statement that reads these notes, and its parameters."""
        if len(keys) == 1:  # mostly; a table made of a list takes SQLite longer than the rest of it
            return self._one, {"study": study, "key": keys[0]}
        return self._several, {"study": study, "keys": list(keys) if self._lists else json.dumps(list(keys))}


def rows(study: str, notes: Mapping[str, str]) -> list[dict[str, Any]]:
    """As they are written."""
    return [{"study": study, "key": key, "value": value} for key, value in notes.items()]
