"""A study inside a transaction of a SQL database."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, final

from .._utils.checks import new_study_name
from ..errors import StorageError
from .arms import ArmChange, arm_change, arms_text
from .base import Change, KeepsArms, News, Notes, Renames, StoredStudy, Summary, Writer, taken
from .database import Statements
from .notes import NoteStatements, note_rows, owner
from .rows import RowReader, outcome, question
from .trial import Trial


@final
class SqlWriter(Writer, Notes, KeepsArms, Renames):
    """A study inside a transaction.

    Args:
        cursor: of the transaction.
        statements: of studies and trials.
        notes: statements of notes.
        study: as the storage knows it.
        stamp: of the record.
        counted: the summary in the study's row.
        arms: order of the last change of arms, or None without one.
    """

    def __init__(
        self, cursor: Any, statements: Statements, notes: NoteStatements, study: StoredStudy, stamp: str,
        counted: Summary, arms: int | None,
    ) -> None:  # fmt: skip
        self._cursor, self._statements, self._notes = cursor, statements, notes
        self._study, self.stamp, self.counted, self.arms = study, stamp, counted, arms

    def read_notes(self, keys: Sequence[str]) -> dict[str, str]:
        """Returns the notes on record under these keys."""
        self._cursor.execute(*self._notes.read(owner(self._study), keys))
        return dict(self._cursor.fetchall())

    def write_notes(self, notes: Mapping[str, str]) -> None:
        """Writes notes in place of those under the same keys."""
        if notes:
            self._many(self._notes.write, note_rows(owner(self._study), notes))

    def rename(self, name: str, new: str) -> None:
        """Gives the study a new name and a new stamp."""
        new_study_name("new", new)
        study, self.stamp = self._study.id, new_stamp()
        self._cursor.execute(self._statements.named, (new,))
        free = all(row[0] == study for row in self._cursor.fetchall())
        if free:
            self._cursor.execute(self._statements.rename, (new, self.stamp, study, name))
        if not free or self._cursor.rowcount != 1:
            raise taken(name, new)

    def news(self, *, since: int, stamp: str) -> News:
        """Returns the changes since an event."""
        if stamp == self.stamp:
            return News((), stamp)
        if since > 0:
            self._cursor.execute(self._statements.changed, {"sought": self._study.id, "since": since})
            return News(RowReader().trials(self._cursor.fetchall()), self.stamp, self._arms(since))
        return News(self._trials(), self.stamp, self._arms(since))

    def _arms(self, since: int) -> list[ArmChange]:
        if self.arms is None or self.arms < since:
            return []
        self._cursor.execute(self._statements.arms, {"sought": self._study.id, "since": since})
        return [arm_change(tuple(row)) for row in self._cursor.fetchall()]

    def save_arms(self, changes: Sequence[ArmChange]) -> None:
        """Writes new changes of arms. A transaction calls it at most once, before `save`."""
        study, self.arms = self._study.id, changes[-1].order
        rows = [(study, change.order, change.time, change.kind, arms_text(change)) for change in changes]
        self._many(self._statements.insert_arms, rows)
        self._cursor.execute(self._statements.last_arms, (self.arms, study))

    def _trials(self) -> list[Trial]:
        self._cursor.execute(self._statements.all, {"sought": self._study.id})
        return RowReader().trials(self._cursor.fetchall())

    def save(self, changes: Sequence[Change], *, order: int) -> str:
        """Writes changes and returns the new stamp. A transaction calls it at most once."""
        study = self._study.id
        new = [
            (study, trial.last_order, *question(trial), *outcome(trial)) for before, trial in changes if before is None
        ]
        if new:
            self._many(self._statements.insert, new)
        old = [
            (trial.last_order, *outcome(trial), study, trial.number, before.last_order)
            for before, trial in changes
            if before is not None
        ]
        if old:
            self._many(self._statements.update, old)
            if self._cursor.rowcount != len(old):
                numbers = ", ".join([str(trial.number) for before, trial in changes if before is not None][:10])
                raise StorageError(f"Trial {numbers} is no longer as it was in the storage; nothing was written.")
        goal = self._study.goal
        self.stamp = new_stamp()
        self.counted = self.counted.after(changes, goal) or Summary.of(self._trials(), goal)
        self._cursor.execute(self._statements.count, (order, self.stamp, *self.counted, study))
        return self.stamp

    def _many(self, statement: str, rows: Sequence[Any]) -> None:
        if len(rows) == 1:
            self._cursor.execute(statement, rows[0])
        else:
            self._cursor.executemany(statement, rows)


def new_stamp() -> str:
    """Returns a random stamp."""
    return os.urandom(8).hex()
