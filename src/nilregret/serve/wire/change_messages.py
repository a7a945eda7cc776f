"""Bodies of requests and replies about arms, the space of a study, and points to try first (see `messages`)."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from .messages import Reply, Request

# -- arms ----------------------------------------------------------------------------------------------------------

ArmName = Annotated[str, Meta(min_length=1, max_length=200)]
About = Annotated[dict[str, Any] | None, Meta(description="Facts to keep with it.")]


class NewArm(Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """An arm to add. Exactly one of `point` and `parameters` is given."""

    point: list[float] | None = None
    parameters: dict[str, Any] | None = None
    name: ArmName | None = None
    about: About = None


class ArmsRequest(Request, frozen=True):
    """Arms to add to a study. They get the next numbers."""

    arms: Annotated[list[NewArm], Meta(min_length=1, max_length=1000)]


class ArmRequest(Request, frozen=True):
    """Changes of an arm. Entries that are left out stay as they are."""

    name: ArmName | None = None
    about: About = None
    retired: Annotated[bool | None, Meta(description="True: no decision plays it. False: decisions may again.")] = None


class ArmSaid(Reply, frozen=True):
    """An arm of a study."""

    arm: Annotated[int, Meta(description="Its number, which never changes.")]
    point: list[float]
    parameters: dict[str, Any] | None
    name: str | None
    about: dict[str, Any]
    retired: bool
    since: Annotated[float | None, Meta(description="Since when it is so; null: since the study was made.")]
    added_at: Annotated[float | None, Meta(description="Null for an arm that the study was made with.")]


class ArmsSaid(Reply, frozen=True):
    """Arms of a study, by number."""

    arms: list[ArmSaid]


# -- another space ---------------------------------------------------------------------------------------------------


Parameters = Annotated[dict[str, dict[str, Any]], Meta(min_length=1)]


class WidenRequest(Request, frozen=True):
    """Changed and new parameters of a study by name, or of its contexts."""

    parameters: Parameters | None = None
    context: Annotated[Parameters | None, Meta(description="Of contexts, in place of `parameters`.")] = None
    was: Annotated[dict[str, Any] | None, Meta(description="The value of each new one in the trials so far.")] = None


class SpaceSaid(Reply, frozen=True):
    """The space of a study, or of its contexts."""

    space: Annotated[dict[str, Any], Meta(description="As the `domain` or `context` of a whole policy.")]


# -- units ---------------------------------------------------------------------------------------------------------


class ForgetRequest(Request, frozen=True):
    """The unit to forget."""

    unit: Annotated[str, Meta(min_length=1, max_length=200, description="As decisions were asked for it.")]


class Forgotten(Reply, frozen=True):
    """The reply to a request to forget a unit."""

    forgotten: Annotated[bool, Meta(description="Whether the unit was known.")]


# -- points to try first -------------------------------------------------------------------------------------------


class NewEntry(Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """A point to try first: exactly one of these."""

    parameters: Annotated[dict[str, Any] | None, Meta(description="All of them, or some.")] = None
    point: list[float] | None = None
    arm: int | None = None


class EnqueueRequest(Request, frozen=True):
    """Points to try first, in this order. All wait, or none."""

    entries: Annotated[list[NewEntry], Meta(min_length=1, max_length=1000)]


class EntrySaid(Reply, frozen=True):
    """A point that waits to be tried."""

    number: Annotated[int, Meta(description="0, 1, ... in the order in which they came.")]
    whole: Annotated[bool, Meta(description="False: the policy chooses what is not named.")]
    enqueued_at: float
    parameters: dict[str, Any] | None = None
    point: list[float] | None = None
    arm: int | None = None


class QueueSaid(Reply, frozen=True):
    """Points that wait to be tried, in their order."""

    entries: list[EntrySaid]
