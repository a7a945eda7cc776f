"""What an answer must satisfy: constraint values in it, a text such as "latency <= 50", or functions of their own."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, final

from .._utils.checks import integer, many, shown
from .._utils.errors import InvalidInput
from .answers import Outcome, Unusable, one_number, usable

TEXT = re.compile(r"\s*(?P<entry>.+?)\s*(?P<sign><=|>=)\s*(?P<bound>[-+]?[\d._]+(?:[eE][-+]?\d+)?)\s*")
HOW = "Write it as 'latency <= 50': an entry of the objective's answer, <= or >=, and a number in the entry's units."


@final
@dataclass(frozen=True)
class Rule:
    """One entry of an answer and its bound.

    Attributes:
        entry: of the mapping that the objective returns.
        bound: in the units of the entry.
        sign: 1 where the entry is at most the bound, -1 where at least.
    """

    entry: str
    bound: float
    sign: float

    def __str__(self) -> str:
        return f"{self.entry} {'<=' if self.sign > 0 else '>='} {self.bound!r}"

    def value(self, answer: object) -> float:
        """How far beyond the bound the answer is, in the entry's units: at most 0 where it is satisfied."""
        if not isinstance(answer, Mapping):
            raise Unusable(
                f"its answer is {shown(answer)}, and {self.entry!r} has a limit: it must be a dict with the entries "
                f"'reward' and {self.entry!r}"
            )
        if self.entry not in answer:
            there = ", ".join(map(repr, answer)) or "nothing"
            raise Unusable(f"its answer has no entry {self.entry!r}, which has a limit, only {there}")
        return self.sign * (one_number(answer[self.entry], f"its entry {self.entry!r}") - self.bound)


@final
@dataclass(frozen=True)
class Limits:
    """What the answers of an objective must satisfy.

    Attributes:
        count: m, how many constraint values there are.
        each: m rules, or functions of what the objective is a function of; none where its answer has the values itself.
    """

    count: int = 0
    each: tuple[Rule | Callable[..., Any], ...] = ()

    @property
    def functions(self) -> list[Callable[..., Any]]:
        """Those that are called beside the objective."""
        return [each for each in self.each if not isinstance(each, Rule)]

    @property
    def facts(self) -> dict[str, str]:
        """What must stay the same while a study goes on: entries and their bounds."""
        rules = [str(each) for each in self.each if isinstance(each, Rule)]
        return {"constraints": ", ".join(rules)} if rules else {}

    def read(self, answer: object, call: Callable[[Callable[..., Any]], object]) -> Outcome:
        """The numbers in an answer.

        Args:
            answer: of the objective.
            call: a function with what the objective was called with.
        """
        if not self.count:
            return Outcome(usable(answer))
        if self.each:
            value = usable(answer)
            found = [
                each.value(answer)
                if isinstance(each, Rule)
                else one_number(call(each), f"the answer of the constraint {_name(each)}")
                for each in self.each
            ]
            return Outcome(value, constraints=tuple(found))
        reward, values = _parted(answer)
        return Outcome(usable(reward), constraints=_listed(values, self.count))


UNLIMITED = Limits()


def limits_of(given: object) -> Limits:
    """From what a caller says: a number of them, a text, a function, or several of the last two."""
    if given is None:
        return UNLIMITED
    if isinstance(given, Integral) and not isinstance(given, bool):
        return Limits(integer("constraints", given, low=1, why="It counts the constraint values of an answer."))
    several = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    if not several:
        raise InvalidInput("`constraints` is empty: leave it out where nothing is constrained.")
    return Limits(len(several), tuple(_one(each) for each in several))


def _one(given: Any) -> Rule | Callable[..., Any]:
    if isinstance(given, str):
        return _rule(given)
    if callable(given):
        return given  # type: ignore[no-any-return]
    raise InvalidInput(
        f"`constraints` has {shown(given)}: it must be a number of constraint values, a text such as 'latency <= 50', "
        "a function of the parameters whose value is at most 0 where it is satisfied, or several of the last two.",
        advice="A part such as `nr.Safe(...)` is for a policy, and a loop that asks and tells: "
        "`nr.Study(nr.auto(space, constraints=...))`.",
    )


def _rule(text: str) -> Rule:
    read = TEXT.fullmatch(text)
    try:
        bound = math.nan if read is None else float(read["bound"])
    except ValueError:
        bound = math.nan
    if read is None or not math.isfinite(bound):
        raise InvalidInput(f"The constraint {shown(text)} cannot be read. {HOW}")
    if re.search("[<>=]", read["entry"]):
        raise InvalidInput(
            f"The constraint {shown(text)} has several signs, and a text is one limit: make a list of two, "
            "['latency >= 1', 'latency <= 50']."
        )
    return Rule(read["entry"], bound, 1.0 if read["sign"] == "<=" else -1.0)


def _parted(answer: object) -> tuple[object, object]:
    """The reward and the constraint values of an answer that has both."""
    if isinstance(answer, Mapping):
        if "constraints" not in answer:
            raise Unusable(f"its answer has no entry 'constraints', only {', '.join(map(repr, answer)) or 'nothing'}")
        return answer, answer["constraints"]
    if isinstance(answer, tuple | list) and len(answer) == 2:
        return answer[0], answer[1]
    raise Unusable(
        "its answer has no constraint values: it must be (value, [g, ...]) or a dict with 'reward' and 'constraints', "
        f"not {shown(answer)}"
    )


def _listed(values: Any, count: int) -> tuple[float, ...]:
    try:
        each = list(values)
    except TypeError:  # a number, or an array of no dimension
        each = [values]
    if isinstance(values, str | Mapping) or len(each) != count:
        raise Unusable(f"its answer has {many(len(each), 'constraint value')}, for {many(count, 'constraint')}")
    return tuple(one_number(value, "a constraint value of its answer") for value in each)


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
