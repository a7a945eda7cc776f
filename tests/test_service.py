"""The service does what a study does, over HTTP."""

import asyncio
import json
import math

import msgspec
import numpy as np
import pytest

import nilregret as nr
from nilregret.serve.watch.metrics import regret_bound
from nilregret.serve.wire.decision_ids import IdempotentRequest
from nilregret.serve.wire.problems import Problem
from nilregret.serve.wire.settings import Limits, Settings
from nilregret.serve.work.events import Stream
from nilregret.slots.explore import UniformExploration
from nilregret.storage import MemoryStorage, SqlStorage
from nilregret.storage.base import Storage

from .asgi import spoken
from .service import ARMS, AT, POLICY, Client, asked, plain, told


@pytest.fixture
def client():
    with Client(MemoryStorage()) as made:
        made.put(AT, {"policy": plain(POLICY), "seed": 3})
        yield made


# -- studies -----------------------------------------------------------------------------------------------------------


def test_a_study_is_put_once_and_again(client):
    body = {"policy": plain(POLICY), "seed": 3}
    assert client.put(AT, body)[0] == 200
    assert client.put(AT, body | {"policy": POLICY.to_json()})[0] == 200  # the text itself
    status, said = client.put(AT, body | {"seed": 4})
    assert status == 409
    assert "seed (3 then, 4 now)" in said["error"]["sentence"]
    assert said["error"]["field"] == "seed"
    other = plain(nr.gp_ucb(ARMS, nr.SquaredExponential(0.3), noise=0.1))
    status, said = client.put(AT, body | {"policy": other})
    assert status == 409
    assert "lengthscale" in said["error"]["sentence"]
    _, said = client.put(AT, body | {"deadline": 60.0})
    assert "other values: deadline (nothing then, 60.0 now). A study" in said["error"]["sentence"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"deadline": 60.0}, "deadline (3600.0 then, 60.0 now)"),
        ({"arms": [[0], [1]]}, "arms[2] ([2.0] then, nothing now)"),
        ({"policy": {"algorithm": "auto"}}, 'policy.reward ("bernoulli" then, nothing now)'),
        ({"propensities": False}, "propensities (true then, false now)"),
    ],
)
def test_another_study_is_told_by_entries_of_the_request_alone(client, change, said):
    body = {"arms": [[0], [1], [2]], "policy": {"algorithm": "auto", "reward": "bernoulli"}, "propensities": True}
    body |= {"deadline": 3600.0, "on_deadline": "reward", "default_reward": 0.0}
    assert client.put("/v1/studies/rates", body)[0] in (200, 201)
    assert (
        f"with other values: {said}. A study" in client.put("/v1/studies/rates", body | change)[1]["error"]["sentence"]
    )


def test_warnings_name_entries_of_requests(client):
    x = {"type": "float", "low": 0, "high": 1}
    policy = {"algorithm": "gp_ucb", "noise": 0.1, "kernel": {"type": "matern"}}
    client.put("/v1/studies/box", {"space": {"x": x}, "policy": policy, "propensities": True})
    for _ in range(4):
        client.post("/v1/studies/box/observations", {"parameters": {"x": 0.5}, "reward": 100})
    unused, far = sorted(client.get("/v1/studies/box")[1]["cautions"])
    assert unused.startswith("Propensities have no use here. The study does not decide among arms.")
    assert "Give `prior_mean` a typical reward" in far
    assert '`"refit": {"every": 10}` of a policy' in far
    with pytest.warns(nr.errors.NoRegretWarning, match="Propensities have no use here"):
        nr.Study(nr.auto(nr.Box(0, 1)), propensities=True).add_from(
            [{"point.0": 0.1 * i, "reward": i} for i in range(4)]
        )


