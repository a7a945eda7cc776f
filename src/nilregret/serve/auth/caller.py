"""Who calls, and what that one may do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from ..._utils.checks import one_of, shown, storable
from ..._utils.errors import InvalidInput

Role = Literal["reader", "decider", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)  # each may do what those before it may
OPERATOR = "default"  # the tenant of those who run the service: its studies are the ones that the command line made
LONGEST_NAME = 64  # characters of a tenant


@dataclass(frozen=True)
class Caller:
    """Who sent a request, as the gate has found out.

    Attributes:
        tenant: whose studies exist for this caller.
        role: "reader" looks, "decider" asks and tells too, "admin" makes and removes studies too.
        token: the id of the token (not the token), None where the service is open to its own machine.
    """

    tenant: str
    role: Role
    token: str | None

    def may(self, role: Role) -> bool:
        """Whether this caller may do what this role may."""
        return ROLES.index(self.role) >= ROLES.index(role)


LOCAL = Caller(OPERATOR, "admin", None)  # every caller of a service on loopback in whose storage no token was ever made

NOBODY = Caller("", "reader", None)  # who asks what anybody may ask: there is no tenant of this name


def caller_of(scope: Mapping[str, Any]) -> Caller:
    """Whom the gate has found to send a request.

    Raises:
        RuntimeError: no gate has seen it. Then nobody is let in, rather than everybody.
    """
    caller = scope.get("state", {}).get("caller")
    if not isinstance(caller, Caller):
        raise RuntimeError(  # noqa: TRY004 - it is no argument of anybody's
            "A request has come past the gate; `create_app` puts one before the application."
        )
    return caller


def check_role(value: object) -> Role:
    """`value` if it is a role."""
    return next(role for role in ROLES if role == one_of("role", value, ROLES))


def check_tenant(value: object) -> str:
    """`value` if it can be the name of a tenant: it becomes a part of the names of studies."""
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
