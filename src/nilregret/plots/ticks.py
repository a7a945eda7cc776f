"""Ticks at round numbers, and limits that outliers cannot stretch."""

from __future__ import annotations

import math

import numpy as np

from .._utils.checks import Array
from .._utils.numerals import numeral
from .scene import Ticks

MOST_TICKS = 6
FENCE = 3.0  # Interquartile ranges beyond the quartiles from which a value is an outlier (Tukey's far fence).


def log_ticks(low: float, high: float, *, most: int = MOST_TICKS) -> Ticks:
    """Returns ticks of a logarithmic axis between two positive numbers."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    if last - first >= 2:
        step = -(-(last - first + 1) // most)
        return [(10.0**k, numeral(10.0**k)) for k in range(first, last + 1, step)]
    between = [factor * 10.0**k for k in range(first - 1, last + 1) for factor in (1, 2, 5)]
    ticks = [tick for tick in between if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]
    return [(tick, numeral(tick)) for tick in (ticks if len(ticks) > 1 else [low, high])]


def fenced(values: Array, *, upward: bool) -> tuple[float, float]:
    """Returns the range of values without far outliers. The best value is always inside.

    Args:
        values: `(n,)`, at least one.
        upward: True if more is better, so that only low values can be outliers.
    """
    low, high = float(values.min()), float(values.max())
    first, third = np.quantile(values, [0.25, 0.75])
    reach = FENCE * float(third - first)
    if reach == 0.0:  # Half of the values are one number, and nothing says how far is far.
        return low, high
    inside = values[values >= first - reach] if upward else values[values <= third + reach]
    return (float(inside.min()), high) if upward else (low, float(inside.max()))


def padded(limits: tuple[float, float], share: float = 0.06) -> tuple[float, float]:
    """Returns limits with some room at both ends."""
    low, high = limits
    room = share * (high - low) or share * abs(high) or 1.0
    return low - room, high + room


def linear_ticks(low: float, high: float, *, most: int = MOST_TICKS, whole: bool = False) -> Ticks:
    """Returns ticks at round numbers between two numbers, the lower one first."""
    rough = (high - low) / (most - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= rough * (1.0 - 1e-9))
    step = max(step, 1.0) if whole else step
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [(k * step, numeral(k * step, step=step)) for k in range(first, last + 1)]
