"""HTTP session with a service: kept connections, and retries of requests that are idempotent."""

from __future__ import annotations

import json
import math
import os
import ssl
import time
import uuid
import weakref
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict
from numbers import Integral
from typing import Any, TypeVar, final
from urllib.parse import urlencode

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import astuple

from .._utils.checks import (
    LARGEST_REWARD,
    Array,
    finite_array,
    integer,
    number,
    only_entry,
    outcome,
    real,
    shown,
    whole_in,
)
from ..domains.coordinates import named_points
from ..errors import InvalidInput, NoRegretError, ServiceError, TrialError, needs
from ..serve.wire import messages as m
from ..serve.wire.advice import in_words
from ..study.play_rewards import Rewards, is_several

HIDDEN = np.ma.masked  # an array itself
Points = npt.ArrayLike | Sequence[Mapping[str, Any]] | Mapping[str, Any]
Context = npt.ArrayLike | Mapping[str, Any] | None
# Of one play, of several, or of several objectives.
Told = float | Sequence[float] | Array | Rewards | Mapping[str, float]
Weights = Sequence[float] | Array | Mapping[str, float] | None
Std = float | Sequence[float | None] | Mapping[str, float | None] | None


def decision_id(decision: m.Decision | m.DecisionInFull | str) -> str:
    """Returns the id of a decision."""
    given = decision if isinstance(decision, str) else getattr(decision, "id", None)
    if not isinstance(given, str) or not given:
        raise InvalidInput(f"{shown(decision)} is no decision: pass what `ask` returned, or its `id`.")
    return given


def key_header(key: str | None) -> dict[str, str]:
    """Returns the header with an `Idempotency-Key`, which is made unless given."""
    if key is not None and not (key.isascii() and key.isprintable() and key.strip()):
        raise InvalidInput(f"`key` is {shown(key)}: it must be a text of plain letters, digits and signs.")
    return {"Idempotency-Key": key or str(uuid.uuid4())}


