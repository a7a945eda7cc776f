"""The hyperparameter fits of a study, as its record has them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from ..kernels import Kernel
from ..slots.refit import Refitted
from ..storage.trial import Trial
from .direction import Goal, negated


class FitRecord(NamedTuple):
    """Hyperparameters that came into force with a trial.

    Attributes:
        trial: number of the first trial that was decided with them.
        channel: 0 for the reward, j for constraint j.
        kernel: in the units of the points, for standardised rewards.
        noise: standard deviation of the noise, reward units.
        mean: prior mean of the process, reward units.
        unit: reward units of one unit of the kernel.
        warp: transformation of rewards (of minus the losses) before the fit, as plain values, or None.
    """

    trial: int
    channel: int
    kernel: Kernel
    noise: float
    mean: float
    unit: float
    warp: dict[str, Any] | None


def fits_of(trials: Iterable[Trial], goal: Goal) -> list[FitRecord]:
    """Returns all fits on record, by trial and channel. If the goal is to minimise, they are fits of losses."""
    found = []
    for trial in trials:
        for channel, _, values in trial.fits or ():
            kernel, ridge, scale, _ = Refitted.of(values)
            mean, unit = scale.mean, scale.std
            mean = negated(mean) if goal == "minimize" and not channel else mean
            found.append(FitRecord(trial.number, channel, kernel, math.sqrt(ridge) * unit, mean, unit, values["warp"]))
    return found
