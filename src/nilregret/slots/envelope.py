"""Lower and upper bounds of f, and the assumptions under which they hold.

| symbol | name | meaning | shape |
|---|---|---|---|
| beta_t^{1/2} | `width` | multiplier of the standard deviation, always | scalar |
| mu, sigma | `mean`, `std` | posterior of f | (n,) |
| delta | `delta` | failure probability of the bounds, over all rounds and points together | (0, 1) |
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, cast, final

import numpy as np

from .._utils.checks import LARGEST_REWARD, LEAST_DELTA, Array, flag, frozen, integer, number, settle, shown
from .._utils.copying import take_back
from .._utils.dataclass import dataclass, fields, replace
from ..domains.domain import count_of_points, enclosing_box
from ..errors import InvalidInput
from ..gp import Posterior
from ..serialize import description
from ..storage.record import Trial
from ..theory.change.schedules import PowerLaw, ucb_beta
from ..theory.series import Series, checked_series
from .base import Part, Policy

if TYPE_CHECKING:
    from ..gp.information_gain import GreedyDesign

LEAST_TAIL = 1e-300  # smallest tail probability of a quantile
MANY_POINTS = 1e60  # |D| beyond which its logarithm is computed apart, against overflow


@final
class Envelope:
    """Bounds of f at n points, either mean +- width * std or given numbers.

    Attributes:
        mean: posterior mean, `(n,)`.
        std: posterior standard deviation of f, `(n,)`.
        width: multiplier of the standard deviation, or None if the bounds have another form.
        valid_for: the quantity that lies inside in all rounds with probability at least 1 - delta. "f" is f at all
            points, "played" is f at the points played (see `CompactBayes`). "none" means that nothing is proved, and no
            report may call the bounds certified.
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
    """The bounds of one round at any points: a map from mean and std to an `Envelope`.

    Attributes:
        width: multiplier of the standard deviation, or None if the bounds have another form.
    """

    width: float | None = None

    pointwise: ClassVar[bool] = True  # True if the bounds at a point depend on mean and std there alone
    moves: ClassVar[bool] = False  # True if a constant added to all rewards is added to the bounds

    def __init_subclass__(cls) -> None:
        """Lets `upper` follow an overridden `__call__`."""
        super().__init_subclass__()
        take_back(cls, "upper", Bounds.upper, ("__call__",))

    @abstractmethod
    def __call__(self, mean: Array, std: Array, rows: Any = None) -> Envelope:
        """Returns the envelope at n points.

        Args:
            mean: posterior mean of f, reward units, `(n,)`. The envelope may keep this array.
            std: posterior standard deviation, reward units, `(n,)`. The envelope may keep this array.
            rows: the points in the form of the posterior, for bounds that are not `pointwise`.
        """

    def upper(self, mean: Array, std: Array, rows: Any = None) -> Array:
        """Returns the upper bounds at n points, `(n,)`, of which both arrays may become part."""
        return self(mean, std, rows).upper


@final
class Symmetric(Bounds):
    """Bounds mean +- width * std."""

    moves: ClassVar[bool] = True

    def __init__(self, width: float) -> None:
        self.width: float = width

    def __call__(self, mean: Array, std: Array, rows: Any = None) -> Envelope:  # noqa: ARG002
        """Returns mean +- width * std."""
        return Envelope(mean, std, self.width)

    def upper(self, mean: Array, std: Array, rows: Any = None) -> Array:  # noqa: ARG002
        """Returns mean + width * std in the place of `std`, in half the time of an envelope."""
        std *= self.width
        std += mean
        return std


@dataclass(slots=True)
class Progress:
    """The state that the width of the coming round may depend on.

    Attributes:
        posterior: posterior of f - prior_mean, given all recorded trials. Of several worlds its information gain, and
            all else that follows from the rewards, is an array `(worlds, 1)`.
        norm_bound: current guess of B, where it is guessed (`NormGuess`).
        design: returns the greedy experimental design of the domain, made at the first call.
        noise_factor: ratio of the noise of a target to the noise of a reward.
        recent: returns the posterior std at the trials of `Confidence.recent`, reward units.
        answers: posterior given the observed trials alone, or None if `posterior` is the same.
        pull: returns the derivatives of the mean at n points in the targets of k pending trials, `(n, k)`. The trials
            are those of `Confidence.recent`. None without such a window.
        guess: guess that the bounds made in this run (`Confidence.guess`), or None.
    """

    posterior: Posterior
    norm_bound: float | None = None
    design: Callable[[], GreedyDesign] | None = None
    noise_factor: float = 1.0
    recent: Callable[[], Array] | None = None
    answers: Posterior | None = None
    pull: Callable[[Any], Array] | None = None
    guess: Guess | None = None

    def norm(self, stated: float) -> float:
        """Returns B in force: the current guess, or the stated number if there is no guess."""
        return stated if self.norm_bound is None else self.norm_bound


