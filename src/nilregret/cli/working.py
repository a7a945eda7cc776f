"""The command of a machine that joins a study by itself."""

from __future__ import annotations

import signal
from contextlib import ExitStack, closing

import click

from .._utils.checks import many
from .common import SEVERAL, opened_study, say
from .refusals import in_sentences

LEASE = 3600.0  # seconds


@click.command(short_help="Join a study as a worker: ask, evaluate, tell.", context_settings=SEVERAL)
@click.argument("storage")
@click.argument("study")
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
@in_sentences
def work(storage: str, study: str, objective: str, trials: int, lease: float, timeout: float | None) -> None:
    """Evaluate trials of STUDY until it has enough of them; any number of workers may do so at once.

    OBJECTIVE is module:function, called with the parameters as keyword arguments, or a tuning file (TOML), whose
    [objective] it is. SIGTERM and Ctrl-C give up the trial that is under way, at once.
    """
    from ..tuning.limits import Limited
    from ..tuning.loop import Lease, Loop
    from ..tuning.toml.evaluation import objective_of

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    found = opened_study(storage, study)
    task = objective_of(found, objective, timeout=timeout)
    with ExitStack() as during:
        if isinstance(task, Limited):
            during.enter_context(closing(task))
            task.start()
        loop = Loop(found, task, trials=trials, ended=lambda trial: say(repr(trial)), lease=Lease(lease, say))
        loop.run()
    say(f"Study {found.name!r} has {many(len(found.trials), 'trial')}, {loop.evaluated} of them evaluated here.")
