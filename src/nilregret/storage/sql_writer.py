"""A study inside a transaction of a SQL database."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, final

from .._utils.errors import StorageError
from .base import Change, News, Notes, StoredStudy, Summary, Writer
from .notes import NoteStatements, note_rows, owner
from .rows import RowReader, outcome, question
from .statements import Statements
from .tables import NEVER
from .trial import Trial


@final
class SqlWriter(Writer, Notes):
    """A study inside a transaction."""

    def __init__(
        self, cursor: Any, statements: Statements, notes: NoteStatements, study: StoredStudy, stamp: str,
        summary: Summary | None,
    ) -> None:  # fmt: skip
        self._cursor, self._statements, self._notes = cursor, statements, notes
        self._study, self._owner, self._stamp = study.id, owner(study), stamp
        self._goal, self._summary = study.goal, summary

    def read_notes(self, keys: Sequence[str]) -> dict[str, str]:
        """Returns the notes on record under these keys."""
        self._cursor.execute(*self._notes.read(self._owner, keys))
        return dict(self._cursor.fetchall())

    def write_notes(self, notes: Mapping[str, str]) -> None:
        """Writes notes in place of those under the same keys."""
        if notes:
            self._many(self._notes.write, note_rows(self._owner, notes))

    def news(self, *, since: int, stamp: str) -> News:
        """Returns the changes since an event."""
        if stamp == self._stamp != NEVER:
            return News((), stamp)
        if since > 0:
            self._cursor.execute(self._statements.changed, {"sought": self._study, "since": since})
            return News(RowReader().trials(self._cursor.fetchall()), self._stamp)
        return News(self._trials(), self._stamp)

    def _trials(self) -> list[Trial]:
        self._cursor.execute(self._statements.all, {"sought": self._study})
        return RowReader().trials(self._cursor.fetchall())

    def summary(self) -> Summary:
        """Returns the summary of all trials as they are now."""
        return Summary.of(self._trials(), self._goal)

    def save(self, changes: Sequence[Change], *, order: int) -> str:
        """Writes changes and returns the new stamp. A transaction calls it at most once."""
        new = [trial for before, trial in changes if before is None]
        if new:
            rows = [
                {"study": self._study, "last_order": trial.last_order} | question(trial) | outcome(trial)
                for trial in new
            ]
            self._many(self._statements.insert, rows)
        old = [(before, trial) for before, trial in changes if before is not None]
        if old:
            self._many(
                self._statements.update,
                [
                    {"sought": self._study, "which": trial.number, "before": before.last_order}
                    | {"last_order": trial.last_order}
                    | outcome(trial)
                    for before, trial in old
                ],
            )
            if self._cursor.rowcount != len(old):
                numbers = ", ".join(str(trial.number) for _, trial in old[:10])
                raise StorageError(f"Trial {numbers} is no longer as it was in the storage; nothing was written.")
        stamp = new_stamp()
        known = None if self._summary is None else self._summary.after(changes, self._goal)
        values = (known or self.summary())._asdict()
        self._cursor.execute(self._statements.count, {"sought": self._study, "now": order, "mark": stamp} | values)
        return stamp

    def _many(self, statement: str, rows: list[dict[str, Any]]) -> None:
        if len(rows) == 1:
            self._cursor.execute(statement, rows[0])
        else:
            self._cursor.executemany(statement, rows)


def summary_of(row: Sequence[Any]) -> Summary | None:
    """Returns the summary in a study's row, or None if the row has none or a damaged one."""
    *counts, best, last = row
    fits = all(type(count) is int for count in counts) and all(type(x) in (float, type(None)) for x in (best, last))
    return Summary(*row) if fits else None


def new_stamp() -> str:
    """Returns a random stamp."""
    return secrets.token_hex(8)
