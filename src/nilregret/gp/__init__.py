"""Gaussian-process posteriors whose cost a round does not grow with the number of rounds, exact but for sketches."""

from __future__ import annotations

from .._utils.public import public

__getattr__, __dir__, __all__ = public(__name__, __path__)
