"""The arm of the best score, and ties."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._utils.checks import Array, IndexArray, shown
from ..._utils.randomness import Randomness
from ...errors import InvalidInput
from ..domain import Box, Space
from .boxes import leaders, wrong_score

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
    best = sole_best(scores, size)
    if best is not None:  # usual, at a fifth of the time of `tied`
        return best
    top = float(scores.max())
    if not top < math.inf:  # includes NaN, which max returns
        raise wrong_score("an arm", top)
    ties = tied(scores, size)
    return int(ties[randomness.draws.integers(len(ties))])


def sole_best(scores: Array, size: float) -> int | None:
    """Returns the arm of the largest score, or None if others tie with it or it is not finite.

    Args:
        scores: of every arm, `(N,)`. Unless the result is None, that of the best arm is lost.
        size: see `best_arm`.
    """
    best = int(scores.argmax())
    top = scores.item(best)
    if not top < math.inf:  # includes NaN, which argmax returns
        return None
    least = least_tied(top, size)
    scores[best] = -math.inf
    if scores.item(scores.argmax()) < least:
        return best
    scores[best] = top
    return None


def best_arms(scores: Array, size: float, randomness: Callable[[int], Randomness]) -> IndexArray:
    """Returns the arm of the largest score in each of several worlds, `(S,)` (see `best_arm`).

    Args:
        scores: of every arm in every world, `(S, N)`, the same afterwards.
        size: see `best_arm`.
        randomness: returns the randomness of the trial of a world.
    """
    best, flat = scores.argmax(axis=1), scores.reshape(-1)
    starts = np.arange(0, scores.size, scores.shape[1])
    places = best + starts
    top = flat[places]
    flat[places] = -math.inf
    second = flat[scores.argmax(axis=1) + starts]  # at half the time of `max`
    clear = (second < least_tied(top, size)) & (top < math.inf)
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


MOST = 2**14  # largest number of grid points that are all evaluated
CHUNK = 2048  # points valued at a time
STARTS = 12  # number of candidates from which the search on the grid starts
FINEST = 2.0**52  # grid points along a side beyond which every float is a grid point
ALL_WAYS, TWO_WAYS = 3, 16  # largest dimensions for moves in all directions, and along two axes at once
PATIENCE = 1000  # largest number of moves of one length, so that rounding errors cannot cause endless loops

Values = Callable[[Array], Array]  # (n, d) -> (n,)


def best_on_grid(
    values: Values, box: Box | Space, at: Array, candidates: Array, count: float, *, most: int = MOST
) -> Array:
    """Returns the grid point of the largest value found, `(d,)`, the first of equal ones.

    On a space, a grid point stands for the nearest valid point.

    Args:
        values: score, minus infinity for excluded points.
        box: domain of the grid.
        at: maximum over the box itself, `(d,)`.
        candidates: points all over the box, `(n, d)`.
        count: grid points along each side, rounded up, at least 2. Beyond 2^52 every point is on the grid.
        most: largest size of a grid that is evaluated completely.
    """
    if count >= FINEST:
        return at.copy()
    if box.limits is not None:
        unlimited, holds = values, box.limits.holds

        def values(points: Array) -> Array:
            return np.where(holds(points), unlimited(points), -np.inf)

    d, steps = box.dimension, max(math.ceil(count), 2) - 1
    span = box.upper - box.lower

    def points(places: Array) -> Array:
        return box.snap(np.asarray(box.lower + places / steps * span))

    def near(given: Array) -> Array:
        return np.asarray(np.round(np.clip((given - box.lower) / span, 0.0, 1.0) * steps))

    if d * math.log(steps + 1.0) <= math.log(most) + 1e-9:
        places = np.array(list(np.ndindex(*(steps + 1,) * d)), dtype=np.float64)
    else:
        around = np.unique(near(candidates), axis=0)
        best = leaders(points(around), _valued(values, points(around)), STARTS, box)
        starts = near(np.concatenate([at[None], best]))
        places = _climb(lambda moved: _valued(values, points(moved)), starts, steps)
    placed = points(places)
    found = _valued(values, placed)
    return np.asarray(placed[int(found.argmax())]) if found.max() > -np.inf else at.copy()


def _valued(values: Values, points: Array) -> Array:
    chunks = [values(points[first : first + CHUNK]) for first in range(0, len(points), CHUNK)]
    return np.concatenate(chunks)


def _climb(values: Values, at: Array, steps: int) -> Array:
    """Returns the final places of moves to the best neighbour, first of 2^k steps and finally of one step."""
    ways = _ways(at.shape[1])
    best = values(at)
    length = 2.0 ** math.floor(math.log2(max(steps / 8, 1.0)))
    while length >= 1.0:
        moving: npt.NDArray[np.intp] = np.arange(len(at))
        for _ in range(PATIENCE):
            around = np.clip(at[moving, None] + length * ways, 0.0, steps)
            found = values(around.reshape(-1, at.shape[1])).reshape(len(moving), len(ways))
            top = found.argmax(axis=1)
            rises = found[np.arange(len(moving)), top] > best[moving]
            moving, top = moving[rises], top[rises]
            if not len(moving):
                break
            at[moving] = around[rises, top]
            best[moving] = found[rises, top]
        length /= 2.0
    return at


def _ways(d: int) -> Array:
    """Returns the directions of a move, `(w, d)`."""
    if d <= ALL_WAYS:
        return np.array([way for way in itertools.product((-1.0, 0.0, 1.0), repeat=d) if any(way)])
    axes = np.concatenate([np.eye(d), -np.eye(d)])
    if d > TWO_WAYS:
        return axes
    pairs = [a + b for a, b in itertools.combinations(axes, 2) if (a + b).any()]
    return np.concatenate([axes, pairs])
