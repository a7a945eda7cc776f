"""When a sentence about curves holds: comparisons in pairs, with 95% intervals over the replicates.

All compare what was reached at the end of the curves, at the last x, smaller being better.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ..checks import Array
from ..curves import Curves, Interval, interval, short
from .figure import Statement

INDISTINGUISHABLE = 0.05  # of where the highest curve ends


def ends(curves: Curves, names: Sequence[str] | None = None) -> str:
    """Where the curves end, in words."""
    listed = list(curves.lines) if names is None else names
    return ", ".join(f"{name} {short(curves.mean(name)[-1])}" for name in listed)


def gap(curves: Curves, lower: str, upper: str) -> Interval:
    """By how much one curve ends above another, with the 95% interval of the difference in pairs."""
    return interval(_end(curves, upper) - _end(curves, lower))


def below(text: str, curves: Curves, lower: Sequence[str], upper: Sequence[str]) -> Statement:
    """Every one of `lower` ends below every one of `upper`: the interval of each difference is above 0."""
    gaps = {pair: gap(curves, *pair) for pair in itertools.product(lower, upper)}
    (a, b), closest = min(gaps.items(), key=lambda item: (item[1].low, item[1].mean))
    measured = f"{ends(curves, [*lower, *upper])}; closest: {b} - {a} = {closest}"
    return Statement(text, measured, all(each.low > 0.0 for each in gaps.values()))


def coincide(text: str, curves: Curves, names: Sequence[str]) -> Statement:
    """The curves end within 5% of the panel's height of each other: in print they lie on each other."""
    ends_at = {name: float(curves.mean(name)[-1]) for name in curves.lines}
    ranked = sorted(names, key=ends_at.__getitem__)
    low, high = ranked[0], ranked[-1]
    apart = (ends_at[high] - ends_at[low]) / max(ends_at.values())
    measured = f"{ends(curves, names)}; {high} - {low} = {gap(curves, low, high)}, {100 * apart:.2g}% of the height"
    return Statement(text, measured, apart <= INDISTINGUISHABLE)


def _end(curves: Curves, name: str) -> Array:
    return curves.lines[name][:, -1]
