"""Elements of pictures: rounded numbers, thinned series, axes, lines, dots and tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...._utils.checks import Array, IndexArray, counted
from ...._utils.numerals import numeral
from ....storage.trial import Answer, Trial

Picture = dict[str, Any]

COLUMNS = 800  # pixels that a series is thinned to
ROWS = 12  # rows of the table of a picture
BINS = 50  # bars that count the trials at a place
MOST_DOTS = 600  # latest trials in a picture of the posterior

COUNTS = ("trial", "play", "answers so far")  # labels of axes of whole numbers
SMALLEST = 1e-12  # relative width of a range, below which it does not limit the digits of the estimate
ROUNDING = 1e-9  # slack before an end of a range is rounded outwards


def short(value: object) -> str:
    """Returns a value as text. Counts have thousands separators, since nobody pastes them."""
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else numeral(float(value))


def measured(
    value: float, half: float, limits: tuple[float, float] = (-math.inf, math.inf)
) -> tuple[str, str]:  # fmt: skip
    """Returns an estimate and its range as text, with the digits that the range justifies.

    Half the width of the range gets two digits. Its ends are rounded outwards.

    Args:
        value: the estimate.
        half: half the width of the range.
        limits: least and largest possible value, at which the range is cut.
    """
    low, high = max(value - half, limits[0]), min(value + half, limits[1])
    value = min(max(value, limits[0]), limits[1])
    largest = max(abs(low), abs(high))
    if not (half > 0.0 and SMALLEST < largest < math.inf and half > SMALLEST * largest):
        return short(value), f"{short(low)} to {short(high)}"
    # More than six digits are not readable, however narrow the range is.
    unit = 10.0 ** max(math.floor(math.log10(half)) - 1, math.floor(math.log10(largest)) - 5)
    ends = (
        max(math.floor(low / unit + ROUNDING) * unit, limits[0]),
        min(math.ceil(high / unit - ROUNDING) * unit, limits[1]),
    )
    said, *between = (numeral(round(each / unit) * unit, 1, step=unit) for each in (value, *ends))
    return said, " to ".join(between)


def many(count: int, what: str) -> str:
    """Returns a count with its noun: "1 trial", "2 trials", "12,000 studies"."""
    return f"{short(count)} {counted(count, what)}"


def numbers(values: npt.ArrayLike) -> list[float | None]:
    """Returns values for JSON with six digits, and None for values that are not finite."""
    array = np.asarray(values, dtype=np.float64)
    return [float(f"{value:.6g}") if math.isfinite(value) else None for value in array.tolist()]


def thinned(values: Array, columns: int) -> IndexArray:
    """Returns the indices of the values to draw: the lowest and the highest in each column of pixels.

    Args:
        values: evenly spaced values in the order of the drawing, `(n,)`. All are drawn if 2 `columns` hold them.
        columns: number of columns of pixels.
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
    """Returns at most `most` evenly spaced indices from 0 to count - 1, with the first and the last."""
    if count <= most:
        return np.arange(count)
    return np.unique(np.linspace(0, count - 1, most).round().astype(np.intp))


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> dict[str, Any]:
    """Returns the numbers of a picture as a table of text."""
    return {"head": list(head), "rows": [[short(value) for value in row] for row in rows]}


def interval_bars(rows: Sequence[tuple[str, str, float, float, float]]) -> list[dict[str, Any]]:
    """Returns intervals as bars, in percent of their common range.

    Args:
        rows: name, words, lower end, middle and upper end of each. A middle may lie outside of its ends.
    """
    if not rows:
        return []
    low, high = min(min(row[2:]) for row in rows), max(max(row[2:]) for row in rows)
    scale = 100.0 / (high - low) if high > low else 0.0
    return [
        {
            "name": name, "from": round((lower - low) * scale, 2), "to": round((upper - low) * scale, 2),
            "mean": round((middle - low) * scale, 2), "said": said,
        }
        for name, said, lower, middle, upper in rows
    ]  # fmt: skip


def reward_text(trial: Trial | Answer) -> str:
    """Returns the reward of a trial, its noise and the number of its plays as text, or "" if there is no reward."""
    if trial.reward is None:
        return ""
    noise = "" if trial.std is None else f" \N{PLUS-MINUS SIGN} {short(trial.std)}"
    return (
        short(trial.reward) + noise + ("" if trial.plays is None else f" (mean of {many(trial.plays.times, 'play')})")
    )


def axis(
    label: str, *, log: bool = False, whole: bool = False, names: Sequence[object] | None = None
) -> dict[str, Any]:  # fmt: skip
    """Returns the description of an axis.

    Args:
        label: name of the axis.
        log: True for a logarithmic axis.
        whole: True for an axis of whole numbers.
        names: names of the places 0, 1, 2, ... if the axis has categories.
    """
    named = None if names is None else [str(name) for name in names]
    return {"label": label, "log": log, "names": named, "whole": whole or label in COUNTS}


def line(name: str, values: npt.ArrayLike, color: str, *, style: str = "line") -> dict[str, Any]:
    """Returns a series of a layer. `style` is "line", "step", or "hidden" for the border of a band."""
    return {"name": name, "values": numbers(values), "color": color, "style": style}


def dots(name: str, x: npt.ArrayLike, y: npt.ArrayLike, color: str, *, shape: str = "dot") -> dict[str, Any]:
    """Returns marked places. `shape` is "dot", "cross", "ring", "bar" or "tick" (at the lower edge, without y)."""
    return {"name": name, "x": numbers(x), "y": numbers(y), "color": color, "shape": shape}


def count_bars(xs: Array, *, named: bool, log: bool) -> dict[str, Any]:
    """Returns bars of how often each place was chosen, in bins if there are many places."""
    xs = xs[np.isfinite(xs)]
    present, counts = np.unique(xs, return_counts=True)
    bins = len(present)
    if bins > BINS and not named:
        scaled = np.log(xs) if log else xs
        counts, ends = np.histogram(scaled, BINS)
        middles = (ends[1:] + ends[:-1]) / 2.0
        present = (np.exp(middles) if log else middles)[counts > 0]
        bins, counts = BINS, counts[counts > 0]
    return dots("how often chosen, of all trials", present, counts, "dot", shape="bar") | {"wide": max(bins, 8)}


def lines_picture(title: str, summary: str, *, x: dict[str, Any], y: dict[str, Any], **more: Any) -> Picture:
    """Returns a picture of lines. `more` are `layers`, `bands`, `dots`, `marks`, `table`, `zero` and the like."""
    lists: Picture = {"layers": [], "bands": [], "dots": [], "marks": [], "table": None}
    return lists | {"kind": "lines", "title": title, "summary": summary, "x": x, "y": y} | more


def layer(x: npt.ArrayLike, *series: dict[str, Any]) -> dict[str, Any]:
    """Returns a layer of series over the same places, `(n,)`."""
    return {"x": np.asarray(x, dtype=np.float64).tolist(), "series": list(series)}


def band_layer(x: npt.ArrayLike, lower: Array, upper: Array, middle: dict[str, Any], name: str) -> dict[str, Any]:
    """Returns the entries `layers` and `bands` of a picture of a line with a band in its colour, `(n,)`."""
    borders = [line(name, each, middle["color"], style="hidden") for each in (lower, upper)]
    band = {"layer": 0, "low": 0, "high": 1, "color": middle["color"], "name": name}
    return {"layers": [layer(x, *borders, middle)], "bands": [band]}


def empty(title: str, why: str) -> Picture:
    """Returns a picture that only says why there is nothing to draw."""
    return {"kind": "none", "title": title, "summary": why}
