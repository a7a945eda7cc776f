"""Spaces that differ in the order of their parameters or options alone, as those that are made of sets do."""

from __future__ import annotations

from typing import Any

from .conditions import Conditional
from .parameters import Choice, Option
from .space import Space


def column_order(then: Space, now: Space) -> list[int] | None:
    """Returns for each column of one space the same column of another one, `(d,)`.

    Returns:
        None if the spaces differ in more than the order of parameters, of options, and of the values of a condition.
    """
    if {name: _unordered(each) for name, each in then.declared.items()} != {
        name: _unordered(each) for name, each in now.declared.items()
    }:
        return None
    begins = dict(zip(now.parameters, (columns.start for _, columns in now.columns()), strict=True))
    order = []
    for name, parameter in then.parameters.items():
        theirs = now.parameters[name]
        if isinstance(parameter, Choice) and isinstance(theirs, Choice):
            places = [_typed(option) for option in theirs.options]
            order += [begins[name] + places.index(_typed(option)) for option in parameter.options]
        else:
            order.append(begins[name])
    return order


def _unordered(declared: Any) -> Any:
    if isinstance(declared, Conditional):
        return declared.on, frozenset(map(_typed, declared.values)), _unordered(declared.parameter)
    return frozenset(map(_typed, declared.options)) if isinstance(declared, Choice) else declared


def _typed(option: Option) -> tuple[str, Option]:
    return type(option).__name__, option  # True equals 1.
