"""Named parameters, each encoded into columns of the unit cube. A choice has one column for each option."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from .._utils.checks import LARGEST_WHOLE, Array, flag, integer, number, shown
from .._utils.dataclass import dataclass, field
from .._utils.numerals import exact
from ..errors import InvalidInput
from ..serialize import described_by, entries, to_plain
from .coordinates import SAME_POINT
from .options import Option, checked_option, described_option, fresh, json_of, option_key, plain_option, worded

if TYPE_CHECKING:
    from decimal import Decimal

CHOSEN = math.sqrt(0.5)  # value of the column of the chosen option, so that two options are at distance 1
SIGNIFICANT_DIGITS = 12  # of decoded floats: 0.1 rather than 0.10000000000000002 in commands and tables
MISSING = (0.5, 1.0)  # columns of a missing number: the middle of its range, and the indicator
LONGEST_LEVEL = 200  # characters of a value that was never declared


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


def _decimal(value: float) -> Decimal:
    """Returns a number as it is written: 0.3, not 0.29999999999999998."""
    from decimal import Decimal

    return Decimal(repr(value))


def is_nothing(value: object) -> bool:
    """Returns True for None, and for the NaN with which tables mark a missing value."""
    return value is None or (isinstance(value, float | np.floating) and math.isnan(value))


def _plain_number(parameter: Float | Int, no_step: float | None) -> dict[str, Any]:
    """Returns the description, with `step` and `unknown` only where they are set, as before they existed."""
    plain: dict[str, Any] = {"low": parameter.low, "high": parameter.high, "log": parameter.log}
    plain |= {} if parameter.step == no_step else {"step": parameter.step}
    return plain | ({"unknown": True} if parameter.unknown else {})


class _Number(ABC):
    """A number in a range, which may be missing if it is `unknown`."""

    low: float
    high: float
    log: bool
    unknown: bool

    @property
    @abstractmethod
    def known_count(self) -> int | None:
        """Number of values but for a missing one, or None if they vary continuously."""

    @property
    def real(self) -> bool:
        """True if the value varies continuously."""
        return self.known_count is None

    @property
    def count(self) -> int | None:
        """Number of values, a missing one included, or None if they vary continuously."""
        return None if self.known_count is None else self.known_count + self.unknown

    @property
    def columns(self) -> int:
        """Number of columns of an encoded point that belong to this parameter."""
        return 1 + self.unknown

    def position(self, value: float) -> float:
        """Returns the share of the range below a value. It is below 0 or above 1 outside of the range."""
        return _unit(value, self.low, self.high, self.log)

    def encode(self, value: Any, name: str = "value") -> list[float]:
        """Returns the columns of a value, or raises an error about `name` if it is no value of the parameter.

        A real value within 1e-9 of the range of an end, or of a step, is that value, since sums round: 0.1 + 0.2 is
        0.3.
        """
        if not self.unknown:
            return self._encode(value, name)
        return [*MISSING] if is_nothing(value) else [*self._encode(value, name), 0.0]

    def decode(self, columns: Array) -> Any:
        """Returns the value nearest to encoded columns, to 12 significant digits, or None if it is missing."""
        return None if len(columns) > 1 and columns[1] > 0.5 else self._decode(columns)

    def snap(self, columns: Array) -> Array:
        """Returns the columns `(n, c)` of the values nearest to columns `(n, c)`."""
        if not self.unknown:
            return self._snap(columns)
        missing = columns[:, 1:] > 0.5
        return np.hstack([np.where(missing, MISSING[0], self._snap(columns[:, :1])), missing])

    def values(self, count: int) -> list[Any]:
        """Returns at most `count` values, as evenly spaced as values allow, ends included.

        With `log=True` they are evenly spaced in the logarithm. None comes last if the number may be missing.
        """
        most = count if self.known_count is None else min(count, self.known_count)
        middle = [0.5] if most == 1 else np.linspace(0.0, 1.0, most)
        listed = [self._decode(np.array([position])) for position in middle]
        return (listed if self.known_count is None else sorted(set(listed))) + [None] * self.unknown

    @abstractmethod
    def _encode(self, value: Any, name: str) -> list[float]:
        """Returns the column of a value."""

    @abstractmethod
    def _decode(self, columns: Array) -> float:
        """Returns the value nearest to a column."""

    @abstractmethod
    def _snap(self, columns: Array) -> Array:
        """Returns the columns `(n, 1)` of the values nearest to columns `(n, 1)`."""


@described_by(encode=lambda each: _plain_number(each, None), decode=lambda data: Float(**data))
@dataclass(frozen=True, repr=False)
class Float(_Number):
    """A real parameter in [low, high]. With `log=True` its logarithm varies evenly (low > 0).

    With `step` its values are low, low + step, ..., high, as they are written in decimals. If low and high are equal,
    the parameter is a constant. With `unknown=True`, in contexts, the number may be missing: None, NaN, or no entry.
    It then has the middle of the range as its value, and a second column says so.

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
    unknown: bool = field(default=False, kw_only=True)

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
        object.__setattr__(self, "unknown", flag("unknown", self.unknown))
        if self.step is not None:
            self._check_step()

    def _check_step(self) -> None:
        step = number("step", self.step, low=0.0, open_low=True, why="It is how far neighbouring values are apart.")
        object.__setattr__(self, "step", step)
        if self.log:
            _refuse_log("Float")
        steps = self._span / _decimal(step)
        if steps > LARGEST_WHOLE:
            raise InvalidInput(
                f"Float from {exact(self.low)} to {exact(self.high)} has more steps of {exact(step)} than floats tell "
                "apart: leave `step` out."
            )
        if abs(steps - round(steps)) > type(steps)(SAME_POINT) * steps:
            end = _decimal(self.low) + int(steps) * _decimal(step)
            _refuse_step("Float", exact(self.low), exact(self.high), exact(step), exact(float(end)))

    def __repr__(self) -> str:
        more = ("" if self.step is None else f", step={self.step}") + ", unknown=True" * self.unknown
        return f"Float(low={self.low}, high={self.high}, log={self.log}{more})"

    @property
    def _span(self) -> Decimal:
        """The range, from both ends as they are written."""
        return _decimal(self.high) - _decimal(self.low)

    @cached_property
    def known_count(self) -> int | None:
        """Number of values but for a missing one, or None if they vary continuously."""
        if self.low == self.high:
            return 1
        return None if self.step is None else round(self._span / _decimal(self.step)) + 1

    def _encode(self, value: Any, name: str) -> list[float]:
        given = number(name, value)
        if self.low == self.high and not math.isclose(given, self.low, rel_tol=SAME_POINT):
            raise InvalidInput(f"`{name}` is {exact(given)}: it is always {exact(self.low)}.")
        at = self.position(given) if given > 0.0 or not self.log else -1.0
        if not -SAME_POINT <= at <= 1.0 + SAME_POINT:
            number(name, given, low=self.low, high=self.high)
        at = min(max(at, 0.0), 1.0)
        if self.known_count is None:
            return [at]
        place = self.place(np.array([at]))
        if self.value(place) != given and abs(self.at(place)[0] - at) > SAME_POINT:
            raise InvalidInput(
                f"`{name}` is {exact(given)}: it must be {exact(self.low)} plus a multiple of {exact(self.step or 0)}."
            )
        return self.at(place)

    def _decode(self, columns: Array) -> float:
        if self.known_count is not None:
            return self.value(self.place(columns))
        value = _from_unit(float(columns[0]), self.low, self.high, self.log)
        return min(max(float(f"{value:.{SIGNIFICANT_DIGITS}g}"), self.low), self.high)

    def place(self, columns: Array) -> int:
        """Returns how many steps above `low` the value nearest to encoded columns is."""
        return round(min(max(float(columns[0]), 0.0), 1.0) * ((self.known_count or 1) - 1))

    def at(self, place: int) -> list[float]:
        """Returns the columns of the value some steps above `low`."""
        return [place / max((self.known_count or 1) - 1, 1)]

    def _snap(self, columns: Array) -> Array:
        last = (self.known_count or 1) - 1
        return columns if self.real else np.asarray(np.rint(np.clip(columns, 0.0, 1.0) * last) / max(last, 1))

    def value(self, place: int) -> float:
        """Returns the value some steps above `low`, in decimal arithmetic: 0.3, not 0.30000000000000004."""
        last = (self.known_count or 1) - 1
        if not 0 < place < last:
            return self.low if place <= 0 else self.high
        return float(_decimal(self.low) + place * self._span / last)

    def spread(self, u: Array) -> Array:
        """Returns the columns `(n,)` of shares `(n,)` in [0, 1) of the range. All steps are as likely."""
        return u if self.known_count is None else _spread(u, self.known_count)


