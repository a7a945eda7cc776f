"""The record in a SQL database: a SQLite file or a PostgreSQL server.

A study has one row, and each of its trials has one. The study's row holds its counter of events and a stamp. The
transaction that inserts or updates trials changes both. A writer first reads that row under a lock, so processes that
share a study see one order of events. The stamp tells whether there are changes to read. Even without the lock, unique
keys on numbers and orders would refuse two events of one order.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, final

import sqlalchemy as sql
from sqlalchemy import exc

from .._utils.checks import new_study_name, shown, storable
from ..errors import InvalidInput, StorageError
from .base import (
    Change,
    Identity,
    KeepsNotes,
    KeepsSteps,
    ListedStudy,
    News,
    Outcome,
    Storage,
    StoredStudy,
    Summary,
    Writer,
    nothing_new,
    taken,
)
from .changes import ARM_KINDS, StudyChange, change_of, change_text
from .database import HEAD, SCHEME, SUMMARY, Database, Statements, newer
from .rows import (
    NOBODY,
    NoteStatements,
    RowReader,
    is_asked,
    is_told,
    note_rows,
    outcome,
    owner,
    question,
    report_of,
)
from .snapshots import Snapshots
from .sqlite import SqliteDatabase
from .tables import FORMAT, STUDY_FORMAT, Tables
from .trial import Report, Trial


@final
class SqlWriter(Writer, KeepsSteps):
    """A study inside a transaction.

    Args:
        cursor: of the transaction.
        statements: of studies and trials.
        notes: statements of notes.
        study: as the storage knows it.
        stamp: of the record.
        counted: the summary in the study's row.
        arms: order of the last change or report of the study, or None without one.
    """

    def __init__(
        self, cursor: Any, statements: Statements, notes: NoteStatements, study: StoredStudy, stamp: str,
        counted: Summary, arms: int | None,
    ) -> None:  # fmt: skip
        self._cursor, self._statements, self._notes = cursor, statements, notes
        self._study, self.counted, self.arms = study, counted, arms
        self.stamp: str = stamp

    def read_notes(self, keys: Sequence[str]) -> dict[str, str]:
        """Returns the notes on record under these keys."""
        self._cursor.execute(*self._notes.read(owner(self._study), keys))
        return dict(self._cursor.fetchall())

    def write_notes(self, notes: Mapping[str, str]) -> None:
        """Writes notes in place of those under the same keys. An empty one is removed."""
        study, kept = owner(self._study), {key: value for key, value in notes.items() if value}
        if kept:
            self._many(self._notes.write, note_rows(study, kept))
        if len(kept) < len(notes):
            self._many(self._notes.drop, [{"study": study, "key": key} for key in notes.keys() - kept.keys()])

    def rename(self, name: str, new: str) -> None:
        """Gives the study a new name and a new stamp. The new name may be the one it has.

        Raises:
            InvalidInput: the study has another name, the new name is taken, or no study can have it.
        """
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
            return nothing_new(stamp)
        if since > 0:
            self._cursor.execute(self._statements.changed, {"sought": self._study.id, "since": since})
            trials = RowReader().trials(self._cursor.fetchall())
        else:
            trials = self._trials()
        return News(trials, self.stamp, self._arms(since), self._steps(since))

    def _arms(self, since: int) -> list[StudyChange]:
        if self.arms is None or self.arms < since:
            return []
        self._cursor.execute(self._statements.arms, {"sought": self._study.id, "since": since})
        return [change_of(tuple(row)) for row in self._cursor.fetchall()]

    def _steps(self, since: int) -> list[Report]:
        if self.arms is None or self.arms < since:
            return []
        self._cursor.execute(self._statements.steps, {"sought": self._study.id, "since": since})
        return [report_of(row) for row in self._cursor.fetchall()]

    def save_steps(self, reports: Sequence[Report]) -> None:
        """Writes new reports. A transaction calls it at most once, before `save`."""
        study = self._study.id
        self._many(self._statements.insert_steps, [(study, *report) for report in reports])
        self.arms = max(self.arms or 0, reports[-1].order)
        self._cursor.execute(self._statements.last_arms, (self.arms, study))
        self._cursor.execute(self._statements.raise_format, (study,))

    def save_arms(self, changes: Sequence[StudyChange]) -> None:
        """Writes new changes. A transaction calls it at most once, before `save`."""
        study, self.arms = self._study.id, max(self.arms or 0, changes[-1].order)
        rows = [(study, change.order, change.time, change.kind, change_text(change)) for change in changes]
        self._many(self._statements.insert_arms, rows)
        self._cursor.execute(self._statements.last_arms, (self.arms, study))
        if any(change.kind not in ARM_KINDS for change in changes):
            self._cursor.execute(self._statements.raise_format, (study,))

    def _trials(self) -> list[Trial]:
        self._cursor.execute(self._statements.all, {"sought": self._study.id})
        return RowReader().trials(self._cursor.fetchall())

    def save(self, changes: Sequence[Change], *, order: int) -> str:
        """Writes changes and returns the new stamp. A transaction calls it at most once."""
        study, of, rows = self._study.id, self._statements, dict[str, list[tuple[Any, ...]]]()
        values: tuple[Any, ...]
        for before, trial in changes:
            if before is None and is_asked(trial):
                statement, values = of.insert_asked, (study, trial.asked_order, *question(trial), "pending")
            elif before is None:
                statement, values = of.insert, (study, trial.last_order, *question(trial), *outcome(trial))
            elif is_told(before, trial):
                told = trial.told_order, "observed", trial.reward, trial.told_order, trial.told_at
                statement, values = of.update_told, (*told, study, trial.number, before.asked_order)
            else:
                last = before.last_order
                statement, values = of.update, (trial.last_order, *outcome(trial), study, trial.number, last)
            rows.setdefault(statement, []).append(values)
        for statement, each in rows.items():
            self._many(statement, each)
            if self._cursor.rowcount != len(each):
                numbers = ", ".join([str(trial.number) for before, trial in changes if before is not None][:10])
                raise StorageError(f"Trial {numbers} is no longer as it was in the storage; nothing was written.")
        goal = self._study.goal
        self.stamp = os.urandom(8).hex()  # As `new_stamp`, in a call less.
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


STUDY = {"format": int, "created_at": float, "policy": str, "goal": str, "seed": str, "about": str}  # Types in a row.


@final
class SqlStorage(Storage, KeepsNotes):
    """A database of studies.

    Args:
        url: `sqlite:///file.db` (a relative path) or `sqlite:////folder/file.db` (an absolute one). The path follows
            the third slash, unescaped. Or `postgresql://user:password@host/database`, which needs the extra
            `nilregret[postgresql]`.
        make: if False, a missing file or missing tables are an error.
        private: if True, only its owner can read a new file. A service uses it, because its file holds secrets.

    Raises:
        InvalidInput: the URL cannot be used.
        StorageError: the database cannot be used, is damaged, or is of another format.

    >>> import nilregret as nr
    >>> import tempfile
    >>> from nilregret.storage import SqlStorage
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     records = SqlStorage(f"sqlite:///{folder}/studies.db")
    ...     nr.Study(nr.auto(nr.Box(0, 1)), storage=records, name="a").close()
    ...     print(records.names())
    ...     records.close()
    ['a']
    """

    shared = True

    def __init__(self, url: str, *, make: bool = True, private: bool = False) -> None:
        self._database = _database(url, make=make, private=private)
        self.url = self._database.url
        self._statements = self._database.made(Statements)
        # The last writer of each study, and the version of the database for which it stands. While that is the same,
        # nobody else has written and no transaction was rolled back. A new study may have the id of a deleted one.
        self._written: dict[Identity, tuple[object, SqlWriter]] = {}
        self._notes = self._database.made(_notes)
        self.snapshots = Snapshots(self._database)
        try:
            self._prepare(make=make)
        except BaseException:
            self._database.close()
            raise

    def _prepare(self, *, make: bool) -> None:
        """Checks the tables, and makes them if there are none and they are wanted."""
        database = self._database
        with database.transaction(write=False) as connection:  # A file that cannot be written can still be read.
            there = database.has_tables(connection)
            if there:
                database.check_integrity(connection)
        if there:
            try:
                self._upgrade()
            except StorageError as error:
                if "cannot be written to" not in error.what or not database.look_only():
                    raise
            return
        if not make:
            raise InvalidInput(f"`storage` {self.url!r} is an empty database: there is no study in it.")
        with database.transaction(write=True) as connection:
            database.lock_tables(connection)
            if not database.has_tables(connection):  # Otherwise another process was faster.
                self.tables.metadata.create_all(connection)
                database.mark(connection)

    def _upgrade(self) -> None:
        """Adds what tables of an earlier version lack."""
        database = self._database
        if database.lacks:
            with database.transaction(write=True) as connection:
                database.lock_tables(connection)
                if database.has_tables(connection) and database.lacks:  # Otherwise another process was faster.
                    database.upgrade(connection)

    @property
    def tables(self) -> Tables:
        """The tables of the database."""
        return self._database.tables

    @property
    def place(self) -> str:
        """The URL, which means the same in every folder: a file has its absolute path."""
        return self._database.place

    def __repr__(self) -> str:
        return f"SqlStorage({self.url!r})"

    def close(self) -> None:
        """Closes files and connections. The next call opens them again."""
        self._database.close()

    def transaction(self, *, write: bool) -> AbstractContextManager[sql.Connection]:
        """Opens a transaction on the tables."""
        return self._database.transaction(write=write)

    # -- studies -------------------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """Returns the names of all studies, oldest first."""
        with self._database.transaction(write=False) as connection:
            return list(connection.execute(self._statements.names).scalars())

    def find(self, name: str) -> StoredStudy | None:
        """Returns the study of this name, or None."""
        with self._database.transaction(write=False) as connection:
            return self._find(connection, name)

    def find_or_make(self, name: str, *, policy: str, goal: str, seed: int, about: str) -> StoredStudy:
        """Returns the study of this name, and makes it if there is none."""
        values: dict[str, Any] = {"name": name, "policy": policy, "goal": goal, "seed": str(seed), "about": about}
        values |= {
            "format": FORMAT,
            "created_at": time.time(),
            "events": 0,
            "stamp": new_stamp(),
            **Summary()._asdict(),
        }
        found = self.find(name)
        if found is not None:
            return found
        try:
            with self._database.transaction(write=True) as connection:
                connection.execute(sql.insert(self.tables.studies).values(values))
        except StorageError as error:
            if not isinstance(error.__cause__, exc.IntegrityError):  # Otherwise another process was faster.
                raise
        made = self.find(name)
        if made is None:
            raise StorageError(f"Study {name!r} could not be made in {self.url}: it has been tampered with.")
        return made

    def rename(self, name: str, new: str) -> None:
        """Gives a study a new name, which no other study may have. Open studies go on under the new name."""
        study = self.find(name)
        if study is None:
            raise taken(name, new, there=False)
        with self.writing(study) as writer:
            writer.rename(name, new)

    def delete(self, name: str) -> None:
        """Removes a study and its trials. A program that has it open gets an error at its next call."""
        studies = self.tables.studies
        with self._database.transaction(write=True) as connection:
            study = self._find(connection, name)
            if study is None:
                raise InvalidInput(f"There is no study {shown(name)} in {self.url}.")
            connection.execute(sql.select(studies.c.id).where(studies.c.id == study.id).with_for_update())
            for table in (self.tables.trials, self.tables.steps, self.tables.arms):
                connection.execute(sql.delete(table).where(table.c.study == study.id))
            connection.execute(sql.delete(studies).where(studies.c.id == study.id))
            self.snapshots.delete(connection, study)
            self._written.pop(study.identity, None)

    def _find(self, connection: sql.Connection, name: str) -> StoredStudy | None:
        if not isinstance(name, str) or "\0" in name or not storable(name):  # No text column can hold such a name.
            return None
        row = connection.execute(self._statements.find, {"sought": name}).one_or_none()
        return None if row is None else self._stored(row)

    def summaries(self, name: str | None = None) -> list[tuple[StoredStudy, Summary]]:
        """Returns all studies with their summaries, oldest first."""
        with self._database.transaction(write=False) as connection:
            if name is None:
                rows = connection.execute(self._statements.every).all()
            else:
                rows = connection.execute(self._statements.find, {"sought": name}).all()
            return [(self._stored(row), self._summary(row.name, [getattr(row, of) for of in SUMMARY])) for row in rows]

    def listed(self) -> list[ListedStudy]:
        """Returns all studies with their summaries and without their policies, oldest first."""
        rows = self._database.rows(self._statements.listed, {})
        return [
            ListedStudy(id_, name, goal, at, self._summary(name, summary)) for id_, name, goal, at, *summary in rows
        ]

    def latest(self, ids: Sequence[int], count: int) -> dict[int, list[Outcome]]:
        """Returns the outcomes of the last `count` trials of studies, oldest first, by the id of the study."""
        rows, statement = self._database.rows, self._statements.latest
        found = {id_: rows(statement, {"sought": id_, "most": count}) for id_ in ids}
        return {id_: [Outcome(*row) for row in reversed(each)] for id_, each in found.items()}

    def _stored(self, row: Any) -> StoredStudy:
        name = row.name
        if isinstance(row.format, int) and row.format > STUDY_FORMAT:
            raise newer(f"Study {name!r} in {self.url}", row.format, STUDY_FORMAT)
        try:
            for column, kind in STUDY.items():
                if type(getattr(row, column)) is not kind:
                    raise ValueError(f"`{column}` is {shown(getattr(row, column))}")
            if row.format < 1 or not (row.seed.isascii() and row.seed.isdecimal()):
                raise ValueError(f"`format` is {row.format}, `seed` is {shown(row.seed)}")
            if row.goal not in ("maximize", "minimize"):
                raise ValueError(f"`goal` is {shown(row.goal)}")
            return StoredStudy(row.id, row.name, row.policy, row.goal, int(row.seed), row.about, row.created_at)
        except ValueError as error:
            raise self._damaged(name, str(error)) from error

    def _summary(self, name: str, row: Sequence[Any]) -> Summary:
        """Returns the summary in a study's row."""
        *counts, best, last = row
        if {*map(type, counts)} != {int} or not {type(best), type(last)} <= {float, type(None)}:
            raise self._damaged(name, f"its summary is {shown(dict(zip(SUMMARY, row, strict=True)))}")
        return Summary(*row)

    def _damaged(self, name: str, why: str) -> StorageError:
        return StorageError(f"Study {name!r} in {self.url} has been damaged: {why}. Restore a copy.")

    # -- notes ---------------------------------------------------------------------------------------------------

    def read_notes(self, study: StoredStudy, keys: Sequence[str]) -> dict[str, str]:
        """Returns the notes on record under these keys."""
        return dict(self._database.rows(*self._notes.read(owner(study), keys)))

    def notes_named(self, key: str, studies: Sequence[StoredStudy | ListedStudy]) -> dict[int, str]:
        """Returns the notes of several studies under one key, by the id of the study."""
        ids = {owner(study): study.id for study in studies}
        return {ids[whose]: text for whose, text in self._database.rows(*self._notes.named(key, list(ids)))}

    def notes(self, study: StoredStudy | None, prefix: str) -> dict[str, str]:
        """Returns the notes with this ASCII prefix of their keys, of a study or of none."""
        return dict(self._rows_under(self._notes.under, study, prefix))

    def count_notes(self, study: StoredStudy, prefix: str, *, unlike: str = "") -> int:
        """Returns the number of notes of a study with this prefix of their keys.

        Args:
            study: of the notes.
            prefix: of the keys.
            unlike: pattern of values that do not count, as of SQL's LIKE.
        """
        return int(self._rows_under(self._notes.count, study, prefix, unlike=unlike)[0][0])

    def _rows_under(self, statement: str, study: StoredStudy | None, prefix: str, **more: str) -> Sequence[Any]:
        whose = NOBODY if study is None else owner(study)
        return self._database.rows(statement, {"study": whose, "low": prefix, "high": prefix + "\x7f"} | more)

    def note_once(self, key: str, value: str) -> str:
        """Writes a note of no study unless the key has one, and returns the note on record."""
        known = self.notes(None, key).get(key)
        if known is not None:
            return known
        with self._database.transaction(write=True) as connection:
            connection.connection.cursor().execute(self._notes.once, {"study": NOBODY, "key": key, "value": value})
        return self.notes(None, key)[key]

    # -- trials --------------------------------------------------------------------------------------------------

    def news(self, study: StoredStudy, *, since: int, stamp: str) -> News:
        """Returns the changes since an event."""
        written = self._written.get(study.identity)
        if written is not None and written[1].stamp == stamp and written[0] == self._database.version():
            return nothing_new(stamp)
        now = self._stamp(study, self._database.rows(self._statements.head, {"sought": study.id}))
        if stamp == now:  # The usual case.
            return nothing_new(stamp)
        with self._database.transaction(write=False) as connection:
            return self._writer(connection, study, lock=False).news(since=since, stamp=stamp)

    def writing(self, study: StoredStudy) -> AbstractContextManager[SqlWriter]:
        """Opens a write transaction on a study. An error inside it rolls the transaction back."""
        return _Writing(self, self._database.transaction(write=True), study)

    def begin(self, connection: sql.Connection, study: StoredStudy) -> SqlWriter:
        """Returns a study inside a write transaction."""
        version, identity = self._database.version(), (study.id, study.seed, study.created_at)  # A call less.
        written = self._written.get(identity)
        if written is not None and written[0] == version:
            return written[1]
        writer = self._writer(connection, study, lock=True)
        if version is not None:
            self._written[identity] = version, writer
        return writer

    def _writer(self, connection: sql.Connection, study: StoredStudy, *, lock: bool) -> SqlWriter:
        """Returns a study inside a transaction.

        A file may be replaced while it is in use, so a study that is not the opened one raises an error.
        """
        cursor = connection.connection.cursor()
        cursor.execute(self._statements.lock if lock else self._statements.head, {"sought": study.id})
        heads = cursor.fetchall()
        stamp = self._stamp(study, heads)
        arms, *summary = tuple(heads[0])[len(HEAD) - 1 :]
        counted = self._summary(study.name, summary)
        return SqlWriter(cursor, self._statements, self._notes, study, stamp, counted, arms)

    def _stamp(self, study: StoredStudy, heads: Sequence[Any]) -> str:
        """Returns the stamp of a record from the study's row."""
        if not heads or tuple(heads[0])[:2] != (str(study.seed), study.created_at):
            raise StorageError(self._database.gone(study.name))
        stamp, arms = heads[0][2:4]
        if not isinstance(stamp, str) or type(arms) not in (int, type(None)):
            raise self._damaged(study.name, f"its stamp is {shown(stamp)}, its last change {shown(arms)}")
        return stamp


