"""The grid of trials: a column a parameter, sorted and filtered by the query of an address, page by page.

| entry of the query | meaning |
|---|---|
| `sort`, `descending` | key of a column, and "1" to begin with the largest. By default the latest trials come first |
| `state` | one of `STATES` |
| `from.KEY`, `to.KEY` | ends of a range. Of categories by position, of times in Unix seconds or ISO 8601 (UTC) |
| `is.KEY` | an option of a column of categories. Several may be given |
| `has.KEY` | text within the cells of a column of texts, such as an event |
| `show` | key of a column that is shown. Several may be given |
| `page` | from 1 |
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import numpy as np

from ...._utils.checks import IndexArray, many, written
from ....errors import InvalidInput
from ....plots.curves_picture import became
from ....storage.trial import Trial
from ....study.direction import on_average
from ....study.export import write_csv
from ....study.study import Study
from ....study.trial_json import with_history
from ....study.waiting import set_at_deadline
from .columns import FACTS, STATES, VISITS, Column, Columns, columns_of
from .forms import page_number
from .pictures import reward_text, short, values_text

PER_PAGE = 50
ANSWERED = ("constraints.", "metrics.")  # beginnings of columns
MOST_FACTS = 3  # facts that are shown unless others are chosen
MOST_SHOWN = 6  # parameters (and constraints with metrics) that are shown unless others are chosen
MOST_FIELDS = 24  # columns with a filter on the page
EXCESS = 400  # characters of a value that an address may have
Query = Iterable[tuple[str, str]]


class Wanted(NamedTuple):
    """A query that fits the columns of a study.

    Attributes:
        sort: key of the column to sort by.
        descending: True to begin with the largest.
        state: or "" for all.
        ranges: (key, "from" or "to", text as given, value) of each end of a range.
        options: positions of the chosen options by key.
        texts: text that a cell of a column must contain, by key.
        show: keys of the columns chosen, or none for the usual ones.
        page: from 1.
    """

    sort: str
    descending: bool
    state: str
    ranges: list[tuple[str, str, str, float]]
    options: dict[str, list[int]]
    texts: dict[str, str]
    show: list[str]
    page: int

    def pairs(self, columns: Columns, **instead: str) -> list[tuple[str, str]]:
        """Returns the query again, without what is usual. `instead` replaces the sorting or the page."""
        said = {"sort": self.sort, "descending": "1" if self.descending else "0", "page": str(self.page)} | instead
        if (said["sort"], said["descending"]) == ("number", "1"):
            del said["sort"], said["descending"]
        if said["page"] == "1":
            del said["page"]
        names = {key: columns.layout[key].names() for key in self.options}
        return [
            *([("state", self.state)] if self.state else []),
            *((f"{end}.{key}", text) for key, end, text, _ in self.ranges),
            *((f"is.{key}", names[key][place]) for key, places in self.options.items() for place in places),
            *((f"has.{key}", text) for key, text in self.texts.items()),
            *(("show", key) for key in self.show), *said.items(),
        ]  # fmt: skip

    @property
    def filtered(self) -> bool:
        """True if some trials may be left out."""
        return bool(self.state or self.ranges or self.options or self.texts)


def wanted(columns: Columns, query: Query) -> Wanted:
    """Returns what a query wants. Unknown entries and empty values are left out.

    Raises:
        InvalidInput: there is no such column, option, state or page.
    """
    given = [(name, text) for name, text in query if text != ""]
    one = dict(given)
    ranges, options, texts = [], dict[str, list[int]](), dict[str, str]()
    for name, text in given:
        what, _, key = name.partition(".")
        if what in ("from", "to") and key:
            column = _column(columns, key)
            ranges.append((column.key, what, text, _bound(column, what, text)))
        elif what == "is" and key:
            column = _column(columns, key)
            options.setdefault(column.key, []).append(_option(column, text))
        elif what == "has" and key:
            texts[_text_column(columns, key).key] = text[:EXCESS]
    state = one.get("state", "")
    states = columns.layout["state"].options
    if state and state not in states:
        raise InvalidInput(f"There are no trials of the state {state[:20]!r}: there are {', '.join(states)}.")
    page = page_number(one.get("page", "1"))
    sort, descending = one.get("sort", "number"), one.get("descending", "0" if "sort" in one else "1")
    if descending not in ("0", "1"):
        raise InvalidInput(f"`descending` is {descending[:20]!r}: it must be 1 or 0.")
    show = [_column(columns, text).key for name, text in given if name == "show"]
    return Wanted(_column(columns, sort).key, descending == "1", state, ranges, options, texts, show, page)


def _column(columns: Columns, key: str) -> Column:
    found = columns.layout.get(key) or columns.layout.get(key.removeprefix("parameters."))
    if found is None:
        known = list(columns.layout)
        more = f" and {len(known) - 12} more" if len(known) > 12 else ""
        raise InvalidInput(f"There is no column {key[:40]!r}: there are {', '.join(known[:12])}{more}.")
    return found


def _text_column(columns: Columns, key: str) -> Column:
    column = _column(columns, key)
    if column.kind != "text":
        raise InvalidInput(f"The column {column.label[:40]!r} has no text to search: give a range or an option.")
    return column


def _bound(column: Column, what: str, text: str) -> float:
    if column.kind == "text":
        raise InvalidInput(f"The column {column.label[:40]!r} has no range: its values are text.")
    value = written(text) if len(text) < EXCESS else math.nan
    if value is None:
        value = _time(text) if column.kind == "time" else math.nan
    if math.isnan(value):
        needed = "a date, such as 2026-01-31T12:00, or Unix seconds" if column.kind == "time" else "a number"
        raise InvalidInput(f"`{what}` of {column.label[:40]!r} is {text[:20]!r}: it must be {needed}.")
    return value


def _time(text: str) -> float:
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return math.nan


def _option(column: Column, text: str) -> int:
    names = column.names()
    if text not in names:
        has = ", ".join(names[:12]) if names else "no options"
        raise InvalidInput(f"{column.label[:40]!r} is never {text[:20]!r}: it has {has}.")
    return names.index(text)


def selected(columns: Columns, want: Wanted) -> IndexArray:
    """Returns the numbers of the trials that a query selects, in its order. Empty cells come last, ties by number."""
    kept = np.ones(len(columns.trials), dtype=bool)
    if want.state:
        kept &= columns.array("state") == STATES.index(want.state)
    for key, end, _, value in want.ranges:  # Comparisons with NaN are false, so empty cells are in no range.
        kept &= columns.array(key) >= value if end == "from" else columns.array(key) <= value
    for key, places in want.options.items():
        kept &= np.isin(columns.array(key), places)
    for key, text in want.texts.items():
        kept &= np.array([text in cell for cell in columns.array(key)], dtype=bool)
    rows = np.flatnonzero(kept)
    if want.sort == "number":
        return rows[::-1] if want.descending else rows
    values = columns.array(want.sort)[rows]
    empty = values == "" if columns.layout[want.sort].kind == "text" else np.isnan(values)
    known, values = rows[~empty], values[~empty]
    if values.dtype == object:
        values = np.unique(values.astype(str), return_inverse=True)[1]
    order = np.argsort(-values if want.descending else values, kind="stable")
    return np.concatenate([known[order], rows[empty]])


def grid_view(study: Study, query: Query) -> dict[str, Any]:
    """Returns a page of the grid: the heads of the columns, the rows shown, and addresses of other pages and orders.

    Args:
        study: a study with any policy.
        query: pairs of the table above.

    Raises:
        InvalidInput: see `wanted`.
    """
    columns = columns_of(study)
    want, usual = wanted(columns, query), _usual(columns, study)
    if set(want.show) - {"number"} == set(usual) - {"number"}:
        want = want._replace(show=[])
    rows = selected(columns, want)
    pages = max(1, -(-len(rows) // PER_PAGE))
    page = min(want.page, pages)
    layout = [columns.layout[key] for key in columns.layout if key in {"number", *(want.show or usual)}]
    names = study.replica.roster.names
    by_round, silent = not on_average(study.policy), set_at_deadline(study)
    numbers = rows[(page - 1) * PER_PAGE : page * PER_PAGE].tolist()
    trials = [columns.trials[number] for number in numbers]
    return {
        "rows": [_row(trial, layout, names, by_round=by_round, silent=silent) for trial in trials], "count": len(rows),
        "all": len(columns.trials), "filtered": want.filtered, "page": page, "pages": pages, "numbers": numbers,
        "heads": [_head(columns, want, column) for column in layout],
        "order": _order(columns, want),
        "query": urlencode(want.pairs(columns, page=str(page))), "download": urlencode(want.pairs(columns, page="1")),
        "later": urlencode(want.pairs(columns, page=str(page - 1))),
        "earlier": urlencode(want.pairs(columns, page=str(page + 1))),
        "hidden": _hidden(want), "left_out": len(columns.layout) - len(layout),
        "every": urlencode(want._replace(show=list(columns.layout)).pairs(columns)),
        "state": want.state, "ranged": bool(want.ranges or want.options or want.texts),
        "states": columns.layout["state"].options,
        "fields": _fields(columns, want),
        "choose": [
            {"key": key, "label": column.label, "chosen": column in layout}
            for key, column in columns.layout.items() if key != "number"
        ],
        "chosen": bool(want.show), "refused": "",
    }  # fmt: skip


def _usual(columns: Columns, study: Study) -> list[str]:
    """Returns the columns that are shown by default: the first parameters and constraints, and those that say most.

    Metrics stand beside constraints.
    """
    told = {f"{key}.{j}" for key in ("objectives", "noise") for j in range(1, study.policy.objective_count)}
    fixed = {"number", "state", "arm", "reward", "std", "curve.step", "curve.value", "told_at", *told}
    facts = [key for key in columns.layout if key.startswith(FACTS)]
    others = {*fixed, *VISITS, *facts, "asked_at", "reason"}
    inputs = [key for key in columns.layout if key not in others and not key.startswith(ANSWERED)]
    fixed |= {"asked_at"} if len(inputs) < MOST_SHOWN else set()  # beside many parameters the first to be left out
    coordinates = isinstance(columns.layout.get("arm"), Column) and any(key.startswith("point.") for key in inputs)
    most = 2 if coordinates and study.replica.roster.names else MOST_SHOWN
    limits = [key for key in columns.layout if key.startswith(ANSWERED)][: MOST_SHOWN // 2]
    reasons = ["reason"] if (columns.array("reason") != "").any() else []
    shown = {*fixed, *inputs[:most], *limits, *reasons, *VISITS, *facts[:MOST_FACTS]}
    return [key for key in columns.layout if key in shown]


def _head(columns: Columns, want: Wanted, column: Column) -> dict[str, Any]:
    """Returns the head of a column. Its address sorts by it, and reverses the order if it is sorted already."""
    mine = want.sort == column.key
    down = not want.descending if mine else column.kind == "time"
    pairs = want.pairs(columns, sort=column.key, descending="1" if down else "0", page="1")
    return {
        "key": column.key, "label": column.label, "kind": column.kind, "query": urlencode(pairs),
        "sorted": ("descending" if want.descending else "ascending") if mine else "",
        "number": column.kind == "number",
    }  # fmt: skip


def _order(columns: Columns, want: Wanted) -> str:
    if want.sort == "number":
        return "the latest first" if want.descending else "the earliest first"
    label = columns.layout[want.sort].label
    return f"by {label}, {'the largest' if want.descending else 'the smallest'} first"


def _hidden(want: Wanted) -> list[tuple[str, str]]:
    """Returns the sorting, for the form of the filters."""
    return [("sort", want.sort), ("descending", "1" if want.descending else "0")]


def _fields(columns: Columns, want: Wanted) -> list[dict[str, Any]]:
    """Returns the filters of the form: those in use, and those of the first columns."""
    given = {(key, end): text for key, end, text, _ in want.ranges}
    used = {*want.options, *want.texts, *(key for key, *_ in want.ranges)}
    apart = {"state", "reason"} - used
    filterable = [column for column in columns.layout.values() if column.key not in apart]
    return [
        {
            "key": column.key, "label": column.label, "kind": column.kind,
            "from": given.get((column.key, "from"), ""), "to": given.get((column.key, "to"), ""),
            "has": want.texts.get(column.key, ""),
            "options": [
                {"text": name, "chosen": place in want.options.get(column.key, ())}
                for place, name in enumerate(column.names())
            ],
        }
        for i, column in enumerate(filterable) if i < MOST_FIELDS or column.key in used
    ]  # fmt: skip


def _row(
    trial: Trial, layout: Sequence[Column], names: dict[int, str], *, by_round: bool, silent: set[int]
) -> dict[str, Any]:
    return {
        "number": trial.number, "marks": marks(trial, silent), "violates": trial.feasible is False and by_round,
        "cells": [_cell(trial, column, names) for column in layout[1:]],
    }  # fmt: skip


def _cell(trial: Trial, column: Column, names: dict[int, str]) -> dict[str, Any]:
    value = column.read(trial)
    cell = {"key": column.key, "kind": column.kind, "number": column.kind == "number", "name": ""}
    if column.kind == "time":
        return cell | {"text": "", "time": value}
    if column.key == "arm":
        return cell | {"text": "" if value is None else str(value), "name": names.get(value, "")}
    if column.objective is not None:
        told = values_text(trial) if trial.others else [reward_text(trial)]
        return cell | {"text": told[column.objective] if trial.reward is not None else ""}
    empty = value is None and (column.kind != "category" or None not in column.options)
    return cell | {"text": "" if empty else "none" if value is None else short(value)}


def marks(trial: Trial, silent: set[int]) -> list[str]:
    """Returns remarks on a trial, such as that it was chosen at random.

    Args:
        trial: of any study.
        silent: numbers of the trials whose outcome was set at their deadline (`set_at_deadline`).
    """
    return (
        [f"to be played {many(trial.repeats, 'time')}"] * (trial.repeats > 1)
        + ["at random"] * trial.explored
        + ["enqueued"] * trial.enqueued
        + ["no answer in time" if trial.number in silent else "late"] * trial.late
        + ["corrected"] * bool(trial.corrected)
        + ["paused"] * (became(trial) == "paused")
    )


def as_csv(study: Study, query: Query, path: Path) -> None:
    """Writes a table with the columns of `Study.export`. A text that a spreadsheet would compute begins with `'`."""
    write_csv(study.policy, _trials(study, query), path, extra=study.replica.roster.columns)


def as_json(study: Study, query: Query, path: Path) -> None:
    """Writes a list of the trials as JSON, with what was told before corrections."""
    more, trials = study.replica.roster.columns, _trials(study, query)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write("[")
        for place, trial in enumerate(trials):  # One by one: a long text of JSON would stop all other threads.
            file.write(",\n" * (place > 0) + json.dumps(with_history(trial) | more(trial), ensure_ascii=False))
        file.write("]")


def _trials(study: Study, query: Query) -> list[Trial]:
    columns = columns_of(study)
    return [columns.trials[number] for number in selected(columns, wanted(columns, query)).tolist()]
