"""Limits on the rate and on the concurrency of one caller's requests, so that no caller uses up the service."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import final

from .._utils.checks import many
from .problems import Problem

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