def test_a_study_from_a_recipe(client):
    recipe = {
        "space": {
            "price": {"type": "float", "low": 1.0, "high": 9.0}, "kind": {"type": "choice", "options": ["a", "b"]},
        },
        "context": {"day": {"type": "int", "low": 0, "high": 6}}, "policy": {"algorithm": "auto", "noise": 0.5},
        "goal": "minimize",
        "about": {"units": "EUR"},
    }  # fmt: skip
    status, said = client.put("/v1/studies/new", recipe)
    assert (status, said["algorithm"], said["goal"], said["about"]) == (201, "auto", "minimize", {"units": "EUR"})
    space = nr.Space(price=nr.Float(1.0, 9.0), kind=nr.Choice("a", "b"))
    expected = nr.auto(space, context=nr.Space(day=nr.Int(0, 6)), noise=0.5)
    assert client.get("/v1/studies/new")[1]["policy"] == plain(expected)
    status, said = client.post("/v1/studies/new/decisions", {"context": {"day": 3}})
    assert said["decisions"][0]["context"] == {"day": 3}
    assert said["decisions"][0]["parameters"].keys() == {"price", "kind"}


def test_a_recipe_for_clicks(client):
    recipe = {"arms": [[0.0], [0.5], [1.0]], "policy": {"reward": "bernoulli"}}
    assert client.put("/v1/studies/clicks", recipe)[0] == 201
    expected = nr.auto(nr.Arms([[0.0], [0.5], [1.0]]), reward="bernoulli")
    assert client.get("/v1/studies/clicks")[1]["policy"] == plain(expected)
    decision = client.post("/v1/studies/clicks/decisions")[1]["decisions"][0]
    path = f"/v1/studies/clicks/decisions/{decision['id']}/reward"
    assert client.put(path, {"reward": 0.5})[0] == 422
    assert client.put(path, {"reward": True})[1]["reward"] == 1.0


BUDGET = {"constraints": 1, "policy": {"reward": "bernoulli", "constraints": "on_average"}}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"arms": [[0.0], [1.0]], "policy": {"reward": "clicks"}}, "bernoulli"),
        ({"arms": [[0.0], [1.0]], "policy": {"reward": 1}}, "reward"),
        ({"arms": [[0.0], [1.0]], "policy": {"switching": "lazy"}}, "unknown switching"),
        ({"polcy": {}}, "there is no entry `polcy`. Did you mean 'policy'?"),
        ({}, "`space` or `arms` is missing"),
        ({"policy": {"type": "Policy"}}, "description"),
        ({"policy": {"type": "os.system"}}, "Unknown type"),
        ({"policy": {"type": "Float", "low": 0.0, "high": 1.0, "log": False}}, "describes no policy"),
        ({"policy": "{"}, "JSON"),
        ({"policy": plain(POLICY), "grid": 3}, "give one or the other"),
        ({"space": {"x": {"type": "float", "low": 0, "high": 1, "hi": 2}}}, "hi"),
        ({"arms": [[0.0], [1.0]], "policy": {"nois": 1.0}}, "nois"),
        ({"arms": [[0.0], [1.0]], "deadline": -1.0}, ">"),
        ({"arms": [[0.0], [1.0]], "on_deadline": "reward"}, "`deadline` is missing"),
        ({"arms": [[0.0], [1.0]], "on_deadline": "reward", "deadline": 3.0}, "`default_reward` is missing"),
        ({"arms": [[0.0], [1.0]], "on_deadline": "silence", "deadline": 3.0}, "contexts, take one."),
        (
            {"arms": [[0.0], [1.0]], "on_deadline": "silence", "deadline": 3.0, **BUDGET},
            "not beside constraints, which",
        ),
        ({"arms": [[0.0], [1.0]], "default_reward": 1.0}, "`default_reward` is 1.0"),
        ({"arms": [[0.0], [1.0]], "about": {"service": 1}}, "call that fact otherwise"),
    ],
)
def test_what_makes_no_study_is_said(client, body, words):
    status, said = client.put("/v1/studies/new", body)
    assert status == 422
    assert words in said["error"]["sentence"]
    assert client.get("/v1/studies/new")[0] == 404
    assert [each["name"] for each in client.get("/v1/studies")[1]["studies"]] == ["shop"]


def test_no_more_at_once_than_the_limit_says():
    with Client(MemoryStorage(), settings=Settings(limits=Limits(count=2))) as client:
        client.put(AT, {"policy": plain(POLICY)})
        assert client.post(f"{AT}/decisions", {"count": 2})[0] == 201
        assert client.post(f"{AT}/decisions", {"count": 3})[0] == 422
        assert client.post(f"{AT}/rewards", {"items": [{"id": "x", "reward": 1.0}] * 3})[0] == 422
        assert client.get(f"{AT}/predict", points="[[0],[0],[0]]")[0] == 422


