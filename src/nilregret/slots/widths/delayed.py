"""Widths for late rewards: censored (Verma, Dai & Low 2022, eq. 2, 3) or hallucinated (Desautels et al. 2014).

| symbol | name | meaning | shape |
|---|---|---|---|
| m | `window` | time within which a reward must come, rounds or seconds | scalar |
| B_y | `reward_bound` | bound on the rewards above the minimum, reward units | scalar |
| B_f | `norm_bound` | bound on ||f - minimum||_k, reward units | scalar |
| R | `noise` | sub-Gaussian constant of the noise, reward units | scalar |
| beta_t, nu_t | | width without and with the missing rewards | scalar |
| C | `least` | bound on the information in pending trials given the observed ones, nats | scalar |
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, cast, final

import numpy as np

from ..._utils.checks import LARGEST_REWARD, LARGEST_VARIANCE, Array, flag, integer, number, settle, shown
from ..._utils.dataclass import field, replace
from ...errors import InvalidInput
from ...serialize import description
from ..base import Policy
from ..envelope import Bounds, Confidence, Envelope, Progress, Width, Window, checked_delta, square_root
from .self_normalized import Gain, RealisedGain, checked_gain

LARGEST_GAIN = 300.0  # nats, whose exponential is practically infinite and still a number


def _total(deviations: Array) -> float:
    """Returns the sum of deviations `(k,)`, or those of several worlds, `(worlds, k)`, as `(worlds, 1)`."""
    return float(deviations.sum()) if deviations.ndim == 1 else cast(float, deviations.sum(axis=1, keepdims=True))


@final
@description(frozen=True, kw_only=True)
class CensoredWidth(Width):
    """nu_t = B_y sum_{s=t-m}^{t-1} sigma_{t-1}(x_s) + beta_t, the sum over the last m trials, observed or not.

    beta_t = B_f + (R + B_y) sqrt(2 (gamma_{t-1} + 1 + log(parts / delta))), with `parts` 2 for GP-UCB-SDF and 4 for
    GP-TS-SDF, or a constant `beta` (1 in the paper's experiments). By Theorem 1, rho_m f lies within nu_t sigma of mu
    for lambda >= 1. Here rho_m is the probability of a reward within the window.

    For lambda < 1 the proof leaves factors that it otherwise bounds by 1. They are 1 / lambda before the sum (eq. 5 and
    the remark after it) and 1 / sqrt(lambda) before R + B_y (eq. 9). Eq. 6 uses Chowdhury & Gopalan's Theorem 2 for the
    kernel k / lambda with a ridge of 1, under which f has the norm sqrt(lambda) B_f. The factors belong to the theorem,
    and a constant `beta` has none.

    Attributes:
        ridge: lambda where it is below 1.
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
    ridge: float = 1.0

    def __post_init__(self) -> None:
        settle(self, ridge=number("ridge", self.ridge, low=0.0, high=1.0, open_low=True))
        settle(self, window=number("window", self.window, low=0.0))
        for name in ("reward_bound", "norm_bound", "noise"):
            settle(self, **{name: number(name, getattr(self, name), low=0.0, high=LARGEST_REWARD)})
        if self.beta is not None:
            why = "It multiplies the std."
            settle(self, beta=number("beta", self.beta, low=0.0, high=LARGEST_REWARD, why=why))
        settle(
            self,
            in_time=flag("in_time", self.in_time),
            gain=checked_gain(self.gain),
            parts=integer("parts", self.parts, low=1),
            delta=checked_delta(self.delta),
            ridge_large=flag("ridge_large", self.ridge_large),
        )

    @property
    def recent(self) -> Window:
        """Window of the trials in the sum."""
        return Window(self.window, self.in_time)

    @property
    def valid_for(self) -> str:
        """Claim "rho_m f" of Theorem 1, which is not f itself. `Policy.valid_for` also checks the censoring."""
        ridge_known = self.ridge_large or self.ridge < 1.0
        return "rho_m f" if self.beta is None and self.gain.proved and ridge_known else "none"

    def suits(self, policy: Policy) -> bool:
        """Returns True if lambda >= `ridge` and the noise is at most R."""
        return bool(policy.regularization >= self.ridge and policy.noise <= self.noise)

    @property
    def batched(self) -> bool:
        """True if the information gain is."""
        return self.gain.batched

    def width(self, t: int, progress: Progress) -> float:
        """Returns nu_t of eq. 2 (or 3)."""
        missing = 0.0 if progress.recent is None else self.reward_bound * _total(progress.recent())
        return missing / self.ridge + self._beta(t, progress) if self.beta is None else missing + self.beta

    def _beta(self, t: int, progress: Progress) -> float:
        gamma = self.gain(t - 1, progress)
        spread = square_root(2.0 * (gamma + 1.0 + math.log(self.parts / self.delta)))
        noise = (progress.noise_factor * self.noise + self.reward_bound) / math.sqrt(self.ridge)
        return self.norm_bound + noise * spread


@final
@description(frozen=True, kw_only=True)
class CensoredBounds(Confidence):
    """Bounds of rho_m f that use which rewards are missing. They are never wider than those of `CensoredWidth`.

    Rewards, minus the minimum, lie in [0, B_y]. Let w_s = y_s 1{d_s <= m} be the final value of trial s. Let mu* be the
    posterior mean given all w_s at once, which is not computable yet.

    (a) Given everything up to trial s, w_s has the mean rho_m f(x_s), since the delay does not depend on y_s. It lies
    in [0, B_y], so its deviation is B_y/2-sub-Gaussian (Hoeffding's lemma). As x_s is a function of the earlier w, it
    does not matter that it used only some of them. One self-normalised bound for the function rho_m f replaces the two
    of eq. 6 (Abbasi-Yadkori 2012, Corollary 3.6, for any lambda > 0). The norm of rho_m f is at most B_f:

        |mu*(x) - rho_m f(x)| <= beta_t sigma(x),
        beta_t = B_f + B_y / (2 sqrt(lambda)) sqrt(2 (gamma_{t-1} + log(1 / delta))).

    (b) The current value is w_s, except for pending trials of the last m. These count as 0, and their w_s is somewhere
    in [0, B_y]. The mean is linear in the values, with d mu(x) / d y_s = k_t(x, x_s) / lambda. This replaces eq. 5 by

        -(B_y / lambda) sum max(0, -k_t(x, x_s)) <= mu*(x) - mu(x) <= (B_y / lambda) sum max(0, k_t(x, x_s)),

    with sums over these trials alone. As |k_t(x, x_s)| <= sigma(x) sigma(x_s), neither sum exceeds that of nu_t
    sigma(x).

    Attributes:
        ridge: lambda, or less.
    """

    window: float
    in_time: bool = False
    reward_bound: float
    norm_bound: float
    ridge: float
    gain: Gain = field(default_factory=RealisedGain)
    delta: float = 0.1

    def __post_init__(self) -> None:
        settle(self, ridge=number("ridge", self.ridge, low=0.0, high=LARGEST_VARIANCE, open_low=True))
        settle(self, window=number("window", self.window, low=0.0), in_time=flag("in_time", self.in_time))
        for name in ("reward_bound", "norm_bound"):
            settle(self, **{name: number(name, getattr(self, name), low=0.0, high=LARGEST_REWARD)})
        settle(self, gain=checked_gain(self.gain), delta=checked_delta(self.delta))

    @property
    def recent(self) -> Window:
        """Window of the trials in the sums."""
        return Window(self.window, self.in_time)

    @property
    def valid_for(self) -> str:
        """Claim "rho_m f", as in Theorem 1."""
        return "rho_m f" if self.gain.proved else "none"

    def suits(self, policy: Policy) -> bool:
        """Returns True if lambda >= `ridge`."""
        return bool(policy.regularization >= self.ridge)

    def bounds(self, t: int, progress: Progress) -> MissingAnswers:
        """Returns the bounds of (a) and (b)."""
        spread = math.sqrt(2.0 * (self.gain(t - 1, progress) - math.log(self.delta)))
        noise = 0.5 * self.reward_bound / math.sqrt(self.ridge)
        return MissingAnswers(self.norm_bound + noise * spread, self.reward_bound, progress.pull)


@final
class MissingAnswers(Bounds):
    """Bounds mean +- beta * std, widened by the possible effect of missing rewards."""

    pointwise: ClassVar[bool] = False
    moves: ClassVar[bool] = True

    def __init__(self, beta: float, reward_bound: float, pull: Callable[[Any], Array] | None) -> None:
        self._beta, self._reward_bound, self._pull = beta, reward_bound, pull

    def __call__(self, mean: Array, std: Array, rows: Any = None) -> Envelope:
        """Returns the envelope at n points."""
        lower, upper = mean - self._beta * std, mean + self._beta * std
        if self._pull is not None:
            pull = self._reward_bound * self._pull(rows)
            upper += np.maximum(pull, 0.0).sum(axis=1)
            lower -= np.maximum(-pull, 0.0).sum(axis=1)
        return Envelope(mean, std, None, lower=lower, upper=upper)


@final
@description(frozen=True, kw_only=True)
class Inflated(Width):
    """exp(C) times another width, for a variance that counts pending trials as observed (GP-BUCB).

    Desautels, Krause & Burdick 2014, the regret theorem of GP-BUCB: beta_t = exp(2 C) times that of GP-UCB, where
    `I(f(x); y_unanswered | y_answered)` <= C for all x. The deviation given the observed trials alone is exp of that
    information times the deviation given all, at every x. The bounds of f are then those given the observed trials, or
    wider. The information about all of f at once is known (half a difference of log determinants) and no smaller. C is
    this information, or `least` if that is larger, so the condition always holds. Without pending trials and with
    `least` = 0 there is no factor.
    """

    base: Width
    least: float = 0.0  # constant C of the theorem
    delta: float = field(init=False)

    hallucinated: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.base, Width):
            raise InvalidInput(
                f"`base` is {shown(self.base)}: it must be a width.", advice="Widths are in `nilregret.slots.envelope`."
            )
        why = "It bounds an information gain, in nats; exp of it multiplies the width."
        settle(self, least=number("least", self.least, low=0.0, high=LARGEST_GAIN, why=why))
        settle(self, delta=self.base.delta)

    @property
    def recent(self) -> Window | None:
        """Window of the other width."""
        return self.base.recent

    @property
    def valid_for(self) -> str:
        """Claim of the other width. Delays must not depend on the rewards."""
        return self.base.valid_for

    def suits(self, policy: Policy) -> bool:
        """Returns True if the other width suits the policy."""
        return self.base.suits(policy)

    @property
    def sub_gaussian(self) -> bool:
        """True if the other width is for sub-Gaussian noise."""
        return self.base.sub_gaussian

    @property
    def for_all_at_once(self) -> bool:
        """True if the other width holds for all functions at once."""
        return self.base.for_all_at_once

    @property
    def weighs(self) -> bool:
        """True if the other width holds where answers have a noise of their own."""
        return self.base.weighs

    @property
    def why_one_noise(self) -> str:
        """The reason of the other width."""
        return self.base.why_one_noise

    def for_noise(self, noise: float | None, regularization: float) -> Inflated:
        """Returns the factor times the other width for this noise."""
        return replace(self, base=cast("Width", self.base.for_noise(noise, regularization)))

    @property
    def batched(self) -> bool:
        """True if the other width is."""
        return self.base.batched

    def width(self, t: int, progress: Progress) -> float:
        """Returns exp(C) beta_t^{1/2}."""
        answers = progress.posterior if progress.answers is None else progress.answers
        gain = progress.posterior.information_gain - answers.information_gain  # I(f; y_unanswered | y_answered)
        if isinstance(gain, np.ndarray):
            return cast(float, np.exp(np.clip(gain, self.least, LARGEST_GAIN))) * self.base.width(t, progress)
        return math.exp(min(max(gain, self.least), LARGEST_GAIN)) * self.base.width(t, progress)
