"""Public names of a package, read from its stub and loaded on first use."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import resolve_name
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

from .keywords import hinting, nearest

if TYPE_CHECKING:
    from importlib.abc import Loader, MetaPathFinder

    class _FinderAndLoader(MetaPathFinder, Loader):
        pass
else:
    _FinderAndLoader = object  # Importing `importlib.abc` would take a third of the time of importing the package.


def public(
    package: str, path: list[str], *, also: tuple[str, ...] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Returns `__getattr__`, `__dir__` and `__all__` of a package whose `__init__.pyi` lists its public names.

    Args:
        package: its `__name__`.
        path: its `__path__`.
        also: packages whose public names are found here too, without being listed.
    """
    homes: dict[str, str] = {}
    for node in ast.parse(Path(path[0], "__init__.pyi").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            module = resolve_name("." * node.level + (node.module or ""), package)
            homes |= {alias.name: module for alias in node.names}
    names = sorted(homes)

    def load(name: str) -> Any:
        found = _found(name, homes, also)
        if found is None:
            missing(package, sys.modules[package], also, name)
        found = hinting(found)
        setattr(sys.modules[package], name, found)
        return found

    return load, lambda: names, names


def missing(public_name: str, module: ModuleType, also: tuple[str, ...], name: str) -> NoReturn:
    """Raises an error that names the public name most like a misspelt one."""
    hint = _hint(name, list(module.__all__), also)
    # Without `name` of the error, a traceback adds no second hint.
    raise AttributeError(f"module {public_name!r} has no attribute {name!r}{hint}", obj=module)


def _found(name: str, homes: dict[str, str], also: tuple[str, ...]) -> Any:
    """Returns the public object of that name, or None."""
    if name.startswith("__"):
        return None
    if name in homes:
        return _loaded(homes[name], name)
    for other in also:
        module = import_module(other)
        if name == other.rpartition(".")[2]:
            return module
        if name in module.__all__:
            return getattr(module, name)
    return None


def _hint(name: str, names: list[str], also: tuple[str, ...]) -> str:
    """Returns a sentence that names the public name most like a misspelt one, or nothing."""
    if name.startswith("__"):
        return ""
    known = [*names, *(each for other in also for each in import_module(other).__all__)]
    hint = nearest(name, known)
    return f".{hint}" if hint else ""


def _loaded(module: str, name: str) -> Any:
    """Returns the attribute of a module, or the submodule of that name."""
    home = import_module(module)
    if name not in vars(home) and hasattr(home, "__path__"):
        return import_module(f"{module}.{name}")
    return getattr(home, name)


class PublicModules(_FinderAndLoader):
    """Finder of modules that are imported by a shorter name than their place has.

    Args:
        places: full name of the module by public name.
    """

    def __init__(self, places: dict[str, str]) -> None:
        self._places = places

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Returns a spec for the public names alone."""
        return ModuleSpec(fullname, self) if fullname in self._places else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Returns the module at its place, which keeps the spec that it has."""
        module: ModuleType = hinting(import_module(self._places[spec.name]))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restores the spec of the module, which was executed when its place was imported."""
        if module.__spec__ is not None:
            module.__spec__ = module.__spec__.loader_state
