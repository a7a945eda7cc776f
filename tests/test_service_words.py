"""Whoever calls the service writes no Python: what it refuses is said in its own words, with the entry to blame."""

import ast
import re
from pathlib import Path

import pytest

import nilregret as nr
from nilregret.serve.wire.problems import KINDS
from nilregret.storage import MemoryStorage

from .service import Client, Clock, plain
from .source import FILES, ROOT, nodes

# Calls, arguments, modules and names of Python, as a sentence would show them.
PYTHON = re.compile(
    r"\bnr\.|\bnilregret\.|\b(?:study|result|client)\.[a-z_]|`\w+\.(?:using|points|filled|to_json|grid)\b|`[\w.]+\("
    r"|\w\(\.\.\.\)|\w+\([^)]*\w=|\b[a-z_]+=(?:\"|'|True|False|None|\[|\d)|`\w+=`|\bnumpy\b"
    r"|`(?:ask|tell|add|fail|revise=True|using|when)`"
)
ASKED = "decisions"
PRICE = {"type": "float", "low": 1.0, "high": 9.0}
TOGETHER = nr.gp_ucb_noisy_constraints(
    nr.Arms.grid(0, 1, 5), nr.SquaredExponential(0.2), noise=0.1, norm_bound=1.0, epoch=5, epochs=3
)
STUDIES = {
    "arms": {
        "arms": [[0.0], [0.5], [1.0]], "policy": {"algorithm": "gp_ucb", "kernel": {"type": "matern"}, "noise": 0.1},
    },
    "space": {"space": {"price": PRICE, "kind": {"type": "choice", "options": ["a", "b"]}}, "policy": {"noise": 0.1}},
    "day": {"space": {"price": PRICE}, "context": {"day": {"type": "int", "low": 0, "high": 6}}, "constraints": 1},
    "clicks": {"arms": [[0.0], [1.0]], "policy": {"reward": "bernoulli"}},
    "shares": {"arms": [[0.0], [1.0]], "policy": {"reward": {"type": "bounded", "low": 0.0, "high": 2.0}}},
    "late": {"arms": [[0.0], [1.0]], "deadline": 60.0, "on_deadline": "censor", "default_reward": 0.0},
    "default": {"arms": [[0.0], [1.0]], "deadline": 60.0, "on_deadline": "reward", "default_reward": 0.0},
    "runs": {
        "arms": [[0.0], [1.0]],
        "policy": {"algorithm": "gp_ucb", "kernel": {"type": "matern"}, "noise": 0.1, "switching": "lazy"},
    },
    "together": {"policy": plain(TOGETHER)},
}  # fmt: skip
KERNEL = {"type": "matern", "nu": 2.5, "lengthscale": 0.2}


def of(**policy):
    return {"arms": [[0.0], [1.0]], "policy": {"algorithm": "gp_ucb", "noise": 0.1, "kernel": KERNEL} | policy}


