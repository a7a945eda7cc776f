"""Posterior on arms of a function that drifts: an exact forgetting in time, at a cost independent of the rounds.

| symbol | name | meaning | shape |
|---|---|---|---|
| Phi | `_features` | row x is phi(x), k = phi^T phi to the tolerance of `factorization` | (N, r) |
| S, m | `_covariance`, `_weights` | posterior of the weights w_t, f_t = Phi w_t | (r, r), (r,) |
| eps | `rate` | share of f that is new in each round | scalar |

Bogunovic, Scarlett & Cevher 2016, eq. 3: f_{t+1} = sqrt(1 - eps) f_t + sqrt(eps) g_{t+1}, hence exactly

    S <- (1 - eps) S + eps I,    m <- sqrt(1 - eps) m,    sigma^2 <- (1 - eps) sigma^2 + eps k(x, x).

Each tick shrinks whatever rounding has left behind, so that nothing need be refreshed.
"""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np
from scipy.linalg.blas import dger

from .._utils.checks import Array, number
from ..domains.domain import Arms
from ..kernels import Kernel
from .arms import ArmIndices, Prior
from .factorization import covariance_root, pivoted_cholesky, tolerance
from .protocol import Posterior


@final
class DriftingPosterior(Posterior):
    """Observations fade as rounds pass (`tick`). How much one still counts is known for all together only."""

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
        """How many numbers a copy holds."""
        return self._covariance.size + 2 * len(self._mean)

    def tick(self) -> None:
        """One round passes. O(N + r^2)."""
        keep = 1.0 - self.rate
        self._covariance *= keep
        self._covariance.reshape(-1, order="F")[:: len(self._weights) + 1] += self.rate  # the diagonal
        self._weights *= math.sqrt(keep)
        self._mean *= math.sqrt(keep)
        self._variance *= keep
        self._variance += self.rate * self.prior.variance

    def append(self, point: Any, target: float) -> None:
        """Add one observation of f as it is now. O(N r + r^2)."""
        arm, target = int(point), number("target", target)
        phi = self._features[arm]
        direction = self._covariance @ phi
        variance = max(float(phi @ direction), 0.0)
        total = self.regularization + variance
        g = self._features @ direction
        step = (target - float(self._mean[arm])) / total
        self._weights += step * direction
        self._mean += step * g
        self._variance -= g * g / total
        if len(phi):
            self._covariance = dger(-1.0 / total, direction, direction, a=self._covariance, overwrite_a=1)
        self._log_ratio += math.log1p(variance / self.regularization)
        self.count += 1
        self.plays[arm] += 1

    def predict(self, points: ArmIndices | None = None) -> tuple[Array, Array]:
        """Mean and std of f as it is now, at all arms or those listed."""
        arms: Any = slice(None) if points is None else points
        return self._mean[arms].copy(), np.sqrt(np.maximum(self._variance[arms], 0.0))

    def covariance(self, points: ArmIndices) -> Array:
        """Joint posterior covariance, `(n, n)`."""
        rows = self._features[np.asarray(points)]
        return np.asarray(rows @ self._covariance @ rows.T)

    def sample(self, rng: np.random.Generator, points: ArmIndices | None = None, *, size: int = 1) -> Array:
        """Joint samples of f as it is now, `(size, n)`."""
        rows = self._features if points is None else self._features[np.asarray(points)]
        root = covariance_root(0.5 * (self._covariance + self._covariance.T))
        normal = rng.standard_normal((size, root.shape[1]))
        return np.asarray((self._weights + normal @ root.T) @ rows.T)

    @property
    def mean_norm(self) -> float:
        """||mu||_k, of f as it is now."""
        return float(np.linalg.norm(self._weights))

    @property
    def log_determinant_ratio(self) -> float:
        """Sum of log(1 + sigma^2 / lambda), as the time passed (twice the time-varying gain of Bogunovic et al.)."""
        return self._log_ratio
