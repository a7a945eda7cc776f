"""What a posterior at arbitrary points can do besides: what boxes, spaces and contexts ask of one."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, finite_array, points_array
from .._utils.errors import InvalidInput
from ..kernels import Kernel
from .factorization import covariance_root
from .protocol import RevisablePosterior
from .spectrum import Spectrum


class Gradients(NamedTuple):
    """Mean and standard deviation of f at m points, and their gradients in the points."""

    mean: Array  # (m,)
    std: Array  # (m,)
    mean_gradient: Array  # (m, d)
    std_gradient: Array  # (m, d); 0 where the std is 0


def std_gradient(std: Array, variance_gradient: Array) -> Array:
    """Returns gradients `(m, d)` of standard deviations `(m,)` from those of their squares; 0 if the std is 0."""
    flat = std[:, None] <= 0.0
    return np.where(flat, 0.0, variance_gradient / np.where(flat, 1.0, 2.0 * std[:, None]))


class AtPoints(RevisablePosterior):
    """A posterior over points given by coordinates.

    Attributes:
        kernel: prior covariance.
        dimension: number of columns of a point.
    """

    kernel: Kernel
    dimension: int

    @abstractmethod
    def extend(self, points: npt.ArrayLike, targets: npt.ArrayLike) -> None:
        """Add observations at `(m, d)` points, targets `(m,)`, in their order."""

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

    @property
    @abstractmethod
    def points(self) -> Array:
        """The distinct points observed, `(n, d)`."""

    @property
    @abstractmethod
    def plays(self) -> npt.NDArray[np.int64]:
        """Observations of each distinct point, `(n,)`."""

    @property
    @abstractmethod
    def average(self) -> Array:
        """Average target of each distinct point, `(n,)`."""

    @property
    @abstractmethod
    def noisy(self) -> bool:
        """Whether points that came again had several targets, or none came again."""

    @property
    @abstractmethod
    def landmarks(self) -> Array:
        """Observed points that stand for all of them, `(k, d)`: mostly all, where these are few enough."""

    @abstractmethod
    def landmark_means(self) -> Array:
        """Posterior mean at each landmark, `(k,)`."""

    @abstractmethod
    def mean(self, points: npt.ArrayLike) -> Array:
        """Posterior mean alone, `(m,)`."""

    @abstractmethod
    def means_of(self, points: npt.ArrayLike) -> Array:
        """Posterior mean at `(m, d)` points, `(m,)`, most of them observed."""

    @abstractmethod
    def mean_gradient(self, points: npt.ArrayLike) -> tuple[Array, Array]:
        """Mean alone at `(m, d)` points and its gradient `(m, d)`."""

    @abstractmethod
    def gradients(self, points: npt.ArrayLike) -> Gradients:
        """Mean and std at `(m, d)` points with their gradients."""

    def sample(self, rng: np.random.Generator, points: npt.ArrayLike | None = None, *, size: int = 1) -> Array:
        """Returns exact joint samples of f at `(m, d)` points, `(size, m)`, in O(m^3) after their covariance."""
        if points is None:
            raise InvalidInput("A posterior on a continuous domain samples at points: give them, `(n, d)`.")
        X = points_array("points", points, dimension=self.dimension)
        root = covariance_root(self.covariance(X))
        return self.mean(X) + rng.standard_normal((size, root.shape[1])) @ root.T

    @abstractmethod
    def spectrum(self) -> Spectrum:
        """What was observed, diagonalised."""
