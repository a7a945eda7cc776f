"""What can be said of a covariance function from its values alone: for kernels of one's own.

| symbol | name | meaning | shape |
|---|---|---|---|
| h_j | `steps` | of the differences along column j, in the units of the points | (d,) |
| W | `weights` | what a sum of derivatives of k is weighted with | (m, n) |

Central differences, right to about eight digits where k varies over distances not far below a thousandth of the spread
of the points. Where k has a kink at coinciding points they give 0 there, by symmetry.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._utils.checks import Array

STEP = 1e-5  # of central differences, relative: their truncation and their rounding are about as small
BLOCK = 32  # rows whose covariances are computed together for their variances

Covariance = Callable[[Array, Array], Array]


def diagonal(kernel: Covariance, points: Array) -> Array:
    """k(x, x) of every row, `(n,)`, by blocks: never the whole matrix."""
    blocks = (points[start : start + BLOCK] for start in range(0, len(points), BLOCK))
    return np.concatenate([np.zeros(0), *(np.asarray(kernel(block, block)).diagonal() for block in blocks)])


def input_gradient(kernel: Covariance, X: Array, B: Array, weights: Array) -> Array:
    """Row i is sum_j weights[i, j] * d k(x_i, b_j) / d x_i, `(m, d)`."""

    def change(up: Array, down: Array) -> Array:
        return np.asarray(np.einsum("ij,ij->i", weights, kernel(up, B) - kernel(down, B)))

    return _slopes(change, X, _steps(np.concatenate([X, B])))


def feature_gradient(features: Callable[[Array], Array | None], X: Array, weights: Array) -> Array:
    """Row i is d (weights[i]^T phi(x_i)) / d x_i, `(m, d)`; zeros where there are no features."""

    def change(up: Array, down: Array) -> Array:
        above, below = features(up), features(down)
        return np.zeros(len(up)) if above is None or below is None else np.einsum("ij,ij->i", weights, above - below)

    return _slopes(change, X, _steps(X)) if len(X) else np.zeros(X.shape)


def diagonal_gradient(variances: Callable[[Array], Array], X: Array) -> Array:
    """The gradient of the prior variance at every row, `(m, d)`."""
    return _slopes(lambda up, down: variances(up) - variances(down), X, _steps(X))


def pullback(matrix: Callable[[Array], Array], parameters: Array, weights: Array) -> Array:
    """sum_ij weights_ij * dK_ij / d parameter, `(p,)`, for K = `matrix(parameters)`."""
    shifts = STEP * np.eye(len(parameters))
    changes = [np.vdot(weights, matrix(parameters + shift) - matrix(parameters - shift)) for shift in shifts]
    return np.asarray(changes, dtype=np.float64) / (2.0 * STEP)


def _slopes(change: Callable[[Array, Array], Array], X: Array, steps: Array) -> Array:
    gradient = np.zeros(X.shape)
    for j, step in enumerate(steps):
        up, down = X.copy(), X.copy()
        up[:, j] += step
        down[:, j] -= step
        # The step that was taken, which rounding of large coordinates may have changed.
        gradient[:, j] = change(up, down) / (up[:, j] - down[:, j])
    return gradient


def _steps(points: Array) -> Array:
    """Shares of the spread of the points, or of their size where they all are one point."""
    spread, size = np.ptp(points, axis=0), np.abs(points).max(axis=0)
    # Beside large coordinates a step must still be seen.
    lengths = np.where(spread > 0.0, spread, np.where(size > 0.0, size, 1.0))
    return np.asarray(STEP * np.maximum(lengths, 1e-6 * size))
