"""The interface of all posteriors.

| symbol | name | meaning | shape |
|---|---|---|---|
| lambda | `regularization` | ridge added to the kernel matrix | reward units^2 |
| mu, sigma | `predict` | posterior mean and std of f, noise not included | (n,) |
| K | | kernel matrix of all t observations, repeats included | (t, t) |
| y | target | learned value of one observation | scalar |

Srinivas et al. 2010, eq. 1-2:

    mu(x) = k(x)^T (K + lambda I)^{-1} y,    sigma^2(x) = k(x, x) - k(x)^T (K + lambda I)^{-1} k(x).

`AtPoints` is the interface of posteriors at points given by coordinates: for boxes, spaces and contexts.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, finite_array, points_array
from .._utils.copying import Copyable
from .._utils.randomness import Rng
from ..errors import InvalidInput
from ..kernels import Kernel
from ..kernels.factorization import LEAST_REGULARIZATION, covariance_root, draws_of_root
from .observations import Observations
from .spectrum import Spectrum


def check_regularization(regularization: float, prior_variance: float) -> None:
    """Raises an error if rounding in the kernel matrix would be larger than the noise."""
    if regularization < LEAST_REGULARIZATION * prior_variance:
        raise InvalidInput(
            f"`regularization` is {regularization:g} where the prior variance is {prior_variance:g}: below "
            f"{LEAST_REGULARIZATION:g} of it, rounding in the kernel matrix is larger than the noise. Use at least "
            "that, or a smaller `scale` in the kernel."
        )


class Posterior(Copyable, ABC):
    """A Gaussian process given observations, which may be appended one by one.

    A posterior keeps sufficient statistics of the observations, not a list, so memory does not grow with repeated
    plays.
    """

    regularization: float
    count: float  # observations taken in, repeats included, and shares of some
    _outside: float = 0.0  # tr(K - Q) of a sketch, where Q <= K is the kernel matrix of its span

    @abstractmethod
    def append(self, point: Any, target: float) -> None:
        """Adds one observation."""

    def append_all(self, points: Sequence[Any], targets: Sequence[float]) -> None:
        """Adds several observations, with the same result to the bit as one by one."""
        for point, target in zip(points, targets, strict=True):
            self.append(point, target)

    def begin_with(self, points: Sequence[Any], targets: Sequence[float]) -> None:
        """Adds the first observations, which were known before. The result may depend on their being together."""
        self.append_all(points, targets)

    @abstractmethod
    def predict(self, points: Any = None) -> tuple[Array, Array]:
        """Returns posterior mean and std of f, each `(n,)`, at points or at the whole finite domain."""

    @abstractmethod
    def covariance(self, points: Any) -> Array:
        """Returns the joint posterior covariance of f at `n` points, `(n, n)`."""

    def parts(self, points: Any) -> list[tuple[float, Array, Array]]:
        """Returns the normal laws that f at `n` points is a mixture of.

        Each has its share, its mean less that of the mixture, `(n,)`, and its covariance, `(n, n)`.
        """
        covariance = self.covariance(points)
        return [(1.0, np.zeros(len(covariance)), covariance)]

    def cross_covariance(self, points: Any, others: Any) -> Array:
        """Returns the posterior covariance of f between `n` points and `k` others, `(n, k)`."""
        return self.covariance(np.concatenate([points, others]))[: len(points), len(points) :]

    @abstractmethod
    def sample(self, rng: Rng, points: Any = None, *, size: int = 1) -> Array:
        """Returns joint samples of f, `(size, n)`."""

    @property
    @abstractmethod
    def mean_norm(self) -> float:
        """RKHS norm of the posterior mean ||mu||_k, reward units."""

    @property
    @abstractmethod
    def log_determinant_ratio(self) -> float:
        """Log det(I + K / lambda), the running sum of log(1 + sigma^2 / lambda) (Srinivas, Lemma 5.3)."""

    @property
    @final
    def shortfall(self) -> float:
        """Error rho = sqrt(tr(K - Q) / lambda) of a sketch (see `feature_maps`), and 0 for exact posteriors."""
        return math.sqrt(self._outside / self.regularization) if self._outside else 0.0

    @property
    @final
    def information_gain(self) -> float:
        """Realised information gain 1/2 log det(I + K / lambda), nats (Srinivas et al. 2010, Lemma 5.3)."""
        return 0.5 * self.log_determinant_ratio


class RevisablePosterior(Posterior):
    """A posterior whose observations can be changed and removed one by one.

    `revise` and `forget` identify an observation by its point and target. The caller, who has the record, guarantees
    that this observation was appended.
    """

    @abstractmethod
    def revise(self, point: Any, old: float, new: float) -> None:
        """Replaces the target of one observation. The mean moves and the variance does not."""

    def revise_all(self, points: Sequence[Any], old: Sequence[float], new: Sequence[float]) -> None:
        """Replaces the targets of several observations, of which some may share a point."""
        for point, before, after in zip(points, old, new, strict=True):
            self.revise(point, before, after)

    @abstractmethod
    def forget(self, point: Any, target: float) -> None:
        """Removes one observation."""

    @property
    @abstractmethod
    def quadratic_form(self) -> float:
        """Quadratic form y^T (K + lambda I)^{-1} y."""

    @property
    @final
    def log_determinant(self) -> float:
        """Log det(K + lambda I)."""
        return self.log_determinant_ratio + self.count * math.log(self.regularization)

    @property
    @final
    def log_likelihood(self) -> float:
        """Log marginal likelihood of the targets under noise variance lambda, if all weights are 1."""
        return -0.5 * (self.quadratic_form + self.log_determinant + self.count * math.log(2.0 * math.pi))


class WeighingPosterior(RevisablePosterior):
    """A posterior whose observations may have a noise of their own.

    The noise variance of an observation is lambda / `weight`. So the weight is the common noise variance divided by
    that of this observation. Observations of weight 1 can be revised. Others are removed and added again.
    """

    @abstractmethod
    def append(self, point: Any, target: float, *, weight: float = 1.0) -> None:
        """Adds one observation of this weight."""

    @abstractmethod
    def forget(self, point: Any, target: float, *, weight: float = 1.0) -> None:
        """Removes one observation of this weight."""


class CountingPosterior(WeighingPosterior):
    """A posterior that takes many observations of one point at the cost of one.

    n observations with average m equal one observation of m under noise variance lambda / n. Their sum of squares about
    m (`scatter`) affects only the likelihood.
    """

    @abstractmethod
    def append(self, point: Any, target: float, *, weight: float = 1.0, count: int = 1, scatter: float = 0.0) -> None:
        """Adds `count` observations with the average `target` and this sum of squared deviations from it."""

    @abstractmethod
    def forget(self, point: Any, target: float, *, weight: float = 1.0, count: int = 1, scatter: float = 0.0) -> None:
        """Removes `count` observations with the average `target` and this sum of squared deviations."""


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
    if np.count_nonzero(std) == len(std):
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

    def sample(self, rng: Rng, points: npt.ArrayLike | None = None, *, size: int = 1) -> Array:
        """Returns exact joint samples of f at `(m, d)` points, `(size, m)`, in O(m^3) after their covariance."""
        if points is None:
            raise InvalidInput("A posterior on a continuous domain samples at points: give them, `(n, d)`.")
        X = points_array("points", points, dimension=self.dimension)
        root = covariance_root(self.covariance(X))
        return self.mean(X) + draws_of_root(root, rng, size)

    @abstractmethod
    def spectrum(self) -> Spectrum:
        """Returns the diagonalised observations."""
