"""What decisions over HTTP cost, how many there are in a second, and what kills of servers lose.

    python benchmarks/service.py
    python benchmarks/service.py --kills 100

Everything is on this machine: server processes of `noregret serve`, with its gate; a client that writes HTTP by hand;
databases on this disk, PostgreSQL from a wheel (extra `test`). 100 arms, Theorem 1. Processor times are those of the
server process, compared with those of a server whose one endpoint answers {}, and with what Python's sqlite3 needs for
a commit of the same rows. Percentiles of the time until an answer are of one process on SQLite. With `--kills` servers
are killed (SIGKILL) while four threads ask and tell, with keys, and go on until each request is answered; then the
record is compared with what was acknowledged.
"""

import argparse
import os
import sqlite3
import sys
import tempfile
import threading
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
from tabulate import tabulate

import noregret as nr

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.service_parts import kills
from benchmarks.service_parts.servers import Connection, Server
from tests.postgres import Server as Postgres

POLICY = nr.gp_ucb(nr.Arms.grid(0, 1, 100), nr.SquaredExponential(0.2), noise=0.1, width="theorem")
STUDY = "/v1/studies/shop"
WARM = 20


def made(url, name="shop"):
    nr.Study(POLICY, storage=url, name=name).close()


def per_request(server, send, count):
    """Milliseconds of the server's processor, and of wall for each."""
    for number in range(WARM):
        send(-1 - number)
    began, waits = server.cpu, []
    for number in range(count):
        at = time.perf_counter()
        send(number)
        waits.append(time.perf_counter() - at)
    return 1e3 * (server.cpu - began) / count, 1e3 * np.array(waits)


def empty(count, waits=0.0):
    """An endpoint that answers {}; after so many seconds, in which the processor forgets what it was doing."""
    server = Server.of_nothing(waits)
    server.begin()
    try:
        connection = Connection(server.port)
        return per_request(server, lambda _: connection.send("POST", "/nothing", {}), count)
    finally:
        server.kill()


def commit(path, count):
    """Milliseconds of processor, and the median of wall, for the rows of a decision: a trial, a counter, a note."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE studies (id INTEGER PRIMARY KEY, events INTEGER)")
    connection.execute("INSERT INTO studies VALUES (1, 0)")
    connection.execute("CREATE TABLE trials (number INTEGER PRIMARY KEY, text TEXT)")
    connection.execute("CREATE TABLE notes (key TEXT PRIMARY KEY, value TEXT)")
    cpu, waits = time.process_time(), []
    for number in range(count):
        at = time.perf_counter()
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("SELECT events FROM studies WHERE id = 1").fetchone()
        connection.execute("INSERT INTO trials VALUES (?, ?)", (number, "x" * 200))
        connection.execute("INSERT INTO notes VALUES (?, ?)", (f"key:{number:064}", "x" * 80))
        connection.execute("UPDATE studies SET events = ?", (number,))
        connection.execute("COMMIT")
        waits.append(time.perf_counter() - at)
    each = 1e3 * (time.process_time() - cpu) / count, 1e3 * float(np.median(waits))
    connection.close()
    return each


def one_after_the_other(url, count):
    """A decision, and a reward: processor and waits."""
    made(url)
    server = Server.of_studies(url)
    server.begin()
    try:
        connection, ids = Connection(server.port), {}

        def ask(number):
            _, said = connection.send("POST", f"{STUDY}/decisions", {}, key=f"k{number}")
            ids[number] = said["decisions"][0]["id"]

        def tell(number):
            connection.send("PUT", f"{STUDY}/decisions/{ids[number]}/reward", {"reward": 0.01 * (number % 7)})

        return per_request(server, ask, count), per_request(server, tell, count)
    finally:
        server.end()


class Crowd(threading.Thread):
    """One client, which asks and tells so often."""

    def __init__(self, number, port, count):
        super().__init__()
        self._number, self._count, self._connection = number, count, Connection(port)
        self.waits, self.faults = [], []

    def run(self):
        for turn in range(self._count):
            at = time.perf_counter()
            status, said = self._connection.send("POST", f"{STUDY}/decisions", {}, key=f"{self._number}-{turn}")
            self.waits.append(time.perf_counter() - at)
            if status == 201:
                path = f"{STUDY}/decisions/{said['decisions'][0]['id']}/reward"
                status, said = self._connection.send("PUT", path, {"reward": 0.01 * (turn % 7)})
            if status != 200:
                self.faults.append(said)


def at_once(url, *, servers, clients, count):
    """Decisions with their rewards a second, by so many clients; the servers' processor time for each."""
    made(url)
    up = [Server.of_studies(url) for _ in range(servers)]
    try:
        for server in up:
            server.begin()
            Connection(server.port).send("POST", f"{STUDY}/decisions", {})
        crowd = [Crowd(number, up[number % servers].port, count) for number in range(clients)]
        cpu, wall = sum(server.cpu for server in up), time.perf_counter()
        for each in crowd:
            each.start()
        for each in crowd:
            each.join()
        wall, total = time.perf_counter() - wall, clients * count
        cpu = sum(server.cpu for server in up) - cpu
    finally:
        for server in up:
            server.end()
    faults = [fault for each in crowd for fault in each.faults]
    if faults:
        raise RuntimeError(f"Not answered as it should be: {faults[0]}")
    return total / wall, 1e3 * cpu / total, 1e3 * np.array([wait for each in crowd for wait in each.waits])


