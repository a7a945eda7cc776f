"""Answers as users write them, and as they are recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from .._utils.checks import Array, shown
from ..errors import InvalidInput
from ..storage.trial import Measured, Plays, Trial

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
    """

    trial: Trial | int
    reward: float | None
    constraints: Array | None
    plays: Plays | None = None
    std: float | None = None
    measured: Measured = ()


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
