"""Several objectives over HTTP, in the client and on the command line."""

import json
import math

import numpy as np
import pytest
from click.testing import CliRunner

import nilregret as nr
from nilregret.__main__ import main
from nilregret.client import Client as Remote
from nilregret.storage import MemoryStorage, SqlStorage
from nilregret.testing.serving import Serving

from .service import AT, Client, Clock, asked, told

NAMES = ["loss", "recall"]
GOALS = ["minimize", "maximize"]
POINTS = [[0.0], [0.25], [0.5], [0.75], [1.0]]
BODY = {"arms": POINTS, "goal": GOALS, "policy": {"objectives": NAMES}}
POLICY = nr.auto(nr.Arms(POINTS), objectives=("loss", "recall"))


def values(x):
    """Loss and recall of a point: no point is best in both."""
    return [(x - 0.25) ** 2, 10.0 - (x - 0.75) ** 2]


def answered(study, count=5):
    for _ in range(count):
        trial = study.ask()
        study.tell(trial, tuple(values(float(trial.point[0]))))
    return study


@pytest.fixture
def client():
    with Client(MemoryStorage()) as made:
        assert made.put(AT, BODY)[0] == 201
        yield made


def told_all(client, count=5, **more):
    found = []
    for _ in range(count):
        decision = asked(client)
        status, said = told(client, decision, values(decision["point"][0]), **more)
        assert status == 200, said
        found.append(said)
    return found


# -- studies -----------------------------------------------------------------------------------------------------------


def test_a_study_is_put_once_and_listed_with_its_objectives(client):
    objectives = [{"name": name, "goal": goal} for name, goal in zip(NAMES, GOALS, strict=True)]
    status, said = client.put(AT, BODY)
    assert (status, said["goal"], said["objectives"]) == (200, GOALS, objectives)
    full = client.get(AT)[1]
    assert (full["goal"], full["objectives"], full["policy"]["constraints"]["goals"]) == (GOALS, objectives, GOALS)
    assert client.put("/v1/studies/one", {"arms": POINTS})[0] == 201
    listed = client.get("/v1/studies")[1]["studies"]
    assert [each.get("objectives") for each in listed] == [objectives, None]
    assert listed[1].keys() < listed[0].keys()
    (made,) = client.get(f"{AT}/audit")[1]["entries"]
    assert made["arguments"] == {"seed": 0, "goal": GOALS}
    status, said = client.put(AT, BODY | {"goal": "minimize"})
    assert (status, said["error"]["field"]) == (409, "goal")
    assert "other values: goal[1] (" in said["error"]["sentence"]


def test_objectives_beside_the_policy(client):
    beside = {"arms": POINTS, "objectives": {"loss": "minimize", "recall": "maximize"}}
    assert client.put(AT, beside)[0] == 200  # It is the same study.
    assert client.put(AT, {"arms": POINTS, "objectives": NAMES, "goal": GOALS})[0] == 200
    status, said = client.put(AT, {"arms": POINTS, "objectives": {"loss": "minimize", "size": "maximize"}})
    assert (status, said["error"]["field"]) == (409, "objectives")
    assert client.put("/v1/studies/same", {"arms": POINTS, "objectives": NAMES})[1]["goal"] == ["maximize"] * 2
    for more, field in (
        ({"goal": "minimize"}, "goal"), ({"objectives": ["loss"]}, "objectives"), ({"objectives": {}}, "objectives"),
        ({"objectives": ["loss", "loss"]}, "policy"), ({"objectives": {"loss": "up", "x": "up"}}, "objectives[...]"),
        ({"policy": {"objectives": 2}}, "policy.objectives"),
        ({"policy": json.loads(POLICY.to_json()), "arms": None}, "objectives"),
        ({"policy": {"algorithm": "gp_ucb", "kernel": {"type": "matern"}, "noise": 0.1}}, "policy.algorithm"),
    ):  # fmt: skip
        status, said = client.put("/v1/studies/new", beside | more)
        assert (status, said["error"]["field"]) == (422, field), said


