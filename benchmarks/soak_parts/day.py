"""A day of traffic: its clock, its callers, what is under way, and what was promised to the callers."""

import random
import threading
import time
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field

from .clock import hastened

SQLITE = "shop of format 1"  # the one study that is not on PostgreSQL
SPEED = 24.0  # simulated seconds in a real one: 8 hours in 20 minutes


@dataclass
class Ledger:
    """What a service has acknowledged to the callers of one study, by number of the decision."""

    asked: dict = field(default_factory=dict)  # replies
    told: dict = field(default_factory=dict)  # answers: reward, and constraints if there are any
    late: set = field(default_factory=set)  # answers that the service called late
    dropped: set = field(default_factory=set)  # late answers from which the study does not learn
    failed: dict = field(default_factory=dict)  # reasons
    abandoned: set = field(default_factory=set)
    stopped: set = field(default_factory=set)
    curves: dict = field(default_factory=lambda: defaultdict(list))  # reports: (step, value)
    repeated: int = 0  # requests that were sent twice on purpose
    inherited: int = 0  # first decisions, of which there was a record before the callers came
    wrong: list = field(default_factory=list)

    @property
    def answered(self):
        """Decisions of which a caller has said what came of them."""
        return self.told.keys() | self.failed.keys() | self.stopped


class Day:
    """The state that callers, events and watchers share.

    Args:
        minutes: real ones.
    """

    def __init__(self, minutes):
        self.seconds, self.began = 60.0 * minutes, time.time()
        self.now, self._start = hastened(self.began, SPEED), time.monotonic()
        self.ledgers, self.heard, self.wrong, self.rng = defaultdict(Ledger), [], [], random.Random(0)
        self.stop, self.failing, self._open = threading.Event(), threading.Event(), threading.Event()
        self._open.set()
        self._parked, self._lock = set(), threading.Lock()
        self.disturbances, self.disturbed = [], 0  # what was done and when; and whether something is being done

    def begin(self):
        """Begins the day, once the services are there."""
        self._start = time.monotonic()

    @property
    def at(self):
        """The share of the day that is over."""
        return (time.monotonic() - self._start) / self.seconds

    @property
    def own(self):
        """The ledgers until now of the studies on PostgreSQL, by study."""
        return {study: ledger for study, ledger in list(self.ledgers.items()) if study != SQLITE}

    def wait_until(self, share):
        """Waits until so much of the day is over."""
        time.sleep(max(0.0, (share - self.at) * self.seconds))

    def pass_gate(self, caller):
        """Blocks a caller while it shall be quiet."""
        if not self._open.is_set():
            with self._lock:
                self._parked.add(caller)
            self._open.wait()
            with self._lock:
                self._parked.discard(caller)

    @contextmanager
    def quiet(self, crowd):
        """Keeps callers between two rounds during the block."""
        self._open.clear()
        while any(caller.is_alive() and caller not in self._parked for caller in crowd):
            time.sleep(0.01)
        try:
            yield
        finally:
            self._open.set()
            while any(caller in self._parked for caller in crowd):
                time.sleep(0.001)

    @contextmanager
    def disturbance(self, what):
        """Marks a time in which `/readyz` may say no."""
        began = self.at
        self.disturbed += 1
        try:
            yield
        finally:
            self.disturbed -= 1
            self.disturbances.append((what, began, (self.at - began) * self.seconds))
