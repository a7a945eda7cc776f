"""The record in a SQL database; SQLite is one file, made on first use, and needs no server.

One row a study, one row a trial. Rows of trials are inserted when asked and updated once, when their outcome comes
in. All writing happens in transactions that hold the database's write lock from the start, so that processes sharing
a study see one order of events; SQLite's default journal makes each commit survive a crash of the process or machine.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import sqlalchemy as sql
from sqlalchemy import exc

from ..checks import shown
from ..errors import InvalidInput, StorageError
from ..record import Trial
from .files import File, check_whole, columns_of, format_of, mark
from .rows import from_row, to_row

FORMAT = 4  # of the tables; a database written by a newer version is refused rather than misread
STUDY = {"format": int, "created_at": float, "policy": str, "seed": str, "about": str}  # of a row
READABLE = 2  # the oldest format that is read as it is, also where nothing can be written
# Columns since format 1: the format they came with.
ADDED = {"trials": {"constraints": 2, "constraints_order": 4}, "studies": {"goal": 3}}
OUTCOME = ("state", "reward", "reason", "told_order", "told_at", "constraints")  # columns that an answer fills
WHOLE = ("constraints_order",)  # those of them that are numbers

_metadata = sql.MetaData()
_studies = sql.Table(
    "studies",
    _metadata,
    sql.Column("id", sql.Integer, primary_key=True),
    sql.Column("name", sql.Text, nullable=False, unique=True),
    sql.Column("policy", sql.Text, nullable=False),  # JSON
    sql.Column("seed", sql.Text, nullable=False),  # a whole number of any size
    sql.Column("about", sql.Text, nullable=False),  # JSON
    sql.Column("format", sql.Integer, nullable=False),
    sql.Column("created_at", sql.Double, nullable=False),  # Unix seconds, as all times here
    sql.Column("goal", sql.Text),  # "maximize" or "minimize"; since format 3, before which all maximised
)
_trials = sql.Table(
    "trials",
    _metadata,
    sql.Column("study", sql.ForeignKey("studies.id"), primary_key=True),
    sql.Column("number", sql.Integer, primary_key=True, autoincrement=False),
    sql.Column("state", sql.Text, nullable=False),
    sql.Column("arm", sql.Integer),
    sql.Column("point", sql.Text, nullable=False),  # JSON
    sql.Column("parameters", sql.Text),  # JSON, for people who look into the file
    sql.Column("context", sql.Text),  # JSON
    sql.Column("explored", sql.Boolean, nullable=False),
    sql.Column("reward", sql.Double),
    sql.Column("reason", sql.Text),
    sql.Column("asked_order", sql.Integer, nullable=False),
    sql.Column("asked_at", sql.Double, nullable=False),
    sql.Column("told_order", sql.Integer),
    sql.Column("told_at", sql.Double),
    sql.Column("constraints", sql.Text),  # JSON; since format 2
    sql.Column("constraints_order", sql.Integer),  # since format 4, before which they came with the reward
    sql.UniqueConstraint("study", "asked_order"),
    sql.UniqueConstraint("study", "told_order"),
)


class StoredStudy(NamedTuple):
    """What a database knows of a study besides its trials."""

    id: int
    name: str
    policy: str
    goal: str
    seed: int
    about: str
    created_at: float


class SqlStorage:
    """A database of studies.

    Args:
        url: `sqlite:///file.db` (a relative path) or `sqlite:////folder/file.db` (an absolute one); what follows the
            third slash is the path as it is.
        make: whether to make the file where there is none.
    """

    def __init__(self, url: str, *, make: bool = True) -> None:
        self.url = url
        self._file = File(url, make=make)
        with self._transaction(write=False) as connection:  # looking is possible where writing is not
            known = self._format(connection)
            if known:
                check_whole(connection, url)
        self._current = known == FORMAT  # whether the tables have every column
        if known >= READABLE:
            return
        if not known and not make:
            raise InvalidInput(f"`storage` {url!r} is an empty file: there is no study in it.")
        with self._transaction(write=True) as connection:
            self._bring_up_to_date(connection)
        self._current = True

    @property
    def place(self) -> str:
        """The URL with an absolute path, which means the same file in every folder."""
        return f"sqlite:///{self._file.path}"

    def _format(self, connection: sql.Connection) -> int:
        return format_of(connection, self.url, _metadata, ADDED)

    def _bring_up_to_date(self, connection: sql.Connection) -> None:
        """Tables where there are none; columns that older formats lack."""
        known = self._format(connection)  # again: another process may have been faster
        if known == FORMAT:
            return
        if not known:
            _metadata.create_all(connection)
        for table, columns in ADDED.items():
            for column in columns.keys() - columns_of(connection, table):
                kind = "INTEGER" if column in WHOLE else "TEXT"
                connection.exec_driver_sql(f"ALTER TABLE {table} ADD COLUMN {column} {kind}")
        mark(connection)

    def find(self, name: str) -> StoredStudy | None:
        """The study of this name, or None."""
        with self._transaction(write=False) as connection:
            return self._find(connection, name)

    def find_or_make(self, name: str, *, policy: str, goal: str, seed: int, about: str) -> StoredStudy:
        """The study of this name; where there is none, a new one of this policy (JSON), goal, seed and facts (JSON)."""
        found = self.find(name)
        if found is not None:
            return found
        with self._transaction(write=True) as connection:
            found = self._find(connection, name)
            if found is not None:
                return found
            self._bring_up_to_date(connection)
            values: dict[str, Any] = {"name": name, "policy": policy, "goal": goal, "seed": str(seed), "about": about}
            values |= {"format": FORMAT, "created_at": time.time()}
            connection.execute(sql.insert(_studies).values(values))
            made = self._find(connection, name)
        if made is None:
            raise StorageError(f"Study {name!r} could not be made in {self.url}: the file has been tampered with.")
        return made

    def _find(self, connection: sql.Connection, name: str) -> StoredStudy | None:
        there = columns_of(connection, "studies")
        columns = [c if c.name in there else sql.null().label(c.name) for c in _studies.c]
        row = connection.execute(sql.select(*columns).where(_studies.c.name == name)).one_or_none()
        if row is None:
            return None
        if isinstance(row.format, int) and row.format > FORMAT:
            raise StorageError(
                f"Study {name!r} in {self.url} was written by a newer version of noregret (format {row.format}, "
                f"this one reads {FORMAT}). Upgrade noregret; the file has not been touched."
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

    def names(self) -> list[str]:
        """Names of all studies, oldest first."""
        with self._transaction(write=False) as connection:
            return list(connection.execute(sql.select(_studies.c.name).order_by(_studies.c.id)).scalars())

    @contextmanager
    def writing(self, study: StoredStudy) -> Iterator[Writer]:
        """A transaction in which nobody else writes; commits at the end, leaves no trace on an error."""
        with self._transaction(write=True) as connection:
            self._check_still_there(connection, study)
            if not self._current:
                self._bring_up_to_date(connection)
            yield Writer(connection, study.id)
        self._current = True

    def changes(self, study: StoredStudy, *, since: int) -> list[Trial]:
        """Trials asked or told in the event of this order or later; every one of the study since 0."""
        with self._transaction(write=False) as connection:
            self._check_still_there(connection, study)
            there = None if self._current else columns_of(connection, "trials")
            return Writer(connection, study.id, there).changes(since=since)

    def _check_still_there(self, connection: sql.Connection, study: StoredStudy) -> None:
        """A file may be replaced while it is in use: what is not the study that was opened is not written to."""
        columns = (_studies.c.name, _studies.c.seed, _studies.c.created_at)
        row = connection.execute(sql.select(*columns).where(_studies.c.id == study.id)).one_or_none()
        if row is None or tuple(row) != (study.name, str(study.seed), study.created_at):
            raise StorageError(
                f"{self.url} no longer holds the study {study.name!r} that was opened: the file has been replaced by "
                "another. Nothing was written. Open the study anew to work with the file as it is now."
            )

    @contextmanager
    def _transaction(self, *, write: bool) -> Iterator[sql.Connection]:
        try:
            with self._file.engine.connect().execution_options(noregret_write=write) as connection, connection.begin():
                yield connection
        except exc.DatabaseError as error:
            cause = str(error.orig)
            raise StorageError(
                f"The storage {self.url} could not be used: {cause}. {self._file.remedy(cause)}"
            ) from error


class Writer:
    """Reading and writing one study's trials inside a transaction."""

    def __init__(self, connection: sql.Connection, study: int, there: set[str] | None = None) -> None:
        self._connection = connection
        self._study = study
        # Columns: older files lack some.
        self._there = {column.name for column in _trials.c} if there is None else there

    def changes(self, *, since: int) -> list[Trial]:
        """Trials asked or told in the event of this order or later, by number; every one of the study since 0."""
        # A column for whether a round was explored holds any number in SQLite, and is to be seen as it is.
        columns = [
            sql.null().label(c.name) if c.name not in self._there
            else sql.type_coerce(c, sql.Integer).label(c.name) if c.name == "explored" else c
            for c in _trials.c
        ]  # fmt: skip
        query = sql.select(*columns).where(_trials.c.study == self._study).order_by(_trials.c.number)
        if since > 0:
            # Two lookups by index rather than one scan: a long study is polled before every call.
            fresh = sql.union(
                *(
                    sql.select(_trials.c.number).where(_trials.c.study == self._study, column >= since)
                    for column in (_trials.c.asked_order, _trials.c.told_order, _trials.c.constraints_order)
                    if column.name in self._there
                )
            )
            query = query.where(_trials.c.number.in_(fresh))
        return [from_row(row._asdict()) for row in self._connection.execute(query)]

    def save(self, trial: Trial) -> None:
        """Insert a trial that is new, update one that has been answered, or whose constraint values were told."""
        row = to_row(trial)
        limited = trial.constraints_order is not None and trial.constraints_order > (trial.told_order or -1)
        if not limited and (trial.told_order is None or trial.told_order == trial.asked_order):
            self._connection.execute(sql.insert(_trials).values(study=self._study, **row))
            return
        changes = ("constraints", "constraints_order") if limited else OUTCOME
        before = _trials.c.constraints.is_(None) if limited else _trials.c.state == "pending"
        changed = self._connection.execute(
            sql.update(_trials)
            .where(_trials.c.study == self._study, _trials.c.number == trial.number, before)
            .values(**{name: row[name] for name in changes})
        )
        if changed.rowcount != 1:
            raise StorageError(f"Trial {trial.number} is no longer pending in the storage; nothing was written.")
