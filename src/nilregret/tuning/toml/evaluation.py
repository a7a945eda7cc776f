"""The evaluation of a file's objective: a Python function, or a shell command that prints its answer last."""

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
from ..constraints import ConstraintReader, constraint_reader
from ..objective import Evaluation, check_objective
from ..open_study import check_constraint_count
from ..outcome import Outcome, Unusable, attempt
from ..run_options import check_no_context
from ..time_limit import LONGEST, Task, TimeLimited
from . import config, shell
from .command_template import filled


def evaluator(job: config.TuningFile, executor: Executor | None = None) -> Task:
    """Returns the task of a tuning file, for this process or for an executor, after all checks that need no trial.

    With an executor of threads each evaluation runs in a process of its own. So evaluations run in parallel and can be
    ended.
    """
    objective = job.objective
    apart = isinstance(executor, ThreadPoolExecutor)
    if objective.function is None:
        command = _command(objective, job.folder, job.space, job.reader)  # It has a time limit of its own.
        return TimeLimited(command, LONGEST) if apart else command
    task = _function(objective.function, job.folder, job.space, job.reader)
    if executor is not None:
        task = ImportedFunction(objective.function, job.folder, job.reader)
    if objective.timeout is not None:
        return TimeLimited(task, objective.timeout)
    return TimeLimited(task, LONGEST) if apart else task


def task_of(study: Study, reference: str, *, timeout: float | None) -> Task:
    """Returns the task that evaluates a study's trials.

    Args:
        study: the study.
        reference: "module:function", with a module in the current folder or an installed one. Or the path of a tuning
            file.
        timeout: seconds that an evaluation may take. Unless given, that of the tuning file.
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
    task = Evaluation(function, constraint_reader(study.policy.constraint_count or None))
    return task if timeout is None else TimeLimited(task, timeout)


def _of_file(study: Study, path: Path, timeout: float | None) -> Task:
    job = config.load(path)
    if job.domain != study.policy.domain or job.goal != study.goal:
        raise InvalidInput(
            f"{path} is of other parameters, or another goal, than study {study.name!r}: it must be the file that the "
            "study was made from."
        )
    check_constraint_count(study.policy, job.reader)
    task = evaluator(job)
    return task if timeout is None or isinstance(task, TimeLimited) else TimeLimited(task, timeout)


@final
@dataclass(frozen=True)
class ImportedFunction:
    """A task that a remote worker imports by itself, from the folder of the file on a shared disk.

    Attributes:
        reference: "module:function".
        folder: folder of the file.
        reader: reads the constraint values of answers.
    """

    reference: str
    folder: Path
    reader: ConstraintReader

    def __call__(self, at: Mapping[str, Any]) -> Outcome:
        """Returns the outcome of one evaluation."""
        module, _, name = self.reference.partition(":")
        function = imported("[objective] `function`", self.reference, module, name, self.folder)
        return Evaluation(function, self.reader)(at)._replace(error=None)


def _function(reference: str, folder: Path, space: Space, reader: ConstraintReader) -> Task:
    module_name, _, function_name = reference.partition(":")
    if not module_name or not function_name:
        raise InvalidInput(f"[objective] `function` is {reference!r}: write 'module:function', such as 'svm:accuracy'.")
    function = imported("[objective] `function`", reference, module_name, function_name, folder)
    check_objective(function, space, what=f"[objective] `function` {reference!r}")
    return Evaluation(function, reader)


def _command(objective: config.Evaluation, folder: Path, space: Space, reader: ConstraintReader) -> Task:
    choices = [p.options for p in space.parameters.values() if isinstance(p, Choice)]
    texts = [option for options in choices for option in options if isinstance(option, str)]
    command = filled(objective.command or "", space.parameters, options=texts)

    def outcome(at: Mapping[str, Any]) -> Outcome:
        return reader.read(_printed(command, folder, objective.timeout, at), lambda function: function(**at))

    return lambda at: attempt(partial(outcome, at))


def _printed(
    command: Callable[[Mapping[str, Any]], str], folder: Path, timeout: float | None, parameters: Mapping[str, Any]
) -> object:
    """Returns the answer in the last line of a command's output."""
    try:
        ended = shell.run(command(parameters), folder, timeout)
    except subprocess.TimeoutExpired:
        raise Unusable(f"no answer within {timeout:g} s") from None
    except (OSError, ValueError) as error:
        raise Unusable(f"it could not be started: {exception_text(error)}") from error
    if ended.status != 0:
        message = one_line(ended.errors) or one_line(ended.output) or "it said nothing"
        raise Unusable(f"exit status {ended.status}: {message}")
    lines = ended.output.strip().splitlines()
    if not lines:
        raise Unusable("it printed nothing; its last line must be a number or JSON")
    return _parsed(lines[-1].strip())


def _parsed(line: str) -> object:
    with contextlib.suppress(ValueError):
        return float(line)  # It also reads .5, 5. and +0.5, which are not JSON.
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        raise Unusable(f"its last line is neither a number nor JSON: {line[:SHOWN]!r}") from None
