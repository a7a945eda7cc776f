"""What a posterior at arbitrary points can do besides: what boxes, spaces and contexts ask of one."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array
from ..kernels import Kernel
from .protocol import RevisablePosterior
from .spectrum import Spectrum


class Gradients(NamedTuple):
    """Mean and standard deviation of f at m points, and their gradients in the points."""

    mean: Array  # (m,)
    std: Array  # (m,)
    mean_gradient: Array  # (m, d)
    std_gradient: Array  # (m, d); 0 where the std is 0


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

    @abstractmethod
    def spectrum(self) -> Spectrum:
        """What was observed, diagonalised."""
