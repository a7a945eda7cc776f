"""Requests that nobody honest sends: each with the answers that may come back."""

import base64
import json
import random
import string
from dataclasses import dataclass
from urllib.parse import quote

REFUSED = frozenset({400, 401, 403, 404, 405, 408, 409, 411, 413, 414, 415, 421, 422, 429, 431})
FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True)
class Shot:
    """What is sent, and what may come back.

    Attributes:
        kind: of attack.
        data: bytes.
        may: statuses; nothing at all may come back from `whole=False`.
        whole: whether it is one well-formed request, after which the connection goes on.
        head: whether the answer has no body.
    """

    kind: str
    data: bytes
    may: frozenset = REFUSED
    whole: bool = True
    head: bool = False


@dataclass(frozen=True)
class Target:
    """What is attacked: where, what there is that must not be reached, and with what one gets as far as one does."""

    host: str
    study: str  # of another tenant
    decision: str  # of it
    own: str  # study of the attacker
    decider: str  # tokens of the attacker's tenant
    admin: str
    useless: tuple  # tokens that open nothing


def request(method, path, host, headers=(), body=None):
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *(f"{name}: {value}" for name, value in headers)]
    if body is not None and not any(name.lower() in ("content-length", "transfer-encoding") for name, _ in headers):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + (body or b"")


def bearer(token):
    return ("Authorization", f"Bearer {token}")


def noise(rng, length):
    return bytes(rng.getrandbits(8) for _ in range(length))


def _chunked(*parts):
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


# -- broken HTTP --------------------------------------------------------------------------------------------------


def framing(rng, target):
    """Bytes that are no request, or two at once, or one that says two things of its length."""
    host, secret = target.host.encode(), target.decider.encode()
    post = b"POST /v1/studies/" + target.own.encode() + b"/decisions HTTP/1.1\r\nHost: " + host
    post += b"\r\nAuthorization: Bearer " + secret + b"\r\n"
    inner = b"GET /v1/studies HTTP/1.1\r\nHost: " + host + b"\r\n\r\n"
    garbage = noise(rng, rng.randrange(1, 400))
    choices = [
        garbage,
        b"\r\n" * rng.randrange(1, 50) + garbage,
        b"GET / HTTP/" + noise(rng, 3) + b"\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET  / HTTP/1.1\r\nHost: " + host + b"\r\n\r\n",
        b"GET / HTTP/1.1\nHost: " + host + b"\n\n garbage",
        b"GET / HTTP/1.1\r\nHost " + host + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: " + host + b"\r\nHost: evil.example\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: " + host + b"\r\nX: a\r\n b\r\n c\0d\r\n\r\n",
        b"GET / HTTP/1.1\r\n Host: " + host + b"\r\n\r\n",
        b"GET /" + noise(rng, 30) + b" HTTP/1.1\r\nHost: " + host + b"\r\n\r\n",
        b"A" * rng.choice([100, 20_000, 200_000]),
        b"G\0T / HTTP/1.1\r\nHost: " + host + b"\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + noise(rng, 60),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + noise(rng, 200),
        b"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n",
        b"GET http://evil.example/ HTTP/1.1\r\nHost: " + host + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: " + host + b"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: " + host + b"\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n",
        # Two lengths: whoever believes the other one takes the rest for a request of somebody's.
        post + b"Content-Length: 3\r\nContent-Length: 40\r\n\r\n{} " + inner,
        post + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner,
        post + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + inner,
        post + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + inner,
        post + b"Transfer-Encoding: xchunked\r\n\r\n" + inner,
        post + b"Content-Length: -1\r\n\r\n{}",
        post + b"Content-Length: +2\r\n\r\n{}",
        post + b"Content-Length: 2, 2\r\n\r\n!!" + inner,
        post + b"Content-Length: " + b"9" * rng.choice([5, 18, 400]) + b"\r\n\r\n{}",
        post + b"Transfer-Encoding: chunked\r\n\r\n" + b"F" * rng.choice([1, 15, 16, 300]) + b"\r\n",
        post + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
        post + b"Transfer-Encoding: chunked\r\n\r\n2;" + b"x" * rng.choice([10, 100_000]) + b"\r\n!!\r\n0\r\n\r\n!",
        post + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}zz\r\n",
        post + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\n[\r\n" * rng.choice([10, 3000]),
        post + b"Content-Length: 50\r\nExpect: 100-continue\r\n\r\n",
    ]
    return Shot("framing", rng.choice(choices), REFUSED | {100}, whole=False)


