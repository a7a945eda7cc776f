"""Hints at the argument that was meant, in errors about a misspelt keyword argument."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from types import FunctionType, ModuleType
from typing import Any, TypeGuard, TypeVar, cast

from .errors import PACKAGE

T = TypeVar("T")


def nearest(name: str, known: Iterable[str]) -> str:
    """Returns a question with the known name most like a misspelt one, after a space, or an empty text."""
    close = get_close_matches(name, list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def hinting(found: T) -> T:
    """Returns a public object that hints at the argument that was meant, as Python does from version 3.13 on.

    Of a class the `__init__` is replaced, and of a module what it has of its public names. A function is replaced where
    it is defined, too, so that it can be pickled. A function that wraps another one is left alone. As a decorator this
    serves functions that other modules import early.
    """
    if sys.version_info >= (3, 13):
        return found
    if isinstance(found, ModuleType):
        for name in set(getattr(found, "__all__", ())) & set(vars(found)):
            setattr(found, name, hinting(vars(found)[name]))
    elif isinstance(found, type):
        made = vars(found).get("__init__")
        if found.__module__.startswith(PACKAGE) and _is_plain(made):
            found.__init__ = _hinting(made)  # type: ignore[misc]
    elif _is_plain(found) and found.__module__.startswith(PACKAGE):
        return cast(T, _replaced(found, vars(sys.modules[found.__module__])))
    return found


def _replaced(found: FunctionType, home: dict[str, Any]) -> Any:
    if home.get(found.__name__, found) is found:
        home[found.__name__] = _hinting(found)
    return home[found.__name__]


def _is_plain(found: Any) -> TypeGuard[FunctionType]:
    return isinstance(found, FunctionType) and not hasattr(found, "__wrapped__")


def _hinting(function: Callable[..., Any]) -> Callable[..., Any]:
    from functools import wraps
    from inspect import signature

    @wraps(function)
    def called(*arguments: Any, **keywords: Any) -> Any:
        try:
            return function(*arguments, **keywords)
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is None:  # It is of this very call.
                known = signature(function).parameters
                strange = next((name for name in keywords if name not in known), "")
                hint = nearest(strange, known)
                if hint and str(error).endswith(f"unexpected keyword argument '{strange}'"):
                    error.args = (f"{error}.{hint}",)
            raise

    return called
