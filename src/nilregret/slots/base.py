"""The base class of all parts of a policy."""

from __future__ import annotations

from abc import ABC
from typing import Any, Self

from .._utils.copying import take_back

Policy = Any  # The class `Policy` is made of parts, so no part imports it.


class Part(ABC):  # noqa: B024 - each slot declares abstract methods of its own
    """A frozen description that fills a slot of a policy.

    A part of your own is a frozen dataclass decorated with `nilregret.slots.described`. Equal descriptions must decide
    equally. A part therefore holds numbers and other descriptions, and nothing that changes. State of a run lives in an
    object that the part creates (`Memory.watch`, `Objective.begin`, `Confidence.guess`).
    """

    def __init_subclass__(cls) -> None:
        """Takes `batched` back from a subclass of a finished class, unless it says so itself."""
        super().__init_subclass__()
        if any(getattr(base, "__final__", False) for base in cls.__bases__):
            take_back(cls, "batched", False)

    @property
    def batched(self) -> bool:
        """True if one call may serve several simulated worlds, whose arrays then have a leading axis `(worlds, ...)`.

        Numbers of each world have the shape `(worlds, 1)`. Otherwise worlds are simulated one by one.
        """
        return False

    def for_arms(self, before: int, after: int) -> Self:  # noqa: ARG002
        """Returns this part for more arms than it was made for, if arms are added to a running study.

        Args:
            before: number of arms for which it was made.
            after: number of arms from now on.
        """
        return self

    def for_space(self, before: Policy, after: Policy) -> Self:  # noqa: ARG002
        """Returns this part for a policy on a changed space.

        Args:
            before: the policy for which it was made.
            after: the policy on the changed space, with this part.
        """
        return self

    def check(self, policy: Policy) -> None:  # noqa: B027 - most parts fit every policy
        """Raises `InvalidInput` if this part makes no sense in the policy. Called when a policy is made."""
