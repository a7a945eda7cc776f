"""Pictures of studies and of figures. matplotlib is imported when the first one is drawn."""

from .base import style
from .contour import contour
from .figures import panels
from .history import history
from .importance import importance
from .overview import overview
from .parallel import parallel
from .restarts import changes, evidence
from .slices import slices

__all__ = [
    "changes",
    "contour",
    "evidence",
    "history",
    "importance",
    "overview",
    "panels",
    "parallel",
    "slices",
    "style",
]


def __dir__() -> list[str]:
    return __all__
