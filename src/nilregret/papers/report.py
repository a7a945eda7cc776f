"""Files of a figure: a CSV file, a picture, and a text with every statement."""

from __future__ import annotations

import tempfile
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import final

from .._utils.checks import many
from .._utils.errors import InvalidInput, MissingExtra
from ..study.curves import write_csv
from .figure import Figure, Job, Result

WIDTH = 100  # characters of a line


@final
@dataclass(frozen=True)
class Written:
    """The files of a figure. If there is no picture, `problem` says why."""

    csv: Path
    text: Path
    picture: Path | None
    problem: str = ""


def text(figure: Figure, job: Job, result: Result) -> str:
    """Returns every statement with its measured numbers and its verdict."""
    first_look = "" if figure.is_full(job) else ": verdicts of less are for a first look only"
    lines = [f"{figure.name}: {figure.about}", f"  {size(figure, job)}{first_look}"]
    lines += [_wrapped(note, "  Note: ") for note in result.notes]
    for statement in result.statements:
        lines += [_wrapped(statement.text, "  - "), _wrapped(statement.measured, "    measured: ")]
        lines.append(f"    {statement.verdict}")
    return "\n".join([*lines, _count(result)])


def _count(result: Result) -> str:
    """Returns the line that counts the verdicts."""
    given = [statement.verdict for statement in result.statements]
    holding, failing, unclear = (given.count(verdict) for verdict in ("holds", "does not hold", "open"))
    too_few = " (too few trials to tell)" if unclear else ""
    verbs = f"{holding} {'holds' if holding == 1 else 'hold'}, {failing} {'does' if failing == 1 else 'do'} not hold"
    return f"{many(len(given), 'statement')}: {verbs}, {unclear} open{too_few}."


def size(figure: Figure, job: Job) -> str:
    """Returns the size and the seed of a run, and the full size if it is larger."""
    if figure.trials == 1:
        made, full = f"T up to {job.rounds}; nothing is random", f"T up to {figure.rounds}"
    else:
        made, full = (
            f"{many(job.trials, 'trial')} of {many(job.rounds, 'round')}, seed {job.seed}",
            f"{figure.trials} of {figure.rounds}",
        )
    return made if figure.is_full(job) else f"{made}; full size is {full}"


def _wrapped(words: str, start: str) -> str:
    indent = " " * min(len(start), 4)
    return textwrap.fill(words, WIDTH, initial_indent=start, subsequent_indent=indent, break_on_hyphens=False)


def writable(folder: Path) -> None:
    """Creates a folder if it is missing, and checks that files can be written there before the work begins."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise _unwritable(folder, error) from error


def _unwritable(folder: Path, error: OSError) -> InvalidInput:
    return InvalidInput(f"The figure cannot be written to {folder}: {error}. Choose another place with --out.")


def write(figure: Figure, job: Job, result: Result, folder: Path, kind: str = "png") -> Written:
    """Writes `NAME.csv`, `NAME.txt` and a picture of this kind into a folder, which is created if it is missing.

    Files of a run smaller than the figure are called `NAME-quick`. The picture needs matplotlib and comes last. The
    other files are written without matplotlib, too.
    """
    from ..study import plots

    table, words, picture = (folder / f"{figure.stem(job)}.{ending}" for ending in ("csv", "txt", kind))
    writable(folder)
    try:
        write_csv(table, result.panels)
        words.write_text(text(figure, job, result) + "\n", encoding="utf-8")
        plots.panels(result.panels, picture, title=f"{figure.name}: {figure.about}", note=size(figure, job))
    except MissingExtra as error:
        return Written(table, words, None, str(error))
    except OSError as error:
        raise _unwritable(folder, error) from error
    return Written(table, words, picture)