def reward_of(value: Told) -> float | list[float | bool] | dict[str, Any]:
    """Returns a reward, the rewards of several plays, or the values of several objectives."""
    if isinstance(value, Rewards):
        return asdict(value)
    if isinstance(value, Mapping):
        return {str(name): _outcome(f"reward.{name}", each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_outcome(f"reward[{i}]", each) for i, each in enumerate(value)]
    if is_several(only_entry(value)):
        return [*finite_array("rewards", value).ravel().tolist()]
    return _outcome("reward", value)


def _outcome(name: str, value: Any) -> float:
    return outcome(name, value, low=-LARGEST_REWARD, high=LARGEST_REWARD, why="It is what came of a decision.")


def plain(name: str, value: Any) -> Any:
    """Returns a value as JSON holds it, with numbers, arrays, tables and structures of any library as Python's own.

    Args:
        name: of the value, for errors.
        value: numbers, text and None, and lists, arrays, rows, tables, mappings and structures of them.

    Raises:
        InvalidInput: a number is NaN, infinite or masked, or an entry is nothing that JSON holds. JSON would write NaN
            as null, which says that nothing was given.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)  # of numpy's strings a plain one
    if isinstance(value, Struct):
        fields = zip(value.__struct_fields__, astuple(value), strict=True)
        return {key: plain(_within(name, key), each) for key, each in fields if each is not None}
    if isinstance(value, Mapping):
        return {str(key): plain(_within(name, str(key)), each) for key, each in value.items()}
    if callable(getattr(value, "to_numpy", None)) and (rows := named_points(value)) is not None:
        listed = [plain(name, row) for row in rows]
        return listed if hasattr(value, "columns") else listed[0]
    if hasattr(value, "__array__") and not isinstance(value, np.ndarray | np.generic):
        value = np.asarray(value)  # a tensor, or a column of a table
    if isinstance(value, np.ndarray) and value.shape == ():
        value = only_entry(value)
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.ndarray | Sequence | AbstractSet) and not isinstance(value, bytes) and value is not HIDDEN:
        return [plain(f"{name}[{i}]", each) for i, each in enumerate(value)]
    whole = isinstance(value, Integral) and not isinstance(value, np.timedelta64)
    return int(value) if whole else number(name, value)


def _within(name: str, key: str) -> str:
    return f"{name}.{key}" if name else key


def context_of(context: Context) -> Any:
    """Returns a context as it was given, except that a single number is a list: a context of one dimension."""
    return context if real(context) is None else [only_entry(context)]


def numbers(values: Sequence[float | None]) -> Array:
    """Returns an array, with NaN for None."""
    return np.array([math.nan if value is None else value for value in values], dtype=float)


def constraint_values(constraints: npt.ArrayLike | None) -> list[float] | None:
    """Returns the values of constraints as a list."""
    return None if constraints is None else np.atleast_1d(finite_array("constraints", constraints)).tolist()


with needs("`nilregret.client`", "httpx", "client"):
    import httpx

T = TypeVar("T")
IN_PARTS = 3600.0  # seconds to wait for the reply to a body that is sent in parts
RETRIED = frozenset({429, 502, 503, 504})  # the service did nothing, or doing it again is harmless
FIRST_WAIT, LONGEST_WAIT = 0.1, 5.0  # seconds before the second attempt, and before any later one
USUALLY = "Usually it does not run, the address is another one, or a proxy stands between."
UNLIMITED = httpx.Limits(max_connections=None, max_keepalive_connections=None)


def _checked(url: str) -> str:
    try:
        parts = httpx.URL(url)
        known = parts.scheme in ("http", "https") and parts.host and (parts.port or 0) < 1 << 16
        if known and not parts.query + parts.fragment.encode():
            return url.rstrip("/")
    except (httpx.InvalidURL, TypeError):
        pass
    raise InvalidInput(f"`url` is {shown(url)}: it must be like 'http://127.0.0.1:8000'.")


def _close(process: int, http: httpx.Client) -> None:
    if os.getpid() == process:  # in a forked process another thread may have held the locks of the pool
        http.close()


@final
class Session:
    """A session with a service. Several threads, and processes after a fork, may use one.

    Every request may be sent again: those that change something carry an `Idempotency-Key`, or are idempotent.

    Args:
        url, token, timeout, attempts: see `Client`.
    """

    def __init__(self, url: str, *, token: str | None, timeout: float, attempts: int) -> None:
        self.url = _checked(url)
        if token is not None and not (isinstance(token, str) and token.isascii() and token.isprintable() and token):
            raise InvalidInput("`token` is no token: pass it as `nilregret token new` printed it.")
        self._headers = {"Accept": "application/json"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._tls = ssl.create_default_context() if self.url.startswith("https") else False
        self._timeout = number("timeout", timeout, low=0.0, open_low=True, why="It is in seconds.")
        self._attempts = integer("attempts", attempts, low=1, why="It counts attempts.")
        self._process, self._http = os.getpid(), self._connect()

    def get(self, path: str, kind: type[T], **query: Any) -> T:
        """Returns the reply to a GET request as a `kind`. Values of the query are written as JSON."""
        given = {name: json.dumps(plain(name, value)) for name, value in query.items() if value is not None}
        return msgspec.json.decode(self.request("GET", f"{path}?{urlencode(given)}" if given else path), type=kind)

    def send(
        self, method: str, path: str, body: msgspec.Struct, kind: type[T], headers: Mapping[str, str] | None = None
    ) -> T:
        """Returns the reply to a request with a body as a `kind`. Every number of the body is checked (see `plain`)."""
        json_type = {"Content-Type": "application/json"}
        content = msgspec.json.encode(plain("", body))
        reply = self.request(method, path, content, json_type | dict(headers or {}))
        return msgspec.json.decode(reply, type=kind)

    def request(
        self, method: str, path: str, body: bytes | Iterable[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:  # fmt: skip
        """Returns the body of the reply, and sends the request again if that may help.

        Parts of a body are taken anew in each attempt.

        Raises:
            InvalidInput: a value cannot be used.
            TrialError: there is no such study or decision, or what is told contradicts what is on record.
            ServiceError: the service could not be reached, or refuses.
        """
        sent = self._headers | dict(headers or {})
        whole = body is None or isinstance(body, bytes)  # Parts of a body are recorded as they come.
        timeout = httpx.Timeout(self._timeout if whole else max(self._timeout, IN_PARTS), connect=self._timeout)
        for attempt in range(1, self._attempts + 1):
            wait = min(FIRST_WAIT * 2.0 ** min(attempt - 1, 9), LONGEST_WAIT)
            try:
                answer = self._client().request(method, self.url + path, content=body, headers=sent, timeout=timeout)
            except httpx.RequestError as error:
                if attempt == self._attempts:
                    raise self._unreached(attempt, error) from error
            else:
                if answer.is_success:
                    return answer.content
                if attempt == self._attempts or answer.status_code not in RETRIED:
                    raise self._refused(answer)
                wait = max(wait, min(whole_in(answer.headers.get("Retry-After", "")) or 0, LONGEST_WAIT))
            time.sleep(wait)
        raise AssertionError  # the last attempt returns or raises

    def close(self) -> None:
        """Closes the connections. The next request opens another."""
        self._http.close()

    def _client(self) -> httpx.Client:
        """Returns the open client of this process: a forked one must not share the connections of its parent."""
        if self._process != os.getpid() or self._http.is_closed:
            self._process, self._http = os.getpid(), self._connect()
        return self._http

    def _connect(self) -> httpx.Client:
        # No proxy, password or certificate of the environment is used. A redirection would take the token elsewhere.
        made = httpx.Client(verify=self._tls, timeout=self._timeout, limits=UNLIMITED, trust_env=False)
        weakref.finalize(self, _close, os.getpid(), made)
        return made

    def _unreached(self, attempts: int, error: Exception) -> ServiceError:
        tried = f" in {attempts} attempts" if attempts > 1 else ""
        return ServiceError(
            f"The service at {self.url} could not be reached{tried} ({type(error).__name__}: {error}). {USUALLY} "
            "The same call may be repeated."
        )

    def _refused(self, answer: httpx.Response) -> NoRegretError:
        """Returns the error that the library itself would have raised, in the service's words."""
        status = answer.status_code
        try:
            said = in_words(msgspec.json.decode(answer.content, type=m.Problem).error.sentence)
        except msgspec.DecodeError:
            start = answer.content[:200].decode("utf-8", "replace")
            return ServiceError(
                f"What answers at {self.url} is no decision service (HTTP {status}: {start!r}). {USUALLY}"
            )
        if status in (400, 413, 422):
            return InvalidInput(said)
        return TrialError(said) if status in (404, 409) else ServiceError(said)
