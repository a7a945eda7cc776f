"""How a command ends when it cannot do what it was asked for: a sentence on stderr, and a number for scripts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import click

from ..errors import NoRegretError, StorageError, TrialError
from .words import printable

P = ParamSpec("P")
R = TypeVar("R")

REFUSED, OF_TRIAL, OF_STORAGE = 1, 3, 4  # 2 is click's, for options and arguments that it does not know


class Refused(click.ClickException):
    """An error of the library, by what a script may do about it."""

    def __init__(self, error: NoRegretError) -> None:
        super().__init__(printable(str(error)))
        kinds = ((TrialError, OF_TRIAL), (StorageError, OF_STORAGE))
        self._code = next((code for kind, code in kinds if isinstance(error, kind)), REFUSED)

    @property
    def exit_code(self) -> int:  # type: ignore[override]  # of click a number of the class
        """What the process ends with."""
        return self._code


def in_sentences(command: Callable[P, R]) -> Callable[P, R]:
    """A command whose errors are sentences, and whose words any terminal can take."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        for stream in (sys.stdout, sys.stderr):
            reconfigure: Any = getattr(stream, "reconfigure", None)
            if reconfigure is not None:  # a terminal that knows few letters is no reason to fail after the deed
                reconfigure(errors="backslashreplace")
        try:
            return command(*args, **kwargs)
        except NoRegretError as error:
            raise Refused(error) from error
        except KeyboardInterrupt:
            raise SystemExit(130) from None

    return run
