"""Pictures of studies and of figures. matplotlib is imported when the first one is drawn."""

from .._utils.public import public

__getattr__, __dir__, __all__ = public(__name__, __path__)
