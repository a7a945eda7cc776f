"""How probable a decision was, said with it: what a replay of the record says, and nothing is otherwise for it."""

import pytest

import nilregret as nr
from nilregret.serve.api import write_routes as api
from nilregret.slots.explore import UniformExploration
from nilregret.storage import MemoryStorage
from nilregret.study.study import Study

from .service import AT, Client, plain

ARMS, KERNEL = nr.Arms.grid(0, 1, 12), nr.SquaredExponential(0.2)
POLICIES = {
    "ties": nr.gp_ucb(ARMS, KERNEL, noise=0.1),
    "thompson": nr.gp_ts(ARMS, KERNEL, noise=0.1, norm_bound=1.0),
    "randomised": nr.irgp_ucb(ARMS, KERNEL, noise=0.1),
    "forced": nr.gp_ucb(ARMS, KERNEL, noise=0.1).using(explore=UniformExploration()),
    "batches": nr.gp_bucb(ARMS, KERNEL, noise=0.1),
    "box": nr.gp_ucb(nr.Box(0.0, 1.0), KERNEL, noise=0.1),
}


def served(policy, *, goal, asking):
    """What two servers of one storage say of decisions, and what the record says of them afterwards."""
    storage = MemoryStorage()
    said = []
    with Client(storage) as client:
        client.put(AT, {"policy": plain(policy), "goal": goal, "seed": 4})
        for turn in range(7):
            body = {"count": 1 + turn % 3} | ({"propensity": True} if asking else {})
            if turn == 3 and isinstance(policy.domain, nr.Arms):
                body["among"] = [1, 4, 5]
            status, given = client.post(f"{AT}/decisions", body, key=f"{turn}")
            assert status == 201
            said += [(each, body.get("among")) for each in given["decisions"]]
            for each in given["decisions"][: 1 + turn % 2]:  # some are never answered
                client.put(f"{AT}/decisions/{each['id']}/reward", {"reward": 0.1 * (turn % 4)})
    return storage, said


@pytest.mark.parametrize(("name", "goal"), [*((name, "maximize") for name in POLICIES), ("thompson", "minimize")])
def test_it_is_what_a_replay_says(name, goal, monkeypatch):
    with monkeypatch.context() as without:
        without.setattr(Study, "explain", None)  # nothing is replayed
        storage, said = served(POLICIES[name], goal=goal, asking=True)
    study = nr.Study.open(storage=storage, name="shop")
    found = [study.explain(each["number"], among=among).propensity for each, among in said]
    assert [each["propensity"] for each, _ in said] == [None if one is None else one.value for one in found]
    if name != "box":
        assert all(0.0 <= each["propensity"] <= 1.0 for each, _ in said)
    if name not in ("box", "batches"):
        assert any(0.0 < each["propensity"] < 1.0 for each, _ in said)
    _, plainly = served(POLICIES[name], goal=goal, asking=False)
    assert [each["point"] for each, _ in plainly] == [each["point"] for each, _ in said]


def test_a_request_that_comes_again_hears_the_same():
    with Client(MemoryStorage()) as client:
        client.put(AT, {"policy": plain(POLICIES["thompson"]), "seed": 4})
        body = {"count": 2, "propensity": True, "exclude": [0]}
        _, first = client.post(f"{AT}/decisions", body, key="k")
        client.put(f"{AT}/decisions/{first['decisions'][0]['id']}/reward", {"reward": 1.0})
        assert client.post(f"{AT}/decisions", body, key="k") == (201, first)
        status, said = client.post(f"{AT}/decisions", body | {"count": api.PROPENSITIES + 1})
        assert (status, said["error"]["field"]) == (422, "propensity")


def test_a_study_that_records_them_says_them_with_each_decision():
    storage = MemoryStorage()
    body = {"policy": plain(POLICIES["thompson"]), "seed": 4, "propensities": True, "about": {"team": "a"}}
    with Client(storage) as client:
        status, said = client.put(AT, body)
        assert (status, said["propensities"], said["about"]) == (201, True, {"team": "a"})
        assert client.put(AT, body)[0] == 200
        status, said = client.put(AT, body | {"propensities": False})
        assert (status, said["error"]["field"]) == (409, "propensities")
        _, given = client.post(f"{AT}/decisions", {"count": 12}, key="k")
        assert client.post(f"{AT}/decisions", {"count": 12}, key="k") == (201, given)
        said = [each["propensity"] for each in given["decisions"]]
        _, one = client.get(f"{AT}/decisions/{given['decisions'][3]['id']}")
        assert one["propensity"] == said[3]
        _, told = client.get(f"{AT}/events")
        assert [event["propensity"] for event in told["events"]] == said
    study = nr.Study.open(storage=storage, name="shop")
    assert [trial.propensity for trial in study.trials] == said
    assert study.propensities


def test_a_control_has_its_share():
    recipe = {
        "space": {"banner": {"type": "choice", "options": ["control", "sale", "new"]}},
        "grid": {},
        "propensities": True,
    }
    shares = {"reward": "bernoulli", "explore": {"shares": {"control": 0.25}}}
    with Client(MemoryStorage()) as client:
        assert client.put(AT, {**recipe, "policy": shares})[0] == 201
        for number in range(12):
            (given,) = client.post(f"{AT}/decisions", {}, key=f"{number}")[1]["decisions"]
            control = given["parameters"]["banner"] == "control"
            client.put(f"{AT}/decisions/{given['id']}/reward", {"reward": float(not control)})
            assert given["propensity"] >= 0.25 or not control
        wrong = {"reward": "bernoulli", "explore": {"shares": {"old": 0.25}}}
        status, said = client.put(AT + "-2", {**recipe, "policy": wrong})
        assert status == 422
        assert "the options are ['control', 'sale', 'new']" in said["error"]["sentence"]
