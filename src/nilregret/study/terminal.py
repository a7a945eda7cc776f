"""Tables and facts that fit a terminal, and the same in a pipe: plain, and as wide as they are."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from shutil import get_terminal_size
from typing import TextIO

from rich.box import SIMPLE_HEAD, Box
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from .._utils.numerals import numerals
from ..errors import printable
from .formatting import MOST_CHARACTERS, cell, figure

GAP = 2  # Spaces between columns.
WIDEST = 100_000  # Characters of a line in a pipe, where nothing is wrapped.
RULED = Box("    \n    \n -- \n    \n    \n    \n    \n    \n", ascii=True)
NARROWEST = 12  # Characters of a cell's lines.
UNBROKEN = 16  # Characters of a cell that is not broken into lines.
NOTHING = ("", "0")  # What a column holds that a terminal need not show.
STYLES = {
    "best": "bold green",
    "on the front": "bold green",
    "better": "green",
    "failed": "red",
    "abandoned": "red",
    "stopped": "dim",
    "pending": "yellow",
}


def is_terminal(file: TextIO | None = None) -> bool:
    """Returns whether people read an output on a screen of limited width."""
    file = sys.stdout if file is None else file
    return file is not None and file.isatty()


def is_dumb() -> bool:
    """Returns whether the terminal obeys no escape codes."""
    return os.environ.get("TERM", "").lower() in ("dumb", "unknown")


def can_redraw(file: TextIO) -> bool:
    """Returns whether an output is a terminal that can replace lines."""
    return is_terminal(file) and not is_dumb()


def console(file: TextIO | None = None, *, wide: bool = False) -> Console:
    """Returns a console of Rich, which heeds NO_COLOR, FORCE_COLOR, COLUMNS and TERM. Nothing is wrapped if `wide`."""
    width = height = None
    if wide or not is_terminal(file):
        width = height = WIDEST
    elif is_dumb():  # Rich takes every dumb terminal to be 80 wide.
        width, height = get_terminal_size()
    return Console(file=file, width=width, height=height, highlight=False, markup=False, emoji=False)


def show(*parts: RenderableType, wide: bool = False) -> None:
    """Prints texts, tables and facts, with control characters escaped. Nothing is wrapped if `wide`."""
    target = console(wide=wide)
    for part in parts:
        safe = printable(part) if isinstance(part, str) else part
        if is_terminal() or target.is_terminal:  # Or FORCE_COLOR is set.
            target.print(safe)
        else:
            print(plain(safe), file=target.file, flush=True)


def hint(command: str) -> None:
    """Prints in a terminal what to do next."""
    if is_terminal():
        console().print(Text(f"next: {printable(command)}", style="dim"))


def plain(part: RenderableType) -> str:
    """Returns a text, table or facts without escape codes, as wide as they are."""
    if isinstance(part, str):
        return part
    text = StringIO()
    Console(file=text, width=WIDEST, color_system=None, force_terminal=False, markup=False, emoji=False).print(part)
    return "\n".join(line.rstrip() for line in text.getvalue().rstrip("\n").split("\n"))


def facts(pairs: Iterable[tuple[str, object]]) -> Table:
    """Returns a line for each pair whose value is not empty."""
    grid = Table.grid(padding=(0, GAP, 0, 0))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(overflow="fold")
    for name, value in pairs:
        text = figure(value)
        if text:
            grid.add_row(printable(name), text)
    return grid


def table(
    rows: Iterable[Sequence[object]], headings: Sequence[str], *, states: Sequence[str] = (),
    dispensable: Sequence[str] = (), first: int = MOST_CHARACTERS, wide: bool | None = None,
) -> Table:  # fmt: skip
    """Returns a table that fits the terminal.

    Unless `wide`, columns that are empty everywhere are left out, in a terminal also those that are zero everywhere.
    Where the rest is too wide for a terminal, it is not shown the dispensable ones either. A pipe gets "-" for what is
    empty, and nothing is cut.

    Args:
        rows: values.
        headings: of the columns.
        states: state of each row, which is a key of `STYLES` or anything else.
        dispensable: headings of columns that give way first, in this order.
        first: most characters of a cell of the first column.
        wide: whether to show all columns, or None for a command without this option.
    """
    whole = wide or not is_terminal()
    listed = [list(row) for row in rows]
    most = [WIDEST if whole else MOST_CHARACTERS if i else first for i in range(len(headings))]
    columns = {
        heading: _column([row[i] for row in listed], most[i], "-" if whole else "")
        for i, heading in enumerate(headings)
    }
    if not wide and listed:
        nothing = {"-"} if whole else {*NOTHING}
        columns = {name: cells for name, cells in columns.items() if set(cells) - nothing}
    hidden = [] if whole else _give_way(columns, dispensable, console().width)
    caption = f"Not shown: {'; '.join(hidden)}." + " --wide shows all columns." * (wide is False) if hidden else None
    right = {name for i, name in enumerate(headings) if _all_numbers(row[i] for row in listed)}
    lines = RULED if whole or not console().encoding.startswith("utf") else SIMPLE_HEAD
    return _drawn(columns, right, states, caption, lines)


def _drawn(
    columns: Mapping[str, Sequence[str]], right: set[str], states: Sequence[str], caption: str | None, lines: Box
) -> Table:
    made = Table(
        box=lines, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0), safe_box=False,
        caption=caption, caption_justify="left", caption_style="dim", border_style="dim", header_style="bold",
    )  # fmt: skip
    for name, cells in columns.items():
        longest = max(map(cell_len, cells), default=0)
        made.add_column(
            printable(name), justify="right" if name in right else "left", overflow="fold", no_wrap=longest <= UNBROKEN,
            min_width=min(longest, NARROWEST),
        )  # fmt: skip
    for position, row in enumerate(zip(*columns.values(), strict=True)):
        made.add_row(*row, style=STYLES.get(states[position]) if states else None)
    return made


def _column(values: Sequence[object], most: int, empty: str) -> list[str]:
    """Returns the cells of a column. Its numbers have digits enough to be told apart."""
    floats = [value for value in values if isinstance(value, float)]
    told = dict(zip(floats, numerals(floats), strict=True))
    return [(told[v] if isinstance(v, float) else cell(v, most=most)) or empty for v in values]


def _all_numbers(values: Iterable[object]) -> bool:
    told = [value for value in values if value is not None]
    return bool(told) and all(isinstance(value, int | float) for value in told)


def _give_way(columns: dict[str, list[str]], dispensable: Sequence[str], width: int) -> list[str]:
    """Removes dispensable columns until the rest fits. Returns the headings of those removed."""
    hidden = []
    for name in dispensable:
        widths = [max(map(cell_len, [heading, *cells])) for heading, cells in columns.items()]
        if sum(widths) + GAP * (len(widths) - 1) <= width:
            break
        if name in columns and len(columns) > 1:
            del columns[name]
            hidden.append(name)
    return hidden


__all__ = ["STYLES", "can_redraw", "console", "facts", "hint", "is_terminal", "plain", "show", "table"]
