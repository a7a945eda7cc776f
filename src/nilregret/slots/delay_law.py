"""How long answers take, and whether they come at all, learned from the record.

| symbol | name | meaning | shape |
|---|---|---|---|
| D_i | `delays` | questions asked after one that is answered, until it was | (n,) |
| A_i | `ages` | questions until now, or until it was forgotten: an answer is seen where D_i <= A_i | (n,) |
| F | `law` | P(D <= age), of the answers that come | (ages,) |
| q | | probability that an answer comes at all | scalar |

Only answers that have come are seen, and of young questions only the quick ones: the delays are truncated from the
right. Lynden-Bell (1971) runs time backwards: of the answers that could have been seen to take u questions or less
(D_i <= u <= A_i), the share that took exactly u estimates the reversed hazard P(D = u | D <= u), and
F(d) = prod_{u > d} (1 - that share).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Self, final

import numpy as np

from .._utils.checks import Array, IndexArray
from .._utils.copying import Copyable
from .._utils.delays import Delay
from ..storage.record import Trial

MEANS = np.geomspace(0.25, 4000.0, 72)  # of geometric laws, in questions
TYPICAL = 10.0  # questions: the mean of most delays, before any is seen; within a factor of e, for two in three
WEIGHT = 5.0  # answers that the geometric law counts for, beside those that were seen
LONGEST = 20_000  # questions: no law is followed further
SETTLED = 1e-3  # share of answers that are still to come, below which silence is final
SELDOM = 50  # a law is made anew whenever a fiftieth more has been asked
OPEN, APART = -1, -2  # of questions without an answer: it may come; nothing is known of it


class Waits(ABC):
    """What a part remembers of a run about how long answers take: a function of what it was told.

    Attributes:
        evident: whether silence is an answer, as far as is known.
    """

    evident: bool = False

    @abstractmethod
    def ask(self, trial: Trial) -> None:
        """A question has been asked."""

    @abstractmethod
    def hear(self, trial: Trial) -> None:
        """Its outcome has come in."""

    @abstractmethod
    def forget(self, first: int) -> None:
        """Trials before this one count no more, whatever comes in later."""

    @abstractmethod
    def moving(self) -> list[int]:
        """The numbers of the unanswered trials that may count as something else than when this was last called."""

    @abstractmethod
    def values(self, ages: IndexArray, means: Array, charges: Array, lowest: float) -> list[float | None]:
        """What unanswered trials count as, `(n,)`; None for the variance alone.

        Args:
            ages: questions asked after each.
            means: posterior mean at each, units of what is learned.
            charges: what is charged for violations at each, as far as is known; 0 without multipliers.
            lowest: of the part (`Pending.lowest`), reward units.
        """

    @property
    def settled(self) -> float:
        """Questions after which a memory's watch takes silence for an answer, where it is one."""
        return math.inf

    def worth(self, lowest: float) -> float:
        """What silence is worth, reward units; `lowest` is that of the part (`Pending.lowest`)."""
        return lowest

    def answer(self) -> float | None:
        """What an answer is worth on average, reward units; None where nobody knows, or silence is no answer."""
        return None

    @abstractmethod
    def copy(self) -> Self:
        """An independent one in the same state."""

    @abstractmethod
    def ages(self, numbers: list[int]) -> IndexArray:
        """How many questions were asked after these unanswered trials, `(n,)`."""


@final
class Law:
    """F at ages 0, 1, ...; 1 beyond the last of them.

    Attributes:
        table: F, ascending, `(ages,)`.
        settled: the first age from which on F >= 1 - SETTLED.
    """

    def __init__(self, table: Array) -> None:
        self.table = table
        self.settled = self.reaches(1.0 - SETTLED)

    def reaches(self, share: float) -> int:
        """The first age by which this share of the answers has come."""
        return int(np.searchsorted(self.table, share))

    def later(self, ages: IndexArray) -> Array:
        """1 - F, at ages `(n,)`."""
        return np.where(ages < len(self.table), 1.0 - self.table[np.minimum(ages, len(self.table) - 1)], 0.0)


def given_law(delay: Delay) -> Law:
    """The law of a delay that is known."""
    last = 1
    while last < LONGEST and (delay.within(float(last)) or 0.0) < 1.0 - SETTLED:
        last *= 2
    return Law(np.array([delay.within(float(age)) or 0.0 for age in range(min(last, LONGEST) + 1)]))


