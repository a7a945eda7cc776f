"""What pictures show of a posterior: its mean, and a band around it that is called what it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from .._utils.checks import Array

if TYPE_CHECKING:
    from .queries import Queries

TWO = 2.0  # standard deviations, where the policy's own multiple proves nothing

Band = Literal["proved", "policy", "deviations"]


class PosteriorBand(NamedTuple):
    """The posterior at n points.

    Attributes:
        mean: posterior mean, `(n,)`.
        lower: lower end of the band, `(n,)`. Where the belief is skew the mean may lie outside.
        upper: upper end, `(n,)`.
        band: what it is: "proved", the policy's bounds, proved for f; "policy", its bounds, for which nothing is proved
            and which are no multiple of the standard deviation, such as quantiles of warped rewards; or "deviations",
            two standard deviations to either side.
    """

    mean: Array
    lower: Array
    upper: Array
    band: Band


def seen(study: Queries, points: Any, *, context: Any = None, channel: int = 0) -> PosteriorBand:
    """The posterior of the reward, or of a constraint, with its band.

    Args:
        study: of a policy with a posterior.
        points: `(n, d)`.
        context: see `Study.predict`.
        channel: see `Study.bounds`.
    """
    found = study._envelope(points, context, channel)
    if found.valid_for == "f":
        return PosteriorBand(found.mean, found.lower, found.upper, "proved")
    if found.width is None or channel:
        return PosteriorBand(found.mean, found.lower, found.upper, "policy")
    return PosteriorBand(found.mean, found.mean - TWO * found.std, found.mean + TWO * found.std, "deviations")