def test_names(client):
    assert client.put("/v1/studies/a%2Fb", {"arms": [[0.0], [1.0]]})[0] == 404
    assert client.put("/v1/studies/%20", {"arms": [[0.0], [1.0]]})[0] == 422
    assert client.put("/v1/studies/" + "x" * 200, {"arms": [[0.0], [1.0]]})[0] == 201
    for name, why in (("x" * 201, "has 201 characters"), ("~~610a62", "one line")):
        status, said = client.put(f"/v1/studies/{name}", {"arms": [[0.0], [1.0]]})
        assert (status, said["error"]["field"], why in said["error"]["sentence"]) == (422, "name", True)


# -- decisions and rewards ---------------------------------------------------------------------------------------------


def test_a_trajectory_is_that_of_a_study_to_the_bit():
    contexts = nr.Box([0.0], [1.0])
    box = nr.Box([0.0], [1.0])
    for domain, more in ((ARMS, {}), (box, {"context": contexts})):
        policy = nr.gp_ts(domain, nr.SquaredExponential(0.2), noise=0.1, norm_bound=1.0, **more)
        study = nr.Study(policy, seed=7)
        study.quiet = True
        with Client(MemoryStorage()) as client:
            client.put(AT, {"policy": plain(policy), "seed": 7})
            rng = np.random.default_rng(0)
            ids = {}
            for turn in range(14):
                context = rng.uniform(size=1).tolist() if more else None
                count = 1 + turn % 2
                trials = study.ask(context, count=count)
                status, said = client.post(f"{AT}/decisions", {"context": context, "count": count})
                assert status == 201
                for trial, decision in zip(trials, said["decisions"], strict=True):
                    assert decision["number"] == trial.number
                    assert decision["point"] == trial.point.tolist()
                    assert decision["arm"] == trial.arm
                    ids[trial.number] = decision["id"]
                for number in [t.number for t in study.trials if t.state == "pending"][: rng.integers(3)]:
                    reward = float(rng.normal())
                    if turn % 5 == 4:
                        study.fail(number, "broken")
                        assert client.post(f"{AT}/decisions/{ids[number]}/failure", {"reason": "broken"})[0] == 200
                    else:
                        study.tell(number, reward)
                        assert client.put(f"{AT}/decisions/{ids[number]}/reward", {"reward": reward})[0] == 200
            grid = [[0.1], [0.5], [0.9]] if domain is box else ARMS.points[:3].tolist()
            context = [0.5] if more else None
            known = {"points": json.dumps(grid)} | ({"context": json.dumps(context)} if more else {})
            mean, std = study.predict(grid, context=context)
            assert client.get(f"{AT}/predict", **known)[1] == {"mean": mean.tolist(), "std": std.tolist()}
            lower, upper = study.bounds(grid, context=context)
            assert client.get(f"{AT}/bounds", **known)[1] == {"lower": lower.tolist(), "upper": upper.tolist()}
            best = study.best(context=context)
            asked_for = {} if context is None else {"context": json.dumps(context)}
            assert client.get(f"{AT}/best", **asked_for)[1]["number"] == best.number
            assert client.get(f"{AT}/explain/5")[1]["chosen"]["point"] == study.trials[5].point.tolist()
            said = client.get(AT)[1]
            assert said["width"] == (study.width if math.isfinite(study.width) else None)
            assert said["trials"]["all"] == len(study.trials)


def test_ids_open_nothing_but_their_decision(client):
    first, second = asked(client), asked(client)
    client.put("/v1/studies/other", {"policy": plain(POLICY), "seed": 3})
    assert client.post("/v1/studies/other/decisions", {})[0] == 201
    assert first["id"][:8] != second["id"][:8]  # the numbers are hidden
    for wrong in (
        first["id"][:-1] + "A" if first["id"][-1] != "A" else first["id"][:-1] + "B",
        "0",
        "A" * 32,
        "%C3%A4",
    ):
        status, said = client.put(f"{AT}/decisions/{wrong}/reward", {"reward": 1.0})
        assert (status, said["error"]["kind"]) == (404, "no_decision")
    assert client.put(f"/v1/studies/other/decisions/{first['id']}/reward", {"reward": 1.0})[0] == 404
    assert told(client, first, 1.0)[0] == 200


