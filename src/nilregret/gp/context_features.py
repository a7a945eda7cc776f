"""Features of contexts, and of contexts with arms, for linear models: a constant, the columns, and random waves.

| symbol | name | meaning | shape |
|---|---|---|---|
| z | | columns, standardised by the first contexts and cut off at 5 deviations | (d,) |
| Omega | `_frequencies` | frequencies of a Matern-5/2 kernel (`RandomFeatures`) | (d, m) |
| | `of_context`, `of_rows` | [1, z / sqrt(d), cos(Omega^T z) / sqrt(m), sin(Omega^T z) / sqrt(m)] | (p,) |

The lengthscale is a multiple of the median distance between the first contexts.
"""

from __future__ import annotations

import math
from typing import final

import numpy as np

from .._utils.checks import Array
from ..kernels import Matern
from ..kernels.random_features import RandomFeatures, write_waves

NU = 2.5  # smoothness of the Matern kernel whose frequencies are drawn
FARTHEST = 5.0  # deviations at which columns are cut off
EQUAL = 1e-9  # share of the size of a column: a smaller deviation is that of a constant
SAME_ROW = 1e-6  # share of the longest row up to which a distance is rounding
COMPARED = 64  # rows of which the distances are computed
PAIRED = 8  # arms that each early context is paired with, to find the median distance of contexts with arms


@final
class Standard:
    """The map of columns to units in which the first contexts have mean 0 and standard deviation 1.

    Args:
        rows: the first contexts, or the arms, `(n, d)`.
    """

    def __init__(self, rows: Array) -> None:
        self.center = rows.mean(axis=0)
        deviation = rows.std(axis=0)
        self._unit = np.where(deviation > EQUAL * np.abs(rows).max(axis=0, initial=0.0), deviation, 1.0)

    def to(self, rows: Array) -> Array:
        """Returns rows `(n, d)`, or one row, in these units."""
        return np.asarray(np.clip((rows - self.center) / self._unit, -FARTHEST, FARTHEST))


@final
class Waves:
    """The features of standardised rows.

    Args:
        rows: standardised rows `(n, d)`, whose median distance is the unit of the lengthscale.
        pairs: number m of frequencies, each with a cosine and a sine. 0 for a linear model.
        length: lengthscale, in median distances.
        key: key of the random frequencies.

    Attributes:
        size: number of features p.
    """

    def __init__(self, rows: Array, pairs: int, length: float, *, key: int) -> None:
        columns = rows.shape[1]
        self.size = 1 + columns + 2 * pairs
        self._columns, self._pairs = columns, pairs
        if pairs:
            self._frequencies = RandomFeatures(Matern(NU), pairs, key).frequencies(columns).T / (
                length * _median_distance(rows)
            )

    def __call__(self, rows: Array) -> Array:
        """Returns the features of standardised rows `(n, d)`, `(n, p)`, or of one row `(d,)`, `(p,)`."""
        columns = self._columns
        found = np.empty((*rows.shape[:-1], self.size))
        found[..., 0] = 1.0
        np.divide(rows, math.sqrt(max(columns, 1)), out=found[..., 1 : 1 + columns])
        if self._pairs:
            half = found[..., 1 + columns :]
            write_waves(rows, self._frequencies, half)
            half /= math.sqrt(self._pairs)
        return found


def paired(contexts: Array, arms: Array) -> Array:
    """Returns some of the rows of every context `(n, c)` with every arm `(K, a)`, evenly chosen, `(m, c + a)`."""
    each = min(PAIRED, len(arms))
    chosen = (np.arange(len(contexts) * each) * max(len(arms) // each, 1)) % len(arms)
    return np.hstack([np.repeat(contexts, each, axis=0), arms[chosen]])


def _median_distance(rows: Array) -> float:
    """Returns the median of the distances between some of the rows that differ, or 1 if all are equal."""
    rows = rows[:: -(-len(rows) // COMPARED)]
    squares = (rows**2).sum(axis=1)
    distances = np.sqrt(np.maximum(squares[:, None] + squares - 2.0 * (rows @ rows.T), 0.0))
    apart = distances[distances > SAME_ROW * math.sqrt(max(float(squares.max(initial=0.0)), 1.0))]
    return float(np.median(apart)) if len(apart) else 1.0
