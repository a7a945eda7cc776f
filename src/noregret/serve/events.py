"""What happened in a study after a cursor: at once, or as a stream of server-sent events.

The cursor is the study's own counter of events, which has no gaps; so nobody misses one, and nobody needs to remember
more than a number.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import final

import msgspec

from ..record import Trial
from ..study.study import Study
from . import messages as m
from .desk import Desk
from .settings import Settings

MOST = 1000  # events in one answer
QUIET = 15.0  # seconds after which a stream says that it is alive


def snapshot(study: Study) -> Sequence[Trial]:
    """All trials as they are on disk now.

    `study.trials` is the record itself, which goes on: who reads it trial by trial may see a late event and have missed
    an earlier one of a trial read before.
    """
    kept = study._kept
    with kept.lock:
        kept.sync()
        return kept.record[:]


def events(study: Study, after: int, most: int) -> m.Events:
    """Those after the event of this order."""
    trials = snapshot(study)
    found = [
        (order, kind, trial)
        for trial in trials
        if trial.last_order > after
        for kind, order in trial.happened()
        if order > after
    ]
    found.sort(key=lambda each: each[0])
    said = [_event(order, kind, trial) for order, kind, trial in found[:most]]
    return m.Events(said, said[-1].order if said else after, more=len(found) > most)


def _event(order: int, kind: str, trial: Trial) -> m.Event:
    then = trial.as_of(order)
    at: float | None = {"asked": trial.asked_at, "told": then.told_at, "corrected": then.told_at}.get(kind)
    reason = then.reason
    if kind == "abandoned" and trial.abandoned is not None:
        at, reason = trial.abandoned.time, trial.abandoned.reason
    named: m.EventKind = kind  # type: ignore[assignment]  # both have the same words
    return m.Event(order, named, trial.number, at, then.reward if kind in ("told", "corrected") else None, reason)


@final
class Streams:
    """Streams of events of one server process.

    Args:
        settings: of the service.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.count = 0
        self._over = False

    @property
    def full(self) -> bool:
        """Whether no more may begin."""
        return self.count >= self._settings.streams

    def end(self) -> None:
        """Let all of them come to their end soon."""
        self._over = True

    async def follow(self, desk: Desk, after: int) -> AsyncIterator[bytes]:
        """Events as they come, for as long as somebody listens."""
        self.count += 1
        quiet = 0.0
        try:
            while not self._over:
                found = await desk.look(lambda study, cursor=after: events(study, cursor, MOST))  # type: ignore[misc]
                for event in found.events:
                    yield b"id: %d\nevent: %s\ndata: %s\n\n" % (
                        event.order, event.kind.encode(), msgspec.json.encode(event),
                    )  # fmt: skip
                after = found.next
                quiet = 0.0 if found.events else quiet + self._settings.poll_seconds
                if quiet >= QUIET:
                    yield b": still here\n\n"
                    quiet = 0.0
                if not found.more:
                    await asyncio.sleep(self._settings.poll_seconds)
        finally:
            self.count -= 1
