"""Callers of the service and their roles."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

from ..._utils.checks import one_of, shown, storable
from ..._utils.dataclass import dataclass
from ...errors import InvalidInput
from ...storage import Storage
from ..wire.problems import Problem
from .token_store import token_store

Role = Literal["reader", "decider", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)  # a role includes those before it
OPERATOR = "default"  # tenant of the operator, who owns the studies that the command line made
LONGEST_NAME = 64  # characters of a tenant


@dataclass(frozen=True)
class Caller:
    """The sender of a request, as the middleware has found out.

    Attributes:
        tenant: owner of the studies that the caller can see.
        role: "reader" reads, "decider" also asks and tells, "admin" also makes and removes studies.
        token: id of the token (not the token). None if the service is open to its own machine.
    """

    tenant: str
    role: Role
    token: str | None

    def may(self, role: Role) -> bool:
        """Returns whether the caller's role includes this role."""
        return ROLES.index(self.role) >= ROLES.index(role)


LOCAL = Caller(OPERATOR, "admin", None)  # any caller of a service on loopback, before the first token was made

NOBODY = Caller("", "reader", None)  # any caller of public addresses; no tenant has this name


def caller_of(scope: Mapping[str, Any]) -> Caller:
    """Returns the caller that the middleware has set.

    Raises:
        RuntimeError: no middleware has seen the request, which is then refused.
    """
    caller = scope.get("state", {}).get("caller")
    if not isinstance(caller, Caller):
        raise RuntimeError(  # noqa: TRY004 - no argument has a wrong type
            "A request has not passed `AccessMiddleware`; `create_app` puts it before the application."
        )
    return caller


def check_role(value: object) -> Role:
    """Returns `value`, checked to be a role."""
    return next(role for role in ROLES if role == one_of("role", value, ROLES))


def check_tenant(value: object) -> str:
    """Returns `value`, checked to be a name of a tenant, which becomes a part of the names of studies."""
    if (
        not isinstance(value, str)
        or not value.isprintable()
        or not storable(value)
        or value != value.strip()
        or "/" in value
        or not 1 <= len(value) <= LONGEST_NAME
    ):
        raise InvalidInput(
            f"`tenant` is {shown(value)}: it must be a name of 1 to {LONGEST_NAME} printable characters without '/', "
            "and without blanks at its ends."
        )
    return value


READ_METHODS = ("GET", "HEAD", "OPTIONS")
LINES = re.compile(r"/v1/studies/[^/]+/observations")  # takes JSON lines, too
# Deciders may change these. Any other change needs an admin, also at addresses that are added later.
DECIDING = re.compile(r"/v1/studies/[^/]+/(?:decisions|rewards|failures|observations|enqueue|forget)(?:[/:].*)?")
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


def takes_lines(method: str, path: str) -> bool:
    """Returns whether the body may be JSON lines of any number."""
    return method == "POST" and LINES.fullmatch(path) is not None


def public(method: str, path: str) -> bool:
    """Returns whether the request needs no token."""
    return path in PUBLIC and method in ("GET", "HEAD")


def of_api(path: str) -> bool:
    """Returns whether the path belongs to the API, for which cookies do not count."""
    return path == API or path.startswith((f"{API}/", f"{API}:"))


# Names of the studies of tenants in the storage. Only this module knows the rule.
#
# The operator's studies have the same name in the storage and outside. The study `shop` of a tenant T is `T/shop` in
# the storage. A name is a tenant if it ever had a token, so `team/shop` is the operator's if there is no tenant
# `team`. The tokens are read each time, so that other tenants never see a study of a new tenant.

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
