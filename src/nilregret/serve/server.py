"""A server process: an application behind its gate, at an address."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from dataclasses import dataclass, field
from multiprocessing import parent_process
from typing import Any

import uvicorn
from starlette.middleware import Middleware
from starlette.types import ASGIApp
from uvicorn.supervisors import Multiprocess

from .._utils.checks import shown
from .._utils.errors import InvalidInput, StorageError
from ..storage import SqlStorage
from .app import create_app
from .auth.middleware import Gate
from .auth.origins import bound_to, is_own
from .auth.tokens import Tokens
from .connections import LimitedConnections
from .dashboard import ROUTES
from .dashboard.files import address
from .settings import Settings

LOG = logging.getLogger("nilregret.serve")
AWAY = 4  # what a process ends with when there is no storage, as commands do
BACKLOG = 512  # connections that wait to be taken
HUNG_SECONDS = (
    30  # without a sign of life, after which one of several processes is killed: a busy machine starts slowly
)
LEAVING_SECONDS = 5  # for requests that are being answered when the server is told to stop


@dataclass(frozen=True)
class Service:
    """What each process serves; it can be sent to another one.

    Args:
        storage: URL.
        host: address that it is bound to.
        settings: of each process.
    """

    storage: str
    host: str
    settings: Settings = field(default_factory=Settings)

    def __call__(self) -> ASGIApp:
        """The application, behind the gate.

        Raises:
            SystemExit: the storage cannot be used now, which the log has as a sentence; whoever began this process
                begins another one.
        """
        _end_with_parent()
        try:
            storage = SqlStorage(self.storage, private=True)
        except StorageError as error:
            LOG.error("%s", error)
            raise SystemExit(AWAY) from None
        gate = Middleware(
            Gate, tokens=Tokens(storage), names=bound_to(self.host, *self.settings.public_hosts),
            local=is_own(self.host), limits=self.settings.limits, style=address("dashboard.css"),
        )  # fmt: skip
        return create_app(storage, self.settings, gate=gate, routes=ROUTES)


def _end_with_parent() -> None:
    """One of several processes ends when the one that began it is gone; nobody would stop it, and it keeps the port."""
    parent = parent_process()
    if parent is not None:

        def wait() -> None:
            parent.join()
            os.kill(os.getpid(), signal.SIGTERM)

        threading.Thread(target=wait, name="nilregret-parent", daemon=True).start()


def listening(host: str, port: int) -> socket.socket:
    """A socket at this address, on which connections wait from now on; port 0 is any that is free.

    Raises:
        InvalidInput: there can be none.
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
    # Connections inherit it. Without it an answer in two parts waits 40 ms for the caller to acknowledge the first.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def run(
    service: Service, listener: socket.socket, *, workers: int = 1, proxies: str | None = None, log: bool = False
) -> None:
    """Serve until told to stop (SIGINT or SIGTERM), and then answer what is being answered.

    Args:
        service: what to serve.
        listener: where.
        workers: processes.
        proxies: addresses, with commas, of reverse proxies that are believed who called them and how.
        log: whether each request gets a line.
    """
    limits = service.settings.limits
    http: Any = LimitedConnections(limits.header_seconds, limits.connections)  # any callable that makes a protocol
    config = uvicorn.Config(
        service, factory=True, http=http, ws="none", workers=workers, h11_max_incomplete_event_size=limits.header_bytes,
        limit_concurrency=2 * limits.connections,  # of which some may be closing
        timeout_graceful_shutdown=LEAVING_SECONDS, timeout_worker_healthcheck=HUNG_SECONDS, server_header=False,
        proxy_headers=proxies is not None, forwarded_allow_ips=proxies, access_log=log,
        log_level="info" if log else "error", use_colors=False,
    )  # fmt: skip
    if workers > 1:
        Multiprocess(config, sockets=[listener]).run()
    else:
        uvicorn.Server(config).run(sockets=[listener])
