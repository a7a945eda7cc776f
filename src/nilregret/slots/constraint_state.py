"""Run-time state of a constraint rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from .._utils.checks import Array, frozen
from ..storage.record import Trial
from .envelope import Envelope


class Expected(NamedTuple):
    """A constraint value and its prediction.

    Attributes:
        value: the observed value.
        seen: predicted mean, std and bounds at the single point.
        noise: standard deviation of the noise of the value.
        prior: prior standard deviation of g at the point, infinite if it is unknown.
        center: prior mean of g at the point.
    """

    value: float
    seen: Envelope
    noise: float
    prior: float
    center: float


class DualState:
    """Run-time state of a constraint rule, such as dual prices or the risk spent. Most rules have none.

    The state is a function of the recorded trials.

    Attributes:
        prices: phi, the price of a violation of each constraint, `(m,)`, read-only.
    """

    prices: Array = frozen(np.zeros(0))

    @property
    def remarks(self) -> Mapping[str, str]:
        """Warnings for the user, one sentence for each kind."""
        return {}

    def hear(self, trial: Trial, expected: Callable[[], list[Expected]]) -> None:
        """Records the constraint values of a trial. Called once a trial.

        Trials that come together are recorded in the order of their numbers.

        Args:
            trial: the trial with its constraint values.
            expected: returns the prediction of each value, made before any value that came together with it.
        """

    def due(self, rounds: int) -> bool:  # noqa: ARG002
        """Returns True if `advance` would change the state."""
        return False

    def advance(self, rounds: int) -> None:
        """Updates the state before a decision, when so many rounds have passed and their values are recorded."""

    watches = False  # True if `asked` reads the bounds

    def asked(self, trial: Trial, limits: Callable[[], list[Envelope]]) -> None:
        """Records that a trial was asked.

        Args:
            trial: the new trial.
            limits: returns the bounds of each g_j at its point at the time of asking.
        """

    def forget_before(self, first: int) -> None:
        """Drops the trials before this one."""

    def copy(self) -> DualState:
        """Returns an independent copy."""
        return self
