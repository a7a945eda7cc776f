"""Several rewards of a decision, each with a key, told as one answer when its wait is over."""

import json

import pytest

import nilregret as nr
from nilregret.storage import MemoryStorage, SqlStorage

from .service import AT, POLICY, Client, Clock, asked, plain


@pytest.fixture
def timed():
    """A client whose clock one sets; `timed(rule)` puts a study of it that collects rewards for a minute."""
    with Client(MemoryStorage(), clock=Clock()) as made:
        made.clock = made.service.workers._clock

        def study(policy=POLICY, **rule):
            assert made.put(AT, {"policy": plain(policy), "deadline": 60.0, "reward": "sum"} | rule)[0] == 201
            return made

        yield study


def reward(client, decision, value, key, **more):
    return client.put(f"{AT}/decisions/{decision['id']}/reward", {"reward": value, "key": key} | more)


def read(client, decision):
    return client.get(f"{AT}/decisions/{decision['id']}")[1]


@pytest.mark.parametrize(("rule", "total"), [("sum", 26.0), ("first", 1.0), ("last", 25.0)])
def test_rewards_until_the_wait_is_over_are_told_as_one_answer(timed, rule, total):
    client = timed(reward=rule)
    assert client.get(AT)[1]["reward"] == rule
    first = asked(client)
    assert first["expires_at"] == 1060.0
    status, said = reward(client, first, 1.0, "click")
    assert (status, said["state"], said["reward"], said["counted"]) == (200, "pending", None, True)
    assert "At the deadline" in said["sentence"]
    assert reward(client, first, 1.0, "click") == (200, said)
    client.clock.now = 1030.0
    assert reward(client, first, 25.0, "order", metrics={"items": 3})[0] == 200
    so_far = [
        {"key": "click", "reward": 1.0, "at": 1000.0, "late": False, "counted": True},
        {"key": "order", "reward": 25.0, "at": 1030.0, "late": False, "counted": True},
    ]
    assert read(client, first)["rewards"] == so_far
    client.clock.now = 1061.0
    asked(client)
    said = read(client, first)
    assert (said["state"], said["reward"], said["late"], said["defaulted"]) == ("observed", total, False, False)
    assert said["metrics"] == {"items": 3.0, "click": 1.0, "order": 25.0}
    assert said["rewards"] == so_far
    assert client.get(AT)[1]["trials"] == {"all": 2, "observed": 1, "pending": 1}


def test_another_reward_of_a_key_is_refused_or_corrects_it_while_there_is_time(timed):
    client = timed()
    first = asked(client)
    reward(client, first, 1.0, "click")
    status, said = reward(client, first, 2.0, "click")
    assert (status, "two rewards have one key" in said["error"]["sentence"]) == (409, True)
    assert reward(client, first, 2.0, "click", revise=True)[1]["rewards"][0]["reward"] == 2.0
    client.clock.now = 1061.0
    asked(client)
    assert (read(client, first)["reward"], read(client, first)["corrected"]) == (2.0, [])


@pytest.mark.parametrize(
    ("rule", "state", "value"),
    [
        ({}, "abandoned", None),
        ({"on_deadline": "fail"}, "failed", None),
        ({"on_deadline": "reward", "default_reward": 0.5}, "observed", 0.5),
    ],
)
def test_without_a_reward_the_rule_of_the_study_is_applied(timed, rule, state, value):
    client = timed(**rule)
    first = asked(client)
    client.clock.now = 1061.0
    asked(client)
    said = read(client, first)
    assert (said["state"], said["reward"], said["rewards"]) == (state, value, [])
    if state != "observed":
        assert said["reason"] == "no reward came within 60 s"


