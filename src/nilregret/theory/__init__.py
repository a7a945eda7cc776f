"""Quantities from theorems as numbers: information gain and its rates, and bounds on regret and violation."""

from .._utils.public import public

__getattr__, __dir__, __all__ = public(__name__, __path__)