def times(folder, count, clients):
    nothing, _ = empty(count)
    waiting, _ = empty(count, waits=0.001)
    commit_cpu, commit_wall = commit(folder / "commit.db", count)
    (ask_cpu, ask_waits), (tell_cpu, tell_waits) = one_after_the_other(f"sqlite:///{folder}/one.db", count)
    rows = [
        ["an empty endpoint", nothing, None, None],
        ["an empty endpoint that sleeps 1 ms", waiting, None, None],
        ["a commit of the same rows", commit_cpu, commit_wall, None],
        ["decision", ask_cpu, np.median(ask_waits), np.quantile(ask_waits, 0.99)],
        ["reward", tell_cpu, np.median(tell_waits), np.quantile(tell_waits, 0.99)],
    ]
    print(tabulate(rows, ["SQLite, one after the other", "processor, ms", "median, ms", "99%, ms"], floatfmt=".2f"))
    print(f"a decision beyond the empty endpoint and the commit: {ask_cpu - nothing - commit_cpu:.2f} ms of processor")
    print(f"99% over the median: {np.quantile(ask_waits, 0.99) / np.median(ask_waits):.1f}\n")
    rows = []
    with Postgres() as postgres:
        for name, url, servers in (
            ("SQLite, one process", f"sqlite:///{folder}/many.db", 1),
            ("PostgreSQL, one process", postgres.url(), 1),
            ("PostgreSQL, two processes", postgres.url(), 2),
        ):
            rate, cpu, waits = at_once(url, servers=servers, clients=clients, count=count)
            rows.append([name, rate, cpu, np.median(waits), np.quantile(waits, 0.99)])
    headings = [
        f"{clients} clients at once",
        "decisions with rewards a second",
        "processor each, ms",
        "median, ms",
        "99%, ms",
    ]
    print(tabulate(rows, headings, floatfmt=".1f"))


def killed(folder, count, every, database):
    with Postgres() as postgres:
        for name, url in (("SQLite", f"sqlite:///{folder}/kills.db"), ("PostgreSQL", postgres.url())):
            if database not in (None, name):
                continue
            facts, wrong = kills.run(url, kills=count, every=every)
            said = ", ".join(f"{value} {fact}" for fact, value in facts.items())
            print(f"{name}: {count} kills, {said}: {len(wrong)} lost, doubled or different")
            for sentence in wrong[:10]:
                print("  ", sentence)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--count", type=int, default=400, help="requests of a kind")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--kills", type=int, default=0, help="instead, so many kills on each database")
    parser.add_argument("--database", choices=["SQLite", "PostgreSQL"], help="kill on this one alone")
    parser.add_argument("--every", type=float, default=0.5, help="seconds between kills, on average")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if given.kills:
            killed(Path(folder), given.kills, given.every, given.database)
        else:
            times(Path(folder), given.count, given.clients)


if __name__ == "__main__":
    main()
