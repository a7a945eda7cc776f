"""Operations of the API: address, request, responses and handler of each, and the parsing of requests."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, final

import msgspec
from starlette.datastructures import Headers, QueryParams
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ..._utils.checks import shown
from ..._utils.dataclass import dataclass
from ...errors import InvalidInput
from ..auth.bodies import is_lines
from ..auth.tokens import Caller, caller_of
from ..watch.metrics import Metrics
from ..watch.signals import SignalSender
from ..wire.decision_ids import SECRET, Ids, new_secret
from ..wire.messages import Problem as Told
from ..wire.messages import Reply, name_in
from ..wire.problems import Problem, unfit
from ..wire.settings import Settings, Webhook
from ..work.events import Streams
from ..work.workers import NotesStorage, StudyWorker, StudyWorkers


@final
class Service:
    """Study workers, decision ids, metrics and event streams of one server process.

    Args:
        storage: of all studies.
        settings: of the service.
        clock: Unix seconds.

    Attributes:
        clock: as given.
    """

    def __init__(self, storage: NotesStorage, settings: Settings, clock: Callable[[], float]) -> None:
        self.storage, self.settings = storage, settings
        self.workers = StudyWorkers(storage, settings, clock)
        self.metrics = Metrics(self.workers, clock)
        self.streams = Streams(settings)
        self.clock = clock
        self._ids: Ids | None = None

    def sender(self, webhook: Webhook) -> SignalSender:
        """Returns an object that sends the signals of this process."""
        return SignalSender(webhook, self.workers, self.clock)

    @property
    def ids(self) -> Ids:
        """Decision ids of this installation."""
        return self.prepare() if self._ids is None else self._ids

    def prepare(self) -> Ids:
        """Reads or makes the secret of the installation."""
        import scipy.optimize  # the first decision would wait for these modules, some 0.4 s
        import scipy.stats.qmc  # noqa: F401

        self._ids = Ids(self.storage.note_once(SECRET, new_secret()))
        return self._ids


JSON = b"application/json"
DIGITS = re.compile(r"\d{1000}")  # No number or name in an address is as long.
LONGEST_KEY = 200  # characters of an Idempotency-Key


@final
@dataclass(frozen=True)
class ResponseInfo:
    """A response of an operation, for the OpenAPI document.

    Attributes:
        description: in words.
        body: a structure, or the media types of a text.
    """

    description: str
    body: type[msgspec.Struct] | tuple[str, ...] | None = None


class Lines(NamedTuple):
    """The form of an operation that takes JSON lines of any number, in pieces while they come.

    Attributes:
        handler: function that answers a request. It reads the body by `receive` of ASGI.
        text: in words, for the OpenAPI document.
        example: of a body.
        answer: to all lines, with the status 200.
    """

    handler: Callable[[Service, ParsedRequest, Receive], Awaitable[ASGIApp]]
    text: str
    example: str
    answer: ResponseInfo


@final
@dataclass(frozen=True, kw_only=True)
class Operation:
    """An operation of the API.

    Attributes:
        method: of HTTP.
        path: with {names} of its parameters.
        name: unique. The method name in generated clients.
        summary: in one line.
        text: further description.
        handler: function that answers a request.
        body: structure of the request's body.
        query: structure of the query string.
        answers: responses by status, besides the errors that all operations share.
        repeatable: whether the operation takes an `Idempotency-Key`.
        lines: form that takes JSON lines, or None.
    """

    method: str
    path: str
    name: str
    summary: str
    handler: Callable[[Service, ParsedRequest], Awaitable[ASGIApp]]
    answers: Mapping[int, ResponseInfo]
    text: str = ""
    body: type[msgspec.Struct] | None = None
    query: type[msgspec.Struct] | None = None
    repeatable: bool = False
    lines: Lines | None = None


class ParsedRequest(NamedTuple):
    """A parsed request.

    Attributes:
        caller: sender of the request.
        path: parameters in the path.
        scope: of the ASGI interface.
        body: an `Operation.body`.
        query: an `Operation.query`.
        key: `Idempotency-Key`, or None.
    """

    caller: Caller
    path: Mapping[str, Any]
    scope: Scope
    body: Any = None
    query: Any = None
    key: str | None = None

    @property
    def headers(self) -> Headers:
        """Headers of the request."""
        return Headers(scope=self.scope)

    async def worker(self, service: Service) -> StudyWorker:
        """Returns the worker of the study that the address names."""
        return await service.workers.get(self.caller.tenant, self.path["name"])


REFUSALS = {
    400: "The request is no request of this API: the body is no JSON, say.",
    401: "No token, or one that opens nothing.",
    403: "The token's role may not do this, or the request comes from a page of another origin.",
    404: "There is no such study or decision for this caller.",
    408: "The request came too slowly.",
    409: "It contradicts what is on record.",
    413: "The body is too large.",
    415: "The body is said to be something else than JSON.",
    421: "The name in `Host` is none that the service answers to.",
    422: "A value cannot be used; the sentence says which, why, and what to try.",
    429: "Too many requests, or too many decisions that wait for an answer.",
    431: "The headers are too many, or too large.",
    500: "Something went wrong in the server.",
    501: "The server lacks a package that this needs.",
    503: "The storage could not be used just now, or too many calls wait; trying again is harmless.",
}
REFUSED = {status: ResponseInfo(text, Told) for status, text in REFUSALS.items()}


@final
class JsonResponse:
    """A response with a body of encoded JSON.

    Args:
        status: of HTTP.
        body: JSON.
        headers: besides content type and length.
    """

    def __init__(self, status: int, body: bytes, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        self.status, self.body, self.headers = status, body, headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the response (see the ASGI interface)."""
        del scope, receive
        length = b"%d" % len(self.body)
        headers = [(b"content-type", JSON), (b"content-length", length), *self.headers]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


