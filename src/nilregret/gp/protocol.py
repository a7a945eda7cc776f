"""What every posterior engine can do.

| symbol | name | meaning | shape |
|---|---|---|---|
| lambda | `regularization` | ridge added to the kernel matrix | reward units^2 |
| mu, sigma | `predict` | posterior mean and std of f, noise not included | (n,) |
| K | | kernel matrix of all t observations, repeats included | (t, t) |
| y | target | what one observation counts as | scalar |

Srinivas et al. 2010, eq. 1-2:

    mu(x) = k(x)^T (K + lambda I)^{-1} y,    sigma^2(x) = k(x, x) - k(x)^T (K + lambda I)^{-1} k(x).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from .._utils.checks import Array
from .._utils.copying import Copyable

LEAST_REGULARIZATION = 1e-12  # lambda / max k(x, x) below which rounding drowns the posterior


class Posterior(Copyable, ABC):
    """A Gaussian process given observations, which may be appended one by one.

    Observations are sufficient statistics here, not a list, so memory does not grow with repeated plays.
    """

    regularization: float
    count: int  # observations taken in, repeats included
    _outside: float = 0.0  # tr(K - Q) of a sketch, Q <= K the kernel matrix that it works with

    @abstractmethod
    def append(self, point: Any, target: float) -> None:
        """Add one observation."""

    def append_all(self, points: Sequence[Any], targets: Sequence[float]) -> None:
        """Add several observations: as one by one, to the bit."""
        for point, target in zip(points, targets, strict=True):
            self.append(point, target)

    @abstractmethod
    def predict(self, points: Any = None) -> tuple[Array, Array]:
        """Posterior mean and standard deviation of f, each `(n,)`; of the whole domain where it is finite."""

    @abstractmethod
    def covariance(self, points: Any) -> Array:
        """Joint posterior covariance of f at `n` points, `(n, n)`."""

    def cross_covariance(self, points: Any, others: Any) -> Array:
        """Posterior covariance of f between `n` points and `k` others, `(n, k)`."""
        return self.covariance(np.concatenate([points, others]))[: len(points), len(points) :]

    @abstractmethod
    def sample(self, rng: np.random.Generator, points: Any = None, *, size: int = 1) -> Array:
        """Joint samples of f, `(size, n)`."""

    @property
    @abstractmethod
    def mean_norm(self) -> float:
        """||mu||_k, the RKHS norm of the posterior mean, reward units."""

    @property
    @abstractmethod
    def log_determinant_ratio(self) -> float:
        """Log det(I + K / lambda), kept as the running sum of log(1 + sigma^2 / lambda) (Srinivas, Lemma 5.3)."""

    @property
    @final
    def shortfall(self) -> float:
        """Rho = sqrt(tr(K - Q) / lambda), by which a sketch falls short (`posterior.inducing`); 0 of exact ones."""
        return math.sqrt(self._outside / self.regularization) if self._outside else 0.0

    @property
    @final
    def information_gain(self) -> float:
        """Realised information gain 1/2 log det(I + K / lambda), nats (Srinivas et al. 2010, Lemma 5.3)."""
        return 0.5 * self.log_determinant_ratio


class RevisablePosterior(Posterior):
    """A posterior whose observations may also be re-priced and forgotten one by one.

    `revise` and `forget` name an observation by its point and target, and the caller (who has the record) vouches that
    it was appended.
    """

    @abstractmethod
    def revise(self, point: Any, old: float, new: float) -> None:
        """Change the target of one observation: the mean moves, the variance does not."""

    def revise_all(self, points: Sequence[Any], old: Sequence[float], new: Sequence[float]) -> None:
        """Change the targets of several observations, of which some may be of one point."""
        for point, before, after in zip(points, old, new, strict=True):
            self.revise(point, before, after)

    @abstractmethod
    def forget(self, point: Any, target: float) -> None:
        """Take one observation back out."""

    @property
    @abstractmethod
    def quadratic_form(self) -> float:
        """y^T (K + lambda I)^{-1} y."""

    @property
    @final
    def log_determinant(self) -> float:
        """Log det(K + lambda I)."""
        return self.log_determinant_ratio + self.count * math.log(self.regularization)

    @property
    @final
    def log_likelihood(self) -> float:
        """Log marginal likelihood of the targets under noise variance lambda."""
        return -0.5 * (self.quadratic_form + self.log_determinant + self.count * math.log(2.0 * math.pi))


class CountingPosterior(RevisablePosterior):
    """A posterior that takes many observations of one point at the cost of one.

    n observations with average m are one observation of m under noise variance lambda / n, and their sum of squares
    about m (`scatter`) enters the likelihood alone.
    """

    @abstractmethod
    def append(self, point: Any, target: float, *, count: int = 1, scatter: float = 0.0) -> None:
        """Add `count` observations with the average `target` and this sum of squared deviations from it."""

    @abstractmethod
    def forget(self, point: Any, target: float, *, count: int = 1, scatter: float = 0.0) -> None:
        """Take as many back out."""
