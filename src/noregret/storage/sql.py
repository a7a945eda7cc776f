"""The record in a SQL database; SQLite is one file, made on first use, and needs no server.

One row a study, one row a trial. Rows of trials are inserted when asked and updated once, when their outcome comes
in. All writing happens in transactions that hold the database's write lock from the start, so that processes sharing
a study see one order of events; SQLite's default journal makes each commit survive a crash of the process or machine.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sql
from sqlalchemy import exc

from ..checks import Array, points_array
from ..errors import InvalidInput, StorageError
from ..record import Trial

FORMAT = 2  # of the tables; a database written by a newer version is refused rather than misread
LOCK_SECONDS = 60.0  # how long to wait while another process writes

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
    sql.UniqueConstraint("study", "asked_order"),
    sql.UniqueConstraint("study", "told_order"),
)


class StoredStudy(NamedTuple):
    """What a database knows of a study besides its trials."""

    id: int
    name: str
    policy: str
    seed: int
    about: str


class SqlStorage:
    """A database of studies.

    Args:
        url: `sqlite:///file.db` (a relative path) or `sqlite:////folder/file.db` (an absolute one); what follows the
            third slash is the path as it is.
        make: whether to make the file where there is none.
    """

    def __init__(self, url: str, *, make: bool = True) -> None:
        self.url = url
        path = Path(_database(url))
        if not path.parent.is_dir():
            raise InvalidInput(f"`storage` is in the folder {str(path.parent)!r}, which does not exist: make it first.")
        if not make and not path.exists():
            raise InvalidInput(f"`storage` {url!r}: there is no such file.")
        # No pool: a connection to a file costs little, and none is left open in forks, threads and notebooks.
        self._engine = sql.create_engine(
            sql.URL.create("sqlite", database=str(path)), connect_args={"timeout": LOCK_SECONDS}, poolclass=sql.NullPool
        )
        sql.event.listen(self._engine, "connect", _leave_transactions_to_us)
        sql.event.listen(self._engine, "begin", _begin)
        with self._transaction(write=True) as connection:
            tables = set(sql.inspect(connection).get_table_names())
            if "studies" in tables and "trials" not in tables:
                raise StorageError(f"{url} has studies but no trials: it has been damaged. Restore a copy.")
            _metadata.create_all(connection)
            if "trials" in tables:
                _bring_up_to_date(connection)

    def find(self, name: str) -> StoredStudy | None:
        """The study of this name, or None."""
        with self._transaction(write=False) as connection:
            return self._find(connection, name)

    def find_or_make(self, name: str, *, policy: str, seed: int, about: str) -> StoredStudy:
        """The study of this name; where there is none, a new one of this policy (JSON), seed and facts (JSON)."""
        with self._transaction(write=True) as connection:
            found = self._find(connection, name)
            if found is not None:
                return found
            values: dict[str, Any] = {"name": name, "policy": policy, "seed": str(seed), "about": about}
            values |= {"format": FORMAT, "created_at": time.time()}
            connection.execute(sql.insert(_studies).values(values))
            made = connection.execute(sql.select(_studies.c.id).where(_studies.c.name == name)).scalar_one()
            return StoredStudy(made, name, policy, seed, about)

    def _find(self, connection: sql.Connection, name: str) -> StoredStudy | None:
        row = connection.execute(sql.select(_studies).where(_studies.c.name == name)).one_or_none()
        if row is None:
            return None
        if row.format > FORMAT:
            raise StorageError(
                f"Study {name!r} in {self.url} was written by a newer version of noregret (format {row.format}, "
                f"this one reads {FORMAT}). Upgrade noregret; the file has not been touched."
            )
        try:
            return StoredStudy(row.id, row.name, row.policy, int(row.seed), row.about)
        except (TypeError, ValueError) as error:
            raise StorageError(f"Study {name!r} in {self.url} has been damaged: {error}. Restore a copy.") from error

    def names(self) -> list[str]:
        """Names of all studies, oldest first."""
        with self._transaction(write=False) as connection:
            return list(connection.execute(sql.select(_studies.c.name).order_by(_studies.c.id)).scalars())

    @contextmanager
    def writing(self, study: int) -> Iterator[Writer]:
        """A transaction in which nobody else writes; commits at the end, leaves no trace on an error."""
        with self._transaction(write=True) as connection:
            yield Writer(connection, study)

    def changes(self, study: int, *, after: int) -> list[Trial]:
        """Trials asked or told after the event of this order."""
        with self._transaction(write=False) as connection:
            return Writer(connection, study).changes(after=after)

    @contextmanager
    def _transaction(self, *, write: bool) -> Iterator[sql.Connection]:
        try:
            with self._engine.connect().execution_options(noregret_write=write) as connection, connection.begin():
                yield connection
        except exc.DatabaseError as error:
            cause = str(error.orig)
            raise StorageError(f"The storage {self.url} could not be used: {cause}. {_remedy(cause)}") from error


class Writer:
    """Reading and writing one study's trials inside a transaction."""

    def __init__(self, connection: sql.Connection, study: int) -> None:
        self._connection = connection
        self._study = study

    def changes(self, *, after: int) -> list[Trial]:
        """Trials asked or told after the event of this order, by number."""
        # Two lookups by index rather than one scan: a long study is polled before every call.
        fresh = sql.union(
            *(
                sql.select(_trials.c.number).where(_trials.c.study == self._study, column > after)
                for column in (_trials.c.asked_order, _trials.c.told_order)
            )
        )
        query = (
            sql.select(_trials)
            .where(_trials.c.study == self._study, _trials.c.number.in_(fresh))
            .order_by(_trials.c.number)
        )
        return [_trial(row) for row in self._connection.execute(query).mappings()]

    def save(self, trial: Trial) -> None:
        """Insert a trial that is new, update one that has been answered."""
        row = _row(trial)
        if trial.told_order is None or trial.told_order == trial.asked_order:
            self._connection.execute(sql.insert(_trials).values(study=self._study, **row))
            return
        outcome = {name: row[name] for name in ("state", "reward", "reason", "told_order", "told_at", "constraints")}
        changed = self._connection.execute(
            sql.update(_trials)
            .where(_trials.c.study == self._study, _trials.c.number == trial.number, _trials.c.state == "pending")
            .values(**outcome)
        )
        if changed.rowcount != 1:
            raise StorageError(f"Trial {trial.number} is no longer pending in the storage; nothing was written.")


