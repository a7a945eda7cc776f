"""Slopes on all surfaces: JSON, HTTP, the command line, runs that end at a refutation, and explanations."""

import json
import math
import re
from concurrent.futures import CancelledError
from pathlib import Path

import pytest
from click.testing import CliRunner

import nilregret as nr
from nilregret.__main__ import main
from nilregret.errors import InvalidInput, NoRegretError
from nilregret.serve.dashboard.pages.study import frame
from nilregret.serve.dashboard.views.health import health
from nilregret.serve.dashboard.views.standing import standing
from nilregret.serve.work.study_notes import NONE
from nilregret.storage import MemoryStorage

from .service import Client

MACHINE = nr.Space(speed=nr.Float(0, 10), power=nr.Float(1, 1000, log=True), fan=nr.Choice("low", "high"))
GRID = MACHINE.grid({"speed": 11, "power": 4})
START = {"speed": 1, "power": 10, "fan": "low"}
SLOPE = {"speed": 2.0, "power": 1.0, "fan": {"low": {"high": 8}}}


def heat(speed, power, fan):
    """The constraint: degrees above the limit."""
    return 1.9 * speed + 0.1 * power ** (1 / 3) + 6 * (fan == "high") - 8


def machine(speed, power, fan):
    return {"reward": speed + 0.001 * power, "constraints": [heat(speed, power, fan)]}


def limits(**more):
    return nr.Safe(**{"start": [START], "slope": SLOPE, "noise": 0.1, **more})


def policy(**more):
    return nr.auto(GRID, constraints=limits(**more))


FLAT = {**SLOPE, "speed": 0.5}  # a quarter of what is true


def refuted(**more):
    """A study whose slopes are refuted by its first two answers, with a trial open."""
    study = nr.Study(policy(slope=FLAT), seed=0, **more)
    study.add(START, 1.0, constraints=[heat(**START)])
    open_ = study.ask()
    fast = {**START, "speed": 4}
    study.add(fast, 4.0, constraints=[heat(**fast)])
    return study, open_


def test_a_policy_without_slopes_is_written_as_before_there_were_any():
    old = nr.gp_ucb(GRID, nr.kernel_for(GRID), noise=0.1, constraints=nr.Safe(start=[START], scale=5.0, noise=0.1))
    said = json.loads(old.to_json())["constraints"]
    assert not {"slope", "independent", "caution"} & set(said)
    assert nr.Policy.from_json(old.to_json()) == old


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"slope": {**SLOPE, "fan": None}},
        {"independent": True, "caution": 1.0},
        {"count": 2, "slope": (SLOPE, {**SLOPE, "fan": 3.0}), "noise": (0.1, 0.0)},
    ],
)
def test_a_policy_with_slopes_survives_json(more):
    made = policy(**more)
    again = nr.Policy.from_json(made.to_json())
    assert again == made
    assert again.to_json() == made.to_json()


def test_jumps_between_options_of_any_kind_survive_json():
    space = nr.Space(kind=nr.Choice(dict, list), layers=nr.Choice((64,), (64, 32)), on=nr.Choice(True, False))
    slope = {"kind": {dict: {list: 2.0}}, "layers": {(64,): {(64, 32): 3}}, "on": {"true": {"false": 1.0}}}
    start = {"kind": dict, "layers": (64,), "on": True}
    made = nr.auto(space.grid(), constraints=nr.Safe(start=[start], slope=slope, noise=0.0, caution=1.0))
    again = nr.Policy.from_json(made.to_json())
    assert again.constraints == made.constraints
    for each in (made, again):
        study = nr.Study(each)
        study.add(start, 0.0, constraints=[-5.5])
        arms = [space.decode(point) for point in made.domain.points]
        far = [2.0 * (arm["kind"] is not dict) + 3 * (len(arm["layers"]) > 1) + (not arm["on"]) for arm in arms]
        assert study.feasible().tolist() == [float(distance <= 5.0) for distance in far]


def test_a_new_study_takes_over_the_trials_of_a_refuted_one():
    old, open_ = refuted()
    assert "new.add_from(old)" in old.remarks["refuted"]
    with pytest.raises(NoRegretError, match="Trials 0 and 2 refute"):
        old.ask()
    old.tell(open_, 1.0, constraints=[heat(**open_.parameters)])  # Open trials are told afterwards.
    new = nr.Study(policy(), seed=1)
    new.add_from(old)
    assert [(each.parameters, each.reward, list(each.constraints)) for each in new.trials] == [
        (each.parameters, each.reward, list(each.constraints)) for each in old.trials
    ]
    for _ in range(5):
        trial = new.ask()
        value = heat(**trial.parameters)
        assert value <= 0.0
        new.tell(trial, trial.parameters["speed"], constraints=[value])
    assert not new.remarks