AGAIN = ((b"idempotency-replayed", b"true"),)  # header of a reply to a retry


def json_of(reply: Reply, status: int = 200, headers: tuple[tuple[bytes, bytes], ...] = ()) -> JsonResponse:
    """Returns a structure as a response."""
    return JsonResponse(status, msgspec.json.encode(reply), headers)


@final
class Endpoint:
    """The ASGI application of one operation.

    Args:
        operation: to run.
        service: whose studies the operation reads or changes.

    Attributes:
        route: for Starlette's router.
    """

    def __init__(self, operation: Operation, service: Service) -> None:
        self._operation, self._service = operation, service
        self._decoder = None if operation.body is None else msgspec.json.Decoder(operation.body)
        self._seconds = service.metrics.seconds(operation.name)
        self.route = Route(operation.path, self, methods=[operation.method], name=operation.name)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request (see the ASGI interface)."""
        operation, decoder = self._operation, self._decoder
        lines = operation.lines if operation.lines is not None and is_lines(Headers(scope=scope)) else None
        if lines is not None:
            request = parse(operation, None, scope, b"", scope["path_params"])
            await (await lines.handler(self._service, request, receive))(scope, receive, send)
            return
        # The middleware has read the body, and passes all of it in one message.
        body = (await receive()).get("body", b"") if decoder is not None else b""
        request = parse(operation, decoder, scope, body, scope["path_params"])
        began = time.perf_counter()
        try:
            reply = await operation.handler(self._service, request)
        finally:
            self._seconds.observe(time.perf_counter() - began)
        await reply(scope, receive, send)


def direct_calls(endpoints: Sequence[Endpoint]) -> Callable[[ASGIApp], ASGIApp]:
    """Returns a middleware that calls operations without Starlette's router, which takes longer than they do.

    The gate answers their errors. Operations whose path has a number in it are left to the router, which converts it.
    """
    plain = [each for each in endpoints if ":" not in each.route.path]
    calls = [(method, each.route.path_regex, each) for each in plain for method in each.route.methods or ()]

    def before(app: ASGIApp) -> ASGIApp:
        async def direct(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                for method, pattern, endpoint in calls:
                    if method == scope["method"] and (found := pattern.match(scope["path"])):
                        scope["path_params"] = found.groupdict()
                        await endpoint(scope, receive, send)
                        return
                if DIGITS.search(scope["path"]):  # The router would fail to make a number of them.
                    raise HTTPException(404)
            await app(scope, receive, send)

        return direct

    return before


def parse(
    operation: Operation, decoder: msgspec.json.Decoder[Any] | None, scope: Scope, body: bytes, path: Mapping[str, Any]
) -> ParsedRequest:
    """Returns the parsed request of an operation, whose decoder parses the body."""
    if decoder is not None:
        _check_type(scope)
    return ParsedRequest(
        caller_of(scope), _with_names(path), scope, None if decoder is None else _decode(decoder, body),
        None if operation.query is None else _query(operation.query, scope),
        _key(scope) if operation.repeatable else None,
    )  # fmt: skip


def _with_names(path: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the parts of a path, with the names that stand for a study and an event."""
    return (
        path
        if "name" not in path
        else {**path, **{each: name_in(path[each]) for each in ("name", "id") if each in path}}
    )


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns the entries of an object. A name that stands twice is refused, since parsers differ in which counts."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise Problem(
            400, "malformed", f"{shown(twice)} stands twice in one object of the body: which of the two is meant?"
        )
    return found


def _check_type(scope: Scope) -> None:
    """Refuses a body with a content type other than JSON, such as the form of a page."""
    said = next((value for name, value in scope["headers"] if name == b"content-type"), JSON)
    if said.partition(b";")[0].strip().lower() != JSON:
        raise Problem(
            415, "type", f"The body is said to be {shown(said.decode('latin-1'))}, and this takes JSON: send it with "
            "`Content-Type: application/json`.", field="Content-Type",
        )  # fmt: skip


def _decode(decoder: msgspec.json.Decoder[Any], body: bytes) -> Any:
    if not body.strip():
        raise Problem(400, "malformed", "The body is empty; it must be a JSON object, at least {}.")
    try:
        found = decoder.decode(body)
        json.loads(body, object_pairs_hook=once, parse_int=bool, parse_float=bool)
        return found
    except msgspec.ValidationError as error:
        raise unfit("The body", error, decoder.type) from None
    except UnicodeDecodeError:
        raise Problem(400, "malformed", "The body is no UTF-8, which JSON must be: send it in that encoding.") from None
    except RecursionError:
        raise Problem(400, "malformed", "The body is nested too deeply.") from None


def _query(kind: type[msgspec.Struct], scope: Scope) -> Any:
    given: dict[str, str] = {}
    for name, value in QueryParams(scope["query_string"]).multi_items():
        if name in given:
            raise InvalidInput(f"`{name}` stands in the address more than once.")
        if name not in kind.__struct_fields__:
            known = ", ".join(kind.__struct_fields__) or "none"
            raise InvalidInput(f"`{name[:60]}` is no parameter of this address; it takes {known}.")
        given[name] = value
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise unfit("The address", error, kind) from None


def _key(scope: Scope) -> str | None:
    key = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"idempotency-key"), None)
    if key is not None and not (key.strip() and len(key) <= LONGEST_KEY):
        raise Problem(
            422, "invalid", f"`Idempotency-Key` is {shown(key)}: it must be text of at most {LONGEST_KEY} characters.",
            field="Idempotency-Key",
        )  # fmt: skip
    return key
