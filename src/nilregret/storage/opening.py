"""Storages by URL."""

from __future__ import annotations

from .base import Storage
from .sql import SqlStorage


def opened(storage: str | Storage, *, make: bool = True) -> Storage:
    """Returns the storage of a URL, or the given storage.

    Args:
        storage: URL or storage (see `Study`).
        make: if False, a missing file is an error.
    """
    return storage if isinstance(storage, Storage) else SqlStorage(storage, make=make)
