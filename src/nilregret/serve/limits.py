"""How much one caller may ask of the service, and how long anything may take."""

from __future__ import annotations

from dataclasses import dataclass, fields

from .._utils.checks import integer, number, settle


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of one server process; each is far from what honest callers need.

    Args:
        body_bytes: of a request; a thousand rewards are 100 KB.
        header_bytes: of a request line with its headers.
        header_count: of those.
        header_seconds: until they must have come: who is slower holds a connection.
        body_seconds: likewise of a body.
        request_seconds: until an answer must have begun; streams of events may then go on.
        send_seconds: until a part of an answer must have been taken.
        connections: at once, in all.
        at_once: requests of one caller that are being answered, streams of events among them.
        per_second: requests of one caller, on average.
        burst: requests of one caller that may come at once after a silence.
        strangers_per_second: requests without a valid token, of one address.
        strangers_burst: likewise at once.
        count: decisions, rewards or points in one request.
        pending: decisions of one study that nobody has answered.
        arms: of one study, under all its contexts where these are finitely many; what is kept of each grows with the
            points that have been tried.
        posterior_bytes: of what is known of arms, once a thousand of them have been played: rough kernels need room
            that grows with the square of the arms, times what a policy keeps several of.
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
