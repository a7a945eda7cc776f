"""Pending trials where silence may mean no: their imputed value falls with time.

| symbol | name | meaning | shape |
|---|---|---|---|
| s | `minimum` | value of a trial whose reward never comes, reward units | scalar |
| v | `answer` | average value of a reward that comes, reward units | scalar |
| mu | `means` | posterior mean of the value of a trial | (n,) |
| q | | probability that a reward ever comes: mu = s + q (v - s) | (n,) |
| F | `law` | P(delay <= age) of the rewards that come | |
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Self, final

import numpy as np

from .._utils.checks import LARGEST_REWARD, Array, IndexArray, number, settle, shown
from .._utils.copying import Copyable
from .._utils.delays import Delay
from .._utils.serialize import described
from ..errors import InvalidInput
from ..storage.record import Trial
from .delay_law import Arrivals, Waits
from .pending import ImputedValue, Pending, PendingInfo

LEAST, MOST = 0.02, 0.98  # limits of q, so that no point is given up or trusted forever
FEWEST = 5  # smallest number of rewards for a statement about silence
SURE = 0.99  # share of rewards that have come by the age at which a detector takes silence for a no
OLD = 0.995  # share of rewards that have come by the age at which a trial is old
EVENTUALLY = 0.95  # smallest share of old trials with a reward, if delays have nothing to do with rewards
EVIDENCE = math.log(100.0)  # nats of evidence against that share, from which on silence means no
ALIKE = 0.25  # share of v - s: rewards within it of v count as the same yes
FEW, BYCHANCE = 0.01, 2  # share of rewards that may differ by more, and a number on top of it


@dataclass(frozen=True, kw_only=True)
class _Silent(Pending):
    """Base class of the two parts.

    Attributes:
        minimum: s, the value of a trial whose reward never comes, reward units. None takes the smallest reward so far
            (the prior mean before the first). While all rewards are the same, a yes, None takes 0 if that is less.
        answer: v, the value of a reward, reward units. None takes the average of those that came.
        delay: known distribution of the delays of the rewards that come, a part of
            `nilregret.environments.delays`. None estimates it from the record.
    """

    minimum: float | None = 0.0
    answer: float | None = None
    delay: Delay | None = None

    moves: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("minimum", "answer"):
            if getattr(self, name) is not None:
                value = number(name, getattr(self, name), low=-LARGEST_REWARD, high=LARGEST_REWARD)
                settle(self, **{name: value})
        if self.delay is not None and (not isinstance(self.delay, Delay) or self.delay.within(math.inf) != 1.0):
            raise InvalidInput(
                f"`delay` is {shown(self.delay)}: it must be the law of the delays, in questions, of the answers that "
                "do come, or be left out to have it learned from the record.",
                advice="Such a law is `nilregret.environments.delays.GeometricDelay(10.0)`.",
            )

    def lowest(self, least: float | None, prior_mean: float) -> float:
        """Returns the value of silence."""
        return super().lowest(least, prior_mean) if self.minimum is None else self.minimum

    def turned(self) -> Self:
        """Returns the part with both values negated."""
        return replace(self, minimum=_turned(self.minimum), answer=_turned(self.answer))

    @abstractmethod
    def waits(self) -> Silence:
        """Returns a fresh memory of delays."""

    def count_as(self, trial: Trial, known: PendingInfo) -> ImputedValue:  # noqa: ARG002
        """Returns the current expected value of the trial."""
        if known.waits is None:
            raise InvalidInput(f"`{type(self).__name__}` counts trials by what it remembers of the run (`waits`).")
        ages, means, charges = np.array([known.age()]), np.array([known.mean()]), np.array([known.charge()])
        return ImputedValue(known.waits.values(ages, means, charges, known.lowest)[0])


@final
@described
@dataclass(frozen=True, kw_only=True)
class Imputed(_Silent):
    """Imputation by the expected value so far, where silence means no: conversions, clicks, purchases.

    The reward of a trial comes with probability q, after a delay with the law F, and is then v. Otherwise the trial is
    worth s, and no reward ever comes. After silence for `a` trials its expected value is

        E[y | no reward by age a] = s + (v - s) q (1 - F(a)) / (1 - q F(a)),    q = (mu - s) / (v - s),

    with mu the posterior mean of the round before, which includes the imputed values (v = 1 and s = 0 for conversions).
    The value begins as the posterior mean and ends as s, once all rewards have come that will. No window is needed. F
    is estimated from the record. Before the first reward a trial counts as the posterior mean. Nothing is proved.

    Attributes:
        minimum, answer, delay: s, v and the law F.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ucb(arms, kernel, noise=0.1, pending=nr.slots.Imputed(minimum=0.0))
    >>> len(nr.Study(policy).ask(count=3))
    3
    """

    def waits(self) -> Silence:
        """Returns a fresh memory of delays, under which silence always means no."""
        return Silence(self, always=True)


@final
@described
@dataclass(frozen=True, kw_only=True)
class LateOrNever(_Silent):
    """`Hallucinated` until it is evident that some rewards never come and that these are the bad ones, then `Imputed`.

    If delays have nothing to do with rewards, the reward of every old trial has come. A trial is old once 99.5% of the
    rewards that come would have come, by the estimated law of delays. Silence means no if both of these hold:

    - Of n old trials at some time too few, k, had a reward. The likelihood of k under a uniform probability of a reward
      was at least 100 times that under 0.95. If the probability is 0.95 or more at all points, this ever happens with
      probability at most about 0.01 (Ville's inequality, approximate since the law is estimated). Delays of two kinds,
      of which the longer has not been seen yet, look like silence. If these old rewards come after all, so that they
      are not too few any more, the test is repeated.
    - All rewards are the same yes. Except for two, and one in a hundred, they lie within a quarter of v - s of v. If
      rewards differ, they order the points by themselves, and missing ones may merely be lost. Use `Imputed` if silence
      means no there.

    Nothing is decided before five rewards have come. The decision is a function of the record alone. Nothing is proved.

    Attributes:
        minimum, answer, delay: as in `Imputed`.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ucb(arms, kernel, noise=0.1, pending=nr.slots.LateOrNever())
    >>> len(nr.Study(policy).ask(count=3))
    3
    """

    hallucinates: ClassVar[bool] = True

    def waits(self) -> Silence:
        """Returns a fresh memory of delays, which tests whether silence means no."""
        return Silence(self, always=False)


@final
class Silence(Copyable, Waits):
    """Statistics of the rewards that came in one run.

    Attributes:
        evident: True if silence is known to mean no.
    """

    OWNED = ("_arrivals",)

    def __init__(self, part: _Silent, *, always: bool) -> None:
        self._part, self._always = part, always
        self._arrivals = Arrivals(part.delay)
        self._sum = 0.0  # sum of the rewards
        self._least, self._most = math.inf, -math.inf
        self._reach: float = 0  # age from which on trials were final at the last call of `moving`
        self._last = 0  # number of trials at that call
        # An age, and the number of first trials of which too few have a reward.
        self._tested: tuple[int, int] | None = None
        self.evident = always

    def ask(self, trial: Trial) -> None:
        """Records that a trial was asked."""
        self._arrivals.add(trial)

    def hear(self, trial: Trial) -> None:
        """Records a reward or a failure."""
        before = len(self._arrivals.rewards)
        self._arrivals.record(trial)
        for reward in self._arrivals.rewards[before:]:
            self._sum += reward
            if self._part.minimum is None and not self._least <= reward <= self._most:
                self._reach = math.inf  # The values of all trials change.
            self._least, self._most = min(self._least, reward), max(self._most, reward)

    def forget(self, first: int) -> None:
        """Drops the trials before this one."""
        self._arrivals.drop_before(first)

    def moving(self) -> list[int]:
        """Returns the pending trials that are not final, and those that were not final at the last call."""
        arrivals = self._arrivals
        if arrivals.refresh() and not self._always and (evident := self._is_evident()) is not self.evident:
            self.evident, self._reach = evident, math.inf
        reach = max(self._reach, arrivals.law.final_age) + arrivals.asked - self._last
        self._last, self._reach = arrivals.asked, arrivals.law.final_age if self.evident else 0
        found = []
        for trial, place in reversed(arrivals.open.items()):
            if arrivals.asked - 1 - place > reach:
                break
            found.append(trial)
        return found[::-1]

    @property
    def settled(self) -> float:
        """Age by which 99% of the rewards that come have come, after which a detector takes silence for a no."""
        part, arrivals = self._part, self._arrivals
        fewest = FEWEST if part.delay is None else int(part.minimum is None)
        return arrivals.law.reaches(SURE) if len(arrivals.rewards) >= fewest else math.inf

    def ages(self, numbers: list[int]) -> IndexArray:
        """Returns how many trials were asked after each of these pending trials, `(n,)`."""
        return self._arrivals.asked - 1 - np.array([self._arrivals.open[number] for number in numbers], dtype=np.intp)

    def values(self, ages: IndexArray, means: Array, charges: Array, lowest: float) -> list[float | None]:
        """Returns E[y | no reward by this age] of each pending trial."""
        if not self.evident:
            return [None] * len(ages)
        count = len(self._arrivals.rewards)
        if self._part.answer is None and not count:
            return means.tolist()  # type: ignore[no-any-return]  # an array of floats
        low = self.worth(lowest) - charges
        rise = (self._sum / count if self._part.answer is None else self._part.answer) - self.worth(lowest)
        if rise == 0.0:
            return low.tolist()  # type: ignore[no-any-return]
        q = np.clip((means - low) / rise, LEAST, MOST)
        later = self._arrivals.law.later(ages)
        silent = low + rise * q * later / (1.0 - q * (1.0 - later))
        return np.where(ages >= self._arrivals.law.final_age, low, silent).tolist()  # type: ignore[no-any-return]

    def worth(self, lowest: float) -> float:
        """Returns the value of silence.

        The value is at most 0 if all rewards are the same yes and no minimum is given.
        """
        return min(lowest, 0.0) if self._part.minimum is None and self._least == self._most else lowest

    def answer(self) -> float | None:
        """Returns the given value of a reward, or the average of those that came."""
        if not self.evident or self._part.answer is not None:
            return self._part.answer if self.evident else None
        count = len(self._arrivals.rewards)
        return self._sum / count if count else None

    def _is_evident(self) -> bool:
        """Returns True if too few old trials had a reward at some time, and all rewards are the same yes."""
        arrivals = self._arrivals
        count = len(arrivals.rewards)
        if count < FEWEST:
            return False
        if self._tested is None or not _too_few(*arrivals.by_age(*self._tested)):  # these rewards may still come
            age = arrivals.law.reaches(OLD)
            self._tested = (age, arrivals.asked) if _too_few(*arrivals.by_age(age, arrivals.asked)) else None
        low = self.worth(self._least if self._part.minimum is None else self._part.minimum)
        yes = self._sum / count if self._part.answer is None else self._part.answer
        others = sum(abs(reward - yes) > ALIKE * abs(yes - low) for reward in arrivals.rewards)
        return self._tested is not None and others <= BYCHANCE + FEW * count


def _turned(value: float | None) -> float | None:
    return None if value is None else 0.0 - value


def _too_few(n: int, k: int) -> bool:
    """Returns True if k rewards of n trials are too few for `EVENTUALLY`, by a ratio of likelihoods."""
    mixture = math.lgamma(k + 1) + math.lgamma(n - k + 1) - math.lgamma(n + 2)  # log B(k + 1, n - k + 1)
    evidence = mixture - k * math.log(EVENTUALLY) - (n - k) * math.log1p(-EVENTUALLY)
    return k < EVENTUALLY * n and evidence >= EVIDENCE
