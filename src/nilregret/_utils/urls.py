"""URLs of storages, and addresses of hosts."""

import ipaddress
from functools import lru_cache


def url_of(storage: str) -> str:
    """Returns the URL of a storage, which may be given as the path of an SQLite file."""
    return storage if "://" in storage or storage.startswith("sqlite:") else f"sqlite:///{storage}"


@lru_cache(1024)
def is_loopback(host: str) -> bool:
    """Returns whether an address belongs to the machine itself."""
    plain = host.strip("[]").lower()
    if plain == "localhost":
        return True
    try:
        return ipaddress.ip_address(plain).is_loopback
    except ValueError:
        return False