def test_the_same_request_again_gets_the_same_decisions(client):
    first = client.post(f"{AT}/decisions", {"count": 3}, key="one")
    assert client.post(f"{AT}/decisions", {"count": 3}, key="one") == first
    status, said = client.post(f"{AT}/decisions", {"count": 2}, key="one")
    assert (status, said["error"]["kind"]) == (422, "key_reused")
    decision = first[1]["decisions"][0]
    told(client, decision, 1.0)
    assert client.post(f"{AT}/decisions", {"count": 3}, key="one") == first
    assert client.get(AT)[1]["trials"]["all"] == 3
    assert client.post(f"{AT}/decisions", {"count": 3}, key="two")[1] != first[1]
    assert client.post(f"{AT}/decisions", {}, key="x" * 300)[0] == 422


def test_a_key_is_of_one_kind_of_request():
    body = msgspec.defstruct("Body", [])()
    first, other = (IdempotentRequest.of(kind, "one", body) for kind in ("decisions", "observations"))
    assert first.key == other.key
    assert first.body != other.body


def test_many_with_one_key_at_once_get_one_decision(client):
    async def limit():
        return await asyncio.gather(*(client.send("POST", f"{AT}/decisions", {}, key="k") for _ in range(40)))

    answers = client.run(limit())
    assert {json.dumps(said) for _, said in answers} == {json.dumps(answers[0][1])}
    assert client.get(AT)[1]["trials"]["all"] == 1


def test_a_client_gets_what_it_has_not_answered(client):
    first = asked(client, client="w1")
    assert asked(client, client="w1") == first
    assert asked(client, client="w2") != first
    told(client, first, 0.5)
    assert asked(client, client="w1")["number"] == 2


def test_a_reward_the_same_again_another_one_and_what_is_none(client):
    decision = asked(client)
    status, said = told(client, decision, 1.5)
    assert (status, said["state"], said["reward"], said["late"], said["counted"]) == (200, "observed", 1.5, False, True)
    assert told(client, decision, 1.5) == (200, said)
    assert told(client, decision, 1.6)[0] == 409
    other = asked(client)
    assert told(client, other, True)[1]["reward"] == 1.0  # a click
    third = asked(client)
    path = f"{AT}/decisions/{third['id']}/reward"
    for raw in (b'{"reward": NaN}', b'{"reward": Infinity}', b'{"reward": 1e999}', b"", b"[", b"\xff"):
        assert client.put(path, raw=raw)[0] in (400, 422)
    assert client.put(path, {"reward": 1e300})[0] == 422
    assert client.put(path, {})[0] == 422
    status, said = client.put(path, {"reward": 1.0, "rewrd": 2.0})
    assert (status, "rewrd" in said["error"]["sentence"]) == (422, True)
    assert client.get(f"{AT}/decisions/{third['id']}")[1]["state"] == "pending"


def test_constraint_values_come_with_the_reward_or_before_it():
    policy = nr.gp_ucb(ARMS, nr.SquaredExponential(0.2), noise=0.1, constraints=nr.EveryRound(count=2))
    with Client(MemoryStorage()) as client:
        client.put(AT, {"policy": plain(policy)})
        first, second = asked(client), asked(client)
        assert told(client, first, 1.0, constraints=[-0.1, 0.2])[0] == 200
        status, said = client.put(f"{AT}/decisions/{second['id']}/reward", {"constraints": [0.1, 0.2]})
        assert (status, said["state"], said["constraints"]) == (200, "pending", [0.1, 0.2])
        assert told(client, second, 1.0)[1]["constraints"] == [0.1, 0.2]
        assert told(client, asked(client), 1.0, constraints=[0.1])[0] == 422
        text = client.get("/metrics")[1].decode()
        assert 'nilregret_violations_total{study="shop",tenant="default"} 2.0' in text
        assert client.get(f"{AT}/bounds", channel=2)[0] == 200


def test_several_rewards_each_with_its_status(client):
    decisions = [asked(client) for _ in range(3)]
    told(client, decisions[1], 9.0)
    items = [{"id": each["id"], "reward": 1.0} for each in decisions] + [{"id": "none", "reward": 1.0}]
    status, said = client.post(f"{AT}/rewards", {"items": items})
    assert status == 200
    assert [each["status"] for each in said["items"]] == [200, 409, 200, 404]
    assert said["items"][1]["error"]["kind"] == "conflict"
    assert said["items"][0]["answer"]["reward"] == 1.0
    assert client.get(AT)[1]["trials"]["observed"] == 3


