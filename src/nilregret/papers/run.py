"""The command `nilregret papers`, which lists figures and makes them with a progress bar."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .._utils.errors import InvalidInput, MissingData
from ..simulation.environments.data.files import VARIABLE, located, looked_for
from . import find, papers
from .figure import Figure, Job, Paper
from .report import text, writable, write

if TYPE_CHECKING:
    from rich.progress import Progress


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
        f"--data DIR, or export {VARIABLE}=DIR. Where to get it is in docs/environments.md."
    )


def tabulate(name: str, folder: Path, data: Path | None) -> None:
    """Evaluates an expensive objective on its grid and writes its table."""
    from .verma import tables

    if name in tables.MAKERS:
        writable(folder)
    with _bar() as bar:
        file = tables.tabulate(name, folder, data=data, report=_shown_by(bar, name))
    click.echo(f"Table: {file}")


def run(figure: Figure, job: Job, folder: Path, picture: str = "png") -> None:
    """Makes a figure, prints its verdicts, and writes its files. `picture` is "png", "svg" or "pdf"."""
    writable(folder)
    with _bar() as bar:
        result = figure.make(replace(job, report=_shown_by(bar, figure.name)))
    click.echo(text(figure, job, result))
    written = write(figure, job, result, folder, picture)
    click.echo(f"Numbers: {written.csv}")
    click.echo(f"Picture: {written.picture}" if written.picture else f"No picture: {written.problem}")


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
