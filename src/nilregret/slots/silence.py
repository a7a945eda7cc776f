"""Unanswered trials where silence may mean no: what has not been answered by now is worth less, and at last nothing.

| symbol | name | meaning | shape |
|---|---|---|---|
| s | `minimum` | what a trial is worth that is never answered, reward units | scalar |
| v | `answer` | what an answer is worth on average, reward units | scalar |
| mu | `means` | posterior mean of what a trial is worth | (n,) |
| q | | probability that it is ever answered: mu = s + q (v - s) | (n,) |
| F | `law` | P(delay <= age) of the answers that come | |
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
from .._utils.errors import InvalidInput
from .._utils.serialize import described
from ..storage.record import Trial
from .delay_law import Arrivals, Waits
from .pending import ImputedValue, Pending, PendingInfo

LEAST, MOST = 0.02, 0.98  # between which q is taken: no point is given up, or believed in, for good
FEWEST = 5  # answers without which nothing is said of silence
SURE = 0.99  # share of the answers that have come by the age from which on a watch takes silence for a no
OLD = 0.995  # share of the answers that have come by the age from which on a trial is old
EVENTUALLY = 0.95  # share of old trials that are answered, at least, where delays have nothing to do with rewards
EVIDENCE = math.log(100.0)  # nats of evidence against that, from which on silence means no
ALIKE = 0.25  # of the way from s to v: answers that differ from v by no more are one and the same yes
FEW, BYCHANCE = 0.01, 2  # share of the answers that may differ by more, and how many beside


@dataclass(frozen=True, kw_only=True)
class _Silent(Pending):
    """What the two parts share.

    Attributes:
        minimum: s, what a trial is worth that is never answered, reward units; None for the smallest reward told so
            far (the prior mean before the first), and while all that were told are the same, a yes, 0 if that is less.
        answer: v, what an answer is worth, reward units; None for the average of those that came.
        delay: the law of the delays of the answers that come, where it is known, a part of
            `nilregret.simulation.environments.delays`; None to estimate it from the record.
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
                advice="Such a law is `nilregret.simulation.environments.delays.GeometricDelay(10.0)`.",
            )

    def lowest(self, least: float | None, prior_mean: float) -> float:
        """What silence is worth."""
        return super().lowest(least, prior_mean) if self.minimum is None else self.minimum

    def turned(self) -> Self:
        """Both values with the other sign."""
        return replace(self, minimum=_turned(self.minimum), answer=_turned(self.answer))

    @abstractmethod
    def waits(self) -> Silence:
        """What is remembered of a run."""

    def count_as(self, trial: Trial, known: PendingInfo) -> ImputedValue:  # noqa: ARG002 - all that counts is known of it
        """What is expected of it now."""
        if known.waits is None:
            raise InvalidInput(f"`{type(self).__name__}` counts trials by what it remembers of the run (`waits`).")
        ages, means, charges = np.array([known.age()]), np.array([known.mean()]), np.array([known.charge()])
        return ImputedValue(known.waits.values(ages, means, charges, known.lowest)[0])


@final
@described
@dataclass(frozen=True, kw_only=True)
class Imputed(_Silent):
    """An observation of what it is expected to be worth by now, where silence means no: conversions, clicks, buys.

    A trial is answered with probability q, after a delay with the law F, and is worth v then; otherwise it is worth s
    and nobody ever says so. Of one that has been silent for `a` questions it is expected that it is worth

        E[y | no answer by age a] = s + (v - s) q (1 - F(a)) / (1 - q F(a)),    q = (mu - s) / (v - s),

    with mu the posterior mean of the round before, these values included (v = 1 and s = 0 for conversions). It begins
    as the posterior mean and ends as s, once all answers have come that will. No window is needed. F is estimated from
    the record; before the first answer comes, a trial counts as the posterior mean. Nothing is proved.

    Attributes:
        minimum, answer, delay: s, v and the law of F.
    """

    def waits(self) -> Silence:
        """How long answers took."""
        return Silence(self, always=True)


@final
@described
@dataclass(frozen=True, kw_only=True)
class LateOrNever(_Silent):
    """`Hallucinated` until it is evident that some answers never come and that these are the bad ones; then `Imputed`.

    Where delays have nothing to do with rewards every trial is answered that is old enough. A trial is old once 99.5%
    of the answers that come would have come, by the estimated law of delays. Silence means no once both are so:

    - of n old trials too few, k, were answered at some time: the likelihood of k under a uniform probability of an
      answer was at least 100 times that under 0.95. Were it 0.95 or more wherever one asks, this would ever happen with
      probability at most about 0.01 (Ville's inequality; about, since the law is estimated). Delays of two kinds, of
      which the longer has not been seen yet, cannot be told from silence: where those old trials are answered after
      all, so that they are not too few any more, it is judged anew.
    - all answers are one and the same yes: but for two, and one in a hundred, they are within a quarter of v - s of v.
      Where they differ they order the points by themselves, and missing ones may merely be lost; who knows that
      silence means no there says `Imputed`.

    Not before five answers have come. A function of the record alone. Nothing is proved.

    Attributes:
        minimum, answer, delay: as of `Imputed`.
    """

    hallucinates: ClassVar[bool] = True

    def waits(self) -> Silence:
        """How long answers took, and whether they come."""
        return Silence(self, always=False)


