"""A sensor network as a bandit that looks for the sensor with the highest reading.

The arms are the sensors, and the kernel is the empirical covariance of training snapshots. Every held-out snapshot is a
function to be maximised. Srinivas et al. 2010 and Chowdhury and Gopalan 2017 do so, each in section 6.

| symbol | name | meaning | shape |
|---|---|---|---|
| m_i, s_i | `mean`, `scale` | subtracted from sensor i's readings, and divisor of the difference | (N,) |
| | `prior_mean` | mean of each sensor's scaled training readings, 0 if m_i is their mean | (N,) |
| K | `kernel` | covariance (or correlation) of the training readings | (N, N) |
| f | `functions` | held-out snapshots, (reading - m_i) / s_i | (rows, N) |
| sigma | `noise` | sigma^2 is 5% of the average variance of the training readings | |

A table of readings: a row for each snapshot in time, a column for each sensor.

| symbol | name | meaning | shape |
|---|---|---|---|
| | `values` | readings, NaN where one is missing | (rows, sensors) |
| | `day`, `hour` | whole days from 0, hours from the day's midnight | (rows,) |
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal, final

import numpy as np
import numpy.typing as npt

from ..._utils.checks import Array, IndexArray, finite_array, flag, frozen, integer, many, number, one_of
from ..._utils.dataclass import dataclass, replace
from ...domains.domain import Arms
from ...errors import InvalidInput
from ...kernels import Empirical
from ..environment import Environment
from ..true_outputs import ArmFunction


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


NOISE_SHARE = 0.05  # "5% noise" in both papers


@final
@dataclass(frozen=True, eq=False)
class SensorNetwork:
    """A sensor network as a bandit, made by `sensor_network`.

    Attributes:
        arms: the sensors, numbered from 0.
        kernel: the empirical covariance or correlation of the training readings.
        functions: scaled held-out snapshots, `(rows, N)`.
        prior_mean: average training reading of each sensor, in the functions' units, `(N,)`.
        mean: number subtracted from each sensor's readings, `(N,)`.
        scale: divisor of each sensor's readings, `(N,)`, ones unless standardised.
        average_variance: average variance of the training readings over the sensors, after division by `scale`.
        noise: standard deviation of the noise.
    """

    arms: Arms
    kernel: Empirical
    functions: Array
    prior_mean: Array
    mean: Array
    scale: Array
    average_variance: float
    noise: float

    def __len__(self) -> int:
        return len(self.functions)

    def __repr__(self) -> str:
        return f"SensorNetwork({len(self.arms)} sensors, {len(self)} functions, noise={self.noise:.3g})"

    def environment(self, row: int, *, noise: float | None = None) -> Environment:
        """Returns the environment of one held-out snapshot.

        Args:
            row: number of the snapshot, from 0 to `len(network) - 1`.
            noise: standard deviation, the network's unless given.
        """
        if integer("row", row, low=0) >= len(self):
            raise InvalidInput(f"`row` is {row}: there are {len(self)} held-out snapshots, numbered from 0.")
        reward = ArmFunction(self.arms, self.functions[row])
        return Environment(reward, domain=self.arms, noise=self.noise if noise is None else noise)


def sensor_network(
    training: Readings | npt.ArrayLike,
    held_out: Readings | npt.ArrayLike,
    *,
    kernel: Literal["covariance", "correlation"] = "covariance",
    center: Literal["global", "sensor", "none"] = "global",
    standardize: bool = False,
    lowest: bool = False,
    noise_share: float = NOISE_SHARE,
) -> SensorNetwork:
    """Returns a sensor network from two tables of readings with the same sensors.

    Neither paper says whether a mean is subtracted. With a prior mean of 0 no rule works on raw readings.

    Args:
        training: snapshots for mean, scale and kernel, `(rows, N)`.
        held_out: snapshots that become functions, `(rows, N)`.
        kernel: covariance or correlation matrix of the training readings.
        center: the number to subtract: one mean of all training readings, each sensor's own training mean, or nothing.
            With "sensor" the best arm is the sensor furthest above its own average, which may not have the highest
            reading. The covariance is always about each sensor's own mean.
        standardize: divides each sensor's readings by their training standard deviation. The covariance is then the
            correlation.
        lowest: negates all readings, to look for the lowest reading (slowest traffic).
        noise_share: the noise variance as a share of the average variance.
    """
    one_of("kernel", kernel, ["covariance", "correlation"])
    one_of("center", center, ["global", "sensor", "none"])
    train, test = _tables(training, held_out, sign=-1.0 if flag("lowest", lowest) else 1.0)
    spread = train.std(axis=0, ddof=1)
    if flag("standardize", standardize) or kernel == "correlation":
        _check_varying(spread)
    scale = spread if standardize else np.ones(train.shape[1])
    own = train.mean(axis=0)
    mean = {"global": np.full_like(own, train.mean()), "sensor": own, "none": np.zeros_like(own)}[center]
    covariance = np.cov(train / scale, rowvar=False).reshape(len(scale), len(scale))
    variance = float(covariance.diagonal().mean())
    share = number("noise_share", noise_share, low=0.0)
    if kernel == "correlation":
        root = np.sqrt(covariance.diagonal())
        covariance = covariance / root / root[:, None]
    return SensorNetwork(
        arms=Arms(np.arange(len(scale), dtype=np.float64)), kernel=Empirical(covariance),
        functions=frozen((test - mean) / scale), prior_mean=frozen((own - mean) / scale),
        mean=frozen((-1.0 if lowest else 1.0) * mean), scale=frozen(scale), average_variance=variance,
        noise=math.sqrt(share * variance),
    )  # fmt: skip


def _tables(training: Readings | npt.ArrayLike, held_out: Readings | npt.ArrayLike, *, sign: float) -> list[Array]:
    """Returns the checked training and held-out readings, times the sign."""
    train, test = sign * _table("training", training), sign * _table("held_out", held_out)
    if train.shape[1] != test.shape[1]:
        raise InvalidInput(
            f"`training` has {train.shape[1]} sensors and `held_out` {test.shape[1]}: both need the same, in one order."
        )
    if len(train) < 2:
        raise InvalidInput("`training` has one row: a covariance needs at least two.")
    return [train, test]


def _check_varying(spread: Array) -> None:
    """Raises an error for a sensor whose training readings are all the same."""
    constant = np.flatnonzero(spread == 0.0)
    if constant.size:
        raise InvalidInput(
            f"Sensor {int(constant[0])} always reads the same in `training`: it has no correlation and cannot be "
            "standardised. Leave it out, or use the covariance."
        )


def _table(name: str, readings: Readings | npt.ArrayLike) -> Array:
    hint = "Fill or drop what is missing first: `readings.filled()`, `.complete()`, `.reporting(share)`."
    values = finite_array(name, readings.values if isinstance(readings, Readings) else readings, hint=hint)
    if values.ndim != 2 or values.size == 0:
        raise InvalidInput(f"`{name}` has shape {values.shape}: it must be (rows, sensors), a column for each sensor.")
    return values
