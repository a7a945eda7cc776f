"""What makes a point attractive: the number that the maximiser maximises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np

from ..checks import Array
from ..serialize import described
from .confidence import Envelope


class Score(ABC):
    """A number for each candidate, larger is better."""

    @abstractmethod
    def __call__(self, envelope: Envelope) -> Array:
        """Scores of the n candidates in the envelope, `(n,)`."""

    @abstractmethod
    def partials(self, envelope: Envelope) -> tuple[Array, Array]:
        """Derivatives of each score in its mean and in its standard deviation, each `(n,)`."""


@final
@described
@dataclass(frozen=True)
class UpperConfidenceBound(Score):
    """Optimism: the upper bound of f (Srinivas et al. 2010, eq. 6)."""

    def __call__(self, envelope: Envelope) -> Array:
        """Mu + width * sigma, `(n,)`."""
        return envelope.upper

    def partials(self, envelope: Envelope) -> tuple[Array, Array]:
        """1 and the width."""
        return np.ones_like(envelope.mean), np.full_like(envelope.std, envelope.width)
