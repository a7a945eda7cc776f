"""The best point of an evenly spaced grid of a box: the decision sets D_t of GP-TS (Chowdhury & Gopalan 2017).

| symbol | name | meaning | shape |
|---|---|---|---|
| | `count` | grid points along each side, ends included | scalar |
| | `steps` | `count` - 1, the steps from one end to the other | scalar |
| | `places` | points as whole numbers of steps from the lower corner | (n, d) |

A grid of at most `MOST` points is evaluated completely. D_t soon has more, since it grows like t^{2d}. Then a local
search on the grid starts from the maximum over the box and from the grid points nearest to the best candidates. Its
moves are of 2^k steps, with k falling to 0, so that it ends where no neighbour on the grid is better.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ..._utils.checks import Array
from ..domain import Box, Space
from .boxes import leaders

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
    return np.asarray(placed[int(_valued(values, placed).argmax())])


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
