"""Takeno, Inatsu & Karasuyama 2023: IRGP-UCB, upper bounds of a width that is drawn in each round.

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
from typing import Unpack, cast

from .._utils.checks import one_of
from ..domains.domain import Domain, count_of_points, enclosing_box
from ..kernels import Kernel
from ..policy.policy import Policy, check_model
from ..slots.envelope import CompactBayes, Confidence
from ..slots.scores import RandomisedBound
from .common import Slots, algorithm, bayes_width, build, checked_noise, prior_std, ridge_of_noise

SHIFTS = ("theorem", "half")
FEWEST = 10  # points a side of a box, however smooth a kernel may be, which a fit may learn to be rougher


@algorithm()
def irgp_ucb(
    domain: Domain,
    kernel: Kernel,
    *,
    noise: float | None = None,
    shift: str = "theorem",
    delta: float = 0.1,
    a: float | None = None,
    b: float | None = None,
    r: float | None = None,
    regularization: float | None = None,
    **slots: Unpack[Slots],
) -> Policy:
    """IRGP-UCB: argmax mu_{t-1} + zeta_t^{1/2} sigma_{t-1} with zeta_t drawn anew (Takeno, Inatsu & Karasuyama 2023).

    On N arms zeta_t = 2 log(N / 2) + E_t, E_t exponential of mean 2. The mean regret over f, noise and draws is at most
    sqrt(C_1 (2 + 2 log(N / 2)) T gamma_T), and the width does not grow with t. With probability 1 - delta nothing is
    said. The bounds of `study.bounds` are those of `gp_ucb`, which hold whatever is played.

    Args:
        domain, kernel, noise, regularization, slots: see `gp_ucb`.
        shift: "theorem", the one above (of a box: `nilregret.algorithms.randomised`); or "half", log(N / 2) in its
            place, which measures best (docs/recommended.md), and of which no regret bound is proved.
        delta: failure probability of the bounds of `study.bounds` alone.
        a, b, r: of Theorem 2 of Srinivas et al., as of `gp_ucb`; on a box they shape the shift, too.
    """
    one_of("shift", shift, SHIFTS)
    noise = checked_noise(noise)
    ridge = ridge_of_noise(regularization, noise)
    context = slots.get("context")
    check_model(domain, context, kernel)
    confidence = bayes_width(
        domain, context, kernel, width=None, a=a, b=b, r=r, delta=delta, scale=1.0, noise_matched=ridge == noise**2
    )
    score = (
        randomised_bound(domain, confidence, side=r)
        if shift == "theorem"
        else half_bound(domain, confidence, side=r, spread=prior_std(domain, context, kernel))
    )
    return build("irgp_ucb", domain, kernel, confidence, score, noise=noise, regularization=ridge, **slots)


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


def half_bound(domain: Domain, confidence: Confidence, *, side: float | None, spread: float) -> RandomisedBound:
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
    width = cast(CompactBayes, confidence)  # `bayes_width` gives these bounds on continuous domains
    box = enclosing_box(domain, None)
    return width, box.dimension, float((box.upper - box.lower).max()) if side is None else width.side
