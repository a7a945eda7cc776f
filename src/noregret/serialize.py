"""Descriptions (domains, kernels, parts, policies) to and from plain JSON values; never pickle.

A described object becomes `{"type": class name, field: value, ...}`. Floats keep every bit: JSON numbers are written
with `repr`, which round-trips; infinity, which JSON does not have, becomes `{"type": "infinity", "sign": 1}`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from typing import Any, TypeVar

import numpy as np

from .errors import InvalidInput

T = TypeVar("T")
_ENCODERS: dict[type, Callable[[Any], dict[str, Any]]] = {}
_DECODERS: dict[str, Callable[[dict[str, Any]], Any]] = {}


def described(cls: type[T]) -> type[T]:
    """Class decorator: a frozen dataclass whose fields are its description."""
    return described_by(
        encode=lambda value: {f.name: to_plain(getattr(value, f.name)) for f in fields(value) if f.init},
        decode=lambda data: cls(**data),
    )(cls)


def described_by(
    *, encode: Callable[[Any], dict[str, Any]], decode: Callable[[dict[str, Any]], Any]
) -> Callable[[type[T]], type[T]]:
    """Class decorator for classes whose constructor does not take their fields by name."""

    def register(cls: type[T]) -> type[T]:
        _ENCODERS[cls] = encode
        _DECODERS[cls.__name__] = decode
        return cls

    return register


def to_plain(value: Any) -> Any:
    """Nested dicts, lists, strings, numbers, booleans and None."""
    if type(value) in _ENCODERS:
        return {"type": type(value).__name__, **_ENCODERS[type(value)](value)}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, float) and math.isinf(value):
        return {"type": "infinity", "sign": int(math.copysign(1, value))}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise InvalidInput(
        f"{value!r} ({type(value).__name__}) cannot be written as JSON. "
        "A class of your own must be registered: decorate it with `noregret.serialize.described`."
    )


def from_plain(data: Any) -> Any:
    """The object that `to_plain` described."""
    if isinstance(data, list):
        return [from_plain(item) for item in data]
    if not isinstance(data, dict):
        return data
    values = {key: from_plain(value) for key, value in data.items() if key != "type"}
    name = data.get("type")
    if name == "infinity" and values.keys() == {"sign"}:
        return math.copysign(math.inf, values["sign"])
    if name not in _DECODERS:
        for module in ("algorithms", "baselines"):  # parts are loaded when they are first used
            import_module(f"{__package__}.{module}")
    if name not in _DECODERS:
        raise InvalidInput(
            f"Unknown type {name!r} in a description; known are {', '.join(sorted(_DECODERS))}. "
            "Usually it was written by a newer version, or a class of your own has not been imported yet."
        )
    try:
        return _DECODERS[name](values)
    except (TypeError, KeyError) as error:
        raise InvalidInput(f"The description of a {name} does not fit its fields: {error}.") from error


def dumps(value: Any) -> str:
    """One line of JSON; equal descriptions give equal text."""
    return json.dumps(to_plain(value), allow_nan=False)


def loads(text: str) -> Any:
    """The object behind `dumps(object)`."""
    try:
        data = json.loads(text)
    except (TypeError, json.JSONDecodeError) as error:
        raise InvalidInput(f"This is not the JSON of a description: {error}.") from error
    return from_plain(data)