@pytest.mark.parametrize(("late", "counted", "value"), [("drop", False, 1.0), ("count", True, 6.0)])
def test_a_late_reward_is_treated_by_the_rule_for_late_ones(timed, late, counted, value):
    client = timed(late=late)
    first = asked(client)
    reward(client, first, 1.0, "click")
    client.clock.now = 1060.0
    status, said = reward(client, first, 5.0, "order")
    assert (status, said["late"], said["counted"], said["reward"]) == (200, True, counted, value)
    assert reward(client, first, 5.0, "order") == (200, said)
    assert read(client, first)["late_reward"] == (None if counted else 6.0)
    assert [each["counted"] for each in read(client, first)["rewards"]] == [True, counted]
    row = json.loads(client.get(f"{AT}/export?format=jsonl")[1].decode().splitlines()[0])
    assert (row["reward"], row["late_reward"], row["metrics"]["click"]) == (value, None if counted else 6.0, 1.0)
    assert reward(client, first, 3.0, "click", revise=True)[1]["reward"] == (8.0 if counted else 3.0)


@pytest.mark.parametrize(("late", "value"), [("drop", 0.0), ("count", 7.0)])
def test_late_rewards_beside_a_default(timed, late, value):
    client = timed(on_deadline="reward", default_reward=0.0, late=late)
    first = asked(client)
    client.clock.now = 1061.0
    for key, given in (("click", 2.0), ("order", 5.0)):
        assert reward(client, first, given, key)[1]["late"]
    said = read(client, first)
    assert (said["reward"], said["late_reward"], said["defaulted"]) == (value, 7.0, True)


def test_the_first_reward_of_an_abandoned_decision_is_told_at_once(timed):
    client = timed()
    first = asked(client)
    client.clock.now = 1061.0
    asked(client)
    assert read(client, first)["state"] == "abandoned"
    status, said = reward(client, first, 2.0, "click")
    assert (status, said["state"], said["reward"], said["late"], said["counted"]) == (200, "observed", 2.0, True, True)
    status, said = reward(client, first, 5.0, "order")
    assert (status, said["reward"], said["counted"]) == (200, 2.0, False)


def test_a_decision_with_rewards_does_not_end_without_them(timed):
    client = timed()
    first, second = asked(client), asked(client)
    reward(client, first, 1.0, "click")
    for end in ("failure", "abandonment", "stop"):
        status, said = client.post(f"{AT}/decisions/{first['id']}/{end}", {"reason": "lost"})
        assert (status, "1 reward came" in said["error"]["sentence"]) == (409, True)
        assert client.post(f"{AT}/decisions/{second['id']}/{end}", {"reason": "lost"})[0] in (200, 409)
    said = client.post(f"{AT}/decisions/{first['id']}/failure", {"reason": "lost", "revise": True})[1]
    assert said["state"] == "failed"


def test_a_worker_is_not_given_again_what_it_has_answered_in_part(timed):
    client = timed()
    first = asked(client, client="w")
    assert asked(client, client="w") == first
    reward(client, first, 1.0, "click")
    assert asked(client, client="w")["number"] == 1


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"reward": 1.0}, "`key` is missing"),
        ({"key": "a"}, "`reward` is None, and this study collects"),
        ({"reward": [1.0, 2.0], "key": "a"}, "each a number with a `key`"),
        ({"reward": 1.0, "key": "a", "std": 0.1}, "`std` is given"),
        ({"reward": 1.0, "key": "a", "constraints": [0.0]}, "`constraints` is given"),
        ({"reward": 1.0, "key": "a\nb"}, "it must be one line"),
        ({"reward": 1e300, "key": "a"}, "`reward` is 1e300"),
    ],
)
def test_what_is_no_reward_with_a_key(timed, body, sentence):
    client = timed()
    first = asked(client)
    status, said = client.put(f"{AT}/decisions/{first['id']}/reward", body)
    assert (status, sentence in said["error"]["sentence"]) == (422, True), said
    assert read(client, first)["rewards"] == []


def test_the_answer_so_far_must_be_one_that_the_study_takes(timed):
    clicks = nr.auto(nr.Arms(range(3)), reward="bernoulli")
    client = timed(policy=clicks)
    first = asked(client)
    assert reward(client, first, 1.0, "click")[0] == 200
    status, said = reward(client, first, 1.0, "order")
    assert (status, said["error"]["field"]) == (422, "reward")
    assert len(read(client, first)["rewards"]) == 1


