"""What keeping a record costs: an ask and a tell against the disk's own commits, Optuna's RDB, servers, and reopening.

The first line of all is a ratio: the processor time of an ask and a tell of one process over that of the same two
transactions by the standard library's sqlite3 (the same tables, rows, commits and settings), in blocks that take turns
with a study in memory.

    python benchmarks/storage.py

100 arms, `gp_ucb`. The disk decides most of it, so the first row of the table says what a commit costs there: one row,
inserted by the standard library's sqlite3 into a file of its own. Optuna (extra `optuna`) records random trials of one
number, with one study object, in a SQLite file and on the same server. The server is a real PostgreSQL from a wheel
(extra `test`). Clients are processes; all of them work on one study. Processor times are those of the client.
"""

import argparse
import itertools
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
from tabulate import tabulate

import nilregret as nr

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.postgres import Server

ARMS = nr.gp_ucb(nr.Arms.grid(0, 1, 100), nr.SquaredExponential(0.2), noise=0.1)
BOX = nr.igp_ucb(nr.Box([0, 0], [1, 1]), nr.Matern(2.5, 0.2), noise=0.1, norm_bound=1.0)
BATCH = 100
BLOCK = 20  # Pairs of a turn.
CROWD = 8  # processes on one file


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


def filled(url, policy, count, name="study"):
    """A study of so many trials, in a few transactions."""
    study, rng = nr.Study(policy, storage=url, name=name), np.random.default_rng(0)
    study.quiet = True
    while len(study.trials) < count:
        if policy is ARMS:
            asked = study.ask(count=min(1000, count - len(study.trials)))
            study.tell_many([(trial, reward(trial) + 0.1 * rng.normal()) for trial in asked])
        else:
            point = rng.random(2)
            study.add(point, float(np.sin(7 * point).sum() + 0.1 * rng.normal()))
    return study


def clients(url, count, each):
    """Ask and tell pairs a second of several processes on one study, all of them at work."""
    command = [sys.executable, __file__, "--client", url, str(each)]
    workers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(count)
    ]
    for worker in workers:
        worker.stdout.readline()
    start = time.perf_counter()
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    for worker in workers:
        worker.stdout.readline()
    seconds = time.perf_counter() - start
    for worker in workers:
        worker.communicate()
        if worker.returncode:
            raise SystemExit(f"a client ended with {worker.returncode}")
    return count * each / seconds


def crowd(folder, options):
    """Eight processes on one SQLite study: pairs a second; an error of one, or a number given twice, ends it."""
    url, each = f"sqlite:///{folder}/crowd.db", max(options.crowd // CROWD, 1)
    nr.Study(ARMS, storage=url).close()
    rate = clients(url, CROWD, each)
    with nr.Study.open(storage=url) as study:
        states = [(trial.number, trial.state) for trial in study.trials]
    if states != [(number, "observed") for number in range(CROWD * each)]:
        raise SystemExit(f"{len(states)} trials are there, of {CROWD * each}, or not all are answered")
    return rate, len(states)


def client(url, count):
    study = nr.Study.open(storage=url)
    print("ready", flush=True)
    sys.stdin.readline()
    one_by_one(study, count)
    print("done", flush=True)


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
        url = server.url()
        with nr.Study(ARMS, storage=url) as study:
            one_by_one(study, min(count, 20))
            pair = one_by_one(study, count)
            rows.append(["ask + tell, PostgreSQL", *pair, pair[1] / commits, 1e3 / pair[1]])
            many = batched(study, 10 * count)
            rows.append([f"ask + tell, PostgreSQL, {BATCH} at once", *many, many[1] / commits, 1e3 / many[1]])
        for processes in (4,):
            nr.Study(ARMS, storage=(url := server.url())).close()
            rate = clients(url, processes, count)
            rows.append([f"ask + tell, PostgreSQL, {processes} clients", None, 1e3 / rate, 1e3 / rate / commits, rate])
        other = optuna_pairs(server.url().replace("postgresql:", "postgresql+psycopg:"), max(count // 4, 5))
        rows.append(["ask + suggest + tell, Optuna, PostgreSQL", *other, other[1] / commits, 1e3 / other[1]])
    return rows


def growth(folder, options):
    """Ask + tell with a record that is short, and one that is long, in turns."""
    short = filled(f"sqlite:///{folder}/short.db", ARMS, 100)
    long = filled(f"sqlite:///{folder}/long.db", ARMS, options.long)
    times = [[min(one_by_one(study, 20)[0] for _ in range(options.repeats)) for study in (short, long)]]
    for study in (short, long):
        study.close()
    return times[0]


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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300, help="pairs of ask and tell that are measured")
    parser.add_argument("--long", type=int, default=20_000, help="trials on arms of a long study")
    parser.add_argument("--box", type=int, default=10_000, help="points on a box of a long study")
    parser.add_argument("--crowd", type=int, default=10_000, help="trials of eight processes on one SQLite study")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folder", help="for the files, such as one of another disk")
    parser.add_argument("--floor", action="store_true", help="only the first lines")
    parser.add_argument("--client", nargs=2, metavar=("URL", "COUNT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        client(options.client[0], int(options.client[1]))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        costs, ratio = over_the_floor(folder, options)
        print(f"ask + tell, SQLite: {ratio:.2f} times the processor time of the same transactions by sqlite3")
        for name, (user, system) in zip(("sqlite3", "study", "study in memory"), costs, strict=True):
            print(f"    {name}: {user:.3f} ms user, {system:.3f} ms system")
        if options.floor:
            return
        rows, commits, pair, theirs = on_files(folder, options)
        rows += on_a_server(options, commits)
        print(tabulate(rows, ["", "CPU ms", "wall ms", "commits", "a second"], floatfmt=".3g"))
        print(f"\nSQLite: an ask and a tell in {pair / commits:.2f} commits;", end=" ")
        print(f"{theirs / pair:.1f} times Optuna's throughput")
        short, long = growth(folder, options)
        print(f"ask + tell, CPU: {short:.3f} ms with 100 trials, {long:.3f} ms with {options.long}: {long / short:.2f}")
        cpu, wall = opening(f"sqlite:///{folder}/long.db")
        print(f"opening {options.long} trials on 100 arms: {cpu:.2f} s CPU, {wall:.2f} s wall")
        if options.crowd:
            rate, trials = crowd(folder, options)
            print(f"{CROWD} processes on one SQLite study: {trials} trials, none lost or twice, {rate:.0f} a second")
        if options.box:
            filled(f"sqlite:///{folder}/box.db", BOX, options.box).close()
            cpu, wall = opening(f"sqlite:///{folder}/box.db")
            print(f"opening {options.box} points on a box: {cpu:.2f} s CPU, {wall:.2f} s wall")


if __name__ == "__main__":
    main()