def headers(rng, target):
    """Too many, too long, or with bytes that none has."""
    text = "".join(rng.choices(string.ascii_letters, k=rng.choice([17_000, 20_000, 70_000])))
    data = rng.choice(
        [
            request("GET", "/v1/studies", target.host, [bearer(target.decider), ("X", text[:30_000])]),
            request("GET", "/v1/studies", target.host, [(f"X-{i}", "1") for i in range(rng.choice([100, 2000]))]),
            request("GET", "/v1/studies?" + text, target.host),
            request("GET", "/v1/studies", target.host, [("Cookie", "nilregret_session=" + text)]),
            request("GET", "/v1/studies", target.host, [bearer(text)]),
            request("GET", "/v1/studies", target.host, [("X" * 20_000, "1")]),
            request("GET", "/v1/studies", target.host, [("X", noise(rng, 50).decode("latin-1"))]),
        ]
    )
    return Shot("headers", data, whole=False)


# -- bodies -------------------------------------------------------------------------------------------------------


def _bad_json(rng):
    deep = rng.choice([50, 2000, 100_000])
    big = rng.choice([400, 5000, 400_000])
    return rng.choice(
        [
            b"",
            b" ",
            b"null",
            b"[]",
            b"3",
            b'"x"',
            b"{",
            b"}",
            b"{]",
            b'{"reward"}',
            b"\xef\xbb\xbf{",
            b"\xff\xfe{\0}\0",
            b'{"reward": NaN}',
            b'{"reward": Infinity}',
            b'{"reward": -Infinity}',
            b'{"reward": 1e999}',
            b'{"reward": [1]}',
            b'{"reward": "1"}',
            b'{"reward": {}}',
            b'{"reward": 0x10}',
            b'{"reward": 01}',
            b'{"reward": "\xff"}',
            b'{"reward": 1' + b"0" * big + b"}",
            b'{"reward": ' + b"[" * deep + b"]" * deep + b"}",
            b'{"a":' * deep + b"1" + b"}" * deep,
            b'{"context": {"' + b"k" * big + b'": 1}, "reward": "x"}',
            b'{"reward": 1, "constraints": [1e400]}',
            b'{"reward": 1, "unknown": 2}',
            b'{"__class__": "os.system", "reward": 1}',
            b'{"count": 0}',
            b'{"count": -1}',
            b'{"count": 1e9}',
            b'{"count": 18446744073709551616}',
            b'{"count": true}',
            b'{"deadline": -1}',
            b'{"deadline": 1e308}',
            b'{"client": ""}',
            b'{"among": 3}',
            b'{"among": []}',
            b'{"among": [1e300]}',
            b'{"among": ["x"]}',
            b'{"exclude": [-1]}',
            b'{"exclude": ["__import__"]}',
            b'{"context": [1, 2, 3]}',
            b'{"context": {"__proto__": 1}}',
            b'{"context": [null]}',
            b'{"context": "\\u0000"}',
            b'{"propensity": 7}',
            b"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><a>&b;</a>",
            b"\x1f\x8b\x08\0" + noise(rng, 100),
            b"\x80\x04\x95" + noise(rng, 60),
            noise(rng, rng.randrange(1, 300)),
        ]
    )


