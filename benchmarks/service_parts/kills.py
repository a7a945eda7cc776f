"""Servers are killed under load: what was acknowledged must be on record, once, and a retry must get the same."""

import math
import random
import threading
import time

import nilregret as nr

from .servers import Persistent, Server

REPORTING = 0.2  # how often a decision reports steps
OFTEN, MANY = 0.004, 1000  # how often so many decisions are asked for at once, which takes several transactions
WAIT = 1.0  # seconds for which a study collects the rewards of a decision
COLLECTING = {
    "deadline": WAIT, "on_deadline": "abandon", "default_reward": None, "late": "count", "reward": "sum"
}  # fmt: skip


def reward(number):
    """What comes of a decision; any number will do, if it is always the same."""
    return (number * 7919 % 1000) / 1000.0


class Worker(threading.Thread):
    """Asks and tells, each request again until it is answered, at whichever server."""

    def __init__(self, name, ports, stop, seed, study="shop", token=None, *, collecting=False):
        super().__init__(daemon=True)
        self.collecting, self.metrics = collecting, {}
        self.label, self.stop, self.rng = name, stop, random.Random(seed)
        self.study, self._at = study, f"/v1/studies/{study}"
        self._http = Persistent(ports, self.rng, token)
        self._until = self._http.until
        self.decisions, self.told, self.wrong, self.error = {}, {}, [], None
        self.curves, self.stopped = {}, set()

    def run(self):
        try:
            turn = 0
            while not self.stop.is_set():
                self._round(f"{self.label}-{turn}")
                turn += 1
        except BaseException as error:  # a thread's error must reach whoever waits for it
            self.error = error
        finally:
            self._http.close()

    @property
    def retries(self):
        return self._http.retries

    def _round(self, key):
        many = not self.collecting and self.rng.random() < OFTEN
        body = {"count": MANY} if many else {"event": key, "unit": key[-1]} if self.collecting else {}
        said = self._until("POST", f"{self._at}/decisions", body, 201, key)["decisions"]
        if len(said) != (MANY if many else 1):
            self.wrong.append((key, len(said)))
        self.decisions |= {(key, each["number"]): each for each in said}
        decision = said[-1]
        if self.rng.random() < 0.2:
            again = self._until("POST", f"{self._at}/decisions", body, 201, key)["decisions"]
            if again != said:
                self.wrong.append((key, said, again))
        if self.collecting:
            self._collected(decision)
            return
        if self.rng.random() < REPORTING and self._reported(decision):
            return
        path, value = f"{self._at}/decisions/{decision['id']}/reward", reward(decision["number"])
        for _ in range(2 if self.rng.random() < 0.2 else 1):
            answer = self._until("PUT", path, {"reward": value}, 200)
            if (answer["number"], answer["reward"]) != (decision["number"], value):
                self.wrong.append((key, answer))
        self.told[decision["number"]] = value

    def _collected(self, decision):
        """Some rewards of a decision, by its event and each by its key, of which some are sent twice."""
        number, path = decision["number"], f"{self._at}/decisions/{decision['event']}/reward"
        keys = [f"k{i}" for i in range(self.rng.randrange(4))]
        for i, key in enumerate(keys):
            for _ in range(2 if self.rng.random() < 0.2 else 1):
                self._until("PUT", path, {"reward": reward(number + i), "key": key}, 200)
            self.metrics[number] = self.metrics.get(number, {}) | {key: reward(number + i)}
        if keys:
            self.told[number] = math.fsum(self.metrics[number].values())

    def after_the_wait(self):
        """Asks once more when all waits are over, so that the rewards are told."""
        time.sleep(WAIT)
        key = f"{self.label}-end"
        said = self._until("POST", f"{self._at}/decisions", {}, 201, key)["decisions"]
        self.decisions |= {(key, each["number"]): each for each in said}
        self._http.close()

    def _reported(self, decision):
        """Whether a decision was stopped after its reports, some of which are sent twice."""
        number, at = decision["number"], f"{self._at}/decisions/{decision['id']}"
        self.curves[number] = []
        for step in range(1, 4):
            value = reward(number + step)
            for _ in range(2 if self.rng.random() < 0.2 else 1):
                verdict = self._until("PUT", f"{at}/steps/{step}", {"value": value}, 200)
                if not verdict["go_on"]:
                    self.wrong.append((number, step, verdict))
            self.curves[number].append((step, value))
        if self.rng.random() < 0.5:
            return False
        for _ in range(2 if self.rng.random() < 0.2 else 1):
            if self._until("POST", f"{at}/stop", {"reason": "enough"}, 200)["state"] != "stopped":
                self.wrong.append((number, "was not stopped"))
        self.stopped.add(number)
        return True


