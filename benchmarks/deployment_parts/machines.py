"""Two processes on one PostgreSQL, as on two machines, behind nginx by `hash`: either is killed under load."""

import random
import re
import threading
import time

from benchmarks.service_parts.kills import Worker, judged
from benchmarks.service_parts.servers import Server, free_port

import nilregret as nr
from nilregret.serve.auth.tokens import Tokens
from nilregret.storage import SqlStorage

from .databases import POLICY
from .proxies import began

STUDIES = [f"shop{number}" for number in range(6)]
LONGEST = 120.0  # seconds until all callers are answered again


def killed(page, url, folder, *, count, seconds, clients):
    """Kills the processes by turns, and begins each again. Returns facts, the longest pause, and what is wrong.

    Args:
        page: with the blocks of nginx.
        url: of the database.
        folder: for nginx.
        count: number of kills.
        seconds: of load before a kill, and while a process is away.
        clients: callers of each study.
    """
    for name in STUDIES:
        nr.Study(POLICY, storage=url, name=name).close()
    storage = SqlStorage(url)
    token, port, stop = Tokens(storage).new("admin", "default"), free_port(), threading.Event()
    storage.close()
    both = [Server("-m", "nilregret", "serve", "--storage", url, "--proxy", "127.0.0.1", "--port", None)
            for _ in range(2)]  # fmt: skip
    for server in both:
        server.begin()
    proxy, several = re.findall(r"^```nginx\n(.*?)^```$", page, re.M | re.S)
    proxy = re.sub(r" +ssl_certificate.*\n", "", proxy).replace("443 ssl;", f"127.0.0.1:{port};")
    proxy = proxy.replace("http://127.0.0.1:8000;", "http://decisions; proxy_connect_timeout 2s;")
    there = "".join(f"    server 127.0.0.1:{server.port};\n" for server in both)
    nginx = began(re.sub(r"(?m)(^    server .*\n)+", there, several) + proxy, port, folder)
    crowd = [Worker(f"w{i}", [port], stop, i, study, token) for study in STUDIES for i in range(clients)]
    slowest = 0.0
    try:
        for worker in crowd:
            worker.start()
        time.sleep(seconds)
        for turn in range(count):
            server, before, at = both[turn % 2], [len(worker.told) for worker in crowd], time.monotonic()
            server.kill()
            slowest = max(slowest, _all_answered(crowd, before, at))
            time.sleep(random.Random(turn).uniform(0.0, seconds))
            server.begin()
            time.sleep(seconds)
    finally:
        stop.set()
        for worker in crowd:
            worker.join(LONGEST)
        nginx.terminate()
        nginx.wait(30)
        for server in both:
            server.kill()
    facts, wrong = {}, []
    for study in STUDIES:
        more, found = judged(url, [worker for worker in crowd if worker.study == study])
        facts, wrong = {key: facts.get(key, 0) + more[key] for key in more}, wrong + found
    return facts, slowest, wrong


def _all_answered(crowd, before, since):
    """Seconds until each caller has told a reward again."""
    while any(len(worker.told) <= told and worker.is_alive() for worker, told in zip(crowd, before, strict=True)):
        if time.monotonic() > since + LONGEST:
            raise RuntimeError("A caller is not answered any more.")
        time.sleep(0.01)
    return time.monotonic() - since
