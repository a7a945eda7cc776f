"""Observations in bulk over HTTP: JSON lines in one request, taken in pieces, and resumed by their key."""

import asyncio
import json
import math
import warnings

import httpx
import msgspec
import numpy as np
import pandas as pd
import pytest

import nilregret as nr
from nilregret.client import Client as Service
from nilregret.serve.api import bulk
from nilregret.serve.auth import bodies
from nilregret.serve.auth.tokens import OPERATOR
from nilregret.serve.wire.problems import Problem
from nilregret.serve.wire.settings import Limits, Settings
from nilregret.storage import MemoryStorage, SqlStorage
from nilregret.testing.serving import Serving

from .service import AT, Client, plain
from .test_evaluation_logs import written
from .test_warm_start import lived

CONTEXT = nr.Space(hour=nr.Float(0, 24))
POLICY = nr.auto(nr.Arms(range(3)), context=CONTEXT, reward="bernoulli")
TO = f"{AT}/observations"
NDJSON = {"Content-Type": "application/x-ndjson"}


def rows(count, **more):
    return [
        {"arm": i % 3, "context": {"hour": i % 24}, "propensity": 0.25, "reward": i % 2} | more for i in range(count)
    ]


def lines(found):
    return b"".join(msgspec.json.encode(row) + b"\n" for row in found)


@pytest.fixture
def client(tmp_path):
    with Client(SqlStorage(f"sqlite:///{tmp_path}/a.db")) as made:
        made.put(AT, {"policy": plain(POLICY), "seed": 3, "propensities": True})
        yield made


def send(client, body, key="log"):
    return client.post(TO, raw=body, key=key, headers=NDJSON)


def trials(client):
    return client.run(client.service.workers.get(OPERATOR, "shop")).study.trials


def said(rows, recorded, without=0, new=None, unread=()):
    new = rows if new is None else new
    return {"rows": rows, "recorded": recorded, "without_propensity": without, "new": new, "unread": [*unread]}


def test_lines_are_recorded_as_add_from_records_them(client):
    body = [*rows(250), {"arm": 1, "context": {"hour": 3}, "reward": None}, rows(1, propensity=None, mood="gay")[0]]
    assert send(client, lines(body)) == (200, said(252, 251, 1, unread=["mood"]))
    own = nr.Study(POLICY, seed=3, propensities=True)
    with pytest.warns(nr.errors.NoRegretWarning):
        own.add_from(body)
    for trial, known in zip(trials(client), own.trials, strict=True):
        assert (trial.arm, trial.reward, trial.propensity) == (known.arm, known.reward, known.propensity)
        assert trial.context_parameters == known.context_parameters
    assert client.post(f"{AT}/decisions", {"context": {"hour": 1}})[0] == 201


def test_the_same_lines_again_record_nothing_and_more_of_them_go_on(client):
    body = rows(230)
    assert send(client, lines(body[:130])) == (200, said(130, 130))
    assert send(client, lines(body[:130])) == (200, said(130, 130, new=0))
    assert send(client, lines(body)) == (200, said(230, 230, new=100))
    assert len(trials(client)) == 230
    for other in (lines(rows(230, reward=1)), lines(body[:100])):
        status, answer = send(client, other)
        assert (status, answer["error"]["kind"]) == (422, "key_reused")
        assert "230 lines are on record, and the body does not begin with them" in answer["error"]["sentence"]
    assert send(client, lines(body), key="another") == (200, said(230, 230))


def test_a_long_stretch_without_rewards_is_passed_over(client):
    body = lines(rows(100)) + b'{"arm": 1, "context": {"hour": 1}}\n' * 250 + lines(rows(10))
    assert send(client, body[: len(lines(rows(100)))]) == (200, said(100, 100))
    assert send(client, body) == (200, said(360, 110, new=260))


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (b'{"arm": 7, "context": {"hour": 1}, "reward": 1}', "Row 151 of the body has 7 in column arm: it must be"),
        (b'{"arm": 1, "context": {"hour": 99}, "reward": 1}', "Row 151 of the body: Parameter `hour` is 99"),
        (b'{"arm": 1, "context": {"hour": 9}, "reward": 1, "propensity": 2}', "Row 151 of the body: `propensity` is 2"),
        (b'{"arm": 1, "context": {"hour": 1}, "reward": 0.5}', "Row 151 of the body: "),
        (b'{"arm": 1, "context": {"hour": 1}, "reward": NaN}', "Row 151 of the body is no JSON object"),
        (b'{"arm": 1, "arm": 2, "context": {"hour": 1}, "reward": 1}', "'arm' stands twice"),
        (b'{"arm": 1, "context": {"hour": 1}, "reward": 1, "unit": {"a": 1}}', "in column unit: it must be a text"),
        (b"[1]", "Row 151 of the body is no JSON object"),
    ],
)
def test_a_wrong_line_is_named_and_mended(wrong, sentence, client):
    body = lines(rows(150))
    status, answer = send(client, body + wrong + b"\n" + lines(rows(50)))
    assert status in (400, 422)
    assert sentence in answer["error"]["sentence"]
    assert "Nothing was recorded" not in answer["error"]["sentence"]
    if status == 422:
        assert "Of the lines before, 100 are taken and 100 of them on record" in answer["error"]["sentence"]
    assert len(trials(client)) == 100
    assert send(client, body + lines(rows(51))) == (200, said(201, 201, new=101))
    assert len(trials(client)) == 201


