"""Gradients and variances from values of a covariance function, for kernels of your own.

| symbol | name | meaning | shape |
|---|---|---|---|
| h_j | `steps` | step of the differences along column j, in the units of the points | (d,) |
| W | `weights` | weights of a sum of derivatives of k | (m, n) |

Central differences are right to about eight digits if k varies over distances not far below a thousandth of the spread
of the points. At a kink of k at coinciding points they give 0, by symmetry.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._utils.checks import Array

STEP = 1e-5  # relative step of central differences, for which truncation and rounding are about equal
BLOCK = 32  # rows whose covariances are computed together for their variances

Covariance = Callable[[Array, Array], Array]


def diagonal(kernel: Covariance, points: Array) -> Array:
    """Returns k(x, x) of every row, `(n,)`, by blocks and never from the whole matrix."""
    blocks = (points[start : start + BLOCK] for start in range(0, len(points), BLOCK))
    return np.concatenate([np.zeros(0), *(np.asarray(kernel(block, block)).diagonal() for block in blocks)])


def input_gradient(kernel: Covariance, X: Array, B: Array, weights: Array) -> Array:
    """Returns rows sum_j weights[i, j] * d k(x_i, b_j) / d x_i, `(m, d)`."""

    def change(up: Array, down: Array) -> Array:
        return np.asarray(np.einsum("ij,ij->i", weights, kernel(up, B) - kernel(down, B)))

    return _slopes(change, X, _steps(np.concatenate([X, B])))


def feature_gradient(features: Callable[[Array], Array | None], X: Array, weights: Array) -> Array:
    """Returns rows d (weights[i]^T phi(x_i)) / d x_i, `(m, d)`, or zeros if there are no features."""

    def change(up: Array, down: Array) -> Array:
        above, below = features(up), features(down)
        return np.zeros(len(up)) if above is None or below is None else np.einsum("ij,ij->i", weights, above - below)

    return _slopes(change, X, _steps(X)) if len(X) else np.zeros(X.shape)


def diagonal_gradient(variances: Callable[[Array], Array], X: Array) -> Array:
    """Returns the gradient of the prior variance at every row, `(m, d)`."""
    return _slopes(lambda up, down: variances(up) - variances(down), X, _steps(X))


def pullback(matrix: Callable[[Array], Array], parameters: Array, weights: Array) -> Array:
    """Returns sum_ij weights_ij * dK_ij / d parameter, `(p,)`, for K = `matrix(parameters)`."""
    shifts = STEP * np.eye(len(parameters))
    changes = [np.vdot(weights, matrix(parameters + shift) - matrix(parameters - shift)) for shift in shifts]
    return np.asarray(changes, dtype=np.float64) / (2.0 * STEP)


def _slopes(change: Callable[[Array, Array], Array], X: Array, steps: Array) -> Array:
    gradient = np.zeros(X.shape)
    for j, step in enumerate(steps):
        up, down = X.copy(), X.copy()
        up[:, j] += step
        down[:, j] -= step
        # Rounding of large coordinates may have changed the step, so the actual step divides.
        gradient[:, j] = change(up, down) / (up[:, j] - down[:, j])
    return gradient


def _steps(points: Array) -> Array:
    """Returns shares of the spread of the points, or of their size if all points coincide."""
    spread, size = np.ptp(points, axis=0), np.abs(points).max(axis=0)
    # A step must not vanish in the rounding of large coordinates.
    lengths = np.where(spread > 0.0, spread, np.where(size > 0.0, size, 1.0))
    return np.asarray(STEP * np.maximum(lengths, 1e-6 * size))
