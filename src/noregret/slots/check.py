"""What every slot wants."""

from __future__ import annotations

from dataclasses import is_dataclass

from ..checks import shown
from ..errors import InvalidInput
from ..search.boxes import PointSearch
from ..serialize import is_described
from .base import Part
from .constraints import Constraints
from .envelope import Confidence
from .explore import Explore
from .memory import Memory
from .objective import Objective
from .pending import Pending
from .refit import Learning
from .scores import Score
from .switching import Switching

SLOTS: dict[str, tuple[type, str]] = {
    "memory": (Memory, "a part of `noregret.slots.memory`, such as `nr.SlidingWindow(200)`"),
    "explore": (Explore, "a part of `noregret.slots.explore`"),
    "pending": (Pending, "a part of `noregret.slots.pending`"),
    "objective": (Objective, "a part of `noregret.slots.objective`"),
    "confidence": (
        Confidence,
        "a part of `noregret.slots.envelope` or its neighbours, such as `ConstantWidth(value=2.0)`",
    ),
    "score": (Score, "a part of `noregret.slots.scores`"),
    "search": (PointSearch, "made by `nr.PointSearch(...)`"),
    "refit": (Learning, "made by `nr.Refit(...)` or `nr.LengthscaleBank(...)`, or None"),
    "constraints": (Constraints, "a part such as `nr.EveryRound(count=1)`, or None"),
    "switching": (Switching, "made by `nr.Lazy(...)`, or None"),
}


def check_part(slot: str, part: object) -> None:
    """Refuse what does not belong into a slot, and what could not be read back from a storage."""
    kind, what = SLOTS[slot]
    if part is None and slot in ("refit", "constraints", "switching"):
        return
    if not isinstance(part, kind):
        raise InvalidInput(
            f"`{slot}` is {shown(part)}: it must be {what}."
            + (f" One of your own derives from `{kind.__name__}`." if issubclass(kind, Part) else "")
        )
    if not is_described(part) or not is_dataclass(part):
        raise InvalidInput(
            f"`{slot}` is a {type(part).__name__}, which could not be stored and read back.",
            advice="Make it a frozen dataclass and decorate it with `noregret.serialize.described`; what it remembers "
            "during a run goes elsewhere (see docs/extending.md).",
        )
