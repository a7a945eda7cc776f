"""The length of runs of plays of one point."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._utils.checks import integer
from ..gp import Belief
from ..slots.switching import MOST_REPEATS, Switching
from .availability import Available
from .engines import Decision, Engine, Question


def repeated(
    decision: Decision,
    switching: Switching,
    belief: Belief[Any],
    engine: Engine[Any],
    question: Question,
    available: Available | None,
) -> Decision:
    """Returns a decision with its number of plays, which depends on the belief about f there.

    Args:
        decision: the decision.
        switching: the slot `switching` of the policy.
        belief: the belief about f.
        engine: the engine of the policy.
        question: the question of the round.
        available: what may be played this time, or None for everything.
    """
    at: Any = decision.point[None] if decision.arm is None else np.array([decision.arm])
    mean, std = belief.predict(at)
    spread, ridge = float(std[0]), belief.observed.regularization
    here = question.bounds(*question.units.rewards(mean, std), at)
    reach = float(here.upper[0] - here.mean[0])
    lead = max(_best_mean(decision, belief, engine, question, available) - float(here.mean[0]), 0.0)
    hope = max(1.0 - lead / reach, 0.0) if reach > 0.0 else float(lead == 0.0)
    times = switching.repeats(spread, ridge, hope)
    why = f"`{type(switching).__name__}.repeats` says how often a point is played before the next decision."
    return decision._replace(repeats=integer("repeats", times, low=1, high=MOST_REPEATS, why=why))


def _best_mean(
    decision: Decision, belief: Belief[Any], engine: Engine[Any], question: Question, available: Available | None
) -> float:
    """Returns the largest posterior mean of what may be played, in reward units.

    On a box these are the candidates and the points played.
    """
    cells: Any
    if decision.arm is not None:
        cells = None if available is None else available.arms
    elif available is not None:
        cells = available.points
    else:
        played = belief.observed.points if belief.observed.count else decision.point[None]
        cells = np.concatenate([engine.candidates(), played])
    best = question.units.rewards(belief.mean(cells), np.zeros(0))[0].max()
    return float(best)
