"""Trials and figures as people read them in a terminal, and as JSON that other programs read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from tabulate import tabulate

from ..storage.record import Trial

MOST_CHARACTERS = 60  # of one cell of a table


def where(trial: Trial) -> str:
    """What was tried, in a line."""
    return settings(trial.parameters, trial.point.tolist(), trial.arm)


def settings(parameters: dict[str, Any] | None, point: Sequence[float], arm: int | None) -> str:
    """Named parameters, or coordinates and the arm."""
    if parameters is not None:
        return ", ".join(f"{name}={figure(value)}" for name, value in parameters.items())
    numbers = ", ".join(map(figure, point))
    return f"({numbers})" if arm is None else f"arm {arm} ({numbers})"


def figure(value: object) -> str:
    """A value in few digits."""
    if isinstance(value, list):
        return ", ".join(map(figure, value))
    if isinstance(value, dict):
        return ", ".join(f"{name}={figure(part)}" for name, part in value.items())
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def moment(time: float | None) -> str:
    """Unix seconds as a date and a time of day, UTC; what is no date as a number."""
    if time is None:
        return ""
    try:
        return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, OSError, ValueError):  # a clock of the user's own counts from anywhere
        return f"{time:g} s"


def printable(text: str) -> str:
    """Without characters that a terminal would obey: names and reasons may come from anywhere."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def cell(value: object, *, most: int = MOST_CHARACTERS) -> str:
    """Of a table: one line, and not too long."""
    text = printable(figure(value).replace("\n", " "))
    return text if len(text) <= most else text[: most - 3] + "..."


def table(rows: Iterable[Sequence[object]], headings: Sequence[str], *, first: int = MOST_CHARACTERS) -> str:
    """Columns that are empty throughout are left out; of the first one cells have so many characters at most."""
    cells = [[cell(value, most=MOST_CHARACTERS if i else first) for i, value in enumerate(row)] for row in rows]
    kept = [i for i in range(len(headings)) if any(row[i] for row in cells)]
    return tabulate(
        [[row[i] for i in kept] for row in cells], [headings[i] for i in kept], tablefmt="simple",
        disable_numparse=True, stralign="left",
    )  # fmt: skip


def facts(pairs: Iterable[tuple[str, object]]) -> str:
    """A line for each that is not empty."""
    told = [(name, printable(figure(value))) for name, value in pairs]
    return tabulate([(name, said) for name, said in told if said], tablefmt="plain", disable_numparse=True)


def as_json(value: Any) -> str:
    """One document, plain ASCII: no terminal and no pipe has trouble with it."""
    return json.dumps(value, indent=1, allow_nan=False)
