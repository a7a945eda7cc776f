"""Public names of a package, read from its stub and loaded on first use, and classes that are loaded by name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec, resolve_name
from typing import Any

# Functions that import all described classes, listed by the root of the package. A stored description names classes of
# rooms above `serialize`. They are imported when an unknown name is met.
LOADERS: list[Callable[[], object]] = []


def public(
    package: str, path: list[str], *, rooms: tuple[str, ...] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Returns `__getattr__`, `__dir__` and `__all__` of a package whose `__init__.pyi` lists its public names.

    The stub has a name a line: `from .module import Name as Name`. A comment on the line leaves the name out of
    `__all__`.

    Args:
        package: its `__name__`.
        path: its `__path__`.
        rooms: its subpackages whose public names an error about an unknown name may suggest.
    """
    homes: dict[str, str] = {}
    names: list[str] = []
    with open(f"{path[0]}/__init__.pyi", encoding="utf-8") as stub:  # noqa: PTH123 - `pathlib` is slow to import
        for line in stub:
            if line.startswith("from "):
                _, module, _, name, *_ = line.split()
                homes[name] = resolve_name(module, package)
                names += [] if "#" in line else [name]
    names.sort()

    def load(name: str) -> Any:
        home = homes.get(name)
        if home is None and not name.startswith("_") and find_spec(f"{package}.{name}"):
            home = package  # `from package import module` asks for the attribute before it imports the module.
        if home is None:
            # Without `name` of the error, a traceback adds no second hint.
            hint = _hint(package, name, names, rooms)
            raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}", obj=sys.modules[package])
        found = _loaded(home, name)
        setattr(sys.modules[package], name, found)
        return found

    return load, lambda: names, names


def attributes_of_others(**here: str) -> Callable[[Any, str], Any]:
    """Returns `__getattr__` of a class, whose error says what an attribute of other libraries is called here.

    Misspelt attributes get their hint from Python, in the traceback.

    Args:
        here: a sentence by the attribute of others.
    """

    def __getattr__(self: Any, name: str) -> Any:  # noqa: N807
        if name not in here:
            return object.__getattribute__(self, name)  # This raises the error, or again that of a property.
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}. {here[name]}", obj=self)

    return __getattr__


def _hint(package: str, name: str, names: list[str], rooms: tuple[str, ...]) -> str:
    """Returns a question with the public name that is most like an unknown one, or an empty text."""
    if name.startswith("_"):
        return ""
    from .checks import closest

    listed = {room: import_module(f"{package}.{room}").__all__ for room in rooms}
    places = {each: f"{package}.{room}.{each}" for room in reversed(rooms) for each in listed[room]}
    places |= {each: each for each in names}
    close = closest(name, places)
    return "" if close is None else f". Did you mean {places[close]!r}?"


def _loaded(module: str, name: str) -> Any:
    """Returns the attribute of a module, or the submodule of that name."""
    from .process_setting import no_collection  # It imports this module.

    with no_collection:  # A collection in the middle of an import finds nothing.
        home = import_module(module)
    if name not in vars(home) and hasattr(home, "__path__"):
        return import_module(f"{module}.{name}")
    return getattr(home, name)
