"""Checks of reports that come from a storage: each could have been made by its trial, with this verdict.

A rule is not asked again, since a later version or another machine may compute another verdict. Refused is what no
version of the rule could have said. `nilregret.study.pruning.retraced` asks the rule again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

from .._utils.checks import LARGEST_REWARD
from ..slots.pruning import LARGEST_STEP, Pruning
from ..storage.record import Record
from ..storage.trial import NO_CURVE, Curve, Report, Trial

Refuse = Callable[[Trial, str], NoReturn]


def is_known(again: Sequence[Report], known: Record) -> bool:
    """Returns whether reports that were read again are the last ones of their trial in the record."""
    return list(again) == list(_known_curve(again[0].trial, known)[-len(again) :])


def check_reports(
    rule: Pruning, fresh: Sequence[Trial], reports: Sequence[Report], known: Record, refuse: Refuse,
    fail: Callable[[str], NoReturn],
) -> None:  # fmt: skip
    """Refuses reports that their trials could not have made, and stopped trials without any.

    Args:
        rule: of the policy.
        fresh: trials that are new or changed.
        reports: new ones, in order.
        known: the record so far.
        refuse: raises the error that a trial has been damaged.
        fail: raises the error that the storage has been damaged.
    """
    trials = {trial.number: trial for trial in fresh}
    last: dict[int, Report] = {}
    for report in reports:
        number = report.trial
        if number not in trials and not 0 <= number < len(known):
            fail(f"has a report of trial {number}, which is not there")
        trial = trials.get(number) or known[number]
        before = last.get(number) or next(iter(_known_curve(number, known)[-1:]), None)
        if why := _wrong(rule, trial, report, before):
            refuse(trial, f"event {report.order} reports {report.value!r} at step {report.step}, {why}")
        last[number] = report
    for trial in fresh:
        stopped = trial.state == "stopped" or any(answer.stopped for answer in trial.corrected)
        if stopped and trial.number not in last and not _known_curve(trial.number, known):
            refuse(trial, "it was stopped, and reported nothing")


def _known_curve(number: int, known: Record) -> Curve:
    return known[number].curve if 0 <= number < len(known) else NO_CURVE


def _wrong(rule: Pruning, trial: Trial, report: Report, before: Report | None) -> str | None:
    """Returns why a report cannot be right, or None."""
    asked, told, step, verdict = trial.asked_order, trial.as_corrected().told_order, report.step, report.verdict
    if report.order <= asked or (told is not None and asked != told < report.order):
        return f"and the trial ran from event {asked} to {told}"
    if before is not None and before.step >= step:
        return f"after its step {before.step}"
    if abs(report.value) > LARGEST_REWARD:
        return "which no trial of this study can report"
    last = LARGEST_STEP if rule.steps is None else rule.steps
    if not 0 <= step <= last:
        return f"and a trial has {last}"
    possible = rule.stops and (rule.steps is None or step < last) and not (verdict == "spared" and not rule.explore)
    return None if verdict == "go" or possible else f"with the verdict {verdict!r}, which {rule} does not give there"
