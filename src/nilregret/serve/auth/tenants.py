"""Whose study is whose: a tenant's studies have the tenant's name before theirs, and only this module knows.

The tenant of whoever runs the service sees the plain names, those that the command line gave. For another tenant T the
study `shop` is `T/shop` in the storage. Of tenants are those who ever had a token; `team/shop` is the operator's where
there is no tenant `team`. Tokens are looked up each time, so that no study of a new tenant is seen by others.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...storage import Storage
from ..addresses import LONGEST, segment
from ..problems import Problem
from .caller import OPERATOR
from .token_store import vault_of

BETWEEN = "/"
SHOWN = 128  # characters of a name in a sentence


def stored_name(storage: Storage, tenant: str, name: str) -> str:
    """The name in the storage.

    Raises:
        Problem: 404, no study of this tenant can have that name.
    """
    if not name.strip() or not reachable(name) or (tenant == OPERATOR and of_others(storage, [name])):
        raise missing(name)
    return name if tenant == OPERATOR else f"{tenant}{BETWEEN}{name}"


def reachable(name: str) -> bool:
    """Whether an address can hold this name; some in old storages are longer."""
    return len(segment(name)) <= LONGEST


def own_names(storage: Storage, tenant: str) -> dict[str, str]:
    """The names of a tenant's studies, as this tenant knows them: those in the storage by these, the oldest first."""
    stored = storage.names()
    if tenant == OPERATOR:
        others = of_others(storage, stored)
        return {name: name for name in stored if name not in others}
    whose = f"{tenant}{BETWEEN}"
    return {each.removeprefix(whose): each for each in stored if each.startswith(whose) and each[len(whose) :].strip()}


def of_others(storage: Storage, stored: Iterable[str]) -> set[str]:
    """Which of these names in the storage are of studies of tenants, and not of the operator."""
    parts = [each.partition(BETWEEN) for each in stored if BETWEEN in each]
    tenants = {record.tenant for record in vault_of(storage).records()[0]} - {OPERATOR} if parts else set()
    return {"".join(part) for part in parts if part[0] in tenants and part[2].strip()}


def missing(name: str) -> Problem:
    """What is told of a study that does not exist for this caller, whether it exists or not."""
    return Problem(
        404, "no_study", f"There is no study {name[:SHOWN]!r}. `GET /v1/studies` lists those there are; "
        "`PUT /v1/studies/NAME` makes one.",
    )  # fmt: skip
