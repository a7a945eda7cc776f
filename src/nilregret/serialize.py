"""Conversion of descriptions (domains, kernels, parts, policies) to and from plain JSON values, never pickle.

A described object becomes `{"type": class name, field: value, ...}`. Floats keep every bit, since JSON numbers are
written with `repr`. Infinity, which JSON does not have, becomes `{"type": "infinity", "sign": 1}`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, fields
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from ._utils.checks import nearest, shown
from ._utils.dataclass import dataclass
from ._utils.public import LOADERS
from .errors import InvalidInput, NoRegretError

if TYPE_CHECKING:
    from dataclasses import dataclass as description

T = TypeVar("T")
_ENCODERS: dict[type, Callable[[Any], dict[str, Any]]] = {}
_DECODERS: dict[str, Callable[[dict[str, Any]], Any]] = {}
MODULES = re.compile(r"\b(?:\w+\.)+(?=\w)")  # module names before the name of a class
DEEPEST = 100  # largest depth of a description: most have about ten levels, and Python ends at some hundreds

# Errors that a constructor may raise for unexpected values of the right types.
_UNFIT = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError, MemoryError)


def described(cls: type[T]) -> type[T]:
    """Registers a frozen dataclass whose fields are its description (a class decorator)."""

    def decode(data: dict[str, Any]) -> T:
        kind: Any = cls
        hints = _hints(kind)
        for name, value in data.items():
            if name in hints and not _fits(value, hints[name]):
                wanted = getattr(hints[name], "__name__", None) or MODULES.sub("", str(hints[name]))
                raise InvalidInput(f"the field `{name}` is {shown(value)}, which is no {wanted}.")
        return cls(**{name: _as_hinted(value, hints.get(name)) for name, value in data.items()})

    return described_by(
        encode=lambda value: {f.name: to_plain(getattr(value, f.name)) for f in fields(value) if _is_said(f, value)},
        decode=decode,
    )(cls)


if not TYPE_CHECKING:

    def description(**options: bool) -> Callable[[type[T]], type[T]]:
        """Returns a class decorator that makes a dataclass and registers it by `described`."""
        return lambda cls: described(dataclass(**options)(cls))


LATER = {"later": True}  # Metadata of a field that came later: its default is left out, as before the field existed.


def _is_said(field: Field[Any], value: Any) -> bool:
    return field.init and not (field.metadata.get("later") and getattr(value, field.name) == field.default)


def described_by(
    *, encode: Callable[[Any], dict[str, Any]], decode: Callable[[dict[str, Any]], Any]
) -> Callable[[type[T]], type[T]]:
    """Returns a class decorator for classes whose constructor does not take their fields by name."""

    def register(cls: type[T]) -> type[T]:
        _check_name(cls)
        _ENCODERS[cls] = encode
        _DECODERS[cls.__name__] = decode
        if "__setstate__" not in cls.__dict__:
            cls.__setstate__ = _restore  # type: ignore[attr-defined]
        return cls

    return register


def _check_name(cls: type) -> None:
    """Raises an error if another described class has the same name.

    A description names its class and not the module, so that modules may be renamed.
    """
    home = cls.__module__.split(".")[0]
    other = next((known for known in _ENCODERS if known.__name__ == cls.__name__), None)
    own = __name__.split(".")[0]
    if other is not None and other.__module__.split(".")[0] != home and own in (home, other.__module__.split(".")[0]):
        raise InvalidInput(
            f"There is a described class `{cls.__name__}` already, in `{other.__module__}`: a stored description "
            "says no "
            "more than the name. Give yours another one."
        )


def _restore(self: Any, state: dict[str, Any]) -> None:
    """Restores the state of an unpickled or copied object.

    Arrays come out of a pickle writable, and descriptions must not change.
    """
    for value in state.values():
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, np.ndarray):
                item.flags.writeable = False
    self.__dict__.update(state)


@cache
def _hints(cls: Any) -> Mapping[str, Any]:
    try:
        return get_type_hints(cls)
    except NameError:  # A class of the user may have names that exist only for type checkers.
        return {}


def _are_whole(values: Sequence[Any]) -> bool:
    """Returns True for whole numbers alone, which need no visit each: a choice of many options has many groups."""
    return set(map(type, values)) == {int}


def _fits(value: Any, hint: Any) -> bool:
    """Returns True if a decoded value may belong to a field with this annotation. The constructor checks the rest."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is Literal:
        return isinstance(value, str | int) and value in parts
    if origin is tuple:
        if not isinstance(value, list | tuple):
            return False
        if parts[-1] is Ellipsis:
            return (parts[0] is int and _are_whole(value)) or all(_fits(item, parts[0]) for item in value)
        return len(value) == len(parts) and all(map(_fits, value, parts))
    if origin is np.ndarray:
        return isinstance(value, list | np.ndarray) or _fits(value, float)
    if hint in (None, NoneType):
        return value is None
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return not isinstance(hint, type) or isinstance(value, hint)


