"""Callers of a service: shops, ovens, trainings, budgets and models, whose answers come late, twice or never."""

import heapq
import math
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.service_parts.servers import Persistent

TWICE = 0.1  # of requests are sent again although they were answered
PARTS = 8  # of a day, in each of which a kind that begins anew has a study of its own
NUMBER = {"type": "float", "low": 0, "high": 1}
MIXED = {"x": NUMBER, "kind": {"type": "choice", "options": ["a", "b"]}}


@dataclass(frozen=True)
class Kind:
    """A kind of studies.

    Attributes:
        body: of the request that makes a study.
        play: one round of a caller.
        pause: mean seconds between two rounds.
        anew: whether each part of the day has a study of its own, as one tunes something else.
        callers: of each study.
    """

    body: dict | None
    play: Callable
    pause: float
    anew: bool = False
    callers: int = 1


class Caller(threading.Thread):
    """Plays rounds until the day is over, and enters each acknowledged request into a ledger."""

    def __init__(self, label, name, kind, day, ports, seed, token=None, *, ledger=None):
        super().__init__(daemon=True)
        self.label, self._name, self.kind, self.day, self.rng = label, name, kind, day, random.Random(seed)
        self.http = Persistent(ports, self.rng, token, heard=self._heard)
        self.study, self.turn, self.due, self.error, self._ledger = None, 0, [], None, ledger

    def run(self):
        try:
            while not self.day.stop.is_set():
                self.day.pass_gate(self)
                self._begin()
                self.kind.play(self)
                self.turn += 1
                self.day.stop.wait(min(self.rng.expovariate(1.0 / self.kind.pause), 3 * self.kind.pause))
        except BaseException as error:  # a thread's error must reach whoever waits for it
            self.error = error
        finally:
            self.http.close()

    def _heard(self, operation, seconds):
        self.day.heard.append((self.day.at, self._name, "steps" if operation.isdigit() else operation, seconds))

    def _begin(self):
        """Makes the study of this part of the day, which has a ledger from its acknowledgement on."""
        part = min(int(PARTS * self.day.at), PARTS - 1)
        study = f"{self._name}-{part}" if self.kind.anew else self._name
        if study != self.study:
            if self.kind.body is not None:
                self.http.until("PUT", f"/v1/studies/{study}", self.kind.body, (200, 201))
            self.study, self.ledger, self.due = study, self.day.ledgers[self._ledger or study], []

    def send(self, method, where, body, wanted, key=None):
        """Returns the reply, which a second request must get as well."""
        path = f"/v1/studies/{self.study}/decisions{where}"
        said = self.http.until(method, path, body, wanted, key)
        if self.rng.random() < TWICE:
            again = self.http.until(method, path, body, wanted, key)
            self.ledger.repeated += 1
            if again != said:
                self.ledger.wrong.append(f"{method} {path} {key}: {said}, and again {again}")
        return said

    def ask(self, **body):
        """Returns a decision."""
        (decision,) = self.send("POST", "", body, 201, f"{self.label}-{self.turn}")["decisions"]
        if decision["number"] in self.ledger.asked:
            self.ledger.wrong.append(f"decision {decision['number']} was given twice")
        self.ledger.asked[decision["number"]] = decision
        return decision

    def tell(self, decision, **answer):
        """Tells an answer."""
        number, name = decision["number"], decision.get("event", decision["id"])
        said = self.send("PUT", f"/{name}/reward", answer, 200)
        if said["number"] != number:
            self.ledger.wrong.append(f"the answer to {number} is one to {said['number']}")
        self.ledger.told[number] = answer
        if said["late"]:
            self.ledger.late.add(number)
        if not said["counted"]:
            self.ledger.dropped.add(number)

    def later(self, decision, mean, **answer):
        """Tells an answer after a random time, simulated seconds."""
        heapq.heappush(self.due, (self.day.now() + self.rng.expovariate(1.0 / mean), self.turn, decision, answer))

    def tell_due(self):
        """Tells the answers whose time has come."""
        while self.due and self.due[0][0] <= self.day.now():
            *_, decision, answer = heapq.heappop(self.due)
            self.tell(decision, **answer)


def visit(caller):
    """A visitor gets one of six banners. A click comes later, after its deadline or never."""
    caller.tell_due()
    hour = round(caller.day.now() % 86_400 / 3600, 2)
    own = {"event": f"{caller.label}-{caller.turn}"} if caller.turn % 3 == 0 else {}
    decision = caller.ask(context={"hour": hour}, **own)
    if caller.rng.random() < 0.1 + 0.3 * math.exp(-((hour / 24 - decision["arm"] / 5) ** 2) * 8):
        caller.later(decision, 300.0, reward=1.0)


