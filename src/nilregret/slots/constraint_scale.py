"""A cautious estimate of the scale of a constraint.

| symbol | name | meaning | shape |
|---|---|---|---|
| y | `means` | averages of the observed values at distinct points | (u,) |
| r | | root mean square of y, or the noise if that is larger, up to a power of sqrt 2 | scalar |
| s | | standard deviation of g over the domain: r times one of `SIZES` | (S,) |
| theta | | lengthscales: those of the kernel times one of `FACTORS` | (L,) |
| w | | posterior of (theta, s) given y | (L, S) |

The estimate is a short lengthscale and a large s given this lengthscale, both quantiles of w. A priori all s are
equally likely. Values at one point then say that g is of their size or a few times larger, so that steps from there are
small.
"""

from __future__ import annotations

import math

import numpy as np

from .._utils.blas import with_one_thread
from .._utils.checks import Array
from ..kernels import Kernel
from .lengthscales import with_factor

SIZES = 2.0 ** np.arange(-2.0, 2.5, 0.5)
FACTORS = (0.125, 0.25, 0.5, 1.0, 2.0)
SHARES = np.array([0.02, 0.06, 0.27, 0.5, 0.15])  # prior probability of each factor, highest near the given lengthscale
SHORT, LARGE = 0.1, 0.9  # quantiles of theta and of s
LEAST_SHARE = 1e-3  # share of r, the noise of exact values


@with_one_thread
def cautious_scale(kernel: Kernel, rows: Array, means: Array, counts: Array, *, noise: float) -> tuple[float, float]:
    """Returns a short lengthscale, as a factor of the kernel's, and a large standard deviation of g.

    Args:
        kernel: kernel with prior variance 1.
        rows: distinct (context, point), `(u, c + d)`.
        means: y, `(u,)`.
        counts: number of values in each average, `(u,)`.
        noise: standard deviation of a value.
    """
    typical = max(math.sqrt(float(means @ means) / len(means)), noise)
    if typical == 0.0:
        return min(FACTORS), 0.0
    # Steps keep the estimate the same when values change little.
    typical = 2.0 ** (0.5 * math.ceil(2.0 * math.log2(typical)))
    sizes = typical * SIZES
    roots = np.sqrt(counts) / max(noise, LEAST_SHARE * typical)
    log_w = np.zeros((len(FACTORS), len(sizes)))
    for i, factor in enumerate(FACTORS):
        each = with_factor(kernel, factor, rows.shape[1])
        spectrum, vectors = np.linalg.eigh(roots[:, None] * each(rows, rows) * roots)
        ratios = 1.0 + sizes[:, None] ** 2 * np.maximum(spectrum, 0.0)  # variances of the values over that of the noise
        along = vectors.T @ (roots * means)
        log_w[i] = math.log(SHARES[i]) - 0.5 * (np.log(ratios).sum(axis=1) + (along**2 / ratios).sum(axis=1))
    w = np.exp(log_w - log_w.max())
    short = int(np.searchsorted(np.cumsum(w.sum(axis=1)), SHORT * w.sum()))
    large = int(np.searchsorted(np.cumsum(w[short]), LARGE * w[short].sum()))
    return FACTORS[short], float(sizes[min(large, len(sizes) - 1)])
