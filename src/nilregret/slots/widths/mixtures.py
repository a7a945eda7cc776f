"""Widths for functions of bounded norm: AY, AMM and DMM from mixtures of martingales, and the width without noise.

| symbol | name | meaning | shape |
|---|---|---|---|
| B | `norm_bound` | bound on ||f||_k, of f - prior_mean, reward units | scalar |
| R | `noise` | sub-Gaussian constant of the noise, reward units | scalar |
| lambda, alpha0 | `regularization` | of the policy: R^2 / c, c the scale of the mixture | reward units^2 |
| LD_t | | log det(I + K_t / lambda) of the observations | nats |
| q_t(alpha) | `Spectrum.misfit` | min_f ||f_t - y||^2 + alpha ||f||_k^2 = y^T (I + K_t / alpha)^{-1} y | |
| Rad_t^2 | | q_t(alpha0) + R^2 (LD_t + 2 ln(1 / delta)) | reward units^2 |

Flynn & Reeb 2025 (Tighter confidence bounds for sequential kernel regression). Take the average of exp(-(||f_t - y||^2
- ||g_t - y||^2) / 2 R^2) over g_t ~ N(0, c K_t). It is a supermartingale at the true f with R-sub-Gaussian noise. So
with probability 1 - delta, in all rounds,

    ||f_t - y||^2 <= y^T (I + c K_t / R^2)^{-1} y + R^2 log det(I + c K_t / R^2) + 2 R^2 ln(1 / delta) = Rad_t^2.

f lies in {||f_t - y|| <= Rad_t, ||f||_k <= B}. For every alpha > 0 such an f satisfies ||f_t - y||^2 + alpha ||f||_k^2
<= Rad_t^2 + alpha B^2. Completing the square, the left side is q_t(alpha) + ||f - mu_alpha||^2 in a norm. In this norm
the dual norm of the evaluation at x is s_alpha(x) / sqrt(alpha). Hence, for all alpha at once, without another share of
delta,

    |f(x) - mu_alpha(x)| <= s_alpha(x) sqrt((Rad_t^2 + alpha B^2 - q_t(alpha)) / alpha).                         (DMM)

Without noise ||f_t - y|| is 0, and so is Rad_t. At alpha = lambda this leaves, with certainty and for every lambda,

    |f(x) - mu(x)| <= s(x) sqrt(B^2 - y^T (K_t + lambda I)^{-1} y) <= B s(x).                              (noise-free)

At alpha = alpha0 the q cancel, which leaves s(x) sqrt(B^2 + (R^2 / lambda) (LD_t + 2 ln(1 / delta))), AMM. With
sqrt(a^2 + b^2) <= a + b it becomes AY, the bound of Abbasi-Yadkori 2013 for any lambda. A negative root proves that no
such f exists: B (or R) was too small.

An answer with a noise s_t of its own (`Study.tell(std=...)`) counts with the weight w_t = R^2 / s_t^2. Times R / s_t it
is an R-sub-Gaussian answer about (R / s_t) f, if s_t does not depend on its noise. So all of this holds with
W^{1/2} f_t, W^{1/2} y and W^{1/2} K_t W^{1/2} for f_t, y and K_t, in which lambda / w_t is the noise variance of the
posterior. At lambda = R^2 that is s_t^2, and AY is B + sqrt(LD_t + 2 ln(1 / delta)). This is a bound as that of
Kirschner & Krause 2018, which VA-GP-UCB plays (Iwazaki & Takeno 2025, section 6).

The regret of the upper bound is at most the sum of the lengths of these intervals, 2 B s, at the points played. Iwazaki
2025 (Gaussian process upper confidence bound achieves nearly-optimal regret in noise-free Gaussian process bandits)
shows a constant regret of the width B with lambda = 0. It is for the squared exponential kernel, and for Matern kernels
that are smooth enough. After an answer s^2 is below lambda at its arm. So no arm that is worse than the best by more
than 2 B sqrt(lambda) is played twice.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, cast, final

import numpy as np

from ..._utils.checks import LARGEST_REWARD, LARGEST_VARIANCE, Array, flag, integer, number, settle
from ..._utils.dataclass import dataclass, replace
from ..._utils.numerals import numeral
from ...errors import InvalidInput
from ...gp import ArmPosterior, AtPoints, Posterior
from ...gp.spectrum import Spectrum
from ...serialize import description
from ..base import Policy
from ..envelope import Bounds, Confidence, Envelope, Guess, Progress, Width, Window, checked_delta, square_root
from .self_normalized import DoubledNorm, NormWidth, bounded_noise, checked_bound, noise_or_none

ROUNDING = 1e-6  # share of B^2 by which y^T (K_t + lambda I)^{-1} y may be rounded
RATIOS = np.array([1.0, 0.03, 0.1, 0.3, 3.0, 10.0, 30.0, 100.0])  # values of alpha / alpha0, of which the first is AMM


def _settle(part: Any) -> None:
    why = "It is lambda of the policy, which the mixture is made of before the first round."
    settle(
        part,
        norm_bound=checked_bound(part.norm_bound),
        noise=noise_or_none(part.noise, guessed=part.guessed),
        delta=checked_delta(part.delta),
        guessed=flag("guessed", part.guessed),
        regularization=number(
            "regularization", part.regularization, low=0.0, high=LARGEST_VARIANCE, open_low=True, why=why
        ),
    )


def _suits(part: Any, policy: Policy) -> bool:
    return bool(policy.regularization == part.regularization and (part.noise is None or policy.noise <= part.noise))


def _check_one_function(bounds: str, policy: Policy) -> None:
    """Raises `InvalidInput` if the kernel is fitted or f drifts."""
    if policy.refit is not None:
        raise InvalidInput(
            f"{bounds} bounds functions of a norm of at most B in the RKHS of a kernel that is given, and "
            "`refit` learns another kernel, in which nobody knows the norm. Leave it out, or take another width."
        )
    if policy.memory.drift() is not None:
        raise InvalidInput(
            f"{bounds} bounds one function, and under {type(policy.memory).__name__} f is another one in "
            "each round, so that no single f fits what was observed. Take a window or restarts, or another width."
        )


@dataclass(frozen=True, kw_only=True)
class _MixtureWidth(NormWidth):
    """A multiple of the standard deviation for any lambda that is fixed beforehand."""

    grows: ClassVar[bool] = True
    realised = True

    norm_bound: float  # B
    noise: float | None  # R, or None if it is unknown, as in `SelfNormalized`
    regularization: float  # lambda, which is alpha0
    parts: int = 1
    delta: float = 0.1
    guessed: bool = False

    def __post_init__(self) -> None:
        _settle(self)
        settle(self, parts=integer("parts", self.parts, low=1))

    @property
    def valid_for(self) -> str:
        """Claim "f", unless the norm was guessed."""
        return "none" if self.guessed else "f"

    @property
    def sub_gaussian(self) -> bool:
        """True if R is known. The bound of an unknown R is for Gaussian noise."""
        return self.noise is not None

    def suits(self, policy: Policy) -> bool:
        """Returns True if lambda is as stated and the noise is at most R."""
        return _suits(self, policy)

    @final
    @property
    def batched(self) -> bool:
        """True if norm and noise are given, so that they are the same in all worlds."""
        return self.noise is not None and not self.guessed

    def width(self, t: int, progress: Progress) -> float:  # noqa: ARG002
        """Returns the multiplier of the standard deviation."""
        bound = progress.norm(self.norm_bound) * (1.0 + progress.posterior.shortfall)
        noise, delta = bounded_noise(self.noise, self.delta, progress)
        spread = progress.posterior.log_determinant_ratio + 2.0 * math.log(self.parts / delta)
        return self._combined(bound, noise / math.sqrt(self.regularization) * square_root(spread))

    @abstractmethod
    def _combined(self, bound: float, noise: float) -> float:
        """Returns the width from the terms of the norm and of the noise."""


@final
@description(frozen=True, kw_only=True)
class AnyRidge(_MixtureWidth):
    """AY: B + (R / sqrt(lambda)) sqrt(LD_t + 2 ln(parts / delta)), for any lambda (Abbasi-Yadkori 2013).

    With a `Sketch` it is B (1 + rho) + ..., with rho its `shortfall` and LD_t its upper bound, bound 3 of
    `nilregret.gp.feature_maps`.

    Attributes:
        parts: 1, or 2 for Thompson samples, as in `SelfNormalized`.
        guessed: True if `norm_bound` is only the first guess (`NormGuess`).
    """

    sketched: ClassVar[bool] = True

    @property
    def for_all_at_once(self) -> bool:
        """True if R is known: the self-normalised inequality is about the noise alone.

        The bound of an unknown R comes from the rewards.
        """
        return self.noise is not None

    def _combined(self, bound: float, noise: float) -> float:
        return bound + noise


@final
@description(frozen=True, kw_only=True)
class AnalyticMixture(_MixtureWidth):
    """AMM: sqrt(B^2 + (R^2 / lambda) (LD_t + 2 ln(parts / delta))), the analytic bound of Flynn & Reeb 2025.

    Attributes:
        parts: as in `AnyRidge`.
        guessed: as in `AnyRidge`.
    """

    def _combined(self, bound: float, noise: float) -> float:
        return math.hypot(bound, noise) if isinstance(noise, float) else np.hypot(bound, noise)


@final
@description(frozen=True, kw_only=True)
class DualMixture(Confidence):
    """DMM: the best of these bounds over a grid of alpha, the dual bound of Flynn & Reeb 2025.

    The bounds are no multiple of the standard deviation, and no wider than AMM's. A round costs one eigendecomposition
    of the observations. If the bounded set is empty, `norm_bound` was too small (or `noise`). It is then raised
    (`EmptySet`), `study.norm_bounds` shows the new value, and nothing counts as proved from then on.

    Attributes:
        guessed: True if `norm_bound` is only a first guess.
    """

    weighs = True  # The set is that of the weighted answers.

    norm_bound: float  # B
    noise: float  # R
    regularization: float  # lambda = alpha0
    delta: float = 0.1
    guessed: bool = False

    def __post_init__(self) -> None:
        number("noise", self.noise, low=0.0, high=LARGEST_REWARD, why="The set that it bounds is made of it.")
        _settle(self)

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` if the kernel is fitted or f drifts."""
        super().check(policy)
        _check_one_function("The dual mixture", policy)

    @property
    def valid_for(self) -> str:
        """Claim "f", unless the norm was guessed."""
        return "none" if self.guessed else "f"

    @property
    def sub_gaussian(self) -> bool:
        """True."""
        return True

    def suits(self, policy: Policy) -> bool:
        """Returns True if lambda is as stated and the noise is at most R."""
        return _suits(self, policy)

    def guess(self) -> EmptySet:
        """Returns a guess of the norm bound. An empty set refutes it even if the bound was given."""
        return EmptySet(self)

    def bounds(self, t: int, progress: Progress) -> DualBounds:  # noqa: ARG002
        """Returns the bounds of this round."""
        posterior = _whole(progress.posterior if progress.answers is None else progress.answers)
        bound = progress.norm(self.norm_bound)
        ridges, slack = self.slack(posterior.spectrum(), progress.noise_factor)
        return DualBounds(posterior, ridges, np.sqrt(np.maximum(slack / ridges + bound**2, 0.0)))

    def slack(self, spectrum: Spectrum, noise_factor: float = 1.0) -> tuple[Array, Array]:
        """Returns alpha and Rad_t^2 - q_t(alpha), each `(J,)`.

        The set is empty if the second is below -alpha B^2 for any alpha.
        """
        ridges, variance = self.regularization * RATIOS, (noise_factor * self.noise) ** 2
        misfit = spectrum.misfit(ridges)
        spread = spectrum.log_determinant_ratio(self.regularization) + 2.0 * math.log(1.0 / self.delta)
        return ridges, misfit[0] - misfit + variance * spread


