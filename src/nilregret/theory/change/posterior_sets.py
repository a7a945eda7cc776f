"""Posteriors that began at several rounds, and the density that each of them gives to an observation.

| symbol | name | meaning | shape |
|---|---|---|---|
| phi | `_features` | k(x, x') = phi(x)^T phi(x'), to `TOLERANCE` of the noise variance | (r,) |
| m_s, C_s | `_weights`, `_covariances` | posterior of the weights of phi that began at s | (S, c, r), (S, r, r) |

The scale of the observations is learned by a factor v ~ InvGamma(weight / 2, weight / 2) of kernel and noise variance.
Then y has a Student-t density with weight + n degrees of freedom. Its squared scale is (weight + z) / (weight + n)
times sigma^2(x) + lambda, with z the sum of squared standardised errors so far (the normal-inverse-gamma model).

`OutlierHypotheses` are about outliers and about noise that varies over points and time.

| symbol | name | meaning | shape |
|---|---|---|---|
| b | place | a hypothesis: which observations were outliers, and since when the scale is the same | R at most |
| w_b | `_logs` (logs) | posterior weight of a hypothesis | (R,) |
| v_b | | factor of kernel and noise variance of the inliers, as in `posterior_sets` | (R, c) |
| kappa_b(x) | | factor of the noise variance of a single cell, with a prior worth `OWN` observations | (R, cells) |
| eps_b | | share of outliers, with a prior worth `WORTH` observations | (R,) |

Under a hypothesis an observation is of one of three kinds. With probability eps it is an outlier, which says nothing
about f (Box & Tiao 1968). With probability `ANEW` it is the first of another scale. Otherwise it is as stated:
Student-t around the posterior mean with the squared scale v (sigma^2(x) + kappa(x) lambda). The density of an outlier
is half a Cauchy density of `WIDE` such scales and half the prior's. So each hypothesis becomes three, of which the
`HYPOTHESES` with the largest weights stay. The prediction is their mixture. Pruning leaves a density, as `evidence`
needs.
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


HYPOTHESES = 8  # number of hypotheses, at most `PLACES`
FORGOTTEN = 25.0  # nats below the best hypothesis at which one is dropped
OWN = 4.0  # weight of kappa = 1 at a cell, as a number of observations
WORTH = 20.0  # weight of the stated share of outliers, as a number of observations
FEW = 2.0  # weight of the stated scale where another one begins, as a number of observations
WIDE = 5.0  # scale of an outlier, in scales of a prediction
ANEW = 0.02  # probability that another scale begins with an observation
HALF = math.log(0.5)
OUTLIER, NEW_SCALE = 1, 2  # rows of `_log_beliefs`


@final
class OutlierHypotheses(PosteriorSet):
    """The hypotheses of one stretch.

    Args:
        covariance, noise_variance, channels, weight: as in `PosteriorSet`.
        outliers: initial share of observations that are outliers, in (0, 1).
    """

    ROWS: ClassVar[tuple[str, ...]] = (
        *PosteriorSet.ROWS,
        "_logs",
        "_since",
        "_taken",
        "_outliers",
        "_own_seen",
        "_own_squares",
    )
    OWNED = (*ROWS, "_basis", "_features", "_triangle", "_cells")

    def __init__(
        self, covariance: Covariance, noise_variance: float, *, channels: int, weight: float, outliers: float
    ) -> None:
        self._share = outliers
        self._cells: dict[Any, int] = {}
        self._logs = np.zeros(PLACES)
        self._since = np.zeros(PLACES)  # observations since the current scale began
        self._taken, self._outliers = np.zeros(PLACES), np.zeros(PLACES)  # numbers of observations and of outliers
        self._own_seen, self._own_squares = np.zeros((PLACES, 0)), np.zeros((PLACES, 0))
        super().__init__(covariance, noise_variance, channels=channels, weight=weight)
        self._anew = min(FEW - weight, 0.0)  # observations that another scale begins with, on top of `weight`

    def learn(self, cell: Any, values: Array) -> float:
        """Returns the log density of an observation `(c,)` under all hypotheses, and adds it. O(R (r^2 + cells))."""
        with one_thread if len(self._basis) >= LARGE else nullcontext():
            return self._learn(cell, values)

    def _learn(self, cell: Any, values: Array) -> float:
        phi, rest = self._feature(cell)
        at, many = self._column(cell), slice(self._count)
        direction = self._covariances[many] @ phi  # C_b phi, (R, r)
        variance = np.maximum(direction @ phi, 0.0) + rest  # (R,)
        total = variance + self._noise * (OWN + self._own_squares[many, at]) / (OWN + self._own_seen[many, at])
        scale = (self._weight + self._squares[many]) / (self._weight + self._since[many])[:, None]  # v, (R, c)
        error = values - self._weights[many] @ phi
        squares = np.clip(error / np.sqrt(total)[:, None], -FARTHEST, FARTHEST) ** 2
        prior = scale * (float(phi @ phi) + rest + self._noise)
        logs = self._log_beliefs(at, values, squares, (total, scale, prior))
        density = float(np.logaddexp.reduce(logs, axis=None))
        kinds, parents = self._best(logs)
        self._become(parents, logs[kinds, parents])
        inlier = np.where(kinds == OUTLIER, 0.0, 1.0)  # an outlier says nothing of f
        along, of_noise = direction[parents] * inlier[:, None], squares[parents] * inlier[:, None]
        step, many = along / total[parents, None], slice(self._count)
        self._weights[many] += error[parents][:, :, None] * step[:, None, :]
        self._covariances[many] -= step[:, :, None] * along[:, None, :]
        self._count_answer(kinds, of_noise)
        as_told = (total / (variance + self._noise))[parents, None] / scale[parents]
        self._own_squares[many, at] += (of_noise * as_told).mean(axis=1)
        self._own_seen[many, at] += inlier
        return density

    def _log_beliefs(self, at: int, values: Array, squares: Array, scales: tuple[Array, Array, Array]) -> Array:
        """Returns logs of hypothesis times density, `(3, R)`: answers as told, outliers, and a new scale.

        Args:
            at: column of the cell.
            values: of the answer, `(c,)`.
            squares: squared standardised errors, `(R, c)`.
            scales: sigma^2 + kappa lambda `(R,)`, v `(R, c)`, and the prior variance of an answer `(R, c)`.
        """
        many, (total, scale, prior) = slice(self._count), scales
        own, since = OWN + self._own_seen[many, at], self._weight + self._since[many]
        wide = scale * total[:, None]
        cauchy = _log_density(squares / (WIDE**2 * scale), WIDE**2 * wide, np.ones(len(own)))
        anywhere = _log_density(
            np.clip(values, -FARTHEST, FARTHEST) ** 2 / prior, prior, np.full(len(own), self._weight)
        )
        share = (WORTH * self._share + self._outliers[many]) / (WORTH + self._taken[many])
        told = _log_density(squares / scale, wide, np.minimum(own, since))
        freedom = np.minimum(own, self._weight + self._anew)
        anew = _log_density(squares, np.broadcast_to(total[:, None], wide.shape), freedom)
        return self._logs[many] + np.stack(
            [
                np.log1p(-share - ANEW * (1.0 - share)) + told,
                np.log(share) + HALF + np.logaddexp(cauchy, anywhere),
                np.log(ANEW * (1.0 - share)) + anew,
            ]
        )

    def _count_answer(self, kinds: Array, of_noise: Array) -> None:
        """Updates the statistics of scale and outliers.

        Args:
            kinds: row of `_log_beliefs` that each hypothesis takes the answer for, `(R,)`.
            of_noise: squared standardised errors, 0 for outliers, `(R, c)`.
        """
        many, anew = slice(self._count), kinds == NEW_SCALE
        self._squares[many] = np.where(anew[:, None], self._anew, self._squares[many]) + of_noise
        self._since[many] = np.where(anew, self._anew, self._since[many]) + (kinds != OUTLIER)
        self._taken[many] += 1.0
        self._outliers[many] += kinds == OUTLIER

    def _best(self, logs: Array) -> tuple[Array, Array]:
        """Returns the hypotheses that stay, by weight: the kind of the observation and the place of the parent."""
        flat = logs.ravel()
        best = np.argsort(-flat, kind="stable")[:HYPOTHESES]
        kinds, parents = np.divmod(best[flat[best] > flat[best[0]] - FORGOTTEN], logs.shape[1])
        return kinds, parents

    def _become(self, parents: Array, logs: Array) -> None:
        """Copies each parent to its new place, with its weight."""
        self._count = len(parents)
        for name in self.ROWS:
            rows = getattr(self, name)
            rows[: self._count] = rows[parents]
        self._logs[: self._count] = logs - np.logaddexp.reduce(logs)

    def _column(self, cell: Any) -> int:
        """Returns the column of a cell's own noise."""
        at = self._cells.setdefault(cell if isinstance(cell, int) else cell.tobytes(), len(self._cells))
        if at == self._own_seen.shape[1]:
            for name in ("_own_seen", "_own_squares"):
                setattr(self, name, np.pad(getattr(self, name), ((0, 0), (0, max(at, 16)))))
        return at


def _log_density(squares: Array, variance: Array, freedom: Array) -> Array:
    """Returns log densities of Student's t, summed over outputs, for squared errors over the squared scale `(R, c)`.

    Each output omits a constant, half the log of pi, as in `posterior_sets`.
    """
    from scipy.special import gammaln  # slow to import

    half, nu = 0.5 * (freedom + 1.0), freedom[:, None]
    constant = gammaln(half) - gammaln(0.5 * freedom) - 0.5 * np.log(freedom)
    each = 0.5 * np.log(variance) + half[:, None] * np.log1p(squares / nu)
    return np.asarray(variance.shape[1] * constant - each.sum(axis=1))