def bodies(rng, target):
    """Bodies that do not fit, wherever one may be sent."""
    base = f"/v1/studies/{target.own}"
    token = rng.choice([target.decider, target.admin])
    kind = rng.choice(
        ["application/json", "application/json; charset=utf-16", FORM, "text/xml", "multipart/form-data", ""]
    )
    more = rng.choice(
        [[], [("Content-Encoding", "gzip")], [("Idempotency-Key", "\xe9" * 300)], [("Expect", "100-continue")]]
    )
    body, path, method = _bad_json(rng), f"{base}/decisions", "POST"
    if b"reward" in body or rng.random() < 0.3:
        method, path = rng.choice(
            [
                ("POST", f"{base}/observations"),
                ("POST", f"{base}/rewards"),
                ("PUT", f"{base}/decisions/{target.decision}/reward"),
                ("POST", f"{base}/decisions/{target.decision}/failure"),
                ("PUT", f"/v1/studies/{rng.randrange(10**9)}"),
            ]
        )
    if rng.random() < 0.02:
        body = b'{"context": "' + b"x" * 1_100_000 + b'"}'
    if rng.random() < 0.02:
        data = request(method, path, target.host, [bearer(token), ("Transfer-Encoding", "chunked")], b"")
        return Shot("bodies", data + _chunked(*[b" " * 9000] * 130), whole=False)
    data = request(method, path, target.host, [bearer(token), ("Content-Type", kind), *more], body)
    return Shot(
        "bodies", data, REFUSED | ({100} if more and more[0][0] == "Expect" else set()), whole=len(body) < 10**6
    )


def policies(rng, target):
    """Studies that would run code, take the machine's memory, or read a file."""
    number = rng.choice([1e308, -1, 0, 10**12, "x", None, [], True, "1" * 5000])
    name = rng.choice(
        ["os.system", "builtins.eval", "nilregret.storage.SqlStorage", "subprocess.Popen", "Arms", "GPUCB", ""]
    )
    body = rng.choice(
        [
            {"policy": {"type": name, "command": "touch /tmp/nilregret-was-here"}},
            {"policy": {name: ["id"]}},
            {"policy": {}},
            {"policy": {"py/object": name, "__reduce__": ["os.system", ["id"]]}},
            {"policy": {"format": 1, "policy": {"type": name, "domain": {"type": "Arms", "points": number}}}},
            {"space": {"x": {"type": name, "low": 0, "high": 1}}},
            {"space": {"x": {"type": "float", "low": number, "high": number}}},
            {"space": {"x": {"type": "int", "low": 0, "high": -5}}},
            {"space": {"x": {"type": "choice", "options": []}}},
            {"space": {"x": {"type": "float", "low": 0, "high": 1}}, "grid": 10**9},
            {"space": {f"x{i}": {"type": "float", "low": 0, "high": 1} for i in range(40)}, "grid": 10},
            {"arms": [[0.0] * 3, [0.0] * 2]},
            {"arms": []},
            {"arms": [["x"]]},
            {"arms": number},
            {"space": {"x": {"type": "float", "low": 0, "high": 1}}, "options": {name or "a": number}},
            {"space": {"x": {"type": "float", "low": 0, "high": 1}}, "context": number or "x"},
            {"seed": -1},
            {"goal": name},
            {"space": {"x": {"type": "float", "low": 0, "high": 1}}, "constraints": 10**6},
            {"about": number, "policy": name},
        ]
    )
    path = f"/v1/studies/p{rng.randrange(10**9)}"
    return Shot("policies", request("PUT", path, target.host, [bearer(target.admin)], json.dumps(body).encode()))


# -- who and where ------------------------------------------------------------------------------------------------


def paths(rng, target):
    """Out of the folder of static files, out of the tenant, out of the API."""
    up = rng.choice(
        ["../", "..%2f", "%2e%2e/", "%2e%2e%2f", "..%5c", "..\\", "....//", "%252e%252e%252f", "..%c0%af", "..;/"]
    )
    name = rng.choice(
        [
            up * rng.randrange(1, 9) + "etc/passwd",
            "%00",
            "a%00b",
            "%0d%0aSet-Cookie:x=1",
            "%ff%fe",
            quote("\N{SNOWMAN}" * 70),
            "x" * 5000,
            "%2f",
            "%2F" + target.study,
            "victim%2F" + target.study,
            "victim%252F" + target.study,
            "~",
            ".env",
            "'%20OR%201=1--",
            "%7B%7B7*7%7D%7D",
            "$%7Bjndi:ldap://x%7D",
            "%3Cscript%3E",
            "-1",
            "1e99",
            "*",
            "%",
            "%zz",
            " ",
        ]
    )
    path = rng.choice(
        [
            f"/static/{name}",
            f"/{name}",
            f"/v1/{name}",
            f"/v1/studies/{name}/best",
            f"/v1/studies/{name}",
            f"/v1/studies/{target.own}/decisions/{name}",
            f"/v1/studies/{target.own}/explain/{name}",
            f"/v1/studies/{target.own}/{name}",
            f"/studies/{name}",
            f"/v1/studies/{target.own}/predict?points={name}",
            f"/v1/studies/{target.own}/events?after={name}",
            f"/v1/studies/{target.own}/export?format={name}",
        ]
    )
    method = rng.choice(["GET", "GET", "DELETE", "PUT", "POST", "PATCH", "TRACE", "BREW"])
    if " " in path:
        return Shot("paths", request(method, path, target.host, [bearer(target.admin)]), whole=False)
    body = b"{}" if method in ("PUT", "POST", "PATCH") and "?" not in path else None
    if method == "PUT" and body:
        body = b"[]"  # a study of an odd name may be made by an admin; that is none of these
    return Shot("paths", request(method, path, target.host, [bearer(target.admin)], body))


