"""Evidence for a change: an e-process over the rounds at which a change may have happened.

| symbol | name | meaning | shape |
|---|---|---|---|
| s | `starts` | rounds at which another function may begin; the first is the begin of the stretch | (S,) |
| p, q_s | | predictive densities of an observation: given the whole stretch, and given the trials asked since s | |
| p', p'' | `_deviating`, `_with_outliers` | p with deviations from the kernel; with `OutlierHypotheses` | |
| u | `_models` (logs) | posterior weights of p, p' and p'' | |
| e_s | `_ratios` (logs) | product of q_s / p over the observations asked since s, each factor at most e^clip | (S,) |
| w_s | `share` | share of the stake on a change at s; the shares add up to 1 | |
| M | `log_evidence` | sum of w_s e_s, and of the w_s of rounds to come | |

While f is one sample of the Gaussian process, p is the density of the next observation. Every e_s is then a
non-negative martingale of mean 1, if the order of observations does not depend on their values. The actions may depend
on everything before, and a trial asked before s does not enter e_s. A clipped factor is smaller, which leaves a
supermartingale, and M is one from 1. By Ville's inequality M *ever* reaches 1 / delta with probability at most delta.
(Shin, Ramdas & Rinaldo 2023 add up e-processes that start at consecutive times, with weights 1, to bound the average
run length. Weights that add up to 1 bound the probability of any alarm.)

The proof for a clipped factor is E[min(q_s / p, e^clip)] <= E[q_s / p] <= 1.

The scale of the observations is learned (`change.posterior_sets`: Student-t densities). A wrong noise is therefore no
change.

A wrong kernel, such as a too smooth one, is no change either. But the longer the stretch, the worse are its
predictions, and every later start looks better. The same holds for outliers, and for noise that varies over points or
time. Observations are therefore compared with a mixture of p and of models with such effects, weighted by Bayes' rule.
The model p' applies if `misfit` > 0, with prior weight `DEVIATES`. The model p'' applies if `outliers` > 0, with half
of the prior weight `OUTLYING`. The other half passes from p to p'' as observations come, since the first outlier takes
time to appear.

For all observations of a stretch together, the mixture is at least a times as dense as p, with a = 1 - `DEVIATES` -
`OUTLYING`. So a e_s <= prod_{i < s} mixture_i / p_i  prod_{i >= s} q_{s,i} / p_i. This is a martingale from 1 if kernel
and noise are as stated and nothing changes. The inequality is therefore about a M.

With `outliers` each factor of e_s is also multiplied with e^-`TOLL`, which leaves it a supermartingale. Later
posteriors that hardly predict better are then no relevant change.

Starts are thinned: of those older than `KEPT` * 2^k rounds only the multiples of 2^k stay, so that S grows as log t.
The stake of a removed start moves to the next younger one, which leaves M a martingale.

`JointEvidence` is from several outputs with models of their own, or whose values come one by one.

The average of e-processes is an e-process (its expectation at any stopping time is at most 1), whatever the dependence
of the outputs. So each output with its own kernel or noise has a `ChangeEvidence` of its own, which gets its values as
they come. Outputs that share a model are tested together, since a change in all of them is then detected sooner.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, final

import numpy as np

from ..._utils.checks import Array, IndexArray
from ..._utils.copying import Copyable
from .posterior_sets import PLACES, Covariance, OutlierHypotheses, StartPosteriors

KEPT = 4  # number of rounds for which every start is kept
FLAT = 100.0  # number of rounds up to which starts are about equally likely
FIRST = slice(1)
DEVIATES = 0.1  # prior weight of deviations from the kernel
OUTLYING = 0.05  # prior weight of outliers and of noise that varies
TOLL = 0.05  # nats for each observation


def tail(round_: int) -> float:
    """Returns the stake on changes after this round: 1 at 0, falling to 0 as slowly as a logarithm."""
    return math.log(FLAT) / math.log(FLAT + round_)


def share(round_: int) -> float:
    """Returns w_s of a round s >= 1, about 1 / (s ln^2 s) far out."""
    return tail(round_ - 1) - tail(round_)


def last_round(start: int) -> int:
    """Returns the last observed round with a start s >= 1.

    It is s + KEPT * 2^k, with 2^k the largest power that divides s.
    """
    return start + KEPT * (start & -start)


class Change(NamedTuple):
    """A detected change."""

    round: int  # most likely first round of another function
    log_evidence: float  # log M


class _Answer(NamedTuple):
    number: int
    cell: Any
    values: Array  # (c,), in the user's units


@final
class ChangeEvidence(Copyable):
    """The e-process of one stretch, for outputs that are observed together (a reward and its constraints).

    Args:
        covariance: prior covariance `(a, b)` between two lists of cells.
        noise_variance: lambda, in the units of the covariance squared.
        channels: c, number of values of an observation.
        weight: weight of the stated scale, as a number of observations.
        clip: largest term that one observation may add to a log e_s.
        misfit: share of the prior variance by which f may deviate from the kernel at each cell independently. 0 trusts
            the kernel.
        outliers: initial share of observations that may be outliers. 0 allows no outliers and noise of one size only.
        since: first round of the stretch.
        scaled: converts the values of an observation, `(c,)`, to the units of the covariance. None if they are in these
            units.

    Attributes:
        rate: share of f that is new in each round, before a change and after it. It may be set at any time.
    """

    OWNED = (
        "_answers",
        "_starts",
        "_last",
        "_stakes",
        "_ratios",
        "_posteriors",
        "_models",
        "_deviating",
        "_with_outliers",
    )

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
        # Final prior weight of the other models.
        self._others = (DEVIATES if misfit else 0.0) + (OUTLYING if outliers else 0.0)
        self._answers: list[_Answer] = []
        self._begin(since)

    def _begin(self, since: int) -> None:
        self._now = since  # latest observed round, and so the latest start
        self._clock = since  # round of the current f, if f drifts
        # Each start has a place. The stretch's own start is the first, and the others are in no order.
        self._starts: list[int] = [since]
        self._last: list[int] = []  # `last_round` of all but the first
        self._stakes: list[float] = []  # logs of the current values of their stakes
        self._ratios = np.zeros(PLACES)  # logs, always 0 for the first start, which is p itself
        self._posteriors = self._fresh(0.0)
        self._deviating = self._fresh(self._deviation) if self._deviation else None
        self._with_outliers = self._outlying() if self._outliers else None
        self._compared = 0  # answers
        self._models = [math.log1p(-self._elsewhere(0))]  # logs of the weight of each model
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
        """Returns the prior weight of models other than p after so many observations."""
        return self._others - (0.5 * OUTLYING * tail(answers) if self._outliers else 0.0)

    @property
    def since(self) -> int:
        """First round of the stretch."""
        return self._starts[0]

    @property
    def count(self) -> int:
        """Number of observations in the stretch."""
        return len(self._answers)

    @property
    def latest(self) -> int:
        """Latest observed round, or the first of the stretch."""
        return self._now

    @property
    def starts(self) -> list[int]:
        """Rounds that are tested as changes, ascending."""
        return sorted(self._starts[1:])

    @property
    def log_evidence(self) -> float:
        """Log M, or log a M with other models. It ever reaches log(1 / delta) with probability at most delta."""
        highest = max(self._stakes, default=0.0)
        total = tail(self._now) * math.exp(-highest) + sum(math.exp(stake - highest) for stake in self._stakes)
        return highest + math.log(total) + math.log1p(-self._others)

    @property
    def most_likely(self) -> int | None:
        """Start with the largest e_s, or None before the first start."""
        count = len(self._starts)
        return self._starts[1 + int(self._ratios[1:count].argmax())] if count > 1 else None

    def log_ratio(self, start: int) -> float:
        """Returns log e_s of a start that is still there."""
        return float(self._ratios[self._starts.index(start)])

    # -- answers -------------------------------------------------------------------------------------------------

    def add(self, number: int, cell: Any, values: Array) -> None:
        """Adds an observation with `(c,)` values. Trials before the stretch are ignored. It takes O(S r^2)."""
        if number < self.since:
            return
        answer = _Answer(number, cell, np.asarray(values, dtype=np.float64))
        self._answers.append(answer)
        self._advance(answer)

    def _advance(self, answer: _Answer) -> None:
        if answer.number > self._now:
            self._open(answer.number)
        self._compare(answer)

    def _compare(self, answer: _Answer) -> None:
        """Updates the e-process of each start by an observation, and adds the observation to the posteriors."""
        at = self._asked_since(answer)
        if answer.number > self._clock:
            if self.rate:
                self._drift(answer.number - self._clock)
            self._clock = answer.number
        values = answer.values if self._scaled is None else self._scaled(answer.values)
        predicted = self._posteriors.learn(answer.cell, values, at)
        gain = np.minimum(predicted - self._of_stretch(float(predicted[0]), answer.cell, values), self._clip)
        if self._with_outliers is not None:
            gain -= TOLL
        gain[0] = 0.0
        self._ratios[at] += gain
        if isinstance(at, slice):
            self._stakes = [stake + more for stake, more in zip(self._stakes, gain[1:].tolist(), strict=True)]
        else:
            for place, more in zip(at[1:].tolist(), gain[1:].tolist(), strict=True):
                self._stakes[place - 1] += more

    def _drift(self, rounds: int) -> None:
        """Lets f drift for so many rounds. A late reward counts as a reward of the current f."""
        keep = (1.0 - self.rate) ** rounds
        self._posteriors.drift(keep)
        for posteriors in (self._deviating, self._with_outliers):
            if posteriors is not None:
                posteriors.drift(keep)

    def _of_stretch(self, predicted: float, cell: Any, values: Array) -> float:
        """Returns the log density of an observation given the whole stretch, under all models.

        Their weights are updated.
        """
        if not self._others:
            return predicted
        each = [predicted]
        if self._deviating is not None:
            each.append(float(self._deviating.learn(cell, values, FIRST)[0]))
        if self._with_outliers is not None:
            each.append(self._with_outliers.learn(cell, values))
        both = [belief + log for belief, log in zip(self._models, each, strict=True)]
        total = float(functools.reduce(np.logaddexp, both))
        self._models = [log - total for log in both]  # Bayes' rule
        if self._with_outliers is not None:
            before, self._compared = self._elsewhere(self._compared), self._compared + 1
            stays = (1.0 - self._elsewhere(self._compared)) / (1.0 - before)
            leaves = self._models[0] + math.log1p(-stays)
            self._models[-1] = float(np.logaddexp(self._models[-1], leaves))
            self._models[0] += math.log(stays)
        return total

    def _asked_since(self, answer: _Answer) -> slice | IndexArray:
        """Returns the places of the starts that an observation counts for, all of them unless it is late."""
        if answer.number >= self._now:
            return slice(len(self._starts))
        return np.flatnonzero(np.array(self._starts) <= answer.number)

    # -- starts --------------------------------------------------------------------------------------------------

    def _open(self, now: int) -> None:
        """Adds a start at every round up to `now`, and thins all starts."""
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
        """Moves the last start to this place."""
        last = len(self._starts) - 1
        self._posteriors.close(place)
        self._ratios[place] = self._ratios[last]
        self._starts[place], self._last[place - 1], self._stakes[place - 1] = (
            self._starts[last], self._last[last - 1], self._stakes[last - 1],
        )  # fmt: skip
        del self._starts[last], self._last[last - 1], self._stakes[last - 1]

    def _place(self, start: int, stake: float) -> None:
        """Adds a start without observations."""
        place = len(self._starts)
        if place == len(self._ratios):
            self._ratios = np.concatenate([self._ratios, np.zeros_like(self._ratios)])
        self._posteriors.open()
        self._ratios[place] = 0.0
        self._starts.append(start)
        self._last.append(last_round(start))
        self._stakes.append(stake)

    # -- another stretch, another model --------------------------------------------------------------------------

    def cut(self, since: int) -> None:
        """Begins another stretch, as if there had been no earlier trials."""
        answers = self._answers
        self._answers = [answer for answer in answers if answer.number >= since]
        self._begin(since)
        for answer in self._answers:
            self._advance(answer)

    def remodel(
        self, covariance: Covariance, noise_variance: float, scaled: Callable[[Array], Array] | None = None
    ) -> None:
        """Takes another kernel, noise or scale, and compares all observations again from the beginning.

        Only the current starts stay. Each gets its own stake and the stakes of the removed starts just before it. The
        total cost is O(t r^2).
        """
        self._covariance, self._noise, self._scaled = covariance, noise_variance, scaled
        now, starts = self._now, self.starts
        self._begin(self.since)
        self._now = now
        for before, start in itertools.pairwise([self.since, *starts]):
            self._place(start, math.log(tail(before) - tail(start)))
        for answer in self._answers:
            self._compare(answer)


class OutputPrior(NamedTuple):
    """The prior of one or more outputs: the arguments of `ChangeEvidence` of the same names."""

    covariance: Covariance
    noise_variance: float
    scaled: Callable[[Array], Array]


@final
class JointEvidence(Copyable):
    """The average of several `ChangeEvidence` of one stretch.

    Args:
        each: at least one. Their outputs follow one another in the values of an observation.
    """

    OWNED_EACH = ("each",)

    def __init__(self, each: Sequence[ChangeEvidence]) -> None:
        self.each = list(each)

    @property
    def together(self) -> bool:
        """True if all values of an observation are tested together."""
        return len(self.each) == 1

    @property
    def channels(self) -> int:
        """Number of values of an observation."""
        return sum(evidence.channels for evidence in self.each)

    @property
    def count(self) -> int:
        """Number of observations in the stretch, of the output that has most."""
        return max(evidence.count for evidence in self.each)

    @property
    def latest(self) -> int:
        """Latest observed round, or the first of the stretch."""
        return max(evidence.latest for evidence in self.each)

    @property
    def log_evidence(self) -> float:
        """Log of the average."""
        if self.together:
            return self.each[0].log_evidence
        logs = [evidence.log_evidence for evidence in self.each]
        return float(np.logaddexp.reduce(logs) - np.log(len(logs)))

    @property
    def most_likely(self) -> int | None:
        """Most likely start of the output with the largest evidence."""
        return max(self.each, key=lambda evidence: evidence.log_evidence).most_likely

    @property
    def rate(self) -> float:
        """Share of f that is new in each round, for every output."""
        return self.each[0].rate

    @rate.setter
    def rate(self, rate: float) -> None:
        for evidence in self.each:
            evidence.rate = rate

    def add(self, number: int, cell: object, values: Array) -> bool:
        """Adds an observation `(c,)`, with nan for missing values, and returns True if it has any complete output."""
        heard = False
        for evidence, own in zip(self.each, self._parted(values), strict=True):
            if not np.isnan(own).any():
                evidence.add(number, cell, own)
                heard = True
        return heard

    def _parted(self, values: Array) -> Iterator[Array]:
        first = 0
        for evidence in self.each:
            yield values[first : first + evidence.channels]
            first += evidence.channels

    def cut(self, since: int) -> None:
        """Begins another stretch at this round."""
        for evidence in self.each:
            evidence.cut(since)

    def remodel(self, each: Sequence[OutputPrior]) -> None:
        """Compares all observations again under new priors, in the order of the outputs."""
        for evidence, known in zip(self.each, each, strict=True):
            evidence.remodel(*known)
