"""Server processes: the application behind its middleware, at an address.

Worker processes are kept running: one that ends or hangs is replaced, until the parent is told to stop.
The supervisor of uvicorn (0.54) asks its processes one after the other, and waits for each answer. Measured
with 30 s for slow starts, from SIGTERM to the end:

| two processes | uvicorn | here |
|---|---|---|
| one hangs before the signal | 29 s | at once, a second signal kills it |
| they hang after the signal | never | a second signal kills them |
| they die at their start | 32 s | at once |
| the parent was killed instead | they live on and keep the port | they end within a second |
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from ctypes import c_double
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from pathlib import Path
from typing import final

import uvicorn
from starlette.middleware import Middleware
from starlette.types import ASGIApp

from ..._utils.checks import shown
from ..._utils.dataclass import dataclass, field
from ..._utils.process_setting import handled
from ...errors import InvalidInput, StorageError, printable
from ...storage import SqlStorage
from ..api.app import create_app
from ..auth.middleware import AccessMiddleware
from ..auth.origin_checks import bound_to, is_own
from ..auth.tokens import Tokens
from ..dashboard import ROUTES, error_page
from ..dashboard.files import address
from ..watch.metrics import forget, shared_in
from ..wire.settings import Settings
from .protocol import configured

LOG = logging.getLogger("nilregret.serve")
SPAWN = get_context("spawn")
SIGNALS = (signal.SIGINT, signal.SIGTERM)
BEAT_SECONDS = 1.0  # between two signs of life of a process
STARTING_SECONDS = 60.0  # more for the first one, since processes start slowly on a busy machine
PAUSE_SECONDS = 0.5  # before one that ended is replaced


def supervise(
    work: Callable[[], object], count: int, *, hung_seconds: float, ended: Callable[[int], object] = int
) -> None:
    """Runs a function in several processes until SIGINT or SIGTERM, and returns when all of them have ended.

    It waits for ends and signals at once, so that none of them delays another. A second signal kills the processes.

    Args:
        work: of each process. It can be pickled, and ends on SIGTERM.
        count: number of processes.
        hung_seconds: a process without a sign of life for this long is killed.
        ended: called with the number of each process that has ended.
    """
    told, tell = SPAWN.Pipe(duplex=False)
    with handled(lambda *_: tell.send_bytes(b"."), *SIGNALS):
        workers, signals = [_Worker(work) for _ in range(count)], 0
        while workers or not signals:
            wait([told, *(worker.process.sentinel for worker in workers)], BEAT_SECONDS)
            while told.poll():
                told.recv_bytes()
                signals += 1
                for worker in workers:
                    worker.process.terminate() if signals == 1 else worker.process.kill()
            running = [worker for worker in workers if worker.runs(hung_seconds)]
            for worker in [each for each in workers if each not in running]:
                ended(worker.process.pid or 0)
            fewer, workers = len(running) < len(workers), running
            if not signals and not told.poll(PAUSE_SECONDS if fewer else 0.0):
                workers += [_Worker(work) for _ in range(count - len(workers))]


@final
class _Worker:
    """A process that gives signs of life."""

    def __init__(self, work: Callable[[], object]) -> None:
        # The clock is common to the processes of a machine.
        self._heard = SPAWN.RawValue(c_double, time.monotonic() + STARTING_SECONDS)
        self.process = SPAWN.Process(target=_work, args=(work, self._heard))
        self.process.start()

    def runs(self, hung_seconds: float) -> bool:
        """Returns whether the process runs. It kills one that hangs."""
        if not self.process.is_alive():
            return False
        if time.monotonic() - self._heard.value > hung_seconds:
            LOG.error("Process %s of the service hangs, and is killed.", self.process.pid)
            self.process.kill()
        return True


def _work(work: Callable[[], object], heard: c_double) -> None:
    heard.value = time.monotonic()
    threading.Thread(target=_beat, args=(heard,), name="nilregret-beat", daemon=True).start()
    work()


def _beat(heard: c_double) -> None:
    """Gives signs of life, and ends this process when its parent is gone, which would otherwise keep the port."""
    parent = parent_process()
    while parent is not None and not wait([parent.sentinel], BEAT_SECONDS):
        heard.value = time.monotonic()
    os.kill(os.getpid(), signal.SIGTERM)


AWAY = 4  # exit code without a storage, the same as that of commands
BACKLOG = 512  # connections that wait to be accepted
HUNG_SECONDS = 30  # a process without a sign of life for this long is killed
LEAVING_SECONDS = 5  # for running requests after the server is told to stop


@dataclass(frozen=True)
class Service:
    """The service of one server process. It can be pickled and sent to another process.

    Args:
        storage: URL.
        host: address that the server is bound to.
        settings: of each process.
    """

    storage: str = field(repr=False)  # with its password
    host: str
    settings: Settings = field(default_factory=Settings)

    def __call__(self) -> ASGIApp:
        """Returns the application, behind the middleware that checks access.

        Raises:
            SystemExit: the storage cannot be used now, which the log says in a sentence. The parent process then begins
                another process.
        """
        try:
            storage = SqlStorage(self.storage, private=True)
        except StorageError as error:
            LOG.error("%s", error)
            raise SystemExit(AWAY) from None
        access = Middleware(
            AccessMiddleware, tokens=Tokens(storage), names=bound_to(self.host, *self.settings.public_hosts),
            local=is_own(self.host), limits=self.settings.limits, style=address("dashboard.css"),
            error_page=error_page,
        )  # fmt: skip
        return create_app(storage, self.settings, access=access, routes=ROUTES, error_page=error_page)


def listening(host: str, port: int) -> socket.socket:
    """Returns a socket at this address that listens. Port 0 means any free port.

    Raises:
        InvalidInput: no socket can listen there.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host.strip("[]"), port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise InvalidInput(
            f"The service cannot listen at {shown(host)}, port {port}: {why}. Another program may have that port, or "
            "the address is none of this machine: choose others with --port and --host."
        ) from error
    # Connections inherit the option. Without it an answer in two parts waits 40 ms for an acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def run(
    service: Service, listener: socket.socket, *, workers: int = 1, proxies: str | None = None, log: bool = False
) -> None:
    """Serves until SIGINT or SIGTERM, and then answers the requests that have begun.

    Args:
        service: to serve.
        listener: socket.
        workers: number of processes.
        proxies: addresses, with commas, of the reverse proxies whose headers about the client are trusted.
        log: whether each request gets a line in the log.
    """
    serve = partial(_serve, listener=listener, proxies=proxies, log=log)
    if workers == 1:
        serve(service)
        return
    with tempfile.TemporaryDirectory(prefix="nilregret") as folder, shared_in(Path(folder) / "metrics") as metrics:
        supervise(partial(serve, service), workers, hung_seconds=HUNG_SECONDS, ended=partial(forget, metrics))


def _serve(service: Service, *, listener: socket.socket, proxies: str | None, log: bool) -> None:
    """Serves in this process (see `run`)."""
    lines = logging.StreamHandler()
    lines.addFilter(_escape)
    logging.basicConfig(handlers=[lines], format="%(message)s")
    config = configured(
        service, service.settings.limits, factory=True, timeout_graceful_shutdown=LEAVING_SECONDS, server_header=False,
        proxy_headers=proxies is not None, forwarded_allow_ips=proxies, access_log=log,
        log_level="info" if log else "error", use_colors=False,
    )  # fmt: skip
    logging.getLogger("uvicorn.error").addFilter(_escape)
    uvicorn.Server(config).run(sockets=[listener])


def _escape(record: logging.LogRecord) -> bool:
    """Escapes control characters in a line of the log and in its traceback: names in them come from anywhere."""
    record.msg, record.args = printable(record.getMessage()), ()
    if record.exc_info:
        record.exc_text = printable(logging.Formatter().formatException(record.exc_info))
    return True
