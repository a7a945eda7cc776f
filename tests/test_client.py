"""The client against a real server on this machine, and against places that are none."""

import asyncio
import http.server
import multiprocessing
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from datetime import timedelta

import numpy as np
import pytest

import nilregret as nr
from nilregret.client import AsyncClient, Client
from nilregret.testing.serving import Serving

from .waiting import LONG

ARMS = nr.Arms.grid(0, 1, 20)
POLICY = nr.gp_ucb(ARMS, nr.SquaredExponential(0.2), noise=0.1)


@pytest.fixture(scope="module")
def url():
    with Serving() as service:
        yield service.url


@contextmanager
def answering(*answers):
    """A server that gives these answers, (status, body) or None for none at all; yields what it got."""
    got, left = [], list(answers)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            got.append(self.headers.get("Idempotency-Key"))
            answer = left.pop(0)
            if answer is None:
                self.close_connection = True
                return
            status, body = answer
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_POST  # noqa: N815 - what the standard library calls them

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", got
    finally:
        server.shutdown()
        server.server_close()


def reward(x):
    return -((x - 0.3) ** 2)


def test_the_same_trajectory_as_in_process(url):
    remote, local = Client(url).create("same", POLICY, seed=3), nr.Study(POLICY, seed=3)
    for _ in range(15):
        decision, trial = remote.ask(), local.ask()
        assert (decision.number, decision.arm, decision.point) == (trial.number, trial.arm, trial.point.tolist())
        remote.tell(decision, reward(decision.point[0]))
        local.tell(trial, reward(trial.point[0]))
    for there, here in [(remote.predict(), local.predict()), (remote.bounds(), local.bounds())]:
        np.testing.assert_array_equal(there, here)
    assert remote.best().number == local.best().number
    assert remote.status().trials["observed"] == 15
    assert remote.explain(3)["number"] == 3
    assert [event.order for event in remote.events(after=10)] == list(range(11, 31))
    assert len(remote.export("csv").splitlines()) == 16
    np.testing.assert_array_equal(remote.predict(ARMS.points[3:5])[0], local.predict(ARMS.points[3:5])[0])


def test_parameters_contexts_and_constraints(url):
    space = nr.Space(price=nr.Float(1, 9), kind=nr.Choice("new", "old"))
    policy = nr.auto(space, context=nr.Space(hour=nr.Float(0, 24)), constraints=1)
    study = Client(url).create("shop", policy, goal="minimize", about={"owner": "me"})
    decision = study.ask({"hour": np.float64(9)}, deadline=60)
    assert set(decision.parameters) == {"price", "kind"}
    assert decision.expires_at == pytest.approx(decision.asked_at + 60)
    assert study.tell(decision, np.float32(2.5), constraints=[-1]).constraints == [-1.0]
    assert study.decision(decision).reward == 2.5
    added = study.add(
        {"price": 2.0, "kind": "old"}, 1.5, context={"hour": 3}, constraints=np.array([0.5]), compare=True
    )
    assert added.number == 1
    assert set(added.would.parameters) == {"price", "kind"}
    mean, std = study.predict([{"price": 2.0, "kind": "old"}], context={"hour": 3})
    assert mean.shape == std.shape == (1,)
    again = Client(url).study("shop")
    assert again.status().about == {"owner": "me"}


def test_several_at_a_time(url):
    study = Client(url).create("several", POLICY)
    asked = study.ask(count=3, exclude=[0, 1])
    results = study.tell_many([(asked[0], 1.0), (asked[1].id, 0.5), ("nobody's", 0.1)])
    assert [result.status for result in results] == [200, 200, 404]
    assert study.fail(asked[2], "the customer left").state == "failed"
    assert study.fail(asked[2], "the customer left").state == "failed"
    first = study.ask(worker="w")
    assert study.ask(worker="w").id == first.id
    assert study.ask(key="mine").id == study.ask(key="mine").id != first.id


def test_clicks_and_runs_of_plays_are_told_as_to_a_study(url):
    clicks = Client(url).create("clicks", nr.gp_ucb(ARMS, nr.SquaredExponential(0.2), reward="bernoulli"))
    assert clicks.tell(clicks.ask(), True).reward == 1.0
    assert clicks.tell(clicks.ask(), np.bool_(False)).reward == 0.0
    clicks.add(3, True)
    runs = Client(url).create("runs", POLICY.using(switching="lazy"))
    decision = runs.ask()
    while decision.repeats < 2:
        runs.tell(decision, 0.5)
        decision = runs.ask()
    assert runs.tell(decision, np.array([0.25, 0.75])).plays == 2
    assert runs.tell(decision, nr.study.Rewards(count=2, sum=1.0, squares=0.625)).reward == 0.5
    runs.add(3, [0.1, 0.2])


