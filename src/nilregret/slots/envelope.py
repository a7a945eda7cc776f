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
from dataclasses import dataclass, fields, replace
from statistics import NormalDist
from typing import Any, ClassVar, NamedTuple, Self, final

from .._utils.checks import LARGEST_REWARD, LEAST_DELTA, Array, flag, integer, number, settle, shown
from .._utils.errors import InvalidInput
from .._utils.serialize import described
from ..domains.domain import count_of_points
from ..gp import Posterior
from ..theory.change import PowerLaw, ucb_beta
from ..theory.information import GreedyDesign
from ..theory.series import Series
from .base import Combination, Part

LEAST_TAIL = 1e-300  # probabilities below it are taken for it
MANY_POINTS = 1e60  # |D| beyond which its logarithm is taken by itself


@final
class Envelope:
    """Bounds of f at n points: mean +- width * std, or as given.

    Attributes:
        mean: posterior mean, `(n,)`.
        std: posterior standard deviation of f, `(n,)`.
        width: multiplier of the standard deviation; None where the bounds are no such multiple.
        valid_for: what lies inside for all rounds at once, with probability at least 1 - delta: "f" at all points;
            "played", f at the points played (see `CompactBayes`); or "none" where nothing is proved (then no report
            may call it certified).
    """

    __slots__ = ("_given", "mean", "std", "valid_for", "width")

    def __init__(
        self,
        mean: Array,
        std: Array,
        width: float | None = None,
        valid_for: str = "none",
        *,
        lower: Array | None = None,
        upper: Array | None = None,
    ) -> None:
        self.mean, self.std, self.width, self.valid_for = mean, std, width, valid_for
        self._given = None if lower is None or upper is None else (lower, upper)
        if width is None and self._given is None:
            raise InvalidInput("An envelope has a width, or a lower and an upper bound at each point.")

    @property
    def lower(self) -> Array:
        """Lower bounds, `(n,)`."""
        return self.mean - self.width * self.std if self._given is None else self._given[0]  # type: ignore[operator]

    @property
    def upper(self) -> Array:
        """Upper bounds, `(n,)`."""
        return self.mean + self.width * self.std if self._given is None else self._given[1]  # type: ignore[operator]


class Bounds(ABC):
    """The bounds of one round, at whichever points: what turns mean and std into an `Envelope`.

    Attributes:
        width: multiplier of the standard deviation; None where the bounds are no such multiple.
    """

    width: float | None = None

    pointwise: ClassVar[bool] = True  # whether mean and std at a point are all that its bounds depend on
    moves: ClassVar[bool] = False  # whether bounds move with the rewards: if all of these grow by one, so do they

    @abstractmethod
    def __call__(self, mean: Array, std: Array, rows: Any = None) -> Envelope:
        """The envelope at n points.

        Args:
            mean: posterior mean of f, reward units, `(n,)`, to be taken over.
            std: posterior standard deviation, likewise.
            rows: the points as the belief knows them, where the bounds are not `pointwise`.
        """


