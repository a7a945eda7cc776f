"""Laws of scores: the probability with which each arm has the largest score of a round.

A score that uses random numbers says the joint law of its scores, given everything that was known (`Score.law`).

| law | scores | probability of arm i | error |
|---|---|---|---|
| `DrawnLine` | a_i + w b_i, one number w drawn for all | mass of w where line i is the highest | none |
| `IndependentNormals` | N(m_i, s_i^2), independent | integral of f_i times F_j of all j != i | below 1e-8 |
| `JointNormals` | N(m, C) | mean over directions of the mass of an interval | see `JointNormals` |

Here f_i and F_i are the density and the distribution function of score i. Scores that tie share their probability, as a
decision draws one of them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import lru_cache
from typing import Self, final

import numpy as np

from .._utils.checks import Array, IndexArray, frozen
from .._utils.dataclass import dataclass, replace
from .._utils.process_setting import with_one_thread
from .._utils.randomness import Draws, sobol_points
from ..domains.search.arms import TIE, least_tied
from ..kernels.factorization import covariance_root

REACH = 6.5  # standard deviations beyond which a normal law is left out, with 4e-11 of its mass on each side
NARROWEST = 1e-7  # least standard deviation of an independent score, as a share of the largest
NODES = 22  # nodes of a panel of the quadrature
PANEL = 4.0  # length of a panel, in the least standard deviation that matters there
DIRECTIONS = 256, 1024  # least and largest number of pairs of opposite directions of a joint law, powers of two
SHARED = 2**15  # directions times arms, for one arm, unless one of these limits is reached
LEAST_DIRECTIONS = 32  # the least number of them, of the probabilities of very many arms
WORK = 2**22  # pairs of arms, times directions, beyond which there are fewer
SPANNED = 1e-8  # share of the largest variance below which a factor of a covariance ends
TINY = 1e-300
COINCIDING = 1e-14  # share of the largest variance below which two scores of a joint law are one


class ScoreLaw(ABC):
    """The joint law of the scores of n points, given all but the random numbers of the trial."""

    @abstractmethod
    def probabilities(self, size: float) -> Array:
        """Returns the probability of each point to have the largest score, `(n,)`.

        Args:
            size: the prior standard deviation of f, by which ties are judged (see `domains.search.arms.TIE`).
        """

    def probability(self, place: int, size: float) -> float:
        """Returns the probability of one point, by its index."""
        return float(self.probabilities(size)[place])

    @abstractmethod
    def restricted(self, places: IndexArray, shift: Array) -> Self:
        """Returns the law of the scores at some of the points, with a known number added to each, `(k,)`."""


@final
@dataclass(frozen=True, eq=False)
class KnownScores(ScoreLaw):
    """Scores without random numbers, of which the largest share the choice.

    Attributes:
        scores: `(n,)`.
    """

    scores: Array

    def probabilities(self, size: float) -> Array:
        """Returns equal shares of the scores that tie with the largest one, `(n,)`."""
        tied = self.scores >= least_tied(float(self.scores.max()), size)
        return np.asarray(tied / tied.sum())

    def restricted(self, places: IndexArray, shift: Array) -> Self:
        """Returns the scores of some points, raised."""
        return replace(self, scores=self.scores[places] + shift)


@final
@dataclass(frozen=True, eq=False)
class Mixture(ScoreLaw):
    """A law that is drawn from several.

    Attributes:
        shares: the probability of each.
        each: the laws.
    """

    shares: tuple[float, ...]
    each: tuple[ScoreLaw, ...]

    def probabilities(self, size: float) -> Array:
        """Returns the average over the laws, `(n,)`."""
        found = [law.probabilities(size) for law in self.each]
        return np.asarray(np.average(found, axis=0, weights=self.shares))

    def probability(self, place: int, size: float) -> float:
        """Returns the average over the laws."""
        return float(np.average([law.probability(place, size) for law in self.each], weights=self.shares))

    def restricted(self, places: IndexArray, shift: Array) -> Self:
        """Returns the same mixture at some points."""
        return replace(self, each=tuple(law.restricted(places, shift) for law in self.each))


@final
@dataclass(frozen=True, eq=False)
class DrawnLine(ScoreLaw):
    """Scores a + w b, with one number w >= `least` drawn for all of them.

    The largest score is a convex function of w, made of lines. Each line is the highest on one interval, whose mass is
    the probability of its arm. The cost is O(n log n).

    Attributes:
        intercepts: a, `(n,)`.
        slopes: b, `(n,)`.
        tail: returns P(w > x) for each x >= `least`. What is missing at `least` to 1 is the mass at that point.
        least: the lower end of the law of w.
    """

    intercepts: Array
    slopes: Array
    tail: Callable[[Array], Array]
    least: float = 0.0

    def probabilities(self, size: float) -> Array:
        """Returns the mass of the interval of each line, `(n,)`."""
        begin = self.intercepts + self.least * self.slopes
        winners, starts = _upper_envelope(begin, self.slopes)
        beyond = np.append(self.tail(self.least + starts), 0.0)
        beyond[0] = min(beyond[0], 1.0)
        # Ties are judged inside each interval. Where slopes differ by rounding alone, its end is too far away for that.
        inside = starts + np.minimum(0.5 * np.append(np.diff(starts), 2.0), 1.0)
        scores = begin + inside[:, None] * self.slopes
        top = scores[np.arange(len(winners)), winners]
        tied = scores >= least_tied(top, size)[:, None]
        found = np.asarray((beyond[:-1] - beyond[1:]) / tied.sum(axis=1) @ tied)
        at_least = 1.0 - float(beyond[0])  # Lines that cross at the lower end tie there.
        return found + at_least * KnownScores(begin).probabilities(size) if at_least > 0.0 else found

    def restricted(self, places: IndexArray, shift: Array) -> Self:
        """Returns the lines of some points, raised."""
        return replace(self, intercepts=self.intercepts[places] + shift, slopes=self.slopes[places])


def _upper_envelope(heights: Array, slopes: Array) -> tuple[IndexArray, Array]:
    """Returns the lines that are the highest on some interval of x >= 0, and where each begins, `(k,)`.

    Args:
        heights: of the lines at 0, `(n,)`.
        slopes: of the lines, `(n,)`.
    """
    order = np.lexsort((-heights, -slopes))  # steepest first, and of equally steep ones the highest
    above = np.maximum.accumulate(np.concatenate([[-np.inf], heights[order]]))
    front = order[heights[order] > above[:-1]][::-1]  # A line that is below a steeper one at 0 is never the highest.
    kept: list[int] = []
    starts: list[float] = []
    for line, height, slope in zip(front.tolist(), heights[front].tolist(), slopes[front].tolist(), strict=True):
        start = 0.0
        while kept:
            start = (heights.item(kept[-1]) - height) / (slope - slopes.item(kept[-1]))
            if start > starts[-1]:
                break
            kept.pop()
            starts.pop()
            start = 0.0
        kept.append(line)
        starts.append(start)
    return np.array(kept, dtype=np.intp), np.array(starts)


@final
@dataclass(frozen=True, eq=False)
class IndependentNormals(ScoreLaw):
    """Independent normal scores.

    P_i is the integral of f_i(x) prod_{j != i} F_j(x), by Gauss-Legendre quadrature on panels that all arms share. A
    panel is four times as long as the least standard deviation of the arms that reach it. The integral begins at x_0 =
    max_i (m_i - 6.5 s_i), since the largest score is above x_0 but for a probability of 4e-11. So every F_j is at least
    4e-11 there, and one product of all serves every arm. The cost is O(n) for each of some 50 to 200 nodes.

    Attributes:
        mean: `(n,)`.
        std: standard deviation, `(n,)`.
    """

    mean: Array
    std: Array

    def probabilities(self, size: float) -> Array:
        """Returns the integrals, `(n,)`. Their sum is 1 up to the error of the quadrature."""
        from scipy.special import ndtr  # slow to import, and most decisions need none of it

        widest = float(self.std.max())
        if not widest > 0.0:
            return KnownScores(self.mean).probabilities(size)
        std = np.maximum(self.std, NARROWEST * widest)
        ahead = self.mean - self.mean.max()  # Means far from 0 would round the nodes.
        low = float((ahead - REACH * std).max())
        there = np.flatnonzero(ahead + REACH * std > low)
        mean, std = ahead[there], std[there]
        nodes, weights = _panels(mean + REACH * std, std, low)
        z = (nodes[:, None] - mean) / std
        below = ndtr(z)
        density = np.exp(-0.5 * z**2) / (np.sqrt(2.0 * np.pi) * std)
        found = np.zeros(len(self.mean))
        found[there] = (weights * below.prod(axis=1)) @ (density / below)
        return found

    def restricted(self, places: IndexArray, shift: Array) -> Self:
        """Returns the law at some points, with other means."""
        return replace(self, mean=self.mean[places] + shift, std=self.std[places])


def _panels(tops: Array, std: Array, low: float) -> tuple[Array, Array]:
    """Returns nodes and weights of a quadrature from `low` to the last top, `(k,)` each.

    Args:
        tops: where each law ends, `(n,)`.
        std: of each law, `(n,)`.
        low: where the quadrature begins.
    """
    points, weights = _legendre()
    scales = np.floor(np.log2(std))
    nodes: list[Array] = []
    sizes: list[Array] = []
    for scale in np.unique(scales):  # Below the top of a narrow law, panels are as narrow.
        of_scale = scales == scale
        top, unit = float(tops[of_scale].max()), float(std[of_scale].min())
        if top <= low:
            continue
        edges = np.linspace(low, top, int(np.ceil((top - low) / (PANEL * unit))) + 1)
        length = edges[1] - edges[0]
        nodes.append((edges[:-1, None] + length * points).ravel())
        sizes.append(np.tile(length * weights, len(edges) - 1))
        low = top
    return np.concatenate(nodes), np.concatenate(sizes)


@lru_cache(maxsize=1)
def _legendre() -> tuple[Array, Array]:
    """Returns nodes and weights on [0, 1], `(NODES,)` each."""
    points, weights = np.polynomial.legendre.leggauss(NODES)
    return frozen(0.5 * points + 0.5), frozen(0.5 * weights)


@final
@dataclass(frozen=True, eq=False)
class JointNormals(ScoreLaw):
    """Jointly normal scores N(m, C).

    Given the part of all scores that is independent of score i, arm i has the largest one on an interval of score i,
    whose mass is known. The probability of arm i is the mean of this mass over fixed directions of that part. They are
    a Sobol net with its mirror image, 2,048 of up to 32 arms and 512 of more than 64. So a small probability has a
    small error, too. Over 60 posteriors of 5 to 100 arms the error was .002 (root mean square), and .013 at most. One
    arm costs O(n) for each direction after a factor of C. All arms cost n times that. Of more than 128 arms they are
    taken over fewer directions, at least 64.

    Attributes:
        mean: `(n,)`.
        covariance: C, `(n, n)`.
    """

    mean: Array
    covariance: Array

    @with_one_thread
    def probabilities(self, size: float) -> Array:
        """Returns the probabilities, divided by their sum, `(n,)`."""
        count, best = len(self.mean), int(self.mean.argmax())
        drawn = self._drawn()[:, : max(WORK // count**2, LEAST_DIRECTIONS)]
        behind = self.mean[best] - self.mean > REACH * np.sqrt(self._apart(best))
        found = np.zeros(count)
        for place in np.flatnonzero(~behind).tolist():
            found[place] = self._probability(place, drawn, size)
        return np.asarray(found / found.sum())

    @with_one_thread
    def probability(self, place: int, size: float) -> float:
        """Returns the probability of one point, by its index."""
        return self._probability(place, self._drawn(), size)

    def restricted(self, places: IndexArray, shift: Array) -> Self:
        """Returns the law at some points, with other means."""
        return replace(self, mean=self.mean[places] + shift, covariance=self.covariance[np.ix_(places, places)])

    def _drawn(self) -> Array:
        """Returns scores less their mean in each direction, `(n, k)`."""
        root = covariance_root(self.covariance, tol=SPANNED * float(self.covariance.diagonal().max()))
        least, most = DIRECTIONS
        count = min(max(2 ** int(math.log2(SHARED / len(root))), least), most)
        return np.asarray(root @ _directions(len(root), count)[: root.shape[1]])  # The rank depends on rounding.

    def _apart(self, place: int) -> Array:
        """Returns the variance of the difference of each score from one of them, `(n,)`."""
        variances = self.covariance.diagonal()
        return np.asarray(np.maximum(variances + variances[place] - 2.0 * self.covariance[place], 0.0))

    def _probability(self, place: int, drawn: Array, size: float) -> float:
        from scipy.special import ndtr

        widest = float(self.covariance.diagonal().max())
        if not widest > 0.0:
            return KnownScores(self.mean).probability(place, size)
        ahead, apart = self.mean - self.mean[place], self._apart(place)
        alike = (apart <= COINCIDING * widest) & (np.abs(ahead) <= TIE * size)
        alike[place] = True
        others = np.flatnonzero(~alike & (ahead > -REACH * np.sqrt(apart)))
        # What another score gains on score i for each standard deviation by which that falls, and what it is ahead.
        deviation = math.sqrt(max(self.covariance.item(place, place), NARROWEST**2 * widest))
        follow = self.covariance[place][others] / deviation**2
        gain = deviation * (1.0 - follow)
        inverse = 1.0 / np.where(gain == 0.0, TINY, gain)
        level = (ahead[others] * inverse)[:, None]
        rest = drawn[others] * inverse[:, None] - (follow * inverse)[:, None] * drawn[place]
        up = gain >= 0.0
        mass = 0.0
        for each in (level + rest, level - rest):
            low = (each if up.all() else each[up]).max(axis=0, initial=-np.inf)
            high = each[~up].min(axis=0, initial=np.inf)
            mass += float(np.maximum(ndtr(-low) - ndtr(-high), 0.0).mean())
        return 0.5 * mass / int(alike.sum())


@lru_cache(maxsize=64)
def _directions(rank: int, count: int) -> Array:
    """Returns normal numbers of low discrepancy, read-only, `(rank, count)`."""
    from scipy.special import ndtri

    return frozen(np.ascontiguousarray(ndtri(sobol_points(rank, count, Draws("directions"))).T))
