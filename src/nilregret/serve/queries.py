"""Structures of query strings."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct


class Query(Struct, forbid_unknown_fields=True, frozen=True):
    """A query string."""


class PointsQuery(Query, frozen=True):
    """Points, or every arm if there are none, under a context."""

    points: Annotated[str | None, Meta(description="JSON: a list of points or of parameters.")] = None
    context: Annotated[str | None, Meta(description="JSON: numbers, or parameters by name.")] = None


class ChannelQuery(PointsQuery, frozen=True):
    """Points, and the output to predict there."""

    channel: Annotated[int, Meta(ge=0, description="0 for the reward, j for constraint j.")] = 0


class BestQuery(Query, frozen=True):
    """A context."""

    context: Annotated[str | None, Meta(description="JSON: numbers, or parameters by name.")] = None


class EventsQuery(Query, frozen=True):
    """A cursor of events."""

    after: Annotated[int, Meta(ge=0, description="The `next` of the answer before; 0 for all.")] = 0
    limit: Annotated[int, Meta(ge=1, le=1000)] = 1000


class ExplainQuery(Query, frozen=True):
    """Precision of an explanation."""

    draws: Annotated[int, Meta(ge=0, le=10_000, description="From which a propensity is estimated.")] = 1000


class ExportQuery(Query, frozen=True):
    """Format of a file."""

    format: Annotated[Literal["jsonl", "csv", "arrow", "parquet"], Meta(description="Of the file.")] = "jsonl"
