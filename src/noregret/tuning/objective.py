"""Evaluating an objective: a Python function, or a shell command whose last line of output is the answer."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import json
import math
import os
import shlex
import signal
import string
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from pathlib import Path
from typing import Any

from ..checks import LARGEST_REWARD
from ..errors import InvalidInput
from .config import Job, Objective

Evaluate = Callable[[Mapping[str, Any]], float]
SHOWN = 200  # characters of an objective's output that an error repeats


class ObjectiveError(Exception):
    """The objective gave no usable number; the message says why."""


def evaluator(job: Job) -> Evaluate:
    """The function from parameters to the objective's number; what can be checked beforehand is."""
    names = list(job.space.parameters)
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
    except (Exception, SystemExit) as error:
        raise InvalidInput(
            f"[objective] `function` {reference!r} could not be loaded from {folder}: {_described(error)}. The module "
            "must lie beside the TOML file or be installed, with everything it imports."
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
        except (Exception, SystemExit) as error:
            raise ObjectiveError(_described(error)) from error
        return _reward(answer)

    return evaluate


def _described(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # an exception whose own text raises
        text = ""
    return f"{type(error).__name__}: {_one_line(text)}" if text else type(error).__name__


def _one_line(text: str) -> str:
    """At most SHOWN characters in one line, the end where there are more: errors put what matters last."""
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else "... " + line[-SHOWN:]


def _command(objective: Objective, folder: Path, names: Iterable[str]) -> Evaluate:
    template = (objective.command or "").strip()
    if not template:
        raise InvalidInput("[objective] `command` is empty.")
    awkward = [name for name in names if not name.isidentifier()]
    if awkward:
        raise InvalidInput(
            f"[objective] a `command` can only take parameters named with letters, digits and _, not {awkward[0]!r}."
        )
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
        status, said, complained = _shell(command, folder, objective.timeout)
        if status != 0:
            raise ObjectiveError(
                f"exit status {status}: {_one_line(complained) or _one_line(said) or 'it said nothing'}"
            )
        lines = said.strip().splitlines()
        if not lines:
            raise ObjectiveError("it printed nothing; its last line must be a number or JSON")
        return _reward(_parsed(lines[-1].strip()))

    return evaluate


def _shell(command: str, folder: Path, timeout: float | None) -> tuple[int, str, str]:
    """Exit status, output and error output; whatever ends the wait early ends the command and all it started."""
    process = subprocess.Popen(
        command, shell=True, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
        start_new_session=True,
    )  # fmt: skip
    try:
        said, complained = process.communicate(timeout=timeout)
    except BaseException as error:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()
        process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise ObjectiveError(f"no answer within {timeout:g} s") from None
        raise
    return process.returncode, said, complained


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
