"""Processes of one service that pass changes of a study on to its owner, and what comes of it where that is gone."""

import asyncio

import msgspec

from nilregret.serve.auth.caller import Caller
from nilregret.serve.wire.problems import Problem
from nilregret.serve.work.siblings import Siblings

CALLER = Caller("default", "decider", "t1")
NAMES = [f"study {number}" for number in range(40)]


def scope(name="a", **more):
    headers = [(b"idempotency-key", b"k"), (b"authorization", b"Bearer secret"), (b"content-type", b"application/json")]
    return {
        "method": "POST", "path": f"/v1/studies/{name}/decisions", "query_string": b"", "headers": headers,
        "state": {"caller": CALLER}, **more,
    }  # fmt: skip


async def say(scope, receive, send):
    """Answers with what it was told."""
    body = (await receive())["body"]
    if body == b"fail":
        raise Problem(409, "conflict", "This is refused.")
    said = msgspec.json.encode([scope["path"], scope["state"]["caller"], [f"{each}" for each in scope["headers"]]])
    await send({"type": "http.response.start", "status": 201, "headers": [(b"a", b"b")]})
    await send({"type": "http.response.body", "body": said + body})


async def pair(folder):
    """Two processes, and a study that the second one owns."""
    one, two = Siblings(folder, 0, 2), Siblings(folder, 1, 2)
    await one.start(say)
    await two.start(say)
    for name in NAMES:
        if await one.passed(scope(name), name, b"") is not None:
            return one, two, name
    raise AssertionError("The second process owns none of these.")


def test_each_study_has_one_owner_which_answers_for_the_others(tmp_path):
    async def run():
        one, two, _ = await pair(str(tmp_path))
        owned = [await each.passed(scope(name), name, b"") is None for name in NAMES for each in (one, two)]
        assert all(here != there for here, there in zip(owned[::2], owned[1::2], strict=True))
        assert {*owned[::2]} == {True, False}
        await one.close()
        await two.close()

    asyncio.run(run())


def test_the_owner_gets_the_caller_and_the_headers_that_matter_and_large_bodies(tmp_path):
    async def run():
        one, two, name = await pair(str(tmp_path))
        body = b"x" * 300_000
        several = await asyncio.gather(*(one.passed(scope(name), name, body + b"%d" % i) for i in range(20)))
        for number, answered in enumerate(several):
            assert (answered.status, answered.headers) == (201, [(b"a", b"b")])
            assert answered.body.endswith(b"x%d" % number)
            assert b"secret" not in answered.body
            assert b'"t1"' in answered.body
        refused = await one.passed(scope(name), name, b"fail")
        assert refused.status == 409
        assert b"This is refused." in refused.body
        await one.close()
        await two.close()

    asyncio.run(run())


def test_without_its_owner_a_study_is_anybody_s(tmp_path):
    async def run():
        one, two, name = await pair(str(tmp_path))
        await two.close()
        two.end_lines()
        await asyncio.sleep(0.01)
        assert await one.passed(scope(name), name, b"") is None
        again = Siblings(str(tmp_path), 1, 2)  # in the place of the one that is gone
        await again.start(say)
        assert (await one.passed(scope(name), name, b"")).status == 201
        await one.close()
        await again.close()

    asyncio.run(run())


def test_an_owner_that_ends_before_it_answers_is_a_failure_that_may_be_retried(tmp_path):
    async def run():
        one, two = Siblings(str(tmp_path), 0, 2), Siblings(str(tmp_path), 1, 2)
        begun = asyncio.Event()

        async def never(scope, receive, send):
            begun.set()
            two.end_lines()
            await asyncio.sleep(0)

        await two.start(never)
        answers = await asyncio.gather(*(one.passed(scope(name), name, b"") for name in NAMES), return_exceptions=True)
        lost = [each for each in answers if each is not None]
        assert begun.is_set()
        assert lost
        assert {(each.status, each.headers["Retry-After"]) for each in lost} == {(503, "1")}
        await one.close()
        await two.close()

    asyncio.run(run())


def test_where_there_can_be_no_socket_each_process_decides_by_itself(tmp_path, caplog):
    async def run(folder):
        one, two = Siblings(str(folder), 0, 2), Siblings(str(folder), 1, 2)
        await one.start(say)
        await two.start(say)
        assert [await each.passed(scope(name), name, b"") for name in NAMES for each in (one, two)] == [None] * 80
        await one.close()
        await two.close()

    (tmp_path / "long").mkdir()
    for folder in (tmp_path / "removed", tmp_path / "long" / ("x" * 200)):
        caplog.clear()
        asyncio.run(run(folder))
        assert caplog.text.count("No requests are passed") == 2
