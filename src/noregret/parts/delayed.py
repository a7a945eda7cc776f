"""The width for censored answers (Verma, Dai & Low 2022, eq. 2 and 3).

| symbol | name | meaning | shape |
|---|---|---|---|
| m | `window` | how long an answer is waited for, rounds or seconds | scalar |
| B_y | `reward_bound` | bound on the rewards above the minimum, reward units | scalar |
| B_f | `norm_bound` | bound on ||f - minimum||_k, reward units | scalar |
| R | `noise` | sub-Gaussian constant of the noise, reward units | scalar |
| beta_t, nu_t | | width without and with what is missing | scalar |
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import final

from ..checks import integer, number
from ..serialize import described
from .confidence import Confidence, Progress, Window, checked_delta
from .gains import Gain, RealisedGain


@final
@described
@dataclass(frozen=True, kw_only=True)
class CensoredWidth(Confidence):
    """nu_t = B_y sum_{s=t-m}^{t-1} sigma_{t-1}(x_s) + beta_t, the sum over the last m trials, answered or not.

    beta_t = B_f + (R + B_y) sqrt(2 (gamma_{t-1} + 1 + log(parts / delta))), with `parts` 2 for GP-UCB-SDF and 4 for
    GP-TS-SDF, or a constant `beta` (1 in the paper's experiments). By Theorem 1 rho_m f lies within nu_t sigma of mu,
    rho_m the probability of an answer within the window, for lambda >= 1.
    """

    window: float
    in_time: bool = False
    reward_bound: float
    norm_bound: float
    noise: float
    beta: float | None = None
    gain: Gain = field(default_factory=RealisedGain)
    parts: int = 2
    delta: float = 0.1
    ridge_large: bool = True

    def __post_init__(self) -> None:
        for name in ("window", "reward_bound", "norm_bound", "noise"):
            object.__setattr__(self, name, number(name, getattr(self, name), low=0.0))
        if self.beta is not None:
            object.__setattr__(self, "beta", number("beta", self.beta, low=0.0, why="It multiplies the std."))
        integer("parts", self.parts, low=1)
        object.__setattr__(self, "delta", checked_delta(self.delta))

    @property
    def recent(self) -> Window:
        """The trials of the sum."""
        return Window(self.window, self.in_time)

    @property
    def valid_for(self) -> str:
        """What Theorem 1 covers is "rho_m f", not f itself; `Policy.valid_for` asks for its censoring too."""
        return "rho_m f" if self.beta is None and self.gain.proved and self.ridge_large else "none"

    def width(self, t: int, progress: Progress) -> float:
        """nu_t of eq. 2 (or 3)."""
        missing = 0.0 if progress.recent is None else self.reward_bound * float(progress.recent().sum())
        return missing + (self._beta(t, progress) if self.beta is None else self.beta)

    def _beta(self, t: int, progress: Progress) -> float:
        gamma = self.gain(t - 1, progress)
        spread = math.sqrt(2.0 * (gamma + 1.0 + math.log(self.parts / self.delta)))
        return self.norm_bound + (progress.noise_factor * self.noise + self.reward_bound) * spread
