"""Engines choose points by belief and score: one for finitely many arms, one for all other domains."""

from ..._utils.public import public

__getattr__, __dir__, __all__ = public(__name__, __path__)
