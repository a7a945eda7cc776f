"""Named parameters, each encoded into columns of the unit cube. A choice has one column for each option."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from .._utils.checks import LARGEST_WHOLE, Array, flag, integer, number, shown
from .._utils.numerals import exact
from ..errors import InvalidInput
from ..serialize import described_by, entries, to_plain
from .coordinates import SAME_POINT
from .options import Option, checked_option, described_option, fresh, json_of, option_key, worded

CHOSEN = math.sqrt(0.5)  # value of the column of the chosen option, so that two options are at distance 1
SIGNIFICANT_DIGITS = 12  # of decoded floats: 0.1 rather than 0.10000000000000002 in commands and tables


def _unit(value: float, low: float, high: float, log: bool) -> float:
    """Returns the position of `value` between the ends, in [0, 1]."""
    if high == low:
        return 0.0
    if log:
        return math.log(value / low) / math.log(high / low)
    return (value - low) / (high - low)


def _from_unit(position: float, low: float, high: float, log: bool) -> float:
    position = min(max(position, 0.0), 1.0)
    value = low * (high / low) ** position if log else low + position * (high - low)
    return min(max(value, low), high)


def _check_log(kind: str, low: float, log: object) -> bool:
    """Returns `log`, or raises an error if the logarithm of `low` does not exist."""
    if flag("log", log) and low <= 0:
        raise InvalidInput(
            f"{kind} with `log` needs low > 0, not {exact(low)}: the logarithm of {exact(low)} does not exist."
        )
    return bool(log)


def _spread(u: Array, count: int) -> Array:
    """Returns the columns `(n,)` of shares `(n,)` in [0, 1) of `count` evenly spaced values, each as likely."""
    return np.asarray(np.minimum(np.floor(u * count), count - 1) / max(count - 1, 1))


def _refuse_step(kind: str, low: str, high: str, step: str, end: str) -> NoReturn:
    raise InvalidInput(
        f"{kind} from {low} in steps of {step} does not meet {high}: its values would end at {end}. Make that `high`."
    )


def _refuse_log(kind: str) -> NoReturn:
    raise InvalidInput(
        f"{kind} takes a `step` or `log`, not both: list the values, as the options of a Choice.",
        advice="Such as Choice(16, 32, 64).",
    )


def _plain_float(parameter: Float) -> dict[str, Any]:
    """Returns the description, with a step only if there is one, as before steps existed."""
    plain: dict[str, Any] = {"low": parameter.low, "high": parameter.high, "log": parameter.log}
    return plain if parameter.step is None else {**plain, "step": parameter.step}


@described_by(encode=_plain_float, decode=lambda data: Float(**data))
@dataclass(frozen=True, repr=False)
class Float:
    """A real parameter in [low, high]. With `log=True` its logarithm varies evenly (low > 0).

    With `step` its values are low, low + step, ..., high, as they are written in decimals. If low and high are equal,
    the parameter is a constant.

    >>> import nilregret as nr
    >>> nr.Float(1e-4, 1.0, log=True)
    Float(low=0.0001, high=1.0, log=True)
    >>> nr.Float(0.0, 0.4, step=0.1).values(5)
    [0.0, 0.1, 0.2, 0.3, 0.4]
    """

    low: float
    high: float
    log: bool = field(default=False, kw_only=True)
    step: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        low, high = number("low", self.low), number("high", self.high)
        if low > high:
            raise InvalidInput(
                f"Float needs low <= high, not {exact(low)} and {exact(high)}. Usually the two are swapped."
            )
        object.__setattr__(self, "log", _check_log("Float", low, self.log))
        if not math.isfinite(high / low if self.log else high - low):
            raise InvalidInput(
                f"Float from {exact(low)} to {exact(high)} spans more than a float can hold: narrow the range."
            )
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        if self.step is not None:
            self._check_step()

    def _check_step(self) -> None:
        step = number("step", self.step, low=0.0, open_low=True, why="It is how far neighbouring values are apart.")
        object.__setattr__(self, "step", step)
        if self.log:
            _refuse_log("Float")
        steps = self._span / Decimal(repr(step))
        if steps > LARGEST_WHOLE:
            raise InvalidInput(
                f"Float from {exact(self.low)} to {exact(self.high)} has more steps of {exact(step)} than floats tell "
                "apart: leave `step` out."
            )
        if abs(steps - round(steps)) > Decimal(SAME_POINT) * steps:
            end = Decimal(repr(self.low)) + int(steps) * Decimal(repr(step))
            _refuse_step("Float", exact(self.low), exact(self.high), exact(step), exact(float(end)))

    def __repr__(self) -> str:
        step = "" if self.step is None else f", step={self.step}"
        return f"Float(low={self.low}, high={self.high}, log={self.log}{step})"

    @property
    def _span(self) -> Decimal:
        """The range, from both ends as they are written."""
        return Decimal(repr(self.high)) - Decimal(repr(self.low))

    @property
    def real(self) -> bool:
        """True if the value varies continuously."""
        return self.count is None

    @cached_property
    def count(self) -> int | None:
        """Number of values, or None if they vary continuously."""
        if self.low == self.high:
            return 1
        return None if self.step is None else round(self._span / Decimal(repr(self.step))) + 1

    @property
    def columns(self) -> int:
        """Number of columns of an encoded point that belong to this parameter."""
        return 1

    def encode(self, value: Any) -> list[float]:
        """Returns the columns of a value, or raises an error if it is outside the range or between two steps.

        A value within 1e-9 of the range of an end, or of a step, is that value, since sums round: 0.1 + 0.2 is 0.3.
        """
        given = number("value", value)
        if self.low == self.high and not math.isclose(given, self.low, rel_tol=SAME_POINT):
            raise InvalidInput(f"`value` is {exact(given)}: it is always {exact(self.low)}.")
        at = self.position(given) if given > 0.0 or not self.log else -1.0
        if not -SAME_POINT <= at <= 1.0 + SAME_POINT:
            number("value", given, low=self.low, high=self.high)
        at = min(max(at, 0.0), 1.0)
        if self.count is None:
            return [at]
        place = self.place(np.array([at]))
        if self.value(place) != given and abs(self.at(place)[0] - at) > SAME_POINT:
            raise InvalidInput(
                f"`value` is {exact(given)}: it must be {exact(self.low)} plus a multiple of {exact(self.step or 0.0)}."
            )
        return self.at(place)

    def position(self, value: float) -> float:
        """Returns the share of the range below a value. It is below 0 or above 1 outside of the range."""
        return _unit(value, self.low, self.high, self.log)

    def decode(self, columns: Array) -> float:
        """Returns the value of encoded columns, to 12 significant digits, or the nearest step."""
        if self.count is not None:
            return self.value(self.place(columns))
        value = _from_unit(float(columns[0]), self.low, self.high, self.log)
        return min(max(float(f"{value:.{SIGNIFICANT_DIGITS}g}"), self.low), self.high)

    def place(self, columns: Array) -> int:
        """Returns how many steps above `low` the value nearest to encoded columns is."""
        return round(min(max(float(columns[0]), 0.0), 1.0) * ((self.count or 1) - 1))

    def at(self, place: int) -> list[float]:
        """Returns the columns of the value some steps above `low`."""
        return [place / max((self.count or 1) - 1, 1)]

    def snap(self, columns: Array) -> Array:
        """Returns the columns `(n, 1)` of the values nearest to columns `(n, 1)`."""
        last = (self.count or 1) - 1
        return columns if self.real else np.asarray(np.rint(np.clip(columns, 0.0, 1.0) * last) / max(last, 1))

    def value(self, place: int) -> float:
        """Returns the value some steps above `low`, in decimal arithmetic: 0.3, not 0.30000000000000004."""
        last = (self.count or 1) - 1
        if not 0 < place < last:
            return self.low if place <= 0 else self.high
        return float(Decimal(repr(self.low)) + place * self._span / last)

    def spread(self, u: Array) -> Array:
        """Returns the columns `(n,)` of shares `(n,)` in [0, 1) of the range. All steps are as likely."""
        return u if self.count is None else _spread(u, self.count)

    def values(self, count: int) -> list[float]:
        """Returns `count` values, evenly spaced (in the logarithm with `log=True`), ends included.

        Of a parameter with steps these are at most all its values.
        """
        count = count if self.count is None else min(count, self.count)
        middle = [0.5] if count == 1 else np.linspace(0.0, 1.0, count)
        listed = [self.decode(np.array([position])) for position in middle]
        return listed if self.count is None else sorted(set(listed))


def _plain_int(parameter: Int) -> dict[str, Any]:
    """Returns the description, with the step only if it is not 1, as before steps existed."""
    plain: dict[str, Any] = {"low": parameter.low, "high": parameter.high, "log": parameter.log}
    return plain if parameter.step == 1 else {**plain, "step": parameter.step}


@described_by(encode=_plain_int, decode=lambda data: Int(**data))
@dataclass(frozen=True)
class Int:
    """A whole-number parameter: low, low + step, ..., high. `log=True` (with step 1) has the meaning of `Float`.

    >>> import nilregret as nr
    >>> nr.Int(10, 180, step=5)
    Int(low=10, high=180, log=False, step=5)
    """

    low: int
    high: int
    log: bool = field(default=False, kw_only=True)
    step: int = field(default=1, kw_only=True)

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            why = "Floats do not tell whole numbers beyond 2**53 apart."
            object.__setattr__(self, name, integer(name, getattr(self, name), low=-LARGEST_WHOLE, why=why))
        if self.low > self.high:
            raise InvalidInput(f"Int needs low <= high, not {self.low} and {self.high}. Usually the two are swapped.")
        object.__setattr__(self, "log", _check_log("Int", self.low, self.log))
        step = integer("step", self.step, low=1, why="It is how far neighbouring values are apart.")
        object.__setattr__(self, "step", step)
        over = (self.high - self.low) % step
        if over:
            _refuse_step("Int", str(self.low), str(self.high), str(step), str(self.high - over))
        if self.log and step > 1:
            _refuse_log("Int")

    @property
    def real(self) -> bool:
        """Always False."""
        return False

    @property
    def count(self) -> int:
        """Number of values."""
        return (self.high - self.low) // self.step + 1

    @property
    def columns(self) -> int:
        """Number of columns of an encoded point that belong to this parameter."""
        return 1

    def encode(self, value: Any) -> list[float]:
        """Returns the columns of a value, or raises an error if it is not one of the whole numbers."""
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        whole = integer("value", value, low=-LARGEST_WHOLE)
        number("value", whole, low=self.low, high=self.high)
        if (whole - self.low) % self.step:
            raise InvalidInput(f"`value` is {whole}: it must be {self.low} plus a multiple of {self.step}.")
        return [_unit(float(whole), self.low, self.high, self.log)]

    def position(self, value: float) -> float:
        """Returns the share of the range below a value. It is below 0 or above 1 outside of the range."""
        return _unit(value, self.low, self.high, self.log)

    def decode(self, columns: Array) -> int:
        """Returns the value nearest to encoded columns."""
        value = _from_unit(float(columns[0]), self.low, self.high, self.log)
        return round(value) if self.step == 1 else self.low + self.step * round((value - self.low) / self.step)

    def snap(self, columns: Array) -> Array:
        """Returns the columns `(n, 1)` of the values nearest to columns `(n, 1)`."""
        if self.log or self.low == self.high:
            return np.reshape([self.position(float(self.decode(row))) for row in columns], columns.shape)
        at = self.low + np.clip(columns, 0.0, 1.0) * (self.high - self.low)
        values = self.low + self.step * np.rint((at - self.low) / self.step) if self.step > 1 else np.rint(at)
        return np.asarray((values - self.low) / (self.high - self.low))

    def place(self, columns: Array) -> int:
        """Returns how many steps above `low` the value nearest to encoded columns is."""
        return (self.decode(columns) - self.low) // self.step

    def at(self, place: int) -> list[float]:
        """Returns the columns of the value some steps above `low`."""
        return [self.position(float(self.low + place * self.step))]

    def spread(self, u: Array) -> Array:
        """Returns the columns `(n,)` of shares `(n,)` in [0, 1) of the range, where every value has a whole cell.

        Rounded, the range itself would give its ends half a cell. So it is longer by as much beyond each end.
        """
        if not self.log:
            return _spread(u, self.count)
        first, last = self.position(self.low + 0.5), self.position(self.high - 0.5)
        return (2.0 - last + first) * u - first

    def values(self, count: int) -> list[int]:
        """Returns at most `count` distinct values, as evenly spaced as whole numbers allow, ends included."""
        count = min(count, self.count)
        middle = [0.5] if count == 1 else np.linspace(0.0, 1.0, count)
        return sorted({self.decode(np.array([position])) for position in middle})


def _plain_choice(choice: Choice) -> dict[str, Any]:
    return {"options": to_plain([described_option(option) for option in choice.options])}


def _choice_options(data: dict[str, Any]) -> Choice:
    (options,) = entries(data, options=list)
    return Choice(*options)


@described_by(encode=_plain_choice, decode=_choice_options)
@dataclass(frozen=True, init=False, eq=False)
class Choice:
    """A choice among several options: strings, numbers, booleans, None, tuples, lists, dicts, classes and functions.

    Any two options are equally far apart, at distance 1. They are told apart by value and type. A class or function is
    on record by its import name alone. Nothing is imported from a record.

    >>> import nilregret as nr
    >>> nr.Choice("adam", "sgd", None)
    Choice(options=('adam', 'sgd', None))
    >>> space = nr.Space(layers=nr.Choice((64,), (64, 32)))
    >>> space.decode(space.encode({"layers": (64, 32)}))
    {'layers': (64, 32)}
    """

    options: tuple[Option, ...]

    def __init__(self, *options: Option) -> None:
        if not options:
            raise InvalidInput("Choice needs at least one option.")
        if len(options) == 1 and isinstance(options[0], list | tuple | set | np.ndarray):
            raise InvalidInput(
                f"Choice option {shown(options[0])} is the only one. Options are given one by one: Choice(*options)."
            )
        object.__setattr__(self, "options", tuple(map(checked_option, options)))
        if len(self._places) < len(options):
            raise InvalidInput(f"Choice options must differ from one another: {shown(options)}.")

    @cached_property
    def _places(self) -> dict[Hashable, int]:
        return {option_key(option): place for place, option in enumerate(self.options)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Choice) and list(self._places) == list(other._places)

    def __hash__(self) -> int:
        return hash(tuple(self._places))

    @property
    def real(self) -> bool:
        """Always False."""
        return False

    @property
    def count(self) -> int:
        """Number of options."""
        return len(self.options)

    @property
    def columns(self) -> int:
        """Number of columns of an encoded point that belong to this parameter."""
        return len(self.options)

    def encode(self, value: Any) -> list[float]:
        """Returns the columns of an option, or raises an error if there is no such option."""
        place = self.find(value)
        if place is None:
            raise InvalidInput(f"{shown(value)} is not among the options {shown(self.options)}.")
        return self.at(place)

    def at(self, place: int) -> list[float]:
        """Returns the columns of the option at a place."""
        columns = [0.0] * self.columns
        columns[place] = CHOSEN
        return columns

    def place(self, columns: Array) -> int:
        """Returns the place of the option whose column is largest."""
        return int(np.argmax(columns))

    def find(self, value: Any) -> int | None:
        """Returns the place of an option, or None. A list may stand for a tuple, and a name for a class."""
        try:
            option = checked_option(value)
            place = self._places.get(option_key(option))
        except InvalidInput:
            return None
        if place is None and type(option) is float and option.is_integer():
            place = self._places.get(("int", int(option)))  # A table's column of mixed numbers holds only floats.
        return self._by_json.get(json_of(option)) if place is None else place

    @cached_property
    def _by_json(self) -> dict[str, int]:
        """The place of each option that has the JSON of no other one."""
        texts = [json_of(option) for option in self.options]
        count = Counter(texts)
        return {text: place for place, text in enumerate(texts) if count[text] == 1}

    def decode(self, columns: Array) -> Option:
        """Returns the option whose column is largest."""
        return fresh(self.options[self.place(columns)])

    def values(self, count: int) -> list[Option]:  # noqa: ARG002 - a grid takes every option
        """Returns every option."""
        return list(self.options)


Parameter = Float | Int | Choice


def option_texts(parameter: Choice) -> list[str]:
    """Returns the text of each option.

    If two options would look alike, or one would be empty, all are written out: text in quotes, classes with their
    module.
    """
    plain = [json.dumps(option) if _is_json(option) else worded(option) for option in parameter.options]
    if len(set(plain)) < len(plain) or "" in plain:
        return [
            json.dumps(option) if isinstance(option, str) or _is_json(option) else worded(option, whole=True)
            for option in parameter.options
        ]
    return plain


def _is_json(option: Option) -> bool:
    return isinstance(option, bool | int | float | None)


def option_place(parameter: Choice, value: Any, *, texts: bool = False) -> int | None:
    """Returns the place of the option in a cell, or None if there is no such option.

    Args:
        parameter: the choice.
        value: of the cell.
        texts: True if a text is first of all that of an option, as files have it. False if it is first an option.
    """
    known = option_texts(parameter)
    if texts and isinstance(value, str) and value in known:
        return known.index(value)
    if (place := parameter.find(value)) is not None:
        return place
    said = [value] if isinstance(value, str) else [json.dumps(value)] if isinstance(value, bool | int | float) else []
    # `str` has True for JSON's true.
    alike = [known, [str(option) for option in parameter.options], [json_of(option) for option in parameter.options]]
    return next((names.index(text) for names in alike for text in said if text in names), None)
