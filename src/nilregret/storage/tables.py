"""The tables of studies and trials, and the changes between their formats."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sql

FORMAT = 10  # Of the tables. A database of a newer format is refused.
READABLE = 2  # The oldest format that is read unchanged, even without write access.
# Columns added since format 1, with the format that added them.
ADDED = {
    "trials": {
        "constraints": 2, "constraints_order": 4, "last_order": 5, "lease_until": 5, "abandoned_order": 5,
        "abandoned_at": 5, "abandoned_reason": 5, "corrected": 5, "repeats": 6, "plays": 6, "scatter": 6,
        "fits": 7, "propensity": 8, "std": 9, "metrics": 10,
    },
    "studies": {
        "goal": 3, "events": 5, "stamp": 5, "trials": 7, "observed": 7, "failed": 7, "abandoned": 7, "best": 7,
        "last_at": 7, "arms": 8,
    },
}  # fmt: skip
NEVER = "never"  # The stamp of a record without a known stamp.

_Whole = sql.BigInteger().with_variant(sql.Integer, "sqlite")


class Tables(NamedTuple):
    """The tables of a database."""

    metadata: sql.MetaData
    studies: sql.Table
    trials: sql.Table
    arms: sql.Table


def tables(prefix: str = "") -> Tables:
    """Returns the tables.

    Args:
        prefix: of their names, for a database that others use too.
    """
    metadata = sql.MetaData()
    studies = _studies(metadata, prefix)
    return Tables(metadata, studies, _trials(metadata, prefix, studies), _arms(prefix))


def _studies(metadata: sql.MetaData, prefix: str) -> sql.Table:
    return sql.Table(
        f"{prefix}studies",
        metadata,
        sql.Column("id", _Whole, primary_key=True),
        sql.Column("name", sql.Text, nullable=False, unique=True),
        sql.Column("policy", sql.Text, nullable=False),  # JSON
        sql.Column("seed", sql.Text, nullable=False),  # A whole number of any size.
        sql.Column("about", sql.Text, nullable=False),  # JSON
        sql.Column("format", sql.Integer, nullable=False),  # Format of the tables when the study was made.
        sql.Column("created_at", sql.Double, nullable=False),  # Unix seconds, as all times.
        sql.Column("goal", sql.Text),  # "maximize" or "minimize". Since format 3. Earlier studies maximised.
        sql.Column("events", _Whole),  # The counter of events. Since format 5, as the next.
        sql.Column("stamp", sql.Text),  # A new one after each change.
        sql.Column("trials", _Whole),  # Number of trials. Since format 7, as the next columns, for lists.
        sql.Column("observed", _Whole),  # Number of trials with a reward.
        sql.Column("failed", _Whole),
        sql.Column("abandoned", _Whole),
        sql.Column("best", sql.Double),  # Best reward told.
        sql.Column("last_at", sql.Double),  # Time of the last question or answer.
        sql.Column("arms", _Whole),  # Order of the last change of arms, NULL without one. Since format 8.
    )


def _arms(prefix: str) -> sql.Table:
    """Returns the table of changes of arms (`nilregret.storage.arms`), with metadata of its own. Since format 8."""
    return sql.Table(
        f"{prefix}arms",
        sql.MetaData(),
        sql.Column("study", _Whole, primary_key=True, autoincrement=False),
        sql.Column("event", _Whole, primary_key=True, autoincrement=False),  # Its order among all events.
        sql.Column("at", sql.Double, nullable=False),
        sql.Column("kind", sql.Text, nullable=False),
        sql.Column("arms", sql.Text, nullable=False),  # JSON, an object for each arm.
    )


def _trials(metadata: sql.MetaData, prefix: str, studies: sql.Table) -> sql.Table:
    return sql.Table(
        f"{prefix}trials",
        metadata,
        sql.Column("study", sql.ForeignKey(studies.c.id), primary_key=True),
        sql.Column("number", _Whole, primary_key=True, autoincrement=False),
        sql.Column("state", sql.Text, nullable=False),
        sql.Column("arm", _Whole),
        sql.Column("point", sql.Text, nullable=False),  # JSON
        sql.Column("parameters", sql.Text),  # JSON, for people who read the file.
        sql.Column("context", sql.Text),  # JSON
        sql.Column("explored", sql.Boolean, nullable=False),
        sql.Column("reward", sql.Double),
        sql.Column("reason", sql.Text),
        sql.Column("asked_order", _Whole, nullable=False),
        sql.Column("asked_at", sql.Double, nullable=False),
        sql.Column("told_order", _Whole),
        sql.Column("told_at", sql.Double),
        sql.Column("constraints", sql.Text),  # JSON. Since format 2.
        sql.Column("constraints_order", _Whole),  # Since format 4. Earlier values came with the reward.
        sql.Column("last_order", _Whole),  # Of its last event. Since format 5, as the next columns.
        sql.Column("lease_until", sql.Double),
        sql.Column("abandoned_order", _Whole),
        sql.Column("abandoned_at", sql.Double),
        sql.Column("abandoned_reason", sql.Text),
        sql.Column("corrected", sql.Text),  # JSON, the corrected answers, oldest first.
        sql.Column("repeats", _Whole),  # Number of plays asked for, NULL for 1. Since format 6, as the next two.
        sql.Column("plays", _Whole),  # Number of rewards told, if several, and their scatter.
        sql.Column("scatter", sql.Double),
        sql.Column("fits", sql.Text),  # JSON, fits that came into force. Since format 7.
        sql.Column("propensity", sql.Double),  # Probability of the decision, NULL if unknown. Since format 8.
        sql.Column("std", sql.Double),  # Deviation of the noise of the reward, NULL if unknown. Since format 9.
        sql.Column("metrics", sql.Text),  # JSON, numbers by name, NULL without any. Since format 10.
        sql.UniqueConstraint("study", "asked_order"),
        sql.UniqueConstraint("study", "told_order"),
        sql.Index(f"{prefix}trials_by_last_order", "study", "last_order", unique=True),
    )


def _add(connection: sql.Connection, table: sql.Table, *names: str) -> None:
    """Adds missing columns. A file may have been brought up to date halfway."""
    there = {column["name"] for column in sql.inspect(connection).get_columns(table.name)}
    for name in names:
        if name not in there:
            kind = table.c[name].type.compile(connection.dialect)
            connection.exec_driver_sql(f'ALTER TABLE {table.name} ADD COLUMN "{name}" {kind}')


def _to_5(connection: sql.Connection, made: Tables) -> None:
    """Fills in the counter of events. Servers exist since this format, so it is written for SQLite."""
    studies, trials = made.studies, made.trials
    orders = [sql.func.coalesce(c, 0) for c in (trials.c.asked_order, trials.c.told_order, trials.c.constraints_order)]
    connection.execute(sql.update(trials).values(last_order=sql.func.max(*orders)))
    last = sql.select(sql.func.coalesce(sql.func.max(trials.c.last_order), 0)).where(trials.c.study == studies.c.id)
    connection.execute(sql.update(studies).values(events=last.scalar_subquery(), stamp="migrated"))
    old = sql.and_(studies.c.goal.is_(None), studies.c.format < ADDED["studies"]["goal"])
    connection.execute(sql.update(studies).where(old).values(goal="maximize"))
    for index in trials.indexes:
        index.create(connection, checkfirst=True)


def bring_up_to_date(connection: sql.Connection, made: Tables, known: int) -> None:
    """Makes the tables, or adds what later formats have. The first write calls it.

    Args:
        connection: in a write transaction.
        made: the tables.
        known: format of the database, 0 without tables.
    """
    made.arms.create(connection, checkfirst=True)
    if not known:
        made.metadata.create_all(connection)
        return
    for version in range(known + 1, FORMAT + 1):
        for table, added in ((made.studies, ADDED["studies"]), (made.trials, ADDED["trials"])):
            _add(connection, table, *(name for name, came in added.items() if came == version))
        if version == 5:
            _to_5(connection, made)
        if version >= 5:  # Versions that know the format before must no longer write.
            connection.execute(sql.update(made.studies).values(format=version))