def test_what_was_told_stands(url):
    study = Client(url).create("stands", POLICY)
    decision = study.ask()
    study.tell(decision, 1.0)
    assert study.tell(decision, 1.0).reward == 1.0
    with pytest.raises(nr.errors.TrialError, match="was told already"):
        study.tell(decision, 2.0)


@pytest.mark.parametrize(
    ("do", "error", "words"),
    [
        (lambda client: client.study("nowhere"), nr.errors.TrialError, "no study"),
        (lambda client: client.create("a\nb", POLICY), nr.errors.InvalidInput, "one line"),
        (lambda client: client.create(" ", POLICY), nr.errors.InvalidInput, "name of a study"),
        (lambda client: client.create("other", POLICY, deadline=-1.0), nr.errors.InvalidInput, "deadline"),
        (lambda client: client.create("made", POLICY).ask({"hour": 3}), nr.errors.InvalidInput, "context"),
        (lambda client: client.create("made", POLICY).tell("no id", 1.0), nr.errors.TrialError, "decision"),
        (lambda client: client.create("made", POLICY).tell(7, 1.0), nr.errors.InvalidInput, "pass what `ask` returned"),
        (lambda client: client.create("made", POLICY).ask(key="ü"), nr.errors.InvalidInput, "`key`"),
        (lambda client: client.create("made", POLICY).tell("x", float("nan")), nr.errors.InvalidInput, "`reward`"),
        (lambda client: client.create("made", POLICY).tell("x", (1, None)), nr.errors.InvalidInput, r"`reward\[1\]`"),
        (lambda client: client.create("made", POLICY, seed=1), nr.errors.TrialError, "seed"),
        (lambda client: client.study("mad"), nr.errors.TrialError, r"`client.studies\(\)` lists"),
    ],
)
def test_errors_are_the_librarys(url, do, error, words):
    client = Client(url)
    client.create("made", POLICY)
    with pytest.raises(error, match=words):
        do(client)


def test_by_await(url):
    async def run():
        async with AsyncClient(url, at_once=4) as client:
            await in_all(client)

    async def in_all(client):
        study = await client.create("awaited", POLICY, seed=1)
        asked = await asyncio.gather(*(study.ask() for _ in range(5)))
        assert sorted(decision.number for decision in asked) == list(range(5))
        await asyncio.gather(*(study.tell(decision, reward(decision.point[0])) for decision in asked[:4]))
        await study.fail(asked[4], "lost")
        assert [result.status for result in await study.tell_many([(asked[0], reward(asked[0].point[0]))])] == [200]
        assert len(await study.ask(count=2)) == 2
        await study.add(ARMS.points[3], 0.1)
        assert len((await study.predict())[0]) == len((await study.bounds())[1]) == 20
        assert (await study.best()).state == "observed"
        assert (await study.decision(asked[4])).reason == "lost"
        assert (await study.explain(0))["number"] == 0
        assert (await study.status()).trials["all"] == 8
        orders = [event.order async for event in study.events()]
        assert orders == sorted(orders)
        assert len(orders) >= 12
        assert b"lost" in await study.export()
        assert "awaited" in [each.name for each in await client.studies()]
        assert (await client.study("awaited")).name == "awaited"

    asyncio.run(run())


def test_by_await_where_the_loops_threads_are_full(url):
    async def run():
        over = threading.Event()
        waiting = [asyncio.create_task(asyncio.to_thread(over.wait, LONG)) for _ in range(64)]
        study = await AsyncClient(url).create("full", POLICY)
        assert (await asyncio.wait_for(study.ask(), LONG)).number == 0
        over.set()
        await asyncio.gather(*waiting)

    asyncio.run(run())


def test_a_thread_for_each(url):
    study = Client(url).create("threads", POLICY)
    numbers = []

    def work():
        for _ in range(10):
            decision = study.ask()
            study.tell(decision, reward(decision.point[0]))
            numbers.append(decision.number)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == list(range(40))


