"""Pictures of studies and of figures. matplotlib is imported when the first one is drawn."""

from .base import style
from .contour import contour
from .figures import panels
from .history import history
from .overview import importance, overview
from .parallel import parallel
from .posterior import posterior
from .regret import regret
from .restarts import changes, evidence
from .several import compare, edf
from .slices import slices
from .timeline import timeline

__all__ = [
    "changes",
    "compare",
    "contour",
    "edf",
    "evidence",
    "history",
    "importance",
    "overview",
    "panels",
    "parallel",
    "posterior",
    "regret",
    "slices",
    "style",
    "timeline",
]


def __dir__() -> list[str]:
    return __all__
