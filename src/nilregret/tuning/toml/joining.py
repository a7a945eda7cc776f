"""A worker that joins a study by itself: it asks with a lease, evaluates and tells; it shares the storage alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ..._utils.checks import shown
from ..._utils.errors import InvalidInput, StorageError, TrialError
from ..._utils.imports import imported
from ...storage.record import Trial
from ...study.study import Study
from ..feasibility import limits_of
from ..limits import Limited, Task
from ..objective import Evaluation, check_objective
from ..opening import check_count
from ..session import check_no_context
from . import config
from .evaluation import evaluator

WAITS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # seconds before an answer is told again that the storage did not take
STOPPED = "its worker was asked to end"


def objective_of(study: Study, reference: str, *, timeout: float | None) -> Task:
    """What evaluates a study's trials.

    Args:
        study: whose.
        reference: "module:function", of a module in the current folder or installed; or the path of a tuning file.
        timeout: seconds that an evaluation may take; of a tuning file its own, unless given.
    """
    check_no_context(study.policy)
    if reference.endswith(".toml"):
        return _of_file(study, Path(reference), timeout)
    module, _, name = reference.partition(":")
    if not module or not name:
        raise InvalidInput(
            f"The objective is {shown(reference)}: it must be 'module:function', such as 'svm:accuracy', or a tuning "
            "file, which ends in .toml."
        )
    function = imported("The objective", reference, module, name, Path.cwd())
    check_objective(function, study.policy.domain, what=f"The objective {reference!r}")
    task = Evaluation(function, limits_of(study.policy.constraint_count or None))
    return task if timeout is None else Limited(task, timeout)


def _of_file(study: Study, path: Path, timeout: float | None) -> Task:
    job = config.load(path)
    if job.domain != study.policy.domain or job.goal != study.goal:
        raise InvalidInput(
            f"{path} is of other parameters, or another goal, than study {study.name!r}: it must be the file that the "
            "study was made from."
        )
    check_count(study.policy, job.limits)
    task = evaluator(job)
    return task if timeout is None or isinstance(task, Limited) else Limited(task, timeout)


def work(
    study: Study,
    task: Task,
    *,
    trials: int,
    lease: float,
    say: Callable[[str], object],
    wait: Callable[[float], object] = time.sleep,
) -> int:
    """Ask, evaluate and tell until a study has enough trials; returns how many this worker evaluated.

    An interrupt gives up the trial that is under way. Should this process be killed, its lease runs out.

    Args:
        study: whose trials they are.
        task: from where to evaluate to what came of it.
        trials: wanted in all, of all workers; those that were abandoned do not count. Workers that ask at the same
            moment may make as many more as there are others.
        lease: seconds after which a trial counts as abandoned; longer than an evaluation takes.
        say: called with a line for each trial.
        wait: called with seconds.
    """
    done = 0
    while sum(trial.state != "abandoned" for trial in study.trials) < trials:
        trial = study.ask(lease=lease)
        try:
            say(_evaluated(study, task, trial, wait))
        except KeyboardInterrupt:
            with suppress(TrialError):  # told already
                study.abandon(trial, STOPPED)
            raise
        done += 1
    return done


def _evaluated(study: Study, task: Task, trial: Trial, wait: Callable[[float], object]) -> str:
    outcome = task(trial.point.copy() if trial.settings is None else trial.parameters)
    value, constraints, reason = outcome.value, outcome.constraints, outcome.reason or "it gave no reason"

    def tell() -> Trial:
        if value is None:
            return study.fail(trial, reason)
        return study.tell(trial, value, constraints=constraints)

    try:
        return repr(_kept_trying(tell, wait))
    except TrialError as error:  # somebody answered it meanwhile; that holds
        return f"trial {trial.number}: {error}"


def _kept_trying(tell: Callable[[], Trial], wait: Callable[[float], object]) -> Trial:
    """An answer may have cost hours, and the same one twice is one: it is told again where a storage was away."""
    for seconds in WAITS:
        try:
            return tell()
        except StorageError:
            wait(seconds)
    return tell()