@described_by(encode=lambda each: _plain_number(each, 1), decode=lambda data: Int(**data))
@dataclass(frozen=True, repr=False)
class Int(_Number):
    """A whole-number parameter: low, low + step, ..., high. `log=True` (with step 1) has the meaning of `Float`.

    So has `unknown=True`.

    >>> import nilregret as nr
    >>> nr.Int(10, 180, step=5)
    Int(low=10, high=180, log=False, step=5)
    """

    low: int
    high: int
    log: bool = field(default=False, kw_only=True)
    step: int = field(default=1, kw_only=True)
    unknown: bool = field(default=False, kw_only=True)

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
        object.__setattr__(self, "unknown", flag("unknown", self.unknown))

    def __repr__(self) -> str:
        return (
            f"Int(low={self.low}, high={self.high}, log={self.log}, step={self.step}{', unknown=True' * self.unknown})"
        )

    @property
    def known_count(self) -> int:
        """Number of values but for a missing one."""
        return (self.high - self.low) // self.step + 1

    def _encode(self, value: Any, name: str) -> list[float]:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        whole = integer(name, value, low=-LARGEST_WHOLE)
        number(name, whole, low=self.low, high=self.high)
        if (whole - self.low) % self.step:
            raise InvalidInput(f"`{name}` is {whole}: it must be {self.low} plus a multiple of {self.step}.")
        return [_unit(float(whole), self.low, self.high, self.log)]

    def _decode(self, columns: Array) -> int:
        value = _from_unit(float(columns[0]), self.low, self.high, self.log)
        return round(value) if self.step == 1 else self.low + self.step * round((value - self.low) / self.step)

    def _snap(self, columns: Array) -> Array:
        if self.log or self.low == self.high:
            return np.reshape([self.position(float(self._decode(row))) for row in columns], columns.shape)
        at = self.low + np.clip(columns, 0.0, 1.0) * (self.high - self.low)
        values = self.low + self.step * np.rint((at - self.low) / self.step) if self.step > 1 else np.rint(at)
        return np.asarray((values - self.low) / (self.high - self.low))

    def place(self, columns: Array) -> int:
        """Returns how many steps above `low` the value nearest to encoded columns is."""
        return (self._decode(columns) - self.low) // self.step

    def at(self, place: int) -> list[float]:
        """Returns the columns of the value some steps above `low`."""
        return [self.position(float(self.low + place * self.step))]

    def spread(self, u: Array) -> Array:
        """Returns the columns `(n,)` of shares `(n,)` in [0, 1) of the range, where every value has a whole cell.

        Rounded, the range itself would give its ends half a cell. So it is longer by as much beyond each end.
        """
        if not self.log:
            return _spread(u, self.known_count)
        first, last = self.position(self.low + 0.5), self.position(self.high - 0.5)
        return (2.0 - last + first) * u - first


