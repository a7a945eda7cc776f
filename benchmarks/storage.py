"""What keeping a record costs: an ask and a tell against the disk's own commits, Optuna's RDB, a server, and reopening.

    python benchmarks/storage.py --count 300 --long 20000 --repeats 5 [--folder FOLDER] [--floor]

The first line of all is a ratio: the processor time of an ask and a tell of one process over that of the same two
transactions by the standard library's sqlite3 (the same tables, rows, commits and settings), in blocks that take turns
with a study in memory. `--floor` ends there.

100 arms, `gp_ucb`. The disk decides most of it, so the first row of the table says what a commit costs there: one row,
inserted by the standard library's sqlite3 into a file of its own; `--folder` names another disk. Optuna (extra
`optuna`) records random trials of one number, with one study object, in a SQLite file. The server is a real PostgreSQL
from a wheel (extra `test`). Clients are processes; all of them work on one study. Processor times are those of the
client. `--long` is the number of trials of a long study.
"""

import itertools
import multiprocessing
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import bench
import numpy as np
from tests.postgres import Server

import nilregret as nr

ARMS = nr.gp_ucb(nr.Arms.grid(0, 1, 100), nr.SquaredExponential(0.2), noise=0.1)
BATCH = 100
BLOCK = 20  # Pairs of a turn.


def reward(trial):
    return float(np.sin(7 * trial.point[0]))


class Clock:
    """Milliseconds of processor and of wall a piece."""

    def __init__(self):
        self.cpu, self.wall = time.process_time(), time.perf_counter()

    def each(self, count):
        return 1e3 * (time.process_time() - self.cpu) / count, 1e3 * (time.perf_counter() - self.wall) / count


def commit(path, count, mode="WAL"):
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA journal_mode = {mode}")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE rows (number INTEGER PRIMARY KEY, text TEXT)")
    clock = Clock()
    for number in range(count):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO rows VALUES (?, ?)", (number, "x" * 200))
        connection.execute("COMMIT")
    found = clock.each(count)
    connection.close()
    return found


def plain(path):
    """Returns a function that does the transactions of so many asks and tells by sqlite3, on tables of a study."""
    with nr.Study(ARMS, storage=f"sqlite:///{path}") as study:
        study.tell(study.ask(), 0.5)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA wal_autocheckpoint = 100")
    cursor = connection.execute("SELECT * FROM trials")
    names, told = [column[0] for column in cursor.description], cursor.fetchone()
    insert = f"INSERT INTO trials VALUES ({', '.join('?' * len(names))})"
    update = (
        "UPDATE trials SET state = 'observed', reward = ?, told_order = ?, told_at = ?, last_order = ? "
        "WHERE study = 1 AND number = ?"
    )
    numbers = itertools.count(1)

    def transaction(statement, values, *counted):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("SELECT seed, created_at, stamp FROM studies WHERE id = 1").fetchall()
        connection.execute(statement, values)
        connection.execute(
            "UPDATE studies SET events = ?, stamp = ?, trials = ?, observed = ?, best = ?, last_at = ? WHERE id = 1",
            counted,
        )
        connection.execute("COMMIT")

    def pairs(count):
        for _ in range(count):
            number, now = next(numbers), time.time()
            order, stamp = 2 * number + 1, os.urandom(8).hex()
            row = dict(zip(names, told, strict=True)) | {"number": number, "state": "pending", "asked_at": now}
            row |= {"asked_order": order, "last_order": order, "reward": None, "told_order": None, "told_at": None}
            transaction(insert, tuple(row.values()), order, stamp, number + 1, number, 0.5, now)
            now, order, stamp = time.time(), order + 1, os.urandom(8).hex()
            values = 0.5, order, now, order, number
            transaction(update, values, order, stamp, number + 1, number + 1, 0.5, now)

    return pairs


