"""Widths for functions of bounded norm in the kernel's reproducing kernel Hilbert space, and their information gains.

| symbol | name | meaning | shape |
|---|---|---|---|
| B | `norm_bound` | bound on ||f||_k, of f - prior_mean, reward units | scalar |
| R | `noise` | sub-Gaussian constant of the noise, reward units | scalar |
| gamma_t | `gain` | information gain after t observations, nats | scalar |
| I(y_A; f) | `posterior.information_gain` | gain of the observations so far, 1/2 log det(I + K / lambda) | scalar |
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, final

import numpy as np

from ..._utils.checks import LARGEST_REWARD, Array, flag, integer, number, settle, shown
from ..._utils.copying import Copyable
from ..._utils.dataclass import field
from ...errors import InvalidInput
from ...gp import ArmPosterior, Posterior
from ...gp.protocol import RevisablePosterior
from ...kernels import Kernel
from ...serialize import description
from ...theory.change.schedules import ucb_regularization
from ...theory.rates import information_gain_rate
from ..base import Policy
from ..envelope import Guess, Progress, Width, checked_delta, checked_scale, is_matched, square_root


class Gain(ABC):
    """An information gain after `count` observations, nats."""

    proved: bool  # True if a theorem may use the gain. A constant of unknown size may not be used.
    batched: bool = False  # True if it may be called for several worlds at once (see `Part.batched`)

    @abstractmethod
    def __call__(self, count: int, progress: Progress) -> float:
        """Returns the gain after `count` observations."""


@final
@description(frozen=True)
class RealisedGain(Gain):
    """The gain 1/2 log det(I + K / lambda) of the observations so far, at most gamma_t.

    The self-normalised inequality of Chowdhury & Gopalan 2017, Theorem 1, is about this determinant itself. Their
    widths therefore hold with it, and are narrower than with gamma_t.
    """

    proved = True
    batched = True

    def __call__(self, count: int, progress: Progress) -> float:  # noqa: ARG002
        """Returns the posterior's running sum (Srinivas et al. 2010, Lemma 5.3)."""
        return progress.posterior.information_gain


@final
@description(frozen=True)
class GreedyGain(Gain):
    """The upper bound (1 - 1/e)^{-1} I(greedy design of that size) on gamma_t (Srinivas et al. 2010, section 5.1)."""

    proved = True
    batched = True

    def __call__(self, count: int, progress: Progress) -> float:
        """Returns the bound on gamma_count, over the arms (and contexts) of the domain."""
        if progress.design is None:
            raise InvalidInput("The greedy bound needs finitely many arms: use `information_gain` 'realised'.")
        return progress.design().bound(count)


@final
@description(frozen=True, kw_only=True)
class RateGain(Gain):
    """The growth rate of gamma_t with a constant chosen by hand (Srinivas et al. 2010, Theorem 5).

    The theorem leaves the constant open, so nothing is proved with it. The experiments of Chowdhury & Gopalan 2017 use
    such a rate.

    Attributes:
        kernel: kernel of the rate.
        dimension: d, of the points.
        constant: multiplier of the rate.
    """

    kernel: Kernel
    dimension: int
    constant: float = 1.0

    proved = False
    batched = True

    def __post_init__(self) -> None:
        settle(
            self,
            constant=number("constant", self.constant, low=0.0, high=LARGEST_REWARD),
            dimension=integer("dimension", self.dimension, low=1),
        )
        information_gain_rate(self.kernel, self.dimension, 2.0)  # Raises an error for a kernel without a rate.

    def __call__(self, count: int, progress: Progress) -> float:  # noqa: ARG002
        """Returns the rate after `count` observations."""
        return information_gain_rate(self.kernel, self.dimension, count, constant=self.constant)


@final
@description(frozen=True, kw_only=True)
class ConstantGain(Gain):
    """A number chosen by hand, such as one found by cross-validation (Chowdhury & Gopalan 2017, section 6: 1)."""

    value: float

    proved = False
    batched = True

    def __post_init__(self) -> None:
        settle(self, value=number("information_gain", self.value, low=0.0, high=LARGEST_REWARD))

    def __call__(self, count: int, progress: Progress) -> float:  # noqa: ARG002
        """Returns the given number."""
        return self.value


def checked_gain(value: object) -> Gain:
    """Returns a valid gain, or raises `InvalidInput`."""
    if not isinstance(value, Gain):
        raise InvalidInput(
            f"`gain` must be a bound of the information gain, not {shown(value)}.",
            advice="They are in `nilregret.slots.widths.self_normalized`.",
        )
    return value


SCALES = 2.0 ** np.array([-5, -4, -3, -2, -1, 0, 1, 2, 4, 6, 9, 14, 20, 40])  # the large ones serve the first rewards
UNKNOWN = 1e50  # reward units, the bound without any information


