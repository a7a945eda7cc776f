"""Notes: small facts of a service beside the trials of a study, committed in one transaction with trials.

A note is a text under a key, such as the decision that answered a certain request. In a transaction of its own, a crash
between the two commits would give the repeated request a second decision, or none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import sqlalchemy as sql

from .base import ListedStudy, StoredStudy

NOBODY = ""  # The owner of notes that belong to no study.


def owner(study: StoredStudy | ListedStudy) -> str:
    """Returns the key of a study's notes. A deleted study's number may be given again, but its notes must not."""
    return f"{study.id}:{study.created_at!r}"


@final
class NoteStatements:
    """The SQL statements of notes, as text for the driver.

    Args:
        notes: the table.
        dialect: of the database.
        text: returns a statement as text for the driver, which takes a dict of parameters.
    """

    def __init__(self, notes: sql.Table, dialect: str, text: Callable[[Any], str]) -> None:
        self._lists = dialect == "postgresql"  # Whether the driver takes a list. Other drivers take JSON.
        among = "= ANY(:keys)" if self._lists else "IN (SELECT value FROM json_each(:keys))"
        read = f"SELECT key, value FROM {notes.name} WHERE study = :study AND "
        self._one, self._several = (text(sql.text(f"{read} key {which}")) for which in ("= :key", among))
        self.under = text(sql.text(f"{read} key >= :low AND key < :high"))
        under = f"FROM {notes.name} WHERE study = :study AND key >= :low AND key < :high"
        self.count = text(sql.text(f"SELECT count(*) {under} AND value NOT LIKE :unlike"))
        owners = "= ANY(:studies)" if self._lists else "IN (SELECT value FROM json_each(:studies))"
        self._named = text(sql.text(f"SELECT study, value FROM {notes.name} WHERE key = :key AND study {owners}"))
        put = f"INSERT INTO {notes.name} (study, key, value) VALUES (:study, :key, :value) ON CONFLICT (study, key) DO"
        self.write = text(sql.text(f"{put} UPDATE SET value = excluded.value"))
        self.once = text(sql.text(f"{put} NOTHING"))

    def read(self, study: str, keys: Sequence[str]) -> tuple[str, dict[str, Any]]:
        """Returns the statement that reads these notes, and its parameters."""
        if len(keys) == 1:  # The usual case: in SQLite a table made of a list is slow.
            return self._one, {"study": study, "key": keys[0]}
        return self._several, {"study": study, "keys": self._listed(keys)}

    def named(self, key: str, studies: Sequence[str]) -> tuple[str, dict[str, Any]]:
        """Returns the statement that reads the notes of several studies under one key, and its parameters."""
        return self._named, {"key": key, "studies": self._listed(studies)}

    def _listed(self, texts: Sequence[str]) -> list[str] | str:
        return list(texts) if self._lists else json.dumps(list(texts))


def note_rows(study: str, notes: Mapping[str, str]) -> list[dict[str, Any]]:
    """Returns notes as rows of the table."""
    return [{"study": study, "key": key, "value": value} for key, value in notes.items()]
