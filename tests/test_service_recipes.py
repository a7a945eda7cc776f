"""Studies put in the words of a file: whichever algorithm, the same policy as the file makes, and none too large."""

import json
import resource
import time

import numpy as np
import pytest

import nilregret as nr
from nilregret.algorithms import registry
from nilregret.serve.api.size_limits import check_posterior
from nilregret.serve.wire.settings import Limits, Settings
from nilregret.slots.change_detection import DriftBank
from nilregret.slots.envelope import ConstantWidth
from nilregret.slots.memory import Discount
from nilregret.slots.refit import LengthscaleBank
from nilregret.storage import MemoryStorage

from .service import Client, plain

KERNEL = {"type": "matern", "nu": 2.5, "lengthscale": 0.2}
NEEDED = {
    "gp_ts_sdf": {"window": 3.0, "norm_bound": 1.0, "minimum": 0.0}, "gp_ucb_cpd": {"horizon": 50},
    "gp_ucb_sdf": {"window": 3.0, "norm_bound": 1.0, "minimum": 0.0}, "igp_ucb": {"norm_bound": 1.0},
    "gp_ts": {"norm_bound": 1.0}, "kernel_ucb": {"eta": 1.0}, "lb_gp_ucb": {"norm_bound": 1.0},
    "hypervolume_thompson": {"reference": [-2.0, -2.0]}, "hypervolume_ucb": {"reference": [-2.0, -2.0]},
    "gp_ucb_noiseless_constraints": {"epoch": 5, "epochs": 3, "norm_bound": 1.0},
    "gp_ucb_noisy_constraints": {"epoch": 5, "epochs": 3, "norm_bound": 1.0},
}  # fmt: skip
SPACE = {"heat": {"type": "float", "low": 0.0, "high": 1.0}, "way": {"type": "choice", "options": ["a", "b"]}}
MANY = {"type": "float", "low": 0.0, "high": 1.0}


@pytest.fixture
def client():
    with Client(MemoryStorage()) as made:
        yield made


def test_limits_of_a_recipe_are_limits_of_its_space(client):
    body = {"space": SPACE, "where": ["heat <= 0.5 or way == 'b'"]}
    assert client.put("/v1/studies/new", body)[0] == 201
    limited = nr.Space(heat=nr.Float(0.0, 1.0), way=nr.Choice("a", "b")).where("heat <= 0.5 or way == 'b'")
    assert client.get("/v1/studies/new")[1]["policy"] == plain(nr.auto(limited))
    for other, status in ((["heat <= 0.5  or  way=='b'"], 200), (["heat <= 0.6 or way == 'b'"], 409), ([], 409)):
        assert client.put("/v1/studies/new", body | {"where": other})[0] == status
    for wrong, words in (
        ("heta <= 1", "Did you mean 'heat'"),
        ("heat >= 2", "holds nowhere"),
        ("heat", "no comparison"),
    ):
        status, said = client.put("/v1/studies/other", body | {"where": [wrong]})
        assert (status, words in str(said), "where" in str(said)) == (422, True, True), said
    status, said = client.put("/v1/studies/other", {"arms": [[0.0], [1.0]], "where": ["x <= 1"]})
    assert (status, "`where` is of the parameters of a `space`" in str(said)) == (422, True)
    status, said = client.put("/v1/studies/other", {"policy": plain(nr.auto(limited)), "where": ["heat <= 1"]})
    assert (status, "`where` is part of a recipe" in str(said)) == (422, True)


@pytest.mark.parametrize("algorithm", registry.ALGORITHMS_LIVE)
def test_every_algorithm_decides(client, algorithm):
    policy = {"algorithm": algorithm, "kernel": KERNEL, "noise": 0.1} if algorithm != "auto" else {}
    limited = algorithm in registry.IN_EPOCHS
    body = {"space": SPACE, "grid": 4, "policy": policy | NEEDED.get(algorithm, {}), "constraints": int(limited)}
    status, said = client.put("/v1/studies/new", body)
    assert (status, said.get("algorithm")) == (201, algorithm), said
    for _ in range(3):
        status, said = client.post("/v1/studies/new/decisions")
        assert status == 201, said
        told = {"reward": [0.5, 0.1] if "hypervolume" in algorithm else 0.5} | (
            {"constraints": [0.1]} if limited else {}
        )
        assert client.put(f"/v1/studies/new/decisions/{said['decisions'][0]['id']}/reward", told)[0] == 200