def test_observed_at_is_kept(client):
    decision = asked(client)
    assert told(client, decision, 1.0, observed_at=5e12)[0] == 422
    assert told(client, decision, 1.0, observed_at=12.5)[0] == 200
    assert client.get(f"{AT}/decisions/{decision['id']}")[1]["observed_at"] == 12.5


def test_how_probable_a_decision_was(client):
    assert asked(client, propensity=True)["propensity"] == 1 / 20  # all arms tie before the first answer
    decision = asked(client, among=[0])  # An arm at the end has no two neighbours that tie.
    told(client, decision, 1.0)
    assert asked(client, propensity=True)["propensity"] == 1.0
    assert asked(client)["propensity"] is None


def test_what_may_be_done_this_time(client):
    assert asked(client, among=[3, 4])["arm"] in (3, 4)
    assert asked(client, exclude=list(range(1, 20)))["arm"] == 0
    assert client.post(f"{AT}/decisions", {"among": [99]})[0] == 422
    assert client.post(f"{AT}/decisions", {"context": [1.0]})[0] == 422


# -- observations ------------------------------------------------------------------------------------------------------


def test_observations_and_an_apprentice(client):
    twin = nr.Study(POLICY, seed=3)
    for arm in (4, 7, 4):
        other = nr.Study(POLICY, seed=3)
        for trial in twin.trials:
            other.add(trial.point, trial.reward)
        would = other.ask().arm
        status, said = client.post(f"{AT}/observations", {"arm": arm, "reward": 0.1 * arm, "compare": True})
        assert (status, said["would"]["arm"], said["would"]["same"]) == (201, would, would == arm)
        twin.add(ARMS.points[arm], 0.1 * arm)
    best = client.get(f"{AT}/best")[1]["arm"]
    status, said = client.get(f"{AT}/apprentice")
    assert (said["compared"], best) == (3, twin.best().arm)
    assert said["mean_reward"] == pytest.approx(0.5)
    assert asked(client)["arm"] == twin.ask().arm  # comparing changes nothing


def test_an_apprentice_says_what_would_have_been_mere_chance(client):
    """Nothing that is observed is a uniform round, so that one is due in each."""
    explores = nr.gp_ucb(ARMS, nr.SquaredExponential(0.2), noise=0.1, explore=UniformExploration(0.5))
    client.put("/v1/studies/uniform", {"policy": plain(explores)})
    for name in ("uniform", "shop"):
        for arm in range(3):
            body = {"arm": arm, "reward": 0.5, "compare": True}
            would = client.post(f"/v1/studies/{name}/observations", body)[1]["would"]
            assert would["explored"] == (name == "uniform")
    said = [client.get(f"/v1/studies/{name}/apprentice")[1] for name in ("uniform", "shop")]
    assert [(each["compared"], each["explored"]) for each in said] == [(3, 3), (3, 0)]


def test_an_observation_once(client):
    body = {"point": [0.0], "reward": 1.0, "compare": True}
    first = client.post(f"{AT}/observations", body, key="o")
    assert client.post(f"{AT}/observations", body, key="o") == first
    assert client.post(f"{AT}/decisions", {}, key="o")[0] == 422
    assert client.get(AT)[1]["trials"]["all"] == 1
    for wrong in ({"reward": 1.0}, {"reward": 1.0, "arm": 3, "point": [0.0]}, {"reward": 1.0, "arm": 99}):
        assert client.post(f"{AT}/observations", wrong)[0] == 422


# -- looking -----------------------------------------------------------------------------------------------------------


def test_events_after_a_cursor(client):
    first, second = asked(client), asked(client)
    told(client, second, 0.5)
    client.post(f"{AT}/decisions/{first['id']}/failure", {"reason": "no power"})
    said = client.get(f"{AT}/events")[1]
    assert [(each["order"], each["kind"], each["number"]) for each in said["events"]] == [
        (1, "asked", 0), (2, "asked", 1), (3, "told", 1), (4, "told", 0),
    ]  # fmt: skip
    assert (said["events"][2]["reward"], said["events"][3]["reason"]) == (0.5, "no power")
    assert said["events"][0]["reason"] is None
    page = client.get(f"{AT}/events", after=1, limit=2)[1]
    assert ([each["order"] for each in page["events"]], page["next"], page["more"]) == ([2, 3], 3, True)
    assert client.get(f"{AT}/events", after=4)[1] == {"events": [], "next": 4, "more": False}
    assert client.get(f"{AT}/events", aftr=4)[0] == 422


