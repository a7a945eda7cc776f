"""What makes a point attractive: the number that the maximiser maximises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

from ..checks import Array
from ..serialize import described
from .confidence import Envelope


class Score(ABC):
    """A number for each candidate, larger is better."""

    @abstractmethod
    def __call__(self, envelope: Envelope) -> Array:
        """Scores of the n candidates in the envelope, `(n,)`."""


@final
@described
@dataclass(frozen=True)
class UpperConfidenceBound(Score):
    """Optimism: the upper bound of f (Srinivas et al. 2010, eq. 6)."""

    def __call__(self, envelope: Envelope) -> Array:
        """Mu + width * sigma, `(n,)`."""
        return envelope.upper
