"""Kernels: prior covariances of the rewards of two points.

Kernels are frozen and comparable. `+` and `*` combine kernels, `2.0 * kernel` has twice the variance, and `kernel.on(0,
2)` sees only some columns. The interface is in `base`. Formulas: Srinivas et al. 2010, section 5.2.
"""

from __future__ import annotations

from .base import ALL as ALL
from .base import Derivatives, Hyperparameter, Kernel, PointKernel
from .base import Pullback as Pullback
from .base import check_kernel as check_kernel
from .combined import Active, Multiplied, Product, Rounded, Stretched, Sum
from .domains import Mixture, Overlap, kernel_for
from .others import Empirical, Intercept, Linear
from .periodic import Periodic
from .random_features import RandomFeatures
from .stationary import Matern, RationalQuadratic, Spectral, SquaredExponential, Stationary
from .tied import Tied

__all__ = [
    "Active",
    "Derivatives",
    "Empirical",
    "Hyperparameter",
    "Intercept",
    "Kernel",
    "Linear",
    "Matern",
    "Mixture",
    "Multiplied",
    "Overlap",
    "Periodic",
    "PointKernel",
    "Product",
    "RandomFeatures",
    "RationalQuadratic",
    "Rounded",
    "Spectral",
    "SquaredExponential",
    "Stationary",
    "Stretched",
    "Sum",
    "Tied",
    "kernel_for",
]


def __dir__() -> list[str]:
    return __all__
