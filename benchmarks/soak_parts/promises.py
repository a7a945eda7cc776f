"""The promises of a day of traffic, each held against what has been seen, as rows of a table."""

import json

from . import judged, watched
from .day import SQLITE
from .events import DECISIONS

STATE = 7.0  # MB that an open study on a continuous space may keep beyond what a new process needs for its record
SLOWER = 2.0  # times the processor time of a request in the first quarter
MORE = {"files": 8, "threads": 8}  # in the second half of the life of a process


def of_records(house):
    """Yields rows: what is on record, what services count and signal."""
    day, secret = house.day, DECISIONS["service"]["secret"]
    own = day.own
    wrong = []
    for study, ledger in own.items():
        lines = judged.exports(house.ports[0], study)
        wrong += judged.record(house.url, study, ledger, lines, clock=day.now)
    port, old = house.services["sqlite"].port, day.ledgers[SQLITE]
    lines = judged.exports(port, "shop", secret)
    url = f"sqlite:///{house.folder}/service.db"
    wrong += judged.record(url, "shops/shop", old, lines, clock=day.now)
    asked, told = (sum(len(getattr(each, of)) for each in day.ledgers.values()) for of in ("asked", "answered"))
    late, twice = (sum(len(each.late) for each in day.ledgers.values()), sum(x.repeated for x in day.ledgers.values()))
    said = f"{len(day.ledgers)} studies: {asked} decisions, {told} answered, {late} of them late, {twice} sent twice"
    yield "nothing lost, invented or twice; all replayed", said, wrong
    facts, wrong = judged.work(house)
    yield "workers: each evaluation is on record once", ", ".join(f"{n} {what}" for what, n in facts.items()), wrong
    wrong = [*judged.counts(own, house.ports)]
    yield "`/metrics` equal the ledgers", f"{len(own)} studies at two services", wrong
    ovens = [study for study in own if study.startswith("oven")]
    yield "`failing` is true", f"{len(ovens)} studies", [x for each in ovens for x in judged.signals(house.ports, each)]
    yield "cautions are those of the record", "", [x for each in own for x in judged.cautions(house, each)]


def of_checks(house):
    """Yields a row: the command that checks whole records."""
    before, urls = len(house.day.wrong), (house.url, f"sqlite:///{house.folder}/service.db")
    said = [house.called("studies", url, "--check", "--json") for url in urls]
    count = sum(len(json.loads(each or "[]")) for each in said)
    yield "`nilregret studies --check`", f"{count} studies", house.day.wrong[before:]
    del house.day.wrong[before:]


def of_processes(watch, fresh, *, judge):
    """Yields rows: memory, files, threads, processor time and latency over the day.

    Args:
        watch: which has seen it.
        fresh: MB of a new process that has opened the same studies.
        judge: whether the day was long enough for limits of memory and time.
    """
    heard = watch.house.day.heard
    tunings = sum("-" in study for study in watch.house.day.ledgers)
    for name in ("one", "two"):
        life = watched.last_life(watch.samples[name])
        slope, start, end = watched.memory_slope(life)
        said = f"{start:.0f} to {end:.0f} MB, {slope:+.2f} MB per 1,000 requests; a new process has {fresh:.0f} MB"
        each = (end - fresh) / max(tunings, 1)
        wrong = [f"service {name} has {each:.1f} MB more than a new one for each of {tunings}"] if each > STATE else []
        yield f"memory of service {name}", said, wrong if judge else []
        for what, most in MORE.items():
            more = watched.growth(life, what)
            said = f"{getattr(life[-1], what)} at last, {more:+d} in the second half"
            yield f"{what} of service {name}", said, [f"{more} more {what}"] if more > most else []
    first, last = (watched.cpu_per_request(watch.samples, *part) for part in ((0.0, 0.25), (0.75, 2.0)))
    said = f"{last / first:.2f} times that of the first quarter, {first:.1f} ms"
    yield "processor time of a request", said, [said] if judge and last > SLOWER * first else []
    for kind in (None, *sorted({row[1] for row in heard})):
        rows = [row for row in heard if kind in (None, row[1])]
        (n, p50, p99), (m, q50, q99) = (watched.latencies(rows, *part) for part in ((0.0, 0.25), (0.75, 2.0)))
        said = f"p50 {q50 / p50:.2f}, p99 {q99 / p99:.2f} times {p50:.0f} and {p99:.0f} ms ({n} and {m} requests)"
        yield f"latency of {kind or 'all'}, last quarter over first", said, []
    rows = [(at, "health", seconds) for at, seconds in watch.health]
    (_, p50, _), (_, q50, _) = (watched.latencies(rows, *part) for part in ((0.0, 0.25), (0.75, 2.0)))
    yield "latency of `/healthz` and `/readyz`", f"p50 {q50 / p50:.2f} times {p50:.0f} ms", []