def test_the_same_request_again_has_the_same_key():
    decided = b'{"decisions": [{"id": "i", "number": 0, "parameters": null, "point": [0.5], "arm": 1, "context": null, '
    decided += b'"explored": false, "repeats": 1, "propensity": null, "asked_at": 1.0, "expires_at": null}]}'
    study = b'{"error": {"kind": "busy", "sentence": "Too many."}}'
    with answering((201, b"{}"), None, (503, study), (201, decided)) as (address, got), Client(address) as client:
        assert client.create("s", POLICY).ask().id == "i"
    assert len(set(got[1:])) == 1
    assert got[1] is not None


def test_what_is_no_service_is_said(url):
    with (
        answering((404, b"<html>not here</html>")) as (address, _),
        pytest.raises(nr.errors.ServiceError, match="no decision service"),
    ):
        Client(address).studies()
    with (
        answering((503, b"{}"), (503, b'{"error": {"kind": "busy", "sentence": "Too many calls wait."}}')) as (
            address,
            _,
        ),
        pytest.raises(nr.errors.ServiceError, match="Too many calls wait"),
    ):
        Client(address, attempts=2).studies()
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        place = f"http://127.0.0.1:{unheard.getsockname()[1]}"
        with pytest.raises(
            nr.errors.ServiceError, match=r"could not be reached in 2 attempts .*same call may be repeated"
        ):
            Client(place, attempts=2).studies()


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8000", "ftp://here", "http://", "http://here:99999999", "http://a?b=c", 3, None]
)
def test_addresses_that_are_none(url):
    with pytest.raises(nr.errors.InvalidInput, match="`url`"):
        Client(url)


def test_tokens_that_are_none():
    with pytest.raises(nr.errors.InvalidInput, match="`token` is no token"):
        Client("http://127.0.0.1:1", token="a\nb")


def test_without_httpx_the_extra_is_named():
    code = "import sys; sys.modules['httpx'] = None; import nilregret.client"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "MissingExtra: `nilregret.client` needs httpx" in done.stderr
    assert "pip install 'nilregret[client]'" in done.stderr


def _asked(study, numbers):
    numbers.put([study.ask().number for _ in range(5)])


def test_forked_processes_have_connections_of_their_own(url):
    study = Client(url).create("forked", POLICY)
    assert study.ask().number == 0  # over a connection that a child must not use
    forked = multiprocessing.get_context("fork")
    numbers = forked.SimpleQueue()
    children = [forked.Process(target=_asked, args=(study, numbers)) for _ in range(2)]
    for child in children:
        child.start()
    found = [study.ask().number for _ in range(5)]
    for child in children:
        found += numbers.get()
        child.join(LONG)
        assert child.exitcode == 0
    assert sorted(found) == list(range(1, 16))


def test_connections_are_kept_and_come_back_after_they_were_closed():
    body = b'{"studies": []}'
    with answering((200, body), (200, body), (200, body)) as (address, got):
        client = Client(address)
        assert client.studies() == client.studies() == []
        client.close()
        assert client.studies() == []
        client.close()
    assert len(got) == 3


def test_who_visits_events_and_several_rewards_of_a_decision(url):
    policy = nr.auto(nr.Arms(range(3)), reward="poisson")
    study = Client(url).create("visits", policy, sticky=timedelta(days=1), deadline=60.0, reward="sum")
    first = study.ask(unit="user-17", event="order/1", facts={"order": np.int64(12), "page": "/shoes"})
    assert (first.event, first.unit, first.facts) == ("order/1", 0, {"order": 12, "page": "/shoes"})
    assert study.ask(event="order/1") == first
    assert study.ask(unit="user-17").kept == 0
    assert study.tell("order/1", 1, key="click").rewards[0].key == "click"
    done = study.tell_many([{"trial": "order/1", "reward": 3, "key": "items"}, ("nobody", 1)])
    assert [each.status for each in done] == [200, 422]
    assert [each.reward for each in study.decision("order/1").rewards] == [1.0, 3.0]
    assert (study.forget("user-17"), study.forget("user-17")) == (True, False)
    assert study.abandon(study.ask(event="b")).state == "abandoned"
    assert (study.status().sticky, study.status().reward) == (86400.0, "sum")
    pages = Client(url).create("pages", nr.auto(nr.Arms(range(3)), reward="bernoulli"))
    page = pages.ask(count=3, slate=True, event="page-1")
    assert [each.reward for each in pages.tell_slate(page, clicked=1)] == [0.0, 1.0, 0.0]
    assert [each.reward for each in pages.tell_slate("page-1", [None, 1, None])] == [1.0]
    with pytest.raises(nr.errors.InvalidInput, match="`sticky` must be a number"):
        Client(url).create("other", policy, sticky="yes")
