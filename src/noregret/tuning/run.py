"""The loop of a tuning job. It may be stopped anywhere and started again: the study is on disk."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Protocol

from ..errors import StorageError
from ..record import Trial
from ..study import Study
from .config import Job
from .objective import Evaluate, ObjectiveError, evaluator


class Reporter(Protocol):
    """Who is told how it goes."""

    def begun(self, study: Study) -> None:
        """Before the first trial of this run."""

    def ended(self, study: Study, trial: Trial) -> None:
        """After each trial, failed ones included."""


@contextmanager
def opened(job: Job) -> Iterator[tuple[Study, Evaluate]]:
    """The job's study, new or resumed, and its objective. Nothing is stored if the objective cannot be loaded.

    One tuner at a time: a second one could not tell a trial that is being evaluated from one that a crash left behind.
    The operating system releases the lock, however the process ends.
    """
    evaluate = evaluator(job)
    about = {"goal": job.objective.goal}
    study = Study(job.policy, seed=job.seed, storage=job.storage, name=job.name, about=about)
    with closing(_lock(job.storage)):
        yield study, evaluate


def _lock(storage: str) -> sqlite3.Connection:
    """A lock that ends with the process at the latest: the write lock of an empty database beside the real one."""
    lock = sqlite3.connect(storage.removeprefix("sqlite:///") + ".lock", timeout=0.0, isolation_level=None)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        lock.close()
        raise StorageError(
            f"Another process is tuning in {storage} ({error}). Wait for it or stop it; to tune several things at once "
            "give each its own storage."
        ) from error
    return lock


def run(job: Job, study: Study, evaluate: Evaluate, reporter: Reporter) -> None:
    """Evaluate trials until there are as many as the job says."""
    reporter.begun(study)
    # A run that was killed left its trial pending: the same point is evaluated now, under the same number.
    for trial in [trial for trial in study.trials if trial.state == "pending"]:
        reporter.ended(study, _evaluate(job, study, evaluate, trial))
    while len(study.trials) < job.trials:
        reporter.ended(study, _evaluate(job, study, evaluate, study.ask()))


def _evaluate(job: Job, study: Study, evaluate: Evaluate, trial: Trial) -> Trial:
    try:
        value = evaluate(trial.parameters or {})
    except ObjectiveError as error:
        return study.fail(trial, str(error))
    return study.tell(trial, job.sign * value)
