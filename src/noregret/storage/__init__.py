"""Where records live between runs."""

from .sql import SqlStorage, StoredStudy

__all__ = ["SqlStorage", "StoredStudy"]
