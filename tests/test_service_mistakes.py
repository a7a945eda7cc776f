"""What programmers get wrong who have read no more than the page: the sentence says what they should have written."""

import sys

import pytest

from nilregret.serve.wire.decision_ids import SECRET, Ids
from nilregret.storage import MemoryStorage

from .service import Client, Clock

ARMS = {"arms": [[0.0], [0.5], [1.0]], "policy": {"algorithm": "gp_ucb", "noise": 0.1, "kernel": {"type": "matern"}}}
PRICE = {"price": {"type": "float", "low": 1, "high": 9}}
AT = "/v1/studies/shop"


@pytest.fixture
def client():
    with Client(MemoryStorage(), clock=Clock()) as made:
        assert made.put(AT, ARMS)[0] == 201
        yield made


def asked(client):
    return client.post(f"{AT}/decisions", {})[1]["decisions"][0]


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-8-sig"])
def test_a_body_in_another_encoding_is_the_callers_mistake(client, encoding):
    status, said = client.post(f"{AT}/decisions", raw='{"client": "Käse"}'.encode(encoding))
    error = said["error"]
    assert (status, error["kind"]) == (400, "malformed")
    if encoding == "latin-1":
        assert "UTF-8" in error["sentence"]


@pytest.mark.parametrize(
    "body",
    [
        '{"client": "a", "client": "b"}', '{"count": 1, "\\u0063ount": 2}', '{"context": {"x": 1, "x": 2}}',
        '{"among": [{"x": 0, "y": 1, "x": 0}]}',
    ],
)  # fmt: skip
def test_a_name_stands_once_in_an_object(client, body):
    status, said = client.post(f"{AT}/decisions", raw=body.encode())
    assert (status, said["error"]["kind"]) == (400, "malformed")
    assert "stands twice in one object" in said["error"]["sentence"]
    assert client.post(f"{AT}/decisions", {})[1]["decisions"][0]["number"] == 0


def test_a_body_is_json_and_says_so(client):
    for said_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=a", "", "json"):
        status, said = client.post(f"{AT}/decisions", raw=b"{}", headers={"Content-Type": said_type})
        assert (status, said["error"]["kind"], said["error"]["field"]) == (415, "type", "Content-Type")
    for said_type in ("application/json", "Application/JSON; charset=utf-8"):
        assert client.post(f"{AT}/decisions", raw=b"{}", headers={"Content-Type": said_type})[0] == 201
    assert client.post(f"{AT}/decisions", raw=b"{}")[0] == 201  # nothing is said
    assert client.get(AT, headers={"Content-Type": "text/plain"})[0] == 200  # there is no body


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"goal": "max"}, ["'max'", "'maximize', 'minimize'"]),
        ({"on_deadline": "default"}, ["'abandon'", "'reward'"]),
        ({"contexts": {}}, ["`contexts`", "Did you mean 'context'?", "The entries are: policy, space"]),
        ({"arms": [[0.0]], "space": PRICE}, ["`space` and `arms`", "one of them"]),
        ({"space": PRICE, "policy": "gp_ucb"}, ["'gp_ucb'", '{"algorithm": "gp_ucb"}']),
        ({"policy": "gp-ucb"}, ['{"algorithm": "gp-ucb"}']),
    ],
)
def test_what_a_study_should_have_been(client, body, words):
    status, said = client.put("/v1/studies/new", body)
    assert status == 422
    for each in words:
        assert each in said["error"]["sentence"]


def test_what_an_item_of_many_should_have_been(client):
    item = {"id": asked(client)["id"], "rewrad": 1.0}
    said = client.post(f"{AT}/rewards", {"items": [item]})[1]["error"]
    assert said["field"] == "items[0].rewrad"
    assert "Did you mean 'reward'?" in said["sentence"]
    assert "id" in said["sentence"].rpartition("The entries are: ")[2]


def test_a_format_that_there_is_not(client):
    said = client.get(f"{AT}/export?format=xls")[1]["error"]["sentence"]
    assert "'csv'" in said


def test_a_format_for_which_the_server_lacks_a_package(client, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    status, said = client.get(f"{AT}/export?format=parquet")
    assert (status, said["error"]["kind"]) == (501, "missing")
    assert "pyarrow" in said["error"]["sentence"]
    assert "csv" in said["error"]["sentence"]


def test_milliseconds_are_no_seconds(client):
    at = f"{AT}/decisions/{asked(client)['id']}/reward"
    status, said = client.put(at, {"reward": 1.0, "observed_at": 1.76e12})
    assert (status, said["error"]["field"]) == (422, "observed_at")
    assert "not milliseconds" in said["error"]["sentence"]


@pytest.mark.parametrize(
    ("parameters", "words"),
    [({}, ": missing ['price']. The"), ({"price": 2, "a": 1}, ": unknown ['a']. The"),
     ({"Price": 2}, ": missing ['price'], unknown ['Price']. The")],
)  # fmt: skip
def test_parameters_are_said_to_be_missing_or_unknown_where_they_are(client, parameters, words):
    assert client.put("/v1/studies/new", {"space": PRICE})[0] == 201
    status, said = client.post("/v1/studies/new/observations", {"parameters": parameters, "reward": 1.0})
    assert (status, said["error"]["field"]) == (422, "parameters")
    assert words in said["error"]["sentence"]


@pytest.mark.parametrize("digits", [16, 5000])  # Python makes no number of the latter
@pytest.mark.parametrize("address", ["explain/{}", "arms/{}"])
def test_a_number_in_an_address_may_have_any_digits(client, address, digits):
    path = f"{AT}/{address.format('9' * digits)}"
    status, said = client.get(path) if "explain" in address else client.put(path, {"retired": True})
    assert (status, said["error"]["kind"]) in ((404, "not_found"), (404, "no_decision"), (422, "invalid"))


def test_what_was_given_up_by_hand_has_missed_no_deadline(client):
    at = f"{AT}/decisions/{asked(client)['id']}"
    client.post(f"{at}/abandonment", {})
    said = client.put(f"{at}/reward", {"reward": 1.0})[1]
    assert (said["late"], said["counted"]) == (True, True)
    assert "deadline" not in said["sentence"]
    assert "given up" in said["sentence"]


def test_ids_are_good_for_their_tenant_alone():
    storage = MemoryStorage()
    with Client(storage, clock=Clock()) as client:
        client.put(AT, ARMS)
        decision, ids, study = asked(client), Ids(storage.note_once(SECRET, "00" * 32)), storage.find("shop")
        assert ids.which("default", study, decision["id"]) == 0
        assert ids.which("other", study, decision["id"]) == decision["id"]  # an event, which nobody asked for
