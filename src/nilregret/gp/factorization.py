"""Low-rank factors of a kernel matrix over arms.

| symbol | name | meaning | shape |
|---|---|---|---|
| Phi | `features` | row x is phi(x); Phi Phi^T approximates K | (N, r) |
| E | | residual K - Phi Phi^T, positive semi-definite | (N, N) |
| epsilon | `residual` | largest diagonal entry of E, so also of all entries of E | reward units^2 |

What the truncation costs. Write a for the weights of the exact posterior mean at x (mu(x) = a^T y), K' = K - E, and
primes for the posterior under K'. Both variances are minima of one expression over the weights,
sigma^2(x) = min_a (e_x - a)^T K (e_x - a) + lambda |a|^2, and K >= K', so

    0 <= sigma^2(x) - sigma'^2(x) <= epsilon (1 + |a'|_1)^2,
    |mu(x) - mu'(x)| <= (epsilon / lambda) (1 + |a|_1) sum_s |y_s - mu'(x_s)|.

The engine adds E_xx to sigma'^2, so that the prior variance is exact; the difference stays within the same bound on
either side. The second follows from mu - mu' = (e_x - a)^T E alpha' with alpha' = (y - mu') / lambda. A smoother's
weights are small (|a|_1 is a few units in practice, at most sqrt(t k(x, x) / lambda) always), so with epsilon =
1e-12 lambda the mean is right to about 1e-12 times the sum of absolute residuals. Residuals below 16 rounding units of
k(x, x) are noise of the kernel's own evaluation, so epsilon is never smaller than that: for lambda < 0.004 k(x, x) the
factor 1e-12 becomes 4e-15 k(x, x) / lambda. No engine in double precision does better, since K itself is known to one
rounding unit only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._utils.checks import Array, IndexArray
from ..kernels import ALL, Kernel

RELATIVE_TOLERANCE = 1e-12  # epsilon / lambda asked for
ROUNDING = 16.0 * float(np.finfo(np.float64).eps)  # epsilon / max k(x, x) below which residuals are rounding noise


class PivotedCholesky(NamedTuple):
    """Features of arms and what they leave out."""

    features: Array  # (N, r), column-major
    residual: float  # largest k(x, x) - |phi(x)|^2
    complete: bool  # whether the residual is within the tolerance


def tolerance(prior_variance: Array, regularization: float) -> float:
    """The residual epsilon to ask for: far below the noise and the signal, not below what rounding can resolve."""
    size = float(prior_variance.max())
    # A huge lambda is no reason to cut the kernel itself down.
    return max(RELATIVE_TOLERANCE * min(regularization, size), ROUNDING * size)


def pivoted_cholesky(kernel: Kernel, points: Array, *, tol: float, max_rank: int) -> PivotedCholesky:
    """Greedy Cholesky factorisation of the kernel matrix over arms: largest residual variance first.

    Never forms the matrix: O(N r) memory, O(N r^2) time. Stops when every residual is at most `tol`, or at `max_rank`.
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
    """R `(n, r)` with R R^T equal to a positive semi-definite matrix, to rounding; singular matrices are welcome."""
    from scipy.linalg.lapack import dpstrf

    factor, pivots, rank, _ = dpstrf(matrix, lower=1)  # a warning code here only says that the rank is below n
    order: IndexArray = np.asarray(pivots, dtype=np.intp) - 1
    root = np.zeros((len(matrix), rank))
    root[order] = np.tril(factor)[:, :rank]
    return root