def estimated_law(delays: IndexArray, ages: IndexArray) -> Law:
    """Lynden-Bell's estimate, in which a geometric law counts for a few answers more: alone before any came.

    Args:
        delays: D_i `(n,)`, of the answers that came.
        ages: A_i `(n,)`, of the same questions.
    """
    ratio = _geometric(delays, ages)
    longest = int(delays.max()) if len(delays) else 0
    top = min(max(longest + 1, math.ceil(math.log(0.1 * SETTLED) / math.log(ratio))), LONGEST)
    u = np.arange(top + 1)
    hazards = (1.0 - ratio) * ratio**u / (1.0 - ratio ** (u + 1))  # of the geometric law, reversed
    came = np.bincount(np.minimum(delays, top), minlength=top + 1)
    younger = np.concatenate([[0], np.cumsum(np.bincount(np.minimum(ages, top + 1), minlength=top + 2))[:top]])
    at_risk = np.cumsum(came) - younger  # of D_i <= u those with u <= A_i
    share = (WEIGHT * hazards + came) / (WEIGHT + at_risk)
    steps = np.log1p(-np.minimum(share[1:], 1.0 - 1e-12))
    return Law(np.exp(np.concatenate([np.cumsum(steps[::-1])[::-1], [0.0]])))  # F(d) = prod_{u > d} (1 - share)


def _geometric(delays: IndexArray, ages: IndexArray) -> float:
    """The ratio mean / (1 + mean) of the likeliest geometric law, given that D_i <= A_i, under a prior for the mean."""
    ratios = MEANS / (1.0 + MEANS)
    fit = -0.5 * np.log(MEANS / TYPICAL) ** 2 + len(delays) * np.log1p(-ratios) + delays.sum() * np.log(ratios)
    kinds, counts = np.unique(np.minimum(ages, LONGEST), return_counts=True)
    fit -= np.log1p(-(ratios[:, None] ** (kinds + 1.0))) @ counts
    return float(ratios[int(fit.argmax())])


@final
class Arrivals(Copyable):
    """Which questions were answered, and when.

    Attributes:
        asked: questions so far.
        law: in force.
        told: the rewards that came, in the order in which they came.
    """

    OWNED = ("told", "open", "_numbers", "_delays", "_ends")

    def __init__(self, delay: Delay | None) -> None:
        self._given = None if delay is None else given_law(delay)
        self.asked = 0
        self.told: list[float] = []
        self.open: dict[int, int] = {}  # unanswered trials that count, and the place of each among the questions
        self._numbers: list[int] = []
        self._delays: list[int] = []
        self._ends: list[int] = []  # of the first questions, which are forgotten: how many there were by then
        self._due = 0  # questions, when a new law is made
        self.law = estimated_law(*self._answered()) if self._given is None else self._given

    def ask(self, trial: Trial) -> None:
        """A question."""
        self.open[trial.number] = self.asked
        self._numbers.append(trial.number)
        self._delays.append(OPEN)
        self.asked += 1

    def hear(self, trial: Trial) -> None:
        """An outcome; a failure tells nothing of delays."""
        place = self.open.pop(trial.number, None)
        if place is not None:
            self._delays[place] = APART if trial.reward is None else self.asked - 1 - place
            if trial.reward is not None:
                self.told.append(trial.reward)

    def forget(self, first: int) -> None:
        """What was asked before this trial is seen to be answered no more."""
        while len(self._ends) < self.asked and self._numbers[len(self._ends)] < first:
            self.open.pop(self._numbers[len(self._ends)], None)
            self._ends.append(self.asked)

    def refresh(self) -> bool:
        """Make a new law, where one is due; says whether it was."""
        if self.asked < self._due:
            return False
        self._due = self.asked + max(1, self.asked // SELDOM)
        if self._given is None:
            self.law = estimated_law(*self._answered())
        return True

    def _limits(self) -> IndexArray:
        """A_i of all questions."""
        ends = np.full(self.asked, self.asked)
        ends[: len(self._ends)] = self._ends
        return np.asarray(ends - 1 - np.arange(self.asked))

    def _answered(self) -> tuple[IndexArray, IndexArray]:
        delays = np.array(self._delays, dtype=np.intp)
        return delays[delays >= 0], self._limits()[delays >= 0]

    def by_age(self, age: int, first: int) -> tuple[int, int]:
        """How many questions had waited as long as this, or could have, after so many; and how many were answered."""
        delays = np.array(self._delays, dtype=np.intp)
        old = (np.minimum(self._limits(), first - 1 - np.arange(self.asked)) >= age) & (delays != APART)
        return int(old.sum()), int((delays[old] >= 0).sum())
