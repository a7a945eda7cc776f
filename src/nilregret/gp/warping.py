"""Warping: strictly increasing maps of rewards that reduce the influence of very bad rewards.

One training run that diverges has a loss thirty times that of all others. After standardisation, these others are
nearly one number. A search needs to know only that points are bad, and which of two is worse.

Decisions use a normal distribution of the warped reward, and reports show the distribution of the reward itself. They
agree: the map is increasing, so bounds, samples and probabilities of improvement order points alike in either unit.
Expected improvement over a value of at least the median also agrees, since from there up the map changes nothing. That
is the expectation under the distribution of the reward. A normal distribution of the same mean and deviation differs,
since the lower half reaches far down.

| symbol | name | meaning | shape |
|---|---|---|---|
| y | `knots` | rewards, ascending; the last is the median | (k,) |
| w | `heights` | warped rewards at the knots; the last is the median | (k,) |
"""

from __future__ import annotations

import math
from typing import final

import numpy as np

from .._utils.checks import Array, finite_array, frozen, number, settle, shown
from ..errors import InvalidInput
from ..serialize import description

MOST_LOG = 200.0  # largest warped value, in scales: e^200 is beyond every reward
MOST_WARPED = 1e100  # largest standard deviation, in scales, whose square does not overflow
MOST_LOG_SQUARE = 650.0  # largest logarithm of a mean square that does not overflow
FAR = 37.0  # standard deviations beyond which a normal distribution has no mass: Phi(-37) = 6e-300
LEAST_STD = 1e-200  # smallest standard deviation, to divide by
NARROW = 1e-4  # standard deviations, in scales, below which a signed logarithm is a straight line
MOST_AT_ONCE = 2**18  # number of (point, segment) pairs that are computed together