def test_a_study_by_the_number_of_objectives_and_by_a_whole_policy(client):
    two = BODY | {"policy": {"objectives": 2}, "goal": "minimize"}
    said = client.put("/v1/studies/two", two)[1]
    assert [each["name"] for each in said["objectives"]] == ["objective 1", "objective 2"]
    assert said["goal"] == ["minimize", "minimize"]
    whole = {"policy": json.loads(POLICY.to_json()), "goal": GOALS}
    assert client.put(AT, whole)[0] == 200
    stored = client.get(AT)[1]["policy"]
    assert client.put(AT, {"policy": stored})[0] == 200  # its own goals


@pytest.mark.parametrize(
    ("entries", "field", "words"),
    [
        ({"goal": ["minimize"]}, "goal", "2 objectives: give each one"),
        ({"goal": ["minimize", "up"]}, "goal[1]", "There are: 'maximize', 'minimize'"),
        ({"policy": {}}, "goal", "the policy has 1 objective"),
        ({"policy": {"objectives": 0}}, "policy.objectives", "`objectives`"),
        ({"policy": {"objectives": ["loss"]}}, "policy.objectives", "a single one is a reward"),
        ({"policy": {"objectives": ["loss", "loss"]}}, "policy", "the name 'loss'"),
        ({"policy": {"objectives": 6}, "goal": "minimize"}, "policy.objectives", "takes at most 5"),
        ({"policy": {"objectives": NAMES, "reward": "bernoulli"}}, "policy.reward", "several objectives"),
        ({"deadline": 1, "on_deadline": "censor"}, "on_deadline", "counts open trials as one reward"),
        ({"on_deadline": "silence"}, "on_deadline", "counts open trials as one reward"),
        ({"deadline": 1, "on_deadline": "reward", "default_reward": 0}, "default_reward", "for each"),
        ({"deadline": 1, "on_deadline": "reward", "default_reward": [0]}, "default_reward", "for each"),
        ({"policy": {}, "goal": "minimize", "deadline": 1, "on_deadline": "reward", "default_reward": [0, 1]},
         "default_reward", "it must be a number"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)  # fmt: skip
def test_what_makes_no_study_of_several_objectives_is_said(client, entries, field, words):
    status, said = client.put("/v1/studies/new", BODY | entries)
    assert (status, said["error"]["field"]) == (422, field), said
    assert words in said["error"]["sentence"]
    assert client.get("/v1/studies/new")[0] == 404


# -- rewards -----------------------------------------------------------------------------------------------------------


def test_rewards_by_order_and_by_name(client):
    first, second, third, fourth = client.post(f"{AT}/decisions", {"count": 4})[1]["decisions"]
    status, said = told(client, first, [0.3, 12], std=[0.01, None], metrics={"epochs": 3})
    assert (status, said["reward"], said["values"], said["std"], said["stds"]) == (
        200,
        0.3,
        [0.3, 12.0],
        0.01,
        [0.01, None],
    )
    assert told(client, first, {"recall": 12.0, "loss": 0.3}, std={"loss": 0.01}, metrics={"epochs": 3})[1] == said
    assert told(client, first, [0.3, 11])[0] == 409
    corrected = told(client, first, [0.3, 11], revise=True)[1]
    assert (corrected["values"], corrected["stds"]) == ([0.3, 11.0], [None, None])
    seen = client.get(f"{AT}/decisions/{first['id']}")[1]
    assert (seen["values"], seen["metrics"]) == ([0.3, 11.0], {"epochs": 3.0})
    assert [(each["values"], each["stds"]) for each in seen["corrected"]] == [([0.3, 12.0], [0.01, None])]
    items = [{"id": second["id"], "reward": {"loss": 0.1, "recall": 3}}, {"id": third["id"], "reward": [1.0]}]
    one, other = client.post(f"{AT}/rewards", {"items": items})[1]["items"]
    assert (one["status"], one["answer"]["values"], other["status"]) == (200, [0.1, 3.0], 422)
    failed = client.post(f"{AT}/decisions/{fourth['id']}/failure", {"reason": "out of memory"})[1]
    assert (failed["state"], "values" in failed) == ("failed", False)
    said = client.post(f"{AT}/observations", {"reward": [0.2, 5.0], "arm": 2, "compare": True})[1]
    assert (said["reward"], said["values"]) == (0.2, [0.2, 5.0])
    events = client.get(f"{AT}/events")[1]["events"]
    assert [each.get("values") for each in events if each["kind"] != "asked"] == [
        [0.3, 12.0], [0.3, 11.0], [0.1, 3.0], None, [0.2, 5.0],
    ]  # fmt: skip
    assert client.get(f"{AT}/apprentice")[1]["mean_reward"] is None
    assert client.get(f"{AT}/apprentice")[1]["compared"] == 1


@pytest.mark.parametrize(
    "reward", [1.0, True, [1.0], [1, 2, 3], {"loss": 1}, {"loss": 1, "los": 2}, {"loss": 1, "recall": "x"}, {},
               {"count": 1, "sum": 1.0, "squares": 1.0}, {"loss": 1, "recall": None}, [1e300, 2]],
    ids=repr,
)  # fmt: skip
def test_what_is_no_value_of_each_objective_is_said(client, reward):
    decision = asked(client)
    status, said = told(client, decision, reward)
    assert status == 422, said
    assert said["error"]["field"].startswith("reward")
    status, said = client.post(f"{AT}/observations", {"reward": reward, "arm": 1})
    assert status == 422, said
    assert client.get(f"{AT}/decisions/{decision['id']}")[1]["state"] == "pending"
    assert client.get(AT)[1]["trials"] == {"all": 1, "pending": 1}


@pytest.mark.parametrize("std", [0.1, [0.1], {"los": 0.1}, [-1.0, None], {"loss": -1.0}], ids=repr)
def test_noise_of_objectives_that_are_not_there_is_said(client, std):
    status, said = told(client, asked(client), [1.0, 2.0], std=std)
    assert (status, said["error"]["field"].partition(".")[0]) == (422, "std"), said


def test_limits_come_with_the_objectives():
    with Client(MemoryStorage()) as client:
        client.put(AT, BODY | {"constraints": 1})
        decision = asked(client)
        status, said = told(client, decision, [1.0, 2.0])
        assert (status, "`constraints` beside `reward`" in said["error"]["sentence"]) == (409, True)
        assert client.put(f"{AT}/decisions/{decision['id']}/reward", {"constraints": [0.1]})[0] in (409, 422)
        said = told(client, decision, [1.0, 2.0], constraints=[-0.1])[1]
        assert (said["values"], said["constraints"]) == ([1.0, 2.0], [-0.1])
        assert told(client, asked(client), [0.0, 3.0], constraints=[0.4])[0] == 200
        assert [each["number"] for each in client.get(f"{AT}/front")[1]["decisions"]] == [0]
        said = client.get(f"{AT}/predict", channel=2)[1]
        assert len(said["mean"]) == len(POINTS)
        assert client.get(f"{AT}/predict", channel=3)[0] == 422
        assert len(client.get(f"{AT}/feasible")[1]["feasible"]) == len(POINTS)


# -- deadlines ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("late", ["drop", "count"])
def test_default_values_at_the_deadline_and_answers_after_it(late):
    body = BODY | {"deadline": 60, "on_deadline": "reward", "default_reward": [9.0, 0.0], "late": late}
    clock = Clock()
    with Client(MemoryStorage(), clock=clock) as client:
        assert client.put(AT, body)[1]["default_reward"] == [9.0, 0.0]
        decision = asked(client)
        clock.now += 100.0
        asked(client)
        seen = client.get(f"{AT}/decisions/{decision['id']}")[1]
        assert (seen["values"], seen["defaulted"], "late_values" in seen) == ([9.0, 0.0], True, False)
        for _ in range(2):  # The same again changes nothing.
            said = told(client, decision, [0.5, 4.0], std=[None, 0.2])[1]
            assert (said["late_values"], said["counted"]) == ([0.5, 4.0], late == "count")
        assert told(client, decision, [0.5, 5.0])[0] == 409
        assert told(client, decision, [0.5, 5.0], revise=True)[1]["late_values"] == [0.5, 5.0]
        seen = client.get(f"{AT}/decisions/{decision['id']}")[1]
        stands = [0.5, 5.0] if late == "count" else [9.0, 0.0]
        assert (seen["values"], seen["late_reward"], seen["late_values"]) == (stands, 0.5, [0.5, 5.0])
        line = json.loads(client.get(f"{AT}/export")[1].splitlines()[0])
        assert (line["late_reward"], line["late_values.recall"]) == (0.5, 5.0)


# -- the front ---------------------------------------------------------------------------------------------------------


def test_the_front_is_that_of_a_study(client):
    assert client.get(f"{AT}/front")[1] == {
        "objectives": [{"name": name, "goal": goal} for name, goal in zip(NAMES, GOALS, strict=True)],
        "decisions": [], "mean": [], "std": [], "lower": [], "upper": [], "hypervolume": 0.0,
        "reference": [None, None], "left_out": [],
    }  # fmt: skip
    told_all(client)
    study = answered(nr.Study(POLICY, goal=GOALS))
    for text, reference in ((None, None), ("[1.0, 9.0]", [1.0, 9.0]), ('{"recall": 9, "loss": 1}', (1, 9))):
        query = {} if text is None else {"reference": text}
        said, front = client.get(f"{AT}/front", **query)[1], study.front_values(reference)
        assert [each["number"] for each in said["decisions"]] == [trial.number for trial in front.trials]
        assert [each["values"] for each in said["decisions"]] == [list(trial.values) for trial in front.trials]
        for name in ("mean", "std", "lower", "upper", "reference", "hypervolume"):
            np.testing.assert_allclose(said[name], getattr(front, name), rtol=1e-9)
    for weights in ({"loss": 1}, {"recall": 1.0, "loss": 2}, [0, 1]):
        status, said = client.get(f"{AT}/best", weights=json.dumps(weights))
        assert (status, said["number"]) == (200, study.best(weights=weights).number)


def test_one_best_decision_is_refused_and_names_the_front(client):
    told_all(client, 2)
    status, said = client.get(f"{AT}/best")
    assert (status, said["error"]["kind"]) == (409, "conflict")
    assert "`GET .../front`" in said["error"]["sentence"]
    assert "study.front" not in said["error"]["sentence"]
    for weights in ('{"los": 1}', "[1]", "1", '{"loss": -1}', '{"loss": "x"}', "{}", "[0, 0]", "nothing"):
        status, said = client.get(f"{AT}/best", weights=weights)
        assert (status, said["error"]["field"]) == (422, "weights"), said
    for reference in ("[1]", "1", '["x", 1]', "[1, 2, 3]", '{"loss": 1}', "nothing"):
        status, said = client.get(f"{AT}/front", reference=reference)
        assert (status, said["error"]["field"]) == (422, "reference"), said
    status, said = client.get(f"{AT}/best", weights="[1, 1]", context="[1]")
    assert (status, "no context" in said["error"]["sentence"]) == (422, True)
    client.put("/v1/studies/one", {"arms": POINTS})
    status, said = client.get("/v1/studies/one/front")
    assert (status, said["error"]["sentence"]) == (
        422, "This study has one objective, and no front. `GET .../best` has its best decision.",
    )  # fmt: skip
    assert client.get("/v1/studies/one/best", weights="[1]")[0] == 422


def test_what_is_of_one_reward_is_left_out_or_refused(client):
    told_all(client, 3)
    status, said = client.post(f"{AT}/evaluations", {"policy": "uniform"})
    assert (status, "2 objectives (loss, recall)" in said["error"]["sentence"]) == (422, True)
    status, text = client.get("/metrics")
    assert status == 200
    assert b'nilregret_answers_total{study="shop",tenant="default"} 3.0' in text
    assert b"nilregret_regret_bound{" not in text
    one = nr.Study(nr.gp_ts(nr.Arms(POINTS), nr.Matern(2.5, 0.3), noise=0.1, norm_bound=1), propensities=True)
    trial = one.ask()
    one.tell(trial, 1.0)
    with pytest.raises(nr.errors.InvalidInput, match="learns from one reward, and this one has 2 objectives"):
        nr.evaluate(one, POLICY)


def test_one_objective_has_no_entry_more(client):
    client.put("/v1/studies/one", {"arms": POINTS})
    decision = client.post("/v1/studies/one/decisions")[1]["decisions"][0]
    at = f"/v1/studies/one/decisions/{decision['id']}"
    replies = [
        client.put(f"{at}/reward", {"reward": 1.0})[1], client.put(f"{at}/reward", {"reward": 2.0, "revise": True})[1],
        client.get(at)[1], client.get("/v1/studies/one")[1], client.get("/v1/studies/one/events")[1],
        client.post("/v1/studies/one/observations", {"reward": 1.0, "arm": 0})[1],
    ]  # fmt: skip
    text = json.dumps(replies)
    assert not any(f'"{name}"' in text for name in ("values", "stds", "late_values", "objectives"))
    status, said = client.put(f"{at}/reward", {"reward": {"loss": 1.0, "recall": 2.0}})
    assert (status, said["error"]["field"]) == (422, "reward.loss")
    items = [{"id": decision["id"], "reward": 3.0, "revise": True}, {"id": decision["id"], "reward": {"count": 0}}]
    status, said = client.post("/v1/studies/one/rewards", {"items": items})
    assert (status, said["error"]["field"]) == (422, "items[1].reward.count")
    assert client.get(at)[1]["reward"] == 2.0  # None of the list was recorded.


# -- the client --------------------------------------------------------------------------------------------------------


def test_the_client_has_the_verbs():
    with Serving() as service, Remote(service.url) as client:
        remote = client.create("kiln", POLICY, goal=("minimize", "maximize"))
        local = nr.Study(POLICY, goal=GOALS)
        for turn in range(5):
            decision, trial = remote.ask(), local.ask()
            assert decision.arm == trial.arm
            told = tuple(values(float(trial.point[0])))
            given = [told, np.array(told), dict(zip(NAMES, told, strict=True)), list(told), np.float32(told)][turn]
            noise = [None, (0.1, None), {"recall": 0.1}, None, None][turn]
            answer = remote.tell(decision, given, std=noise)
            assert answer.values == pytest.approx(local.tell(trial, given, std=noise).values)
        assert [each.number for each in remote.front()] == [trial.number for trial in local.front()]
        np.testing.assert_allclose(remote.front_values().mean, local.front_values().mean, rtol=1e-9)
        assert remote.hypervolume((1.0, 9.0)) == pytest.approx(local.hypervolume((1.0, 9.0)))
        assert remote.best(weights={"loss": 1}).number == local.best(weights={"loss": 1}).number
        assert [each.goal for each in remote.status().objectives] == GOALS
        with pytest.raises(nr.errors.TrialError, match=r"2 \(loss, recall\).*`study\.front\(\)`"):
            remote.best()
        asked = remote.ask(count=2)
        assert [each.status for each in remote.tell_many([(asked[0], (1.0, 2.0)), (asked[1], {"loss": 1.0})])] == [
            200,
            422,
        ]
        assert remote.add([0.5], (0.1, 3.0)).values == [0.1, 3.0]
        for wrong in ((1.0, math.nan), {"loss": math.nan, "recall": 1.0}):
            with pytest.raises(nr.errors.InvalidInput, match="reward"):
                remote.tell(asked[1], wrong)


# -- the command line --------------------------------------------------------------------------------------------------

FILE = """
goal = ["minimize", "maximize"]
grid = 5
[parameters.x]
type = "float"
low = 0.0
high = 1.0
[policy]
algorithm = "auto"
objectives = ["loss", "recall"]
"""


def run(*args, code=0):
    result = CliRunner().invoke(main, [str(arg) for arg in args])
    assert result.exit_code == code, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.stderr if code else result.stdout


@pytest.fixture
def kiln(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kiln.toml").write_text(FILE)
    run("create", "studies.db", "kiln", "kiln.toml")
    return "studies.db", "kiln"


def test_a_study_of_several_objectives_from_the_command_line(kiln, tmp_path):
    for _ in range(5):
        run("ask", *kiln)
    trial = json.loads(run("tell", *kiln, 0, "0.3,12", "--std", "0.1,?", "--json"))
    assert (trial["reward"], trial["state"]) == (0.3, "observed")
    run("tell", *kiln, 1, "loss=-0.5", "recall=3")
    run("tell", *kiln, 2, "recall=1,loss=4e-1", "--metric", "epochs=3")
    run("tell", *kiln, 3, "-1,-2")
    run("add", *kiln, '{"x": 0.5}', "loss=1", "recall=13", "--std", "loss=0.2")
    study = nr.Study.open(storage=SqlStorage("sqlite:///studies.db"), name="kiln")
    assert [each.values for each in study.trials] == [
        (0.3, 12.0),
        (-0.5, 3.0),
        (0.4, 1.0),
        (-1.0, -2.0),
        None,
        (1.0, 13.0),
    ]
    assert [each.std for each in (study.trials[0], *study.trials[0].others)] == [0.1, None]
    assert study.trials[5].std == 0.2
    said = json.loads(run("front", *kiln, "--json"))
    front = study.front_values()
    assert [each["number"] for each in said["trials"]] == [each.number for each in front.trials]
    np.testing.assert_allclose(said["mean"], front.mean)
    assert (said["hypervolume"], said["recommended"]) == (front.hypervolume, None)
    weighted = json.loads(run("front", *kiln, "--weights", "recall=1", "--reference", "recall=0,loss=2", "--json"))
    assert weighted["recommended"] == study.best(weights={"recall": 1}).number
    assert weighted["hypervolume"] == pytest.approx(study.hypervolume((2.0, 0.0)))
    text = run("front", *kiln, "--weights", "loss=1,recall=2")
    assert all(words in text for words in ("loss, between", "recommended", "beyond loss="))
    shown = run("show", *kiln)
    assert all(words in shown for words in ("No trial beats these", "minimize loss, maximize recall"))
    summary = json.loads(run("show", *kiln, "--json"))
    assert (summary["goal"], summary["best"], summary["progress"]) == (GOALS, None, [])
    assert summary["front"]["mean"] == said["mean"]
    assert all(name in run("trials", *kiln) for name in NAMES)
    (listed,) = json.loads(run("studies", "studies.db", "--json"))
    assert (listed["goal"], listed["best"]) == (GOALS, None)
    checked = run("studies", "studies.db", "--check")
    assert "minimize loss, maximize recall" in checked
    assert "Checked the whole record of 1 study: no fault was found." in checked


def test_a_record_of_several_objectives_is_exported_and_imported(kiln, tmp_path):
    for _ in range(3):
        number = json.loads(run("ask", *kiln, "--json"))["number"]
        run("tell", *kiln, number, f"{0.1 * number},{number}", "--std", "0.1,?")
    for name in ("trials.csv", "trials.jsonl"):
        run("export", *kiln, name)
        run("create", "studies.db", name, "kiln.toml")
        run("import", "studies.db", name, name)
        first, other = (nr.Study.open(storage=SqlStorage("sqlite:///studies.db"), name=each) for each in ("kiln", name))
        assert [each.values for each in other.trials] == [each.values for each in first.trials]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["0.3"], "objectives"), (["0.3,1,2"], "objectives"), (["0.3,x"], "'x' is not a valid float"),
        (["loss=0.3"], "recall"), (["loss=0.3", "los=1"], "los"), (["loss=0.3", "loss=1"], "'loss' is there twice"),
        (["loss=0.3", "1"], "'1' has no name"), (["=0.3", "recall=1"], "'=0.3' has no name"),
        (["loss=0.3", "recall="], "'' is not a valid float"), (["abc"], "'abc' is not a valid float"),
        (["0.3,?"], "must be a number"), (["1,2", "--plays", "2", "--scatter", "0.1"], "several objectives"),
        (["1,nan"], "nan"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)  # fmt: skip
def test_words_that_are_no_values_of_objectives(kiln, words, said):
    run("ask", *kiln)
    refused = CliRunner().invoke(main, ["tell", *kiln, "0", *words])
    assert refused.exit_code in (1, 2)
    assert said in refused.stderr, refused.stderr
    assert json.loads(run("trials", *kiln, "--json"))[0]["state"] == "pending"


def test_one_objective_takes_one_number(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.toml").write_text(FILE.replace('["minimize", "maximize"]', '"minimize"').partition("[policy]")[0])
    run("create", "studies.db", "one", "one.toml")
    run("ask", "studies.db", "one")
    for words, said in (
        (["0,5"], "'0,5' is not a valid float"), (["1", "2"], "unexpected extra argument (2)"),
        (["a=1"], "'a=1' is not a valid float"), (["1", "--std", "0,1"], "'0,1' is not a valid float"),
    ):  # fmt: skip
        assert said in run("tell", "studies.db", "one", 0, *words, code=2)
    assert "one objective" in run("front", "studies.db", "one", code=1)
    assert "2 entries" in run("create", "studies.db", "two", "one.toml", "--goal", "minimize,maximize", code=1)
