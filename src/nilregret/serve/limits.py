"""Limits on what one caller may ask of the service, and on the time of each step."""

from __future__ import annotations

from dataclasses import dataclass, fields

from .._utils.checks import integer, number, settle


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of one server process. Each is far above what an honest caller needs.

    Args:
        body_bytes: of a request's body. A thousand rewards are 100 KB.
        header_bytes: of a request line with its headers.
        header_count: number of headers.
        header_seconds: until all headers of a request must have come, because a slow client holds a connection.
        body_seconds: until the body of a request must have come.
        request_seconds: until an answer must have begun. Streams of events may then go on.
        send_seconds: until the client must have taken a part of an answer.
        connections: open at a time, of all callers.
        at_once: concurrent requests of one caller, with its streams of events.
        per_second: requests of one caller, on average.
        burst: requests of one caller that may come at once after a pause.
        strangers_per_second: requests without a valid token from one address, on average.
        strangers_burst: requests without a valid token from one address that may come at once.
        count: decisions, rewards or points in one request.
        pending: decisions of one study without an answer.
        arms: of one study, times its contexts if these are finitely many. The memory for each arm grows with the number
            of points that have been tried.
        posterior_bytes: memory of a posterior on arms after a thousand distinct arms. For rough kernels it grows with
            the square of the number of arms, and several parts of a policy multiply it.
        columns: of a point with its context: one for each number, and one for each option of a choice.
        parts: descriptions within the description of a policy.
    """

    body_bytes: int = 1 << 20
    header_bytes: int = 16_384
    header_count: int = 64
    header_seconds: float = 10.0
    body_seconds: float = 10.0
    request_seconds: float = 60.0
    send_seconds: float = 30.0
    connections: int = 1000
    at_once: int = 256
    per_second: float = 2000.0
    burst: float = 4000.0
    strangers_per_second: float = 50.0
    strangers_burst: float = 200.0
    count: int = 1000
    pending: int = 100_000
    arms: int = 10_000
    posterior_bytes: int = 1 << 29
    columns: int = 200
    parts: int = 1000

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            whole = isinstance(field.default, int)
            checked = integer(field.name, value, low=1) if whole else number(field.name, value, low=0.0, open_low=True)
            settle(self, **{field.name: checked})
