"""Trials and figures as text for a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from tabulate import tabulate

from ..storage.record import Trial

MOST_CHARACTERS = 60  # Most characters of a cell.


def where(trial: Trial) -> str:
    """Returns the point of a trial in a line."""
    return settings(trial.parameters, trial.point.tolist(), trial.arm)


def settings(parameters: dict[str, Any] | None, point: Sequence[float], arm: int | None) -> str:
    """Returns named parameters, or coordinates and the arm."""
    if parameters is not None:
        return ", ".join(f"{name}={figure(value)}" for name, value in parameters.items())
    numbers = ", ".join(map(figure, point))
    return f"({numbers})" if arm is None else f"arm {arm} ({numbers})"


def figure(value: object) -> str:
    """Returns a value in few digits."""
    if isinstance(value, list):
        return ", ".join(map(figure, value))
    if isinstance(value, dict):
        return ", ".join(f"{name}={figure(part)}" for name, part in value.items())
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def moment(time: float | None) -> str:
    """Returns Unix seconds as a date and a time of day, UTC. A number that is no date stays a number."""
    if time is None:
        return ""
    try:
        return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, OSError, ValueError):  # The user's own clock may count from any moment.
        return f"{time:g} s"


def printable(text: str) -> str:
    """Returns a text without characters that a terminal would obey: names and reasons may come from anywhere."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def cell(value: object, *, most: int = MOST_CHARACTERS) -> str:
    """Returns a value as one short line for a cell of a table."""
    text = printable(figure(value).replace("\n", " "))
    return text if len(text) <= most else text[: most - 3] + "..."


def table(rows: Iterable[Sequence[object]], headings: Sequence[str], *, first: int = MOST_CHARACTERS) -> str:
    """Returns a table without the columns that are empty.

    Args:
        rows: values.
        headings: of the columns.
        first: most characters of a cell of the first column.
    """
    cells = [[cell(value, most=MOST_CHARACTERS if i else first) for i, value in enumerate(row)] for row in rows]
    kept = [i for i in range(len(headings)) if any(row[i] for row in cells)]
    return tabulate(
        [[row[i] for i in kept] for row in cells], [headings[i] for i in kept], tablefmt="simple",
        disable_numparse=True, stralign="left",
    )  # fmt: skip


def facts(pairs: Iterable[tuple[str, object]]) -> str:
    """Returns a line for each pair whose value is not empty."""
    told = [(name, printable(figure(value))) for name, value in pairs]
    return tabulate([(name, said) for name, said in told if said], tablefmt="plain", disable_numparse=True)


def as_json(value: Any) -> str:
    """Returns a JSON document in plain ASCII, which every terminal and pipe can show."""
    return json.dumps(value, indent=1, allow_nan=False)
