"""The leases of pending trials, by their end."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from datetime import timedelta
from typing import NamedTuple, final

from .._utils.checks import number
from ..storage.trial import Trial

LONGEST_LEASE = 1e9  # Seconds, some thirty years.


class Lease(NamedTuple):
    """The time for which the reward of a trial is waited for.

    Attributes:
        until: its end, Unix seconds.
        number: of the trial.
    """

    until: float
    number: int


@final
class Leases:
    """The leases of pending trials. A lease may outlive the answer to its trial.

    Args:
        trials: trials, of which the pending ones with a lease count.
    """

    def __init__(self, trials: Iterable[Trial] = ()) -> None:
        pending = (trial for trial in trials if trial.state == "pending")
        self._heap = [Lease(trial.lease_until, trial.number) for trial in pending if trial.lease_until is not None]
        heapq.heapify(self._heap)

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, trial: Trial) -> None:
        """Adds the lease of a trial, if it has one."""
        if trial.lease_until is not None:
            heapq.heappush(self._heap, Lease(trial.lease_until, trial.number))

    def first_over(self, now: float) -> Lease | None:
        """Returns the lease that ended first, or None if none has ended."""
        return self._heap[0] if self._heap and self._heap[0].until <= now else None

    def remove_first(self) -> None:
        """Removes the lease that ends first."""
        heapq.heappop(self._heap)


def lease_seconds(lease: float | timedelta) -> float:
    """Returns the checked duration of a lease in seconds."""
    seconds = lease.total_seconds() if isinstance(lease, timedelta) else lease
    why = "It is how long an answer is waited for, in seconds."
    return number("lease", seconds, low=0.0, open_low=True, high=LONGEST_LEASE, why=why)
