"""Parameters of a space, from tables of a file or a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from .._utils.checks import shown
from .._utils.errors import InvalidInput
from ..domains.conditions import Conditional, when
from ..domains.parameters import Choice, Float, Int, Parameter
from .schema import convert


class Table(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A table that refuses unknown names."""


_Option = str | int | float | bool


_When = dict[str, _Option | list[_Option]] | None  # The name of another parameter, and its value or values.


class _Float(Table, tag="float", frozen=True):
    low: float
    high: float
    log: bool = False
    when: _When = None


class _Int(Table, tag="int", frozen=True):
    low: int
    high: int
    log: bool = False
    step: int = 1
    when: _When = None


class _Choice(Table, tag="choice", frozen=True):
    options: list[_Option]
    when: _When = None


def parameter(table: Mapping[str, Any]) -> Parameter | Conditional:
    """Returns the parameter that a table describes."""
    kind = table.get("type")
    if kind not in ("float", "int", "choice"):
        found = "missing" if kind is None else shown(kind)
        raise InvalidInput(f"`type` is {found}: it must be 'float', 'int' or 'choice'.")
    described: _Float | _Int | _Choice = convert(table, _Float | _Int | _Choice, "")
    result: Parameter | Conditional
    if isinstance(described, _Choice):
        result = Choice(*described.options)
    elif isinstance(described, _Float):
        result = Float(described.low, described.high, log=described.log)
    else:
        result = Int(described.low, described.high, log=described.log, step=described.step)
    for on, values in (described.when or {}).items():
        result = when(on, values, result)
    return result
