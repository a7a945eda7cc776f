"""What a trial counts as that was asked for and not answered yet."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import ClassVar, NamedTuple, final

import numpy as np

from .._utils.checks import LARGEST_REWARD, Array, IndexArray, flag, integer, number, one_of, settle, shown
from .._utils.errors import InvalidInput
from .._utils.serialize import described
from ..storage.record import Trial
from .base import Combination, Part
from .delay_law import Waits

FAILED = ("aside", "worst")
LATE = ("drop", "accept")
SAME_DISTANCE = 12  # decimals to which distances, in units of the domain's sides, are told apart
NOISE_STDS = 6.0  # how far noise may take a reward below the minimum of f: further, once in a thousand million times


class ImputedValue(NamedTuple):
    """What a trial counts as without an answer of its own: an observation of `value`, reward units.

    With None the variance shrinks and the mean stays; only for parts that say so (`Pending.hallucinates`).
    """

    value: float | None


class Answers(ABC):
    """The answers that count, and a posterior of them alone.

    Attributes:
        rows: distinct (context, point) with answers, `(n, c + d)`, each column in units of the domain's side.
    """

    rows: Array

    @abstractmethod
    def row(self, trial: Trial) -> Array:
        """(context, point) of a trial, `(c + d,)`, likewise."""

    @abstractmethod
    def means(self, which: IndexArray) -> Array:
        """The posterior mean of the answers, `(k,)`, reward units, at k of the rows."""


class PendingInfo(NamedTuple):
    """What may be known of an unanswered trial.

    Attributes:
        lowest: the smallest reward there is, as far as is known (`Pending.lowest`), less `charge`.
        prior_mean: of f, reward units: the policy's, or the one that was fitted last.
        age: questions asked after this trial's own.
        mean: gives the posterior mean at the trial, reward units.
        answers: gives the answers alone (`Pending.moves`).
        charge: gives what is charged for violations at the trial, as far as is known: under multipliers the penalty of
            the constraint values at the answered point nearest to it, else 0. What is learned is the reward less that.
        waits: what the part remembers of the run (`Pending.waits`).
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
    """What an unanswered trial counts as.

    Attributes:
        failed: what a trial counts as that was reported to have failed (`study.fail`). Its point is set aside in any
            case; "aside" does no more, and is right where failures have nothing to do with the point. With "worst" it
            also counts as an observation of the smallest reward told so far (the prior mean before the first), so that
            a whole region where nothing works is left; then no bounds are proved.
    """

    failed: str = "aside"

    as_answered: ClassVar[bool] = False  # whether every answer counts as itself, and the mean is that of the answers
    hallucinates: ClassVar[bool] = False  # whether trials may count for the variance alone
    moves: ClassVar[bool] = False  # whether what an unanswered trial counts as may change in every round
    in_time: ClassVar[bool] = False  # whether it looks at the clock, which then must not go back

    def __post_init__(self) -> None:
        settle(self, failed=one_of("failed", self.failed, FAILED))

    @abstractmethod
    def count_as(self, trial: Trial, known: PendingInfo) -> ImputedValue | None:
        """What a trial counts as that is not answered, or whose answer came too late; None for nothing."""

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
        """What is remembered of a run about how long answers take, afresh; None where nothing is."""
        return None

    def stand_in(self, lowest: float) -> float | None:  # noqa: ARG002 - of most there is none
        """The one reward that all unanswered trials count as, where there is one."""
        return None

    @property
    def revises(self) -> bool:
        """Whether anything but answers counts, or what counts may change."""
        return True

    def counts(self, trial: Trial, asked_since: Callable[[], int]) -> bool:  # noqa: ARG002 - mostly all do
        """Whether an answer counts, which came after so many further questions, instead of what stood in for it."""
        return True

    def lowest(self, least: float | None, prior_mean: float) -> float:
        """The smallest reward there is: the smallest told so far (`least`), the prior mean before the first."""
        return prior_mean if least is None else least

    def check_reward(self, reward: float, noise: float) -> None:
        """Refuse a reward that cannot be; called before it is recorded."""

    def turned(self) -> Pending:
        """This part for rewards, where it was made for losses (`Study(goal="minimize")`), which are minus the rewards.

        Itself, where it holds no number that is a place in the units of the reward.
        """
        return self

    def check_loss(self, loss: float, noise: float) -> None:
        """Refuse a loss that cannot be, of a study that minimises; called before it is recorded."""
        self.turned().check_reward(0.0 - loss, noise)

    def proves(self, proved: str, policy: Combination) -> str:  # noqa: ARG002 - see `Policy.valid_for`
        """What of the width's claim is left: nothing, where something stands in for answers."""
        return "none"


