"""IRGP-UCB: upper bounds of a width that is drawn in each round (Takeno, Inatsu & Karasuyama 2023).

| symbol | name | meaning |
|---|---|---|
| zeta_t | `RandomisedBound.drawn_width` squared | shift + growth log t + E_t, E_t exponential of mean 2 |
| N | | number of arms, not of contexts: the proof looks at one round, whose context is known |
| a, b, d, r | as in Theorem 2 of Srinivas et al. 2010 | slopes of samples, dimension and longest side of the domain |
| s | | the largest prior standard deviation |

The theorem's shift of 2 log(N / 2) treats all arms as unrelated, and the arms of a smooth function are not. Half of it
measures better (benchmarks/recommended.py).
"""

from __future__ import annotations

import math
from typing import Literal, Unpack, cast

from .._utils.checks import one_of
from ..domains.domain import D, Domain, count_of_points, enclosing_box
from ..kernels import Kernel
from ..policy.policy import Policy
from ..slots.envelope import CompactBayes, Confidence
from ..slots.scores import RandomisedBound
from .arguments import noise_and_ridge
from .bayes_widths import bayes_width, prior_std
from .definition import Slots, algorithm, build, given

SHIFTS = ("theorem", "half")
FEWEST = 10  # Least number of points along a side of a box, since a fit may find a rougher kernel.


@algorithm()
def irgp_ucb(
    domain: D,
    kernel: Kernel,
    *,
    noise: float | None = None,
    shift: Literal["theorem", "half"] = "theorem",
    delta: float = 0.1,
    a: float | None = None,
    b: float | None = None,
    r: float | None = None,
    regularization: float | None = None,
    **slots: Unpack[Slots],
) -> Policy[D]:
    """IRGP-UCB: argmax mu_{t-1} + zeta_t^{1/2} sigma_{t-1} with zeta_t drawn anew (Takeno, Inatsu & Karasuyama 2023).

    On N arms zeta_t = 2 log(N / 2) + E_t, with E_t exponential of mean 2. The mean regret over f, noise and draws is at
    most sqrt(C (2 + 2 log(N / 2)) T gamma_T), with C = 2 / log(1 + noise^-2). The width does not grow with t. No bound
    that holds with probability 1 - delta is proved. `study.bounds` are those of `gp_ucb`, which hold for all decisions.

    Args:
        domain, kernel, noise, regularization, slots: see `gp_ucb`.
        shift: "theorem" for the one above (on a box, see `nilregret.algorithms.takeno`). "half" for log(N / 2), which
            measures best (docs/recommended.md). For "half" no regret bound is proved.
        delta: failure probability of the bounds of `study.bounds` alone.
        a, b, r: constants of Theorem 2 of Srinivas et al. (see `gp_ucb`). On a box they shape the shift, too.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.irgp_ucb(arms, kernel, noise=0.1)
    >>> policy.valid_for
    'f'
    >>> nr.Study(policy).ask().state
    'pending'
    """
    noise = given("irgp_ucb", noise, slots)
    one_of("shift", shift, SHIFTS)
    noise, ridge = noise_and_ridge(domain, kernel, noise, regularization, slots)
    context = slots.get("context")
    confidence = bayes_width(
        domain, context, kernel, width=None, a=a, b=b, r=r, delta=delta, noise_matched=ridge == noise**2
    )
    score = (
        randomised_bound(domain, confidence, side=r)
        if shift == "theorem"
        else half_bound(domain, confidence, side=r, spread=prior_std(domain, context, kernel))
    )
    return build("irgp_ucb", domain, kernel, confidence, score, noise=noise, regularization=ridge, **slots)


def randomised_bound(domain: Domain, confidence: Confidence, *, side: float | None) -> RandomisedBound:
    """Returns the score of IRGP-UCB with the shift of the theorem, which bounds the mean regret.

    Args:
        domain: domain of the points.
        confidence: width of `bayes_width`, for contexts and points together.
        side: r, if the user gave it.
    """
    size = count_of_points(domain)
    if size is not None:
        return RandomisedBound(shift=2.0 * (math.log(size) - math.log(2.0)))  # finite domains
    tail, d, r = _slopes(domain, confidence, side)
    # On a box, E max_j sup |df / dx_j| <= b (sqrt(log(a d)) + sqrt(pi) / 2). Take a grid of
    # tau_t = b d r t^2 (sqrt(log(a d)) + sqrt(pi) / 2) points along each side. E max f on this grid is within 1 / t^2
    # of that over the box, so that N = tau^d.
    steepest = math.sqrt(max(tail.log_a + math.log(d), 0.0)) + math.sqrt(math.pi) / 2.0
    points = math.log(tail.b) + math.log(d) + math.log(r) + math.log(steepest)
    return RandomisedBound(shift=2.0 * d * max(points, 0.0) - 2.0 * math.log(2.0), growth=4.0 * d)


def half_bound(domain: Domain, confidence: Confidence, *, side: float | None, spread: float) -> RandomisedBound:
    """Returns the score with half the shift, log(N / 2), for which nothing is proved.

    On a box there are b d r / s points along a side, at least ten.

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
    """Returns the score with half the shift, for this number of arms."""
    return RandomisedBound(shift=math.log(size) - math.log(2.0))


def _slopes(domain: Domain, confidence: Confidence, side: float | None) -> tuple[CompactBayes, int, float]:
    """Returns (the width with a and b, d, r) of the domain without contexts."""
    width = cast(CompactBayes, confidence)  # `bayes_width` gives these bounds on continuous domains
    box = enclosing_box(domain, None)
    return width, box.dimension, float((box.upper - box.lower).max()) if side is None else width.side
