"""The numbers of a picture of an experiment: curves with replicates, or boxes, which `plots` draws.

| symbol | name | meaning | shape |
|---|---|---|---|
| x | `x` | common axis of all lines of a panel | (n,) |
| | `lines[name]` | one row for each replicate | (replicates, n) |
| | `boxes[name]` | one number for each replicate | (replicates,) |
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, final

import numpy as np

from .._utils.checks import Array
from .._utils.dataclass import dataclass
from .._utils.numerals import numeral
from .._utils.tables import csv_writer
from ..errors import InvalidInput

Band = Literal["error", "deviation", "none"]
FEW_OF, CALM = (
    5,
    3.0,
)  # An interval is carried by at most this share of replicates, without which it is that much shorter.
CSV_COLUMNS = ("panel", "name", "x", "mean", "standard_error", "standard_deviation", "replicates")


class Interval(NamedTuple):
    """A mean with its 95% interval (Student's t), which is infinite for a single number."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        if math.isinf(self.low):
            return numeral(self.mean, 3)
        return f"{numeral(self.mean, 3)} ({numeral(self.low, 3)} to {numeral(self.high, 3)})"


def interval(values: Array, *, among: int = 1) -> Interval:
    """Returns the 95% interval of the mean of independent numbers `(n,)`.

    Args:
        values: the numbers.
        among: number of intervals that hold together with probability 95% (Bonferroni's inequality).
    """
    mean = float(values.mean())
    if len(values) < 2:
        return Interval(mean, -math.inf, math.inf)
    half = float(half_interval(values, among=among))
    return Interval(mean, mean - half, mean + half)


def half_interval(values: Array, *, among: int = 1) -> Array:
    """Returns half the length of the 95% interval of the mean over two or more replicates (the first axis).

    Args:
        values: the replicates.
        among: see `interval`.
    """
    from scipy.special import stdtrit

    return np.asarray(float(stdtrit(len(values) - 1, 1.0 - 0.025 / among)) * standard_error(values))


def carried_by(values: Array) -> int:
    """Returns the number of replicates that carry the interval of the mean of `(n,)`, or 0 if it rests on most.

    Runs that got stuck are such replicates. A fifth or fewer carry it if the deviation of the others is less than a
    third of that of all. How often such replicates come is hardly known, so the interval is often too short.
    """
    far = np.argsort(-np.abs(values - np.median(values)), kind="stable")
    whole = deviation(values)
    for count in range(1, len(values) // FEW_OF + 1):
        if deviation(np.delete(values, far[:count])) < whole / CALM:
            return count
    return 0


def deviation(values: Array) -> Array:
    """Returns the standard deviation over replicates (the first axis), or 0 for a single one."""
    return np.asarray(values.std(axis=0, ddof=1)) if len(values) > 1 else np.zeros(values.shape[1:])


def standard_error(values: Array) -> Array:
    """Returns the standard error of the mean over replicates (the first axis), or 0 for a single one."""
    return np.asarray(deviation(values) / math.sqrt(len(values)))


def running_mean(values: Array, window: int, times: Array | None = None) -> Array:
    """Returns the mean of the last `window` values, and of fewer at the beginning, `(n,)`.

    Args:
        values: `(n,)`.
        window: number of values.
        times: weight of each value, `(n,)`. The default is 1.
    """
    if times is None or not (times > 1.0).any():
        total = np.concatenate([[0.0], np.cumsum(values)])
        ends = np.arange(1, len(values) + 1)
        starts = np.maximum(ends - window, 0)
        return np.asarray((total[ends] - total[starts]) / (ends - starts))
    counts = np.concatenate([[0.0], np.cumsum(times)])
    total = np.concatenate([[0.0], np.cumsum(values * times)])
    # A window may begin within a run, whose plays all count as the mean of the run.
    since = np.maximum(counts[1:] - window, 0.0)
    return np.asarray((total[1:] - np.interp(since, counts, total)) / (counts[1:] - since))


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Curves:
    """A panel of lines.

    Attributes:
        x: `(n,)`.
        lines: `(replicates, n)` each, by name. A single row if nothing is repeated.
        x_label: of the horizontal axis.
        y_label: of the vertical axis.
        title: above the panel.
        band: shaded around a mean: two standard errors ("error"), one standard deviation, or nothing.
        log: the logarithmic axes, such as "xy".
        marks: True for points on the lines.
    """

    x: Array
    lines: Mapping[str, Array]
    x_label: str
    y_label: str
    title: str = ""
    band: Band = "error"
    log: str = ""
    marks: bool = False

    def __post_init__(self) -> None:
        for name, values in self.lines.items():
            if values.ndim != 2 or values.shape[1] != len(self.x) or not len(values):
                raise InvalidInput(
                    f"The line {name!r} has shape {values.shape}: it must be (replicates, {len(self.x)})."
                )

    def mean(self, name: str) -> Array:
        """Returns the mean over the replicates, `(n,)`."""
        return np.asarray(self.lines[name].mean(axis=0))

    def spread(self, name: str) -> Array:
        """Returns half the height of the band, `(n,)`."""
        if self.band == "none":
            return np.zeros(len(self.x))
        return deviation(self.lines[name]) if self.band == "deviation" else 2.0 * standard_error(self.lines[name])

    def rows(self) -> Iterator[Sequence[object]]:
        """Yields the rows of the CSV file."""
        for name, values in self.lines.items():
            columns = (self.x, values.mean(axis=0), standard_error(values), deviation(values))
            for numbers in zip(*columns, strict=True):
                yield (self.title, name, *(f"{number:.6g}" for number in numbers), len(values))


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Boxes:
    """A panel of box plots.

    Attributes:
        boxes: one number for each replicate, `(replicates,)`, by name.
        y_label: of the vertical axis.
        title: above the panel.
        log: "y" for a logarithmic axis.
        x_label: quantity of which the names are values, such as "20", "40", ... The boxes then share a colour.
    """

    boxes: Mapping[str, Array]
    y_label: str
    title: str = ""
    log: str = ""
    x_label: str = ""

    def rows(self) -> Iterator[Sequence[object]]:
        """Yields the rows of the CSV file: one for each number, with its place as x."""
        for name, values in self.boxes.items():
            for place, number in enumerate(values):
                yield (self.title, name, place, f"{number:.6g}", "", "", 1)


Panel = Curves | Boxes


def write_csv(path: Path, panels: Sequence[Panel]) -> None:
    """Writes every number of the panels, a row for each point of a line."""
    with path.open("w", newline="", encoding="utf-8") as file:
        write_row = csv_writer(file, end="\n")
        write_row(CSV_COLUMNS)
        for panel in panels:
            for row in panel.rows():
                write_row(row)
