"""Ticks and numbers as a person writes them, and limits that outliers cannot stretch."""

from __future__ import annotations

import math

import numpy as np

from ..._utils.checks import Array
from .scene import Ticks

MOST_TICKS = 6
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
PLAIN = range(-3, 6)  # Powers of ten that are written in digits.
FENCE = 3.0  # Interquartile ranges beyond the quartiles from which a value is an outlier (Tukey's far fence).


def log_ticks(low: float, high: float, *, most: int = MOST_TICKS) -> Ticks:
    """Returns ticks of a logarithmic axis between two positive numbers."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    if last - first >= 2:
        step = -(-(last - first + 1) // most)
        powers = range(first, last + 1, step)
        plain = first in PLAIN and last in PLAIN
        return [(10.0**k, power_of_ten(k, plain=plain)) for k in powers]
    between = [factor * 10.0**k for k in range(first - 1, last + 1) for factor in (1, 2, 5)]
    ticks = [tick for tick in between if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]
    return [(tick, number(tick)) for tick in (ticks if len(ticks) > 1 else [low, high])]


def power_of_ten(k: int, *, plain: bool) -> str:
    """Returns 10^k in digits, or with a superscript."""
    if k in (0, 1) or plain:
        return f"{10.0**k:,.0f}" if k >= 0 else f"{10.0**k:g}"
    return f"10{str(k).translate(SUPERSCRIPT)}"


def number(value: float, scale: float | None = None) -> str:
    """Returns a number in about three digits.

    Args:
        value: the number.
        scale: a difference that matters. The number shows a hundredth of it.
    """
    if not math.isfinite(value):
        return "unknown"
    if value == 0.0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    digits = 2 - size if scale is None or not scale > 0.0 else max(2 - math.floor(math.log10(scale)), 2 - size)
    if size >= 6 or size < -4:
        mantissa, power = f"{value:.{min(max(digits + size, 0), 6)}e}".split("e")
        return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}e{int(power)}"
    text = f"{value:,.{min(max(digits, 0), 12)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


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
    return [(k * step, number(k * step, 100.0 * step)) for k in range(first, last + 1)]
