"""The command that evaluates trials of a study as a worker."""

from __future__ import annotations

from contextlib import ExitStack, closing

import click

from .._utils.checks import many
from .._utils.signals import handled, interrupt
from .common import NEGATIVE_NUMBERS, complete_study, echo, opened_study
from .errors import with_error_sentences

LEASE = 3600.0  # seconds until other workers take a trial for abandoned


@click.command(short_help="Join a study as a worker: ask, evaluate, tell.", context_settings=NEGATIVE_NUMBERS)
@click.argument("storage")
@click.argument("study", shell_complete=complete_study)
@click.argument("objective")
@click.option("--trials", type=click.IntRange(min=1), required=True, help="Trials wanted in all, of all workers.")
@click.option(
    "--lease",
    type=click.FloatRange(min=0.0, min_open=True),
    default=LEASE,
    show_default=True,
    metavar="SECONDS",
    help="After which others take a trial of this worker for abandoned; longer than an evaluation.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.0, min_open=True),
    metavar="SECONDS",
    help="That an evaluation may take; then its trial fails.",
)
@with_error_sentences
@handled(interrupt)
def work(storage: str, study: str, objective: str, trials: int, lease: float, timeout: float | None) -> None:
    """Evaluate trials of STUDY until it has enough of them. Any number of workers may do so at once.

    OBJECTIVE is module:function, called with the parameters as keyword arguments, or a tuning file (TOML), whose
    [objective] it is. SIGTERM and Ctrl-C give up the trial that is under way, at once.
    """
    from ..tuning.loop import Lease, Loop
    from ..tuning.time_limit import TimeLimited
    from ..tuning.toml.evaluation import task_of

    found = opened_study(storage, study)
    task = task_of(found, objective, timeout=timeout)
    with ExitStack() as during:
        if isinstance(task, TimeLimited):
            during.enter_context(closing(task))
            task.start()
        loop = Loop(found, task, trials=trials, ended=lambda trial: echo(repr(trial)), lease=Lease(lease, echo))
        loop.run()
    echo(f"Study {found.name!r} has {many(len(found.trials), 'trial')}, {loop.evaluated} of them evaluated here.")