def _as_hinted(value: Any, hint: Any) -> Any:
    """Returns a tuple for a list if the field is annotated so, for equality and hashing, since JSON has no tuples."""
    origin = get_origin(hint)
    if not isinstance(value, list) or origin not in (tuple, Union, UnionType):
        return value
    if origin is tuple:
        if _are_whole(value):
            return tuple(value)
        parts = get_args(hint)
        inner = [parts[0]] * len(value) if parts[-1] is Ellipsis else parts
        return tuple(_as_hinted(item, kind) for item, kind in zip(value, inner, strict=True))
    return next((_as_hinted(value, part) for part in get_args(hint) if get_origin(part) is tuple), value)


def entries(data: Mapping[str, Any], **kinds: type | UnionType) -> list[Any]:
    """Returns the values of a description that must have exactly these entries, of these kinds."""
    if data.keys() != kinds.keys():
        raise InvalidInput(f"it has {', '.join(map(shown, data)) or 'nothing'} where {', '.join(kinds)} belong.")
    for name, kind in kinds.items():
        if not isinstance(data[name], kind):
            raise InvalidInput(f"the field `{name}` is {shown(data[name])}.")
    return [data[name] for name in kinds]


def is_described(value: object) -> bool:
    """Returns True if the class of a value is itself registered, and not only a base of it."""
    return type(value) in _ENCODERS


def to_plain(value: Any) -> Any:
    """Returns the value as nested dicts, lists, strings, numbers, booleans and None."""
    if type(value) in _ENCODERS:
        return {"type": type(value).__name__, **_ENCODERS[type(value)](value)}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple):
        return list(value) if _are_whole(value) else [to_plain(item) for item in value]
    if isinstance(value, float) and math.isinf(value):
        return {"type": "infinity", "sign": int(math.copysign(1, value))}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise InvalidInput(
        f"{shown(value)} ({type(value).__name__}) cannot be written as JSON.",
        advice="A class of your own must be registered: decorate it with `nilregret.slots.described`.",
    )


def from_plain(data: Any) -> Any:
    """Returns the object that `to_plain` described."""
    return _decoded(data, DEEPEST)


def _decoded(data: Any, levels: int) -> Any:
    if not isinstance(data, dict | list):
        return data
    if levels == 0:
        raise InvalidInput(f"This description is nested more than {DEEPEST} levels deep: it describes nothing.")
    if isinstance(data, list):
        return list(data) if _are_whole(data) else [_decoded(item, levels - 1) for item in data]
    values = {key: _decoded(value, levels - 1) for key, value in data.items() if key != "type"}
    name = data.get("type")
    if name == "infinity" and values.keys() == {"sign"} and values["sign"] in (1, -1):
        return math.copysign(math.inf, values["sign"])
    decode = _decoder(name)
    try:
        return decode(values)
    except NoRegretError as error:
        what = f"The description of a {name} cannot be used: {error.what}"
        raise InvalidInput(what, advice=error.advice, topic=error.topic) from error
    except _UNFIT as error:
        raise InvalidInput(f"The description of a {name} does not fit its fields: {error}.") from error


def _decoder(name: object) -> Callable[[dict[str, Any]], Any]:
    if not isinstance(name, str):
        raise InvalidInput(
            f"The type in a description is {'missing' if name is None else shown(name)}: it must name a class."
        )
    if name not in _DECODERS:
        for load in LOADERS:  # parts are imported on first use
            load()
    if name not in _DECODERS:
        raise InvalidInput(
            f"Unknown type {shown(name)} in a description.{nearest(name, _DECODERS)} Usually it was written by a newer "
            "version, or is a class of your own: open the study in Python, after importing the class."
        )
    return _DECODERS[name]


def dumps(value: Any) -> str:
    """Returns one line of JSON. Equal descriptions give equal text."""
    try:
        plain = to_plain(value)
    except RecursionError:
        raise InvalidInput("This is nested too deeply to be described: make it flatter.") from None
    _check_depth(plain)
    return json.dumps(plain, allow_nan=False)


def _check_depth(plain: Any) -> None:
    """Raises an error if the description is nested too deeply to be read back."""
    level = [plain]
    for _ in range(DEEPEST):
        level = [item for part in level for item in _inside(part) if isinstance(item, dict | list)]
        if not level:
            return
    raise InvalidInput(f"This is nested more than {DEEPEST} levels deep, too deep to be described: make it flatter.")


def _inside(part: Any) -> Iterable[Any]:
    return part.values() if isinstance(part, dict) else part


def loads(text: str) -> Any:
    """Returns the object of `dumps(object)`."""
    return from_plain(plain_loads(text))


def plain_loads(text: str) -> Any:
    """Returns the values of JSON text, without repeated names in an object, NaN or endless nesting."""
    try:
        return json.loads(text) if type(text) is not str or text[:1] == "\ufeff" else _reader.decode(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"This is not the JSON of a description: {error}.") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError("an object has a name twice")
    return result


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


# `json.loads` makes one for each text. It explains what is no text, and a mark of the byte order.
_reader = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_constant)
__all__ = [
    "DEEPEST", "LATER", "described", "described_by", "description", "dumps", "entries", "from_plain", "is_described",
    "loads", "plain_loads", "to_plain",
]  # fmt: skip
