"""Real server processes on real databases, some of them killed while they work."""

import os
import signal
import socket
import threading
from pathlib import Path

import pytest
from benchmarks.service_parts import kills
from benchmarks.service_parts.servers import Connection, Server

import nilregret as nr
from nilregret.client import Client
from nilregret.serve.http.server import listening
from nilregret.testing.serving import Serving

from .service import AT, POLICY, plain
from .waiting import LONG, until

ASK = f"{AT}/decisions"


@pytest.fixture
def pair(postgres):
    """Connections to two servers on one database."""
    url = postgres.url()
    servers = [Server.of_studies(url) for _ in range(2)]
    for server in servers:
        server.begin()
    connections = [Connection(server.port) for server in servers]
    yield connections
    for connection in connections:
        connection.close()
    for server in servers:
        server.end()


def test_no_part_of_an_answer_is_held_back():
    with listening("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        taken, _ = listener.accept()
        with taken:
            assert taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_stream_of_events_does_not_keep_a_service_from_ending():
    with Serving() as service:
        Client(service.url).create("shop", POLICY)
        listening_to = socket.create_connection(("127.0.0.1", int(service.url.rpartition(":")[2])))
        asked = f"GET {AT}/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n"
        listening_to.sendall(asked.encode())
        assert b"200 OK" in listening_to.recv(4096)
    with listening_to:
        while listening_to.recv(4096):
            pass


@pytest.mark.nightly
def test_any_server_answers_any_request(pair):
    one, two = pair
    assert one.send("PUT", AT, {"policy": plain(POLICY), "seed": 5})[0] == 201
    assert two.send("PUT", AT, {"policy": plain(POLICY), "seed": 5})[0] == 200
    study = nr.Study(POLICY, seed=5)
    for turn in range(6):
        here, there = (one, two) if turn % 2 else (two, one)
        status, said = here.send("POST", ASK, {}, key=f"{turn}")
        assert (status, said) == there.send("POST", ASK, {}, key=f"{turn}")
        (decision,) = said["decisions"]
        trial = study.ask()
        assert (decision["number"], decision["arm"]) == (trial.number, trial.arm)
        path = f"{ASK}/{decision['id']}/reward"
        first = there.send("PUT", path, {"reward": 0.1 * turn})
        assert first[0] == 200
        assert here.send("PUT", path, {"reward": 0.1 * turn}) == first
        assert here.send("PUT", path, {"reward": 9.0})[0] == 409
        study.tell(trial, 0.1 * turn)
    mean, std = study.predict()
    for each in pair:
        assert each.send("GET", f"{AT}/predict", None) == (200, {"mean": mean.tolist(), "std": std.tolist()})
        assert len(each.send("GET", f"{AT}/events", None)[1]["events"]) == 12


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_killed_servers_lose_nothing_and_double_nothing(kind, places):
    facts, wrong = kills.run(places(kind)(), kills=3, workers=3, every=0.3)
    assert wrong == []
    assert facts["decisions"] > 0
    assert facts["retries"] > 0


def children(pid):
    return {int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


@pytest.mark.nightly
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux, which tells a process's children")
def test_killed_workers_are_replaced_and_nothing_is_lost(postgres):
    url = postgres.url()
    for name in ("shop", "other"):
        nr.Study(POLICY, storage=url, name=name).close()
    server = Server("-m", "nilregret", "serve", "--storage", url, "--port", None, "--workers", "2")
    server.begin()
    stop = threading.Event()
    crowd = [kills.Worker(f"w{number}", [server.port], stop, number) for number in range(4)]
    for worker in crowd:
        worker.start()
    try:
        for _ in range(3):
            told = sum(len(worker.told) for worker in crowd)
            until(lambda told=told: sum(len(worker.told) for worker in crowd) > told + 20)
            before = children(server.process.pid)
            os.kill(max(before), signal.SIGKILL)
            until(lambda before=before: len(children(server.process.pid) - before) == 1)
    finally:
        stop.set()
        for worker in crowd:
            worker.join(LONG)
        server.process.terminate()
        assert server.process.wait(LONG) == 0
    facts, wrong = kills.judged(url, crowd)
    assert wrong == []
    assert facts["rewards"] > 60