def test_what_is_read_of_a_record_does_not_go_on_meanwhile():
    study = nr.Study(POLICY)
    study.ask()
    trials = study.replica.snapshot()
    study.tell(0, 1.0)
    study.ask()
    assert [trial.state for trial in trials] == ["pending"]
    assert [trial.state for trial in study.replica.snapshot()] == ["observed", "pending"]


def test_events_as_a_stream():
    with Client(MemoryStorage(), settings=Settings(poll_seconds=0.01)) as client:
        client.put(AT, {"policy": plain(POLICY)})
        asked(client)

        async def listen():
            worker = await client.service.workers.get("default", "shop")
            stream = client.service.streams.follow(worker, 0)
            first = await anext(stream)
            _, said = await client.send("POST", f"{AT}/decisions", {})
            second = await anext(stream)
            client.service.streams.end()
            rest = [part async for part in stream]
            return first, second, said, rest

        first, second, said, rest = client.run(listen())
        assert first.startswith(b"id: 1\nevent: asked\ndata: {")
        assert json.loads(second.partition(b"data: ")[2])["number"] == said["decisions"][0]["number"]
        assert rest == []
        assert client.service.streams.count == 0
        status, body = client.get(f"{AT}/events", headers={"Accept": "text/event-stream", "Last-Event-ID": "1"})
        assert (status, body) == (200, b"")  # all streams have come to their end


def test_no_tenant_takes_all_streams():
    storage = MemoryStorage()
    for name in ("shop", "other/shop"):
        nr.Study(POLICY, storage=storage, name=name)
    with Client(storage, settings=Settings(streams=3, streams_each=2)) as client:

        async def listen(tenant):
            return Stream(client.service.streams, await client.service.workers.get(tenant, "shop"), 0)

        async def fill():
            own = [await listen("default") for _ in range(2)]
            with pytest.raises(Problem, match="2 streams of events of this tenant are open") as refused:
                await listen("default")
            other = await listen("other")
            with pytest.raises(Problem, match="As many streams of events are open") as full:
                await listen("other")
            said = await client.send("GET", f"{AT}/events", headers={"Accept": "text/event-stream"})
            client.service.streams.end()
            for stream in [*own, other]:
                await spoken(stream)
            return refused.value.status, full.value.status, said

        refused, full, (status, said) = client.run(fill())
        assert (refused, full, status, said["error"]["kind"]) == (429, 503, 429, "streams")
        assert client.service.streams.count == 0
        assert client.get(f"{AT}/events", headers={"Accept": "text/event-stream"}) == (200, b"")


@pytest.mark.parametrize("kind", ["jsonl", "csv", "arrow", "parquet"])
def test_export(client, kind, tmp_path):
    told(client, asked(client), 0.5)
    asked(client)
    status, body = client.get(f"{AT}/export", format=kind)
    assert status == 200
    file = tmp_path / f"trials.{kind}"
    file.write_bytes(body)
    other = nr.Study(POLICY, seed=0)
    assert [trial.reward for trial in other.add_from(file)] == [0.5]


def test_figures_and_health(client):
    told(client, asked(client), 0.5)
    asked(client)
    text = client.get("/metrics")[1].decode()
    of = '{study="shop",tenant="default"}'
    for line in (
        f"nilregret_decisions_total{of} 2.0", f"nilregret_answers_total{of} 1.0", f"nilregret_restarts_total{of} 0.0",
        'nilregret_trials{state="pending",study="shop",tenant="default"} 1.0',
        f"nilregret_process_decisions_total{of} 2.0", 'nilregret_request_seconds_count{operation="ask"} 2.0',
        f"nilregret_width{of}",
    ):  # fmt: skip
        assert line in text
    assert client.get("/healthz") == (200, {"ok": True})
    assert client.get("/readyz") == (200, {"ok": True})


