"""Posterior on arms of a drifting function, by exact forgetting at a cost independent of the number of rounds.

| symbol | name | meaning | shape |
|---|---|---|---|
| Phi | `_features` | row x is phi(x), k = phi^T phi to the tolerance of `factorization` | (N, r) |
| S, m | `_covariance`, `_weights` | posterior of the weights w_t, f_t = Phi w_t | (r, r), (r,) |
| eps | `rate` | share of f that is new in each round | scalar |

Bogunovic, Scarlett & Cevher 2016, eq. 3: f_{t+1} = sqrt(1 - eps) f_t + sqrt(eps) g_{t+1}, hence exactly

    S <- (1 - eps) S + eps I,    m <- sqrt(1 - eps) m,    sigma^2 <- (1 - eps) sigma^2 + eps k(x, x).

Each tick shrinks rounding errors of earlier rounds, so nothing need be recomputed.
"""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np
from scipy.linalg.blas import dger

from .._utils.checks import Array, number
from ..domains.domain import Arms
from ..kernels import Kernel
from ..kernels.factorization import covariance_root, draws_of_root, pivoted_cholesky, tolerance
from .arms import ArmIndices, Prior
from .protocol import Posterior


def draws_of_weights(mean: Array, covariance: Array, rng: np.random.Generator, size: int, *, most: int) -> Array:
    """Returns draws from N(mean, covariance), `(size, r)`, by `most` normal numbers each."""
    root = covariance_root(0.5 * (covariance + covariance.T))
    return np.asarray(mean + draws_of_root(root, rng, size, most=most))


@final
class DriftingPosterior(Posterior):
    """A posterior whose observations fade as rounds pass (`tick`), so single ones cannot be removed."""

    OWNED = ("plays", "_covariance", "_weights", "_mean", "_variance")

    def __init__(self, domain: Arms, kernel: Kernel, regularization: float, *, rate: float) -> None:
        self.prior = Prior(kernel, domain.points)
        self.regularization = number("regularization", regularization, low=0.0, open_low=True)
        self.rate = number("rate", rate, low=0.0, high=1.0)
        tol = tolerance(self.prior.variance, self.regularization)
        factor = pivoted_cholesky(kernel, domain.points, tol=tol, max_rank=len(domain))
        self._features = factor.features
        self.count = 0
        self.plays = np.zeros(len(domain), dtype=np.int64)
        self._covariance = np.eye(self._features.shape[1], order="F")
        self._weights = np.zeros(self._features.shape[1])
        self._mean = np.zeros(len(domain))
        self._variance = self.prior.variance.copy()
        self._log_ratio = 0.0

    @property
    def size(self) -> int:
        """Number of floats that a copy holds."""
        return self._covariance.size + 2 * len(self._mean)

    def tick(self) -> None:
        """Advances by one round. O(N + r^2)."""
        keep = 1.0 - self.rate
        self._covariance *= keep
        self._covariance.reshape(-1, order="F")[:: len(self._weights) + 1] += self.rate  # the diagonal
        self._weights *= math.sqrt(keep)
        self._mean *= math.sqrt(keep)
        self._variance *= keep
        self._variance += self.rate * self.prior.variance

    def append(self, point: Any, target: float, *, weight: float = 1.0) -> None:
        """Adds one observation of the present f. O(N r + r^2)."""
        arm, target = int(point), number("target", target)
        phi = self._features[arm]
        direction = self._covariance @ phi
        variance = max(float(phi @ direction), 0.0)
        noise = self.regularization / weight
        total = noise + variance
        g = self._features @ direction
        step = (target - float(self._mean[arm])) / total
        self._weights += step * direction
        self._mean += step * g
        self._variance -= g * g / total
        if len(phi):
            self._covariance = dger(-1.0 / total, direction, direction, a=self._covariance, overwrite_a=1)
        self._log_ratio += math.log1p(variance / noise)
        self.count += 1
        self.plays[arm] += 1

    def predict(self, points: ArmIndices | None = None) -> tuple[Array, Array]:
        """Returns mean and std of the present f, at all arms or those listed."""
        arms: Any = slice(None) if points is None else points
        return self._mean[arms].copy(), np.sqrt(np.maximum(self._variance[arms], 0.0))

    def covariance(self, points: ArmIndices) -> Array:
        """Returns the joint posterior covariance, `(n, n)`."""
        rows = self._features[np.asarray(points)]
        return np.asarray(rows @ self._covariance @ rows.T)

    def sample(self, rng: np.random.Generator, points: ArmIndices | None = None, *, size: int = 1) -> Array:
        """Returns joint samples of the present f, `(size, n)`."""
        rows = self._features if points is None else self._features[np.asarray(points)]
        return draws_of_weights(self._weights, self._covariance, rng, size, most=len(self._features)) @ rows.T

    @property
    def mean_norm(self) -> float:
        """RKHS norm ||mu||_k of the present f."""
        return float(np.linalg.norm(self._weights))

    @property
    def log_determinant_ratio(self) -> float:
        """Sum of log(1 + sigma^2 / lambda) over time, twice the time-varying gain of Bogunovic et al."""
        return self._log_ratio
