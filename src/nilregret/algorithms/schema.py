"""Tables of a TOML file or a request, checked against the signature of the function or class that they describe."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, reduce
from inspect import signature, unwrap
from operator import or_
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, final, get_args, get_origin, get_type_hints

import msgspec

from .._utils.checks import closest, shown
from .._utils.checks import nearest as nearest
from .._utils.dataclass import dataclass, field
from ..domains.conditions import Conditional, when
from ..domains.parameters import Choice, Float, Int, Parameter
from ..errors import InvalidInput
from .definition import Slots, keyword_hint

T = TypeVar("T")
R = TypeVar("R")

Inner = dict[str, Any]  # A table within a table has a reader of its own.
SCALARS = (float, int, str, bool)
KINDS = {
    "int": "a whole number", "float": "a number", "str": "a text", "bool": "true or false", "array": "a list",
    "object": "a table", "null": "null",
}  # fmt: skip
EACH = f"(?:{'|'.join(KINDS)})"
UNKNOWN = re.compile(r"Object contains unknown field `([^`]*)`")


@final
@dataclass(frozen=True)
class Schema:
    """The entries of a table, derived from the arguments of the function or class that the table describes.

    Attributes:
        make: called with the entries as keyword arguments. Entries that are left out have its defaults.
        types: types of entries (as of `msgspec.convert`) that differ from the annotations, or are no argument.
        without: arguments that are no entries.
        required: entries that a table must have although the argument has a default.
        optional: entries that a table may leave out although the argument has no default.
        refused: names that a user may well try, and why they are no entries.
        where: the place of the table, for errors.
    """

    make: Callable[..., Any]
    types: Mapping[str, Any] = field(default_factory=dict)
    without: Sequence[str] = ()
    required: Sequence[str] = ()
    optional: Sequence[str] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    where: str = "in a file"

    @cached_property
    def needed(self) -> dict[str, Any]:
        """The entries that must be there, each with its type."""
        return {name: kind for name, (kind, needed) in self._entries.items() if needed}

    @cached_property
    def allowed(self) -> dict[str, Any]:
        """The entries that may be left out, each with its type."""
        return {name: kind for name, (kind, needed) in self._entries.items() if not needed}

    @property
    def entries(self) -> list[str]:
        """The names of all entries."""
        return [*self.needed, *self.allowed]

    def check(self, table: Mapping[str, Any], named: str = "") -> dict[str, Any]:
        """Returns the entries of a table, of the right types.

        Args:
            table: from the file, without the entry that says which table this is.
            named: that entry, for errors.
        """
        for name in table:
            if name in self.refused:
                raise InvalidInput(f"`{name}` cannot be set {self.where}: {self.refused[name]}.")
        unknown = [name for name in table if name not in self.entries]
        missing = [name for name in self.needed if name not in table]
        if unknown or missing:
            wrong = [f"missing {', '.join(missing)}"] * bool(missing)
            wrong += [f"unknown {', '.join(unknown)}"] * bool(unknown)
            hint = keyword_hint(unknown[0], self.entries) if unknown else ""
            of = f" of {named}" if named else ""
            raise InvalidInput(f"{'; '.join(wrong)}.{hint} The entries{of} are: {', '.join(self.entries) or 'none'}.")
        read: dict[str, Any] = msgspec.structs.asdict(convert(dict(table), self._struct))
        return {name: value for name, value in read.items() if value is not msgspec.UNSET}

    @cached_property
    def _entries(self) -> dict[str, tuple[Any, bool]]:
        """Each entry with its type and whether a table must have it."""
        arguments = signature(self.make).parameters
        omitted = {*self.without, *self.refused}
        found: dict[str, tuple[Any, bool]] = {n: (kind, True) for n, kind in self.types.items() if n not in arguments}
        names = [name for name in arguments if name not in omitted]
        hints = {} if set(names) <= set(self.types) else _hints(self.make)
        for name in names:
            kind = self.types[name] if name in self.types else entry_type(hints[name])
            needed = arguments[name].default is arguments[name].empty and name not in self.optional
            found[name] = (kind, needed or name in self.required)
        return found

    @cached_property
    def _struct(self) -> type[msgspec.Struct]:
        optional = [(name, kind | msgspec.UnsetType, msgspec.UNSET) for name, kind in self.allowed.items()]
        return msgspec.defstruct("Section", [*self.needed.items(), *optional], forbid_unknown_fields=True)


def _hints(make: Callable[..., Any]) -> dict[str, Any]:
    """Returns the annotations of a class or a function, and those of the slots that algorithms share."""
    return get_type_hints(Slots) | get_type_hints(make if isinstance(make, type) else unwrap(make))


def entry_type(hint: Any) -> Any:
    """Returns the type of a file's entry for an annotation: numbers, texts, lists of them, and tables for parts.

    >>> entry_type(float | tuple[float, ...] | None)
    float | list[float]
    """
    if hint in SCALARS or hint is Any:
        return hint
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return str
    if origin in (Union, UnionType):
        kinds = [entry_type(each) for each in arguments if each is not NoneType and each.__module__ != "datetime"]
        return reduce(or_, dict.fromkeys(kinds))
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return list[entry_type(arguments[0])]  # type: ignore[misc]  # a type made at run time
    return Inner


def one_named(entry: str, name: object, known: Mapping[str, T], refused: Mapping[str, str] | None = None) -> T:
    """Returns the thing of this name.

    Args:
        entry: the entry that holds the name, for errors.
        name: as read, of any type.
        known: things by name.
        refused: names that a user may well try, each with the end of the error sentence.
    """
    if isinstance(name, str) and refused and name in refused:
        raise InvalidInput(f"`{entry}` {name!r} {refused[name]}")
    if not isinstance(name, str) or name not in known:
        hint = nearest(str(name), known)
        found = "missing" if name is None else repr(name)
        raise InvalidInput(f"`{entry}` is {found}: it must be one of {', '.join(map(repr, known))}.{hint}")
    return known[name]


def within(entry: str, read: Callable[..., R], *arguments: Any) -> R:
    """Returns `read(*arguments)`. Its errors name the entry of the file."""
    try:
        return read(*arguments)
    except InvalidInput as error:
        raise error.within(entry) from error


def in_words(message: str, table: str) -> str:
    """Returns a message of msgspec in words that name no type of Python.

    Args:
        message: of a `msgspec.ValidationError`.
        table: name of a table, with its article.
    """
    kinds = {**KINDS, "object": table}

    def wanted(found: re.Match[str]) -> str:
        *others, last = (said for each, said in kinds.items() if each in found[1].split(" | ") and each != "null")
        return f"it must be {', '.join(others)}{' or ' * bool(others)}{last}"

    message = re.sub(rf"Expected `({EACH}(?: \| {EACH})*)`", wanted, message)
    message = re.sub(rf", got `({EACH})`", lambda found: f", and is {kinds[found[1]]}", message)
    message = message.replace("a whole number, and is a number", "a whole number, and is not whole")
    message = re.sub(r"^Object missing required field (`.*?`)", r"the entry \1 is missing", message)
    return UNKNOWN.sub(r"there is no entry `\1`", message).replace("Invalid enum value", "it cannot be")


def convert(data: Any, kind: Any, place: str = "") -> Any:
    """Returns `data` as a checked structure.

    Raises:
        InvalidInput: names the entry, the fault, and the nearest name if the entry is misspelt.
    """
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        message, _, at = in_words(str(error), "a table").partition(" - at `$")
        at = (place + at.rstrip("`")).lstrip(".")
        message = f"`{at}` {message[3:]}" if at and message.startswith("it ") else f"`{at}`: " * bool(at) + message
        unknown = UNKNOWN.search(str(error))
        if unknown:
            structs = getattr(kind, "__args__", (kind,))
            fields = [name for struct in structs for name in struct.__struct_fields__]
            close = closest(unknown.group(1), fields)
            if unknown.group(1) == close:
                message += ". It belongs at the top, outside that table"
            elif close:
                message += f". Did you mean `{close}`?"
            else:
                message += f". The entries are: {', '.join(dict.fromkeys(fields))}"
        raise InvalidInput(message if message.endswith("?") else f"{message}.") from None


class Table(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A table that refuses unknown names."""


