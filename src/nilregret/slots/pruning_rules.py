"""Pruning rules: `Median`, `Halving` and `Predicted`.

| symbol | name | meaning | unit |
|---|---|---|---|
| s | `step` | step of the report that is judged | |
| y_s | | value after step s, to be maximised | reward |
| T | `length` | the full number of steps | |
| r_k | | rung k: step at which trials are compared | |
| eta | `factor` | ratio of two rungs | |

`Median` is the rule of Golovin, Solnik, Moitra, Kochanski, Karro & Sculley (2017, "Google Vizier", section 3.1) as most
programs have it. `Halving` is ASHA (Li, Jamieson, Rostamizadeh, Gonina, Hardt, Recht & Talwalkar 2020, "A system for
massively parallel hyperparameter tuning", algorithm 2). `Predicted` stops a trial that will probably not become the
best, as in Domhan, Springenberg & Hutter (2015, "Speeding up automatic hyperparameter optimization"). It predicts the
final value by a ridge regression. A paused trial goes on later, as in Swersky, Snoek & Adams (2014, "Freeze-thaw
Bayesian optimization").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, final

import numpy as np

from .._utils.checks import Array, flag, integer, number, settle
from .._utils.numerals import percent
from ..serialize import description
from .pruning import Course, Courses, Pruning

MOST_FINISHED = 10**6
LARGEST_FACTOR = 1e3


@final
@description(frozen=True, kw_only=True)
class Median(Pruning):
    """The median rule: a trial stops if its best value so far is below the median of the finished trials at its step.

    Attributes:
        finished: number of trials that finish before any is stopped.
        warmup: share of T before which no trial is stopped. It needs T, or a finished trial.

    >>> import nilregret as nr
    >>> study = nr.Study(nr.auto(nr.Space(x=nr.Float(0, 1))).using(pruning=nr.slots.Median(steps=9, finished=1)))
    >>> first, second = study.ask(count=2)
    >>> study.report(first, 1, 0.5), study.tell(first, 0.8).state
    (True, 'observed')
    >>> study.report(second, 1, 0.4)
    False
    """

    finished: int = 5
    warmup: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        why = "It is a share of the steps."
        settle(self, finished=integer("finished", self.finished, low=1, high=MOST_FINISHED))
        settle(self, warmup=number("warmup", self.warmup, low=0.0, high=1.0, why=why))

    def verdict(self, courses: Courses) -> Literal["go", "stop", "wait"]:
        """Returns "stop" below the median."""
        early = self.warmup > 0.0 and (courses.length is None or courses.step <= self.warmup * courses.length)
        median = None if early else self._median(courses)
        return "go" if median is None or float(courses.this.values.max()) >= median else "stop"

    def why(self, courses: Courses) -> str:
        """Returns in words why a trial is stopped."""
        median = self._median(courses)
        than = "" if median is None else f", and the median of finished trials there is {courses.told(median)}"
        return f"median: {courses.told(courses.value)} after step {courses.step}{than}"

    def _median(self, courses: Courses) -> float | None:
        # A trial that reports less often has no value that a later step would have made better.
        values = [value for course in courses.finished if (value := course.until(courses.step)) is not None]
        return float(np.median(values)) if len(values) >= self.finished else None


@final
@description(frozen=True, kw_only=True)
class Halving(Pruning):
    """Asynchronous successive halving: at each rung the best share 1 / eta of the trials goes on.

    With `trials=None` it is ASHA, with stops in place of waiting unless `pause` is True. By default it ends after the
    first trials of a study.

    Rungs are the steps r_k = `first` T eta^k below T. A trial that reaches a rung is compared with all trials that have
    reached it. Without T, and before a trial has finished, all go on.

    Attributes:
        factor: eta > 1.
        first: the first rung as a share of T. A late one loses fewer trials whose curves cross.
        pause: if True, a trial that is not among the best waits in place of being stopped. It goes on once it is, which
            is ASHA's promotion. A trial that waits costs no steps.
        trials: how many trials may be stopped: those of the first numbers. All later ones go on. None if all may be
            stopped. Once a model proposes trials near the best one, stops lose more than they save
            (docs/measured/steps.md).

    >>> import nilregret as nr
    >>> rule = nr.slots.Halving(steps=90, factor=3.0, first=0.1)
    >>> rule.rungs(90)
    [9, 27, 81]
    """

    factor: float = 3.0
    first: float = 0.3
    pause: bool = False
    trials: int | None = 12

    def __post_init__(self) -> None:
        super().__post_init__()
        why = "It is a share of the steps."
        if self.trials is not None:
            settle(self, trials=integer("trials", self.trials, low=1, high=MOST_FINISHED, why="These may be stopped."))
        settle(self, factor=number("factor", self.factor, low=1.0, open_low=True, high=LARGEST_FACTOR))
        settle(self, first=number("first", self.first, low=0.0, open_low=True, high=1.0, why=why))
        settle(self, pause=flag("pause", self.pause))

    def rungs(self, length: int) -> list[int]:
        """Returns the rungs of trials with so many steps, growing."""
        found, at = list[int](), max(self.first * length, 1.0)
        while round(at) < length:
            found.append(round(at))
            at = max(at * self.factor, found[-1] + 1.0)
        return found

    def verdict(self, courses: Courses) -> Literal["go", "stop", "wait"]:
        """Returns "go" between rungs, for the best share of trials at a rung, and for later trials."""
        rung = _crossed(courses, self.rungs)
        if rung is None or (self.trials is not None and courses.this.number >= self.trials):
            return "go"
        rivals = _at(courses.others, rung)
        allowed = max(1, math.floor((len(rivals) + 1) / self.factor))
        better = int(np.sum(rivals > courses.value))
        return "go" if better < allowed else "wait" if self.pause else "stop"

    def why(self, courses: Courses) -> str:
        """Returns in words why a trial is stopped."""
        rung = _crossed(courses, self.rungs)
        rivals = _at(courses.others, courses.step if rung is None else rung)
        place = int(np.sum(rivals > courses.value)) + 1
        among = f"place {place} of {len(rivals) + 1}"
        return f"halving: {courses.told(courses.value)} after step {courses.step}, {among}"


class _Features(NamedTuple):
    """Values of curves at a step, and their gain since half of it. All are clipped from below.

    Attributes:
        rows: of finished courses, `(n, 2)`.
        finals: of these, `(n,)`.
        this: of the course that is judged, `(2,)`.
    """

    rows: Array
    finals: Array
    this: Array


@final
@description(frozen=True, kw_only=True)
class Predicted(Pruning):
    """A rule that stops a trial whose final value will probably not beat the best finished one.

    At the rungs T, T / 2, T / 4, ... down to 5% of T, the final values of finished trials are regressed on y_s and
    y_s - y_(s/2), by ridge. The prediction is a Student t distribution of n - 3 degrees of freedom. A trial stops if it
    beats the best finished one with a probability below `level`.

    Attributes:
        level: probability, in (0, 1).
        finished: number of trials that finish before any is stopped, at least 5.

    >>> import nilregret as nr
    >>> nr.slots.Predicted(steps=40).rungs(40)
    [2, 5, 10, 20]
    """

    level: float = 0.05
    finished: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        why = "It is the probability below which a trial stops."
        settle(self, level=number("level", self.level, low=0.0, high=1.0, open_low=True, open_high=True, why=why))
        settle(self, finished=integer("finished", self.finished, low=5, high=MOST_FINISHED))

    def rungs(self, length: int) -> list[int]:
        """Returns the rungs of trials with so many steps, growing."""
        found, at = set[int](), length / 2.0
        while at >= max(1.0, EARLIEST * length):
            found.add(round(at))
            at /= 2.0
        return sorted(found)

    def verdict(self, courses: Courses) -> Literal["go", "stop", "wait"]:
        """Returns "stop" if the trial will probably not become the best."""
        rung = _crossed(courses, self.rungs)
        chance = None if rung is None else self.chance(courses)
        return "go" if chance is None or chance >= self.level else "stop"

    def why(self, courses: Courses) -> str:
        """Returns in words why a trial is stopped."""
        chance = self.chance(courses)
        so = "" if chance is None else f", so it would be the best with probability {percent(chance)}"
        return f"predicted: {courses.told(courses.value)} after step {courses.step}{so}"

    def chance(self, courses: Courses) -> float | None:
        """Returns the probability that the trial beats the best finished one, or None if too few have finished."""
        from scipy.special import stdtr

        features = _features(courses)
        found = self._predicted(features)
        if found is None:
            return None
        best = max(course.final for course in courses.finished if course.final is not None)
        return float(stdtr(len(features.finals) - 3, (found[0] - best) / found[1]))

    def expected(self, courses: Courses) -> tuple[float, float] | None:
        """Returns mean and scale of the final value, to be maximised, or None if too few trials have finished."""
        return self._predicted(_features(courses))

    def _predicted(self, features: _Features) -> tuple[float, float] | None:
        rows, finals, this = features
        count = len(finals)
        if count < self.finished:
            return None
        middle, center = _means(rows), math.fsum(finals) / count
        spread = [math.sqrt(math.fsum((rows[:, j] - middle[j]) ** 2) / count) or 1.0 for j in (0, 1)]
        z, at, y = (rows - middle) / spread, (this - middle) / spread, finals - center
        # In sums that do not depend on the processor, since decisions hang on what a stopped trial teaches.
        a, b, d = (math.fsum(z[:, i] * z[:, j]) for i, j in ((0, 0), (0, 1), (1, 1)))
        a, d = a + PENALTY, d + PENALTY
        p, q = (math.fsum(z[:, j] * y) for j in (0, 1))
        area = a * d - b * b
        slopes = (d * p - b * q) / area, (a * q - b * p) / area
        left = y - slopes[0] * z[:, 0] - slopes[1] * z[:, 1]
        variance = (math.fsum(left**2) + LEAST_SHARE * math.fsum(y**2)) / (count - 3)
        leverage = (d * at[0] ** 2 - 2.0 * b * at[0] * at[1] + a * at[1] ** 2) / area
        scale = math.sqrt(variance * (1.0 + 1.0 / count + leverage))
        mean = center + float(slopes[0] * at[0] + slopes[1] * at[1])
        return mean, max(scale, LEAST_SCALE * (1.0 + abs(float(finals.max()))))


def _means(rows: Array) -> Array:
    return np.array([math.fsum(column) / len(rows) for column in rows.T])


EARLIEST = 0.05  # The first rung, as a share of T.
PENALTY = 1.0  # Of the ridge, for standardised inputs.
LEAST_SHARE = 0.001  # Of the variance of the final values that no curve explains.
LEAST_SCALE = 1e-12
REACH = 4.0  # Values this many times further below the best than the median are clipped.


def _at(courses: Sequence[Course], step: int) -> Array:
    """Returns the values at a step of the courses that have reached it."""
    values = [course.at(step) for course in courses]
    return np.array([value for value in values if value is not None])


def _crossed(courses: Courses, rungs: Callable[[int], list[int]]) -> int | None:
    """Returns the rung that the new report has reached, the last if there are several, or None.

    Args:
        courses: with the new report.
        rungs: returns the rungs of trials with so many steps. Without T there are none.
    """
    before = int(courses.this.steps[-2]) if len(courses.this.steps) > 1 else -1
    known = () if courses.length is None else rungs(courses.length)
    return max((rung for rung in known if before < rung <= courses.step), default=None)


def _features(courses: Courses) -> _Features:
    """Returns what the regression at the step of the new report learns from."""
    step = courses.step
    known = [course for course in courses.finished if course.at(step) is not None and course.final is not None]
    finals = np.array([course.final for course in known], dtype=np.float64)
    if not known:
        return _Features(np.zeros((0, 2)), finals, np.zeros(2))
    floor = float(finals.max() - REACH * (finals.max() - np.median(finals)))
    clipped = [_at_and_gain(course, step, floor) for course in (*known, courses.this)]
    return _Features(np.array(clipped[:-1]), np.maximum(finals, floor), np.array(clipped[-1]))


def _at_and_gain(course: Course, step: int, floor: float) -> tuple[float, float]:
    at, half = (max(course.at(each) or 0.0, floor) for each in (step, max(step // 2, 0)))
    return at, at - half
