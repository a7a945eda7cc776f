"""Kernels: how the rewards of two points relate.

Kernels are frozen and comparable; `+` and `*` combine them, `2.0 * kernel` has twice the variance, `kernel.on(0, 2)`
looks at some columns only. What every kernel can do is in `base`; formulas: Srinivas et al. 2010, section 5.2.
"""

from __future__ import annotations

from .base import ALL, Active, Hyperparameter, Kernel, PointKernel, Product, Pullback, Rows, Sum, check_kernel
from .derivatives import Derivatives
from .others import Empirical, Linear
from .periodic import Periodic
from .stationary import Matern, RationalQuadratic, Spectral, SquaredExponential, Stationary

__all__ = [
    "ALL",
    "Active",
    "Derivatives",
    "Empirical",
    "Hyperparameter",
    "Kernel",
    "Linear",
    "Matern",
    "Periodic",
    "PointKernel",
    "Product",
    "Pullback",
    "RationalQuadratic",
    "Rows",
    "Spectral",
    "SquaredExponential",
    "Stationary",
    "Sum",
    "check_kernel",
]
