"""The original files of the Intel Lab Data: the log of all readings, and the positions of the motes.

A line of the log is `date time epoch mote temperature humidity light voltage`, separated by spaces:

    2004-03-31 03:38:15.757551 2 1 122.153 -3.91901 11.04 2.03397

Lines with fewer fields were cut off. Mote 5 is silent, ids above 54 are garbled, and temperatures outside 12 to 38
degrees come from failing batteries. All these lines are left out, for every quantity.
"""

from __future__ import annotations

import gzip
import math
from array import array
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import IO, Literal

import numpy as np

from ..._utils.checks import integer, one_of
from ..._utils.files import text_of
from ...errors import InvalidInput
from .datasets import Location, find
from .readings import Readings

FIELDS = {"temperature": 4, "humidity": 5, "light": 6, "voltage": 7}
UNITS = {"temperature": "degrees C", "humidity": "% relative humidity", "light": "lux", "voltage": "V"}
MOTES = frozenset(range(1, 55)) - {5}
CREDIBLE = (12.0, 38.0)  # Degrees C.
MINUTES_PER_DAY = 24 * 60
LINE = "`date time epoch mote temperature humidity light voltage`, separated by spaces"
ORIGIN = "It is the Intel Lab Data (Bodik et al. 2004), http://db.csail.mit.edu/labdata/labdata.html, as downloaded."


def intel_lab_log(
    path: Location | None = None,
    *,
    quantity: Literal["temperature", "humidity", "light", "voltage"] = "temperature",
    minutes: int = 1,
) -> Readings:
    """Reads the log of the Intel lab (`data.txt` or `data.txt.gz`): the average of each mote in each bin of time.

    Bins without any reading have no row, and a mote that is silent in a bin is NaN. A mote reports at most twice a
    minute, so gaps are frequent: use `.reporting(0.5).filled()`.

    Args:
        path: the log, or a folder with the log (as `intel_lab/data.txt.gz` in the folder of all data sets).
        quantity: the quantity to read.
        minutes: length of a bin.
    """
    column = FIELDS[one_of("quantity", quantity, FIELDS)]
    minutes = integer("minutes", minutes, low=1)
    file = find("intel_lab", ["data.txt.gz", "data.txt"], path, origin=ORIGIN)
    stamps, motes, readings = array("q"), array("q"), array("d")  # Compact arrays, since the log has two million lines.
    with _opened(file) as lines:
        for minute, mote, value in _credible(file, lines, column):
            stamps.append(minute // minutes)
            motes.append(mote)
            readings.append(value)
    if not readings:
        raise InvalidInput(f"`{file}` has no usable line: lines are {LINE}.")
    bins, row = np.unique(np.asarray(stamps), return_inverse=True)
    names, place = np.unique(np.asarray(motes), return_inverse=True)
    cell = row * len(names) + place
    count = np.bincount(cell, minlength=len(bins) * len(names)).astype(np.float64)
    total = np.bincount(cell, weights=np.asarray(readings), minlength=len(count))
    values = np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0.0)
    start = bins * minutes
    day = start // MINUTES_PER_DAY
    return Readings(
        values=values.reshape(len(bins), len(names)),
        unit=UNITS[quantity],
        sensors=tuple(map(str, names)),
        day=(day - day[0]).astype(np.intp),
        hour=(start % MINUTES_PER_DAY) / 60.0,
    )


def mote_positions(path: Location | None = None) -> dict[int, tuple[float, float]]:
    """Returns the position of each mote in metres, from `mote_locs.txt` or `mote_locs.csv` with a header line."""
    file = find("intel_lab", ["mote_locs.csv", "mote_locs.txt"], path, origin=ORIGIN)
    places: dict[int, tuple[float, float]] = {}
    for number, line in enumerate(text_of(file).splitlines(), start=1):
        fields = line.replace(",", " ").split()
        if not fields or (number == 1 and not fields[0].isdigit()):
            continue
        try:
            mote, x, y = fields
            places[int(mote)] = (float(x), float(y))
        except ValueError:
            raise InvalidInput(f"Line {number} of `{file}` is not `mote x y`: {line!r}.") from None
    return places


def _opened(file: Path) -> IO[str]:
    return gzip.open(file, "rt", encoding="utf-8") if file.suffix == ".gz" else file.open(encoding="utf-8")


def _credible(file: Path, lines: IO[str], column: int) -> Iterator[tuple[int, int, float]]:
    """Yields (minute since year 1, mote, value) of every credible line."""
    midnights: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        fields = line.split()
        if len(fields) < 8:
            continue
        try:
            mote, temperature = int(fields[3]), float(fields[4])
            if mote not in MOTES or not CREDIBLE[0] <= temperature <= CREDIBLE[1]:
                continue
            day, time, value = fields[0], fields[1], float(fields[column])
            if day not in midnights:
                midnights[day] = date.fromisoformat(day).toordinal() * MINUTES_PER_DAY
            minute = midnights[day] + 60 * int(time[:2]) + int(time[3:5])
        except ValueError:
            raise InvalidInput(f"Line {number} of `{file}` is not {LINE}: {line.strip()!r}.") from None
        if math.isfinite(value):
            yield minute, mote, value