def run(url, *, kills, servers=2, workers=4, every=0.5, seed=0):
    """Kill servers so often; returns facts, and sentences of what is wrong, none of which there should be.

    Args:
        url: of the storage, in which there is no such study yet.
        kills: how many.
        servers: processes on the one storage.
        workers: threads that ask and tell.
        every: mean time between two kills while all servers are up, seconds.
        seed: of the times and the retries.
    """
    policy = nr.gp_ucb(nr.Arms.grid(0, 1, 100), nr.SquaredExponential(0.2), noise=0.1)
    nr.Study(policy, storage=url, name="shop").close()
    nr.Study(policy, storage=url, name="basket", about={"service": COLLECTING}, sticky=True).close()
    rng, stop = random.Random(seed), threading.Event()
    up = [Server.of_studies(url) for _ in range(servers)]
    for server in up:
        server.begin()
    ports = [server.port for server in up]
    crowd = [Worker(f"w{i}", ports, stop, seed + i) for i in range(workers)]
    crowd += [Worker("c", ports, stop, seed, "basket", collecting=True)]
    try:
        for worker in crowd:
            worker.start()
        for _ in range(kills):
            time.sleep(rng.expovariate(1.0 / every))
            server, tried = rng.choice(up), _retries(crowd)
            server.kill()
            while _retries(crowd) == tried and all(worker.is_alive() for worker in crowd):
                time.sleep(0.01)  # until somebody has come in vain
            server.begin()
        time.sleep(every)
    finally:
        stop.set()
        for worker in crowd:
            worker.join(600)
        crowd[-1].after_the_wait()
        for server in up:
            server.kill()
    (facts, wrong), (more, others) = judged(url, crowd[:-1]), judged(url, crowd[-1:])
    return facts | {"collected": sum(map(len, crowd[-1].metrics.values())), "sums": more["rewards"]}, wrong + others


def _visit(trial):
    return trial.event, trial.unit, trial.kept


def _retries(crowd):
    return sum(worker.retries for worker in crowd)


def judged(url, crowd):
    """Facts, and what is wrong, of workers that all had one study."""
    for worker in crowd:
        if worker.error is not None:
            raise worker.error
    wrong = [str(each) for worker in crowd for each in worker.wrong]
    with nr.Study.open(storage=url, name=crowd[0].study) as study:  # checks the whole record
        trials = list(study.trials)
    decisions = {key: each for worker in crowd for key, each in worker.decisions.items()}
    told = {number: value for worker in crowd for number, value in worker.told.items()}
    numbers = [each["number"] for each in decisions.values()]
    if len(set(numbers)) != len(numbers):
        wrong.append("a decision was given to two")
    wrong += [
        f"decision {each['number']} is on record as {trials[each['number']].visit}"
        for each in decisions.values()
        if "event" in each and _visit(trials[each["number"]]) != (each["event"], each["unit"], each.get("kept"))
    ]
    # A worker stops between two requests, so that every key was acknowledged.
    if len(trials) != len(numbers):
        wrong.append(f"{len(trials)} trials are on record, and {len(numbers)} were acknowledged")
    wrong += [
        f"decision {each['number']} is on record with another point"
        for each in decisions.values()
        if each["number"] >= len(trials) or trials[each["number"]].point.tolist() != each["point"]
    ]
    wrong += [
        f"the reward of {number} was acknowledged, and is not on record"
        for number, value in told.items()
        if number >= len(trials) or trials[number].reward != value
    ]
    wrong += [
        f"the rewards of {number} are {trials[number].metrics} on record, and were {metrics}"
        for worker in crowd
        for number, metrics in worker.metrics.items()
        if number < len(trials) and trials[number].metrics != metrics
    ]
    curves = {number: curve for worker in crowd for number, curve in worker.curves.items()}
    wrong += [
        f"reports of {number} were acknowledged, and are not on record"
        for number, curve in curves.items()
        if number >= len(trials) or trials[number].steps != curve
    ]
    stopped = {trial.number for trial in trials if trial.state == "stopped"}
    if stopped != {number for worker in crowd for number in worker.stopped}:
        wrong.append("other decisions were stopped than are on record")
    facts = {"decisions": len(decisions), "rewards": len(told), "stopped": len(stopped), "retries": _retries(crowd)}
    return facts, wrong
