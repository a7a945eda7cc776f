"""Pictures of studies and of figures. matplotlib is imported when the first one is drawn."""

from .changes import changes, evidence
from .panels import panels
from .tuning import progress, tuning

__all__ = ["changes", "evidence", "panels", "progress", "tuning"]


def __dir__() -> list[str]:
    return __all__
