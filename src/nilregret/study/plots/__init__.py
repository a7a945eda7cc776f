"""Pictures of studies and of figures. matplotlib is imported when the first one is drawn."""

from .base import style
from .figures import panels
from .history import history
from .importance import importance
from .posterior import posterior
from .regret import regret
from .restarts import changes, evidence
from .several import compare, edf
from .studies import progress, tuning
from .timeline import timeline

__all__ = [
    "changes",
    "compare",
    "edf",
    "evidence",
    "history",
    "importance",
    "panels",
    "posterior",
    "progress",
    "regret",
    "style",
    "timeline",
    "tuning",
]


def __dir__() -> list[str]:
    return __all__