class Window(NamedTuple):
    """A number of most recent trials."""

    length: float  # rounds, or seconds
    in_time: bool


class Guess(ABC):
    """A guessed constant of a theorem that is raised when data contradict it."""

    bound: float  # current guess
    history: list[tuple[int, float]]  # (rounds so far, guess) of the first guess and of each replacement

    @property
    @final
    def growth(self) -> float:
        """Ratio of the current guess to the first."""
        return self.bound / self.history[0][1]

    @property
    @final
    def refuted(self) -> bool:
        """True if the data have contradicted the first guess. From then on nothing is proved."""
        return len(self.history) > 1 or bool(self.remarks)

    @property
    def remarks(self) -> Mapping[str, str]:
        """Warnings for the user by kind, while the data contradict a constant that is not raised."""
        return {}

    @abstractmethod
    def check(self, rounds: int, posterior: Posterior) -> None:
        """Raises the guess if the data contradict it.

        Args:
            rounds: number of rounds so far.
            posterior: posterior of f - prior_mean, given the observed trials.
        """

    @abstractmethod
    def copy(self) -> Self:
        """Returns an independent copy."""


class Confidence(Part):
    """Bounds that hold for f in round t, counted from 1 since the last restart."""

    delta: float = 1.0  # failure probability, 1 without a claim

    hallucinated: ClassVar[bool] = False  # True if they hold for a variance that counts pending trials as observed
    sketched: ClassVar[bool] = False  # True if they hold for a `Sketch`, whose `shortfall` they then use
    multiple: ClassVar[bool] = False  # True if they are always a multiple of the standard deviation, which draws need
    grows: ClassVar[bool] = False  # True if the width never falls, except for a series that shares out delta
    own_ridge: ClassVar[bool] = False  # True if the theorem fixes lambda whatever the noise is

    @property
    def recent(self) -> Window | None:
        """Window of trials whose std the width depends on, or None."""
        return None

    @property
    def valid_for(self) -> str:
        """The quantity for which the bounds hold, see `Envelope.valid_for`. "none" unless a proof is known."""
        return "none"

    @property
    def stated_norm(self) -> float | None:
        """The norm bound that the part states, or None."""
        return None

    @property
    def for_all_at_once(self) -> bool:
        """True if the bounds hold for all functions of their class at once.

        They then hold for a function that depends on past noise, too.
        """
        return False

    @property
    def sub_gaussian(self) -> bool:
        """True if the bounds hold for any R-sub-Gaussian noise, as that of bounded rewards is."""
        return False

    @property
    def weighs(self) -> bool:
        """True if the bounds hold where answers have a noise of their own (`Study.tell(std=...)`), or claim nothing."""
        return self.valid_for == "none" and not self.likelihood

    @property
    def why_one_noise(self) -> str:
        """The reason why they do not, where `weighs` is False, for errors."""
        return f"its bounds ({type(self).__name__}) are for one noise of all answers"

    @property
    def likelihood(self) -> bool:
        """True if the bounds use the likelihood of the rewards and need no constant of their noise."""
        return False

    def suits(self, policy: Policy) -> bool:  # noqa: ARG002
        """Returns True if lambda, noise and domain of a policy meet the assumptions of the proof.

        Otherwise `valid_for` counts as "none" there.
        """
        return True

    def guess(self) -> Guess | None:
        """Returns a fresh guess of an unknown constant of the theorem, or None."""
        return None

    def for_noise(self, noise: float | None, regularization: float) -> Confidence:
        """Returns these bounds for a function observed with this noise R under this lambda.

        Args:
            noise: noise of a constraint, in its units, or None if it is unknown.
            regularization: lambda, in squared units of the constraint.
        """
        changed: dict[str, Any] = {
            "regularization": regularization, "ridge_large": regularization >= 1.0,
            "noise_matched": noise is not None and regularization == noise**2,
        }  # fmt: skip
        if noise is not None:
            changed["noise"] = noise
        known = {each.name for each in fields(self)}  # type: ignore[arg-type]   # every part is a dataclass
        return replace(self, **{name: value for name, value in changed.items() if name in known})  # type: ignore[type-var]

    @abstractmethod
    def bounds(self, t: int, progress: Progress) -> Bounds:
        """Returns the bounds of round t.

        Args:
            t: number of the round, counted from 1 since the last restart.
            progress: posterior and other state of the run.
        """


