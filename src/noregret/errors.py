"""The errors a caller may catch. Every message says what happened, why it usually does, and what to try."""


class NoRegretError(Exception):
    """Base of every error this library raises on purpose."""


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
