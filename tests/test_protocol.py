"""HTTP on one connection, without a network: what is read, what is refused, and what is written."""

import asyncio

import pytest
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT as READ_AHEAD
from uvicorn.server import ServerState

from nilregret.serve.http.protocol import MOST_PIPELINED, configured
from nilregret.serve.wire.settings import Limits

GET = b"GET /%s HTTP/1.1\r\nHost: a\r\n\r\n"
POST = b"POST /a HTTP/1.1\r\nHost: a\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"


class Transport:
    """What is written, and whether it was closed."""

    def __init__(self):
        self.written, self.ended, self.paused = [], None, False

    def get_extra_info(self, name, default=None):
        return ("127.0.0.1", 1) if name in ("peername", "sockname") else default

    def write(self, data):
        self.written.append(data)

    def close(self):
        self.ended = self.ended or "closed"

    def abort(self):
        self.ended = "aborted"

    def is_closing(self):
        return self.ended is not None

    def pause_reading(self):
        self.paused = True

    def resume_reading(self):
        self.paused = False


async def echo(scope, receive, send):
    """Answers with method, path and body, once the body is there."""
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body, more = body + message["body"], message["more_body"]
    said = b"%s %s %s" % (scope["method"].encode(), scope["path"].encode(), body)
    headers = [(b"content-length", b"%d" % len(said))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": said})


async def settle():
    for _ in range(200):
        await asyncio.sleep(0)


def made(app=echo, limits=None, state=None):
    """A connection that is open."""
    config = configured(app, limits or Limits(), log_config=None)
    config.load()
    connection = config.http_protocol_class(config=config, server_state=state or ServerState(), app_state={})
    connection.connection_made(Transport())
    return connection


def talk(*parts, app=echo, limits=None, then=None):
    """The transport after these parts have come, one after the other."""

    async def run():
        connection = made(app, limits)
        for part in parts:
            connection.data_received(part)
            await settle()
        if then is not None:
            then(connection)
            await settle()
        return connection.transport

    return asyncio.run(run())


def bodies(transport):
    """What the answers say, and the status of those that say nothing."""
    found, data = [], b"".join(transport.written)
    while data:
        head, _, data = data.partition(b"\r\n\r\n")
        (length,) = (int(line.split(b": ")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line)
        found.append(data[:length] or int(head.split()[1]))
        data = data[length:]
    return found


def test_after_an_answer_the_connection_goes_on():
    transport = talk(GET % b"x", POST + b"Content-Length: 3\r\n\r\nab", b"c")
    assert bodies(transport) == [b"GET /x ", b"POST /a abc"]
    assert transport.ended is None


def test_requests_that_come_at_once_are_answered_in_order():
    three = b"".join(GET % b"%d" % i for i in range(3))
    assert bodies(talk(three)) == [b"GET /0 ", b"GET /1 ", b"GET /2 "]
    assert bodies(talk(three + CHUNKED + b"no length\r\n")) == [b"GET /0 ", b"GET /1 ", b"GET /2 "]
    transport = talk(three + b"no request\r\n\r\n")
    assert bodies(transport) == [b"GET /0 ", b"GET /1 ", b"GET /2 "]
    assert transport.ended == "closed"
    transport = talk(GET % b"x" * 2 * MOST_PIPELINED)
    assert len(bodies(transport)) <= MOST_PIPELINED + 1
    assert transport.ended == "closed"


def test_after_requests_that_waited_more_is_read():
    async def say(scope, receive, send):  # and read nothing
        await send({"type": "http.response.start", "status": 204, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})

    transport = talk(GET % b"x" * 3, app=say)
    assert bodies(transport) == [204] * 3
    assert not transport.paused


@pytest.mark.parametrize(
    "data",
    [
        b"\0\1\2\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/2.0\r\n\r\n", b"GET /\r\n\r\n",
        b"GET /  HTTP/1.1\r\n\r\n", b"GET  / HTTP/1.1\r\n\r\n", b"GET / RTSP/1.0\r\n\r\n",
        b"FOO / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\nHost: a\n\n", b"GET http://a/ HTTP/1.1\r\n\r\n",
        b"GET /#x HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n", b"GET / HTTP/1.1\r\nA : b\r\n\r\n",
        b"GET / HTTP/1.1\r\nA: b\0\r\n\r\n", POST + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
        POST + b"Content-Length: +3\r\n\r\nabc", POST + b"Transfer-Encoding: gzip\r\n\r\n",
        POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", CHUNKED + b"x\r\n",
        POST + b"Transfer-Encoding: xchunked\r\n\r\n", CHUNKED + b"1\nx\n0\n\n",
        CHUNKED + b"1\r\nx\r\n0\r\nContent-Length: 3\r\n\r\n", CHUNKED + b"0\r\nA: b\r\n\r\n",
    ],
)  # fmt: skip
def test_what_is_no_request_is_refused_and_ends_the_connection(data):
    transport = talk(data, GET % b"x")
    assert bodies(transport) == [400]
    assert transport.ended == "closed"


def test_what_does_not_come_to_an_end_is_refused():
    limits = Limits(header_bytes=1000)
    for start in (b"GET /", b"GET / HTTP/1.1\r\nA: ", CHUNKED + b"1;", CHUNKED + b"0\r\nA: "):
        transport = talk(start, *[b"x" * 100] * 20, limits=limits)
        assert bodies(transport) == [431]
        assert transport.ended == "closed"
    whole = talk(CHUNKED, *[b"1\r\nx\r\n"] * 500, b"0\r\n\r\n", limits=limits)
    assert bodies(whole) == [b"POST /a " + b"x" * 500]


def test_another_protocol_is_not_spoken_and_the_request_is_answered():
    upgrade = b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n"
    transport = talk(POST + upgrade + b"Content-Length: 3\r\n\r\nabc" + GET % b"x")
    assert bodies(transport) == [b"POST /a abc", b"GET /x "]
    transport = talk(POST + upgrade + b"Content-Length: 3\r\n\r\na", b"bc")
    assert bodies(transport) == [b"POST /a abc"]
    old = talk(POST.replace(b"1.1", b"1.0") + upgrade + b"Content-Length: 0\r\n\r\n", GET % b"x")
    assert bodies(old) == [b"POST /a "]  # the gate must see that it is HTTP/1.0, which proxies speak
    assert old.ended == "closed"
    in_parts = talk(*(b"%c" % each for each in GET % b"x" + POST + b"Content-Length: 1\r\n\r\nx"))
    assert bodies(in_parts) == [b"GET /x ", b"POST /a x"]


def test_who_may_not_go_on_is_told_so():
    transport = talk(GET.replace(b"1.1", b"1.0") % b"x", GET % b"y")
    assert bodies(transport) == [b"GET /x "]
    assert b"connection: close" in transport.written[0]
    assert transport.ended == "closed"

    async def refuse(scope, receive, send):
        await send({"type": "http.response.start", "status": 413, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})

    transport = talk(POST + b"Content-Length: 9\r\n\r\na", app=refuse)
    assert bodies(transport) == [413]
    assert transport.ended == "closed"  # the rest of the body would be taken for a request


def test_an_answer_that_has_begun_is_cut_off_and_no_other_comes_behind_it():
    async def begin(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"9")]})
        await send({"type": "http.response.body", "body": b"a", "more_body": True})
        assert (await receive())["type"] == "http.disconnect"

    transport = talk(CHUNKED, b"no length\r\n", app=begin)
    assert b"".join(transport.written).endswith(b"\r\n\r\na")
    assert transport.ended == "closed"


