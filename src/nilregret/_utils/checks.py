"""Checks of user input, with one style of error for all."""

from __future__ import annotations

import ipaddress
import math
import operator
import unicodedata
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import lru_cache
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InvalidInput
from .numerals import exact

LARGEST_REWARD = 1e100  # largest reward, so that sums of squares do not overflow
LARGEST_WHOLE = 2**53  # largest whole number that floats represent exactly, with all below it
LARGEST_SEED = 2**128  # number of seeds that a generator distinguishes
SHOWN = 80  # characters of an input that an error shows
LARGEST_VARIANCE = LARGEST_REWARD**2
LEAST_DELTA = 1e-200  # smallest delta, so that multiples of 1 / delta do not overflow
LONGEST_NAME = 200  # characters of a study's name, which take at most 2,400 in an address
NESTED = 8  # depth of nested lists beyond which a value is no array of points

# Values that numpy converts although they are no numbers, by the kind of their dtype.
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

# Categories of Unicode: control characters, unseen ones and those that turn text around, ends of lines and paragraphs.
UNWRITTEN = ("Cc", "Cf", "Zl", "Zp")
JOINERS = "\u200c\u200d"  # not seen either, but words of Persian and many emoji need them

Array = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]


def nearest(name: str, known: Iterable[str]) -> str:
    """Returns a question with the known name most like a misspelt one, after a space, or an empty text."""
    close = closest(name, known)
    return f" Did you mean {close!r}?" if close else ""


def closest(name: str, known: Iterable[str]) -> str | None:
    """Returns the known name most like a misspelt one, or None. One of the same letters comes first."""
    close = get_close_matches(name, list(known))
    return max(close, key=lambda each: sorted(each) == sorted(name), default=None)


def shown(value: object, *, length: int = SHOWN) -> str:
    """Returns the `repr` of a value as an error shows it, on one line and cut if it is long."""
    try:
        text = " ".join(repr(value).split()) if isinstance(value, np.ndarray) else repr(value)
    except Exception:  # The `repr` of any object may fail, and the error must still be reported.
        return f"<{type(value).__name__}>"
    return text if len(text) <= length else f"{text[: length - 3]}..."


def typed(value: object) -> str:
    """Returns a value and the name of its type, as an error shows them."""
    return f"{shown(value)} ({type(value).__name__})"


def counted(count: int, what: str) -> str:
    """Returns the noun in the singular or plural: trial for 1, trials for 2, studies for 0."""
    if count == 1:
        return what
    return f"{what[:-1]}ies" if what.endswith("y") and what[-2:-1] not in set("aeiou") else f"{what}s"


def many(count: int, what: str) -> str:
    """Returns count and noun: 1 trial, 2 trials, 0 studies, 12,000 arms."""
    return f"{count:,} {counted(count, what)}"


