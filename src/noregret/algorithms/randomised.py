"""Widths that are drawn in each round: that of a theorem, and the smaller one that measures best.

| symbol | name | meaning |
|---|---|---|
| zeta_t | `RandomisedBound.drawn_width` squared | shift + growth log t + E_t, E_t exponential of mean 2 |
| N | | arms; contexts do not count: the proof looks at one round, whose context is known |
| a, b, d, r | as of Theorem 2 of Srinivas et al. 2010 | slopes of samples, dimension and longest side of the domain |
| s | | the largest prior standard deviation |

The theorem's shift of 2 log(N / 2) takes every arm for a stranger to all others, and those of a smooth function are
not; the experiments of benchmarks/recommended.py halve it.
"""

from __future__ import annotations

import math

from ..domain import Domain, count_of_points, enclosing_box
from ..slots.envelope import CompactBayes, Confidence
from ..slots.scores import RandomisedBound

FEWEST = 10  # points a side of a box, however smooth a kernel may be, which a fit may learn to be rougher


def randomised_bound(domain: Domain, confidence: Confidence, *, side: float | None) -> RandomisedBound:
    """IRGP-UCB (Takeno, Inatsu & Karasuyama 2023), with its bound on the mean regret.

    Args:
        domain: what may be played.
        confidence: of `bayes_width`, of contexts and points together.
        side: r, where the user gave it.
    """
    size = count_of_points(domain)
    if size is not None:
        return RandomisedBound(shift=2.0 * (math.log(size) - math.log(2.0)))  # of finite domains
    tail, d, r = _slopes(domain, confidence, side)
    # Of continuous ones: E max_j sup |df / dx_j| <= b (sqrt(log(a d)) + sqrt(pi) / 2), so that on a grid of tau_t =
    # b d r t^2 (sqrt(log(a d)) + sqrt(pi) / 2) points a side E max f is within 1 / t^2 of that over the box; N = tau^d.
    steepest = math.sqrt(max(tail.log_a + math.log(d), 0.0)) + math.sqrt(math.pi) / 2.0
    points = math.log(tail.b) + math.log(d) + math.log(r) + math.log(steepest)
    return RandomisedBound(shift=2.0 * d * max(points, 0.0) - 2.0 * math.log(2.0), growth=4.0 * d)


def recommended_bound(domain: Domain, confidence: Confidence, *, side: float | None, spread: float) -> RandomisedBound:
    """Half the shift, log(N / 2); of a box with b d r / s points a side, ten at least. Nothing is proved.

    Args:
        domain, confidence, side: see `randomised_bound`.
        spread: s, reward units.
    """
    size = count_of_points(domain)
    if size is not None:
        return half_shift(size)
    tail, d, r = _slopes(domain, confidence, side)
    points = math.log(tail.b) + math.log(d) + math.log(r) - math.log(spread)
    return RandomisedBound(shift=d * max(points, math.log(FEWEST)) - math.log(2.0))


def half_shift(size: int) -> RandomisedBound:
    """Half the shift, of so many arms."""
    return RandomisedBound(shift=math.log(size) - math.log(2.0))


def _slopes(domain: Domain, confidence: Confidence, side: float | None) -> tuple[CompactBayes, int, float]:
    """(a and b, d, r) of the domain, without contexts."""
    if not isinstance(confidence, CompactBayes):
        raise TypeError("A continuous domain has the bounds of Theorem 2.")
    box = enclosing_box(domain, None)
    return confidence, box.dimension, float((box.upper - box.lower).max()) if side is None else confidence.side
