"""Settings of the service for its operator, and limits on what one caller may ask. Every default has a reason."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import socket
import ssl
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import final
from urllib.parse import urlsplit

from ..._utils.checks import integer, is_loopback, many, number, settle, shown
from ..._utils.dataclass import dataclass, field, fields
from ...errors import InvalidInput
from .problems import Problem


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of one server process. Each is far above what an honest caller needs.

    Args:
        body_bytes: of a request's body. A thousand rewards are 100 KB.
        lines_bytes: of a body of JSON lines, which is taken in pieces. A hundred thousand observations are 20 MB.
        header_bytes: of a request line with its headers.
        header_count: number of headers.
        header_seconds: until all headers of a request must have come, because a slow client holds a connection.
        body_seconds: until the body of a request must have come, or the next part of a body of JSON lines.
        request_seconds: until an answer must have begun. Streams of events may then go on. Of a body of JSON lines,
            since its last part was taken.
        send_seconds: until the client must have taken a part of an answer.
        connections: open at a time, of all callers.
        at_once: concurrent requests of one caller, with its streams of events.
        per_second: requests of one caller, on average.
        burst: requests of one caller that may come at once after a pause.
        strangers_per_second: requests without a valid token from one address, on average.
        strangers_burst: requests without a valid token from one address that may come at once.
        count: decisions, rewards or points in one request.
        pending: decisions of one study without an answer.
        reports: of one decision. The time of a verdict may grow with them.
        arms: of one study, times its contexts if these are finitely many. The memory for each arm grows with the number
            of points that have been tried.
        posterior_bytes: memory of a posterior on arms after a thousand distinct arms. For rough kernels it grows with
            the square of the number of arms, and several parts of a policy multiply it.
        columns: of a point with its context: one for each number, and one for each option of a choice.
        parts: descriptions within the description of a policy.
    """

    body_bytes: int = 1 << 20
    lines_bytes: int = 1 << 28
    header_bytes: int = 16_384
    header_count: int = 64
    header_seconds: float = 10.0
    body_seconds: float = 10.0
    request_seconds: float = 60.0
    send_seconds: float = 30.0
    connections: int = 1000
    at_once: int = 256
    per_second: float = 2000.0
    burst: float = 4000.0
    strangers_per_second: float = 50.0
    strangers_burst: float = 200.0
    count: int = 1000
    pending: int = 100_000
    reports: int = 10_000
    arms: int = 10_000
    posterior_bytes: int = 1 << 29
    columns: int = 200
    parts: int = 1000

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            whole = isinstance(each.default, int)
            checked = integer(each.name, value, low=1) if whole else number(each.name, value, low=0.0, open_low=True)
            settle(self, **{each.name: checked})


MOST_CALLERS = 10_000  # buckets in memory; a caller whose bucket was dropped gets a full one


@final
class TokenBuckets:
    """A token bucket for each caller, which fills steadily. Each request takes one token.

    Args:
        per_second: tokens that come in.
        burst: tokens that a bucket holds.
        clock: seconds.
    """

    def __init__(self, per_second: float, burst: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = per_second, burst, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens, and the time of that count

    def take(self, caller: str) -> None:
        """Takes one token out of the caller's bucket.

        Raises:
            Problem: 429, the bucket is empty.
        """
        now = self._clock()
        left, at = self._left.pop(caller, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._rate)
        self._left[caller] = (left - 1.0, now) if left >= 1.0 else (left, now)
        if len(self._left) > MOST_CALLERS:
            self._left.popitem(last=False)
        if left < 1.0:
            wait = max(1, round((1.0 - left) / self._rate))
            raise Problem(429, "rate", f"Too many requests; try again in {wait} s.", headers={"Retry-After": str(wait)})


@final
class ConcurrencyLimit:
    """A limit on the concurrent requests of each caller.

    Args:
        most: concurrent requests of one caller.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._now: dict[str, int] = {}

    def enter(self, caller: str) -> None:
        """Counts one more request of the caller, until `leave`.

        Raises:
            Problem: 429, the caller has too many requests.
        """
        count = self._now.get(caller, 0)
        if count >= self._most:
            raise Problem(
                429, "at_once", f"{many(count, 'request')} of this caller at once is the most; try again soon.",
                headers={"Retry-After": "1"},
            )  # fmt: skip
        self._now[caller] = count + 1

    def leave(self, caller: str) -> None:
        """Counts one request less of the caller."""
        left = self._now[caller] - 1
        if left:
            self._now[caller] = left
        else:
            del self._now[caller]


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
