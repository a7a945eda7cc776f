"""The errors a caller may catch. Every message says what happened, why it usually does, and what to try."""

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

from typing import Self


def __dir__() -> list[str]:
    return __all__


class NoRegretError(Exception):
    """Base of every error this library raises on purpose.

    What to try is kept apart from what happened: it names calls of Python, and who reaches the library by other ways
    (over HTTP, say) is given advice that fits there.

    Attributes:
        what: what happened, and why it usually does; without calls of Python.
        advice: what to try in Python; empty where `what` says it.
        topic: a word under which others keep their own advice; empty where none is needed.
        places: the entries within entries where it was found, outermost first.
    """

    def __init__(self, what: str = "", *, advice: str = "", topic: str = "", places: tuple[str, ...] = ()) -> None:
        self.what, self.advice, self.topic, self.places = what, advice, topic, places
        at = "".join(f"[{place}] " for place in places)
        super().__init__(f"{at}{what} {advice}".rstrip() if advice else f"{at}{what}")

    def within(self, place: str) -> Self:
        """The same, found in an entry of this name."""
        return type(self)(self.what, advice=self.advice, topic=self.topic, places=(place, *self.places))

    def after(self, words: str) -> Self:
        """The same, with words before it."""
        at = "".join(f"[{place}] " for place in self.places)
        return type(self)(f"{words}{at}{self.what}", advice=self.advice, topic=self.topic)

    def advised(self, advice: str, *, topic: str = "") -> Self:
        """The same, with what to try."""
        return type(self)(self.what, advice=advice, topic=topic, places=self.places)


class InvalidInput(NoRegretError, ValueError):
    """A value that cannot be used: wrong shape, not finite, out of range, or contradicting what was said before."""


class TrialError(NoRegretError):
    """A trial that does not exist, or is not in the state the call needs (told twice, say)."""


class StorageError(NoRegretError):
    """The record could not be read from or written to its storage; nothing that was recorded is lost."""


class ServiceError(NoRegretError):
    """A decision service could not be reached, or refused the request; what it had recorded stays recorded."""


class MissingExtra(NoRegretError, ImportError):
    """An optional dependency is needed for this call and is not installed."""


class MissingData(NoRegretError, FileNotFoundError):
    """A data set is not where it was looked for; data sets are never part of the library."""


class NoRegretWarning(UserWarning):
    """Something that was asked for could not be done and a documented fallback was used instead."""


SHOWN = 200  # characters of an error that are repeated


def exception_text(error: BaseException) -> str:
    """Class and text of an exception, in one line."""
    try:
        text = str(error)
    except Exception:  # an exception whose own text raises
        text = ""
    return f"{type(error).__name__}: {one_line(text)}" if text else type(error).__name__


def one_line(text: str) -> str:
    """At most SHOWN characters in one line, the end where there are more: errors put what matters last."""
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else "... " + line[-SHOWN:]
