"""Tables for notebooks. They hold escaped text alone and take the colours of the page, light or dark."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from .numerals import numeral

CELL = "padding:0.15em 0.7em;text-align:left;vertical-align:top"


def html_table(
    headings: Sequence[object], rows: Sequence[Sequence[object]], *, caption: str = "", strong: int | None = None
) -> str:
    """Returns a table as HTML, without scripts and without colours of its own.

    Args:
        headings: of the columns, or nothing.
        rows: the cells. Everything is escaped, and numbers have four digits.
        caption: lines above the table.
        strong: number of the row that is in bold type, or None.
    """
    head = "".join(f'<th style="{CELL}">{_text(each)}</th>' for each in headings)
    body = "".join(_row(row, bold=i == strong) for i, row in enumerate(rows))
    above = f'<caption style="caption-side:top;text-align:left">{_text(caption)}</caption>' if caption else ""
    start = f'<table style="border-collapse:collapse;color:inherit;background:transparent">{above}'
    return f"{start}{f'<thead><tr>{head}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>"


def _row(cells: Sequence[object], *, bold: bool) -> str:
    start, end = ("<strong>", "</strong>") if bold else ("", "")
    return "<tr>" + "".join(f'<td style="{CELL}">{start}{_text(cell)}{end}</td>' for cell in cells) + "</tr>"


def _text(value: object) -> str:
    """Returns a value in few digits, escaped. None is an empty cell."""
    text = "" if value is None else numeral(value) if isinstance(value, float) else str(value)
    return escape(text).replace("\n", "<br>")
