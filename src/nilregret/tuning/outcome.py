"""The outcome of an evaluation: numbers to learn from, or the reason why there are none."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from difflib import SequenceMatcher
from numbers import Integral
from typing import Any, NamedTuple, final

import numpy as np

from .._utils.checks import LARGEST_REWARD, integer, many, only_entry, real, shown
from .._utils.dataclass import dataclass, replace
from .._utils.numerals import exact
from ..algorithms.schema import within
from ..errors import SHOWN, InvalidInput, exception_text, printable
from ..slots.costs import SECONDS
from ..slots.pareto import checked_names
from ..storage.trial import MOST_METRICS, is_metric_name, metric_of
from ..study.direction import Goal, check_goal

ALIKE = 0.7  # The likeness of two names, from 0 to 1, above which one is taken for a slip of the other.


class Unusable(Exception):
    """An answer of the objective without a usable number. The message says why."""


class Malformed(Unusable):
    """An answer without the form that every answer must have, such as a missing entry. The message says what."""


@final
class Outcome(NamedTuple):
    """The outcome of one evaluation.

    Attributes:
        value: the objective's number, a tuple with that of each of several objectives, or None.
        reason: why there is no value, in words, or None.
        error: the exception that the objective raised, if that happened in this process.
        constraints: constraint values `(m,)`, if there are constraints.
        std: standard deviation of the noise of the value, or of each, or None where it is unknown.
        metrics: further numbers in the answer, by name.
        left_out: names of further entries that are no finite numbers.
        malformed: whether `reason` is a mistake of form, which further evaluations would repeat.
        curve: the value after each step, if the objective yielded them and they were not reported one by one.
        cancelled: whether the objective raised `CancelledError`, since its measurement was lost.
    """

    value: float | tuple[float, ...] | None = None
    reason: str | None = None
    error: BaseException | None = None
    constraints: tuple[float, ...] | None = None
    std: float | tuple[float | None, ...] | None = None
    metrics: Mapping[str, float] | None = None
    left_out: tuple[str, ...] = ()
    malformed: bool = False
    curve: tuple[float, ...] = ()
    cancelled: bool = False


def attempt(evaluate: Callable[[], Outcome]) -> Outcome:
    """Returns the outcome of an evaluation. Exceptions of the objective become reasons, interrupts are raised."""
    try:
        return evaluate()
    except Unusable as error:
        return Outcome(reason=str(error), malformed=isinstance(error, Malformed))
    except CancelledError as error:
        return Outcome(reason=str(error), cancelled=True)
    except (Exception, SystemExit) as error:
        return Outcome(reason=exception_text(error), error=error)


def reward_in(answer: object) -> float:
    """Returns the reward in an answer: the number itself, or the entry "reward" of a mapping."""
    if isinstance(answer, Mapping):
        if "reward" not in answer:
            raise Malformed(f"its answer has no entry 'reward', only {_quotes(answer)}")
        answer = answer["reward"]
    if isinstance(answer, tuple | list) and len(answer) > 1 and all(real(each) is not None for each in answer):
        raise Malformed(
            f"its answer is {shown(answer)}, {len(answer)} numbers, and there is one objective: name them, as in "
            "objectives={'loss': 'minimize', 'recall': 'maximize'}"
        )
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
    return _std(told, "its entry 'std'")


def _std(told: object, what: str) -> float:
    std = one_number(told, what)
    if std < 0.0:
        raise Unusable(f"{what} is {exact(std)}, and a standard deviation is at least 0")
    return std


def values_in(answer: object, names: Sequence[str]) -> tuple[float, ...]:
    """Returns the value of each of several objectives in an answer: entries of a mapping, or a tuple in their order."""
    each = _by_name(answer, names, "its answer")
    return tuple(one_number(value, f"its objective {name!r}") for name, value in zip(names, each, strict=True))


def stds_in(answer: object, names: Sequence[str], limited: Collection[str]) -> tuple[float | None, ...] | None:
    """Returns the standard deviation of the noise of each of several objectives, None where it is unknown."""
    if isinstance(answer, Mapping) and "std" not in answer:
        _check_misspelt(answer, {*limited, *names})
    told = answer.get("std") if isinstance(answer, Mapping) else None
    if told is None:
        return None
    if isinstance(told, Mapping):
        unknown = next((name for name in told if name not in names), None)
        if unknown is not None:
            raise Malformed(f"its entry 'std' has {unknown!r}, which is no objective: they are {_quotes(names)}")
        told = dict.fromkeys(names) | dict(told)
    each = _by_name(told, names, "its entry 'std'")
    return tuple(
        None if std is None else _std(std, f"the std of {name!r}") for name, std in zip(names, each, strict=True)
    )


def _by_name(answer: object, names: Sequence[str], what: str) -> list[Any]:
    """Returns an entry for each objective, unchecked."""
    if isinstance(answer, Mapping):
        missing = next((name for name in names if name not in answer), None)
        if missing is not None:
            raise Malformed(f"{what} has no entry {missing!r}, which is an objective, only {_quotes(answer)}")
        return [answer[name] for name in names]
    listed = answer.tolist() if isinstance(answer, np.ndarray) else answer
    if isinstance(listed, tuple | list) and len(listed) == len(names):
        return list(listed)
    raise Malformed(
        f"{what} is {shown(answer)}, and there are {many(len(names), 'objective')}: it must be a dict with the entries "
        f"{_quotes(names)}, or a tuple with these numbers in this order"
    )


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
        value = metric_of(name, entry)
        if value is not None and len(found) < MOST_METRICS:
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
        raise Malformed(f"{what} is not a number but None: is a `return` missing?")
    value = real(answer)
    if value is None:
        raise Malformed(f"{what} is not a number: {_quoted(only_entry(answer))}")
    if not math.isfinite(value):
        raise Unusable(f"{what} is {value}, which is not finite")
    if abs(value) > LARGEST_REWARD:
        raise Unusable(f"{what} is {exact(value)}; it must lie within {exact(LARGEST_REWARD)} of 0")
    return value


def _quotes(names: Iterable[object]) -> str:
    return ", ".join(map(repr, names)) or "nothing"


def _quoted(answer: object) -> str:
    plain = answer.item() if isinstance(answer, np.generic) else answer
    text = repr(plain[:SHOWN]) if isinstance(plain, str) else shown(plain, length=SHOWN)
    return f"{text} ({type(plain).__name__})"


TEXT = re.compile(r"\s*(?P<entry>.+?)\s*(?P<sign><=|>=)\s*(?P<bound>[-+]?[\d._]+(?:[eE][-+]?\d+)?)\s*")
BETWEEN = re.compile(r"([^\s<>=]+)\s*<=?\s*([^<>=]+)")  # The beginning of "1 <= latency <= 50".
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
                f"its answer is {shown(answer)}, and {self.entry!r} has a limit: it must be a dict with this entry "
                "beside 'reward', or beside the objectives"
            )
        if self.entry not in answer:
            raise Malformed(f"its answer has no entry {self.entry!r}, which has a limit, only {_quotes(answer)}")
        return self.sign * (one_number(answer[self.entry], f"its entry {self.entry!r}") - self.bound)


@final
@dataclass(frozen=True)
class ConstraintReader:
    """The constraints of an objective, which reads constraint values from answers.

    Attributes:
        count: m, the number of constraint values.
        each: m rules, or functions with the arguments of the objective. Empty if the answer has the values itself.
        cost: name of the entry that each answer must have as the cost of the trial, or None.
        names: names of several objectives, whose values each answer must have. Empty for one.
        goals: goal of each of several objectives. Empty for one, or if the study says them.
    """

    count: int = 0
    each: tuple[Rule | Callable[..., Any], ...] = ()
    cost: str | None = None
    names: tuple[str, ...] = ()
    goals: tuple[Goal, ...] = ()

    @property
    def functions(self) -> list[Callable[..., Any]]:
        """The constraints that are functions, which are called beside the objective."""
        return [each for each in self.each if not isinstance(each, Rule)]

    @property
    def facts(self) -> dict[str, str]:
        """The rules as text, which must stay the same while a study goes on."""
        rules = [str(each) for each in self.each if isinstance(each, Rule)]
        return {"constraints": ", ".join(rules)} if rules else {}

    def value(self, answer: object) -> float:
        """Returns the value of one objective after a step. Other entries count after the last step alone."""
        told = self.count > 0 and not self.each
        return reward_in(answer[0] if told and isinstance(answer, tuple | list) and len(answer) == 2 else answer)

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
        value = values_in(reward, self.names) if self.names else reward_in(reward)
        if told:
            found = _values(values, self.count)
        else:
            found = tuple(
                each.value(answer)
                if isinstance(each, Rule)
                else one_number(call(each), f"the answer of the constraint {_name(each)}")
                for each in self.each
            )
        std: Any = None
        if "std" not in limited:
            std = stds_in(reward, self.names, limited) if self.names else std_in(reward, limited)
        own = set(self.names or ("reward",))
        read = (own | {"constraints"} if told else own) | ({"std"} - limited)
        metrics, left_out = metrics_in(reward, read)
        if self.cost is not None:
            _check_cost(self.cost, reward, metrics or {})
        return Outcome(value, constraints=found or None, std=std, metrics=metrics, left_out=left_out)


def _check_cost(name: str, answer: Any, metrics: Mapping[str, float]) -> None:
    if name not in metrics and name != SECONDS:  # The time is on record in any case.
        if isinstance(answer, Mapping) and name in answer:
            one_number(answer[name], f"its entry {name!r}")  # This raises an error with the reason.
        raise Malformed(
            f"its answer has no number {name!r}, which `cost=` names: it must be a dict with the entries 'reward' and "
            f"{name!r}"
        )
    if not metrics.get(name, 1.0) > 0.0:
        raise Unusable(f"its entry {name!r} is {exact(metrics[name])}, and a cost is above 0")


UNLIMITED = ConstraintReader()
READ = ("constraints", "std")  # Entries of an answer with a meaning of their own.


def checked_objectives(objectives: Any, goal: Goal) -> dict[str, Goal] | None:
    """Returns the goal of each objective by name, or None for one objective.

    Args:
        objectives: a dict of goals by name, a list of names, or None.
        goal: of each name in a list.
    """
    if objectives is None:
        return None
    is_list = isinstance(objectives, list | tuple)
    if not (is_list or isinstance(objectives, Mapping)):
        raise InvalidInput(
            f"`objectives` is {shown(objectives)}: it must be a dict with the goal of each by its name, such as "
            "{'loss': 'minimize', 'recall': 'maximize'}, or a list of names."
        )
    names = checked_names(list(objectives))
    if len(names) < 2:
        raise InvalidInput(
            f"`objectives` has {many(len(names), 'entry')}: a front needs two at least.",
            advice="Without `objectives`, `minimize` and `maximize` take the number that the objective returns.",
        )
    taken = next((name for name in names if name in READ), None)
    if taken is not None:
        raise InvalidInput(f"An objective has the name {taken!r}, an entry of answers with another meaning: rename it.")
    return {name: goal if is_list else within(name, check_goal, objectives[name]) for name in names}


def answer_reader(
    constraints: object, cost: str | None, objectives: Mapping[str, Goal] | None = None
) -> ConstraintReader:
    """Returns the reader of constraints, of the cost of a trial and of several objectives, entries of the answer."""
    reader = constraint_reader(constraints)
    if objectives is not None:
        reader = replace(reader, names=tuple(objectives), goals=tuple(objectives.values()))
    if cost is not None and not is_metric_name(cost):
        raise InvalidInput(
            f"`cost` is {shown(cost)}: it must be the name of an entry of the objective's answer, or 'seconds'."
        )
    return reader if cost is None else replace(reader, cost=cost)


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
        both = BETWEEN.fullmatch(read["entry"])
        named = ("1", "latency") if both is None else both.groups()
        two = [f"{named[1]} >= {named[0]}", f"{named[1]} <= {read['bound'] if both else 50}"]
        raise InvalidInput(
            f"The constraint {shown(text)} has several signs, and a text is one limit: make a list of two, {two}."
        )
    return Rule(read["entry"], bound, 1.0 if read["sign"] == "<=" else -1.0)


def _split(answer: object) -> tuple[object, object]:
    """Returns the reward and the constraint values of an answer that has both."""
    if isinstance(answer, Mapping):
        if "constraints" not in answer:
            raise Malformed(f"its answer has no entry 'constraints', only {_quotes(answer)}")
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