def storable(text: str, encoding: str = "utf-8") -> bool:
    """Returns True if a text can be written in an encoding, which lone surrogates prevent."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def study_name(called: str, value: str) -> str:
    """Returns the name of an existing study, or raises an error if no storage can hold it."""
    if not isinstance(value, str) or not value.strip() or "\0" in value or not storable(value):
        raise InvalidInput(
            f"`{called}` must be some text that can be written as UTF-8, not {shown(value)}. It is the name of a study."
        )
    return value


def new_study_name(called: str, value: str) -> str:
    """Returns the name of a new study, or raises an error if it does not fit in a list, a log and an address."""
    study_name(called, value)
    if len(value) > LONGEST_NAME:
        raise InvalidInput(
            f"`{called}` has {len(value)} characters, and the name of a study has at most {LONGEST_NAME}. Keep what is "
            "longer in `about`."
        )
    unusual = "" if value.isprintable() else value
    if any(unicodedata.category(each) in UNWRITTEN and each not in JOINERS for each in unusual):
        raise InvalidInput(
            f"`{called}` is {shown(value)}: the name of a study is one line, without control characters and "
            "without those that are not seen. It often comes from a file that was read with the end of its line."
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
    """Returns `value` as a finite float within [low, high], with open ends on request, or raises an error."""
    result = value if type(value) is float else real(value)  # the fast path of every round
    if result is None:
        raise InvalidInput(f"`{name}` must be a number, not {typed(value)}. {why}".rstrip())
    if not math.isfinite(result):
        raise InvalidInput(f"`{name}` is {result}: it must be finite. {why}".rstrip())
    too_low = result <= low if open_low else result < low
    too_high = result >= high if open_high else result > high
    if too_low or too_high:
        left, right = "(" if open_low or low == -math.inf else "[", ")" if open_high or high == math.inf else "]"
        inside = f"{left}{exact(low)}, {exact(high)}{right}"
        raise InvalidInput(f"`{name}` is {exact(result)}: it must lie in {inside}. {why}".rstrip())
    return result


def span_of(name: str, value: Any, *, low: float = -LARGEST_REWARD, why: str = "") -> tuple[float, float]:
    """Returns the least and the largest of rewards, both at least `low`, or raises an error."""
    try:
        first, last = value
    except (TypeError, ValueError):
        raise InvalidInput(f"`{name}` is {shown(value)}: it must be (lowest, highest).") from None
    first, last = (number(name, each, low=low, high=LARGEST_REWARD, why=why) for each in (first, last))
    if first >= last:
        swapped = " Usually the two are swapped." * (first > last)
        both = f"({exact(first)}, {exact(last)})"
        raise InvalidInput(f"`{name}` is {both}: the lowest must be below the highest.{swapped}")
    return first, last


def outcome(name: str, value: object, *, low: float, high: float, why: str = "") -> float:
    """Returns an observed number, as `number` does, with True and False as 1 and 0 (clicks, successes)."""
    if type(value) is not float:  # the path of every round is that of a float
        entry = only_entry(value)
        value = float(entry) if isinstance(entry, bool | np.bool_) else entry
    return number(name, value, low=low, high=high, why=why)


def only_entry(value: Any) -> Any:
    """Returns the only entry of an array or tensor with the shape of a number, and any other value unchanged.

    The entry of an array keeps numpy's type. That of a masked array is `numpy.ma.masked` where nothing was measured.
    """
    if isinstance(value, np.ndarray):
        return value.reshape(-1)[0] if value.size == 1 else value
    shape = getattr(value, "shape", None)
    if isinstance(value, np.generic) or not isinstance(shape, tuple) or not callable(getattr(value, "item", None)):
        return value
    return value.item() if all(size == 1 for size in shape) else value


def real(value: object) -> float | None:
    """Returns the real number in a value, or None if there is none. It is the one reader of numbers.

    There is none in text, dates, None, True and False, and masked values. A number too large for a float is infinite.
    """
    entry = only_entry(value)
    if not _is_real(entry):
        return None
    try:
        with np.errstate(over="ignore"):
            return float(entry)
    except (OverflowError, ValueError):
        return math.inf if entry > 0 else -math.inf


MINUS = "\u2212"  # The sign that word processors and spreadsheets of some countries write.


def written(text: str) -> float | None:
    """Returns the number that a text holds, as people and files write it, or None. It may be NaN or infinite."""
    try:
        text = text.strip().replace(MINUS, "-")  # Of blanks that are not ASCII, too.
        return float(text) if text.isascii() and "_" not in text else None  # `float` also reads 1_000 and other digits
    except ValueError:
        return None


def whole_in(text: str, *, digits: int = 15) -> int | None:
    """Returns the whole number that a text writes in at most so many digits, after a minus sign or without, or None."""
    typed = text.removeprefix("-")
    return int(text) if typed.isascii() and typed.isdecimal() and len(typed) <= digits else None


def number_in(value: object) -> float | None:
    """Returns the number in a cell of a table, which may be a text, or None. It may be NaN or infinite."""
    return written(value) if isinstance(value, str) else real(value)


def _is_real(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.timedelta64)  # numpy counts it as a number


def integer(name: str, value: object, *, low: int, high: int | None = LARGEST_WHOLE, why: str = "") -> int:
    """Returns `value` as an int of at least `low` and, unless it is None, at most `high`, or raises an error."""
    result = value if type(value) is int else _as_int(name, value, why)
    if result < low:
        raise InvalidInput(f"`{name}` is {shown(result)}: it must be at least {low}. {why}".rstrip())
    if high is not None and result > high:
        raise InvalidInput(f"`{name}` is {shown(result)}: it must be at most {shown(high)}. {why}".rstrip())
    return result


def _as_int(name: str, value: object, why: str) -> int:
    try:
        entry = only_entry(value)
        if not isinstance(entry, bool | np.bool_):
            return operator.index(entry)
    except TypeError:
        pass
    raise InvalidInput(f"`{name}` must be a whole number, not {typed(value)}. {why}".rstrip())


def flag(name: str, value: object, *, why: str = "") -> bool:
    """Returns `value` if it is True or False, or raises an error."""
    entry = only_entry(value)
    if not isinstance(entry, bool | np.bool_):
        raise InvalidInput(f"`{name}` must be True or False, not {typed(value)}. {why}".rstrip())
    return bool(entry)


def finite_array(name: str, value: npt.ArrayLike, *, hint: str = "") -> Array:
    """Returns `value` as a fresh float64 array without NaN or infinity.

    Arrays, nested lists, tensors, tables and columns (anything with `to_numpy`) are accepted. Values that numpy would
    convert to numbers are refused: text, True and False, dates, complex numbers, and masked values.
    """
    plain = type(value) is np.ndarray and value.dtype == np.float64  # the path of every round
    result = np.array(value, dtype=np.float64) if plain else _numbers(name, value, hint)
    finite = np.isfinite(result)
    if not finite.all() if finite.size > 1000 else b"\0" in finite.tobytes():  # a third of the time on small arrays
        where = tuple(int(i) for i in np.argwhere(~finite)[0])
        at = f" at index {where if len(where) > 1 else where[0]}" if where else ""
        raise InvalidInput(
            f"`{name}` has a value that is not finite{at}. "
            f"{hint or 'Usually a missing reading or a failed division: drop or repair it first.'}"
        )
    return result


def _numbers(name: str, value: Any, hint: str) -> Array:
    """Returns any value as a float64 array, or raises an error."""
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
    """Raises an error if some entry is no real number."""
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
    """Raises an error if an array, tensor or table has entries of another kind than real numbers."""
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
    """Returns the array in a table or a column."""
    return value.to_numpy() if callable(getattr(value, "to_numpy", None)) else value


def _first_line(error: Exception) -> str:
    text = str(error).partition("\n")[0]
    return text if len(text) <= 2 * SHOWN else f"{text[: 2 * SHOWN]}..."


def points_array(name: str, value: npt.ArrayLike, *, dimension: int | None = None) -> Array:
    """Returns points as `(n, d)`. An array `(n,)` is read as n points of one dimension.

    If the dimension d > 1 is known, an array `(d,)` is one point.
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
    """Sets fields of a frozen dataclass to their checked values, which are Python's own numbers."""
    for name, value in values.items():
        object.__setattr__(description, name, value)