# What is put, and the entry to blame.
NO_STUDIES = [
    ({"spce": {}}, "spce"),
    ({"space": {}}, "space"),
    ({"space": {"x": {"type": "float", "low": 2, "high": 1}}}, "space.x"),
    ({"space": {"x": {"type": "float", "low": 0, "high": 1, "log": True}}}, "space.x"),
    ({"space": {"x": {"type": "int", "low": 1, "high": 9, "log": True, "step": 2}}}, "space.x"),
    ({"space": {"x": {"type": "flaot", "low": 0, "high": 1}}}, "space.x.type"),
    ({"space": {"x": {"type": "float", "low": 0, "hihg": 1}}}, "space.x"),
    ({"space": {"x": {"type": "choice", "options": []}}}, "space.x"),
    ({"space": {"x": PRICE, "y": PRICE | {"when": {"z": 1}}}}, "space"),
    ({"space": {"x": PRICE, "y": PRICE | {"when": {"x": 1}}}}, "space"),
    ({"space": {"x": PRICE}, "grid": {"y": 3}}, "grid"),
    ({"space": {"x": PRICE}, "grid": 1}, "grid"),
    ({"space": {"x": PRICE}, "arms": [[0.0]]}, "space"),
    ({"arms": []}, "arms"),
    ({"arms": [[0.0], [0.0, 1.0]]}, "arms"),
    ({"arms": [[1e200]]}, "arms"),
    ({"arms": [[0.0]], "grid": 3}, "grid"),
    ({"arms": [[0.0]], "context": {"day": {"type": "int", "low": 3, "high": 1}}}, "context.day"),
    ({"arms": [[0.0]], "constraints": -1}, "constraints"),
    (of(algorithm="gp_ubc"), "policy.algorithm"),
    (of(algorithm="gp_ucb_noisy_constraints", epoch=5, epochs=2), "policy.algorithm"),
    (of(kernel=3), "policy.kernel"),
    (of(kernel={"type": "mattern"}), "policy.kernel.type"),
    (of(kernel={"type": "os.system"}), "policy.kernel.type"),
    (of(kernel={"type": "matern", "nu": -1.0}), "policy.kernel.nu"),
    (of(kernel={"type": "tied", "kernel": {"type": "linear"}, "groups": [0]}), "policy.kernel.kernel"),
    (of(kernel={"type": "active", "parameters": ["x"], "kernel": KERNEL}), "policy.kernel.type"),
    (of(noise=-1.0), "policy.noise"),
    (of(reward="bernoulli"), "policy"),
    (of(reward="clicks"), "policy.reward"),
    (of(width="wide"), "policy.width"),
    (of(width="rkhs"), "policy.width"),
    (of(memory="adaptve"), "policy.memory"),
    (of(memory={"type": "all_of", "parts": []}), "policy.memory.parts"),
    (of(pending="later"), "policy.pending"),
    (of(pending={"type": "imputed", "minimum": "x"}), "policy.pending.minimum"),
    (of(switching="lzy"), "policy.switching"),
    (of(constraints={"type": "safe", "start": [[0.0]]}) | {"constraints": 1}, "policy.constraints.slope"),
    (of(constraints={"type": "safe", "start": [[7.0]], "scale": 1.0}) | {"constraints": 1}, "policy.constraints.start"),
    (of(switching={"type": "lazy", "factor": 0.5}), "policy.switching.factor"),
    ({"arms": [[0.0]], "policy": {"pruning": "medan"}}, "policy.pruning"),
    ({"arms": [[0.0]], "policy": {"pruning": {"type": "median", "step": 3}}}, "policy.pruning"),
    ({"arms": [[0.0]], "policy": {"pruning": {"type": "halving", "factor": 1}}}, "policy.pruning.factor"),
    ({"arms": [[0.0]], "policy": {"pruning": "median"}, "context": {"x": PRICE}}, "policy.pruning"),
    ({"arms": [[0.0]], "policy": {"pruning": "median"}, "objectives": ["a", "b"]}, "policy.pruning"),
    ({"arms": [[0.0]], "policy": {"fidelity": "rows"}}, "policy.fidelity"),
    (of(series=0.5), "policy.power"),
    (of(sketch={}), "policy"),
    (of(domain={}), "policy.domain"),
    (of(context={}), "policy.context"),
    (of(refit={"type": "lengthscale_bank"}, kernel={"type": "linear"}), "policy"),
    (of(explore={"type": "in_turn", "parts": []}), "policy.explore.parts"),
    (of(algorithm="gp_ucb_cpd", horizon=10, exploration=0.0), "policy"),
    (of(algorithm="gp_ucb_sdf", window=-1.0), "policy.window"),
    (of(algorithm="igp_ucb"), "policy.norm_bound"),
    (of(algorithm="gp_ucb_sdf", window=3.0, minimum=0.0, norm_bound=1.0, horizon="doubling", memory="adaptive"),
     "policy.horizon"),
    ({"arms": [[0.0]], "policy": {"algorithm": "gp_ucb", "kernel": KERNEL}}, "policy.noise"),
    ({"arms": [[0.0]], "policy": {"world": "flat"}}, "policy.world"),
    ({"arms": [[0.0]], "policy": {"kernel": KERNEL}}, "policy"),
    ({"policy": "{"}, "policy"),
    ({"policy": {"type": "Float", "low": 0.0, "high": 1.0, "log": False}}, "policy"),
    ({"policy": plain(TOGETHER) | {"noise": -1.0}}, "policy"),
    ({"policy": plain(TOGETHER) | {"kernel": 3}}, "policy"),
    ({"policy": plain(TOGETHER) | {"sketch": 3}}, "policy"),
    ({"policy": plain(TOGETHER), "arms": [[0.0]]}, "arms"),
    ({"arms": [[0.0]], "on_deadline": "reward"}, "deadline"),
    ({"arms": [[0.0]], "deadline": -1}, "deadline"),
    ({"arms": [[0.0]], "about": {"service": 1}}, "about"),
    ({"arms": [[0.0]], "goal": "min"}, "goal"),
    ({"arms": [[0.0]], "seed": 2**200}, "seed"),
    ({"arms": [[0.0]], "policy": {"reward": "bernoulli"}, "default_reward": 0.5, "deadline": 1,
      "on_deadline": "reward"}, "default_reward"),
]  # fmt: skip
# To what a request is sent, what is sent, the status and the entry to blame.
NO_REQUESTS = [
    ("POST", "arms/decisions", {"context": [1.0]}, 422, "context"),
    ("POST", "arms/decisions", {"context": 5}, 422, "context"),
    ("POST", "day/decisions", {}, 422, "context"),
    ("POST", "day/decisions", {"context": {"day": 9}}, 422, "context"),
    ("POST", "day/decisions", {"context": {"dya": 1}}, 422, "context"),
    ("POST", "arms/decisions", {"among": []}, 422, "among"),
    ("POST", "arms/decisions", {"among": [7]}, 422, "among"),
    ("POST", "arms/decisions", {"exclude": [0, 1, 2]}, 422, "exclude"),
    ("POST", "space/decisions", {"exclude": [0]}, 422, "exclude"),
    ("POST", "space/decisions", {"among": [{"price": 99.0, "kind": "a"}]}, 422, "among"),
    ("POST", "late/decisions", {"deadline": 3.0}, 422, "deadline"),
    ("POST", "arms/decisions", {"count": 0}, 422, "count"),
    ("POST", "arms/decisions", {"conut": 1}, 422, "conut"),
    ("POST", "arms/decisions", {"count": 50, "propensity": True}, 422, "propensity"),
    ("PUT", "arms/decisions/ID/reward", {}, 422, "reward"),
    ("PUT", "arms/decisions/ID/reward", {"reward": "x"}, 422, "reward"),
    ("PUT", "arms/decisions/ID/reward", {"reward": 1e300}, 422, "reward"),
    ("PUT", "arms/decisions/ID/reward", {"reward": []}, 422, "reward"),
    ("PUT", "arms/decisions/ID/reward", {"reward": [1.0, 2.0]}, 422, "reward"),
    ("PUT", "arms/decisions/ID/reward", {"reward": {"count": 2, "sum": 9.0, "squares": 1.0}}, 422, "reward.squares"),
    ("PUT", "runs/decisions/ID/reward", {"reward": [1.0] * 1000}, 409, None),
    ("PUT", "arms/decisions/ID/reward", {"reward": 1.0, "observed_at": 1e15}, 422, "observed_at"),
    ("PUT", "day/decisions/ID/reward", {"reward": 1.0, "constraints": [1.0, 2.0]}, 422, "constraints"),
    ("PUT", "clicks/decisions/ID/reward", {"reward": 0.5}, 422, "reward"),
    ("PUT", "shares/decisions/ID/reward", {"reward": 3.0}, 422, "reward"),
    ("PUT", "late/decisions/ID/reward", {"reward": -1e9}, 422, "reward"),
    ("PUT", "arms/decisions/nothing/reward", {"reward": 1.0}, 404, "id"),
    ("POST", "arms/decisions/ID/failure", {"reason": " "}, 422, "reason"),
    ("POST", "arms/decisions/ID/failure", {}, 422, "reason"),
    ("POST", "arms/rewards", {"items": []}, 422, "items"),
    ("POST", "arms/observations", {"reward": 1.0}, 422, "parameters"),
    ("POST", "arms/observations", {"reward": 1.0, "arm": 9}, 422, "arm"),
    ("POST", "arms/observations", {"reward": 1.0, "point": [0.3]}, 422, "point"),
    ("POST", "arms/observations", {"reward": 1.0, "point": [0.0, 1.0]}, 422, "point"),
    ("POST", "space/observations", {"reward": 1.0, "parameters": {"price": 3.0}}, 422, "parameters"),
    ("POST", "space/observations", {"reward": 1.0, "parameters": {"price": "a", "kind": "a"}}, 422, "parameters"),
    ("POST", "space/observations", {"reward": 1.0, "arm": 1}, 422, "arm"),
    ("GET", "arms/predict?points=[", None, 422, "points"),
    ("GET", "arms/predict?points=[[0.3]]", None, 422, "points"),
    ("GET", "space/predict", None, 422, "points"),
    ("GET", "day/predict?points=[[0.3]]", None, 422, "context"),
    ("GET", "day/predict?points=[[0.3]]&context=[7e9]", None, 422, "context"),
    ("GET", "arms/predict?pionts=[[0.3]]", None, 422, "pionts"),
    ("GET", "arms/bounds?channel=1", None, 422, "channel"),
    ("GET", 'day/bounds?points=[[0.3]]&context={"day":3}&channel=7', None, 422, "channel"),
    ("GET", "day/bounds?points=[[0.3]]&context=[0.5]", None, 422, "context"),
    ("GET", "arms/feasible", None, 422, None),
    ("GET", "day/feasible?points=[[0.3]]", None, 422, "context"),
    ("GET", "arms/best?context=[1]", None, 422, "context"),
    ("GET", "arms/best", None, 409, None),
    ("GET", "arms/mix", None, 422, None),
    ("GET", "arms/mix?context=[1]", None, 422, "context"),
    ("GET", "arms/explain/999", None, 404, "number"),
    ("GET", "arms/explain/0?draws=-1", None, 422, "draws"),
    ("GET", "arms/events?after=x", None, 422, "after"),
    ("GET", "arms/export?format=xls", None, 422, "format"),
    ("GET", "nothing", None, 404, None),
]


