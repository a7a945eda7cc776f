"""Errors of the commands: a sentence on stderr, and an exit code for scripts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import click

from ..errors import NoRegretError, StorageError, TrialError

P = ParamSpec("P")
R = TypeVar("R")

FAILED, TRIAL_FAILED, STORAGE_FAILED = 1, 3, 4  # Click exits with 2 for unknown options and arguments.

# Advice by the topic of an error. It names commands and options in place of calls of Python.
ADVICE = {
    "answered": (
        "`--revise` of `nilregret tell` and `nilregret fail` corrects what was told, and keeps the first "
        "answer. Another reward of the same point is told by `nilregret add`."
    ),
    "failed": "`nilregret tell --constraint` comes before `nilregret fail`; `--revise` corrects what was told.",
    "together": "A study of a file with `constraints`, and without [policy], takes them in any order.",
    "unusable": (
        "If the point does not work, `nilregret fail` says so. After an accident that says nothing of the point, "
        "`nilregret abandon` gives it up. Both stay on record."
    ),
    "plays": "Give their average, with --plays and --scatter.",
    "std": "Leave --std out. Studies of `auto`, `gp_ucb` and `expected_improvement` take it.",
    "more_plays": "More plays of it are told by `nilregret add`.",
    "context": "Give it with --context.",
    "no_context": "Leave out --context.",
    "among": "--among takes a list of points, or of objects of parameters.",
    "all_failed": "`nilregret trials --state failed` has the reasons.",
    "added": "That was `nilregret add` or `nilregret import`. Ask about another trial.",
    "retired": "`nilregret add-arm` adds one, and `nilregret restore-arm` brings one back.",
    "no_arm": "`nilregret arms` lists them.",
    "channels": "A file of a study with `constraints` makes one that has.",
    "minimum": "`nilregret import` takes over to another study what was told to this one.",
    "bounded": 'They are reward = {type = "bounded", low = ..., high = ...} in [policy].',
    "kernel": 'Such as kernel = {type = "matern", nu = 2.5, lengthscale = 0.2}.',
    "policy": 'Such as algorithm = "gp_ucb" in [policy].',
    "no_trial": (
        "`nilregret trials` lists those there are. A point that was never asked for is told by `nilregret add`."
    ),
    "reward_range": "Give it with --reward-range LOW HIGH.",
    "target": '--policy takes "uniform", "best", an action, JSON of probabilities, or a file.',
    "no_propensities": 'A study with `"propensities": true` among its facts records them.',
    "no_arms": "A file with a `grid` makes a study that has.",
    "made": "`nilregret show` says what it is.",
    "by_yourself": "That is `nilregret ask` and `nilregret tell`.",
}


def sentence_of(error: NoRegretError) -> str:
    """Returns the message of an error with advice for the command line."""
    return str(error.advised(ADVICE.get(error.topic, ""), topic=error.topic))


class CommandError(click.ClickException):
    """An error of the library, with an exit code by its kind."""

    def __init__(self, error: NoRegretError) -> None:
        super().__init__(sentence_of(error))
        kinds = ((TrialError, TRIAL_FAILED), (StorageError, STORAGE_FAILED))
        self._code = next((code for kind, code in kinds if isinstance(error, kind)), FAILED)

    @property
    def exit_code(self) -> int:  # type: ignore[override]  # Click has an attribute of the class.
        """Exit code of the process."""
        return self._code


def with_error_sentences(command: Callable[P, R]) -> Callable[P, R]:
    """Returns a command that prints errors as sentences, and text in any encoding of the terminal."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        for stream in (sys.stdout, sys.stderr):
            reconfigure: Any = getattr(stream, "reconfigure", None)
            if reconfigure is not None:  # A command must not fail because the terminal lacks a letter.
                reconfigure(errors="backslashreplace")
        try:
            return command(*args, **kwargs)
        except NoRegretError as error:
            raise CommandError(error) from error
        except KeyboardInterrupt:
            raise SystemExit(130) from None

    return run
