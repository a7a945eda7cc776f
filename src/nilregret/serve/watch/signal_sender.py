"""Sending of signals to the webhook of the operator.

A message is sent until it was taken or a day is over, also after a restart of the service. So a receiver may get a
message twice, under the same id.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, final

from ...errors import StorageError
from ...storage import StoredStudy
from ..wire.settings import Webhook
from ..work.study_notes import notes_of
from ..work.worker import StudyWorker
from ..work.workers import StudyWorkers
from .signals import Signal, signals_of

LOG = logging.getLogger("nilregret.serve")
EVERY = 10.0  # seconds between two looks at the studies
PAUSES = (1.0, 10.0, 60.0, 600.0, 3600.0)  # seconds before each further attempt; the last one repeats
GIVEN_UP = 86_400.0  # seconds after which a message is dropped
WATCHED = 30 * 86_400.0  # seconds: studies with an event since then are opened when the service begins
NOTE, FIRST = "signal:", "signal-first:"  # keys of the notes that a message is done with, and was first sent


@final
class SignalSender:
    """Sends each new signal of the studies that are open in one server process.

    Args:
        webhook: the receiver.
        workers: of the studies.
        clock: Unix seconds.
    """

    def __init__(self, webhook: Webhook, workers: StudyWorkers, clock: Callable[[], float]) -> None:
        self._webhook, self._workers, self._clock = webhook, workers, clock
        self._sending: dict[str, asyncio.Task[None]] = {}  # by id of the message

    async def run(self) -> None:
        """Looks at the studies until it is cancelled."""
        try:
            with suppress(StorageError):  # it is away, and studies are opened by their requests
                await self._workers.open_recent(since=self._clock() - WATCHED)
            while True:
                await self.look()
                await asyncio.sleep(EVERY)
        finally:
            for task in self._sending.values():
                task.cancel()

    async def look(self) -> None:
        """Looks at each open study once, and begins to send what is new."""
        for worker in self._workers.open:
            found: list[tuple[str, bytes]] = []
            with self._workers.isolated(worker.tenant, worker.name):
                found = await self._workers.in_thread(self._new, worker, tenant=worker.tenant)
            for message, body in found:
                if message not in self._sending:
                    task = self._sending[message] = asyncio.create_task(self._deliver(message, body))
                    task.add_done_callback(lambda _, message=message: self._sending.pop(message, None))  # type: ignore[misc]

    async def drain(self) -> None:
        """Waits for the messages that are being sent."""
        await asyncio.gather(*self._sending.values())

    def _new(self, worker: StudyWorker) -> list[tuple[str, bytes]]:
        """Returns the messages of a study that nobody has taken so far, in a thread."""
        storage = self._workers.storage
        (notes,) = notes_of(storage, [worker.stored])
        if notes.archived or notes.paused:
            return []
        signals = signals_of(worker.study, now=self._clock())
        named = {_message_id(worker.stored, signal): signal for signal in signals}
        return [
            (message, _body(worker, signal)) for message, signal in named.items()
            if not storage.notes(None, NOTE + message)
        ]  # fmt: skip

    async def _deliver(self, message: str, body: bytes) -> None:
        storage, pauses = self._workers.storage, iter(PAUSES)
        kept = await self._workers.in_thread(storage.note_once, FIRST + message, repr(self._clock()))
        over = float(kept) + GIVEN_UP
        while True:
            try:
                status = await asyncio.to_thread(self._webhook.send, message, body)
                said = f"it answered {status}"
            except Exception as error:  # of any class: the message is sent again all the same
                status, said = 0, str(error) or type(error).__name__
            pause = next(pauses, PAUSES[-1])
            taken, late = 200 <= status < 300, self._clock() + pause > over
            if taken or late:
                if not taken:
                    LOG.error("The webhook did not take a signal within a day (%s), which is dropped.", said)
                await self._workers.in_thread(storage.note_once, NOTE + message, repr(self._clock()))
                return
            LOG.warning("The webhook did not take a signal (%s); it is sent again in %g s.", said, pause)
            await asyncio.sleep(pause)


def _message_id(study: StoredStudy, signal: Signal) -> str:
    named = f"{study.identity!r}:{signal.kind}:{signal.event}"
    return f"msg_{hashlib.sha256(named.encode()).hexdigest()[:32]}"


def _body(worker: StudyWorker, signal: Signal) -> bytes:
    data: dict[str, Any] = {
        "tenant": worker.tenant, "study": worker.name, "kind": signal.kind, "sentence": signal.sentence,
        "since": signal.since,
    }  # fmt: skip
    return json.dumps({"type": "study.signal", "data": data}).encode()
