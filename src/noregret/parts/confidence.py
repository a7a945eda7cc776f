"""Which lower and upper bounds hold for f, and what they assume.

| symbol | name | meaning | shape |
|---|---|---|---|
| beta_t^{1/2} | `width` | what multiplies the standard deviation, always | scalar |
| mu, sigma | `mean`, `std` | posterior of f | (n,) |
| delta | `delta` | failure probability of the bounds, over all rounds and points together | (0, 1) |
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

from ..checks import Array, number
from ..posterior import Posterior
from ..serialize import described


@dataclass(frozen=True, slots=True)
class Envelope:
    """Bounds of f at n points: mean +- width * std.

    Attributes:
        mean: posterior mean, `(n,)`.
        std: posterior standard deviation of f, `(n,)`.
        width: multiplier of the standard deviation.
        valid_for: what lies inside for all rounds and points at once, with probability at least 1 - delta: "f", or
            "none" where nothing is proved (then no report may call it certified).
    """

    mean: Array
    std: Array
    width: float
    valid_for: str

    @property
    def lower(self) -> Array:
        """Lower bounds, `(n,)`."""
        return self.mean - self.width * self.std

    @property
    def upper(self) -> Array:
        """Upper bounds, `(n,)`."""
        return self.mean + self.width * self.std


class Confidence(ABC):
    """How wide the envelope is in round t (counted from 1)."""

    delta: float

    @property
    @abstractmethod
    def valid_for(self) -> str:
        """See `Envelope.valid_for`."""

    @abstractmethod
    def width(self, t: int, *, posterior: Posterior, points: int) -> float:
        """The multiplier of the standard deviation in round t, over a domain of so many points."""


@final
@described
@dataclass(frozen=True, kw_only=True)
class FiniteBayes(Confidence):
    """Srinivas et al. 2010, Theorem 1: f a sample of the Gaussian process, D finite, Gaussian noise.

    beta_t = scale * 2 log(|D| t^2 pi^2 / (6 delta)); the width is its square root. With `scale` = 1 the envelope holds
    for all arms and rounds with probability at least 1 - delta (Lemma 5.1); the paper's experiments use 1/5, for
    which nothing is proved.
    """

    delta: float = 0.1
    scale: float = 1.0
    noise_matched: bool = True  # whether lambda is the noise variance sigma^2, as in eq. 1 and Lemma 5.1

    def __post_init__(self) -> None:
        delta = number(
            "delta",
            self.delta,
            low=0.0,
            high=1.0,
            open_low=True,
            open_high=True,
            why="It is the probability that the bounds fail; 0.1 is a common choice.",
        )
        object.__setattr__(self, "delta", delta)
        object.__setattr__(self, "scale", number("scale", self.scale, low=0.0, why="It multiplies beta_t."))

    @property
    def valid_for(self) -> str:
        """Valid for f unless beta_t was scaled down or lambda is not the noise variance."""
        return "f" if self.scale >= 1.0 and self.noise_matched else "none"

    def width(self, t: int, *, posterior: Posterior, points: int) -> float:  # noqa: ARG002 - needs no posterior
        """beta_t^{1/2} of Theorem 1."""
        return math.sqrt(self.scale * 2.0 * math.log(points * t**2 * math.pi**2 / (6.0 * self.delta)))