@pytest.fixture(scope="module")
def client():
    with Client(MemoryStorage(), clock=Clock()) as made:
        made.ids = {}
        for name, body in STUDIES.items():
            assert made.put(f"/v1/studies/{name}", body)[0] == 201, name
            context = {"context": {"day": 3}} if name == "day" else {}
            status, said = made.post(f"/v1/studies/{name}/{ASKED}", context)
            assert status == 201, said
            made.ids[name] = said["decisions"][0]["id"]
        yield made


def refused(answer, status, field):
    """The sentence, of an answer that is a refusal in words of HTTP."""
    code, said = answer
    error = said["error"]
    assert code == status, error
    assert error["kind"] in KINDS
    assert PYTHON.search(error["sentence"]) is None, error["sentence"]
    assert error.get("field") == field, error
    return error["sentence"]


@pytest.mark.parametrize(("body", "field"), NO_STUDIES, ids=range(len(NO_STUDIES)))
def test_no_study_comes_of_it(client, body, field):
    refused(client.put("/v1/studies/new", body), 422, field)


@pytest.mark.parametrize(("method", "path", "body", "status", "field"), NO_REQUESTS, ids=range(len(NO_REQUESTS)))
def test_it_is_refused(client, method, path, body, status, field):
    study = path.partition("/")[0]
    at = f"/v1/studies/{path.replace('ID', client.ids.get(study, ''))}"
    refused(client.run(client.send(method, at, body)), status, field)


