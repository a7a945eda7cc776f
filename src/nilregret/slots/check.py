"""Requirements of every slot."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any

from .._utils.checks import shown
from .._utils.serialize import is_described
from ..domains.search.boxes import PointSearch
from ..errors import InvalidInput
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
    "memory": (Memory, "a part of `nilregret.slots.memory`, such as `nr.slots.SlidingWindow(200)`"),
    "explore": (Explore, "a part of `nilregret.slots.explore`"),
    "pending": (Pending, "a part of `nilregret.slots.pending`"),
    "objective": (Objective, "a part of `nilregret.slots.objective`"),
    "confidence": (
        Confidence,
        "a part of `nilregret.slots.envelope` or its neighbours, such as `ConstantWidth(value=2.0)`",
    ),
    "score": (Score, "a part of `nilregret.slots.scores`"),
    "search": (PointSearch, "made by `nr.slots.PointSearch(...)`"),
    "refit": (
        Learning,
        "made by `nr.slots.Refit(...)`, `nr.slots.LengthscaleBank(...)` or `nr.slots.ArmModels(...)`, or None",
    ),
    "constraints": (Constraints, "a part such as `nr.EveryRound(count=1)`, or None"),
    "switching": (Switching, "made by `nr.slots.Lazy(...)`, or None"),
}


def part_of(slot: str, value: object) -> Any:
    """Returns the value if it is a part for a slot, else None."""
    return value if isinstance(value, SLOTS[slot][0]) else None


def is_part(value: object) -> bool:
    """Returns whether the value is a part for any slot."""
    return isinstance(value, Part)


def check_part(slot: str, part: object) -> None:
    """Raises `InvalidInput` if a part does not belong in its slot or cannot be stored."""
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
            advice=(
                "Make it a frozen dataclass and decorate it with `nilregret.slots.described`; "
                "what it remembers during a run goes elsewhere (see docs/extending.md)."
            ),
        )
