"""The command line, which calls `nilregret.cli`, `nilregret.tuning.toml` and `nilregret.papers`."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ._utils.process_setting import handled, interrupt
from .cli import study_commands  # noqa: F401 - Its commands are among `COMMANDS`.
from .cli.common import COMMANDS, echo, sentence_of
from .cli.groups import Commands
from .cli.read_commands import evaluate
from .cli.service_commands import serve, token
from .cli.trial_commands import work
from .errors import InvalidInput, MissingExtra, NoRegretError

if TYPE_CHECKING:
    from .study.study import Study
    from .tuning.toml import config


GREETING = """\
nilregret {} finds the best parameters in few trials, and decides again and again while learning.

  nilregret tune FILE.toml                     tune what a file describes
  nilregret show runs.db                       say where a study stands, and draw it
  nilregret serve --storage sqlite:///runs.db  serve decisions over HTTP, and a dashboard

All commands: nilregret --help"""


@click.group(
    cls=Commands, invoke_without_command=True, subcommand_metavar="COMMAND [ARGS]...",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)  # fmt: skip
@click.version_option(package_name="nilregret", prog_name="nilregret")
@click.pass_context
def main(context: click.Context) -> None:
    """Decisions made again and again while learning: Gaussian-process (kernelized) bandits.

    `nilregret COMMAND --help` has the options of a command, and examples.
    """
    if context.invoked_subcommand is None:
        from . import __version__  # slow to find

        click.echo(GREETING.format(__version__))


@main.command(short_help="Tune what a TOML file describes.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--trials", type=click.IntRange(min=1), help="How many trials in all, instead of the file's number.")
@click.option("--seconds", type=click.FloatRange(min=0.0, min_open=True), help="After which no trial begins.")
@click.option("--storage", help="URL of the database, e.g. sqlite:///studies.db, instead of the file's.")
@click.option(
    "--plot", type=click.Path(path_type=Path, dir_okay=False), help="Where the PNG goes, instead of beside FILE."
)
@click.option(
    "--workers",
    type=click.IntRange(min=1, max=1000),
    default=1,
    show_default=True,
    help="Evaluations at once, each in a process of its own.",
)
@click.option("--cluster", metavar="ADDRESS", help="Evaluate on the cluster of Dask whose scheduler is there instead.")
@handled(interrupt)
def tune(
    file: Path, trials: int | None, seconds: float | None, storage: str | None, plot: Path | None, workers: int,
    cluster: str | None,
) -> None:  # fmt: skip
    """Tune what FILE (TOML) describes: try parameters, learn, try better ones.

    The objective is maximised. With goal = "minimize" at the top of FILE it is a loss, and is minimised.

    Every trial is on disk the moment it is known. Stop with Ctrl-C (or a crash) and run the same command again: the
    study goes on where it was. A finished study is only shown. Raise --trials to go on.

    With --workers or --cluster what is tried next takes into account what is being evaluated.
    """
    from ._utils.files import check_picture
    from .cli.overview import front_json, front_table
    from .study.terminal import show
    from .tuning.loop import REFUSED
    from .tuning.run_options import INTERRUPTED, check_lengths
    from .tuning.toml import config
    from .tuning.toml.run import pool, run

    try:
        job = config.load(file)
        job = replace(job, trials=trials or job.trials, seconds=seconds or job.seconds, storage=storage or job.storage)
        check_lengths(job.trials, job.seconds, what=f"{file}: the entry `trials`")
        job = replace(job, plot=check_picture(plot) if plot else job.plot)
        with pool(workers, cluster) as executor:
            result = run(job, executor)
        why = result.stopped.partition(":")[0]
        if why in (INTERRUPTED, "executor"):
            raise SystemExit(130 if why == INTERRUPTED else 1)
        echo(repr(result))
        if len(job.goals) > 1:
            show(front_table(front_json(result.study)))
        _picture(job, result.study)
        echo(f"next: {shlex.join(['nilregret', 'show', _brief(job.storage), job.name])}")
        if why == REFUSED:
            raise SystemExit(1)
    except NoRegretError as error:
        raise click.ClickException(sentence_of(error)) from error


@main.command(short_help="Make a paper's figure again, and judge what the paper says about it.")
@click.argument("figures", nargs=-1, metavar="[FIGURE]...")
@click.option("--trials", type=click.IntRange(min=1), help="Repetitions, instead of the paper's number.")
@click.option("--jobs", type=int, default=1, show_default=True, help="Processes; -1 for one on every processor.")
@click.option("--cluster", metavar="ADDRESS", help="Instead, the cluster of Dask whose scheduler is there.")
@click.option("--quick", is_flag=True, help="A small version within seconds; its verdicts are a first look only.")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), default=Path(), help="Where files go, instead of here."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of everything random.")
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the data sets that the list names, instead of NILREGRET_DATA.",
)
@click.option("--tabulate", metavar="TABLE", help="Instead, make a table that figures are computed from; see docs.")
@click.option(
    "--picture", type=click.Choice(["png", "svg", "pdf"]), default="png", show_default=True, help="Format of pictures."
)
@click.option("--width", type=click.Choice(["column", "page"]), help="Pictures for a paper: 3.3 or 6.8 inches.")
@click.option("--all", "every", is_flag=True, help="All figures of all papers whose data are there.")
@click.option(
    "--report", type=click.Path(path_type=Path, dir_okay=False), help="Also a Markdown table of all verdicts."
)
@handled(interrupt)
def papers(
    figures: tuple[str, ...],
    trials: int | None,
    jobs: int,
    cluster: str | None,
    quick: bool,
    out: Path,
    seed: int,
    data: Path | None,
    tabulate: str | None,
    picture: str,
    width: str | None,
    every: bool,
    report: Path | None,
) -> None:
    """Make a figure of a paper again: FIGURE.csv, FIGURE.png and FIGURE.txt, and what holds of it.

    Without FIGURE: the list of them. With the name of a paper, such as srinivas: the list of its figures. A run that is
    smaller than the figure (--quick, or few --trials) writes FIGURE-quick.csv and so on. The result depends on --seed
    and the size alone, not on --jobs.
    """
    from .papers import run
    from .tuning.toml.run import pool

    made: list[run.Made] = []
    run.check_named(figures, every=every, report=report)

    try:
        if tabulate:
            run.tabulate(tabulate, out, data)
        elif not figures and not every:
            click.echo(run.listing())
            return
        elif not every and (offered := run.offer(figures)):
            click.echo(offered)
            return
        # Wrong names, places and missing data are errors before the first figure is made.
        chosen = run.every(data) if every else run.wanted(figures, data)
        with pool(1, cluster) as executor:
            for figure in run.checked(chosen, out, report):
                job = figure.job(trials=trials, quick=quick, seed=seed, jobs=jobs, executor=executor, data=data)
                made.append(run.run(figure, job, out, picture, width))
                if report:  # After each figure, since all of them take long.
                    run.report(made, report)
    except KeyboardInterrupt:
        click.echo("Stopped; nothing was written for the figure that was being made.", err=True)
        raise SystemExit(130) from None
    except NoRegretError as error:
        raise click.ClickException(sentence_of(error)) from error


for _command in (*COMMANDS, evaluate, work, serve, token):
    main.add_command(_command)


def _brief(storage: str) -> str:
    """Returns the path of an SQLite file from here, or another URL as it is."""
    if not storage.startswith("sqlite:///"):
        return storage
    path = Path(storage.removeprefix("sqlite:///"))
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _picture(job: config.TuningFile, study: Study) -> None:
    from . import plots

    try:
        plots.overview(study, job.plot)
    except MissingExtra as error:
        click.echo(f"No picture: {error}")
    except OSError as error:
        raise InvalidInput(
            f"The picture could not be written to {job.plot}: {error}. Choose a place with --plot."
        ) from error
    else:
        click.echo(f"Picture: {job.plot}")


if __name__ == "__main__":
    main()
