"""What happens to the services in the middle of work: kills, outages, copies, a move, and an upgrade."""

import copy
import json
import random
import shutil
import signal
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path

from benchmarks.deployment_parts.databases import ready
from benchmarks.service_parts.servers import Connection
from tests.format1 import service as older
from tests.format1.kinds import KINDS, Clock, gone_on, parted
from tests.format1.tables import FOLDER, restored

import nilregret as nr

from .day import SQLITE
from .house import DATABASE
from .traffic import OLDER, Caller, wait_for

DECISIONS = json.loads((FOLDER / "decisions.json").read_text())
QUICK = ("contexts", "space", "delayed")  # kinds of format 1 where there is little time


def kill(house, name):
    """A service is killed under load, and begins again."""
    with house.day.disturbance(f"SIGKILL of service {name}"):
        house.services[name].kill()
        time.sleep(random.Random(name).uniform(0.2, 1.0))
        house.services[name].begin()
        await_ready(house)


def kill_worker(house, number):
    """A worker is killed in the middle of an evaluation."""
    worker = house.workers[number]
    before = worker.output.stat().st_size if worker.output.exists() else 0
    wait_for(lambda: worker.output.exists() and worker.output.stat().st_size > before, 20.0)
    time.sleep(0.5)  # half an evaluation
    worker.signal(signal.SIGKILL)
    house.day.disturbances.append((f"SIGKILL of worker {number}", house.day.at, 0.0))


def outage(house, how, seconds):
    """PostgreSQL ends, well or as in a crash. The services say so, and that they are ready again."""
    with house.day.disturbance(f"PostgreSQL ends by {how.name}, for {seconds} s"):
        house.postgres.stop(how)
        time.sleep(seconds)
        for name, port in zip(("one", "two"), house.ports, strict=True):
            if ready(port):
                house.day.wrong.append(f"`/readyz` of service {name} says yes without a database")
        house.postgres.start()
        await_ready(house)


def await_ready(house):
    """Waits until all services say that they are ready."""
    for name, server in house.services.items():
        if not wait_for(lambda port=server.port: ready(port)):
            house.day.wrong.append(f"`/readyz` of service {name} does not say yes again")


def dumped(house, database):
    """Returns a file with a copy of all studies, as docs/operating.md makes it."""
    place = house.postgres.folder / f"{database}{time.monotonic_ns()}.sql"
    house.program("pg_dump", "--table", "nilregret_*", "-f", str(place), database)
    return place


def copied(house, copies):
    """A copy of the database in use is restored beside it. It has what was acknowledged before it was begun."""
    before = {study: len(ledger.asked) for study, ledger in house.day.own.items()}
    place, name = dumped(house, DATABASE), f"copy{len(copies)}"
    house.postgres.execute(f"CREATE DATABASE {name}")
    house.program("psql", "-q", "-v", "ON_ERROR_STOP=1", "-d", name, "-f", str(place))
    sizes = {}
    for study, count in before.items():
        with nr.Study.open(storage=house.url_of(name), name=study, clock=house.day.now) as found:
            sizes[study] = len(found.trials)
        if sizes[study] < count:
            house.day.wrong.append(f"{name} has {sizes[study]} trials of {study}; {count} were acknowledged before")
    copies[name] = sizes
    house.day.disturbances.append((f"a copy by pg_dump, of {sum(sizes.values())} trials", house.day.at, 0.0))


def moved(house):
    """The services stop, the database is restored from a copy, and the services go on with it."""
    with house.day.disturbance("a move to a restored database"):
        for worker in house.workers:
            worker.held = True
            worker.signal(signal.SIGTERM)
        for server in house.services.values():
            server.end()
        place = dumped(house, DATABASE)
        house.postgres.execute(f"ALTER DATABASE {DATABASE} RENAME TO before_the_move")
        house.postgres.execute(f"CREATE DATABASE {DATABASE}")
        house.program("psql", "-q", "-v", "ON_ERROR_STOP=1", "-d", DATABASE, "-f", str(place))
        for server in house.services.values():
            server.begin()
        await_ready(house)
        for worker in house.workers:
            worker.held = False


def upgraded(house, crowd, *, quick):
    """Files of format 1 are opened and go on. One of them is served from then on, on SQLite."""
    names = QUICK if quick else KINDS
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            clock = Clock()
            clock.now += 60.0 * KINDS[name].rounds
            with nr.Study.open(storage=restored(name, folder), name=name, clock=clock) as study:
                study.quiet = True
                if parted(name, gone_on(name, study, clock), DECISIONS[name]) is not None:
                    house.day.wrong.append(f"the study {name} of format 1 does not go on as it would have")
    restored("service", house.folder)
    server = house.services["sqlite"] = house.service(f"sqlite:///{house.folder}/service.db")
    with house.day.disturbance(f"an upgrade of {len(names)} files of format 1 and of a service"):
        server.begin()
        await_ready(house)
    wanted, ledger = DECISIONS["service"], house.day.ledgers[SQLITE]
    connection = Connection(server.port, wanted["secret"])
    for at, (id_, arm) in enumerate(wanted["first"]):
        status, said = connection.send("POST", f"{older.AT}/decisions", {}, f"visit-{at}")
        (found,) = said["decisions"]
        if (status, found["id"], found["arm"]) != (201, id_, arm):
            house.day.wrong.append(f"a retry of visit {at} of format 1 got {said}")
        ledger.asked[found["number"]] = found
    connection.close()
    ledger.inherited = len(ledger.asked)
    caller = Caller("older", "shop", OLDER, house.day, [server.port], 99, wanted["secret"], ledger=SQLITE)
    crowd.append(caller)
    caller.start()
    return caller


class SqliteCopy:
    """A copy of the SQLite file in use, and the way back to it."""

    def __init__(self, house, caller):
        self._house, self._caller = house, caller
        self.now, self.file = house.folder / "service.db", house.folder / "copy.db"

    def make(self):
        """Copies the file, as docs/operating.md does, between two rounds of its caller."""
        with self._house.day.quiet([self._caller]):
            with closing(sqlite3.connect(self.now)) as here, closing(sqlite3.connect(self.file)) as there:
                here.backup(there)
            self.ledger, self.due = copy.deepcopy(self._caller.ledger), list(self._caller.due)
        self._house.day.disturbances.append(("a copy of the SQLite file", self._house.day.at, 0.0))

    def restore(self):
        """Goes back to the copy. Later decisions are unknown from then on."""
        server, caller, day = self._house.services["sqlite"], self._caller, self._house.day
        with day.quiet([caller]), day.disturbance("the SQLite file goes back to its copy"):
            server.end()
            shutil.copy(self.file, self.now)
            for more in ("-wal", "-shm"):
                Path(f"{self.now}{more}").unlink(missing_ok=True)
            server.begin()
            await_ready(self._house)
            later = caller.ledger.asked.keys() - self.ledger.asked.keys()
            connection = Connection(server.port, DECISIONS["service"]["secret"])
            for number in sorted(later)[:3]:
                path = f"{older.AT}/decisions/{caller.ledger.asked[number]['id']}/reward"
                status = connection.send("PUT", path, {"reward": 1.0})[0]
                if status != 404:
                    day.wrong.append(f"the reward of decision {number}, which is gone, is a {status}")
            connection.close()
            vars(caller.ledger).update(vars(self.ledger))
            caller.due[:] = self.due
            return len(later)