def test_a_study_that_goes_away(tmp_path):
    storage = SqlStorage(f"sqlite:///{tmp_path}/studies.db")
    with Client(storage, settings=Settings(recheck_seconds=1e-9)) as client:
        client.put(AT, {"policy": plain(POLICY)})
        decision = asked(client)
        storage.rename("shop", "kiosk")
        assert client.get(AT)[0] == 404
        assert client.get("/v1/studies/kiosk")[1]["trials"]["all"] == 1
        assert client.put(f"/v1/studies/kiosk/decisions/{decision['id']}/reward", {"reward": 1.0})[0] == 200
        storage.delete("kiosk")
        assert client.get("/v1/studies/kiosk")[0] == 404
        client.put(AT, {"policy": plain(POLICY)})
        assert told(client, decision, 1.0)[0] == 404  # of a study that is no more


def test_a_storage_without_notes_is_refused():
    class Other(Storage):
        place, shared = "elsewhere", False
        names = find = find_or_make = rename = delete = news = writing = close = None

    with pytest.raises(nr.errors.InvalidInput, match="keeps notes"):
        Client(Other())


def test_the_regret_so_far_is_bounded_where_that_is_proved():
    study = nr.Study(POLICY)
    assert regret_bound(study) is None
    for _ in range(12):
        trial = study.ask()
        study.tell(trial, float(np.sin(5 * trial.point[0])))
    gain = study.information_gain
    expected = nr.theory.gp_ucb_regret_bound(12, width=study.width, information_gain=gain, noise=0.1)
    assert regret_bound(study) == pytest.approx(expected, rel=1e-12)
    late = study.ask()
    assert expected <= regret_bound(study) < 1.05 * expected  # by the width of the round after
    study.tell(study.ask(), 0.0)
    study.tell(late, 0.0)
    assert regret_bound(study) is None  # an answer came after another question
    assert regret_bound(nr.Study(nr.gp_ts(ARMS, nr.SquaredExponential(0.2), noise=0.1, norm_bound=1.0))) is None


def test_a_width_that_falls_does_not_take_back_what_earlier_rounds_may_have_cost():
    """`EvenSeries` has its narrowest round after those that it was made for."""
    kernel = nr.SquaredExponential(0.2)
    policy = nr.gp_ucb(ARMS, kernel, noise=0.1, width="finite", series=nr.slots.EvenSeries(6))
    study = nr.Study(policy)
    first = study.width
    for _ in range(6):
        trial = study.ask()
        study.tell(trial, float(np.sin(5 * trial.point[0])))
    assert study.width < 0.95 * first
    expected = nr.theory.gp_ucb_regret_bound(6, width=first, information_gain=study.information_gain, noise=0.1)
    assert regret_bound(study) == pytest.approx(expected, rel=1e-12)


def test_where_the_width_falls_as_noise_gets_known_nothing_is_said_of_the_regret():
    """With the last width the bound was a tenth of what the rounds may have cost by theirs."""
    study = nr.Study(nr.igp_ucb(ARMS, nr.SquaredExponential(0.2), noise="unknown", norm_bound=1.0))
    widths = []
    for _ in range(20):
        widths.append(study.width)
        trial = study.ask()
        study.tell(trial, float(np.sin(5 * trial.point[0]) + 0.1 * np.cos(50.0 * trial.number)))
    assert study.policy.valid_for == "f"
    assert study.width < 0.5 * max(widths)
    assert regret_bound(study) is None
    known = nr.Study(nr.igp_ucb(ARMS, nr.SquaredExponential(0.2), noise=0.1, norm_bound=1.0))
    known.tell(known.ask(), 0.5)
    assert regret_bound(known) is not None


def test_the_bound_of_the_regret_knows_which_columns_are_the_context():
    """The largest prior variance of what was played, where that hangs on the arm alone."""
    kernel = nr.SquaredExponential(0.5).on(0) * nr.Linear().on(1)
    arms, contexts = nr.Arms.grid(0, 3, 5), nr.Arms.grid(0, 0.1, 3)
    study = nr.Study(nr.gp_ucb(arms, kernel, noise=0.1, context=contexts, width="finite"))
    for _ in range(6):
        trial = study.ask([0.05])
        study.tell(trial, trial.point[0])
    largest = max(float(trial.point[0]) for trial in study.trials) ** 2
    given = {"width": study.width, "information_gain": study.information_gain, "noise": 0.1}
    assert regret_bound(study) == pytest.approx(
        nr.theory.gp_ucb_regret_bound(6, prior_variance=largest, **given), rel=1e-12
    )


