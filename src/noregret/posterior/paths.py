"""Sample paths: functions drawn from the posterior, to be evaluated and differentiated anywhere.

Pathwise conditioning (Matheron's rule; Wilson et al. 2021): with g a path of the prior,

    f(x) = g(x) + k(x, U) M^{-1} (ybar - g(U) - eps),    eps_i ~ N(0, lambda / n_i),

is a path of the posterior, exactly if g is exact. How g is drawn is in `prior_paths`: by random waves where the
kernel's spectrum can be drawn from, else by joint sampling at the points that are asked for.
"""

from __future__ import annotations

from typing import final

import numpy as np

from ..checks import Array, integer
from .points import PointPosterior
from .prior_paths import PriorPath, Slopes, prior_path, summands


@final
class Path:
    """One function drawn from the posterior; made by `sample_path`."""

    def __init__(self, posterior: PointPosterior, parts: list[PriorPath], rng: np.random.Generator) -> None:
        self._kernel, self._points, self._parts = posterior.kernel, posterior.points.copy(), parts
        noise = rng.standard_normal(posterior.rank) * np.sqrt(posterior.regularization / posterior.plays)
        self._weights = posterior.solve_targets(posterior.average - self._prior(self._points) - noise)
        self._mean_weights = posterior.weights

    def widened(self, factor: float) -> Path:
        """The path mu + factor (f - mu): a draw from GP(mu, factor^2 cov)."""
        other = Path.__new__(Path)
        other.__dict__.update(self.__dict__)
        other._parts = [part.widened(factor) for part in self._parts]
        other._weights = factor * self._weights + (1.0 - factor) * self._mean_weights
        return other

    def __call__(self, points: Array) -> Array:
        """Values at `(m, d)` points, `(m,)`."""
        return self._prior(points) + self._kernel(points, self._points) @ self._weights

    def slope(self, point: Array) -> tuple[float, Array]:
        """Value and gradient `(d,)` at one point `(d,)`."""
        values, gradients = self.slopes(point[None])
        return float(values[0]), gradients[0]

    def slopes(self, points: Array) -> tuple[Array, Array]:
        """Values `(m,)` and gradients `(m, d)` at `(m, d)` points."""
        weights = np.broadcast_to(self._weights, (len(points), len(self._weights)))
        gradients = self._kernel.input_gradient(points, self._points, weights)
        for part in self._parts:
            gradients = gradients + part.gradients(points)
        return self(points), gradients

    def settle(self, points: Array) -> Path:
        """The path itself, from now on one function whatever it is asked: right at these points, smooth between them.

        For kernels whose paths are sampled jointly; the others are settled from the beginning.
        """
        for part in self._parts:
            part.settle(points)
        return self

    def _prior(self, points: Array) -> Array:
        values = np.zeros(len(points))
        for part in self._parts:
            values = part.plus(values, points)
        return values


def sample_path(posterior: PointPosterior, rng: np.random.Generator, *, waves: int = 1024) -> Path:
    """A function drawn from the posterior of f.

    Args:
        posterior: at points.
        rng: all randomness comes from here.
        waves: m, a power of two; the prior's covariance is right to about 1 / m in few dimensions, where it is made of
            waves.
    """
    integer("waves", waves, low=2)
    d = posterior.dimension
    terms = summands(posterior.kernel, tuple(range(d)))
    parts = [prior_path(kernel, columns, d, waves, rng) for kernel, columns in terms]
    # Slopes first: the order of a sum is part of its rounding.
    return Path(posterior, sorted(parts, key=lambda part: not isinstance(part, Slopes)), rng)