@final
class Silence(Copyable, Waits):
    """What is made of the answers that came, in one run.

    Attributes:
        evident: whether silence means no, as far as is known.
    """

    OWNED = ("_arrivals",)

    def __init__(self, part: _Silent, *, always: bool) -> None:
        self._part, self._always = part, always
        self._arrivals = Arrivals(part.delay)
        self._sum = 0.0  # of the rewards told
        self._least, self._most = math.inf, -math.inf
        self._reach: float = 0  # the age from which on trials counted as final, when it was last asked
        self._last = 0  # how many questions there were then
        self._judged: tuple[int, int] | None = None  # an age, and how many of the first questions: too few are answered
        self.evident = always

    def ask(self, trial: Trial) -> None:
        """One more."""
        self._arrivals.ask(trial)

    def hear(self, trial: Trial) -> None:
        """One answered, or failed."""
        before = len(self._arrivals.told)
        self._arrivals.hear(trial)
        for reward in self._arrivals.told[before:]:
            self._sum += reward
            if self._part.minimum is None and not self._least <= reward <= self._most:
                self._reach = math.inf  # all trials move, final or not
            self._least, self._most = min(self._least, reward), max(self._most, reward)

    def forget(self, first: int) -> None:
        """Of those before nothing is heard any more."""
        self._arrivals.forget(first)

    def moving(self) -> list[int]:
        """All that are not final, and those that were not when this was last called."""
        arrivals = self._arrivals
        if arrivals.refresh() and not self._always and (evident := self._is_evident()) is not self.evident:
            self.evident, self._reach = evident, math.inf
        reach = max(self._reach, arrivals.law.settled) + arrivals.asked - self._last
        self._last, self._reach = arrivals.asked, arrivals.law.settled if self.evident else 0
        found = []
        for trial, place in reversed(arrivals.open.items()):
            if arrivals.asked - 1 - place > reach:
                break
            found.append(trial)
        return found[::-1]

    @property
    def settled(self) -> float:
        """The age by which 99% of the answers that come have come; later ones say no more to a watch."""
        part, arrivals = self._part, self._arrivals
        fewest = FEWEST if part.delay is None else int(part.minimum is None)
        return arrivals.law.reaches(SURE) if len(arrivals.told) >= fewest else math.inf

    def ages(self, numbers: list[int]) -> IndexArray:
        """Of unanswered trials."""
        return self._arrivals.asked - 1 - np.array([self._arrivals.open[number] for number in numbers], dtype=np.intp)

    def values(self, ages: IndexArray, means: Array, charges: Array, lowest: float) -> list[float | None]:
        """E[y | no answer by this age]."""
        if not self.evident:
            return [None] * len(ages)
        count = len(self._arrivals.told)
        if self._part.answer is None and not count:
            return means.tolist()  # type: ignore[no-any-return]  # an array of floats
        low = self.worth(lowest) - charges
        rise = (self._sum / count if self._part.answer is None else self._part.answer) - self.worth(lowest)
        if rise == 0.0:
            return low.tolist()  # type: ignore[no-any-return]  # likewise
        q = np.clip((means - low) / rise, LEAST, MOST)
        later = self._arrivals.law.later(ages)
        silent = low + rise * q * later / (1.0 - q * (1.0 - later))
        return np.where(ages >= self._arrivals.law.settled, low, silent).tolist()  # type: ignore[no-any-return]

    def worth(self, lowest: float) -> float:
        """What silence is worth: 0, where all answers are the same yes and no more is known, and they are more."""
        return min(lowest, 0.0) if self._part.minimum is None and self._least == self._most else lowest

    def answer(self) -> float | None:
        """As is said, or the average of those that came."""
        if not self.evident or self._part.answer is not None:
            return self._part.answer if self.evident else None
        told = len(self._arrivals.told)
        return self._sum / told if told else None

    def _is_evident(self) -> bool:
        """Whether too few old trials were answered at some time, and all answers are one and the same yes."""
        arrivals = self._arrivals
        told = len(arrivals.told)
        if told < FEWEST:
            return False
        if self._judged is None or not _too_few(*arrivals.by_age(*self._judged)):  # they may be answered after all
            age = arrivals.law.reaches(OLD)
            self._judged = (age, arrivals.asked) if _too_few(*arrivals.by_age(age, arrivals.asked)) else None
        low = self.worth(self._least if self._part.minimum is None else self._part.minimum)
        yes = self._sum / told if self._part.answer is None else self._part.answer
        others = sum(abs(reward - yes) > ALIKE * abs(yes - low) for reward in arrivals.told)
        return self._judged is not None and others <= BYCHANCE + FEW * told


def _turned(value: float | None) -> float | None:
    return None if value is None else 0.0 - value


def _too_few(n: int, k: int) -> bool:
    """Whether k answers of n are too few for `EVENTUALLY`: log of the likelihoods, the other one averaged."""
    mixture = math.lgamma(k + 1) + math.lgamma(n - k + 1) - math.lgamma(n + 2)  # log B(k + 1, n - k + 1)
    evidence = mixture - k * math.log(EVENTUALLY) - (n - k) * math.log1p(-EVENTUALLY)
    return k < EVENTUALLY * n and evidence >= EVIDENCE
