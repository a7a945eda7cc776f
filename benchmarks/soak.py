"""Eight hours of traffic by the clock of the service, compressed into 20 minutes, with all that happens to a service.

    python benchmarks/soak.py --minutes 20.0 [--quick]

Two processes of `nilregret serve` on PostgreSQL, two of `nilregret work`, and later one on an SQLite file of format 1.
`time.time` of each process goes 24 times as fast as the real clock: deadlines, leases and times on record are simulated
seconds. Requests, kills and outages take real time. `--quick` is a minute, too short to judge memory and speed.

At the end each promise is held against what the callers were told. The exit code is 1 where one is broken. All of it
listens at 127.0.0.1 alone.
"""

import sys
import tempfile
from functools import partial
from pathlib import Path
from signal import SIGINT, SIGQUIT

import bench
from benchmarks.soak_parts import events, judged, promises, traffic, watched
from benchmarks.soak_parts.day import SPEED, Day
from benchmarks.soak_parts.house import DATABASE, House

import nilregret as nr

LAST = 0.75  # share of the day from which nothing is disturbed


def bad_batch(house, crowd):
    """An oven fails several times in a row, which is a signal until it works again."""
    (oven,) = (caller for caller in crowd if caller.label == "oven0")
    house.day.failing.set()
    before = len(oven.ledger.failed)
    traffic.wait_for(lambda: len(oven.ledger.failed) >= before + 4)
    with house.day.quiet(crowd):
        if not judged.failing(judged.exports(house.ports[0], oven.study)):
            house.day.wrong.append("an oven that failed four times in a row is not failing")
        house.day.wrong += judged.signals(house.ports, oven.study)
    house.day.failing.clear()
    house.day.disturbances.append(("four failures in a row", house.day.at, 0.0))


def played(house, crowd, copies, *, quick):
    """Plays the day until its last quarter."""
    more = {}

    def upgrade():
        more["sqlite"] = events.SqliteCopy(house, events.upgraded(house, crowd, quick=quick))

    plan = [
        (0.12, partial(events.kill_worker, house, 0)), (0.26, partial(events.kill, house, "one")),
        (0.30, partial(events.moved, house)), (0.35, upgrade), (0.42, partial(events.outage, house, SIGQUIT, 2.0)),
        (0.45, lambda: more["sqlite"].make()), (0.48, partial(events.copied, house, copies)),
        (0.52, partial(events.kill, house, "two")), (0.55, partial(bad_batch, house, crowd)),
        (0.58, partial(events.kill_worker, house, 1)), (0.61, lambda: more["sqlite"].restore()),
        (0.64, partial(events.kill, house, "two")), (0.67, partial(events.outage, house, SIGINT, 5.0)),
        (0.70, partial(events.copied, house, copies)), (0.73, partial(events.kill_worker, house, 0)),
    ]  # fmt: skip
    for share, happen in plan:
        house.day.wait_until(share)
        if all(caller.is_alive() for caller in crowd):
            happen()


def calm(house, crowd):
    """Plays the last quarter, in which processes count all that callers are told. Returns what they count otherwise."""
    day = house.day
    day.wait_until(LAST)
    with day.quiet(crowd):
        before, known = [watched.metrics(port) for port in house.ports], judged.acknowledged(day.own)
    day.wait_until(1.0 if day.at < 0.9 else day.at + 0.25)
    with day.quiet(crowd):
        found = judged.since(before, [watched.metrics(port) for port in house.ports])
        due = {key: count - known.get(key, 0.0) for key, count in judged.acknowledged(day.own).items()}
        day.stop.set()
    due = {key: count for key, count in due.items() if count}
    wrong = [
        f"{key[0]} of {key[1]} grew by {found.get(key, 0):.0f}, and by {due.get(key, 0):.0f} as callers were told"
        for key in sorted(found.keys() | due.keys())
        if found.get(key) != due.get(key)
    ]
    return f"{sum(found.values()):.0f} decisions, answers and repeated requests", wrong


def same_copies(house, copies):
    """Yields copies that are not the beginning of the record."""
    for name, sizes in copies.items():
        for study, size in sizes.items():
            records = []
            for database in (name, DATABASE):
                with nr.Study.open(storage=house.url_of(database), name=study, clock=house.day.now) as found:
                    records.append([trial.point.tolist() for trial in list(found.trials)[:size]])
            if records[0] != records[1]:
                yield f"{name} of {study} is not the beginning of the record"


def fresh_memory(house):
    """Returns MB of a new process that has opened all studies."""
    server = house.services["new"] = house.service(house.url)
    server.begin()
    for study in house.day.own.keys() | {"hill"}:
        judged.exports(server.port, study)
    watched.metrics(server.port)
    found = watched.sampled(server, house.day).memory
    server.end()
    return found


def judge(house, crowd, watch, copies, counted, *, quick):
    """Yields rows of all promises: what, what was found, what is wrong."""
    for thread in (*crowd, watch):
        thread.join(120)
    for worker in house.workers:
        worker.end()
    errors = [f"{caller.label}: {caller.error!r}" for caller in crowd if caller.error is not None]
    retries = sum(caller.http.retries for caller in crowd)
    yield "each caller is answered", f"{len(crowd)} callers, {retries} retries until there was an answer", errors
    yield from promises.of_records(house)
    yield "counters of processes, last quarter", *counted
    yield "copies are of one moment", f"{len(copies)} copies by pg_dump", list(same_copies(house, copies))
    yield from promises.of_checks(house)
    yield "health, events and workers as they should be", f"health asked {watch.asked} times", house.day.wrong
    yield from promises.of_processes(watch, fresh_memory(house), judge=not quick)


@bench.command(__doc__)
def main(given):
    minutes = 1.0 if given.quick else given.minutes
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, House(Day(minutes), Path(folder)) as house:
        day, copies = house.day, {}
        crowd = traffic.crowd(day, house.ports)
        day.begin()
        for caller in crowd:
            caller.start()
        house.begin_work(traffic.HILL)
        watch = watched.Watch(house, 1.0 if minutes < 5 else 5.0)
        watch.start()
        played(house, crowd, copies, quick=given.quick)
        counted = calm(house, crowd)
        hours = (day.now() - day.began) / 3600
        rows = list(judge(house, crowd, watch, copies, counted, quick=given.quick))
        traces = house.log.read_text().count("Traceback") if house.log.exists() else 0
    head = ("event", "at", "seconds")
    bench.table(f"{hours:.1f} hours by a clock {SPEED:.0f} times as fast", head,
                [(what, f"{at:.2f}", f"{took:.1f}") for what, at, took in day.disturbances])  # fmt: skip
    bench.table("Promises", ("promise", "found", "kept"),
                [(what, said, "yes" if not wrong else f"NO, {len(wrong)}") for what, said, wrong in rows])  # fmt: skip
    broken = [each for *_, wrong in rows for each in wrong]
    for each in broken[:50]:
        print(f"WRONG: {each}")
    print(f"{traces} tracebacks in the log of the services, {len(broken)} wrong in all")
    sys.exit(bool(broken))
