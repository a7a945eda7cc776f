"""Pictures of studies and of figures. matplotlib is imported when the first one is drawn."""

from .base import style
from .contour_picture import contour
from .curves_picture import curves
from .figures import panels
from .front_picture import front
from .history_picture import history
from .overview_picture import importance, overview
from .parallel_picture import parallel
from .posterior_picture import posterior
from .regret_picture import regret
from .restarts import changes, evidence
from .several import compare, edf
from .slices_picture import slices
from .timeline_picture import timeline

__all__ = [
    "changes",
    "compare",
    "contour",
    "curves",
    "edf",
    "evidence",
    "front",
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
