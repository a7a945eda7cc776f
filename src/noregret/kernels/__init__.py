"""Kernels: how the rewards of two points relate.

Kernels are frozen and comparable; `+` and `*` combine them, `kernel.on(0, 2)` looks at some columns only. What every
kernel can do is in `base`; formulas: Srinivas et al. 2010, section 5.2.
"""

from __future__ import annotations

from .base import ALL, Active, Hyperparameter, Kernel, PointKernel, Product, Pullback, Rows, Sum
from .others import Empirical, Linear
from .stationary import Matern, SquaredExponential, Stationary

__all__ = [
    "ALL",
    "Active",
    "Empirical",
    "Hyperparameter",
    "Kernel",
    "Linear",
    "Matern",
    "PointKernel",
    "Product",
    "Pullback",
    "Rows",
    "SquaredExponential",
    "Stationary",
    "Sum",
]
