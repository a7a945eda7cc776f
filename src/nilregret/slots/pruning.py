"""Pruning: when a trial that reports its value after each step is stopped before its last step.

A running trial reports (step, value). After each report a rule says whether going on is worth it. A stopped trial never
is the best one. It teaches the model a value, which the rule's attribute `learned` says. The rules are in
`nilregret.slots.pruning_rules`.

| symbol | name | meaning | unit |
|---|---|---|---|
| s | `steps` | steps of a course so far, growing | |
| y_s | `values` | value after step s, to be maximised | reward |
| T | `length` | the full number of steps | |
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Literal, NamedTuple, Self, final

import numpy as np

from .._utils.checks import Array, integer, number, one_of, settle, shown
from .._utils.dataclass import dataclass
from .._utils.numerals import numeral
from .._utils.randomness import Draws
from ..errors import InvalidInput
from ..serialize import description
from .base import Part, Policy

LARGEST_STEP = 10**12
Learned = Literal["last", "predicted", "censored", "nothing"]
LEARNED = ("last", "predicted", "censored", "nothing")


class Course(NamedTuple):
    """The reports of a trial as a rule sees them.

    Attributes:
        number: of the trial.
        point: coordinates, `(d,)`.
        steps: of its reports, growing, `(k,)`.
        values: after these steps, to be maximised, `(k,)`. With `of` "best", the best so far.
        finished: True if the trial has its reward.
        stopped: True if it was stopped.
        final: its reward, to be maximised, or None if it is not finished.
    """

    number: int
    point: Array
    steps: Array
    values: Array
    finished: bool
    stopped: bool
    final: float | None = None

    def at(self, step: float) -> float | None:
        """Returns the value of the first report at or after a step. None if the course did not reach the step."""
        place = int(np.searchsorted(self.steps, step))
        return None if place == len(self.steps) else float(self.values[place])

    def until(self, step: float) -> float | None:
        """Returns the value of the last report up to a step. None before the first, or if it did not reach the step."""
        place = int(np.searchsorted(self.steps, step, side="right")) - 1
        return None if place < 0 or self.steps[-1] < step else float(self.values[place])


class Courses(NamedTuple):
    """Courses of a study at the moment when a trial has reported.

    Attributes:
        this: the course of the trial, with the new report.
        others: the courses of all other trials that have reported, by number.
        length: T, as given, else the last step of the longest finished trial. None if no trial has finished.
        sign: 1.0, or -1.0 if the values told are losses.
    """

    this: Course
    others: Sequence[Course]
    length: int | None
    sign: float = 1.0

    @classmethod
    def of(cls, rule: Pruning, this: Course, others: Sequence[Course], sign: float) -> Self:
        """Returns what a rule sees. The full number of steps is that of the rule, if it has one."""
        longest = (int(course.steps[-1]) for course in others if course.finished)
        return cls(this, others, max(longest, default=None) if rule.steps is None else rule.steps, sign)

    def told(self, value: float) -> str:
        """Returns a value in the units told, as text."""
        return numeral(0.0 + self.sign * value, 4)

    @property
    def step(self) -> int:
        """The step of the new report."""
        return int(self.this.steps[-1])

    @property
    def value(self) -> float:
        """The value that counts after the new report."""
        return float(self.this.values[-1])

    @property
    def finished(self) -> list[Course]:
        """The courses of finished trials."""
        return [course for course in self.others if course.finished]


@dataclass(frozen=True, kw_only=True)
class Pruning(Part):
    """A rule that says when a trial that reports is stopped.

    Attributes:
        steps: T, the full number of steps of a trial, or None if it is not known. A trial is not stopped after its last
            step, and steps beyond it are refused.
        of: which value of a curve counts: the "last" one, or the "best" so far.
        explore: share of stops that run on all the same, in [0, 1]. Which trials do follows from seed and number. They
            show what stopping misses (`Study.pruned`).
        learned: what the model learns of a stopped trial. "last" is its last value (see `of`). "predicted" is the final
            value that the rule expects, with its deviation. "censored" is the mean of this prediction below the best
            finished value. "nothing" leaves the trial out. A rule that predicts nothing teaches the last value.
    """

    steps: int | None = None
    of: Literal["last", "best"] = "last"
    explore: float = 0.0
    learned: Learned = "last"

    def __post_init__(self) -> None:
        if self.steps is not None:
            settle(self, steps=integer("steps", self.steps, low=1, high=LARGEST_STEP, why="It is the full length."))
        why = "It is a share of the stops."
        settle(self, of=one_of("of", self.of, ["last", "best"]), learned=one_of("learned", self.learned, LEARNED))
        settle(self, explore=number("explore", self.explore, low=0.0, high=1.0, why=why))

    @abstractmethod
    def verdict(self, courses: Courses) -> Literal["go", "stop", "wait"]:
        """Returns whether the trial goes on, stops, or waits until the rule says otherwise."""

    def why(self, courses: Courses) -> str:
        """Returns in words why a trial is stopped."""
        return f"{type(self).__name__}: {courses.told(courses.value)} after step {courses.step}"

    def expected(self, courses: Courses) -> tuple[float, float] | None:  # noqa: ARG002
        """Returns mean and standard deviation of the final value, to be maximised, or None if nothing is predicted."""
        return None

    @property
    def stops(self) -> bool:
        """True if a trial may be stopped."""
        return True

    def may_stop(self, step: int) -> bool:
        """Returns whether a trial may be stopped after a step, which is not its last one."""
        return self.stops and (self.steps is None or step < self.steps)

    def judged(self, courses: Courses, *, seed: int) -> Literal["go", "stop", "wait", "spared"]:
        """Returns the verdict, or "spared" for a trial that runs on all the same.

        Args:
            courses: with the new report.
            seed: of the trials that run on.

        Raises:
            InvalidInput: `verdict` returned something else.
        """
        verdict = self.verdict(courses)
        if not isinstance(verdict, str) or verdict not in ("go", "stop", "wait"):
            raise InvalidInput(
                f"`{type(self).__name__}.verdict` returned {shown(verdict)}, and nothing was recorded. It returns "
                "'go', 'stop' or 'wait'."
            )
        spared = verdict != "go" and self.explore > 0.0
        return (
            "spared" if spared and Draws(f"pruning {seed} {courses.this.number}").random() < self.explore else verdict
        )

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` for policies whose trials cannot be compared by one curve."""
        super().check(policy)
        several = "several objectives" if policy.objective_count > 1 else "contexts" if policy.context else None
        if self.stops and several:
            raise InvalidInput(
                f"`pruning` compares curves of one value under one context, and the policy has {several}.",
                advice="Leave `pruning` out: trials may report all the same if they have one objective.",
            )
        if self.stops and policy.switching is not None:
            raise InvalidInput("A trial that is played several times has no curve: leave `switching` out.")


@final
@description(frozen=True, kw_only=True)
class Never(Pruning):
    """The rule that stops no trial. Curves are on record all the same.

    >>> import nilregret as nr
    >>> study = nr.Study(nr.auto(nr.Space(x=nr.Float(0, 1))).using(pruning=nr.slots.Never(steps=3)))
    >>> trial = study.ask()
    >>> study.report(trial, 1, 0.2), study.report(trial, 2, 0.1)
    (True, True)
    """

    def verdict(self, courses: Courses) -> Literal["go", "stop", "wait"]:  # noqa: ARG002
        """Returns "go"."""
        return "go"

    @property
    def stops(self) -> bool:
        """False, because no trial is stopped."""
        return False
