"""Widths for functions of bounded norm in the kernel's reproducing kernel Hilbert space.

| symbol | name | meaning | shape |
|---|---|---|---|
| B | `norm_bound` | bound on ||f||_k, of f - prior_mean, reward units | scalar |
| R | `noise` | sub-Gaussian constant of the noise, reward units | scalar |
| gamma_t | `gain` | information gain after t observations, nats | scalar |
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

from ..._utils.checks import LARGEST_REWARD, flag, integer, number, settle
from ..._utils.copying import Copyable
from ..._utils.errors import InvalidInput
from ..._utils.serialize import described
from ...gp import Posterior
from ..base import Policy
from ..envelope import Guess, Progress, Width, checked_delta, checked_scale, is_matched
from .gains import Gain, RealisedGain, checked_gain
from .unknown_noise import bounded_noise

NO_GUESS_WITH_FITS = "A norm can be guessed for a kernel that is given, not for one that is refitted."


def checked_bound(value: object) -> float:
    """A bound on a norm, or a clear error."""
    why = "It bounds the norm of f in the kernel's RKHS, in the units of the reward."
    return number("norm_bound", value, low=0.0, high=LARGEST_REWARD, open_low=True, why=why)


def noise_or_none(value: object, *, guessed: bool) -> float | None:
    """R, None where it is not known, or a clear error."""
    if value is None and guessed:
        raise InvalidInput(
            "Neither norm nor noise is known: what contradicts a guess of the norm is more than the noise explains. "
            "Give `noise`, or `norm_bound` without `guess_norm`."
        )
    return None if value is None else number("noise", value, low=0.0, high=LARGEST_REWARD)


class NormWidth(Width):
    """A width for functions of bounded norm, which may be guessed. Concrete ones are dataclasses with these fields."""

    norm_bound: float
    noise: float | None
    guessed: bool

    @property
    def stated_norm(self) -> float:
        """The norm bound B."""
        return self.norm_bound

    @final
    def check(self, policy: Policy) -> None:
        """A norm is guessed for a kernel that is given."""
        super().check(policy)
        # What contradicts a guess depends on the kernel then, and a replay makes the last fit alone.
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
        """Of the norm bound."""
        return NormGuess(self) if self.guessed else None


@final
@described
@dataclass(frozen=True, kw_only=True)
class SelfNormalized(NormWidth):
    """Chowdhury & Gopalan 2017, Theorem 2: B + R sqrt(2 (gamma_{t-1} + 1 + ln(parts / delta))).

    IGP-UCB has `parts` = 1. GP-TS has 2: half of delta is left to the samples drawn (its section 4.2, v_t). Holds at
    all points and rounds with probability at least 1 - delta (delta / parts), for noise that is R-sub-Gaussian and
    lambda >= 1: the paper takes lambda = 1 + 2/T. With a smaller lambda (its experiments use R^2) nothing is proved.

    Attributes:
        noise: R; None where the noise is Gaussian of a standard deviation that nobody knows: it is bounded by what is
            told (`nilregret.slots.widths.unknown_noise`), which takes half of delta.
        guessed: `norm_bound` is only the first guess, doubled whenever the data contradict it (`NormGuess`); nothing
            is proved before the guess has grown beyond the truth.
    """

    own_ridge: ClassVar[bool] = True
    grows: ClassVar[bool] = True

    norm_bound: float  # B
    noise: float | None  # R; None where it is not known
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
    def valid_for(self) -> str:
        """Valid for f where every assumption is known to hold."""
        return "f" if self.gain.proved and self.ridge_large and not self.guessed else "none"

    def suits(self, policy: Policy) -> bool:
        """Lambda >= 1, and noise no larger than R."""
        return policy.regularization >= 1.0 and (self.noise is None or policy.noise <= self.noise)

    @property
    def sub_gaussian(self) -> bool:
        """Yes, but where R is not known: what bounds it is for Gaussian noise."""
        return self.noise is not None

    @property
    def for_all_at_once(self) -> bool:
        """Yes: Theorem 1 is about the noise alone, which is bounded once for all f with ||f||_k <= B.

        But where R is not known: an f that was chosen after the noise may hide some of it, and so make its bound small.
        """
        return self.noise is not None

    def width(self, t: int, progress: Progress) -> float:
        """beta_t of Theorem 2 (IGP-UCB), v_t of section 3.2 (GP-TS)."""
        bound = progress.norm(self.norm_bound)
        gamma = self.gain(t - 1, progress)
        noise, delta = bounded_noise(self.noise, self.delta, progress)
        return bound + noise * math.sqrt(2.0 * (gamma + 1.0 + math.log(self.parts / delta)))


@final
@described
@dataclass(frozen=True, kw_only=True)
class BoundedNoise(NormWidth):
    """Srinivas et al. 2010, Theorem 3: beta_t = scale * (2 B^2 + 300 gamma_t log^3(t / delta)); width its root.

    For noise bounded by sigma, lambda = sigma^2, and gamma_t the maximum information gain or a bound on it. The paper
    writes ||f||_k^2 <= B; here B bounds the norm itself, hence its square.

    Attributes:
        guessed: see `SelfNormalized`.
        noise: sigma, which the test of a guess needs; noise bounded by sigma is sigma-sub-Gaussian (Hoeffding's lemma).
    """

    grows: ClassVar[bool] = True

    norm_bound: float  # B
    gain: Gain
    delta: float = 0.1
    scale: float = 1.0
    noise_matched: bool = True  # whether lambda is sigma^2
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
        """Valid for f with a bound on gamma_t; the gain realised is none (the proof needs a number known before)."""
        bounded = self.gain.proved and not isinstance(self.gain, RealisedGain) and not self.guessed
        return "f" if bounded and self.scale >= 1.0 and self.noise_matched else "none"

    def suits(self, policy: Policy) -> bool:
        """Lambda = sigma^2."""
        return is_matched(policy)

    def width(self, t: int, progress: Progress) -> float:
        """beta_t^{1/2} of Theorem 3."""
        gamma = self.gain(t, progress)
        bound = progress.norm(self.norm_bound)
        beta = 2.0 * bound**2 + 300.0 * gamma * math.log(t / self.delta) ** 3
        return math.sqrt(self.scale * beta)


@final
@described
@dataclass(frozen=True, kw_only=True)
class KernelUcb(Width):
    """Valko et al. 2013: eta / sqrt(lambda), the same in every round (Chowdhury & Gopalan 2017, section 3.1).

    Their bounds hold for one point given observations that do not depend on each other, not along a run.
    """

    grows: ClassVar[bool] = True

    eta: float
    regularization: float  # lambda
    delta: float = 0.1

    def __post_init__(self) -> None:
        settle(self, eta=number("eta", self.eta, low=0.0, high=LARGEST_REWARD))
        ridge = number("regularization", self.regularization, low=0.0, open_low=True)
        settle(self, regularization=ridge)
        settle(self, delta=checked_delta(self.delta))

    def width(self, t: int, progress: Progress) -> float:  # noqa: ARG002 - the same in every round
        """Eta / sqrt(lambda)."""
        return self.eta / math.sqrt(self.regularization)


class DoubledNorm(Copyable, Guess):
    """A norm bound, doubled where data contradict it."""

    OWNED = ("history",)

    def __init__(self, confidence: Any) -> None:
        self._confidence = confidence
        self.bound = confidence.norm_bound
        self.history: list[tuple[int, float]] = [(0, self.bound)]

    @final
    def _double(self, rounds: int, least: float) -> None:
        """Up to this at least."""
        self.bound *= 2.0 ** math.ceil(math.log2(least / self.bound))
        self.history.append((rounds, self.bound))


@final
class NormGuess(DoubledNorm):
    """Guess and doubling for an unknown norm bound (Srinivas et al. 2010, after Theorem 3, leave the test open).

    The test used here: with V = Phi^T Phi + lambda I, the posterior mean is V^{-1} Phi^T (Phi f + eps), so that
    ||mu||_k <= ||f||_k + ||Phi^T eps||_{V^{-1}} / sqrt(lambda), and by Chowdhury & Gopalan 2017, Theorem 1, the last
    term is at most (R / sqrt(lambda)) sqrt(2 (gain + 1 + ln(1 / delta))) in all rounds with probability 1 - delta.
    A mean of larger norm than a guess of ||f||_k allows contradicts the guess, which is then doubled until it does not.

    Attributes:
        bound: the guess in force.
        history: (round, guess): the first, and every one that replaced another.
    """

    def check(self, rounds: int, posterior: Posterior) -> None:
        """Double the guess while the posterior mean, after that many rounds, contradicts it."""
        noise = (self._confidence.noise or 0.0) / math.sqrt(posterior.regularization)  # known, where norms are guessed
        spread = 2.0 * (posterior.information_gain + 1.0 + math.log(1.0 / self._confidence.delta))
        excess = posterior.mean_norm - noise * math.sqrt(spread)
        if excess > self.bound:
            self._double(rounds, excess)
