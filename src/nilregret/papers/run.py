"""The command `nilregret papers`, which lists figures and makes them with a progress bar."""

from __future__ import annotations

import platform
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, final

import click

from .._utils.checks import many
from .._utils.dataclass import dataclass, replace
from .._utils.numerals import numeral
from ..environments.data.datasets import VARIABLE, located, looked_for
from ..errors import InvalidInput, MissingData, MissingExtra
from ..study.curves import write_csv
from . import find, papers
from .figure import Figure, Job, Paper, Result

if TYPE_CHECKING:
    from rich.progress import Progress


WIDTH = 100  # characters of a line


@final
@dataclass(frozen=True)
class Written:
    """The files of a figure. If there is no picture, `problem` says why."""

    csv: Path
    text: Path
    picture: Path | None
    problem: str = ""


class Made(NamedTuple):
    """A figure that was made, with the seconds that it took."""

    figure: Figure
    job: Job
    result: Result
    seconds: float


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
            f"{figure.trials:,} of {figure.rounds:,}",
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
    return InvalidInput(
        f"The figure cannot be written to {folder}: {error}. Choose another place with --out or --report."
    )


def write(
    figure: Figure, job: Job, result: Result, folder: Path, kind: str = "png", width: str | None = None
) -> Written:
    """Writes `NAME.csv`, `NAME.txt` and a picture of this kind into a folder, which is created if it is missing.

    Files of a run smaller than the figure are called `NAME-quick`. The picture needs matplotlib and comes last. The
    other files are written without matplotlib, too. With a width the picture is that of a paper, without a title.
    """
    from .. import plots

    table, words, picture = (folder / f"{figure.stem(job)}.{ending}" for ending in ("csv", "txt", kind))
    writable(folder)
    try:
        write_csv(table, result.panels)
        words.write_text(text(figure, job, result) + "\n", encoding="utf-8")
        title = f"{figure.name}: {figure.about}"
        plots.panels(result.panels, picture, title=title, note=size(figure, job), width=width)
    except MissingExtra as error:
        return Written(table, words, None, str(error))
    except OSError as error:
        raise _unwritable(folder, error) from error
    return Written(table, words, picture)


def listing(shown: Sequence[Paper] | None = None) -> str:
    """Returns a line for every figure under its paper, with the data set if the figure needs one."""
    listed = papers() if shown is None else shown
    width = max(len(figure.name) for paper in listed for figure in paper.figures)
    lines = []
    for paper in listed:
        lines.append(paper.title)
        lines += [f"  {figure.name:{width}}  {figure.about}{_needs(figure)}" for figure in paper.figures]
    return "\n".join(lines)


def _needs(figure: Figure) -> str:
    return f"  [needs data: {Path(figure.data[0]).parent}]" if figure.data else ""


def offer(names: Sequence[str]) -> str | None:
    """Returns the list of figures of the named papers, or None. All figures of a paper may take an hour."""
    known = {paper.key: paper for paper in papers()}
    named = list(dict.fromkeys(name.lower() for name in names if name.lower() in known))
    if not named:
        return None
    if len(named) < len({name.lower() for name in names}):
        keys = " and ".join(f"{key!r}" for key in named)
        raise InvalidInput(f"{keys} names a paper, not a figure: `nilregret papers {named[0]}` lists its figures.")
    commands = [" ".join(["nilregret papers", *(figure.name for figure in known[key].figures)]) for key in named]
    return "\n".join([listing([known[key] for key in named]), "Name one, several, or all of them:", *commands])


def wanted(names: Sequence[str], data: Path | None) -> list[Figure]:
    """Returns the figures of these names, each once, after a check that their data are there."""
    figures = list({figure.name: figure for figure in map(find, names)}.values())
    for figure in figures:
        _check_data(figure, data)
    return figures


def _check_data(figure: Figure, data: Path | None) -> None:
    if not figure.data or located(figure.data, data):
        return
    looked = looked_for(figure.data, data, f"`{figure.data[0]}` is to be read, but there is no --data")
    raise MissingData(
        f"{figure.name} needs a data set that is not part of the library: {looked}. Name the folder that holds it: "
        f"--data DIR, or export {VARIABLE}=DIR. Where to get it is in docs/papers/data-sets.md."
    )


