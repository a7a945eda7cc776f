"""The record in a SQL database: a file of SQLite, or a PostgreSQL server.

One row a study, one row a trial. A study's row holds its counter of events and a stamp, which are changed in the very
transaction that inserts or updates trials: who writes reads that row first, under a lock, so that processes sharing a
study see one order of events, and sees by the stamp whether there is anything to catch up with. Unique keys on numbers
and orders would refuse two events of one order even without the lock.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, final

import sqlalchemy as sql
from sqlalchemy import exc

from .._utils.checks import new_study_name, shown, storable
from .._utils.errors import InvalidInput, StorageError
from .auth_tables import Beside, beside
from .base import Change, KeepsNotes, News, Notes, Storage, StoredStudy, Summary, Writer
from .database import Database
from .notes import NOBODY, NoteStatements, owner
from .notes import rows as rows_of_notes
from .rows import KINDS, OUTCOME, Reader, outcome, question
from .sqlite import SCHEME, File
from .tables import ADDED, FORMAT, NEVER, READABLE, bring_up_to_date
from .trial import Trial

SUMMARY = Summary._fields  # columns of a study's row
STUDY = {"format": int, "created_at": float, "policy": str, "seed": str, "about": str}  # of a row


@final
class SqlStorage(Storage, KeepsNotes):
    """A database of studies.

    Args:
        url: `sqlite:///file.db` (a relative path) or `sqlite:////folder/file.db` (an absolute one); what follows the
            third slash is the path as it is. Or `postgresql://user:password@host/database`, which needs the extra
            `nilregret[postgresql]`.
        make: whether to make the file, or the tables, where there are none.
        private: whether a file that is made can be read by its owner alone: of a service, which keeps secrets in it.
    """

    shared = True

    def __init__(self, url: str, *, make: bool = True, private: bool = False) -> None:
        self._database = _database(url, make=make, private=private)
        self.url = self._database.url
        self._statements = Statements(self._database)
        studies = self._database.tables.studies.name
        self.beside: Beside = beside(studies.removesuffix("studies"))
        self._has_beside = False
        self._notes = NoteStatements(self._database.notes, self._database.engine.dialect.name, self._database.text)
        try:
            self._current = self._looked_at(make=make)
        except BaseException:
            self._database.close()
            raise

    def _looked_at(self, *, make: bool) -> bool:
        """Make the tables where they are wanted and not there; returns whether they have every column."""
        with self._database.transaction(write=False) as connection:  # looking is possible where writing is not
            known = self._database.format(connection)
            if known:
                self._database.check_whole(connection)
                self._read_as(connection)
        if known >= READABLE:
            return known == FORMAT
        if not known and not make:
            raise InvalidInput(f"`storage` {self.url!r} is an empty database: there is no study in it.")
        with self._database.transaction(write=True) as connection:
            self._bring_up_to_date(connection)
        return True

    @property
    def place(self) -> str:
        """The URL, of a file with its absolute path, which means the same in every folder."""
        return self._database.place

    def __repr__(self) -> str:
        return f"SqlStorage({self.url!r})"

    def close(self) -> None:
        """See `Storage`."""
        self._database.close()

    # -- tables --------------------------------------------------------------------------------------------------

    def _bring_up_to_date(self, connection: sql.Connection) -> None:
        """Tables where there are none; what older formats lack."""
        database = self._database
        database.lock_tables(connection)
        known = database.format(connection)  # again: another process may have been faster
        if known != FORMAT:
            bring_up_to_date(connection, database.tables, known)
            database.mark(connection, FORMAT)
        self._read_as(connection)

    def _read_as(self, connection: sql.Connection) -> None:
        """Older files lack some columns, which are read as nothing."""
        made = self._database.tables
        lacking = {
            table.name: set(ADDED[name]) - self._database.columns(connection, table)
            for name, table in (("studies", made.studies), ("trials", made.trials))
        }
        self._statements = Statements(self._database, lacking)

    @contextmanager
    def using_beside(self, *, write: bool) -> Iterator[sql.Connection | None]:
        """A transaction on the tables `beside`; None where there are none yet, unless it writes, which makes them."""
        with self._database.transaction(write=write) as connection:
            if not self._has_beside:
                there = set(sql.inspect(connection).get_table_names())
                lacking = not there >= self.beside.metadata.tables.keys()
                if lacking and not write:
                    yield None
                    return
                if lacking:
                    self._bring_up_to_date(connection)
                    self.beside.metadata.create_all(connection)
            yield connection
        self._has_beside = True

    # -- studies -------------------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """See `Storage`."""
        with self._database.transaction(write=False) as connection:
            return list(connection.execute(self._statements.names).scalars())

    def find(self, name: str) -> StoredStudy | None:
        """See `Storage`."""
        with self._database.transaction(write=False) as connection:
            return self._find(connection, name)

    def find_or_make(self, name: str, *, policy: str, goal: str, seed: int, about: str) -> StoredStudy:
        """See `Storage`."""
        values: dict[str, Any] = {"name": name, "policy": policy, "goal": goal, "seed": str(seed), "about": about}
        values |= {"format": FORMAT, "created_at": time.time(), "events": 0, "stamp": _stamp(), **Summary()._asdict()}
        found = self.find(name)
        if found is not None:
            return found
        try:
            with self._database.transaction(write=True) as connection:
                self._bring_up_to_date(connection)
                found = self._find(connection, name)
                if found is None:
                    connection.execute(sql.insert(self._database.tables.studies).values(values))
        except StorageError as error:
            if not isinstance(error.__cause__, exc.IntegrityError):  # otherwise another process was faster
                raise
        self._current = True
        made = found or self.find(name)
        if made is None:
            raise StorageError(f"Study {name!r} could not be made in {self.url}: it has been tampered with.")
        return made

    def rename(self, name: str, new: str) -> None:
        """See `Storage`."""
        new_study_name("new", new)
        studies = self._database.tables.studies
        with self._database.transaction(write=True) as connection:
            study = self._find(connection, name)
            if study is None or self._find(connection, new) is not None:
                what = f"there is no study {shown(name)}" if study is None else f"there is a study {shown(new)} already"
                raise InvalidInput(f"{shown(name)} in {self.url} cannot become {shown(new)}: {what}.")
            connection.execute(sql.update(studies).where(studies.c.id == study.id).values(name=new))

    def delete(self, name: str) -> None:
        """See `Storage`."""
        studies, trials = self._database.tables.studies, self._database.tables.trials
        with self._database.transaction(write=True) as connection:
            study = self._find(connection, name)
            if study is None:
                raise InvalidInput(f"There is no study {shown(name)} in {self.url}.")
            connection.execute(sql.select(studies.c.id).where(studies.c.id == study.id).with_for_update())
            connection.execute(sql.delete(trials).where(trials.c.study == study.id))
            connection.execute(sql.delete(studies).where(studies.c.id == study.id))

    def _find(self, connection: sql.Connection, name: str) -> StoredStudy | None:
        if not isinstance(name, str) or "\0" in name or not storable(name):  # no column of text is compared with it
            return None
        row = connection.execute(self._statements.find, {"sought": name}).one_or_none()
        return None if row is None else self._stored(row)

    def summaries(self, name: str | None = None) -> list[tuple[StoredStudy, Summary]]:
        """See `Storage`."""
        with self._database.transaction(write=False) as connection:
            if name is None:
                rows = connection.execute(self._statements.every).all()
            else:
                rows = connection.execute(self._statements.find, {"sought": name}).all()
            found = []
            for row in rows:
                study, known = self._stored(row), _summary([getattr(row, column) for column in SUMMARY])
                found.append((study, known or self._turn(connection, study, lock=False).summary()))
            return found

    def _stored(self, row: Any) -> StoredStudy:
        name = row.name
        if isinstance(row.format, int) and row.format > FORMAT:
            raise StorageError(
                f"Study {name!r} in {self.url} was written by a newer version of nilregret (format {row.format}, "
                f"this one reads {FORMAT}). Upgrade nilregret; the file has not been touched."
            )
        try:
            for column, kind in STUDY.items():
                if type(getattr(row, column)) is not kind:
                    raise ValueError(f"`{column}` is {shown(getattr(row, column))}")
            if row.format < 1 or not (row.seed.isascii() and row.seed.isdecimal()):
                raise ValueError(f"`format` is {row.format}, `seed` is {shown(row.seed)}")
            goal = "maximize" if row.goal is None and row.format < ADDED["studies"]["goal"] else row.goal
            if goal not in ("maximize", "minimize"):
                raise ValueError(f"`goal` is {shown(goal)}")
            return StoredStudy(row.id, row.name, row.policy, goal, int(row.seed), row.about, row.created_at)
        except ValueError as error:
            raise StorageError(f"Study {name!r} in {self.url} has been damaged: {error}. Restore a copy.") from error

    # -- notes ---------------------------------------------------------------------------------------------------

    def keep_notes(self) -> None:
        """Make the table of notes, where there is none; whoever writes notes calls this first."""
        database = self._database
        with database.transaction(write=False) as connection:
            if self._current and sql.inspect(connection).has_table(database.notes.name):
                return
        with database.transaction(write=True) as connection:
            self._bring_up_to_date(connection)
            database.lock_tables(connection)
            database.notes.metadata.create_all(connection)

    def read_notes(self, study: StoredStudy, keys: Sequence[str]) -> dict[str, str]:
        """See `KeepsNotes`."""
        return dict(self._database.rows(*self._notes.read(owner(study), keys)))

    def notes(self, study: StoredStudy | None, prefix: str) -> dict[str, str]:
        """The notes of a study (those of none) whose keys begin so; keys are ASCII."""
        return dict(self._under(self._notes.under, study, prefix))

    def count_notes(self, study: StoredStudy, prefix: str, *, unlike: str = "") -> int:
        """How many notes of a study have keys that begin so, and values that are not like this (of SQL's LIKE)."""
        return int(self._under(self._notes.count, study, prefix, unlike=unlike)[0][0])

    def _under(self, statement: str, study: StoredStudy | None, prefix: str, **more: str) -> Sequence[Any]:
        whose = NOBODY if study is None else owner(study)
        return self._database.rows(statement, {"study": whose, "low": prefix, "high": prefix + "\x7f"} | more)

    def note_once(self, key: str, value: str) -> str:
        """Write a note of no study, where there is none under the key; returns the one there is then."""
        known = self.notes(None, key).get(key)
        if known is not None:
            return known
        with self._database.transaction(write=True) as connection:
            connection.connection.cursor().execute(self._notes.once, {"study": NOBODY, "key": key, "value": value})
        return self.notes(None, key)[key]

    # -- trials --------------------------------------------------------------------------------------------------

    def news(self, study: StoredStudy, *, since: int, stamp: str) -> News:
        """See `Storage`."""
        now = self._stamp(study, self._database.rows(self._statements.head, {"sought": study.id}))
        if stamp == now != NEVER:  # mostly
            return News((), stamp)
        with self._database.transaction(write=False) as connection:
            return self._turn(connection, study, lock=False).news(since=since, stamp=stamp)

    @contextmanager
    def writing(self, study: StoredStudy) -> Iterator[Writer]:
        """See `Storage`."""
        with self._database.transaction(write=True) as connection:
            if not self._current:
                self._bring_up_to_date(connection)
            yield self._turn(connection, study, lock=True)
        self._current = True

    def _turn(self, connection: sql.Connection, study: StoredStudy, *, lock: bool) -> _Turn:
        """A file may be replaced while it is in use: what is not the study that was opened is not written to."""
        cursor = connection.connection.cursor()
        cursor.execute(self._statements.lock if lock else self._statements.head, {"sought": study.id})
        heads = cursor.fetchall()
        stamp = self._stamp(study, heads)
        return _Turn(cursor, self._statements, self._notes, study, stamp, _summary(tuple(heads[0])[3:]))

    def _stamp(self, study: StoredStudy, heads: Sequence[Any]) -> str:
        """Of the record, from the study's row."""
        if not heads or tuple(heads[0])[:2] != (str(study.seed), study.created_at):
            raise StorageError(self._database.gone(study.name))
        stamp = heads[0][2]
        return stamp if isinstance(stamp, str) else NEVER


class Statements:
    """Made once, and those of each call as text for the driver: to make one takes many times as long as to execute it.

    Args:
        database: that they are for.
        lacking: of each of its tables, columns that it has not.
    """

    def __init__(self, database: Database, lacking: dict[str, set[str]] | None = None) -> None:
        studies, trials, lacking = database.tables.studies, database.tables.trials, lacking or {}
        sought: sql.BindParameter[Any] = sql.bindparam("sought")
        since: sql.BindParameter[Any] = sql.bindparam("since")

        def there(table: sql.Table, names: Sequence[str]) -> list[Any]:
            without = lacking.get(table.name, set())
            return [sql.null().label(name) if name in without else table.c[name] for name in names]

        self.names = sql.select(studies.c.name).order_by(studies.c.id)
        whole_row = sql.select(*there(studies, [c.name for c in studies.c]))
        self.find, self.every = whole_row.where(studies.c.name == sought), whole_row.order_by(studies.c.id)
        head = sql.select(*there(studies, ["seed", "created_at", "stamp", *SUMMARY])).where(studies.c.id == sought)
        self.head, self.lock = database.text(head), database.text(head.with_for_update())
        # A column for whether a round was explored holds any number in SQLite, and is to be seen as it is.
        whole = sql.type_coerce(trials.c.explored, sql.Integer).label("explored")
        columns = [whole if c.name == "explored" else c for c in there(trials, list(KINDS))]
        everything = sql.select(*columns).where(trials.c.study == sought).order_by(trials.c.number)
        # Of a file that lacks this column nothing new can come: who writes to it brings it up to date.
        lacks = "last_order" in lacking.get(trials.name, set())
        self.all = database.text(everything)
        self.changed = self.all if lacks else database.text(everything.where(trials.c.last_order >= since))
        self.insert = database.text(sql.insert(trials))
        update = (
            sql.update(trials)
            .where(trials.c.study == sought, trials.c.number == sql.bindparam("which"))
            .where(trials.c.last_order == sql.bindparam("before"))
            .values({name: sql.bindparam(name) for name in (*OUTCOME, "last_order")})
        )
        self.update = database.text(update)
        values: dict[str, Any] = {"events": sql.bindparam("now"), "stamp": sql.bindparam("mark")}
        values |= {name: sql.bindparam(name) for name in SUMMARY}
        self.count = database.text(sql.update(studies).where(studies.c.id == sought).values(values))


@final
class _Turn(Writer, Notes):
    """A study inside a transaction."""

    def __init__(
        self, cursor: Any, statements: Statements, notes: NoteStatements, study: StoredStudy, stamp: str,
        summary: Summary | None,
    ) -> None:  # fmt: skip
        self._cursor, self._statements, self._notes = cursor, statements, notes
        self._study, self._owner, self._stamp = study.id, owner(study), stamp
        self._goal, self._summary = study.goal, summary

    def read_notes(self, keys: Sequence[str]) -> dict[str, str]:
        """See `Notes`."""
        self._cursor.execute(*self._notes.read(self._owner, keys))
        return dict(self._cursor.fetchall())

    def write_notes(self, notes: Mapping[str, str]) -> None:
        """See `Notes`."""
        if notes:
            self._many(self._notes.write, rows_of_notes(self._owner, notes))

    def news(self, *, since: int, stamp: str) -> News:
        """See `Writer`."""
        if stamp == self._stamp != NEVER:
            return News((), stamp)
        if since > 0:
            self._cursor.execute(self._statements.changed, {"sought": self._study, "since": since})
            return News(Reader().trials(self._cursor.fetchall()), self._stamp)
        return News(self._all(), self._stamp)

    def _all(self) -> list[Trial]:
        self._cursor.execute(self._statements.all, {"sought": self._study})
        return Reader().trials(self._cursor.fetchall())

    def summary(self) -> Summary:
        """Of all trials as they are now."""
        return Summary.of(self._all(), self._goal)

    def save(self, changes: Sequence[Change], *, order: int) -> str:
        """See `Writer`."""
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
        stamp = _stamp()
        known = None if self._summary is None else self._summary.after(changes, self._goal)
        values = (known or self.summary())._asdict()
        self._cursor.execute(self._statements.count, {"sought": self._study, "now": order, "mark": stamp} | values)
        return stamp

    def _many(self, statement: str, rows: list[dict[str, Any]]) -> None:
        if len(rows) == 1:
            self._cursor.execute(statement, rows[0])
        else:
            self._cursor.executemany(statement, rows)


def _summary(row: Sequence[Any]) -> Summary | None:
    """As it stands in a study's row; None where nobody has written it yet, or what is there is none."""
    *counts, best, last = row
    fits = all(type(count) is int for count in counts) and all(type(x) in (float, type(None)) for x in (best, last))
    return Summary(*row) if fits else None


def _stamp() -> str:
    return secrets.token_hex(8)


def _database(url: str, *, make: bool, private: bool) -> Database:
    if isinstance(url, str) and url.startswith(SCHEME[:-3]):
        return File(url, make=make, private=private)
    from .postgresql import SCHEMES, Server

    if isinstance(url, str) and url.startswith(SCHEMES):
        return Server(url)
    kind = "only SQLite and PostgreSQL are supported" if isinstance(url, str) and "://" in url else "it must be a URL"
    raise InvalidInput(
        f"`storage` is {shown(url)}: {kind}, or a `nilregret.storage.Storage`; write 'sqlite:///studies.db' (three "
        "slashes, then a relative path; four for an absolute one) or 'postgresql://user:password@host/database'."
    )
