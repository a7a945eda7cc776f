"""Sample paths: functions drawn from the posterior, to be evaluated and differentiated anywhere.

Pathwise conditioning (Matheron's rule; Wilson et al. 2021): with g a path of the prior,

    f(x) = g(x) + k(x, U) M^{-1} (ybar - g(U) - eps),    eps_i ~ N(0, lambda / n_i),

is a path of the posterior, exactly if g is exact. g is a sum of m random waves (Rahimi and Recht 2007),

    g(x) = sqrt(scale / m) sum_j a_j cos(omega_j x) + b_j sin(omega_j x),    a_j, b_j ~ N(0, 1),

with frequencies from the kernel's spectrum, laid out by a scrambled Sobol sequence: in few dimensions the covariance
of g is then right to a few thousandths already at m = 1,024. Sums of kernels are sums of independent paths; the
frequencies of a product of stationary kernels are sums of its factors' frequencies.
"""

from __future__ import annotations

import math
from typing import NamedTuple, final

import numpy as np

from ..checks import Array, integer, shown
from ..errors import InvalidInput
from ..kernels import Active, Kernel, Linear, Product, Spectral, Sum
from .points import PointPosterior


class _Waves(NamedTuple):
    frequencies: Array  # (m, d)
    cosines: Array  # (m,), amplitudes
    sines: Array  # (m,)


@final
class Path:
    """One function drawn from the posterior; made by `sample_path`."""

    def __init__(self, posterior: PointPosterior, waves: list[_Waves], slopes: Array, rng: np.random.Generator) -> None:
        self._kernel, self._points = posterior.kernel, posterior.points.copy()
        self._waves, self._slopes = waves, slopes
        noise = rng.standard_normal(posterior.rank) * np.sqrt(posterior.regularization / posterior.plays)
        self._weights = posterior.solve_targets(posterior.average - self._prior(self._points) - noise)
        self._mean_weights = posterior.weights

    def widened(self, factor: float) -> Path:
        """The path mu + factor (f - mu): a draw from GP(mu, factor^2 cov)."""
        other = Path.__new__(Path)
        other.__dict__.update(self.__dict__)
        other._waves = [
            _Waves(waves.frequencies, factor * waves.cosines, factor * waves.sines) for waves in self._waves
        ]
        other._slopes = factor * self._slopes
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
        gradients = self._kernel.input_gradient(points, self._points, weights) + self._slopes
        for waves in self._waves:
            phase = points @ waves.frequencies.T
            gradients = gradients + (waves.sines * np.cos(phase) - waves.cosines * np.sin(phase)) @ waves.frequencies
        return self(points), gradients

    def _prior(self, points: Array) -> Array:
        values = points @ self._slopes
        for waves in self._waves:
            phases = points @ waves.frequencies.T
            values = values + np.cos(phases) @ waves.cosines + np.sin(phases) @ waves.sines
        return np.asarray(values)


def sample_path(posterior: PointPosterior, rng: np.random.Generator, *, waves: int = 1024) -> Path:
    """A function drawn from the posterior of f.

    Args:
        posterior: at points.
        rng: all randomness comes from here.
        waves: m, a power of two; the prior's covariance is right to about 1 / m in few dimensions.
    """
    integer("waves", waves, low=2)
    parts, slopes = [], np.zeros(posterior.dimension)
    for kernel, columns in _summands(posterior.kernel, tuple(range(posterior.dimension))):
        if isinstance(kernel, Linear):
            slopes[list(columns)] += np.sqrt(kernel.scale) * rng.standard_normal(len(columns))
            continue
        factors = _factors(kernel, columns)
        frequencies = _frequencies(factors, posterior.dimension, waves, rng)
        scale = math.prod(factor.scale for factor, _ in factors)
        amplitudes = np.sqrt(scale / waves) * rng.standard_normal((2, waves))
        parts.append(_Waves(frequencies, *amplitudes))
    return Path(posterior, parts, slopes, rng)


def _summands(kernel: Kernel, columns: tuple[int, ...]) -> list[tuple[Kernel, tuple[int, ...]]]:
    if isinstance(kernel, Sum):
        return _summands(kernel.left, columns) + _summands(kernel.right, columns)
    if isinstance(kernel, Active):
        return _summands(kernel.kernel, tuple(columns[i] for i in kernel.dimensions))
    return [(kernel, columns)]


def _factors(kernel: Kernel, columns: tuple[int, ...]) -> list[tuple[Spectral, tuple[int, ...]]]:
    if isinstance(kernel, Product):
        return _factors(kernel.left, columns) + _factors(kernel.right, columns)
    if isinstance(kernel, Active):
        return _factors(kernel.kernel, tuple(columns[i] for i in kernel.dimensions))
    if isinstance(kernel, Spectral):
        return [(kernel, columns)]
    raise InvalidInput(
        f"Paths are drawn for sums of products of stationary kernels and for linear ones, not for {shown(kernel)}. On "
        "arms, joint samples need no path."
    )


def _frequencies(
    factors: list[tuple[Spectral, tuple[int, ...]]], d: int, count: int, rng: np.random.Generator
) -> Array:
    """Frequencies `(count, d)` of a product: sums of its factors' frequencies."""
    from scipy.stats import qmc

    # One sequence for all factors: two sequences, however scrambled, share their first digits, and the frequencies of
    # two factors would come with each other's signs.
    wanted = [len(own) + 1 for _, own in factors]
    unit = qmc.Sobol(sum(wanted), scramble=True, rng=rng).random_base2((count - 1).bit_length())[:count]
    unit = np.clip(unit, 1e-12, 1.0 - 1e-12)
    frequencies = np.zeros((count, d))
    for (factor, own), part in zip(factors, np.split(unit, np.cumsum(wanted)[:-1], axis=1), strict=True):
        frequencies[:, list(own)] += factor.frequencies(part)
    return frequencies
