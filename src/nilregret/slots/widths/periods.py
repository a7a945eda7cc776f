"""Width from the proof of GP-UCB-CPD, for functions of bounded norm that change at unknown times."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from ..._utils.checks import LARGEST_REWARD, flag, integer, number, settle
from ..._utils.serialize import described
from ...theory.change.schedules import ucb_regularization
from ..base import Policy
from ..envelope import Progress, Width, square_root
from .gains import Gain, RealisedGain, checked_gain


@final
@described
@dataclass(frozen=True, kw_only=True)
class PeriodRkhs(Width):
    """Avanesov, eq. A.3: beta_t = D (2 F^2 + 300 eta_t log^3(t T^2)), t since the last restart. The width is its root.

    The bounds hold at all points and rounds of one stationary period with probability at least 1 - 3 / T^2 (Lemma B.5
    with delta = T^{-2} and u = 2 log T). Assumptions are g-sub-Gaussian noise, lambda = 6 g^2 log T, and D >= 1. eta_t
    must be the maximum information gain (B.6) or a bound on it. In all K <= T periods they hold with probability at
    least 1 - 3 / T. The paper has 2 in place of 3, since its (B.14) drops the factor 2 of (B.13), for two tails of the
    noise.
    """

    horizon: int  # T
    norm_bound: float  # F
    gain: Gain  # eta_t
    constant: float = 1.0  # D
    ridge_matched: bool = True  # True if lambda is that of eq. A.1

    def __post_init__(self) -> None:
        settle(self, horizon=integer("horizon", self.horizon, low=2, why="It is the number of rounds T."))
        settle(self, gain=checked_gain(self.gain), ridge_matched=flag("ridge_matched", self.ridge_matched))
        why = "It bounds the norm of each period's function, in the units of the reward."
        bound = number("norm_bound", self.norm_bound, low=0.0, high=LARGEST_REWARD, open_low=True, why=why)
        settle(self, norm_bound=bound)
        settle(self, constant=number("constant", self.constant, low=0.0, high=LARGEST_REWARD, open_low=True))

    @property
    def delta(self) -> float:  # type: ignore[override]   # a property here, a field in other parts
        """3 / T^2, the failure probability within a period, which the user does not choose."""
        return 3.0 / self.horizon**2  # T^{-2} + 2 exp(-u), u = 2 log T

    @property
    def valid_for(self) -> str:
        """Claim "f" within a period, with a bound on eta_t.

        The realised gain is no such bound (as in `BoundedNoise`).
        """
        bounded = self.gain.proved and not isinstance(self.gain, RealisedGain)
        return "f" if bounded and self.constant >= 1.0 and self.ridge_matched else "none"

    def suits(self, policy: Policy) -> bool:
        """Returns True if lambda = 6 g^2 log T, eq. A.1."""
        noise = policy.noise
        return bool(noise > 0.0 and policy.regularization == ucb_regularization(noise=noise, horizon=self.horizon))

    @property
    def batched(self) -> bool:
        """True if the information gain is."""
        return self.gain.batched

    def width(self, t: int, progress: Progress) -> float:
        """Returns the root of eq. A.3."""
        gain = self.gain(t, progress)
        beta = 2.0 * self.norm_bound**2 + 300.0 * gain * math.log(t * self.horizon**2) ** 3
        return square_root(self.constant * beta)
