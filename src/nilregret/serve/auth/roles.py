"""What each request needs its caller to be, by method and path alone: nothing has been looked up yet."""

from __future__ import annotations

import re

from .caller import Role

LOOKING = ("GET", "HEAD", "OPTIONS")
# What deciders may change; whatever else changes anything needs an admin, also what nobody has thought of here.
DECIDING = re.compile(r"/v1/studies/[^/]+/(?:decisions|rewards|failures|observations)(?:[/:].*)?")
PUBLIC = ("/healthz", "/readyz")  # for those who watch over processes; they say nothing but yes and no
API = "/v1"


def needed(method: str, path: str) -> Role:
    """The least role that may do this."""
    if method in LOOKING:
        return "reader"
    return "decider" if DECIDING.fullmatch(path) else "admin"


def public(method: str, path: str) -> bool:
    """Whether it is answered to anybody."""
    return path in PUBLIC and method in ("GET", "HEAD")


def of_api(path: str) -> bool:
    """Whether it belongs to the API, which no cookie opens."""
    return path == API or path.startswith((f"{API}/", f"{API}:"))
