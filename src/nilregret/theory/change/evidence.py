"""How much speaks for a change: an e-process over the rounds at which one may have happened.

| symbol | name | meaning | shape |
|---|---|---|---|
| s | `starts` | rounds at which another function may have begun; the first is where the stretch begins | (S,) |
| p, q_s | | predictive densities of an answer: from the whole stretch, and from the answers asked for since s | |
| p', p'' | `_misfit`, `_readings` | p with deviations from the kernel; with outliers (`change.readings`) | |
| u | `_models` (logs) | how much p, p' and p'' are believed | |
| e_s | `_ratios` (logs) | product of q_s / p over the answers asked for since s, each factor at most e^clip | (S,) |
| w_s | `share` | how much of the stake is laid on a change at s; they add up to 1 | |
| M | `log_evidence` | sum of w_s e_s, and of the w_s of rounds to come | |

While f is one sample of the Gaussian process, p is the density of the next answer, and every e_s is a non-negative
martingale of mean 1 as long as answers enter in an order that does not look at their values: the actions may depend on
all that came before, and an answer asked for before s enters e_s not at all. A clipped factor is smaller, so that a
supermartingale is left, and M is one from 1: by Ville's inequality it *ever* reaches 1 / delta with probability at most
delta. (Shin, Ramdas & Rinaldo 2023 add up e-processes that start at consecutive times, with weights 1, for a bound on
the average run length; weights that add up to 1 bound the probability of any alarm.)

E[min(q_s / p, e^clip)] <= E[q_s / p] <= 1 proves it of a clipped factor.

The scale of the answers is learned (`change.beliefs`: Student-t densities). So a noise that was told wrongly is no
change.

A kernel that is wrong, say too smooth, is no change either: the longer the stretch the worse are its predictions, and
every later start looks better. Nor are outliers, or noise that is larger here than there, or than before. What answers
are compared with is therefore a mixture of p and of models in which such things happen, weighed by Bayes' rule: p'
with `misfit` > 0, believed with `DEVIATES` at first; and p'' with `outliers` > 0, with half of `OUTLYING`. The other
half passes from p to p'' as answers come, since it takes a while until there is an outlier.

Of all answers of a stretch together the mixture is at least a times as dense as p, a = 1 - `DEVIATES` - `OUTLYING`. So
a e_s <= prod_{i < s} mixture_i / p_i  prod_{i >= s} q_{s,i} / p_i, a martingale from 1 if kernel and noise are as told
and nothing changes: a M is what the inequality is about.

With `outliers` each factor of e_s is also multiplied with e^-`TOLL`, which leaves it a supermartingale: later beliefs
that hardly predict better are no change that matters.

Starts are thinned: of those older than `KEPT` * 2^k rounds the multiples of 2^k are left, so that S grows as log t.
What was staked on one that goes is staked on the next younger one from then on, which leaves M a martingale.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple, final

import numpy as np

from ..._utils.checks import Array, IndexArray
from ..._utils.copying import Copyable
from .outliers import OutlierHypotheses
from .posterior_sets import PLACES, Covariance, StartPosteriors

KEPT = 4  # rounds during which every start is kept
FLAT = 100.0  # rounds up to which starts are about equally likely
FIRST = slice(1)
DEVIATES = 0.1  # prior belief in deviations from the kernel
OUTLYING = 0.05  # prior belief in outliers, and in noise that differs
TOLL = 0.05  # nats an answer


def tail(round_: int) -> float:
    """What is staked on changes at rounds after this one: 1 at 0, and down to 0 as slowly as a logarithm."""
    return math.log(FLAT) / math.log(FLAT + round_)


def share(round_: int) -> float:
    """w_s of a round s >= 1, about 1 / (s ln^2 s) far out."""
    return tail(round_ - 1) - tail(round_)


def last_round(start: int) -> int:
    """The last round answered at which a start s >= 1 is still there: KEPT * 2^k on, 2^k the largest that divides s."""
    return start + KEPT * (start & -start)


class Change(NamedTuple):
    """What was found."""

    round: int  # the most likely first round of another function
    log_evidence: float  # log M


class _Answer(NamedTuple):
    number: int
    cell: Any
    values: Array  # (c,), as they were told


@final
class ChangeEvidence(Copyable):
    """The e-process of one stretch, for several channels that are answered together (a reward and its constraints).

    Args:
        covariance: prior covariance `(a, b)` between two lists of cells.
        noise_variance: lambda, in the units of the covariance squared.
        channels: c, how many values an answer has.
        weight: how many answers the prior belief in the told scale is worth.
        clip: the most that one answer may add to a log e_s.
        misfit: share of the prior variance by which f may deviate from the kernel at each cell by itself; with 0 it is
            taken to be as the kernel says.
        outliers: share of the answers that may be outliers, from 0, at first; with 0 there are none, and the noise is
            of one size.
        since: the first round of the stretch.
        scaled: brings the values of an answer, `(c,)`, into the units of the covariance; None where they are in them.

    Attributes:
        rate: share of f that is new in each round, before a change and after it; it may be set anew at any time.
    """

    OWNED = ("_answers", "_starts", "_last", "_stakes", "_ratios", "_beliefs", "_models", "_misfit", "_readings")

    def __init__(
        self,
        covariance: Covariance,
        noise_variance: float,
        *,
        channels: int = 1,
        weight: float = 10.0,
        clip: float = 4.0,
        misfit: float = 0.0,
        outliers: float = 0.0,
        since: int = 0,
        scaled: Callable[[Array], Array] | None = None,
    ) -> None:
        self._covariance, self._noise, self._scaled = covariance, noise_variance, scaled
        self.rate = 0.0
        self.channels, self._weight, self._clip = channels, weight, clip
        self._deviation, self._outliers = misfit, outliers
        self._others = (DEVIATES if misfit else 0.0) + (OUTLYING if outliers else 0.0)  # belief in them, at the end
        self._answers: list[_Answer] = []
        self._begin(since)

    def _begin(self, since: int) -> None:
        self._now = since  # the latest round answered, and so the latest start
        self._clock = since  # the round that beliefs are about, where f drifts
        # A place for each start, the stretch's own first and the others in no order.
        self._starts: list[int] = [since]
        self._last: list[int] = []  # `last_round` of all but the first
        self._stakes: list[float] = []  # logs of what has become of what was staked on them
        self._ratios = np.zeros(PLACES)  # logs; of the first start, which is p itself, always 0
        self._beliefs = self._fresh(0.0)
        self._misfit = self._fresh(self._deviation) if self._deviation else None
        self._readings = self._outlying() if self._outliers else None
        self._compared = 0  # answers
        self._models = [math.log1p(-self._elsewhere(0))]  # logs of the belief in each
        self._models += [math.log(DEVIATES)] if self._deviation else []
        self._models += [math.log(0.5 * OUTLYING)] if self._outliers else []

    def _fresh(self, misfit: float) -> StartPosteriors:
        return StartPosteriors(
            self._covariance, self._noise, channels=self.channels, weight=self._weight, misfit=misfit
        )

    def _outlying(self) -> OutlierHypotheses:
        return OutlierHypotheses(
            self._covariance, self._noise, channels=self.channels, weight=self._weight, outliers=self._outliers
        )

    def _elsewhere(self, answers: int) -> float:
        """Prior belief in other models than p after so many answers."""
        return self._others - (0.5 * OUTLYING * tail(answers) if self._outliers else 0.0)

    @property
    def since(self) -> int:
        """The first round of the stretch."""
        return self._starts[0]

    @property
    def count(self) -> int:
        """Answers in the stretch."""
        return len(self._answers)

    @property
    def latest(self) -> int:
        """The latest round answered, or the first of the stretch."""
        return self._now

    @property
    def starts(self) -> list[int]:
        """Rounds that are looked at as changes, ascending."""
        return sorted(self._starts[1:])

    @property
    def log_evidence(self) -> float:
        """Log M (with other models, of a M): it ever reaches log(1 / delta) with probability at most delta."""
        highest = max(self._stakes, default=0.0)
        total = tail(self._now) * math.exp(-highest) + sum(math.exp(stake - highest) for stake in self._stakes)
        return highest + math.log(total) + math.log1p(-self._others)

    @property
    def most_likely(self) -> int | None:
        """The start with the largest e_s; None before there is one."""
        count = len(self._starts)
        return self._starts[1 + int(self._ratios[1:count].argmax())] if count > 1 else None

    def log_ratio(self, start: int) -> float:
        """Log e_s of a start that is still there."""
        return float(self._ratios[self._starts.index(start)])

    # -- answers -------------------------------------------------------------------------------------------------

    def add(self, number: int, cell: Any, values: Array) -> None:
        """An answer, `(c,)` values; one of a trial before the stretch says nothing. O(S r^2)."""
        if number < self.since:
            return
        answer = _Answer(number, cell, np.asarray(values, dtype=np.float64))
        self._answers.append(answer)
        self._take(answer)

    def _take(self, answer: _Answer) -> None:
        if answer.number > self._now:
            self._open(answer.number)
        self._compare(answer)

    def _compare(self, answer: _Answer) -> None:
        """What an answer says of each start, and then it is learned."""
        at = self._asked_since(answer)
        if answer.number > self._clock:
            if self.rate:
                self._drift(answer.number - self._clock)
            self._clock = answer.number
        values = answer.values if self._scaled is None else self._scaled(answer.values)
        predicted = self._beliefs.learn(answer.cell, values, at)
        gain = np.minimum(predicted - self._of_stretch(float(predicted[0]), answer.cell, values), self._clip)
        if self._readings is not None:
            gain -= TOLL
        gain[0] = 0.0
        self._ratios[at] += gain
        if isinstance(at, slice):
            self._stakes = [stake + more for stake, more in zip(self._stakes, gain[1:].tolist(), strict=True)]
        else:
            for place, more in zip(at[1:].tolist(), gain[1:].tolist(), strict=True):
                self._stakes[place - 1] += more

    def _drift(self, rounds: int) -> None:
        """So many rounds pass; a late answer is taken for one of f as it has become."""
        keep = (1.0 - self.rate) ** rounds
        self._beliefs.drift(keep)
        for beliefs in (self._misfit, self._readings):
            if beliefs is not None:
                beliefs.drift(keep)

    def _of_stretch(self, predicted: float, cell: Any, values: Array) -> float:
        """Log density of an answer from the whole stretch, under all models; they are weighed anew."""
        if not self._others:
            return predicted
        each = [predicted]
        if self._misfit is not None:
            each.append(float(self._misfit.learn(cell, values, FIRST)[0]))
        if self._readings is not None:
            each.append(self._readings.learn(cell, values))
        both = [belief + log for belief, log in zip(self._models, each, strict=True)]
        total = float(functools.reduce(np.logaddexp, both))
        self._models = [log - total for log in both]  # Bayes' rule
        if self._readings is not None:
            before, self._compared = self._elsewhere(self._compared), self._compared + 1
            stays = (1.0 - self._elsewhere(self._compared)) / (1.0 - before)
            leaves = self._models[0] + math.log1p(-stays)
            self._models[-1] = float(np.logaddexp(self._models[-1], leaves))
            self._models[0] += math.log(stays)
        return total

    def _asked_since(self, answer: _Answer) -> slice | IndexArray:
        """The starts that an answer counts for: all of them, unless it is late."""
        if answer.number >= self._now:
            return slice(len(self._starts))
        return np.flatnonzero(np.array(self._starts) <= answer.number)

    # -- starts --------------------------------------------------------------------------------------------------

    def _open(self, now: int) -> None:
        """A start at every round up to `now`, and the thinning of all of them."""
        before, self._now = self._now, now
        passed: list[tuple[int, float]] = []
        for i in reversed(range(len(self._last))):
            if self._last[i] < now:
                passed.append((self._starts[i + 1], self._stakes[i]))
                self._close(i + 1)
        for start in range(before + 1, now + 1):
            if last_round(start) >= now:
                self._place(start, math.log(share(start)))
            else:
                passed.append((start, math.log(share(start))))
        for start, stake in passed:
            place = min(range(1, len(self._starts)), key=lambda at: (self._starts[at] < start, self._starts[at]))
            self._stakes[place - 1] = float(np.logaddexp(self._stakes[place - 1], stake))

    def _close(self, place: int) -> None:
        """The last start takes the place of this one."""
        last = len(self._starts) - 1
        self._beliefs.close(place)
        self._ratios[place] = self._ratios[last]
        self._starts[place], self._last[place - 1], self._stakes[place - 1] = (
            self._starts[last], self._last[last - 1], self._stakes[last - 1],
        )  # fmt: skip
        del self._starts[last], self._last[last - 1], self._stakes[last - 1]

    def _place(self, start: int, stake: float) -> None:
        """A start that has seen nothing."""
        place = len(self._starts)
        if place == len(self._ratios):
            self._ratios = np.concatenate([self._ratios, np.zeros_like(self._ratios)])
        self._beliefs.open()
        self._ratios[place] = 0.0
        self._starts.append(start)
        self._last.append(last_round(start))
        self._stakes.append(stake)

    # -- another stretch, another model --------------------------------------------------------------------------

    def cut(self, since: int) -> None:
        """Another stretch, as if the answers to earlier trials had never been there."""
        answers = self._answers
        self._answers = [answer for answer in answers if answer.number >= since]
        self._begin(since)
        for answer in self._answers:
            self._take(answer)

    def remodel(
        self, covariance: Covariance, noise_variance: float, scaled: Callable[[Array], Array] | None = None
    ) -> None:
        """Another kernel, noise or scale: all answers are compared anew, as if it had been known from the beginning.

        For the starts that are left, which share what was staked on those before them: O(t r^2) in all.
        """
        self._covariance, self._noise, self._scaled = covariance, noise_variance, scaled
        now, starts = self._now, self.starts
        self._begin(self.since)
        self._now = now
        for before, start in itertools.pairwise([self.since, *starts]):
            self._place(start, math.log(tail(before) - tail(start)))
        for answer in self._answers:
            self._compare(answer)
