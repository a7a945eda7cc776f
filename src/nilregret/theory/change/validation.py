"""Choice of the ridge by cross-validation, as in Remark 3.1 of Avanesov.

| symbol | name | meaning | shape |
|---|---|---|---|
| K, y | | kernel matrix and rewards of the uniform pairs | (n, n), (n,) |
| lambda = n rho | `ridge` | added to the diagonal of K | |
| e_i | | y_i minus the mean fitted on all other pairs, at x_i | (n,) |

With M = (K + lambda I)^{-1} the leave-one-out residuals are e_i = (M y)_i / M_ii (Rasmussen & Williams 2006, eq. 5.12).
One eigendecomposition of K serves all candidates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from ..._utils.checks import LARGEST_REWARD, Array, finite_array, frozen, many
from ..._utils.errors import InvalidInput
from ...domains.domain import Domain
from ...kernels import Kernel
from ...kernels.factorization import LEAST_REGULARIZATION
from .geometry import make_geometry
from .schedules import PowerLaw, detection_exponent

CANDIDATES = np.logspace(-4.0, 2.0, 25)  # in units of the prior variance


@final
@dataclass(frozen=True, slots=True, eq=False)
class RidgeChoice:
    """The ridge with the smallest leave-one-out error.

    Attributes:
        ridge: n rho, in units of k: a bandit's `regularization`.
        pairs: n.
        candidates: ridges tried, ascending, `(c,)`.
        errors: mean squared leave-one-out error of each, reward units squared, `(c,)`.

    >>> import nilregret as nr
    >>> points = [[i / 9] for i in range(10)]
    >>> rewards = [x * (1 - x) for (x,) in points]
    >>> choice = nr.theory.cross_validate_ridge(points, rewards, nr.Matern(2.5, 0.3), domain=nr.Box(0, 1))
    >>> len(choice.candidates), round(choice.schedule(2.5, 1).exponent, 3)
    (25, 0.143)
    """

    ridge: float
    pairs: int
    candidates: Array
    errors: Array

    @property
    def rho(self) -> float:
        """Ridge / n, the paper's regularization parameter."""
        return self.ridge / self.pairs

    def schedule(self, alpha: float, dimension: int) -> PowerLaw:
        """Returns the detector's n -> n rho_n of eq. 3.5 through this ridge: c = ridge / n^{1 / (2 alpha + d + 1)}."""
        exponent = 1.0 - detection_exponent(alpha, dimension)
        return PowerLaw(self.ridge / self.pairs**exponent, exponent)


def cross_validate_ridge(
    points: Any,
    rewards: npt.ArrayLike,
    kernel: Kernel,
    *,
    domain: Domain,
    candidates: npt.ArrayLike | None = None,
) -> RidgeChoice:
    """Returns the ridge that predicts left-out rewards best (Avanesov, Remark 3.1: on the uniformly sampled pairs).

    Args:
        points: `(n, d)`, n >= 2, of the domain.
        rewards: `(n,)`. Subtract their prior mean beforehand, since the prior mean is 0 here.
        kernel: prior covariance.
        domain: domain of the points.
        candidates: ridges to choose from, in units of k, by default 25 from 1e-4 to 100 prior variances. Ties go to the
            largest.

    Raises:
        InvalidInput: for fewer than two pairs, values that are not finite, ridges that are not positive.

    >>> import nilregret as nr
    >>> points = [[i / 9] for i in range(10)]
    >>> rewards = [x * (1 - x) for (x,) in points]
    >>> nr.theory.cross_validate_ridge(points, rewards, nr.Matern(2.5, 0.3), domain=nr.Box(0, 1)).ridge
    0.0001
    """
    geometry = make_geometry(kernel, domain)
    places, y = geometry.place("points", points), finite_array("rewards", rewards)
    if y.shape != (len(places),) or len(y) < 2:
        raise InvalidInput(
            f"`rewards` has shape {y.shape} for {many(len(places), 'point')}: it takes two pairs at least, and one "
            "reward for each point."
        )
    if np.abs(y).max() > LARGEST_REWARD:
        raise InvalidInput(f"A reward is beyond {LARGEST_REWARD:g}, where its square may overflow: change the unit.")
    least = LEAST_REGULARIZATION * geometry.variance
    ridges = geometry.variance * CANDIDATES if candidates is None else np.sort(finite_array("candidates", candidates))
    if ridges.ndim != 1 or len(ridges) == 0 or ridges[0] < least:
        raise InvalidInput(f"`candidates` must be a list of ridges, each at least {least:g}: below, rounding decides.")
    values, vectors = np.linalg.eigh(geometry.covariances(places, places))
    inverse = 1.0 / (np.maximum(values, 0.0) + ridges[:, None])  # eigenvalues of M, one row for each ridge
    residuals = ((inverse * (vectors.T @ y)) @ vectors.T) / (inverse @ (vectors.T**2))
    errors = (residuals**2).mean(axis=1)
    best = int(np.flatnonzero(errors == errors.min())[-1])
    return RidgeChoice(float(ridges[best]), len(y), frozen(ridges), frozen(errors))
