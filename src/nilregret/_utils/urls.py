"""URLs of storages."""


def url_of(storage: str) -> str:
    """Returns the URL of a storage, which may be given as the path of an SQLite file."""
    return storage if "://" in storage or storage.startswith("sqlite:") else f"sqlite:///{storage}"