def over_the_floor(folder, options):
    """Milliseconds of a pair, user and system, by sqlite3, by a study in a file, and by one in memory, in turns."""
    stored, light = nr.Study(ARMS, storage=f"sqlite:///{folder}/turns.db"), nr.Study(ARMS)
    by_hand = plain(f"{folder}/plain.db")
    ways = [by_hand, lambda count: one_by_one(stored, count), lambda count: one_by_one(light, count)]
    for way in ways:
        way(BLOCK)
    found = np.array([[spent(way, BLOCK) for way in ways] for _ in range(max(options.count // BLOCK, 3))])
    stored.close()
    total = found.sum(axis=2)
    return np.median(found, axis=0), float(np.median(total[:, 1] / total[:, 0]))


def spent(way, count):
    before = resource.getrusage(resource.RUSAGE_SELF)
    way(count)
    after = resource.getrusage(resource.RUSAGE_SELF)
    return 1e3 * (after.ru_utime - before.ru_utime) / count, 1e3 * (after.ru_stime - before.ru_stime) / count


def one_by_one(study, count):
    clock = Clock()
    for _ in range(count):
        trial = study.ask()
        study.tell(trial, reward(trial))
    return clock.each(count)


def batched(study, count):
    clock = Clock()
    for _ in range(max(count // BATCH, 1)):
        study.tell_many([(trial, reward(trial)) for trial in study.ask(count=BATCH)])
    return clock.each(max(count // BATCH, 1) * BATCH)


def clients(url, count, each):
    """Ask and tell pairs a second of several processes on one study, all of them at work."""
    context = multiprocessing.get_context("spawn")
    go = context.Barrier(count + 1)
    workers = [context.Process(target=client, args=(url, each, go)) for _ in range(count)]
    for worker in workers:
        worker.start()
    go.wait()
    start = time.perf_counter()
    go.wait()
    seconds = time.perf_counter() - start
    for worker in workers:
        worker.join()
        if worker.exitcode:
            raise SystemExit(f"a client ended with {worker.exitcode}")
    return count * each / seconds


def client(url, count, go):
    study = nr.Study.open(storage=url)
    go.wait()
    one_by_one(study, count)
    go.wait()


def optuna_pairs(url, count):
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(storage=url, sampler=optuna.samplers.RandomSampler(seed=0))
    clock = Clock()
    for _ in range(count):
        trial = study.ask()
        study.tell(trial, trial.suggest_float("x", 0.0, 1.0))
    return clock.each(count)


def on_files(folder, options):
    rows, count = [], options.count
    cpu, commits = commit(Path(folder) / "commits.db", count)
    rows.append(["one commit of the disk (WAL, FULL)", cpu, commits, 1.0, 1e3 / commits])
    study = nr.Study(ARMS, storage=f"sqlite:///{folder}/a.db")
    one_by_one(study, min(count, 20))
    cpu, wall = one_by_one(study, count)
    rows.append(["ask + tell, SQLite", cpu, wall, wall / commits, 1e3 / wall])
    many = batched(study, 10 * count)
    rows.append([f"ask + tell, SQLite, {BATCH} at once", *many, many[1] / commits, 1e3 / many[1]])
    study.close()
    other = optuna_pairs(f"sqlite:///{folder}/optuna.db", max(count // 4, 5))
    rows.append(["ask + suggest + tell, Optuna, SQLite", *other, other[1] / commits, 1e3 / other[1]])
    return rows, commits, wall, other[1]


def on_a_server(options, commits):
    rows, count = [], options.count
    with Server() as server:
        with nr.Study(ARMS, storage=server.url()) as study:
            one_by_one(study, min(count, 20))
            pair = one_by_one(study, count)
            rows.append(["ask + tell, PostgreSQL", *pair, pair[1] / commits, 1e3 / pair[1]])
            many = batched(study, 10 * count)
            rows.append([f"ask + tell, PostgreSQL, {BATCH} at once", *many, many[1] / commits, 1e3 / many[1]])
        nr.Study(ARMS, storage=(url := server.url())).close()
        rate = clients(url, 4, count)
        rows.append(["ask + tell, PostgreSQL, 4 clients", None, 1e3 / rate, 1e3 / rate / commits, rate])
    return rows


def filled(url, count):
    """A study of so many trials, in a few transactions."""
    study, rng = bench.quiet(ARMS, storage=url, name="study"), np.random.default_rng(0)
    while len(study.trials) < count:
        asked = study.ask(count=min(1000, count - len(study.trials)))
        study.tell_many([(trial, reward(trial) + 0.1 * rng.normal()) for trial in asked])
    return study


def growth(folder, options):
    """Ask + tell with a record that is short, and one that is long, in turns."""
    studies = [filled(f"sqlite:///{folder}/{name}.db", n) for name, n in (("short", 100), ("long", options.long))]
    times = [min(one_by_one(study, 20)[0] for _ in range(options.repeats)) for study in studies]
    for study in studies:
        study.close()
    return times


def opening(url):
    """Seconds of processor and wall, in a fresh process, imports apart."""
    script = (
        "import sys, time, nilregret as nr, sqlalchemy, nilregret.storage\n"
        "c, w = time.process_time(), time.perf_counter()\n"
        "study = nr.Study.open(storage=sys.argv[1])\n"
        "print(time.process_time() - c, time.perf_counter() - w)"
    )
    found = subprocess.run([sys.executable, "-c", script, url], capture_output=True, text=True, check=True).stdout
    return tuple(map(float, found.split()))


@bench.command(__doc__)
def main(options):
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        costs, ratio = over_the_floor(folder, options)
        print(f"ask + tell, SQLite: {ratio:.2f} times the processor time of the same transactions by sqlite3")
        for name, (user, system) in zip(("sqlite3", "study", "study in memory"), costs, strict=True):
            print(f"    {name}: {user:.3f} ms user, {system:.3f} ms system")
        if options.floor:
            return
        rows, commits, pair, theirs = on_files(folder, options)
        rows += on_a_server(options, commits)
        bench.table("", ["", "CPU ms", "wall ms", "commits", "a second"], rows, floatfmt=".3g")
        print(f"SQLite: an ask and a tell in {pair / commits:.2f} commits;", end=" ")
        print(f"{theirs / pair:.1f} times Optuna's throughput")
        short, long = growth(folder, options)
        print(f"ask + tell, CPU: {short:.3f} ms with 100 trials, {long:.3f} ms with {options.long}: {long / short:.2f}")
        cpu, wall = opening(f"sqlite:///{folder}/long.db")
        print(f"opening {options.long} trials on 100 arms: {cpu:.2f} s CPU, {wall:.2f} s wall")
