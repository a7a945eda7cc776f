"""Pictures of studies and of figures. matplotlib is imported when the first one is drawn."""

from .base import style
from .figures import panels
from .history import history
from .importance import importance
from .regret import regret
from .restarts import changes, evidence
from .studies import progress, tuning

__all__ = ["changes", "evidence", "history", "importance", "panels", "progress", "regret", "style", "tuning"]


def __dir__() -> list[str]:
    return __all__