def tenants(rng, target):
    """What another tenant has, with tokens of one's own."""
    study = rng.choice([target.study, f"victim%2F{target.study}"])
    base = f"/v1/studies/{study}"
    method, path, body = rng.choice(
        [
            ("GET", base, None),
            ("GET", f"{base}/best", None),
            ("GET", f"{base}/events", None),
            ("DELETE", base, None),
            ("GET", f"{base}/predict?points=[[0.5]]", None),
            ("GET", f"{base}/export?format=csv", None),
            ("POST", f"{base}/decisions", b"{}"),
            ("PUT", f"{base}/decisions/{target.decision}/reward", b'{"reward": 1}'),
            ("GET", f"{base}/decisions/{target.decision}", None),
            ("GET", f"{base}/explain/0", None),
            ("GET", f"/v1/studies/{target.own}/decisions/{target.decision}", None),
            ("PUT", f"/v1/studies/{target.own}/decisions/{target.decision}/reward", b'{"reward": 1}'),
            ("POST", f"/v1/studies/{target.own}/decisions/{_near(rng, target.decision)}/failure", b'{"reason": "x"}'),
            ("POST", f"{base}/observations", b'{"reward": 1, "parameters": {"x": 0.5}}'),
            ("GET", f"/studies/{study}", None),
            ("PATCH", base, b'{"paused": true}'),
            ("PATCH", base, b'{"name": "stolen"}'),
            ("PUT", f"{base}/trials/0/note", b'{"note": "x"}'),
            ("GET", f"{base}/audit", None),
            ("GET", f"/studies/{study}/audit", None),
            ("GET", f"/studies/{study}/actions/tell?trial=0", None),
            ("POST", f"/studies/{study}/actions/pause", b"{}"),
            ("GET", f"/studies/{study}/part/parallel", None),
            ("GET", f"/compare?study={study}&study={target.own}", None),
        ]
    )
    may = frozenset({404, 405})
    return Shot("tenants", request(method, path, target.host, [bearer(target.admin)], body), may)


def _near(rng, decision):
    raw = bytearray(base64.urlsafe_b64decode(decision))
    raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
    return base64.urlsafe_b64encode(bytes(raw)).decode()


def tokens(rng, target):
    """No token, or one that opens nothing, in every place where one might be looked for."""
    wrong = rng.choice(
        [
            *target.useless,
            "",
            "nr_",
            "x",
            target.decider[:-1],
            target.decider + "A",
            target.decider.swapcase(),
            "nr_" + "".join(rng.choices(string.ascii_letters + string.digits + "-_", k=43)),
            "null",
            "undefined",
            "admin",
            "Bearer",
        ]
    )
    given = rng.choice(
        [
            [bearer(wrong)],
            [("Authorization", f"Basic {base64.b64encode(target.decider.encode()).decode()}")],
            [("Authorization", target.decider)],
            [("Authorization", f"Bearer {target.decider} {target.decider}")],
            [("X-Api-Key", target.admin)],
            [("Cookie", f"nilregret_session={target.admin}")],
            [bearer(target.admin), bearer(target.admin)],
            [("X-Forwarded-User", "admin")],
            [("X-Forwarded-For", "127.0.0.1")],
            [("Proxy-Authorization", f"Bearer {target.admin}")],
            [],
        ]
    )
    method = rng.choice(["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE"])
    path = rng.choice(
        [
            "/v1/studies",
            f"/studies/{target.study}/actions/pause",
            f"/studies/{target.study}/audit",
            f"/v1/studies/{target.study}/audit",
            f"/v1/studies/{target.study}/trials/0/note",
            f"/compare?study={target.study}&study={target.own}",
            f"/v1/studies/{target.study}",
            f"/v1/studies/{target.own}/decisions",
            "/metrics",
            "/",
            "/nowhere",
            f"/v1/studies?token={target.admin}",
            "/openapi.json",
            "/v1/../healthz",
            "//healthz",
            "/healthz/",
            "/HEALTHZ",
        ]
    )
    body = b"{}" if method in ("POST", "PUT", "PATCH") else None
    return Shot("tokens", request(method, path, target.host, given, body), frozenset({401}), head=method == "HEAD")


