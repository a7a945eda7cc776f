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
from .._utils.randomness import Draws, Rng
from . import ALL, Kernel

RELATIVE_TOLERANCE = 1e-12  # epsilon / lambda asked for
ROUNDING = 16.0 * float(np.finfo(np.float64).eps)  # epsilon / max k(x, x) below which residuals are rounding noise

MANY = 16_384  # arms beyond which pivots are chosen in a sample first
SAMPLE = 2048  # arms of this sample
# Arms that mirror each other have equal residuals but for rounding, which differs between machines. So residuals within
# this share of the largest one tie with it, and so do those within this share of the prior variance.
TIED, TIED_OF_PRIOR = 1e-6, 1e-12
FAVOR = 1e-3  # share by which LAPACK sees the last row smaller than the first, so that no two residuals tie

AMPLIFIED = 4.0  # multiple of the tolerance beyond which rounding at arms unlike the sample was amplified
ROWS = 2048  # arms whose features are computed at a time, which bounds the memory

NONE: IndexArray = np.zeros(0, dtype=np.intp)

LEAST_REGULARIZATION = 1e-12  # lambda / max k(x, x) below which rounding drowns the posterior


class PivotedCholesky(NamedTuple):
    """Features of arms and their residual.

    Attributes:
        features: `(N, r)`, column-major.
        residual: largest k(x, x) - |phi(x)|^2.
        complete: True if the residual is within the tolerance.
        pivots: arms whose features span all others, `(r,)`.
        excess: largest |phi(x)|^2 - k(x, x), which is rounding alone.
    """

    features: Array
    residual: float
    complete: bool
    pivots: IndexArray
    excess: float


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
    features = np.zeros((len(points), min(max_rank, len(points))), order="F")
    return _continued(kernel, points, None, features, NONE, tol=tol)


def factor_of_arms(kernel: Kernel, points: Array, *, tol: float, max_rank: int) -> PivotedCholesky:
    """Returns the factorisation of all arms if they have one within the tolerance, at little cost on many arms.

    On more than `MANY` arms the pivots are those of a sample, and the greedy choice among all arms goes on from there.
    If the sample needs more than `max_rank`, all arms are taken to need it too, and the factor has no rows.
    """
    if len(points) <= MANY:
        return pivoted_cholesky(kernel, points, tol=tol, max_rank=max_rank)
    sample = factor_of_sample(kernel, points, tol=tol, max_rank=max_rank)
    if not sample.complete:
        return sample._replace(features=np.zeros((0, max_rank)))
    features = features_of_pivots(kernel, points, sample, room=max_rank)
    found = _continued(kernel, points, None, features, sample.pivots, tol=tol)
    # The sample's pivots may leave its own arms almost nothing, and arms far from all of them much more. Their features
    # then divide rounding by a small pivot. The greedy choice among all arms divides by the largest residual.
    return found if found.excess <= AMPLIFIED * tol else pivoted_cholesky(kernel, points, tol=tol, max_rank=max_rank)


def factor_of_sample(kernel: Kernel, points: Array, *, tol: float, max_rank: int) -> PivotedCholesky:
    """Returns the greedy factorisation of `SAMPLE` arms drawn at random, the same ones each time.

    The rows of its features are those of the pivots alone, `(r, r)`, a Cholesky factor of their kernel matrix.
    """
    some = np.sort(Draws("sample").permutation(len(points))[:SAMPLE])
    features = np.zeros((len(some), min(max_rank, len(some))), order="F")
    found = _continued(kernel, points, some, features, NONE, tol=tol)
    return found._replace(features=np.tril(found.features[np.searchsorted(some, found.pivots)]))


