"""The loop of a tuning job. It may be stopped anywhere and started again: the study is on disk."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Protocol

from ..errors import StorageError
from ..record import Trial
from ..study.study import Study
from .config import TuningFile
from .evaluation import Evaluate, ObjectiveError, evaluator


class Reporter(Protocol):
    """Who is told how it goes."""

    def begun(self, study: Study) -> None:
        """Before the first trial of this run."""

    def ended(self, study: Study, trial: Trial) -> None:
        """After each trial, failed ones included."""


@contextmanager
def opened(job: TuningFile) -> Iterator[tuple[Study, Evaluate]]:
    """The job's study, new or resumed, and its objective. Nothing is stored if the objective cannot be loaded.

    One tuner at a time: a second one could not tell a trial that is being evaluated from one that a crash left behind.
    The operating system releases the lock, however the process ends. A finished study is only looked at, which takes
    no lock: it may lie where nothing can be written.
    """
    evaluate = evaluator(job)
    about = {"goal": job.goal}  # as files have it from before studies had a goal; those are continued, too
    study = Study(job.policy, goal=job.goal, seed=job.seed, storage=job.storage, name=job.name, about=about)
    if finished(job, study):
        yield study, evaluate
        return
    with closing(_lock(job.storage)):
        yield study, evaluate


def finished(job: TuningFile, study: Study) -> bool:
    """Whether there is nothing left to evaluate."""
    return len(study.trials) >= job.trials and all(trial.state != "pending" for trial in study.trials)


def _lock(storage: str) -> sqlite3.Connection:
    """A lock that ends with the process at the latest: the write lock of an empty database beside the real one."""
    path = storage.removeprefix("sqlite:///") + ".lock"
    try:
        lock = sqlite3.connect(path, timeout=0.0, isolation_level=None)
    except sqlite3.OperationalError as error:
        raise StorageError(
            f"The lock {path} could not be made ({error}): the folder must be one in which files can be made."
        ) from error
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.DatabaseError as error:
        lock.close()
        if "locked" not in str(error):
            raise StorageError(
                f"The lock {path} could not be taken ({error}): it must be a file that can be written to, and nobody "
                "else's."
            ) from error
        raise StorageError(
            f"Another process is tuning in {storage} ({error}). Wait for it or stop it; to tune several things at once "
            "give each its own storage."
        ) from error
    return lock


def run(job: TuningFile, study: Study, evaluate: Evaluate, reporter: Reporter) -> None:
    """Evaluate trials until there are as many as the job says."""
    reporter.begun(study)
    # A run that was killed left its trial pending: the same point is evaluated now, under the same number.
    for trial in [trial for trial in study.trials if trial.state == "pending"]:
        reporter.ended(study, _evaluate(study, evaluate, trial))
    while len(study.trials) < job.trials:
        reporter.ended(study, _evaluate(study, evaluate, study.ask()))


def _evaluate(study: Study, evaluate: Evaluate, trial: Trial) -> Trial:
    try:
        value = evaluate(trial.parameters or {})
    except ObjectiveError as error:
        return study.fail(trial, str(error))
    return study.tell(trial, value)
