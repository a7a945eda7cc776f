"""What a figure leaves behind: a CSV file, a picture, and a text with every statement."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import final

from ..curves import write_csv
from ..errors import InvalidInput, MissingExtra
from .figure import Figure, Job, Result

WIDTH = 100


@final
@dataclass(frozen=True)
class Written:
    """The files of a figure; `problem` says why there is no picture, where there is none."""

    csv: Path
    text: Path
    picture: Path | None
    problem: str = ""


def text(figure: Figure, job: Job, result: Result) -> str:
    """Every statement with what was measured, and whether it holds."""
    holding = sum(statement.holds for statement in result.statements)
    lines = [f"{figure.name}: {figure.about}", f"  {size(figure, job)}"]
    lines += [_wrapped(note, "  Note: ") for note in result.notes]
    for statement in result.statements:
        lines += [_wrapped(statement.text, "  - "), _wrapped(statement.measured, "    measured: ")]
        lines.append(f"    {statement.verdict}")
    return "\n".join([*lines, f"{holding} of {len(result.statements)} statements hold."])


def size(figure: Figure, job: Job) -> str:
    """How large this was made, and whether that is less than full size."""
    if figure.trials == 1:
        return f"T up to {job.rounds}; nothing is random"
    made = f"{job.trials} trials of {job.rounds} rounds, seed {job.seed}"
    if job.trials >= figure.trials and job.rounds >= figure.rounds:
        return made
    return f"{made}; full size is {figure.trials} of {figure.rounds}: verdicts of less are for a first look only"


def _wrapped(words: str, start: str) -> str:
    indent = " " * min(len(start), 4)
    return textwrap.fill(words, WIDTH, initial_indent=start, subsequent_indent=indent, break_on_hyphens=False)


def write(figure: Figure, job: Job, result: Result, folder: Path) -> Written:
    """Write `NAME.csv`, `NAME.txt` and `NAME.png` into a folder, which is made if need be.

    The picture comes last and needs matplotlib: without it the other two are there all the same.
    """
    from .. import plots

    table, words, picture = (folder / f"{figure.name}.{kind}" for kind in ("csv", "txt", "png"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_csv(table, result.panels)
        words.write_text(text(figure, job, result) + "\n", encoding="utf-8")
        plots.panels(result.panels, picture, title=f"{figure.name}: {figure.about}")
    except MissingExtra as error:
        return Written(table, words, None, str(error))
    except OSError as error:
        raise InvalidInput(
            f"The figure could not be written to {folder}: {error}. Choose another place with --out."
        ) from error
    return Written(table, words, picture)
