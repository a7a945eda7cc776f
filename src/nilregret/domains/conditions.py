"""Conditional parameters, which count only if other parameters have certain values.

A parameter is active if its conditions hold and every parameter in its conditions is active. An inactive parameter is
left out of the named parameters, and its columns are at the middle of their range. So all its values are one point to a
kernel.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, real, shown
from .._utils.dataclass import dataclass
from ..errors import InvalidInput, printable
from ..serialize import described_by, entries, to_plain
from .options import Option, checked_option, described_option, option_key, plain_option, worded
from .parameters import CHOSEN, Choice, Float, Int, Parameter, is_nothing

DECLARED = "_declared"  # Attribute of the parameters of a space that were declared with conditions.

Mask = npt.NDArray[np.bool_]


def _plain_conditional(conditional: Conditional) -> dict[str, Any]:
    values = to_plain([described_option(value) for value in conditional.values])
    return {"on": conditional.on, "values": values, "parameter": to_plain(conditional.parameter)}


def _decode_conditional(data: dict[str, Any]) -> Conditional:
    on, values, parameter = entries(data, on=str, values=list, parameter=Float | Int | Choice | Conditional)
    return Conditional(on, tuple(values), parameter)


@final
@described_by(encode=_plain_conditional, decode=_decode_conditional)
@dataclass(frozen=True, repr=False, eq=False)
class Conditional:
    """A parameter that counts only if another one has one of some values, made by `when`."""

    on: str
    values: tuple[Option, ...]
    parameter: Float | Int | Choice | Conditional

    def __post_init__(self) -> None:
        name = plain_option(self.on)
        if type(name) is not str:
            raise InvalidInput(
                f"A condition names another parameter, such as when('kernel', 'rbf', ...), not {shown(self.on)}."
            )
        if not isinstance(self.parameter, Float | Int | Choice | Conditional):
            raise InvalidInput(
                f"The last of when({name!r}, ...) is {shown(self.parameter)}: it must be a Float, Int or Choice."
            )
        if not self.values:
            raise InvalidInput(f"when({name!r}, ...) names no value for which the parameter would count.")
        object.__setattr__(self, "on", name)
        object.__setattr__(self, "values", tuple(map(checked_option, self.values)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Conditional) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return self.on, tuple(map(option_key, self.values)), self.parameter

    def __repr__(self) -> str:
        values = repr(self.values[0]) if len(self.values) == 1 else repr(list(self.values))
        return f"when({self.on!r}, {values}, {self.parameter!r})"


def when(on: str, values: Option | Sequence[Option], parameter: Parameter | Conditional) -> Conditional:
    """Returns a parameter of a `Space` that counts only if another one has this value, or one of these.

    Otherwise the objective does not get it, since it is not in `trial.parameters`.

    Args:
        on: name of a `Choice`, `Int` or `Float` with `step` that stands before this one in the space. It may be
            conditional itself.
        values: one of its values, or a list of them. A tuple is a list of values, too.
        parameter: a `Float`, `Int` or `Choice`, or another `when(...)` if several conditions must hold.

    >>> import nilregret as nr
    >>> space = nr.Space(
    ...     kernel=nr.Choice("linear", "rbf", "poly"),
    ...     gamma=nr.when("kernel", ["rbf", "poly"], nr.Float(1e-4, 1.0, log=True)),
    ...     degree=nr.when("kernel", "poly", nr.Int(2, 5)),
    ... )
    >>> space.decode(space.encode({"kernel": "rbf", "gamma": 0.01}))
    {'kernel': 'rbf', 'gamma': 0.01}
    """
    if isinstance(values, set | frozenset):  # their order differs from one process to the next
        values = sorted(values, key=repr)
    several = values if isinstance(values, list | tuple | range) else [values]
    return Conditional(on, tuple(several), parameter)


class Need(NamedTuple):
    """A condition that the parameter `on` has one of these values."""

    on: str
    values: tuple[Option, ...]

    def __str__(self) -> str:
        said = [worded(value) if callable(value) else repr(value) for value in self.values]
        return f"{printable(self.on)} is {' or '.join(said)}"


def unwrapped(declared: Any) -> tuple[list[Need], Any]:
    """Returns the conditions of a declared parameter, the outermost first, and the parameter alone."""
    found = []
    while isinstance(declared, Conditional):
        found.append(Need(declared.on, declared.values))
        declared = declared.parameter
    return found, declared


@final
class Conditions:
    """The conditions of a space.

    Attributes:
        parameters: name to `Float`, `Int` or `Choice`, in the order given.
        needs: conditions of each conditional parameter.
        middle: values of the columns of inactive parameters, `(d,)`.
    """

    def __init__(self, declared: Mapping[str, Parameter | Conditional]) -> None:
        self.parameters: dict[str, Parameter] = {}
        self.needs: dict[str, tuple[Need, ...]] = {}
        for name, given in declared.items():
            needs, parameter = unwrapped(given)
            if needs:
                later = set(declared) - set(self.parameters)
                self.needs[name] = tuple(self._need(name, need, later=later) for need in needs)
                parameter = _marked(parameter, given)
            self.parameters[name] = parameter
        self.middle = np.concatenate([_middle(parameter) for parameter in self.parameters.values()])

    def _need(self, name: str, given: Need, *, later: set[str]) -> Need:
        on, parent = given.on, self.parameters.get(given.on)
        if parent is None:
            where = "stands after it, or is itself: it must stand before it" if on in later else "is not in the space"
            raise InvalidInput(f"Parameter `{name}` counts only for some values of {shown(on)}, which {where}.")
        if parent.real:
            raise InvalidInput(
                f"Parameter `{name}` counts only for some values of {on!r}, which varies continuously: "
                "conditions name a Choice, an Int or a Float with `step`. A Choice of ranges, with a Float for each, "
                "says the same."
            )
        try:
            return Need(on, tuple(_declared(parent, value) for value in given.values))
        except InvalidInput as error:
            hint = ""
            if isinstance(parent, Choice) and parent.find(given.values) is not None:
                hint = f"A tuple is several values: write when({on!r}, [{given.values!r}], ...) for the one option."
            raise error.after(f"Parameter `{name}` counts only for some values of {on!r}: ").advised(hint) from None

    def is_active(self, name: str, values: Mapping[str, Any]) -> bool:
        """Returns True if a parameter counts, given the values of the active ones before it."""
        return all(need.on in values and _among(values[need.on], need.values) for need in self.needs.get(name, ()))

    def active(self, points: Array) -> Mask:
        """Returns the active columns of encoded points `(n, d)`, as `(n, d)`."""
        where, result = columns_by_name(self.parameters), np.ones(points.shape, dtype=bool)
        for name, needs in self.needs.items():
            for need in needs:
                parent = where[need.on]
                holds = self._holds(need, points[:, parent]) & result[:, parent.start]
                result[:, where[name]] &= holds[:, None]
        return result

    def _holds(self, need: Need, columns: Array) -> Mask:
        parent = self.parameters[need.on]
        if isinstance(parent, Choice):
            wanted = np.array([_among(option, need.values) for option in parent.options])
            return np.asarray(wanted[columns.argmax(axis=1)])
        return np.array([_among(parent.decode(row), need.values) for row in columns], dtype=bool)

    def centre_inactive(self, points: Array) -> Array:
        """Returns points `(n, d)` with inactive columns at the middle."""
        return np.where(self.active(points), points, self.middle)

    def encode(self, given: Mapping[str, Any]) -> list[float]:
        """Returns the columns of a dict with all active parameters. Errors name missing and inactive ones."""
        values: dict[str, Any] = {}
        columns: list[float] = []
        for name, parameter in self.parameters.items():
            if self.is_active(name, values):
                if name not in given:
                    self._refuse_missing(name)
                encoded = encoded_as(name, parameter, given[name])
                values[name] = parameter.decode(np.array(encoded))
            elif is_nothing(given.get(name)):  # a table has a column for every parameter
                encoded = _middle(parameter).tolist()
            else:
                raise InvalidInput(
                    f"Parameter `{name}` is {shown(given[name])}, and it counts only where {self._said(name)}: leave "
                    "it out here."
                )
            columns += encoded
        return columns

    def decode(self, point: Array) -> dict[str, Any]:
        """Returns the active parameters at an encoded point `(d,)`."""
        values: dict[str, Any] = {}
        start = 0
        for name, parameter in self.parameters.items():
            if self.is_active(name, values):
                values[name] = parameter.decode(point[start : start + parameter.columns])
            start += parameter.columns
        return values

    def _refuse_missing(self, name: str) -> NoReturn:
        where = f" It counts, as {self._said(name)}." if name in self.needs else ""
        raise InvalidInput(
            f"The parameters do not fit the space: missing {shown([name])}.{where} The space has "
            f"{', '.join(self.parameters)}."
        )

    def _said(self, name: str) -> str:
        return " and ".join(map(str, self.needs[name]))


def columns_by_name(parameters: Mapping[str, Parameter]) -> dict[str, slice]:
    """Returns the columns of an encoded point that belong to each parameter, by name."""
    ends = np.cumsum([parameter.columns for parameter in parameters.values()]).tolist()
    return {name: slice(end - p.columns, end) for (name, p), end in zip(parameters.items(), ends, strict=True)}


def encoded_as(name: str, parameter: Parameter, value: Any) -> list[float]:
    """Returns the columns of a value. The error about a wrong one names the parameter."""
    try:
        return parameter.encode(value) if isinstance(parameter, Choice) else parameter.encode(value, name)
    except InvalidInput as error:
        if isinstance(parameter, Choice):
            raise error.after(f"Parameter `{name}`: ") from None
        error, given = error.after("Parameter "), real(value)
        if given is not None and not parameter.low <= given <= parameter.high:
            new = f"{name}=nr.{type(parameter).__name__}(...)"
            advice = f"`study.widen({new})` changes the range, and that of a context `widen(context=dict({new}))`."
            error = error.advised(advice, topic="range")
        raise error from None


def _marked(parameter: Parameter, declared: Parameter | Conditional) -> Parameter:
    """Returns an equal parameter that knows its conditions, for `as_declared`."""
    marked = copy.copy(parameter)
    object.__setattr__(marked, DECLARED, declared)
    return marked


def as_declared(parameter: Any, names: Collection[str]) -> Any:
    """Returns a parameter of another space with its conditions, as `Space(**space.parameters)` means it.

    Args:
        parameter: of the new space.
        names: of all its parameters. Without those of the conditions, the parameter always counts.
    """
    declared = getattr(parameter, DECLARED, parameter)
    return declared if all(need.on in names for need in unwrapped(declared)[0]) else parameter


def _middle(parameter: Parameter) -> Array:
    """Returns the middle of a number's range, or the point equally far from all options, `(columns,)`."""
    if isinstance(parameter, Choice):
        return np.full(parameter.columns, CHOSEN / parameter.columns)
    return np.array([0.5, 0.0][: parameter.columns])


def _declared(parameter: Parameter, value: Any) -> Any:
    """Returns a value of a parameter, or raises an error if it was not declared."""
    if isinstance(parameter, Choice) and parameter.unknown and parameter.find(value) is None:
        raise InvalidInput(f"{shown(value)} is not among the options {shown(parameter.options)}.")
    return parameter.decode(np.array(parameter.encode(value)))


def _among(value: object, options: tuple[Option, ...]) -> bool:
    key = option_key(value)
    return any(key == option_key(option) for option in options)
