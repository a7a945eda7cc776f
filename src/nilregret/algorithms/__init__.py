"""The algorithms, one module for each paper. An algorithm is a named combination of the parts of a policy."""

from .._utils.public import public

__getattr__, __dir__, __all__ = public(__name__, __path__)
__all__.remove("Slots")  # The type of some arguments, and no algorithm.
