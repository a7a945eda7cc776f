"""What comes of decisions whose reward does not come in time, or never."""

import csv
import json

import pytest

import nilregret as nr
from nilregret.storage import MemoryStorage, SqlStorage

from .service import ARMS, AT, POLICY, Client, Clock, asked, plain, told


@pytest.fixture
def timed():
    """A client whose clock one sets; `timed(rule)` puts a study of it."""
    with Client(MemoryStorage(), clock=Clock()) as made:
        made.clock = made.service.workers._clock

        def study(**rule):
            assert made.put(AT, {"policy": plain(POLICY)} | rule)[0] == 201
            return made

        yield study


def test_a_decision_that_is_given_up_takes_its_reward_late(timed):
    client = timed(deadline=60.0)
    first = asked(client)
    assert first["expires_at"] == 1060.0
    shorter = asked(client, deadline=5.0)
    assert shorter["expires_at"] == 1005.0
    client.clock.now = 1061.0
    asked(client)
    assert client.get(f"{AT}/decisions/{first['id']}")[1]["state"] == "abandoned"
    status, said = told(client, first, 2.0)
    assert (status, said["late"], said["counted"], said["reward"]) == (200, True, True, 2.0)
    assert "counts all the same" in said["sentence"]
    assert told(client, first, 2.0) == (200, said)


def test_an_export_says_which_rewards_are_defaults_and_whose(timed, tmp_path):
    client = timed(deadline=60.0, on_deadline="reward", default_reward=0.0)
    first, second = asked(client), asked(client)
    told(client, second, 0.0)
    client.clock.now = 1061.0
    third = asked(client)
    told(client, first, 2.0)
    lines = client.get(f"{AT}/export?format=jsonl")[1].decode().splitlines()
    said = [[row[name] for name in ("id", "reward", "defaulted", "late_reward")] for row in map(json.loads, lines)]
    assert said == [[first["id"], 0.0, True, 2.0], [second["id"], 0.0, False, None], [third["id"], None, False, None]]
    rows = list(csv.DictReader(client.get(f"{AT}/export?format=csv")[1].decode().splitlines()))
    assert [(row["defaulted"], row["late_reward"]) for row in rows] == [("True", "2.0"), ("False", ""), ("False", "")]
    file = tmp_path / "trials.parquet"
    file.write_bytes(client.get(f"{AT}/export?format=parquet")[1])
    assert [trial.reward for trial in nr.Study(POLICY, seed=0).add_from(file)] == [0.0, 0.0]


def test_the_default_reward_stands_and_a_late_one_is_kept(timed):
    client = timed(deadline=60.0, on_deadline="reward", default_reward=-1.0)
    first, second = asked(client), asked(client)
    told(client, second, 3.0)
    client.clock.now = 1061.0
    asked(client)
    said = client.get(f"{AT}/decisions/{first['id']}")[1]
    assert (said["state"], said["reward"], said["defaulted"]) == ("observed", -1.0, True)
    status, said = told(client, first, 2.0)
    assert (status, said["late"], said["counted"], said["reward"]) == (200, True, False, -1.0)
    assert told(client, first, 2.0) == (200, said)
    assert told(client, first, 2.5)[0] == 409
    assert (
        client.post(f"{AT}/rewards", {"items": [{"id": first["id"], "reward": 2.0}]})[1]["items"][0]["answer"] == said
    )
    seen = client.get(f"{AT}/decisions/{first['id']}")[1]
    assert seen["late_reward"] == 2.0
    assert said == {name: seen[name] for name in said.keys() - {"sentence"}} | {"sentence": said["sentence"]}
    status, said = client.post(f"{AT}/decisions/{first['id']}/failure", {"reason": "lost"})
    assert (status, said["late"], said["counted"], said["state"]) == (200, True, False, "observed")
    again = nr.Study(POLICY, seed=0)  # the very study in which the default was told
    again.ask(count=2)
    again.tell(1, 3.0)
    again.abandon(0)
    again.tell(0, -1.0)
    assert asked(client)["arm"] == [again.ask(), again.ask()][-1].arm


def test_a_late_reward_may_take_the_place_of_the_default(timed):
    client = timed(deadline=60.0, on_deadline="reward", default_reward=0.0, late="count")
    first = asked(client)
    client.clock.now = 1061.0
    asked(client)
    status, said = told(client, first, 2.0)
    assert (status, said["late"], said["counted"]) == (200, True, True)
    assert told(client, first, 2.0)[1]["counted"]
    assert told(client, first, 2.5)[0] == 409
    assert client.get(f"{AT}/decisions/{first['id']}")[1]["reward"] == 2.0


def test_a_decision_may_fail_at_its_deadline(timed):
    client = timed(deadline=60.0, on_deadline="fail")
    first = asked(client)
    client.clock.now = 1061.0
    asked(client)
    said = client.get(f"{AT}/decisions/{first['id']}")[1]
    assert (said["state"], said["reason"]) == ("failed", "no reward came within 60 s")
    status, said = told(client, first, 2.0)
    assert (status, said["late"], said["counted"], said["state"]) == (200, True, False, "failed")


def test_a_deadline_that_passes_with_the_reward_itself(timed):
    client = timed(deadline=60.0, on_deadline="reward", default_reward=0.0)
    first = asked(client)
    client.clock.now = 1061.0
    assert told(client, first, 2.0)[1]["counted"] is False  # the first call after the deadline


