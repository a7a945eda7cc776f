"""Spaces that change: other ranges, steps, scales and options, and new parameters.

A point tried in an earlier space keeps its named values. In the present space it may lie outside: a number then has a
column below 0 or above 1. An option that is gone lies on the diagonal of the columns of its choice, away from all
options that are left:

| symbol | meaning |
|---|---|
| k | options that are left. Option i has the column i, with the value sqrt(1/2) |
| c (1, ..., 1) | place of a gone option, at distance 1 from every option if k c^2 - sqrt(2) c - 1/2 = 0 |

The first option that is gone takes the negative root. Each later one is 1 farther out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._utils.checks import Array, frozen, nearest, shown
from .._utils.numerals import exact
from ..errors import InvalidInput
from .conditions import Conditional, Conditions, unwrapped
from .coordinates import SAME_POINT
from .options import option_key
from .parameters import Choice, Float, Int, Parameter
from .space import Space

Gone = Mapping[str, Sequence[Any]]  # The options that each choice has lost, in order.

ELSEWHERE = "A new study of another space learns from this one by `nr.auto(space, like=study)`."


def changed_space(space: Space, parameters: Mapping[str, Any]) -> Space:
    """Returns the space with some parameters in place of those of the same names, and new ones at its end.

    A parameter keeps its conditions (`when`), and the space its limits.

    Raises:
        InvalidInput: a parameter cannot take the place of the old one, or the limits do not fit the new space.
    """
    if not parameters:
        raise InvalidInput(
            "Nothing was given to change.", advice="Such as `study.widen(rate=nr.Float(1e-6, 1, log=True))`."
        )
    declared = dict(space.declared)
    for name, given in parameters.items():
        before = declared.get(name)
        if given is None:
            raise InvalidInput(
                f"Parameter `{name}` cannot be taken out of a study: its trials differ in it.", advice=ELSEWHERE
            )
        if isinstance(before, Conditional) and isinstance(given, Float | Int | Choice):
            given = _within(before, given)
        _check_kind(name, before, given, space)
        declared[name] = given
    new = Space(**declared)
    return new.where(*space.limits.given) if space.limits is not None else new


def _check_kind(name: str, before: object, after: object, space: Space) -> None:
    """Refuses a parameter whose conditions, or whose kind, differ from those of the one that it replaces."""
    if before is None:
        if not isinstance(after, Float | Int | Choice | Conditional):
            hint = nearest(name, space.parameters)
            raise InvalidInput(f"Parameter `{name}` is {shown(after)}: it must be a Float, Int or Choice.{hint}")
        return
    (conditions, old), (others, new) = unwrapped(before), unwrapped(after)
    if conditions != others:
        raise InvalidInput(
            f"Parameter `{name}` is {shown(before)}, and its conditions stay as they are: give the new range alone."
        )
    if not isinstance(new, Float | Int | Choice):
        raise InvalidInput(f"Parameter `{name}` is {shown(new)}: it must be a Float, Int or Choice.")
    if old.unknown and not new.unknown:
        raise InvalidInput(
            f"Parameter `{name}` is {shown(old)} and cannot lose `unknown`: earlier decisions may have had no value."
        )
    if isinstance(old, Choice) != isinstance(new, Choice):
        raise InvalidInput(
            f"Parameter `{name}` is {shown(old)} and cannot become {shown(new)}: options have no place in a range.",
            advice=ELSEWHERE,
        )


def _within(declared: Conditional, parameter: Parameter) -> Conditional:
    """Returns the parameter under the conditions of another one."""
    inner = declared.parameter
    return replace(declared, parameter=_within(inner, parameter) if isinstance(inner, Conditional) else parameter)


def placed(space: Space, values: Mapping[str, Any], gone: Gone, known: Mapping[str, Array]) -> Array:
    """Returns the point `(d,)` of a space for values of another time, which may lie outside of it.

    Args:
        space: of now.
        values: the named values. Parameters without one are unknown, or at the middle, as inactive ones are.
        gone: the options that choices of this space have lost.
        known: columns of parameters that are as they were.

    Raises:
        InvalidInput: a value has no place in the space.
    """
    conditions = Conditions(space.declared)
    point, active = conditions.middle.copy(), dict[str, Any]()
    for (name, parameter), (_, columns) in zip(space.parameters.items(), space.columns(), strict=True):
        if (name in values or parameter.unknown) and conditions.is_active(name, active):
            active[name] = values.get(name)
            point[columns] = known[name] if name in known else columns_of(name, parameter, active[name], gone)
    return frozen(point)


def gone_options(space: Space, earlier: Iterable[Space]) -> Gone:
    """Returns the options of earlier spaces that choices of a space do not have, in the order of the spaces."""
    gone: dict[str, list[Any]] = {}
    for each in earlier:
        for name, before in each.parameters.items():
            now, lost = space.parameters.get(name), gone.setdefault(name, [])
            if isinstance(before, Choice) and isinstance(now, Choice):
                left = {option_key(option) for option in (*now.options, *lost)}
                lost += [option for option in before.options if option_key(option) not in left]
    return gone


def known_columns(space: Space, before: Space, point: Array) -> dict[str, Array]:
    """Returns the columns of a point of an earlier space in parameters that are the same in both, by name."""
    return {
        name: point[columns]
        for (name, parameter), (_, columns) in zip(before.parameters.items(), before.columns(), strict=True)
        if space.parameters.get(name) == parameter
    }


def columns_of(name: str, parameter: Parameter, value: Any, gone: Gone) -> list[float]:
    """Returns the columns of a value that may be outside of the range, between two steps, or no option any more."""
    try:
        return parameter.encode(value)
    except InvalidInput:
        pass
    if isinstance(parameter, Choice):
        place = [option_key(option) for option in gone.get(name, ())].index(option_key(value))
        return [_diagonal(parameter.columns, place)] * parameter.columns
    if parameter.low == parameter.high or (parameter.log and value <= 0):
        why = "is one value" if parameter.low == parameter.high else "has no logarithm for it"
        raise InvalidInput(
            f"Parameter `{name}` was {exact(value)} in a trial, and {parameter!r} {why}: take a range with a scale on "
            "which earlier trials have a place.",
            advice=ELSEWHERE,
        )
    return [parameter.position(float(value)), 0.0][: parameter.columns]


def _diagonal(k: int, place: int) -> float:
    """Returns c of the gone option at a place in their order."""
    return (math.sqrt(2.0) - math.sqrt(2.0 + 2.0 * k)) / (2.0 * k) - place / math.sqrt(k)


def within(space: Space, points: Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Returns which points `(n, d)` are points of the space, `(n,)`: in all ranges, on steps, and at options."""
    return np.asarray((np.abs(space.snap(points) - points) <= SAME_POINT).all(axis=1))


def column_order(then: Space, now: Space) -> list[int] | None:
    """Returns for each column of one space the same column of another one, `(d,)`.

    Returns:
        None if the spaces differ in more than the order of parameters, of options, of the values of a condition, and of
        limits.
    """
    limits = [{*space.limits.given} if space.limits is not None else set() for space in (then, now)]
    if limits[0] != limits[1]:
        return None
    if {name: _unordered(each) for name, each in then.declared.items()} != {
        name: _unordered(each) for name, each in now.declared.items()
    }:
        return None
    begins = dict(zip(now.parameters, (columns.start for _, columns in now.columns()), strict=True))
    order = []
    for name, parameter in then.parameters.items():
        theirs = now.parameters[name]
        if isinstance(parameter, Choice) and isinstance(theirs, Choice):
            order += [begins[name] + (theirs.find(option) or 0) for option in parameter.options]
        else:
            order += range(begins[name], begins[name] + theirs.columns)
    return order


def _unordered(declared: Any) -> Any:
    if isinstance(declared, Conditional):
        return declared.on, frozenset(map(option_key, declared.values)), _unordered(declared.parameter)
    if isinstance(declared, Choice):
        return declared.unknown, frozenset(map(option_key, declared.options))
    return declared
