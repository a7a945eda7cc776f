"""A posterior for pictures: the mean, and a band that says what it proves."""

from __future__ import annotations

from typing import Literal, NamedTuple

from .._utils.checks import Array
from ..slots.envelope import Envelope

TWO = 2.0  # Standard deviations of the band if the policy's own factor proves nothing.

Band = Literal["proved", "policy", "deviations"]


class PosteriorBand(NamedTuple):
    """The posterior at n points.

    Attributes:
        mean: posterior mean, `(n,)`.
        lower: lower end of the band, `(n,)`. If the posterior is skew, the mean may lie outside the band.
        upper: upper end of the band, `(n,)`.
        band: kind of the band. "proved" is the policy's bounds, proved for f. "policy" is the policy's bounds without a
            proof that are no multiple of the standard deviation, such as quantiles of warped rewards. "deviations" is
            two standard deviations to either side.
    """

    mean: Array
    lower: Array
    upper: Array
    band: Band


def band_of(found: Envelope, *, constraint: bool) -> PosteriorBand:
    """Returns the band of the reward, or of a constraint."""
    if found.valid_for == "f":
        return PosteriorBand(found.mean, found.lower, found.upper, "proved")
    if found.width is None or constraint:
        return PosteriorBand(found.mean, found.lower, found.upper, "policy")
    return PosteriorBand(found.mean, found.mean - TWO * found.std, found.mean + TWO * found.std, "deviations")
