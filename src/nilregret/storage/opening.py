"""Storages by URL."""

from __future__ import annotations

from .._utils.checks import shown
from ..errors import StorageError
from .base import Identity, Storage
from .sql import SqlStorage


def opened(storage: str | Storage, *, make: bool = True) -> Storage:
    """Returns the storage of a URL, or the given storage.

    Args:
        storage: URL or storage (see `Study`).
        make: if False, a missing file is an error.

    >>> import nilregret as nr
    >>> import tempfile
    >>> from nilregret.storage import opened
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     records = opened(f"sqlite:///{folder}/studies.db")
    ...     print(records.names())
    ...     records.close()
    []
    """
    return storage if isinstance(storage, Storage) else SqlStorage(storage, make=make)


def find_again(url: str, name: str, known: Identity) -> tuple[Storage, str]:
    """Returns the storage of a pickled study and the name that the study has now.

    The study may have been renamed since, and its old name given to another study.

    Args:
        url: of the storage.
        name: that the study had.
        known: its identity.

    Raises:
        StorageError: the storage no longer holds the study.
    """
    storage = opened(url, make=False)
    for candidate in (name, *storage.names()):
        found = storage.find(candidate)
        if found is not None and found.identity == known:
            return storage, candidate
    raise StorageError(
        f"{url} no longer holds the study {shown(name)} that was copied or pickled: it has been deleted, or the file "
        "has been replaced by another. Open a study by its name to work with the storage as it is now."
    )
