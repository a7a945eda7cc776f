"""Bodies of requests and replies about notes beside a study and about the audit log, each a structure."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from .._utils.checks import LONGEST_NAME
from .addresses import NEW_PATTERN
from .messages import Reply, Request

Text = Annotated[str, Meta(max_length=10_000)]
NewName = Annotated[
    str,
    Meta(min_length=1, max_length=LONGEST_NAME, description="A new name.", extra_json_schema={"pattern": NEW_PATTERN}),
]
Tag = Annotated[str, Meta(min_length=1, max_length=60)]


class StudyChangeRequest(Request, frozen=True):
    """Changes of a study that its policy does not see. Entries that are left out stay as they are."""

    name: NewName | None = None
    archived: Annotated[bool | None, Meta(description="Whether lists leave it out.")] = None
    paused: Annotated[bool | None, Meta(description="Whether the service refuses to decide.")] = None
    note: Text | None = None
    tags: Annotated[list[Tag], Meta(max_length=20)] | None = None


class StudyChanged(Reply, frozen=True):
    """The name and the notes of a study."""

    name: str
    archived: bool
    paused: bool
    note: str
    tags: list[str]


class TrialNoteRequest(Request, frozen=True):
    """A note on a trial. An empty one takes it back."""

    note: Text


class TrialNoted(Reply, frozen=True):
    """A trial and its note."""

    number: int
    note: str


class AuditEntry(Reply, frozen=True):
    """An action by hand, or a change by an admin."""

    at: float
    token: Annotated[str | None, Meta(description="Id of the caller's token; null before there was one.")]
    action: str
    arguments: dict[str, Any]
    outcome: Annotated[str | None, Meta(description="null: not known, since the server ended or stopped waiting.")]


class AuditLog(Reply, frozen=True):
    """The audit log of a study, the latest entry first."""

    entries: list[AuditEntry]
    more: bool


class AuditQuery(Request, frozen=True):
    """A part of the audit log."""

    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    before: Annotated[float | None, Meta(description="Unix seconds: only earlier entries.")] = None
