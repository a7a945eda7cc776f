"""What a trial counts as that was asked for and not answered yet."""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import final

import numpy as np

from ..checks import LARGEST_REWARD, Array, IndexArray, flag, integer, number, one_of, settle
from ..errors import InvalidInput
from ..record import Trial
from ..serialize import described

FAILED = ("aside", "worst")
LATE = ("drop", "accept")
SAME_DISTANCE = 12  # decimals to which distances, in units of the domain's sides, are told apart
NOISE_STDS = 6.0  # how far noise may take a reward below the minimum of f: further, once in a thousand million times


@dataclass(frozen=True, kw_only=True)
class Pending(ABC):  # noqa: B024 - three different things, told apart where they are used
    """What an unanswered trial counts as.

    Attributes:
        failed: what a trial counts as that was reported to have failed (`study.fail`). Its point is set aside in any
            case; "aside" does no more, and is right where failures have nothing to do with the point. With "worst" it
            also counts as an observation of the smallest reward told so far (the prior mean before the first), so that
            a whole region where nothing works is left; then no bounds are proved.
    """

    failed: str = "aside"

    def __post_init__(self) -> None:
        settle(self, failed=one_of("failed", self.failed, FAILED))


@final
@described
@dataclass(frozen=True, kw_only=True)
class Ignored(Pending):
    """Nothing: until its answer comes the trial might as well not have been asked for."""


@final
@described
@dataclass(frozen=True, kw_only=True)
class Hallucinated(Pending):
    """An observation of the posterior mean: the variance shrinks, the mean stays as the answered trials have it.

    GP-BUCB (Desautels, Krause & Burdick 2014) and GP-BTS (Chowdhury & Gopalan 2019). Their theorems ask for a wider
    width: without it (`gp_bucb(inflation=...)`) bounds count as proved for nothing.
    """


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

    def __post_init__(self) -> None:
        super().__post_init__()
        why = "It is how many answered points an unanswered one takes its value from."
        object.__setattr__(self, "neighbours", integer("neighbours", self.neighbours, low=1, why=why))

    def value(self, row: Array, answered: Array, means: Callable[[IndexArray], Array]) -> float | None:
        """What a trial counts as; None before the first answer.

        Args:
            row: of the trial, `(d,)`, in units of the sides.
            answered: distinct rows with answers, `(n, d)`, likewise; of those equally far the first ones are taken.
            means: the posterior mean of the answered trials, `(k,)`, at k of these rows.
        """
        if not len(answered):
            return None
        distances = np.linalg.norm(answered - row, axis=1)
        nearest = np.argsort(np.round(distances, SAME_DISTANCE), kind="stable")
        return float(means(nearest[: self.neighbours]).mean())


@final
@described
@dataclass(frozen=True, kw_only=True)
class Censored(Pending):
    """An observation of the smallest reward there is (Verma, Dai & Low 2022, section 3.1).

    ytilde_{s,t} = y_s 1{d_s <= min(m, t - s)}: the answer counts from the question after it came, if no more than m
    other trials were asked for in between (or not more than a duration m has passed).

    Attributes:
        minimum: the smallest value of f, reward units ("shifted to 0" in the paper); None where it is not known: then
            the smallest reward told so far, or the prior mean before the first, takes its place.
        window: m, in rounds, or seconds where `in_time`.
        in_time: whether the window is a time.
        late: "drop" as in the paper, a later answer is recorded and never counts; or "accept", it counts all the same.
    """

    minimum: float | None
    window: float
    in_time: bool = False
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

    def in_time_to_count(self, trial: Trial, asked_since: int) -> bool:
        """Whether the answer of a trial came soon enough: after so many further questions, or by its own times."""
        if self.late == "accept":
            return True
        if self.in_time:
            if trial.told_at is None:
                return False
            # The difference of two times is rounded: an answer at the very end of the window still counts.
            return trial.told_at - trial.asked_at <= self.window + 2.0 * math.ulp(trial.told_at)
        return asked_since <= self.window

    def check(self, reward: float, noise: float) -> None:
        """Refuse a reward so far below the declared minimum that noise cannot have taken it there."""
        if self.minimum is not None and reward < self.minimum - NOISE_STDS * noise:
            raise InvalidInput(
                f"`reward` is {reward:g}, below the declared minimum of {self.minimum:g} by more than {NOISE_STDS:g} "
                "standard deviations of the noise. An unanswered trial counts as the minimum, so that must be the "
                "worst that is expected of any point. Start a new study with a lower `minimum`; `add` takes over the "
                "rewards there are."
            )
