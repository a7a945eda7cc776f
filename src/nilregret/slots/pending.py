"""Imputation: the value of a trial whose reward has not come yet.

`Arrivals` estimate the distribution of reward delays from the record.

| symbol | name | meaning | shape |
|---|---|---|---|
| D_i | `delays` | trials asked after an observed trial until its reward came | (n,) |
| A_i | `ages` | trials asked until now, or until the trial was dropped: a reward is seen if D_i <= A_i | (n,) |
| F | `law` | P(D <= age) of the rewards that come | (ages,) |
| q | | probability that a reward comes at all | scalar |

Only rewards that have come are seen, and of young trials only the quick ones. The delays are truncated from the right.
Lynden-Bell (1971) therefore runs time backwards. Of the rewards that could have been seen to take u trials or less (D_i
<= u <= A_i), the share that took exactly u estimates the reversed hazard P(D = u | D <= u). Then F(d) = prod_{u > d} (1
- that share).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Self, final

import numpy as np

from .._utils.checks import LARGEST_REWARD, Array, IndexArray, flag, integer, number, one_of, settle, shown
from .._utils.copying import Copyable
from .._utils.dataclass import dataclass, replace
from .._utils.numerals import exact
from ..errors import InvalidInput
from ..serialize import description
from ..storage.record import Trial
from .base import Part, Policy

if TYPE_CHECKING:
    from ..theory.delays import Delay

MEANS = np.geomspace(0.25, 4000.0, 72)  # means of geometric laws, in trials
TYPICAL = 10.0  # trials: prior median of the mean delay, right within a factor of e in two of three cases
WEIGHT = 5.0  # weight of the geometric law, as a number of rewards
LONGEST = 20_000  # trials: the longest delay in a table
SETTLED = 1e-3  # share of rewards still to come, below which silence is final
SELDOM = 50  # The law is estimated again when a fiftieth more trials were asked.
OPEN, APART = -1, -2  # codes of trials without a reward: it may come, or the delay is unknown


class Waits(ABC):
    """Run-time memory of how long rewards take, a function of the recorded trials.

    Attributes:
        evident: True if silence is known to be an observation.
    """

    evident: bool = False

    @abstractmethod
    def ask(self, trial: Trial) -> None:
        """Records that a trial was asked."""

    @abstractmethod
    def hear(self, trial: Trial) -> None:
        """Records the outcome of a trial."""

    @abstractmethod
    def forget(self, first: int) -> None:
        """Drops the trials before this one. Their later outcomes are ignored."""

    @abstractmethod
    def moving(self) -> list[int]:
        """Returns the numbers of the pending trials whose imputed value may have changed since the last call."""

    @abstractmethod
    def values(self, ages: IndexArray, means: Array, charges: Array, lowest: float) -> list[float | None]:
        """Returns the imputed values of pending trials, `(n,)`, each None for the variance alone.

        Args:
            ages: number of trials asked after each.
            means: posterior mean at each, in units of the target.
            charges: penalty for violations at each, as far as it is known. 0 without multipliers.
            lowest: smallest reward of the part (`Pending.lowest`), reward units.
        """

    def shares(self, known: Mapping[int, float]) -> list[tuple[int, float]]:  # noqa: ARG002
        """Returns pending trials that count as another share of an observation now, each with this share.

        Args:
            known: the shares that trials count as so far, by number.
        """
        return []

    def over(self, name: int, age: int) -> bool:  # noqa: ARG002
        """Returns whether a detector takes the silence of a pending trial for an observation, if it is one.

        Args:
            name: number of the trial.
            age: number of trials asked after it.
        """
        return age >= self.settled

    @property
    def settled(self) -> float:
        """Number of later trials after which a detector takes silence for an observation, if it is one."""
        return math.inf

    def worth(self, lowest: float) -> float:
        """Returns the reward that silence stands for, where `lowest` is the part's smallest (`Pending.lowest`)."""
        return lowest

    def answer(self) -> float | None:
        """Returns the average value of a reward, or None if it is unknown or silence is no observation."""
        return None

    @abstractmethod
    def copy(self) -> Self:
        """Returns an independent copy."""

    @abstractmethod
    def ages(self, numbers: list[int]) -> IndexArray:
        """Returns how many trials were asked after each of these pending trials, `(n,)`."""


