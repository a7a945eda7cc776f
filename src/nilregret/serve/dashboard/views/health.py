"""The health of a study: what fails, waits, comes late, has changed, overruns a budget or is unknown.

Pictures show the violations or used budgets of constraints, the delays of rewards, and the evidence of a change.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ...._utils.checks import Array, many
from ...._utils.numerals import numeral, percent
from ....plots.base import reward_label
from ....plots.history_picture import restart_rules, restarts_of
from ....plots.restarts import evidence_panel
from ....plots.scene import Axis, Line, Mark, Panel, Points
from ....plots.ticks import padded, spread_evenly, thinned
from ....policy.policy import Policy
from ....storage.record import Trial
from ....study.cautions import unknown_levels
from ....study.definition import constraint_names
from ....study.direction import on_average
from ....study.formatting import duration, unit, where
from ....study.late_fits import answer_delays
from ....study.study import Study
from ....study.waiting import PAST, overdue, set_at_deadline
from ...work.deadlines import Rule
from .columns import STATES, columns_of
from .pictures import Picture, drawn, each_short, empty, reward_text, said_with, short, table
from .status import short_context

RECENT = 100  # latest constraint values of the recent share of violations
PALETTE = ("model", "best", "third", "failed")  # colours of the lines, which limit the number of drawn constraints
PLACES = 800  # places of a line
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
        "rows": [_constraint_row(told, j, now if charged else None, prices) for j in range(min(told.m, MOST_ROWS))],
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


def _constraint_row(told: _Values, j: int, now: Array | None, prices: Array) -> dict[str, str]:
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
    kept = spread_evenly(sums.shape[1], PLACES)
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
    kept = np.unique(np.concatenate([thinned(prices[:, j], PLACES // 2) for j in shown]))
    peaks = prices.argmax(axis=0).tolist()
    said = "; ".join(
        ("" if len(shown) == 1 else f"by {names[j]} ") + f"{short(float(prices[-1, j]))} (at most "
        f"{short(float(prices[peaks[j], j]))}, at trial {int(places[peaks[j]])})" for j in shown
    )  # fmt: skip
    summary = f"In the next decision a violation of 1 is charged {said}, in units of the {reward_label(study)}."
    label, restarts = "charge for a violation of 1", restarts_of(study)
    panel = _panel(places[kept], prices[kept], lines, names, label=label, restarts=restarts, steps=True)
    return drawn("What a violation costs", summary, [panel])


LISTED = 12  # trials in a table
COLUMNS = 400  # pixels that the delays are thinned to
ALIKE = 1.2  # ratio of the longest to the shortest delay, below which no picture is drawn
TITLE = "How long answers took"


def delays(study: Study, *, now: float) -> dict[str, Any]:
    """Returns pending and abandoned trials, late rewards, and a picture of the delays.

    Args:
        study: a study with any policy.
        now: present time in Unix seconds.
    """
    trials = study.trials[: len(study.trials)]
    pending = [trial for trial in trials if trial.state == "pending"]
    abandoned = [trial for trial in trials if trial.state == "abandoned"]
    rule, counts = Rule.of(dict(study.about)), study.policy.pending.counts
    silent, names = set_at_deadline(study), study.replica.roster.names
    waited = [each for each in zip(*answer_delays(trials), strict=True) if each[0].number not in silent]
    late = [(trial, int(count)) for trial, count, _ in waited if count > 0 or trial.late]
    came, seconds = [each[0] for each in waited], np.array([max(0.0, each[2]) for each in waited])
    too_late = {
        trial.number for trial, count in late
        if trial.state == "observed" and not counts(trial, lambda count=count: count)  # type: ignore[misc]
    }  # fmt: skip
    return {
        "pending": [_row(trial, now, names) for trial in pending[:LISTED]], "pending_count": len(pending),
        "abandoned": [_row(trial, now, names) for trial in abandoned[-LISTED:]], "abandoned_count": len(abandoned),
        "late": [_late(study, trial, count, too_late) for trial, count in late[-LISTED:][::-1]],
        "late_count": len(late), "too_late_count": len(too_late),
        "sentence": _sentence(pending, late, too_late, seconds, overdue(study, now)) + _of_silent(len(silent), rule),
        "picture": _picture(came, seconds),
    }  # fmt: skip


def _of_silent(count: int, rule: Rule) -> str:
    """Returns a sentence on the trials whose outcome was set at the deadline."""
    if not count:
        return ""
    instead = "failed" if rule.on_deadline == "fail" else f"counted as {each_short(rule.default_reward)}"
    return f" No answer came in time to {many(count, 'trial')}, and {'it' if count == 1 else 'they'} {instead}."


def _row(trial: Trial, now: float, names: Mapping[int, str]) -> dict[str, Any]:
    return {
        "number": trial.number, "where": where(trial, names=names), "context": short_context(trial),
        "asked_at": trial.asked_at, "waited": max(0.0, now - trial.asked_at), "lease_until": trial.lease_until,
        "reason": "" if trial.abandoned is None else trial.abandoned.reason,
    }  # fmt: skip


def _late(study: Study, trial: Trial, questions: int, too_late: set[int]) -> dict[str, Any]:
    what = "counts" if trial.number not in too_late else "came too late to count"
    return {
        "number": trial.number, "where": where(trial, names=study.replica.roster.names), "questions": questions,
        "waited": max(0.0, (trial.told_at or trial.asked_at) - trial.asked_at),
        "reward": reward_text(trial, said_with(study)) or "failed", "told_at": trial.told_at,
        "what": what + (", after it had been given up" if trial.late else ""),
    }  # fmt: skip


def _sentence(pending: list[Trial], late: list[tuple[Trial, int]], too_late: set[int], seconds: Any, past: int) -> str:
    count = len(pending)
    waiting = f"{many(count, 'trial')} wait{'s' * (count == 1)} for an answer." if count else "No trial waits."
    waiting += f" {past:,} of them {'is' if past == 1 else 'are'}{PAST}." if past else ""
    if not len(seconds):
        return waiting
    typical = f" Answers took {duration(float(np.median(seconds)))} (median), {duration(float(seconds.max()))} at most."
    if not late:
        return waiting + typical + " No answer came after a further question."
    dropped = f", and {len(too_late):,} of them too late to count" if too_late else ""
    return f"{waiting}{typical} {many(len(late), 'answer')} came after further questions{dropped}."


def _picture(came: list[Trial], seconds: Any) -> Picture:
    if not len(came) or not seconds.max() > ALIKE * seconds.min():
        return empty(TITLE, "No answer has come yet." if not came else "All answers took the same time.")
    kept = thinned(seconds, COLUMNS)
    places = np.array([float(trial.number) for trial in came])
    size, name = unit(float(seconds.max()))
    marks = [Points(places[kept], seconds[kept] / size, "observed", "time to the answer")]
    shares = [(f"{share:.0%}", duration(float(np.quantile(seconds, share)))) for share in (0.1, 0.5, 0.9, 0.99, 1.0)]
    panel = Panel(marks=marks, x=Axis(label="trial", whole=True), y=Axis(label=f"time to the answer, {name}"))
    summary = f"{many(len(came), 'answer')}, half of them within {shares[1][1]}."
    return drawn(TITLE, summary, [panel]) | {"table": table(["this share of the answers", "came within"], shares)}


EVIDENCE = "Evidence of a change"


def changes(study: Study) -> dict[str, Any]:
    """Returns restarts with their reasons and times, and a picture of the evidence."""
    trials = study.trials
    pairs = zip(study.restarts, study.restart_reasons, strict=True)
    cuts = [
        {"round": round_, "reason": why, "at": trials[round_].asked_at if round_ < len(trials) else None}
        for round_, why in pairs
    ]
    return {"restarts": cuts, "sentence": _restarts_sentence(study, len(cuts)), "picture": _evidence(study)}


def _restarts_sentence(study: Study, cuts: int) -> str:
    policy = study.policy
    if not isinstance(policy, Policy):
        return f"{policy.algorithm} keeps no memory that could be cut."
    if cuts:
        last = study.restarts[-1]
        often = "once" if cuts == 1 else many(cuts, "time")
        return f"The policy has started anew {often}; only trials from {last} on count now."
    if policy.memory.drift() is not None:
        return "The world is taken to drift all the time: old answers count less and less, and nothing is cut."
    first = policy.memory.first_counted(0, len(study.trials))
    if first:
        return f"A window slides along: only trials from {first} on count now."
    beside = ", on a level of all rewards that may move" if policy.memory.tides else ""
    return f"Every answer counts{beside}: nothing has been forgotten."


def _evidence(study: Study) -> Picture:
    found = study.evidence
    if found is None:
        why = "This policy's memory does not weigh how much speaks for a change; memory='adaptive' does."
        return empty(EVIDENCE, why)
    if not len(found.values):
        return empty(EVIDENCE, "No answer has been weighed yet.")
    now, enough = float(found.values[-1]), float(found.threshold)
    summary = (
        f"The evidence for a change is {short(now)} now; at {short(enough)} the policy starts anew. Where nothing "
        f"changes, chance alone is to bring that about in at most {math.exp(-enough):.2%} of runs."
    )
    return drawn(EVIDENCE, summary, [evidence_panel(study)])


REASONS, LATEST = 5, 20  # reasons that are listed, and trials that are counted as the latest


def health(study: Study, *, now: float) -> dict[str, Any]:
    """Returns the parts of the page that say something, and the names of the others.

    Args:
        study: a study with any policy.
        now: present time in Unix seconds.
    """
    waits, changed, limits = delays(study, now=now), changes(study), constraints_view(study)
    failed, unknown = _failures(study), unknown_levels(study.policy, study.trials)
    waiting = waits["pending_count"] or waits["late_count"] or waits["abandoned_count"]
    moved, remarks = bool(changed["restarts"]), list(study.remarks.values())
    weighed = moved or changed["picture"]["kind"] != "none"
    quiet = [
        name
        for name, shown in (("failures", failed), ("waiting", waiting), ("changes", weighed), ("constraints", limits))
        if not shown
    ]
    return {
        "waits": waits if waiting else None, "changes": changed if weighed else None, "budgets": limits,
        "failures": failed, "said": bool(failed or waiting or weighed or limits or unknown or remarks),
        "quiet": ", ".join(quiet), "unknown": [each.sentence for each in unknown], "remarks": remarks,
    }  # fmt: skip


def _failures(study: Study) -> dict[str, Any] | None:
    """Returns how many trials have failed, of all and of the latest, and their most frequent reasons."""
    columns = columns_of(study)
    failed = columns.array("state") == STATES.index("failed")
    count, recent = int(failed.sum()), int(failed[-LATEST:].sum())
    if not count:
        return None
    sentence = f"{count:,} of {many(len(failed), 'trial')} failed, {recent} of the latest {min(LATEST, len(failed))}."
    reasons = Counter(columns.array("reason")[failed].tolist()).most_common()
    return {"sentence": sentence, "reasons": reasons[:REASONS], "others": len(reasons) - REASONS}
