"""nginx as docs/deployment.md sets it up before several processes: a study has one of them, and kills lose nothing."""

import os
import random
import re
import threading
from urllib.request import Request, urlopen

import pytest
from benchmarks.deployment_parts import proxies
from benchmarks.service_parts import kills
from benchmarks.service_parts.servers import Server, free_port

import nilregret as nr
from nilregret.serve.auth.tokens import Tokens
from nilregret.storage import SqlStorage

from .service import POLICY
from .test_deployment_page import blocks
from .waiting import LONG, until

LACKING = (
    "No nginx was found, so the page's recipe for several processes was not tested: install one (on Debian and Ubuntu "
    "`apt-get install nginx-light`)."
)
COUNTS = r'nilregret_process_(?:decisions|answers)_total\{study="(\w+)".*\} (\S+)'
STUDIES = ["shop", *(f"s{number}" for number in range(7))]


@pytest.fixture
def nginx():
    """Without nginx the test is skipped, or fails where NILREGRET_NGINX is "required"."""
    if proxies.PROGRAM is None:
        (pytest.fail if os.environ.get("NILREGRET_NGINX") == "required" else pytest.skip)(LACKING)


class Site:
    """Processes on one database behind nginx, which all callers use."""

    def __init__(self, url, processes, folder):
        storage = SqlStorage(url)
        self.token = Tokens(storage).new("admin", "default")
        storage.close()
        self.port, self._folder, self.killed = free_port(), folder, 0
        command = ("-m", "nilregret", "serve", "--storage", url, "--proxy", "127.0.0.1", "--port", None)
        self.servers = [Server(*command) for _ in range(processes)]

    def __enter__(self):
        for server in self.servers:
            server.begin()
        proxy, several = blocks("nginx")
        proxy = re.sub(r" +ssl_certificate.*\n", "", proxy).replace("443 ssl;", f"127.0.0.1:{self.port};")
        proxy = proxy.replace("http://127.0.0.1:8000;", "http://decisions; proxy_connect_timeout 2s;")
        there = "".join(f"    server 127.0.0.1:{server.port};\n" for server in self.servers)
        several = re.sub(r"(?m)(^    server .*\n)+", there, several)
        self._nginx = proxies.began(several + proxy, self.port, self._folder)
        return self

    def __exit__(self, *_):
        self._nginx.terminate()
        self._nginx.wait(LONG)
        for server in self.servers:
            server.kill()

    def busy(self):
        """By study, the processes that have decided for it or taken its rewards."""
        found = {}
        for server in self.servers:
            address, key = f"http://127.0.0.1:{server.port}/metrics", {"Authorization": f"Bearer {self.token}"}
            with urlopen(Request(address, headers=key)) as answer:
                text = answer.read().decode()
            for study, count in re.findall(
                r'nilregret_process_(?:decisions|answers)_total\{study="(\w+)".*\} (\S+)', text
            ):
                if float(count):
                    found.setdefault(study, set()).add(server)
        return found

    def crowd(self, studies, stop):
        return [kills.Worker(f"w{i}", [self.port], stop, i, study, self.token) for i, study in enumerate(studies)]


def told(crowd):
    return min(len(worker.told) for worker in crowd)


@pytest.mark.nightly
@pytest.mark.parametrize("processes", [2, 4])
@pytest.mark.parametrize("studies", [STUDIES, ["shop"] * 4], ids=["eight", "one"])
def test_each_study_has_one_process_and_kills_lose_nothing(nginx, postgres, tmp_path, studies, processes):
    url, stop, rng = postgres.url(), threading.Event(), random.Random(processes)
    for name in {*studies}:
        nr.Study(POLICY, storage=url, name=name).close()
    with Site(url, processes, tmp_path) as site:
        crowd = site.crowd(studies, stop)
        try:
            for worker in crowd:
                worker.start()
            until(lambda: told(crowd) > 5 or any(worker.error for worker in crowd))
            busy = site.busy()
            assert {study: len(servers) for study, servers in busy.items()} == dict.fromkeys(studies, 1)
            for server in (*busy["shop"], *rng.choices(site.servers, k=2)):
                before = told(crowd)
                server.kill()
                until(lambda before=before: told(crowd) > before + 3 or any(worker.error for worker in crowd))
                server.begin()
        finally:
            stop.set()
            for worker in crowd:
                worker.join(LONG)
    for name in {*studies}:
        facts, wrong = kills.judged(url, [worker for worker in crowd if worker.study == name])
        assert wrong == []
        assert facts["rewards"] > 5
