"""A shell command with fields for parameters, in which each value is one word.

Every value is quoted. Quotes protect a value only where the shell would read a word. Inside quotes, backquotes,
arithmetic, here-documents and comments a quote is an ordinary character, and `$(...)` in a value would run. Fields in
such places are therefore refused when the file is loaded.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..._utils.checks import shown
from ..._utils.errors import InvalidInput

BRACES = "Write {{ and }} for braces meant for the shell."
FIELD = "\0"  # It represents a value while a template is checked. No command can contain it.

# The constructs between fields, as POSIX shells and bash read them. Each has an opening, the whole construct without a
# field, and the remedy if a field stands inside. The content of a whole construct is skipped.
_NONE = r"(?!)"
_CONSTRUCTS: list[tuple[str, str, str]] = [
    (r"\\[\s;&|()<>]#", _NONE, "a field stands after an escaped space and a #: leave the # out"),
    (r"\\", r"\\[^\0]", "a backslash stands before a field: leave it out, the value is quoted already"),
    (r"'", r"'[^'\0]*'", "a field stands inside quotes: write {name} without quotes, the value is quoted already"),
    (
        r'"',
        r'"(?:[^"\\$`\0]|\\[^\0]|\$\{\w+\}|\$(?![({\0\[]))*"',
        "a field stands inside double quotes, or after quotes with $(...) or `...` in them: write {name} without "
        "quotes, the value is quoted already, and take $(...) out of the quotes or put it into a script",
    ),
    (r"`", r"`[^`\\\0]*`", "a field stands inside backquotes: write $(...) instead"),
    (
        r"\$\(\(|\$\[|\(\(|\[\[|\w\[(?=[^\]\s]*\0)",
        r"\$?\(\([^()'\"`\\\0]*\)\)",
        "a field stands in or after arithmetic or [[ ]], where the shell evaluates what it holds: give the value to a "
        "script instead",
    ),
    (r"\$\{", r"\$\{\w+\}", "a field stands in or after ${...} that is more than a name: do that in a script"),
    (r"\$'", _NONE, "a field stands after $'...': write the quotes without $"),
    (r"\$\0", _NONE, "a $ stands before a field: write {name}, not ${name}"),
    (r"<<", _NONE, "a field stands in or after a here-document (<<): put it into a script"),
    (r"(?:(?<=[\s;&|()<>])|\A)#", r"#[^\n\0]*(?:\n|\Z)", "a field stands in a comment: leave it out"),
    (r"(?<![\w./-])eval(?![\w./-])", _NONE, "a field stands after eval, which would run what it holds: leave eval out"),
]
_OPENINGS = re.compile("|".join(f"(?P<_{i}>{opening})" for i, (opening, _, _) in enumerate(_CONSTRUCTS)))


def filled(template: str, names: Iterable[str], *, options: Iterable[str] = ()) -> Callable[[Mapping[str, Any]], str]:
    """Returns the function from parameters to a command, or raises an error if a value could do harm.

    A parameter that its conditions leave out is an empty word.

    Args:
        template: the command with {name} for parameters.
        names: names of the parameters.
        options: texts that are values of parameters.
    """
    if not template.strip():
        raise InvalidInput("[objective] `command` is empty.")
    if any("\0" in text for text in (template, *options)):
        raise InvalidInput("[objective] a `command` cannot be given a NUL character.")
    known = list(names)
    awkward = [name for name in known if not name.isidentifier()]
    if awkward:
        raise InvalidInput(
            f"[objective] a `command` can only take parameters named with letters, digits and _, not {awkward[0]!r}."
        )
    pieces = _pieces(template.strip(), known)
    _check_places("".join(literal + (FIELD if name is not None else "") for literal, name in pieces))
    return lambda parameters: "".join(
        literal + ("" if name is None else quoted(str(parameters.get(name, "")))) for literal, name in pieces
    )


def quoted(value: str) -> str:
    """Returns a value as one word of a shell, always in quotes, since `PATH=x` or `2` have special meanings."""
    return "'" + value.replace("'", "'\"'\"'") + "'"


def _pieces(template: str, known: list[str]) -> list[tuple[str, str | None]]:
    """Returns pairs of text and the parameter that follows. None at the end and around doubled braces."""
    try:
        parsed = list(string.Formatter().parse(template))
    except ValueError as error:
        raise InvalidInput(f"[objective] `command` {shown(template)}: {error}. {BRACES}") from error
    for _, name, specification, conversion in parsed:
        if name is None:
            continue
        if specification or conversion:
            raise InvalidInput(
                f"[objective] `command` has {{{name}{'!' + conversion if conversion else ''}"
                f"{':' + specification if specification else ''}}}: a value cannot be converted or formatted, as its "
                f"quotes would go; write {{{re.split(r'[.[]', name)[0] or known[0]}}}."
            )
        if name not in known:
            raise InvalidInput(
                f"[objective] `command` names {name!r}; the parameters are {', '.join(known)}, each written as "
                f"{{{known[0]}}}, without a part of it or anything else in the braces. {BRACES}"
            )
    return [(literal, name) for literal, name, _, _ in parsed]


def _check_places(text: str) -> None:
    """Raises an error for a field in a place where a quoted value would not be one word."""
    position = 0
    while FIELD in text[position:]:
        opening = _OPENINGS.search(text, position)
        if opening is None:
            return
        _, whole, remedy = _CONSTRUCTS[int(str(opening.lastgroup)[1:])]
        construct = re.compile(whole).match(text, opening.start())
        if construct is None:
            if FIELD in text[opening.start() :]:
                raise InvalidInput(f"[objective] in `command` {remedy}.")
            return
        position = construct.end()
