"""Figures for Prometheus: what they count is what happened, once, whoever says it how often."""

import random

import pytest
from prometheus_client.parser import text_string_to_metric_families

import nilregret as nr
from nilregret.storage import MemoryStorage, SqlStorage

from .marks import nightly
from .service import AT, POLICY, Client, Clock, plain

OF = {"tenant": "default", "study": "shop"}


def figures(client):
    """By name and what labels there are besides tenant and study."""
    return {
        (sample.name, *(value for label, value in sorted(sample.labels.items()) if label not in OF)): sample.value
        for family in text_string_to_metric_families(client.get("/metrics")[1].decode())
        for sample in family.samples
    }


class Shop:
    """Asks and tells at random, over and over, and keeps count of what is news."""

    def __init__(self, client, clock, seed):
        self._client, self._clock, self._rng = client, clock, random.Random(seed)
        self._decisions, self._keys = [], 0
        self.asked = self.observed = self.repeated = self.refused = 0
        self.late = {}  # whether the first answer to a decision was

    def step(self):
        self._rng.choice([self._ask, self._ask, self._tell, self._tell, self._tell, self._fail, self._look_in])()
        self._clock.now += self._rng.choice([0.0, 1.0, 4.0])

    def _ask(self):
        again = self._keys > 0 and self._rng.random() < 0.3
        self._keys += not again
        key = self._rng.randrange(self._keys) if again else self._keys - 1
        status, said = self._client.post(f"{AT}/decisions", {"count": 2}, key=f"{key}")
        assert status == 201
        if again:
            self.repeated += 1
        else:
            self._decisions += said["decisions"]
            self.asked += 2

    def _tell(self):
        self._answer("PUT", "reward", {"reward": self._rng.choice([0.25, 0.5])})

    def _fail(self):
        self._answer("POST", "failure", {"reason": self._rng.choice(["out of stock", "lost"])})

    def _answer(self, method, what, body):
        if not self._decisions:
            return
        id_ = self._rng.choice(self._decisions[-6:])["id"]
        status, said = self._client.run(self._client.send(method, f"{AT}/decisions/{id_}/{what}", body))
        assert status in (200, 409)
        if status == 409:
            self.refused += 1
        elif what == "failure" and "had been applied" in (said["sentence"] or ""):
            assert said["late"]  # nothing is known of it but that the rule had been faster
        elif id_ in self.late:
            self.repeated += 1
        else:
            self.late[id_] = said["late"], said["counted"]

    def _look_in(self):
        assert self._client.post(f"{AT}/observations", {"arm": 3, "reward": 0.5})[0] == 201
        self.observed += 1


RULES = {
    "none": {},
    "abandon": {"deadline": 8.0},
    "fail": {"deadline": 8.0, "on_deadline": "fail"},
    "reward": {"deadline": 8.0, "on_deadline": "reward", "default_reward": 0.0},
    "count": {"deadline": 8.0, "on_deadline": "reward", "default_reward": 0.0, "late": "count"},
    "censor": {"deadline": 8.0, "on_deadline": "censor"},
}


@pytest.mark.parametrize(
    ("name", "kind"), [*((name, "memory") for name in RULES), ("reward", "sqlite"), *nightly(("count", "postgresql"))]
)
def test_what_is_counted_is_what_happened(name, kind, places):
    rule = RULES[name]
    place, clock = places(kind)(), Clock()
    with Client(place if isinstance(place, MemoryStorage) else SqlStorage(place), clock=clock) as client:
        assert client.put(AT, {"policy": plain(POLICY)} | rule)[0] == 201
        shop = Shop(client, clock, seed=5)
        for _ in range(100):
            shop.step()
        trials = client.get(AT)[1]["trials"]
        found = figures(client)
    assert shop.refused
    assert shop.repeated
    assert not rule or any(late for late, _ in shop.late.values())
    late = {yes: sum(each == (True, yes == "yes") for each in shop.late.values()) for yes in ("yes", "no")}
    expected = {
        "decisions": shop.asked, "observations": shop.observed, "answers": len(shop.late),
        "late_answers": sum(late.values()),
    }  # fmt: skip
    for what, count in expected.items():
        assert found[f"nilregret_{what}_total",] == count, what
        assert sum(value for key, value in found.items() if key[0] == f"nilregret_process_{what}_total") == count, what
    assert {yes: found.get(("nilregret_process_late_answers_total", yes), 0) for yes in late} == late
    assert found["nilregret_process_repeated_requests_total",] == shop.repeated
    assert found["nilregret_trials", "pending"] == trials.get("pending", 0)
    assert sum(value for key, value in found.items() if key[0] == "nilregret_trials") == trials["all"]


def test_part_of_an_answer_is_none():
    policy = nr.gp_ucb(nr.Arms.grid(0, 1, 5), nr.SquaredExponential(0.2), noise=0.1, constraints=nr.EveryRound())
    with Client(MemoryStorage()) as client:
        client.put(AT, {"policy": plain(policy)})
        (decision,) = client.post(f"{AT}/decisions", {})[1]["decisions"]
        at = f"{AT}/decisions/{decision['id']}/reward"
        for _ in range(2):
            assert client.put(at, {"constraints": [0.5]})[0] == 200
        found = figures(client)
        assert found["nilregret_answers_total",] == 0
        assert ("nilregret_process_answers_total",) not in found
        assert found["nilregret_process_repeated_requests_total",] == 1
        assert found["nilregret_violations_total",] == 1
        for _ in range(2):
            assert client.put(at, {"reward": 1.0})[0] == 200
        found = figures(client)
    assert found["nilregret_answers_total",] == found["nilregret_process_answers_total",] == 1
    assert found["nilregret_process_repeated_requests_total",] == 2