class Width(Confidence):
    """Bounds that are the same multiple of the standard deviation at all points."""

    multiple: ClassVar[bool] = True

    @abstractmethod
    def width(self, t: int, progress: Progress) -> float:
        """Returns the multiplier of the standard deviation in round t.

        Args:
            t: number of the round, counted from 1 since the last restart.
            progress: posterior and other state of the run.
        """

    @final
    def bounds(self, t: int, progress: Progress) -> Symmetric:
        """Returns mean +- width * std."""
        width = self.width(t, progress)
        if not isinstance(width, float) or not math.isfinite(width):
            why = f"It is what `{type(self).__name__}.width` returned, and multiplies the standard deviation."
            width = number("width", width, why=why)
        return Symmetric(width)


def square_root(number: float) -> float:
    """Returns the root of a number, or of an array with a number for each of several worlds."""
    return math.sqrt(number) if isinstance(number, float) else cast(float, np.sqrt(number))


def is_matched(policy: Policy) -> bool:
    """Returns True if lambda is the noise variance sigma^2, as in Srinivas et al. 2010, eq. 1."""
    return bool(policy.regularization == policy.noise**2)


def checked_delta(value: object) -> float:
    """Returns a valid failure probability, or raises `InvalidInput`."""
    why = "It is the probability that the bounds fail; 0.1 is a common choice."
    return number("delta", value, low=LEAST_DELTA, high=1.0, open_high=True, why=why)


def checked_scale(value: object) -> float:
    """Returns a valid multiplier of beta_t, or raises `InvalidInput`."""
    return number("scale", value, low=0.0, high=LARGEST_REWARD, why="It multiplies beta_t.")


