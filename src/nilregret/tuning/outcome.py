"""The outcome of an evaluation: numbers to learn from, or the reason why there are none."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from difflib import SequenceMatcher
from typing import Any, NamedTuple, final

import numpy as np

from .._utils.checks import LARGEST_REWARD, only_entry, real, shown
from .._utils.errors import SHOWN, exception_text
from .._utils.numerals import exact
from ..storage.trial import MOST_METRICS, is_metric_name

ALIKE = 0.7  # The likeness of two names, from 0 to 1, above which one is taken for a slip of the other.


class Unusable(Exception):
    """An answer of the objective without a usable number. The message says why."""


class Malformed(Unusable):
    """An answer without the form that every answer must have, such as a missing entry. The message says what."""


@final
class Outcome(NamedTuple):
    """The outcome of one evaluation.

    Attributes:
        value: the objective's number, or None.
        reason: why there is no value, in words, or None.
        error: the exception that the objective raised, if that happened in this process.
        constraints: constraint values `(m,)`, if there are constraints.
        std: standard deviation of the noise of the value, or None where it is unknown.
        metrics: further numbers in the answer, by name.
        left_out: names of further entries that are no finite numbers.
        malformed: whether `reason` is a mistake of form, which further evaluations would repeat.
    """

    value: float | None = None
    reason: str | None = None
    error: BaseException | None = None
    constraints: tuple[float, ...] | None = None
    std: float | None = None
    metrics: Mapping[str, float] | None = None
    left_out: tuple[str, ...] = ()
    malformed: bool = False


def attempt(evaluate: Callable[[], Outcome]) -> Outcome:
    """Returns the outcome of an evaluation. Exceptions of the objective become reasons, interrupts are raised."""
    try:
        return evaluate()
    except Unusable as error:
        return Outcome(reason=str(error), malformed=isinstance(error, Malformed))
    except (Exception, SystemExit) as error:
        return Outcome(reason=exception_text(error), error=error)


def reward_in(answer: object) -> float:
    """Returns the reward in an answer: the number itself, or the entry "reward" of a mapping."""
    if isinstance(answer, Mapping):
        if "reward" not in answer:
            raise Malformed(f"its answer has no entry 'reward', only {', '.join(map(repr, answer)) or 'nothing'}")
        answer = answer["reward"]
    return one_number(answer, "its answer")


def std_in(answer: object, limited: Collection[str] = ()) -> float | None:
    """Returns the standard deviation of the reward's noise: the entry "std" of a mapping, or None without one.

    An entry whose name is nearly "std" is an error, unless it is among the `limited` ones, which constraints read.
    """
    if isinstance(answer, Mapping) and "std" not in answer:
        _check_misspelt(answer, limited)
    told = answer.get("std") if isinstance(answer, Mapping) else None
    if told is None:
        return None
    std = one_number(told, "its entry 'std'")
    if std < 0.0:
        raise Unusable(f"its entry 'std' is {exact(std)}, and a standard deviation is at least 0")
    return std


def metrics_in(answer: object, read: Collection[str]) -> tuple[dict[str, float] | None, tuple[str, ...]]:
    """Returns the further numbers in an answer by name, and the names of further entries that are none.

    Args:
        answer: any object. Only a mapping has further entries.
        read: names of the entries that were read already.
    """
    if not isinstance(answer, Mapping):
        return None, ()
    found, left_out = dict[str, float](), list[str]()
    for name, entry in answer.items():
        if name in read:
            continue
        value = real(float(entry) if isinstance(entry, bool | np.bool_) else entry)
        if is_metric_name(name) and value is not None and abs(value) <= LARGEST_REWARD and len(found) < MOST_METRICS:
            found[str(name)] = value
        else:
            left_out.append(shown(name))
    return found or None, tuple(left_out)


def _check_misspelt(answer: Mapping[Any, Any], limited: Collection[str]) -> None:
    for name in answer:
        if not isinstance(name, str) or name in limited:
            continue
        if sorted(name) == sorted("std") or SequenceMatcher(None, name, "std").ratio() > ALIKE:
            raise Malformed(f"its answer has the entry {name!r}, which nothing reads. Did you mean 'std'?")


def one_number(answer: object, what: str) -> float:
    """Returns a finite number: the answer itself, or the only entry of an array.

    Args:
        answer: any object.
        what: name of the answer, for errors.
    """
    if answer is None:
        raise Unusable(f"{what} is not a number but None: is a `return` missing?")
    value = real(answer)
    if value is None:
        raise Unusable(f"{what} is not a number: {_quoted(only_entry(answer))}")
    if not math.isfinite(value):
        raise Unusable(f"{what} is {value}, which is not finite")
    if abs(value) > LARGEST_REWARD:
        raise Unusable(f"{what} is {exact(value)}; it must lie within {exact(LARGEST_REWARD)} of 0")
    return value


def _quoted(answer: object) -> str:
    plain = answer.item() if isinstance(answer, np.generic) else answer
    text = repr(plain[:SHOWN]) if isinstance(plain, str) else shown(plain, length=SHOWN)
    return f"{text} ({type(plain).__name__})"