def test_censored_until_the_reward_is_there(timed):
    client = timed(deadline=60.0, on_deadline="censor", default_reward=0.0)
    first, second = asked(client), asked(client)
    assert client.post(f"{AT}/decisions", {"deadline": 3.0})[0] == 422
    assert first["expires_at"] == 1060.0
    client.clock.now = 1059.0
    assert told(client, first, 1.0)[1]["late"] is False
    client.clock.now = 1061.0
    status, said = told(client, second, 1.0)
    assert (status, said["late"], said["counted"]) == (200, True, False)
    study = nr.Study(nr.Policy.from_json(json.dumps(client.get(AT)[1]["policy"])), seed=0, clock=Clock())
    study.ask(count=2)
    study.replica.clock.now = 1059.0
    study.tell(0, 1.0)
    study.replica.clock.now = 1061.0
    study.tell(1, 1.0)
    assert client.get(f"{AT}/predict")[1]["mean"] == study.predict()[0].tolist()


def test_silence_means_no(timed):
    client = timed(on_deadline="silence")
    assert client.get(AT)[1]["policy"]["pending"]["type"] == "Imputed"
    first = asked(client)
    assert first["expires_at"] is None
    client.clock.now = 1e6
    assert told(client, first, 1.0)[1]["counted"]


def test_what_waits_is_swept_up_by_a_process_that_comes_later(tmp_path):
    url = f"sqlite:///{tmp_path}/studies.db"
    rule = {"policy": plain(POLICY), "deadline": 60.0, "on_deadline": "reward", "default_reward": 0.5}
    clock = Clock()
    with Client(SqlStorage(url), clock=clock) as client:
        client.put(AT, rule)
        first = asked(client)
    clock.now = 1061.0
    with nr.Study.open(storage=url, name="shop", clock=clock) as study:
        study.ask()  # gives the first one up, and knows no rule
    with Client(SqlStorage(url), clock=clock) as client:
        asked(client)
        assert client.get(f"{AT}/decisions/{first['id']}")[1]["reward"] == 0.5
        assert told(client, first, 2.0)[1]["counted"] is False


@pytest.mark.parametrize("late", ["drop", "count"])
def test_late_constraint_values_and_the_late_reward_after_them_are_one_answer(late):
    policy = nr.gp_ucb(ARMS, nr.SquaredExponential(0.2), noise=0.1, constraints=nr.OnAverage())
    with Client(MemoryStorage(), clock=Clock()) as client:
        client.put(AT, {
            "policy": plain(policy), "deadline": 60.0, "on_deadline": "reward", "default_reward": 0.0, "late": late,
        })  # fmt: skip
        first = asked(client)
        client.service.workers._clock.now = 1061.0
        asked(client)
        path = f"{AT}/decisions/{first['id']}"
        assert client.put(f"{path}/reward", {"constraints": [1.0]})[0] == 200
        status, said = told(client, first, 13.0)
        assert (status, said["late_reward"], said["counted"]) == (200, 13.0, late == "count")
        assert told(client, first, 13.0) == (200, said)
        assert told(client, first, 13.0, constraints=[1.0]) == (200, said)
        assert client.put(f"{path}/reward", {"constraints": [1.0]}) == (200, said)
        assert told(client, first, 12.0)[0] == client.put(f"{path}/reward", {"constraints": [2.0]})[0] == 409
        found = client.get(path)[1]
        assert found["late_reward"] == 13.0
        assert (found["reward"], found["constraints"]) == ((13.0, [1.0]) if late == "count" else (0.0, None))


def test_a_fact_of_the_same_name_is_no_rule(tmp_path):
    place = f"sqlite:///{tmp_path / 'a.db'}"
    nr.Study(POLICY, storage=place, name="shop", about={"service": {"team": "b"}})
    with Client(SqlStorage(place)) as client:
        status, said = client.get(AT)
        assert (status, said["on_deadline"]) == (200, "abandon")
        assert asked(client)["expires_at"] is None


def test_a_correction_is_as_late_as_what_it_corrects(timed):
    client = timed(deadline=60.0)
    first, second = asked(client), asked(client)
    assert told(client, first, 1.0)[1]["late"] is False
    client.clock.now = 1061.0
    assert told(client, second, 1.0)[1]["late"] is True
    for decision, late in ((first, False), (second, True)):
        assert told(client, decision, 2.0, revise=True)[1]["late"] is late
        assert client.get(f"{AT}/decisions/{decision['id']}")[1]["late"] is late


def test_a_default_reward_is_no_late_one(timed):
    client = timed(deadline=60.0, on_deadline="reward", default_reward=0.0)
    first = asked(client)
    client.clock.now = 1061.0
    asked(client)
    assert client.get(f"{AT}/decisions/{first['id']}")[1]["late"] is False
    told(client, first, 2.0)
    assert client.get(f"{AT}/decisions/{first['id']}")[1]["late"] is True


@pytest.mark.parametrize(("rule", "late"), [("abandon", True), ("fail", True), ("reward", True), ("censor", False)])
def test_a_reward_at_the_very_deadline(timed, rule, late):
    """The window of Verma et al. has its end in it; a lease is over then."""
    default = {"default_reward": 0.0} if rule in ("reward", "censor") else {}
    client = timed(deadline=10.0, on_deadline=rule, **default)
    for seconds, expected in ((9.5, False), (10.0, late), (10.5, True)):
        decision = asked(client)
        client.clock.now += seconds
        status, said = told(client, decision, 0.5)
        assert (status, said["late"], said["counted"]) == (200, expected, rule == "abandon" or not expected)
