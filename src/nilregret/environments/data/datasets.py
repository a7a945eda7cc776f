"""Loaders of four sensor data sets, from files of the user (`path`, or the folder in NILREGRET_DATA).

| loader | file | arrays it must hold |
|---|---|---|
| `intel_lab` | intel_lab/intel_lab_30min.npz | temperature, humidity (rows, motes), hour_of_day, day (rows,) |
| `light_cmu` | light_cmu/light_cmu.npz | train, test (rows, sensors) as read by the converter, coords (sensors, 2) |
| `metr_la` | metr_la_week/metr_la_week.npz | speed_mph (2016, sensors), sensor_id (sensors,), latlon (sensors, 2) |
| `la_highway` | la_highway_april/la_highway_april.npz | dense_speed_mph (sensors, 180, days), dense_latlon; sparse |

No data set states a licence, so none is part of the library.

The original files of the Intel Lab Data are a log of all readings, and the positions of the motes.
A line of the log is `date time epoch mote temperature humidity light voltage`, separated by spaces:

    2004-03-31 03:38:15.757551 2 1 122.153 -3.91901 11.04 2.03397

Lines with fewer fields were cut off. Mote 5 is silent, ids above 54 are garbled, and temperatures outside 12 to 38
degrees come from failing batteries. All these lines are left out, for every quantity.
"""

from __future__ import annotations

import gzip
import math
import os
import zipfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import numpy.typing as npt

from ..._utils.checks import Array, integer, one_of
from ..._utils.files import text_of
from ...errors import InvalidInput, MissingData
from .sensors import Readings

VARIABLE = "NILREGRET_DATA"


def located(names: Iterable[str], path: str | os.PathLike[str] | None) -> Path | None:
    """Returns the first existing file, or `path` itself if that is a file. None if there is none.

    Args:
        names: names such as "light_cmu/light_cmu.npz", the usual one first.
        path: the file, the folder of the data set, or the folder of all data sets. NILREGRET_DATA unless given.
    """
    place = _place(path)
    if place is None:
        return None
    root, listed = place, list(names)
    places = [root, *(root / Path(name).name for name in listed), *(root / name for name in listed)]
    return next((place for place in places if place.is_file()), None)


def _place(path: str | os.PathLike[str] | None) -> Path | None:
    """Returns the path of the user, or else the folder in NILREGRET_DATA, or None."""
    text = os.environ.get(VARIABLE) if path is None else os.fspath(path)
    return Path(text).expanduser() if text else None


def find(folder: str, files: Sequence[str], path: str | os.PathLike[str] | None, *, origin: str) -> Path:
    """Returns the first of `files` that is in `folder` under `path`, or `path` itself if that is a file.

    Args:
        folder: folder of the data set.
        files: names of the file, the usual one first.
        path: the file, the folder of the data set, or the folder of all data sets. NILREGRET_DATA unless given.
        origin: origin of the data, for the error.

    Raises:
        MissingData: if there is no such file.
    """
    names = [f"{folder}/{file}" for file in files]
    file = located(names, path)
    if file is not None:
        return file
    raise MissingData(
        f"The data set `{folder}` was not found: {looked_for(names, path, 'no path was given')}. {origin} "
        f"Give the folder that holds `{names[0]}` as `path` (on the command line: --data), or name it once and for "
        f"all: export {VARIABLE}=/path/to/folder. What the file must hold is in docs/papers/data-sets.md."
    )


def looked_for(names: Sequence[str], path: str | os.PathLike[str] | None, nowhere: str) -> str:
    """Returns the places without the files, in words. `nowhere` is the text if no place was named."""
    place = _place(path)
    if place is None:
        return f"{nowhere} and the environment variable {VARIABLE} is not set"
    wanted = " or ".join(f"`{name}`" for name in names)
    return f"looked for {wanted} in `{place}`{f' (from {VARIABLE})' if path is None else ''}"


def arrays(file: Path, names: Sequence[str]) -> list[npt.NDArray[np.generic]]:
    """Returns the named arrays of an npz file."""
    try:
        with np.load(file, allow_pickle=False) as held:
            missing = [name for name in names if name not in held.files]
            if missing:
                raise InvalidInput(
                    f"`{file}` holds no array {', '.join(missing)}, only {', '.join(held.files) or 'nothing'}. "
                    "Usually it is the file of another data set, or of an earlier conversion."
                )
            return [held[name] for name in names]
    except (ValueError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"`{file}` is not an npz file of plain arrays ({error}).") from error


METR_LA_WORKING_DAYS = (0, 1, 4, 5, 6)  # The week begins on a Thursday.
STEPS_PER_DAY = 288  # Steps of five minutes.
LUX = 1500.0 / 4096.0  # Lux of one unit of the light sensors' converter.
HIGHWAY_DAYS = 16  # The number of days on which a sensor must report half of the time.
HIGHWAY_SHARE = 0.85  # The share of the readings that a day must have.

Location = str | os.PathLike[str]


