"""The gate: who gets in, what anybody learns who does not, and what one caller can use up."""

import asyncio
import itertools
import logging
import re

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.routing import Mount, Route

import nilregret as nr
from nilregret._utils.checks import is_loopback
from nilregret.serve.auth import tokens as roles
from nilregret.serve.auth.middleware import AccessMiddleware
from nilregret.serve.auth.origin_checks import Names, bound_to
from nilregret.serve.auth.tokens import Tokens
from nilregret.serve.dashboard import error_page
from nilregret.serve.wire.problems import HANDLERS, Problem, problem_of
from nilregret.serve.wire.settings import ConcurrencyLimit, Limits, TokenBuckets
from nilregret.storage import MemoryStorage, SqlStorage

from .asgi import ask, spoken
from .waiting import LONG

ROLES = ["reader", "decider", "admin"]
METHODS = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE"]
PATHS = ["/", "/studies/a", "/v1", "/v1/studies", "/v1/studies/a", "/v1/studies/a/decisions", "/metrics", "/nowhere"]
SECRET = "nr_" + "A" * 43


async def who(request):
    caller = request.state.caller
    return JSONResponse([caller.tenant, caller.role, len(await request.body())])


async def fail(request):
    raise {"storage": nr.errors.StorageError, "invalid": nr.errors.InvalidInput, "trial": nr.errors.TrialError}.get(
        request.path_params["how"], KeyError
    )("`reward` is 'secret-inside'")


async def slow(request):
    await asyncio.sleep(LONG)


async def stream(request):
    async def parts():
        for i in itertools.count():
            yield f"data: {i}\n\n"
            await asyncio.sleep(0.02)

    return StreamingResponse(parts(), media_type="text/event-stream")


def application():
    everything = [Route("/{rest:path}", who, methods=METHODS)]
    routes = [
        Route("/healthz", lambda _: PlainTextResponse("well")),
        Route("/fail/{how}", fail),
        Route("/slow", slow),
        Route("/stream", stream),
        Mount("/", routes=everything),
    ]
    return Starlette(routes=routes, exception_handlers=HANDLERS)


def gate(*, tokens=True, local=True, limits=None, names=None):
    store = Tokens(MemoryStorage())
    secrets = {role: store.new(role, "default") for role in ("reader", "decider", "admin")} if tokens else {}
    return AccessMiddleware(application(), store, local=local, limits=limits or Limits(), names=names), store, secrets


def bearer(secret):
    return [("Authorization", f"Bearer {secret}")]


# -- who gets in --------------------------------------------------------------------------------------------------


def test_without_any_token_this_machine_is_let_in_and_nobody_else():
    app, _, _ = gate(tokens=False)
    assert ask(app, "POST", "/v1/studies/a", body=b"12").json == ["default", "admin", 2]
    assert ask(app, client=("10.0.0.7", 1)).status == 403
    for header in (
        "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Via", "X-Forwarded-Proto", "X-Forwarded-Port",
        "X-Forwarded-Anything", "CF-Connecting-IP", "CF-Ray", "True-Client-IP", "X-Client-IP", "Fastly-Client-IP",
        "Fly-Client-IP", "X-Envoy-External-Address", "X-Amzn-Trace-Id", "CDN-Loop",
    ):  # fmt: skip
        heard = ask(app, headers=[(header, "10.0.0.7")])  # a proxy on this machine, which anybody may reach
        assert (heard.status, heard.kind) == (403, "proxy")
    app, _, _ = gate(tokens=False, local=False)
    assert ask(app).status == 401
    app, _, _ = gate(tokens=False, names=Names(frozenset({"shop.example"})))
    assert ask(app, host="shop.example").status == 403
    assert ask(app, host="localhost").status == 200


def test_from_the_first_token_on_everybody_needs_one():
    app, tokens, _ = gate(tokens=False)
    secret = tokens.new("reader", "default")
    assert ask(app, path="/v1/studies").status == 401
    assert ask(app, path="/v1/studies", headers=bearer(secret)).json == ["default", "reader", 0]
    tokens.revoke(tokens.list()[0].id)
    assert ask(app, path="/v1/studies").status == 401
    assert ask(app, path="/v1/studies", headers=bearer(secret)).status == 401


def wrong_tokens():
    clock = [1e9]
    store = Tokens(MemoryStorage(), clock=lambda: clock[0])
    expired, revoked = store.new("admin", "default", expires=1.0), store.new("admin", "default")
    good = store.new("admin", "default")
    store.revoke(next(each.id for each in store.list() if store.check(revoked).token == each.id))
    clock[0] += 2.0
    other = Tokens(MemoryStorage()).new("admin", "default")
    return store, good, [
        [], bearer(expired), bearer(revoked), bearer(other), bearer(SECRET), bearer(""), bearer(good[:-1]),
        bearer(good + ", " + good), bearer(good) + bearer(good), [("Authorization", good)],
        [("Authorization", "Bearer")],
        [("Authorization", f"Basic {good}")], [("Authorization", f"Bearer {good} x")], bearer("é" * 43),
        [("Cookie", f"nilregret_session={good}")], [("X-Api-Key", good)], bearer("\x00" * 43), bearer("x" * 5000),
    ]  # fmt: skip


