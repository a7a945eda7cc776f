"""Runs of plays of one point: how long one is."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import integer
from ..posterior import Belief
from ..slots.switching import MOST_REPEATS, Switching
from .engines import Decision


def repeated(decision: Decision, switching: Switching, belief: Belief[Any], ridge: float) -> Decision:
    """A decision with how often it is to be played, by the standard deviation there."""
    at: Any = decision.point[None] if decision.arm is None else np.array([decision.arm])
    std = float(belief.predict(at)[1][0])
    times = switching.repeats(std, ridge)
    why = f"`{type(switching).__name__}.repeats` says how often a point is played before the next decision."
    return decision._replace(repeats=integer("repeats", times, low=1, high=MOST_REPEATS, why=why))
