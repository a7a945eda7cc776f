"""What a world of constraints keeps of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from .._utils.checks import Array, frozen
from ..storage.record import Trial
from .envelope import Envelope


class Expected(NamedTuple):
    """A constraint value, and what was expected of it before.

    Attributes:
        value: as told.
        seen: mean, std and bounds at its point, of one point.
        noise: standard deviation of the value's noise.
        prior: standard deviation of g there before anything was seen; infinite where nobody knows.
        center: mean of g there before anything was seen.
    """

    value: float
    seen: Envelope
    noise: float
    prior: float
    center: float


class DualState:
    """What a world keeps of a run: prices, or what was risked. Most keep nothing. A function of what has happened.

    Attributes:
        prices: phi, `(m,)`, read-only.
    """

    prices: Array = frozen(np.zeros(0))

    @property
    def remarks(self) -> Mapping[str, str]:
        """What whoever asks should know, a sentence for each kind."""
        return {}

    def hear(self, trial: Trial, expected: Callable[[], list[Expected]]) -> None:
        """Take note of a trial's constraint values, once, by number among those that came together.

        Args:
            trial: with its values.
            expected: gives what was expected of each, before any of those that came together.
        """

    def due(self, rounds: int) -> bool:  # noqa: ARG002 - mostly not
        """Whether `advance` would change anything."""
        return False

    def advance(self, rounds: int) -> None:
        """So many rounds have passed, and what came in has been heard; before each decision."""

    watches = False  # whether `asked` looks at the bounds

    def asked(self, trial: Trial, limits: Callable[[], list[Envelope]]) -> None:
        """A trial has been asked for; `limits()` are the bounds at its point as they were then, one for each g_j."""

    def forget_before(self, first: int) -> None:
        """Trials before this one count no more."""

    def copy(self) -> DualState:
        """An independent copy."""
        return self