def noise_bound(posterior: Posterior, delta: float) -> float:
    """Returns an upper bound of R that holds in all rounds with probability 1 - delta.

    Before the first reward it is 0, when there is no noise yet.

    Args:
        posterior: posterior of the rewards.
        delta: failure probability.
    """
    if not isinstance(posterior, RevisablePosterior) or not posterior.count:
        return 0.0 if isinstance(posterior, RevisablePosterior) else UNKNOWN
    n, least = posterior.count, 2.0 * math.log(2.0 * len(SCALES) / delta)
    squares = posterior.regularization * posterior.quadratic_form
    spread = n * np.log1p(2.0 * SCALES * math.exp(-posterior.log_determinant_ratio / n))
    found = _least(squares, spread - least)
    if isinstance(posterior, ArmPosterior) and (several := posterior.plays[posterior.plays > 1]).size:
        found = min(found, _least(posterior.scatter_within_arms, _of_replicates(several) - least))
    return math.sqrt(found)


def bounded_noise(noise: float | None, delta: float, progress: Progress) -> tuple[float, float]:
    """Returns R in the units of the targets, and the failure probability that is left for the width.

    If R is unknown, the first is an upper bound of R, which takes half of delta.
    """
    if noise is not None:
        return progress.noise_factor * noise, delta
    answers = progress.posterior if progress.answers is None else progress.answers
    return noise_bound(answers, 0.5 * delta), 0.5 * delta


def _least(squares: float, rest: Array) -> float:
    """Returns the least bound on R^2 over the informative scales."""
    said = rest > 0.0
    return float((2.0 * SCALES[said] * max(squares, 0.0) / rest[said]).min()) if said.any() else UNKNOWN**2


def _of_replicates(plays: Array) -> Array:
    """Returns the sum of ln(1 + 2 s (k - 1) / k) over k = 2, ..., n of arms of n plays, `(J,)`."""
    from scipy.special import gammaln

    counts, arms = np.unique(plays, return_counts=True)
    q = (2.0 * SCALES / (1.0 + 2.0 * SCALES))[:, None]
    each = (counts - 1.0) * np.log1p(2.0 * SCALES)[:, None] + gammaln(counts + 1.0 - q) - gammaln(2.0 - q)
    return np.asarray((each - gammaln(counts + 1.0)) @ arms)


NO_GUESS_WITH_FITS = "A norm can be guessed for a kernel that is given, not for one that is refitted."


def checked_bound(value: object) -> float:
    """Returns a valid bound on a norm, or raises `InvalidInput`."""
    why = "It bounds the norm of f in the kernel's RKHS, in the units of the reward."
    return number("norm_bound", value, low=0.0, high=LARGEST_REWARD, open_low=True, why=why)


def noise_or_none(value: object, *, guessed: bool) -> float | None:
    """Returns a valid R, or None if it is unknown, or raises `InvalidInput`."""
    if value is None and guessed:
        raise InvalidInput(
            "Neither norm nor noise is known: what contradicts a guess of the norm is more than the noise explains. "
            "Give `noise`, or `norm_bound` without `guess_norm`."
        )
    return None if value is None else number("noise", value, low=0.0, high=LARGEST_REWARD)


