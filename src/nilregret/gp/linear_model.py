"""A linear model of the rewards of arms under contexts, one of those that `context_bank` averages.

| symbol | name | meaning | shape |
|---|---|---|---|
| z | | features of a context, or of a context with an arm (`Waves`) | (p,) |
| w_k | `blocks` | weights of arm k, N(w_0, s^2 / lambda I), w_0 = 0 but for the constant | (p,) |
| s^2 | `noise` | noise variance, inverse-gamma and shared by the arms: posterior rate / shape | scalar |
| lambda | `Candidate.precision` | noise variance over prior variance of a weight | scalar |

Given s^2, the weights are exact (`arm_blocks`), and shape and rate follow from the errors of one-step predictions:
rate += (y - mu)^2 / (2 (1 + q)), where s^2 q is the variance of mu. The prior mean of the constants is learned under
N(0, 4 s^2 / lambda) (empirical Bayes). An arm that was not played is therefore thought to be like the others.

`Waves` are features of contexts, and of contexts with arms: a constant, the columns, and random waves.

| symbol | name | meaning | shape |
|---|---|---|---|
| z | | columns, standardised by the first contexts and cut off at 5 deviations | (d,) |
| Omega | `_frequencies` | frequencies of a Matern-5/2 kernel (`RandomFeatures`) | (d, m) |
| | `of_context`, `of_rows` | [1, z / sqrt(d), cos(Omega^T z) / sqrt(m), sin(Omega^T z) / sqrt(m)] | (p,) |

The lengthscale is a multiple of the median distance between the first contexts.
"""

from __future__ import annotations

import math
from typing import NamedTuple, final

import numpy as np
from scipy.linalg.lapack import dtrtrs

from .._utils.checks import Array, IndexArray
from .._utils.copying import Copyable
from ..kernels import Matern
from .arm_blocks import ArmBlocks
from .screening import Moments

NU = 2.5  # smoothness of the Matern kernel whose frequencies are drawn
FARTHEST = 5.0  # deviations at which columns are cut off
EQUAL = 1e-9  # share of the size of a column: a smaller deviation is that of a constant
SAME_ROW = 1e-6  # share of the longest row up to which a distance is rounding
COMPARED = 64  # rows of which the distances are computed
PAIRED = 8  # arms that each early context is paired with, to find the median distance of contexts with arms


@final
class Standard:
    """The map of columns to units in which the first contexts have mean 0 and standard deviation 1.

    A column that is constant in the first contexts has the unit 1. A column of a level that may come later has the unit
    that it would have if the next context were of that level. So the first of these counts as much as a rare level.

    Args:
        rows: the first contexts, or the arms, `(n, d)`.
        heights: value of each column that is the indicator of such a level, and 0 of the others, `(d,)`. None for none.
    """

    def __init__(self, rows: Array, heights: Array | None = None) -> None:
        self.center = rows.mean(axis=0)
        deviation, n = rows.std(axis=0), len(rows)
        rare = 0.0 if heights is None else heights * math.sqrt(n) / (n + 1)
        otherwise = np.where(rare, rare, 1.0)
        self._unit = np.where(deviation > EQUAL * np.abs(rows).max(axis=0, initial=0.0), deviation, otherwise)

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
        from ..kernels.others import RandomFeatures

        columns = rows.shape[1]
        self.size = 1 + columns + 2 * pairs
        self._columns, self._pairs = columns, pairs
        if pairs:
            self._frequencies = RandomFeatures(Matern(NU), pairs, key).frequencies(columns).T / (
                length * _median_distance(rows)
            )

    def __call__(self, rows: Array) -> Array:
        """Returns the features of standardised rows `(n, d)`, `(n, p)`, or of one row `(d,)`, `(p,)`."""
        from ..kernels.others import write_waves

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


CONSTANTS = 0.25  # precision of the common prior mean of the constants, in units of lambda
POOLED = 20  # observations between two estimates of this mean


class Candidate(NamedTuple):
    """A linear model that is compared with others.

    Attributes:
        waves: True for random waves besides the constant and the columns.
        length: lengthscale of the waves, in median distances.
        precision: lambda.
        keep: share of the distance from the prior that weights keep in each round, 1 without drift.
        shared: True for one model of contexts and arms, False for a model for each arm.
        behind: log weight that it lacks at the beginning, nats.
    """

    waves: bool = True
    length: float = 1.0
    precision: float = 0.3
    keep: float = 1.0
    shared: bool = False
    behind: float = 0.0


