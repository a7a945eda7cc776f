"""What serves a day of traffic: two services on PostgreSQL, workers beside them, and a service on an SQLite file."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from benchmarks.service_parts.servers import Persistent, Server
from tests import postgres

from .day import SPEED

CLOCK = str(Path(__file__).with_name("clock.py"))
DATABASE = "soak"
LEASE = 600  # simulated seconds, more than an evaluation lasts
ENDS = {
    0: "enough",
    4: "no storage",
    130: "SIGTERM",
    -signal.SIGTERM: "SIGTERM",
    -signal.SIGKILL: "SIGKILL",
}  # of a worker
HILLS = """
import json, time

def score(x, y):
    time.sleep(1.0)
    value = 1.0 - (x - 0.3) ** 2 - (y - 0.7) ** 2
    with open("evaluated", "a") as file:
        file.write(json.dumps([x, y, value]) + "\\n")
    return value
"""


class House:
    """`with House(day, folder) as house:` the processes, of which those that work begin again when they have ended."""

    def __init__(self, day, folder):
        self.day, self.folder, self.log = day, folder, folder / "log"
        self.postgres = postgres.Server()
        self.postgres.execute(f"CREATE DATABASE {DATABASE}")
        self.url = self.url_of(DATABASE)
        self.services = {name: self.service(self.url) for name in ("one", "two")}
        self.workers = [Worker(self, number) for number in range(2)]

    def url_of(self, database):
        return f"postgresql://postgres@/{database}?host={self.postgres.folder}"

    @property
    def ports(self):
        return [self.services[name].port for name in ("one", "two")]

    def hurried(self, *arguments):
        """Returns the arguments of Python for a command by the clock of the day."""
        return CLOCK, str(self.day.began), str(SPEED), str(self.log), *arguments

    def service(self, url):
        return Server(*self.hurried("serve", "--storage", url, "--port", None))

    def called(self, *arguments):
        """Returns what a command of `nilregret` prints, by the clock of the day."""
        done = subprocess.run(
            [sys.executable, *self.hurried(*arguments)], capture_output=True, text=True, check=False, cwd=self.folder
        )
        if done.returncode:
            self.day.wrong.append(f"nilregret {' '.join(arguments)} ended with {done.returncode}")
        return done.stdout

    def program(self, name, *arguments):
        """Runs a program of PostgreSQL on this server."""
        subprocess.run(
            [self.postgres.binaries / name, "-h", str(self.postgres.folder), "-U", "postgres", *arguments],
            check=True, capture_output=True, cwd=self.postgres.folder, **self.postgres.owner,
        )  # fmt: skip

    def begin_work(self, study):
        """Makes the study of the workers, and starts them."""
        http = Persistent(self.ports, self.day.rng)
        http.until("PUT", "/v1/studies/hill", study, (200, 201))
        http.close()
        (self.folder / "hills.py").write_text(HILLS)
        for worker in self.workers:
            worker.start()

    def __enter__(self):
        for server in self.services.values():
            server.begin()
        return self

    def __exit__(self, *_):
        self.day.stop.set()
        for worker in self.workers:
            worker.end()
        for server in self.services.values():
            if server.process.poll() is None:
                server.kill()
        self.postgres.__exit__()


class Worker(threading.Thread):
    """A process of `nilregret work`, which begins again when it has ended."""

    def __init__(self, house, number):
        super().__init__(daemon=True)
        self._house, self.output, self.ends = house, house.folder / f"worker{number}", []
        self._lock, self.held, self.process = threading.Lock(), False, None

    def run(self):
        while not self._house.day.stop.is_set():
            with self._lock:
                if not self.held and (self.process is None or self.process.poll() is not None):
                    self._ended()
                    self._begin()
            self._house.day.stop.wait(0.5)

    def _begin(self):
        command = ("work", self._house.url, "hill", "hills:score", "--trials", "1000000", "--lease", str(LEASE))
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, *self._house.hurried(*command)], stdout=output, cwd=self._house.folder,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )  # fmt: skip

    def _ended(self):
        if self.process is not None:
            code = self.process.returncode
            self.ends.append(ENDS.get(code, code))
            if code not in ENDS:
                self._house.day.wrong.append(f"a worker ended with {code}")

    def signal(self, number):
        """Ends the process, and waits for its end."""
        with self._lock:
            if self.process is not None and self.process.poll() is None:
                self.process.send_signal(number)
                self.process.wait(60)

    def end(self):
        """Ends the process for good."""
        self.held = True
        self.signal(signal.SIGTERM)
        if self.is_alive():
            self.join(60)
