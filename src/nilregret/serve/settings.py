"""What whoever runs the service may choose; every number has its reason."""

from __future__ import annotations

from dataclasses import dataclass, field

from .._utils.checks import integer, number, settle
from .limits import Limits

LEAVING = "leaving"  # in the state of an application: what it wants to be called when the server begins to stop


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of one server process.

    Args:
        limits: on what one caller may ask for.
        public_hosts: names under which the service may be called besides those of the address that it listens at.
        writers: threads that decide and commit, of all studies together; a study takes one at a time. Two cores
            are kept busy by four: one waits for the disk while another decides.
        readers: threads that look (predictions, explanations, exports, pages), which must not hold up decisions.
        turn_seconds: after which a transaction takes up no further call of its study, so that the next study comes
            up; what is left waits for its next turn.
        turn_calls: likewise, calls in one transaction.
        waiting: calls that wait for one study; who comes then is told to try again.
        open_studies: studies held in memory; the one that was not used for longest is let go of.
        recheck_seconds: after which it is looked up again whether a name still stands for the same study.
        poll_seconds: between two looks of a stream of events.
        streams: of events, at once.
        streams_each: of these, of one tenant.
    """

    limits: Limits = field(default_factory=Limits)
    public_hosts: tuple[str, ...] = ()
    writers: int = 4
    readers: int = 4
    turn_seconds: float = 0.05
    turn_calls: int = 256
    waiting: int = 2000
    open_studies: int = 256
    recheck_seconds: float = 1.0
    poll_seconds: float = 0.5
    streams: int = 100
    streams_each: int = 50

    def __post_init__(self) -> None:
        for name in ("writers", "readers", "turn_calls", "waiting", "open_studies", "streams", "streams_each"):
            settle(self, **{name: integer(name, getattr(self, name), low=1)})
        for name in ("turn_seconds", "recheck_seconds", "poll_seconds"):
            settle(self, **{name: number(name, getattr(self, name), low=0.0, open_low=True)})
