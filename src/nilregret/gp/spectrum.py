"""A posterior at several regularizations at once, from one eigendecomposition of the observations.

| symbol | name | meaning | shape |
|---|---|---|---|
| U, N, ybar | | distinct points observed, plays of each (a diagonal matrix), average targets | n |
| S | `values` | eigenvalues of N^{1/2} K(U, U) N^{1/2} = Q S Q^T | (r,) |
| z(x) | `rows` | Q^T N^{1/2} K(U, x) | (n, r) |
| c | `data` | Q^T N^{1/2} ybar | (r,) |
| alpha | `ridges` | regularizations, reward units squared | (J,) |

With repeats merged exactly,

    mu_alpha(x) = z(x)^T (S + alpha)^{-1} c,    s_alpha^2(x) = k(x, x) - z(x)^T (S + alpha)^{-1} z(x),
    y^T (I + K / alpha)^{-1} y = rest + sum_i alpha c_i^2 / (S_i + alpha),
    log det(I + K / alpha) = sum_i log(1 + S_i / alpha),

where `rest` is the part of the targets outside the eigenvectors of positive eigenvalues, mainly the scatter of the
targets within points.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np

from .._utils.checks import Array, IndexArray

LEAST_EIGENVALUE = 1e-14  # share of the largest eigenvalue below which a direction counts as unobserved

Moments = tuple[Array, Array]


@final
class Spectrum:
    """Diagonalised observations.

    Args:
        values: S, `(r,)`.
        data: c, `(r,)`.
        rest: reward units squared.
        rows: coordinates of other points in these directions.
    """

    def __init__(self, values: Array, data: Array, rest: float, rows: FeatureRows | MappedRows | PriorRows) -> None:
        self.values, self._data, self._rest, self._rows = values, data, rest, rows

    def misfit(self, ridges: Array) -> Array:
        """Returns y^T (I + K / alpha)^{-1} y = alpha y^T (K + alpha I)^{-1} y, `(J,)`, reward units squared."""
        alphas = ridges[:, None]
        return np.asarray(self._rest + (self._data**2 * (alphas / (self.values + alphas))).sum(axis=1))

    def log_determinant_ratio(self, ridge: float) -> float:
        """Returns log det(I + K / alpha)."""
        return float(np.log1p(self.values / ridge).sum())

    def moments(self, points: Any, ridges: Array) -> Moments:
        """Returns posterior means and standard deviations at points, each `(J, n)`."""
        mean, variance = self._rows(points, self.values, self._data, ridges)
        return mean, np.sqrt(np.maximum(variance, 0.0))


@final
class FeatureRows:
    """Rows in the space of features: x -> V^T phi(x), with Phi(U)^T N Phi(U) = V S V^T, so that z = S^{1/2} V^T phi.

    The variance is a sum of squares there, without cancellation.
    """

    def __init__(self, turned: Array, left_out: Array) -> None:
        self._turned, self._left_out = turned, left_out

    def __call__(self, points: Any, values: Array, data: Array, ridges: Array) -> Moments:
        """Returns mean and variance, each `(J, n)`."""
        some = slice(None) if points is None else points
        turned, shrunk = self._turned[some], 1.0 / (values + ridges[:, None])
        mean = (shrunk * (np.sqrt(values) * data)) @ turned.T
        return mean, self._left_out[some] + (ridges[:, None] * shrunk) @ (turned**2).T


@final
class MappedRows:
    """Rows in the space of features that are computed for the points asked about, `(n, d)`.

    Args:
        features: function of points.
        left_out: function of points and their features, which returns the residual variance.
        blocks_of: function of points that returns the block of each.
        vectors: V of each block, `(K, r, r)`.
    """

    def __init__(
        self,
        features: Callable[[Array], Array],
        left_out: Callable[[Array, Array], Array],
        blocks_of: Callable[[Array], IndexArray],
        vectors: Array,
    ) -> None:
        self._features, self._left_out, self._blocks_of, self._vectors = features, left_out, blocks_of, vectors

    def __call__(self, points: Any, values: Array, data: Array, ridges: Array) -> Moments:
        """Returns mean and variance, each `(J, n)`."""
        known, blocks = self._features(points), self._blocks_of(points)
        mean, variance = np.empty((2, len(ridges), len(points)))
        for block in np.unique(blocks).tolist():
            own = blocks == block
            of_block = slice(block * known.shape[1], (block + 1) * known.shape[1])
            turned, shrunk = known[own] @ self._vectors[block], 1.0 / (values[of_block] + ridges[:, None])
            mean[:, own] = (shrunk * (np.sqrt(values[of_block]) * data[of_block])) @ turned.T
            variance[:, own] = (ridges[:, None] * shrunk) @ (turned**2).T
        return mean, self._left_out(points, known) + variance


@final
class PriorRows:
    """Rows from the kernel: x -> Q^T N^{1/2} K(U, x).

    Args:
        covariance: function of points that returns their prior covariance with the observed points, `(u, n)`.
        variance: function of points that returns their prior variance.
        weights: N^{1/2} Q.
    """

    def __init__(self, covariance: Callable[[Any], Array], variance: Callable[[Any], Array], weights: Array) -> None:
        self._covariance, self._variance, self._weights = covariance, variance, weights

    def __call__(self, points: Any, values: Array, data: Array, ridges: Array) -> Moments:
        """Returns mean and variance, each `(J, n)`."""
        rows, shrunk = self._covariance(points).T @ self._weights, 1.0 / (values + ridges[:, None])
        return (shrunk * data) @ rows.T, self._variance(points) - shrunk @ (rows**2).T


def spectrum_of_features(features: Array, left_out: Array, plays: Array, average: Array, scatter: float) -> Spectrum:
    """Returns the spectrum from features `(N, r)` of all points, and plays and average targets `(N,)`."""
    seen = np.flatnonzero(plays)
    root = np.sqrt(plays[seen])
    rows = features[seen] * root[:, None]
    targets = root * average[seen]
    values, vectors, data = _diagonalised(rows.T @ rows, rows.T @ targets)
    return Spectrum(values, data, _rest(targets, data, scatter), FeatureRows(features @ vectors, left_out))


def spectrum_of_grams(grams: Array, rights: Array, squares: float, rows: Callable[[Array], MappedRows]) -> Spectrum:
    """Returns the spectrum from sums over the observations of each block.

    Args:
        grams: Z^T N Z for features Z of each block, `(K, r, r)`.
        rights: Z^T N ybar, `(K, r)`.
        squares: sum of the squared targets.
        rows: function of the eigenvectors.
    """
    each = [_diagonalised(gram, right) for gram, right in zip(grams, rights, strict=True)]
    values, vectors, data = zip(*each, strict=True)
    joined = np.concatenate(data)
    rest = max(squares - float(joined @ joined), 0.0)
    return Spectrum(np.concatenate(values), joined, rest, rows(np.stack(vectors)))


def _diagonalised(gram: Array, right: Array) -> tuple[Array, Array, Array]:
    """Returns eigenvalues S and eigenvectors V of a Gram matrix Z^T N Z, and the data S^{-1/2} V^T `right`."""
    values, vectors = np.linalg.eigh(gram)
    known = values > LEAST_EIGENVALUE * values.max(initial=0.0)
    values = np.where(known, values, 0.0)
    data = np.where(known, vectors.T @ right / np.sqrt(np.where(known, values, 1.0)), 0.0)
    return values, vectors, data


def spectrum_of_points(
    gram: Array,
    plays: Array,
    average: Array,
    scatter: float,
    *,
    covariance: Callable[[Any], Array],
    variance: Callable[[Any], Array],
) -> Spectrum:
    """Returns the spectrum from the kernel matrix `(u, u)` of the distinct points (see `PriorRows`)."""
    root = np.sqrt(plays)
    values, vectors = np.linalg.eigh(root[:, None] * gram * root)
    known = values > LEAST_EIGENVALUE * values.max(initial=0.0)
    values, vectors = values[known], vectors[:, known]
    targets = root * average
    data = vectors.T @ targets
    return Spectrum(
        values, data, _rest(targets, data, scatter), PriorRows(covariance, variance, root[:, None] * vectors)
    )


def _rest(targets: Array, data: Array, scatter: float) -> float:
    return scatter + max(float(targets @ targets) - float(data @ data), 0.0)
