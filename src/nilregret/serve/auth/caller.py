"""Callers of the service and their roles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from ..._utils.checks import one_of, shown, storable
from ..._utils.errors import InvalidInput

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