def test_a_key_is_needed_and_no_other_request_has_it(client):
    status, answer = client.post(TO, raw=lines(rows(2)), headers=NDJSON)
    assert (status, answer["error"]["field"]) == (422, "Idempotency-Key")
    assert client.post(TO, rows(1)[0] | {"propensity": None}, key="one")[0] in (201, 422)
    client.post(f"{AT}/decisions", {"context": {"hour": 1}}, key="two")
    assert "The body has no line" in send(client, b"\n")[1]["error"]["sentence"]
    assert send(client, lines(rows(2)), key="two")[1]["error"]["kind"] == "key_reused"


def test_the_same_lines_by_two_requests_at_once(client):
    """Both go on after what is on record, so one of them is asked to wait, and nothing is recorded twice."""

    async def both():
        sent = [client.send("POST", TO, raw=lines(rows(300)), key="log", headers=NDJSON) for _ in range(2)]
        return await asyncio.gather(*sent)

    answers = client.run(both())
    assert sorted(status for status, _ in answers) in ([200, 200], [200, 503])
    assert len(trials(client)) == 300


def test_others_are_answered_meanwhile(client):
    """A decision that comes while lines are sent is made before the last of them."""

    async def body():
        for place in range(0, 400, 50):
            yield lines(rows(400)[place : place + 50])
            if place == 200:
                status, _ = await client.send("POST", f"{AT}/decisions", {"context": {"hour": 2}})
                assert status == 201

    assert client.run(client.send("POST", TO, raw=body(), key="log", headers=NDJSON)) == (200, said(400, 400))
    (asked,) = [trial.number for trial in trials(client) if trial.state == "pending"]
    assert 100 <= asked < 400


@pytest.mark.parametrize("after", [1, 2])
def test_what_a_kill_interrupts_is_resumed(after, client, monkeypatch, tmp_path):
    """Units, kept arms and slates of an export hold together over the interruption."""
    old = lived(250, sticky=True)
    client.put("/v1/studies/moved", {"policy": plain(old.policy), "seed": 3, "propensities": True})
    path = "/v1/studies/moved/observations"
    body = old.export(tmp_path / "log.jsonl").read_bytes()
    taken = bulk._Load._take

    async def take(self, piece):
        if self.rows == 100 * after:
            raise Problem(503, "storage", "the end")
        await taken(self, piece)

    with monkeypatch.context() as patched:
        patched.setattr(bulk._Load, "_take", take)
        assert client.post(path, raw=body, key="log", headers=NDJSON)[0] == 503
    assert client.post(path, raw=body, key="log", headers=NDJSON)[1]["new"] == 250 - 100 * after
    moved = client.run(client.service.workers.get(OPERATOR, "moved")).study
    for trial, was in zip(moved.trials, old.trials, strict=True):
        assert (trial.arm, trial.reward, trial.propensity, trial.metrics, trial.visit) == (
            was.arm, was.reward, was.propensity, was.metrics, was.visit)  # fmt: skip


def test_a_transaction_that_takes_long_is_shared(tmp_path):
    """Each transaction takes a part of a piece, and other commands of the study come between."""
    settings = Settings(turn_seconds=1e-9)
    with Client(SqlStorage(f"sqlite:///{tmp_path}/a.db"), settings=settings) as client:
        client.put(AT, {"policy": plain(POLICY), "seed": 3})
        assert send(client, lines(rows(20))) == (200, said(20, 20))
        assert send(client, lines(rows(30))) == (200, said(30, 30, new=10))
        assert len(trials(client)) == 30


