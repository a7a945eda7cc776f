"""Posteriors under hypotheses about outliers and about noise that varies over points and time.

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
from contextlib import nullcontext
from typing import Any, ClassVar, final

import numpy as np

from ..._utils.checks import Array
from ..._utils.process_setting import one_thread
from .posterior_sets import FARTHEST, LARGE, PLACES, Covariance, PosteriorSet

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
