"""Limits on what one caller may ask of the service, and on the time of each step."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import final

from ..._utils.checks import integer, many, number, settle
from ..._utils.dataclass import dataclass, fields
from .problems import Problem


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of one server process. Each is far above what an honest caller needs.

    Args:
        body_bytes: of a request's body. A thousand rewards are 100 KB.
        lines_bytes: of a body of JSON lines, which is taken in pieces. A hundred thousand observations are 20 MB.
        header_bytes: of a request line with its headers.
        header_count: number of headers.
        header_seconds: until all headers of a request must have come, because a slow client holds a connection.
        body_seconds: until the body of a request must have come, or the next part of a body of JSON lines.
        request_seconds: until an answer must have begun. Streams of events may then go on. Of a body of JSON lines,
            since its last part was taken.
        send_seconds: until the client must have taken a part of an answer.
        connections: open at a time, of all callers.
        at_once: concurrent requests of one caller, with its streams of events.
        per_second: requests of one caller, on average.
        burst: requests of one caller that may come at once after a pause.
        strangers_per_second: requests without a valid token from one address, on average.
        strangers_burst: requests without a valid token from one address that may come at once.
        count: decisions, rewards or points in one request.
        pending: decisions of one study without an answer.
        reports: of one decision. The time of a verdict may grow with them.
        arms: of one study, times its contexts if these are finitely many. The memory for each arm grows with the number
            of points that have been tried.
        posterior_bytes: memory of a posterior on arms after a thousand distinct arms. For rough kernels it grows with
            the square of the number of arms, and several parts of a policy multiply it.
        columns: of a point with its context: one for each number, and one for each option of a choice.
        parts: descriptions within the description of a policy.
    """

    body_bytes: int = 1 << 20
    lines_bytes: int = 1 << 28
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
    reports: int = 10_000
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


MOST_CALLERS = 10_000  # buckets in memory; a caller whose bucket was dropped gets a full one


@final
class TokenBuckets:
    """A token bucket for each caller, which fills steadily. Each request takes one token.

    Args:
        per_second: tokens that come in.
        burst: tokens that a bucket holds.
        clock: seconds.
    """

    def __init__(self, per_second: float, burst: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = per_second, burst, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens, and the time of that count

    def take(self, caller: str) -> None:
        """Takes one token out of the caller's bucket.

        Raises:
            Problem: 429, the bucket is empty.
        """
        now = self._clock()
        left, at = self._left.pop(caller, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._rate)
        self._left[caller] = (left - 1.0, now) if left >= 1.0 else (left, now)
        if len(self._left) > MOST_CALLERS:
            self._left.popitem(last=False)
        if left < 1.0:
            wait = max(1, round((1.0 - left) / self._rate))
            raise Problem(429, "rate", f"Too many requests; try again in {wait} s.", headers={"Retry-After": str(wait)})


@final
class ConcurrencyLimit:
    """A limit on the concurrent requests of each caller.

    Args:
        most: concurrent requests of one caller.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._now: dict[str, int] = {}

    def enter(self, caller: str) -> None:
        """Counts one more request of the caller, until `leave`.

        Raises:
            Problem: 429, the caller has too many requests.
        """
        count = self._now.get(caller, 0)
        if count >= self._most:
            raise Problem(
                429, "at_once", f"{many(count, 'request')} of this caller at once is the most; try again soon.",
                headers={"Retry-After": "1"},
            )  # fmt: skip
        self._now[caller] = count + 1

    def leave(self, caller: str) -> None:
        """Counts one request less of the caller."""
        left = self._now[caller] - 1
        if left:
            self._now[caller] = left
        else:
            del self._now[caller]
