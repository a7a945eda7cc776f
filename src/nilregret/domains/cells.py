"""Options of choices in the cells of tables and files, where a column has one type."""

from __future__ import annotations

import json
from typing import Any

from .._utils.errors import InvalidInput
from .parameters import Choice


def option_texts(parameter: Choice) -> list[str]:
    """Returns the text of each option.

    If two options would look alike, or one would be empty, all are written as JSON.
    """
    plain = [option if isinstance(option, str) else json.dumps(option) for option in parameter.options]
    if len(set(plain)) < len(plain) or "" in plain:
        return [json.dumps(option) for option in parameter.options]
    return plain


def option_place(parameter: Choice, value: Any, *, texts: bool = False) -> int | None:
    """Returns the place of the option in a cell, or None if there is no such option.

    Args:
        parameter: the choice.
        value: of the cell.
        texts: True if a text is first of all that of an option, as files have it. False if it is first an option.
    """
    known = option_texts(parameter)
    if texts and isinstance(value, str) and value in known:
        return known.index(value)
    try:
        return parameter.encode(value).index(max(parameter.encode(value)))
    except InvalidInput:
        pass
    said = [value] if isinstance(value, str) else [json.dumps(value)] if isinstance(value, bool | int | float) else []
    alike = [known, [str(option) for option in parameter.options]]  # `str` has True for JSON's true.
    return next((names.index(text) for names in alike for text in said if text in names), None)
