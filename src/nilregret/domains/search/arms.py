"""The arm of the best score, and ties."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._utils.checks import Array, IndexArray, shown
from ..._utils.randomness import Randomness
from ...errors import InvalidInput

# Score difference of a tie, as a share of the prior standard deviation. It is far above the rounding of any posterior
# and far below any relevant difference, so ties do not depend on the kind of posterior.
TIE = 1e-10
ROUNDING = 4.0 * float(np.finfo(np.float64).eps)  # rounding of scores far from 0, as a share of the score


def best_arm(scores: Array, size: float, randomness: Randomness) -> int:
    """Returns the arm of the largest score, with ties broken uniformly at random.

    Ties are common in the first round, since all arms look alike under a stationary kernel.

    Args:
        scores: of every arm, `(N,)`, owned from now on.
        size: prior standard deviation of f, the unit of score differences.
        randomness: of the trial.
    """
    best = int(scores.argmax())
    top = scores.item(best)
    if not top < math.inf:  # includes NaN, which argmax returns
        raise InvalidInput(
            f"The score of an arm is {'infinite' if top == top else 'NaN'}. Usually a score of one's own divides by a "
            "standard deviation of 0, or takes the logarithm of a negative number, or a width of one's own is no "
            "finite number.",
            advice="See `nilregret.testing.check_policy`.",
        )
    least = least_tied(top, size)
    scores[best] = -math.inf
    if scores.item(scores.argmax()) < least:  # usual, at a fifth of the time of `tied`
        return best
    scores[best] = top
    ties = np.flatnonzero(scores >= least)
    return int(ties[randomness.generator.integers(len(ties))])  # equals `choice`, in half its time


def best_arms(scores: Array, size: float, randomness: Callable[[int], Randomness]) -> IndexArray:
    """Returns the arm of the largest score in each of several worlds, `(S,)` (see `best_arm`).

    Args:
        scores: of every arm in every world, `(S, N)`, the same afterwards.
        size: see `best_arm`.
        randomness: returns the randomness of the trial of a world.
    """
    best, flat = scores.argmax(axis=1), scores.reshape(-1)
    places = best + np.arange(0, scores.size, scores.shape[1])
    top = flat[places]
    flat[places] = -math.inf
    clear = (scores.max(axis=1) < least_tied(top, size)) & (top < math.inf)
    flat[places] = top
    for world in () if clear.all() else np.flatnonzero(~clear).tolist():
        best[world] = best_arm(scores[world].copy(), size, randomness(world))
    return np.asarray(best)


def least_tied(top: Any, size: float) -> Any:
    """Returns the smallest score that ties with the best, or that of each world."""
    return top - (TIE * size + ROUNDING * abs(top))


def tied(scores: Array, size: float) -> IndexArray:
    """Returns the arms that tie for the best, ascending, `(k,)`, and leaves the arguments of `best_arm` unchanged."""
    return np.flatnonzero(scores >= least_tied(float(scores.max()), size))


def checked_scores(scores: object, count: int) -> Array:
    """Returns scores as a fresh float array with one entry for each candidate `(n,)`, or raises an error."""
    if isinstance(scores, np.ndarray) and scores.shape == (count,) and scores.dtype == np.float64:
        return scores
    try:
        given = np.asarray(scores)
    except ValueError:  # lists of different lengths
        given = np.zeros(0, dtype=object)
    if given.shape == (count,) and given.dtype.kind in "fiu":
        return given.astype(np.float64)
    raise InvalidInput(
        f"A score returned {shown(scores)} for {count} candidates: it must be an array of floats of shape ({count},), "
        "one for each. Usually bounds or a score of one's own give one number for all of them, or a column: "
        "see `nilregret.testing.check_policy`."
    )
