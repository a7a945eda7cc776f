"""Wrappers for kernels of your own that have no parameter for their variance, or for the units of the points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from .._utils.checks import LARGEST_REWARD, Array, many, number
from .._utils.serialize import described
from ..errors import InvalidInput
from .base import MAKE, Derivatives, Kernel, Matrices, Pullback, check_kernel, checked_lengths
from .wrapper import Wrapper


@final
@described
@dataclass(frozen=True)
class Multiplied(Wrapper):
    """factor * k, for a kernel without a scale, made by `factor * kernel`. A fit keeps the factor."""

    kernel: Kernel
    factor: float

    def __post_init__(self) -> None:
        check_kernel("kernel", self.kernel)
        object.__setattr__(self, "factor", number("factor", self.factor, low=0.0, high=LARGEST_REWARD, open_low=True))

    def __call__(self, A: npt.ArrayLike, B: npt.ArrayLike) -> Array:
        """Returns the covariances between the rows of A and of B, `(n, m)`."""
        return self.factor * self.kernel(A, B)

    def diagonal(self, A: npt.ArrayLike) -> Array:
        """Returns the prior variances of the rows of A, `(n,)`."""
        return self.factor * self.kernel.diagonal(A)

    def input_gradient(self, X: npt.ArrayLike, B: npt.ArrayLike, weights: npt.ArrayLike) -> Array:
        """Returns the gradients of the kernel inside, multiplied, `(m, d)`."""
        return self.factor * self.kernel.input_gradient(X, B, weights)

    def diagonal_gradient(self, X: npt.ArrayLike) -> Array:
        """Returns the gradients of the kernel inside, multiplied, `(m, d)`."""
        return self.factor * self.kernel.diagonal_gradient(X)

    def matrix_and_pullback(self, X: npt.ArrayLike) -> tuple[Array, Pullback]:
        """Returns K and the pullback of the kernel inside, multiplied."""
        return self.matrices(X)(self.log_parameters)

    def matrices(self, X: npt.ArrayLike) -> Matrices:
        """Returns K and the pullback of the kernel inside by log parameters, multiplied."""
        inside = self.kernel.matrices(X)

        def at(values: Array) -> tuple[Array, Pullback]:
            matrix, pullback = inside(values)
            return self.factor * matrix, lambda weights: self.factor * pullback(weights)

        return at

    def scaled(self, factor: float) -> Multiplied:
        """Returns a kernel with the product of both factors."""
        return Multiplied(self.kernel, factor * self.factor)

    def rescaled(self, factors: Array) -> Multiplied:
        """Returns the same multiple of the kernel inside, rescaled."""
        return Multiplied(self.kernel.rescaled(factors), self.factor)

    def derivatives(self, lower: Array, upper: Array) -> Derivatives:
        """Returns the variances of the kernel inside, multiplied."""
        inside = self.kernel.derivatives(lower, upper)
        first, second = self.factor * inside.first, self.factor * inside.second
        return Derivatives(self.factor * inside.value, first, second, inside.stationary)

    @property
    def variance(self) -> float | None:
        """Prior variance of the kernel inside, multiplied."""
        return None if self.kernel.variance is None else self.factor * self.kernel.variance

    @property
    def smoothness(self) -> float | None:
        """Smoothness of the kernel inside."""
        return self.kernel.smoothness

    def features(self, points: npt.ArrayLike) -> Array | None:
        """Returns the features of the kernel inside, times the root of the factor."""
        inside = self.kernel.features(points)
        return None if inside is None else np.sqrt(self.factor) * inside

    def feature_gradient(self, X: npt.ArrayLike, weights: npt.ArrayLike) -> Array:
        """Returns the gradients of the kernel inside, times the root of the factor, `(m, d)`."""
        return np.asarray(np.sqrt(self.factor) * self.kernel.feature_gradient(X, weights))


@final
@described
@dataclass(frozen=True)
class Stretched(Wrapper):
    """k(x / factors, x' / factors): a kernel in other units of the points, for a kernel without lengths."""

    kernel: Kernel
    factors: tuple[float, ...]

    def __post_init__(self) -> None:
        check_kernel("kernel", self.kernel)
        factors = checked_lengths("factors", self.factors, why="The points of the kernel inside are divided by it.")
        object.__setattr__(self, "factors", factors if isinstance(factors, tuple) else (factors,))

    def _inside(self, points: Array) -> Array:
        if points.shape[1] != len(self.factors):
            raise InvalidInput(
                f"The kernel has {many(len(self.factors), 'factor')} and points {many(points.shape[1], 'column')}: "
                "one each."
            )
        return np.asarray(points / np.asarray(self.factors))

    def _outside(self, gradient: Array, points: Array) -> Array:  # noqa: ARG002 - the same everywhere
        return np.asarray(gradient / np.asarray(self.factors))

    def rescaled(self, factors: Array) -> Kernel:
        """Returns a kernel with the product of both factors, or the kernel inside if all factors are 1."""
        both = np.asarray(self.factors) * factors
        return self.kernel if np.allclose(both, 1.0, rtol=0.0, atol=1e-14) else Stretched(self.kernel, tuple(both))

    def derivatives(self, lower: Array, upper: Array) -> Derivatives:
        """Returns the variances by the chain rule."""
        inside = self.kernel.derivatives(self._inside(lower[None])[0], self._inside(upper[None])[0])
        squares = np.square(self.factors)
        second = inside.second / np.outer(squares, squares)
        return Derivatives(inside.value, inside.first / squares, second, inside.stationary)

    @property
    def smoothness(self) -> float | None:
        """Smoothness of the kernel inside."""
        return self.kernel.smoothness


MAKE.update(multiplied=Multiplied, stretched=Stretched)
