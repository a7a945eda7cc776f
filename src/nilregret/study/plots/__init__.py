"""Pictures of studies and of figures. matplotlib is imported when the first one is drawn."""

from .figures import panels
from .regret import regret
from .restarts import changes, evidence
from .studies import progress, tuning

__all__ = ["changes", "evidence", "panels", "progress", "regret", "tuning"]


def __dir__() -> list[str]:
    return __all__
