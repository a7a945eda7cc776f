"""Evaluating an objective: a Python function, or a shell command whose last line of output is the answer."""

from __future__ import annotations

import importlib
import inspect
import json
import math
import shlex
import string
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from pathlib import Path
from typing import Any

from ..errors import InvalidInput
from .config import Job, Objective

Evaluate = Callable[[Mapping[str, Any]], float]
SHOWN = 200  # characters of an objective's output that an error repeats


class ObjectiveError(Exception):
    """The objective gave no usable number; the message says why."""


def evaluator(job: Job) -> Evaluate:
    """The function from parameters to the objective's number; what can be checked beforehand is."""
    names = list(job.domain.parameters(0))
    if job.objective.function is not None:
        return _function(job.objective.function, job.folder, names)
    return _command(job.objective, job.folder, names)


def _function(reference: str, folder: Path, names: Iterable[str]) -> Evaluate:
    module_name, _, function_name = reference.partition(":")
    if not module_name or not function_name:
        raise InvalidInput(f"[objective] `function` is {reference!r}: write 'module:function', such as 'svm:accuracy'.")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        function = getattr(importlib.import_module(module_name), function_name)
    except Exception as error:
        raise InvalidInput(
            f"[objective] `function` {reference!r} could not be loaded from {folder}: {type(error).__name__}: {error}. "
            "The module must lie beside the TOML file or be installed, with everything it imports."
        ) from error
    try:
        inspect.signature(function).bind(**dict.fromkeys(names))
    except TypeError as error:
        raise InvalidInput(
            f"[objective] `function` {reference!r} cannot be called with the parameters {', '.join(names)} as keyword "
            f"arguments: {error}."
        ) from error
    except ValueError:  # a built-in without a signature: the first trial will tell
        pass

    def evaluate(parameters: Mapping[str, Any]) -> float:
        try:
            answer = function(**parameters)
        except Exception as error:
            raise ObjectiveError(f"{type(error).__name__}: {error}") from error
        return _reward(answer)

    return evaluate


def _command(objective: Objective, folder: Path, names: Iterable[str]) -> Evaluate:
    template = objective.command or ""
    try:
        used = {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}
    except ValueError as error:
        raise InvalidInput(
            f"[objective] `command` {template!r}: {error}. Write {{{{ and }}}} for braces meant for the shell."
        ) from error
    if not used <= set(names):
        raise InvalidInput(
            f"[objective] `command` names {', '.join(sorted(map(repr, used - set(names))))}; the parameters are "
            f"{', '.join(names)}. Write {{{{ and }}}} for braces meant for the shell."
        )

    def evaluate(parameters: Mapping[str, Any]) -> float:
        command = template.format(**{name: shlex.quote(str(value)) for name, value in parameters.items()})
        try:
            done = subprocess.run(
                command, shell=True, cwd=folder, capture_output=True, text=True, errors="replace",
                timeout=objective.timeout, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise ObjectiveError(f"no answer within {objective.timeout:g} s") from None
        if done.returncode != 0:
            said = (done.stderr.strip() or done.stdout.strip() or "it said nothing")[-SHOWN:]
            raise ObjectiveError(f"exit status {done.returncode}: {said}")
        lines = done.stdout.strip().splitlines()
        if not lines:
            raise ObjectiveError("it printed nothing; its last line must be a number or JSON")
        try:
            answer = json.loads(lines[-1])
        except json.JSONDecodeError:
            raise ObjectiveError(f"its last line is neither a number nor JSON: {lines[-1][:SHOWN]!r}") from None
        return _reward(answer)

    return evaluate


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
    if not math.isfinite(answer):
        raise ObjectiveError(f"its answer is {float(answer)}, which is not finite")
    return float(answer)