def test_a_body_that_nobody_reads_waits_at_the_client():
    async def slow(scope, receive, send):
        await asyncio.Event().wait()

    transport = talk(POST + b"Content-Length: 999999\r\n\r\n", b"x" * READ_AHEAD, b"x", app=slow)
    assert transport.paused
    transport = talk(POST + b"Content-Length: 999999\r\n\r\n", b"x" * READ_AHEAD, b"x")
    assert not transport.paused


@pytest.mark.parametrize("word", [b"100-continue", b"100-Continue"])
def test_a_client_that_waits_for_a_word_hears_it(word):
    transport = talk(POST + b"Expect: %s\r\nContent-Length: 1\r\n\r\n" % word, b"x")
    assert transport.written[0].startswith(b"HTTP/1.1 100")
    assert bodies_after(transport) == [b"POST /a x"]


def bodies_after(transport):
    del transport.written[0]
    return bodies(transport)


def test_a_stream_begins_at_once_and_ends_with_its_client():
    heard = []

    async def stream(scope, receive, send):
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        gone = asyncio.create_task(receive())
        await asyncio.sleep(0)
        heard.append(gone.done())
        await send({"type": "http.response.body", "body": b"one", "more_body": True})
        heard.append((await gone)["type"])

    def leave(connection):
        first, second = connection.transport.written
        assert first.endswith(b"\r\n\r\n")
        assert second == b"3\r\none\r\n"
        connection.connection_lost(None)

    talk(GET % b"x", app=stream, then=leave)
    assert heard == [False, "http.disconnect"]

    async def short(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"one"})

    data = b"".join(talk(GET % b"x", app=short).written)
    assert data.endswith(b"transfer-encoding: chunked\r\n\r\n3\r\none\r\n0\r\n\r\n")