def test_the_same_words_make_the_same_policy_as_in_python(client):
    body = {
        "space": SPACE, "context": {"day": {"type": "int", "low": 0, "high": 6}}, "constraints": 1,
        "policy": {
            "algorithm": "gp_ucb", "kernel": {"type": "for_parameters"}, "noise": 0.1, "memory": "adaptive",
            "pending": {"type": "hallucinated"}, "search": {"candidates": 256},
            "width": {"type": "constant", "value": 2.0},
        },
    }  # fmt: skip
    assert client.put("/v1/studies/new", body)[0] == 201
    space = nr.Space(heat=nr.Float(0.0, 1.0), way=nr.Choice("a", "b"))
    days = nr.Space(day=nr.Int(0, 6))
    expected = nr.gp_ucb(
        space, nr.kernel_for(space, context=days), noise=0.1, context=days, memory="adaptive",
        pending=nr.slots.Hallucinated(failed="worst"), search=nr.slots.PointSearch(candidates=256),
        width=ConstantWidth(value=2.0), constraints=nr.EveryRound(count=1),
    )  # fmt: skip
    assert client.get("/v1/studies/new")[1]["policy"] == plain(expected)


def test_a_budget_on_average_by_its_name(client):
    policy = {"algorithm": "gp_ucb", "kernel": KERNEL, "noise": 0.1}
    own = {"type": "on_average", "step": 0.5, "kernel": {"type": "matern", "lengthscale": 0.5}, "noise": 0.0}
    for name, said in (
        ("short", policy | {"constraints": "on_average"}), ("auto", {"constraints": "on_average"}),
        ("long", policy | {"constraints": own | {"confidence": 1.0, "prior_mean": -0.1}}),
    ):  # fmt: skip
        body = {"arms": [[0.0], [1.0]], "constraints": 2, "policy": said}
        assert client.put(f"/v1/studies/{name}", body)[0] == 201
        for _ in range(3):
            at = f"/v1/studies/{name}/decisions"
            (decision,) = client.post(at)[1]["decisions"]
            told = {"reward": 1.0, "constraints": [0.5, -0.5]}
            assert client.put(f"{at}/{decision['id']}/reward", told)[0] == 200
        price, free = client.get(f"/v1/studies/{name}")[1]["multipliers"]
        assert price > 0.0 == free
    expected = nr.gp_ucb(
        nr.Arms([[0.0], [1.0]]), nr.Matern(2.5, 0.2), noise=0.1, pending=nr.slots.Ignored(failed="worst"),
        constraints=nr.OnAverage(
            count=2, step=0.5, kernel=nr.Matern(2.5, 0.5), noise=0.0, confidence=1.0, prior_mean=-0.1
        ),
    )  # fmt: skip
    assert client.get("/v1/studies/long")[1]["policy"] == plain(expected)


def test_in_which_sense_constraints_hold_needs_constraints(client):
    policy = {"algorithm": "gp_ucb", "kernel": KERNEL, "noise": 0.1}
    for body, words in (
        (
            {"policy": policy | {"constraints": "on_average"}},
            'as in {"constraints": 1, "policy": {"cons',
        ),
        ({"constraints": 1, "policy": policy | {"constraints": "on_avrage"}}, "Did you mean 'on_average'?"),
    ):
        status, said = client.put("/v1/studies/none", {"arms": [[0.0], [1.0]]} | body)
        assert (status, said["error"]["field"]) == (422, "policy.constraints")
        assert words in said["error"]["sentence"]


