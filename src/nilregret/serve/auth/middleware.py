"""The gate: everything that comes from outside passes it, and what passes has a caller, a role and a whole body.

The order is part of the defence. Whose page sent it comes first, then who calls; whether anything of that name is
there is asked by nobody before both are known, so that a request without a valid token gets the same answer for every
address.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import final

from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ..limits import Limits
from ..problems import Problem, problem_of
from ..rates import ConcurrencyLimit, TokenBuckets
from . import bodies, login, origins, roles
from .caller import LOCAL, NOBODY, Caller
from .responses import Answer, GoneError
from .tokens import Tokens

BEARER = re.compile(r"bearer +([A-Za-z0-9._~+/=-]{1,512})", re.I)
HIDDEN = re.compile(rb"%(?:2f|5c)", re.I)  # slashes
STATIC = re.compile(r"/static/.*|/favicon\.ico")  # of the package, the same everywhere: the form needs them


@final
class Gate:
    """An application behind a gate.

    What it lets through has `scope["state"]["caller"]`, a `Caller`.

    Args:
        app: that decides nothing about who may do what, but for whose a study is.
        tokens: whose callers are let in.
        names: that the service answers to.
        local: whether it is bound to loopback: then callers on this machine need no token, for as long as none was
            ever made.
        limits: of requests.
        style: the address of the style sheet of the form to log in.
    """

    def __init__(
        self, app: ASGIApp, tokens: Tokens, *, names: origins.Names | None = None, local: bool = False,
        limits: Limits | None = None, style: str | None = None,
    ) -> None:  # fmt: skip
        self._app, self._tokens, self._local, self._style = app, tokens, local, style
        self._names = names or origins.Names()
        self._limits = limits or Limits()
        self._callers = TokenBuckets(self._limits.per_second, self._limits.burst)
        self._strangers = TokenBuckets(self._limits.strangers_per_second, self._limits.strangers_burst)
        self._crowd = ConcurrencyLimit(self._limits.at_once)
        self._reading = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request; as the ASGI interface has it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._answered(scope, receive, Answer(send, self._limits))
        elif scope["type"] == "websocket":  # there are none here
            await send({"type": "websocket.close", "code": 1008})

    async def _answered(self, scope: Scope, receive: Receive, answer: Answer) -> None:
        headers = _headers(scope)
        try:
            try:
                _check_size(scope, self._limits)
                _check_framing(headers)
                host = origins.check(headers, scope["method"], self._names, tls=_tls(scope))
                await self._passed(scope, receive, answer, headers, host)
            except GoneError:
                pass
            except Exception as error:  # whatever it is: it is logged, and nothing of it is told
                problem = problem_of(error)
                taken = answer.started or answer.heard or await bodies.drop(receive, headers, self._limits)
                await answer.tell(problem, close=not taken)
        except TimeoutError:  # nobody takes the answer
            pass

    async def _passed(
        self, scope: Scope, receive: Receive, answer: Answer, headers: Mapping[str, str], host: str
    ) -> None:
        method, path = scope["method"], scope["path"]
        if roles.public(method, path):
            self._strangers.take(_address(scope))
            await self._through(scope, NOBODY, b"", receive, answer)
            return
        if path in (login.IN, login.OUT) or (STATIC.fullmatch(path) and method in ("GET", "HEAD")):
            await self._at_the_door(scope, receive, answer, headers)
            return
        caller, again = await self._caller(scope, headers, host)
        if caller is None:
            self._strangers.take(_address(scope))
            if login.wants_page(headers, method) and not roles.of_api(path):
                await _send(login.sent_there(path, _query(scope)), scope, receive, answer)
                return
            how = {"WWW-Authenticate": 'Bearer realm="nilregret"'}
            if "hx-request" in headers:  # a part of a page whose session has ended: the page goes to the form
                how["HX-Redirect"] = login.IN
            raise Problem(401, "token", "This needs a valid token: `Authorization: Bearer TOKEN`.", headers=how)
        name = caller.token or "local"
        self._callers.take(name)
        need = roles.needed(method, path)
        if not caller.may(need):
            raise Problem(403, "role", f"This needs a token of the role {need!r}; this one is of a {caller.role!r}.")
        _check_path(scope)
        self._crowd.enter(name)
        try:
            body = await bodies.read(receive, headers, self._limits)
            if body is None:
                return
            answer.heard = True
            if again is not None:
                answer.still = again
            await self._through(scope, caller, body, receive, answer)
        finally:
            self._crowd.leave(name)

    async def _through(self, scope: Scope, caller: Caller, body: bytes, receive: Receive, answer: Answer) -> None:
        """To the application, which must begin to answer in time."""
        known = {**scope, "state": {**scope.get("state", {}), "caller": caller}}
        try:
            async with asyncio.timeout(self._limits.request_seconds) as clock:
                answer.began = lambda: clock.reschedule(None)
                await self._app(known, bodies.given(body, receive), answer)
        except TimeoutError:
            if not answer.started:
                raise Problem(
                    503, "slow",
                    f"There was no answer within {self._limits.request_seconds:g} s. Try again, with the same "
                    "`Idempotency-Key` if there was one.",
                    headers={"Retry-After": "1"},
                ) from None  # fmt: skip
        finally:
            answer.began = None

    # -- who calls ---------------------------------------------------------------------------------------------------

    async def _caller(
        self, scope: Scope, headers: Mapping[str, str], host: str
    ) -> tuple[Caller | None, Callable[[], Awaitable[bool]] | None]:
        """Who it is, if anybody; and how to find out later whether that still holds."""
        await self._fresh()
        if self._local and not self._tokens.any():
            origins.check_direct(headers, host, _address(scope), version=scope.get("http_version", "1.1"))
            return LOCAL, self._still_open
        if "authorization" in headers:
            found = BEARER.fullmatch(headers["authorization"].strip())
            return await self._known(self._tokens.check, found[1] if found else None)
        cookie = login.cookie_of(headers, tls=_tls(scope))
        if cookie is None or roles.of_api(scope["path"]):
            return await self._known(self._tokens.check, None)
        caller, again = await self._known(self._tokens.check_session, cookie)
        if caller is not None and scope["method"] not in roles.LOOKING:
            _check_own_page(headers)
        return caller, again

    async def _known(
        self, check: Callable[[str | None], Caller | None], secret: str | None
    ) -> tuple[Caller | None, Callable[[], Awaitable[bool]] | None]:
        caller = check(secret)
        if caller is None and secret is not None and self._tokens.stale(stranger=True):
            await self._fresh(stranger=True)
            caller = check(secret)

        async def again() -> bool:
            await self._fresh()
            return check(secret) is not None

        return caller, again

    async def _still_open(self) -> bool:
        await self._fresh()
        return not self._tokens.any()

    async def _fresh(self, *, stranger: bool = False) -> None:
        """See to it that what is known of tokens is new enough; one reads, the others wait for that."""
        if not self._tokens.stale(stranger=stranger):
            return
        async with self._reading:
            if self._tokens.stale(stranger=stranger):
                await asyncio.to_thread(self._tokens.refresh)

    # -- logging in --------------------------------------------------------------------------------------------------

    async def _at_the_door(self, scope: Scope, receive: Receive, answer: Answer, headers: Mapping[str, str]) -> None:
        """What is open to all: the form, and what it looks like."""
        self._strangers.take(_address(scope))
        method, path = scope["method"], scope["path"]
        if STATIC.fullmatch(path):
            _check_path(scope)
            await self._through(scope, NOBODY, b"", receive, answer)
            return
        await self._fresh()
        if self._local and not self._tokens.any():
            await _send(RedirectResponse(login.HOME, 303), scope, receive, answer)
        elif method == "POST":
            _check_own_page(headers)
            body = await bodies.read(receive, headers, self._limits)
            if body is not None:
                answer.heard = True
                await _send(await self._let_in_or_out(scope, body, headers), scope, receive, answer)
        elif path == login.IN and method in ("GET", "HEAD"):
            await _send(login.form(_query(scope), style=self._style), scope, receive, answer)
        else:
            raise Problem(405, "method", "This address does not take that method.")

    async def _let_in_or_out(self, scope: Scope, body: bytes, headers: Mapping[str, str]) -> Response:
        if scope["path"] == login.OUT:
            cookie = login.cookie_of(headers, tls=_tls(scope))
            if self._tokens.check_session(cookie) is not None and cookie is not None:
                await asyncio.to_thread(self._tokens.log_out, cookie)
            return login.logged_out()
        secret = login.token_in(body, headers)
        await self._known(self._tokens.check, secret)  # which may have been made just now
        cookie = await asyncio.to_thread(self._tokens.log_in, secret)
        if cookie is None:
            return login.form(_query(scope), wrong=True, style=self._style)
        secure = _tls(scope) or headers.get("origin", "").startswith("https://")
        return login.logged_in(cookie, _query(scope), secure=secure)


def _check_own_page(headers: Mapping[str, str]) -> None:
    """A browser says whose page sent a form; `origins.check` has seen that it is ours where it is said."""
    if "origin" not in headers and headers.get("sec-fetch-site") != "same-origin":
        raise Problem(403, "origin", "A browser says from which page a form comes; this request does not.")


def _check_size(scope: Scope, limits: Limits) -> None:
    """The server refuses what is far larger, without parsing it; this holds for any server."""
    size = sum(len(name) + len(value) for name, value in scope["headers"])
    if len(scope["headers"]) > limits.header_count or size > limits.header_bytes:
        raise Problem(431, "too_large", "The request has more headers than this service takes.")


def _check_framing(headers: Mapping[str, str]) -> None:
    """Two lengths of one body: who stands before us may have gone by the other, and take its end for a request."""
    if "transfer-encoding" in headers and "content-length" in headers:
        raise Problem(400, "malformed", "A request has `Content-Length` or `Transfer-Encoding`, not both.")


def _check_path(scope: Scope) -> None:
    path, raw = scope["path"], scope.get("raw_path", b"")
    if b"%" in raw and HIDDEN.search(raw):  # a proxy that lets some addresses through would take it for another one
        raise Problem(404, "not_found", "There is nothing here.")
    if not path.startswith("/") or not path.isprintable() or "\\" in path or {".", ".."} & {*path.split("/")}:
        raise Problem(400, "malformed", "The address is not one that this service understands.")


def _tls(scope: Scope) -> bool:
    """Whether it is known to have come over TLS: a proxy that is believed says so."""
    return bool(scope.get("scheme") == "https")


def _headers(scope: Scope) -> dict[str, str]:
    """By their names; one that comes twice is joined, so that it is nothing that can be taken for one."""
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


async def _send(response: Response, scope: Scope, receive: Receive, answer: Answer) -> None:
    await response(scope, receive, answer)