@final
class DualBounds(Bounds):
    """DMM at the points of one round.

    The given mean may be in other units, and the given std may count pending trials. The bounds are shifted and scaled
    accordingly.

    Args:
        posterior: posterior of the observed trials.
        ridges: alpha, `(J,)`.
        radii: sqrt((Rad_t^2 + alpha B^2 - q_t(alpha)) / alpha), `(J,)`.
    """

    pointwise: ClassVar[bool] = False
    moves: ClassVar[bool] = True

    def __init__(self, posterior: ArmPosterior | AtPoints, ridges: Array, radii: Array) -> None:
        self._spectrum, self._radii = posterior.spectrum(), radii[:, None]
        self._ridges = np.append(ridges, posterior.regularization)

    def __call__(self, mean: Array, std: Array, rows: Any = None) -> Envelope:
        """Returns the tightest bounds at each point."""
        means, stds = self._spectrum.moments(rows, self._ridges)
        own_mean, own_std = means[-1], stds[-1]
        half = self._radii * stds[:-1]
        upper, lower = (means[:-1] + half).min(axis=0) - own_mean, (means[:-1] - half).max(axis=0) - own_mean
        # The bounds of an empty set, which no alpha of the grid reveals, would cross.
        lower, upper = np.minimum(lower, upper), np.maximum(lower, upper)
        stretch = np.divide(std, own_std, out=np.ones_like(std), where=own_std > 0.0)
        return Envelope(mean, std, lower=mean + lower * stretch, upper=mean + upper * stretch)


