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
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple, final

from ..change import PowerLaw, ucb_beta
from ..checks import LARGEST_REWARD, LEAST_DELTA, Array, flag, integer, number, settle, shown
from ..errors import InvalidInput
from ..information import GreedyDesign
from ..posterior import Posterior
from ..serialize import described
from .series import Series

LEAST_TAIL = 1e-300  # probabilities below it are taken for it
MANY_POINTS = 1e60  # |D| beyond which its logarithm is taken by itself


@dataclass(frozen=True, slots=True)
class Envelope:
    """Bounds of f at n points: mean +- width * std.

    Attributes:
        mean: posterior mean, `(n,)`.
        std: posterior standard deviation of f, `(n,)`.
        width: multiplier of the standard deviation.
        valid_for: what lies inside for all rounds at once, with probability at least 1 - delta: "f" at all points;
            "played", f at the points played (see `CompactBayes`); or "none" where nothing is proved (then no report
            may call it certified).
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


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of one round, at whichever points: what turns a posterior into an `Envelope`.

    Attributes:
        width: multiplier of the standard deviation.
        valid_for: see `Envelope`.
        center: reward at which the posterior is 0.
        unit: reward units of one unit of the posterior.
    """

    width: float
    valid_for: str
    center: float = 0.0
    unit: float = 1.0

    def __call__(self, mean: Array, std: Array) -> Envelope:
        """The envelope at points of this posterior mean and std, which are taken over."""
        if self.unit != 1.0:
            mean *= self.unit
            std *= self.unit
        if self.center:
            mean += self.center
        return Envelope(mean, std, self.width, self.valid_for)


@dataclass(slots=True)
class Progress:
    """What the width of the coming round may depend on.

    Attributes:
        posterior: of f - prior_mean, after everything that was taken in.
        norm_bound: the guess of B in force, where it is guessed (`NormGuess`).
        design: the greedy experimental design of the domain, made when it is first called.
        noise_factor: how much larger the noise of what is learned is than that of a reward.
        recent: posterior std at the trials of `Confidence.recent`, reward units.
        answers: the posterior of what was answered alone; None where it is the same.
    """

    posterior: Posterior
    norm_bound: float | None = None
    design: Callable[[], GreedyDesign] | None = None
    noise_factor: float = 1.0
    recent: Callable[[], Array] | None = None
    answers: Posterior | None = None


class Window(NamedTuple):
    """The last trials asked for."""

    length: float  # rounds, or seconds
    in_time: bool


class Confidence(ABC):
    """How wide the envelope is in round t (counted from 1, since the last restart)."""

    delta: float

    @property
    def recent(self) -> Window | None:
        """The trials whose std the width depends on, if any."""
        return None

    @property
    @abstractmethod
    def valid_for(self) -> str:
        """See `Envelope.valid_for`."""

    @abstractmethod
    def width(self, t: int, progress: Progress) -> float:
        """The multiplier of the standard deviation in round t."""


def checked_delta(value: object) -> float:
    """A failure probability, or a clear error."""
    why = "It is the probability that the bounds fail; 0.1 is a common choice."
    return number("delta", value, low=LEAST_DELTA, high=1.0, open_high=True, why=why)


def checked_series(value: object) -> Series | None:
    """The pi_t of Lemma 5.1, or None for the theorem's own."""
    if not isinstance(value, Series | None):
        raise InvalidInput(f"`series` must be a part such as `nr.PowerSeries(1.5)`, not {shown(value)}.")
    return value


def checked_scale(value: object) -> float:
    """What multiplies beta_t, or a clear error."""
    return number("scale", value, low=0.0, high=LARGEST_REWARD, why="It multiplies beta_t.")


