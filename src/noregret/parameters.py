"""Named parameters, each encoded into columns of the unit cube (choices: one column for each option)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .checks import Array, integer, number
from .errors import InvalidInput
from .serialize import described, described_by, entries, to_plain

SIGNIFICANT_DIGITS = 12  # of decoded floats: 0.1 rather than 0.10000000000000002 in commands and tables


def _unit(value: float, low: float, high: float, log: bool) -> float:
    """Position of `value` between the ends, in [0, 1]."""
    if high == low:
        return 0.0
    if log:
        return math.log(value / low) / math.log(high / low)
    return (value - low) / (high - low)


def _from_unit(position: float, low: float, high: float, log: bool) -> float:
    position = min(max(position, 0.0), 1.0)
    value = low * (high / low) ** position if log else low + position * (high - low)
    return min(max(value, low), high)


def _check_log(kind: str, low: float, log: bool) -> None:
    if log and low <= 0:
        raise InvalidInput(f"{kind} with log=True needs low > 0, not {low:g}: the logarithm of {low:g} does not exist.")


@described
@dataclass(frozen=True)
class Float:
    """A real parameter in [low, high]; with `log=True` the logarithm is what varies evenly (low > 0)."""

    low: float
    high: float
    log: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        low, high = number("low", self.low), number("high", self.high)
        if low >= high:
            raise InvalidInput(f"Float needs low < high, not {low:g} and {high:g}. Usually the two are swapped.")
        _check_log("Float", low, self.log)
        if not math.isfinite(high / low if self.log else high - low):
            raise InvalidInput(f"Float from {low:g} to {high:g} spans more than a float can hold: narrow the range.")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def columns(self) -> int:
        """How many columns of an encoded point belong to this parameter."""
        return 1

    def encode(self, value: Any) -> list[float]:
        """Columns of a value; errors if it is outside the range."""
        return [_unit(number("value", value, low=self.low, high=self.high), self.low, self.high, self.log)]

    def decode(self, columns: Array) -> float:
        """The value behind encoded columns, to 12 significant digits."""
        value = _from_unit(float(columns[0]), self.low, self.high, self.log)
        return min(max(float(f"{value:.{SIGNIFICANT_DIGITS}g}"), self.low), self.high)

    def values(self, count: int) -> list[float]:
        """`count` values, evenly spaced (in the logarithm with `log=True`), ends included."""
        middle = [0.5] if count == 1 else np.linspace(0.0, 1.0, count)
        return [self.decode(np.array([position])) for position in middle]


@described
@dataclass(frozen=True)
class Int:
    """A whole-number parameter in [low, high], both ends included; `log=True` as for `Float`."""

    low: int
    high: int
    log: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            value = integer(name, getattr(self, name), low=-(2**53))
            if value > 2**53:
                raise InvalidInput(f"`{name}` is beyond 2**53, where floats no longer tell whole numbers apart.")
            object.__setattr__(self, name, value)
        if self.low > self.high:
            raise InvalidInput(f"Int needs low <= high, not {self.low} and {self.high}. Usually the two are swapped.")
        _check_log("Int", self.low, self.log)

    @property
    def columns(self) -> int:
        """How many columns of an encoded point belong to this parameter."""
        return 1

    def encode(self, value: Any) -> list[float]:
        """Columns of a value; errors if it is not a whole number in the range."""
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        value = number("value", integer("value", value, low=self.low), low=self.low, high=self.high)
        return [_unit(value, self.low, self.high, self.log)]

    def decode(self, columns: Array) -> int:
        """The whole number nearest to encoded columns."""
        return round(_from_unit(float(columns[0]), self.low, self.high, self.log))

    def values(self, count: int) -> list[int]:
        """At most `count` distinct values, as evenly spaced as whole numbers allow, ends included."""
        count = min(count, self.high - self.low + 1)
        middle = [0.5] if count == 1 else np.linspace(0.0, 1.0, count)
        return sorted({self.decode(np.array([position])) for position in middle})


def _choice_options(data: dict[str, Any]) -> Choice:
    (options,) = entries(data, options=list)
    return Choice(*options)


@described_by(encode=lambda choice: {"options": to_plain(choice.options)}, decode=_choice_options)
@dataclass(frozen=True, init=False)
class Choice:
    """One of several options (strings, numbers, booleans): any two are equally far apart, at distance 1."""

    options: tuple[str | int | float | bool, ...]

    def __init__(self, *options: str | int | float | bool) -> None:
        if not options:
            raise InvalidInput("Choice needs at least one option.")
        for option in options:
            if not isinstance(option, str | int | float | bool) or (
                isinstance(option, float) and not math.isfinite(option)
            ):
                raise InvalidInput(
                    f"Choice option {option!r} ({type(option).__name__}) is not a string, finite number or boolean. "
                    "The record is stored as JSON: use a name for the option and look the object up by it."
                )
        if len({(type(option), option) for option in options}) < len(options):
            raise InvalidInput(f"Choice options must differ from one another: {options!r}.")
        object.__setattr__(self, "options", options)

    @property
    def columns(self) -> int:
        """How many columns of an encoded point belong to this parameter."""
        return len(self.options)

    def encode(self, value: Any) -> list[float]:
        """Columns of an option; errors if there is no such option."""
        for position, option in enumerate(self.options):
            if type(option) is type(value) and option == value:
                # 1 / sqrt(2) puts any two options at distance 1.
                return [math.sqrt(0.5) if column == position else 0.0 for column in range(self.columns)]
        raise InvalidInput(f"{value!r} is not among the options {self.options!r}.")

    def decode(self, columns: Array) -> str | int | float | bool:
        """The option whose column is largest."""
        return self.options[int(np.argmax(columns))]

    def values(self, count: int) -> list[str | int | float | bool]:  # noqa: ARG002 - a grid takes every option
        """Every option."""
        return list(self.options)


Parameter = Float | Int | Choice
