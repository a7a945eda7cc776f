"""What may stand in an address after the question mark."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct


class Query(Struct, forbid_unknown_fields=True, frozen=True):
    """What may stand in an address."""


class PointsQuery(Query, frozen=True):
    """At which points; without any at every arm."""

    points: Annotated[str | None, Meta(description="JSON: a list of points or of parameters.")] = None
    context: Annotated[str | None, Meta(description="JSON: numbers, or parameters by name.")] = None


class ChannelQuery(PointsQuery, frozen=True):
    """Likewise, of what."""

    channel: Annotated[int, Meta(ge=0, description="0 for the reward, j for constraint j.")] = 0


class BestQuery(Query, frozen=True):
    """Under which context."""

    context: Annotated[str | None, Meta(description="JSON: numbers, or parameters by name.")] = None


class EventsQuery(Query, frozen=True):
    """After which event."""

    after: Annotated[int, Meta(ge=0, description="The `next` of the answer before; 0 for all.")] = 0
    limit: Annotated[int, Meta(ge=1, le=1000)] = 1000


class ExplainQuery(Query, frozen=True):
    """How exactly."""

    draws: Annotated[int, Meta(ge=0, le=10_000, description="From which a propensity is estimated.")] = 1000


class ExportQuery(Query, frozen=True):
    """As what."""

    format: Annotated[Literal["jsonl", "csv", "arrow", "parquet"], Meta(description="Of the file.")] = "jsonl"