@final
class EmptySet(DoubledNorm):
    """B, raised if {||f_t - y|| <= Rad_t, ||f||_k <= B} is empty, which a true B allows with probability delta at most.

    B is doubled until it is twice the least B for which no alpha proves the set empty. The observations need that least
    B, and the rest of f needs more. If half of the true norm was stated, the result is at least the true norm.

    Attributes:
        bound: current B.
        history: (round, B) of the first value and of each replacement.
    """

    def check(self, rounds: int, posterior: Posterior) -> None:
        """Raises B if some alpha proves that the set is empty."""
        ridges, slack = self._confidence.slack(_whole(posterior).spectrum())
        needed = math.sqrt(max(float((-slack / ridges).max()), 0.0))
        if needed > self.bound:
            self._double(rounds, 2.0 * needed)


@final
@description(frozen=True, kw_only=True)
class NoiseFree(Width):
    """Widths sqrt(B^2 - y^T (K + lambda I)^{-1} y) of rewards without noise, for any lambda. They hold with certainty.

    The width of Iwazaki 2025 is B. This one is at most B, and falls as more of the norm is seen. The docstring of the
    module has the proof. If the answers need a larger norm than B, the width is B and nothing counts as proved.

    Attributes:
        delta: failure probability that reports state. The bounds do not use it.
        guessed: True if `norm_bound` is only the first guess.
    """

    norm_bound: float  # B
    delta: float = 0.1
    guessed: bool = False

    def __post_init__(self) -> None:
        settle(self, norm_bound=checked_bound(self.norm_bound), delta=checked_delta(self.delta))
        settle(self, guessed=flag("guessed", self.guessed))

    @property
    def stated_norm(self) -> float:
        """The norm bound B."""
        return self.norm_bound

    @property
    def weighs(self) -> bool:
        """False, since an answer with a noise of its own is no value of f."""
        return False

    @property
    def why_one_noise(self) -> str:
        """The reason: there is no noise."""
        return "its `noise` is 0, and its bounds are for answers that are values of f: give `noise`"

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` if the kernel is fitted or f drifts."""
        super().check(policy)
        _check_one_function("The width without noise", policy)
        if policy.memory.tides:
            raise InvalidInput("The width without noise is for rates that stand still: leave it or `Tide` out.")

    @property
    def valid_for(self) -> str:
        """Claim "f", unless the norm was guessed."""
        return "none" if self.guessed else "f"

    def suits(self, policy: Policy) -> bool:
        """Returns True if there is no noise."""
        return bool(policy.noise == 0.0)

    def guess(self) -> LeastNorm:
        """Returns the least norm that the answers need, which may refute a norm bound that was given."""
        return LeastNorm(self)

    def for_noise(self, noise: float | None, regularization: float) -> Confidence:
        """Returns the bounds of a constraint, which are a norm bound and its noise wide."""
        return AnyRidge(
            norm_bound=self.norm_bound, noise=noise or 0.0, regularization=regularization, delta=self.delta,
            guessed=self.guessed,
        )  # fmt: skip

    def width(self, t: int, progress: Progress) -> float:  # noqa: ARG002
        """Returns the width, or B if the answers refute B."""
        posterior = progress.posterior if progress.answers is None else progress.answers
        bound = progress.norm(self.norm_bound)
        left = 1.0 - posterior.quadratic_form / bound**2  # type: ignore[attr-defined]  # `check` refuses other ones.
        return bound * math.sqrt(1.0 if left < -ROUNDING else max(left, ROUNDING))


@final
class LeastNorm(DoubledNorm):
    """The least norm of a function that gives the answers, up to lambda, against the norm bound.

    A bound that is guessed is doubled until it is twice the least norm. A bound that is given stays, because answers
    with noise need any norm: `remarks` has the sentence.

    Attributes:
        bound: current B.
        history: (round, B) of the first value and of each replacement.
    """

    _least = 0.0

    def check(self, rounds: int, posterior: Posterior) -> None:
        """Computes the least norm."""
        self._least = math.sqrt(posterior.quadratic_form)  # type: ignore[attr-defined]
        if self._confidence.guessed and self._least > self.bound:
            self._double(rounds, 2.0 * self._least)

    @property
    def remarks(self) -> Mapping[str, str]:
        """The sentence about answers that no function of this norm gives."""
        if self._least**2 <= (1.0 + ROUNDING) * self.bound**2:
            return {}
        return {
            "norm": f"The answers need a function of norm {numeral(self._least, 3)} or more, and `norm_bound` is "
            f"{numeral(self.bound, 3)}: from here on nothing is proved. Usually answers at the same or nearly the same "
            "point differ, so that there is noise although `noise` is 0, or the norm bound is too small. Give the "
            "`noise`, or a larger `norm_bound`."
        }


def _whole(posterior: Posterior) -> ArmPosterior | AtPoints:
    return cast("ArmPosterior | AtPoints", posterior)  # `DualMixture.check` refuses other posteriors.


@final
@description(frozen=True, kw_only=True)
class Intersection(Confidence):
    """The intersection of several bounds: the largest lower and the smallest upper one.

    They hold together with probability 1 - delta, where delta is the sum of theirs.

    Attributes:
        parts: the bounds, two or more.
    """

    parts: tuple[Confidence, ...]

    def __post_init__(self) -> None:
        parts = self.parts
        if not isinstance(parts, tuple | list) or len(parts) < 2 or not all(isinstance(p, Confidence) for p in parts):
            raise InvalidInput(
                "`parts` must be two or more parts for `width`: what is inside all of them is what is left.",
                advice="Such as (FiniteBayes(...), DualMixture(...)).",
            )
        settle(self, parts=tuple(parts))

    @property
    def delta(self) -> float:  # type: ignore[override]   # a property here, a field in other parts
        """Sum of the failure probabilities of the parts."""
        return min(sum(part.delta for part in self.parts), 1.0)

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` if some part does not fit the policy."""
        super().check(policy)
        for part in self.parts:
            part.check(policy)

    @property
    def recent(self) -> Window | None:
        """Window of the first part that has one."""
        return next((part.recent for part in self.parts if part.recent is not None), None)

    @property
    def valid_for(self) -> str:
        """Common claim of all parts."""
        claims = {part.valid_for for part in self.parts}
        return claims.pop() if len(claims) == 1 and self.delta < 1.0 else "none"

    @property
    def for_all_at_once(self) -> bool:
        """True if it is true of all parts."""
        return all(part.for_all_at_once for part in self.parts)

    @property
    def sub_gaussian(self) -> bool:
        """True if it is true of all parts."""
        return all(part.sub_gaussian for part in self.parts)

    @property
    def likelihood(self) -> bool:
        """True if it is true of all parts."""
        return all(part.likelihood for part in self.parts)

    def suits(self, policy: Policy) -> bool:
        """Returns True if all parts suit the policy."""
        return all(part.suits(policy) for part in self.parts)

    def guess(self) -> Guess | None:
        """Returns the guess of the first part that has one. A refuted norm bound is refuted for all parts."""
        return next((guess for part in self.parts if (guess := part.guess()) is not None), None)

    @property
    def weighs(self) -> bool:
        """True if all parts hold where answers have a noise of their own."""
        return all(part.weighs for part in self.parts)

    @property
    def why_one_noise(self) -> str:
        """The reason of the first part that does not."""
        return next((part.why_one_noise for part in self.parts if not part.weighs), "")

    def for_noise(self, noise: float | None, regularization: float) -> Intersection:
        """Returns the intersection of the parts for this noise."""
        return replace(self, parts=tuple(part.for_noise(noise, regularization) for part in self.parts))

    def bounds(self, t: int, progress: Progress) -> Intersected:
        """Returns the bounds of this round."""
        return Intersected([part.bounds(t, progress) for part in self.parts])


@final
class Intersected(Bounds):
    """The largest lower and the smallest upper bound."""

    pointwise: ClassVar[bool] = False

    def __init__(self, each: list[Bounds]) -> None:
        self._each = each

    def __call__(self, mean: Array, std: Array, rows: Any = None) -> Envelope:
        """Returns the intersection at each point."""
        found = [bounds(mean, std, rows) for bounds in self._each]
        lower = np.max([envelope.lower for envelope in found], axis=0)
        upper = np.min([envelope.upper for envelope in found], axis=0)
        return Envelope(mean, std, lower=np.minimum(lower, upper), upper=np.maximum(lower, upper))