def features_of_pivots(kernel: Kernel, points: Array, sample: PivotedCholesky, *, room: int) -> Array:
    """Returns the features of all arms in the span of the r pivots of a sample, the first columns of `(N, room)`."""
    from scipy.linalg import solve_triangular

    features, rank = np.empty((len(points), room), order="F"), len(sample.pivots)
    for start in range(0, len(points), ROWS):
        rows = slice(start, start + ROWS)
        block = kernel.between_arms(points, rows, sample.pivots)
        features[rows, :rank] = solve_triangular(sample.features, block.T, lower=True, check_finite=False).T
    return features


def first_largest(residual: Array, size: float) -> int:
    """Returns the first arm whose residual variance ties with the largest one, which is above 0.

    Args:
        residual: `(N,)`.
        size: prior variance.
    """
    top = residual.item(residual.argmax())
    return int((residual >= top - min(TIED * top + TIED_OF_PRIOR * size, 0.5 * top)).argmax())


def _continued(
    kernel: Kernel, points: Array, arms: IndexArray | None, features: Array, known: IndexArray, *, tol: float
) -> PivotedCholesky:
    """Continues the factorisation of some arms, or of all if `arms` is None, from the features of known pivots."""
    rows, begun, pivots = ALL if arms is None else arms, len(known), known.tolist()
    variance = kernel.arm_variances(points)[rows]
    residual = variance - np.einsum("ij,ij->i", features[:, :begun], features[:, :begun])
    residual[known], size = 0.0, float(variance.max())
    for rank in range(begun, features.shape[1]):
        if float(residual.max()) <= tol:
            return _found(features[:, :rank].copy(order="F"), residual, pivots, tol=tol)
        pivot = first_largest(residual, size)
        pivots.append(pivot if arms is None else int(arms[pivot]))
        column = kernel.between_arms(points, rows, np.array(pivots[-1:]))[:, 0]
        column = column - features[:, :rank] @ features[pivot, :rank]
        column /= np.sqrt(residual[pivot])
        features[:, rank] = column
        residual -= column * column
        residual[pivot] = 0.0
    return _found(features, residual, pivots, tol=tol)


def _found(features: Array, residual: Array, pivots: list[int], *, tol: float) -> PivotedCholesky:
    left, excess = max(float(residual.max()), 0.0), max(float(-residual.min()), 0.0)
    return PivotedCholesky(features, left, left <= tol, np.array(pivots, dtype=np.intp), excess)


def pivoted_root(matrix: Array, *, tol: float = -1.0) -> tuple[Array, IndexArray]:
    """Returns L `(n, r)` and an order of the rows of a positive semi-definite matrix, which in this order is L L^T.

    Args:
        matrix: `(n, n)`, possibly singular.
        tol: residual variance that may be left out. By default only rounding is.
    """
    from scipy.linalg.lapack import dpstrf

    scale = 1.0 - FAVOR * np.arange(len(matrix)) / len(matrix)
    scaled = np.multiply(matrix, scale)
    scaled *= scale[:, None]
    factor, pivots, rank, _ = dpstrf(scaled.T, lower=1, tol=tol, overwrite_a=1)  # the code only reports a rank below n
    order: IndexArray = np.asarray(pivots, dtype=np.intp) - 1
    return np.tril(factor)[:, :rank] / scale[order, None], order


def covariance_root(matrix: Array, *, tol: float = -1.0) -> Array:
    """Returns R `(n, r)` with R R^T equal to a matrix (see `pivoted_root`)."""
    factor, order = pivoted_root(matrix, tol=tol)
    root = np.empty_like(factor)
    root[order] = factor
    return root


def normals(rng: Rng, size: int, rank: int) -> Array:
    """Returns standard normal numbers, `(size, rank)`. Those of other columns do not depend on the number of columns.

    The rank of a root depends on rounding, and numbers drawn by `Draws` must not.
    """
    return np.asarray(rng.standard_normal((rank, size)).T)


def draws_of_root(root: Array, rng: Rng, size: int) -> Array:
    """Returns draws from N(0, R R^T), `(size, n)`."""
    return np.asarray(normals(rng, size, root.shape[1]) @ root.T)
