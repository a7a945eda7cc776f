"""Parts that have a name: `memory="adaptive"`, `pending="auto"`, `switching="lazy"`."""

from __future__ import annotations

from typing import Any

from .._utils.checks import one_of
from .change_detection import EDetector
from .memory import Memory
from .pending import Hallucinated, Ignored
from .silence import LateOrNever
from .switching import Lazy

NAMED: dict[str, dict[str, object]] = {
    "memory": {"adaptive": EDetector()},
    "pending": {"ignore": Ignored(), "hallucinate": Hallucinated(), "auto": LateOrNever()},
    "switching": {"lazy": Lazy()},
}
EXAMPLES = {
    "memory": "nr.slots.SlidingWindow(200)",
    "pending": "nr.slots.Censored.within(20, minimum=0)",
    "switching": "nr.slots.Lazy(factor=1.1)",
}


def chosen(parts: dict[str, Any]) -> dict[str, Any]:
    """Returns the parts by slot, with names replaced by the parts that they stand for.

    A value that is neither a name nor a part is refused later by the policy.
    """
    found = dict(parts)
    for slot, options in NAMED.items():
        if isinstance(part := parts.get(slot), str):
            found[slot] = options[one_of(slot, part, options, advice=f"Or give a part, such as `{EXAMPLES[slot]}`.")]
    return found


def chosen_memory(memory: str | Memory) -> Memory:
    """Returns the memory, or the memory of that name."""
    found: Memory = chosen({"memory": memory})["memory"]
    return found