@pytest.mark.parametrize(
    "messages",
    [
        [], [("start", [(b"a", b"b\r\nc: d")])], [("start", [(b"a\n", b"b")])],
        [("start", [(b"content-length", b"3")]), b"abcd"],
    ],
)  # fmt: skip
def test_an_application_that_fails_is_a_server_error_without_a_word(messages, caplog):
    async def fail(scope, receive, send):
        for each in messages:
            if isinstance(each, bytes):
                await send({"type": "http.response.body", "body": each})
            else:
                await send({"type": "http.response.start", "status": 200, "headers": each[1]})

    transport = talk(GET % b"x", app=fail)
    assert transport.ended == "closed"
    assert b"abcd" not in b"".join(transport.written)
    assert b"c: d" not in b"".join(transport.written)
    assert caplog.records


def test_an_answer_to_head_has_no_body():
    transport = talk(b"HEAD /x HTTP/1.1\r\nHost: a\r\n\r\n")
    (data,) = transport.written
    assert data.endswith(b"content-length: 8\r\n\r\n")
    assert transport.ended is None


def test_a_line_of_the_log_has_no_control_characters(caplog):
    with caplog.at_level("INFO", "uvicorn.access"):
        talk(GET % b"%1b%5d0;taken%07%0aGET%20/x")
    assert caplog.records[-1].getMessage().endswith('"GET /%1B%5D0%3Btaken%07%0AGET%20/x HTTP/1.1" 200')


def test_a_server_that_stops_ends_connections_after_their_request():
    assert talk(GET % b"x", then=lambda one: one.shutdown()).ended == "closed"
    transport = talk(POST + b"Content-Length: 1\r\n\r\n", then=lambda one: (one.shutdown(), one.data_received(b"x")))
    assert bodies(transport) == [b"POST /a x"]
    assert transport.ended == "closed"


def test_a_client_that_takes_nothing_is_waited_for():
    def go_on(connection):
        assert connection.transport.written == []
        connection.resume_writing()

    async def run():
        connection = made()
        connection.pause_writing()
        connection.data_received(GET % b"x")
        await settle()
        go_on(connection)
        await settle()
        return connection.transport

    assert bodies(asyncio.run(run())) == [b"GET /x "]


def test_a_busy_connection_is_not_silent_and_the_oldest_silent_one_makes_room():
    async def run():
        state, limits = ServerState(), Limits(connections=2)
        there = [made(limits=limits, state=state) for _ in range(2)]
        for number, each in enumerate(there):
            each.silent_since -= 9 - number
        there[0].data_received(POST + b"Content-Length: 1\r\n\r\n")
        there.append(made(limits=limits, state=state))
        await settle()
        assert [each.transport.ended for each in there] == [None, "aborted", None]
        there[0].data_received(b"x")
        await settle()
        assert there[0].silent
        assert there[0].silent_since >= there[2].silent_since
        there[0].silent_since = there[2].silent_since - 1
        there.append(made(limits=limits, state=state))
        await settle()
        assert [each.transport.ended for each in there] == ["aborted", "aborted", None, None]
        state.connections |= {object(), object(), object()}
        there[2].data_received(GET % b"x")
        await settle()
        return there[2].transport

    transport = asyncio.run(run())
    assert b" 503 " in transport.written[0]
    assert transport.ended == "closed"


def test_who_is_silent_is_cut_off_and_who_waits_is_not():
    async def never(scope, receive, send):
        await asyncio.Event().wait()

    async def run():
        limits = Limits(header_seconds=0.01)
        silent, slow, waiting, gone = (made(never, limits) for _ in range(4))
        slow.data_received(b"GET / HTTP/1.1\r\nHost")
        waiting.data_received(GET % b"x")
        gone.transport.close()  # and takes nothing of what is still to be sent
        gone.transport.ended = "closed"
        while [each.transport.ended for each in (silent, slow, gone)] != ["aborted"] * 3:
            await asyncio.sleep(0.001)
        assert waiting.transport.ended is None
        waiting.connection_lost(None)
        await settle()

    asyncio.run(run())


def test_a_client_that_leaves_is_told_to_the_request_that_is_answered():
    left = []

    async def listen(scope, receive, send):
        await receive()
        left.append((await receive())["type"])

    talk(GET % b"x" + GET % b"y", app=listen, then=lambda one: one.connection_lost(None))
    assert left == ["http.disconnect"]
