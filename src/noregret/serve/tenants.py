"""Whose study is whose: a tenant's studies have the tenant's name before theirs, and only this module knows.

The tenant of whoever runs the service sees the plain names, those that the command line gave. For another tenant T the
study `shop` is `T/shop` in the storage. Names with a slash cannot be asked for, so nobody can name another's study.
"""

from __future__ import annotations

from .caller import OPERATOR
from .problems import Problem

BETWEEN = "/"
LONGEST = 128  # characters of a study's name


def stored_name(tenant: str, name: str) -> str:
    """The name in the storage.

    Raises:
        Problem: 404, no study can have that name.
    """
    if not reachable(name) and len(name) > LONGEST:
        raise Problem(404, "no_study", f"No study has a name of {len(name)} characters: there are {LONGEST} at most.")
    if not reachable(name):
        raise missing(name)
    return name if tenant == OPERATOR else f"{tenant}{BETWEEN}{name}"


def reachable(name: str) -> bool:
    """Whether the service opens studies of this name; others may have been made elsewhere."""
    return len(name) <= LONGEST and BETWEEN not in name and bool(name.strip()) and name.isprintable()


def own_name(tenant: str, stored: str) -> str | None:
    """The name as this tenant knows it; None where it is another's."""
    if tenant == OPERATOR:
        return None if BETWEEN in stored else stored
    whose, between, name = stored.partition(BETWEEN)
    return name if between and whose == tenant and BETWEEN not in name else None


def missing(name: str) -> Problem:
    """What is told of a study that does not exist for this caller, whether it exists or not."""
    return Problem(
        404, "no_study", f"There is no study {name[:LONGEST]!r}. `GET /v1/studies` lists those there are; "
        "`PUT /v1/studies/NAME` makes one.",
    )  # fmt: skip
