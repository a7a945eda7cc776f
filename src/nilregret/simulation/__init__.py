"""Simulations of policies in environments, and their results."""

from .._utils.public import public

__getattr__, __dir__, __all__ = public(__name__, __path__)