def test_an_empty_study_teaches_nothing():
    with pytest.raises(InvalidInput, match="no row has a reward"):
        nr.Study(policy()).add_from(nr.Study(policy()))


@pytest.mark.parametrize("steps", [False, True])
def test_an_objective_says_that_its_measurement_was_lost(steps):
    calls = []

    def measured(speed, power, fan):
        calls.append(speed)
        if len(calls) == 1:
            raise CancelledError("the sensor fell off")
        return machine(speed, power, fan)

    def reported(**point):
        yield measured(**point)

    found = nr.maximize(
        reported if steps else measured, GRID, trials=3, policy=policy(), constraints=1, progress=False, seed=0
    )
    assert [trial.state for trial in found.trials] == ["abandoned", "observed", "observed"]
    assert found.trials[0].abandoned.reason == "the sensor fell off"
    assert found.trials[1].parameters == START


@pytest.mark.parametrize("way", ["tell", "enqueue"])
def test_a_failed_start_is_told_or_played_again(way):
    study = nr.Study(policy(), seed=0)
    study.fail(study.ask(), "the sensor fell off")
    with pytest.raises(NoRegretError, match=r"revise=True.* tells it, or `study.enqueue.*CancelledError"):
        study.ask()
    if way == "enqueue":
        study.enqueue(START)
        study.tell(study.ask(), 1.0, constraints=[heat(**START)])
    else:
        study.tell(0, 1.0, constraints=[heat(**START)], revise=True)
    assert study.ask().parameters


@pytest.mark.parametrize("in_flight", [1, 3])
def test_a_run_ends_at_a_refutation_with_its_result(in_flight):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(in_flight) as executor:
        found = nr.maximize(
            machine, GRID, trials=30, policy=policy(slope=FLAT), constraints=1, progress=False, seed=0,
            executor=executor if in_flight > 1 else None,
        )  # fmt: skip
    assert found.stopped.startswith(f"refused: no trial is decided after {len(found.trials)} of 30 trials. Trials ")
    assert "refute the certificate" in found.stopped
    assert len(found.trials) < 30
    assert all(trial.state == "observed" for trial in found.trials)
    assert found.best is not None


def climbed(domain, rounds, **more):
    study = nr.Study(nr.auto(domain, constraints=limits(**more)), seed=0)
    for _ in range(rounds):
        trial = study.ask()
        study.tell(trial, trial.parameters["speed"], constraints=[heat(**trial.parameters)])
    return study


@pytest.mark.parametrize("domain", [GRID, MACHINE], ids=["grid", "space"])
def test_an_explanation_says_what_certified_a_point(domain):
    study = climbed(domain, 7, caution=1.0)
    assert study.explain(0, draws=0).proofs == ("stated by `start`",)
    towards = []
    for trial in study.trials[1:]:
        why = study.explain(trial, draws=0)
        assert why.repeated
        (proof,) = why.proofs
        by, terms, total = re.fullmatch(r"by trial (\d+): told (.*) = (.*) <= 0", proof).groups()
        assert int(by) < trial.number
        told, *added = terms.split(" + ")
        summed = float(told) + sum(math.prod(map(float, each.partition(" (")[0].split(" x "))) for each in added)
        assert summed == pytest.approx(float(total), abs=0.02)
        assert float(told) == pytest.approx(study.trials[int(by)].constraints[0], abs=0.01)
        assert heat(**trial.parameters) <= float(total) + 0.01
        assert why.to_dict()["proofs"] == [proof]
        assert ("certified", f"constraint 1, {proof}") in why.facts
        towards += [why] if why.towards is not None else []
    for why in towards:
        assert why.towards.name in why.why
    assert towards


def test_a_proof_has_the_caution_as_a_factor():
    study = climbed(GRID, 1, caution=1.5)
    study.enqueue({"speed": 1, "power": 1, "fan": "low"})
    (proof,) = study.explain(study.ask(), draws=0).proofs
    assert proof == "by trial 0: told -5.885 + 0.1 (noise) + 4 x (1 x 1 (power)) = -1.785 <= 0"  # the first step


def test_an_explanation_without_slopes_has_no_proofs():
    study = nr.Study(nr.auto(GRID, constraints=1))
    assert not {"proofs", "towards"} & set(study.explain(study.ask(), draws=0).to_dict())


