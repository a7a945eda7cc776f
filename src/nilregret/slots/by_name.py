"""Parts that have a name: `memory="adaptive"`, `pending="auto"`, `switching="lazy"`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .._utils.checks import one_of
from ..errors import InvalidInput, warn
from ..kernels import kernel_for
from .base import Policy
from .change_detection import EDetector
from .constraints import Constraints, OnAverage
from .explore import NoExploration
from .memory import Memory
from .pending import Hallucinated, Ignored
from .scores import UpperConfidenceBound
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


NOTHING_FITTED = "Beside `Safe` nothing is fitted, since a kernel that is learned certifies nothing"
GIVE_NOISE = "Give `auto` the `noise` of the rewards, which are then taken to vary by ten times as much."


def parts_for_constraints(constraints: Constraints, policy: Policy) -> dict[str, Any]:
    """Returns the parts, by slot, that replace those of `auto` under these constraints.

    Raises:
        InvalidInput: under `Safe`, if the noise by which it certifies is unknown.
    """
    from .safe import Safe

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
