"""Slates over HTTP: one request decides all places, and each has an id for its reward."""

import pytest

import nilregret as nr
from nilregret.storage import MemoryStorage

from .service import AT, Client, Clock, plain

CONTEXT = nr.Space(x=nr.Float(0, 1))
CLICKS = nr.auto(nr.Arms(range(5)), context=CONTEXT, reward="bernoulli", slate="cascade")
AGAIN = {"context": {"x": 0.5}}


@pytest.fixture
def client():
    with Client(MemoryStorage(), clock=Clock()) as made:
        made.put(AT, {"policy": plain(CLICKS), "propensities": True})
        yield made


def decisions(client, **body):
    return client.post(f"{AT}/decisions", AGAIN | body)


def test_one_request_decides_all_places(client):
    status, said = decisions(client, count=3, slate=True, event="page-1", unit="user-17")
    page = said["decisions"]
    assert status == 201
    assert [(each["slate"], each["place"]) for each in page] == [(page[0]["id"], place) for place in range(3)]
    assert len({each["arm"] for each in page}) == 3
    assert all(0.0 < each["propensity"] <= 1.0 for each in page)
    assert [each.get("event") for each in page] == ["page-1", None, None]
    assert decisions(client, count=3, slate=True, event="page-1")[1]["decisions"][1]["id"] == page[1]["id"]
    for each, reward in zip(page, (0, 1, 0), strict=True):
        assert client.put(f"{AT}/decisions/{each['id']}/reward", {"reward": reward})[0] == 200
    assert client.get(AT)[1]["trials"]["all"] == 3


def test_a_retry_gets_the_same_slate(client):
    (first, again) = (client.post(f"{AT}/decisions", AGAIN | {"count": 2, "slate": True}, key="a")[1] for _ in range(2))
    assert first == again
    assert client.get(AT)[1]["trials"]["all"] == 2


def test_several_decisions_under_a_context_are_at_different_arms(client):
    page = decisions(client, count=5)[1]["decisions"]
    assert len({each["arm"] for each in page}) == 5
    assert all("slate" not in each for each in page)
    assert "`count` is 8, and 5 arms may be played" in decisions(client, count=8)[1]["cautions"][0]
    assert "cautions" not in decisions(client, count=5)[1]
    assert "cautions" not in decisions(client, count=8, unit="user-18")[1]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [({"slate": True}, "`count` is missing"), ({"slate": True, "count": 6}, "has 6 places, and 5")],
)
def test_a_slate_that_cannot_be_is_refused(client, body, sentence):
    status, said = decisions(client, **body)
    assert status == 422
    assert sentence in str(said["error"])
    assert client.get(AT)[1]["trials"]["all"] == 0
