"""Rewards bent so that bad ones do not drown good ones: strictly increasing maps, which are undone in what is shown.

One training run that diverges has a loss thirty times that of all others; standardised, these others are one number
then. What a search needs to know of bad points is that they are bad, and which of two is the worse one.

| symbol | name | meaning | shape |
|---|---|---|---|
| y | `knots` | rewards, ascending; the last is the median | (k,) |
| w | `heights` | what they become; the last is the median | (k,) |
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from .checks import Array, frozen
from .serialize import described

MOST_LOG = 200.0  # of a warped value, in scales: e^200 is beyond every reward


@final
@described
@dataclass(frozen=True, eq=False)
class Warp:
    """The identity from the last knot up, linear between knots, and straight on below the first: a bijection."""

    knots: Array
    heights: Array

    def __post_init__(self) -> None:
        for name in ("knots", "heights"):
            object.__setattr__(self, name, frozen(np.array(getattr(self, name), dtype=np.float64)))

    def to(self, rewards: Array) -> Array:
        """Warped rewards."""
        return _through(rewards, self.knots, self.heights)

    def back(self, warped: Array) -> Array:
        """The rewards behind them."""
        return _through(warped, self.heights, self.knots)


def _through(values: Array, knots: Array, heights: Array) -> Array:
    """The map with these heights at these knots."""
    values = np.asarray(values, dtype=np.float64)
    inside = np.interp(values, knots, heights)
    slope = (heights[1] - heights[0]) / (knots[1] - knots[0])
    below = heights[0] + slope * (values - knots[0])
    return np.where(values >= knots[-1], values, np.where(values < knots[0], below, inside))


@final
@described
@dataclass(frozen=True)
class SignedLog:
    """w = sign(y) s log(1 + |y| / s): near 0 the identity, far away logarithms. What is above 0 stays there.

    For constraint values, of which the border at 0 is what matters (the bilog of Eriksson & Poloczek 2021, section 3.1,
    has s = 1; here it follows the units).

    Attributes:
        scale: s, in the units of the values, above 0.
    """

    scale: float

    def to(self, values: Array) -> Array:
        """Warped values."""
        return np.asarray(np.copysign(self.scale * np.log1p(np.abs(values) / self.scale), values))

    def back(self, warped: Array) -> Array:
        """The values behind them, at most e^200 scales."""
        inner = np.minimum(np.abs(warped) / self.scale, MOST_LOG)
        return np.asarray(np.copysign(self.scale * np.expm1(inner), warped))


AnyWarp = Warp | SignedLog


def signed_log(values: Array) -> SignedLog | None:
    """Of the scale that a quarter of the values `(n,)` are nearer to 0 than; None where all of them are 0."""
    sizes = np.abs(values[values != 0.0])
    return SignedLog(float(np.quantile(sizes, 0.25))) if len(sizes) else None


def half_rank(rewards: Array) -> Warp | None:
    """Rewards from the median up stay; those below get normal scores of their ranks (Song et al. 2022, HalfRankWarper).

    w = median + s Phi^{-1}((rank - 1/2) / n) with s the root mean square of how far the upper half is above the median:
    the lower half then looks like that of a normal distribution whose upper half is the rewards' own; where that is all
    one number, s is the mean distance of the rewards below it. Rewards that come several times count as often, and have
    their average rank; in the authors' code they count once.

    Args:
        rewards: `(n,)`.

    Returns:
        The map; None where nothing is below the median by more than rounding.
    """
    from scipy.special import ndtri  # slow to import, and given kernels need none of it
    from scipy.stats import rankdata

    if len(rewards) == 0:
        return None
    median = float(np.median(rewards))
    good = rewards[rewards >= median]
    spread = float(np.abs(good - median).max())
    if spread > 0.0:
        spread *= math.sqrt(float(np.mean(((good - median) / spread) ** 2)))
    bad, first = np.unique(rewards, return_index=True)
    ranks = rankdata(rewards)[first]
    apart = bad < median - 8.0 * np.finfo(np.float64).eps * np.maximum(np.abs(bad), abs(median))
    if not apart.any():
        return None
    # Where the upper half is all one number there is no scale but that of the lower one.
    scale = spread or float(median - bad[apart].mean())
    scores = scale * ndtri((ranks[apart] - 0.5) / len(rewards))
    heights = np.append(median + scores, median)
    knots = np.append(bad[apart], median)
    keep = np.append(np.diff(heights) > 0.0, True)  # scores that the median swallows
    return Warp(knots[keep], heights[keep]) if keep.sum() > 1 else None
