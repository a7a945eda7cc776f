"""A service for tests of programs that use one: on a free port, and gone after the test.

`Serving` runs in this process. `in_a_process` runs the command `nilregret serve`, with the dashboard.
"""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, Self, final

import uvicorn

from ..errors import ServiceError
from ..serve.api.app import create_app
from ..serve.http.protocol import configured
from ..serve.wire.settings import Limits
from ..storage import MemoryStorage, Storage

LONGEST_START = 120.0  # seconds
LEAVING_SECONDS = 2  # seconds for running requests after a stop; a stream of events would never end


@final
class Serving:
    """A service on 127.0.0.1 without tokens, which every program on this machine may use.

    >>> from nilregret.client import Client
    >>> from nilregret.testing.serving import Serving
    >>> with Serving() as service:
    ...     Client(service.url).studies()
    []

    Args:
        storage: of the studies. In memory unless given.

    Attributes:
        url: of the service, after it has started.
    """

    def __init__(self, storage: Storage | None = None) -> None:
        self.url = ""
        self._app = create_app(MemoryStorage() if storage is None else storage)
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> Self:
        """Starts the service. `with` calls it."""
        # With IPPROTO_TCP asyncio sets TCP_NODELAY, without which an answer in parts is delayed.
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        server = uvicorn.Server(
            configured(self._app, Limits(), log_level="error", timeout_graceful_shutdown=LEAVING_SECONDS)
        )

        def run() -> None:
            with listening:
                server.run(sockets=[listening])

        self._server, self._thread = server, threading.Thread(target=run, name="nilregret-serving", daemon=True)
        self._thread.start()
        until = time.monotonic() + LONGEST_START
        while not server.started:
            if not self._thread.is_alive() or time.monotonic() > until:
                raise ServiceError(
                    "The service did not begin; what it printed says why. Usually its storage is not usable."
                )
            time.sleep(0.01)
        return self

    def stop(self) -> None:
        """Stops the service after it has answered running requests."""
        if self._server is not None and self._thread is not None:
            self._app.state.service.streams.end()
            self._server.should_exit = True
            self._thread.join()
        self._server = self._thread = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


@contextlib.contextmanager
def in_a_process(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Runs `nilregret serve` in a process of its own, until the block ends.

    Args:
        *arguments: of the command, such as "--storage" and its URL.

    Yields:
        The process, and what it printed: "url" of the API, "dashboard", "storage".

    Raises:
        ServiceError: the service did not start.
    """
    command = [sys.executable, "-m", "nilregret", "serve", "--port", "0", "--json", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        lines: list[str] = []
        while process.stdout is not None and (not lines or lines[-1] not in ("}\n", "")):
            lines.append(process.stdout.readline())
        try:
            if not lines or lines[-1] == "":
                raise ServiceError(
                    "The service did not begin; what it printed says why. Usually its arguments are wrong."
                )
            yield process, json.loads("".join(lines))
        finally:
            process.terminate()