@final
@description(frozen=True, eq=False)
class Warp:
    """A piecewise linear bijection, the identity above the last knot and straight below the first."""

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
        """Returns warped rewards."""
        return _through(rewards, self.knots, self.heights)

    def back(self, warped: Array) -> Array:
        """Returns the rewards of warped rewards."""
        return _through(warped, self.heights, self.knots)

    def moments(self, mean: Array, std: Array) -> tuple[Array, Array]:
        """Returns mean and std of the rewards whose warped values are normal with these moments, each `(n,)`."""
        means, stds = np.array(mean, dtype=np.float64), np.array(std, dtype=np.float64)
        bent = np.flatnonzero(means - FAR * stds < self.heights[-1])  # others lie where the map is the identity
        step = max(MOST_AT_ONCE // (len(self.heights) + 1), 1)
        with np.errstate(under="ignore"):
            for first in range(0, len(bent), step):
                rows = bent[first : first + step]
                means[rows], stds[rows] = self._moments(means[rows], stds[rows])
        return means, stds

    def most(self, mean: Array, std: Array) -> Array:
        """Returns upper bounds of the mean of `moments`, `(n,)`, also of any smaller std. O(1) each.

        Rewards below the median count as the median.
        """
        return expected_above(mean, std, self.heights[-1])

    def _moments(self, mean: Array, std: Array) -> tuple[Array, Array]:
        """Returns the moments as a sum over segments, on each a truncated normal distribution under a straight line.

        The line is taken from the end of its segment nearest to the mean, and rewards less the median, to limit
        cancellation. With z = (w - mean) / std and r that end, y - median = jump + slope (z - r).
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
        # E (z - r) and E (z - r)^2 on each segment, within their bounds, since they cancel on short segments.
        square = np.clip(second - 2.0 * near * first + near**2 * mass, 0.0, length**2 * mass)
        first = np.clip(first - near * mass, -length * mass, length * mass)
        median = self.back(mean)
        edges = np.append(self.knots, self.knots[-1]), np.append(self.knots[0], self.knots)  # above, below a segment
        jumps = np.where(high <= 0.0, edges[0], np.where(low >= 0.0, edges[1], median[:, None])) - median[:, None]
        shift = (jumps * mass + slopes * first).sum(axis=1)
        spread = (jumps**2 * mass + 2.0 * jumps * slopes * first + (slopes * np.sqrt(square)) ** 2).sum(axis=1)
        return median + shift, np.sqrt(np.maximum(spread - shift**2, 0.0))


def expected_above(mean: Array, std: Array, floor: float) -> Array:
    """Returns E max(x, floor) of normal x with these moments, `(n,)`. It grows with the deviation."""
    from scipy.special import ndtr

    z = (mean - floor) / np.maximum(std, LEAST_STD)
    with np.errstate(under="ignore", over="ignore"):
        return np.asarray(floor + (mean - floor) * ndtr(z) + std * np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi))


def _through(values: Array, knots: Array, heights: Array) -> Array:
    """Returns the values of the map with these heights at these knots."""
    values = np.asarray(values, dtype=np.float64)
    inside = np.interp(values, knots, heights)
    slope = (heights[1] - heights[0]) / (knots[1] - knots[0])
    below = heights[0] + slope * (values - knots[0])
    return np.where(values >= knots[-1], values, np.where(values < knots[0], below, inside))


@final
@description(frozen=True)
class SignedLog:
    """The map w = sign(y) s log(1 + |y| / s): the identity near 0, and logarithms far away. Signs are kept.

    It is for constraint values, whose border is at 0. The bilog of Eriksson & Poloczek 2021, section 3.1, has s = 1.
    Here s follows the units.

    Attributes:
        scale: s, in the units of the values, above 0.
    """

    scale: float

    def __post_init__(self) -> None:
        settle(self, scale=number("scale", self.scale, low=0.0, open_low=True))

    def to(self, values: Array) -> Array:
        """Returns warped values."""
        return np.asarray(np.copysign(self.scale * np.log1p(np.abs(values) / self.scale), values))

    def back(self, warped: Array) -> Array:
        """Returns the values of warped values, at most e^200 scales."""
        inner = np.minimum(np.abs(warped) / self.scale, MOST_LOG)
        return np.asarray(np.copysign(self.scale * np.expm1(inner), warped))

    def moments(self, mean: Array, std: Array) -> tuple[Array, Array]:
        """Returns mean and std of the values whose warped values are normal with these moments, each `(n,)`.

        On either side of 0 values have a truncated log-normal distribution. With x = w / s of mean m and variance v,
        E[e^x, x > 0] = e^(m + v/2) Phi((m + v) / sqrt(v)).
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

    def most(self, mean: Array, std: Array) -> Array:
        """Returns upper bounds of the mean of `moments`, `(n,)`, also of any smaller std.

        The mean grows with the deviation above 0, and shrinks with it below.
        """
        return np.where(mean > 0.0, self.moments(mean, std)[0], self.back(mean))


AnyWarp = Warp | SignedLog


def warped_std(warp: AnyWarp | None, rewards: Array, stds: Array) -> Array:
    """Returns standard deviations `(n,)` of noise at rewards `(n,)` as those of warped rewards.

    The slope is that of the secant from one deviation below the reward to one above. A tangent between two knots of the
    map would say little.
    """
    return stds if warp is None else 0.5 * (warp.to(rewards + stds) - warp.to(rewards - stds))


def signed_log(values: Array) -> SignedLog | None:
    """Returns the map whose scale is the 0.25 quantile of the nonzero absolute values `(n,)`, or None if all are 0."""
    sizes = np.abs(values[values != 0.0])
    return SignedLog(float(np.quantile(sizes, 0.25))) if len(sizes) else None


def half_rank(rewards: Array) -> Warp | None:
    """Returns a map that keeps rewards from the median up and replaces lower rewards by normal scores of their ranks.

    Source: Song et al. 2022, HalfRankWarper. w = median + s Phi^{-1}((rank - 1/2) / n) with s the root mean square of
    the upper half less the median. The lower half then looks like that of a normal distribution whose upper half is the
    rewards' own. If the upper half is all one number, s is the mean distance of the rewards below it. Repeated rewards
    count as often as they occur, and have their average rank. In the authors' code they count once.

    Args:
        rewards: `(n,)`.

    Returns:
        The map, or None if nothing is below the median by more than rounding.
    """
    from scipy.special import ndtri  # slow to import, and given kernels need none of it

    if len(rewards) == 0:
        return None
    median = float(np.median(rewards))
    good = rewards[rewards >= median]
    spread = float(np.abs(good - median).max())
    if spread > 0.0:
        spread *= math.sqrt(float(np.mean(((good - median) / spread) ** 2)))
    bad, _, counts = np.unique(rewards, return_index=True, return_counts=True)
    ranks = np.cumsum(counts) - 0.5 * (counts - 1)
    apart = bad < median - 8.0 * np.finfo(np.float64).eps * np.maximum(np.abs(bad), abs(median))
    if not apart.any():
        return None
    # If the upper half is all one number, only the lower half has a scale.
    scale = spread or float(median - bad[apart].mean())
    scores = scale * ndtri((ranks[apart] - 0.5) / len(rewards))
    heights = np.append(median + scores, median)
    knots = np.append(bad[apart], median)
    keep = np.append(np.diff(heights) > 0.0, True)  # drops scores that equal the next to rounding
    return Warp(knots[keep], heights[keep]) if keep.sum() > 1 else None