def test_arms_of_several_lengths_are_no_points():
    with Client(MemoryStorage()) as client:
        status, said = client.put(AT, {"arms": [[0.0, 0.0, 0.0], [0.0, 0.0]]})
        assert (status, said["error"]["field"]) == (422, "arms")


def test_propensities_of_many_decisions_would_keep_others_waiting():
    with Client(MemoryStorage()) as client:
        client.put(AT, {"policy": plain(POLICY)})
        status, said = client.post(f"{AT}/decisions", {"count": 11, "propensity": True})
        assert (status, said["error"]["field"]) == (422, "propensity")
        assert client.get(AT)[1]["trials"]["all"] == 0
        status, said = client.post(f"{AT}/decisions", {"count": 10, "propensity": True})
        assert (status, len(said["decisions"])) == (201, 10)


def test_who_comes_back_with_other_arms_is_not_told_the_propensity_among_those(client):
    first = {"client": "w", "among": [1, 2, 3], "propensity": True}
    (decision,) = client.post(f"{AT}/decisions", first)[1]["decisions"]
    assert decision["propensity"] == 1 / 3
    for body, key in (({"among": [7, 8]}, None), ({}, None), ({}, "k"), ({}, "k")):
        status, said = client.post(f"{AT}/decisions", {"client": "w", "propensity": True} | body, key=key)
        assert (status, said["decisions"]) == (201, [decision | {"propensity": None}])
    assert client.post(f"{AT}/decisions", first)[1]["decisions"] == [decision]


LAZY = nr.gp_ucb(ARMS, nr.SquaredExponential(0.2), noise=0.1, switching=nr.slots.Lazy(factor=2.0))


def test_a_decision_for_several_rounds_takes_the_rewards_of_its_plays():
    study, rng = nr.Study(LAZY, seed=3), np.random.default_rng(0)
    with Client(MemoryStorage()) as client:
        client.put(AT, {"policy": plain(LAZY), "seed": 3})
        for i in range(18):
            decision, trial = asked(client), study.ask()
            assert (decision["arm"], decision["repeats"]) == (trial.arm, trial.repeats)
            rewards = rng.normal(np.sin(9 * trial.point[0]), 0.1, trial.repeats)
            sums = {"count": len(rewards), "sum": float(rewards.sum()), "squares": float((rewards**2).sum())}
            said = told(client, decision, sums if i % 2 else rewards.tolist())
            study.tell(trial, nr.study.Rewards(**sums) if i % 2 else rewards)
            assert (said[0], said[1]["plays"], said[1]["reward"]) == (200, len(rewards), study.trials[-1].reward)
        assert decision["repeats"] > 1
        assert told(client, decision, sums)[0] == 200
        assert told(client, decision, float(rewards[0]))[0] == 409
        assert client.get(f"{AT}/decisions/{decision['id']}")[1]["plays"] == decision["repeats"]
        assert told(client, asked(client), [1.0] * 100_000)[0] == 409  # more than were asked for
        status, said = client.post(f"{AT}/observations", {"arm": 3, "reward": [0.1, 0.3]})
        assert (status, said["reward"]) == (201, 0.2)
        assert client.get(f"{AT}/predict")[1]["mean"] != study.predict()[0].tolist()
        study.ask()
        study.add(ARMS.points[3], [0.1, 0.3])
        assert client.get(f"{AT}/predict")[1]["mean"] == study.predict()[0].tolist()


def test_several_rewards_of_a_decision_for_one_round_are_refused(client):
    decision = asked(client)
    for reward in ([0.1, 0.2], {"count": 2, "sum": 1.0, "squares": 1.0}):
        status, said = told(client, decision, reward)
        assert (status, "switching" in said["error"]["sentence"]) == (422, True)
    assert told(client, decision, [])[0] == told(client, decision, {"count": 2, "sum": 9.0, "squares": 1.0})[0] == 422


def test_no_regret_is_bounded_by_the_number_of_runs():
    study = nr.Study(LAZY)
    for _ in range(6):
        trial = study.ask()
        study.tell(trial, [0.1] * trial.repeats)
    assert regret_bound(study) is None
