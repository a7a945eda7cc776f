"""Evaluations over HTTP and by the command line."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import nilregret as nr
from nilregret.__main__ import main
from nilregret.storage import MemoryStorage

from .service import Client, Clock, asked, told

ARMS = nr.Arms.grid(0, 1, 4)
RATES = np.array([0.2, 0.3, 0.4, 0.7])
POLICY = nr.gp_ts(ARMS, nr.SquaredExponential(0.3), reward="bernoulli", v=0.6).using(explore=nr.slots.Uniform(0.4))


def filled(study, rounds=120):
    rng = np.random.default_rng(5)
    for _ in range(rounds):
        trial = study.ask()
        study.tell(trial, float(rng.random() < RATES[trial.arm]))
    return study


@pytest.fixture(scope="module")
def client():
    storage = MemoryStorage()
    filled(nr.Study(POLICY, propensities=True, storage=storage, name="shop"))
    with Client(storage) as made:
        yield made


def evaluated(client, policy, **more):
    return client.post("/v1/studies/shop/evaluations", {"policy": policy, **more})


def test_the_service_says_what_python_says(client):
    study = filled(nr.Study(POLICY, propensities=True))
    forms = {"uniform": "uniform", 3: 3, (0.1, 0.2, 0.3, 0.4): [0.1, 0.2, 0.3, 0.4], "by arm": {"3": 1.0}}
    for given, sent in forms.items():
        status, said = evaluated(client, sent, estimator="dr", delta=0.1)
        assert status == 200
        mine = nr.evaluate(study, 3 if given == "by arm" else list(given) if isinstance(given, tuple) else given,
                           estimator="dr", delta=0.1)  # fmt: skip
        assert said == json.loads(json.dumps(mine.to_dict()))


def test_cautions_come_with_the_reply_and_speak_of_http(client):
    status, said = evaluated(client, "best")
    assert status == 200
    assert any("by means of the very log" in each for each in said["cautions"])
    assert "nr." not in said["text"]


def test_a_policy_that_learns_is_replayed(client, monkeypatch):
    learner = json.loads(nr.gp_ucb(ARMS, nr.SquaredExponential(0.3), noise=0.5).to_json())
    status, said = evaluated(client, learner)
    assert (status, said["learned"] > 0) == (200, True)
    monkeypatch.setattr("nilregret.serve.api.read_routes.MOST_REPLAYED", 100)
    status, said = evaluated(client, learner)
    assert (status, said["error"]["field"]) == (422, "policy")


@pytest.mark.parametrize(
    ("policy", "more", "field", "sentence"),
    [
        (9, {}, None, "The policy chooses 9"),
        ({"x": 1}, {}, None, "The policy chooses 'x'"),
        ([0.5, 0.5], {}, "policy", "shape"),
        ({"type": "nothing"}, {}, "policy", ""),
        ("uniform", {"reward_range": [2, 3]}, None, "lie outside"),
        ("uniform", {"floor": 0.5}, "floor", "propensity"),
        ("uniform", {"delta": 2}, "delta", "does not fit"),
        ("uniform", {"estimator": "best"}, "estimator", "does not fit"),
        ("uniform", {"rewards": 1}, "rewards", "does not fit"),
    ],
)
def test_what_cannot_be_evaluated(client, policy, more, field, sentence):
    status, said = evaluated(client, policy, **more)
    assert (status, said["error"].get("field")) == (422, field)
    assert sentence in said["error"]["sentence"]
    assert "nr." not in said["error"]["sentence"]


def test_a_study_without_propensities_says_how_to_record_them(client):
    client.put("/v1/studies/plain", {"arms": [[0.0], [1.0]], "policy": {"algorithm": "auto", "reward": "bernoulli"}})
    decision = client.post("/v1/studies/plain/decisions")[1]["decisions"][0]["id"]
    client.put(f"/v1/studies/plain/decisions/{decision}/reward", {"reward": 1})
    status, said = client.post("/v1/studies/plain/evaluations", {"policy": "uniform"})
    assert status == 422
    assert '"propensities": true' in said["error"]["sentence"]


# -- the command line ------------------------------------------------------------------------------------------------


def run(*args, code=0):
    result = CliRunner().invoke(main, ["evaluate", *(str(arg) for arg in args)])
    assert result.exit_code == code, result.output
    return result.stderr if code else result.stdout


@pytest.fixture
def shop(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with nr.Study(POLICY, propensities=True, storage="sqlite:///shop.db", name="shop") as study:
        filled(study, 80).export("trials.csv")
        yield study


@pytest.mark.filterwarnings("ignore:The estimate rests on few")
def test_the_command_says_what_python_says(shop, tmp_path):
    wanted = nr.evaluate(shop, "uniform")
    for log in (["shop.db"], ["sqlite:///shop.db", "shop"]):
        assert run(*log, "--policy", "uniform") == f"{wanted}\n"
    said = json.loads(run("trials.csv", "--policy", "uniform", "--floor", 0.1, "--json"))
    assert said == json.loads(json.dumps(wanted.to_dict()))
    one = nr.evaluate(shop, 2, estimator="dr").to_dict()
    assert json.loads(run("shop.db", "--policy", 2, "--estimator", "dr", "--json"))["estimates"] == one["estimates"]
    assert json.loads(run("shop.db", "--policy", "[0, 0, 1, 0]", "--json"))["value"] == wanted_value(shop)
    (tmp_path / "choices.csv").write_text("2\n" * 80)
    (tmp_path / "shares.csv").write_text("0,0,1,0\n" * 80)
    for file in ("choices.csv", "shares.csv"):
        assert json.loads(run("shop.db", "--policy", file, "--json"))["value"] == wanted_value(shop)
    (tmp_path / "learner.json").write_text(nr.gp_ucb(ARMS, nr.SquaredExponential(0.3), noise=0.5).to_json())
    assert "it took in" in run("shop.db", "--policy", "learner.json")


def wanted_value(study):
    return nr.evaluate(study, 2).value


def test_the_command_draws(shop):
    assert "Picture: values.png" in run("shop.db", "--policy", "uniform", "--picture", "values.png")
    assert "does not exist: make it first" in run(
        "shop.db", "--policy", "uniform", "--picture", "no/values.png", code=1
    )


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["none.csv", "--policy", "uniform"], "cannot be read"),
        (["trials.csv", "--policy", "best"], "the log is no study"),
        (["trials.csv", "--policy", 7], "chooses 7"),
        (["trials.csv", "--policy", "none.json"], "cannot be read"),
        (["trials.csv", "--policy", "none.csv"], "cannot be read"),
        (["trials.csv", "--policy", "uniform", "--floor", 0.5], "`floor` is 0.5"),
        (["trials.csv", "--policy", "uniform", "--reward-range", 1, 2], "lie outside"),
        (["trials.csv", "--policy", "uniform", "--action", "0"], "which is none of"),
    ],
)
def test_the_command_says_what_is_wrong(shop, args, sentence):
    assert sentence in run(*args, code=1)


@pytest.mark.parametrize("rule", ["reward", "silence"])
def test_decisions_count_once_their_deadline_is_over(rule):
    """Ten yeses of a hundred, told at once. Those of the last minute are no sample, and neither are their silences."""
    clock = Clock()
    with Client(MemoryStorage(), clock=clock) as client:
        about = {"deadline": 60.0, "on_deadline": rule, "default_reward": 0.0, "propensities": True}
        policy = nr.auto(ARMS, reward="bernoulli").using(explore=nr.slots.Uniform(1.0))
        assert client.put("/v1/studies/shop", {"policy": json.loads(policy.to_json()), **about})[0] == 201
        for number in range(100):
            decision = asked(client)
            if number % 10 == 0:
                assert told(client, decision, 1.0)[0] == 200
            clock.now += 1.0
        status, said = evaluated(client, "uniform")
    assert (status, said["rows"], said["logged"]) == (200, 41, pytest.approx(5 / 41))
    assert said["left_out"] == {"still waited for, answered or not": 59}
    assert "Not counted yet: 59 decisions still waited for" in said["text"].splitlines()[0]