_When = dict[str, Any] | None  # The name of another parameter, and its value or values.


class _Float(Table, tag="float", frozen=True):
    low: float
    high: float
    log: bool = False
    step: float | None = None
    when: _When = None
    unknown: bool = False


class _Int(Table, tag="int", frozen=True):
    low: int
    high: int
    log: bool = False
    step: int = 1
    when: _When = None
    unknown: bool = False


class _Choice(Table, tag="choice", frozen=True):
    options: list[Any]
    when: _When = None
    unknown: bool = False


def table_of(declared: Parameter | Conditional) -> dict[str, Any]:
    """Returns the table that describes a parameter, which `parameter` reads."""
    if isinstance(declared, Conditional):
        inner = table_of(declared.parameter)
        return inner | {"when": inner.get("when", {}) | {declared.on: list(declared.values)}}
    unknown = {"unknown": True} if declared.unknown else {}
    if isinstance(declared, Choice):
        return {"type": "choice", "options": list(declared.declared)} | unknown
    kind = "float" if isinstance(declared, Float) else "int"
    step = {} if declared.step is None else {"step": declared.step}
    return {"type": kind, "low": declared.low, "high": declared.high, "log": declared.log} | step | unknown


# What other libraries call a type, and how it is said here.
MEANT: Mapping[str, str] = {
    **dict.fromkeys(("uniform", "real", "number", "double", "continuous"), "'float'"),
    **dict.fromkeys(("loguniform", "log_uniform", "log"), "'float', with log = true"),
    **dict.fromkeys(("integer", "whole", "discrete"), "'int'"),
    **dict.fromkeys(("categorical", "category", "enum", "ordinal", "string"), "'choice', with options = [...]"),
    **dict.fromkeys(("bool", "boolean"), "'choice', with options = [true, false]"),
    "mixture": "a 'float' for each ingredient, and their sum among the limits, such as where = [\"oil + salt == 1\"]",
}


def parameter(table: Mapping[str, Any]) -> Parameter | Conditional:
    """Returns the parameter that a table describes."""
    kind = table.get("type")
    if kind not in ("float", "int", "choice"):
        found = "missing" if kind is None else shown(kind)
        word = str(kind).lower()
        hint = f" That is {MEANT[word]}." if word in MEANT else nearest(word, ["float", "int", "choice"])
        raise InvalidInput(f"`type` is {found}: it must be 'float', 'int' or 'choice'.{hint}")
    described: _Float | _Int | _Choice = convert(table, _Float | _Int | _Choice, "")
    result: Parameter | Conditional
    if isinstance(described, _Choice):
        result = Choice(*described.options, unknown=described.unknown)
    elif isinstance(described, _Float):
        low, high, unknown = described.low, described.high, described.unknown
        result = Float(low, high, log=described.log, step=described.step, unknown=unknown)
    else:
        low, high, unknown = described.low, described.high, described.unknown
        result = Int(low, high, log=described.log, step=described.step, unknown=unknown)
    for on, values in (described.when or {}).items():
        result = when(on, values, result)
    return result
