"""Pending trials, late rewards, and the delays of rewards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...._utils.checks import many
from ....plots.scene import Axis, Panel, Points
from ....plots.ticks import thinned
from ....storage.record import Trial
from ....study.formatting import duration, unit, where
from ....study.late_fits import answer_delays
from ....study.study import Study
from ....study.waiting import set_at_deadline
from ...work.deadlines import Rule
from .pictures import Picture, drawn, each_short, empty, reward_text, said_with, table
from .status import short_context

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
        "sentence": _sentence(pending, late, too_late, seconds) + _of_silent(len(silent), rule),
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


def _sentence(pending: list[Trial], late: list[tuple[Trial, int]], too_late: set[int], seconds: Any) -> str:
    count = len(pending)
    waiting = f"{many(count, 'trial')} wait{'s' * (count == 1)} for an answer." if count else "No trial waits."
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
