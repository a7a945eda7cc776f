"""The interface of posteriors at points given by coordinates: for boxes, spaces and contexts."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, finite_array, points_array
from ..errors import InvalidInput
from ..kernels import Kernel
from ..kernels.factorization import covariance_root, draws_of_root
from .observations import Observations
from .protocol import WeighingPosterior
from .spectrum import Spectrum


class Gradients(NamedTuple):
    """Mean and standard deviation of f at m points, and their gradients in the points.

    Attributes:
        mean: `(m,)`.
        std: `(m,)`.
        mean_gradient: `(m, d)`.
        std_gradient: `(m, d)`, 0 where the std is 0.
    """

    mean: Array
    std: Array
    mean_gradient: Array
    std_gradient: Array


def std_gradient(std: Array, variance_gradient: Array) -> Array:
    """Returns gradients `(m, d)` of standard deviations `(m,)` from those of their squares, or 0 if the std is 0."""
    if std.min(initial=1.0) > 0.0:
        return variance_gradient / (2.0 * std[:, None])
    flat = std[:, None] <= 0.0
    return np.where(flat, 0.0, variance_gradient / np.where(flat, 1.0, 2.0 * std[:, None]))


class AtPoints(WeighingPosterior):
    """A posterior over points given by coordinates.

    Attributes:
        kernel: prior covariance.
        dimension: number of columns of a point.
    """

    kernel: Kernel
    dimension: int
    _seen: Observations

    @abstractmethod
    def extend(self, points: npt.ArrayLike, targets: npt.ArrayLike) -> None:
        """Adds observations at `(m, d)` points with targets `(m,)`, in their order."""

    def _checked(self, points: npt.ArrayLike, targets: npt.ArrayLike) -> tuple[Array, Array]:
        """Returns points `(m, d)` and targets `(m,)` as arrays that fit each other."""
        X = points_array("points", points, dimension=self.dimension) + 0.0
        y = finite_array("targets", targets)
        if y.shape != (len(X),):
            raise InvalidInput(f"`targets` has shape {y.shape}: it must be ({len(X)},), one target for each.")
        return X, y

    def _as_row(self, point: npt.ArrayLike) -> Array:
        """Returns one point as `(d,)`."""
        return np.asarray(points_array("point", np.reshape(point, (1, -1)), dimension=self.dimension)[0] + 0.0)

    def size_at(self, points: Array) -> float:
        """Returns the largest prior standard deviation at points `(m, d)`."""
        return float(np.sqrt(self.kernel.diagonal(points).max()))

    @property
    def points(self) -> Array:
        """Distinct points observed, `(n, d)`."""
        return self._seen.points

    @property
    def plays(self) -> Array:
        """Number of observations of each distinct point by their weights, `(n,)`."""
        return self._seen.plays

    @property
    def average(self) -> Array:
        """Average target of each distinct point, `(n,)`."""
        return self._seen.average

    @property
    def noisy(self) -> bool | None:
        """True if repeated points had different targets, False if they had equal ones, None if none was repeated."""
        return self._seen.noisy

    @property
    @abstractmethod
    def landmarks(self) -> Array:
        """Observed points that represent all observed points, `(k, d)`."""

    @abstractmethod
    def landmark_means(self) -> Array:
        """Returns the posterior mean at each landmark, `(k,)`."""

    @abstractmethod
    def mean(self, points: npt.ArrayLike) -> Array:
        """Returns the posterior mean, `(m,)`."""

    @abstractmethod
    def means_of(self, points: npt.ArrayLike) -> Array:
        """Returns the posterior mean at `(m, d)` points, most of them observed, `(m,)`."""

    @abstractmethod
    def mean_gradient(self, points: npt.ArrayLike) -> tuple[Array, Array]:
        """Returns the posterior mean at `(m, d)` points and its gradient `(m, d)`."""

    @abstractmethod
    def gradients(self, points: npt.ArrayLike) -> Gradients:
        """Returns mean and std at `(m, d)` points with their gradients."""

    def sample(self, rng: np.random.Generator, points: npt.ArrayLike | None = None, *, size: int = 1) -> Array:
        """Returns exact joint samples of f at `(m, d)` points, `(size, m)`, in O(m^3) after their covariance."""
        if points is None:
            raise InvalidInput("A posterior on a continuous domain samples at points: give them, `(n, d)`.")
        X = points_array("points", points, dimension=self.dimension)
        root = covariance_root(self.covariance(X))
        return self.mean(X) + draws_of_root(root, rng, size)

    @abstractmethod
    def spectrum(self) -> Spectrum:
        """Returns the diagonalised observations."""