@final
class Law:
    """A distribution function F at ages 0, 1, ..., which is 1 beyond the last age.

    Attributes:
        table: F, ascending, `(ages,)`.
        final_age: first age at which F >= 1 - SETTLED.
    """

    def __init__(self, table: Array) -> None:
        self.table = table
        self.final_age = self.reaches(1.0 - SETTLED)

    def reaches(self, share: float) -> int:
        """Returns the first age by which this share of the rewards has come."""
        return int(np.searchsorted(self.table, share))

    def later(self, ages: IndexArray) -> Array:
        """Returns 1 - F at ages `(n,)`."""
        return np.where(ages < len(self.table), 1.0 - self.table[np.minimum(ages, len(self.table) - 1)], 0.0)


def given_law(delay: Delay) -> Law:
    """Returns the law of a known delay."""
    last = 1
    while last < LONGEST and (delay.within(float(last)) or 0.0) < 1.0 - SETTLED:
        last *= 2
    return Law(np.array([delay.within(float(age)) or 0.0 for age in range(min(last, LONGEST) + 1)]))


def estimated_law(delays: IndexArray, ages: IndexArray) -> Law:
    """Returns Lynden-Bell's estimate with a geometric law as prior.

    The geometric law counts as a few more rewards. It is the estimate before the first reward.

    Args:
        delays: D_i of the rewards that came, `(n,)`.
        ages: A_i of the same trials, `(n,)`.
    """
    ratio = _geometric(delays, ages)
    longest = int(delays.max()) if len(delays) else 0
    top = min(max(longest + 1, math.ceil(math.log(0.1 * SETTLED) / math.log(ratio))), LONGEST)
    u = np.arange(top + 1)
    hazards = (1.0 - ratio) * ratio**u / (1.0 - ratio ** (u + 1))  # reversed hazards of the geometric law
    came = np.bincount(np.minimum(delays, top), minlength=top + 1)
    younger = np.concatenate([[0], np.cumsum(np.bincount(np.minimum(ages, top + 1), minlength=top + 2))[:top]])
    at_risk = np.cumsum(came) - younger  # number with D_i <= u <= A_i
    share = (WEIGHT * hazards + came) / (WEIGHT + at_risk)
    steps = np.log1p(-np.minimum(share[1:], 1.0 - 1e-12))
    return Law(np.exp(np.concatenate([np.cumsum(steps[::-1])[::-1], [0.0]])))  # F(d) = prod_{u > d} (1 - share)


def _geometric(delays: IndexArray, ages: IndexArray) -> float:
    """Returns the ratio mean / (1 + mean) of the geometric law with the largest posterior density.

    The likelihood is conditional on D_i <= A_i.
    """
    ratios = MEANS / (1.0 + MEANS)
    fit = -0.5 * np.log(MEANS / TYPICAL) ** 2 + len(delays) * np.log1p(-ratios) + delays.sum() * np.log(ratios)
    kinds, counts = np.unique(np.minimum(ages, LONGEST), return_counts=True)
    fit -= np.log1p(-(ratios[:, None] ** (kinds + 1.0))) @ counts
    return float(ratios[int(fit.argmax())])


