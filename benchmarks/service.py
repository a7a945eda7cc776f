"""How many decisions over HTTP there are, what others wait for, and what kills of servers lose.

    python benchmarks/service.py [--pairs] [--meanwhile] [--kills N] [--bulk N] --count 800 --clients 8
        [--database SQLite|PostgreSQL] --every 0.5

Everything is on this machine: server processes of `nilregret serve`, with its gate; a client that writes HTTP by hand;
databases on this disk, PostgreSQL from a wheel (extra `test`). 100 arms, Theorem 1. Processor times are those of the
server process. With `--pairs`, or nothing, `--clients` make `--count` decisions with rewards at once, in blocks that
take turns with requests to a floor: a bare server of the same HTTP library that commits an SQLite transaction a
request. Figures are medians of ratios. On PostgreSQL one process and two take turns, on a study for each client and on
a single one. With `--kills` servers are killed (SIGKILL), `--every` so many seconds on average, while four threads ask
and tell, with keys, and go on until each request is answered; then the record is compared with what was acknowledged.
With `--meanwhile` one tenant asks for a thousand decisions in one request, each of which takes in all that is pending
and searches a box, and another one's calls are timed. With `--bulk` so many observations are sent in one request, as
JSON lines, while decisions of the same study are timed. Then the server is killed half-way, and the request sent again.
"""

import tempfile

import bench

import nilregret as nr

from benchmarks.service_parts import bulk, kills, meanwhile, pairs  # isort: skip
from tests.postgres import Server as Postgres  # isort: skip

POLICY = nr.gp_ucb(nr.Arms.grid(0, 1, 100), nr.SquaredExponential(0.2), noise=0.1)
BLOCKS = 16  # of each kind, in turn


def by_pairs(name, folder, postgres, given):
    more = {"clients": given.clients, "count": max(given.count // BLOCKS, 1), "blocks": BLOCKS // 2}
    on_files = name == "SQLite"
    found = pairs.sqlite(POLICY, folder, **more) if on_files else pairs.postgresql(POLICY, postgres, **more)
    head = [f"{name}, {given.clients} clients", "processor, ms", "over the first", "a second", "over the first"]
    bench.table("", head, found, floatfmt=".2f")


def crowded(name, url):
    seconds, calls = meanwhile.run(url)
    head = [f"{name}: slowest call of another tenant", "alone, ms", "meanwhile, ms"]
    bench.table("", head, [[call, *slowest] for call, slowest in calls.items()], floatfmt=".0f")
    print(f"{meanwhile.MANY} decisions in one request: {seconds:.1f} s\n")


def killed(name, url, given):
    facts, wrong = kills.run(url, kills=given.kills, every=given.every)
    said = ", ".join(f"{value} {fact}" for fact, value in facts.items())
    print(f"{name}: {given.kills} kills, {said}: {len(wrong)} lost, doubled or different", *wrong[:10], sep="\n   ")


def in_bulk(folder, count):
    head = [f"{count:,} rows in one request", "s", "MB before", "MB at most", "decisions meanwhile", "median, ms",
            "slowest, ms", "rows left after a kill"]  # fmt: skip
    bench.table("", head, bulk.run(folder, count=count), floatfmt=".0f")


@bench.command(__doc__)
def main(given):
    if given.bulk:
        with tempfile.TemporaryDirectory() as folder:
            in_bulk(folder, given.bulk)
        return
    with tempfile.TemporaryDirectory() as folder, Postgres() as postgres:
        for name in [given.database] if given.database else ["SQLite", "PostgreSQL"]:
            url = f"sqlite:///{folder}/studies.db" if name == "SQLite" else postgres.url()
            if given.meanwhile:
                crowded(name, url)
            if given.kills:
                killed(name, url, given)
            if given.pairs or not (given.meanwhile or given.kills):
                by_pairs(name, folder, postgres, given)
