"""The storage that a URL names."""

from __future__ import annotations

from .base import Storage
from .sql import SqlStorage


def opened(storage: str | Storage, *, make: bool = True) -> Storage:
    """The storage that a URL names, or that was given.

    Args:
        storage: as of `Study`.
        make: whether to make the file where there is none.
    """
    return storage if isinstance(storage, Storage) else SqlStorage(storage, make=make)