def _plain_choice(choice: Choice) -> dict[str, Any]:
    plain = {"options": to_plain([described_option(option) for option in choice.declared])}
    return plain | ({"unknown": True} if choice.unknown else {})


def _choice_options(data: dict[str, Any]) -> Choice:
    unknown = data.pop("unknown", False)
    (options,) = entries(data, options=list)
    return Choice(*options, unknown=unknown)


@described_by(encode=_plain_choice, decode=_choice_options)
@dataclass(frozen=True, init=False, eq=False, repr=False)
class Choice:
    """A choice among several options: strings, numbers, booleans, None, tuples, lists, dicts, classes and functions.

    Any two options are equally far apart, at distance 1. They are told apart by value and type. A class or function is
    on record by its import name alone. Nothing is imported from a record.

    With `unknown=True`, in contexts, there is one option more, the last one, None. Values that were never declared,
    None and missing entries are that level.

    >>> import nilregret as nr
    >>> nr.Choice("adam", "sgd", None)
    Choice(options=('adam', 'sgd', None))
    >>> space = nr.Space(layers=nr.Choice((64,), (64, 32)))
    >>> space.decode(space.encode({"layers": (64, 32)}))
    {'layers': (64, 32)}
    """

    options: tuple[Option, ...]
    unknown: bool = False

    def __init__(self, *options: Option, unknown: bool = False) -> None:
        object.__setattr__(self, "unknown", flag("unknown", unknown))
        options = tuple(option for option in options if option is not None) if unknown else options
        if not options:
            raise InvalidInput("Choice needs at least one option.")
        if len(options) == 1 and isinstance(options[0], list | tuple | set | np.ndarray):
            raise InvalidInput(
                f"Choice option {shown(options[0])} is the only one. Options are given one by one: Choice(*options)."
            )
        options = (*options, None) if unknown else options
        object.__setattr__(self, "options", tuple(map(checked_option, options)))
        if len(self._places) < len(options):
            raise InvalidInput(f"Choice options must differ from one another: {shown(options)}.")

    @cached_property
    def _places(self) -> dict[Hashable, int]:
        return {option_key(option): place for place, option in enumerate(self.options)}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Choice) or self.unknown is not other.unknown:
            return False
        return list(self._places) == list(other._places)

    def __hash__(self) -> int:
        return hash(tuple(self._places))

    def __repr__(self) -> str:
        return f"Choice(options={self.declared!r}{', unknown=True' * self.unknown})"

    @property
    def declared(self) -> tuple[Option, ...]:
        """The options without the level of the unknown."""
        return self.options[:-1] if self.unknown else self.options

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
        """Returns the columns of an option, or raises an error if there is no such option.

        With `unknown=True` a value that was never declared has the columns of the level of the unknown.
        """
        place = self.find(value)
        if place is None and self.unknown:
            checked_level(value)
            place = len(self.options) - 1
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


def checked_level(value: Any) -> Option:
    """Returns a value that was never declared as it is recorded: a text, number or boolean, or None."""
    level = None if is_nothing(value) else plain_option(value)
    if level is None or (_is_json(level) and abs(level) <= LARGEST_WHOLE):
        return level
    if isinstance(level, str) and len(level) <= LONGEST_LEVEL and "\0" not in level:
        return level
    raise InvalidInput(
        f"{shown(value)} is no option, and too much for one that was never declared: that is a text of at most "
        f"{LONGEST_LEVEL} characters, a number, a boolean, or None."
    )


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
