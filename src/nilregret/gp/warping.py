"""Rewards bent so that bad ones do not drown good ones: strictly increasing maps, which are undone in what is shown.

One training run that diverges has a loss thirty times that of all others; standardised, these others are one number
then. What a search needs to know of bad points is that they are bad, and which of two is the worse one.

What decides is a normal distribution of the warped reward; what is shown is the distribution of the reward behind it.
They agree: the map is increasing, so bounds, draws and probabilities of improvement order points alike in either unit.
Expected improvement does, too, over whatever is at least the median: from there up the map changes nothing. That is the
expectation over the whole belief. A normal distribution of the same mean and deviation is another belief, since the
lower half reaches far down.

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

from .._utils.checks import Array, finite_array, frozen, number, settle, shown
from .._utils.errors import InvalidInput
from .._utils.serialize import described

MOST_LOG = 200.0  # of a warped value, in scales: e^200 is beyond every reward
MOST_WARPED = 1e100  # standard deviation, in scales: its square must not overflow
MOST_LOG_SQUARE = 650.0  # its mean square must not overflow
FAR = 37.0  # standard deviations beyond which a normal distribution has no mass: Phi(-37) = 6e-300
LEAST_STD = 1e-200  # where nothing is uncertain
NARROW = 1e-4  # standard deviations, in scales, below which a signed logarithm is a straight line
MOST_AT_ONCE = 2**18  # (point, segment) pairs that are looked at together


@final
@described
@dataclass(frozen=True, eq=False)
class Warp:
    """The identity from the last knot up, linear between knots, and straight on below the first: a bijection."""

    knots: Array
    heights: Array

    def __post_init__(self) -> None:
        knots, heights = (finite_array(name, getattr(self, name)).copy() for name in ("knots", "heights"))
        rise = knots.shape == heights.shape == (knots.size,) and knots.size > 1 and knots[-1] == heights[-1]
        if not (rise and (np.diff(knots) > 0.0).all() and (np.diff(heights) > 0.0).all()):
            raise InvalidInput(
                f"`knots` {shown(knots.tolist())} and `heights` {shown(heights.tolist())} must be as many, two or "
                "more, ascend, and end with the same number."
            )
        settle(self, knots=frozen(knots), heights=frozen(heights))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Warp):
            return NotImplemented
        return np.array_equal(self.knots, other.knots) and np.array_equal(self.heights, other.heights)

    def __hash__(self) -> int:
        return hash((self.knots.tobytes(), self.heights.tobytes()))

    def to(self, rewards: Array) -> Array:
        """Warped rewards."""
        return _through(rewards, self.knots, self.heights)

    def back(self, warped: Array) -> Array:
        """The rewards behind them."""
        return _through(warped, self.heights, self.knots)

    def moments(self, mean: Array, std: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of the rewards behind normal warped ones of these, each `(n,)`."""
        means, stds = np.array(mean, dtype=np.float64), np.array(std, dtype=np.float64)
        bent = np.flatnonzero(means - FAR * stds < self.heights[-1])  # the others lie where rewards stay
        step = max(MOST_AT_ONCE // (len(self.heights) + 1), 1)
        with np.errstate(under="ignore"):
            for first in range(0, len(bent), step):
                rows = bent[first : first + step]
                means[rows], stds[rows] = self._moments(means[rows], stds[rows])
        return means, stds

    def _moments(self, mean: Array, std: Array) -> tuple[Array, Array]:
        """A sum over the segments: on each the normal distribution is truncated, and the map is a straight line.

        The line is taken from the end of its segment nearest to the mean, and rewards less the median, so that little
        cancels: with z = (w - mean) / std and r that end, y - median = jump + slope (z - r).
        """
        from scipy.special import ndtr  # slow to import, and given kernels need none of it

        steep = np.diff(self.knots) / np.diff(self.heights)
        slopes = std[:, None] * np.concatenate([steep[:1], steep, [1.0]])
        ends = np.full((len(mean), len(self.heights) + 2), FAR)
        ends[:, 0] = -FAR
        z = (self.heights - mean[:, None]) / np.maximum(std, LEAST_STD)[:, None]
        ends[:, 1:-1] = np.clip(z, -FAR, FAR)
        low, high = ends[:, :-1], ends[:, 1:]
        tails, density = ndtr(-np.abs(ends)), np.exp(-0.5 * ends**2) / math.sqrt(2.0 * math.pi)
        below, above = tails[:, :-1], tails[:, 1:]
        mass = np.where(high <= 0.0, above - below, np.where(low >= 0.0, below - above, 1.0 - below - above))
        near = np.clip(0.0, low, high)  # r
        first = density[:, :-1] - density[:, 1:]
        second = mass + low * density[:, :-1] - high * density[:, 1:]
        length = high - low
        # E (z - r) and E (z - r)^2 there; on a short segment what has cancelled is all there is.
        square = np.clip(second - 2.0 * near * first + near**2 * mass, 0.0, length**2 * mass)
        first = np.clip(first - near * mass, -length * mass, length * mass)
        median = self.back(mean)
        edges = np.append(self.knots, self.knots[-1]), np.append(self.knots[0], self.knots)  # above, below a segment
        jumps = np.where(high <= 0.0, edges[0], np.where(low >= 0.0, edges[1], median[:, None])) - median[:, None]
        shift = (jumps * mass + slopes * first).sum(axis=1)
        spread = (jumps**2 * mass + 2.0 * jumps * slopes * first + (slopes * np.sqrt(square)) ** 2).sum(axis=1)
        return median + shift, np.sqrt(np.maximum(spread - shift**2, 0.0))


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

    def __post_init__(self) -> None:
        settle(self, scale=number("scale", self.scale, low=0.0, open_low=True))

    def to(self, values: Array) -> Array:
        """Warped values."""
        return np.asarray(np.copysign(self.scale * np.log1p(np.abs(values) / self.scale), values))

    def back(self, warped: Array) -> Array:
        """The values behind them, at most e^200 scales."""
        inner = np.minimum(np.abs(warped) / self.scale, MOST_LOG)
        return np.asarray(np.copysign(self.scale * np.expm1(inner), warped))

    def moments(self, mean: Array, std: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of the values behind normal warped ones of these, each `(n,)`.

        On either side of 0 values are those of a log-normal distribution, truncated: with x = w / s of mean m and
        variance v, E[e^x; x > 0] = e^(m + v/2) Phi((m + v) / sqrt(v)).
        """
        from scipy.special import log_ndtr, ndtr

        m, deviation = np.abs(mean) / self.scale, np.minimum(std / self.scale, MOST_WARPED)
        flat, v = deviation < NARROW, np.maximum(deviation, NARROW) ** 2
        root = np.sqrt(v)

        def half(power: float, sign: float, most: float) -> Array:  # E[e^(power |x|)] on one side of 0
            exponent = sign * power * m + 0.5 * power**2 * v
            return np.asarray(np.exp(np.minimum(exponent + log_ndtr((sign * m + power * v) / root), most)))

        right, left = half(1.0, 1.0, MOST_LOG), half(1.0, -1.0, MOST_LOG)
        size = (right - ndtr(m / root)) - (left - ndtr(-m / root))
        square = half(2.0, 1.0, MOST_LOG_SQUARE) + half(2.0, -1.0, MOST_LOG_SQUARE) - 2.0 * (right + left) + 1.0
        spread = np.sqrt(np.maximum(square - size**2, 0.0))
        plain, slope = np.expm1(np.minimum(m, MOST_LOG)), np.exp(np.minimum(m, MOST_LOG))
        return np.copysign(self.scale * np.where(flat, plain, size), mean), self.scale * np.where(
            flat, slope * deviation, spread
        )


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