def test_without_a_valid_token_every_address_gives_the_same_answer():
    store, good, wrong = wrong_tokens()
    app = AccessMiddleware(application(), store, local=True, limits=Limits(strangers_burst=1e9))
    assert ask(app, headers=bearer(good)).status == 200
    answers = {}
    for headers, path, method in itertools.product(wrong, PATHS, METHODS):
        heard = ask(app, method, path, headers=headers)
        answers[heard.status, heard.body, tuple(sorted(heard.headers.items()))] = method, path
    ((status, body, headers),) = answers
    assert status == 401
    assert dict(headers)["www-authenticate"] == 'Bearer realm="nilregret"'
    assert b"valid token" in body


def test_a_browser_without_a_session_is_sent_to_the_form_from_any_page():
    app, _, _ = gate()
    for path in ("/", "/studies/there", "/studies/not-there", "/metrics"):
        heard = ask(app, path=path, headers=[("Accept", "text/html,*/*")])
        assert (heard.status, heard.body) == (303, b"")
        assert heard.headers["location"].startswith("/login")
    assert ask(app, path="/v1/studies", headers=[("Accept", "text/html")]).status == 401


def test_a_page_whose_session_has_ended_goes_to_the_form():
    app, _, _ = gate()
    heard = ask(app, path="/studies/a/head", headers=[("HX-Request", "true")])
    assert (heard.status, heard.headers["hx-redirect"]) == (401, "/login")


def test_a_token_in_the_address_opens_nothing():
    app, _, secrets = gate()
    for name in ("token", "access_token", "api_key"):
        assert ask(app, path="/v1/studies", query=f"{name}={secrets['admin']}".encode()).status == 401


def test_a_browser_is_refused_by_a_page_which_says_no_more_than_the_json():
    _, store, secrets = gate()
    app = AccessMiddleware(application(), store, local=True, error_page=error_page)
    html = ("Accept", "text/html,*/*")
    for path in ("/new", "/studies/a/audit", "/studies/nothere/audit"):
        heard = ask(app, path=path, headers=[*bearer(secrets["reader"]), html])
        assert (heard.status, heard.headers["content-type"]) == (403, "text/html; charset=utf-8")
        assert b"role &#39;admin&#39;" in heard.body
        assert heard.headers["content-security-policy"].startswith("default-src")
        assert heard.headers["cache-control"] == "no-store"
        assert ask(app, path=path, headers=bearer(secrets["reader"])).kind == "role"
    assert ask(app, path="/v1/studies/a/audit", headers=[*bearer(secrets["reader"]), html]).kind == "role"
    assert ask(app, "POST", "/new", headers=[*bearer(secrets["reader"]), html]).kind == "role"
    assert ask(app, path="/new", headers=[*bearer("nr_x"), html]).headers["location"].startswith("/login")


def test_roles():
    app, _, secrets = gate()
    may = {
        ("GET", "/v1/studies/a/best"): "reader", ("HEAD", "/v1/studies"): "reader",
        ("POST", "/v1/studies/a/decisions"): "decider", ("PUT", "/v1/studies/a/decisions/x/reward"): "decider",
        ("POST", "/v1/studies/a/decisions/x/failure"): "decider", ("POST", "/v1/studies/a/rewards"): "decider",
        ("PUT", "/v1/studies/a/decisions/x/steps/1"): "decider", ("POST", "/v1/studies/a/decisions/x/stop"): "decider",
        ("POST", "/v1/studies/a/evaluations"): "reader", ("POST", "/v1/studies/a/evaluations/x"): "admin",
        ("POST", "/v1/studies/a/observations"): "decider", ("PUT", "/v1/studies/a"): "admin",
        ("DELETE", "/v1/studies/a"): "admin", ("POST", "/v1/studies"): "admin", ("POST", "/nowhere"): "admin",
        ("PATCH", "/v1/studies/a"): "admin", ("POST", "/v1/studies/a/b/decisions"): "admin",
        ("POST", "/v1/studies//decisions"): "admin", ("TRACE", "/"): "admin",
    }  # fmt: skip
    order = ["reader", "decider", "admin"]
    for (method, path), least in may.items():
        assert roles.needed(method, path) == least
        for role in order:
            heard = ask(app, method, path, headers=bearer(secrets[role]))
            allowed = order.index(role) >= order.index(least)
            assert heard.status == (200 if allowed else 403), (method, path, role)
            if not allowed:
                assert (heard.kind, least in heard.json["error"]["sentence"]) == ("role", True)


