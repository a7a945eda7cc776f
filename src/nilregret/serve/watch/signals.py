"""Signals: what an operator should look at in a study, such as trials that fail one after the other.

Each signal is a sentence with its figures. The rules are in `RULES`, and docs/deployment.md lists them.

The webhook of the operator gets them. A message is sent until it was taken or a day is over, also after a restart of
the service. So a receiver may get a message twice, under the same id.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise, takewhile
from typing import Any, Literal, NamedTuple, final, get_args

import numpy as np

from ..._utils.checks import Array, IndexArray, many
from ..._utils.numerals import numeral
from ...errors import StorageError, printable
from ...storage import StoredStudy
from ...storage.record import Trial
from ...study.definition import constraint_names
from ...study.direction import on_average
from ...study.formatting import duration
from ...study.study import Study
from ...study.visits import trial_units
from ..wire.settings import Webhook
from ..work.study_notes import notes_of
from ..work.workers import StudyWorker, StudyWorkers

SignalKind = Literal["failing", "budget", "change", "silent", "fit"]
KINDS: tuple[SignalKind, ...] = get_args(SignalKind)
RULES: dict[SignalKind, str] = {
    "failing": "The last 3 trials with an outcome failed, or more than half of the last 20 did.",
    "budget": "More than the budget is used, and the later half of 40, 80, 160, ... answers used more than it allows.",
    "change": "The policy started anew within the last 20 trials, or within a day.",
    "silent": "Nothing has happened for three times the longest pause between the last 100 answers, while trials are "
    "pending, or after a week of questions.",
    "fit": "A fit is under way for more than 100 trials, or the last one failed.",
}
IN_A_ROW, RECENT = 3, 20  # failed trials, and trials with an outcome that are looked at
PAUSES, LEAST_PAUSES, LONGER = 100, 10, 3.0  # pauses between answers, and how many times the longest is unusual
DAY = 86_400.0
LEAST_SILENCE, AT_REST = 60.0, 30 * DAY  # seconds: less is no silence, and more is the end of a study
LASTING = 7 * DAY  # seconds of questions, after which the end of a study without pending trials is not expected
LEAST_ANSWERS, BATCHES = 40, 5  # answers, and parts whose means are compared, since answers may depend on others
FALSE = 0.05  # probability that a budget that is kept is ever a signal, for independent answers
BEHIND = 100  # trials


class Signal(NamedTuple):
    """A fact that an operator should look at.

    Attributes:
        kind: a key of `RULES`.
        sentence: with its figures.
        since: Unix seconds, or None if no time is on record.
        event: number that tells this signal from a later one of its kind, such as the trial that began it.
    """

    kind: SignalKind
    sentence: str
    since: float | None
    event: int


def signals_of(study: Study, *, now: float) -> list[Signal]:
    """Returns the signals of a study. Those that do not depend on the time are kept until an event.

    Args:
        study: to look at.
        now: present time in Unix seconds.
    """
    replica = study.replica
    known = replica.kept("signals", lambda: [*failing(replica.snapshot()), *_budgets(study)])
    waits = replica.kept(("pauses", replica.record.order), lambda: pauses(replica.snapshot()))  # reports count
    found = *known, *_changes(study, now), *silent(waits, now), *_fits(study)
    return [each._replace(sentence=printable(each.sentence)) for each in found]  # reasons come from anywhere


def failing(trials: Sequence[Trial]) -> list[Signal]:
    """Returns a signal if the last trials with an outcome failed.

    A signal keeps its event until the rule has not held for 20 such trials, so that it is one for one outage.

    Args:
        trials: by number.
    """
    ended = [trial for trial in trials if trial.state in ("observed", "failed")]
    ended.sort(key=lambda trial: trial.as_corrected().told_order or 0)
    held = np.flatnonzero(_fails(np.array([trial.state == "failed" for trial in ended], dtype=bool)))
    if not len(held) or held[-1] < len(ended) - 1:
        return []
    first = ended[held[np.diff(held, prepend=-RECENT - 1) > RECENT][-1]]
    latest = ended[-RECENT:]
    row = len(list(takewhile(lambda trial: trial.state == "failed", reversed(latest))))
    failed = [trial for trial in latest if trial.state == "failed"]
    if row >= IN_A_ROW:
        said = f"The last {many(row, 'trial')} with an outcome failed"
    else:
        said = f"{len(failed)} of the last {RECENT} trials with an outcome failed"
    reason = failed[-1].reason or "no reason was told"
    return [Signal("failing", f"{said}, the latest with: {reason}.", first.told_at, first.number)]


def _fails(failed: Any) -> Any:
    """Returns after which trials the rule of "failing" holds, `(n,)`, given which of them failed."""
    counts, places = np.concatenate([[0], np.cumsum(failed)]), np.arange(1, len(failed) + 1)
    last, recent = (counts[places] - counts[np.maximum(places - most, 0)] for most in (IN_A_ROW, RECENT))
    return (last == IN_A_ROW) | ((places >= RECENT) & (2 * recent > RECENT))


def _budgets(study: Study) -> list[Signal]:
    if not on_average(study.policy):
        return []
    told = [trial for trial in study.replica.snapshot() if trial.constraints is not None]
    widths = {len(trial.constraints) for trial in told if trial.constraints is not None}
    if len(told) < LEAST_ANSWERS or len(widths) != 1:
        return []
    values = np.stack([trial.constraints for trial in told if trial.constraints is not None])
    names = constraint_names(study.about, values.shape[1])
    units = trial_units(told)
    found = [overrun(j, values[:, j], name, units) for j, name in enumerate(names)]
    return [signal._replace(since=told[_looked_at(len(told)) // 2].told_at) for signal in found if signal is not None]


def overrun(index: int, values: Array, name: str, units: IndexArray | None = None) -> Signal | None:
    """Returns a signal if a budget is used up and is being used up further.

    Every bound of a budget grows more slowly than the number of rounds. So a mean above 0 that stays breaks each of
    them in the end, and a mean that has come down to 0 breaks none.

    The later half is tested each time that the answers have doubled, by Student's t of the means of five parts. The
    levels of the tests sum to 0.05, so that looking often finds no more chance than that.

    Args:
        index: of the constraint, from 0.
        values: constraint values in the order of their trials, at most 0 on average where the budget holds `(n,)`.
        name: of the constraint.
        units: of the answers, `(n,)`. Answers of one unit are in one part, or in two parts that follow one another.
    """
    from scipy.special import stdtrit

    count = _looked_at(len(values))
    size, doublings = count // 2 // BATCHES, round(math.log2(count / LEAST_ANSWERS))
    later = slice(count - size * BATCHES, count)
    order = slice(None) if units is None else np.argsort(units[later], kind="stable")
    means = values[later][order].reshape(BATCHES, size).mean(axis=1)
    total, mean = min(float(values.sum()), float(values[:count].sum())), float(means.mean())
    error = float(means.std(ddof=1)) / math.sqrt(BATCHES)
    level = FALSE / ((doublings + 1) * (doublings + 2))
    if total <= 0.0 or mean <= float(stdtrit(BATCHES - 1, 1.0 - level)) * error:
        return None
    said = (
        f"The budget of {name} is overrun by {numeral(float(values.sum()))}, and the later half of "
        f"the first {many(count, 'answer')} went on with {numeral(mean)} each (standard error {numeral(error)}): no "
        "bound allows a mean that stays above 0."
    )
    return Signal("budget", said, None, 64 * doublings + index)  # once for each doubling


def _looked_at(count: int) -> int:
    """Returns how many of the first answers are looked at: 40, 80, 160, and so on."""
    return LEAST_ANSWERS << int(math.log2(count / LEAST_ANSWERS))


def _changes(study: Study, now: float) -> list[Signal]:
    restarts = study.restarts
    if not restarts:
        return []
    record, last = study.replica.record, restarts[-1]
    at = record[last].asked_at if last < len(record) else None
    if len(record) - last > RECENT and (at is None or now - at > DAY):
        return []
    return [Signal("change", f"The policy started anew at trial {last}: {study.restart_reasons[-1]}.", at, last)]


class Pauses(NamedTuple):
    """The latest pauses between answers of a study.

    Attributes:
        longest: seconds.
        ended: whether the study may just have ended: no trial is pending, and it was asked for less than a week.
        last: Unix seconds at which something happened last.
        number: of the last trial.
    """

    longest: float
    ended: bool
    last: float
    number: int


def pauses(trials: Sequence[Trial]) -> Pauses | None:
    """Returns the latest pauses, or None if there are too few to know what is usual.

    Args:
        trials: by number.
    """
    answers = sorted(trial.told_at for trial in trials if trial.told_at is not None)[-PAUSES - 1 :]
    if len(answers) <= LEAST_PAUSES:
        return None
    longest = max(later - earlier for earlier, later in pairwise(answers))
    lasted = trials[-1].asked_at - trials[0].asked_at
    ended = lasted < LASTING and all(trial.state != "pending" for trial in trials)
    reported = max((trial.curve[-1].time for trial in trials if trial.curve), default=0.0)
    return Pauses(longest, ended, max(answers[-1], trials[-1].asked_at, reported), trials[-1].number)


def silent(usual: Pauses | None, now: float) -> list[Signal]:
    """Returns a signal if nothing has happened for longer than usual.

    Args:
        usual: pauses.
        now: present time in Unix seconds.
    """
    if usual is None or usual.ended or not max(LONGER * usual.longest, LEAST_SILENCE) < now - usual.last < AT_REST:
        return []
    said = (
        f"Nothing has happened for {duration(now - usual.last)}; the longest of the last pauses was "
        f"{duration(usual.longest) if usual.longest >= 1.0 else 'less than a second'}."
    )
    return [Signal("silent", said, usual.last, usual.number)]


def _fits(study: Study) -> list[Signal]:
    fits = study.late_fits
    if fits is None:
        return []
    if fits.failure:
        said = f"The last fit failed, and decisions go on with the one before: {fits.failure}."
        return [Signal("fit", said, None, fits.made)]
    behind = fits.behind
    if behind <= BEHIND:
        return []
    said = f"A fit is under way since {many(behind, 'trial')}: decisions go on with the one before."
    return [Signal("fit", said, None, fits.made)]


LOG = logging.getLogger("nilregret.serve")
EVERY = 10.0  # seconds between two looks at the studies
RETRY_PAUSES = (1.0, 10.0, 60.0, 600.0, 3600.0)  # seconds before each further attempt; the last one repeats
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
        storage, pauses = self._workers.storage, iter(RETRY_PAUSES)
        kept = await self._workers.in_thread(storage.note_once, FIRST + message, repr(self._clock()))
        over = float(kept) + GIVEN_UP
        while True:
            try:
                status = await asyncio.to_thread(self._webhook.send, message, body)
                said = f"it answered {status}"
            except Exception as error:  # of any class: the message is sent again all the same
                status, said = 0, str(error) or type(error).__name__
            pause = next(pauses, RETRY_PAUSES[-1])
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
