"""Checks of what comes from outside, with one style of error for all of them."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import InvalidInput

LARGEST_REWARD = 1e100  # squares of rewards must not overflow, nor must sums of such squares

Array = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]


def number(
    name: str,
    value: object,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    open_low: bool = False,
    open_high: bool = False,
    why: str = "",
) -> float:
    """`value` as a finite float within [low, high] (either end open on request), or an error that names it."""
    result = value if type(value) is float else _as_float(name, value, why)  # float: the path of every round
    if not math.isfinite(result):
        raise InvalidInput(f"`{name}` is {result}: it must be finite. {why}".rstrip())
    too_low = result <= low if open_low else result < low
    too_high = result >= high if open_high else result > high
    if too_low or too_high:
        left, right = "(" if open_low or low == -math.inf else "[", ")" if open_high or high == math.inf else "]"
        raise InvalidInput(f"`{name}` is {result:g}: it must lie in {left}{low:g}, {high:g}{right}. {why}".rstrip())
    return result


def _as_float(name: str, value: object, why: str) -> float:
    zero_dimensional = isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "fiu"
    if isinstance(value, bool) or not (isinstance(value, Real) or zero_dimensional):
        raise InvalidInput(f"`{name}` must be a number, not {value!r} ({type(value).__name__}). {why}".rstrip())
    try:
        return float(value)  # type: ignore[arg-type]  # what has passed the line above has __float__
    except OverflowError:
        raise InvalidInput(f"`{name}` is too large for a float. {why}".rstrip()) from None


def integer(name: str, value: object, *, low: int, why: str = "") -> int:
    """`value` as an int of at least `low`, or an error that names it."""
    result = value if type(value) is int else _as_int(name, value, why)
    if result < low:
        raise InvalidInput(f"`{name}` is {result}: it must be at least {low}. {why}".rstrip())
    return result


def _as_int(name: str, value: object, why: str) -> int:
    try:
        if not isinstance(value, bool):
            return operator.index(value)  # type: ignore[arg-type]  # arrays of one number have it, others raise
    except TypeError:
        pass
    raise InvalidInput(f"`{name}` must be a whole number, not {value!r} ({type(value).__name__}). {why}".rstrip())


def flag(name: str, value: object, *, why: str = "") -> bool:
    """`value` if it is True or False, or an error that names it."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidInput(f"`{name}` must be True or False, not {value!r} ({type(value).__name__}). {why}".rstrip())
    return bool(value)


def finite_array(name: str, value: npt.ArrayLike, *, hint: str = "") -> Array:
    """`value` as a fresh float64 array without NaN or infinity."""
    try:
        result = np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"`{name}` is not an array of numbers ({error}). {hint}".rstrip()) from None
    if not np.isfinite(result).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(result))[0])
        at = f" at index {where if len(where) > 1 else where[0]}" if where else ""
        raise InvalidInput(
            f"`{name}` has a value that is not finite{at}. "
            f"{hint or 'Usually a missing reading or a failed division: drop or repair it first.'}"
        )
    return result


def points_array(name: str, value: npt.ArrayLike, *, dimension: int | None = None) -> Array:
    """Points as `(n, d)`; `(n,)` is read as n points of one dimension.

    A single point of d > 1 dimensions, shape `(d,)`, is accepted where the dimension is known.
    """
    result = finite_array(name, value)
    if result.ndim == 1:
        result = result[None, :] if dimension is not None and dimension > 1 else result[:, None]
    if result.ndim != 2:
        raise InvalidInput(f"`{name}` has shape {result.shape}: points are rows, so the shape must be (n, d) or (n,).")
    if dimension is not None and result.shape[1] != dimension:
        raise InvalidInput(
            f"`{name}` has {result.shape[1]} columns where the domain has {dimension} dimensions. "
            "Points are rows, one column for each dimension."
        )
    return result


def one_of(name: str, value: Any, options: Iterable[str], *, why: str = "") -> str:
    """`value` if it is one of the options, or an error that lists them."""
    known = list(options)
    if not isinstance(value, str) or value not in known:
        raise InvalidInput(f"`{name}` is {value!r}: it must be one of {', '.join(map(repr, known))}. {why}".rstrip())
    return value


def frozen(array: Array) -> Array:
    """The same array, made read-only: descriptions do not change after they are made."""
    array.flags.writeable = False
    return array