# -- limits ----------------------------------------------------------------------------------------------------------


def test_limits_of_size():
    limits = Limits(lines_bytes=2000, body_bytes=200)
    with Client(MemoryStorage(), settings=Settings(limits=limits)) as client:
        client.put(AT, {"arms": [[0], [1], [2]]})
        row = {"arm": 1, "reward": 0.5}
        assert send(client, lines([row] * 40))[0] == 200  # more than `body_bytes`
        assert send(client, lines([row] * 200), key="b")[0] == 413
        assert send(client, b'{"a": "' + b"x" * 500 + b'"}', key="c")[0] in (413, 422)
        assert client.post(TO, raw=lines([row] * 40))[0] == 413  # of one observation
        assert client.post(f"{AT}/decisions", raw=b"{}", headers=NDJSON)[0] == 415


def test_lines_are_no_decisions_that_wait():
    """A decision after many lines does not count all trials, and the limit of those that wait still holds."""
    with Client(MemoryStorage(), settings=Settings(limits=Limits(pending=20))) as client:
        client.put(AT, {"arms": [[0], [1], [2]]})
        for key in ("a", "b"):
            assert client.post(f"{AT}/decisions", {"count": 10})[0] == 201
            assert send(client, lines([{"arm": 1, "reward": 0.5}] * 150), key=key)[0] == 200
        counts = client.run(client.service.workers.get(OPERATOR, "shop")).counts
        assert len(trials(client)) - counts._checked == 20
        assert client.post(f"{AT}/decisions")[0] == 429


def test_a_slow_part_is_refused():
    async def receive():
        await asyncio.sleep(60)

    async def wait():
        body = bodies.LongBody(receive, {"transfer-encoding": "chunked"}, Limits(body_seconds=0.01), None)
        with pytest.raises(Problem, match="next part of the body did not come within"):
            await body()

    asyncio.run(wait())


def test_a_caller_who_loses_access_sends_no_further_part():
    async def revoked():
        return False

    async def wait():
        body = bodies.LongBody(None, {"transfer-encoding": "chunked"}, Limits(), revoked)
        with pytest.raises(bodies.AccessRevoked):
            await body()

    asyncio.run(wait())


def test_the_document_says_how_lines_are_taken(client):
    said = client.get("/openapi.json")[1]["paths"]["/v1/studies/{name}/observations"]["post"]
    assert {"application/json", "application/x-ndjson"} == said["requestBody"]["content"].keys()
    assert "the same lines with the same key go on" in json.dumps(said)
    assert {"200", "201"} <= said["responses"].keys()


# -- the client ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def remote():
    with Serving() as service:
        yield Service(service.url)


def made(remote, name, **more):
    return remote.create(name, POLICY, propensities=True, **more)


def test_the_client_sends_what_add_from_reads(remote, tmp_path):
    old = lived(60)
    for ending in ("csv", "jsonl", "parquet"):
        study = remote.create(f"moved-{ending}", old.policy, propensities=True)
        path = old.export(tmp_path / f"log.{ending}")
        assert study.add_from(path) == bulk.m.ObservationsTaken(60, 60, 0, 60, [])
        new = nr.Study(old.policy, propensities=True)
        new.add_from(path)
        found = [(each["arm"], each["context"], each["propensity"], each["unit"], each["event"], each["facts"])
                 for each in study.trials()]  # fmt: skip
        assert found == [(each.arm, each.context_parameters, each.propensity, each.unit, each.event, each.facts)
                         for each in new.trials]  # fmt: skip
        with pytest.warns(nr.errors.NoRegretWarning, match="All 60 rows of .* are on record already"):
            study.add_from(path)
        assert len(study.trials()) == 60


