"""Who visits, own event ids and facts over HTTP."""

import json

import pytest

import nilregret as nr
from nilregret.serve.wire.messages import segment
from nilregret.storage import MemoryStorage, SqlStorage

from .service import AT, POLICY, Client, Clock, asked, plain

CLICKS = nr.auto(nr.Arms(range(3)), reward="bernoulli")


@pytest.fixture
def client():
    with Client(MemoryStorage(), clock=Clock()) as made:
        made.clock = made.service.workers._clock
        made.put(AT, {"policy": plain(CLICKS), "propensities": True})
        yield made


def test_a_decision_gives_back_who_visits_the_event_and_the_facts(client):
    body = {"unit": "user-17", "event": "order-1", "facts": {"order": "1234", "price": 9.5, "new": True, "from": None}}
    first = asked(client, **body)
    assert {name: first[name] for name in ("event", "unit", "facts")} == body | {"unit": 0}
    assert "kept" not in first
    assert "event" not in asked(client)
    again = asked(client, unit="user-17")
    assert (again["unit"], "kept" in again) == (0, False)
    assert client.get(f"{AT}/decisions/{first['id']}")[1]["facts"] == body["facts"]
    (line, *_) = client.get(f"{AT}/export?format=jsonl")[1].decode().splitlines()
    row = json.loads(line)
    assert (row["event"], row["unit"], row["facts"]) == ("order-1", 0, body["facts"])
    assert b"user-17" not in client.get(f"{AT}/export?format=csv")[1]


def test_a_decision_is_made_once_for_an_event(client):
    first = asked(client, event="order-1")
    status, said = client.post(f"{AT}/decisions", {"event": "order-1"})
    assert (status, said["decisions"]) == (201, [first])
    assert client.post(f"{AT}/decisions", {"event": "order-1"}, key="a")[1] == said
    assert client.post(f"{AT}/decisions", {"event": "order-1"}, key="a")[1] == said
    status, said = client.post(f"{AT}/decisions", {"event": "order-1", "count": 2})
    assert (status, said["error"]["field"]) == (422, "event")
    assert client.get(AT)[1]["trials"]["all"] == 1


def test_a_worker_with_an_open_decision_may_ask_for_another_event_or_unit(client):
    first = asked(client, client="w", event="a")
    assert asked(client, client="w") == first
    assert asked(client, client="w", event="b")["event"] == "b"
    assert asked(client, client="w", unit="user-17")["unit"] == 2


def test_a_paused_study_gives_the_decision_of_an_event_again(client):
    first = asked(client, event="order-1")
    assert client.run(client.send("PATCH", AT, {"paused": True}))[0] == 200
    assert client.post(f"{AT}/decisions", {"event": "order-1"})[1]["decisions"] == [first]
    assert client.post(f"{AT}/decisions", {"event": "order-2"})[0] == 409


EVENTS = ["order-1", "a/b", "..", "~~61", "100% \\ ?#&", "event:x", "é 東\n", "7", "x" * 200]


@pytest.mark.parametrize("event", EVENTS)
def test_any_text_stands_in_the_place_of_an_id(client, event):
    first = asked(client, event=event)
    at = f"{AT}/decisions/{segment(event)}"
    status, said = client.put(f"{at}/reward", {"reward": 1})
    assert (status, said["id"]) == (200, first["id"])
    assert client.get(at)[1]["event"] == event
    assert client.put(f"{at}/steps/3", {"value": 1})[0] == 409
    assert client.post(f"{at}/failure", {"reason": "lost"})[0] == 409
    assert client.post(f"{at}/abandonment", {})[0] == 409
    assert client.post(f"{at}/stop", {})[0] == 409
    (one,) = client.post(f"{AT}/rewards", {"items": [{"event": event, "reward": 1}]})[1]["items"]
    assert (one["status"], one["event"], one["id"], one["answer"]["id"]) == (200, event, None, first["id"])


def test_events_that_were_never_asked_for(client):
    for send in (
        lambda at: client.put(f"{at}/reward", {"reward": 1}),
        lambda at: client.post(f"{at}/failure", {"reason": "lost"}),
        lambda at: client.post(f"{at}/abandonment", {}),
        lambda at: client.put(f"{at}/steps/3", {"value": 1}),
        client.get,
    ):
        status, said = send(f"{AT}/decisions/order-1")
        assert (status, said["error"]["kind"]) == (404, "no_decision")
    (one,) = client.post(f"{AT}/rewards", {"items": [{"event": "order-1", "reward": 1}]})[1]["items"]
    assert (one["status"], one["error"]["kind"]) == (404, "no_decision")
    for item in ({"reward": 1}, {"id": "a", "event": "b", "reward": 1}):
        status, said = client.post(f"{AT}/rewards", {"items": [item]})
        assert (status, "exactly one" in said["error"]["sentence"]) == (422, True)
    first = asked(client)
    status, said = client.post(f"{AT}/decisions", {"event": first["id"]})
    assert (status, said["error"]["field"]) == (422, "event")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"event": ""}, "event"),
        ({"event": 7}, "event"),
        ({"event": "a\0"}, "event"),
        ({"unit": "x" * 201}, "unit"),
        ({"facts": {"a": [1]}}, "facts"),
        ({"facts": {str(i): 1 for i in range(21)}}, "facts"),
        ({"facts": {"a": "x" * 201}}, "facts"),
    ],
)
def test_nonsense_is_refused(client, body, field):
    status, said = client.post(f"{AT}/decisions", body)
    assert (status, said["error"]["field"]) == (422, field), said
    assert client.get(AT)[1]["trials"]["all"] == 0


