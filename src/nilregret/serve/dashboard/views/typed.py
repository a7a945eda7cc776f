"""Numbers that a person typed into a form."""

from __future__ import annotations

import math

from ...._utils.checks import written
from ...._utils.errors import InvalidInput

SHOWN = 20  # characters of a typed text in a sentence


def number(what: str, text: str) -> float:
    """Returns a typed number.

    Args:
        what: name of the field, which begins a sentence.
        text: as typed.

    Raises:
        InvalidInput: the text is no finite number.
    """
    value = written(text)
    if value is None or not math.isfinite(value):
        hint = " Write a decimal point, as in 12.5." if "," in text else ""
        raise InvalidInput(f"{what} is {text.strip()[:SHOWN]!r}: it must be a number, such as 0.5.{hint}")
    return value


def whole(what: str, text: str, *, negative: bool = True, digits: int = 15) -> int:
    """Returns a typed whole number.

    Args:
        what: name of the field, which begins a sentence.
        text: as typed.
        negative: whether it may be below 0.
        digits: that it may have.

    Raises:
        InvalidInput: the text is no such number.
    """
    typed = text.strip()
    found = typed.removeprefix("-")
    known = found.isascii() and found.isdecimal() and len(found) <= digits
    if not known or (found != typed and not negative):
        raise InvalidInput(f"{what} is {typed[:SHOWN]!r}: it must be a whole number.")
    return int(typed)
