"""Observations in bulk: JSON lines of any number, taken in pieces while they come.

A piece is a command of the study's worker, so decisions and rewards of others go on between pieces. Each transaction
writes how far it came into the note of the request's `Idempotency-Key`. The same lines again with that key go on after
the last one taken, also after a kill.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, final

from starlette.types import ASGIApp, Receive

from ..._utils.checks import many, shown
from ..._utils.tables import Table, table_of_records
from ...errors import InvalidInput, NoRegretError
from ...study.imported import Imported
from ...study.importing import Intake, reader_of
from ...study.rows import ASKED, NUMBER, UNIT, in_row
from ...study.transaction import Going, Transaction
from ..auth.bodies import AccessRevoked, LongBody
from ..wire import messages as m
from ..wire.decision_ids import IdempotentRequest, key_of
from ..wire.problems import Problem, problem_of
from ..work.workers import Action, Change, StudyWorker
from .operations import AGAIN, Lines, ParsedRequest, ResponseInfo, Service, json_of, once

PIECE = 100  # Lines that a command takes. Other commands of the study wait for one piece at most.
BODY = "the body"
KIND = "lines of observations"  # What a key was used for.


class Progress(NamedTuple):
    """Counts of the lines under one key that have been taken.

    Attributes:
        rows: number of lines taken.
        recorded: number of them on record.
        without: number of these without a propensity.
        digest: hash of the lines taken.
        spans: of lines that became new trials one after another: first line, first trial, count.
    """

    rows: int = 0
    recorded: int = 0
    without: int = 0
    digest: str = ""
    spans: tuple[tuple[int, int, int], ...] = ()

    @property
    def trials(self) -> int:
        """Number of lines that became new trials."""
        return sum(count for _, _, count in self.spans)

    def with_trial(self, row: int, trial: int) -> tuple[tuple[int, int, int], ...]:
        """Returns the spans with one more line that became a new trial."""
        *before, last = self.spans or ((-1, -1, 0),)
        first, number, count = last
        if (row, trial) == (first + count, number + count):
            return (*before, (first, number, count + 1))
        return (*self.spans, (row, trial, 1))


def _progress(request: IdempotentRequest, transaction: Transaction) -> Progress:
    reply = request.stored_reply(transaction)
    if reply is None:
        return Progress()
    rows, recorded, without, digest, spans = reply.more
    return Progress(rows, recorded, without, digest, tuple((first, trial, count) for first, trial, count in spans))


class _Piece(NamedTuple):
    """Records some lines, in as many transactions as they take."""

    load: _Load
    lines: Sequence[bytes]

    def note_keys(self, worker: StudyWorker) -> list[str]:  # noqa: ARG002
        """Returns the key of the note about the request."""
        return self.load.request.keys

    def prepare(self, worker: StudyWorker) -> Action:
        """Reads the lines, and returns the action that records them."""
        load, study = self.load, worker.study
        records = [_object(line, load.rows + i) for i, line in enumerate(self.lines, start=1)]
        load.names.update(dict.fromkeys(name for record in records for name in record))
        records[0] = dict.fromkeys(load.names) | records[0]  # A piece has the columns of those before it.
        table = replace(table_of_records(records, BODY), first=load.rows + 1, piece=True)
        reader = study.replica.checked(lambda: reader_of(table, study.replica, study.goals[0], worker.name))
        found = study.replica.checked(reader.rows)
        reader.left_out(found)  # Constraint values without an answer are refused.
        rows = {row.row - load.rows - 1: row for row in found}
        unread = set(reader.unread())
        load.read |= load.names.keys() - unread
        load.unread |= unread
        return partial(self._record, rows, 0)

    def _record(self, rows: dict[int, Imported], done: int, transaction: Transaction) -> Progress | Going:
        """Records the lines from `done` on, until the transaction has taken its time."""
        load, now = self.load, _progress(self.load.request, transaction)
        if now.rows != load.rows + done:
            raise Problem(
                503, "busy", "Another request with this key is being taken. Send it again in a second: it goes on "
                "after the last line taken.", headers={"Retry-After": "1"},
            )  # fmt: skip
        load.intake.begin(now.rows)
        place = done
        while place < len(self.lines) and not (place > done and transaction.expired):
            row = rows.get(place)
            now = now._replace(rows=now.rows + 1)
            place += 1
            if row is None:
                continue
            count = len(transaction.trials)
            try:
                trial = load.intake.take(transaction, row)
            except NoRegretError as error:
                raise _of_row(error, row.row) from None
            new = trial.number == count
            now = now._replace(
                recorded=now.recorded + 1, without=now.without + (row.propensity is None),
                spans=now.with_trial(row.row, trial.number) if new else now.spans,
            )  # fmt: skip
        now = now._replace(digest=_hashed(load.hash, self.lines[:place]).hexdigest())
        load.request.store(transaction, [], now)
        return now if place == len(self.lines) else Going(partial(self._record, rows, place))


def _of_row(error: NoRegretError, row: int) -> NoRegretError:
    return in_row(error, row, Table(BODY, {}, piece=True))


def _hashed(known: Any, lines: Sequence[bytes]) -> Any:
    found = known.copy()
    for line in lines:
        found.update(line + b"\n")
    return found


def _object(line: bytes, row: int) -> dict[str, Any]:
    try:
        found = json.loads(line, object_pairs_hook=once, parse_constant=_no_number)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InvalidInput(f"Row {row} of the body is no JSON object: {shown(line.decode('utf-8', 'replace'))}.")
    return found


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


@final
class _Load:
    """The lines of one request on their way into a study.

    Args:
        worker: of the study.
        request: with its key.

    Attributes:
        request: as given.
        begun: the progress of earlier requests with the key.
        now: the progress.
        hash: of the lines taken.
        intake: which keeps units and slates together.
        read: entries that mean something in some piece. Remarks do so beside failures alone.
        unread: entries that mean nothing in some piece.
        names: of the entries of the lines so far.
    """

    def __init__(self, worker: StudyWorker, request: IdempotentRequest) -> None:
        self._worker, self.request = worker, request
        self.begun = self.now = Progress()
        self.hash, self.intake = hashlib.blake2b(digest_size=16), Intake(worker.study.replica)
        self.read, self.unread = set[str](), set[str]()
        self.names: dict[str, None] = {}
        self._skipped = 0

    @property
    def rows(self) -> int:
        """Number of lines taken."""
        return self.now.rows

    async def run(self, lines: AsyncIterator[bytes]) -> None:
        """Takes all lines.

        Raises:
            Problem: a line cannot be used, or those on record under the key were others.
        """
        self.begun = self.now = await self.progress()
        piece: list[bytes] = []
        async for line in lines:
            if self._skipped < self.begun.rows:
                self._skip(line)
                continue
            piece.append(line)
            if len(piece) == PIECE:
                await self._take(piece)
                piece = []
        if piece:
            await self._take(piece)
        if self._skipped < self.begun.rows:
            raise self._other_lines()
        if not self.rows:
            raise Problem(400, "malformed", "The body has no line: it must be a JSON object for each observation.")

    async def progress(self) -> Progress:
        """Returns how far the lines under the key have been taken."""
        known = partial(_progress, self.request)
        found: Progress = await self._worker.run(Change(lambda _: known, self.request.keys))
        return found

    async def _take(self, piece: list[bytes]) -> None:
        before, self.now = self.now, await self._worker.run(_Piece(self, piece))
        self._worker.counts.pass_over(self.now.trials - before.trials)
        self.hash = _hashed(self.hash, piece)

    def _skip(self, line: bytes) -> None:
        """Passes over a line that was taken before."""
        self._skipped += 1
        self.hash.update(line + b"\n")
        if self._skipped == self.begun.rows and self.hash.hexdigest() != self.begun.digest:
            raise self._other_lines()
        row = json.loads(line) if self._skipped <= PIECE or b'"' + NUMBER.encode() + b'"' in line else {}
        self.names.update(dict.fromkeys(row))
        span = next((each for each in self.begun.spans if each[0] <= self._skipped < each[0] + each[2]), None)
        if span is not None and ASKED in row:
            self.intake.pair(row.get(NUMBER), row.get(UNIT), span[1] + self._skipped - span[0])

    def _other_lines(self) -> Problem:
        return Problem(
            422, "key_reused", f"Of this Idempotency-Key {many(self.begun.rows, 'line')} are on record, and the body "
            "does not begin with them. Send the same lines again to go on after them, and take a new key for others.",
            field="Idempotency-Key",
        )  # fmt: skip


async def _lines(receive: Receive, most: int) -> AsyncIterator[bytes]:
    """Yields the lines of a body while it comes. Blank ones are left out."""
    rest, more = b"", True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise Problem(400, "malformed", "The connection was closed before the end of the body.")
        *whole, rest = (rest + message.get("body", b"")).split(b"\n")
        more = message.get("more_body", False)
        for line in whole if more else (*whole, rest):
            if stripped := line.strip():
                yield stripped
        if len(rest) > most:
            raise Problem(413, "too_large", f"A line of the body is longer than {most} bytes.")


async def observe_lines(service: Service, request: ParsedRequest, receive: Receive) -> ASGIApp:
    """Records the observations in JSON lines."""
    if request.key is None:
        raise Problem(
            422, "invalid", "`Idempotency-Key` is missing: a body of JSON lines needs one, so that the same lines sent "
            "again after an interruption go on and record nothing twice.", field="Idempotency-Key",
        )  # fmt: skip
    worker = await request.worker(service)
    load = _Load(worker, IdempotentRequest(key_of("key", request.key), KIND))
    try:
        await load.run(_lines(receive, service.settings.limits.body_bytes))
    except AccessRevoked:
        raise
    except Exception as error:
        if isinstance(receive, LongBody):
            await receive.drain()
        problem = problem_of(error)
        if problem.status in (409, 422) and problem.kind != "key_reused":
            known = await load.progress()
            problem.sentence += (
                f" Of the lines before, {known.rows:,} are taken and {known.recorded:,} of them on record. Mend it, "
                "and send all lines again with the same key: it goes on after these."
            )
        raise problem from error
    new = load.rows - load.begun.rows
    service.metrics.count_observations(worker, load.now.recorded - load.begun.recorded, again=not new)
    said = m.ObservationsTaken(load.rows, load.now.recorded, load.now.without, new, sorted(load.unread - load.read))
    return json_of(said, 200, () if new else AGAIN)


OBSERVATIONS = Lines(
    observe_lines,
    "One observation a line, in order, of any number: `arm` (a number or a name), `parameters` or `point`, `context`, "
    "`reward` and `propensity`, as a line of an export in JSON lines. There may be `unit`, `event`, `facts`, "
    "`metrics`, `std` and `constraints`. The lines are taken in pieces while they come, and an `Idempotency-Key` is "
    "needed: if the request is interrupted or a line is refused, those before it stay on record, and the same lines "
    "with the same key go on after them. Lines without a reward are passed over.",
    '{"arm": 0, "context": {"hour": 9.5}, "propensity": 0.25, "reward": 1}\n'
    '{"arm": 2, "context": {"hour": 21}, "propensity": 0.5, "reward": 0}\n',
    ResponseInfo("All lines are taken.", m.ObservationsTaken),
)
