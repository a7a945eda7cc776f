"""The rewards of a trial that is played several times: each reward, or their count, sum and sum of squares."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, final

import numpy as np

from .._utils.checks import LARGEST_REWARD, Array, finite_array, integer, many, number, shown
from .._utils.dataclass import dataclass
from .._utils.numerals import numeral
from ..errors import InvalidInput, TrialError
from ..slots.switching import MOST_REPEATS
from ..storage.trial import Measured, Other, Plays, Trial

NONE_WILL_COME = "A trial that will have none is told by `study.fail(trial, reason)`."
SLACK = 1e-9  # Share of the squares that rounding may have lost.


@final
@dataclass(frozen=True, kw_only=True)
class Rewards:
    """The rewards of several plays of one trial, summed up, if the single rewards are not at hand.

    >>> import nilregret as nr
    >>> nr.study.Rewards(count=3, sum=1.5, squares=0.77).mean
    0.5

    If rewards are much larger than their differences, the squares lose digits. Then pass the rewards themselves, or
    sums of (reward - about) for some value: `nr.study.Rewards(count=n, sum=s, squares=q, about=1000.0)`.

    Args:
        count: number of plays.
        sum: sum of the rewards (losses, if the goal is to minimise), each minus `about`.
        squares: sum of the squares of the same numbers.
        about: number subtracted from each reward before.

    Raises:
        InvalidInput: no `count` numbers have this sum and these squares.
    """

    count: int
    sum: float
    squares: float
    about: float = 0.0

    def __post_init__(self) -> None:
        count = integer("count", self.count, low=1, high=MOST_REPEATS, why="It is how many rewards are told.")
        total = number("sum", self.sum, low=-LARGEST_REWARD * count, high=LARGEST_REWARD * count)
        squares = number("squares", self.squares, low=0.0)
        if squares < total**2 / count * (1.0 - SLACK):
            raise InvalidInput(
                f"`squares` is {self.squares!r}, and {count} numbers with the sum {self.sum!r} have squares of at "
                f"least {numeral(total**2 / count, 6)} together: usually the sum or the count is of other plays, or "
                "the squares are of deviations from the mean. It is the sum of the squares of the rewards."
            )
        for name, value in (("count", count), ("sum", total), ("squares", squares)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "about", number("about", self.about, low=-LARGEST_REWARD, high=LARGEST_REWARD))

    @property
    def mean(self) -> float:
        """Average of the rewards, reward units."""
        return self.about + self.sum / self.count

    @property
    def scatter(self) -> float:
        """Sum of squared deviations from the average, reward units squared."""
        return max(self.squares - self.sum**2 / self.count, 0.0)


def is_several(reward: object) -> bool:
    """Returns whether the rewards of several plays were given, and not one reward."""
    if isinstance(reward, Rewards):
        return True
    shape = getattr(reward, "shape", None)
    if isinstance(shape, tuple):  # of an array or tensor: one without an axis is a number
        return shape != ()
    return isinstance(reward, Iterable) and not isinstance(reward, str | bytes | Mapping | set)


def sum_up(reward: Any, check: Callable[[object], float]) -> tuple[float, Plays | None]:
    """Returns rewards as they are recorded: their average, and their number and scatter, or None for a single one.

    Args:
        reward: a sequence of rewards, or their `Rewards`.
        check: checks one reward and returns the number to record.
    """
    if isinstance(reward, Rewards):
        return check(reward.mean), None if reward.count == 1 else Plays(reward.count, reward.scatter)
    values = finite_array("rewards", reward)
    if values.shape == (0,):
        raise InvalidInput(
            "The rewards of a trial are an empty list: usually none has come yet. Tell them when they are there, at "
            "least one.",
            advice=NONE_WILL_COME,
            topic="unusable",
        )
    if values.ndim != 1:
        raise InvalidInput(
            f"The rewards of a trial have shape {values.shape}: they are one number for each play.",
            advice="That is `(n,)`, or `nr.study.Rewards(count=n, sum=s, squares=q)`.",
            topic="plays",
        )
    for extreme in {float(values.min()), float(values.max())}:
        check(extreme)
    if len(values) == 1:
        return float(values[0]), None
    mean = check(float(values.mean()))
    deviations = values - mean
    return mean, Plays(len(values), float(deviations @ deviations))


def check_plays(trial: Trial, plays: Plays | None) -> None:
    """Raises `TrialError` if there are more rewards than plays that were asked for."""
    if plays is not None and plays.times > trial.repeats:
        raise TrialError(
            f"Trial {trial.number} is to be played {many(trial.repeats, 'time')}, and {many(plays.times, 'reward')} "
            "came; nothing "
            "was recorded. Usually they are of several trials. Only policies with `switching` ask for a point several "
            "times at once.",
            advice="More plays of it are told by `add`.",
            topic="more_plays",
        )


def check_limits(told: Told, known: Array | None, count: int) -> None:
    """Raises `TrialError` if several objectives are told without the constraint values that belong to them.

    Args:
        told: the answer.
        known: constraint values that were told before, or None.
        count: number of constraints.
    """
    if told.others and count and told.constraints is None and known is None:
        raise TrialError(
            f"The objectives were told without their {many(count, 'constraint value')}; nothing was recorded. "
            "Usually they were forgotten.",
            advice="Tell them together: `study.tell(trial, values, constraints=g)`.",
            topic="limits",
        )


def refuse_several_rewards(reward: object) -> None:
    """Raises `InvalidInput` for a policy that decides about each play."""
    given = f"those of {many(reward.count, 'play')}" if isinstance(reward, Rewards) else shown(reward)
    raise InvalidInput(
        f"`reward` must be a number, not {given}: this policy decides in every round, so a trial has one "
        "reward. A policy made with `switching` 'lazy' plays a choice several times and takes the rewards of them all."
    )


def is_possible(plays: Plays) -> bool:
    """Returns whether these are plays that could have been told."""
    return 2 <= plays.times <= MOST_REPEATS and math.isfinite(plays.scatter) and plays.scatter >= 0.0


ENTRIES = frozenset({"trial", "reward", "constraints", "std", "metrics"})  # of an answer in a dict


class Told(NamedTuple):
    """A checked answer to a trial: a reward, constraint values, or both.

    Attributes:
        trial: as `ask` returned it, or its number.
        reward: reward (loss, if the goal is to minimise), or None.
        constraints: constraint values `(m,)`, or None.
        plays: count and scatter of the rewards, if the trial was played several times.
        std: standard deviation of the noise of the reward, or None where it is unknown.
        measured: (name, value) of each metric.
        others: values of the objectives after the first.
    """

    trial: Trial | int
    reward: float | None
    constraints: Array | None
    plays: Plays | None = None
    std: float | None = None
    measured: Measured = ()
    others: tuple[Other, ...] = ()


NOTHING_MORE = (None, None, (), ())  # The fields of an answer after the constraint values, of a reward alone.


def reason_of(what: str, reason: object) -> str:
    """Returns a reason in characters that every storage accepts.

    Args:
        what: the event that needs a reason, such as "failed".
        reason: the user's words.
    """
    if not isinstance(reason, str) or not reason.strip():
        raise InvalidInput(f"`reason` must say in words why the trial {what}, not {shown(reason)}.")
    return reason.encode("utf-8", "replace").decode("utf-8").replace("\0", "?")


def listed_answers(answers: object) -> list[Any]:
    """Returns the argument of `tell_many` as a list of answers, or raises an error."""
    if not isinstance(answers, Iterable) or isinstance(answers, str | bytes | Mapping | Trial):
        raise InvalidInput(
            f"`answers` is {shown(answers)}: it must be a list, each of (trial, reward) or (trial, reward, "
            "constraints). A single answer is told by `tell`."
        )
    return list(answers)


def answer_entries(answer: Any) -> dict[str, Any]:
    """Returns the entries of an answer given as (trial, reward), (trial, reward, constraints) or a dict, unchecked.

    A dict has these names, and may have "std" and "metrics".
    """
    if isinstance(answer, Mapping):
        if "trial" not in answer or not answer.keys() <= ENTRIES:
            raise InvalidInput(
                f"An answer in a dict has 'trial', 'reward' and perhaps 'constraints', 'std' and 'metrics', not "
                f"{shown(list(answer))}."
            )
        return dict(answer)
    parts = answer if isinstance(answer, tuple | list) and type(answer) is not Trial else ()
    if len(parts) not in (2, 3):
        raise InvalidInput(
            f"An answer is (trial, reward) or (trial, reward, constraints), or a dict; {shown(answer)} is none."
        )
    return dict(zip(("trial", "reward", "constraints"), parts, strict=False))


def is_same(known: Trial, told: Told) -> bool:
    """Returns whether an answered trial has exactly this answer."""
    g = told.constraints
    same = g is None or (known.constraints is not None and np.array_equal(g, known.constraints))
    same = same and (not told.measured or dict(known.measured) == dict(told.measured))
    answers = [(each.reward, each.plays, each.std, each.others) for each in (known, told)]
    return answers[0] == answers[1] and same
