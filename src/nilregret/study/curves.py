"""What a picture of an experiment shows: curves with replicates, or boxes; drawn by `plots`, written as CSV.

| symbol | name | meaning | shape |
|---|---|---|---|
| x | `x` | common axis of all lines of a panel | (n,) |
| | `lines[name]` | one row for each replicate | (replicates, n) |
| | `boxes[name]` | one number for each replicate | (replicates,) |
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, final

import numpy as np

from .._utils.checks import Array
from .._utils.errors import InvalidInput

Band = Literal["error", "deviation", "none"]
CSV_COLUMNS = ("panel", "name", "x", "mean", "standard_error", "standard_deviation", "replicates")


class Interval(NamedTuple):
    """A mean with its 95% interval (Student's t); without bounds where there is one number only."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        if math.isinf(self.low):
            return short(self.mean)
        return f"{short(self.mean)} ({short(self.low)} to {short(self.high)})"


def short(number: float) -> str:
    """Three digits, or whole numbers where they are large."""
    return f"{number:,.0f}" if abs(number) >= 1000.0 else f"{number:.3g}"


def interval(values: Array) -> Interval:
    """The 95% interval of the mean of independent numbers `(n,)`."""
    from scipy.special import stdtrit

    mean = float(values.mean())
    if len(values) < 2:
        return Interval(mean, -math.inf, math.inf)
    half = float(stdtrit(len(values) - 1, 0.975)) * float(standard_error(values))
    return Interval(mean, mean - half, mean + half)


def deviation(values: Array) -> Array:
    """Standard deviation over replicates (the first axis); 0 where there is one only."""
    return np.asarray(values.std(axis=0, ddof=1)) if len(values) > 1 else np.zeros(values.shape[1:])


def standard_error(values: Array) -> Array:
    """Standard error of the mean over replicates (the first axis); 0 where there is one only."""
    return np.asarray(deviation(values) / math.sqrt(len(values)))


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Curves:
    """A panel of lines.

    Attributes:
        x: `(n,)`.
        lines: by name, `(replicates, n)` each; a single row where nothing is repeated.
        band: what is shaded around a mean: two standard errors, one standard deviation, or nothing.
        log: the axes that are logarithmic, such as "xy".
        marks: points instead of lines.
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
        """Mean over the replicates, `(n,)`."""
        return np.asarray(self.lines[name].mean(axis=0))

    def spread(self, name: str) -> Array:
        """Half the height of the band, `(n,)`."""
        if self.band == "none":
            return np.zeros(len(self.x))
        return deviation(self.lines[name]) if self.band == "deviation" else 2.0 * standard_error(self.lines[name])

    def rows(self) -> Iterator[Sequence[object]]:
        """Rows of the CSV file."""
        for name, values in self.lines.items():
            columns = (self.x, values.mean(axis=0), standard_error(values), deviation(values))
            for numbers in zip(*columns, strict=True):
                yield (self.title, name, *(f"{number:.6g}" for number in numbers), len(values))


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Boxes:
    """A panel of box plots.

    Attributes:
        boxes: by name, one number for each replicate, `(replicates,)`.
        log: "y" for a logarithmic axis.
        x_label: what the names are values of, where they are such as "20", "40", ...; the boxes then share a colour.
    """

    boxes: Mapping[str, Array]
    y_label: str
    title: str = ""
    log: str = ""
    x_label: str = ""

    def rows(self) -> Iterator[Sequence[object]]:
        """Rows of the CSV file: one for each number, x its place."""
        for name, values in self.boxes.items():
            for place, number in enumerate(values):
                yield (self.title, name, place, f"{number:.6g}", "", "", 1)


Panel = Curves | Boxes


def write_csv(path: Path, panels: Sequence[Panel]) -> None:
    """Every number of the panels, a row for each point of a line."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(CSV_COLUMNS)
        for panel in panels:
            writer.writerows(panel.rows())
