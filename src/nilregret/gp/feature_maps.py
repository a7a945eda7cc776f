"""Features of points: those of a kernel of finite rank, or of inducing points (Nystrom).

Features may belong to blocks, such as one block for each arm (`per_arm`). Features of different blocks are orthogonal.

| symbol | name | meaning | shape |
|---|---|---|---|
| z(x) | `features` | coordinates of k(x, .) in an orthonormal basis of the span | (n, r) |
| S | `NystromFeatures.points` | inducing points | (r, d) |
| L | | K(S, S) = L L^T | (r, r) |
| k - z^T z | `left_out` | prior variance outside the span | (n,) |

Inducing points have z(x) = L^{-1} k(S, x), the projection on the span of k(s, .), s in S (Nystrom).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import dtrsm

from .._utils.checks import Array, IndexArray
from ..kernels import Kernel
from ..kernels.factorization import ROUNDING, pivoted_root


class FeatureMap(ABC):
    """A map of points to coordinates in a finite-dimensional space of functions.

    Attributes:
        size: number of features r of a block.
        blocks: number of blocks.
        exact: True if the space contains all samples of the process.
    """

    size: int
    blocks: int = 1
    exact: bool

    def blocks_of(self, points: Array) -> IndexArray:
        """Returns the block of every row, `(n,)`."""
        return np.zeros(len(points), dtype=np.intp)

    def members(self, points: Array, block: int) -> npt.NDArray[np.bool_]:
        """Returns which rows are in a block, `(n,)`."""
        return np.asarray(self.blocks_of(points) == block)

    def values(self, points: Array, weights: Array) -> Array:
        """Returns weights^T z of every row, `(n,)`, from weights of all blocks, `(blocks, r)`."""
        z = self.features(points)
        found = z @ weights[0] if self.blocks == 1 else np.einsum("ij,ij->i", z, weights[self.blocks_of(points)])
        return np.asarray(found)

    def slopes(self, points: Array, weights: Array) -> Array:
        """Returns the gradients of `values`, `(n, d)`."""
        return self.gradient(points, weights[self.blocks_of(points)])

    @abstractmethod
    def features(self, points: Array) -> Array:
        """Returns z of every row, `(n, r)`."""

    def left_out(self, points: Array, features: Array) -> Array:  # noqa: ARG002
        """Returns the prior variance outside of the span, `(n,)`: zeros, if the map is exact."""
        return np.zeros(len(points))

    def rest(self, points: Array, others: Array, features: Array, other_features: Array) -> Array:  # noqa: ARG002
        """Returns the prior covariance outside of the span, `(n, m)`: zeros, if the map is exact."""
        return np.zeros((len(points), len(others)))

    @abstractmethod
    def gradient(self, points: Array, weights: Array) -> Array:
        """Returns rows d (weights[i]^T z(x_i)) / d x_i, `(n, d)`."""


@final
class KernelFeatures(FeatureMap):
    """The features of a kernel of finite rank, which span all samples."""

    exact = True

    def __init__(self, kernel: Kernel, size: int) -> None:
        self._kernel, self.size = kernel, size

    def features(self, points: Array) -> Array:
        """Returns the kernel's own features."""
        found = self._kernel.features(points)
        return np.zeros((len(points), 0)) if found is None else found

    def gradient(self, points: Array, weights: Array) -> Array:
        """Returns the kernel's own gradients."""
        return self._kernel.feature_gradient(points, weights)


@final
class NystromFeatures(FeatureMap):
    """The features of inducing points s, which span k(s, .).

    Args:
        kernel: prior covariance.
        points: S, `(r, d)`. Points may depend on each other, and points that add less than `least` are left out.
        least: variance, reward units squared.
        most: largest number of inducing points. Points that add the most are kept.
    """

    exact = False

    def __init__(self, kernel: Kernel, points: Array, least: float, most: int) -> None:
        self._kernel = kernel
        if len(points):
            floor = max(least, 100.0 * ROUNDING * float(kernel.diagonal(points).max()))
            factor, order = pivoted_root(kernel(points, points), tol=floor)
            rank = min(factor.shape[1], most)
            self.points = points[order[:rank]]
            self._factor = np.asfortranarray(factor[:rank, :rank])
        else:
            self.points, self._factor = points.copy(), np.zeros((0, 0))
        self.size = len(self.points)

    def features(self, points: Array) -> Array:
        """Returns L^{-1} k(S, x)."""
        return self.solve(self._kernel(self.points, points)).T

    def solve(self, right: Array) -> Array:
        """Returns L^{-1} `right`, `(r, n)` or `(r,)`."""
        return np.asarray(dtrsm(1.0, self._factor, right, lower=1).reshape(right.shape)) if right.size else right

    def left_out(self, points: Array, features: Array) -> Array:
        """Returns k(x, x) - |z|^2."""
        return np.asarray(np.maximum(self._kernel.diagonal(points) - np.einsum("ij,ij->i", features, features), 0.0))

    def rest(self, points: Array, others: Array, features: Array, other_features: Array) -> Array:
        """Returns k(x, x') - z^T z'."""
        return self._kernel(points, others) - features @ other_features.T

    def gradient(self, points: Array, weights: Array) -> Array:
        """Returns gradients through the kernel: weights^T z(x) = (L^{-T} weights)^T k(S, x)."""
        if not weights.size:
            return np.zeros(points.shape)
        inner: Array = dtrsm(1.0, self._factor, weights.T, lower=1, trans_a=1)
        return np.asarray(self._kernel.input_gradient(points, self.points, inner.T))
