"""What decisions over HTTP cost, how many there are in a second, and what kills of servers lose.

    python benchmarks/service.py
    python benchmarks/service.py --pairs
    python benchmarks/service.py --meanwhile
    python benchmarks/service.py --kills 100

Everything is on this machine: server processes of `nilregret serve`, with its gate; a client that writes HTTP by hand;
databases on this disk, PostgreSQL from a wheel (extra `test`). 100 arms, Theorem 1. Processor times are those of the
server process, compared with those of a server whose one endpoint answers {}, and with what Python's sqlite3 needs for
a commit of the same rows, in blocks that take turns. Percentiles of the time until an answer are of one process on
SQLite. With `--pairs` clients make decisions with rewards at once, in blocks that take turns with requests to a floor:
a bare server of the same HTTP library that commits an SQLite transaction a request. Figures are medians of ratios. On
PostgreSQL one process and two take turns, on a study for each client and on a single one. With `--kills` servers are
killed (SIGKILL) while four threads ask and tell, with keys, and go on until each request is answered; then the record
is compared with what was acknowledged. With `--meanwhile` one tenant asks for a thousand decisions in one request, each
of which takes in all that is pending and searches a box, and another one's calls are timed.
"""

import argparse
import os
import sqlite3
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
from tabulate import tabulate

import nilregret as nr

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.service_parts import kills, meanwhile, pairs
from benchmarks.service_parts.servers import Connection, Server
from tests.postgres import Server as Postgres

POLICY = nr.gp_ucb(nr.Arms.grid(0, 1, 100), nr.SquaredExponential(0.2), noise=0.1)
STUDY = "/v1/studies/shop"
WARM = 20
BLOCKS = 16  # of each kind, in turn


def made(url, name="shop"):
    nr.Study(POLICY, storage=url, name=name).close()


class Timed:
    """Things of a kind, one after the other, in blocks.

    Attributes:
        cpu: milliseconds of processor for each, by block.
        waits: milliseconds until each was done.
    """

    def __init__(self, used, do):
        self._used, self._do, self._done = used, do, 0  # seconds of processor; something, by number
        self.cpu, self.waits = [], []
        for number in range(WARM):
            do(-1 - number)

    def block(self, count):
        began = self._used()
        for number in range(self._done, self._done + count):
            at = time.perf_counter()
            self._do(number)
            self.waits.append(1e3 * (time.perf_counter() - at))
        self._done += count
        self.cpu.append(1e3 * (self._used() - began) / count)


def tables(path):
    """A connection to a new file with the tables that a decision writes to."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE studies (id INTEGER PRIMARY KEY, events INTEGER)")
    connection.execute("INSERT INTO studies VALUES (1, 0)")
    connection.execute("CREATE TABLE trials (number INTEGER PRIMARY KEY, text TEXT)")
    connection.execute("CREATE TABLE notes (key TEXT PRIMARY KEY, value TEXT)")
    return connection


def commit(connection, number):
    """The rows of a decision, a trial, a counter and a note, by Python's sqlite3."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("SELECT events FROM studies WHERE id = 1").fetchone()
    connection.execute("INSERT INTO trials VALUES (?, ?)", (number, "x" * 200))
    connection.execute("INSERT INTO notes VALUES (?, ?)", (f"key:{number:064}", "x" * 80))
    connection.execute("UPDATE studies SET events = ?", (number,))
    connection.execute("COMMIT")


@contextmanager
def up(server):
    server.begin()
    try:
        yield server, Connection(server.port)
    finally:
        server.end()


