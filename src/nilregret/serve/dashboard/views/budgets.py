"""What constraints have used up, trial by trial, and what violating them has cost in each decision."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from ...._utils.checks import Array
from ....policy.policy import Policy
from ....study.direction import on_average
from ....study.study import Study
from .pictures import COLUMNS, ROWS, Picture, axis, line, many, short, spread_evenly, table, thinned
from .progress import restart_marks

RECENT = 100
PALETTE = ("main", "best", "third", "warn")  # one for each line; of more constraints those that are most in the way
MOST_ROWS = 50


class _Told(NamedTuple):
    """Constraint values `(m, n)`, NaN where none was told, and the numbers of the n trials."""

    values: Array
    places: Array

    @property
    def wide(self) -> int:
        """How many constraints."""
        return len(self.values)


def budgets(study: Study) -> dict[str, Any] | None:
    """Figures, and pictures of what was used and what violating costs; None where nothing was told of any constraint.

    Policies that keep constraints on average have a budget, which a sum of values is compared with; of others what
    counts is each violation.
    """
    told = _told(study)
    averaged = on_average(study.policy)
    found: dict[str, Any] = {
        "averaged": averaged, "saturated": study.saturated, "infeasible": _infeasible(study), "rows": [], "left_out": 0,
        "sentence": "No constraint value has been told yet.", "pictures": [],
    }  # fmt: skip
    if told is None:
        return found if study.policy.constraint_count else None
    now, numbers, history = study.multipliers, *study.multiplier_history()
    charged = bool(len(now)) and np.isfinite(now).all()
    prices = history if charged and history.shape[1] else np.zeros((0, 0))
    shown = _most_in_the_way(told, averaged=averaged)
    pictures = [_used(told, shown) if averaged else _violations(told, shown)]
    if len(prices):
        pictures.append(_costs(study, np.append(numbers, len(study.trials)), np.vstack([prices, now])))
    return found | {
        "rows": [_row(j, told.values[j], now if charged else None, prices) for j in range(min(told.wide, MOST_ROWS))],
        "left_out": max(0, told.wide - MOST_ROWS), "pictures": pictures,
        "sentence": _within(told) if averaged else _kept(told),
    }  # fmt: skip


def is_limited(study: Study) -> bool:
    """Whether there is anything to say of constraints."""
    return study.policy.constraint_count > 0 or any(trial.constraints is not None for trial in study.trials)


def _told(study: Study) -> _Told | None:
    trials = [trial for trial in study.trials if trial.constraints is not None]
    rows = [trial.constraints for trial in trials if trial.constraints is not None]
    widths = {len(row) for row in rows}
    if not max(widths, default=0):
        return None
    if len(widths) == 1:
        values = np.concatenate(rows).reshape(len(rows), -1).T
    else:  # told of a policy that wants none, which takes what comes
        values = np.array(list(itertools.zip_longest(*rows, fillvalue=np.nan)), dtype=np.float64)
    return _Told(values, np.array([trial.number for trial in trials], dtype=np.float64))


def _most_in_the_way(told: _Told, *, averaged: bool) -> list[int]:
    """Which constraints are drawn: all, or of many those that have used or violated most, by number."""
    known = np.nan_to_num(told.values)
    much = (known if averaged else np.maximum(known, 0.0)).sum(axis=1)
    return sorted(np.argsort(-much, kind="stable")[: len(PALETTE)].tolist())


def name_of(j: int) -> str:
    """Of a constraint."""
    return f"constraint {j + 1}"


# -- in figures --------------------------------------------------------------------------------------------------


def _row(j: int, values: Array, now: Array | None, prices: Array) -> dict[str, str]:
    known = values[np.isfinite(values)]
    total, violation = float(known.sum()), np.maximum(known, 0.0)
    share, recent = float((known > 0.0).mean()), float((known[-RECENT:] > 0.0).mean())
    return {
        "name": name_of(j), "total": short(total),
        "verdict": "within the budget" if total <= 0.0 else "over the budget",
        "mean": short(float(known.mean())), "share": _percent(share), "recent": _percent(recent),
        "violation": short(float(violation.sum())), "largest": short(float(violation.max())),
        "multiplier": "-" if now is None or j >= len(now) else short(float(now[j])),
        "highest": "-" if now is None or j >= prices.shape[1] else short(float(max(now[j], prices[:, j].max()))),
    }  # fmt: skip


def _percent(share: float) -> str:
    return f"{share:.0%}" if share in (0.0, 1.0) else f"{min(max(share, 0.001), 0.999):.1%}"


def _within(told: _Told) -> str:
    totals = np.nan_to_num(told.values).sum(axis=1)
    over = [j for j, total in enumerate(totals.tolist()) if total > 0.0]
    if not over:
        held = "The constraint is" if told.wide == 1 else f"All of {many(told.wide, 'constraint')} are"
        return f"{held} within the budget so far."
    worst = sorted(over, key=lambda j: -totals[j])[: len(PALETTE)]
    said = ", ".join(f"{name_of(j)} by {short(float(totals[j]))}" for j in worst)
    return f"Over the budget so far: {said}{_and_more(len(over) - len(worst))}."


def _kept(told: _Told) -> str:
    violated = np.asarray((np.nan_to_num(told.values) > 0.0).any(axis=0))
    count, of = int(violated.sum()), many(len(violated), "answered trial")
    which = "the constraint" if told.wide == 1 else "a constraint"
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
    proved = f"with probability at least {sure:.3g}" if sure else "as far as is believed, and nothing is proved"
    return f"No point that was looked at can satisfy all constraints, {proved}."


# -- pictures ----------------------------------------------------------------------------------------------------


def _lines(told: _Told, sums: Array, shown: list[int], *, title: str, label: str, zero: str, summary: str) -> Picture:
    drawn = [_drawn(j, sums, shown) for j in shown]
    kept = spread_evenly(sums.shape[1], COLUMNS)
    rows = spread_evenly(sums.shape[1], ROWS).tolist()
    return {
        "kind": "lines", "title": title, "summary": summary, "x": axis("trial"), "y": axis(label), "zero": zero,
        "layers": [{"x": told.places[kept].tolist(), "series": [
            line(name_of(j), sums[j, kept], color) for j, color in drawn]}],
        "bands": [], "dots": [], "marks": [],
        "table": table(["trial", *map(name_of, shown)], [(int(told.places[i]), *sums[shown, i]) for i in rows]),
    }  # fmt: skip


def _drawn(j: int, sums: Array, shown: list[int]) -> tuple[int, str]:
    return j, PALETTE[shown.index(j) if len(sums) > len(PALETTE) else j]


def _used(told: _Told, shown: list[int]) -> Picture:
    sums = np.cumsum(np.nan_to_num(told.values), axis=1)
    return _lines(
        told, sums, shown, title="Budget used", label="beyond the budget",
        zero="the budget, used to the full",
        summary=f"Below the dashed line less has been used than the budget allows.{_of_more(told)}",
    )  # fmt: skip


def _violations(told: _Told, shown: list[int]) -> Picture:
    sums = np.cumsum(np.maximum(np.nan_to_num(told.values), 0.0), axis=1)
    return _lines(
        told, sums, shown, title="Violations, added up", label="sum of the violations", zero="nothing violated",
        summary=f"Where a line is level nothing was violated.{_of_more(told)}",
    )  # fmt: skip


def _of_more(told: _Told) -> str:
    most = len(PALETTE)
    return f" Drawn are {most} of {told.wide} constraints, those most in the way." if told.wide > most else ""


def _costs(study: Study, places: Array, prices: Array) -> Picture:
    """Multipliers `(n, m)` in force at these trials, the last of them the next one."""
    shown = sorted(np.argsort(-prices.max(axis=0), kind="stable")[: len(PALETTE)].tolist())
    drawn = [_drawn(j, prices.T, shown) for j in shown]
    kept = np.unique(np.concatenate([thinned(prices[:, j], COLUMNS // 2) for j in shown]))
    rows = spread_evenly(len(places), ROWS).tolist()
    peaks = prices.argmax(axis=0).tolist()
    said = "; ".join(
        ("" if len(shown) == 1 else f"by {name_of(j)} ") + f"{short(float(prices[-1, j]))} (at most "
        f"{short(float(prices[peaks[j], j]))}, at trial {int(places[peaks[j]])})" for j in shown
    )  # fmt: skip
    return {
        "kind": "lines", "title": "What a violation costs",
        "summary": f"In the next decision a violation of 1 is charged {said}, in units of the {_word(study)}.",
        "x": axis("trial"), "y": axis("charge for a violation of 1"), "zero": None,
        "layers": [{"x": places[kept].tolist(), "series": [
            line(name_of(j), prices[kept, j], color, style="step") for j, color in drawn]}],
        "bands": [], "dots": [], "marks": restart_marks(study),
        "table": table(["trial", *map(name_of, shown)], [(int(places[i]), *prices[i, shown]) for i in rows]),
    }  # fmt: skip


def _word(study: Study) -> str:
    return "reward" if study.goal == "maximize" else "loss"
