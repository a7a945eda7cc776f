"""Evaluating an objective: a Python function, or a shell command whose last line of output is the answer."""

from __future__ import annotations

import contextlib
import inspect
import json
import math
import subprocess
from collections.abc import Callable, Mapping
from numbers import Real
from pathlib import Path
from typing import Any

from ..checks import LARGEST_REWARD
from ..domain import Space
from ..errors import InvalidInput
from ..parameters import Choice
from . import shell
from .config import Evaluation, TuningFile
from .outside import SHOWN, exception_text, imported, one_line
from .template import filled

NEED_DEFAULTS = " Those with `when` are left out where they do not count: give them defaults."
Evaluate = Callable[[Mapping[str, Any]], float]


class ObjectiveError(Exception):
    """The objective gave no usable number; the message says why."""


def evaluator(job: TuningFile) -> Evaluate:
    """The function from parameters to the objective's number; what can be checked beforehand is."""
    if job.objective.function is not None:
        return _function(job.objective.function, job.folder, job.space)
    return _command(job.objective, job.folder, job.space)


def _function(reference: str, folder: Path, space: Space) -> Evaluate:
    names = list(space.parameters)
    conditional = () if space.conditions is None else space.conditions.needs
    module_name, _, function_name = reference.partition(":")
    if not module_name or not function_name:
        raise InvalidInput(f"[objective] `function` is {reference!r}: write 'module:function', such as 'svm:accuracy'.")
    function = imported("[objective] `function`", reference, module_name, function_name, folder)
    try:
        inspect.signature(function).bind(**dict.fromkeys(names))
        inspect.signature(function).bind(**dict.fromkeys(name for name in names if name not in conditional))
    except TypeError as error:
        raise InvalidInput(
            f"[objective] `function` {reference!r} cannot be called with the parameters {', '.join(names)} as keyword "
            f"arguments: {error}.{NEED_DEFAULTS if conditional else ''}"
        ) from error
    except ValueError:  # a built-in without a signature: the first trial will tell
        pass

    def evaluate(parameters: Mapping[str, Any]) -> float:
        try:
            answer = function(**parameters)
        except (Exception, SystemExit) as error:
            raise ObjectiveError(exception_text(error)) from error
        return _reward(answer)

    return evaluate


def _command(objective: Evaluation, folder: Path, space: Space) -> Evaluate:
    choices = [p.options for p in space.parameters.values() if isinstance(p, Choice)]
    texts = [option for options in choices for option in options if isinstance(option, str)]
    command = filled(objective.command or "", space.parameters, options=texts)

    def evaluate(parameters: Mapping[str, Any]) -> float:
        try:
            ended = shell.run(command(parameters), folder, objective.timeout)
        except subprocess.TimeoutExpired:
            raise ObjectiveError(f"no answer within {objective.timeout:g} s") from None
        except (OSError, ValueError) as error:
            raise ObjectiveError(f"it could not be started: {exception_text(error)}") from error
        if ended.status != 0:
            said = one_line(ended.complained) or one_line(ended.said) or "it said nothing"
            raise ObjectiveError(f"exit status {ended.status}: {said}")
        lines = ended.said.strip().splitlines()
        if not lines:
            raise ObjectiveError("it printed nothing; its last line must be a number or JSON")
        return _reward(_parsed(lines[-1].strip()))

    return evaluate


def _parsed(line: str) -> object:
    with contextlib.suppress(ValueError):
        return float(line)  # also .5, 5. and +0.5, which are not JSON
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        raise ObjectiveError(f"its last line is neither a number nor JSON: {line[:SHOWN]!r}") from None


def _reward(answer: object) -> float:
    """The number in an answer: itself, or the entry "reward" of a mapping."""
    if isinstance(answer, Mapping):
        if "reward" not in answer:
            raise ObjectiveError(f"its answer has no entry 'reward', only {', '.join(map(repr, answer)) or 'nothing'}")
        answer = answer["reward"]
    if hasattr(answer, "item") and getattr(answer, "ndim", None) == 0:
        answer = answer.item()  # a numpy or torch scalar
    if isinstance(answer, bool) or not isinstance(answer, Real):
        raise ObjectiveError(f"its answer is not a number: {str(answer)[:SHOWN]!r} ({type(answer).__name__})")
    try:
        value = float(answer)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise ObjectiveError(f"its answer is {value}, which is not finite")
    if abs(value) > LARGEST_REWARD:
        raise ObjectiveError(f"its answer is {value:g}; it must lie within {LARGEST_REWARD:g} of 0")
    return value
