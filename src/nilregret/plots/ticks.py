"""Ticks at round numbers, and limits that outliers cannot stretch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, IndexArray
from .._utils.numerals import numeral
from .scene import Axis, Band, Boxes, Heat, Mark, Panel, Ticks, Words

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


def beyond(values: Array, limits: tuple[float, float]) -> Iterator[tuple[npt.NDArray[np.bool_], str, str]]:
    """Yields which values `(n,)` are beyond an end of an axis, the shape of their arrows, and the words of a legend."""
    for chosen, shape, far, worst in (
        (values < limits[0], "v", "down", np.min),
        (values > limits[1], "^", "up", np.max),
    ):
        if chosen.any():
            yield chosen, shape, f"outside, {far} to {numeral(float(worst(values[chosen])))}"


def padded(limits: tuple[float, float], share: float = 0.06) -> tuple[float, float]:
    """Returns limits with some room at both ends."""
    low, high = limits
    room = share * (high - low) or share * abs(high) or 1.0
    return low - room, high + room


def linear_ticks(low: float, high: float, *, most: int = MOST_TICKS, whole: bool = False) -> Ticks:
    """Returns ticks at round numbers between two numbers, the lower one first."""
    rough = (high - low) / (most - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    steps = [factor * power for factor in (0.5, 1.0, 2.0, 5.0, 10.0)]
    place = next(i for i, step in enumerate(steps) if step >= rough * (1.0 - 1e-9))
    step = max(steps[place], 1.0) if whole else steps[place]
    if math.floor(high / step + 1e-9) - math.ceil(low / step - 1e-9) < 3:  # Fewer than four ticks.
        step = max(steps[place - 1], 1.0) if whole else steps[place - 1]
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [(k * step, numeral(k * step, step=step)) for k in range(first, last + 1)]


def ticked(panel: Panel) -> Panel:
    """Returns a panel whose axes and scales have limits and ticks, which all renderers draw."""
    marks = [_scaled(mark) if isinstance(mark, Heat) else mark for mark in panel.marks]
    return replace(panel, marks=marks, x=_settled(panel.x, marks, "x"), y=_settled(panel.y, marks, "y"))


def _scaled(mark: Heat) -> Heat:
    low, high = float(np.nanmin(mark.z)), float(np.nanmax(mark.z))
    return replace(mark, ticks=linear_ticks(low, high) if high > low else [(low, numeral(low))])


def _settled(axis: Axis, marks: Sequence[Mark], side: Literal["x", "y"]) -> Axis:
    limits = axis.limits or _extent(axis, marks, side)
    if axis.ticks is not None:
        return replace(axis, limits=limits)
    ticks = log_ticks(*limits) if axis.log else linear_ticks(*limits, whole=axis.whole)
    return replace(axis, limits=limits, ticks=ticks)


def _extent(axis: Axis, marks: Sequence[Mark], side: Literal["x", "y"]) -> tuple[float, float]:
    """Returns limits around all marks, with some room."""
    sides = [np.ravel(np.asarray(part, dtype=np.float64)) for mark in marks for part in _parts(mark, side)]
    known = np.concatenate(sides) if sides else np.zeros(0)
    known = known[np.isfinite(known) & ((known > 0.0) if axis.log else True)]
    if not len(known):
        return (1.0, 10.0) if axis.log else (0.0, 1.0)
    low, high = float(known.min()), float(known.max())
    if axis.log:
        room = max(high / low, 1.1) ** 0.04
        return low / room, high * room
    return padded((low, high), 0.06 if side == "y" else 0.02)


def _parts(mark: Mark, side: Literal["x", "y"]) -> list[Any]:
    if isinstance(mark, Band):
        return [mark.x] if side == "x" else [mark.low, mark.high]
    if isinstance(mark, Boxes):
        return [mark.x0, mark.x1] if side == "x" else [] if mark.y0 is None else [mark.y0, mark.y1]
    return [] if isinstance(mark, Words) else [getattr(mark, side)]


def spread_evenly(count: int, most: int) -> IndexArray:
    """Returns at most `most` evenly spaced indices from 0 to count - 1, with the first and the last."""
    if count <= most:
        return np.arange(count)
    return np.unique(np.linspace(0, count - 1, most).round().astype(np.intp))


def thinned(values: Array, columns: int) -> IndexArray:
    """Returns the indices of the values to draw: the lowest and the highest in each column of a picture.

    Args:
        values: evenly spaced values in the order of the drawing, `(n,)`. All are drawn if 2 `columns` hold them.
        columns: number of columns.
    """
    count = len(values)
    if count <= 2 * columns:
        return np.arange(count)
    starts = np.linspace(0, count, columns, endpoint=False).astype(np.intp)
    parts = np.split(np.arange(count), starts[1:])
    kept = [int(part[pick(values[part])]) for part in parts for pick in (np.argmin, np.argmax)]
    return np.unique(np.array([*kept, count - 1], dtype=np.intp))
