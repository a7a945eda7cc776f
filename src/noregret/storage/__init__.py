"""Where records live between runs."""

from __future__ import annotations

from .base import Change, News, Storage, StoredStudy, Summary, Writer
from .memory import MemoryStorage
from .sql import SqlStorage

__all__ = [
    "Change", "MemoryStorage", "News", "SqlStorage", "Storage", "StoredStudy", "Summary", "Writer",
    "opened",
]  # fmt: skip


def opened(storage: str | Storage, *, make: bool = True) -> Storage:
    """The storage that a URL names, or that was given.

    Args:
        storage: as of `Study`.
        make: whether to make the file where there is none.
    """
    return storage if isinstance(storage, Storage) else SqlStorage(storage, make=make)
