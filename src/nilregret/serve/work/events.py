"""Events of a study after a cursor, as a list or as a stream of server-sent events.

The cursor is the study's own counter of events, which has no gaps. So a client misses no event, and needs to remember
one number only.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from itertools import takewhile
from typing import Any, final

import msgspec
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from ...storage.changes import ARM_KINDS, StudyChange
from ...storage.record import Trial
from ...storage.trial import Answer, Report
from ...study.play_rewards import Told
from ...study.study import Study
from ..wire import messages as m
from ..wire.problems import Problem
from ..wire.settings import Settings
from .workers import StudyWorker

MOST = 1000  # events in one answer
QUIET = 15.0  # seconds without an event after which a stream sends a comment


def events(study: Study, after: int, most: int) -> m.Events:
    """Returns at most `most` events after the event number `after`, in order."""
    # A snapshot: reading the growing record, one could see a late event and miss an earlier one of a trial read before.
    with study.replica.lock:
        trials, changes = study.replica.snapshot(), study.replica.record.changes
    found: list[tuple[int, str, Trial | Report | StudyChange]] = [
        (order, kind, trial)
        for trial in trials
        if trial.last_order > after
        for kind, order in trial.events()
        if order > after
    ]
    found += [
        (report.order, "reported", report)
        for trial in trials
        if trial.curve
        for report in takewhile(lambda report: report.order > after, reversed(trial.curve))
    ]
    found += [(change.order, change.kind, change) for change in changes if change.order > after]
    found.sort(key=lambda each: each[0])
    listed = [_event(order, kind, each) for order, kind, each in found[:most]]
    return m.Events(listed, listed[-1].order if listed else after, more=len(found) > most)


def several(told: Trial | Answer | Told) -> dict[str, Any]:
    """Returns the entries of `m.Several`: none unless further objectives were told."""
    if not told.others:
        return {}
    return {
        "values": [told.reward, *(other.value for other in told.others)],
        "stds": [told.std, *(other.std for other in told.others)],
    }


def _change(change: StudyChange) -> m.Event:
    arms = [each.arm for each in change.arms] if change.kind in ARM_KINDS else None
    kind: Any = change.kind if arms is None else f"arms_{change.kind}"  # Each of these is a word of `EventKind`.
    return m.Event(change.order, kind, None, change.time, None, None, None, arms, change=change.body)


def _event(order: int, kind: str, of: Trial | Report | StudyChange) -> m.Event:
    if isinstance(of, StudyChange):
        return _change(of)
    if isinstance(of, Report):
        said: dict[str, Any] = {"step": of.step, "value": of.value, "verdict": of.verdict}
        return m.Event(order, "reported", of.trial, of.time, None, None, None, **said)
    then, answered = of.as_of(order), kind in ("told", "corrected", "stopped")
    at = of.asked_at if kind == "asked" else then.told_at if answered else None
    reason = then.reason
    if kind == "abandoned" and of.abandoned is not None:
        at, reason = of.abandoned.time, of.abandoned.reason
    named: m.EventKind = kind  # type: ignore[assignment]  # both have the same words
    reward = then.reward if answered else None
    chance, std = of.propensity if kind == "asked" else None, None if reward is None else then.std
    more = several(then) if answered else {}
    return m.Event(order, named, of.number, at, reward, reason, chance, None, std, **more)


@final
class Streams:
    """The open event streams of one server process.

    Args:
        settings: of the service.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._open: Counter[str] = Counter()  # by tenant
        self._over = False
        self._ended = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None  # the loop of the streams

    @property
    def count(self) -> int:
        """Number of open streams."""
        return self._open.total()

    def enter(self, tenant: str) -> None:
        """Counts one more stream of the tenant, until `leave`.

        Raises:
            Problem: 429, the tenant has too many streams. 503, the process has too many.
        """
        most, own = self._settings.streams, self._settings.streams_each
        if self._open[tenant] >= own:
            raise Problem(
                429, "streams", f"{own} streams of events of this tenant are open, and this server takes no more of "
                "one. Close one that nobody listens to any more, or ask for events by their cursor.",
                headers={"Retry-After": "5"},
            )  # fmt: skip
        if self.count >= most:
            raise Problem(
                503, "busy", "As many streams of events are open as this server takes; ask for events by their cursor.",
                headers={"Retry-After": "5"},
            )  # fmt: skip
        self._open[tenant] += 1

    def leave(self, tenant: str) -> None:
        """Counts one stream less of the tenant."""
        self._open[tenant] -= 1
        if not self._open[tenant]:
            del self._open[tenant]

    def end(self) -> None:
        """Ends all streams. Any thread and any signal handler may call it."""
        self._over = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._ended.set)

    async def follow(self, worker: StudyWorker, after: int) -> AsyncIterator[bytes]:
        """Yields events as they come, without end."""
        self._loop = asyncio.get_running_loop()
        quiet = 0.0
        while not self._over:
            found = await worker.read(lambda study, cursor=after: events(study, cursor, MOST))  # type: ignore[misc]
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
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._ended.wait(), self._settings.poll_seconds)


@final
class Stream:
    """A response that streams events (see the ASGI interface).

    Args:
        streams: of the process. They count this stream from now on.
        worker: of the study.
        after: cursor.

    Raises:
        Problem: there are too many streams.
    """

    def __init__(self, streams: Streams, worker: StudyWorker, after: int) -> None:
        streams.enter(worker.tenant)
        self._streams, self._worker, self._after = streams, worker, after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends events until the client leaves or the server stops."""
        # A HEAD has headers alone, so no client would notice that its stream never ends.
        parts: AsyncIterator[bytes] | tuple[bytes, ...] = (
            () if scope["method"] == "HEAD" else self._streams.follow(self._worker, self._after)
        )
        named = {"Cache-Control": "no-store"}
        try:
            await StreamingResponse(parts, media_type="text/event-stream", headers=named)(scope, receive, send)
        finally:
            self._streams.leave(self._worker.tenant)
