"""A shell command with places for parameters: values can never be more than one word of it.

Every value is quoted whole. That protects only where the shell would read a word: inside quotes, backquotes,
arithmetic, here-documents and comments a quote is an ordinary character, and `$(...)` in a value would run. Such
places are therefore refused when the file is loaded.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..._utils.checks import shown
from ..._utils.errors import InvalidInput

BRACES = "Write {{ and }} for braces meant for the shell."
FIELD = "\0"  # stands for a value while a template is read; no command can hold one

# What may stand between fields, as POSIX shells and bash read it: (a whole construct without a field, in which nothing
# is looked at; what a command that goes on otherwise is told).
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
    """The function from parameters to a command; a template in which a value could do harm is refused.

    A parameter that does not count, by its conditions, is an empty word.

    Args:
        template: with {name} for parameters.
        names: of the parameters.
        options: texts that a parameter may be.
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
    """One word of a shell, also where it would do without quotes: `PATH=x` or `2` must mean nothing special."""
    return "'" + value.replace("'", "'\"'\"'") + "'"


def _pieces(template: str, known: list[str]) -> list[tuple[str, str | None]]:
    """Text, and the name of the parameter that follows it; None at the end and around doubled braces."""
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
    """Refuse a field where a quoted value would not be one word."""
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
