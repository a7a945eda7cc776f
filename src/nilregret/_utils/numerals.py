"""Numbers as text, the same in terminals, pages, pictures, notebooks and errors.

A number has four significant digits, no zeros at its end and no separators, so that it can be pasted. Digits before the
point are never rounded away. Sizes of ten million and more, and below 0.0001, have a power of ten: 2.5e9, 1e-5.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence

DIGITS, MOST_DIGITS = 4, 6  # significant digits of a number, and of numbers that differ only further behind
EXACT = 17  # significant digits that tell all floats apart
LEAST, LARGEST = -4, 1e7  # the least power of ten that is written without "e", and the least size that is not


def numeral(value: float, digits: int = DIGITS, *, step: float = 0.0) -> str:
    """Returns a number as text.

    Args:
        value: the number.
        digits: its significant digits, of which zeros at the end are left out.
        step: the least difference that must be seen, for which there may be more digits. 0 asks for none.

    >>> numeral(0.1 + 0.2), numeral(123456.7), numeral(1e-05), numeral(2.5e9), numeral(100.04, step=0.01)
    ('0.3', '123457', '1e-5', '2.5e9', '100.04')
    """
    value = float(value)
    if not math.isfinite(value):
        return "unknown" if math.isnan(value) else str(value)
    if value and step > 0.0:
        digits = max(digits, min(math.floor(math.log10(abs(value))) - math.floor(math.log10(step)) + 1, EXACT))
    mantissa, _, power = f"{value:.{digits - 1}e}".partition("e")
    exponent = int(power)
    plain = f"{value:.{max(0, digits - 1 - exponent)}f}"
    if value and (exponent < LEAST or abs(float(plain)) >= LARGEST):
        return f"{_trimmed(mantissa)}e{exponent}"
    return _trimmed(plain)


def aligned(values: Sequence[float], size: float) -> list[str]:
    """Returns numbers with the same decimals, so many that a size has two digits. Zeros at their end stay.

    >>> aligned([11.49, 0.5], 0.5), aligned([1.2e-5, 3e-6], 3e-6)
    (['11.49', '0.50'], ['1.20e-5', '0.30e-5'])
    """
    most = max(map(abs, values))
    power = math.floor(math.log10(most)) if most and not 10.0**LEAST <= most < LARGEST else 0
    decimals = max(0, power + 1 - int(f"{size:.1e}".partition("e")[2]))
    return [
        f"{round(value / 10.0**power, decimals) + 0.0:.{decimals}f}" + f"e{power}" * bool(power) for value in values
    ]


def with_error(mean: float, error: float, sign: str = "+-") -> str:
    """Returns a mean with its error, which has two digits, unless the error is unknown or next to nothing.

    >>> with_error(13.98, 2.5), with_error(0.0609, 0.06), with_error(2.5, 0.0)
    ('14.0 +- 2.5', '0.061 +- 0.060', '2.5')
    """
    if not math.isfinite(mean + error) or error <= 1e-6 * abs(mean):
        return numeral(mean)
    return f" {sign} ".join(aligned([mean, error], error))


def percent(share: float) -> str:
    """Returns a share or probability in whole percent. It is 0% or 100% only if it is exactly 0 or 1.

    >>> percent(0.576), percent(0.00024), percent(0.9999), percent(1.0)
    ('58%', '< 1%', '> 99%', '100%')
    """
    if 0.0 < share < 0.01:
        return "< 1%"
    return "> 99%" if 0.99 < share < 1.0 else f"{share:.0%}"


def numerals(values: Iterable[float]) -> list[str]:
    """Returns numbers in four digits each. Those that differ only further behind have as many as six.

    >>> numerals([0.98123, 0.5]), numerals([0.98123, 0.98124])
    (['0.9812', '0.5'], ['0.98123', '0.98124'])
    """
    listed = list(values)
    alike: dict[str, set[float]] = {}
    for value in listed:
        alike.setdefault(numeral(value), set()).add(value)
    return [numeral(value, _telling(alike[numeral(value)])) for value in listed]


def exact(value: float) -> str:
    """Returns a number with as few digits as tell it from all others.

    >>> exact(5.0), exact(0.1 + 0.2), exact(12345678.9)
    ('5', '0.30000000000000004', '1.23456789e7')
    """
    value = float(value)
    return numeral(value, next((n for n in range(1, EXACT) if float(f"{value:.{n - 1}e}") == value), EXACT))


def _telling(values: set[float]) -> int:
    """Returns the fewest digits that tell values apart, or the usual ones if too many would be needed."""
    enough = (
        digits for digits in range(DIGITS, MOST_DIGITS + 1)
        if len({numeral(value, digits) for value in values}) == len(values)
    )  # fmt: skip
    return next(enough, DIGITS)


def _trimmed(text: str) -> str:
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


CELL = "padding:0.15em 0.7em;text-align:left;vertical-align:top"


def html_table(
    headings: Sequence[object], rows: Sequence[Sequence[object]], *, caption: str = "", strong: Collection[int] = ()
) -> str:
    """Returns a table as HTML, without scripts and without colours of its own.

    Args:
        headings: of the columns, or nothing.
        rows: the cells. Everything is escaped, and numbers have four digits.
        caption: lines above the table.
        strong: numbers of the rows that are in bold type.
    """
    head = "".join(f'<th style="{CELL}">{_text(each)}</th>' for each in headings)
    body = "".join(_row(row, bold=i in strong) for i, row in enumerate(rows))
    above = f'<caption style="caption-side:top;text-align:left">{_text(caption)}</caption>' if caption else ""
    start = f'<table style="border-collapse:collapse;color:inherit;background:transparent">{above}'
    return f"{start}{f'<thead><tr>{head}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>"


def _row(cells: Sequence[object], *, bold: bool) -> str:
    start, end = ("<strong>", "</strong>") if bold else ("", "")
    return "<tr>" + "".join(f'<td style="{CELL}">{start}{_text(cell)}{end}</td>' for cell in cells) + "</tr>"


def _text(value: object) -> str:
    """Returns a value in few digits, escaped. None is an empty cell."""
    from html import escape

    text = "" if value is None else numeral(value) if isinstance(value, float) else str(value)
    return escape(text).replace("\n", "<br>")


_ESCAPED = {mark: "\\" + mark for mark in "&%$#_{}"} | {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}",
}  # fmt: skip
_NUMBER = re.compile(r"(?<![\w.])([+-]?(?:inf|\d+(?:\.\d+)?))(?:e(-?\d+))?(?![\w.])")


def latex_text(text: str) -> str:
    """Returns text for LaTeX, with its special characters escaped. It may begin a row, where [ and * are arguments."""
    return "{}" * text.startswith(("[", "*")) + "".join(_ESCAPED.get(mark, mark) for mark in text)


def latex_cell(text: str, *, bold: bool = False) -> str:
    r"""Returns a cell of a LaTeX table: numbers in mathematics, so that a minus is one, and the rest escaped.

    >>> print(latex_cell("+1.5 [-2e-5, 3]"), latex_cell("7 ± 2%", bold=True))
    $+1.5$ [$-2 \times 10^{-5}$, $3$] $\mathbf{7} \pm \mathbf{2}$\%
    """

    def number(found: re.Match[str]) -> str:
        said = found[1].replace("inf", r"\infty")
        said += rf" \times 10^{{{found[2]}}}" if found[2] else ""
        return rf"$\mathbf{{{said}}}$" if bold else f"${said}$"

    return _NUMBER.sub(number, latex_text(text)).replace("$ ± $", r" \pm ")
