"""The tables, once for every database, and what each format of them has that the one before had not."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import sqlalchemy as sql

FORMAT = 7  # of the tables; a database written by a newer version is refused rather than misread
READABLE = 2  # the oldest format that is read as it is, also where nothing can be written
# Columns since format 1: the format they came with.
ADDED = {
    "trials": {
        "constraints": 2, "constraints_order": 4, "last_order": 5, "lease_until": 5, "abandoned_order": 5,
        "abandoned_at": 5, "abandoned_reason": 5, "corrected": 5, "repeats": 6, "plays": 6, "scatter": 6,
        "fits": 7,
    },
    "studies": {
        "goal": 3, "events": 5, "stamp": 5, "trials": 7, "observed": 7, "failed": 7, "abandoned": 7, "best": 7,
        "last_at": 7,
    },
}  # fmt: skip
NEVER = "never"  # the stamp of a record of which nobody knows anything

_Whole = sql.BigInteger().with_variant(sql.Integer, "sqlite")


class Tables(NamedTuple):
    """The two tables of a database."""

    metadata: sql.MetaData
    studies: sql.Table
    trials: sql.Table


def tables(prefix: str = "") -> Tables:
    """The tables under these names: a database of one's own needs no prefix."""
    metadata = sql.MetaData()
    studies = sql.Table(
        f"{prefix}studies",
        metadata,
        sql.Column("id", _Whole, primary_key=True),
        sql.Column("name", sql.Text, nullable=False, unique=True),
        sql.Column("policy", sql.Text, nullable=False),  # JSON
        sql.Column("seed", sql.Text, nullable=False),  # a whole number of any size
        sql.Column("about", sql.Text, nullable=False),  # JSON
        sql.Column("format", sql.Integer, nullable=False),  # of the tables when it was made
        sql.Column("created_at", sql.Double, nullable=False),  # Unix seconds, as all times here
        sql.Column("goal", sql.Text),  # "maximize" or "minimize"; since format 3, before which all maximised
        sql.Column("events", _Whole),  # how many there have been: the counter; since format 5, as the next
        sql.Column("stamp", sql.Text),  # another one after each change
        sql.Column("trials", _Whole),  # how many there are; since format 7, as the next, for lists
        sql.Column("observed", _Whole),  # how many of them have a reward
        sql.Column("failed", _Whole),
        sql.Column("abandoned", _Whole),
        sql.Column("best", sql.Double),  # reward told
        sql.Column("last_at", sql.Double),  # the last question or answer
    )
    trials = sql.Table(
        f"{prefix}trials",
        metadata,
        sql.Column("study", sql.ForeignKey(studies.c.id), primary_key=True),
        sql.Column("number", _Whole, primary_key=True, autoincrement=False),
        sql.Column("state", sql.Text, nullable=False),
        sql.Column("arm", _Whole),
        sql.Column("point", sql.Text, nullable=False),  # JSON
        sql.Column("parameters", sql.Text),  # JSON, for people who look into the file
        sql.Column("context", sql.Text),  # JSON
        sql.Column("explored", sql.Boolean, nullable=False),
        sql.Column("reward", sql.Double),
        sql.Column("reason", sql.Text),
        sql.Column("asked_order", _Whole, nullable=False),
        sql.Column("asked_at", sql.Double, nullable=False),
        sql.Column("told_order", _Whole),
        sql.Column("told_at", sql.Double),
        sql.Column("constraints", sql.Text),  # JSON; since format 2
        sql.Column("constraints_order", _Whole),  # since format 4, before which they came with the reward
        sql.Column("last_order", _Whole),  # of the last event in which it had a part; since format 5, as the rest
        sql.Column("lease_until", sql.Double),
        sql.Column("abandoned_order", _Whole),
        sql.Column("abandoned_at", sql.Double),
        sql.Column("abandoned_reason", sql.Text),
        sql.Column("corrected", sql.Text),  # JSON, the answers that have been replaced, oldest first
        sql.Column("repeats", _Whole),  # how often it was to be played, NULL for once; since format 6, as the next
        sql.Column("plays", _Whole),  # how many rewards were told where there were several, and how they scatter
        sql.Column("scatter", sql.Double),
        sql.Column("fits", sql.Text),  # JSON, what came into force with the decision; since format 7
        sql.UniqueConstraint("study", "asked_order"),
        sql.UniqueConstraint("study", "told_order"),
        sql.Index(f"{prefix}trials_by_last_order", "study", "last_order", unique=True),
    )
    return Tables(metadata, studies, trials)