def _bring_up_to_date(connection: sql.Connection) -> None:
    """Tables of format 1 lack a column."""
    if "constraints" not in {column["name"] for column in sql.inspect(connection).get_columns("trials")}:
        connection.exec_driver_sql("ALTER TABLE trials ADD COLUMN constraints TEXT")


def _row(trial: Trial) -> dict[str, Any]:
    return {
        "number": trial.number,
        "state": trial.state,
        "arm": trial.arm,
        "point": json.dumps(trial.point.tolist()),
        "parameters": None if trial.parameters is None else json.dumps(trial.parameters),
        "context": None if trial.context is None else json.dumps(trial.context.tolist()),
        "explored": trial.explored,
        "reward": trial.reward,
        "reason": trial.reason,
        "asked_order": trial.asked_order,
        "asked_at": trial.asked_at,
        "told_order": trial.told_order,
        "told_at": trial.told_at,
        "constraints": None if trial.constraints is None else json.dumps(trial.constraints.tolist()),
    }


def _trial(row: sql.RowMapping) -> Trial:
    try:
        values = {name: value for name, value in row.items() if name != "study"}
        values["point"] = _array(values["point"])
        for name in ("context", "constraints"):
            values[name] = None if values[name] is None else _array(values[name])
        parameters = values.pop("parameters")
        values["settings"] = None if parameters is None else tuple(json.loads(parameters).items())
        trial = Trial(**values)
        ended = {"pending": (False, False), "observed": (True, False), "failed": (False, True)}[trial.state]
        if (isinstance(trial.reward, float), isinstance(trial.reason, str)) != ended:
            raise ValueError(f"state {trial.state!r} with reward {trial.reward!r} and reason {trial.reason!r}")
    except (KeyError, TypeError, ValueError) as error:
        raise StorageError(
            f"Trial {row['number']} in the storage has been damaged ({error}). Restore a copy of the file."
        ) from error
    return trial


def _array(text: str) -> Array:
    array = points_array("point", json.loads(text))[:, 0]
    array.flags.writeable = False
    return array


def _database(url: str) -> str:
    """The path in an SQLite URL."""
    hint = "write 'sqlite:///studies.db' (three slashes, then a relative path; four for an absolute one)"
    if not isinstance(url, str) or not url.startswith("sqlite:"):
        kind = "only SQLite is supported" if isinstance(url, str) and "://" in url else "it must be a URL"
        raise InvalidInput(f"`storage` is {url!r}: {kind}; {hint}.")
    path = url.removeprefix("sqlite:///")
    if path == url or path in ("", ":memory:") or "\0" in path:
        raise InvalidInput(
            f"`storage` is {url!r}, which names no file. For a study in memory leave it out; else {hint}."
        )
    return path


def _leave_transactions_to_us(connection: Any, _: Any) -> None:
    # Python's driver would begin transactions by itself, and only before the first write.
    connection.isolation_level = None
    connection.execute("PRAGMA synchronous = FULL")


def _begin(connection: sql.Connection) -> None:
    write = connection.get_execution_options().get("noregret_write", True)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _remedy(cause: str) -> str:
    if "locked" in cause:
        return f"Another process has been writing for more than {LOCK_SECONDS:.0f} s; try again, or stop that process."
    if "not a database" in cause or "malformed" in cause:
        return "The file is not a SQLite database, or it is damaged; choose another file, or restore a copy."
    if "readonly" in cause or "unable to open" in cause:
        return "The file or its folder cannot be written to; check the permissions, or choose another place."
    return "What was recorded before is still there."
