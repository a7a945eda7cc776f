"""Trials of tables and files, added to a study or told as answers to its own trials.

| row of the table | what becomes of it |
|---|---|
| without a reward | nothing |
| without a reward, `stopped`, with `steps` | the trial is stopped |
| with the `number` of a trial of this study | its reward is told to that trial. The same reward again is harmless |
| with a number, and `failed` or `abandoned` for the reward | the trial fails or is abandoned, and the remark is why |
| of a sheet, at another point than asked | the trial is abandoned, and the point is a new trial |
| any other | a new trial, with its curve if there are `steps` |

A number is of this study unless the row's `asked_at` says that the trial was asked at another time.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np

from .._utils.checks import Array, many, shown
from .._utils.logs import COUNTED
from .._utils.numerals import numeral
from .._utils.tables import Table, given_table
from ..domains.domain import Arms, space_of
from ..domains.parameters import Choice, Parameter, option_texts
from ..errors import InvalidInput, NoRegretError, warn
from ..storage.trial import Trial
from ..storage.visit import Visit
from .direction import Goal
from .imported import FAILED, Imported, Links
from .inputs import Inputs
from .replica import Replica
from .rows import LIMITS, Reader, in_row, unrecorded, without_titles
from .transaction import Transaction
from .visits import Asked

UNREAD = (
    "{} has columns that were not read: {}. Read are the parameters, the contexts, `{}`, `std`, `propensity`, "
    "`number`, constraints.0, ..., and numbers in columns metrics.NAME."
)
WITHOUT_UNITS = "{} has units in the names of columns. It was read without them: {}."
LEFT = "{} of {} of {} {} no answer in column `{}`, and {} left out: {}."
UNJUDGED = (
    "{} of {} of {} {} no constraint values: {}. Such a trial may violate the constraints, so it is "
    "not the best. Constraint values may be told later, by the number of the trial."
)
VIOLATING = (
    "All {} values of {} in {} are above 0, so every trial there is above the limit. A constraint value is the "
    "reading less the limit, at most 0 if met. Usually the readings were written in its place."
)
OVERSPENT = (
    "The values of {} in {} add up to {} above the limit. It holds on average over the whole record, so decisions stay "
    "below it until that is made up for. A value is the reading less the limit. If the budget begins now, leave the "
    "column out."
)
UNWEIGHED = "{} of {} {} no propensity. Such rows teach the policy, and `evaluate` leaves them out."
DEBT = 20, 0.1  # The excess of a budget that is said: in rows of mean size, and as a share of all rows.
EQUAL = (
    "Of {}, {:,} repeated the point and the answer of trials on record, and became new trials. Usually the table was "
    "read before. A row with the `number` of a trial of this study is read once."
)
DONE = "done by hand at other values, as trial {}"  # The reason for which a trial of a sheet is abandoned.


@final
class Intake:
    """The rows of one table on their way into a study, perhaps in several pieces.

    An export refers to trials by number. Here they get other numbers, so units and slates stay together.

    Args:
        replica: of the study.
    """

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        # Numbers of the study by those of the table: of the transaction under way, and before it.
        self._trials: ChainMap[int, int] = ChainMap({}, {})
        self._units: ChainMap[int, int] = ChainMap({}, {})
        self._row = 0

    def begin(self, row: int) -> None:
        """Begins a transaction.

        Args:
            row: the first one of the transaction. If it is that of the last transaction, that one was rolled back.
        """
        for numbers in (self._trials, self._units):
            fresh, known = numbers.maps
            if row != self._row:
                known.update(fresh)
            numbers.maps[0] = {}
        self._row = row

    def take(self, calls: Transaction, row: Imported) -> Trial:
        """Records a row, and returns its trial."""
        known = row.trial(calls.trials, self._replica.record.events)
        if known is not None:
            self.pair(row.number, row.links and row.links.unit, known.number, known.unit)
            return _told(calls, row, known)
        self.pair(row.number, row.links and row.links.unit, len(calls.trials))
        visit = row.asked if row.links is None else self._visit(row.links, row.asked or Asked())
        decision: Any = row.decision  # `trial` has refused rows without one.
        more = row.propensity, row.steps, row.stopped
        return calls.add(decision, row.context, row.told, row.reward, *more, asked=visit)

    def pair(self, number: int | None, unit: int | None, trial: int, first: int | None = None) -> None:
        """Notes the trial of this study for a row with a number and a unit of another one.

        Args:
            number: of the row's trial, or None.
            unit: of the row, or None.
            trial: number of the trial in this study.
            first: the unit of that trial, if it has one already.
        """
        if number is not None:
            self._trials[number] = trial
        if unit is not None:
            self._units.setdefault(unit, trial if first is None else first)

    def _visit(self, links: Links, asked: Asked) -> Visit:
        unit = None if links.unit is None else self._units[links.unit]
        kept, slate = (None if each is None else self._trials.get(each) for each in (links.kept, links.slate))
        place = None if slate is None else links.place
        return Visit(asked.event, unit, kept, slate, place, asked.facts, asked.given)


def _told(calls: Transaction, row: Imported, known: Trial) -> Trial:
    """Records a row as the answer to a trial of the study."""
    if row.ended is not None:
        word, reason = row.ended
        return calls.fail(known, reason) if word == FAILED else calls.abandon(known, reason)
    if not row.is_at(known):
        return _done_by_hand(calls, row, known)
    last = known.curve[-1].step if known.curve else -1
    for step, value in row.steps if known.open else ():
        if step > last:
            known, _ = calls.report(known, step, value)
    if row.stopped is not None:
        return calls.stop(known, row.stopped)
    if row.repeats(known):
        return known
    return calls.tell(row.told._replace(trial=known))


def _done_by_hand(calls: Transaction, row: Imported, known: Trial) -> Trial:
    """Adds a trial of a sheet that a person ran at other values, and abandons the trial that was asked for."""
    why = "" if known.abandoned is None else known.abandoned.reason
    done = next((trial for trial in calls.trials[known.number :] if why == DONE.format(trial.number)), None)
    if done is not None and row.is_at(done) and row.repeats(done):
        return done  # The sheet is read again.
    if known.state != "pending":
        raise InvalidInput(
            f"trial {known.number} was run at other values than asked, and it is {known.state} already"
            + (f", {why}" if why else "")
            + ". A row without `number` is a new trial.",
            advice="A value on record is corrected by `tell(..., revise=True)`.",
            topic="answered",
        )
    decision: Any = row.decision
    added = calls.add(decision, row.context, row.told, row.reward, row.propensity, asked=row.asked)
    calls.abandon(known, DONE.format(added.number))
    return added


def taking(
    source: Any, replica: Replica, goal: Goal, name: str, decimal: str | None = None, *, propensities: bool
) -> Callable[[Transaction], list[Trial]]:
    """Returns a function that adds or tells the rows of a table in a transaction, and returns their trials.

    Args:
        source: path of a file, a data frame, a mapping of columns or a list of dicts.
        replica: of the study.
        goal: of the study.
        name: of the study.
        decimal: decimal mark of a CSV file, or None if the file shows which it is.
        propensities: whether the study records propensities.

    Raises:
        InvalidInput: nothing can be read, or a row cannot be used.
    """
    table = given_table("table", source, decimal=decimal)
    try:
        reader = reader_of(table, replica, goal, name)
        rows = reader.rows()
        left = reader.left_out(rows)
    except InvalidInput as error:
        raise unrecorded(error) from None
    if not rows:
        raise InvalidInput(f"{table.named}, and no row has a reward in column {reader.reward}: nothing was read.")
    _note_columns(table, reader, left)
    without = sum(row.propensity is None for row in rows)
    if without and isinstance(replica.policy.domain, Arms) and (propensities or without < len(rows)):
        warn(UNWEIGHED.format(f"{without:,}", many(len(rows), "row"), "has" if without == 1 else "have"))

    def take(calls: Transaction) -> list[Trial]:
        taken, intake, before = [], Intake(replica), len(calls.trials)
        for row in rows:
            try:
                taken.append(intake.take(calls, row))
            except NoRegretError as error:
                raise in_row(error, row.row, table) from None
        if replica.policy.constraint_count and not reader.exported:
            if getattr(getattr(replica.policy, "constraints", None), "on_average", False):  # No trial violates it.
                _note_debt(table, rows)
            else:
                _note_constraints(table, rows, taken, calls.trials[:before])
        new = [row for row, trial in zip(rows, taken, strict=True) if trial.number >= before]
        # Of arms, many decisions have one answer.
        if before and not isinstance(replica.policy.domain, Arms) and (again := _again(new, calls.trials[:before])):
            warn(EQUAL.format(many(len(rows), "row"), again))
        return taken

    return take


def _note_columns(table: Table, reader: Reader, left: Sequence[int]) -> None:
    """Warns of columns that were not read or have units in their names, and of rows that have no answer."""
    if unread := reader.unread():
        warn(UNREAD.format(table.called, ", ".join(map(shown, unread)), reader.reward))
    if reader.units:
        warn(WITHOUT_UNITS.format(table.called, ", ".join(f"{old!r} as {new!r}" for old, new in reader.units.items())))
    if left:
        have, were = ("has", "was") if len(left) == 1 else ("have", "were")
        counts = f"{len(left):,}", many(len(table), "row"), table.called
        warn(LEFT.format(*counts, have, reader.reward, were, table.places(left)))


def _note_constraints(table: Table, rows: Sequence[Imported], taken: Sequence[Trial], before: Sequence[Trial]) -> None:
    """Warns of answers without constraint values, and of constraint values that are all above 0."""
    at = [
        row.row - table.first
        for row, trial in zip(rows, taken, strict=True)
        if trial.reward is not None and trial.constraints is None
    ]
    if at:
        counts = f"{len(at):,}", many(len(rows), "row"), table.called
        warn(UNJUDGED.format(*counts, "has" if len(at) == 1 else "have", table.places(at)))
    told, called = [row.told.constraints for row in rows if row.told.constraints is not None], table.called
    if len(told) == 1:  # One value alone may well be above 0.
        told += [trial.constraints for trial in before if trial.constraints is not None]
        called += " and on record"
    above = (np.array(told) > 0.0).all(axis=0) if len(told) > 1 else ()
    for j in np.flatnonzero(above):
        warn(VIOLATING.format(len(told), f"`{LIMITS}{j}`", called))


def _note_debt(table: Table, rows: Sequence[Imported]) -> None:
    """Warns of values of a budget that add up to as much as twenty of them, and a tenth of all, above the limit."""
    told = np.array([row.told.constraints for row in rows if row.told.constraints is not None])
    debts, sizes = (told.sum(axis=0), np.abs(told).sum(axis=0)) if len(told) else (np.zeros(0), np.zeros(0))
    for j in np.flatnonzero(debts > max(DEBT[0] / max(len(told), 1), DEBT[1]) * sizes):
        warn(OVERSPENT.format(f"`{LIMITS}{j}`", table.called, numeral(debts[j], 3)))


def _again(new: Sequence[Imported], trials: Sequence[Trial]) -> int:
    """Returns how many rows have the point, the context and the answer of a trial."""
    at: dict[tuple[bytes, bytes], list[Trial]] = {}
    for trial in trials:
        at.setdefault(_place(trial.point, trial.context), []).append(trial)
    return sum(
        row.decision is not None
        and any(map(row.repeats, at.get(_place(row.decision.point, row.context), [])))
        for row in new
    )  # fmt: skip


def _place(point: Array, context: Array | None) -> tuple[bytes, bytes]:
    return point.tobytes(), b"" if context is None else context.tobytes()


def reader_of(table: Table, replica: Replica, goal: Goal, name: str) -> Reader:
    """Returns a reader of the rows of a table, for a study with this replica, goal and name."""
    flat = _of_study(without_titles(table.flat()), replica.inputs, goal)
    trials = () if replica.roster.spaces is None else replica.trials
    reader = Reader(flat, replica.inputs, goal, replica.roster.names, trials)
    reader.check_sheet(name)
    return reader


def _of_study(table: Table, inputs: Inputs, goal: Goal) -> Table:
    """Returns a log of another program with the contexts and the goal of a study. Other tables stay as they are.

    Args:
        table: flat.
        inputs: checks of the study.
        goal: of the study.

    Raises:
        InvalidInput: two features may be meant by a context.
    """
    if COUNTED not in table.columns:
        return table
    columns = dict(table.columns)
    if goal == "minimize":
        columns["reward"] = [None if value is None else 0.0 - value for value in columns["reward"]]
    context = inputs.policy.context
    space = None if context is None else space_of(context)
    for name, parameter in () if space is None else space.parameters.items():
        if (column := _feature(table, name, parameter)) is not None:
            columns[f"context.{name}"] = column
    return replace(table, columns=columns)


def _feature(table: Table, name: str, parameter: Parameter) -> list[Any] | None:
    """Returns the cells of a feature "NAME", "namespace.NAME", or one for each option, "NAME=OPTION", or None."""
    features = {column.removeprefix("context."): column for column in table.columns if column.startswith("context.")}

    def find(name: str) -> str | None:
        found = [key for key in features if key == name] or [key for key in features if key.endswith(f".{name}")]
        if len(found) > 1:
            raise InvalidInput(
                f"{table.called} has the features {shown(found)}, and the study has a context {name}: which of them is "
                "meant? Rename the context as one of them, namespace included.",
            )
        return features[found[0]] if found else None

    if (column := find(name)) is not None:
        return list(table.columns[column])
    texts = option_texts(parameter) if isinstance(parameter, Choice) else []
    levels = {text: table.columns[each] for text in texts if (each := find(f"{name}={text}")) is not None}
    if not levels:
        return None
    return [next((text for text, cells in levels.items() if cells[i]), None) for i in range(len(table))]
