"""Checks of what comes from outside, with one style of error for all of them."""

from __future__ import annotations

import math
import operator
import unicodedata
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import InvalidInput

LARGEST_REWARD = 1e100  # squares of rewards must not overflow, nor must sums of such squares
LARGEST_WHOLE = 2**53  # beyond it floats no longer tell whole numbers apart
LARGEST_SEED = 2**128  # as many as a generator tells apart
SHOWN = 80  # characters of an input that an error echoes
LARGEST_VARIANCE = LARGEST_REWARD**2
LEAST_DELTA = 1e-200  # 1 / delta, and what it is multiplied with, must not overflow
LONGEST_NAME = 200  # characters of a study's name: in an address at most 2,400
NESTED = 8  # lists within lists beyond which nothing is an array of points
# What is no number although numpy turns it into one, by the kind of its dtype.
NO_NUMBERS = {
    "b": "True or False",
    "c": "complex numbers",
    "S": "bytes",
    "U": "text",
    "T": "text",
    "M": "dates",
    "m": "time differences",
    "V": "records",
}

UNWRITTEN = ("Cc", "Zl", "Zp")  # categories of Unicode: control characters, ends of lines and of paragraphs

Array = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]


def shown(value: object, *, length: int = SHOWN) -> str:
    """`value` as an error echoes it: its `repr` on one line, cut where it is long."""
    try:
        text = " ".join(repr(value).split()) if isinstance(value, np.ndarray) else repr(value)
    except Exception:  # it is anything at all, and what is wrong with it must still be said
        return f"<{type(value).__name__}>"
    return text if len(text) <= length else f"{text[: length - 3]}..."


def counted(count: int, what: str) -> str:
    """The word alone: trial of one, trials of others, studies of several."""
    if count == 1:
        return what
    return f"{what[:-1]}ies" if what.endswith("y") and what[-2:-1] not in set("aeiou") else f"{what}s"


def many(count: int, what: str) -> str:
    """1 trial, 2 trials, 0 studies."""
    return f"{count} {counted(count, what)}"


def storable(text: str) -> bool:
    """Whether a text can be written as UTF-8: one with lone surrogates cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def study_name(called: str, value: str) -> str:
    """The name of a study that may be there: some text that every storage can keep."""
    if not isinstance(value, str) or not value.strip() or "\0" in value or not storable(value):
        raise InvalidInput(
            f"`{called}` must be some text that can be written as UTF-8, not {shown(value)}. It is the name of a study."
        )
    return value


def new_study_name(called: str, value: str) -> str:
    """The name of a study to be made: it fits in a list, a line of a log and an address."""
    study_name(called, value)
    if len(value) > LONGEST_NAME:
        raise InvalidInput(
            f"`{called}` has {len(value)} characters, and the name of a study has at most {LONGEST_NAME}. Keep what is "
            "longer in `about`."
        )
    if not value.isprintable() and any(unicodedata.category(each) in UNWRITTEN for each in value):
        raise InvalidInput(
            f"`{called}` is {shown(value)}: the name of a study is one line, without control characters. It often "
            "comes from a file that was read with the end of its line."
        )
    return value


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


def outcome(name: str, value: object, *, low: float, high: float, why: str = "") -> float:
    """A number that was observed: as `number`, and True and False count as 1 and 0 (clicks, successes)."""
    if type(value) is float:  # the path of every round
        return number(name, value, low=low, high=high, why=why)
    value = _scalar(value)
    return number(name, float(value) if isinstance(value, bool | np.bool_) else value, low=low, high=high, why=why)


def _scalar(value: Any) -> Any:
    """The one entry of an array or tensor without dimensions; anything else as it is."""
    if isinstance(value, np.ma.MaskedArray | np.generic):
        return value
    if getattr(value, "shape", None) == () and callable(getattr(value, "item", None)):
        return value.item()
    return value


def _is_real(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.timedelta64)  # which numpy counts as numbers


def _as_float(name: str, value: object, why: str) -> float:
    entry = _scalar(value)
    if not _is_real(entry):
        raise InvalidInput(f"`{name}` must be a number, not {shown(value)} ({type(value).__name__}). {why}".rstrip())
    try:
        with np.errstate(over="ignore"):  # of numbers longer than a float, which become infinite
            return float(entry)
    except (OverflowError, ValueError):
        raise InvalidInput(f"`{name}` is too large for a float. {why}".rstrip()) from None


def integer(name: str, value: object, *, low: int, high: int | None = LARGEST_WHOLE, why: str = "") -> int:
    """`value` as an int of at least `low` and, unless it is None, at most `high`, or an error that names it."""
    result = value if type(value) is int else _as_int(name, value, why)
    if result < low:
        raise InvalidInput(f"`{name}` is {shown(result)}: it must be at least {low}. {why}".rstrip())
    if high is not None and result > high:
        raise InvalidInput(f"`{name}` is {shown(result)}: it must be at most {shown(high)}. {why}".rstrip())
    return result


def _as_int(name: str, value: object, why: str) -> int:
    try:
        if not isinstance(_scalar(value), bool | np.bool_):
            return operator.index(value)  # type: ignore[arg-type]  # arrays of one number have it, others raise
    except TypeError:
        pass
    raise InvalidInput(f"`{name}` must be a whole number, not {shown(value)} ({type(value).__name__}). {why}".rstrip())


def flag(name: str, value: object, *, why: str = "") -> bool:
    """`value` if it is True or False, or an error that names it."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidInput(
            f"`{name}` must be True or False, not {shown(value)} ({type(value).__name__}). {why}".rstrip()
        )
    return bool(value)


