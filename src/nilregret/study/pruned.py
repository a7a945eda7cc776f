"""Counts of what stopping trials early has missed, and verdicts of pruning rules that are given again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, final

from .._utils.checks import many
from ..storage.trial import Report, Trial
from .pruning import Curves, pruning_of


@final
class Pruned(NamedTuple):
    """Counts of trials that a pruning rule stopped, or would have stopped.

    Attributes:
        stopped: number of stopped trials.
        spared: number of trials that ran on although the rule said to stop (see `nilregret.slots.Pruning.explore`).
        finished: number of the spared trials that have their reward.
        missed: number of these whose reward was better than all rewards told before.

    >>> import nilregret as nr
    >>> found = nr.study.pruned.Pruned(stopped=40, spared=5, finished=4, missed=1)
    >>> str(found)[-38:], found.regretted
    ('10 of 40 stops would have been better.', 10.0)
    """

    stopped: int
    spared: int
    finished: int
    missed: int

    @property
    def regretted(self) -> float | None:
        """Expected number of stopped trials that would have become the best so far. None if no spared one finished."""
        return self.stopped * self.missed / self.finished if self.finished else None

    def __str__(self) -> str:
        were = f"{many(self.stopped, 'trial')} {'was' if self.stopped == 1 else 'were'} stopped."
        if self.regretted is None:
            why = "None ran on" if not self.spared else f"{self.spared} more ran on, and none of them has finished"
            return f"{were} {why}, so what stopping misses is not known (see `explore`)."
        return (
            f"{were} {self.spared} more ran on to measure what that misses: {self.finished} finished, and "
            f"{self.missed} became the best so far. By that share, {round(self.regretted)} of {self.stopped} stops "
            "would have been better."
        )


def pruned_of(trials: Iterable[Trial], sign: float) -> Pruned:
    """Returns the counts of trials.

    Args:
        trials: of a study.
        sign: 1.0, or -1.0 if the rewards are losses.
    """
    told = [(trial.as_corrected().told_order or 0, trial) for trial in trials if not trial.open]
    stopped = sum(trial.state == "stopped" for _, trial in told)
    spared = sum(_is_spared(trial) for trial in trials)
    best, finished, missed = -float("inf"), 0, 0
    for _, trial in sorted(told, key=lambda each: each[0]):
        if trial.reward is None or trial.feasible is False:
            continue
        if _is_spared(trial):
            finished, missed = finished + 1, missed + (sign * trial.reward > best)
        best = max(best, sign * trial.reward)
    return Pruned(stopped, spared, finished, missed)


def _is_spared(trial: Trial) -> bool:
    return any(report.verdict == "spared" for report in trial.curve)


def retraced(study: Any) -> list[Report]:
    """Returns the reports on record whose verdict the rule does not give again, at the record of their time.

    Another machine or version may compute another verdict. The record stands all the same. Reports of trials that were
    added had no verdict. The cost is a verdict for each report.

    Args:
        study: a `nilregret.study.Study`.
    """
    replica, found = study.replica, list[Report]()
    with replica.lock:
        replica.sync()
        record, roster = replica.record[:], replica.roster
    curves = Curves(pruning_of(study.policy), study.goals[0])
    for trial in record:
        if trial.as_corrected().told_order == trial.asked_order:
            continue
        for report in trial.curve:
            then = roster.as_of(report.order)
            known = [then.moved(each.as_of(report.order)) for each in record if each.asked_order < report.order]
            if curves.verdict(known[trial.number], known, seed=study.seed) != report.verdict:
                found.append(report)
    return found
