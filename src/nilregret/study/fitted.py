"""The fits of a study, as its record has them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from ..kernels import Kernel
from ..slots.refit import Refitted
from ..storage.trial import Trial
from .direction import Goal, turned


class Fitted(NamedTuple):
    """Hyperparameters that came into force with a trial.

    Attributes:
        trial: number of the first one that was decided with them.
        channel: 0 for the reward, j for constraint j.
        kernel: in the units of the points, on standardised rewards.
        noise: its standard deviation, reward units.
        mean: of the process, reward units.
        unit: reward units of one unit of the kernel.
        warp: what was done to rewards (to minus the losses) before, as plain values; None for nothing.
    """

    trial: int
    channel: int
    kernel: Kernel
    noise: float
    mean: float
    unit: float
    warp: dict[str, Any] | None


def fitted_of(trials: Iterable[Trial], goal: Goal) -> list[Fitted]:
    """All that are on record, by trial and channel; of losses where the goal is to minimise."""
    found = []
    for trial in trials:
        for channel, _, values in trial.fits or ():
            kernel, ridge, scale, _ = Refitted.of(values)
            mean, unit = scale.mean, scale.std
            mean = turned(mean) if goal == "minimize" and not channel else mean
            found.append(Fitted(trial.number, channel, kernel, math.sqrt(ridge) * unit, mean, unit, values["warp"]))
    return found
