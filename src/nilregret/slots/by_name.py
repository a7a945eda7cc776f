"""Parts that have a name: `memory="adaptive"`, `pending="auto"`, `switching="lazy"`. And requirements of every slot."""

from __future__ import annotations

from dataclasses import is_dataclass, replace
from typing import Any

from .. import slots
from .._utils.checks import one_of, shown
from ..domains.search.boxes import PointSearch
from ..errors import InvalidInput, warn
from ..kernels import kernel_for
from ..serialize import is_described
from .base import Part, Policy
from .constraints import Constraints, OnAverage
from .envelope import Confidence
from .explore import Explore, NoExploration
from .fidelity import Fidelity
from .memory import Memory
from .no_worse import parted
from .objective import Objective
from .pending import Pending
from .pruning import Pruning
from .refit import Learning
from .scores import Score, UpperConfidenceBound
from .slates import SlateModel
from .switching import Switching

# The class of each name, by slot.
NAMED = {
    "memory": {"adaptive": "EDetector"},
    "pending": {"ignore": "Ignored", "hallucinate": "Hallucinated", "auto": "LateOrNever"},
    "switching": {"lazy": "Lazy"},
    "pruning": {"never": "Never", "median": "Median", "halving": "Halving", "predicted": "Predicted"},
    "slate": {"cascade": "Cascade", "positions": "Positions"},
}
EXAMPLES = {
    "memory": "nr.slots.SlidingWindow(200)",
    "pending": "nr.slots.Censored.within(20, minimum=0)",
    "switching": "nr.slots.Lazy(factor=1.1)",
    "pruning": "nr.slots.Median(steps=50)",
    "slate": "nr.slots.Positions((1.0, 0.6, 0.4))",
}


def chosen(parts: dict[str, Any]) -> dict[str, Any]:
    """Returns the parts by slot, with names replaced by the parts that they stand for.

    A value that is neither a name nor a part is refused later by the policy.
    """
    found = parted(parts)
    for slot, options in NAMED.items():
        if isinstance(part := parts.get(slot), str):
            known = one_of(slot, part, options, advice=f"Or give a part, such as `{EXAMPLES[slot]}`.")
            found[slot] = getattr(slots, options[known])()
    return found


def chosen_memory(memory: str | Memory) -> Memory:
    """Returns the memory, or the memory of that name."""
    found: Memory = chosen({"memory": memory})["memory"]
    return found


NOTHING_FITTED = "Beside `Safe` nothing is fitted, since a kernel that is learned certifies nothing"
GIVE_NOISE = "Give `auto` the `noise` of the rewards, which are then taken to vary by ten times as much."


def parts_for_constraints(constraints: Constraints, policy: Policy) -> dict[str, Any]:
    """Returns the parts, by slot, that replace those of `auto` under these constraints.

    Raises:
        InvalidInput: under `Safe`, if the noise by which it certifies is unknown.
    """
    from .safe import Safe

    if isinstance(constraints, Safe) and constraints.fitted:
        return {"constraints": constraints, "explore": NoExploration()}
    if isinstance(constraints, Safe):
        fits = None if policy.refit is None else policy.refit.fitting
        if fits is not None and fits.noise == "unknown":
            if constraints.noise is None:
                raise InvalidInput(f"{NOTHING_FITTED}, and it certifies by the noise that is told. {GIVE_NOISE}")
            warn(f"{NOTHING_FITTED}: rewards are taken to vary by 1. {GIVE_NOISE}")
        return {"constraints": constraints, "explore": NoExploration(), "refit": None}
    parts: dict[str, Any] = {"constraints": constraints}
    if constraints.kernel is None:  # The units of a constraint have nothing to do with those of the reward.
        kernel = kernel_for(policy.domain, context=policy.context, lengthscale=0.5)
        parts["constraints"] = replace(constraints, kernel=kernel)
    if isinstance(constraints, OnAverage) and not policy.score.in_rewards:
        parts["score"] = UpperConfidenceBound()
    return parts


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
    "pruning": (Pruning, "a part of `nilregret.slots.pruning_rules`, such as `nr.slots.Median()`, or None"),
    "fidelity": (Fidelity, "made by `nr.Fidelity(...)`, or None"),
    "slate": (SlateModel, "a part of `nilregret.slots.slates`, such as `nr.slots.Cascade()`, or None"),
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
    if part is None and slot in ("refit", "constraints", "switching", "pruning", "fidelity", "slate"):
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
