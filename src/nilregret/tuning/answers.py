"""What an objective gave: a number that can be learned from, or in words why there is none."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any, NamedTuple, final

from .._utils.checks import LARGEST_REWARD, shown
from .._utils.errors import SHOWN, exception_text


class Unusable(Exception):
    """The objective gave no usable number; the message says why."""


@final
class Outcome(NamedTuple):
    """Of one evaluation.

    Attributes:
        value: the objective's number, or None.
        constraints: constraint values `(m,)`, where there are constraints.
        reason: why there is none, in words, or None.
        error: what the objective raised, where that happened in this very process.
    """

    value: float | None = None
    reason: str | None = None
    error: BaseException | None = None
    constraints: tuple[float, ...] | None = None


def attempt(evaluate: Callable[[], Outcome]) -> Outcome:
    """Evaluate; whatever the objective raises becomes a reason. Only an interrupt goes through."""
    try:
        return evaluate()
    except Unusable as error:
        return Outcome(reason=str(error))
    except (Exception, SystemExit) as error:
        return Outcome(reason=exception_text(error), error=error)


def usable(answer: object) -> float:
    """The number in an answer: itself, the only entry of an array, or the entry "reward" of a mapping."""
    if isinstance(answer, Mapping):
        if "reward" not in answer:
            raise Unusable(f"its answer has no entry 'reward', only {', '.join(map(repr, answer)) or 'nothing'}")
        answer = answer["reward"]
    return one_number(answer, "its answer")


def one_number(answer: object, what: str) -> float:
    """A number that can be learned from: itself, or the only entry of an array.

    Args:
        answer: anything.
        what: it is, for errors.
    """
    if answer is None:
        raise Unusable(f"{what} is not a number but None: is a `return` missing?")
    answer = _only_entry(answer)
    if isinstance(answer, bool) or not isinstance(answer, Real):
        raise Unusable(f"{what} is not a number: {_said(answer)} ({type(answer).__name__})")
    try:
        value = float(answer)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise Unusable(f"{what} is {value}, which is not finite")
    if abs(value) > LARGEST_REWARD:
        raise Unusable(f"{what} is {value:g}; it must lie within {LARGEST_REWARD:g} of 0")
    return value


def _only_entry(answer: Any) -> Any:
    """The entry of a numpy or torch scalar, or of an array of one: objectives of a point of one dimension return it."""
    shape = getattr(answer, "shape", None)
    if isinstance(shape, tuple) and callable(getattr(answer, "item", None)) and all(size == 1 for size in shape):
        return answer.item()
    return answer


def _said(answer: object) -> str:
    return repr(answer[:SHOWN]) if isinstance(answer, str) else shown(answer, length=SHOWN)
