"""Low-rank factors of a kernel matrix over arms.

| symbol | name | meaning | shape |
|---|---|---|---|
| Phi | `features` | row x is phi(x); Phi Phi^T approximates K | (N, r) |
| E | | residual K - Phi Phi^T, positive semi-definite | (N, N) |
| epsilon | `residual` | largest diagonal entry of E, so also of all entries of E | reward units^2 |

Error of the truncation: Write a for the weights of the exact posterior mean at x (mu(x) = a^T y), K' = K - E, and
primes for the posterior under K'. Both variances are minima of one expression over the weights, sigma^2(x) = min_a (e_x
- a)^T K (e_x - a) + lambda |a|^2, and K >= K', so

    0 <= sigma^2(x) - sigma'^2(x) <= epsilon (1 + |a'|_1)^2,
    |mu(x) - mu'(x)| <= (epsilon / lambda) (1 + |a|_1) sum_s |y_s - mu'(x_s)|.

The posterior adds E_xx to sigma'^2, so that the prior variance is exact. The difference stays within the same bound on
either side. The second bound follows from mu - mu' = (e_x - a)^T E alpha' with alpha' = (y - mu') / lambda.

The weights of a smoother are small: |a|_1 is a few units in practice, and at most sqrt(t k(x, x) / lambda). So with
epsilon = 1e-12 lambda the mean is right to about 1e-12 times the sum of absolute residuals.

Residuals below 16 rounding units of k(x, x) are rounding errors of the kernel itself, so epsilon is never smaller than
that. For lambda < 0.004 k(x, x) the factor 1e-12 becomes 4e-15 k(x, x) / lambda. No method in double precision does
better, since K itself is known only to one rounding unit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._utils.checks import Array, IndexArray
from ..kernels import ALL, Kernel

RELATIVE_TOLERANCE = 1e-12  # epsilon / lambda asked for
ROUNDING = 16.0 * float(np.finfo(np.float64).eps)  # epsilon / max k(x, x) below which residuals are rounding noise

LEAST_REGULARIZATION = 1e-12  # lambda / max k(x, x) below which rounding drowns the posterior


class PivotedCholesky(NamedTuple):
    """Features of arms and their residual.

    Attributes:
        features: `(N, r)`, column-major.
        residual: largest k(x, x) - |phi(x)|^2.
        complete: True if the residual is within the tolerance.
    """

    features: Array
    residual: float
    complete: bool


def tolerance(prior_variance: Array, regularization: float) -> float:
    """Returns the residual epsilon to ask for, far below noise and signal and not below rounding."""
    size = float(prior_variance.max())
    # Under a huge lambda the kernel must still be represented, for samples and prior variances.
    return max(RELATIVE_TOLERANCE * min(regularization, size), ROUNDING * size)


def pivoted_cholesky(kernel: Kernel, points: Array, *, tol: float, max_rank: int) -> PivotedCholesky:
    """Returns the greedy Cholesky factorisation of the kernel matrix over arms, largest residual variance first.

    The factorisation never forms the matrix: O(N r) memory, O(N r^2) time. It stops when every residual is at most
    `tol`, or at `max_rank`.
    """
    residual = kernel.arm_variances(points).copy()
    features = np.zeros((len(points), min(max_rank, len(points))), order="F")
    for rank in range(features.shape[1]):
        pivot = int(residual.argmax())
        if residual[pivot] <= tol:
            return PivotedCholesky(features[:, :rank].copy(order="F"), max(float(residual[pivot]), 0.0), True)
        column = kernel.between_arms(points, ALL, np.array([pivot]))[:, 0]
        column = column - features[:, :rank] @ features[pivot, :rank]
        column /= np.sqrt(residual[pivot])
        features[:, rank] = column
        residual -= column * column
        residual[pivot] = 0.0
    left = max(float(residual.max()), 0.0)
    return PivotedCholesky(features, left, left <= tol)


def covariance_root(matrix: Array) -> Array:
    """Returns R `(n, r)` with R R^T equal, to rounding, to a positive semi-definite, possibly singular matrix."""
    from scipy.linalg.lapack import dpstrf

    factor, pivots, rank, _ = dpstrf(matrix, lower=1)  # the code only reports a rank below n
    order: IndexArray = np.asarray(pivots, dtype=np.intp) - 1
    root = np.zeros((len(matrix), rank))
    root[order] = np.tril(factor)[:, :rank]
    return root