@final
class LinearModel(Copyable):
    """A candidate with what it has learned, in standardised units.

    Args:
        candidate: the candidate.
        count: number of blocks.
        features: features of standardised rows.
        founding: number of blocks at the start of the study, all by default.
        most: number of blocks for which room is reserved.
    """

    OWNED = ("blocks",)

    def __init__(
        self, candidate: Candidate, count: int, features: Waves, *, founding: int | None = None, most: int = 0
    ) -> None:
        self.features, self._precision = features, candidate.precision
        self.blocks = ArmBlocks(count, features.size, candidate.precision, rooted=False, keep=candidate.keep, most=most)
        self._founding = count if founding is None else founding
        self._shape = self._rate = 1.0
        self._constant = 0.0  # prior mean of the weight of the constant
        self._learned = 0

    @property
    def noise(self) -> float:
        """Estimated variance of a reward."""
        return self._rate / self._shape

    def predict(self, z: Array, blocks: slice | IndexArray = slice(None)) -> tuple[Array, Array]:
        """Returns mean and variance of some blocks, each `(k,)`, at features `(p,)`. All blocks by default."""
        mean, variance = self.blocks.predict(z, self._constant, blocks)
        return mean, variance * (self.noise / self._precision)

    def predict_roughly(self, z: Array) -> Moments:
        """Returns mean and approximate variance of each block at features `(p,)` (see `ArmBlocks`)."""
        mean, variance, error = self.blocks.predict_roughly(z, self._constant)
        scale = self.noise / self._precision
        return Moments(mean, variance * scale, error * scale)

    def predict_rows(self, blocks: IndexArray, Z: Array) -> tuple[Array, Array]:
        """Returns mean and variance at features `(n, p)` of some blocks `(n,)`, each `(n,)`."""
        moved = self.blocks.moved(blocks, Z)
        mean = np.einsum("ij,ij->i", self.blocks.mean_now()[blocks], Z) + self._constant * moved[:, 0]
        return mean, np.einsum("ij,ij->i", moved, Z) * (self.noise / self._precision)

    def covariance(self, blocks: IndexArray, Z: Array) -> Array:
        """Returns the covariance between features `(n, p)` of some blocks `(n,)`, `(n, n)`."""
        same = blocks[:, None] == blocks
        return np.where(same, self.blocks.moved(blocks, Z) @ Z.T, 0.0) * (self.noise / self._precision)

    def learn(self, block: int, z: Array, target: float, weight: float) -> float:
        """Learns an observation. Returns the log density that it had, nats."""
        self.blocks.now += 1
        if weight != 1.0:
            z, target = _weighed(z, target, weight)
        mean, variance = self.blocks.predict_and_add(block, z, target, self._constant)
        density = self._judge(target - mean, 1.0 + variance / self._precision, weight)
        self._learned += 1
        if self._learned <= POOLED or self._learned % POOLED == 0:
            self._pool()
        return density

    def learn_first(self, blocks: IndexArray, Z: Array, targets: Array, weights: Array) -> Array:
        """Learns the first observations `(n,)` at once. Returns the log densities that they had, nats, `(n,)`."""
        roots = np.sqrt(weights)
        Z, targets = roots[:, None] * Z, roots * targets
        spread, errors, of_ones = (np.zeros(len(targets)) for _ in range(3))
        self.blocks.now = self._learned = len(targets)
        for block in np.unique(blocks).tolist():
            own = np.flatnonzero(blocks == block)
            root = np.asarray(np.linalg.cholesky(np.eye(len(own)) + Z[own] @ Z[own].T / self._precision))
            solved = dtrtrs(root, np.column_stack([targets[own], roots[own], Z[own]]), lower=1)[0]
            errors[own], of_ones[own] = solved[:, 0], solved[:, 1]
            spread[own] = root.diagonal() ** 2
            self.blocks.add_first(block, root.diagonal(), solved[:, 2:], errors[own])
        self._pool()
        # The errors of one-step predictions, over their deviations, are L^{-1} (y - constant).
        squares = (errors - self._constant * of_ones) ** 2
        rates, shapes = (1.0 + 0.5 * np.append(0.0, each.cumsum()) for each in (squares, weights))
        self._rate, self._shape = float(rates[-1]), float(shapes[-1])
        noise = rates[:-1] / shapes[:-1]
        scale = np.log(2.0 * math.pi * noise * spread) + (weights - 1.0) * np.log(2.0 * math.pi * noise)
        return np.asarray(-0.5 * (squares / noise + scale))

    def unlearn(self, block: int, z: Array, target: float, weight: float) -> float:
        """Removes an observation. Returns the log density that it has by the others, nats."""
        if weight != 1.0:
            z, target = _weighed(z, target, weight)
        self.blocks.remove(block, z, target, least=0.0)  # |z|^2 is 27 at most, which bounds the loss of digits
        self._learned -= 1
        mean, variance = self.blocks.predict_one(block, z, self._constant)
        return self._judge(target - mean, 1.0 + variance / self._precision, -weight)

    def _judge(self, error: float, spread: float, weight: float) -> float:
        """Adds an error, or takes it away if its weight is negative. Returns its log density by all other errors."""
        square, size = error * error / spread, abs(weight)
        if weight < 0.0:
            self._rate, self._shape = max(self._rate - 0.5 * square, 1e-12), self._shape - 0.5 * size
        noise = self.noise
        scale = math.log(2.0 * math.pi * noise * spread) + (size - 1.0) * math.log(2.0 * math.pi * noise)
        density = -0.5 * (square / noise + scale)
        if weight > 0.0:
            self._rate, self._shape = self._rate + 0.5 * square, self._shape + 0.5 * size
        return density

    def _pool(self) -> None:
        """Estimates the prior mean of the constants.

        Blocks that came later are added one by one. So those without observations make no difference to the bit.
        """
        first, covariance, mean = self._founding, self.blocks.covariance(1).ravel(), self.blocks.mean_now()[:, 0]
        left, total = first + CONSTANTS - float(covariance[:first].sum()), float(mean[:first].sum())
        for own, weight in zip(covariance[first:].tolist(), mean[first:].tolist(), strict=True):
            left, total = left + (1.0 - own), total + weight
        self._constant = total / left


def _weighed(z: Array, target: float, weight: float) -> tuple[Array, float]:
    """Returns features and target of an observation of some weight, as those of one of weight 1."""
    root = math.sqrt(weight)
    return root * z, root * target
