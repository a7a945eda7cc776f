"""Sample paths: functions drawn from the posterior, to be evaluated and differentiated anywhere.

Pathwise conditioning (Matheron's rule; Wilson et al. 2021): with g a path of the prior,

    f(x) = g(x) + k(x, U) M^{-1} (ybar - g(U) - eps),    eps_i ~ N(0, lambda / n_i),

is a path of the posterior, exactly if g is exact. How g is drawn is in `prior_paths`: by random waves where the
kernel's spectrum can be drawn from, else by joint sampling at the points that are asked for.
"""

from __future__ import annotations

from typing import cast, final

import numpy as np

from .._utils.checks import Array, integer
from .._utils.copying import independent
from .at_points import AtPoints
from .points import PointPosterior
from .prior_paths import PriorPath, Slopes, prior_path, summands
from .spanned import SpannedPosterior
from .spans import InducedSpan

WAVES = 1024


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
        weights = factor * self._weights + (1.0 - factor) * self._mean_weights
        return independent(self, fresh={"_parts": [part.widened(factor) for part in self._parts], "_weights": weights})

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


@final
class SpannedPath:
    """One function drawn from the posterior in a span; made by `sample_path`.

    z(x)^T (w + W xi), and of a sketch g(x) - z(x)^T L^{-1} g(S) besides, g a path of the prior: what is left of g when
    it is known in the span, and independent of that.
    """

    def __init__(self, posterior: SpannedPosterior, parts: list[PriorPath], rng: np.random.Generator) -> None:
        self._span, self._parts, weights = posterior.span, parts, posterior.weights
        self._mean = weights.mean
        self._weights = weights.mean + weights.root @ rng.standard_normal(weights.size)
        if isinstance(self._span, InducedSpan):
            self._weights = self._weights - self._span.solve(self._prior(self._span.points))

    def widened(self, factor: float) -> SpannedPath:
        """The path mu + factor (f - mu): a draw from GP(mu, factor^2 cov)."""
        weights = factor * self._weights + (1.0 - factor) * self._mean
        return independent(self, fresh={"_parts": [part.widened(factor) for part in self._parts], "_weights": weights})

    def __call__(self, points: Array) -> Array:
        """Values at `(m, d)` points, `(m,)`."""
        return self._prior(points) + self._span.features(points) @ self._weights

    def slopes(self, points: Array) -> tuple[Array, Array]:
        """Values `(m,)` and gradients `(m, d)` at `(m, d)` points."""
        gradients = self._span.gradient(points, np.broadcast_to(self._weights, (len(points), len(self._weights))))
        for part in self._parts:
            gradients = gradients + part.gradients(points)
        return self(points), gradients

    def _prior(self, points: Array) -> Array:
        values = np.zeros(len(points))
        for part in self._parts:
            values = part.plus(values, points)
        return values


def drawn_path(posterior: AtPoints, rng: np.random.Generator) -> Path | SpannedPath:
    """A function drawn from the posterior of f, whichever it is."""
    if not isinstance(posterior, SpannedPosterior):
        return sample_path(cast(PointPosterior, posterior), rng)
    return SpannedPath(posterior, [] if posterior.span.whole else _prior_parts(posterior, WAVES, rng), rng)


def sample_path(posterior: PointPosterior, rng: np.random.Generator, *, waves: int = WAVES) -> Path:
    """A function drawn from the posterior of f.

    Args:
        posterior: at points.
        rng: all randomness comes from here.
        waves: m, a power of two; the prior's covariance is right to about 1 / m in few dimensions, where it is made of
            waves.
    """
    integer("waves", waves, low=2)
    return Path(posterior, _prior_parts(posterior, waves, rng), rng)


def _prior_parts(posterior: AtPoints, waves: int, rng: np.random.Generator) -> list[PriorPath]:
    d = posterior.dimension
    terms = summands(posterior.kernel, tuple(range(d)))
    parts = [prior_path(kernel, columns, d, waves, rng) for kernel, columns in terms]
    # Slopes first: the order of a sum is part of its rounding.
    return sorted(parts, key=lambda part: not isinstance(part, Slopes))