@final
@described
@dataclass(frozen=True, kw_only=True)
class Ignored(Pending):
    """Nothing: until its answer comes the trial might as well not have been asked for."""

    as_answered: ClassVar[bool] = True

    def count_as(self, trial: Trial, known: PendingInfo) -> None:
        """Nothing."""

    @property
    def revises(self) -> bool:
        """Only where failures count."""
        return self.failed != "aside"

    def proves(self, proved: str, policy: Combination) -> str:  # noqa: ARG002 - whatever else the policy has
        """All, but for a width that is for censored answers."""
        return "none" if proved == "rho_m f" else proved


@final
@described
@dataclass(frozen=True, kw_only=True)
class Hallucinated(Pending):
    """An observation of the posterior mean: the variance shrinks, the mean stays as the answered trials have it.

    GP-BUCB (Desautels, Krause & Burdick 2014) and GP-BTS (Chowdhury & Gopalan 2019). Their theorems ask for a wider
    width: without it (`gp_bucb(inflation=...)`) bounds count as proved for nothing.
    """

    as_answered: ClassVar[bool] = True
    hallucinates: ClassVar[bool] = True

    def count_as(self, trial: Trial, known: PendingInfo) -> ImputedValue:  # noqa: ARG002 - all alike
        """The variance alone."""
        return ImputedValue(None)

    def proves(self, proved: str, policy: Combination) -> str:
        """All, with a width that is for such a variance."""
        return proved if policy.confidence.hallucinated and proved != "rho_m f" else "none"


@final
@described
@dataclass(frozen=True, kw_only=True)
class NearestMeans(Pending):
    """An observation of the posterior mean at the answered points nearby (Verma, Dai & Low 2022, footnote 3).

    The footnote proposes "the k-nearest posterior means": here the average, over the k distinct answered points that
    are nearest, of the posterior mean of the answered trials alone. It moves as answers come. Before the first answer
    it is the prior mean. At a point that has been answered, k = 1 is `Hallucinated`; far from all of them it carries
    their value over, where hallucination falls back to the prior mean. Nothing is proved.

    Attributes:
        neighbours: k. Distances are taken in (context, point), each column in units of the domain's side.
    """

    neighbours: int = 1

    moves: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        why = "It is how many answered points an unanswered one takes its value from."
        object.__setattr__(self, "neighbours", integer("neighbours", self.neighbours, low=1, why=why))

    def count_as(self, trial: Trial, known: PendingInfo) -> ImputedValue:
        """The average over the nearest; the prior mean before the first answer."""
        answers = known.answers()
        if not len(answers.rows):
            return ImputedValue(known.prior_mean)
        distances = np.linalg.norm(answers.rows - answers.row(trial), axis=1)
        nearest = np.argsort(np.round(distances, SAME_DISTANCE), kind="stable")  # of those equally far the first ones
        return ImputedValue(float(answers.means(nearest[: self.neighbours]).mean()))


