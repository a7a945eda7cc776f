"""The errors and warnings of the library. Each message says what happened, the usual cause, and what to try."""

from __future__ import annotations

__all__ = [
    "InvalidInput",
    "MissingData",
    "MissingExtra",
    "NoRegretError",
    "NoRegretWarning",
    "ServiceError",
    "StorageError",
    "TrialError",
]

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

PACKAGE = f"{__name__.partition('.')[0]}."


def __dir__() -> list[str]:
    return __all__


class NoRegretError(Exception):
    """Base of all errors that the library raises on purpose.

    The advice is separate from the event, since it names Python calls. Users of other interfaces, such as HTTP, get
    advice that fits there.

    Attributes:
        what: event and usual cause, without Python calls.
        advice: remedy in Python, or an empty string if `what` includes it.
        topic: key under which other interfaces have their own advice, or an empty string.
        places: nested entries in which the error was found, outermost first.

    >>> import nilregret as nr
    >>> issubclass(nr.errors.InvalidInput, nr.NoRegretError)
    True
    """

    def __init__(self, what: str = "", *, advice: str = "", topic: str = "", places: tuple[str, ...] = ()) -> None:
        self.what, self.advice, self.topic, self.places = what, advice, topic, places
        at = "".join(f"[{place}] " for place in places)
        super().__init__(printable(f"{at}{what} {advice}".rstrip() if advice else f"{at}{what}"))

    def within(self, place: str) -> Self:
        """Returns the same error, found in an entry of this name."""
        return type(self)(self.what, advice=self.advice, topic=self.topic, places=(place, *self.places))

    def after(self, words: str) -> Self:
        """Returns the same error, with words before its text."""
        at = "".join(f"[{place}] " for place in self.places)
        return type(self)(f"{words}{at}{self.what}", advice=self.advice, topic=self.topic)

    def advised(self, advice: str, *, topic: str = "") -> Self:
        """Returns the same error, with this advice."""
        return type(self)(self.what, advice=advice, topic=topic, places=self.places)


class InvalidInput(NoRegretError, ValueError):
    """A value that cannot be used: wrong shape, not finite, out of range, or in conflict with earlier values.

    >>> import nilregret as nr
    >>> try:
    ...     nr.Float(1.0, 0.0)
    ... except nr.errors.InvalidInput:
    ...     print("refused")
    refused
    """


class TrialError(NoRegretError):
    """A trial that does not exist, or is in the wrong state for the call (such as told twice).

    >>> import nilregret as nr
    >>> arms = nr.Arms.grid(0, 10, 11)
    >>> study = nr.Study(nr.gp_ucb(arms, nr.SquaredExponential(2.0), noise=0.1))
    >>> study.fail(study.ask(), "broken").state
    'failed'
    >>> try:
    ...     study.tell(0, 1.0)
    ... except nr.errors.TrialError:
    ...     print("refused")
    refused
    """


class StorageError(NoRegretError):
    """A failure to read the record from its storage, or to write it. Recorded data is not lost.

    >>> import nilregret as nr
    >>> issubclass(nr.errors.StorageError, nr.NoRegretError)
    True
    """


class ServiceError(NoRegretError):
    """A decision service that could not be reached, or that refused the request. Recorded data is not lost."""


class MissingExtra(NoRegretError, ImportError):
    """An optional dependency that a call needs and that is not installed.

    >>> import nilregret as nr
    >>> issubclass(nr.errors.MissingExtra, nr.NoRegretError)
    True
    """


@contextmanager
def needs(what: str, package: str, extra: str, *, instead: str = "") -> Iterator[None]:
    """Raises `MissingExtra` if an import within the block fails.

    Args:
        what: what the user called.
        package: the package that it needs.
        extra: the optional dependencies of this library that bring the package.
        instead: a sentence about what works without it.
    """
    try:
        yield
    except ImportError as error:
        words = f"{what} needs {package}, which is not installed: pip install 'nilregret[{extra}]'. {instead}"
        raise MissingExtra(words.rstrip()) from error


class MissingData(NoRegretError, FileNotFoundError):
    """A data set that was not found. Data sets are never part of the library.

    >>> import nilregret as nr
    >>> issubclass(nr.errors.MissingData, nr.NoRegretError)
    True
    """


class NoRegretWarning(UserWarning):
    """A request that could not be met, so that a documented fallback was used instead.

    >>> import nilregret as nr
    >>> import warnings
    >>> warnings.filterwarnings("ignore", category=nr.errors.NoRegretWarning)
    """

    def __init__(self, sentence: str = "") -> None:
        super().__init__(printable(sentence))


def warn(sentence: str) -> None:
    """Gives a `NoRegretWarning` at the line outside this package that led to it."""
    import inspect

    frame, level = inspect.currentframe(), 1
    while frame is not None and str(frame.f_globals.get("__name__")).startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(NoRegretWarning(sentence), stacklevel=level)


SHOWN = 200  # largest number of characters of an error that are repeated


def printable(text: str) -> str:
    r"""Returns a text without characters that a terminal would obey: names and reasons may come from anywhere.

    Errors, warnings, `repr`, tables and logs pass it. JSON and CSV keep their texts as they are.

    >>> printable("red\x1b[31m")
    'red\\x1b[31m'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def exception_text(error: BaseException) -> str:
    """Returns class and text of an exception, in one line."""
    try:
        text = str(error)
    except Exception:  # an exception whose own text raises
        text = ""
    return f"{type(error).__name__}: {one_line(text)}" if text else type(error).__name__


def one_line(text: str) -> str:
    """Returns at most SHOWN characters in one line, from the end, where errors have the main point."""
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else "... " + line[-SHOWN:]
