"""Whether a round is a forced uniform one."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

from ..checks import number
from ..serialize import described


class Explore(ABC):
    """Forced exploration."""

    @abstractmethod
    def due(self, uniform: int, history: int) -> bool:
        """Whether the next round is uniform, after `history` rounds since the last restart, `uniform` of them so."""


@final
@described
@dataclass(frozen=True)
class NoExploration(Explore):
    """Never."""

    def due(self, uniform: int, history: int) -> bool:  # noqa: ARG002 - never
        """No."""
        return False


@final
@described
@dataclass(frozen=True)
class UniformExploration(Explore):
    """While |uniform| <= xi sqrt(|history|) (Avanesov, Algorithm 2, line 6), `xi` > 0.

    With xi = 0 the printed rule would still make the first round of each period a uniform one; here it makes none, so
    that the policy is then the one without forced rounds.
    """

    xi: float = math.sqrt(3.0)

    def __post_init__(self) -> None:
        why = "It sets how many rounds are uniform: about xi sqrt(t) of t."
        object.__setattr__(self, "xi", number("exploration", self.xi, low=0.0, why=why))

    def due(self, uniform: int, history: int) -> bool:
        """Line 6."""
        return self.xi > 0.0 and uniform <= self.xi * math.sqrt(history)