@final
class Arrivals(Copyable):
    """The trials asked, and when their rewards came.

    Attributes:
        asked: number of trials so far.
        law: current law of delays.
        rewards: rewards in the order in which they came.
        open: place of each pending trial among all trials asked, by trial number.
    """

    OWNED = ("rewards", "open", "_numbers", "_delays", "_ends")

    def __init__(self, delay: Delay | None) -> None:
        self._given = None if delay is None else given_law(delay)
        self.asked = 0
        self.rewards: list[float] = []
        self.open: dict[int, int] = {}  # pending trials that count
        self._numbers: list[int] = []
        self._delays: list[int] = []
        self._ends: list[int] = []  # number of trials when each of the first trials was dropped
        self._due = 0  # number of trials at which the next law is due
        self.law = estimated_law(*self._answered()) if self._given is None else self._given

    def add(self, trial: Trial) -> None:
        """Records that a trial was asked."""
        self.open[trial.number] = self.asked
        self._numbers.append(trial.number)
        self._delays.append(OPEN)
        self.asked += 1

    def record(self, trial: Trial) -> None:
        """Records an outcome. A failure tells nothing about delays."""
        place = self.open.pop(trial.number, None)
        if place is not None:
            self._delays[place] = APART if trial.reward is None else self.asked - 1 - place
            if trial.reward is not None:
                self.rewards.append(trial.reward)

    def drop_before(self, first: int) -> None:
        """Drops the trials before this one, whose later rewards are ignored."""
        while len(self._ends) < self.asked and self._numbers[len(self._ends)] < first:
            self.open.pop(self._numbers[len(self._ends)], None)
            self._ends.append(self.asked)

    def refresh(self) -> bool:
        """Estimates a new law if one is due and returns True if it was."""
        if self.asked < self._due:
            return False
        self._due = self.asked + max(1, self.asked // SELDOM)
        if self._given is None:
            self.law = estimated_law(*self._answered())
        return True

    def _limits(self) -> IndexArray:
        """Returns A_i of all trials."""
        ends = np.full(self.asked, self.asked)
        ends[: len(self._ends)] = self._ends
        return np.asarray(ends - 1 - np.arange(self.asked))

    def _answered(self) -> tuple[IndexArray, IndexArray]:
        delays = np.array(self._delays, dtype=np.intp)
        return delays[delays >= 0], self._limits()[delays >= 0]

    def by_age(self, age: int, first: int) -> tuple[int, int]:
        """Returns how many of the trials before `first` have reached an age, and how many of these have a reward.

        Trials whose delay is unknown do not count.
        """
        delays = np.array(self._delays, dtype=np.intp)
        old = (np.minimum(self._limits(), first - 1 - np.arange(self.asked)) >= age) & (delays != APART)
        return int(old.sum()), int((delays[old] >= 0).sum())


FAILED = ("aside", "worst", "weighed")
LATE = ("drop", "accept")
SAME_DISTANCE = 12  # decimals to which distances are compared, in units of the domain's sides
NOISE_STDS = 6.0  # A reward lies this many noise standard deviations below the minimum of f once in 10^9 times.


class ImputedValue(NamedTuple):
    """The imputed value of a trial without a reward, as an observation of `value` in reward units.

    With None the variance shrinks and the mean stays. This is only for parts with `Pending.hallucinates`.
    """

    value: float | None


class Answers(ABC):
    """The observed trials that count, and a posterior of these alone.

    Attributes:
        rows: distinct (context, point) with rewards, `(n, c + d)`, each column in units of the domain's side.
    """

    rows: Array

    @abstractmethod
    def row(self, trial: Trial) -> Array:
        """Returns (context, point) of a trial, `(c + d,)`, in the same units."""

    @abstractmethod
    def means(self, which: IndexArray) -> Array:
        """Returns the posterior mean of the observed trials at k of the rows, `(k,)`, reward units."""


class PendingInfo(NamedTuple):
    """Information about a pending trial.

    Attributes:
        lowest: smallest known reward (`Pending.lowest`), minus `charge`.
        prior_mean: prior mean of f in reward units, the policy's or the last fitted one.
        age: returns the number of trials asked after this one.
        mean: returns the posterior mean at the trial, reward units.
        answers: returns the observed trials alone (`Pending.moves`).
        charge: returns the penalty for violations at the trial. Under multipliers it is the penalty of the constraint
            values at the nearest observed point, otherwise 0. The target is the reward minus this penalty.
        waits: memory of the part about delays (`Pending.waits`).
    """

    lowest: float
    prior_mean: float
    age: Callable[[], int]
    mean: Callable[[], float]
    answers: Callable[[], Answers]
    charge: Callable[[], float] = float  # 0.0
    waits: Waits | None = None


@dataclass(frozen=True, kw_only=True)
class Pending(Part):
    """The imputation for trials without a reward.

    Attributes:
        failed: treatment of trials reported as failed (`study.fail`). The point of a failed trial is excluded in any
            case. "aside" does no more, and is right if failures do not depend on the point. "worst" also counts the
            trial as an observation of the smallest reward so far (the prior mean before the first). The policy then
            leaves a whole region of failures, and no bounds are proved.
            "weighed" does the same beside answers that do not tell their noise (`std`). Beside others the value has the
            geometric mean of two noise variances, the median one told and the prior one of f. Then measurements prevail
            where there are some. So do the values of pending trials.
    """

    failed: Literal["aside", "worst", "weighed"] = "aside"

    as_answered: ClassVar[bool] = False  # True if every answer counts as observed, and the mean is of answers alone
    hallucinates: ClassVar[bool] = False  # True if trials may shrink the variance alone
    moves: ClassVar[bool] = False  # True if imputed values may change in every round
    in_time: ClassVar[bool] = False  # True if the part reads the clock, which then must not go back

    def __post_init__(self) -> None:
        settle(self, failed=one_of("failed", self.failed, FAILED))

    @abstractmethod
    def count_as(self, trial: Trial, known: PendingInfo) -> ImputedValue | None:
        """Returns the imputed value of a trial whose reward is missing or came too late, or None for no value.

        Args:
            trial: the trial, as it was asked.
            known: information about the trial, of which costly parts are computed when they are called.
        """

    @final
    def checked(self, imputed: ImputedValue) -> float | None:
        """Returns the value of what `count_as` returned, or None if it only lowers the variance.

        Raises:
            InvalidInput: if it is no `ImputedValue`, or has no value although `hallucinates` is False.
        """
        name = type(self).__name__
        if not isinstance(imputed, ImputedValue):
            raise InvalidInput(
                f"`{name}.count_as` returned {shown(imputed)}: it must be an `ImputedValue(value)`, "
                "`ImputedValue(None)` for the variance alone, or None for nothing."
            )
        if imputed.value is None and not self.hallucinates:
            raise InvalidInput(
                f"`{name}` counts a trial for the variance alone (`ImputedValue(None)`) and does not say that it ever "
                "does: set `hallucinates = True` in the class, or return None where a trial is to count as nothing."
            )
        return imputed.value

    def waits(self) -> Waits | None:
        """Returns a fresh memory of how long rewards take, or None."""
        return None

    def stand_in(self, lowest: float) -> float | None:  # noqa: ARG002
        """Returns the one reward that all pending trials count as, or None if there is no such reward."""
        return None

    @property
    def revises(self) -> bool:
        """True if imputed values count, or if the value of a trial may change."""
        return True

    def counts(self, trial: Trial, asked_since: Callable[[], int]) -> bool:  # noqa: ARG002
        """Returns True if a reward counts, False if the imputed value stays in its place.

        Args:
            trial: the trial with its reward.
            asked_since: returns how many trials were asked between this trial and its reward.
        """
        return True

    def lowest(self, least: float | None, prior_mean: float) -> float:
        """Returns the smallest reward, as far as it is known.

        Args:
            least: smallest reward so far, or None before the first.
            prior_mean: prior mean of f, reward units.
        """
        return prior_mean if least is None else least

    def check_reward(self, reward: float, noise: float) -> None:
        """Raises `InvalidInput` for an impossible reward, before it is recorded.

        Args:
            reward: the reward, in the user's units.
            noise: standard deviation of the noise, reward units.
        """

    def turned(self) -> Pending:
        """Returns this part, made for losses, as a part for rewards, which are minus the losses.

        Studies that minimise use it (`Study(goal="minimize")`). A part without numbers in reward units returns itself.
        """
        return self

    def check_loss(self, loss: float, noise: float) -> None:
        """Raises `InvalidInput` for an impossible loss of a study that minimises, before it is recorded."""
        self.turned().check_reward(0.0 - loss, noise)

    def proves(self, proved: str, policy: Policy) -> str:  # noqa: ARG002
        """Returns the part of the width's claim that remains. Under imputed values nothing remains.

        Args:
            proved: claim of the width, a value of `Envelope.valid_for`.
            policy: the policy, for its other parts.
        """
        return "none"


@final
@description(frozen=True, kw_only=True)
class Ignored(Pending):
    """No imputation: a pending trial has no effect until its reward comes.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ucb(arms, kernel, noise=0.1, pending=nr.slots.Ignored())
    >>> len(nr.Study(policy).ask(count=3))
    3
    """

    as_answered: ClassVar[bool] = True
    batched = True

    def count_as(self, trial: Trial, known: PendingInfo) -> None:
        """Returns None."""

    @property
    def revises(self) -> bool:
        """True if failures count."""
        return self.failed != "aside"

    def proves(self, proved: str, policy: Policy) -> str:  # noqa: ARG002
        """Returns the whole claim, unless the width is for censored rewards."""
        return "none" if proved == "rho_m f" else proved


@final
@description(frozen=True, kw_only=True)
class Hallucinated(Pending):
    """Imputation by the posterior mean: the variance shrinks, and the mean stays that of the observed trials.

    GP-BUCB (Desautels, Krause & Burdick 2014) and GP-BTS (Chowdhury & Gopalan 2019). Their theorems need a wider width.
    Without it (`gp_bucb(inflation=...)`) nothing is proved for the bounds.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ucb(arms, kernel, noise=0.1, pending=nr.slots.Hallucinated())
    >>> len(nr.Study(policy).ask(count=3))
    3
    """

    as_answered: ClassVar[bool] = True
    hallucinates: ClassVar[bool] = True
    batched = True

    def count_as(self, trial: Trial, known: PendingInfo) -> ImputedValue:  # noqa: ARG002
        """Returns an imputed value for the variance alone."""
        return ImputedValue(None)

    def proves(self, proved: str, policy: Policy) -> str:
        """Returns the whole claim for a width that is proved under such a variance, otherwise "none"."""
        return proved if policy.confidence.hallucinated and proved != "rho_m f" else "none"


@final
@description(frozen=True, kw_only=True)
class NearestMeans(Pending):
    """Imputation by the posterior mean at the nearest observed points (Verma, Dai & Low 2022, footnote 3).

    The footnote proposes "the k-nearest posterior means". Here the value is the average posterior mean of the observed
    trials over the k nearest distinct observed points. It changes as rewards come. Before the first reward it is the
    prior mean. At an observed point, k = 1 equals `Hallucinated`. Far from all observed points it extrapolates their
    value, whereas `Hallucinated` returns to the prior mean. Nothing is proved.

    Attributes:
        neighbours: k. Distances are between pairs (context, point), each column in units of the domain's side.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ucb(arms, kernel, noise=0.1, pending=nr.slots.NearestMeans(neighbours=3))
    >>> len(nr.Study(policy).ask(count=3))
    3
    """

    neighbours: int = 1

    moves: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        why = "It is how many answered points an unanswered one takes its value from."
        settle(self, neighbours=integer("neighbours", self.neighbours, low=1, why=why))

    def count_as(self, trial: Trial, known: PendingInfo) -> ImputedValue:
        """Returns the average over the nearest points, or the prior mean before the first reward."""
        answers = known.answers()
        if not len(answers.rows):
            return ImputedValue(known.prior_mean)
        distances = np.linalg.norm(answers.rows - answers.row(trial), axis=1)
        nearest = np.argsort(np.round(distances, SAME_DISTANCE), kind="stable")  # Ties go to the earlier points.
        return ImputedValue(float(answers.means(nearest[: self.neighbours]).mean()))


@final
@description(frozen=True, kw_only=True)
class Censored(Pending):
    """Imputation by the smallest reward (Verma, Dai & Low 2022, section 3.1).

    ytilde_{s,t} = y_s 1{d_s <= min(m, t - s)}: a reward counts from the next trial on. It counts only if at most m
    other trials were asked in between, or at most a duration m has passed.

    Attributes:
        minimum: smallest value of f, reward units ("shifted to 0" in the paper). None if it is unknown. Then the
            smallest reward so far, or the prior mean before the first, takes its place. In a study that minimises it is
            the largest loss, which is the worst value too.
        window: m, in rounds, or seconds with `in_time`.
        in_time: True if the window is a duration.
        late: "drop" records a later reward and never counts it, as in the paper. "accept" counts it.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ucb(arms, kernel, noise=0.1, pending=nr.slots.Censored(window=10, minimum=0.0))
    >>> len(nr.Study(policy).ask(count=3))
    3
    """

    minimum: float | None
    window: float
    in_time: bool = False  # type: ignore[misc]   # a class variable of other parts
    late: str = "drop"

    batched = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.minimum is not None:
            minimum = number("minimum", self.minimum, low=-LARGEST_REWARD, high=LARGEST_REWARD)
            settle(self, minimum=minimum)
        why = "It is how many rounds (or how long) an answer is waited for."
        settle(self, window=number("window", self.window, low=0.0, why=why))
        settle(self, late=one_of("late", self.late, LATE), in_time=flag("in_time", self.in_time))

    @classmethod
    def within(cls, window: float | timedelta, *, minimum: float | None, late: str = "drop") -> Censored:
        """Returns a part with a window in rounds, or a `timedelta`."""
        in_time = isinstance(window, timedelta)
        seconds = window.total_seconds() if isinstance(window, timedelta) else window
        return cls(minimum=minimum, window=seconds, in_time=in_time, late=late)

    def lowest(self, least: float | None, prior_mean: float) -> float:
        """Returns the minimum if it is known."""
        return super().lowest(least, prior_mean) if self.minimum is None else self.minimum

    def stand_in(self, lowest: float) -> float:
        """Returns the smallest reward, without any penalty."""
        return lowest

    def count_as(self, trial: Trial, known: PendingInfo) -> ImputedValue:  # noqa: ARG002
        """Returns the minimum, ytilde = 0 of eq. 1, minus the penalty under multipliers."""
        return ImputedValue(known.lowest)

    def proves(self, proved: str, policy: Policy) -> str:
        """Returns the claim if targets are those of eq. 1.

        The prior mean must be the fixed minimum, late rewards must never count, and both windows must be the same.
        """
        recent = policy.confidence.recent
        as_proved = (
            proved == "rho_m f"
            and self.minimum == policy.prior_mean
            and self.late == "drop"
            and recent is not None
            and (self.window, self.in_time) == (recent.length, recent.in_time)
        )
        return proved if as_proved else "none"

    def counts(self, trial: Trial, asked_since: Callable[[], int]) -> bool:
        """Returns True if the reward came within the window of trials, or of time."""
        if self.late == "accept":
            return True
        if self.in_time:
            if trial.told_at is None:
                return False
            # The difference of two times is rounded. A reward at the very end of the window still counts.
            return trial.told_at - trial.asked_at <= self.window + 2.0 * math.ulp(trial.told_at)
        return asked_since() <= self.window

    def check_reward(self, reward: float, noise: float) -> None:
        """Raises `InvalidInput` for a reward so far below the minimum that noise cannot explain it."""
        if self.minimum is not None and reward < self.minimum - NOISE_STDS * noise:
            raise InvalidInput(
                f"`reward` is {exact(reward)}, below the declared minimum of {exact(self.minimum)} by more than "
                f"{exact(NOISE_STDS)} standard deviations of the noise. An unanswered trial counts as the minimum, so "
                "that must be the worst that is expected of any point. Start a new study with a lower `minimum`.",
                advice="`add` takes over the rewards there are.",
                topic="minimum",
            )

    def turned(self) -> Censored:
        """Returns the part with the largest loss as minus the smallest reward."""
        return self if self.minimum is None else replace(self, minimum=0.0 - self.minimum)

    def check_loss(self, loss: float, noise: float) -> None:
        """Raises `InvalidInput` for a loss so far above the worst that noise cannot explain it."""
        if self.minimum is not None and loss > self.minimum + NOISE_STDS * noise:
            raise InvalidInput(
                f"`reward` is {exact(loss)}, worse than the declared worst (`minimum`) of {exact(self.minimum)} by "
                f"more than {exact(NOISE_STDS)} standard deviations of the noise. An unanswered trial counts as the "
                "worst that is expected of any point, and in a study that minimises that is the largest value. Start a "
                "new study with a larger `minimum`.",
                advice="`add` takes over the values there are.",
                topic="minimum",
            )
