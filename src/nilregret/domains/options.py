"""Options of a choice: values of JSON, tuples, and classes and functions by their import name.

| option | in a description | for people, and over HTTP |
|---|---|---|
| a string, number, boolean or None | itself | itself |
| a list | a list | a list |
| a tuple or dict | `NestedOption` | a list or an object |
| a class or function | `NamedOption` with "module:name" | "module:name" |

A description never imports what it names. An object comes from a program that passes the object itself (see `known`).
Otherwise a `NamedOption` stands in for the object.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MethodType
from typing import Any, NoReturn, final

import numpy as np

from .._utils.checks import LARGEST_WHOLE, integer, shown
from .._utils.dataclass import dataclass
from ..errors import InvalidInput, printable
from ..serialize import described_by, description, entries, to_plain

Option = Any
DEEPEST = 20  # Levels of an option: more is a mistake, such as a list that holds itself.
LAMBDA = "<lambda>"
_KNOWN: ContextVar[Mapping[str, Any]] = ContextVar("known", default={})  # noqa: B039 - it never changes


@final
@description(frozen=True, eq=False)
class NamedOption:
    """A stand-in for a class or function that a record names. It equals whatever has that import name."""

    name: str

    def __post_init__(self) -> None:
        module, _, name = self.name.partition(":")
        if not module or not name:
            raise InvalidInput(f"{shown(self.name)} names no class or function: it must be 'module:name'.")

    def __eq__(self, other: object) -> bool:
        return import_name(other) == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"<{printable(self.name)}>"

    def __call__(self, *_: object, **__: object) -> NoReturn:
        """Raises an error, because a record is never imported."""
        raise InvalidInput(
            f"{self!r} is known by its name only, since a record imports nothing. Usually the study was opened without "
            "its space.",
            advice="Open it by `Study(policy, storage=..., name=...)` with the space that has the object itself.",
        )


def _decode_nested(data: dict[str, Any]) -> Any:
    kind, items = entries(data, kind=str, items=list)
    if kind == "tuple":
        return tuple(items)
    if kind != "dict" or not all(isinstance(item, list) and len(item) == 2 for item in items):
        raise InvalidInput(f"it is no tuple and no dict, but {shown(kind)} of {shown(items)}.")
    return dict(items)


@final
@described_by(encode=lambda nested: {"kind": nested.kind, "items": to_plain(nested.items)}, decode=_decode_nested)
@dataclass(frozen=True)
class NestedOption:
    """A tuple or dict, as it is written in a description."""

    kind: str
    items: list[Any]


@contextmanager
def known(options: Iterable[Option]) -> Iterator[None]:
    """Lets descriptions that are read meanwhile have these objects for their names."""
    token = _KNOWN.set({name: option for option in options if (name := import_name(option)) is not None})
    try:
        yield
    finally:
        _KNOWN.reset(token)


def import_name(value: object) -> str | None:
    """Returns "module:name" of a class, a function or a stand-in, or None."""
    if isinstance(value, NamedOption):
        return value.name
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", getattr(value, "__name__", None))
    if not callable(value) or isinstance(value, MethodType) or not isinstance(module, str) or not isinstance(name, str):
        return None
    return None if LAMBDA in name else f"{module}:{name}"


def plain_option(option: Any) -> Any:
    """Returns numpy's strings, numbers and booleans, and subclasses of these types, as Python's own."""
    if isinstance(option, np.generic):
        option = option.item()
    for kind in (str, bool, int, float):
        if isinstance(option, kind) and type(option) is not kind:
            return kind.__str__(option) if kind is str else kind(option)
        if type(option) is kind:
            return option
    return option


def checked_option(given: Any, levels: int = DEEPEST) -> Option:
    """Returns an option as it is kept, or raises an error if a record cannot name it. Lists and dicts are copied."""
    option = plain_option(given)
    if isinstance(option, int):
        integer("option", int(option), low=-LARGEST_WHOLE)
    if option is None or isinstance(option, str | int) or (isinstance(option, float) and math.isfinite(option)):
        return option
    if levels and type(option) in (list, tuple):
        return type(option)(checked_option(item, levels - 1) for item in option)
    if levels and type(option) is dict and all(isinstance(name, str) for name in option):
        return {str(name): checked_option(item, levels - 1) for name, item in option.items()}
    if (name := import_name(option)) is None:
        _refuse(given, option)
    return _KNOWN.get().get(name, option) if isinstance(option, NamedOption) else option


def _refuse(given: Any, option: Any) -> NoReturn:
    hint = "A record runs nothing: offer its class, or a name for it, and make the object in the objective."
    if type(option) in (list, tuple, dict):
        hint = f"Names in a dict are strings, and there are {DEEPEST} levels at most."
    elif LAMBDA in str(getattr(option, "__qualname__", "")):
        hint = "All lambdas have one name: define a function with `def`."
    elif isinstance(option, float):
        hint = "Write None or a string for it."
    raise InvalidInput(
        f"Choice option {shown(given)} ({type(given).__name__}) is not a string, finite number, boolean or None, nor a "
        f"class or function with a name, nor a tuple, list or dict of these. {hint}"
    )


def described_option(option: Option) -> Any:
    """Returns what `to_plain` writes for an option."""
    if isinstance(option, list):
        return [described_option(item) for item in option]
    if isinstance(option, tuple):
        return NestedOption("tuple", [described_option(item) for item in option])
    if isinstance(option, dict):
        return NestedOption("dict", [[name, described_option(item)] for name, item in option.items()])
    name = import_name(option)
    return option if name is None else NamedOption(name)


def option_key(option: Option) -> Hashable:
    """Returns a key of an option that tells 1, 1.0 and True apart, in tuples and lists too."""
    if isinstance(option, list | tuple):
        return type(option).__name__, tuple(map(option_key, option))
    if isinstance(option, dict):
        return "dict", frozenset((name, option_key(item)) for name, item in option.items())
    name = import_name(option)
    return (type(option).__name__, option) if name is None else ("name", name)


def fresh(option: Option) -> Option:
    """Returns an option that its receiver may change: a copy of a list or dict."""
    if type(option) is dict:
        return {name: fresh(item) for name, item in option.items()}
    return type(option)(map(fresh, option)) if type(option) in (list, tuple) else option


def readable(option: Option) -> Any:
    """Returns an option as JSON for people: a tuple as a list, a class or function as its name."""
    if isinstance(option, list | tuple):
        return [readable(item) for item in option]
    if isinstance(option, dict):
        return {name: readable(item) for name, item in option.items()}
    return import_name(option) or option if callable(option) else option


def json_of(option: Option) -> str:
    """Returns the JSON of an option for people."""
    return json.dumps(readable(option), sort_keys=True)


def worded(option: Option, *, whole: bool = False) -> str:
    """Returns a short text for people, such as "(64, 32)" or "SVC". With `whole` classes have their module, too."""
    if isinstance(option, list | tuple):
        inside = ", ".join(_inside(item, whole=whole) for item in option)
        return f"[{inside}]" if isinstance(option, list) else f"({inside}{',' * (len(option) == 1)})"
    if isinstance(option, dict):
        return "{" + ", ".join(f"{name}: {_inside(item, whole=whole)}" for name, item in option.items()) + "}"
    name = import_name(option)
    return str(option) if name is None else name if whole else name.rpartition(":")[2].rpartition(".")[2]


def _inside(option: Option, *, whole: bool) -> str:
    return json.dumps(option) if whole and isinstance(option, str) else worded(option, whole=whole)
