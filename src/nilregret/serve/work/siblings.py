"""Server processes of one machine that pass requests on, so that one of them decides for each study.

Any process may write to any study, and the storage keeps the record right. But processes that take turns wait for each
other's locks, and take in what the others wrote. So what changes a study is passed on to one process, its owner, by the
hash of its name. That is faster, and nothing depends on it. Where the owner is not there, a process does it by itself.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, final

import msgspec
from starlette.types import Message, Receive, Scope, Send

from ..auth.caller import Caller, caller_of
from ..wire.problems import Problem, problem_of, response_of

LOG = logging.getLogger("nilregret.serve")
PREFIX = 4  # bytes of the length before each message
PASSED = (b"content-type", b"idempotency-key")  # headers that operations read
Run = Callable[[Scope, Receive, Send], Awaitable[None]]


class Passed(msgspec.Struct, array_like=True):
    """A request that has passed the gate of another process."""

    id: int
    caller: Caller
    method: str
    path: str
    query: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes


class Answered(msgspec.Struct, array_like=True):
    """The answer to a request that was passed on."""

    id: int
    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


@final
class Siblings:
    """The processes of one service, as one of them sees them.

    Args:
        folder: of their sockets, which only their user may enter.
        index: of this process.
        count: of processes.
    """

    def __init__(self, folder: str, index: int, count: int) -> None:
        self._folder, self._index, self._count = Path(folder), index, count
        self._lines: dict[int, _Line] = {}
        self._waiting: dict[int, tuple[int, asyncio.Future[Answered]]] = {}  # owner and answer, by id of the request
        self._ids = itertools.count()
        self._tasks: set[asyncio.Task[None]] = set()
        self._taken: set[_Line] = set()  # from the others
        self._server: asyncio.Server | None = None

    async def start(self, run: Run) -> None:
        """Begins to take requests of the others, which `run` answers. Without a socket it takes none."""
        place = self._place(self._index)
        loop = asyncio.get_running_loop()
        take = self._taking(run)

        def line() -> _Line:
            made = _Line(Passed, take, lambda: self._taken.discard(made))
            self._taken.add(made)
            return made

        try:
            place.unlink(missing_ok=True)  # of a process that was killed, whose place this one takes
            self._server = await loop.create_unix_server(line, str(place))
        except OSError as error:  # The path is too long for a socket, or somebody has removed the folder.
            LOG.warning("No requests are passed to process %s of the service: %s", os.getpid(), error)

    async def close(self) -> None:
        """Takes nothing more, and waits for what was taken."""
        if self._server is not None:
            self._server.close()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self.end_lines()

    def end_lines(self) -> None:
        """Ends the connections to the other processes, which a process does when it ends."""
        for line in (*self._lines.values(), *self._taken):
            line.transport.close()

    async def passed(self, scope: Scope, name: str, body: bytes) -> Answered | None:
        """Returns the owner's answer to a request about a study. None if this process is to answer it.

        Raises:
            Problem: 503, the owner ended before it answered. Nobody knows whether it has recorded anything.
        """
        caller = caller_of(scope)
        owner = zlib.crc32(f"{caller.tenant}/{name}".encode("utf-8", "surrogatepass")) % self._count
        line = None if owner == self._index else self._lines.get(owner) or await self._connected(owner)
        if line is None:
            return None
        id, answer = next(self._ids), asyncio.get_running_loop().create_future()  # noqa: A001 - as in messages
        self._waiting[id] = owner, answer
        headers = [each for each in scope["headers"] if each[0] in PASSED]
        line.send(Passed(id, caller, scope["method"], scope["path"], scope["query_string"], headers, body))
        try:
            found: Answered = await answer
            return found
        finally:
            self._waiting.pop(id, None)

    def _place(self, index: int) -> Path:
        return self._folder / f"{index}.socket"

    async def _connected(self, owner: int) -> _Line | None:
        def made() -> _Line:
            return _Line(Answered, self._answered, lambda: self._lost(owner))

        try:
            _, line = await asyncio.get_running_loop().create_unix_connection(made, str(self._place(owner)))
        except OSError:
            return None
        other = self._lines.setdefault(owner, line)
        if other is not line:  # two requests wanted the first line at once
            line.lost = None
            line.transport.close()
        return other

    def _answered(self, line: _Line, answered: Answered) -> None:  # noqa: ARG002 - as `_Line` calls it
        _, answer = self._waiting.get(answered.id, (0, None))
        if answer is not None and not answer.done():
            answer.set_result(answered)

    def _lost(self, owner: int) -> None:
        self._lines.pop(owner, None)
        sentence = (
            "The process that decides for this study has ended. Try again, with the same `Idempotency-Key` if there "
            "was one."
        )
        for of, answer in list(self._waiting.values()):
            if of == owner and not answer.done():
                answer.set_exception(Problem(503, "storage", sentence, headers={"Retry-After": "1"}))

    def _taking(self, run: Run) -> Callable[[_Line, Any], None]:
        def take(line: _Line, passed: Passed) -> None:
            task = asyncio.get_running_loop().create_task(_answer(run, line, passed))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        return take


async def _answer(run: Run, line: _Line, passed: Passed) -> None:
    """Runs the call of another process, and sends the answer."""
    scope: dict[str, Any] = {
        "type": "http", "method": passed.method, "path": passed.path, "query_string": passed.query,
        "headers": passed.headers, "state": {"caller": passed.caller},
    }  # fmt: skip
    answered = Answered(passed.id, 500, [], b"")

    async def receive() -> Message:
        return {"type": "http.request", "body": passed.body, "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            answered.status, answered.headers = message["status"], list(message["headers"])
        else:
            answered.body += message.get("body", b"")

    try:
        await run(scope, receive, send)
    except Exception as error:
        await response_of(problem_of(error))(scope, receive, send)
    line.send(answered)


@final
class _Line(asyncio.Protocol):
    """A connection between two processes, which carries messages with their lengths.

    Args:
        kind: of the messages that come.
        take: called with the connection and each message.
        lost: called when the connection ends.
    """

    transport: asyncio.Transport

    def __init__(
        self, kind: type[msgspec.Struct], take: Callable[[_Line, Any], None], lost: Callable[[], None] | None = None
    ) -> None:
        self.lost = lost
        self._decoder, self._take = msgspec.msgpack.Decoder(kind), take
        self._come = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begins (see `asyncio.Protocol`)."""
        self.transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        """Takes the messages that are complete."""
        self._come += data
        begin = 0
        while len(self._come) >= begin + PREFIX:
            end = begin + PREFIX + int.from_bytes(self._come[begin : begin + PREFIX])
            if len(self._come) < end:
                break
            message = self._decoder.decode(bytes(self._come[begin + PREFIX : end]))
            begin = end
            self._take(self, message)
        del self._come[:begin]

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - as asyncio has it
        """Ends (see `asyncio.Protocol`)."""
        if self.lost is not None:
            self.lost()

    def send(self, message: msgspec.Struct) -> None:
        """Sends a message, or nothing if the other side is gone."""
        if not self.transport.is_closing():
            data = msgspec.msgpack.encode(message)
            self.transport.write(len(data).to_bytes(PREFIX) + data)