def test_what_contradicts_the_record_is_corrected_by_what_the_sentence_says(client):
    at = f"/v1/studies/together/{ASKED}"
    decision = client.post(at)[1]["decisions"][0]
    one = f"{at}/{decision['id']}"
    assert client.put(f"{one}/reward", {"reward": 1.0})[0] == 200
    said = refused(client.put(f"{one}/reward", {"reward": 2.0}), 409, None)
    assert '"revise": true' in said
    assert "/observations" in said
    assert "with the reward, or before it" in refused(client.put(f"{one}/reward", {"constraints": [0.1]}), 409, None)
    assert client.put(f"{one}/reward", {"reward": 2.0, "revise": True})[1]["reward"] == 2.0
    refused(client.post(f"{one}/abandonment", {}), 409, None)
    refused(client.post(f"{one}/failure", {"reason": "lost"}), 409, None)
    assert client.post(f"{one}/failure", {"reason": "lost", "revise": True})[1]["state"] == "failed"
    refused(client.put(f"{one}/reward", {"constraints": [0.2]}), 409, None)
    seen = client.get(one)[1]
    assert [(each["reward"], each["plays"], each["reason"]) for each in seen["corrected"]] == [
        (1.0, 1, None), (2.0, 1, None)
    ]  # fmt: skip


def test_what_was_told_late_is_corrected_too(client):
    at = f"/v1/studies/default/{ASKED}"
    one = f"{at}/{client.ids['default']}"
    client.service.workers._clock.now += 100.0
    client.post(at)
    assert client.put(f"{one}/reward", {"reward": 2.0})[1]["late"]
    assert '"revise": true' in refused(client.put(f"{one}/reward", {"reward": 3.0}), 409, None)
    assert client.put(f"{one}/reward", {"reward": 3.0, "revise": True})[1]["late_reward"] == 3.0
    assert client.get(one)[1]["late_reward"] == 3.0
    assert client.post(f"{one}/abandonment", {})[1]["late"]


def test_a_decision_that_nobody_works_on(client):
    at = f"/v1/studies/arms/{ASKED}"
    one = f"{at}/{client.post(at)[1]['decisions'][0]['id']}"
    said = client.post(f"{one}/abandonment", {"reason": "the till was closed"})[1]
    assert (said["state"], said["reason"]) == ("abandoned", "the till was closed")
    assert client.post(f"{one}/abandonment", {})[1] == said
    said = client.put(f"{one}/reward", {"reward": 1.0})[1]
    assert (said["state"], said["late"], said["counted"]) == ("observed", True, True)


