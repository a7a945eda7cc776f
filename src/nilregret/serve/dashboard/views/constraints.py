"""Violations or used budgets of the constraints by trial, and the multipliers of a violation."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from ...._utils.checks import Array, many
from ...._utils.numerals import numeral, percent
from ....plots.base import reward_label
from ....plots.history_picture import restart_rules, restarts_of
from ....plots.scene import Axis, Line, Mark, Panel
from ....plots.ticks import padded, spread_evenly, thinned
from ....policy.policy import Policy
from ....study.definition import constraint_names
from ....study.direction import on_average
from ....study.study import Study
from .pictures import Picture, drawn, short

RECENT = 100  # latest constraint values of the recent share of violations
PALETTE = ("model", "best", "third", "failed")  # colours of the lines, which limit the number of drawn constraints
COLUMNS = 800  # places of a line
MOST_ROWS = 50  # constraints in the table


class _Values(NamedTuple):
    """Constraint values `(m, n)`, NaN if not told, the numbers of the n trials, and the m names."""

    values: Array
    places: Array
    names: list[str]

    @property
    def m(self) -> int:
        """Number of constraints."""
        return len(self.values)


def constraints_view(study: Study) -> dict[str, Any] | None:
    """Returns numbers and pictures of the constraints, or None if no constraint value was told.

    If constraints hold on average, the sum of the values is compared with a budget. Otherwise each violation counts.
    """
    told = _values_told(study)
    averaged = on_average(study.policy)
    found: dict[str, Any] = {
        "averaged": averaged, "saturated": study.saturated, "infeasible": _infeasible(study), "rows": [], "left_out": 0,
        "remarks": list(study.remarks.values()),
        "sentence": "No constraint value has been told yet.", "pictures": [],
    }  # fmt: skip
    if told is None:
        return found if study.policy.constraint_count else None
    now, numbers, history = study.multipliers, *study.multiplier_history()
    charged = bool(len(now)) and np.isfinite(now).all()
    prices = history if charged and history.shape[1] else np.zeros((0, 0))
    shown = _largest(told, averaged=averaged)
    pictures = [_used(told, shown) if averaged else _violations(told, shown)]
    if len(prices):
        pictures.append(_costs(study, np.append(numbers, len(study.trials)), np.vstack([prices, now])))
    return found | {
        "rows": [_row(told, j, now if charged else None, prices) for j in range(min(told.m, MOST_ROWS))],
        "left_out": max(0, told.m - MOST_ROWS), "pictures": pictures,
        "sentence": _budget_text(told) if averaged else _violations_text(told),
    }  # fmt: skip


def _values_told(study: Study) -> _Values | None:
    trials = [trial for trial in study.trials if trial.constraints is not None]
    rows = [trial.constraints for trial in trials if trial.constraints is not None]
    widths = {len(row) for row in rows}
    if not max(widths, default=0):
        return None
    if len(widths) == 1:
        values = np.concatenate(rows).reshape(len(rows), -1).T
    else:  # A policy without constraints takes any number of values.
        values = np.array(list(itertools.zip_longest(*rows, fillvalue=np.nan)), dtype=np.float64)
    places = np.array([trial.number for trial in trials], dtype=np.float64)
    return _Values(values, places, constraint_names(study.about, len(values)))


def _largest(told: _Values, *, averaged: bool) -> list[int]:
    """Returns the indices of the drawn constraints: all, or those with the largest use or violation."""
    known = np.nan_to_num(told.values)
    much = (known if averaged else np.maximum(known, 0.0)).sum(axis=1)
    return sorted(np.argsort(-much, kind="stable")[: len(PALETTE)].tolist())


# -- in figures --------------------------------------------------------------------------------------------------


def _row(told: _Values, j: int, now: Array | None, prices: Array) -> dict[str, str]:
    known = told.values[j][np.isfinite(told.values[j])]
    total, violation = float(known.sum()), np.maximum(known, 0.0)
    share, recent = float((known > 0.0).mean()), float((known[-RECENT:] > 0.0).mean())
    return {
        "name": told.names[j], "total": short(total),
        "verdict": "within the budget" if total <= 0.0 else "over the budget",
        "mean": short(float(known.mean())), "share": percent(share), "recent": percent(recent),
        "violation": short(float(violation.sum())), "largest": short(float(violation.max())),
        "multiplier": "-" if now is None or j >= len(now) else short(float(now[j])),
        "highest": "-" if now is None or j >= prices.shape[1] else short(float(max(now[j], prices[:, j].max()))),
    }  # fmt: skip


def _budget_text(told: _Values) -> str:
    totals = np.nan_to_num(told.values).sum(axis=1)
    over = [j for j, total in enumerate(totals.tolist()) if total > 0.0]
    if not over:
        held = "The constraint is" if told.m == 1 else f"All of {many(told.m, 'constraint')} are"
        return f"{held} within the budget so far."
    worst = sorted(over, key=lambda j: -totals[j])[: len(PALETTE)]
    said = ", ".join(f"{told.names[j]} by {short(float(totals[j]))}" for j in worst)
    return f"Over the budget so far: {said}{_and_more(len(over) - len(worst))}."


def _violations_text(told: _Values) -> str:
    violated = np.asarray((np.nan_to_num(told.values) > 0.0).any(axis=0))
    count, of = int(violated.sum()), many(len(violated), "answered trial")
    which = "the constraint" if told.m == 1 else "a constraint"
    if not count:
        return f"No violation in {of}."
    last = int(told.places[violated][-1])
    return f"{count:,} of {of} violated {which}, the last of them trial {last}."


def _and_more(count: int) -> str:
    return f", and {count} more" if count > 0 else ""


def _infeasible(study: Study) -> str | None:
    if not (isinstance(study.policy, Policy) and study.policy.constraints is not None and study.policy.context is None):
        return None
    sure = study.infeasible()
    if sure is None:
        return None
    proved = f"with probability at least {numeral(sure, 3)}" if sure else "as far as is believed, and nothing is proved"
    return f"No point that was looked at can satisfy all constraints, {proved}."


# -- pictures ----------------------------------------------------------------------------------------------------


def _panel(places: Array, values: Array, lines: list[tuple[int, str]], names: list[str], **more: Any) -> Panel:
    """Returns a panel of a line for some columns of values, `(n, m)`, each with its colour.

    Args:
        places: of the rows, `(n,)`.
        values: `(n, m)`.
        lines: indices of the columns, with their colours.
        names: of all columns.
        more: `label` of the values, `zero` as the name of a line at 0, `restarts`, and True as `steps`.
    """
    ends = (-0.5, float(places[-1]) + 0.5)
    shown = values[:, [j for j, _ in lines]]
    low, high = float(shown.min()), float(shown.max())
    marks: list[Mark] = []
    if "zero" in more:
        marks.append(Line(ends, [0.0, 0.0], "text", more["zero"], 1.0, dashed=True))
        low, high = min(low, 0.0), max(high, 0.0)
    limits = padded((low, high))
    marks += restart_rules(more.get("restarts", ()), limits)
    marks += [Line(places, values[:, j], color, names[j], steps=more.get("steps", False)) for j, color in lines]
    return Panel(
        marks=marks, x=Axis(label="trial", limits=ends, whole=True), y=Axis(label=more["label"], limits=limits)
    )


def _lines(told: _Values, sums: Array, shown: list[int], *, title: str, label: str, zero: str, summary: str) -> Picture:
    kept = spread_evenly(sums.shape[1], COLUMNS)
    lines = [_drawn(j, sums, shown) for j in shown]
    return drawn(
        title, summary, [_panel(told.places[kept], sums[:, kept].T, lines, told.names, label=label, zero=zero)]
    )


def _drawn(j: int, sums: Array, shown: list[int]) -> tuple[int, str]:
    return j, PALETTE[shown.index(j) if len(sums) > len(PALETTE) else j]


def _used(told: _Values, shown: list[int]) -> Picture:
    sums = np.cumsum(np.nan_to_num(told.values), axis=1)
    return _lines(
        told, sums, shown, title="Budget used", label="beyond the budget",
        zero="the budget, used to the full",
        summary=f"Below the dashed line less has been used than the budget allows.{_of_more(told)}",
    )  # fmt: skip


def _violations(told: _Values, shown: list[int]) -> Picture:
    sums = np.cumsum(np.maximum(np.nan_to_num(told.values), 0.0), axis=1)
    return _lines(
        told, sums, shown, title="Violations, added up", label="sum of the violations", zero="nothing violated",
        summary=f"Where a line is level nothing was violated.{_of_more(told)}",
    )  # fmt: skip


def _of_more(told: _Values) -> str:
    most = len(PALETTE)
    return f" Drawn are {most} of {told.m} constraints, those most in the way." if told.m > most else ""


def _costs(study: Study, places: Array, prices: Array) -> Picture:
    """Returns a picture of the multipliers `(n, m)` in force at these trials. The last row is of the next trial."""
    shown = sorted(np.argsort(-prices.max(axis=0), kind="stable")[: len(PALETTE)].tolist())
    names = constraint_names(study.about, prices.shape[1])
    lines = [_drawn(j, prices.T, shown) for j in shown]
    kept = np.unique(np.concatenate([thinned(prices[:, j], COLUMNS // 2) for j in shown]))
    peaks = prices.argmax(axis=0).tolist()
    said = "; ".join(
        ("" if len(shown) == 1 else f"by {names[j]} ") + f"{short(float(prices[-1, j]))} (at most "
        f"{short(float(prices[peaks[j], j]))}, at trial {int(places[peaks[j]])})" for j in shown
    )  # fmt: skip
    summary = f"In the next decision a violation of 1 is charged {said}, in units of the {reward_label(study)}."
    label, restarts = "charge for a violation of 1", restarts_of(study)
    panel = _panel(places[kept], prices[kept], lines, names, label=label, restarts=restarts, steps=True)
    return drawn("What a violation costs", summary, [panel])
