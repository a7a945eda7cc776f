"""Whether a round is forced: a uniform one, or one that is played for its uncertainty alone."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, final

from ..checks import LARGEST_REWARD, integer, number
from ..errors import InvalidInput
from ..randomness import Randomness
from ..serialize import described
from .base import Combination, Part
from .memory import FAR
from .scores import PointwiseScore, PosteriorDeviation


class Explore(Part):
    """Forced exploration."""

    ever: ClassVar[bool] = True  # whether any round is forced

    @abstractmethod
    def due(self, uniform: int, history: int, randomness: Randomness) -> bool:
        """Whether the next round is forced.

        Args:
            uniform: forced uniform rounds among those that count.
            history: rounds that count, since the last restart or in the window.
            randomness: of the trial; `randomness.generator` is made when it is first asked for.
        """

    @property
    def score(self) -> PointwiseScore | None:
        """What makes a point attractive in a forced round; None for a uniform draw."""
        return None

    @property
    def uniform(self) -> bool:
        """Whether it makes uniform rounds, which tests of Avanesov's kind live on."""
        return self.ever and self.score is None


@final
@described
@dataclass(frozen=True)
class NoExploration(Explore):
    """Never."""

    ever: ClassVar[bool] = False

    def due(self, uniform: int, history: int, randomness: Randomness) -> bool:  # noqa: ARG002 - never
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

    def due(self, uniform: int, history: int, randomness: Randomness) -> bool:  # noqa: ARG002 - by counting alone
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

    def due(self, uniform: int, history: int, randomness: Randomness) -> bool:  # noqa: ARG002 - however many were uniform
        """The first rounds."""
        return history < self.rounds

    @property
    def score(self) -> PointwiseScore:
        """The posterior deviation."""
        return PosteriorDeviation()

    def check(self, policy: Combination) -> None:
        """A memory that grows beyond these rounds."""
        window = FAR - policy.memory.first_counted(0, FAR)
        if window <= self.rounds:
            raise InvalidInput(
                f"A window of {window} rounds never gets beyond {self.rounds} initial ones, so that every round would "
                "be one of uncertainty sampling: take a longer window or fewer of them."
            )