def bake(caller):
    """A recipe is tried. Some fail, and some are given up."""
    decision, luck = caller.ask(), caller.rng.random()
    number, where = decision["number"], f"/{decision['id']}"
    if caller.day.failing.is_set() or luck < 0.05:
        caller.send("POST", f"{where}/failure", {"reason": "burned"}, 200)
        caller.ledger.failed[number] = "burned"
    elif luck < 0.08:
        caller.send("POST", f"{where}/abandonment", {"reason": "power cut"}, 200)
        caller.ledger.abandoned.add(number)
    else:
        caller.tell(decision, reward=_loss(decision) + caller.rng.gauss(0.0, 0.05))


def _loss(decision):
    found = decision["parameters"]
    return (found["x"] - 0.3) ** 2 + 0.2 * (found["kind"] == "b")


def train(caller):
    """A training reports six values, unless it is stopped."""
    decision = caller.ask()
    number, where, loss = decision["number"], f"/{decision['id']}", _loss(decision)
    for step in range(1, 7):
        value = loss + 0.5**step + caller.rng.gauss(0.0, 0.02)
        said = caller.send("PUT", f"{where}/steps/{step}", {"value": value}, 200)
        caller.ledger.curves[number].append((step, value))
        if not said["go_on"]:
            caller.send("POST", f"{where}/stop", {}, 200)
            caller.ledger.stopped.add(number)
            return
    caller.tell(decision, reward=value)


def spend(caller):
    """A price and a discount. The discount less what may be given on average is told with the gain, late or never."""
    caller.tell_due()
    decision = caller.ask()
    found = decision["parameters"]
    gain = 1.0 - (found["price"] - 5 - found["discount"]) ** 2 / 16 + caller.rng.gauss(0.0, 0.2)
    if caller.rng.random() < 0.9:
        caller.later(decision, 200.0, reward=gain, constraints=[found["discount"] - 1.0 + caller.rng.gauss(0.0, 0.1)])


def model(caller):
    """A model has a loss and a recall."""
    decision = caller.ask()
    rate, depth = (decision["parameters"][name] for name in ("rate", "depth"))
    loss = (math.log10(rate) + 2.5) ** 2 + 0.1 * depth + caller.rng.gauss(0.0, 0.05)
    caller.tell(decision, reward=[loss, depth / 8 - rate])


def click(caller):
    """A visitor of the older shop gets one of four arms."""
    caller.tell_due()
    decision = caller.ask()
    if caller.rng.random() < 0.2 + 0.1 * decision["arm"]:
        caller.later(decision, 60.0, reward=1.0)


GP = {"algorithm": "gp_ucb", "kernel": {"type": "for_parameters"}, "noise": 0.2}
KINDS = {
    "shop": Kind(
        {"arms": [[i / 5] for i in range(6)], "context": {"hour": NUMBER | {"high": 24}}, "deadline": 600,
         "policy": {"reward": "bernoulli"}, "on_deadline": "reward", "default_reward": 0}, visit, 0.25, callers=2,
    ),
    "oven": Kind({"space": MIXED, "goal": "minimize"}, bake, 1.5, anew=True),
    "training": Kind(
        {"space": MIXED, "goal": "minimize", "policy": {"pruning": {"type": "median", "steps": 6, "finished": 3}}},
        train, 2.0, anew=True,
    ),
    "budget": Kind(
        {"space": {"price": NUMBER | {"low": 1, "high": 9}, "discount": NUMBER | {"high": 2}}, "grid": 9,
         "constraints": 1, "policy": GP | {"constraints": {"type": "on_average", "step": 0.05}}, "deadline": 900,
         "on_deadline": "abandon"}, spend, 1.0,
    ),
    "model": Kind(
        {"space": {"rate": {"type": "float", "low": 1e-4, "high": 0.1, "log": True},
                   "depth": {"type": "int", "low": 1, "high": 8}},
         "objectives": {"loss": "minimize", "recall": "maximize"}}, model, 3.0, anew=True,
    ),
}  # fmt: skip
HILL = {"space": {"x": NUMBER, "y": NUMBER}, "grid": 12, "policy": GP}
OLDER = Kind(None, click, 0.5)  # the study of tests/format1/service.sql


def crowd(day, ports):
    """Returns the callers of all kinds."""
    return [
        Caller(f"{name}{i}", name, kind, day, ports, seed=10 * at + i)
        for at, (name, kind) in enumerate(KINDS.items())
        for i in range(kind.callers)
    ]


def wait_for(said, seconds=60.0):
    """Returns whether `said()` comes true in time."""
    until = time.monotonic() + seconds
    while not said():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True
