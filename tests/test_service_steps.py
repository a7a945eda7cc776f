"""Decisions that report the steps of their evaluation, over HTTP."""

import asyncio

import pytest

import nilregret as nr
from nilregret.client import AsyncClient
from nilregret.client import Client as Remote
from nilregret.serve.wire.settings import Limits, Settings
from nilregret.storage import MemoryStorage
from nilregret.testing.serving import Serving

from .service import AT, POLICY, Client, Clock, asked, plain, told
from .test_service_words import refused


@pytest.fixture
def client():
    with Client(MemoryStorage(), clock=Clock()) as made:
        made.put(AT, {"policy": plain(POLICY)})
        yield made


def at(decision):
    return f"{AT}/decisions/{decision['id']}"


def report(client, decision, step, value):
    return client.put(f"{at(decision)}/steps/{step}", {"value": value})


def test_a_decision_reports_and_is_stopped(client):
    first, second = asked(client), asked(client)
    for step, value in ((1, 0.5), (4, 0.75)):
        assert report(client, first, step, value) == (200, {"go_on": True, "verdict": "go"})
    assert report(client, first, 4, 0.75)[0] == 200  # a retry
    assert client.get(at(first))[1]["steps"] == [[1, 0.5], [4, 0.75]]
    assert "steps" not in client.get(at(second))[1]
    assert report(client, second, 0, -2)[0] == 200
    assert told(client, second, 1.0)[0] == 200
    status, said = client.post(f"{at(first)}/stop", {"reason": "it diverges"})
    assert (status, said["state"], said["reward"], said["reason"]) == (200, "stopped", None, "it diverges")
    assert (said["counted"], client.get(at(first))[1]["counted"]) == (True, True)  # It teaches its last value.
    assert client.post(f"{at(first)}/stop", {"reason": "another"}) == (200, said)
    assert client.get(f"{AT}/best")[1]["number"] == 1
    assert client.get(AT)[1]["trials"] == {"all": 2, "stopped": 1, "observed": 1}
    events = client.get(f"{AT}/events")[1]["events"]
    assert [(each["order"], each["kind"], each["number"]) for each in events] == [
        (1, "asked", 0), (2, "asked", 1), (3, "reported", 0), (4, "reported", 0), (5, "reported", 1), (6, "told", 1),
        (7, "stopped", 0),
    ]  # fmt: skip
    assert [events[3][name] for name in ("step", "value", "verdict", "at")] == [4, 0.75, "go", 1000.0]
    assert (events[6]["reason"], events[6]["at"], "step" in events[6]) == ("it diverges", 1000.0, False)
    page = client.get(f"{AT}/events", after=3, limit=2)[1]
    assert ([each["order"] for each in page["events"]], page["more"]) == ([4, 5], True)
    text = client.get("/metrics")[1].decode()
    for line in ('nilregret_trials{state="stopped",study="shop",tenant="default"} 1.0', "answers_total{study"):
        assert line in text
    assert text.count('answers_total{study="shop",tenant="default"} 2.0') == 2  # of the record, and of the process
    assert 'repeated_requests_total{study="shop",tenant="default"} 2.0' in text  # a report and a stop
    exported = client.get(f"{AT}/export", format="jsonl")[1]
    assert b'"steps":[[1,0.5],[4,0.75]]' in exported.replace(b" ", b"")


@pytest.mark.parametrize(("rule", "verdict", "reason"), [
    ({"type": "median", "finished": 2}, "stop", "median: 3 after step 1, and the median of finished trials there is "
     "1.5"),
    ({"type": "median", "finished": 2, "explore": 1}, "spared", "by hand after step 1"),
    ({"type": "halving", "steps": 2, "first": 0.5, "pause": True}, "wait", "halving: 3 after step 1, place 3 of 3"),
])  # fmt: skip
def test_a_rule_judges(rule, verdict, reason):
    with Client(MemoryStorage()) as client:
        space = {"x": {"type": "float", "low": 0, "high": 1}}
        body = {"space": space, "goal": "minimize", "policy": {"pruning": rule}}
        assert client.put(AT, body)[0] == 201
        assert client.put(AT, body)[0] == 200
        for value in (1.0, 2.0):
            decision = asked(client)
            report(client, decision, 1, value)
            told(client, decision, value)
        bad = asked(client)
        assert report(client, bad, 1, 3.0) == (200, {"go_on": verdict == "spared", "verdict": verdict})
        assert client.get(f"{AT}/decisions/{bad['id']}")[1]["state"] == "pending"  # The worker stops it.
        assert client.get(f"{AT}/events")[1]["events"][-1]["verdict"] == verdict
        assert client.post(f"{at(bad)}/stop", {})[1]["reason"] == reason
        assert report(client, bad, 1, 3.0)[1]["go_on"] is False  # A retry after the stop.


def test_a_paused_decision_asks_whether_it_may_go_on():
    with Client(MemoryStorage()) as client:
        rule = {"type": "halving", "steps": 2, "first": 0.5, "pause": True, "factor": 2}
        space = {"x": {"type": "float", "low": 0, "high": 1}}
        client.put(AT, {"space": space, "policy": {"pruning": rule}})
        first, paused, third, fourth = (asked(client) for _ in range(4))
        report(client, first, 1, 2.0)
        assert report(client, paused, 1, 1.0)[1] == {"go_on": False, "verdict": "wait"}
        for decision in (third, fourth):
            report(client, decision, 1, 0.0)
        events = client.get(f"{AT}/events")[1]["events"]
        assert report(client, paused, 1, 1.0)[1] == {"go_on": True, "verdict": "go"}
        assert client.get(f"{AT}/events")[1]["events"] == events


