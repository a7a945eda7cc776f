"""The constraints on answers: constraint values in an answer, a text such as "latency <= 50", or functions."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, final

from .._utils.checks import integer, many, shown
from .._utils.errors import InvalidInput, printable
from .outcome import Malformed, Outcome, metrics_in, one_number, reward_in, std_in

TEXT = re.compile(r"\s*(?P<entry>.+?)\s*(?P<sign><=|>=)\s*(?P<bound>[-+]?[\d._]+(?:[eE][-+]?\d+)?)\s*")
HOW = "Write it as 'latency <= 50': an entry of the objective's answer, <= or >=, and a number in the entry's units."


@final
@dataclass(frozen=True)
class Rule:
    """A bound on one entry of an answer.

    Attributes:
        entry: name of the entry in the mapping that the objective returns.
        bound: the bound, in the units of the entry.
        sign: 1 for an upper bound, -1 for a lower bound.
    """

    entry: str
    bound: float
    sign: float

    def __str__(self) -> str:
        return f"{printable(self.entry)} {'<=' if self.sign > 0 else '>='} {self.bound!r}"

    def value(self, answer: object) -> float:
        """Returns the distance beyond the bound, in the entry's units. It is at most 0 if the rule is satisfied."""
        if not isinstance(answer, Mapping):
            raise Malformed(
                f"its answer is {shown(answer)}, and {self.entry!r} has a limit: it must be a dict with the entries "
                f"'reward' and {self.entry!r}"
            )
        if self.entry not in answer:
            there = ", ".join(map(repr, answer)) or "nothing"
            raise Malformed(f"its answer has no entry {self.entry!r}, which has a limit, only {there}")
        return self.sign * (one_number(answer[self.entry], f"its entry {self.entry!r}") - self.bound)


@final
@dataclass(frozen=True)
class ConstraintReader:
    """The constraints of an objective, which reads constraint values from answers.

    Attributes:
        count: m, the number of constraint values.
        each: m rules, or functions with the arguments of the objective. Empty if the answer has the values itself.
    """

    count: int = 0
    each: tuple[Rule | Callable[..., Any], ...] = ()

    @property
    def functions(self) -> list[Callable[..., Any]]:
        """The constraints that are functions, which are called beside the objective."""
        return [each for each in self.each if not isinstance(each, Rule)]

    @property
    def facts(self) -> dict[str, str]:
        """The rules as text, which must stay the same while a study goes on."""
        rules = [str(each) for each in self.each if isinstance(each, Rule)]
        return {"constraints": ", ".join(rules)} if rules else {}

    def read(self, answer: object, call: Callable[[Callable[..., Any]], object]) -> Outcome:
        """Returns the reward, the constraint values and the noise in an answer.

        An entry "std" is the standard deviation of the noise of the reward, unless a rule limits it. Further entries
        are metrics, and so are those with a limit, as they were returned.

        Args:
            answer: the answer of the objective.
            call: calls a function with the arguments of the objective.
        """
        limited = {each.entry for each in self.each if isinstance(each, Rule)}
        told = self.count > 0 and not self.each
        reward, values = _split(answer) if told else (answer, None)
        value = reward_in(reward)
        if told:
            found = _values(values, self.count)
        else:
            found = tuple(
                each.value(answer)
                if isinstance(each, Rule)
                else one_number(call(each), f"the answer of the constraint {_name(each)}")
                for each in self.each
            )
        std = None if "std" in limited else std_in(reward, limited)
        read = ({"reward", "constraints"} if told else {"reward"}) | ({"std"} - limited)
        metrics, left_out = metrics_in(reward, read)
        return Outcome(value, constraints=found or None, std=std, metrics=metrics, left_out=left_out)


UNLIMITED = ConstraintReader()


def constraint_reader(constraints: object) -> ConstraintReader:
    """Returns the constraints that a caller gave: a number of them, a text, a function, or several of the last two."""
    if constraints is None:
        return UNLIMITED
    if isinstance(constraints, Integral) and not isinstance(constraints, bool):
        return ConstraintReader(
            integer("constraints", constraints, low=1, why="It counts the constraint values of an answer.")
        )
    several = (
        list(constraints) if isinstance(constraints, Sequence) and not isinstance(constraints, str) else [constraints]
    )
    if not several:
        raise InvalidInput("`constraints` is empty: leave it out where nothing is constrained.")
    return ConstraintReader(len(several), tuple(_constraint(each) for each in several))


def _constraint(constraints: Any) -> Rule | Callable[..., Any]:
    if isinstance(constraints, str):
        return _rule(constraints)
    if callable(constraints):
        return constraints  # type: ignore[no-any-return]
    raise InvalidInput(
        f"`constraints` has {shown(constraints)}: it must be a number of constraint values, a text such as "
        "'latency <= 50', a function of the parameters whose value is at most 0 where it is satisfied, or several of "
        "the last two.",
        advice="A part such as `nr.Safe(...)` is for the policy: `policy=nr.auto(space, constraints=...)`. The text or "
        "function then still says how its value is computed.",
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


def _split(answer: object) -> tuple[object, object]:
    """Returns the reward and the constraint values of an answer that has both."""
    if isinstance(answer, Mapping):
        if "constraints" not in answer:
            raise Malformed(f"its answer has no entry 'constraints', only {', '.join(map(repr, answer)) or 'nothing'}")
        return answer, answer["constraints"]
    if isinstance(answer, tuple | list) and len(answer) == 2:
        return answer[0], answer[1]
    raise Malformed(
        "its answer has no constraint values: it must be (value, [g, ...]) or a dict with 'reward' and 'constraints', "
        f"not {shown(answer)}"
    )


def _values(values: Any, count: int) -> tuple[float, ...]:
    try:
        each = list(values)
    except TypeError:  # A single number, or an array of no dimension.
        each = [values]
    if isinstance(values, str | Mapping) or len(each) != count:
        raise Malformed(f"its answer has {many(len(each), 'constraint value')}, for {many(count, 'constraint')}")
    return tuple(one_number(value, "a constraint value of its answer") for value in each)


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
