"""The command `noregret papers`: the list, and one figure with a progress bar."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click
from tqdm import tqdm

from . import papers
from .figure import Figure, Job
from .report import text, write


def listing() -> str:
    """Every figure in a line, under its paper."""
    width = max(len(figure.name) for paper in papers() for figure in paper.figures)
    lines = []
    for paper in papers():
        lines += [paper.title, *(f"  {figure.name:{width}}  {figure.about}" for figure in paper.figures)]
    return "\n".join(lines)


def tabulate(name: str, folder: Path, data: Path | None) -> None:
    """Evaluate an expensive objective once and write its table."""
    from .verma import tables

    with tqdm(desc=name, unit="configuration", dynamic_ncols=True, leave=False) as bar:

        def report(done: int, total: int) -> None:
            bar.total, bar.n = total, done
            bar.refresh()

        file = tables.tabulate(name, folder, data=data, report=report)
    click.echo(f"Table: {file}")


def run(figure: Figure, job: Job, folder: Path) -> None:
    """Make a figure, say what holds, and write its files."""
    with tqdm(total=job.trials, desc=figure.name, unit="trial", dynamic_ncols=True, leave=False) as bar:

        def report(done: int, total: int) -> None:
            bar.total, bar.n = total, done
            bar.refresh()

        result = figure.make(replace(job, report=report))
    click.echo(text(figure, job, result))
    written = write(figure, job, result, folder)
    click.echo(f"Numbers: {written.csv}")
    click.echo(f"Picture: {written.picture}" if written.picture else f"No picture: {written.problem}")