@final
@description(frozen=True, kw_only=True)
class FiniteBayes(Width):
    """Srinivas et al. 2010, Theorem 1: f a sample of the Gaussian process, D finite, Gaussian noise.

    beta_t = scale * 2 log(|D| t^2 pi^2 / (6 delta)), and the width is its square root. With `scale` = 1 the envelope
    holds for all arms and rounds with probability at least 1 - delta (Lemma 5.1). The paper's experiments use 1/5, for
    which nothing is proved. With finitely many contexts, |D| counts every (context, arm).
    """

    grows: ClassVar[bool] = True
    batched = weighs = True

    size: int  # |D|
    delta: float = 0.1
    scale: float = 1.0
    noise_matched: bool = True  # True if lambda is the noise variance sigma^2, as in eq. 1 and Lemma 5.1
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
        """Claim "f", unless beta_t is scaled down or lambda is not the noise variance."""
        return "f" if self.scale >= 1.0 and self.noise_matched else "none"

    def suits(self, policy: Policy) -> bool:
        """Returns True if lambda = sigma^2 and the domain has at most |D| points."""
        counts = [count_of_points(part) for part in (policy.domain, policy.context) if part is not None]
        finite = [count for count in counts if count is not None]
        return is_matched(policy) and len(finite) == len(counts) and math.prod(finite) <= self.size

    def for_arms(self, before: int, after: int) -> FiniteBayes:
        """Returns these bounds for more arms.

        The union bound of Lemma 5.1 is over rounds, and in each round over the arms of then. So beta_t may follow |D|.
        """
        return replace(self, size=-(-self.size * after // before))

    def width(self, t: int, progress: Progress | None = None) -> float:  # noqa: ARG002
        """Returns beta_t^{1/2} of Theorem 1, or of Lemma 5.1."""
        if self.series is not None:
            return math.sqrt(self.scale * 2.0 * (math.log(self.size) - math.log(self.delta) + self.series.log(t)))
        if self.size > MANY_POINTS:
            rest = math.log(t**2 * math.pi**2 / (6.0 * self.delta))
            return math.sqrt(self.scale * 2.0 * (math.log(self.size) + rest))
        return math.sqrt(self.scale * 2.0 * math.log(self.size * t**2 * math.pi**2 / (6.0 * self.delta)))


@final
@description(frozen=True, kw_only=True)
class CompactBayes(Width):
    """Srinivas et al. 2010, Theorem 2: f a sample of the Gaussian process on a compact convex D in [0, r]^d.

    beta_t = scale * (2 log(2 t^2 pi^2 / (3 delta)) + 2 d log(t^2 d b r sqrt(log(4 d a / delta)))). Here P(sup |df/dx_j|
    > L) <= a exp(-(L / b)^2) for every j. With `scale` = 1 the envelope holds with probability at least 1 - delta at
    every point played (Lemma 5.5). To within 1/t^2 it also holds at the point of the proof's discretisation next to the
    maximiser of f (Lemma 5.7), as the regret bound needs. D need not be convex, since slopes are bounded on its
    enclosing box.
    """

    batched = weighs = True

    dimension: int  # d
    side: float  # r, the longest side of the box
    log_a: float  # log a. The constant a may be astronomically large, which costs beta_t almost nothing.
    b: float  # reward units per unit of length
    delta: float = 0.1
    scale: float = 1.0
    noise_matched: bool = True  # True if lambda is the noise variance sigma^2, as in eq. 1
    assumed: bool = False  # True if a and b are no bounds, but typical slopes of a rough kernel
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
        """Claim "played", unless beta_t is scaled down, lambda is another number, or a and b are assumed."""
        return "played" if self.scale >= 1.0 and self.noise_matched and not self.assumed else "none"

    def suits(self, policy: Policy) -> bool:
        """Returns True if lambda = sigma^2."""
        return is_matched(policy)

    def for_space(self, before: Policy, after: Policy) -> CompactBayes:
        """Returns these bounds with a and b of the changed kernel, unless they were given."""
        from .widths.slopes import derivative_tail

        ends = [enclosing_box(policy.domain, policy.context) for policy in (before, after)]
        was, now = (derivative_tail(p.kernel, e.lower, e.upper) for p, e in zip((before, after), ends, strict=True))
        derived = was is not None and now is not None and (was.log_a, was.b) == (self.log_a, self.b)
        return replace(self, log_a=now.log_a, b=now.b) if derived and now is not None else self

    def width(self, t: int, progress: Progress) -> float:  # noqa: ARG002
        """Returns beta_t^{1/2} of Theorem 2."""
        d, delta = self.dimension, self.delta
        # Both log(4 d a / delta) and the logarithm around it are positive for every a >= 1 and sensible b r.
        # Otherwise the discretisation of the proof has one point, and the term is 0.
        reach = t**2 * d * self.b * self.side * math.sqrt(max(math.log(4.0 * d / delta) + self.log_a, 0.0))
        if self.series is None:
            beta = 2.0 * math.log(2.0 * t**2 * math.pi**2 / (3.0 * delta)) + 2.0 * d * math.log(max(reach, 1.0))
        else:  # 2 log(4 pi_t / delta): Lemma 5.8
            beta = 2.0 * (math.log(4.0 / delta) + self.series.log(t)) + 2.0 * d * math.log(max(reach, 1.0))
        return math.sqrt(self.scale * beta)


@final
@description(frozen=True, kw_only=True)
class PointwiseBayes(Width):
    """Central posterior intervals of probability 1 - delta, for f a sample of the Gaussian process.

    They hold for one point in one round, not for all at once, so no report calls them certified. Rules without a
    theorem use these bounds.
    """

    batched = True

    delta: float = 0.1

    def __post_init__(self) -> None:
        settle(self, delta=number("delta", self.delta, low=0.0, high=1.0, open_low=True, open_high=True))

    def width(self, t: int, progress: Progress) -> float:  # noqa: ARG002
        """Returns the normal quantile of 1 - delta / 2."""
        from statistics import NormalDist

        return -NormalDist().inv_cdf(max(0.5 * self.delta, LEAST_TAIL))  # 1 - delta / 2 would round away a small delta


@final
@description(frozen=True, kw_only=True)
class ConstantWidth(Width):
    """A width chosen by hand, for which nothing is proved."""

    batched = True

    value: float
    delta: float = 0.1

    def __post_init__(self) -> None:
        settle(self, value=number("width", self.value, low=0.0, high=LARGEST_REWARD, why="It multiplies the std."))
        settle(self, delta=checked_delta(self.delta))

    def width(self, t: int, progress: Progress) -> float:  # noqa: ARG002
        """Returns the given number."""
        return self.value


@final
@description(frozen=True, kw_only=True)
class ScheduledWidth(Width):
    """v_t = constant * t^exponent, chosen by hand: "free parameters" of Chowdhury & Gopalan 2017, section 3."""

    batched = True

    schedule: PowerLaw
    delta: float = 0.1

    def __post_init__(self) -> None:
        if not isinstance(self.schedule, PowerLaw):
            raise InvalidInput(f"`schedule` must be a `PowerLaw`, not {shown(self.schedule)}.")
        settle(self, delta=checked_delta(self.delta))

    def width(self, t: int, progress: Progress) -> float:  # noqa: ARG002
        """Returns v_t."""
        return self.schedule(t)


@final
@description(frozen=True, kw_only=True)
class DriftBayes(Width):
    """Avanesov, eq. 3.7: beta_t = D t^{d(d+1) / (2 alpha + d(d+1))} log^p T, with D chosen by hand.

    The width is the root of beta_t. Nothing is proved for a given D, since the theorem needs a large enough D and does
    not say how large. Here t is the number of the coming round, as in Srinivas et al. 2010, Theorem 6, which the proof
    extends. Line 21 of Algorithm 2 has |history|, one less.
    """

    batched = True

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
        self._beta(1)  # checks the other numbers

    def width(self, t: int, progress: Progress) -> float:  # noqa: ARG002
        """Returns the root of eq. 3.7."""
        return math.sqrt(self._beta(t))

    def _beta(self, t: int) -> float:
        alpha = math.inf if self.alpha is None else self.alpha
        return ucb_beta(
            t, alpha=alpha, dimension=self.dimension, horizon=self.horizon, constant=self.constant,
            log_power=self.log_power,
        )  # fmt: skip


class Expected(NamedTuple):
    """A constraint value and its prediction.

    Attributes:
        value: the observed value.
        seen: predicted mean, std and bounds at the single point.
        noise: standard deviation of the noise of the value.
        prior: prior standard deviation of g at the point, infinite if it is unknown.
        center: prior mean of g at the point.
    """

    value: float
    seen: Envelope
    noise: float
    prior: float
    center: float


class DualState:
    """Run-time state of a constraint rule, such as dual prices or the risk spent. Most rules have none.

    The state is a function of the recorded trials.

    Attributes:
        prices: phi, the price of a violation of each constraint, `(m,)`, read-only.
    """

    prices: Array = frozen(np.zeros(0))
    towards: Array | None = None  # The point that the last decision hoped to certify by a step, `(d,)`.

    def proofs(self, point: Array, context: Array | None) -> tuple[str, ...]:  # noqa: ARG002
        """Returns the proof that each constraint holds at a point, in words. Most rules have none."""
        return ()

    @property
    def remarks(self) -> Mapping[str, str]:
        """Warnings for the user, one sentence for each kind."""
        return {}

    def hear(self, trial: Trial, expected: Callable[[], list[Expected]]) -> None:
        """Records the constraint values of a trial. Called once a trial.

        Trials that come together are recorded in the order of their numbers.

        Args:
            trial: the trial with its constraint values.
            expected: returns the prediction of each value, made before any value that came together with it.
        """

    def due(self, rounds: int) -> bool:  # noqa: ARG002
        """Returns True if `advance` would change the state."""
        return False

    def advance(self, rounds: int) -> None:
        """Updates the state before a decision, when so many rounds have passed and their values are recorded."""

    watches = False  # True if `asked` reads the bounds

    def asked(self, trial: Trial, limits: Callable[[], list[Envelope]]) -> None:
        """Records that a trial was asked.

        Args:
            trial: the new trial.
            limits: returns the bounds of each g_j at its point at the time of asking.
        """

    def left(self, trial: Trial) -> None:
        """Records that a trial was abandoned, or failed without constraint values."""

    def forget_before(self, first: int) -> None:
        """Drops the trials before this one."""

    def copy(self) -> DualState:
        """Returns an independent copy."""
        return self
