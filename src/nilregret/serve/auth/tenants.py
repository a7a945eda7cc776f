"""Names of the studies of tenants in the storage. Only this module knows the rule.

The operator's studies have the same name in the storage and outside. The study `shop` of a tenant T is `T/shop` in the
storage. A name is a tenant if it ever had a token, so `team/shop` is the operator's if there is no tenant `team`. The
tokens are read each time, so that other tenants never see a study of a new tenant.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...storage import Storage
from ..problems import Problem
from .caller import OPERATOR
from .token_store import token_store

BETWEEN = "/"
SHOWN = 128  # characters of a name in a sentence


def stored_name(storage: Storage, tenant: str, name: str) -> str:
    """Returns the name in the storage.

    Raises:
        Problem: 404, no study of this tenant can have that name.
    """
    if not name.strip() or (tenant == OPERATOR and of_others(storage, [name])):
        raise missing(name)
    return name if tenant == OPERATOR else f"{tenant}{BETWEEN}{name}"


def own_names(storage: Storage, tenant: str) -> dict[str, str]:
    """Returns the names in the storage by the names that the tenant knows, the oldest study first."""
    return own_among(storage, storage.names(), tenant)


def own_among(storage: Storage, stored: Sequence[str], tenant: str) -> dict[str, str]:
    """Returns the tenant's of these names in the storage, by the names that the tenant knows."""
    if tenant == OPERATOR:
        others = of_others(storage, stored)
        return {name: name for name in stored if name not in others}
    whose = f"{tenant}{BETWEEN}"
    return {each.removeprefix(whose): each for each in stored if each.startswith(whose) and each[len(whose) :].strip()}


def of_others(storage: Storage, stored: Iterable[str]) -> set[str]:
    """Returns the names in the storage that belong to tenants other than the operator."""
    parts = [each.partition(BETWEEN) for each in stored if BETWEEN in each]
    tenants = {record.tenant for record in token_store(storage).records()[0]} - {OPERATOR} if parts else set()
    return {"".join(part) for part in parts if part[0] in tenants and part[2].strip()}


def owners(storage: Storage, stored: Iterable[str]) -> list[tuple[str, str]]:
    """Returns the tenant of each name in the storage, and the name as the tenant knows it."""
    listed = list(stored)
    others = of_others(storage, listed)
    split = (each.partition(BETWEEN) if each in others else (OPERATOR, "", each) for each in listed)
    return [(tenant, name) for tenant, _, name in split]


def missing(name: str) -> Problem:
    """Returns the refusal for a study that this caller cannot see, whether it exists or not."""
    return Problem(
        404, "no_study", f"There is no study {name[:SHOWN]!r}. `GET /v1/studies` lists those there are; "
        "`PUT /v1/studies/NAME` makes one.",
    )  # fmt: skip