def pages(rng, target):
    """What a page of another site makes a browser send, with a good token, as if it had one."""
    foreign = rng.choice(
        ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "evil.example:8000", "[::ffff:1]"]
    )
    port = target.host.rpartition(":")[2]
    given = rng.choice(
        [
            [("Origin", f"http://{foreign}")],
            [("Origin", "null")],
            [("Origin", f"http://127.0.0.1:{int(port) - 1}")],
            [("Origin", f"http://{target.host}.evil.example")],
            [("Sec-Fetch-Site", "cross-site")],
            [("Sec-Fetch-Site", "same-site"), ("Sec-Fetch-Mode", "no-cors")],
            [("Origin", f"http://{foreign}"), ("Access-Control-Request-Method", "PUT")],
        ]
    )
    host = target.host
    if rng.random() < 0.4:
        host, given = rng.choice([foreign, f"{foreign}:{port}", f"{target.host}@evil.example", "", "0.0.0.0:1"]), []
    method = rng.choice(["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"])
    path = rng.choice(
        [
            "/v1/studies",
            f"/studies/{target.own}/actions/pause",
            f"/v1/studies/{target.own}",
            "/",
            "/login",
            "/logout",
            "/healthz",
            "/metrics",
        ]
    )
    body = b"{}" if method in ("POST", "PUT", "PATCH") else None
    data = request(method, path, host, [*given, bearer(target.admin)], body)
    healthy = {200} if path == "/healthz" and not host and method in ("GET", "HEAD") else set()  # it needs no name
    return Shot("pages", data, frozenset({421, 403} | healthy), head=method == "HEAD")


def forms(rng, target):
    """Guesses at the form to log in, and cookies that nobody was given."""
    origin = rng.choice([[("Origin", f"http://{target.host}")], [], [("Origin", "http://evil.example")]])
    if rng.random() < 0.4:
        cookie = rng.choice(["nilregret_session", "__Host-nilregret_session"])
        value = "".join(rng.choices(string.ascii_letters, k=43)) if rng.random() < 0.5 else rng.choice(target.useless)
        path = rng.choice(["/", "/studies/x", f"/v1/studies/{target.own}", "/metrics"])
        method = rng.choice(["GET", "POST", "DELETE"])
        data = request(method, path, target.host, [("Cookie", f"{cookie}={value}"), *origin])
        return Shot("forms", data, frozenset({401, 403}))
    body = rng.choice(
        [
            b"token=" + rng.choice(target.useless).encode(),
            b"token=" + noise(rng, 20),
            b"token=" + b"A" * 6000,
            b"&" * 3000,
            b"token=%00",
            b"token[]=1",
            b'{"token": 1}',
            b"a=" * 500,
        ]
    )
    kind = rng.choice([FORM, FORM, "application/json", "multipart/form-data; boundary=x", ""])
    data = request(
        "POST", "/login?next=" + quote("//evil.example"), target.host, [("Content-Type", kind), *origin], body
    )
    return Shot("forms", data, frozenset({400, 401, 403, 415}))


KINDS = [framing, headers, bodies, policies, paths, tenants, tokens, pages, forms]


def shots(count, target, seed):
    """So many, of all kinds in turn."""
    rng = random.Random(seed)
    for i in range(count):
        yield KINDS[i % len(KINDS)](rng, target)
