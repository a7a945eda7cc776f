"""Which classes an image may name, and which of their fields: those of which states are made, and no other."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Mapping
from enum import Enum
from functools import cache, cached_property
from importlib import import_module
from types import FunctionType, MemberDescriptorType
from typing import Any

PACKAGE = __name__.split(".")[0]
# Modules and packages, below ours, whose classes compute and do nothing else: none of them opens a file or a
# connection, starts a process, or evaluates text.
HOMES = frozenset({
    "baselines", "change", "conditions", "delays", "domain", "fitting", "kernels", "likelihood", "parameters", "policy",
    "posterior", "randomness", "record", "search", "slots", "study.goal", "theory", "trial", "warping", "widths",
})  # fmt: skip
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*", re.ASCII)


class Unimageable(Exception):
    """An object of which no image can be made."""


class BadImage(Exception):
    """An image that was damaged, made up, or written by another program."""


@cache
def name_of(cls: type) -> str:
    """Of a class, as images name it: its module, below ours, and its name there."""
    module, name = cls.__module__, cls.__qualname__
    home = module.removeprefix(f"{PACKAGE}.")
    if home == module or not _is_home(home) or "<" in name or _found(module, name) is not cls:
        raise Unimageable(f"{module}.{name}")
    return f"{home}:{name}"


@cache
def class_of(name: str) -> type:
    """The class of this name.

    Raises:
        BadImage: there is none that an image may name.
    """
    home, _, inside = name.partition(":")
    if not (_NAME.fullmatch(home) and _NAME.fullmatch(inside) and _is_home(home)):
        raise BadImage(f"class {name!r}")
    module = f"{PACKAGE}.{home}"
    if module not in sys.modules:
        try:
            import_module(module)
        except ImportError as error:
            raise BadImage(f"class {name!r}") from error
    found = _found(module, inside)
    if not isinstance(found, type) or found.__module__ != module or found.__qualname__ != inside:
        raise BadImage(f"class {name!r}")
    return found


def _is_home(home: str) -> bool:
    parts = home.split(".")
    return any(".".join(parts[: i + 1]) in HOMES for i in range(len(parts)))


def _found(module: str, name: str) -> object:
    found: object = sys.modules[module]
    for part in name.split("."):
        found = vars(found).get(part) if hasattr(found, "__dict__") else None
    return found


@cache
def slots_of(cls: type) -> Mapping[str, MemberDescriptorType]:
    """The slots of a class and those that it derives from, by name."""
    found: dict[str, MemberDescriptorType] = {}
    for base in reversed(cls.__mro__):
        found |= {name: slot for name, slot in vars(base).items() if isinstance(slot, MemberDescriptorType)}
    return found


@cache
def has_dict(cls: type) -> bool:
    """Whether instances may have fields beyond their slots."""
    return cls.__dictoffset__ != 0


@cache
def is_plain(cls: type) -> bool:
    """Whether an instance is its fields and nothing else: no tuple, no dict, no exception, no enumeration."""
    ours = (f"{PACKAGE}.", "abc.", "typing.")
    return not issubclass(cls, Enum) and all(
        base is object or f"{base.__module__}.".startswith(ours) for base in cls.__mro__
    )


@cache
def is_named_tuple(cls: type) -> bool:
    """Whether an instance is a tuple with names for its places, and nothing else."""
    return issubclass(cls, tuple) and hasattr(cls, "_fields") and not has_dict(cls)


@cache
def has_field(cls: type, name: str) -> bool:
    """Whether instances may have a field of this name: one that hides no method."""
    if name in slots_of(cls):
        return True
    if not has_dict(cls) or not _NAME.fullmatch(name) or "." in name or name.startswith("__"):
        return False
    there = inspect.getattr_static(cls, name, None)
    return isinstance(there, cached_property) or not (
        isinstance(there, FunctionType | property | classmethod | staticmethod | type) or hasattr(there, "__set__")
    )


def method_of(owner: Any, name: str) -> Any:
    """A method of an object, bound to it; None where its class has none of this name."""
    function = inspect.getattr_static(type(owner), name, None)
    return function.__get__(owner) if isinstance(function, FunctionType) and _may_be_called(name) else None


def _may_be_called(name: str) -> bool:
    return name == "__call__" or not name.startswith("__")