@final
@described
@dataclass(frozen=True, kw_only=True)
class FiniteBayes(Confidence):
    """Srinivas et al. 2010, Theorem 1: f a sample of the Gaussian process, D finite, Gaussian noise.

    beta_t = scale * 2 log(|D| t^2 pi^2 / (6 delta)); the width is its square root. With `scale` = 1 the envelope holds
    for all arms and rounds with probability at least 1 - delta (Lemma 5.1); the paper's experiments use 1/5, for
    which nothing is proved. With finitely many contexts, |D| counts every (context, arm).
    """

    size: int  # |D|
    delta: float = 0.1
    scale: float = 1.0
    noise_matched: bool = True  # whether lambda is the noise variance sigma^2, as in eq. 1 and Lemma 5.1
    series: Series | None = None  # pi_t of Lemma 5.1; None for those of the theorem, pi^2 t^2 / 6

    def __post_init__(self) -> None:
        settle(
            self,
            series=checked_series(self.series),
            size=integer("size", self.size, low=1, high=None, why="It is |D|, the number of points."),
            delta=checked_delta(self.delta),
            scale=checked_scale(self.scale),
            noise_matched=flag("noise_matched", self.noise_matched),
        )

    @property
    def valid_for(self) -> str:
        """Valid for f unless beta_t was scaled down or lambda is not the noise variance."""
        return "f" if self.scale >= 1.0 and self.noise_matched else "none"

    def width(self, t: int, progress: Progress) -> float:  # noqa: ARG002 - the same whatever is known
        """beta_t^{1/2} of Theorem 1, or of Lemma 5.1."""
        if self.series is not None:
            return math.sqrt(self.scale * 2.0 * (math.log(self.size) - math.log(self.delta) + self.series.log(t)))
        if self.size > MANY_POINTS:
            rest = math.log(t**2 * math.pi**2 / (6.0 * self.delta))
            return math.sqrt(self.scale * 2.0 * (math.log(self.size) + rest))
        return math.sqrt(self.scale * 2.0 * math.log(self.size * t**2 * math.pi**2 / (6.0 * self.delta)))


@final
@described
@dataclass(frozen=True, kw_only=True)
class CompactBayes(Confidence):
    """Srinivas et al. 2010, Theorem 2: f a sample of the Gaussian process on a compact convex D in [0, r]^d.

    beta_t = scale * (2 log(2 t^2 pi^2 / (3 delta)) + 2 d log(t^2 d b r sqrt(log(4 d a / delta)))), where
    P(sup |df/dx_j| > L) <= a exp(-(L / b)^2) for every j. With `scale` = 1 the envelope holds, with probability at
    least 1 - delta, at every point played (Lemma 5.5) and, to within 1/t^2, at the point next to the maximiser of f in
    the discretisation of the proof (Lemma 5.7), which is what the regret bound needs. D need not be convex itself:
    slopes are bounded on its enclosing box.
    """

    dimension: int  # d
    side: float  # r, the longest side of the box
    log_a: float  # log a: a itself may be astronomically large, which costs beta_t almost nothing
    b: float  # reward units per unit of length
    delta: float = 0.1
    scale: float = 1.0
    noise_matched: bool = True  # whether lambda is the noise variance sigma^2, as in eq. 1
    assumed: bool = False  # whether a and b are no bounds, but what the slopes of a rough kernel were taken for
    series: Series | None = None  # pi_t of Lemma 5.8; None for those of the theorem, pi^2 t^2 / 6

    def __post_init__(self) -> None:
        settle(
            self,
            series=checked_series(self.series),
            dimension=integer("dimension", self.dimension, low=1),
            side=number("side", self.side, low=0.0, high=LARGEST_REWARD, open_low=True),
            b=number("b", self.b, low=0.0, high=LARGEST_REWARD, open_low=True),
            log_a=number("log_a", self.log_a),
            delta=checked_delta(self.delta),
            scale=checked_scale(self.scale),
            noise_matched=flag("noise_matched", self.noise_matched),
            assumed=flag("assumed", self.assumed),
        )

    @property
    def valid_for(self) -> str:
        """Valid where points are played, unless beta_t was scaled down, lambda is another, or a and b are assumed."""
        return "played" if self.scale >= 1.0 and self.noise_matched and not self.assumed else "none"

    def width(self, t: int, progress: Progress) -> float:  # noqa: ARG002 - the same whatever is known
        """beta_t^{1/2} of Theorem 2."""
        d, delta = self.dimension, self.delta
        # log(4 d a / delta) and the logarithm around it are positive for every a >= 1 and sensible b r; where they are
        # not, the discretisation of the proof has one point and the term is 0.
        reach = t**2 * d * self.b * self.side * math.sqrt(max(math.log(4.0 * d / delta) + self.log_a, 0.0))
        if self.series is None:
            beta = 2.0 * math.log(2.0 * t**2 * math.pi**2 / (3.0 * delta)) + 2.0 * d * math.log(max(reach, 1.0))
        else:  # 2 log(4 pi_t / delta): Lemma 5.8
            beta = 2.0 * (math.log(4.0 / delta) + self.series.log(t)) + 2.0 * d * math.log(max(reach, 1.0))
        return math.sqrt(self.scale * beta)