def test_no_more_rewards_than_numbers_that_a_trial_keeps(timed):
    client = timed()
    first = asked(client)
    for i in range(100):
        reward(client, first, 0.0, f"k{i}")
    status, said = reward(client, first, 0.0, "one more")
    assert (status, "at most 100 numbers" in said["error"]["sentence"]) == (409, True)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"reward": "sum"}, "`deadline` is missing"),
        ({"reward": "sum", "deadline": 60, "on_deadline": "silence"}, "`on_deadline` is 'silence'"),
        ({"reward": "sum", "deadline": 60, "on_deadline": "censor", "default_reward": 0}, "`on_deadline` is 'censor'"),
        ({"reward": "sum", "deadline": 60, "objectives": ["a", "b"]}, "this study has several objectives"),
        ({"reward": "sum", "deadline": 60, "constraints": 1}, "this study has constraints"),
        ({"reward": "mean", "deadline": 60}, "There are: 'first', 'last', 'sum'."),
    ],
)
def test_studies_that_cannot_collect_rewards(timed, body, sentence):
    client = timed()
    status, said = client.put(AT + "2", {"space": {"a": {"type": "float", "low": 0, "high": 1}}} | body)
    assert (status, sentence in said["error"]["sentence"]) == (422, True), said
    assert said["error"]["field"] in ("reward", "deadline", "default_reward")


def test_a_key_needs_a_study_that_collects(timed):
    client = timed()
    client.put(AT + "2", {"policy": plain(POLICY)})
    made = client.post(AT + "2/decisions", {})[1]["decisions"][0]
    status, said = client.put(f"{AT}2/decisions/{made['id']}/reward", {"reward": 1, "key": "a"})
    assert (status, said["error"]["field"]) == (422, "key")
    assert client.post(f"{AT}/decisions", {"deadline": 3.0})[0] == 422


def test_rewards_outlive_the_process_and_are_told_once(tmp_path):
    storage, clock = f"sqlite:///{tmp_path}/db", Clock()
    body = {"policy": plain(POLICY), "deadline": 60.0, "reward": "sum"}
    with Client(SqlStorage(storage), clock=clock) as client:
        client.put(AT, body)
        decisions = [asked(client) for _ in range(3)]
        for decision in decisions[:2]:
            reward(client, decision, 1.0, "click")
    clock.now = 1030.0
    with Client(SqlStorage(storage), clock=clock) as client:
        reward(client, decisions[0], 1.0, "click")
        reward(client, decisions[0], 2.0, "order")
    clock.now = 1061.0
    with Client(SqlStorage(storage), clock=clock) as client:
        assert asked(client)["number"] == 3
    with Client(SqlStorage(storage), clock=clock) as client:
        asked(client)
        assert [read(client, each)["reward"] for each in decisions] == [3.0, 1.0, None]
    with nr.Study.open(storage=storage, name="shop") as study:
        same = nr.Study(POLICY, seed=0)
        same.ask(count=3)
        same.tell(0, 3.0)
        same.tell(1, 1.0)
        same.abandon(2)
        assert [same.ask().arm, same.ask().arm] == [trial.arm for trial in study.trials[3:]]


def test_one_of_the_rewards_may_be_evaluated_by_its_key(timed):
    policy = nr.auto(nr.Arms(range(2)), reward="poisson").using(explore=nr.slots.Uniform(1.0))
    client = timed(policy=policy, propensities=True)
    for _ in range(40):
        decision = asked(client)
        reward(client, decision, 1.0, "click")
        if decision["arm"]:
            reward(client, decision, 3.0, "order")
    client.clock.now = 1061.0
    asked(client)
    body = {"policy": 1, "reward_range": [0, 4]}
    assert client.post(f"{AT}/evaluations", body)[1]["value"] == pytest.approx(4.0)
    assert client.post(f"{AT}/evaluations", body | {"reward": "metrics.order"})[1]["value"] == pytest.approx(3.0)
    none = client.post(f"{AT}/evaluations", body | {"policy": 0, "reward": "metrics.order", "default_reward": 0})[1]
    assert none["value"] == 0.0
    status, said = client.post(f"{AT}/evaluations", body | {"reward": "order"})
    assert (status, said["error"]["field"]) == (422, "reward")