@final
@described
@dataclass(frozen=True, kw_only=True)
class Censored(Pending):
    """An observation of the smallest reward there is (Verma, Dai & Low 2022, section 3.1).

    ytilde_{s,t} = y_s 1{d_s <= min(m, t - s)}: the answer counts from the question after it came, if no more than m
    other trials were asked for in between (or not more than a duration m has passed).

    Attributes:
        minimum: the smallest value of f, reward units ("shifted to 0" in the paper); None where it is not known: then
            the smallest reward told so far, or the prior mean before the first, takes its place. In a study that
            minimises it is the worst value all the same: the largest loss.
        window: m, in rounds, or seconds where `in_time`.
        in_time: whether the window is a time.
        late: "drop" as in the paper, a later answer is recorded and never counts; or "accept", it counts all the same.
    """

    minimum: float | None
    window: float
    in_time: bool = False  # type: ignore[misc]  # of other parts it is no choice
    late: str = "drop"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.minimum is not None:
            minimum = number("minimum", self.minimum, low=-LARGEST_REWARD, high=LARGEST_REWARD)
            object.__setattr__(self, "minimum", minimum)
        why = "It is how many rounds (or how long) an answer is waited for."
        object.__setattr__(self, "window", number("window", self.window, low=0.0, why=why))
        settle(self, late=one_of("late", self.late, LATE), in_time=flag("in_time", self.in_time))

    @classmethod
    def within(cls, window: float | timedelta, *, minimum: float | None, late: str = "drop") -> Censored:
        """From a window in rounds, or a `timedelta`."""
        in_time = isinstance(window, timedelta)
        seconds = window.total_seconds() if isinstance(window, timedelta) else window
        return cls(minimum=minimum, window=seconds, in_time=in_time, late=late)

    def lowest(self, least: float | None, prior_mean: float) -> float:
        """The minimum, where it is known."""
        return super().lowest(least, prior_mean) if self.minimum is None else self.minimum

    def stand_in(self, lowest: float) -> float:
        """The lowest, before anything is charged."""
        return lowest

    def count_as(self, trial: Trial, known: PendingInfo) -> ImputedValue:  # noqa: ARG002 - all alike
        """The minimum, eq. 1's ytilde = 0; under multipliers less what they charge there."""
        return ImputedValue(known.lowest)

    def proves(self, proved: str, policy: Combination) -> str:
        """Where targets are eq. 1's: a prior mean at a fixed minimum, late answers never counted, one window."""
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
        """Whether the answer of a trial came soon enough: after so many further questions, or by its own times."""
        if self.late == "accept":
            return True
        if self.in_time:
            if trial.told_at is None:
                return False
            # The difference of two times is rounded: an answer at the very end of the window still counts.
            return trial.told_at - trial.asked_at <= self.window + 2.0 * math.ulp(trial.told_at)
        return asked_since() <= self.window

    def check_reward(self, reward: float, noise: float) -> None:
        """Refuse a reward so far below the declared minimum that noise cannot have taken it there."""
        if self.minimum is not None and reward < self.minimum - NOISE_STDS * noise:
            raise InvalidInput(
                f"`reward` is {reward:g}, below the declared minimum of {self.minimum:g} by more than {NOISE_STDS:g} "
                "standard deviations of the noise. An unanswered trial counts as the minimum, so that must be the "
                "worst that is expected of any point. Start a new study with a lower `minimum`.",
                advice="`add` takes over the rewards there are.",
                topic="minimum",
            )

    def turned(self) -> Censored:
        """The largest loss is minus the smallest reward."""
        return self if self.minimum is None else replace(self, minimum=0.0 - self.minimum)

    def check_loss(self, loss: float, noise: float) -> None:
        """Refuse a loss so far above the declared worst that noise cannot have taken it there."""
        if self.minimum is not None and loss > self.minimum + NOISE_STDS * noise:
            raise InvalidInput(
                f"`reward` is {loss:g}, worse than the declared worst (`minimum`) of {self.minimum:g} by more than "
                f"{NOISE_STDS:g} standard deviations of the noise. An unanswered trial counts as the worst that is "
                "expected of any point, and in a study that minimises that is the largest value. Start a new study "
                "with a larger `minimum`.",
                advice="`add` takes over the values there are.",
                topic="minimum",
            )