def test_an_answer_follows_a_stop_by_correction_alone(client):
    decision = asked(client)
    report(client, decision, 1, 0.5)
    client.post(f"{at(decision)}/stop", {})
    assert '"revise": true' in refused(told(client, decision, 1.0), 409, None)
    refused(report(client, decision, 2, 0.5), 409, None)
    refused(client.post(f"{at(decision)}/abandonment", {}), 409, None)
    status, said = told(client, decision, 1.0, revise=True)
    assert (status, said["state"], said["reward"]) == (200, "observed", 1.0)
    assert client.get(at(decision))[1]["steps"] == [[1, 0.5]]
    assert [each["kind"] for each in client.get(f"{AT}/events")[1]["events"]][-2:] == ["stopped", "corrected"]


@pytest.mark.parametrize(("step", "value", "status", "field"), [
    ("x", 1.0, 422, "step"), ("-1", 1.0, 422, "step"), ("1.5", 1.0, 422, "step"), ("9" * 400, 1.0, 422, "step"),
    ("3", 2.0, 409, None), ("2", 1.0, 409, None), ("4", "x", 422, "value"), ("4", None, 422, "value"),
    ("4", True, 422, "value"), ("4", 1e300, 422, "value"),
])  # fmt: skip
def test_a_report_that_is_refused_leaves_the_curve_as_it_is(client, step, value, status, field):
    decision = asked(client)
    assert report(client, decision, 3, 1.0)[0] == 200
    refused(report(client, decision, step, value), status, field)
    assert client.get(at(decision))[1]["steps"] == [[3, 1.0]]
    assert len(client.get(f"{AT}/events")[1]["events"]) == 2


def test_a_step_of_twenty_digits_is_too_large_and_not_the_wrong_form(client):
    assert "it must be at most" in refused(report(client, asked(client), "9" * 20, 1.0), 422, "step")


def test_what_cannot_report_or_stop_says_what_to_do(client):
    decision = asked(client)
    assert "abandonment" in refused(client.post(f"{at(decision)}/stop", {}), 409, None)
    refused(client.post(f"{at(decision)}/stop", {"reason": " "}), 422, "reason")
    refused(client.put(f"{AT}/decisions/nothing/steps/1", {"value": 1.0}), 404, "id")
    client.put("/v1/studies/two", {"arms": [[0.0], [1.0]], "objectives": {"a": "minimize", "b": "maximize"}})
    other = client.post("/v1/studies/two/decisions", {})[1]["decisions"][0]
    refused(client.put(f"/v1/studies/two/decisions/{other['id']}/steps/1", {"value": 1.0}), 422, "value")


def test_a_decision_whose_deadline_has_passed():
    with Client(MemoryStorage(), clock=Clock()) as client:
        rule = {"deadline": 60.0, "on_deadline": "reward", "default_reward": 0.0}
        client.put(AT, {"arms": [[0.0], [1.0]]} | rule)
        decision = asked(client)
        assert report(client, decision, 1, 0.5)[0] == 200
        client.service.workers._clock.now += 61.0
        assert "The deadline" in refused(report(client, decision, 2, 0.5), 409, None)
        status, said = client.post(f"{at(decision)}/stop", {})
        assert (status, said["state"], said["late"], said["counted"]) == (200, "observed", True, False)
        assert client.get(at(decision))[1]["steps"] == [[1, 0.5]]


def test_a_decision_reports_no_more_often_than_the_limit_says():
    with Client(MemoryStorage(), settings=Settings(limits=Limits(reports=2))) as client:
        client.put(AT, {"policy": plain(POLICY)})
        decision = asked(client)
        assert [report(client, decision, step, 1.0)[0] for step in (1, 2, 2, 1)] == [200] * 4
        assert "every tenth" in refused(report(client, decision, 3, 1.0), 422, None)
        assert told(client, decision, 1.0)[0] == 200


def test_reports_that_wait_share_a_transaction_and_none_takes_another_with_it(client):
    decisions = [asked(client) for _ in range(4)]

    async def several():
        values = [(each, value) for value in (1.0, 2.0) for each in decisions]
        return await asyncio.gather(
            *(client.send("PUT", f"{at(each)}/steps/1", {"value": value}) for each, value in values)
        )

    answers = client.run(several())
    assert sorted(status for status, _ in answers) == [200] * 4 + [409] * 4
    assert all(client.get(at(each))[1]["steps"] in ([[1, 1.0]], [[1, 2.0]]) for each in decisions)


def test_the_client_reports_and_stops():
    with Serving() as service, Remote(service.url) as client:
        study = client.create("steps", POLICY)
        first, second = study.ask(count=2)
        assert study.report(first, 1, 0.5) is True
        assert study.report(first, 1, 0.5) is True
        assert study.decision(first).steps == [(1, 0.5)]
        assert study.decision(second).steps == []
        for step, value, words in ((-1, 0.5, "step"), (1.5, 0.5, "step"), (2, float("nan"), "value")):
            with pytest.raises(nr.errors.InvalidInput, match=f"`{words}`"):
                study.report(first, step, value)
        with pytest.raises(nr.errors.TrialError, match=r"study\.abandon"):
            study.stop(second)
        assert study.stop(first, "it diverges").reason == "it diverges"
        assert [each.get("steps") for each in study.trials()] == [[[1, 0.5]], None]

        async def awaited():
            client = AsyncClient(service.url)
            study = await client.study("steps")
            assert await study.report(second, 3, 0.25)
            await study.stop(second)
            steps = (await study.decision(second)).steps
            await client.close()
            return steps

        assert asyncio.run(awaited()) == [(3, 0.25)]
        assert [each.kind for each in study.events()][-2:] == ["reported", "stopped"]
