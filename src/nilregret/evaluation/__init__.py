"""Evaluation of other policies on a log of decisions, which need not be one of this package."""

from .._utils.public import public

__getattr__, __dir__, __all__ = public(__name__, __path__)