def test_what_may_not_be_done_says_nothing_of_what_is_there():
    app, _, secrets = gate()
    answers = {
        ask(app, "PUT", path, headers=bearer(secrets["reader"])).body for path in PATHS if "decisions" not in path
    }
    assert len(answers) == 1


# -- pages of others ----------------------------------------------------------------------------------------------


FOREIGN_HOSTS = [
    "evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "", None, "127.0.0.1:x", "[::1", "a b",
    "127.0.0.1@evil.example", "localhost:8000, localhost", "10.0.0.1", "0.0.0.0", "localhost.",
]  # fmt: skip
FOREIGN_ORIGINS = [
    "http://evil.example", "null", "", "http://127.0.0.1:8001", "http://localhost:8000", "file://",
    "http://127.0.0.1:8000.evil.example", "chrome-extension://127.0.0.1:8000",
]  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("tokens", [False, True])
def test_no_page_of_another_site_reaches_it_by_any_method(method, tokens):
    app, _, secrets = gate(tokens=tokens)
    known = bearer(secrets["admin"]) if tokens else []
    for host in FOREIGN_HOSTS:
        assert ask(app, method, host=host, headers=known).status == 421, host
    assert ask(app, method, headers=[*known, ("Host", "localhost")]).status == 421  # two of them
    for origin in FOREIGN_ORIGINS:
        heard = ask(app, method, headers=[*known, ("Origin", origin)])
        assert (heard.status, heard.kind) == (403, "origin"), origin
    for site in ("cross-site", "same-site", "nonsense"):
        assert ask(app, method, headers=[*known, ("Sec-Fetch-Site", site)]).status == 403
    for good in (
        [("Origin", "http://127.0.0.1:8000")],
        [("Sec-Fetch-Site", "same-origin")],
        [("Sec-Fetch-Site", "none")],
    ):
        assert ask(app, method, headers=[*known, *good]).status == 200
    for host in ("localhost", "LOCALHOST:8000", "[::1]:8000", "127.0.0.1"):
        assert ask(app, method, host=host, headers=known).status == 200


def test_a_link_to_a_page_may_be_followed_but_nothing_may_be_embedded():
    app, _, _ = gate(tokens=False)
    visit = [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document")]
    assert ask(app, headers=visit).status == 200
    assert ask(app, "POST", headers=visit).status == 403
    assert ask(app, headers=[*visit[:2], ("Sec-Fetch-Dest", "iframe")]).status == 403


def test_ports_that_browsers_leave_out():
    app, _, _ = gate(tokens=False)
    assert ask(app, host="localhost:80", headers=[("Origin", "http://localhost")]).status == 200
    assert ask(app, host="localhost", headers=[("Origin", "http://localhost:80")]).status == 200
    assert ask(app, host="localhost", headers=[("Origin", "https://localhost")]).status == 200  # TLS ends before us
    assert ask(app, host="localhost", headers=[("Origin", "http://localhost:443")]).status == 403


def test_names():
    assert bound_to("0.0.0.0").has("192.168.1.5")
    assert bound_to("::").has("[fe80::1]")
    assert not bound_to("0.0.0.0").has("rebound.example")
    assert bound_to("10.0.0.1", "Shop.Example").has("shop.example")
    assert not bound_to("10.0.0.1").has("10.0.0.2")
    assert [is_loopback(host) for host in ("127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost")] == [True] * 5
    assert [is_loopback(host) for host in ("0.0.0.0", "::", "10.0.0.1", "localhost.evil", "", "127.1")] == [False] * 6


def test_there_is_no_cors_and_pages_may_load_nothing_from_elsewhere():
    app, _, secrets = gate()
    for path, known in itertools.product(["/", "/v1/studies", "/healthz", "/login"], [[], bearer(secrets["admin"])]):
        for method in ("GET", "OPTIONS"):
            heard = ask(app, method, path, headers=known)
            assert not [name for name in heard.headers if name.startswith("access-control")]
            assert heard.headers["content-security-policy"].startswith("default-src 'self';")
            assert "frame-ancestors 'none'" in heard.headers["content-security-policy"]
            assert heard.headers["x-content-type-options"] == "nosniff"
            assert heard.headers["cache-control"] == "no-store"


# -- the form -----------------------------------------------------------------------------------------------------

FORM = [("Content-Type", "application/x-www-form-urlencoded"), ("Origin", "http://127.0.0.1:8000")]


def logged_in(app, secret, **more):
    heard = ask(app, "POST", "/login", headers=FORM, body=f"token={secret}".encode(), **more)
    assert heard.status == 303, heard
    return heard, [("Cookie", heard.cookies[0].partition(";")[0])]


def test_a_token_is_traded_for_a_cookie_that_opens_pages_and_never_the_api():
    app, _, secrets = gate()
    form = ask(app, path="/login")
    assert (form.status, form.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert b'name="token"' in form.body
    assert b"<script" not in form.body
    heard, cookie = logged_in(app, secrets["reader"])
    assert heard.headers["location"] == "/"
    assert "; HttpOnly; SameSite=Strict" in heard.cookies[0]
    assert "; Path=/;" in heard.cookies[0]
    assert secrets["reader"] not in heard.cookies[0]
    assert ask(app, path="/studies/a", headers=cookie).json == ["default", "reader", 0]
    for path in ("/v1", "/v1/", "/v1/studies", "/v1/studies/a/best"):
        assert ask(app, path=path, headers=cookie).status == 401
    assert ask(app, path="/v1/studies", headers=cookie + bearer(secrets["reader"])).status == 200
    assert ask(app, path="/studies/a", headers=cookie + bearer(SECRET)).status == 401  # the token counts


def test_over_tls_the_cookie_is_for_tls_alone():
    app, _, secrets = gate(names=Names(frozenset({"shop.example"})))
    form = [FORM[0], ("Origin", "https://shop.example")]
    heard = ask(app, "POST", "/login", headers=form, body=f"token={secrets['admin']}".encode(), host="shop.example")
    assert heard.cookies[0].startswith("__Host-nilregret_session=")
    assert heard.cookies[0].endswith("; Secure")


def test_over_tls_no_cookie_counts_that_somebody_else_may_have_planted():
    app, _, secrets = gate(names=Names(frozenset({"shop.example"})))
    _, planted = logged_in(app, secrets["reader"])  # over HTTP, as another service of the same machine may set it
    over = {"host": "shop.example", "scheme": "https"}
    assert ask(app, path="/studies/a", headers=planted, host="shop.example").status == 200
    assert ask(app, path="/studies/a", headers=planted, **over).status == 401
    form = [FORM[0], ("Sec-Fetch-Site", "same-origin")]  # a browser that says no `Origin` with a form of ours
    heard = ask(app, "POST", "/login", headers=form, body=f"token={secrets['admin']}".encode(), **over)
    assert heard.cookies[0].startswith("__Host-nilregret_session=")
    assert heard.cookies[0].endswith("; Secure")
    own = [("Cookie", heard.cookies[0].partition(";")[0])]
    assert ask(app, path="/studies/a", headers=own, **over).status == 200
    assert ask(app, path="/studies/a", headers=[("Cookie", f"{planted[0][1]}; {own[0][1]}")], **over).status == 200


def test_over_tls_a_page_without_it_is_another_site():
    app, _, secrets = gate(names=Names(frozenset({"shop.example"})))
    for scheme, origin, status in (
        ("https", "https://shop.example", 200), ("https", "http://shop.example", 403),
        ("http", "http://shop.example", 200), ("http", "https://shop.example", 200),
    ):  # fmt: skip
        known = [*bearer(secrets["admin"]), ("Origin", origin)]
        assert ask(app, "POST", "/x", headers=known, host="shop.example", scheme=scheme).status == status


def test_a_proxy_that_says_nothing_of_itself_is_known_by_its_old_http():
    app, _, _ = gate(tokens=False)
    assert ask(app, version="1.1").status == 200
    assert ask(app, version="1.0").kind == "proxy"  # nginx, where nobody has set another version
    app, _, secrets = gate()
    assert ask(app, version="1.0", headers=bearer(secrets["reader"])).status == 200


def test_a_request_has_one_length():
    app, _, secrets = gate()
    both = [*bearer(secrets["admin"]), ("Transfer-Encoding", "chunked"), ("Content-Length", "5")]
    for path in ("/v1/x", "/healthz", "/login"):
        heard = ask(app, "POST", path, headers=both, body=b"0\r\n\r\n")
        assert (heard.status, heard.kind, heard.headers["connection"]) == (400, "malformed", "close")


def test_slashes_that_a_proxy_does_not_see_lead_nowhere():
    app, _, secrets = gate()
    for path, raw in (
        ("/v1/studies", b"/v1%2fstudies"), ("/metrics", b"/%2Fmetrics"), ("/v1\\x", b"/v1%5Cx"),
        ("/static/x.css", b"/static%2Fx.css"),
    ):  # fmt: skip
        assert ask(app, path=path, raw=raw, headers=bearer(secrets["admin"])).status == 404
        assert ask(app, path=path, raw=raw).status == (404 if path.startswith("/static") else 401)
    assert ask(app, path="/v1/a b", raw=b"/v1/a%20b", headers=bearer(secrets["admin"])).status == 200


def test_no_page_of_others_logs_anybody_in_or_out_or_does_anything():
    app, _, secrets = gate()
    body = f"token={secrets['admin']}".encode()
    for headers in (
        FORM[:1],
        [FORM[0], ("Origin", "http://evil.example")],
        [FORM[0], ("Sec-Fetch-Site", "cross-site")],
    ):
        assert ask(app, "POST", "/login", headers=headers, body=body).status == 403
    _, cookie = logged_in(app, secrets["admin"])
    assert ask(app, "POST", "/anything", headers=cookie).status == 403
    assert ask(app, "DELETE", "/studies/a", headers=[*cookie, ("Origin", "http://evil.example")]).status == 403
    assert ask(app, "POST", "/anything", headers=cookie + FORM[1:]).status == 200
    assert ask(app, "POST", "/logout", headers=cookie).status == 403
    assert ask(app, path="/logout", headers=cookie).status == 405
    assert ask(app, path="/", headers=cookie).status == 200


def test_logging_out_ends_the_session_everywhere():
    app, tokens, secrets = gate()
    _, cookie = logged_in(app, secrets["reader"])
    out = ask(app, "POST", "/logout", headers=cookie + FORM[1:])
    assert (out.status, out.headers["location"]) == (303, "/login")
    assert all("Max-Age=0" in each for each in out.cookies)
    assert ask(app, path="/", headers=cookie).status == 401
    assert ask(app, "POST", "/logout", headers=FORM[1:]).status == 303
    _, cookie = logged_in(app, secrets["reader"])
    tokens.revoke(next(each.id for each in tokens.list() if each.role == "reader"))
    assert ask(app, path="/", headers=cookie).status == 401


def test_what_is_no_form_or_no_token():
    app, _, secrets = gate()
    for body in (b"", b"token=", b"token=nr_x", b"token=" + SECRET.encode(), b"token=%00", b"other=1"):
        heard = ask(app, "POST", "/login", headers=FORM, body=body)
        assert heard.status == 401
        assert (b'role="alert"' in heard.body, heard.cookies) == (True, [])
    for body in (b"token=" + b"x" * 5000, b"\xff=1", b"&".join([b"a=1"] * 9)):
        assert ask(app, "POST", "/login", headers=FORM, body=body).status in (400, 401, 415)
    json = [("Content-Type", "application/json"), FORM[1]]
    heard = ask(app, "POST", "/login", headers=json, body=f'{{"token": "{secrets["admin"]}"}}'.encode())
    assert (heard.status, heard.headers.get("connection")) == (415, None)  # all of it was heard: nothing is waited for


@pytest.mark.parametrize(
    ("wanted", "there"),
    [
        ("/studies/a?x=1", "/studies/a?x=1"), ("https://evil.example", "/"), ("//evil.example", "/"),
        ("/\\evil.example", "/"), ("javascript:alert(1)", "/"), ("", "/"), ("/a\r\nSet-Cookie: x=1", "/"),
        ("evil", "/"), ("/%5Cevil", "/%5Cevil"), ("///evil.example", "/"), ("http://[", "/"), ("/\tevil", "/"),
    ],
)  # fmt: skip
def test_after_logging_in_one_is_sent_to_pages_of_ours_alone(wanted, there):
    from urllib.parse import quote

    app, _, secrets = gate()
    heard, _ = logged_in(app, secrets["reader"], query=f"next={quote(wanted, safe='')}".encode())
    assert heard.headers["location"] == there
    assert len(heard.cookies) == 1
    form = ask(app, path="/login", query=b'next="><script>alert(1)</script>')
    assert b"<script" not in form.body


def test_where_nobody_needs_a_token_there_is_nothing_to_log_in_to():
    app, _, _ = gate(tokens=False)
    assert (ask(app, path="/login").headers["location"]) == "/"


# -- how much -----------------------------------------------------------------------------------------------------


def test_bodies_have_a_size_announced_or_not():
    app, _, secrets = gate(limits=Limits(body_bytes=100))
    known = bearer(secrets["admin"])
    assert ask(app, "POST", "/v1/x", headers=known, body=b"x" * 100).json[2] == 100
    assert ask(app, "POST", "/v1/x", headers=known, chunks=[b"x" * 50, b"x" * 50]).json[2] == 100
    assert ask(app, "POST", "/v1/x", headers=known, body=b"x" * 101).status == 413
    heard = ask(app, "POST", "/v1/x", headers=known, chunks=itertools.repeat(b"x" * 10))
    assert (heard.status, heard.headers["connection"]) == (413, "close")
    for length in ("-1", "1e9", "0x10", "9" * 30, "1, 1", "\xb2"):
        assert ask(app, "POST", "/v1/x", headers=[*known, ("Content-Length", length)]).status in (400, 413)


def test_a_body_of_a_stranger_is_not_waited_for():
    app, _, _ = gate(limits=Limits(body_seconds=0.2))
    heard = ask(app, "POST", "/v1/x", chunks=itertools.repeat(b"x"), pause=0.1)
    assert (heard.status, heard.headers["connection"]) == (401, "close")
    heard = ask(app, "POST", "/v1/x", headers=[("Content-Length", "9")], chunks=itertools.repeat(b"x"), pause=0.1)
    assert (heard.status, heard.headers["connection"]) == (401, "close")
    heard = ask(gate()[0], "POST", "/v1/x", body=b"small")
    assert (heard.status, "connection" in heard.headers) == (401, False)


def test_who_is_too_slow_is_told():
    app, _, secrets = gate(limits=Limits(body_seconds=0.1, request_seconds=0.1))
    heard = ask(app, "POST", "/v1/x", headers=bearer(secrets["admin"]), chunks=itertools.repeat(b"x"), pause=0.03)
    assert (heard.status, heard.kind) == (408, "slow")
    heard = ask(app, path="/slow", headers=bearer(secrets["admin"]))
    assert (heard.status, heard.kind) == (503, "slow")


def test_too_many_headers():
    app, _, secrets = gate(limits=Limits(header_count=5, header_bytes=300))
    known = bearer(secrets["admin"])
    assert ask(app, headers=[*known, *[(f"x{i}", "1") for i in range(5)]]).status == 431
    assert ask(app, headers=[*known, ("x", "y" * 300)]).status == 431
    assert ask(app, headers=known).status == 200


def test_one_caller_cannot_use_up_what_is_there_for_others():
    app, _, secrets = gate(limits=Limits(per_second=1e-3, burst=3, strangers_per_second=1e-3, strangers_burst=2))

    async def one_after_another():
        known, other = bearer(secrets["reader"]), bearer(secrets["admin"])
        assert [(await spoken(app, headers=known)).status for _ in range(4)] == [200, 200, 200, 429]
        assert (await spoken(app, headers=other)).status == 200
        statuses = [(await spoken(app, headers=bearer(SECRET))).status for _ in range(3)]
        assert statuses == [401, 401, 429]
        heard = await spoken(app, headers=bearer(SECRET))
        assert int(heard.headers["retry-after"]) > 0
        assert (await spoken(app, headers=other)).status == 200  # from the same address
        assert (await spoken(app, headers=bearer(SECRET), client=("10.0.0.9", 1))).status == 401

    asyncio.run(one_after_another())


def test_buckets_fill_and_the_oldest_callers_are_forgotten(monkeypatch):
    from nilregret.serve.wire import settings as rates

    monkeypatch.setattr(rates, "MOST_CALLERS", 10)
    now = [0.0]
    buckets = TokenBuckets(2.0, 2.0, clock=lambda: now[0])
    buckets.take("a")
    buckets.take("a")
    with pytest.raises(Problem, match="Too many"):
        buckets.take("a")
    now[0] += 0.5
    buckets.take("a")
    for i in range(100):
        buckets.take(f"stranger {i}")
    assert len(buckets._left) == 10


def test_how_many_at_once():
    limit = ConcurrencyLimit(2)
    for caller in "aab":
        limit.enter(caller)
    with pytest.raises(Problem, match="2 requests of this caller at once"):
        limit.enter("a")
    limit.leave("a")
    limit.enter("a")
    for caller in "aab":
        limit.leave(caller)
    assert limit._now == {}


def test_addresses_that_are_none():
    app, _, secrets = gate()
    for path in (
        "/../etc/passwd",
        "/v1/studies/.",
        "/v1/studies/../../x",
        "*",
        "http://evil.example/",
        "/a\0b",
        "/a\nb",
        "/a\\b",
        "",
        "/\x7f",
    ):
        heard = ask(app, path=path, headers=bearer(secrets["admin"]))
        assert (heard.status, heard.kind) == (400, "malformed"), path
        assert ask(app, path=path).status == 401


def test_a_stream_ends_when_the_token_does(monkeypatch):
    monkeypatch.setattr("nilregret.serve.auth.tokens.FRESH", 0.05)
    app, tokens, secrets = gate()

    async def listening():
        sent = []
        request = asyncio.create_task(spoken(app, path="/stream", headers=bearer(secrets["reader"]), sent=sent))
        while len(sent) < 2:
            await asyncio.sleep(0.01)
        assert not request.done()
        other = next(each.id for each in tokens.list() if each.role == "reader")
        tokens.revoke(other)
        return await asyncio.wait_for(request, LONG)

    heard = asyncio.run(listening())
    assert heard.body.startswith(b"data: 0\n\n")


def test_who_does_not_take_an_answer_is_not_waited_for():
    app, _, secrets = gate(limits=Limits(send_seconds=0.05))

    async def deaf(message):
        await asyncio.sleep(2 * LONG)

    async def talk():
        scope = {
            "type": "http", "method": "GET", "path": "/", "query_string": b"", "client": ("127.0.0.1", 1), "state": {},
            "headers": [(b"host", b"localhost"), (b"authorization", f"Bearer {secrets['admin']}".encode())],
            "http_version": "1.1", "root_path": "", "scheme": "http",
        }  # fmt: skip
        await asyncio.wait_for(app(scope, asyncio.Event().wait, deaf), LONG)

    asyncio.run(talk())


# -- what is told of errors ---------------------------------------------------------------------------------------


def test_nothing_of_the_inside_is_told(caplog):
    app, _, _ = gate(tokens=False)
    for how, status in (("storage", 503), ("anything", 500)):
        with caplog.at_level(logging.ERROR):
            heard = ask(app, path=f"/fail/{how}")
        assert heard.status == status
        assert b"secret" not in heard.body
        assert b"Traceback" not in heard.body
        records = [each for each in caplog.records if each.name == "nilregret.serve"]
        assert len(records) == 1
        assert records[0].args[0] in heard.json["error"]["sentence"]  # by the id it is found in the log
        assert "secret-inside" in logging.Formatter().format(records[0])
        assert (records[0].exc_info is None) == (how == "storage")  # while a database is away, a line for each request
        caplog.clear()
    heard = ask(app, path="/fail/invalid")
    assert (heard.status, heard.kind, heard.json["error"]["field"]) == (422, "invalid", "reward")
    assert ask(app, path="/fail/trial").status == 409


def test_errors_of_bodies_name_what_is_wrong():
    import msgspec

    class Body(msgspec.Struct):
        reward: float

    def told(text, kind=Body):
        try:
            msgspec.json.decode(text, type=kind)
        except (msgspec.DecodeError, RecursionError) as error:
            return problem_of(error)

    assert (told(b'{"reward": "x"}').status, told(b'{"reward": "x"}').field) == (422, "reward")
    assert (told(b"{}").status, told(b"{}").field) == (422, "reward")
    for text in (b"{", b'{"reward": NaN}', b"\xff", b""):
        assert (told(text).status, told(text).kind) == (400, "malformed")
    assert told(b"[" * 100_000 + b"]" * 100_000, list).status == 400


def test_texts_can_be_hidden():
    error = nr.errors.InvalidInput("`name` 't/a' in sqlite:////home/a.db is taken.")
    assert problem_of(error, hide=[("sqlite:////home/a.db", "the storage"), ("t/", "")]).sentence == (
        "`name` 'a' in the storage is taken."
    )


def test_a_storage_that_is_gone_lets_nobody_in(tmp_path):
    place = tmp_path / "a.db"
    store = Tokens(SqlStorage(f"sqlite:///{place}"))
    secret = store.new("admin", "default")
    app = AccessMiddleware(application(), store, local=True)
    assert ask(app, headers=bearer(secret)).status == 200
    place.unlink()
    store._read_at = -1e9  # a while later
    answers = {ask(app, path=path, headers=headers).status for path in PATHS for headers in ([], bearer(secret))}
    assert answers == {503}
    assert ask(app, path="/healthz").status == 200


def test_the_gate_covers_everything_that_is_not_its_own():
    """A route that is added to the application is closed until somebody says otherwise here."""
    app, _, _ = gate()
    for path in ("/new", "/static", "/staticx/a", "/login/x", "/logout/", "/healthz/x", "/readyzz", "//login"):
        assert ask(app, path=path).status == 401
    assert ask(app, "POST", "/static/app.css").status == 401
    assert ask(app, "POST", "/healthz").status == 401
    assert ask(app, path="/favicon.icon").status == 401


# -- the service itself -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def service():
    from nilregret.serve.api.app import create_app
    from nilregret.serve.dashboard import ROUTES

    storage = MemoryStorage()
    app = create_app(storage, routes=ROUTES)
    tokens = Tokens(storage)
    secrets = {(tenant, role): tokens.new(role, tenant) for tenant in ("default", "a", "b") for role in ROLES}
    return app, secrets


def test_an_application_has_a_gate_without_being_asked_for_one(service):
    from nilregret.serve.api.app import create_app

    app, secrets = service
    assert ask(app, path="/v1/studies").status == 401
    assert ask(app, path="/v1/studies", host="evil.example", headers=bearer(secrets["a", "reader"])).status == 421
    assert ask(app, path="/studies", headers=bearer(secrets["a", "reader"])).status == 200
    fresh = create_app(MemoryStorage())
    assert ask(fresh, path="/v1/studies").status == 200
    assert ask(fresh, path="/v1/studies", client=("10.0.0.1", 1)).status == 403


def test_every_address_of_the_service_is_behind_the_gate(service):
    """Of every route there is: no token, no answer but the form; and no role below what it needs."""
    app, secrets = service
    open_to_all = {"/healthz", "/readyz", "/static/{file:path}", "/favicon.ico"}
    seen = 0
    for route in app.routes:
        path = re.sub(r"\{number(:int)?\}", "0", re.sub(r"\{(name|id|file:path)\}", "x", route.path))
        for method in route.methods:
            if route.path in open_to_all:
                assert ask(app, method, path).status != 401
                continue
            assert ask(app, method, path).status == 401, (method, path)
            if roles.needed(method, path) != "reader":
                assert ask(app, method, path, headers=bearer(secrets["a", "reader"])).status == 403
            seen += 1
    assert seen > 30


def test_what_deciders_may_do_is_what_the_operations_of_the_api_say(service):
    from nilregret.serve.api.app import OPERATIONS

    changing = {(each.method, each.path) for each in OPERATIONS if each.method not in ("GET", "HEAD")}
    least = {
        (method, path): roles.needed(
            method, path.replace("{name}", "x").replace("{arm:int}", "3").replace("{number:int}", "0")
        )
        for method, path in changing
    }
    admin = {pair for pair, role in least.items() if role == "admin"}
    own = ("/arms", "/note", "/widen")
    assert admin == {
        pair for pair in changing if pair[1] == "/v1/studies/{name}" or any(word in pair[1] for word in own)
    }
    assert {pair for pair, role in least.items() if role == "reader"} == {("POST", "/v1/studies/{name}/evaluations")}


STUDY = b'{"space": {"x": {"type": "float", "low": 0, "high": 1}}, "grid": 5}'


def test_studies_of_other_tenants_do_not_exist(service):
    app, secrets = service
    for tenant in ("a", "default"):
        made = ask(app, "PUT", "/v1/studies/prices", body=STUDY, headers=bearer(secrets[tenant, "admin"]))
        assert made.status == 201
    given = ask(app, "POST", "/v1/studies/prices/decisions", body=b"{}", headers=bearer(secrets["a", "decider"])).json
    decision = given["decisions"][0]["id"]
    mine = bearer(secrets["b", "admin"])
    for method, path, body in (
        ("GET", "", b""), ("GET", "/best", b""), ("GET", "/events", b""), ("GET", "/explain/0", b""),
        ("GET", "/export", b""),
        ("POST", "/decisions", b"{}"), ("POST", "/observations", b'{"reward": 1, "parameters": {"x": 0.5}}'),
        ("GET", f"/decisions/{decision}", b""), ("PUT", f"/decisions/{decision}/reward", b'{"reward": 1}'),
        ("POST", f"/decisions/{decision}/failure", b'{"reason": "x"}'),
    ):  # fmt: skip
        there = ask(app, method, f"/v1/studies/prices{path}", body=body, headers=mine)
        nowhere = ask(app, method, f"/v1/studies/nowhere{path}", body=body, headers=mine)
        assert there.status == nowhere.status == 404
        assert there.body.replace(b"prices", b"nowhere") == nowhere.body
    for name in ("a/prices", "a%2Fprices", "../a/prices"):
        assert ask(app, path=f"/v1/studies/{name}", headers=mine).status in (400, 404)
        assert ask(app, path=f"/v1/studies/{name}", headers=bearer(secrets["default", "admin"])).status in (400, 404)
    assert ask(app, path="/v1/studies", headers=mine).json == {"studies": []}
    assert ask(app, path="/studies/prices", headers=mine).status == 404
    # The operator's study of the same name is another one, and ids open nothing there.
    for known in (bearer(secrets["default", "admin"]), mine):
        assert ask(app, path=f"/v1/studies/prices/decisions/{decision}", headers=known).status == 404
    whole = ask(app, path="/v1/studies/prices", headers=bearer(secrets["a", "reader"])).json
    assert (whole["name"], whole["trials"]["pending"]) == ("prices", 1)


def test_metrics_say_nothing_of_other_tenants(service):
    app, secrets = service
    ask(app, "PUT", "/v1/studies/hidden-name", body=STUDY, headers=bearer(secrets["a", "admin"]))
    ask(app, "POST", "/v1/studies/hidden-name/decisions", body=b"{}", headers=bearer(secrets["a", "admin"]))
    for role in ROLES:
        assert b"hidden-name" not in ask(app, path="/metrics", headers=bearer(secrets["b", role])).body


def test_no_error_shows_where_the_storage_is(tmp_path):
    from nilregret.serve.api.app import create_app

    storage = SqlStorage(f"sqlite:///{tmp_path}/secret-place.db")
    app = create_app(storage)
    secret = bearer(Tokens(storage).new("admin", "secret-tenant"))
    ask(app, "PUT", "/v1/studies/x", body=STUDY, headers=secret)
    other = STUDY.replace(b"5", b"6")
    for method, path, body in (
        ("PUT", "/v1/studies/x", other), ("GET", "/v1/studies/y", b""), ("GET", "/v1/studies/x/best", b""),
        ("GET", "/v1/studies/x/explain/7", b""), ("PUT", "/v1/studies/z", b'{"policy": {}}'),
        ("POST", "/v1/studies/x/observations", b'{"reward": 1, "parameters": {"y": 1}}'),
    ):  # fmt: skip
        heard = ask(app, method, path, body=body, headers=secret)
        assert 400 <= heard.status < 500
        assert b"secret-place" not in heard.body
        assert b"secret-tenant" not in heard.body


def test_nobody_is_redirected_to_a_host_that_the_request_named(service):
    app, secrets = service
    for path in ("/studies/", "/v1/studies/", "/metrics/"):
        heard = ask(app, path=path, headers=bearer(secrets["a", "admin"]))
        assert (heard.status, "location" in heard.headers) == (404, False)
