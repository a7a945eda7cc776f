"""What all parts of a policy have in common."""

from __future__ import annotations

from abc import ABC
from typing import Any, Protocol

from ..domains.domain import Domain
from ..kernels import Kernel


class Combination(Protocol):
    """A policy as its parts see it when they are asked whether they go together: the attributes of `Policy`."""

    @property
    def domain(self) -> Domain:
        """See `Policy`."""

    @property
    def context(self) -> Domain | None:
        """See `Policy`."""

    @property
    def kernel(self) -> Kernel:
        """See `Policy`."""

    @property
    def noise(self) -> float:
        """See `Policy`."""

    @property
    def regularization(self) -> float:
        """See `Policy`."""

    @property
    def prior_mean(self) -> float:
        """See `Policy`."""

    @property
    def memory(self) -> Any:
        """See `Policy`."""

    @property
    def explore(self) -> Any:
        """See `Policy`."""

    @property
    def pending(self) -> Any:
        """See `Policy`."""

    @property
    def objective(self) -> Any:
        """See `Policy`."""

    @property
    def confidence(self) -> Any:
        """See `Policy`."""

    @property
    def score(self) -> Any:
        """See `Policy`."""

    @property
    def refit(self) -> Any:
        """See `Policy`."""

    @property
    def constraints(self) -> Any:
        """See `Policy`."""

    @property
    def switching(self) -> Any:
        """See `Policy`."""

    @property
    def sketch(self) -> Any:
        """See `Policy`."""

    def of_channel(self, j: int) -> Any:
        """See `Policy`."""


class Part(ABC):  # noqa: B024 - what a part does is said by its slot
    """A frozen description that fills a slot of a policy.

    One of your own is a frozen dataclass decorated with `nilregret.slots.described`; equal descriptions
    decide
    equally, so it holds numbers and other descriptions, and nothing that changes. What a part has to remember during a
    run is in an object that it makes afresh (`Memory.watch`, `Objective.begin`, `Confidence.guess`).
    """

    def check(self, policy: Combination) -> None:  # noqa: B027 - most go with everything
        """Refuse, by an `InvalidInput`, a policy in which this part makes no sense; called when the policy is made."""