def in_turn(folder, count, blocks):
    """An empty endpoint, one that waits, commits, decisions and rewards, in blocks one after the other.

    The machine is never the same for long: what is compared was measured within the same second.
    """
    url = f"sqlite:///{folder}/one.db"
    made(url)
    with ExitStack() as stack:
        empty, waits, shop = (
            stack.enter_context(up(server))
            for server in (Server.of_nothing(), Server.of_nothing(0.001), Server.of_studies(url))
        )
        ids = {}

        def ask(number):
            _, said = shop[1].send("POST", f"{STUDY}/decisions", {}, key=f"k{number}")
            ids[number] = said["decisions"][0]["id"]

        def tell(number):
            shop[1].send("PUT", f"{STUDY}/decisions/{ids[number]}/reward", {"reward": 0.01 * (number % 7)})

        def idle(to, _):
            to.send("POST", "/nothing", {})

        rows = tables(folder / "commit.db")
        stack.callback(rows.close)
        kinds = [
            *(Timed(partial(getattr, server, "cpu"), partial(idle, to)) for server, to in (empty, waits)),
            Timed(time.process_time, partial(commit, rows)),
            *(Timed(partial(getattr, shop[0], "cpu"), do) for do in (ask, tell)),
        ]
        for _ in range(blocks):
            for kind in kinds:
                kind.block(max(count // blocks, 1))
    return kinds


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
    kinds = in_turn(folder, count, BLOCKS)
    names = [
        "an empty endpoint",
        "an empty endpoint that sleeps 1 ms",
        "a commit of the same rows",
        "decision",
        "reward",
    ]
    rows = [
        [name, np.median(kind.cpu), np.median(kind.waits), np.quantile(kind.waits, 0.99)]
        for name, kind in zip(names, kinds, strict=True)
    ]
    print(tabulate(rows, ["SQLite, one after the other", "processor, ms", "median, ms", "99%, ms"], floatfmt=".2f"))
    nothing, waiting, commits, asks, _ = kinds
    for name, kind in (("empty", nothing), ("sleeping", waiting)):
        beyond = np.subtract(asks.cpu, np.add(kind.cpu, commits.cpu))
        low, middle, high = np.quantile(beyond, [0.25, 0.5, 0.75])
        print(
            f"a decision beyond the {name} endpoint and the commit: {middle:.2f} ms of processor, "
            f"in the middle half of {BLOCKS} blocks {low:.2f} to {high:.2f}"
        )
    print(f"99% over the median: {np.quantile(asks.waits, 0.99) / np.median(asks.waits):.1f}\n")
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


def by_pairs(folder, count, clients, database):
    headings = ["processor, ms", "over the first", "a second", "over the first"]
    more = {"clients": clients, "count": max(count // BLOCKS, 1), "blocks": BLOCKS // 2}
    if database in (None, "SQLite"):
        found = pairs.sqlite(POLICY, folder, **more)
        print(tabulate(found, [f"SQLite, {clients} clients", *headings], floatfmt=".2f"))
    if database in (None, "PostgreSQL"):
        with Postgres() as postgres:
            found = pairs.postgresql(POLICY, postgres, **more)
        print(tabulate(found, [f"PostgreSQL, {clients} clients", *headings], floatfmt=".2f"))


def crowded(folder, database):
    with Postgres() as postgres:
        for name, url in (("SQLite", f"sqlite:///{folder}/meanwhile.db"), ("PostgreSQL", postgres.url())):
            if database not in (None, name):
                continue
            seconds, calls = meanwhile.run(url)
            rows = [[call, *slowest] for call, slowest in calls.items()]
            headings = [f"{name}: slowest call of another tenant", "alone, ms", "meanwhile, ms"]
            print(tabulate(rows, headings, floatfmt=".0f"))
            print(f"{meanwhile.MANY} decisions in one request: {seconds:.1f} s\n")


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
    parser.add_argument("--count", type=int, default=800, help="requests of a kind")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--pairs", action="store_true", help="instead, pairs by clients at once against a floor")
    parser.add_argument("--kills", type=int, default=0, help="instead, so many kills on each database")
    parser.add_argument(
        "--meanwhile", action="store_true", help="instead, what others wait for while one asks for many"
    )
    parser.add_argument("--database", choices=["SQLite", "PostgreSQL"], help="with these two, on this one alone")
    parser.add_argument("--every", type=float, default=0.5, help="seconds between kills, on average")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if given.pairs:
            by_pairs(Path(folder), given.count, given.clients, given.database)
        elif given.meanwhile:
            crowded(Path(folder), given.database)
        elif given.kills:
            killed(Path(folder), given.kills, given.every, given.database)
        else:
            times(Path(folder), given.count, given.clients)


if __name__ == "__main__":
    main()
