"""Which point has the best score."""

from __future__ import annotations

import numpy as np

from ..._utils.checks import Array, IndexArray, shown
from ..._utils.errors import InvalidInput
from ..._utils.randomness import Randomness

# Scores this close, as a share of the prior standard deviation, are ties: far above the rounding of any posterior
# engine and far below any difference that matters, so that which arms tie does not depend on the engine.
TIE = 1e-10
ROUNDING = 4.0 * float(np.finfo(np.float64).eps)  # of scores far from 0, as a share of the score


def best_arm(scores: Array, size: float, randomness: Randomness) -> int:
    """The arm of the largest score, ties broken uniformly at random.

    Ties are the rule, not the exception, in the first round: under a stationary kernel all arms look alike.

    Args:
        scores: of every arm, `(N,)`, taken over.
        size: the prior standard deviation of f, what score differences are measured against.
        randomness: of the trial.
    """
    best = int(scores.argmax())
    top = scores.item(best)
    if not top < np.inf:  # or NaN, which argmax finds
        raise InvalidInput(
            f"The score of an arm is {'infinite' if top == top else 'NaN'}. Usually a score of one's own divides by a "
            "standard deviation of 0, or takes the logarithm of a negative number, or a width of one's own is no "
            "finite number.",
            advice="See `nilregret.testing.check_policy`.",
        )
    least = _least(top, size)
    scores[best] = -np.inf
    if scores.item(scores.argmax()) < least:  # mostly: a fifth of the time of a comparison with every score
        return best
    scores[best] = top
    ties = np.flatnonzero(scores >= least)
    return int(ties[randomness.generator.integers(len(ties))])  # as `choice` draws, in half its time


def _least(top: float, size: float) -> float:
    """The score from which on one ties with the best."""
    return top - (TIE * size + ROUNDING * abs(top))


def tied(scores: Array, size: float) -> IndexArray:
    """Which arms share the draw among the best, ascending, `(k,)`; arguments of `best_arm`, left as they are."""
    return np.flatnonzero(scores >= _least(float(scores.max()), size))


def checked_scores(scores: object, count: int) -> Array:
    """What a score returned, or an error where it is no fresh array of one float for each candidate, `(n,)`."""
    if isinstance(scores, np.ndarray) and scores.shape == (count,) and scores.dtype == np.float64:
        return scores
    try:
        given = np.asarray(scores)
    except ValueError:  # a list of lists of different lengths
        given = np.zeros(0, dtype=object)
    if given.shape == (count,) and given.dtype.kind in "fiu":
        return given.astype(np.float64)
    raise InvalidInput(
        f"A score returned {shown(scores)} for {count} candidates: it must be an array of floats of shape ({count},), "
        "one for each. Usually bounds or a score of one's own give one number for all of them, or a column: "
        "see `nilregret.testing.check_policy`."
    )
