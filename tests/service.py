"""A client of the service in the same process: every answer is held against what the API says of itself."""

import asyncio
import json
import re

import httpx
import msgspec

import nilregret as nr
from nilregret.serve.api.app import OPERATIONS, create_app
from nilregret.serve.wire.messages import Problem

ARMS = nr.Arms.grid(0, 1, 20)
POLICY = nr.gp_ucb(ARMS, nr.SquaredExponential(0.2), noise=0.1)
AT = "/v1/studies/shop"


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class Client:
    """`client.post("/v1/studies/a/decisions", {...}, key="1")` gives (status, JSON)."""

    def __init__(self, storage, **given):
        self.app = create_app(storage, **given)
        self.service = self.app.state.service
        self._runner = asyncio.Runner()
        self._http = httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url="http://127.0.0.1")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._runner.close()
        self.service.workers.close()

    def run(self, coroutine):
        return self._runner.run(coroutine)

    def put(self, path, body=None, **more):
        return self.run(self.send("PUT", path, body, **more))

    def post(self, path, body=None, **more):
        return self.run(self.send("POST", path, body, **more))

    def get(self, path, **more):
        return self.run(self.send("GET", path, **more))

    async def send(self, method, path, body=None, *, key=None, raw=None, headers=None, **query):
        named = dict(headers or {}) | ({} if key is None else {"Idempotency-Key": key})
        content = raw if raw is not None else None if method == "GET" else msgspec.json.encode(body or {})
        answer = await self._http.request(method, path, content=content, headers=named, params=query or None)
        if answer.headers["content-type"] != "application/json":
            return answer.status_code, answer.content
        self._check(method, path, answer)
        return answer.status_code, answer.json()

    def _check(self, method, path, answer):
        """The answer is one that the operation says it may give, and of its kind."""
        path = path.partition("?")[0]
        for operation in OPERATIONS:
            pattern = re.sub(r"\{\w+(:int)?\}", lambda found: r"\d+" if found[1] else "[^/]+", operation.path)
            if operation.method == method and re.fullmatch(pattern, path):
                answered = operation.answers.get(answer.status_code)
                if operation.lines is not None and answer.status_code == 200:
                    answered = operation.lines.answer
                kind = Problem if answered is None else answered.body
                if isinstance(kind, type):
                    decoded = msgspec.json.decode(answer.content, type=kind, strict=True)
                    assert msgspec.to_builtins(decoded) == answer.json()
                return
        assert answer.status_code in (404, 405) or path == "/openapi.json"


def plain(policy):
    return json.loads(policy.to_json())


def asked(service, /, **body):
    status, said = service.post(f"{AT}/decisions", body)
    assert status == 201
    return said["decisions"][0]


def told(client, decision, reward, **more):
    return client.put(f"{AT}/decisions/{decision['id']}/reward", {"reward": reward} | more)


def stored_before(storage, name, policy=POLICY):
    """A study as it is on record where its name could be any."""
    return storage.find_or_make(name, policy=policy.to_json(), goal="maximize", seed=0, about="{}")
