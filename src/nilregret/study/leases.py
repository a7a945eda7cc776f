"""Leases: times after which trials without an answer are abandoned."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any, final

from .._utils.checks import number
from .._utils.numerals import exact
from ..storage.trial import Trial

LONGEST_LEASE = 1e9  # Seconds, some thirty years.


@final
class Leases:
    """A heap of (end of the lease, number of the trial).

    Args:
        trials: whose leases are taken, if they are pending.

    Attributes:
        heap: the leases, the first that ends at index 0.
    """

    def __init__(self, trials: Iterable[Trial] = ()) -> None:
        self.heap = [(t.lease_until, t.number) for t in trials if t.lease_until is not None and t.state == "pending"]
        heapq.heapify(self.heap)

    def add(self, trial: Trial) -> None:
        """Takes the lease of a trial that has one."""
        if trial.lease_until is not None:
            heapq.heappush(self.heap, (trial.lease_until, trial.number))

    def renew(self, until: float, trial: Trial) -> None:
        """Takes a lease that ends later, because its trial has reported."""
        heapq.heappush(self.heap, (until, trial.number))

    def over(self, now: float) -> bool:
        """Returns whether a lease has ended that nothing on record says so of yet."""
        return bool(self.heap) and self.heap[0][0] <= now

    def ended(self, now: float) -> Iterator[tuple[float, int]]:
        """Yields the leases that have ended, and drops each when the next one is asked for.

        An interrupt or a caller that stops loses none.
        """
        while self.over(now):
            yield self.heap[0]
            heapq.heappop(self.heap)


def lease_seconds(lease: float | timedelta) -> float:
    """Returns a lease in seconds, or raises `InvalidInput`."""
    seconds = lease.total_seconds() if isinstance(lease, timedelta) else lease
    why = "It is how long an answer is waited for, in seconds."
    return number("lease", seconds, low=0.0, open_low=True, high=LONGEST_LEASE, why=why)


def renewal(trial: Trial) -> float:
    """Returns the end of a lease that the last report of a pending trial has begun anew, or minus infinity."""
    if trial.lease_until is None or not trial.curve or trial.state != "pending":
        return -math.inf
    return trial.curve[-1].time + trial.lease_until - trial.asked_at


def abandon_expired(replica: Any, *, most: float = math.inf) -> bool:
    """Abandons trials whose lease has ended, and returns whether more of them are left.

    Each is an event on record, so that a replay sees it at its place.

    Args:
        replica: of the study, within a call.
        most: number of leases to look at.
    """
    now = replica.now()
    for count, (until, ended) in enumerate(replica.leases.ended(now)):
        if count >= most:
            return True
        trial: Trial = replica.record[ended]
        if (renewed := renewal(trial)) > now:
            replica.leases.renew(renewed, trial)
        elif trial.state == "pending":
            since = " after its last report" * bool(trial.curve)
            reason = f"its lease of {exact((trial.lease_until or until) - trial.asked_at)} s ran out{since}"
            replica.put(trial.as_abandoned(reason=reason, order=replica.record.order + 1, time=now), "abandoned")
    return False
