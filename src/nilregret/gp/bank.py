"""A mixture of posteriors on arms of a drifting function, one for each of several rates of drift.

| symbol | name | meaning | shape |
|---|---|---|---|
| eps_j | `rates` | shares of f that may be new in each round, ascending | (J,) |
| Phi | `_features` | row x is phi(x), k = phi^T phi to `TOLERANCE` lambda | (N, r) |
| S_j, m_j | `_covariances`, `_weights` | posterior of the weights of f at rate eps_j | (J, r, r), (J, r) |
| w_j | `_log_shares` (logs) | share of a rate, by its predictions, lately above all | (J,) |
| a | `SHARED` | share that is spread over all rates after each reward | |

Under some theorems lambda is not the variance of the noise. Then a second set of posteriors with the variance of the
noise determines w_j, and those of lambda determine everything else. So J is twice as large in some of the shapes.

Each posterior is that of `drifting`. Every rate predicts each reward before it learns the reward, with density p_j. The
density is Student-t, with the scale learned as in `theory.change.evidence`, where the given scale counts as `PRIOR`
rewards.
Then

    w_j <- (1 - a) w_j p_j / sum_i w_i p_i + a / J    (fixed share, Herbster & Warmuth 1998).

The predictions have the mean and the covariance of the mixture of all rates. This is Bayesian change-point detection
(Adams & MacKay 2007) with rates of forgetting in place of run lengths. The rate with the largest share alone would do
as well in most runs. In some runs it assumes for long that nothing changes where it has not looked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from .._utils.checks import Array, number
from .._utils.copying import independent
from ..domains.domain import Arms
from ..kernels import Kernel
from ..kernels.factorization import pivoted_cholesky, tolerance
from .arms import ArmIndices, Prior
from .drifting import draws_of_weights
from .protocol import Posterior

SHARED = 1e-3
PRIOR = 10.0  # rewards that the given scale counts as
TOLERANCE = 1e-3  # of lambda: prior variance that features may leave out
RECOMPUTE_EVERY = 256  # rewards between two recomputations of means and variances from the factors
FARTHEST = 1e100  # largest standardised error, so that squares do not overflow


@final
class BankPosterior(Posterior):
    """The mixture of posteriors at several rates. Observations fade as rounds pass (`tick`)."""

    OWNED = ("plays", "_covariances", "_weights", "_means", "_variances", "_log_ratios", "_log_shares", "_squares")

    def __init__(
        self,
        domain: Arms,
        kernel: Kernel,
        regularization: float,
        *,
        rates: Sequence[float],
        noise_variance: float | None = None,
    ) -> None:
        self.prior = Prior(kernel, domain.points)
        self.regularization = number("regularization", regularization, low=0.0, open_low=True)
        self.rates = tuple(number("rates", rate, low=0.0, high=1.0) for rate in rates)
        many = len(self.rates)
        variances = [self.regularization]
        if noise_variance is not None:
            variances.append(number("noise_variance", noise_variance, low=0.0, open_low=True))
        self._ridges = np.repeat(variances, many)
        self._rates = np.tile(self.rates, len(variances))
        least = min(variances)
        tol = max(tolerance(self.prior.variance, least), TOLERANCE * least)
        self._features = pivoted_cholesky(kernel, domain.points, tol=tol, max_rank=len(domain)).features
        both, arms, rank = len(self._rates), len(domain), self._features.shape[1]
        self.count = 0
        self.weighs = True  # whether rewards change the shares of the rates
        self.plays = np.zeros(arms, dtype=np.int64)
        self._covariances = np.tile(np.eye(rank), (both, 1, 1))
        self._weights = np.zeros((both, rank))
        self._means = np.zeros((both, arms))
        self._variances = np.tile(self.prior.variance, (both, 1))
        self._log_ratios = np.zeros(many)
        self._log_shares = np.full(many, -math.log(many))
        self._squares = np.zeros(many)

    @property
    def rate(self) -> float:
        """Rate with the largest share."""
        return self.rates[int(self._log_shares.argmax())]

    @property
    def shares(self) -> Array:
        """Shares of the rates, `(J,)`, adding up to 1."""
        return np.asarray(np.exp(self._log_shares))

    @property
    def size(self) -> int:
        """Number of floats that a copy holds."""
        return self._covariances.size + 2 * self._means.size

    def tick(self) -> None:
        """Advances by one round. O(J (N + r^2))."""
        keep, rates = 1.0 - self._rates, self._rates
        self._covariances *= keep[:, None, None]
        diagonal = np.arange(self._weights.shape[1])
        self._covariances[:, diagonal, diagonal] += rates[:, None]
        self._weights *= np.sqrt(keep)[:, None]
        self._means *= np.sqrt(keep)[:, None]
        self._variances *= keep[:, None]
        self._variances += rates[:, None] * self.prior.variance

    def append(self, point: Any, target: float, *, weight: float = 1.0) -> None:
        """Adds one observation of the present f. O(J (N r + r^2))."""
        arm, target = int(point), number("target", target)
        phi = self._features[arm]
        directions = self._covariances @ phi  # (J, r)
        variances = np.maximum(self._variances[:, arm], 0.0)
        totals = self._ridges / weight + variances
        errors = target - self._means[:, arm]
        if self.weighs:
            self._weigh(errors[-len(self.rates) :], totals[-len(self.rates) :])
        scaled = directions / totals[:, None]
        g = directions @ self._features.T  # (J, N)
        self._weights += errors[:, None] * scaled
        self._means += (errors / totals)[:, None] * g
        self._variances -= g * g / totals[:, None]
        self._covariances -= scaled[:, :, None] * directions[:, None, :]
        self._log_ratios += np.log1p(variances[: len(self.rates)] / (self.regularization / weight))
        self.count += 1
        self.plays[arm] += 1
        if self.count % RECOMPUTE_EVERY == 0:
            self._recompute()

    def _weigh(self, errors: Array, totals: Array) -> None:
        """Updates the shares after a reward that was predicted with these errors and variances."""
        squares = np.clip(errors / np.sqrt(totals), -FARTHEST, FARTHEST) ** 2
        half = 0.5 * (PRIOR + self.count + 1.0)
        scatter = PRIOR + self._squares
        log = self._log_shares - 0.5 * np.log(totals * scatter) - half * np.log1p(squares / scatter)
        shares = np.exp(log - log.max())
        shares /= shares.sum()
        self._log_shares = np.log((1.0 - SHARED) * shares + SHARED / len(shares))
        self._squares += squares

    def _recompute(self) -> None:
        rows = self._features
        self._covariances = 0.5 * (self._covariances + self._covariances.transpose(0, 2, 1))
        self._means = self._weights @ rows.T
        left_out = self.prior.variance - np.einsum("nr,nr->n", rows, rows)
        for j, covariance in enumerate(self._covariances):
            self._variances[j] = left_out + np.einsum("nr,nr->n", rows @ covariance, rows)

    def predict(self, points: ArmIndices | None = None) -> tuple[Array, Array]:
        """Returns mean and std of the present f, at all arms or those listed."""
        arms: Any = slice(None) if points is None else points
        shares, means = self.shares, self._means[: len(self.rates), arms]
        mean = shares @ means
        variance = shares @ (np.maximum(self._variances[: len(self.rates), arms], 0.0) + (means - mean) ** 2)
        return mean, np.sqrt(variance)

    def covariance(self, points: ArmIndices) -> Array:
        """Returns the joint posterior covariance, `(n, n)`."""
        rows = self._features[np.asarray(points)]
        return np.asarray(rows @ self._mixed()[1] @ rows.T)

    def sample(self, rng: np.random.Generator, points: ArmIndices | None = None, *, size: int = 1) -> Array:
        """Returns joint normal samples of the present f with mean and covariance of the mixture, `(size, n)`."""
        rows = self._features if points is None else self._features[np.asarray(points)]
        return draws_of_weights(*self._mixed(), rng, size, most=len(self._features)) @ rows.T

    def deviations_from(self, believed: BankPosterior) -> BankPosterior:
        """Returns the posterior of f less the mean of another posterior.

        Shares and means are those of the other posterior, and variances are those of this one.

        Args:
            believed: the other posterior.
        """
        shares, many = believed.shares, len(self.rates)
        means = believed._means - shares @ believed._means[:many]
        weights = believed._weights - shares @ believed._weights[:many]
        return independent(self, fresh={"_log_shares": believed._log_shares, "_means": means, "_weights": weights})

    def _mixed(self) -> tuple[Array, Array]:
        """Returns mean and covariance of the weights over all rates, `(r,)` and `(r, r)`."""
        shares, weights = self.shares, self._weights[: len(self.rates)]
        mean = shares @ weights
        apart = weights - mean
        within = np.tensordot(shares, self._covariances[: len(shares)], axes=1)
        return mean, within + (shares[:, None] * apart).T @ apart

    @property
    def mean_norm(self) -> float:
        """RKHS norm ||mu||_k of the present f."""
        return float(np.linalg.norm(self.shares @ self._weights[: len(self.rates)]))

    @property
    def log_determinant_ratio(self) -> float:
        """Sum of log(1 + sigma^2 / lambda) over time, averaged over the rates by their shares."""
        return float(self.shares @ self._log_ratios)