@final
class _Writing(AbstractContextManager[SqlWriter]):
    """A write transaction on a study, as a context. A generator in its place would cost more than a statement.

    Args:
        storage: of the study.
        transaction: of the database.
        study: as the storage knows it.
    """

    def __init__(
        self, storage: SqlStorage, transaction: AbstractContextManager[sql.Connection], study: StoredStudy
    ) -> None:
        self._storage, self._transaction, self._study = storage, transaction, study

    def __enter__(self) -> SqlWriter:
        connection = self._transaction.__enter__()
        try:
            return self._storage.begin(connection, self._study)
        except BaseException:
            self._transaction.__exit__(*sys.exc_info())
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        self._transaction.__exit__(kind, error, trace)


def _notes(database: Database) -> NoteStatements:
    return NoteStatements(database.tables.notes, database.engine.dialect.name, database.text)


def _database(url: str, *, make: bool, private: bool) -> Database:
    if isinstance(url, str) and url.startswith(SCHEME[:-3]):
        return SqliteDatabase(url, make=make, private=private)
    from .postgresql import SCHEMES, PostgresDatabase

    if isinstance(url, str) and url.startswith(SCHEMES):
        return PostgresDatabase(url)
    kind = "only SQLite and PostgreSQL are supported" if isinstance(url, str) and "://" in url else "it must be a URL"
    raise InvalidInput(
        f"`storage` is {shown(url)}: {kind}, or a `nilregret.storage.Storage`; write 'sqlite:///studies.db' (three "
        "slashes, then a relative path; four for an absolute one) or 'postgresql://user:password@host/database'."
    )


def opened(storage: str | Storage, *, make: bool = True) -> Storage:
    """Returns the storage of a URL, or the given storage.

    Args:
        storage: URL or storage (see `Study`).
        make: if False, a missing file is an error.

    >>> import nilregret as nr
    >>> import tempfile
    >>> from nilregret.storage import opened
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     records = opened(f"sqlite:///{folder}/studies.db")
    ...     print(records.names())
    ...     records.close()
    []
    """
    return storage if isinstance(storage, Storage) else SqlStorage(storage, make=make)


def find_again(url: str, name: str, known: Identity) -> tuple[Storage, str]:
    """Returns the storage of a pickled study and the name that the study has now.

    The study may have been renamed since, and its old name given to another study.

    Args:
        url: of the storage.
        name: that the study had.
        known: its identity.

    Raises:
        StorageError: the storage no longer holds the study.
    """
    storage = opened(url, make=False)
    for candidate in (name, *storage.names()):
        found = storage.find(candidate)
        if found is not None and found.identity == known:
            return storage, candidate
    raise StorageError(
        f"{url} no longer holds the study {shown(name)} that was copied or pickled: it has been deleted, or the file "
        "has been replaced by another. Open a study by its name to work with the storage as it is now."
    )