def test_the_client_says_of_a_file_what_add_from_says(remote, tmp_path):
    study = remote.create("limits", nr.auto(nr.Space(heat=nr.Int(20, 90)), constraints=1))
    path = tmp_path / "weeks.csv"
    path.write_text("heat [C];reward;constraints.0;remarks\n50;1.250;1.238;\n60;2.500;1.291;\n70;;;broken\n")
    with pytest.raises(nr.errors.InvalidInput, match=r"1\.250 in column reward, which may be 1250 or 1\.25"):
        study.add_from(path)
    with pytest.warns(nr.errors.NoRegretWarning) as said:
        assert study.add_from(path, decimal=".").recorded == 2
    notes = " ".join(str(each.message) for each in said)
    for words in ("1 of 3 rows", "were left out", "not read: 'remarks'", "All 2 values of `constraints.0`"):
        assert words in notes
    assert [each["reward"] for each in study.trials()] == [1.25, 2.5]
    trial = study.ask()
    asked = f"{trial.number},{trial.parameters['heat']},failed,burned\n"
    path.write_text(f"number,heat,reward,remarks\n{asked}" + ",50,1.5,\n" * bulk.PIECE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # The remark is read, though not in the last piece.
        assert study.add_from(path).recorded == bulk.PIECE + 1
    path.write_text("heat,reward,constraints.0\n50,,-0.5\n")
    with pytest.raises(nr.errors.InvalidInput, match=r"Row 1 .*`constraints.0` has a value and `reward` has none"):
        study.add_from(path)
    logged = made(remote, "logged")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Many decisions of a log have no reward.
        assert (
            logged.add_from({"arm": [0, 1], "hour": [1, 2], "propensity": [0.5, 0.5], "reward": [1, None]}).recorded
            == 1
        )


def test_the_client_sends_logs_and_tables(remote, tmp_path):
    study = made(remote, "logs")
    log = written(tmp_path, "1:-1:0.4 |user hour:3\n3:0:0.2 |user hour:4\n")
    study.add_from(log)
    frame = pd.DataFrame({"arm": [1, 2], "context.hour": [1.0, 2.0], "propensity": [0.5, np.nan], "reward": [1, 0]})
    for _ in range(2):  # Rows in memory are new at each call.
        with pytest.warns(nr.errors.NoRegretWarning, match="1 of 2 rows have no propensity"):
            study.add_from(frame)
    assert [(each["arm"], each["reward"], each.get("propensity")) for each in study.trials()] == [
        (0, 1.0, 0.4), (2, 0.0, 0.2), (1, 1.0, 0.5), (2, 0.0, None), (1, 1.0, 0.5), (2, 0.0, None)]  # fmt: skip
    losses = remote.create("losses", nr.auto(nr.Arms(range(3)), context=CONTEXT), goal="minimize", propensities=True)
    losses.add_from(log)
    assert [each["reward"] for each in losses.trials()] == [-1.0, 0.0]


def test_the_client_refuses_what_json_would_lose(remote):
    study = made(remote, "refused")
    with pytest.raises(nr.errors.InvalidInput, match="Row 2 of `table` has inf in column reward: it must be finite"):
        study.add_from([{"arm": 0, "context": {"hour": 1}, "reward": reward} for reward in (1, math.inf)])
    with pytest.raises(nr.errors.InvalidInput, match=r"`table` is \[\]: it must be the path of a file"):
        study.add_from([])
    with pytest.warns(nr.errors.NoRegretWarning, match="No row of `table` has a reward, so nothing was recorded"):
        study.add_from([{"arm": 0, "context": {"hour": 1}, "reward": None}, {"arm": 0, "context": {"hour": 1}}])
    with pytest.raises(nr.errors.InvalidInput, match="Row 1 of the body has 9 in column arm"):
        study.add_from([{"arm": 9, "context": {"hour": 1}, "reward": 1}])
    with pytest.raises(nr.errors.InvalidInput, match="which is no value of JSON"):
        study.add_from([{"arm": 1, "context": {"hour": 1}, "reward": 1, "facts": {"x": object()}}])


@pytest.mark.parametrize("count", [2000, pytest.param(100_000, marks=pytest.mark.nightly)])
def test_a_refused_row_reaches_the_client_through_the_socket(count, remote):
    """The rest of a long body is read before the answer, so that the client reads it."""
    study = made(remote, f"long-{count}")
    found = rows(count)
    found[150]["arm"] = 5
    with pytest.raises(nr.errors.InvalidInput, match=r"Row 151 of the body has 5 in column arm.* 100 are taken"):
        study.add_from(found, key="long")
    found[150]["arm"] = 1
    if count > 2000:
        assert study.add_from(found[:2000], key="long").new == 1900


def test_the_client_waits_longer_for_a_body_in_parts(monkeypatch):
    waited, request = {}, httpx.Client.request

    def noted(self, method, url, **more):
        waited[url.rpartition("/")[2]] = more["timeout"].read
        return request(self, method, url, **more)

    monkeypatch.setattr(httpx.Client, "request", noted)
    with Serving() as service:
        study = Service(service.url, timeout=7.0).create("shop", nr.auto(nr.Arms(range(2)), reward="bernoulli"))
        assert study.add_from([{"arm": 0, "reward": 1.0}]).recorded == 1
    assert waited == {"shop": 7.0, "observations": 3600.0}