@final
class Symmetric(Bounds):
    """Mean +- width * std."""

    moves: ClassVar[bool] = True

    def __init__(self, width: float) -> None:
        self.width: float = width

    def __call__(self, mean: Array, std: Array, rows: Any = None) -> Envelope:  # noqa: ARG002 - pointwise
        """The same multiple of the standard deviation everywhere."""
        return Envelope(mean, std, self.width)


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
        pull: how far the mean at n points, as the belief knows them, would move for each unit that the target of one of
            the k trials of `Confidence.recent` without an answer moved, `(n, k)`; None without such a window.
        guess: that the bounds have made in this run (`Confidence.guess`); None where they make none.
    """

    posterior: Posterior
    norm_bound: float | None = None
    design: Callable[[], GreedyDesign] | None = None
    noise_factor: float = 1.0
    recent: Callable[[], Array] | None = None
    answers: Posterior | None = None
    pull: Callable[[Any], Array] | None = None
    guess: Guess | None = None

    def norm(self, told: float) -> float:
        """B in force: the guess, or what was told where none is made."""
        return told if self.norm_bound is None else self.norm_bound


class Window(NamedTuple):
    """The last trials asked for."""

    length: float  # rounds, or seconds
    in_time: bool


class Guess(ABC):
    """A number that a theorem takes for known, guessed, and raised when data contradict it."""

    bound: float  # the guess in force
    history: list[tuple[int, float]]  # (rounds so far, guess): the first, and every one that replaced another

    @property
    @final
    def growth(self) -> float:
        """How many times larger the guess is than the first."""
        return self.bound / self.history[0][1]

    @property
    @final
    def refuted(self) -> bool:
        """Whether the data have contradicted the first: what was told is wrong, and nothing is proved from then on."""
        return len(self.history) > 1

    @abstractmethod
    def check(self, rounds: int, posterior: Posterior) -> None:
        """Look whether the data contradict it after so many rounds."""

    @abstractmethod
    def copy(self) -> Self:
        """An independent copy."""


class Confidence(Part):
    """Which bounds hold for f in round t, counted from 1 since the last restart."""

    delta: float = 1.0  # failure probability; 1 where nothing is claimed

    hallucinated: ClassVar[bool] = False  # whether they hold for a variance that counts unanswered trials as answered
    sketched: ClassVar[bool] = False  # whether they hold for a `Sketch`, whose `shortfall` they then heed
    multiple: ClassVar[bool] = False  # whether they are always a multiple of the standard deviation, as draws want it
    grows: ClassVar[bool] = False  # whether the width never falls, but for a series that shares out delta
    own_ridge: ClassVar[bool] = False  # whether lambda is a number of the theorem, whatever the noise

    @property
    def recent(self) -> Window | None:
        """The trials whose std the width depends on, if any."""
        return None

    @property
    def valid_for(self) -> str:
        """See `Envelope.valid_for`; of bounds that nobody has proved, "none"."""
        return "none"

    @property
    def stated_norm(self) -> float | None:
        """The norm bound that the part states, or None."""
        return None

    @property
    def for_all_at_once(self) -> bool:
        """Whether they hold for all functions of their class at once, and so for one that hangs on past noise, too."""
        return False

    @property
    def sub_gaussian(self) -> bool:
        """Whether they hold for any noise that is R-sub-Gaussian, as that of bounded rewards is."""
        return False

    @property
    def likelihood(self) -> bool:
        """Whether they are made of the likelihood of the very rewards, and so need no constant of their noise."""
        return False

    def suits(self, policy: Combination) -> bool:  # noqa: ARG002 - of most that are proved by nothing
        """Whether lambda, noise and domain of a policy are as the proof wants them; if not, nothing is valid there."""
        return True

    def guess(self) -> Guess | None:
        """A fresh guess of what the theorem takes for known, where one is made."""
        return None

    def for_noise(self, noise: float | None, regularization: float) -> Confidence:
        """These bounds of a function that is told with this noise R, under this lambda.

        Args:
            noise: of a constraint, in its units; None where nobody has told it.
            regularization: lambda, likewise, squared.
        """
        of_it: dict[str, Any] = {
            "regularization": regularization, "ridge_large": regularization >= 1.0,
            "noise_matched": noise is not None and regularization == noise**2,
        }  # fmt: skip
        if noise is not None:
            of_it["noise"] = noise
        known = {each.name for each in fields(self)}  # type: ignore[arg-type]  # every part is a dataclass
        return replace(self, **{name: value for name, value in of_it.items() if name in known})  # type: ignore[type-var]

    @abstractmethod
    def bounds(self, t: int, progress: Progress) -> Bounds:
        """The bounds of round t."""


class Width(Confidence):
    """Bounds that are the same multiple of the standard deviation everywhere: how large it is in round t."""

    multiple: ClassVar[bool] = True

    @abstractmethod
    def width(self, t: int, progress: Progress) -> float:
        """The multiplier of the standard deviation in round t."""

    @final
    def bounds(self, t: int, progress: Progress) -> Symmetric:
        """Mean +- width * std."""
        width = self.width(t, progress)
        if not isinstance(width, float) or not math.isfinite(width):
            why = f"It is what `{type(self).__name__}.width` returned, and multiplies the standard deviation."
            width = number("width", width, why=why)
        return Symmetric(width)


def is_matched(policy: Combination) -> bool:
    """Whether lambda is the noise variance sigma^2: Srinivas et al. 2010, eq. 1."""
    return policy.regularization == policy.noise**2


def checked_delta(value: object) -> float:
    """A failure probability, or a clear error."""
    why = "It is the probability that the bounds fail; 0.1 is a common choice."
    return number("delta", value, low=LEAST_DELTA, high=1.0, open_high=True, why=why)


def checked_series(value: object) -> Series | None:
    """The pi_t of Lemma 5.1, or None for the theorem's own."""
    if not isinstance(value, Series | None):
        raise InvalidInput(
            f"`series` must be a part that shares out delta, not {shown(value)}.",
            advice="Such as `nr.slots.PowerSeries(1.5)`.",
        )
    return value


def checked_scale(value: object) -> float:
    """What multiplies beta_t, or a clear error."""
    return number("scale", value, low=0.0, high=LARGEST_REWARD, why="It multiplies beta_t.")


@final
@described
@dataclass(frozen=True, kw_only=True)
class FiniteBayes(Width):
    """Srinivas et al. 2010, Theorem 1: f a sample of the Gaussian process, D finite, Gaussian noise.

    beta_t = scale * 2 log(|D| t^2 pi^2 / (6 delta)); the width is its square root. With `scale` = 1 the envelope holds
    for all arms and rounds with probability at least 1 - delta (Lemma 5.1); the paper's experiments use 1/5, for
    which nothing is proved. With finitely many contexts, |D| counts every (context, arm).
    """

    grows: ClassVar[bool] = True

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

    def suits(self, policy: Combination) -> bool:
        """Lambda = sigma^2, and |D| no more than said."""
        counts = [count_of_points(part) for part in (policy.domain, policy.context) if part is not None]
        finite = [count for count in counts if count is not None]
        return is_matched(policy) and len(finite) == len(counts) and math.prod(finite) <= self.size

    def width(self, t: int, progress: Progress | None = None) -> float:  # noqa: ARG002 - the same whatever is known
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
class CompactBayes(Width):
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

    def suits(self, policy: Combination) -> bool:
        """Lambda = sigma^2."""
        return is_matched(policy)

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
class PointwiseBayes(Width):
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
class ConstantWidth(Width):
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
class ScheduledWidth(Width):
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
class DriftBayes(Width):
    """Avanesov, eq. 3.7: beta_t = D t^{d(d+1) / (2 alpha + d(d+1))} log^p T; width its root. D is chosen by hand.

    Nothing is proved for a given D: the theorem wants it large enough and does not say how large. t is that of the
    round to come, as in Srinivas et al. 2010, Theorem 6, which the proof extends; line 21 of Algorithm 2 has
    |history|, one less.
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
