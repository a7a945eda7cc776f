"""The distribution of reward delays, estimated from the record.

| symbol | name | meaning | shape |
|---|---|---|---|
| D_i | `delays` | trials asked after an observed trial until its reward came | (n,) |
| A_i | `ages` | trials asked until now, or until the trial was dropped: a reward is seen if D_i <= A_i | (n,) |
| F | `law` | P(D <= age) of the rewards that come | (ages,) |
| q | | probability that a reward comes at all | scalar |

Only rewards that have come are seen, and of young trials only the quick ones. The delays are truncated from the right.
Lynden-Bell (1971) therefore runs time backwards. Of the rewards that could have been seen to take u trials or less (D_i
<= u <= A_i), the share that took exactly u estimates the reversed hazard P(D = u | D <= u). Then F(d) = prod_{u > d} (1
- that share).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Self, final

import numpy as np

from .._utils.checks import Array, IndexArray
from .._utils.copying import Copyable
from .._utils.delays import Delay
from ..storage.record import Trial

MEANS = np.geomspace(0.25, 4000.0, 72)  # means of geometric laws, in trials
TYPICAL = 10.0  # trials: prior median of the mean delay, right within a factor of e in two of three cases
WEIGHT = 5.0  # weight of the geometric law, as a number of rewards
LONGEST = 20_000  # trials: the longest delay in a table
SETTLED = 1e-3  # share of rewards still to come, below which silence is final
SELDOM = 50  # The law is estimated again when a fiftieth more trials were asked.
OPEN, APART = -1, -2  # codes of trials without a reward: it may come, or the delay is unknown


class Waits(ABC):
    """Run-time memory of how long rewards take, a function of the recorded trials.

    Attributes:
        evident: True if silence is known to be an observation.
    """

    evident: bool = False

    @abstractmethod
    def ask(self, trial: Trial) -> None:
        """Records that a trial was asked."""

    @abstractmethod
    def hear(self, trial: Trial) -> None:
        """Records the outcome of a trial."""

    @abstractmethod
    def forget(self, first: int) -> None:
        """Drops the trials before this one. Their later outcomes are ignored."""

    @abstractmethod
    def moving(self) -> list[int]:
        """Returns the numbers of the pending trials whose imputed value may have changed since the last call."""

    @abstractmethod
    def values(self, ages: IndexArray, means: Array, charges: Array, lowest: float) -> list[float | None]:
        """Returns the imputed values of pending trials, `(n,)`, each None for the variance alone.

        Args:
            ages: number of trials asked after each.
            means: posterior mean at each, in units of the target.
            charges: penalty for violations at each, as far as it is known. 0 without multipliers.
            lowest: smallest reward of the part (`Pending.lowest`), reward units.
        """

    def shares(self, known: Mapping[int, float]) -> list[tuple[int, float]]:  # noqa: ARG002
        """Returns pending trials that count as another share of an observation now, each with this share.

        Args:
            known: the shares that trials count as so far, by number.
        """
        return []

    def over(self, name: int, age: int) -> bool:  # noqa: ARG002
        """Returns whether a detector takes the silence of a pending trial for an observation, if it is one.

        Args:
            name: number of the trial.
            age: number of trials asked after it.
        """
        return age >= self.settled

    @property
    def settled(self) -> float:
        """Number of later trials after which a detector takes silence for an observation, if it is one."""
        return math.inf

    def worth(self, lowest: float) -> float:
        """Returns the reward that silence stands for, where `lowest` is the part's smallest (`Pending.lowest`)."""
        return lowest

    def answer(self) -> float | None:
        """Returns the average value of a reward, or None if it is unknown or silence is no observation."""
        return None

    @abstractmethod
    def copy(self) -> Self:
        """Returns an independent copy."""

    @abstractmethod
    def ages(self, numbers: list[int]) -> IndexArray:
        """Returns how many trials were asked after each of these pending trials, `(n,)`."""


@final
class Law:
    """A distribution function F at ages 0, 1, ..., which is 1 beyond the last age.

    Attributes:
        table: F, ascending, `(ages,)`.
        final_age: first age at which F >= 1 - SETTLED.
    """

    def __init__(self, table: Array) -> None:
        self.table = table
        self.final_age = self.reaches(1.0 - SETTLED)

    def reaches(self, share: float) -> int:
        """Returns the first age by which this share of the rewards has come."""
        return int(np.searchsorted(self.table, share))

    def later(self, ages: IndexArray) -> Array:
        """Returns 1 - F at ages `(n,)`."""
        return np.where(ages < len(self.table), 1.0 - self.table[np.minimum(ages, len(self.table) - 1)], 0.0)


def given_law(delay: Delay) -> Law:
    """Returns the law of a known delay."""
    last = 1
    while last < LONGEST and (delay.within(float(last)) or 0.0) < 1.0 - SETTLED:
        last *= 2
    return Law(np.array([delay.within(float(age)) or 0.0 for age in range(min(last, LONGEST) + 1)]))


