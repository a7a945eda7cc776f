"""The run of a tuning job, in the loop of `maximize`. The study is on disk, so a run may be stopped and resumed."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, closing, contextmanager

from ..._utils.checks import many
from ...errors import NoRegretError
from ...study.study import Study
from ..loop import Loop
from ..open_study import open_study
from ..progress import Bar
from ..run_lock import run_lock
from ..run_options import check_sendable, in_flight_count
from ..time_limit import Task, TimeLimited
from .config import TuningFile
from .evaluation import evaluator
from .report import ended_trials, opening_line


@contextmanager
def opened(job: TuningFile, executor: Executor | None = None) -> Iterator[tuple[Study, Task]]:
    """Yields the job's study, new or resumed, and its objective. Nothing is stored if the objective cannot be loaded.

    There is one run at a time. A finished study is only read.
    """
    task = evaluator(job, executor)
    check_sendable(task, executor)
    study = open_study(
        job.domain,
        job.policy,
        goal=job.goal,
        seed=job.seed,
        storage=job.storage,
        name=job.name,
        budget=job.trials,
        parallel=in_flight_count(executor, None),
        reader=job.reader,
        about=job.reader.facts,
        like=job.like,
    )
    with ExitStack() as stack:
        stack.enter_context(run_lock(study, job.storage, trials=job.trials))
        if isinstance(task, TimeLimited):
            stack.enter_context(closing(task))
        yield study, task


def run(job: TuningFile, study: Study, task: Task, bar: Bar, executor: Executor | None = None) -> None:
    """Evaluates trials until there are as many as the job says."""
    bar.say(opening_line(job, study))
    bar.begun(study)
    loop = Loop(
        study, task, trials=job.trials, ended=bar.ended, executor=executor, in_flight=in_flight_count(executor, None)
    )
    try:
        stopped = loop.run()
    except KeyboardInterrupt:
        done = f"{ended_trials(study)} of {many(job.trials, 'trial')}"
        bar.say(f"Stopped after {done}; run the same command again to go on.")
        raise
    if stopped is not None:
        raise NoRegretError(f"Stopped: {stopped}. Nothing is lost: run the same command again to go on.")
