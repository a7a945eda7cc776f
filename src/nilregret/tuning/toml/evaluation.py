"""Evaluating what a file names: a Python function, or a shell command whose last line of output is the answer."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, final

from ..._utils.checks import shown
from ..._utils.errors import SHOWN, InvalidInput, exception_text, one_line
from ..._utils.imports import imported
from ...domains.domain import Space
from ...domains.parameters import Choice
from ...study.study import Study
from ..answers import Outcome, Unusable, attempt
from ..feasibility import Limits, limits_of
from ..limits import LONGEST, Limited, Task
from ..objective import Evaluation, check_objective
from ..opening import check_count
from ..session import check_no_context
from . import config, shell
from .template import filled


def evaluator(job: config.TuningFile, executor: Executor | None = None) -> Task:
    """What evaluates parameters, here or on an executor; what can be checked beforehand is.

    In threads each evaluation is in a process of its own: it computes beside the others, and can be ended.
    """
    objective = job.objective
    apart = isinstance(executor, ThreadPoolExecutor)
    if objective.function is None:
        command = _command(objective, job.folder, job.space, job.limits)  # which ends by itself after its time
        return Limited(command, LONGEST) if apart else command
    task = _function(objective.function, job.folder, job.space, job.limits)
    if executor is not None:
        task = Sent(objective.function, job.folder, job.limits)
    if objective.timeout is not None:
        return Limited(task, objective.timeout)
    return Limited(task, LONGEST) if apart else task


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


@final
@dataclass(frozen=True)
class Sent:
    """A function that whoever gets it imports for itself, where the folder of the file is: on a disk that they share.

    Attributes:
        reference: "module:function".
        folder: that of the file.
        limits: what answers must satisfy.
    """

    reference: str
    folder: Path
    limits: Limits

    def __call__(self, at: Mapping[str, Any]) -> Outcome:
        """What came of one evaluation."""
        module, _, name = self.reference.partition(":")
        function = imported("[objective] `function`", self.reference, module, name, self.folder)
        return Evaluation(function, self.limits)(at)._replace(error=None)


def _function(reference: str, folder: Path, space: Space, limits: Limits) -> Task:
    module_name, _, function_name = reference.partition(":")
    if not module_name or not function_name:
        raise InvalidInput(f"[objective] `function` is {reference!r}: write 'module:function', such as 'svm:accuracy'.")
    function = imported("[objective] `function`", reference, module_name, function_name, folder)
    check_objective(function, space, what=f"[objective] `function` {reference!r}")
    return Evaluation(function, limits)


def _command(objective: config.Evaluation, folder: Path, space: Space, limits: Limits) -> Task:
    choices = [p.options for p in space.parameters.values() if isinstance(p, Choice)]
    texts = [option for options in choices for option in options if isinstance(option, str)]
    command = filled(objective.command or "", space.parameters, options=texts)

    def outcome(at: Mapping[str, Any]) -> Outcome:
        return limits.read(_printed(command, folder, objective.timeout, at), lambda function: function(**at))

    return lambda at: attempt(partial(outcome, at))


def _printed(
    command: Callable[[Mapping[str, Any]], str], folder: Path, timeout: float | None, parameters: Mapping[str, Any]
) -> object:
    """What the last line of a command's output says."""
    try:
        ended = shell.run(command(parameters), folder, timeout)
    except subprocess.TimeoutExpired:
        raise Unusable(f"no answer within {timeout:g} s") from None
    except (OSError, ValueError) as error:
        raise Unusable(f"it could not be started: {exception_text(error)}") from error
    if ended.status != 0:
        said = one_line(ended.complained) or one_line(ended.said) or "it said nothing"
        raise Unusable(f"exit status {ended.status}: {said}")
    lines = ended.said.strip().splitlines()
    if not lines:
        raise Unusable("it printed nothing; its last line must be a number or JSON")
    return _parsed(lines[-1].strip())


def _parsed(line: str) -> object:
    with contextlib.suppress(ValueError):
        return float(line)  # also .5, 5. and +0.5, which are not JSON
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        raise Unusable(f"its last line is neither a number nor JSON: {line[:SHOWN]!r}") from None
