"""Engines choose points by belief and score: one for finitely many arms, one for all other domains."""

from __future__ import annotations

from typing import Any

from ...domains.domain import Arms, Domain
from ...domains.search.boxes import PointSearch
from ...slots.sketch import Sketch
from .arms import ArmEngine
from .base import (
    REWARDS,
    BestReward,
    Compared,
    Decision,
    Engine,
    Front,
    Limit,
    Limits,
    Prior,
    Question,
    Units,
    row_of,
    table,
)
from .points import PointEngine

__all__ = [
    "REWARDS",
    "ArmEngine",
    "BestReward",
    "Compared",
    "Decision",
    "Engine",
    "Front",
    "Limit",
    "Limits",
    "PointEngine",
    "Prior",
    "Question",
    "Units",
    "make_engine",
    "row_of",
    "table",
]


def make_engine(
    domain: Domain,
    context: Domain | None,
    search: PointSearch,
    sketch: Sketch | None = None,
    *,
    seed: int,
    by_rows: bool = False,
) -> Engine[Any]:
    """Returns the engine for a domain and contexts. If `by_rows`, cells are rows of coordinates on every domain."""
    if not by_rows and isinstance(domain, Arms) and isinstance(context, Arms | None):
        return ArmEngine(domain, context)
    return PointEngine(domain, context, search, seed=seed, sketch=None if sketch is None else sketch.terms)
