"""Curves of a study as a pruning rule sees them, its verdicts, and what stopped trials teach and have missed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, final

import numpy as np

from .._utils.checks import LARGEST_REWARD, Array, many
from ..policy.policy import Policy
from ..slots.pruning import Course, Courses, Never, Pruning
from ..storage.record import Event
from ..storage.trial import NO_CURVE, Abandoned, Curve, Report, Trial, Verdict, was_asked
from .play_rewards import reason_of

HALF_LOG = 0.5 * math.log(2.0 * math.pi)
SMALL = 1e-12  # Least deviation of a prediction, as a share of the best value.


def pruning_of(policy: Any) -> Pruning:
    """Returns the pruning rule of a policy."""
    rule = policy.pruning if isinstance(policy, Policy) else None
    return Never() if rule is None else rule


@final
class _Growing:
    """Steps and values of a trial in arrays with room for more, so that a further report takes O(1)."""

    def __init__(self) -> None:
        self._curve = NO_CURVE
        self._steps: Array = np.empty(0, dtype=np.int64)
        self._values: Array = np.empty(0)

    def arrays(self, curve: Curve, sign: float, *, best: bool) -> tuple[Any, Array]:
        """Returns steps and values to be maximised of a curve, `(k,)` each, read-only."""
        known, count = len(self._curve), len(curve)
        both = min(known, count)
        if both and self._curve[both - 1][:-1] != curve[both - 1][:-1]:  # The known one was rolled back.
            self._curve, known = NO_CURVE, 0
            self._steps, self._values = self._steps[:0], self._values[:0]
        if count > len(self._steps):
            room = np.zeros(2 * count)
            self._steps = np.concatenate([self._steps[:known], room.astype(np.int64)])
            self._values = np.concatenate([self._values[:known], room])
        for i in range(known, count):
            value = sign * curve[i].value
            self._steps[i], self._values[i] = curve[i].step, max(value, self._values[i - 1]) if best and i else value
        self._curve = curve if count > known else self._curve
        found = self._steps[:count], self._values[:count]
        for array in found:
            array.flags.writeable = False
        return found


@final
class Curves:
    """The curves of a study as courses. Each is made once for each of its reports.

    Args:
        rule: the pruning rule.
        goal: of the study.
    """

    def __init__(self, rule: Pruning, goal: str) -> None:
        self.rule, self.sign = rule, 1.0 if goal == "maximize" else -1.0
        self._known: dict[int, tuple[Trial, Course]] = {}
        self._growing: dict[int, _Growing] = {}

    def course(self, trial: Trial) -> Course:
        """Returns the course of a trial that has reported."""
        known, course = self._known.get(trial.number, (None, None))
        if known is trial and course is not None:
            return course
        growing = self._growing.setdefault(trial.number, _Growing())
        steps, values = growing.arrays(trial.curve, self.sign, best=self.rule.of == "best")
        course = Course(
            trial.number, trial.point, steps, values, trial.state == "observed", trial.state == "stopped",
            None if trial.reward is None else self.sign * trial.reward,
        )  # fmt: skip
        self._known[trial.number] = trial, course
        return course

    def courses(self, trial: Trial, trials: Iterable[Trial]) -> Courses:
        """Returns the course of a trial and those of all others that have reported."""
        others = [self.course(other) for other in trials if other.curve and other.number != trial.number]
        return Courses.of(self.rule, self.course(trial), others, self.sign)

    def verdict(self, trial: Trial, trials: Iterable[Trial], *, seed: int) -> Verdict:
        """Returns the verdict on a trial after its last report.

        Args:
            trial: with its last report.
            trials: all trials. That of the same number is ignored.
            seed: of the study.
        """
        if not self.rule.may_stop(trial.curve[-1].step):
            return "go"
        return self.rule.judged(self.courses(trial, trials), seed=seed)

    def why(self, trial: Trial, trials: Iterable[Trial]) -> str:
        """Returns in words why the rule stops a trial."""
        return reason_of("was stopped", self.rule.why(self.courses(trial, trials)))

    def value(self, trial: Trial) -> float:
        """Returns the value of a curve that counts, in the units told."""
        return 0.0 + self.sign * float(self.course(trial).values[-1])

    def taught(self, event: Event, trials: Sequence[Trial]) -> Event:
        """Returns the event that a stopped trial is for the state of the policy.

        Args:
            event: of a stopped trial, in the units told.
            trials: all trials. Of these, what was known at the event is used.
        """
        order, _, trial = event
        learned = self.rule.learned
        if learned == "nothing":
            left = Abandoned(order, trial.told_at or trial.asked_at, trial.reason or "")
            return Event(order, "abandoned", trial.asked()._replace(state="abandoned", abandoned=left))
        value, std = self.value(trial), None
        if learned != "last":
            known = [other.as_of(order) for other in trials if other.curve and other.asked_order < order]
            courses = self.courses(trial, known)
            expected = self.rule.expected(courses)
            if expected is not None and all(map(math.isfinite, expected)) and expected[1] >= 0.0:
                mean, std = expected
                if learned == "censored":
                    finals = [course.final for course in courses.finished if course.final is not None]
                    mean, std = _below(mean, std, max(finals, default=None)), None
                value = 0.0 + self.sign * float(np.clip(mean, -LARGEST_REWARD, LARGEST_REWARD))
        told = trial._replace(state="observed", reward=value, reason=None, std=std)
        return Event(order, "told", told)


def _below(mean: float, std: float, level: float | None) -> float:
    """Returns the mean of a normal distribution below a level."""
    if level is None:
        return mean
    from scipy.special import log_ndtr  # Only this needs it.

    z = (level - mean) / max(std, SMALL * max(abs(level), 1.0))
    return min(mean - std * math.exp(-0.5 * z * z - HALF_LOG - float(log_ndtr(z))), level)


@final
class Pruned(NamedTuple):
    """Counts of trials that a pruning rule stopped, or would have stopped.

    Attributes:
        stopped: number of stopped trials.
        spared: number of trials that ran on although the rule said to stop (see `nilregret.slots.Pruning.explore`).
        finished: number of the spared trials that have their reward.
        missed: number of these whose reward was better than all rewards told before.

    >>> import nilregret as nr
    >>> found = nr.study.pruning.Pruned(stopped=40, spared=5, finished=4, missed=1)
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
        if not was_asked(trial):
            continue
        for report in trial.curve:
            then = roster.as_of(report.order)
            known = [then.moved(each.as_of(report.order)) for each in record if each.asked_order < report.order]
            if curves.verdict(known[trial.number], known, seed=study.seed) != report.verdict:
                found.append(report)
    return found
