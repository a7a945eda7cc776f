"""The loop of a tuning job. It may be stopped anywhere and started again: the study is on disk."""

from __future__ import annotations

import contextlib
from typing import Protocol

from ..errors import TrialError
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


def open_study(job: Job) -> tuple[Study, Evaluate]:
    """The job's study, new or resumed, and its objective. Nothing is stored if the objective cannot be loaded."""
    evaluate = evaluator(job)
    return Study(job.policy, seed=job.seed, storage=job.storage, name=job.name), evaluate


def run(job: Job, study: Study, evaluate: Evaluate, reporter: Reporter) -> None:
    """Evaluate trials until there are as many as the job says."""
    reporter.begun(study)
    # A run that was killed left its trial pending: the same point is evaluated now, under the same number.
    for trial in [trial for trial in study.trials if trial.state == "pending"]:
        reporter.ended(study, _evaluate(job, study, evaluate, trial))
    while len(study.trials) < job.trials:
        reporter.ended(study, _evaluate(job, study, evaluate, study.ask()))


def _evaluate(job: Job, study: Study, evaluate: Evaluate, trial: Trial) -> Trial:
    # Another process of the same study may have been quicker (TrialError): then its answer stands.
    with contextlib.suppress(TrialError):
        try:
            value = evaluate(trial.parameters or {})
        except ObjectiveError as error:
            study.fail(trial, str(error))
        else:
            study.tell(trial, job.sign * value)
    return study.trials[trial.number]
