"""Whether a round is forced: a uniform one, or one that is played for its uncertainty alone."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

from ..checks import LARGEST_REWARD, integer, number
from ..serialize import described
from .scores import PointwiseScore, PosteriorDeviation


class Explore(ABC):
    """Forced exploration."""

    @abstractmethod
    def due(self, uniform: int, history: int) -> bool:
        """Whether the next round is forced, after `history` rounds since the last restart, `uniform` of them so."""

    @property
    def score(self) -> PointwiseScore | None:
        """What makes a point attractive in a forced round; None for a uniform draw."""
        return None


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
        object.__setattr__(self, "xi", number("exploration", self.xi, low=0.0, high=LARGEST_REWARD, why=why))

    def due(self, uniform: int, history: int) -> bool:
        """Line 6."""
        return self.xi > 0.0 and uniform <= self.xi * math.sqrt(history)


@final
@described
@dataclass(frozen=True)
class UncertaintySampling(Explore):
    """The first rounds play the largest posterior deviation (Desautels, Krause & Burdick 2014, initialisation).

    Afterwards no trial can tell much more than any other did, which keeps small what trials tell that are waited for
    (`conditional_gain_bound`). Needs no answers.
    """

    rounds: int

    def __post_init__(self) -> None:
        why = "It counts rounds of uncertainty sampling."
        object.__setattr__(self, "rounds", integer("rounds", self.rounds, low=1, why=why))

    def due(self, uniform: int, history: int) -> bool:  # noqa: ARG002 - however many were uniform
        """The first rounds."""
        return history < self.rounds

    @property
    def score(self) -> PointwiseScore:
        """The posterior deviation."""
        return PosteriorDeviation()
