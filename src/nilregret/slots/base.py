"""What all parts of a policy have in common."""

from __future__ import annotations

from abc import ABC
from typing import Any

Policy = Any  # the `Policy` of the room above, which is made of parts and so is imported by none of them


class Part(ABC):  # noqa: B024 - what a part does is said by its slot
    """A frozen description that fills a slot of a policy.

    One of your own is a frozen dataclass decorated with `nilregret.slots.described`; equal descriptions
    decide
    equally, so it holds numbers and other descriptions, and nothing that changes. What a part has to remember during a
    run is in an object that it makes afresh (`Memory.watch`, `Objective.begin`, `Confidence.guess`).
    """

    def check(self, policy: Policy) -> None:  # noqa: B027 - most go with everything
        """Refuse, by an `InvalidInput`, a policy in which this part makes no sense; called when the policy is made."""
