"""Roles that requests need, by method and path alone: nothing has been looked up at this point."""

from __future__ import annotations

import re

from .caller import Role

READ_METHODS = ("GET", "HEAD", "OPTIONS")
# Deciders may change these. Any other change needs an admin, also at addresses that are added later.
DECIDING = re.compile(r"/v1/studies/[^/]+/(?:decisions|rewards|failures|observations)(?:[/:].*)?")
READING = re.compile(r"/v1/studies/[^/]+/evaluations")  # changes nothing, though its request has a body
# Only admins may read these: forms that change a study, and who has changed it.
ADMINS = re.compile(r"/studies/[^/]+/actions/[^/]+|/new|(?:/v1)?/studies/[^/]+/audit")
PUBLIC = ("/healthz", "/readyz")  # for process monitors; their answers are yes or no
API = "/v1"


def needed(method: str, path: str) -> Role:
    """Returns the least role that may send such a request."""
    if ADMINS.fullmatch(path):
        return "admin"
    if method in READ_METHODS or (method == "POST" and READING.fullmatch(path)):
        return "reader"
    return "decider" if DECIDING.fullmatch(path) else "admin"


def public(method: str, path: str) -> bool:
    """Returns whether the request needs no token."""
    return path in PUBLIC and method in ("GET", "HEAD")


def of_api(path: str) -> bool:
    """Returns whether the path belongs to the API, for which cookies do not count."""
    return path == API or path.startswith((f"{API}/", f"{API}:"))
