"""Parts that have a name: `memory="adaptive"`, `pending="auto"`, `switching="lazy"`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._utils.checks import one_of
from .change_detection import EDetector
from .memory import Memory
from .pending import Hallucinated, Ignored, Pending
from .silence import LateOrNever
from .switching import Lazy, Switching


def chosen_pending(pending: str | Pending) -> Pending:
    """What unanswered trials count as, by name or as a part."""
    if isinstance(pending, Pending):
        return pending
    named = {"ignore": Ignored(), "hallucinate": Hallucinated(), "auto": LateOrNever()}
    advice = "Or give a part, such as `nr.slots.Censored.within(20, minimum=0)`."
    return named[one_of("pending", pending, named, advice=advice)]


def chosen_memory(memory: str | Memory) -> Memory:
    """Which trials count, by name or as a part."""
    if not isinstance(memory, str):
        return memory  # what is no part is refused by the policy
    one_of("memory", memory, ["adaptive"], advice="Or give a part, such as `nr.slots.SlidingWindow(200)`.")
    return EDetector()


def chosen_switching(switching: str | Switching) -> Switching:
    """How long a choice is played, by name or as a part."""
    if not isinstance(switching, str):
        return switching  # what is no part is refused by the policy
    one_of("switching", switching, ["lazy"], advice="Or give a part, such as `nr.slots.Lazy(factor=1.1)`.")
    return Lazy()


def chosen(parts: dict[str, Any]) -> dict[str, Any]:
    """Parts by slot, and in place of names what they stand for."""
    named: dict[str, Callable[[Any], object]]
    named = {"memory": chosen_memory, "pending": chosen_pending, "switching": chosen_switching}
    return parts | {slot: named[slot](part) for slot, part in parts.items() if slot in named and isinstance(part, str)}
