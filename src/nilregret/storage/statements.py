"""SQL statements of studies and trials."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sql

from .base import Summary
from .database import Database
from .rows import FIXED, KINDS, OUTCOME

HEAD = ("seed", "created_at", "stamp", "arms")  # Columns of a study's row, as the next.
SUMMARY = Summary._fields
LISTED = ("id", "name", "goal", "created_at")  # Columns of a study in a list, before its summary.


class Statements:
    """The statements of studies and trials.

    They are made once, and those of each call are text for the driver. Making one takes much longer than executing it.

    Args:
        database: of the statements.
    """

    def __init__(self, database: Database) -> None:
        studies, trials = database.tables.studies, database.tables.trials
        sought: sql.BindParameter[Any] = sql.bindparam("sought")
        since: sql.BindParameter[Any] = sql.bindparam("since")

        self.names = sql.select(studies.c.name).order_by(studies.c.id)
        whole_row = sql.select(studies)
        listed = sql.select(*(studies.c[name] for name in (*LISTED, *SUMMARY))).order_by(studies.c.id)
        self.listed = database.text(listed)
        last = f"SELECT state, reward FROM {trials.name} WHERE study = :sought ORDER BY number DESC LIMIT :most"
        self.latest = database.text(sql.text(last))
        self.find, self.every = whole_row.where(studies.c.name == sought), whole_row.order_by(studies.c.id)
        head = sql.select(*(studies.c[name] for name in (*HEAD, *SUMMARY))).where(studies.c.id == sought)
        self.head, self.lock = database.text(head), database.text(head.with_for_update())
        # In SQLite the column `explored` may hold any number, which the checks must see unchanged.
        whole = sql.type_coerce(trials.c.explored, sql.Integer).label("explored")
        columns = [whole if name == "explored" else trials.c[name] for name in KINDS]
        everything = sql.select(*columns).where(trials.c.study == sought).order_by(trials.c.number)
        self.all = database.text(everything)
        self.changed = database.text(everything.where(trials.c.last_order >= since))
        # Writers pass values by position, which is faster: see `SqlWriter.save` for their order.
        mark = "?" if database.engine.dialect.name == "sqlite" else "%s"
        inserted = ("study", "last_order", *FIXED, *OUTCOME)
        self.insert = f"INSERT INTO {trials.name} ({', '.join(inserted)}) VALUES ({', '.join([mark] * len(inserted))})"
        outcome, counted = ([f"{name} = {mark}" for name in names] for names in (OUTCOME, SUMMARY))
        self.update = (
            f"UPDATE {trials.name} SET last_order = {mark}, {', '.join(outcome)} "
            f"WHERE study = {mark} AND number = {mark} AND last_order = {mark}"
        )
        events = f"events = {mark}, stamp = {mark}"
        arms = database.tables.arms
        changes = sql.select(arms.c.event, arms.c.at, arms.c.kind, arms.c.arms).where(arms.c.study == sought)
        self.arms = database.text(changes.where(arms.c.event >= since).order_by(arms.c.event))
        self.insert_arms = f"INSERT INTO {arms.name} (study, event, at, kind, arms) VALUES ({', '.join([mark] * 5)})"
        self.last_arms = f"UPDATE {studies.name} SET arms = {mark} WHERE id = {mark}"
        self.named = f"SELECT id FROM {studies.name} WHERE name = {mark}"
        self.rename = f"UPDATE {studies.name} SET name = {mark}, stamp = {mark} WHERE id = {mark} AND name = {mark}"
        self.count = f"UPDATE {studies.name} SET {events}, {', '.join(counted)} WHERE id = {mark}"
