"""What comes of a database that goes away and returns, of one behind a pooler, and of copies that are made in use."""

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from benchmarks.service_parts.kills import Worker, judged
from benchmarks.service_parts.servers import Connection, Server, free_port

import nilregret as nr

POLICY = nr.gp_ucb(nr.Arms.grid(0, 1, 100), nr.SquaredExponential(0.2), noise=0.1)


@contextmanager
def crowd(url, clients, *, processes):
    """Clients that ask and tell, each request again until it is answered; at the end, what of it is not on record."""
    nr.Study(POLICY, storage=url, name="shop").close()
    server = Server("-m", "nilregret", "serve", "--storage", url, "--port", None, "--workers", str(processes))
    server.begin()  # it listens before its processes are there
    while not ready(server.port):
        time.sleep(0.05)
    stop = threading.Event()
    workers = [Worker(f"w{i}", [server.port], stop, i) for i in range(clients)]
    report = {}
    try:
        for worker in workers:
            worker.start()
        yield server, report
    finally:
        stop.set()
        for worker in workers:
            worker.join(120)
        server.end()
    report["facts"], report["wrong"] = judged(url, workers)


def restarts(postgres, *, count, seconds, clients):
    """The server of the database ends, by turns well and as in a crash, and begins again.

    Returns facts, the longest time until `/readyz` said yes again, and what is wrong.
    """
    slowest, wrong = 0.0, []
    with crowd(postgres.url(), clients, processes=2) as (server, report):
        for turn in range(count):
            time.sleep(seconds)
            postgres.stop(signal.SIGQUIT if turn % 2 else signal.SIGINT)
            time.sleep(seconds)
            if ready(server.port):
                wrong.append("`/readyz` says yes without a database")
            postgres.start()
            began = time.monotonic()
            while not ready(server.port) and time.monotonic() < began + 60:
                time.sleep(0.02)
            slowest = max(slowest, time.monotonic() - began)
        time.sleep(seconds)
    return report["facts"], slowest, wrong + report["wrong"]


def ready(port):
    """Whether `/readyz` says yes; `/healthz` must in any case."""
    connection = Connection(port)
    try:
        if connection.send("GET", "/healthz", None)[0] != 200:
            raise RuntimeError("`/healthz` says no")
        return connection.send("GET", "/readyz", None)[0] == 200
    except OSError:
        return False
    finally:
        connection.close()


def pooled(postgres, folder, *, mode, connections, seconds, clients):
    """Two processes behind PgBouncer, which keeps so many connections for all of them; facts, and what is wrong."""
    name = f"by_{mode}"
    postgres.execute(f"CREATE DATABASE {name}")
    port, owner = free_port(), "nobody" if os.geteuid() == 0 else None
    (folder / "users").write_text('"postgres" ""\n')
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\n{name} = host={postgres.folder}\n[pgbouncer]\n"
        f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = trust\n"
        f"auth_file = {folder}/users\npool_mode = {mode}\ndefault_pool_size = {connections}\nmax_client_conn = 200\n"
    )
    if owner:
        shutil.chown(folder, owner)
    command = [shutil.which("pgbouncer"), *(["-u", owner] if owner else []), "-q", str(folder / "pgbouncer.ini")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as pooler:
        try:
            time.sleep(0.5)
            with crowd(f"postgresql://postgres@127.0.0.1:{port}/{name}", clients, processes=2) as (_, report):
                time.sleep(seconds)
        finally:
            pooler.terminate()
    return report["facts"], report["wrong"]


def copies(folder, *, count, seconds, clients):
    """Copies of an SQLite file, as docs/operating.md makes them, while clients decide.

    Returns facts, the trials of each copy, and what is wrong: a copy is of one moment, and opens.
    """
    now, sizes, wrong = folder / "studies.db", [], []
    with crowd(f"sqlite:///{now}", clients, processes=1) as (_, report):
        for number in range(count):
            time.sleep(seconds)
            copy = folder / f"copy{number}.db"
            with nr.Study.open(storage=f"sqlite:///{now}", name="shop") as study:
                before = len(study.trials)
            with closing(sqlite3.connect(now)) as here, closing(sqlite3.connect(copy)) as there:
                here.backup(there)
            with nr.Study.open(storage=f"sqlite:///{copy}", name="shop") as study:  # checks the whole record
                sizes.append(len(study.trials))
            if sizes[-1] < before:
                wrong.append(f"copy {number} has {sizes[-1]} trials; {before} were on record before it was begun")
    with nr.Study.open(storage=f"sqlite:///{now}", name="shop") as study:
        trials = list(study.trials)
    for number, size in enumerate(sizes):
        with nr.Study.open(storage=f"sqlite:///{folder}/copy{number}.db", name="shop") as study:
            same = [trial.point.tolist() for trial in study.trials] == [each.point.tolist() for each in trials[:size]]
        if not same:
            wrong.append(f"copy {number} is not what was on record")
    return report["facts"], sizes, wrong + report["wrong"]


def unit(page, folder):
    """What systemd says of the unit on the page: sentences, none of which there should be."""
    (text,) = re.findall(r"^```ini\n(.*?)^```$", page, re.M | re.S)
    program = re.search(r"ExecStart=(\S+)", text)[1]
    place = Path(folder) / "nilregret.service"
    place.write_text(text.replace(program, shutil.which("true")))
    said = subprocess.run(["systemd-analyze", "verify", place], capture_output=True, text=True, check=False)
    exposure = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", place], capture_output=True, text=True, check=False
    )
    found = re.search(r"level for \S+: ([0-9.]+)", exposure.stdout)
    with suppress(OSError):
        place.unlink()
    return (found[1] if found else "not known to this version"), [line for line in said.stderr.splitlines() if line]
