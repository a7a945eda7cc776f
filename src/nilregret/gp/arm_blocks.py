"""Gaussian weights of features in independent blocks: one block in all, or one for each arm.

| symbol | name | meaning | shape |
|---|---|---|---|
| z | | features of an observation, k(x, x') = z^T z' within a block, and 0 between blocks | (p,) |
| P_k | `covariance` | (I + Z_k^T Z_k / lambda)^{-1}, the covariance of the weights of block k | (K, p, p) |
| W_k | | W_k W_k^T = P_k, kept in place of P_k where `rooted` | (K, p, p) |
| m_k | `mean` | (Z_k^T Z_k + lambda I)^{-1} Z_k^T y_k | (K, p) |
| rho | `keep` | share of the distance from the prior that a block keeps in each round | scalar |

The prior of the weights is N(0, I) and the noise variance is lambda. Divide variances by lambda for multiples of the
noise variance. One observation costs O(p^2), and a prediction of all blocks O(K p^2), whatever the number of
observations.

With roots the variance is |W_k^T z|^2, a sum of squares without cancellation, so rounding costs half the digits. The
covariances themselves cost less to read: P_k z is one product, and with roots it is two. They suffice where lambda is
not far below the prior variance: rounding adds some 1e-16 p |z|^2 to a variance, and never more for more observations.
A block can be computed anew from its observations at any time (`renew`, `refine`).

With rho < 1 the weights of each block follow an Ornstein-Uhlenbeck process, whose stationary law is the prior. After s
rounds P_k becomes g^2 P_k + (1 - g^2) I and m_k becomes g m_k, g = rho^s. Predictions apply this as they read, in O(1).
A block is changed when an observation of its arm is added. A prior mean b other than 0 adds P_k b to m_k. This is
exact without drift, and an approximation with it.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.linalg.blas import dgemm, dger, dsymm, dsymv, dsyr

from .._utils.checks import Array, IndexArray
from .._utils.copying import Copyable
from ..errors import InvalidInput
from .arms import LITTLE_SLACK
from .screening import LARGE, RoughVariances

HALVED = 128  # features from which only the lower triangle of a covariance is read and written, to spare the memory


class ArmBlocks(Copyable):
    """Weights of p features in each of K independent blocks, with the prior N(0, I).

    Attributes:
        count: K.
        size: p.
        regularization: lambda.
        mean: m, `(K, p)`.
        now: the round of predictions and additions, if rho < 1.

    Args:
        count: K.
        size: p.
        regularization: lambda, reward units squared.
        rooted: whether roots of the covariances are kept, or the covariances themselves.
        keep: rho. Below 1 covariances are kept, and observations can only be added.
        most: number of blocks for which room is reserved, so that `grow` moves nothing. It takes no memory before.
    """

    OWNED = ("_factors", "mean", "_changed", "_log_ratios", "_rough")

    def __init__(
        self, count: int, size: int, regularization: float, *, rooted: bool = True, keep: float = 1.0, most: int = 0
    ) -> None:
        self.count, self.size, self.regularization = count, size, regularization
        self._rooted, self._keep = rooted and keep == 1.0, keep
        self._halved = not self._rooted and size >= HALVED
        self._room = np.zeros((max(count, most), size, size))  # `_factors` and what it may grow into, of one owner
        self._factors = self._room[:count]  # W_k^T, or P_k, so that one product serves all blocks
        self._factors.reshape(count, -1)[:, :: size + 1] = 1.0
        self.mean = np.zeros((count, size))
        self._log_ratios = np.zeros(count)
        self.now = 0
        self._changed = np.zeros(count)  # round of the latest addition to each block
        self._rough = RoughVariances()

    @property
    def log_ratio(self) -> float:
        """Log det(I + Z Z^T / lambda) of all observations, without drift."""
        return float(self._log_ratios.sum())

    def grow(self, more: int) -> None:
        """Adds blocks that know nothing, as if they had been there from the start. O(more p^2) if there is room."""
        before, self.count = self.count, self.count + more
        if self._factors.base is not self._room or self.count > len(self._room):  # A copy has an array of its own.
            self._room = np.zeros((2 * self.count, self.size, self.size))
            self._room[:before] = self._factors
        self._factors = self._room[: self.count]
        self._factors[before:].reshape(more, -1)[:, :: self.size + 1] = 1.0
        self.mean = np.concatenate([self.mean, np.zeros((more, self.size))])
        self._log_ratios, self._changed = (
            np.concatenate([each, np.zeros(more)]) for each in (self._log_ratios, self._changed)
        )

    # -- predictions ---------------------------------------------------------------------------------------------

    def predict(self, z: Array, center: float = 0.0, blocks: slice | IndexArray = slice(None)) -> tuple[Array, Array]:
        """Returns mean and variance of z^T w_k for some blocks k, each `(k,)`, from features `(p,)`. O(k p^2).

        Args:
            z: features.
            center: prior mean of the first weight of each block.
            blocks: the blocks, all by default.
        """
        factors = self._factors[blocks]
        half = self._halves(z, factors)
        variance = np.einsum("ki,ki->k", half, half) if self._rooted else half @ z
        mean = self.mean[blocks] @ z
        first = variance  # not used without a center
        if center:
            first = np.einsum("ki,ki->k", half, factors[:, :, 0]) if self._rooted else half[:, 0]
        if self._keep < 1.0:
            kept = self._keep ** (self.now - self._changed[blocks])
            mean, variance = kept * mean, kept**2 * variance + (1.0 - kept**2) * float(z @ z)
            first = kept**2 * first + (1.0 - kept**2) * z[0]
        return mean + center * first if center else mean, variance

    def begin_again(self) -> None:
        """Makes what was left out of a stored state: the room to grow, and the cache of rough variances."""
        self._room, self._rough = np.zeros((0, self.size, self.size)), RoughVariances()

    @property
    def large(self) -> bool:
        """True if a prediction of all blocks takes much longer than `predict_roughly`."""
        return not self._rooted and self._factors.size >= LARGE

    def predict_roughly(self, z: Array, center: float = 0.0) -> tuple[Array, Array, Array]:
        """Returns mean, approximate variance, and a bound on its error, of z^T w_k of each block, `(K,)` each.

        It needs covariances. The arguments are those of `predict`.
        """
        variance, error = self._rough.at(z, self._factors)
        mean, first = self.mean @ z, (self._factors[:, :, 0] if self._halved else self._factors[:, 0]) @ z
        if self._keep < 1.0:
            kept = self._keep ** (self.now - self._changed)
            mean, variance = kept * mean, kept**2 * variance + (1.0 - kept**2) * float(z @ z)
            first = kept**2 * first + (1.0 - kept**2) * z[0]
        return mean + center * first, variance, error

    def predict_one(self, block: int, z: Array, center: float = 0.0) -> tuple[float, float]:
        """Returns mean and variance of z^T w_k for one block, from features `(p,)`, as `predict` does. O(p^2)."""
        mean, variance = self.predict(z, center, slice(block, block + 1))
        return mean.item(), variance.item()

    def _halves(self, z: Array, factors: Array) -> Array:
        """Returns W_k^T z of blocks, or P_k z without roots, `(k, p)`."""
        if self._halved:
            return np.array([dsymv(1.0, covariance, z) for covariance in factors.transpose(0, 2, 1)])
        return np.asarray((factors.reshape(-1, self.size) @ z).reshape(len(factors), self.size))

    def _half(self, block: int, z: Array) -> Array:
        """Returns W_k^T z of one block, or P_k z without roots, `(p,)`."""
        return np.asarray(dsymv(1.0, self._factors[block].T, z) if self._halved else self._factors[block].dot(z))

    def _kept(self, block: int) -> float:
        return float(self._keep ** (self.now - self._changed[block]))

    def mean_now(self) -> Array:
        """Returns m of each block with its drift since the latest addition, `(K, p)`."""
        if self._keep == 1.0:
            return self.mean
        return np.asarray((self._keep ** (self.now - self._changed))[:, None] * self.mean)

    def moved(self, blocks: IndexArray, Z: Array) -> Array:
        """Returns P_k z of each row z, with k its block, `(n, p)`.

        A prior mean b adds b^T P_k z to the mean of z^T w_k.

        Args:
            blocks: block of each row, `(n,)`.
            Z: features `(n, p)`.
        """
        if self._rooted:
            return self.from_halves(blocks, self.halves(blocks, Z))
        found = np.empty_like(Z)
        for block in np.unique(blocks).tolist():
            own = blocks == block
            matrix = self._factors[block]
            found[own] = dsymm(1.0, matrix.T, Z[own], side=1) if self._halved else Z[own] @ matrix
        if self._keep == 1.0:
            return found
        squares = (self._keep ** (2.0 * (self.now - self._changed[blocks])))[:, None]
        return np.asarray(squares * found + (1.0 - squares) * Z)

    def means(self, blocks: IndexArray, Z: Array) -> Array:
        """Returns z^T m_k of each row z, with k its block, `(n,)`."""
        return np.asarray(Z @ self.mean[0] if self.count == 1 else np.einsum("ij,ij->i", Z, self.mean[blocks]))

    def halves(self, blocks: IndexArray, Z: Array) -> Array:
        """Returns W_k^T z of each row, with k its block, `(n, p)`. It needs roots.

        Args:
            blocks: block of each row, `(n,)`.
            Z: features `(n, p)`.
        """
        return self._by_block(blocks, Z, self._factors.transpose(0, 2, 1))

    def from_halves(self, blocks: IndexArray, halves: Array) -> Array:
        """Returns W_k h of each row h, `(n, p)`. It needs roots."""
        return self._by_block(blocks, halves, self._factors)

    def _by_block(self, blocks: IndexArray, rows: Array, matrices: Array) -> Array:
        """Returns each row times the matrix of its block, `(n, p)`."""
        if self.count == 1:
            return np.asarray(rows @ matrices[0])
        if len(blocks) == self.count and (blocks == np.arange(self.count)).all():
            return np.asarray(np.matmul(rows[:, None], matrices)[:, 0])
        result = np.empty((len(rows), self.size))
        for block in np.unique(blocks):
            own = blocks == block
            result[own] = rows[own] @ matrices[block]
        return result

    def covariance(self, size: int | None = None) -> Array:
        """Returns the covariances of the first weights of each block, `(K, size, size)`, of all weights by default.

        The drift since the latest addition to a block is applied.
        """
        first = slice(size)
        if self._rooted:
            rows = self._factors[:, :, first]
            return np.asarray(np.matmul(rows.transpose(0, 2, 1), rows))
        found = self._factors[:, first, first].copy()
        if self._halved:
            found = np.tril(found) + np.tril(found, -1).transpose(0, 2, 1)
        if self._keep < 1.0:
            squares = (self._keep ** (2.0 * (self.now - self._changed)))[:, None, None]
            found = squares * found + (1.0 - squares) * np.eye(found.shape[1])
        return np.asarray(found)

    # -- observations --------------------------------------------------------------------------------------------

    def add(self, block: int, z: Array, target: float) -> float:
        """Adds an observation and returns its variance before that. O(p^2)."""
        return self.predict_and_add(block, z, target, 0.0)[1]

    def predict_and_add(self, block: int, z: Array, target: float, center: float) -> tuple[float, float]:
        """Adds an observation and returns mean and variance of `predict` before that. O(p^2)."""
        if self._keep < 1.0:
            self._drift(block)
        half, direction, variance = self._response(block, z)
        total, mean = self.regularization + variance, self.mean[block]
        before = float(z.dot(mean))
        mean += direction * ((target - before) / total)
        # W (I - c v v^T) with v = W^T z: the square of the bracket is I - v v^T / (lambda + |v|^2).
        root = total + math.sqrt(self.regularization * total)
        self._add_outer(block, -1.0 / (root if self._rooted else total), direction, half)
        self._log_ratios[block] += math.log1p(variance / self.regularization)
        shift = center * float(direction[0]) if center else 0.0  # A sketch begins without features.
        return before + shift, variance

    def add_first(self, block: int, diagonal: Array, solved: Array, errors: Array) -> None:
        """Adds the first n observations of a block at once, without drift between them. O(n p^2).

        Args:
            block: k, which has no observations. It keeps covariances.
            diagonal: diagonal of L, where L L^T = I + Z Z^T / lambda, `(n,)`.
            solved: L^{-1} Z for the features Z of the observations, `(n, p)`.
            errors: L^{-1} y, `(n,)`.
        """
        own, share = self._factors[block].T, -1.0 / self.regularization
        dgemm(share, solved, solved, beta=1.0, c=own, trans_a=1, overwrite_c=1)  # in place
        self.mean[block] = errors @ solved / self.regularization
        self._log_ratios[block] = 2.0 * float(np.log(diagonal).sum())
        self._changed[block] = self.now
        self._rough.changed(block)

    def revise(self, block: int, z: Array, change: float) -> None:
        """Adds `change` to the target of one observation. O(p^2)."""
        self._without_drift()
        self.mean[block] += self._response(block, z)[1] * (change / self.regularization)

    def remove(self, block: int, z: Array, target: float, *, least: float = LITTLE_SLACK) -> bool:
        """Removes an observation, or returns False without doing so. O(p^2).

        False means that the observation was nearly all the information, so that the block must be computed from its
        other observations by `renew`.

        Args:
            block: k.
            z: features of the observation.
            target: its target.
            least: share of lambda, less than which must not be left of lambda minus the variance.
        """
        self._without_drift()
        half, direction, variance = self._response(block, z)
        slack, mean = self.regularization - variance, self.mean[block]
        if slack < least * self.regularization:
            return False
        mean -= direction * ((target - float(z.dot(mean))) / slack)
        root = slack + math.sqrt(self.regularization * slack)
        self._add_outer(block, 1.0 / (root if self._rooted else slack), direction, half)
        self._log_ratios[block] -= math.log(self.regularization / slack)
        return True

    def _response(self, block: int, z: Array) -> tuple[Array, Array, float]:
        """Returns half, P_k z, and the variance of z^T w_k. The half is W_k^T z, or P_k z without roots."""
        half = self._half(block, z)
        if not self._rooted:
            return half, half, float(half.dot(z))
        return half, half.dot(self._factors[block]), float(half.dot(half))

    def _add_outer(self, block: int, factor: float, direction: Array, half: Array) -> None:
        self._rough.changed(block)
        if self._halved:
            dsyr(factor, direction, a=self._factors[block].T, overwrite_a=1)  # in place
        elif self.size:
            dger(factor, direction, half, a=self._factors[block].T, overwrite_a=1)  # in place

    def _drift(self, block: int) -> None:
        """Applies the drift since the latest addition to a block."""
        kept = self._kept(block)
        self._changed[block] = self.now
        if kept < 1.0:
            self.mean[block] *= kept
            self._factors[block] *= kept**2
            self._factors[block].flat[:: self.size + 1] += 1.0 - kept**2

    def _without_drift(self) -> None:
        if self._keep < 1.0:
            raise InvalidInput(
                "An observation of weights that drift cannot be changed or removed, since later predictions have "
                "half forgotten it. Compute the weights anew from all observations."
            )

    # -- rounding ------------------------------------------------------------------------------------------------

    def renew(self, block: int, upper: Array) -> None:
        """Sets a block from R with R^T R = I + Z_k^T Z_k / lambda, and its mean to 0 until it is refined."""
        self._rough.changed(block)
        if self.size:
            inverse = solve_triangular(upper, np.eye(self.size), check_finite=False)
            self._factors[block] = inverse.T if self._rooted else inverse @ inverse.T
        self.mean[block] = 0.0
        self._log_ratios[block] = 2.0 * float(np.log(np.abs(upper.diagonal())).sum())

    def refine(self, block: int, Z: Array, plays: Array, average: Array) -> None:
        """Applies one step of iterative refinement to the mean of a block, from all of its observations. O(n p).

        Args:
            block: k.
            Z: features of the distinct points, `(n, p)`.
            plays: number of observations of each, `(n,)`.
            average: average target of each, `(n,)`.
        """
        self.refine_by(block, Z.T @ (plays * (average - Z @ self.mean[block])))

    def refine_by(self, block: int, misfit: Array) -> None:
        """Applies the step for Z_k^T N (ybar - Z_k m_k), `(p,)`."""
        mean = self.mean[block]
        mean += self._response(block, misfit / self.regularization - mean)[1]


def root_of_rows(rows: Array, size: int) -> Array:
    """Returns R with R^T R = I + rows^T rows, by QR.

    Forming the sum would lose the identity to rounding if lambda is small.
    """
    if not len(rows):
        return np.eye(size)
    return triangle_of(np.concatenate([largest_first(rows), np.eye(size)]))


def largest_first(rows: Array) -> Array:
    """Returns the rows in the order of their lengths, in which QR keeps the most digits, `(n, p)`."""
    return np.asarray(rows[np.argsort(-np.einsum("ij,ij->i", rows, rows), kind="stable")])


def triangle_of(rows: Array) -> Array:
    """Returns the R of QR with a positive diagonal, `(..., p, p)`.

    The signs of LAPACK follow the order of rows, which rounding decides among rows of one length.
    """
    upper = np.linalg.qr(rows, mode="r")
    return np.asarray(upper * np.copysign(1.0, np.diagonal(upper, axis1=-2, axis2=-1))[..., None])


def root_of_gram(gram: Array) -> Array:
    """Returns R with R^T R = I + gram, and overwrites `gram`."""
    gram[np.diag_indices(len(gram))] += 1.0
    return np.asarray(cholesky(gram, check_finite=False)) if len(gram) else gram