def finite_array(name: str, value: npt.ArrayLike, *, hint: str = "") -> Array:
    """`value` as a fresh float64 array without NaN or infinity.

    Numbers of any kind will do: arrays, nested lists, tensors, and tables or their columns (whatever has `to_numpy`).
    What numpy would turn into numbers and is none is refused: text, True and False, dates, complex numbers, and masked
    values.
    """
    plain = type(value) is np.ndarray and value.dtype == np.float64  # the path of every round
    result = np.array(value, dtype=np.float64) if plain else _numbers(name, value, hint)
    if not np.isfinite(result).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(result))[0])
        at = f" at index {where if len(where) > 1 else where[0]}" if where else ""
        raise InvalidInput(
            f"`{name}` has a value that is not finite{at}. "
            f"{hint or 'Usually a missing reading or a failed division: drop or repair it first.'}"
        )
    return result


def _numbers(name: str, value: Any, hint: str) -> Array:
    """Anything as a float64 array, or an error."""
    _refuse(name, value, hint, depth=0)
    try:
        if not isinstance(value, list | tuple):
            value = _unwrapped(value)
        with np.errstate(over="ignore"):
            return np.array(value, dtype=np.float64)
    except OverflowError:
        raise InvalidInput(f"`{name}` has a number that is too large for a float. {hint}".rstrip()) from None
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidInput(f"`{name}` is not an array of numbers ({_first_line(error)}). {hint}".rstrip()) from None


def _refuse(name: str, value: Any, hint: str, *, depth: int) -> None:
    """An error if some entry is no real number."""
    if not isinstance(value, list | tuple):
        if not _is_real(value):
            _refuse_array(name, value, hint)
        return
    if depth == NESTED:
        raise InvalidInput(f"`{name}` is not an array of numbers: its lists are nested too deeply. {hint}".rstrip())
    if not set(map(type, value)) <= {float, int}:
        for entry in value:
            if type(entry) is not float and type(entry) is not int:
                _refuse(name, entry, hint, depth=depth + 1)


def _refuse_array(name: str, value: Any, hint: str) -> None:
    """The same of what is no list: of arrays, tensors and tables by the kind of their entries."""
    try:
        array = np.asarray(_unwrapped(value))
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise InvalidInput(f"`{name}` is not an array of numbers ({_first_line(error)}). {hint}".rstrip()) from None
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise InvalidInput(
            f"`{name}` has masked values: drop them or fill them first. {hint}".rstrip(),
            advice="`array.filled(...)` does so.",
        )
    kind, holds = array.dtype.kind, ""
    if kind == "O":
        wrong = [entry for entry in array.ravel().tolist() if not _is_real(entry)]
        holds = f"{shown(wrong[0])} ({type(wrong[0]).__name__}) is none" if wrong else ""
    elif kind not in "fiu" or isinstance(value, bytearray | memoryview):
        what = NO_NUMBERS.get("S" if kind in "fiu" else kind, f"entries of type {array.dtype}")
        holds = f"it holds {what} ({shown(value)})"
    if holds:
        raise InvalidInput(f"`{name}` is not an array of numbers: {holds}. {hint}".rstrip())


def _unwrapped(value: Any) -> Any:
    """A table or a column as the array in it."""
    return value.to_numpy() if callable(getattr(value, "to_numpy", None)) else value


def _first_line(error: Exception) -> str:
    text = str(error).partition("\n")[0]
    return text if len(text) <= 2 * SHOWN else f"{text[: 2 * SHOWN]}..."


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
            f"`{name}` has {many(result.shape[1], 'column')} where the domain has {many(dimension, 'dimension')}. "
            "Points are rows, one column for each dimension."
        )
    return result


def settle(description: object, **values: object) -> None:
    """Give fields of a frozen description their checked values: Python's own numbers, whatever kind was given."""
    for name, value in values.items():
        object.__setattr__(description, name, value)


def listed(name: str, value: Any, *, why: str = "") -> list[Any]:
    """The entries of a list, tuple, range or array of one dimension, or an error; text is no list."""
    several = isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray | memoryview)
    if not several and not (isinstance(value, np.ndarray) and value.ndim == 1):
        raise InvalidInput(f"`{name}` is {shown(value)}: it must be a list. {why}".rstrip())
    return list(value)


def one_of(name: str, value: Any, options: Iterable[str], *, why: str = "", advice: str = "") -> str:
    """`value` if it is one of the options, or an error that lists them."""
    known = list(options)
    if not isinstance(value, str) or value not in known:
        several = "one of " if len(known) > 1 else ""
        raise InvalidInput(
            f"`{name}` is {shown(value)}: it must be {several}{', '.join(map(repr, known))}. {why}".rstrip(),
            advice=advice,
        )
    return str(value)  # of numpy's strings a plain one


def frozen(array: Array) -> Array:
    """The same array, made read-only: descriptions do not change after they are made."""
    array.flags.writeable = False
    return array