def intel_lab(
    path: Location | None = None, *, quantity: Literal["temperature", "humidity"] = "temperature"
) -> Readings:
    """Loads the Intel Berkeley Research lab: 50 motes, 240 half-hours on 5 days, in degrees Celsius or percent.

    `intel_lab_log` reads the original log instead. Srinivas et al. use the first two thirds of the rows for the
    covariance (`.split()`), Chowdhury and Gopalan the morning hours (`.select(days=..., hours=...)`).
    """
    one_of("quantity", quantity, ["temperature", "humidity"])
    origin = (
        "It is made of the Intel Lab Data (Bodik et al. 2004, http://db.csail.mit.edu/labdata/labdata.html), averaged "
        "over half-hours; the original log is read by `intel_lab_log`."
    )
    file = find("intel_lab", ["intel_lab_30min.npz"], path, origin=origin)
    values, hour, day = arrays(file, [quantity, "hour_of_day", "day"])
    stamps = _numbers(file, hour)
    stamps[stamps == 0.0] = 24.0  # A stamp is the end of a half-hour, so midnight belongs to the day that ends.
    table = _numbers(file, values)
    return Readings(
        values=table,
        unit="degrees C" if quantity == "temperature" else "% relative humidity",
        sensors=_numbered(table),
        day=np.asarray(day, dtype=np.intp),
        hour=stamps,
    )


def light_cmu(path: Location | None = None) -> tuple[Readings, Readings]:
    """Loads the CMU Intelligent Workplace, November 2005: 41 light sensors, in lux, 601 training and 192 test rows.

    Chowdhury and Gopalan (2017) use these data. lux = raw * 1500 / 4096.
    """
    origin = (
        "It is `iw_data_all.mat` of A. Krause (CMU), found in the GitHub repository "
        "sayakrc/Bayesian-Optimization-under-Heavy-tailed-Payoffs, its raw readings saved with numpy."
    )
    file = find("light_cmu", ["light_cmu.npz"], path, origin=origin)
    train, test, coords = (_numbers(file, array) for array in arrays(file, ["train", "test", "coords"]))
    first, second = (
        Readings(values=table * LUX, unit="lux", sensors=_numbered(table), positions=coords) for table in (train, test)
    )
    return first, second


def metr_la(path: Location | None = None) -> Readings:
    """Loads METR-LA, 1-7 March 2012 (Thursday to Wednesday): 207 highway speed sensors, every five minutes, in mph.

    These data replace the I-880 data of Srinivas et al. (2010), which are not available. Working days from 6 to 11 AM
    are `.select(days=METR_LA_WORKING_DAYS, hours=(6, 11))`: 300 rows, of which `.split()` takes 200 for the covariance.
    """
    origin = (
        "It is made of `los_speed.csv` and `graph_sensor_locations.csv` of the GitHub repository lehaifeng/T-GCN "
        "(METR-LA: Jagadish et al. 2014; Li et al. 2018), saved with numpy."
    )
    file = find("metr_la_week", ["metr_la_week.npz"], path, origin=origin)
    speed, names, places = arrays(file, ["speed_mph", "sensor_id", "latlon"])
    table = _numbers(file, speed)
    day, step = np.divmod(np.arange(len(table)), STEPS_PER_DAY)
    return Readings(
        values=table,
        unit="mph",
        sensors=tuple(map(str, names)),
        day=day.astype(np.intp),
        hour=step * (24.0 / STEPS_PER_DAY),
        positions=_numbers(file, places),
    )


def la_highway(path: Location | None = None, *, road: Literal["dense", "sparse"] = "dense") -> Readings:
    """Loads Los Angeles highways in one April: speed sensors every five minutes from 6 AM to 9 PM, in mph.

    The table has the sensors that report half of the time on at least 16 days, and the days with at least 85% of their
    readings. Missing readings are NaN (3.0% of "dense", 5.6% of "sparse"), see `Readings.filled`.
    """
    one_of("road", road, ["dense", "sparse"])
    origin = (
        "It is made of data/Traffic/*_highway_april.mat of the GitHub repository Eng-RSMY/MultiSourceTemporal "
        "(Bahadori, Yu and Liu 2014), saved with numpy, NaN where a reading is missing."
    )
    file = find("la_highway_april", ["la_highway_april.npz"], path, origin=origin)
    table, places = arrays(file, [f"{road}_speed_mph", f"{road}_latlon"])
    speed = np.asarray(table, dtype=np.float64)  # (sensors, steps, days)
    if speed.ndim != 3:
        raise InvalidInput(f"`{road}_speed_mph` of `{file}` has shape {speed.shape}, not (sensors, steps, days).")
    present = np.isfinite(speed)
    sensors = np.flatnonzero((present.mean(axis=1) >= 0.5).sum(axis=1) >= HIGHWAY_DAYS)
    if sensors.size == 0:
        raise InvalidInput(f"No sensor of `{file}` reports half of the time on {HIGHWAY_DAYS} days or more.")
    days = np.flatnonzero(present[sensors].mean(axis=(0, 1)) >= HIGHWAY_SHARE)
    steps = speed.shape[1]
    return Readings(
        values=speed[np.ix_(sensors, np.arange(steps), days)].transpose(2, 1, 0).reshape(-1, len(sensors)),
        unit="mph",
        sensors=tuple(map(str, sensors)),
        day=np.repeat(days, steps),
        hour=np.tile(6.0 + np.arange(steps) / 12.0, len(days)),
        positions=_numbers(file, places)[sensors],
    )


def _numbers(file: object, array: Any) -> Array:
    # The light readings are 16-bit integers, whose products would overflow.
    result: Array = np.array(array, dtype=np.float64)
    if not np.isfinite(result).all():
        raise InvalidInput(f"`{file}` has values that are not finite where there should be none.")
    return result


def _numbered(table: Array) -> tuple[str, ...]:
    return tuple(map(str, range(table.shape[-1])))


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
