"""Posterior of Gaussian weights of r features, for functions that are linear in the features.

| symbol | name | meaning | shape |
|---|---|---|---|
| z | | features of a point, k(x, x') = z^T z' | (r,) |
| W | `root` | W W^T = (I + Z^T Z / lambda)^{-1}, the covariance of the weights | (r, r) |
| w | `mean` | (Z^T Z + lambda I)^{-1} Z^T y | (r,) |

mu(x) = z^T w and sigma^2(x) = |z^T W|^2, a sum of squares without cancellation. One observation costs O(r^2).
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
    """Weights of r features with the prior N(0, I)."""

    OWNED = ("root",)

    def __init__(self, size: int, regularization: float) -> None:
        self.size, self.regularization = size, regularization
        self.root = np.eye(size, order="F")
        self.mean = np.zeros(size)
        self.log_ratio = 0.0  # log det(I + Z^T Z / lambda)

    def add(self, z: Array, target: float) -> float:
        """Adds an observation and returns its variance before that."""
        half = z.dot(self.root)
        direction, variance = self.root.dot(half), float(half.dot(half))
        total = self.regularization + variance
        self.mean = self.mean + direction * ((target - float(z.dot(self.mean))) / total)
        # W (I - c v v^T) with v = W^T z: the square of the bracket is I - v v^T / (lambda + |v|^2).
        self._add_outer(-1.0 / (total + math.sqrt(self.regularization * total)), direction, half)
        self.log_ratio += math.log1p(variance / self.regularization)
        return variance

    def revise(self, z: Array, change: float) -> None:
        """Adds `change` to the target of one observation."""
        self.mean = self.mean + self.root.dot(z.dot(self.root)) * (change / self.regularization)

    def remove(self, z: Array, target: float) -> bool:
        """Removes an observation, or returns False without doing so.

        False means that the observation was nearly all the information, so the weights must be computed from the
        others.
        """
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
        """Sets the root from R with R^T R = I + Z^T Z / lambda, and the mean to 0 until it is refined."""
        if self.size:
            self.root = np.asfortranarray(solve_triangular(upper, np.eye(self.size), check_finite=False))
        self.mean = np.zeros(self.size)
        self.log_ratio = 2.0 * float(np.log(np.abs(upper.diagonal())).sum())

    def refine(self, Z: Array, plays: npt.NDArray[np.int64], average: Array) -> None:
        """Applies one step of iterative refinement, where w solves Z^T N (ybar - Z w) / lambda = w."""
        self.refine_by(Z.T @ (plays * (average - Z @ self.mean)))

    def refine_by(self, misfit: Array) -> None:
        """Applies the step for Z^T N (ybar - Z w), `(r,)`."""
        gradient = misfit / self.regularization - self.mean
        self.mean = self.mean + self.root @ (self.root.T @ gradient)


def root_of_rows(rows: Array, size: int) -> Array:
    """Returns R with R^T R = I + rows^T rows, by QR.

    Forming the sum would lose the identity to rounding if lambda is small.
    """
    if not len(rows):
        return np.eye(size)
    ordered = rows[np.argsort(-np.einsum("ij,ij->i", rows, rows), kind="stable")]  # largest first
    return np.asarray(np.linalg.qr(np.concatenate([ordered, np.eye(size)]), mode="r"))


def root_of_gram(gram: Array) -> Array:
    """Returns R with R^T R = I + gram, and overwrites `gram`."""
    gram[np.diag_indices(len(gram))] += 1.0
    return np.asarray(cholesky(gram, check_finite=False)) if len(gram) else gram