def tabulate(name: str, folder: Path, data: Path | None) -> None:
    """Evaluates an expensive objective on its grid and writes its table."""
    from .verma import tables

    if name in tables.MAKERS:
        writable(folder)
    with _bar() as bar:
        file = tables.tabulate(name, folder, data=data, report=_shown_by(bar, name))
    click.echo(f"Table: {file}")


def run(figure: Figure, job: Job, folder: Path, picture: str = "png", width: str | None = None) -> Made:
    """Makes a figure, prints its verdicts, and writes its files. `picture` is "png", "svg" or "pdf"."""
    writable(folder)
    began = time.perf_counter()
    with _bar() as bar:
        result = figure.make(replace(job, report=_shown_by(bar, figure.name)))
    seconds = time.perf_counter() - began
    click.echo(text(figure, job, result))
    written = write(figure, job, result, folder, picture, width)
    click.echo(f"Numbers: {written.csv}")
    click.echo(f"Picture: {written.picture}" if written.picture else f"No picture: {written.problem}")
    return Made(figure, job, result, seconds)


def check_named(figures: Sequence[str], *, every: bool, report: Path | None) -> None:
    """Raises `click.UsageError` if figures are named beside all of them, or none is for a report."""
    if every and figures:
        raise click.UsageError(f"--all makes every figure: leave out {' '.join(figures)}, or --all.")
    if report and not (every or figures):
        raise click.UsageError("--report is a table of figures: name some, or take --all.")


def checked(figures: Sequence[Figure], folder: Path, report: Path | None) -> Sequence[Figure]:
    """Returns figures, and makes their folder and the report's. Raises `InvalidInput` if one cannot be written."""
    writable(folder)
    if report:
        writable(report.parent)
    return figures


def every(data: Path | None) -> list[Figure]:
    """Returns all figures whose data are there, and prints which ones are left out."""
    listed = [figure for paper in papers() for figure in paper.figures]
    found = [figure for figure in listed if not figure.data or located(figure.data, data)]
    for figure in listed:
        if figure not in found:
            click.echo(f"Left out: {figure.name} needs {figure.data[0]}, see docs/papers/data-sets.md.", err=True)
    return found


def report(made: Sequence[Made], path: Path) -> None:
    """Writes a table of figures with numbers, verdicts, sizes, seeds and times, and the versions, as Markdown.

    Args:
        made: the figures in the order of the table.
        path: of the file.
    """
    from importlib.metadata import version

    versions = ", ".join(f"{name} {version(name)}" for name in ("nilregret", "numpy", "scipy"))
    lines = [
        f"Python {platform.python_version()}, {versions}, {platform.system()} on {platform.machine()}.", "",
        "| figure | size and seed | seconds | sentence of the paper | measured | verdict |", "|---|" + "---|" * 5,
    ]  # fmt: skip
    for figure, job, result, seconds in made:
        first = [figure.name, size(figure, job), numeral(seconds, 2)]
        for statement in result.statements:
            cells = [*first, statement.text, statement.measured, statement.verdict]
            lines.append("| " + " | ".join(cell.replace("|", r"\|").replace("\n", " ") for cell in cells) + " |")
            first = ["", "", ""]
    total = Result((), tuple(statement for each in made for statement in each.result.statements))
    lines += ["", f"{many(len(made), 'figure')}. {_count(total)}", ""]
    try:
        path.write_text("\n".join(lines), encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"The report cannot be written to {path}: {error}. Choose another --report.") from error
    click.echo(f"Report: {path}")


def _bar() -> Progress:
    """Returns a progress bar on stderr, which is hidden without a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from ..study.terminal import can_redraw, console

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=None), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(
        *columns, console=console(sys.stderr), transient=True, expand=True, disable=not can_redraw(sys.stderr)
    )


def _shown_by(bar: Progress, name: str) -> Callable[[int, int], None]:
    task = bar.add_task(name, total=None)
    return lambda done, total: bar.update(task, completed=done, total=total)
