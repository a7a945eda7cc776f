"""The loop of a tuning job, that of `maximize`. It may be stopped anywhere and started again: the study is on disk."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from typing import Protocol

from ..._utils.errors import NoRegretError
from ...storage.record import Trial
from ...study.study import Study
from .. import opening
from ..executors import at_once, check_sendable
from ..limits import Limited, Task
from ..lock import alone
from ..loop import Loop
from .config import TuningFile
from .evaluation import evaluator


class Reporter(Protocol):
    """Who is told how it goes."""

    def begun(self, study: Study) -> None:
        """Before the first trial of this run."""

    def ended(self, study: Study, trial: Trial) -> None:
        """After each trial, failed ones included."""


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


def run(job: TuningFile, study: Study, task: Task, reporter: Reporter, executor: Executor | None = None) -> None:
    """Evaluate trials until there are as many as the job says."""
    reporter.begun(study)
    loop = Loop(
        study, task, trials=job.trials, ended=partial(reporter.ended, study), executor=executor,
        in_flight=at_once(executor, None),
    )  # fmt: skip
    stopped = loop.run()
    if stopped is not None:
        raise NoRegretError(f"Stopped: {stopped}. Nothing is lost: run the same command again to go on.")
