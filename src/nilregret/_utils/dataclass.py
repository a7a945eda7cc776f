"""Frozen dataclasses whose methods are made when a class is first used.

The standard decorator compiles six methods for each class, in a third of a millisecond. A process imports many more
classes than it uses. Here the standard decorator runs at the first use of a class, on another class with the same
fields. The class then takes over what was made. A class without a docstring gets none.
"""

from __future__ import annotations

import sys
from dataclasses import MISSING as MISSING
from dataclasses import Field, FrozenInstanceError
from dataclasses import dataclass as standard
from dataclasses import field as field
from dataclasses import fields as fields
from dataclasses import replace as replace
from functools import cache, partial
from operator import attrgetter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(**options: bool) -> Any:
        """Returns a class decorator that does what `dataclasses.dataclass` does."""
        later = options.get("frozen") and not any(options.get(each) for each in ("slots", "order"))
        return partial(_decorated, options=options) if later else standard(**options)


# What the standard decorator makes, and the option without which it does not.
MADE = {
    "__init__": "init",
    "__repr__": "repr",
    "__hash__": "eq",
    "__match_args__": "match_args",
    "__dataclass_fields__": "",
    "__dataclass_params__": "",
} | ({"__replace__": ""} if sys.version_info >= (3, 13) else {})


def _decorated(cls: Any, *, options: dict[str, bool]) -> Any:
    """Returns the class, with attributes that are made when they are first read."""
    if options.get("eq", True) and "__eq__" not in cls.__dict__:
        cls.__eq__ = _equal
    body = {name: cls.__dict__[name] for name in ("__doc__", "__eq__", *MADE) if name in cls.__dict__}
    wanted = [name for name, option in MADE.items() if body.get(name) is None and options.get(option, True)]
    defaults = {name: getattr(cls, name) for name in cls.__annotations__ if hasattr(cls, name)}
    for name, value in defaults.items():
        if isinstance(value, Field):
            delattr(cls, name) if value.default is MISSING else setattr(cls, name, value.default)
    body |= defaults
    for name in wanted:
        setattr(cls, name, _Later(cls, name, body, options))
    cls.__setattr__, cls.__delattr__ = _set, _delete
    return cls


@final
class _Later:
    """An attribute of a class that is made when it is first read."""

    __slots__ = ("_body", "_cls", "_name", "_options")

    def __init__(self, cls: Any, name: str, body: dict[str, Any], options: dict[str, bool]) -> None:
        self._cls, self._name, self._body, self._options = cls, name, body, options

    def __get__(self, instance: object, owner: type) -> Any:
        if self._cls.__dict__[self._name] is self:
            self._make()
        made = self._cls.__dict__[self._name]
        return made.__get__(instance, owner) if hasattr(made, "__get__") else made

    def _make(self) -> None:
        """Replaces every such attribute of the class. If two threads do so at once, they make the same."""
        cls: Any = self._cls
        inherited: dict[str, Field[Any]] = {}
        for base in cls.__mro__[:0:-1]:
            inherited |= getattr(base, "__dataclass_fields__", {})
        known = {"__dataclass_fields__": inherited, "__dataclass_params__": SimpleNamespace(frozen=True)}
        known["__annotations__"] = {each.name: each.type for each in inherited.values()}  # Python 3.14 reads them here.
        body = {name: getattr(cls, name) for name in ("__module__", "__qualname__", "__annotations__")} | self._body
        if hasattr(cls, "__post_init__"):
            body["__post_init__"] = None
        twin: Any = standard(**self._options)(type(cls.__name__, (type("", (), known),), body))
        for name, value in list(cls.__dict__.items()):
            if isinstance(value, _Later):
                setattr(cls, name, twin.__dict__[name])


def _equal(self: Any, other: object) -> bool:
    """Compares tuples of the fields, as Python did before 3.13: a value is equal to itself, even NaN."""
    values = _values(self.__class__)
    return bool(values(self) == values(other)) if type(other) is type(self) else NotImplemented


@cache
def _values(cls: type) -> attrgetter[tuple[object, ...]]:
    """Returns the getter of the class and of all fields that are compared."""
    return attrgetter("__class__", *(each.name for each in fields(cls) if each.compare))


def _set(self: Any, name: str, value: object) -> None:
    """Refuses to set an attribute."""
    if _is_frozen(self, name):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _delete(self: Any, name: str) -> None:
    """Refuses to delete an attribute."""
    if _is_frozen(self, name):
        raise FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _is_frozen(value: Any, name: str) -> bool:
    """Returns True for all attributes of a decorated class, and for the fields in a class derived from one."""
    return type(value).__dict__.get("__setattr__") is _set or name in {field.name for field in fields(value)}
