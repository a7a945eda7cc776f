"""Settings of the service for its operator. Every default has a reason."""

from __future__ import annotations

from dataclasses import dataclass, field

from .._utils.checks import integer, number, settle
from .limits import Limits
from .webhook import Webhook

EXCHANGE = "nilregret.exchange"  # extension of our server, with `whole` and `writable`: what needs no time limit
LEAVING = "leaving"  # key in the state of the application: a function to call when the server begins to stop


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of one server process.

    Args:
        limits: on requests of one caller.
        public_hosts: host names of the service besides those of the address that it listens at.
        writers: threads that decide and commit, for all studies together. A study uses one at a time. Four keep two
            cores busy, because one waits for the disk while another decides.
        readers: threads for queries (predictions, explanations, exports, pages), which must not delay decisions.
        fitters: threads that fit hyperparameters, so that no decision waits for a fit. With 0 each decision makes the
            fit that is due, and does not depend on the speed of fits.
        turn_seconds: after which a transaction begins no further command, so that the next study gets its turn.
        turn_calls: commands in one transaction.
        waiting: commands that may wait for one study. Further ones are refused and may be retried.
        open_studies: studies in memory. The one that was unused for longest is dropped first.
        recheck_seconds: after which the storage is asked again whether a name still means the same study.
        poll_seconds: between two queries of a stream of events.
        streams: open streams of events.
        streams_each: open streams of events of one tenant.
        webhook: receiver of signals, or None to send none.
    """

    limits: Limits = field(default_factory=Limits)
    public_hosts: tuple[str, ...] = ()
    writers: int = 4
    readers: int = 4
    fitters: int = 1
    turn_seconds: float = 0.05
    turn_calls: int = 256
    waiting: int = 2000
    open_studies: int = 256
    recheck_seconds: float = 1.0
    poll_seconds: float = 0.5
    streams: int = 100
    streams_each: int = 50
    webhook: Webhook | None = None

    def __post_init__(self) -> None:
        for name in ("writers", "readers", "turn_calls", "waiting", "open_studies", "streams", "streams_each"):
            settle(self, **{name: integer(name, getattr(self, name), low=1)})
        settle(self, fitters=integer("fitters", self.fitters, low=0))
        for name in ("turn_seconds", "recheck_seconds", "poll_seconds"):
            settle(self, **{name: number(name, getattr(self, name), low=0.0, open_low=True)})
