"""Pieces of pictures: numbers in few digits, fewer points than trials, a table for those who do not see the picture."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...._utils.checks import Array, IndexArray, counted
from ....storage.trial import Answer, Trial

Picture = dict[str, Any]

FEWEST_COLUMNS, MOST_COLUMNS = 100, 2000  # of pixels that a picture is made for
COLUMNS = 800
ROWS = 12  # of a table beside a picture
MOST_DOTS = 600  # drawn in a picture of the posterior: the latest


MINUS = "\N{MINUS SIGN}"
BILLION = 1e9
SMALLEST = 1e-12  # of ranges whose digits are told from those of the estimate
ROUNDING = 1e-9


def short(value: object) -> str:
    """A value as people read it: four digits, thousands apart, a minus that is one."""
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        return str(value)
    if not math.isfinite(value):
        return "not known" if math.isnan(value) else "without end" if value > 0 else "minus without end"
    size = abs(float(value))
    if BILLION <= size < 1e4 * BILLION:
        text = f"{value / BILLION:,.4g} billion"
    else:
        whole = size < BILLION and (size >= 1e4 or isinstance(value, int))
        text = f"{value:,.0f}" if whole else f"{value:,.4g}"
    return text.replace("-", MINUS)


def measured(value: float, half: float) -> tuple[str, str]:
    """An estimate and its range in no more digits than are known, two of half its width; ends are rounded outwards.

    Args:
        value: the estimate.
        half: half the width of the range.
    """
    low, high = value - half, value + half
    largest = max(abs(low), abs(high))
    if not (half > 0.0 and SMALLEST < largest < BILLION * BILLION and half > SMALLEST * largest):
        return short(value), f"{short(low)} to {short(high)}"
    # At most six digits in all: more are nobody's business, however narrow the range.
    digits = min(1 - math.floor(math.log10(half)), 5 - math.floor(math.log10(largest)))
    unit = 10.0**-digits
    ends = math.floor(low / unit + ROUNDING) * unit, math.ceil(high / unit - ROUNDING) * unit
    return _fixed(value, digits), f"{_fixed(ends[0], digits)} to {_fixed(ends[1], digits)}"


def _fixed(value: float, digits: int) -> str:
    rounded = round(value, digits) + 0.0  # of -0.0 the sign is gone
    if digits > 6 or abs(rounded) >= BILLION:
        return short(rounded)
    return f"{rounded:,.{max(digits, 0)}f}".replace("-", MINUS)


def signed(value: float) -> str:
    """With a plus where it is one."""
    return ("+" if value > 0 else "") + short(float(value))


def many(count: int, what: str) -> str:
    """1 trial, 2 trials, 12,000 studies."""
    return f"{short(count)} {counted(count, what)}"


def in_words(seconds: float) -> str:
    """A duration: 0.2 s, 3 min, 5 h, 12 days."""
    for size, name, most in ((1.0, "s", 120.0), (60.0, "min", 120.0), (3600.0, "h", 72.0)):
        if seconds < most * size:
            return f"{seconds / size:.2g} {name}" if seconds < 10 * size else f"{seconds / size:.0f} {name}"
    return f"{seconds / 86_400.0:,.0f} days"


def numbers(values: npt.ArrayLike) -> list[float | None]:
    """As JSON has them, in the digits that a screen can show; None for what is not finite."""
    array = np.asarray(values, dtype=np.float64)
    return [float(f"{value:.6g}") if math.isfinite(value) else None for value in array.tolist()]


def thinned(values: Array, columns: int) -> IndexArray:
    """Which of `(n,)` values to draw: in each column of pixels the lowest and the highest; all where there is room.

    Args:
        values: in the order in which they are drawn, evenly spaced.
        columns: of pixels.
    """
    count = len(values)
    if count <= 2 * columns:
        return np.arange(count)
    starts = np.linspace(0, count, columns, endpoint=False).astype(np.intp)
    ends = np.append(starts[1:], count)
    kept = [
        start + extreme
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        for extreme in (int(values[start:end].argmin()), int(values[start:end].argmax()))
    ]
    return np.unique(np.array([*kept, count - 1], dtype=np.intp))


def spread_evenly(count: int, most: int) -> IndexArray:
    """At most so many of 0 .. count - 1, evenly, the first and the last among them."""
    if count <= most:
        return np.arange(count)
    return np.unique(np.linspace(0, count - 1, most).round().astype(np.intp))


def running_mean(values: Array, window: int, times: Array | None = None) -> Array:
    """The mean of the last `window` values, of fewer at the beginning, `(n,)`.

    Args:
        values: `(n,)`.
        window: how many.
        times: how often each counts, `(n,)`; once unless given.
    """
    if times is None or not (times > 1.0).any():
        total = np.concatenate([[0.0], np.cumsum(values)])
        ends = np.arange(1, len(values) + 1)
        starts = np.maximum(ends - window, 0)
        return np.asarray((total[ends] - total[starts]) / (ends - starts))
    counts = np.concatenate([[0.0], np.cumsum(times)])
    total = np.concatenate([[0.0], np.cumsum(values * times)])
    since = np.maximum(counts[1:] - window, 0.0)  # within a run, whose plays count as their mean
    return np.asarray((total[1:] - np.interp(since, counts, total)) / (counts[1:] - since))


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> dict[str, Any]:
    """The figures of a picture, in text."""
    return {"head": list(head), "rows": [[short(value) for value in row] for row in rows]}


def told(trial: Trial | Answer) -> str:
    """The reward, and of how many plays it is the mean; "" of a trial without one."""
    if trial.reward is None:
        return ""
    return short(trial.reward) + ("" if trial.plays is None else f" (mean of {many(trial.plays.times, 'play')})")


def axis(label: str, *, log: bool = False, names: Sequence[object] | None = None) -> dict[str, Any]:
    """What is said of an axis.

    Args:
        label: in words.
        log: whether it is logarithmic.
        names: of places 0, 1, 2, ... where it has categories.
    """
    return {"label": label, "log": log, "names": None if names is None else [str(name) for name in names]}


def line(name: str, values: npt.ArrayLike, color: str, *, style: str = "line") -> dict[str, Any]:
    """A series of a layer: `style` is "line", "step" or "hidden" (of a border of a band)."""
    return {"name": name, "values": numbers(values), "color": color, "style": style}


def dots(name: str, x: npt.ArrayLike, y: npt.ArrayLike, color: str, *, shape: str = "dot") -> dict[str, Any]:
    """Places that are marked: `shape` is "dot", "cross" or "tick" (at the lower edge; then y is not used)."""
    return {"name": name, "x": numbers(x), "y": numbers(y), "color": color, "shape": shape}


def empty(title: str, why: str) -> Picture:
    """Instead of a picture, the reason why there is none."""
    return {"kind": "none", "title": title, "summary": why}
