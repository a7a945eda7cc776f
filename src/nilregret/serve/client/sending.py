"""One way to a service: connections that are kept, and attempts that are repeated where that is harmless."""

from __future__ import annotations

import http.client
import itertools
import ssl
import time
import urllib.parse
import weakref
from collections import deque
from contextlib import suppress
from typing import TypeVar, final

import msgspec

from ..._utils.checks import integer, number, shown
from ..._utils.errors import InvalidInput, NoRegretError, ServiceError, TrialError
from .. import messages as m
from .calls import PreparedRequest

T = TypeVar("T")
AGAIN = frozenset({429, 502, 503, 504})  # nothing was done, or doing it again is harmless
FIRST_WAIT, LONGEST_WAIT = 0.1, 5.0  # seconds before a second attempt, and before any later one
USUALLY = "Usually it does not run, the address is another one, or a proxy stands between."


def _close_all(connections: deque[http.client.HTTPConnection]) -> None:
    with suppress(IndexError):  # other threads may take some of them meanwhile
        while True:
            connections.pop().close()


def _parts(url: str) -> urllib.parse.SplitResult:
    try:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and not parts.query + parts.fragment:
            _ = parts.port  # which is read only now
            return parts
    except (ValueError, TypeError, AttributeError):
        pass
    raise InvalidInput(f"`url` is {shown(url)}: it must be like 'http://127.0.0.1:8000'.") from None


@final
class Way:
    """To a service; may be used by several threads.

    Args:
        url, token, timeout, attempts: as of `Client`.
    """

    def __init__(self, url: str, *, token: str | None, timeout: float, attempts: int) -> None:
        parts = _parts(url)
        self._host, self._port, self._base = parts.hostname or "", parts.port, parts.path.rstrip("/")
        if token is not None and not (isinstance(token, str) and token.isascii() and token.isprintable() and token):
            raise InvalidInput("`token` is no token: pass it as `nilregret token new` printed it.")
        self.url = url.rstrip("/")
        self._secure = ssl.create_default_context() if parts.scheme == "https" else None
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._timeout = number("timeout", timeout, low=0.0, open_low=True, why="It is in seconds.")
        self._attempts = integer("attempts", attempts, low=1, why="It counts attempts.")
        self._idle: deque[http.client.HTTPConnection] = deque()
        weakref.finalize(self, _close_all, self._idle)

    def send(self, call: PreparedRequest[T]) -> T:
        """Send it until it is answered.

        Raises:
            InvalidInput: a value cannot be used.
            TrialError: there is no such study or decision, or what is told contradicts what is on record.
            ServiceError: the service could not be reached, or refuses.
        """
        for attempt in itertools.count(1):
            last, wait = attempt >= self._attempts, 0.0
            try:
                status, body, wait = self._once(call)
            except (OSError, http.client.HTTPException) as error:
                if last:
                    raise self._unreached(attempt, error) from error
            else:
                if status < 300:
                    return call.read(body)
                if last or status not in AGAIN:
                    raise self._refused(status, body)
            time.sleep(max(wait, min(FIRST_WAIT * 2.0 ** min(attempt - 1, 9), LONGEST_WAIT)))
        raise NotImplementedError  # the count has no end

    def close(self) -> None:
        """Close the connections that nobody uses; the next call opens another."""
        _close_all(self._idle)

    def _once(self, call: PreparedRequest[T]) -> tuple[int, bytes, float]:
        """The status, the body, and the seconds that the service wants to be left alone for."""
        with suppress(IndexError):
            kept = self._idle.pop()
            # A server closes what was idle for some seconds, which is seen only now.
            with suppress(OSError, http.client.HTTPException):
                return self._through(kept, call)
        return self._through(self._connection(), call)

    def _through(self, connection: http.client.HTTPConnection, call: PreparedRequest[T]) -> tuple[int, bytes, float]:
        headers = {"Accept": "application/json", **self._headers, **call.headers}
        if call.body is not None:
            headers["Content-Type"] = "application/json"
        try:
            connection.request(call.method, self._base + call.path, body=call.body, headers=headers)
            answer = connection.getresponse()
            body = answer.read()
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        wait = answer.headers.get("Retry-After", "")
        return answer.status, body, min(float(wait), LONGEST_WAIT) if wait.isdecimal() else 0.0

    def _connection(self) -> http.client.HTTPConnection:
        if self._secure is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        return http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=self._secure)

    def _unreached(self, attempts: int, error: Exception) -> ServiceError:
        tried = f" in {attempts} attempts" if attempts > 1 else ""
        return ServiceError(
            f"The service at {self.url} could not be reached{tried} ({type(error).__name__}: {error}). {USUALLY} "
            "The same call may be repeated."
        )

    def _refused(self, status: int, body: bytes) -> NoRegretError:
        """What the library itself would have raised, in the service's words."""
        try:
            said = msgspec.json.decode(body, type=m.Problem).error.sentence
        except msgspec.DecodeError:
            start = body[:200].decode("utf-8", "replace")
            return ServiceError(
                f"What answers at {self.url} is no decision service (HTTP {status}: {start!r}). {USUALLY}"
            )
        if status in (400, 413, 422):
            return InvalidInput(said)
        return TrialError(said) if status in (404, 409) else ServiceError(said)
