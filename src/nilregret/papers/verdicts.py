"""Verdicts on statements about curves, by comparisons in pairs with 95% intervals over the replicates.

All comparisons are at the end of the curves, at the last x, where smaller is better. If an interval contains the
border, or if there is no interval (one replicate), the verdict is None, which means open.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array
from .._utils.numerals import numeral
from ..errors import InvalidInput
from ..study.curves import Curves, Interval, interval
from .figure import Statement

INDISTINGUISHABLE = 0.05  # fraction of the end of the highest curve


def ends(curves: Curves, names: Sequence[str] | None = None) -> str:
    """Returns the ends of the curves as text."""
    listed = list(curves.lines) if names is None else names
    return ", ".join(f"{name} {numeral(curves.mean(name)[-1], 3)}" for name in listed)


def gap(curves: Curves, lower: str, upper: str) -> Interval:
    """Returns the difference between the ends of two curves, with its 95% interval over pairs."""
    return interval(_end(curves, upper) - _end(curves, lower))


def together(verdicts: Iterable[bool | None]) -> bool | None:
    """Returns False if one of the verdicts is False, else None if one is open, else True."""
    listed = list(verdicts)
    if any(verdict is not None and not verdict for verdict in listed):
        return False
    return None if None in listed else True


def above(gap: Interval, border: float = 0.0) -> bool | None:
    """Returns True if the interval lies above the border, None if it contains the border, else False."""
    return None if gap.low <= border < gap.high else gap.low > border


def below(text: str, curves: Curves, lower: Sequence[str], upper: Sequence[str]) -> Statement:
    """Returns the statement that each curve of `lower` ends below each curve of `upper`.

    It holds if the interval of each difference is above 0. It does not hold if one of them is below 0.
    """
    gaps = {pair: gap(curves, *pair) for pair in itertools.product(lower, upper)}
    (a, b), closest = min(gaps.items(), key=lambda item: (item[1].high > 0.0, item[1].low, item[1].mean))
    measured = f"{ends(curves, [*lower, *upper])}; closest: {b} - {a} = {closest}"
    return Statement(text, measured, together(above(each) for each in gaps.values()))


def coincide(text: str, curves: Curves, names: Sequence[str]) -> Statement:
    """Returns the statement that the curves end within 5% of the height of the panel, so that they coincide in print.

    It holds if the intervals of all differences lie within these 5%. It does not hold if one lies outside.
    """
    ends_at = {name: float(curves.mean(name)[-1]) for name in curves.lines}
    ranked = sorted(names, key=ends_at.__getitem__)
    low, high = ranked[0], ranked[-1]
    apart = (ends_at[high] - ends_at[low]) / max(ends_at.values())
    measured = f"{ends(curves, names)}; {high} - {low} = {gap(curves, low, high)}, {100 * apart:.2g}% of the height"
    limit = INDISTINGUISHABLE * max(ends_at.values())
    gaps = [gap(curves, a, b) for a, b in itertools.combinations(ranked, 2)]
    return Statement(text, measured, together(within(each, limit) for each in gaps))


def within(gap: Interval, limit: float) -> bool | None:
    """Returns True if the interval lies between -limit and limit, None if a part of it does, else False."""
    if -limit <= gap.low and gap.high <= limit:
        return True
    return False if gap.low > limit or gap.high < -limit else None


def _end(curves: Curves, name: str) -> Array:
    return curves.lines[name][:, -1]


class PowerFit(NamedTuple):
    """C x^c, and the 95% interval of c over the replicates."""

    constant: float
    exponent: Interval

    def __call__(self, x: npt.ArrayLike) -> Array:
        """The fitted curve."""
        return self.constant * np.asarray(x, dtype=np.float64) ** self.exponent.mean

    def words(self, symbol: str) -> str:
        """Returns the law as text, such as "1.86 T^0.74"."""
        return f"{self.constant:.3g} {symbol}^{self.exponent.mean:.3g}"


def fit_power(x: Array, values: Array) -> PowerFit:
    """Returns the least-squares fit to the logarithms of the means over replicates.

    The interval is that of the linearised exponent. Replicate i changes c by
    sum_j w_j (y_ij / mean_j - 1) / replicates, where w are the weights of the slope. The interval is therefore valid
    if values of a replicate at different x are dependent.
    """
    means = values.mean(axis=0)
    if len(x) < 2 or not (means > 0.0).all() or not (x > 0.0).all():
        raise InvalidInput("A power law is fitted to two or more positive means at positive x.")
    log_x, log_y = np.log(x), np.log(means)
    weights = (log_x - log_x.mean()) / np.square(log_x - log_x.mean()).sum()
    exponent = interval(float(weights @ log_y) + (values / means) @ weights)
    return PowerFit(float(np.exp(log_y.mean() - exponent.mean * log_x.mean())), exponent)