def test_clicks_and_runs_of_plays(client):
    clicks = {"type": "bernoulli", "ceiling": 0.2}
    body = {"arms": [[0.0], [1.0]], "policy": {"algorithm": "igp_ucb", "width": "lr", "kernel": KERNEL,
            "norm_bound": 1.0, "reward": clicks}}  # fmt: skip
    assert client.put("/v1/studies/clicks", body)[0] == 201
    assert client.get("/v1/studies/clicks")[1]["policy"]["objective"]["ceiling"] == 0.2
    body = {"arms": [[0.0], [1.0]], "policy": {"algorithm": "gp_ucb", "kernel": KERNEL, "noise": 0.1,
            "switching": {"type": "lazy", "factor": 2.0}}}  # fmt: skip
    assert client.put("/v1/studies/runs", body)[0] == 201
    assert client.get("/v1/studies/runs")[1]["policy"]["switching"] == {"type": "Lazy", "factor": 2.0}
    assert client.post("/v1/studies/runs/decisions")[1]["decisions"][0]["repeats"] >= 1


def test_no_module_is_imported_for_a_name(client, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mine_of_service.py").write_text("raise SystemExit('imported')")
    for name in ("mine_of_service.Kernel", "mine_of_service:Kernel"):
        body = {"arms": [[0.0]], "policy": {"algorithm": "gp_ucb", "noise": 0.1, "kernel": {"type": name}}}
        status, said = client.put("/v1/studies/new", body)
        assert (status, said["error"]["field"]) == (422, "policy.kernel.type")
        assert "must be one of" in said["error"]["sentence"]


# -- sizes -----------------------------------------------------------------------------------------------------------


def grid(count, **more):
    space = {"type": "Space", "parameters": [[f"x{i}", {"type": "Float", "low": 0.0, "high": 1.0}] for i in range(3)]}
    return {"type": "Arms", "space": space, "counts": [[f"x{i}", count] for i in range(3)], **more}


POLICY = plain(nr.gp_ucb(nr.Arms.grid(0, 1, 5), nr.Matern(2.5, 0.2), noise=0.1))
SEARCHING = plain(nr.gp_ucb(nr.Box([0.0], [1.0]), nr.Matern(2.5, 0.2), noise=0.1))
BIT = {"type": "int", "low": 0, "high": 1}
ONES = {f"c{i}": {"type": "choice", "options": ["a"]} for i in range(5000)}


def deep(levels):
    kernel = {"type": "Linear", "scale": 1.0}
    for _ in range(levels):
        kernel = {"type": "Sum", "left": kernel, "right": {"type": "Linear", "scale": 1.0}}
    return kernel


HOSTILE = [  # what is put, and the entry to blame
    ({"space": {"x": MANY, "y": MANY, "z": MANY}, "grid": 1000}, "grid"),
    ({"space": {"x": MANY, "y": MANY, "z": MANY}, "grid": {"x": 9999, "y": 9999, "z": 9999}}, "grid"),
    ({"space": {"k": BIT, "x": MANY, "y": MANY | {"when": {"k": 1}}}, "grid": 999}, "grid"),
    ({"space": ONES | {"x": MANY, "y": MANY}, "grid": 1000}, "space"),
    ({"space": {f"x{i}": MANY for i in range(10_000)}}, "space"),
    ({"space": {"c": {"type": "choice", "options": list(range(10_000))}}}, "space"),
    ({"arms": [[0.0]], "context": {f"x{i}": MANY for i in range(10_000)}}, "context"),
    ({"arms": [[i] for i in range(20_000)]}, "arms"),
    ({"arms": [[0.0] * 10_000]}, None),
    ({"arms": [[0.0]], "constraints": 10**6}, "constraints"),
    ({"arms": [[0.0]], "policy": {"parallel": 10**12}}, "policy.parallel"),
    ({"arms": [[0.0]], "policy": {"algorithm": "gp_ucb", "noise": 1.0, "kernel": KERNEL, "refit": {"restarts": 1000}}},
     "policy.restarts"),
    ({"space": {"x": MANY}, "policy": {"algorithm": "gp_ucb", "noise": 1.0, "kernel": KERNEL,
      "search": {"candidates": 10**6}}}, "policy.candidates"),
    ({"arms": [[0.0]], "policy": {"algorithm": "gp_ucb", "noise": 1.0, "kernel": KERNEL,
      "memory": {"type": "drift_bank", "rates": [i / 3000 for i in range(1, 2000)]}}}, "policy.rates"),
    ({"policy": POLICY | {"domain": grid(1000)}}, "policy"),
    ({"policy": POLICY | {"domain": grid(10**9)}}, "policy"),
    ({"policy": POLICY | {"memory": grid(1000)}}, "policy"),
    ({"policy": POLICY | {"domain": grid(20), "context": grid(20)}}, "policy"),
    ({"policy": POLICY | {"domain": grid(3, counts=[["x0", 3, 4]])}}, "policy"),
    ({"policy": POLICY | {"domain": {"type": "Arms", "points": [[0.0] * 9999], "space": None}}}, "policy"),
    ({"policy": POLICY | {"domain": {"type": "Box", "lower": [0.0] * 999, "upper": [1.0] * 999}}}, "policy"),
    ({"policy": SEARCHING | {"search": SEARCHING["search"] | {"candidates": 2**20}}}, "policy.candidates"),
    ({"policy": json.dumps(SEARCHING | {"search": SEARCHING["search"] | {"around": 2**20}})}, "policy.around"),
    ({"policy": POLICY | {"kernel": deep(90)}}, None),
    ({"policy": POLICY | {"kernel": {"type": "Sum", "left": [deep(10)] * 200, "right": deep(1)}}}, "policy"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "field"), HOSTILE, ids=range(len(HOSTILE)))
def test_no_study_takes_the_memory_or_the_processor_of_all(client, body, field):
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    status, said = client.put("/v1/studies/new", body)
    if field is None:
        assert status in (201, 422)
        assert client.post("/v1/studies/new/decisions")[0] in (201, 404)
    else:
        assert (status, said["error"].get("field")) == (422, field), said
    assert time.process_time() - began < 60.0  # none of them would come to an end otherwise
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # KB


def test_the_limits_are_those_of_the_settings():
    with Client(MemoryStorage(), settings=Settings(limits=Limits(arms=3, columns=1, parts=5))) as client:
        assert client.put("/v1/studies/new", {"arms": [[0.0]] * 4})[0] == 422
        assert client.put("/v1/studies/new", {"space": SPACE})[0] == 422
        assert client.put("/v1/studies/new", {"arms": [[0.0]]})[0] == 422  # an ordinary policy has more than five parts


ROUGH, SMOOTH, THREE_HUNDRED = nr.Matern(0.5, lengthscale=1e-5), nr.SquaredExponential(0.3), nr.Arms.grid(0, 1, 300)


@pytest.mark.parametrize(
    ("make", "rough"),
    [
        (lambda k: nr.gp_ucb(THREE_HUNDRED, k, noise=0.1), True),
        (lambda k: nr.gp_ts(THREE_HUNDRED, k, noise=0.1, norm_bound=1.0), False),
        (lambda k: nr.gp_ucb(THREE_HUNDRED, k, noise=0.1, memory=DriftBank()), False),
        (lambda k: nr.gp_ucb(THREE_HUNDRED, k, noise=0.1, memory=Discount(0.01)), False),
        (lambda k: nr.gp_ucb(THREE_HUNDRED, k, noise=0.1, constraints=nr.EveryRound(count=2)), False),
        (lambda k: nr.gp_ucb(THREE_HUNDRED, k, noise=0.1, refit=LengthscaleBank()), False),
        (lambda k: nr.gp_ucb(THREE_HUNDRED, k, noise=0.1, pending="hallucinate"), False),
        (lambda _: nr.auto(THREE_HUNDRED, reward="bernoulli"), True),
        (
            lambda k: nr.gp_ts(nr.Arms.grid(0, 1, 30), k, noise=0.1, norm_bound=1.0, context=nr.Arms.grid(0, 1, 10)),
            True,
        ),
    ],
)
def test_limits_know_what_a_posterior_will_hold(make, rough):
    """Twice as many numbers as there are pairs of arms, and some."""
    limits = Limits(posterior_bytes=2**21)
    policies = {True: make(SMOOTH if make(SMOOTH).context is None else nr.SquaredExponential((0.3, 0.3)))}
    policies[False] = make(ROUGH if policies[True].context is None else nr.Matern(0.5, (1e-5, 1e-5)))
    for smooth, policy in policies.items():
        if smooth or rough:
            check_posterior(policy, limits)
        else:
            with pytest.raises(nr.errors.InvalidInput, match="on 300 arms would hold more than the 2 MB"):
                check_posterior(policy, limits)


@pytest.mark.parametrize("part", [{"refit": LengthscaleBank(factors=(0.5, 1.0))}, {"memory": DriftBank((0.0, 0.1))}])
def test_banks_that_weigh_by_the_noise_hold_twice_as_much_under_another_regulariser(part):
    limits = Limits(posterior_bytes=2**22 if "refit" in part else 2**24)
    check_posterior(nr.gp_ucb(THREE_HUNDRED, ROUGH, noise=0.1, **part), limits)
    with pytest.raises(nr.errors.InvalidInput, match="on 300 arms would hold more"):
        check_posterior(nr.igp_ucb(THREE_HUNDRED, ROUGH, noise=0.1, norm_bound=1.0, **part), limits)


def test_features_of_kernels_are_counted_too():
    """2,000 features are 32 MB, twice with hallucination; a block for each of 20 arms of 100 features is 1.6 MB."""
    smooth, wave = nr.kernels.RandomFeatures(nr.Matern(2.5), 1000), nr.kernels.RandomFeatures(nr.Matern(2.5), 50)
    box, limits = nr.Box([0.0] * 2, [1.0] * 2), Limits(posterior_bytes=40 << 20)
    check_posterior(nr.gp_ucb(box, smooth, noise=0.1), limits)
    with pytest.raises(nr.errors.InvalidInput, match="61 MB for the features"):
        check_posterior(nr.gp_bucb(box, smooth, noise=0.1, beta=2.0), limits)
    contextual = nr.kernels.Overlap([0] * 20).on(*range(2, 22)) * wave.on(0, 1)
    arms = nr.Arms(np.eye(20))
    check_posterior(nr.gp_bucb(arms, contextual, noise=0.1, beta=2.0, context=box), Limits(posterior_bytes=4 << 20))
    with pytest.raises(nr.errors.InvalidInput, match="fewer features"):
        check_posterior(nr.gp_ucb(arms, contextual, noise=0.1, context=box, a=1, b=1), Limits(posterior_bytes=1 << 20))


def test_a_policy_whose_posterior_is_too_large_is_refused_before_it_is_made(monkeypatch):
    monkeypatch.setattr("nilregret.gp.drifting.BankPosterior.__init__", None)
    policy = {"algorithm": "gp_ucb", "noise": 0.1, "memory": {"type": "drift_bank"},
              "kernel": {"type": "matern", "nu": 0.5, "lengthscale": 1e-5}}  # fmt: skip
    whole_one = json.loads(nr.gp_ucb(THREE_HUNDRED, ROUGH, noise=0.1, memory=DriftBank()).to_json())
    with Client(MemoryStorage(), settings=Settings(limits=Limits(posterior_bytes=2**21))) as client:
        for body in ({"space": {"x": MANY}, "grid": 300, "policy": policy}, {"policy": whole_one}):
            status, said = client.put("/v1/studies/new", body)
            assert (status, said["error"]["field"]) == (422, "policy")
            assert "so rough that hardly an arm says anything of another" in said["error"]["sentence"]


def test_no_decision_looks_at_more_points_than_a_study_may_have():
    with Client(MemoryStorage(), settings=Settings(limits=Limits(arms=3))) as client:
        client.put("/v1/studies/new", {"space": SPACE})
        points = [{"heat": 0.1 * i, "way": "a"} for i in range(4)]
        assert client.post("/v1/studies/new/decisions", {"among": points[:3]})[0] == 201
        status, said = client.post("/v1/studies/new/decisions", {"among": points})
        assert (status, said["error"]["field"]) == (422, "among")
