"""Sample paths: functions drawn from the posterior, which can be evaluated and differentiated anywhere.

Pathwise conditioning (Matheron's rule, Wilson et al. 2021): with g a path of the prior,

    f(x) = g(x) + k(x, U) M^{-1} (ybar - g(U) - eps),    eps_i ~ N(0, lambda / n_i),

is a path of the posterior, exactly if g is exact. The module `prior_paths` draws g. It uses random waves if the
kernel's spectrum can be drawn from, and otherwise samples jointly at the points that are asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast, final

import numpy as np

from .._utils.checks import Array, integer
from ..errors import InvalidInput
from ..kernels import Kernel
from .at_points import AtPoints
from .feature_maps import NystromFeatures
from .points import PointPosterior
from .prior_paths import PriorPath, Slopes, prior_path, summands
from .weight_space import WeightSpacePosterior

WAVES = 1024


@final
class Path:
    """A function drawn from the posterior by `sample_path`.

    f(x) = g(x) + z(x)^T w with g a sum of prior paths, z features of a point, and w weights.

    Args:
        values: function of `(m, d)` points and w that returns z^T w, `(m,)`.
        slopes: function of `(m, d)` points and w that returns the gradients of z^T w, `(m, d)`.
        parts: prior paths, whose sum is g.
        weights: w.
        mean: weights of the posterior mean mu(x) = z(x)^T `mean`, of the shape of w.
    """

    def __init__(
        self,
        values: Callable[[Array, Array], Array],
        slopes: Callable[[Array, Array], Array],
        parts: list[PriorPath],
        weights: Array,
        mean: Array,
    ) -> None:
        self._values, self._slopes, self._parts = values, slopes, parts
        self._weights, self._mean = weights, mean

    def widened(self, factor: float) -> Path:
        """Returns the path mu + factor (f - mu): a draw from GP(mu, factor^2 cov)."""
        weights = factor * self._weights + (1.0 - factor) * self._mean
        parts = [part.widened(factor) for part in self._parts]
        return Path(self._values, self._slopes, parts, weights, self._mean)

    def __call__(self, points: Array) -> Array:
        """Returns values at `(m, d)` points, `(m,)`."""
        return sum_of_paths(self._parts, points) + self._values(points, self._weights)

    def slope(self, point: Array) -> tuple[float, Array]:
        """Returns value and gradient `(d,)` at one point `(d,)`."""
        values, gradients = self.slopes(point[None])
        return float(values[0]), gradients[0]

    def slopes(self, points: Array) -> tuple[Array, Array]:
        """Returns values `(m,)` and gradients `(m, d)` at `(m, d)` points."""
        gradients = self._slopes(points, self._weights)
        for part in self._parts:
            gradients = gradients + part.gradients(points)
        return self(points), gradients

    def fix(self, points: Array) -> Path:
        """Fixes the function at these points, smooth between them, and returns the path itself.

        Paths of kernels that are sampled jointly depend on the points asked for until then. Other paths are fixed from
        the beginning.
        """
        for part in self._parts:
            part.fix(points)
        return self


def sum_of_paths(parts: list[PriorPath], points: Array) -> Array:
    """Returns the values of a sum of prior paths at `(m, d)` points, `(m,)`."""
    values = np.zeros(len(points))
    for part in parts:
        values = part.plus(values, points)
    return values


class _Covariances(NamedTuple):
    """Prior covariances k(x, U) with fixed points U `(n, d)`, as features of x."""

    kernel: Kernel
    points: Array

    def values(self, points: Array, weights: Array) -> Array:
        return np.asarray(self.kernel(points, self.points) @ weights)

    def slopes(self, points: Array, weights: Array) -> Array:
        every = np.broadcast_to(weights, (len(points), len(weights)))
        return self.kernel.input_gradient(points, self.points, every)


def _path_at_points(posterior: PointPosterior, parts: list[PriorPath], rng: np.random.Generator) -> Path:
    """Returns f(x) = g(x) + k(x, U) M^{-1} (ybar - g(U) - eps)."""
    kernel, points = posterior.kernel, posterior.points.copy()
    noise = rng.standard_normal(posterior.rank) * np.sqrt(posterior.regularization / posterior.plays)
    weights = posterior.solve_targets(posterior.average - sum_of_paths(parts, points) - noise)
    known = _Covariances(kernel, points)
    return Path(known.values, known.slopes, parts, weights, posterior.weights)


def _path_in_span(posterior: WeightSpacePosterior, parts: list[PriorPath], rng: np.random.Generator) -> Path:
    """Returns f(x) = z(x)^T (w + W xi), and for a sketch g(x) - z(x)^T L^{-1} g(S) in addition.

    That term is what is left of a prior path g when g is known in the span. It is independent of the first term.
    """
    span, known = posterior.span, posterior.weights
    weights = known.mean + known.from_halves(np.arange(known.count), rng.standard_normal(known.mean.shape))
    if isinstance(span, NystromFeatures):
        weights = weights - span.solve(sum_of_paths(parts, span.points))
    return Path(span.values, span.slopes, parts, weights, known.mean.copy())


def drawn_path(posterior: AtPoints, rng: np.random.Generator) -> Path:
    """Returns a function drawn from the posterior of f.

    Raises:
        InvalidInput: the posterior has a model for each arm, which are not drawn together.
    """
    if not isinstance(posterior, WeightSpacePosterior):
        if not hasattr(posterior, "dimension"):
            raise InvalidInput(
                "The policy has a model for each arm, so no function of arms and contexts together can be drawn.",
                advice="`nr.plots.history` and `study.predict` show what is known.",
            )
        return sample_path(cast(PointPosterior, posterior), rng)
    return _path_in_span(posterior, [] if posterior.span.exact else _prior_parts(posterior, WAVES, rng), rng)


def sample_path(posterior: PointPosterior, rng: np.random.Generator, *, waves: int = WAVES) -> Path:
    """Returns a function drawn from the posterior of f.

    Args:
        posterior: at points.
        rng: source of all randomness.
        waves: m, a power of two. If the prior path is made of waves, its covariance is right to about 1 / m in few
            dimensions.
    """
    integer("waves", waves, low=2)
    return _path_at_points(posterior, _prior_parts(posterior, waves, rng), rng)


def _prior_parts(posterior: AtPoints, waves: int, rng: np.random.Generator) -> list[PriorPath]:
    d = posterior.dimension
    terms = summands(posterior.kernel, tuple(range(d)))
    parts = [prior_path(kernel, columns, d, waves, rng) for kernel, columns in terms]
    # Slopes come first, since the order of a sum affects its rounding.
    return sorted(parts, key=lambda part: not isinstance(part, Slopes))