FILE = """
goal = "maximize"
trials = {trials}
storage = "sqlite:///{folder}/tune.db"
grid = {{ speed = 11, power = 4 }}

[objective]
function = "objective:machine"
constraints = ["heat <= 8"]

[parameters]
speed = {{ type = "float", low = 0, high = 10 }}
power = {{ type = "float", low = 1, high = 1000, log = true }}
fan = {{ type = "choice", options = ["low", "high"] }}

[policy]
algorithm = "auto"

[policy.constraints]
type = "safe"
start = [{{ speed = 1, power = 10, fan = "low" }}]
slope = {{ speed = {speed}, power = 1.0, fan = {fan} }}
noise = 0.1
"""
OBJECTIVE = """
def machine(speed, power, fan):
    return {"reward": speed, "heat": 1.9 * speed + 0.1 * power ** (1 / 3) + 6 * (fan == "high")}
"""


@pytest.mark.parametrize(
    ("speed", "fan", "status", "words"),
    [
        (2.0, "{ low = { high = 8 } }", 0, "speed=3"),
        (0.5, "inf", 1, "Stopped: refused: no trial is decided after 3 of 5"),
    ],
)
def test_a_tuning_file_has_slopes(tmp_path, monkeypatch, speed, fan, status, words):
    (tmp_path / "objective.py").write_text(OBJECTIVE)
    (tmp_path / "tune.toml").write_text(FILE.format(folder=tmp_path, trials=5, speed=speed, fan=fan))
    monkeypatch.chdir(tmp_path)
    ran = CliRunner().invoke(main, ["tune", "tune.toml"])
    assert ran.exit_code == status, ran.output
    assert words in ran.output
    shown = CliRunner().invoke(main, ["show", "sqlite:///tune.db", "tune", "--picture", "tune.svg"])
    assert shown.exit_code == 0, shown.output  # After a refutation, too, only asking is refused.
    assert ("refute the certificate" in shown.output) == bool(status)


SPACE = {
    "speed": {"type": "float", "low": 0, "high": 10},
    "power": {"type": "float", "low": 1, "high": 1000, "log": True},
    "fan": {"type": "choice", "options": ["low", "high"]},
}


def body(**more):
    """A study in the words of HTTP."""
    safe = {"type": "safe", "start": [START], "slope": SLOPE, "noise": 0.1, **more}
    return {"space": SPACE, "grid": {"speed": 11, "power": 4}, "constraints": 1, "policy": {"constraints": safe}}


@pytest.fixture
def service():
    with Client(MemoryStorage()) as made:
        yield made


@pytest.mark.parametrize(
    ("more", "words", "field"),
    [
        ({"slope": {**SLOPE, "speed": 0}}, "`slope['speed']` is 0", ""),
        ({"slope": {"speed": 2.0, "power": 1.0}}, "says nothing of parameter `fan`", ".slope"),
        ({"slope": 2.0}, "the parameters have names", ".slope"),
        ({"slope": {**SLOPE, "fan": {"low": {"hgh": 8}}}}, "names the option 'hgh'", ""),
        ({"slope": {**SLOPE, "fan": {"low": {"low": 8}}}}, "from 'low' to itself", ""),
        ({"slope": {**SLOPE, "fan": {"low": {"high": "x"}}}}, "must be a number", ""),
        ({"slope": {**SLOPE, "speed": "fast"}}, "must be a number", ""),
        ({"slope": {f"s{i}": 1.0 for i in range(1001)}}, "", None),
        ({"caution": 0.5}, "`caution` is 0.5", ".caution"),
        ({"certificate": "bounds"}, "certifies by itself", ".slope"),
    ],
)
def test_a_wrong_slope_over_http_is_a_sentence(service, more, words, field):
    status, said = service.put("/v1/studies/mill", body(**more))
    assert status == 422
    assert words in said["error"]["sentence"]
    if field is not None:
        assert said["error"]["field"] == f"policy.constraints{field}"


def test_the_page_of_the_service_has_a_safe_study(service):
    page = (Path(__file__).parent.parent / "docs" / "service.md").read_text()
    made = json.loads(next(block for block in re.findall(r"```json\n(.*?)```", page, re.S) if '"safe"' in block))
    less = {name: value for name, value in made.items() if name != "constraints"}
    assert '{"constraints": 1, "policy": {"constraints": ...}}' in str(service.put("/v1/studies/heater", less))
    assert service.put("/v1/studies/heater", made)[0] == 201
    decided = service.post("/v1/studies/heater/decisions", {})[1]["decisions"][0]
    assert decided["parameters"] == made["policy"]["constraints"]["start"][0]


