"""Studies: a policy, its record, and where the record lives between runs."""

from .._utils.public import public

__getattr__, __dir__, __all__ = public(__name__, __path__)