def test_where_everything_has_failed_it_is_said_where_the_reasons_are(client):
    policy = {"algorithm": "gp_ucb", "kernel": KERNEL, "noise": 0.1}
    policy |= {"pending": {"type": "ignored", "failed": "aside"}}
    client.put("/v1/studies/failing", {"arms": [[0.0]], "policy": policy})
    at = f"/v1/studies/failing/{ASKED}"
    one = client.post(at)[1]["decisions"][0]
    client.post(f"{at}/{one['id']}/failure", {"reason": "no power"})
    assert "/export" in refused(client.post(at), 422, None)
    assert "/export" in refused(client.post(at, {"among": [0]}), 422, None)


def test_a_key_names_one_request(client):
    at = f"/v1/studies/arms/{ASKED}"
    client.post(at, {}, key="one")
    refused(client.post(at, {"count": 2}, key="one"), 422, "Idempotency-Key")
    refused(client.post(at, {}, key=" "), 422, "Idempotency-Key")


def test_observations_are_not_explained(client):
    status, said = client.post("/v1/studies/arms/observations", {"arm": 0, "reward": 1.0})
    assert status == 201
    refused(client.get(f"/v1/studies/arms/explain/{said['number']}"), 409, None)


# -- every sentence there is -----------------------------------------------------------------------------------------

# Of parts of one's own, of calls that no request makes, of what only its operator sees.
NOT_SERVED = {
    "plots", "papers", "cli", "integrations", "simulation", "environments", "client", "testing", "theory",
    "__main__.py", "gp/fitting.py", "gp/information_gain.py", "_utils/executors.py",
}  # fmt: skip
OWN_PARTS = {
    "theory/change/detector.py", "theory/change/schedules.py",
    "domains/search/arms.py", "theory/penalties.py",
    "storage/sql.py", "study/export.py", "tuning/toml/study_file.py",
    "tuning/toml/run.py", "study/replica.py",
    "serve/api/app.py", "serve/auth/tokens.py", "tuning/toml/evaluation.py",
}  # fmt: skip
FUNCTIONS = {
    "__reduce__", "checked", "checked_restart", "policy_in_force", "open", "answer_entries", "listed_answers",
    "imported", "_cut",
}  # fmt: skip
RAISED = {"InvalidInput", "TrialError", "NoRegretError", "Problem"}
BY_NAME = {"`Study`", "`Arms`"}


def sentences():
    """(place, words) of each refusal: what is said whoever hears it."""
    for path in FILES.values():
        name = str(path.relative_to(ROOT))
        if name in OWN_PARTS or (name.startswith("tuning/") and not name.startswith("tuning/toml/")):
            continue
        if {name, name.split("/")[0], str(Path(name).parent)} & NOT_SERVED:
            continue
        left = {id(each) for node in nodes(path) if isinstance(node, ast.FunctionDef) and node.name in FUNCTIONS
                for each in ast.walk(node)}  # fmt: skip
        for node in nodes(path):
            called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in RAISED
            if called and id(node) not in left:
                words = [*node.args, *(each.value for each in node.keywords if each.arg != "advice")]
                yield (
                    f"{name}:{node.lineno}",
                    "".join(
                        str(each.value) for word in words for each in ast.walk(word) if isinstance(each, ast.Constant)
                    ),
                )


def test_no_sentence_that_the_service_may_tell_names_python():
    found = dict(sentences())
    assert len(found) > 350
    assert {place: words for place, words in found.items() if PYTHON.search(words)} == {}


def test_every_kind_of_error_has_words():
    named = set()
    for path in (path for name, path in FILES.items() if name.startswith("serve")):
        for node in nodes(path):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Problem" and len(node.args) > 2:
                kind = node.args[1]
                named |= {kind.value} if isinstance(kind, ast.Constant) else set()
    assert named <= set(KINDS)


@pytest.mark.parametrize(
    ("other", "field"),
    [
        ({"seed": 1}, "seed"), ({"goal": "minimize"}, "goal"), ({"arms": [[0.0]]}, "arms"),
        ({"policy": {"algorithm": "greedy_mean", "noise": 0.1, "kernel": KERNEL}}, "policy"),
        ({"deadline": 2.0}, "deadline"), ({"about": {"a": 2}}, "about"),
    ],
)  # fmt: skip
def test_what_differs_from_a_study_that_there_is(client, other, field):
    body = of() | {"about": {"a": 1}, "deadline": 1.0}
    assert client.put("/v1/studies/there", body)[0] in (200, 201)
    said = refused(client.put("/v1/studies/there", body | other), 409, field)
    assert "service." not in said
