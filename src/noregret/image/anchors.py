"""Objects that both sides have: an image refers to them by where they are, and does not repeat them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, final

import numpy as np

from .classes import Unimageable, is_named_tuple, name_of, slots_of

_ATOMS = (type(None), bool, int, float, str, bytes, np.generic, Enum)


@final
class Anchors:
    """What is reachable from an object by its description.

    Attributes:
        at: each object, by the way to it.
        way: each way, by the object's `id`.

    Args:
        root: of one of the classes that an image may name, as everything in it.

    Raises:
        Unimageable: something in it is of another class, whose code nobody knows.
    """

    def __init__(self, root: object) -> None:
        self.at: dict[str, Any] = {}
        self.way: dict[int, str] = {}
        left = [("", root)]
        while left:
            way, value = left.pop()
            if isinstance(value, _ATOMS) or id(value) in self.way:
                continue
            if type(value) not in (tuple, list, dict):  # which are of no consequence by themselves
                self.at[way], self.way[id(value)] = value, way
            if type(value) is not np.ndarray:
                left += [(f"{way}.{name}", part) for name, part in _parts(value)]


def _parts(value: Any) -> list[tuple[str, Any]]:
    """What an object consists of, with names; of a dataclass its fields, not what it has worked out since."""
    if isinstance(value, Mapping):
        return [(f"[{key!r}]", part) for key, part in value.items()]
    if type(value) in (tuple, list, frozenset, set):
        return [(f"[{i}]", part) for i, part in enumerate(value)]
    cls: Any = type(value)
    if cls is np.ndarray:
        return []
    name_of(cls)
    if is_named_tuple(cls):
        return list(zip(cls._fields, value, strict=True))
    if is_dataclass(cls):
        return [(field.name, getattr(value, field.name)) for field in fields(cls) if hasattr(value, field.name)]
    found = {name: getattr(value, name) for name in slots_of(cls) if hasattr(value, name)}
    found |= getattr(value, "__dict__", {})
    if not found and cls.__basicsize__ != object.__basicsize__:
        raise Unimageable(f"{cls.__module__}.{cls.__qualname__}")
    return sorted(found.items())
