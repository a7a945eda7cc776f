"""Settings of the service for its operator. Every default has a reason."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import final
from urllib.parse import urlsplit

from ..._utils.checks import integer, is_loopback, many, number, settle, shown
from ..._utils.dataclass import dataclass, field
from ...errors import InvalidInput
from .limits import Limits

# The receiver of signals: its address, the signature of a message, and one attempt to send it.
#
# A message follows the Standard Webhooks specification 1.0.0: headers `webhook-id`, `webhook-timestamp` and
# `webhook-signature`.

TAKES = 10.0  # seconds that the receiver may take, to connect and then in all
SHORTEST_SECRET = 16  # bytes of the key, as many as characters of a plain secret
ENCODED = "whsec_"  # begins a secret as libraries of Standard Webhooks write it


@final
@dataclass(frozen=True)
class Webhook:
    """The receiver of signals.

    Args:
        url: https, or http on this machine.
        secret: shared with the receiver, at least 16 bytes. After "whsec_" they are in Base64. `repr` hides it.

    Raises:
        InvalidInput: the URL or the secret cannot be used.
    """

    url: str
    secret: str = field(repr=False)

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            host, _ = parts.hostname or "", parts.port
        except ValueError:
            parts, host = urlsplit(""), ""
        plain = parts.scheme == "http" and is_loopback(host)
        if (
            not host
            or parts.username is not None
            or not (parts.scheme == "https" or plain)
            or not (self.url.isascii() and self.url.isprintable() and " " not in self.url)
        ):
            raise InvalidInput(
                f"`--webhook` is {shown(self.url)}: write an address that begins with https://, without a user before "
                "the host. Other letters than those of ASCII are written as %XX, or xn-- in the host. On this machine "
                "http://127.0.0.1:PORT/ is taken too."
            )
        if len(self._key()) < SHORTEST_SECRET:
            raise InvalidInput(
                f"The secret of the webhook has {many(len(self._key()), 'byte')}: at least {SHORTEST_SECRET} are "
                "needed, as `openssl rand -base64 24` gives. Put it in a file and name the file with "
                "--webhook-secret-file."
            )

    def _key(self) -> bytes:
        """Returns the key of signatures: the bytes of a secret "whsec_BASE64", or the characters of any other."""
        if not self.secret.startswith(ENCODED):
            return self.secret.encode()
        try:
            return base64.b64decode(self.secret.removeprefix(ENCODED), validate=True)
        except ValueError as error:
            raise InvalidInput(
                f"The secret of the webhook begins with {ENCODED}, but goes on with no Base64."
            ) from error

    def headers(self, message: str, body: bytes, at: int) -> dict[str, str]:
        """Returns the headers of a message, with its signature.

        Args:
            message: id of the message.
            body: of the request.
            at: Unix seconds of this attempt.
        """
        signed = b".".join((message.encode(), str(at).encode(), body))
        digest = hmac.new(self._key(), signed, hashlib.sha256).digest()
        return {
            "Content-Type": "application/json", "webhook-id": message, "webhook-timestamp": str(at),
            "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
        }  # fmt: skip

    def send(self, message: str, body: bytes) -> int:
        """Sends a message once and returns the status of the answer. A redirection is not followed."""
        parts = urlsplit(self.url)
        made: Callable[..., http.client.HTTPConnection] = http.client.HTTPConnection
        if parts.scheme == "https":
            made = partial(http.client.HTTPSConnection, context=ssl.create_default_context())
        connection = made(parts.hostname, parts.port, timeout=TAKES)
        # A receiver that sends its answer letter by letter would never be silent for long enough.
        cut = threading.Timer(TAKES, lambda: connection.sock and connection.sock.shutdown(socket.SHUT_RDWR))
        cut.daemon = True
        cut.start()
        try:
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection.request("POST", target, body, self.headers(message, body, int(time.time())))
            return connection.getresponse().status
        finally:
            cut.cancel()
            connection.close()


LEAVING = "leaving"  # key in the state of the application: a function to call when the server begins to stop


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of one server process.

    Args:
        limits: on requests of one caller.
        public_hosts: host names of the service besides those of the address that it listens at.
        writers: threads that decide and commit, for all studies together. A study uses one at a time. Four keep two
            cores busy, because one waits for the disk while another decides.
        readers: threads for queries (predictions, explanations, exports, pages), which must not delay decisions.
        fitters: threads that fit hyperparameters, so that no decision waits for a fit. With 0 each decision makes the
            fit that is due, and does not depend on the speed of fits.
        turn_seconds: after which a transaction begins no further command, so that the next study gets its turn.
        turn_calls: commands in one transaction.
        waiting: commands that may wait for one study. Further ones are refused and may be retried.
        open_studies: studies in memory. The one that was unused for longest is dropped first.
        recheck_seconds: after which the storage is asked again whether a name still means the same study.
        poll_seconds: between two queries of a stream of events.
        streams: open streams of events.
        streams_each: open streams of events of one tenant.
        webhook: receiver of signals, or None to send none.
    """

    limits: Limits = field(default_factory=Limits)
    public_hosts: tuple[str, ...] = ()
    writers: int = 4
    readers: int = 4
    fitters: int = 1
    turn_seconds: float = 0.05
    turn_calls: int = 256
    waiting: int = 2000
    open_studies: int = 256
    recheck_seconds: float = 1.0
    poll_seconds: float = 0.5
    streams: int = 100
    streams_each: int = 50
    webhook: Webhook | None = None

    def __post_init__(self) -> None:
        for name in ("writers", "readers", "turn_calls", "waiting", "open_studies", "streams", "streams_each"):
            settle(self, **{name: integer(name, getattr(self, name), low=1)})
        settle(self, fitters=integer("fitters", self.fitters, low=0))
        for name in ("turn_seconds", "recheck_seconds", "poll_seconds"):
            settle(self, **{name: number(name, getattr(self, name), low=0.0, open_low=True)})
