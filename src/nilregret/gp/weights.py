"""Linear functions of r features with Gaussian weights: what is known of the weights after some observations.

| symbol | name | meaning | shape |
|---|---|---|---|
| z | | features of a point, k(x, x') = z^T z' | (r,) |
| W | `root` | W W^T = (I + Z^T Z / lambda)^{-1}, the covariance of the weights | (r, r) |
| w | `mean` | (Z^T Z + lambda I)^{-1} Z^T y | (r,) |

mu(x) = z^T w and sigma^2(x) = |z^T W|^2, a sum of squares: nothing cancels. One observation costs O(r^2).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.linalg import cholesky, solve_triangular
from scipy.linalg.blas import dger

from .._utils.checks import Array
from .._utils.copying import Copyable
from .arms import LITTLE_SLACK


class Weights(Copyable):
    """Weights of r features, a priori N(0, I)."""

    OWNED = ("root",)

    def __init__(self, size: int, regularization: float) -> None:
        self.size, self.regularization = size, regularization
        self.root = np.eye(size, order="F")
        self.mean = np.zeros(size)
        self.log_ratio = 0.0  # log det(I + Z^T Z / lambda)

    def add(self, z: Array, target: float) -> float:
        """Take in an observation; returns its variance before that."""
        half = z.dot(self.root)
        direction, variance = self.root.dot(half), float(half.dot(half))
        total = self.regularization + variance
        self.mean = self.mean + direction * ((target - float(z.dot(self.mean))) / total)
        # W (I - c v v^T) with v = W^T z: the square of the bracket is I - v v^T / (lambda + |v|^2).
        self._add_outer(-1.0 / (total + math.sqrt(self.regularization * total)), direction, half)
        self.log_ratio += math.log1p(variance / self.regularization)
        return variance

    def revise(self, z: Array, change: float) -> None:
        """Follow a change of one target."""
        self.mean = self.mean + self.root.dot(z.dot(self.root)) * (change / self.regularization)

    def remove(self, z: Array, target: float) -> bool:
        """Take an observation back out; False where it was nearly all that was known, and all must be made afresh."""
        half = z.dot(self.root)
        direction, variance = self.root.dot(half), float(half.dot(half))
        slack = self.regularization - variance
        if slack < LITTLE_SLACK * self.regularization:
            return False
        self.mean = self.mean - direction * ((target - float(z.dot(self.mean))) / slack)
        self._add_outer(1.0 / (slack + math.sqrt(self.regularization * slack)), direction, half)
        self.log_ratio -= math.log(self.regularization / slack)
        return True

    def _add_outer(self, factor: float, direction: Array, half: Array) -> None:
        if self.size:
            dger(factor, direction, half, a=self.root, overwrite_a=1)  # in place: the root is column-major

    def renew(self, upper: Array) -> None:
        """From R with R^T R = I + Z^T Z / lambda; the mean is 0 until it is refined."""
        if self.size:
            self.root = np.asfortranarray(solve_triangular(upper, np.eye(self.size), check_finite=False))
        self.mean = np.zeros(self.size)
        self.log_ratio = 2.0 * float(np.log(np.abs(upper.diagonal())).sum())

    def refine(self, Z: Array, plays: npt.NDArray[np.int64], average: Array) -> None:
        """One step of iterative refinement: w solves Z^T N (ybar - Z w) / lambda = w."""
        self.refine_by(Z.T @ (plays * (average - Z @ self.mean)))

    def refine_by(self, misfit: Array) -> None:
        """The step for Z^T N (ybar - Z w), `(r,)`."""
        gradient = misfit / self.regularization - self.mean
        self.mean = self.mean + self.root @ (self.root.T @ gradient)


def root_of_rows(rows: Array, size: int) -> Array:
    """R with R^T R = I + rows^T rows, by QR: forming the sum would round the identity away where lambda is small."""
    if not len(rows):
        return np.eye(size)
    ordered = rows[np.argsort(-np.einsum("ij,ij->i", rows, rows), kind="stable")]  # largest first
    return np.asarray(np.linalg.qr(np.concatenate([ordered, np.eye(size)]), mode="r"))


def root_of_gram(gram: Array) -> Array:
    """R with R^T R = I + gram, which is written to."""
    gram[np.diag_indices(len(gram))] += 1.0
    return np.asarray(cholesky(gram, check_finite=False)) if len(gram) else gram
