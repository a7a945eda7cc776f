"""How much speaks for a change: an e-process over the rounds at which one may have happened.

| symbol | name | meaning | shape |
|---|---|---|---|
| s | `starts` | rounds at which another function may have begun; the first is where the stretch begins | (S,) |
| p, q_s | | predictive densities of an answer: from the whole stretch, and from the answers asked for since s | |
| e_s | `_ratios` (logs) | product of q_s / p over the answers asked for since s, each factor at most e^clip | (S,) |
| w_s | `share` | how much of the stake is laid on a change at s; they add up to 1 | |
| M | `log_evidence` | sum of w_s e_s, and of the w_s of rounds to come | |
| phi | `_features` | k(x, x') = phi(x)^T phi(x'), to `TOLERANCE` of the noise variance | (r,) |
| m_s, C_s | `_weights`, `_covariances` | posterior of the weights of phi, from answers since s | (S, c, r), (S, r, r) |

While f is one sample of the Gaussian process, p is the density of the next answer, and every e_s is a non-negative
martingale of mean 1 as long as answers enter in an order that does not look at their values: the actions may depend on
all that came before, and an answer asked for before s enters e_s not at all. A clipped factor is smaller, so that a
supermartingale is left, and M is one from 1: by Ville's inequality it *ever* reaches 1 / delta with probability at most
delta. (Shin, Ramdas & Rinaldo 2023 add up e-processes that start at consecutive times, with weights 1, for a bound on
the average run length; weights that add up to 1 bound the probability of any alarm.)

The scale of the answers is learned: with a factor v ~ InvGamma(weight / 2, weight / 2) of kernel and noise variance, y
has a Student-t density with weight + n degrees of freedom and the squared scale (weight + z) / (weight + n) times
sigma^2(x) + lambda, z the sum of squared standardised errors so far (the normal-inverse-gamma model). So a noise that
was told wrongly is no change, and with the clip no single answer is one.

Starts are thinned: of those older than `KEPT` * 2^k rounds the multiples of 2^k are left, so that S grows as log t.
What was staked on one that goes is staked on the next younger one from then on, which leaves M a martingale.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple, final

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.blas import dger

from ..blas import one_thread
from ..checks import Array, IndexArray

KEPT = 4  # rounds during which every start is kept
FLAT = 100.0  # rounds up to which starts are about equally likely
TOLERANCE = 1e-4  # of lambda: prior variance that features may leave out
MOST_FEATURES = 256  # beyond that what they leave out counts as noise
LARGE = 64  # features from which on updates in place are quicker one by one than all together
STEP = 16  # features for which room is made at a time
FARTHEST = 1e100  # standardised error: further off nobody need look
PLACES = 16  # starts for which room is made at first

Covariance = Callable[[list[Any], list[Any]], Array]


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
class ChangeEvidence:
    """The e-process of one stretch, for several channels that are answered together (a reward and its constraints).

    Args:
        covariance: prior covariance `(a, b)` between two lists of cells.
        noise_variance: lambda, in the units of the covariance squared.
        channels: c, how many values an answer has.
        weight: how many answers the prior belief in the told scale is worth.
        clip: the most that one answer may add to a log e_s.
        since: the first round of the stretch.
        scaled: brings the values of an answer, `(c,)`, into the units of the covariance; None where they are in them.

    Attributes:
        rate: share of f that is new in each round, before a change and after it; it may be set anew at any time.
    """

    def __init__(
        self,
        covariance: Covariance,
        noise_variance: float,
        *,
        channels: int = 1,
        weight: float = 10.0,
        clip: float = 4.0,
        since: int = 0,
        scaled: Callable[[Array], Array] | None = None,
    ) -> None:
        self._covariance, self._noise, self._scaled = covariance, noise_variance, scaled
        self.rate = 0.0
        self.channels, self._weight, self._clip = channels, weight, clip
        self._answers: list[_Answer] = []
        self._gammas = np.zeros(0)
        self._begin(since)

    def _begin(self, since: int) -> None:
        self._now = since  # the latest round answered, and so the latest start
        self._clock = since  # the round that beliefs are about, where f drifts
        # A place for each start, the stretch's own first and the others in no order.
        self._starts: list[int] = [since]
        self._last: list[int] = []  # `last_round` of all but the first
        self._stakes: list[float] = []  # logs of what has become of what was staked on them
        self._ratios = np.zeros(PLACES)  # logs; of the first start, which is p itself, always 0
        self._seen = np.zeros(PLACES, dtype=np.intp)
        self._squares = np.zeros((PLACES, self.channels))
        self._basis: list[Any] = []
        self._features: dict[Any, tuple[Array, float]] = {}
        self._triangle = np.zeros((0, 0))
        self._weights = np.zeros((PLACES, self.channels, 0))
        self._covariances = np.zeros((PLACES, 0, 0))

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
        """Log M: Ville's inequality bounds the probability that it ever reaches log(1 / delta) by delta."""
        highest = max(self._stakes, default=0.0)
        total = tail(self._now) * math.exp(-highest) + sum(math.exp(stake - highest) for stake in self._stakes)
        return highest + math.log(total)

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
        with one_thread if len(self._basis) >= LARGE else nullcontext():  # smaller products have one anyway
            predicted = self._learn(answer, at)
        gain = np.minimum(predicted - predicted[0], self._clip)
        self._ratios[at] += gain
        if isinstance(at, slice):
            self._stakes = [stake + more for stake, more in zip(self._stakes, gain[1:].tolist(), strict=True)]
        else:
            for place, more in zip(at[1:].tolist(), gain[1:].tolist(), strict=True):
                self._stakes[place - 1] += more

    def _drift(self, rounds: int) -> None:
        """So many rounds pass; a late answer is taken for one of f as it has become."""
        keep = (1.0 - self.rate) ** rounds
        self._weights *= math.sqrt(keep)
        self._covariances *= keep
        diagonal = np.arange(self._covariances.shape[1])
        self._covariances[:, diagonal, diagonal] += 1.0 - keep

    def _asked_since(self, answer: _Answer) -> slice | IndexArray:
        """The starts that an answer counts for: all of them, unless it is late."""
        if answer.number >= self._now:
            return slice(len(self._starts))
        return np.flatnonzero(np.array(self._starts) <= answer.number)

    def _learn(self, answer: _Answer, at: slice | IndexArray) -> Array:
        """Log density of an answer under each start, `(S,)`, before it is learned."""
        phi, rest = self._feature(answer.cell)
        covariances = self._covariances[at]
        direction = covariances @ phi  # C_s phi, (S, r)
        total = np.maximum(direction @ phi, 0.0) + (rest + self._noise)  # sigma_s^2(x) + lambda, (S,)
        values = answer.values if self._scaled is None else self._scaled(answer.values)
        error = values - self._weights[at] @ phi  # (S, c)
        squares = np.clip(error / np.sqrt(total)[:, None], -FARTHEST, FARTHEST) ** 2
        seen, before = self._seen[at], self._squares[at]
        freedom = self._weight + seen
        scatter = self._weight + before  # freedom times the factor of the scale squared, (S, c)
        half = 0.5 * (freedom + 1.0)
        log = self.channels * (self._constants(int(seen[0]))[seen] - 0.5 * np.log(total)) - (
            0.5 * np.log(scatter) + half[:, None] * np.log1p(squares / scatter)
        ).sum(axis=1)
        scaled = direction / total[:, None]
        self._weights[at] += error[:, :, None] * scaled[:, None, :]
        if isinstance(at, slice) and len(phi) >= LARGE:
            for one, along, by in zip(covariances, direction, total.tolist(), strict=True):
                dger(-1.0 / by, along, along, a=one.T, overwrite_a=1)  # in place
        else:
            self._covariances[at] = covariances - scaled[:, :, None] * direction[:, None, :]
        self._seen[at] = seen + 1
        self._squares[at] = before + squares
        return np.asarray(log)

    def _constants(self, most: int) -> Array:
        """Log of Gamma((nu + 1) / 2) / Gamma(nu / 2), nu = weight + n, for n = 0 up to at least this number."""
        known = len(self._gammas)
        if most >= known:
            nus = [self._weight + n for n in range(known, 2 * most + PLACES)]
            more = [math.lgamma(0.5 * (nu + 1.0)) - math.lgamma(0.5 * nu) for nu in nus]
            self._gammas = np.concatenate([self._gammas, more])
        return self._gammas

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
        for rows in (self._ratios, self._seen, self._squares, self._weights, self._covariances):
            rows[place] = rows[last]
        self._starts[place], self._last[place - 1], self._stakes[place - 1] = (
            self._starts[last], self._last[last - 1], self._stakes[last - 1],
        )  # fmt: skip
        del self._starts[last], self._last[last - 1], self._stakes[last - 1]

    def _place(self, start: int, stake: float) -> None:
        """A start that has seen nothing."""
        place = len(self._starts)
        if place == len(self._ratios):
            for name in ("_ratios", "_seen", "_squares", "_weights", "_covariances"):
                array = getattr(self, name)
                setattr(self, name, np.concatenate([array, np.zeros_like(array)]))
        for rows in (self._ratios, self._seen, self._squares, self._weights, self._covariances):
            rows[place] = 0.0
        np.fill_diagonal(self._covariances[place], 1.0)
        self._starts.append(start)
        self._last.append(last_round(start))
        self._stakes.append(stake)

    # -- features ------------------------------------------------------------------------------------------------

    def _feature(self, cell: Any) -> tuple[Array, float]:
        """Phi of a cell, with zeros for the features that came later, and the variance that it leaves out."""
        key = cell if isinstance(cell, int) else cell.tobytes()
        if key not in self._features:
            self._features[key] = self._new_feature(cell)
        phi, rest = self._features[key]
        rank = self._covariances.shape[1]
        if len(phi) < rank:
            phi = np.concatenate([phi, np.zeros(rank - len(phi))])
            self._features[key] = phi, rest
        return phi, rest

    def _new_feature(self, cell: Any) -> tuple[Array, float]:
        """One more step of the Cholesky factorisation of the kernel matrix of the cells seen."""
        rank, prior = len(self._basis), float(self._covariance([cell], [cell])[0, 0])
        phi = np.zeros(self._covariances.shape[1])
        if rank:
            cross = self._covariance(self._basis, [cell])[:, 0]
            phi[:rank] = solve_triangular(self._triangle[:rank, :rank], cross, lower=True, check_finite=False)
        rest = max(prior - float(phi @ phi), 0.0)
        if rest <= TOLERANCE * self._noise or rank == MOST_FEATURES:
            return phi, rest
        if rank == len(phi):
            self._make_room()
            phi = np.concatenate([phi, np.zeros(STEP)])
        phi[rank] = math.sqrt(rest)
        self._triangle[rank] = phi
        self._basis.append(cell)
        return phi, 0.0

    def _make_room(self) -> None:
        places, rank = len(self._ratios), self._covariances.shape[1]
        self._triangle = np.pad(self._triangle, (0, STEP))
        self._weights = np.concatenate([self._weights, np.zeros((places, self.channels, STEP))], axis=2)
        wider = np.zeros((places, rank + STEP, rank + STEP))
        wider[:, :rank, :rank] = self._covariances
        wider[:, np.arange(rank, rank + STEP), np.arange(rank, rank + STEP)] = 1.0
        self._covariances = wider

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

    def copy(self) -> ChangeEvidence:
        """An independent one in the same state."""
        other = ChangeEvidence.__new__(ChangeEvidence)
        other.__dict__.update(self.__dict__)
        for name in (
            "_answers", "_starts", "_last", "_stakes", "_ratios", "_seen", "_squares", "_basis", "_features",
            "_triangle", "_weights", "_covariances",
        ):  # fmt: skip
            setattr(other, name, getattr(self, name).copy())
        return other
