"""Objects as JSON and arrays: what is kept of a state that was computed. No code is stored or run.

Values are numbers, texts, None, lists, tuples, dicts, bytes, arrays of numbers, and objects of classes that the caller
names. An array or object that stands in several places is one again after reading.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np

from .checks import Array


@final
class Writer:
    """A collector of arrays, which values name by their place.

    Args:
        classes: that may occur, by the names that stand for them, each with the attributes that are left out.

    Attributes:
        arrays: all arrays so far.
    """

    def __init__(self, classes: Mapping[str, tuple[type, tuple[str, ...]]]) -> None:
        self._names = {kind: (name, left) for name, (kind, left) in classes.items()}
        self.arrays: list[Array] = []
        self._known: dict[int, Any] = {}
        self._held: list[Any] = []  # so that no other object takes the identity of a known one

    def plain(self, value: Any) -> Any:
        """Returns a value as JSON."""
        if value is None or type(value) in (bool, int, float, str):
            return value
        if type(value) is list:
            return {"list": [self.plain(each) for each in value]}
        if type(value) is dict:
            return {"dict": [[self.plain(key), self.plain(each)] for key, each in value.items()]}
        if type(value) is bytes:
            return {"bytes": value.hex()}
        if id(value) not in self._known:
            self._known[id(value)] = len(self._held)
            self._held.append(value)
            return {"new": self._known[id(value)], **self._whole(value)}
        return {"again": self._known[id(value)]}

    def _whole(self, value: Any) -> dict[str, Any]:
        if type(value) is tuple:
            return {"tuple": [self.plain(each) for each in value]}
        if type(value) is np.ndarray:
            self.arrays.append(value)
            return {"array": len(self.arrays) - 1}
        if type(value) not in self._names:
            raise TypeError(f"A {type(value).__name__} cannot be written.")
        name, left = self._names[type(value)]
        if isinstance(value, tuple):
            return {"class": name, "fields": [self.plain(each) for each in value]}
        return {"class": name, "kept": {key: self.plain(x) for key, x in vars(value).items() if key not in left}}


@final
class Reader:
    """The values that a `Writer` has written.

    Args:
        classes: as the writer had them.
        arrays: as the writer collected them, which belong to the values from now on.
    """

    def __init__(self, classes: Mapping[str, tuple[type, tuple[str, ...]]], arrays: list[Array]) -> None:
        self._classes, self._arrays = classes, arrays
        self._known: dict[int, Any] = {}

    def value(self, plain: Any) -> Any:
        """Returns the value that stands as JSON. It raises `KeyError` and the like if nothing can have written it."""
        if not isinstance(plain, dict):
            return plain
        if "list" in plain:
            return [self.value(each) for each in plain["list"]]
        if "dict" in plain:
            return {self.value(key): self.value(each) for key, each in plain["dict"]}
        if "bytes" in plain:
            return bytes.fromhex(plain["bytes"])
        if "again" in plain:
            return self._known[plain["again"]]
        found = self._known[plain["new"]] = self._whole(plain)
        return found

    def _whole(self, plain: dict[str, Any]) -> Any:
        if "tuple" in plain:
            return tuple(self.value(each) for each in plain["tuple"])
        if "array" in plain:
            return self._arrays[plain["array"]]
        kind: Any = self._classes[plain["class"]][0]
        if "fields" in plain:
            return kind(*(self.value(each) for each in plain["fields"]))
        made = object.__new__(kind)
        made.__dict__.update({name: self.value(each) for name, each in plain["kept"].items()})
        return made
