"""Kernels: prior covariances of the rewards of two points.

Kernels are frozen and comparable. `+` and `*` combine kernels, `2.0 * kernel` has twice the variance, and `kernel.on(0,
2)` sees only some columns. The interface is in `base`. Formulas: Srinivas et al. 2010, section 5.2.
"""

from .._utils.public import public

__getattr__, __dir__, __all__ = public(__name__, __path__)
