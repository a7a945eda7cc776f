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
"""

from __future__ import annotations

import math
from typing import Literal, final

import numpy as np
import numpy.typing as npt

from ..._utils.checks import Array, finite_array, flag, frozen, integer, number, one_of
from ..._utils.dataclass import dataclass
from ...domains.domain import Arms
from ...errors import InvalidInput
from ...kernels import Empirical
from ..environment import Environment
from ..true_outputs import ArmFunction
from .readings import Readings

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
