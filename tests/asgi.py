"""Requests to an ASGI application without a server and a client between: each may be as odd as one likes."""

import asyncio
import json
from dataclasses import dataclass


@dataclass
class Heard:
    status: int
    headers: dict
    body: bytes
    cookies: list

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def kind(self):
        return self.json["error"]["kind"]


async def spoken(
    app,
    method="GET",
    path="/",
    *,
    headers=(),
    body=b"",
    chunks=None,
    client=("127.0.0.1", 5000),
    host="127.0.0.1:8000",
    query=b"",
    pause=0.0,
    scheme="http",
    raw=None,
    version="1.1",
    sent=None,
):
    """What an application answers.

    Args:
        app: the application.
        method: of HTTP.
        path: without the query.
        headers: pairs of text, besides `Host`.
        body: of the request; its length is announced.
        chunks: a body in parts, whose length is not, unless in `headers`; they may be endless.
        client: who it comes from.
        host: of `Host`; None for none.
        query: after the question mark.
        pause: seconds between the parts of a body.
        scheme: "https" where a proxy that is believed says so.
        raw: the path as it was sent, where it is not the same.
        version: of HTTP.
        sent: a list that is given each part of the answer as it comes.
    """  # fmt: skip
    pairs = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
    if host is not None:
        pairs.append((b"host", host.encode("latin-1")))
    announced = any(name == b"content-length" for name, _ in pairs)
    if chunks is not None and not announced:
        pairs.append((b"transfer-encoding", b"chunked"))
    elif body and not announced:
        pairs.append((b"content-length", str(len(body)).encode()))
    parts = iter([body] if chunks is None else chunks)
    scope = {
        "type": "http", "method": method, "path": path, "raw_path": raw or path.encode("utf-8", "replace"),
        "query_string": query, "headers": pairs, "client": client, "server": ("127.0.0.1", 8000), "scheme": scheme,
        "http_version": version, "root_path": "", "asgi": {"version": "3.0"}, "state": {},
    }  # fmt: skip
    sent, over = [] if sent is None else sent, []

    async def receive():
        if over:
            await asyncio.Event().wait()
        await asyncio.sleep(pause)
        part = next(parts, None)
        if part is None:
            over.append(True)
        return {"type": "http.request", "body": part or b"", "more_body": not over}

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    start = sent[0]
    pairs = [(name.decode().lower(), value.decode("latin-1")) for name, value in start["headers"]]
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return Heard(start["status"], dict(pairs), body, [value for name, value in pairs if name == "set-cookie"])


def ask(app, method="GET", path="/", **more):
    """The same, outside of a loop."""
    return asyncio.run(spoken(app, method, path, **more))
