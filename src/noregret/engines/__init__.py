"""Where posterior, domain and maximiser meet: one engine for finitely many arms, one for everything else."""

from __future__ import annotations

from ..domain import Arms
from .arms import ArmEngine
from .base import Decision, Engine, Question, Setting, row_of, table
from .points import PointEngine

__all__ = ["ArmEngine", "Decision", "Engine", "PointEngine", "Question", "Setting", "make_engine", "row_of", "table"]


def make_engine(setting: Setting, *, seed: int) -> Engine:
    """The engine that suits the domain and the contexts."""
    if isinstance(setting.domain, Arms) and (setting.context is None or isinstance(setting.context, Arms)):
        return ArmEngine(setting)
    return PointEngine(setting, seed=seed)
