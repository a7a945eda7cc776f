"""Server processes: the application behind its middleware, at an address."""

from __future__ import annotations

import logging
import socket
import tempfile
from functools import partial
from pathlib import Path

import uvicorn
from starlette.middleware import Middleware
from starlette.types import ASGIApp

from ..._utils.checks import shown
from ..._utils.dataclass import dataclass, field
from ...errors import InvalidInput, StorageError, printable
from ...storage import SqlStorage
from ..api.app import create_app
from ..auth.middleware import AccessMiddleware
from ..auth.origin_checks import bound_to, is_own
from ..auth.tokens import Tokens
from ..dashboard import ROUTES, error_page
from ..dashboard.files import address
from ..watch.shared_metrics import forget, shared_in
from ..wire.settings import Settings
from .protocol import configured
from .supervisor import supervise

LOG = logging.getLogger("nilregret.serve")
AWAY = 4  # exit code without a storage, the same as that of commands
BACKLOG = 512  # connections that wait to be accepted
# A process without a sign of life for this long is killed. Processes start slowly on a busy machine.
HUNG_SECONDS = 30
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