@final
@described
@dataclass(frozen=True, kw_only=True)
class PointwiseBayes(Confidence):
    """Central posterior intervals of probability 1 - delta, for f a sample of the Gaussian process.

    They hold for one point in one round, not for all at once, so no report calls them certified. The bounds of rules
    that come without a theorem.
    """

    delta: float = 0.1

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", number("delta", self.delta, low=0.0, high=1.0, open_low=True, open_high=True))

    @property
    def valid_for(self) -> str:
        """Nothing holds for all rounds at once."""
        return "none"

    def width(self, t: int, progress: Progress) -> float:  # noqa: ARG002 - the same in every round
        """The normal quantile of 1 - delta / 2."""
        return -NormalDist().inv_cdf(max(0.5 * self.delta, LEAST_TAIL))  # 1 - delta / 2 would round a small delta away


@final
@described
@dataclass(frozen=True, kw_only=True)
class ConstantWidth(Confidence):
    """A width chosen by hand; nothing is proved for it."""

    value: float
    delta: float = 0.1

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "value", number("width", self.value, low=0.0, high=LARGEST_REWARD, why="It multiplies the std.")
        )
        object.__setattr__(self, "delta", checked_delta(self.delta))

    @property
    def valid_for(self) -> str:
        """Nothing."""
        return "none"

    def width(self, t: int, progress: Progress) -> float:  # noqa: ARG002 - the same in every round
        """The number given."""
        return self.value


@final
@described
@dataclass(frozen=True, kw_only=True)
class ScheduledWidth(Confidence):
    """v_t = constant * t^exponent, chosen by hand: "free parameters" of Chowdhury & Gopalan 2017, end of section 3."""

    schedule: PowerLaw
    delta: float = 0.1

    def __post_init__(self) -> None:
        if not isinstance(self.schedule, PowerLaw):
            raise InvalidInput(f"`schedule` must be a `PowerLaw`, not {shown(self.schedule)}.")
        object.__setattr__(self, "delta", checked_delta(self.delta))

    @property
    def valid_for(self) -> str:
        """Nothing."""
        return "none"

    def width(self, t: int, progress: Progress) -> float:  # noqa: ARG002 - the same whatever is known
        """v_t."""
        return self.schedule(t)


@final
@described
@dataclass(frozen=True, kw_only=True)
class DriftBayes(Confidence):
    """Avanesov, eq. 3.7: beta_t = D t^{d(d+1) / (2 alpha + d(d+1))} log^p T; width its root. D is chosen by hand.

    Nothing is proved for a given D: the theorem wants it large enough and does not say how large.
    """

    horizon: int  # T
    alpha: float | None  # smoothness of the kernel; None for infinitely smooth (JSON has no infinity)
    dimension: int  # d
    constant: float = 0.02  # D
    log_power: float = 3.0  # p
    delta: float = 0.1

    def __post_init__(self) -> None:
        settle(
            self,
            horizon=integer("horizon", self.horizon, low=2),
            alpha=None if self.alpha is None else number("alpha", self.alpha, low=0.0, open_low=True),
            dimension=integer("dimension", self.dimension, low=1),
            constant=number("constant", self.constant, low=0.0, open_low=True),
            log_power=number("log_power", self.log_power, low=0.0),
            delta=checked_delta(self.delta),
        )
        self._beta(1)  # checks the rest

    @property
    def valid_for(self) -> str:
        """Nothing."""
        return "none"

    def width(self, t: int, progress: Progress) -> float:  # noqa: ARG002 - the same whatever is known
        """The root of eq. 3.7."""
        return math.sqrt(self._beta(t))

    def _beta(self, t: int) -> float:
        return ucb_beta(
            t,
            alpha=math.inf if self.alpha is None else self.alpha,
            dimension=self.dimension,
            horizon=self.horizon,
            constant=self.constant,
            log_power=self.log_power,
        )