def estimated_law(delays: IndexArray, ages: IndexArray) -> Law:
    """Returns Lynden-Bell's estimate with a geometric law as prior.

    The geometric law counts as a few more rewards. It is the estimate before the first reward.

    Args:
        delays: D_i of the rewards that came, `(n,)`.
        ages: A_i of the same trials, `(n,)`.
    """
    ratio = _geometric(delays, ages)
    longest = int(delays.max()) if len(delays) else 0
    top = min(max(longest + 1, math.ceil(math.log(0.1 * SETTLED) / math.log(ratio))), LONGEST)
    u = np.arange(top + 1)
    hazards = (1.0 - ratio) * ratio**u / (1.0 - ratio ** (u + 1))  # reversed hazards of the geometric law
    came = np.bincount(np.minimum(delays, top), minlength=top + 1)
    younger = np.concatenate([[0], np.cumsum(np.bincount(np.minimum(ages, top + 1), minlength=top + 2))[:top]])
    at_risk = np.cumsum(came) - younger  # number with D_i <= u <= A_i
    share = (WEIGHT * hazards + came) / (WEIGHT + at_risk)
    steps = np.log1p(-np.minimum(share[1:], 1.0 - 1e-12))
    return Law(np.exp(np.concatenate([np.cumsum(steps[::-1])[::-1], [0.0]])))  # F(d) = prod_{u > d} (1 - share)


def _geometric(delays: IndexArray, ages: IndexArray) -> float:
    """Returns the ratio mean / (1 + mean) of the geometric law with the largest posterior density.

    The likelihood is conditional on D_i <= A_i.
    """
    ratios = MEANS / (1.0 + MEANS)
    fit = -0.5 * np.log(MEANS / TYPICAL) ** 2 + len(delays) * np.log1p(-ratios) + delays.sum() * np.log(ratios)
    kinds, counts = np.unique(np.minimum(ages, LONGEST), return_counts=True)
    fit -= np.log1p(-(ratios[:, None] ** (kinds + 1.0))) @ counts
    return float(ratios[int(fit.argmax())])


@final
class Arrivals(Copyable):
    """The trials asked, and when their rewards came.

    Attributes:
        asked: number of trials so far.
        law: current law of delays.
        rewards: rewards in the order in which they came.
        open: place of each pending trial among all trials asked, by trial number.
    """

    OWNED = ("rewards", "open", "_numbers", "_delays", "_ends")

    def __init__(self, delay: Delay | None) -> None:
        self._given = None if delay is None else given_law(delay)
        self.asked = 0
        self.rewards: list[float] = []
        self.open: dict[int, int] = {}  # pending trials that count
        self._numbers: list[int] = []
        self._delays: list[int] = []
        self._ends: list[int] = []  # number of trials when each of the first trials was dropped
        self._due = 0  # number of trials at which the next law is due
        self.law = estimated_law(*self._answered()) if self._given is None else self._given

    def add(self, trial: Trial) -> None:
        """Records that a trial was asked."""
        self.open[trial.number] = self.asked
        self._numbers.append(trial.number)
        self._delays.append(OPEN)
        self.asked += 1

    def record(self, trial: Trial) -> None:
        """Records an outcome. A failure tells nothing about delays."""
        place = self.open.pop(trial.number, None)
        if place is not None:
            self._delays[place] = APART if trial.reward is None else self.asked - 1 - place
            if trial.reward is not None:
                self.rewards.append(trial.reward)

    def drop_before(self, first: int) -> None:
        """Drops the trials before this one, whose later rewards are ignored."""
        while len(self._ends) < self.asked and self._numbers[len(self._ends)] < first:
            self.open.pop(self._numbers[len(self._ends)], None)
            self._ends.append(self.asked)

    def refresh(self) -> bool:
        """Estimates a new law if one is due and returns True if it was."""
        if self.asked < self._due:
            return False
        self._due = self.asked + max(1, self.asked // SELDOM)
        if self._given is None:
            self.law = estimated_law(*self._answered())
        return True

    def _limits(self) -> IndexArray:
        """Returns A_i of all trials."""
        ends = np.full(self.asked, self.asked)
        ends[: len(self._ends)] = self._ends
        return np.asarray(ends - 1 - np.arange(self.asked))

    def _answered(self) -> tuple[IndexArray, IndexArray]:
        delays = np.array(self._delays, dtype=np.intp)
        return delays[delays >= 0], self._limits()[delays >= 0]

    def by_age(self, age: int, first: int) -> tuple[int, int]:
        """Returns how many of the trials before `first` have reached an age, and how many of these have a reward.

        Trials whose delay is unknown do not count.
        """
        delays = np.array(self._delays, dtype=np.intp)
        old = (np.minimum(self._limits(), first - 1 - np.arange(self.asked)) >= age) & (delays != APART)
        return int(old.sum()), int((delays[old] >= 0).sum())
