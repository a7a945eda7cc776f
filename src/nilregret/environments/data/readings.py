"""A table of readings: a row for each snapshot in time, a column for each sensor.

| symbol | name | meaning | shape |
|---|---|---|---|
| | `values` | readings, NaN where one is missing | (rows, sensors) |
| | `day`, `hour` | whole days from 0, hours from the day's midnight | (rows,) |
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

import numpy as np
import numpy.typing as npt

from ..._utils.checks import Array, IndexArray, integer, many, number
from ..._utils.dataclass import dataclass, replace
from ...errors import InvalidInput


@final
@dataclass(frozen=True, eq=False)
class Readings:
    """Readings of a sensor network. Every method returns a new table.

    Attributes:
        values: readings `(rows, sensors)`, NaN for missing ones.
        unit: unit of the values.
        sensors: a name for each column.
        day: day of each row, `(rows,)`. None if times are unknown.
        hour: hour of the day of each row, `(rows,)`. None if times are unknown.
        positions: coordinates of the sensors in the source, `(sensors, 2)`, or None.
    """

    values: Array
    unit: str
    sensors: tuple[str, ...]
    day: IndexArray | None = None
    hour: Array | None = None
    positions: Array | None = None

    def __post_init__(self) -> None:
        rows, sensors = self.values.shape if self.values.ndim == 2 else (0, 0)
        if rows == 0 or sensors == 0:
            raise InvalidInput(
                f"A table of readings has shape (rows, sensors), both at least 1, not {self.values.shape}. "
                "Usually nothing was left after a selection."
            )
        fits = len(self.sensors) == sensors and (self.positions is None or self.positions.shape == (sensors, 2))
        times = (self.day is None) == (self.hour is None) and all(
            column is None or column.shape == (rows,) for column in (self.day, self.hour)
        )
        if not fits or not times:
            raise InvalidInput(
                f"The table has {many(rows, 'row')} and {many(sensors, 'sensor')}: names and positions must be one "
                "for each sensor, and days and hours one for each row."
            )

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        missing = float(np.isnan(self.values).mean())
        size = f"{many(len(self), 'row')} of {many(len(self.sensors), 'sensor')}"
        return f"Readings({size} in {self.unit}, {missing:.1%} missing)"

    def select(self, *, days: Iterable[int] | None = None, hours: tuple[float, float] | None = None) -> Readings:
        """Returns the rows of some days and hours. `hours=(6, 11)` is from 6 to before 11."""
        day, hour = self._times()
        first, last = (-np.inf, np.inf) if hours is None else hours
        wanted = np.ones(len(self), dtype=np.bool_) if days is None else np.isin(day, list(days))
        return self._rows(wanted & (hour >= first) & (hour < last))

    def split(self, first: int | None = None) -> tuple[Readings, Readings]:
        """Returns the first rows (two thirds unless given) and the other rows."""
        count = 2 * len(self) // 3 if first is None else integer("first", first, low=1)
        if not 1 <= count < len(self):
            raise InvalidInput(f"{many(len(self), 'row')} cannot be split into {count} and at least one more.")
        index = np.arange(len(self))
        return self._rows(index < count), self._rows(index >= count)

    def reporting(self, share: float) -> Readings:
        """Returns the sensors that report in at least this share of the rows."""
        share = number("share", share, low=0.0, high=1.0)
        return self._columns(np.isfinite(self.values).mean(axis=0) >= share)

    def complete(self) -> Readings:
        """Returns the rows without missing readings."""
        return self._rows(np.asarray(np.isfinite(self.values).all(axis=1)))

    def filled(self) -> Readings:
        """Returns the table with missing readings interpolated linearly in time, constant beyond the first and last."""
        day, hour = self._times()
        time, values = 24.0 * day + hour, self.values.copy()
        if (np.diff(time) <= 0.0).any():
            raise InvalidInput("The rows are not in order of time: only then can gaps be filled.")
        for column, name in zip(values.T, self.sensors, strict=True):
            present = np.isfinite(column)
            if not present.any():
                raise InvalidInput(
                    f"Sensor {name} has no reading at all, so there is nothing to fill it from. "
                    "Leave out silent sensors first: `readings.reporting(0.5)`."
                )
            column[~present] = np.interp(time[~present], time[present], column[present])
        return replace(self, values=values)

    def _times(self) -> tuple[IndexArray, Array]:
        if self.day is None or self.hour is None:
            raise InvalidInput("These readings have no times: the source does not give any.")
        return self.day, self.hour

    def _rows(self, keep: npt.NDArray[np.bool_]) -> Readings:
        return replace(
            self,
            values=self.values[keep],
            day=None if self.day is None else self.day[keep],
            hour=None if self.hour is None else self.hour[keep],
        )

    def _columns(self, keep: npt.NDArray[np.bool_]) -> Readings:
        return replace(
            self,
            values=self.values[:, keep],
            sensors=tuple(name for name, is_kept in zip(self.sensors, keep, strict=True) if is_kept),
            positions=None if self.positions is None else self.positions[keep],
        )