def test_a_unit_keeps_its_arm_until_it_is_forgotten(client):
    at = AT + "2"
    status, said = client.put(at, {"policy": plain(CLICKS), "sticky": True})
    assert (status, said["sticky"], said["about"]) == (201, True, {})
    assert client.put(at, {"policy": plain(CLICKS), "sticky": True})[0] == 200
    status, refused = client.put(at, {"policy": plain(CLICKS), "sticky": 60})
    assert (status, refused["error"]["field"]) == (409, "sticky")
    ask = lambda: client.post(f"{at}/decisions", {"unit": "user-17"})[1]["decisions"][0]  # noqa: E731
    first = ask()
    kept = [ask() for _ in range(5)]
    assert {(each["arm"], each["kept"], each["unit"]) for each in kept} == {(first["arm"], 0, 0)}
    assert client.post(f"{at}/forget", {"unit": "user-17"}) == (200, {"forgotten": True})
    assert client.post(f"{at}/forget", {"unit": "user-17"}) == (200, {"forgotten": False})
    assert (ask()["unit"], "kept" in ask()) == (6, True)
    entries = client.get(f"{at}/audit")[1]["entries"]
    assert ("forget" in {each["action"] for each in entries}, "user-17" in json.dumps(entries)) == (True, False)


def test_an_arm_is_kept_for_so_many_seconds(client):
    at = AT + "2"
    assert client.put(at, {"policy": plain(CLICKS), "sticky": 60})[1]["sticky"] == 60.0
    client.post(f"{at}/decisions", {"unit": "a"})
    client.clock.now += 60.0
    assert client.post(f"{at}/decisions", {"unit": "a"})[1]["decisions"][0]["kept"] == 0
    client.clock.now += 1.0
    assert "kept" not in client.post(f"{at}/decisions", {"unit": "a"})[1]["decisions"][0]
    for nonsense in (-1, 0.0, "yes"):
        status, said = client.put(AT + "3", {"policy": plain(CLICKS), "sticky": nonsense})
        assert (status, said.get("error", {}).get("field")) == (422, "sticky") if nonsense else (201, None)


def test_events_and_units_outlive_the_process(tmp_path):
    storage = f"sqlite:///{tmp_path}/db"
    with Client(SqlStorage(storage)) as client:
        client.put(AT, {"policy": plain(POLICY), "sticky": True, "deadline": 60.0, "reward": "sum"})
        first = asked(client, event="order-1", unit="a")
        client.put(f"{AT}/decisions/order-1/reward", {"reward": 1, "key": "click"})
    with Client(SqlStorage(storage)) as client:
        assert asked(client, event="order-1", unit="a") == first
        assert asked(client, unit="a")["kept"] == 0
        status, said = client.put(f"{AT}/decisions/order-1/reward", {"reward": 2, "key": "order"})
        assert (status, [each["key"] for each in said["rewards"]]) == (200, ["click", "order"])


def test_a_slate_is_asked_for_and_told_as_a_whole(client):
    body = {"count": 3, "slate": True, "event": "page-1", "facts": {"page": "/shoes"}}
    page = client.post(f"{AT}/decisions", body)[1]["decisions"]
    assert sorted(each["arm"] for each in page) == [0, 1, 2]
    assert [(each["slate"], each["place"]) for each in page] == [(page[0]["id"], place) for place in range(3)]
    assert client.post(f"{AT}/decisions", body)[1]["decisions"] == page
    status, said = client.put(f"{AT}/decisions/page-1/slate", {"clicked": [1]})
    assert (status, [each["reward"] for each in said["answers"]]) == (200, [0.0, 1.0, 0.0])
    assert client.put(f"{AT}/decisions/{page[2]['id']}/slate", {"rewards": [0, 1, None]})[0] == 200
    assert client.put(f"{AT}/decisions/page-1/slate", {"rewards": [1, 1, 0]})[0] == 409
    for wrong, field in (({}, "rewards"), ({"clicked": [3]}, "clicked"), ({"rewards": [1]}, "rewards")):
        status, said = client.put(f"{AT}/decisions/page-1/slate", wrong)
        assert (status, said["error"]["field"]) == (422, field), said
    alone = asked(client)
    assert client.put(f"{AT}/decisions/{alone['id']}/slate", {"clicked": []})[0] == 409
    for wrong in ({"slate": True}, {"slate": True, "count": 4}, {"slate": True, "count": 2, "propensity": True}):
        assert client.post(f"{AT}/decisions", wrong)[0] == 422
