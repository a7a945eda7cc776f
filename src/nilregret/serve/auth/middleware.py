"""Middleware that checks access. A request that passes has a caller, a role and a complete body.

The order of the checks is part of the defence. The origin of the request comes first, then the caller, and nothing is
looked up before both are known. So a request without a valid token gets the same answer at every address.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from itertools import chain
from typing import final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ..wire.problems import Problem, problem_of
from ..wire.settings import ConcurrencyLimit, Limits, TokenBuckets
from . import bodies, login, origin_checks
from . import tokens as roles
from .bodies import AccessRevoked, SecuredResponse
from .tokens import LOCAL, NOBODY, Caller, Tokens

BEARER = re.compile(r"bearer +([A-Za-z0-9._~+/=-]{1,512})", re.I)
ENCODED_SLASH = re.compile(rb"%(?:2f|5c)", re.I)
STATIC = re.compile(r"/static/.*|/favicon\.ico")  # files of the package, which the login form needs
StillValid = Callable[[], Awaitable[bool]]
ErrorPage = Callable[[Request, Problem], Response]


@final
class AccessMiddleware:
    """Middleware that sets `scope["state"]["caller"]` to the `Caller` of a request, or refuses the request.

    Args:
        app: application that decides nothing about access except which studies a tenant owns.
        tokens: of the callers.
        names: host names of the service.
        local: whether the service is bound to loopback. Callers on this machine then need no token until the first
            token is made.
        limits: of requests.
        style: URL of the style sheet of the login form.
        error_page: returns a problem as a page, for known callers whose browser asks for one.
    """

    def __init__(
        self, app: ASGIApp, tokens: Tokens, *, names: origin_checks.Names | None = None, local: bool = False,
        limits: Limits | None = None, style: str | None = None, error_page: ErrorPage | None = None,
    ) -> None:  # fmt: skip
        self._app, self._tokens, self._local, self._style = app, tokens, local, style
        self._names, self._error_page = names or origin_checks.Names(), error_page
        self._limits = limits or Limits()
        self._callers = TokenBuckets(self._limits.per_second, self._limits.burst)
        self._strangers = TokenBuckets(self._limits.strangers_per_second, self._limits.strangers_burst)
        self._concurrency = ConcurrencyLimit(self._limits.at_once)
        self._refreshing = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request (see the ASGI interface)."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._handle(scope, receive, SecuredResponse(send, self._limits))
        elif scope["type"] == "websocket":  # the service has none
            await send({"type": "websocket.close", "code": 1008})

    async def _handle(self, scope: Scope, receive: Receive, response: SecuredResponse) -> None:
        headers = _headers(scope)
        try:
            try:
                _check_size(scope, self._limits)
                _check_framing(headers)
                public = roles.public(scope["method"], scope["path"])
                host = origin_checks.check(headers, scope["method"], self._names, tls=_tls(scope), nameless=public)
                await self._authorize(scope, receive, response, headers, host)
            except AccessRevoked:
                pass
            except Exception as error:  # `problem_of` logs unexpected errors, and tells the caller nothing of them
                problem = problem_of(error)
                taken = response.started or response.body_read or await bodies.drop(receive, headers, self._limits)
                await response.refuse(problem, close=not taken)
        except TimeoutError:  # the client does not take the answer
            pass

    async def _authorize(
        self, scope: Scope, receive: Receive, response: SecuredResponse, headers: Mapping[str, str], host: str
    ) -> None:
        method, path = scope["method"], scope["path"]
        if roles.public(method, path):
            self._strangers.take(_address(scope))
            await self._forward(scope, NOBODY, bodies.replay(b"", receive), response)
            return
        if path in (login.IN, login.OUT) or (STATIC.fullmatch(path) and method in ("GET", "HEAD")):
            await self._serve_login(scope, receive, response, headers)
            return
        caller, still_valid = await self._caller(scope, headers, host)
        if caller is None:
            await self._refuse_stranger(scope, receive, response, headers)
            return
        name = caller.token or "local"
        self._callers.take(name)
        need = roles.needed(method, path)
        if not caller.may(need):
            sentence = f"This needs a token of the role {need!r}; this one is of a {caller.role!r}."
            await self._refuse_role(scope, receive, response, headers, caller, Problem(403, "role", sentence))
            return
        _check_path(scope)
        self._concurrency.enter(name)
        try:
            if roles.takes_lines(method, path) and bodies.is_lines(headers):
                long = bodies.LongBody(receive, headers, self._limits, still_valid)
                await self._forward_long(scope, caller, long, response)
                return
            body = await bodies.read(receive, headers, self._limits)
            if body is None:
                return
            response.body_read = True
            if still_valid is not None:
                response.still_valid = still_valid
            await self._forward(scope, caller, bodies.replay(body, receive), response)
        finally:
            self._concurrency.leave(name)

    async def _refuse_stranger(
        self, scope: Scope, receive: Receive, response: SecuredResponse, headers: Mapping[str, str]
    ) -> None:
        self._strangers.take(_address(scope))
        if login.wants_page(headers, scope["method"], scope["path"]):
            await login.redirect_to_form(scope["path"], _query(scope))(scope, receive, response)
            return
        how = {"WWW-Authenticate": 'Bearer realm="nilregret"'}
        if "hx-request" in headers:  # a part of a page whose session has ended: the browser goes to the form
            how["HX-Redirect"] = login.IN
        raise Problem(401, "token", "This needs a valid token: `Authorization: Bearer TOKEN`.", headers=how)

    async def _refuse_role(
        self, scope: Scope, receive: Receive, response: SecuredResponse, headers: Mapping[str, str], caller: Caller,
        problem: Problem,
    ) -> None:  # fmt: skip
        if self._error_page is None or not login.wants_page(headers, scope["method"], scope["path"]):
            raise problem
        await self._error_page(Request(_with_caller(scope, caller)), problem)(scope, receive, response)

    async def _forward(self, scope: Scope, caller: Caller, receive: Receive, response: SecuredResponse) -> None:
        """Passes the request to the application, which must begin to answer within the time limit.

        Of a long body, the time counts since the last part was asked for.
        """
        known, seconds = _with_caller(scope, caller), self._limits.request_seconds
        try:
            async with asyncio.timeout(seconds) as clock:
                response.on_start = lambda: clock.reschedule(None)
                if isinstance(receive, bodies.LongBody):
                    now = asyncio.get_running_loop().time
                    receive.on_part = lambda: clock.reschedule(now() + seconds)
                await self._app(known, receive, response)
        except TimeoutError:
            if not response.started:
                raise Problem(
                    503, "slow",
                    f"There was no answer within {self._limits.request_seconds:g} s. Try again, with the same "
                    "`Idempotency-Key` if there was one.",
                    headers={"Retry-After": "1"},
                ) from None  # fmt: skip
        finally:
            response.on_start = None

    async def _forward_long(
        self, scope: Scope, caller: Caller, body: bodies.LongBody, response: SecuredResponse
    ) -> None:  # fmt: skip
        try:
            await self._forward(scope, caller, body, response)
        finally:
            response.body_read = body.read

    # -- the caller --------------------------------------------------------------------------------------------------

    async def _caller(
        self, scope: Scope, headers: Mapping[str, str], host: str
    ) -> tuple[Caller | None, StillValid | None]:
        """Returns the caller, or None, and a function that checks later whether access still holds."""
        await self._refresh()
        if self._local and not self._tokens.any():
            origin_checks.check_direct(headers, host, _address(scope), version=scope.get("http_version", "1.1"))
            return LOCAL, self._still_open
        if "authorization" in headers:
            found = BEARER.fullmatch(headers["authorization"].strip())
            return await self._checked(self._tokens.check, found[1] if found else None)
        cookie = login.cookie_of(headers, tls=_tls(scope))
        if cookie is None or roles.of_api(scope["path"]):
            return await self._checked(self._tokens.check, None)
        caller, still_valid = await self._checked(self._tokens.check_session, cookie)
        if caller is not None and scope["method"] not in roles.READ_METHODS:
            _check_own_page(headers)
        return caller, still_valid

    async def _checked(
        self, check: Callable[[str | None], Caller | None], secret: str | None
    ) -> tuple[Caller | None, StillValid | None]:
        caller = check(secret)
        if caller is None and secret is not None and self._tokens.stale(stranger=True):
            await self._refresh(stranger=True)
            caller = check(secret)

        async def still_valid() -> bool:
            await self._refresh()
            return check(secret) is not None

        return caller, still_valid

    async def _still_open(self) -> bool:
        await self._refresh()
        return not self._tokens.any()

    async def _refresh(self, *, stranger: bool = False) -> None:
        """Reads the tokens again if they are stale. Concurrent requests share one reading."""
        if not self._tokens.stale(stranger=stranger):
            return
        async with self._refreshing:
            if self._tokens.stale(stranger=stranger):
                await asyncio.to_thread(self._tokens.refresh)

    # -- logging in --------------------------------------------------------------------------------------------------

    async def _serve_login(
        self, scope: Scope, receive: Receive, response: SecuredResponse, headers: Mapping[str, str]
    ) -> None:
        """Serves the login form and static files, which need no token."""
        self._strangers.take(_address(scope))
        method, path = scope["method"], scope["path"]
        if STATIC.fullmatch(path):
            _check_path(scope)
            await self._forward(scope, NOBODY, bodies.replay(b"", receive), response)
            return
        await self._refresh()
        if self._local and not self._tokens.any():
            await RedirectResponse(login.HOME, 303)(scope, receive, response)
        elif method == "POST":
            _check_own_page(headers)
            body = await bodies.read(receive, headers, self._limits)
            if body is not None:
                response.body_read = True
                reply = await self._log_in_or_out(scope, body, headers)
                await reply(scope, receive, response)
        elif path == login.IN and method in ("GET", "HEAD"):
            await login.form(_query(scope), style=self._style)(scope, receive, response)
        else:
            allow = "POST" if path == login.OUT else "GET, HEAD, POST"
            raise Problem(405, "method", "This address does not take that method.", headers={"Allow": allow})

    async def _log_in_or_out(self, scope: Scope, body: bytes, headers: Mapping[str, str]) -> Response:
        if scope["path"] == login.OUT:
            cookie = login.cookie_of(headers, tls=_tls(scope))
            if self._tokens.check_session(cookie) is not None and cookie is not None:
                await asyncio.to_thread(self._tokens.log_out, cookie)
            return login.logged_out()
        secret = login.token_in(body, headers)
        await self._checked(self._tokens.check, secret)  # refreshes the tokens if this one is new
        cookie = await asyncio.to_thread(self._tokens.log_in, secret)
        if cookie is None:
            return login.form(_query(scope), wrong=True, style=self._style)
        secure = _tls(scope) or headers.get("origin", "").startswith("https://")
        return login.logged_in(cookie, _query(scope), secure=secure)


def _with_caller(scope: Scope, caller: Caller) -> Scope:
    return {**scope, "state": {**scope.get("state", {}), "caller": caller}}


def _check_own_page(headers: Mapping[str, str]) -> None:
    """Refuses a form if the browser does not say which page sent it. `origin_checks.check` has checked that page."""
    if "origin" not in headers and headers.get("sec-fetch-site") != "same-origin":
        raise Problem(403, "origin", "A browser says from which page a form comes; this request does not.")


def _check_size(scope: Scope, limits: Limits) -> None:
    """Refuses too many headers. The server refuses far larger ones without parsing, but this holds for any server."""
    size = sum(map(len, chain.from_iterable(scope["headers"])))
    if len(scope["headers"]) > limits.header_count or size > limits.header_bytes:
        raise Problem(431, "too_large", "The request has more headers than this service takes.")


def _check_framing(headers: Mapping[str, str]) -> None:
    """Refuses two lengths of a body: a proxy may use the other one, and take the end of the body for a request.

    Encodings besides `chunked` are refused too, because nothing here decodes them (RFC 9112, 6.1).
    """
    if "transfer-encoding" in headers and "content-length" in headers:
        raise Problem(400, "malformed", "A request has `Content-Length` or `Transfer-Encoding`, not both.")
    if headers.get("transfer-encoding", "chunked").strip().lower() != "chunked":
        raise Problem(
            400, "malformed", "`Transfer-Encoding` is `chunked` or absent: send the body without another one."
        )


def _check_path(scope: Scope) -> None:
    path, raw = scope["path"], scope.get("raw_path", b"")
    # A proxy that allows some addresses only would read an encoded slash differently.
    if b"%" in raw and ENCODED_SLASH.search(raw):
        raise Problem(404, "not_found", "There is nothing here.")
    if not path.startswith("/") or not path.isprintable() or "\\" in path or {".", ".."} & {*path.split("/")}:
        raise Problem(400, "malformed", "The address is not one that this service understands.")


def _tls(scope: Scope) -> bool:
    """Returns whether the request is known to have come over TLS, perhaps from a trusted proxy."""
    return bool(scope.get("scheme") == "https")


def _headers(scope: Scope) -> dict[str, str]:
    """Returns headers by lower-case name. A repeated header is joined, so that no check takes it for a valid one."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        found[key] = f"{found[key]}{'; ' if key == 'cookie' else ', '}{text}" if key in found else text
    return found


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else "unknown"


def _query(scope: Scope) -> str:
    return bytes(scope.get("query_string", b"")).decode("latin-1")