def listed(name: str, value: Any, *, why: str = "") -> list[Any]:
    """Returns the entries of a list, tuple, range or array of one dimension, or raises an error. Text is no list."""
    several = isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray | memoryview)
    if not several and not (isinstance(value, np.ndarray) and value.ndim == 1):
        raise InvalidInput(f"`{name}` is {shown(value)}: it must be a list. {why}".rstrip())
    return list(value)


def one_of(name: str, value: Any, options: Iterable[str], *, why: str = "", advice: str = "") -> str:
    """Returns `value` if it is one of the options, or raises an error that lists them."""
    known = list(options)
    if not isinstance(value, str) or value not in known:
        several = "one of " if len(known) > 1 else ""
        hint = nearest(value, known) if isinstance(value, str) else ""
        raise InvalidInput(
            f"`{name}` is {shown(value)}: it must be {several}{', '.join(map(repr, known))}.{hint} {why}".rstrip(),
            advice=advice,
        )
    return str(value)  # of numpy's strings a plain one


def frozen(array: Array) -> Array:
    """Returns the array itself, made read-only, since descriptions do not change."""
    array.flags.writeable = False
    return array


def url_of(storage: str) -> str:
    """Returns the URL of a storage, which may be given as the path of an SQLite file."""
    return storage if "://" in storage or storage.startswith("sqlite:") else f"sqlite:///{storage}"


@lru_cache(1024)
def is_loopback(host: str) -> bool:
    """Returns whether an address belongs to the machine itself."""
    plain = host.strip("[]").lower()
    if plain == "localhost":
        return True
    try:
        return ipaddress.ip_address(plain).is_loopback
    except ValueError:
        return False