def test_slopes_over_http_up_to_a_refutation_and_after_it(service):
    assert service.put("/v1/studies/mill", body(slope={**FLAT, "fan": None}))[0] == 201
    assert service.put("/v1/studies/mill", body(slope={**FLAT, "fan": None}))[0] == 200
    assert service.put("/v1/studies/mill", body())[0] == 409

    def ask(name):
        return service.post(f"/v1/studies/{name}/decisions", {})

    def tell(made):
        told = {"reward": 1.0, "constraints": [heat(**made["parameters"])]}
        return service.put(f"/v1/studies/mill/decisions/{made['id']}/reward", told)

    decided = [ask("mill")[1]["decisions"][0]]
    assert tell(decided[0])[0] == 200
    decided += [ask("mill")[1]["decisions"][0] for _ in range(2)]
    late = decided.pop(1)
    while (asked := ask("mill"))[0] == 201:
        decided.append(asked[1]["decisions"][0])
        assert tell(decided[-1])[0] == 200
    status, said = asked
    assert (status, said["error"]["kind"]) == (422, "refused")
    assert "refute the certificate" in said["error"]["sentence"]
    assert "POST .../observations" in said["error"]["sentence"]
    assert tell(late)[0] == 200  # An open decision is answered afterwards.
    assert ask("mill")[0] == 422
    assert any("refute the certificate" in each for each in service.get("/v1/studies/mill")[1]["cautions"])
    assert "stated by `start`" in str(service.get("/v1/studies/mill/explain/0"))
    assert service.put("/v1/studies/steeper", body())[0] == 201
    lines = service.get("/v1/studies/mill/export")[1]
    headers = {"Content-Type": "application/x-ndjson"}
    assert service.post("/v1/studies/steeper/observations", raw=lines, key="all", headers=headers)[0] == 200
    assert ask("steeper")[0] == 201


def test_pages_say_what_refuted():
    study, _ = refuted()
    assert "two answers refute" in frame(study, NONE, now=0.0)["next"]["said"]  # A page begins with this.
    assert "two answers refute" in standing(study, now=0.0)["next"]["said"]
    assert "refute the certificate" in str(health(study, now=0.0)["remarks"])
    assert health(climbed(GRID, 2), now=0.0)["remarks"] == []


@pytest.mark.nightly
def test_a_picture_shades_what_is_not_certified(tmp_path):
    nr.plots.slices(climbed(GRID, 4), tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text()
    assert "not certified" in text
    assert "not feasible" not in text


def test_a_correction_heals_a_refutation():
    study, open_ = refuted()
    with pytest.raises(NoRegretError, match="refute"):
        study.ask()
    study.tell(study.trials[2], 4.0, constraints=[heat(**START) + 0.5], revise=True)
    assert not study.remarks
    study.tell(open_, 1.0, constraints=[heat(**START)])
    assert study.ask().number == 3


def test_a_reopened_study_decides_the_same_and_is_refuted_alike(tmp_path):
    where = {"storage": f"sqlite:///{tmp_path}/a.db", "name": "mill"}
    study, open_ = refuted(**where)
    again = nr.Study.open(**where)
    assert again.remarks == study.remarks
    again.tell(open_.number, 1.0, constraints=[heat(**open_.parameters)])
    assert again.policy == study.policy
    assert again.explain(open_.number, draws=0).repeated
    assert again.explain(open_.number, draws=0).proofs == study.explain(open_.number, draws=0).proofs


def test_commands_of_slopes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "objective.py").write_text(OBJECTIVE)
    said = FILE.format(folder=tmp_path, trials=5, speed=0.5, fan="{ low = { high = 8 } }")
    grid, parameters = re.search("grid.*", said)[0], said[said.index("[parameters]") :]
    (tmp_path / "mill.toml").write_text(f"constraints = 1\n{grid}\n{parameters}")

    def run(*words):
        ran = CliRunner().invoke(main, [*words[:1], "sqlite:///a.db", "mill", *words[1:]])
        return ran.exit_code, ran.output

    assert run("create", "mill.toml")[0] == 0
    assert run("ask")[0] == 0
    assert run("tell", "0", "1.0", "--constraint", str(heat(**START)))[0] == 0
    status, said = run("explain", "0")
    assert (status, "stated by `start`" in said) == (0, True)
    assert run("add", json.dumps({**START, "speed": 4}), "4.0", "--constraint", "3.0")[0] == 0
    status, said = run("ask")
    assert status == 1
    assert "Trials 0 and 1 refute the certificate" in said
    assert "`nilregret import` takes over" in said
    status, said = run("work", "objective:machine", "--trials", "5")
    assert status == 1
    assert "refute the certificate" in said
