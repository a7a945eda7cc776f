"""What the processes use over the day, how fast they answer, and what they say of themselves."""

import re
import threading
import time
import urllib.request
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from benchmarks.service_parts.servers import Connection

WARM = 0.25  # share of the life of a process that is left out: caches fill, and libraries are loaded
SAMPLE = re.compile(r"^(nilregret_\w+)\{(.*)\} (\S+)$", re.M)


@dataclass(frozen=True)
class Sample:
    """What a process used at one time. `memory` is in MB, `cpu` in seconds, `requests` those of all processes."""

    at: float
    pid: int
    memory: float
    files: int
    threads: int
    cpu: float
    requests: int


class Watch(threading.Thread):
    """Samples the services, and asks whether they are well."""

    def __init__(self, house, every):
        super().__init__(daemon=True)
        self.house, self._every, self.samples, self.health, self.asked = house, every, defaultdict(list), [], 0

    def run(self):
        day = self.house.day
        while not day.stop.wait(self._every):
            for name, server in list(self.house.services.items()):
                before = day.disturbed, len(day.disturbances)
                try:
                    self.samples[name].append(sampled(server, day))
                    well = self._well(server.port)
                except (OSError, LookupError, ValueError):  # it is being killed
                    well = False
                self.asked += 1
                calm = before == (0, len(day.disturbances)) and not day.disturbed
                if calm and not well:
                    day.wrong.append(f"service {name} is not ready at {day.at:.3f} of the day, and nothing happens")

    def _well(self, port):
        connection, began = Connection(port), time.monotonic()
        try:
            found = [connection.send("GET", path, None)[0] for path in ("/healthz", "/readyz")]
            self.health.append((self.house.day.at, (time.monotonic() - began) / 2))
            return found == [200, 200]
        finally:
            connection.close()


def sampled(server, day):
    """Returns what a process uses."""
    pid = server.process.pid
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    memory, files = int(lines["VmRSS"].split()[0]) / 1024, len(list(Path(f"/proc/{pid}/fd").iterdir()))
    return Sample(day.at, pid, memory, files, int(lines["Threads"]), server.cpu, len(day.heard))


def last_life(samples):
    """Returns the samples of the last process, without its first minutes."""
    last = [each for each in samples if each.pid == samples[-1].pid]
    return last[int(WARM * len(last)) :]


def memory_slope(samples):
    """Returns MB per 1,000 requests of all callers, and the ends of the line."""
    x, y = (np.array([getattr(each, name) for each in samples]) for name in ("requests", "memory"))
    slope, start = np.polyfit(x / 1000.0, y, 1) if len(set(x)) > 1 else (0.0, y[0])
    return slope, start + slope * x[0] / 1000.0, start + slope * x[-1] / 1000.0


def growth(samples, name):
    """Returns how much more of something there is at most in the last half than in the first half."""
    values = [getattr(each, name) for each in samples]
    half = max(1, len(values) // 2)
    return max(values[half:], default=0) - max(values[:half])


def latencies(heard, since, until):
    """Returns requests, p50 and p99 in ms of a part of the day."""
    found = np.array([row[-1] for row in heard if since <= row[0] < until])
    return (0, np.nan, np.nan) if not len(found) else (len(found), *(1000 * np.quantile(found, [0.5, 0.99])))


def cpu_per_request(samples, since, until):
    """Returns ms of processor of all services per request in a part of the day."""
    seconds = requests = 0.0
    for rows in samples.values():
        for one, other in pairwise(rows):
            if one.pid == other.pid and since <= one.at and other.at < until:
                seconds += other.cpu - one.cpu
    first = [row for rows in samples.values() for row in rows if since <= row.at < until]
    if first:
        requests = max(row.requests for row in first) - min(row.requests for row in first)
    return 1000 * seconds / requests if requests else np.nan


def got(port, path, token=None):
    """Returns the text at an address."""
    named = {"Authorization": f"Bearer {token}"} if token else {}
    with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=named)) as reply:
        return reply.read().decode()


def metrics(port, token=None):
    """Returns the metrics of studies, by name and labels other than the tenant."""
    found = {}
    for name, labels, value in SAMPLE.findall(got(port, "/metrics", token)):
        pairs = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        if "study" in pairs:
            found[name, pairs.pop("study"), *(value for key, value in sorted(pairs.items()) if key != "tenant")] = (
                float(value)
            )
    return found
