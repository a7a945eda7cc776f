"""The loop of a tuning job, that of `maximize`. It may be stopped anywhere and started again: the study is on disk."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, closing, contextmanager

from ..._utils.checks import many
from ..._utils.errors import NoRegretError
from ...study.study import Study
from .. import opening
from ..executors import at_once, check_sendable
from ..limits import Limited, Task
from ..lock import alone
from ..loop import Loop
from ..progress import Bar
from .config import TuningFile
from .evaluation import evaluator
from .report import ended_trials, opening_line


@contextmanager
def opened(job: TuningFile, executor: Executor | None = None) -> Iterator[tuple[Study, Task]]:
    """The job's study, new or resumed, and its objective. Nothing is stored if the objective cannot be loaded.

    One tuner at a time; a finished study is only looked at.
    """
    task = evaluator(job, executor)
    check_sendable(task, executor)
    study = opening.opened(
        job.domain,
        job.policy,
        goal=job.goal,
        seed=job.seed,
        storage=job.storage,
        name=job.name,
        budget=job.trials,
        parallel=at_once(executor, None),
        limits=job.limits,
        # The goal, as files have it from before studies had one; those are continued, too.
        about={"goal": job.goal, **job.limits.facts},
    )
    with ExitStack() as during:
        during.enter_context(alone(study, job.storage, trials=job.trials))
        if isinstance(task, Limited):
            during.enter_context(closing(task))
        yield study, task


def run(job: TuningFile, study: Study, task: Task, bar: Bar, executor: Executor | None = None) -> None:
    """Evaluates trials until there are as many as the job says."""
    bar.say(opening_line(job, study))
    bar.begun(study)
    loop = Loop(study, task, trials=job.trials, ended=bar.ended, executor=executor, in_flight=at_once(executor, None))
    try:
        stopped = loop.run()
    except KeyboardInterrupt:
        done = f"{ended_trials(study)} of {many(job.trials, 'trial')}"
        bar.say(f"Stopped after {done}; run the same command again to go on.")
        raise
    if stopped is not None:
        raise NoRegretError(f"Stopped: {stopped}. Nothing is lost: run the same command again to go on.")