Migration = Callable[[sql.Connection, Tables], None]


def _add(connection: sql.Connection, table: sql.Table, *names: str) -> None:
    """Columns, where they are not there: a file may have been brought up to date halfway."""
    there = {column["name"] for column in sql.inspect(connection).get_columns(table.name)}
    for name in names:
        if name not in there:
            kind = table.c[name].type.compile(connection.dialect)
            connection.exec_driver_sql(f'ALTER TABLE {table.name} ADD COLUMN "{name}" {kind}')


def _to_2(connection: sql.Connection, made: Tables) -> None:
    """Constraint values."""
    _add(connection, made.trials, "constraints")


def _to_3(connection: sql.Connection, made: Tables) -> None:
    """Studies that minimise."""
    _add(connection, made.studies, "goal")


def _to_4(connection: sql.Connection, made: Tables) -> None:
    """Constraint values that came by themselves."""
    _add(connection, made.trials, "constraints_order")


def _to_5(connection: sql.Connection, made: Tables) -> None:
    """The counter of events, leases, trials that are abandoned, and corrections."""
    studies, trials = made.studies, made.trials
    _add(connection, trials, *(name for name, came in ADDED["trials"].items() if came == 5))
    _add(connection, studies, "events", "stamp")
    orders = [sql.func.coalesce(c, 0) for c in (trials.c.asked_order, trials.c.told_order, trials.c.constraints_order)]
    connection.execute(sql.update(trials).values(last_order=sql.func.max(*orders)))
    last = sql.select(sql.func.coalesce(sql.func.max(trials.c.last_order), 0)).where(trials.c.study == studies.c.id)
    connection.execute(sql.update(studies).values(events=last.scalar_subquery(), stamp="migrated"))
    old = sql.and_(studies.c.goal.is_(None), studies.c.format < ADDED["studies"]["goal"])
    connection.execute(sql.update(studies).where(old).values(goal="maximize"))
    connection.execute(sql.update(studies).values(format=5))  # what reads format 4 must not write to it any more
    for index in trials.indexes:
        index.create(connection, checkfirst=True)


def _to_6(connection: sql.Connection, made: Tables) -> None:
    """Trials that are played several times."""
    _add(connection, made.trials, *(name for name, came in ADDED["trials"].items() if came == 6))
    connection.execute(sql.update(made.studies).values(format=6))


def _to_7(connection: sql.Connection, made: Tables) -> None:
    """Fits on record; and a summary of each study, which its next write makes."""
    _add(connection, made.trials, "fits")
    _add(connection, made.studies, *(name for name, came in ADDED["studies"].items() if came == 7))
    connection.execute(sql.update(made.studies).values(format=7))


# From each format to the next, the first from 1 to 2. A database is brought up to date in one transaction, at the first
# write. Servers have been in use since format 5: what leads there is written for SQLite.
MIGRATIONS: list[Migration] = [_to_2, _to_3, _to_4, _to_5, _to_6, _to_7]


def bring_up_to_date(connection: sql.Connection, made: Tables, known: int) -> None:
    """Tables where there are none (0), or what later formats have that this one had not."""
    if not known:
        made.metadata.create_all(connection)
    else:
        for migrate in MIGRATIONS[known - 1 :]:
            migrate(connection, made)