class NormWidth(Width):
    """A width for functions of bounded norm, which may be guessed. Subclasses are dataclasses with these fields."""

    norm_bound: float
    noise: float | None
    guessed: bool

    @property
    def stated_norm(self) -> float:
        """The norm bound B."""
        return self.norm_bound

    @property
    def weighs(self) -> bool:
        """True if R is known, and the information gain is that of the weighted answers.

        An answer with noise s, times R / s, is an R-sub-Gaussian answer about f times R / s. The inequalities hold for
        these, if s does not depend on the noise of that answer (Kirschner & Krause 2018, weighted least squares).
        """
        return self.noise is not None and (self.valid_for == "none" or self.realised)

    @property
    def why_one_noise(self) -> str:
        """The reason: R is unknown, or the gain is that of equally noisy answers."""
        if self.noise is None:
            return "its noise is unknown, and is bounded by the errors of answers that all have it: give `noise`"
        return (
            "its information gain is a bound for answers of the common noise, and an exact answer tells more: take "
            "`information_gain` 'realised'"
        )

    @property
    def realised(self) -> bool:
        """True if the width depends on the information gain that was realised, and on no bound of it."""
        return False

    @final
    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` if norm or noise is to be found under a kernel that is not given."""
        super().check(policy)
        # The test of a guess depends on the kernel, and a replay computes only the last fit.
        if self.guessed and policy.refit is not None:
            raise InvalidInput(NO_GUESS_WITH_FITS)
        if self.noise is None:
            sketched = getattr(policy, "sketch", None) is not None
            if sketched or policy.refit is not None or policy.memory.drift() is not None:
                raise InvalidInput(
                    "Noise that is not known is bounded by how far answers lie from what was predicted of one function "
                    "by one kernel, and here the kernel is refitted, f drifts, or a sketch stands for the data. Give "
                    "`noise`, or leave that part out."
                )
            if not policy.objective.admits(self):
                raise InvalidInput(
                    "Noise that is not known is bounded as that of Gaussian rewards of one standard deviation, and the "
                    f"rewards are said to be others ({type(policy.objective).__name__}). Their noise follows from what "
                    "they are: give `reward`, and leave `noise` out."
                )

    @final
    def guess(self) -> NormGuess | None:
        """Returns a guess of the norm bound, or None if it is known."""
        return NormGuess(self) if self.guessed else None


@final
@description(frozen=True, kw_only=True)
class SelfNormalized(NormWidth):
    """Chowdhury & Gopalan 2017, Theorem 2: B + R sqrt(2 (gamma_{t-1} + 1 + ln(parts / delta))).

    IGP-UCB has `parts` = 1. GP-TS has 2, since half of delta is left to the samples drawn (its section 4.2, v_t). The
    bounds hold at all points and rounds with probability at least 1 - delta (delta / parts), for R-sub-Gaussian noise
    and lambda >= 1. The paper takes lambda = 1 + 2/T. With a smaller lambda (its experiments use R^2) nothing is
    proved.

    Attributes:
        noise: R, or None for Gaussian noise of unknown standard deviation. The rewards then bound it
            (`nilregret.slots.widths.self_normalized`), which takes half of delta.
        guessed: True if `norm_bound` is only the first guess, which is doubled whenever the data contradict it
            (`NormGuess`). Nothing is proved before the guess has grown beyond the true norm.
    """

    own_ridge: ClassVar[bool] = True
    grows: ClassVar[bool] = True

    norm_bound: float  # B
    noise: float | None  # R, or None if it is unknown
    gain: Gain = field(default_factory=RealisedGain)
    parts: int = 1
    delta: float = 0.1
    ridge_large: bool = True  # lambda >= 1
    guessed: bool = False

    def __post_init__(self) -> None:
        settle(self, norm_bound=checked_bound(self.norm_bound))
        settle(self, noise=noise_or_none(self.noise, guessed=self.guessed))
        settle(
            self,
            gain=checked_gain(self.gain),
            parts=integer("parts", self.parts, low=1),
            delta=checked_delta(self.delta),
            ridge_large=flag("ridge_large", self.ridge_large),
            guessed=flag("guessed", self.guessed),
        )

    @property
    def realised(self) -> bool:
        """True if the gain is the realised one."""
        return isinstance(self.gain, RealisedGain)

    @property
    def valid_for(self) -> str:
        """Claim "f" if every assumption is known to hold."""
        return "f" if self.gain.proved and self.ridge_large and not self.guessed else "none"

    def suits(self, policy: Policy) -> bool:
        """Returns True if lambda >= 1 and the noise is at most R."""
        return policy.regularization >= 1.0 and (self.noise is None or policy.noise <= self.noise)

    @property
    def sub_gaussian(self) -> bool:
        """True if R is known. The bound of an unknown R is for Gaussian noise."""
        return self.noise is not None

    @property
    def for_all_at_once(self) -> bool:
        """True if R is known: Theorem 1 is about the noise alone, which is bounded once for all f with ||f||_k <= B.

        If R is unknown, an f that was chosen after the noise may hide some of it, and so make its bound small.
        """
        return self.noise is not None

    @property
    def batched(self) -> bool:
        """True if norm and noise are given, so that they are the same in all worlds."""
        return self.gain.batched and self.noise is not None and not self.guessed

    def width(self, t: int, progress: Progress) -> float:
        """Returns beta_t of Theorem 2 (IGP-UCB), v_t of section 3.2 (GP-TS)."""
        bound = progress.norm(self.norm_bound)
        gamma = self.gain(t - 1, progress)
        noise, delta = bounded_noise(self.noise, self.delta, progress)
        return bound + noise * square_root(2.0 * (gamma + 1.0 + math.log(self.parts / delta)))


@final
@description(frozen=True, kw_only=True)
class BoundedNoise(NormWidth):
    """Srinivas et al. 2010, Theorem 3: beta_t = scale * (2 B^2 + 300 gamma_t log^3(t / delta)). The width is its root.

    It is for noise bounded by sigma and lambda = sigma^2. gamma_t is the maximum information gain or a bound on it. The
    paper writes ||f||_k^2 <= B. Here B bounds the norm itself, hence its square.

    Attributes:
        guessed: see `SelfNormalized`.
        noise: sigma, for the test of a guess. Noise bounded by sigma is sigma-sub-Gaussian (Hoeffding's lemma).
    """

    grows: ClassVar[bool] = True

    norm_bound: float  # B
    gain: Gain
    delta: float = 0.1
    scale: float = 1.0
    noise_matched: bool = True  # True if lambda is sigma^2
    guessed: bool = False
    noise: float = 0.0

    def __post_init__(self) -> None:
        settle(self, norm_bound=checked_bound(self.norm_bound))
        settle(
            self,
            gain=checked_gain(self.gain),
            delta=checked_delta(self.delta),
            scale=checked_scale(self.scale),
            noise=number("noise", self.noise, low=0.0, high=LARGEST_REWARD),
            guessed=flag("guessed", self.guessed),
            noise_matched=flag("noise_matched", self.noise_matched),
        )

    @property
    def valid_for(self) -> str:
        """Claim "f" with a bound on gamma_t.

        The realised gain is no such bound, as the proof needs a number known before.
        """
        bounded = self.gain.proved and not isinstance(self.gain, RealisedGain) and not self.guessed
        return "f" if bounded and self.scale >= 1.0 and self.noise_matched else "none"

    def suits(self, policy: Policy) -> bool:
        """Returns True if lambda = sigma^2."""
        return is_matched(policy)

    @property
    def why_one_noise(self) -> str:
        """The reason: a standard deviation bounds no noise."""
        return "its theorem is for noise within a bound, which no `std` is: take `igp_ucb`"

    @property
    def batched(self) -> bool:
        """True if the norm is given, so that it is the same in all worlds."""
        return self.gain.batched and not self.guessed

    def width(self, t: int, progress: Progress) -> float:
        """Returns beta_t^{1/2} of Theorem 3."""
        gamma = self.gain(t, progress)
        bound = progress.norm(self.norm_bound)
        beta = 2.0 * bound**2 + 300.0 * gamma * math.log(t / self.delta) ** 3
        return square_root(self.scale * beta)


@final
@description(frozen=True, kw_only=True)
class KernelUcb(Width):
    """Valko et al. 2013: eta / sqrt(lambda), the same in every round (Chowdhury & Gopalan 2017, section 3.1).

    Their bounds hold for one point given independent observations, not along a run.
    """

    grows: ClassVar[bool] = True
    batched = True

    eta: float
    regularization: float  # lambda
    delta: float = 0.1

    def __post_init__(self) -> None:
        settle(self, eta=number("eta", self.eta, low=0.0, high=LARGEST_REWARD))
        ridge = number("regularization", self.regularization, low=0.0, open_low=True)
        settle(self, regularization=ridge)
        settle(self, delta=checked_delta(self.delta))

    def width(self, t: int, progress: Progress) -> float:  # noqa: ARG002
        """Returns eta / sqrt(lambda)."""
        return self.eta / math.sqrt(self.regularization)


class DoubledNorm(Copyable, Guess):
    """A norm bound that is doubled if data contradict it."""

    OWNED = ("history",)

    def __init__(self, confidence: Any) -> None:
        self._confidence = confidence
        self.bound = confidence.norm_bound
        self.history: list[tuple[int, float]] = [(0, self.bound)]

    @final
    def _double(self, rounds: int, least: float) -> None:
        """Doubles the bound until it is at least this number."""
        self.bound *= 2.0 ** math.ceil(math.log2(least / self.bound))
        self.history.append((rounds, self.bound))


@final
class NormGuess(DoubledNorm):
    """Guess and doubling for an unknown norm bound (Srinivas et al. 2010, after Theorem 3, leave the test open).

    The test is this. With V = Phi^T Phi + lambda I, the posterior mean is V^{-1} Phi^T (Phi f + eps). So ||mu||_k <=
    ||f||_k + ||Phi^T eps||_{V^{-1}} / sqrt(lambda). By Chowdhury & Gopalan 2017, Theorem 1, the last term is at most (R
    / sqrt(lambda)) sqrt(2 (gain + 1 + ln(1 / delta))) in all rounds with probability 1 - delta. A mean of larger norm
    than a guess of ||f||_k allows contradicts the guess. The guess is then doubled until it does not.

    Attributes:
        bound: current guess.
        history: (round, guess) of the first guess and of each replacement.
    """

    def check(self, rounds: int, posterior: Posterior) -> None:
        """Doubles the guess while the posterior mean, after that many rounds, contradicts it."""
        # The noise is known if the norm is guessed.
        noise = (self._confidence.noise or 0.0) / math.sqrt(posterior.regularization)
        spread = 2.0 * (posterior.information_gain + 1.0 + math.log(1.0 / self._confidence.delta))
        excess = posterior.mean_norm - noise * math.sqrt(spread)
        if excess > self.bound:
            self._double(rounds, excess)


@final
@description(frozen=True, kw_only=True)
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
