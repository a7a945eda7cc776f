"""The tables of a database: studies, trials, their reports, changes of studies, notes, tokens and their sessions."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sql

FORMAT = 1  # Of the tables. A database of another format is refused. A change of a table is a new format that reads 1.
STUDY_FORMAT = 2  # Highest format of a study: one with a report, or with a change that is not of arms. Others have 1.
STOPPED, VISIT = "stopped", "visit"  # Columns of studies and of trials that came later.
# What a database of an earlier version lacks: tables, and columns as "table.column".
LATER = (("steps", f"studies.{STOPPED}", f"trials.{VISIT}"), (f"trials.{VISIT}",))

_Whole = sql.BigInteger().with_variant(sql.Integer, "sqlite")


class Tables(NamedTuple):
    """The tables of a database."""

    metadata: sql.MetaData
    studies: sql.Table
    trials: sql.Table
    arms: sql.Table
    steps: sql.Table
    notes: sql.Table
    tokens: sql.Table
    sessions: sql.Table


def tables(prefix: str = "") -> Tables:
    """Returns the tables.

    Args:
        prefix: of their names, for a database that others use too.
    """
    metadata = sql.MetaData()
    studies = _studies(metadata, prefix)
    tokens, sessions = _auth(metadata, prefix)
    return Tables(
        metadata, studies, _trials(metadata, prefix, studies), _arms(metadata, prefix), _steps(metadata, prefix),
        _notes(metadata, prefix), tokens, sessions,
    )  # fmt: skip


def _studies(metadata: sql.MetaData, prefix: str) -> sql.Table:
    return sql.Table(
        f"{prefix}studies",
        metadata,
        sql.Column("id", _Whole, primary_key=True),
        sql.Column("name", sql.Text, nullable=False, unique=True),
        sql.Column("policy", sql.Text, nullable=False),  # JSON
        sql.Column("goal", sql.Text, nullable=False),  # "maximize" or "minimize"
        sql.Column("seed", sql.Text, nullable=False),  # A whole number of any size.
        sql.Column("about", sql.Text, nullable=False),  # JSON
        sql.Column("format", sql.Integer, nullable=False),  # A program that knows only lower ones must not write.
        sql.Column("created_at", sql.Double, nullable=False),  # Unix seconds, as all times.
        sql.Column("events", _Whole, nullable=False),  # The counter of events.
        sql.Column("stamp", sql.Text, nullable=False),  # A new one after each change.
        sql.Column("trials", _Whole, nullable=False),  # Number of trials. As the next columns, it is for lists.
        sql.Column("observed", _Whole, nullable=False),  # Number of trials with a reward.
        sql.Column("failed", _Whole, nullable=False),
        sql.Column("abandoned", _Whole, nullable=False),
        sql.Column(STOPPED, _Whole, nullable=False, server_default="0"),
        sql.Column("best", sql.Double),  # Best reward told.
        sql.Column("last_at", sql.Double),  # Time of the last question or answer.
        sql.Column("arms", _Whole),  # Order of the last change or report, NULL without one.
    )


def _arms(metadata: sql.MetaData, prefix: str) -> sql.Table:
    """Returns the table of changes of studies (`nilregret.storage.changes`), which has its name from those of arms."""
    return sql.Table(
        f"{prefix}arms",
        metadata,
        sql.Column("study", _Whole, primary_key=True, autoincrement=False),
        sql.Column("event", _Whole, primary_key=True, autoincrement=False),  # Its order among all events.
        sql.Column("at", sql.Double, nullable=False),
        sql.Column("kind", sql.Text, nullable=False),
        sql.Column("arms", sql.Text, nullable=False),  # JSON, an object for each arm, or the body of another change.
    )


def _steps(metadata: sql.MetaData, prefix: str) -> sql.Table:
    """Returns the table of reports of trials (`nilregret.storage.trial.Report`)."""
    return sql.Table(
        f"{prefix}steps",
        metadata,
        sql.Column("study", _Whole, primary_key=True, autoincrement=False),
        sql.Column("event", _Whole, primary_key=True, autoincrement=False),  # Its order among all events.
        sql.Column("at", sql.Double, nullable=False),
        sql.Column("trial", _Whole, nullable=False),  # Its number.
        sql.Column("step", _Whole, nullable=False),
        sql.Column("value", sql.Double, nullable=False),
        sql.Column("verdict", sql.Text, nullable=False),  # Of the pruning rule.
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
        sql.Column("constraints", sql.Text),  # JSON
        sql.Column("constraints_order", _Whole),  # NULL if they came with the reward.
        sql.Column("last_order", _Whole, nullable=False),  # Of its last event.
        sql.Column("lease_until", sql.Double),
        sql.Column("abandoned_order", _Whole),
        sql.Column("abandoned_at", sql.Double),
        sql.Column("abandoned_reason", sql.Text),
        sql.Column("corrected", sql.Text),  # JSON, the corrected answers, oldest first.
        sql.Column("repeats", _Whole),  # Number of plays asked for, NULL for 1.
        sql.Column("plays", _Whole),  # Number of rewards told, if several, and their scatter.
        sql.Column("scatter", sql.Double),
        sql.Column("fits", sql.Text),  # JSON, fits that came into force.
        sql.Column("propensity", sql.Double),  # Probability of the decision, NULL if unknown.
        sql.Column("std", sql.Double),  # Deviation of the noise of the reward, NULL if unknown.
        sql.Column("metrics", sql.Text),  # JSON, numbers by name, NULL without any.
        sql.Column(VISIT, sql.Text),  # JSON, NULL for most (`nilregret.storage.visit`).
        sql.UniqueConstraint("study", "asked_order"),
        sql.UniqueConstraint("study", "told_order"),
        sql.Index(f"{prefix}trials_by_last_order", "study", "last_order", unique=True),
    )


def _notes(metadata: sql.MetaData, prefix: str) -> sql.Table:
    """Returns the table of notes (`nilregret.storage.rows`)."""
    return sql.Table(
        f"{prefix}notes",
        metadata,
        sql.Column("study", sql.Text, primary_key=True),  # See `notes.owner`.
        sql.Column("key", sql.Text, primary_key=True),
        sql.Column("value", sql.Text, nullable=False),
    )


def _auth(metadata: sql.MetaData, prefix: str) -> tuple[sql.Table, sql.Table]:
    """Returns the tables of tokens that may call a service, and of their sessions."""
    tokens = sql.Table(
        f"{prefix}tokens",
        metadata,
        sql.Column("id", sql.Text, primary_key=True),  # It names a token and gives no access.
        sql.Column("hash", sql.Text, nullable=False, unique=True),  # SHA-256, hexadecimal. No token itself is stored.
        sql.Column("role", sql.Text, nullable=False),
        sql.Column("tenant", sql.Text, nullable=False),
        sql.Column("about", sql.Text, nullable=False),
        sql.Column("created_at", sql.Double, nullable=False),
        sql.Column("expires_at", sql.Double),  # NULL means never.
        sql.Column("revoked_at", sql.Double),  # NULL means not revoked.
    )
    sessions = sql.Table(
        f"{prefix}sessions",
        metadata,
        sql.Column("hash", sql.Text, primary_key=True),  # Of the cookie, as of a token.
        sql.Column("token", sql.Text, nullable=False),  # Its id. Revoking a token ends its sessions.
        sql.Column("expires_at", sql.Double, nullable=False),
    )
    return tokens, sessions
