"""The receiver of signals: its address, the signature of a message, and one attempt to send it.

A message follows the Standard Webhooks specification 1.0.0: headers `webhook-id`, `webhook-timestamp` and
`webhook-signature`.
"""

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
from dataclasses import dataclass, field
from functools import partial
from typing import final
from urllib.parse import urlsplit

from .._utils.checks import many, shown
from .._utils.errors import InvalidInput
from .._utils.urls import is_loopback

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
