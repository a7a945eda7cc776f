"""Posteriors that began at several rounds, and the density that each of them gives to an observation.

| symbol | name | meaning | shape |
|---|---|---|---|
| phi | `_features` | k(x, x') = phi(x)^T phi(x'), to `TOLERANCE` of the noise variance | (r,) |
| m_s, C_s | `_weights`, `_covariances` | posterior of the weights of phi that began at s | (S, c, r), (S, r, r) |

The scale of the observations is learned by a factor v ~ InvGamma(weight / 2, weight / 2) of kernel and noise variance.
Then y has a Student-t density with weight + n degrees of freedom. Its squared scale is (weight + z) / (weight + n)
times sigma^2(x) + lambda, with z the sum of squared standardised errors so far (the normal-inverse-gamma model).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, ClassVar, final

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.blas import dger

from ..._utils.checks import Array, IndexArray
from ..._utils.copying import Copyable
from ..._utils.process_setting import one_thread

TOLERANCE = 1e-4  # share of lambda, the prior variance that features may leave out
MOST_FEATURES = 256  # largest number of features, beyond which the rest counts as noise
LARGE = 64  # number of features from which on single updates in place are quicker
STEP = 16  # number of features by which arrays grow
FARTHEST = 1e100  # largest standardised error
PLACES = 16  # initial capacity for posteriors

Covariance = Callable[[list[Any], list[Any]], Array]


class PosteriorSet(Copyable):
    """Several posteriors of one model, each given some of the observations, in places counted from 0.

    Args:
        covariance: prior covariance `(a, b)` between two lists of cells.
        noise_variance: lambda, in the units of the covariance squared.
        channels: c, number of values of an observation.
        weight: weight of the stated scale, as a number of observations.
        misfit: additional independent variance of every cell, as a share of the prior variance, for errors of the
            kernel.
    """

    # Arrays with one row for each place.
    ROWS: ClassVar[tuple[str, ...]] = ("_seen", "_squares", "_weights", "_covariances")
    OWNED: ClassVar[tuple[str, ...]] = (*ROWS, "_basis", "_features", "_triangle")

    def __init__(
        self, covariance: Covariance, noise_variance: float, *, channels: int, weight: float, misfit: float = 0.0
    ) -> None:
        self._covariance, self._noise = covariance, noise_variance
        self._channels, self._weight, self._misfit = channels, weight, misfit
        self._count = 0
        self._seen = np.zeros(PLACES, dtype=np.intp)
        self._squares = np.zeros((PLACES, channels))
        self._basis: list[Any] = []
        self._features: dict[Any, tuple[Array, float]] = {}
        self._triangle = np.zeros((0, 0))
        self._weights = np.zeros((PLACES, channels, 0))
        self._covariances = np.zeros((PLACES, 0, 0))
        self.open()

    def open(self) -> None:
        """Adds a posterior without observations in the next place."""
        place = self._count
        if place == len(self._seen):
            for name in self.ROWS:
                array = getattr(self, name)
                setattr(self, name, np.concatenate([array, np.zeros_like(array)]))
        for name in self.ROWS:
            getattr(self, name)[place] = 0
        np.fill_diagonal(self._covariances[place], 1.0)
        self._count += 1

    def drift(self, keep: float) -> None:
        """Keeps this share of the variance of f. The rest is new."""
        self._weights *= math.sqrt(keep)
        self._covariances *= keep
        diagonal = np.arange(self._covariances.shape[1])
        self._covariances[:, diagonal, diagonal] += 1.0 - keep

    def _feature(self, cell: Any) -> tuple[Array, float]:
        """Returns phi of a cell, with zeros for later features, and the variance that phi leaves out."""
        key = cell if isinstance(cell, int) else cell.tobytes()
        if key not in self._features:
            self._features[key] = self._new_feature(cell)
        phi, rest = self._features[key]
        rank = self._covariances.shape[1]
        if len(phi) < rank:
            phi = np.concatenate([phi, np.zeros(rank - len(phi))])
            self._features[key] = phi, rest
        return phi, rest

    def _new_feature(self, cell: Any) -> tuple[Array, float]:
        """Takes one more step of the Cholesky factorisation of the kernel matrix of the observed cells."""
        rank = len(self._basis)
        prior = (1.0 + self._misfit) * float(self._covariance([cell], [cell])[0, 0])
        phi = np.zeros(self._covariances.shape[1])
        if rank:
            cross = self._covariance(self._basis, [cell])[:, 0]
            phi[:rank] = solve_triangular(self._triangle[:rank, :rank], cross, lower=True, check_finite=False)
        rest = max(prior - float(phi @ phi), 0.0)
        if rest <= TOLERANCE * self._noise or rank == MOST_FEATURES:
            return phi, rest
        if rank == len(phi):
            self._make_room()
            phi = np.concatenate([phi, np.zeros(STEP)])
        phi[rank] = math.sqrt(rest)
        self._triangle[rank] = phi
        self._basis.append(cell)
        return phi, 0.0

    def _make_room(self) -> None:
        places, rank = len(self._seen), self._covariances.shape[1]
        self._triangle = np.pad(self._triangle, (0, STEP))
        self._weights = np.concatenate([self._weights, np.zeros((places, self._channels, STEP))], axis=2)
        wider = np.zeros((places, rank + STEP, rank + STEP))
        wider[:, :rank, :rank] = self._covariances
        wider[:, np.arange(rank, rank + STEP), np.arange(rank, rank + STEP)] = 1.0
        self._covariances = wider


@final
class StartPosteriors(PosteriorSet):
    """Posteriors that began at several rounds, each given all observations since."""

    _gammas: Array = np.zeros(0)

    def close(self, place: int) -> None:
        """Moves the posterior in the last place to this place."""
        self._count -= 1
        for name in self.ROWS:
            rows = getattr(self, name)
            rows[place] = rows[self._count]

    def learn(self, cell: Any, values: Array, at: slice | IndexArray) -> Array:
        """Returns the log density of an observation `(c,)` under the posteriors at some places, `(n,)`, and adds it.

        It takes O(n r^2).
        """
        with one_thread if len(self._basis) >= LARGE else nullcontext():  # smaller products use one thread anyway
            return self._learn(cell, values, at)

    def _learn(self, cell: Any, values: Array, at: slice | IndexArray) -> Array:
        phi, rest = self._feature(cell)
        covariances = self._covariances[at]
        direction = covariances @ phi  # C_s phi, (n, r)
        total = np.maximum(direction @ phi, 0.0) + (rest + self._noise)  # sigma_s^2(x) + lambda, (n,)
        error = values - self._weights[at] @ phi  # (n, c)
        squares = np.clip(error / np.sqrt(total)[:, None], -FARTHEST, FARTHEST) ** 2
        seen, before = self._seen[at], self._squares[at]
        freedom = self._weight + seen
        scatter = self._weight + before  # freedom times the squared scale factor, (n, c)
        half = 0.5 * (freedom + 1.0)
        log = self._channels * (self._constants(int(seen[0]))[seen] - 0.5 * np.log(total)) - (
            0.5 * np.log(scatter) + half[:, None] * np.log1p(squares / scatter)
        ).sum(axis=1)
        scaled = direction / total[:, None]
        self._weights[at] += error[:, :, None] * scaled[:, None, :]
        if isinstance(at, slice) and len(phi) >= LARGE:
            for one, along, by in zip(covariances, direction, total.tolist(), strict=True):
                dger(-1.0 / by, along, along, a=one.T, overwrite_a=1)  # in place
        else:
            self._covariances[at] = covariances - scaled[:, :, None] * direction[:, None, :]
        self._seen[at] = seen + 1
        self._squares[at] = before + squares
        return np.asarray(log)

    def _constants(self, most: int) -> Array:
        """Returns log of Gamma((nu + 1) / 2) / Gamma(nu / 2), nu = weight + n, for n from 0 to at least this number."""
        known = len(self._gammas)
        if most >= known:
            nus = [self._weight + n for n in range(known, 2 * most + PLACES)]
            more = [math.lgamma(0.5 * (nu + 1.0)) - math.lgamma(0.5 * nu) for nu in nus]
            self._gammas = np.concatenate([self._gammas, more])
        return self._gammas
