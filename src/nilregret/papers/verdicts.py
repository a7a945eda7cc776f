"""When a sentence about curves holds: comparisons in pairs, with 95% intervals over the replicates.

All compare what was reached at the end of the curves, at the last x, smaller being better. Where an interval lies on
both sides of the border, or there is none (one replicate), the verdict is None: open.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from .._utils.checks import Array
from ..study.curves import Curves, Interval, interval, short
from .figure import Statement

INDISTINGUISHABLE = 0.05  # of where the highest curve ends


def ends(curves: Curves, names: Sequence[str] | None = None) -> str:
    """Where the curves end, in words."""
    listed = list(curves.lines) if names is None else names
    return ", ".join(f"{name} {short(curves.mean(name)[-1])}" for name in listed)


def gap(curves: Curves, lower: str, upper: str) -> Interval:
    """By how much one curve ends above another, with the 95% interval of the difference in pairs."""
    return interval(_end(curves, upper) - _end(curves, lower))


def together(verdicts: Iterable[bool | None]) -> bool | None:
    """Of a sentence of several parts: false if one part is, else open if one is, else true."""
    listed = list(verdicts)
    if any(verdict is not None and not verdict for verdict in listed):
        return False
    return None if None in listed else True


def above(gap: Interval, border: float = 0.0) -> bool | None:
    """Whether a mean lies above the border: open while its interval has both sides."""
    return None if gap.low <= border < gap.high else gap.low > border


def below(text: str, curves: Curves, lower: Sequence[str], upper: Sequence[str]) -> Statement:
    """Every one of `lower` ends below every one of `upper`: the interval of each difference is above 0.

    It does not hold as soon as one of the intervals is below 0; that one is then shown.
    """
    gaps = {pair: gap(curves, *pair) for pair in itertools.product(lower, upper)}
    (a, b), closest = min(gaps.items(), key=lambda item: (item[1].high > 0.0, item[1].low, item[1].mean))
    measured = f"{ends(curves, [*lower, *upper])}; closest: {b} - {a} = {closest}"
    return Statement(text, measured, together(above(each) for each in gaps.values()))


def coincide(text: str, curves: Curves, names: Sequence[str]) -> Statement:
    """The curves end within 5% of the panel's height of each other: in print they lie on each other.

    The intervals of all differences lie within these 5%; it does not hold as soon as one lies outside.
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
    """Whether a mean lies between -limit and limit: open while its interval is partly inside."""
    if -limit <= gap.low and gap.high <= limit:
        return True
    return False if gap.low > limit or gap.high < -limit else None


def _end(curves: Curves, name: str) -> Array:
    return curves.lines[name][:, -1]
