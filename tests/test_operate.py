"""Studies looked at and driven from the command line."""

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import nilregret as nr
from nilregret.__main__ import main
from nilregret.cli import common as errors
from nilregret.storage import SqlStorage

from .service import stored_before
from .waiting import LONG

FILE = """
goal = "minimize"
seed = 3
grid = 5
[parameters.heat]
type = "float"
low = 120.0
high = 250.0
[parameters.kind]
type = "choice"
options = ["rye", "wheat"]
[policy]
algorithm = "gp_ucb"
noise = 0.1
kernel = { type = "for_parameters" }
"""
K = nr.SquaredExponential(0.2)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "oven.toml").write_text(FILE)
    return tmp_path


def run(*args, code=0):
    result = CliRunner().invoke(main, [str(arg) for arg in args])
    assert result.exit_code == code, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    if code:
        assert result.stdout == ""
        assert result.stderr.strip()
        assert "Traceback" not in result.stderr
        return result.stderr
    return result.stdout


def data(*args):
    return json.loads(run(*args, "--json"))


def stored(policy, **more):
    study = nr.Study(policy, storage="sqlite:///studies.db", **more)
    study.quiet = True
    return study


@pytest.fixture
def oven(folder):
    run("create", "studies.db", "oven", "oven.toml")
    return "studies.db", "oven"


def test_a_study_from_beginning_to_end(folder):
    made = data("create", "studies.db", "oven", "oven.toml")
    assert made == {"name": "oven", "algorithm": "gp_ucb", "goal": "minimize", "seed": 3, "trials": 0}
    for i in range(6):
        trial = data("ask", "studies.db")
        assert trial["number"] == i
        assert trial["state"] == "pending"
        assert set(trial["parameters"]) == {"heat", "kind"}
        told = data("tell", "studies.db", "oven", i, -abs(trial["parameters"]["heat"] - 200) / 100)
        assert told["state"] == "observed"
        assert told["reward"] <= 0
    study = nr.Study.open(storage="sqlite:///studies.db", name="oven")
    assert [trial.number for trial in study.trials] == list(range(6))
    alone = nr.Study(study.policy, goal="minimize", seed=3)
    for trial in study.trials:
        asked = alone.ask()
        assert asked.arm == trial.arm
        alone.tell(asked, trial.reward)
    shown = data("show", "studies.db")
    assert shown["best"]["number"] == study.best().number
    assert "oven" in run("studies", "studies.db")
    assert data("studies", "sqlite:///studies.db")[0]["observed"] == 6
    assert run("create", "studies.db", "oven", "oven.toml").endswith("6 trials.\n")
    assert "other values: seed" in run("create", "studies.db", "oven", "oven.toml", "--seed", 4, code=1)


def test_show_counts_feasible_trials_and_says_what_the_model_expects(folder, monkeypatch):
    monkeypatch.setattr("nilregret.study.importance.DRAWS", 4)
    space = nr.Space(a=nr.Float(0, 1), b=nr.Float(0, 1))
    study = stored(nr.gp_ucb(space.grid(3), nr.SquaredExponential(0.6), noise=0.1, constraints=nr.EveryRound()))
    for point, reward, limit in (([0.0, 0.0], 1.0, -1.0), ([1.0, 1.0], 5.0, 1.0), ([0.0, 1.0], 2.0, -1.0)):
        study.add(dict(zip("ab", point, strict=True)), reward, constraints=[limit])
    shown = data("show", "studies.db")
    assert [each["best"] for each in shown["progress"]] == [1.0, 1.0, 2.0]
    assert shown["best_told"]["number"] == shown["best"]["number"] == 2
    assert shown["expected_gain"] > 0.0
    assert set(shown["importance"]) == {"a", "b"}
    text = run("show", "studies.db")
    place = "trial 2 at a=0, b=1: 2"
    for words in (f"recommended   {place}", f"highest told  {place}", "expected over the", "%, each with its int"):
        assert words in text
    assert "5 after" not in text


def test_what_a_trial_is_in_json(oven):
    run("ask", *oven)
    run("ask", *oven)
    run("fail", *oven, 0, "it burnt")
    run("tell", *oven, 1, 0.5)
    first, second = data("trials", *oven)
    study = nr.Study.open(storage="sqlite:///studies.db", name="oven")
    for found, trial in zip((first, second), study.trials, strict=True):
        assert found == {
            "number": trial.number, "state": trial.state, "parameters": trial.parameters,
            "point": trial.point.tolist(), "arm": trial.arm, "context": None, "explored": False,
            "reward": trial.reward, "constraints": None, "reason": trial.reason, "asked_at": trial.asked_at,
            "told_at": trial.told_at, "lease_until": None, "abandoned": None, "late": False, "corrected": [],
        }  # fmt: skip
    assert first["reason"] == "it burnt"
    assert data("trials", *oven, "--state", "failed") == [first]
    assert data("trials", *oven, "--last", 1) == [second]
    assert data("trials", *oven, "--state", "pending") == []
    text = run("trials", *oven)
    assert "it burnt" in text
    assert "loss" in text
    assert "no such trials" in run("trials", *oven, "--state", "pending")


def test_workers_that_are_gone_and_answers_that_were_wrong(oven):
    run("ask", *oven, "--count", 3)
    given_up = data("abandon", *oven, 0, "its machine is off")
    assert (given_up["state"], given_up["abandoned"]) == ("abandoned", "its machine is off")
    assert "its machine is off" in run("trials", *oven, "--state", "abandoned")
    late = data("tell", *oven, 0, 0.25)
    assert late["late"]
    assert data("tell", *oven, 1, 0.5) == data("tell", *oven, 1, 0.5)
    righted = data("tell", *oven, 1, 0.75, "--revise")
    assert (righted["reward"], righted["corrected"][0]["reward"]) == (0.75, 0.5)
    assert data("fail", *oven, 1, "the thermometer lied", "--revise")["state"] == "failed"
    assert data("show", *oven)["delays"]["of_abandoned"] == [0]
    assert run("show", *oven).count("; abandoned before: trial 0\n") == 1
    leased = data("ask", *oven, "--lease", 1e-9)
    assert leased["lease_until"] >= leased["asked_at"]
    run("ask", *oven)
    assert data("trials", *oven, "--last", 2)[0]["state"] == "abandoned"
    assert "lease" in run("ask", *oven, "--lease", -1, code=1)


def test_trials_that_report_and_are_stopped(oven):
    run("ask", *oven, "--count", 3)
    assert "stopped" not in run("studies", "studies.db")
    assert run("report", *oven, 0, 1, -0.5) == "go on\n"
    assert data("report", *oven, 0, 4, 0.25) == {"go_on": True, "verdict": "go"}
    assert data("report", *oven, 0, 4, 0.25) == {"go_on": True, "verdict": "go"}
    assert "step 2" in run("report", *oven, 0, 2, 0.25, code=3)
    assert "`value`" in run("report", *oven, 0, 5, "nan", code=1)
    assert data("show", *oven)["pending"][0]["steps"] == [[1, -0.5], [4, 0.25]]
    assert "4: 0.25" in run("show", *oven)
    assert "early ends" not in run("show", *oven)
    assert "`nilregret abandon` gives it up" in run("stop", *oven, 1, code=3)
    stopped = data("stop", *oven, 0, "it diverges")
    assert (stopped["state"], stopped["reason"], stopped["steps"]) == ("stopped", "it diverges", [[1, -0.5], [4, 0.25]])
    assert data("stop", *oven, 0) == stopped
    assert "--revise" not in run("report", *oven, 0, 9, 0.25, code=3)
    assert data("studies", "studies.db")[0]["stopped"] == 1
    shown = data("show", *oven)
    assert (shown["trials"], shown["pruned"]["stopped"]) == ({"all": 3, "stopped": 1, "pending": 2}, 1)
    assert "early ends   1 trial was stopped." in run("show", *oven)
    assert "stopped" in run("studies", "studies.db")
    text = run("trials", *oven, "--state", "stopped")
    assert "it diverges" in text
    assert "4: 0.25" in text
    assert "last step" not in run("trials", *oven, "--state", "pending")
    assert data("tell", *oven, 0, 0.5, "--revise")["state"] == "observed"


def test_studies_are_renamed_and_removed(oven, folder):
    run("create", "studies.db", "other", "oven.toml")
    run("ask", *oven)
    open_ = nr.Study.open(storage="sqlite:///studies.db", name="oven")
    assert "'kiln'" in run("rename", *oven, "kiln")
    open_.tell(0, 0.5)
    assert [each["name"] for each in data("studies", "studies.db")] == ["kiln", "other"]
    assert "already" in run("rename", "studies.db", "kiln", "other", code=1)
    assert "no study" in run("rename", "studies.db", "oven", "stove", code=1)
    for name in ("", " ", "\udcff"):
        assert "name" in run("rename", "studies.db", "kiln", name, code=1)
    refused = CliRunner().invoke(main, ["delete", "studies.db", "kiln"], input="n\n")
    assert refused.exit_code == 1
    assert CliRunner().invoke(main, ["delete", "studies.db", "kiln"], input="").exit_code == 1
    assert len(data("trials", "studies.db", "kiln")) == 1
    run("delete", "studies.db", "kiln", "--yes")
    assert [each["name"] for each in data("studies", "studies.db")] == ["other"]
    with pytest.raises(nr.errors.StorageError):
        open_.ask()
    assert "no study" in run("delete", "studies.db", "kiln", code=1).lower()
    agreed = CliRunner().invoke(main, ["delete", "studies.db", "other"], input="y\n")
    assert agreed.exit_code == 0
    assert "no studies" in run("studies", "studies.db")


def test_trials_go_to_files_and_come_back(oven, folder):
    run("ask", *oven, "--count", 3)
    run("tell", *oven, 0, 0.5)
    run("tell", *oven, 2, 0.75)
    lines = [json.loads(line) for line in run("export", *oven).splitlines()]
    assert [line["reward"] for line in lines] == [0.5, None, 0.75]
    run("create", "studies.db", "other", "oven.toml", "--seed", 9)
    for ending in ("csv", "jsonl"):
        assert run("export", *oven, f"trials.{ending}").startswith("Wrote 3 trials to")
        assert data("import", "studies.db", "other", f"trials.{ending}")["added"] == 2
    found = data("trials", "studies.db", "other")
    assert [trial["reward"] for trial in found] == [0.5, 0.75, 0.5, 0.75]
    assert [trial["parameters"] for trial in found[:2]] == [lines[0]["parameters"], lines[2]["parameters"]]
    for path, words in (("trials.xls", "must end in one of .csv"), ("no/trials.csv", "does not exist: make it first")):
        assert words in run("export", "away.db", "oven", path, code=1)  # before anything is read
    assert "cannot be read" in run("import", *oven, "nowhere.csv", code=1)
    (folder / "bad.csv").write_text("heat,kind,reward\n150,rye,1\n1e9,rye,2\n")
    assert "Nothing was recorded" in run("import", *oven, "bad.csv", code=1)
    (folder / "bytes.csv").write_bytes(b"\xff\xfe\x00heat")
    run("import", *oven, "bytes.csv", code=1)
    assert len(data("trials", *oven)) == 3


def test_studies_of_optuna_come_over(folder):
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    place = optuna.storages.RDBStorage("sqlite:///optuna.db")
    theirs = optuna.create_study(study_name="theirs", storage=place, direction="minimize")
    theirs.optimize(lambda trial: (trial.suggest_float("x", 0, 1) - 0.3) ** 2, n_trials=4)
    said = data("import", "studies.db", "ours", "sqlite:///optuna.db", "--optuna", "theirs")
    assert (said["name"], said["trials"]) == ("ours", 4)
    study = nr.Study.open(storage="sqlite:///studies.db", name="ours")
    assert [trial.reward for trial in study.trials] == [trial.value for trial in theirs.trials]
    place.remove_session()
    place.engine.dispose()
    assert study.goal == "minimize"
    assert data("import", "studies.db", "again", "optuna.db", "--optuna", "theirs")["trials"] == 4  # a path will do
    assert "could not be read" in run("import", "studies.db", "a", "sqlite:///optuna.db", "--optuna", "mine", code=1)
    assert "no file" in run("import", "studies.db", "a", "sqlite:///nowhere.db", "--optuna", "theirs", code=1)
    assert "no file" in run("import", "studies.db", "a", "nonsense", "--optuna", "theirs", code=1)
    assert [each["name"] for each in data("studies", "studies.db")] == ["ours", "again"]
    assert not (folder / "nowhere.db").exists()


def test_commands_take_a_server_like_a_file(folder, postgres):
    url = postgres.url()
    run("create", url, "oven", "oven.toml")
    run("ask", url)
    run("tell", url, "oven", 0, 0.5)
    assert data("show", url)["trials"] == {"all": 1, "observed": 1}
    assert data("explain", url, "oven", 0)["repeated"]
    run("rename", url, "oven", "kiln")
    run("delete", url, "kiln", "--yes")
    assert data("studies", url) == []
    assert "postgres" in run("studies", "postgresql://nobody@127.0.0.1:1/nothing", code=4)


def test_commands_leave_nothing_beside_the_file(oven, folder):
    run("ask", *oven)
    run("show", *oven)
    assert sorted(path.name for path in folder.iterdir()) == ["oven.toml", "studies.db"]


def test_several_at_once_and_what_may_be_played(oven):
    asked = data("ask", *oven, "--count", 3)
    assert [trial["number"] for trial in asked] == [0, 1, 2]
    assert data("ask", *oven, "--count", 1)[0]["number"] == 3
    only = data("ask", *oven, "--among", '[{"heat": 120, "kind": "rye"}]')
    assert only["parameters"] == {"heat": 120, "kind": "rye"}
    rest = data("ask", *oven, "--exclude", json.dumps(list(range(9))))
    assert rest["arm"] == 9
    said = data("explain", *oven, 5, "--exclude", json.dumps(list(range(9))))
    assert said["repeated"]
    assert said["compared"] == 1


def test_contexts_are_json(folder):
    (folder / "shop.toml").write_text(
        FILE.replace("grid = 5\n", "") + "[context.day]\ntype = 'int'\nlow = 0\nhigh = 6\n"
    )
    run("create", "studies.db", "shop", "shop.toml")
    trial = data("ask", "studies.db", "--context", '{"day": 2}')
    assert trial["context"] == {"day": 2}
    study = nr.Study.open(storage="sqlite:///studies.db", name="shop")
    assert study.policy.context == nr.Space(day=nr.Int(0, 6))
    assert study.policy.kernel == nr.kernel_for(study.policy.domain, context=study.policy.context)
    assert "day=2" in run("trials", "studies.db")
    run("tell", "studies.db", "shop", 0, 1)
    assert "day=2" in run("show", "studies.db")
    assert "context" in run("ask", "studies.db", code=1)
    assert "no JSON" in run("ask", "studies.db", "--context", "monday", code=1)
    assert "day" in run("ask", "studies.db", "--context", '{"hour": 2}', code=1)
    assert len(data("trials", "studies.db")) == 1


def test_a_reward_of_a_point_that_was_not_asked_for(folder, oven):
    trial = data("add", *oven, '{"heat": 120, "kind": "rye"}', "-1.5")
    assert (trial["number"], trial["state"], trial["reward"]) == (0, "observed", -1.5)
    assert run("import", *oven, "one.csv", code=1).startswith("Error: There is no file 'one.csv'")
    (folder / "one.csv").write_text("heat,kind,reward\n120,rye,2\n")
    assert run("import", *oven, "one.csv") == "Added 1 trial; study 'oven' has 2.\n"
    stored(nr.auto(nr.Box([0.0], [1.0]), context=nr.Box([0.0], [1.0]), constraints=1), name="seen")
    run("add", "studies.db", "seen", "0.5", "3", "--context", "[0.25]", "--constraint", "-1")
    stored(nr.gp_ucb(nr.Arms.grid(0, 1, 3), K, noise=0.1, switching="lazy"), name="runs")
    runs = data("add", "studies.db", "runs", "[0.5]", "3", "--plays", "4", "--scatter", "0.5")
    assert (runs["plays"], runs["scatter"]) == (4, 0.5)
    assert "together" in run("add", "studies.db", "runs", "0.5", "3", "--plays", "4", code=2)


def test_counts_of_one(folder, oven):
    run("ask", *oven)
    assert run("export", *oven, "a.csv") == "Wrote 1 trial to a.csv.\n"
    assert run("create", *oven, "oven.toml").endswith("goal: minimize, 1 trial.\n")
    assert repr(nr.Study.open(storage="sqlite:///studies.db", name="oven").trials).startswith("Record(1 trial: ")


PYTHON = re.compile(
    r"\w=[`\w\[(]|\bstudy\.\w|\bnr\.|\w\(\)|`\w+\(|\b(True|False|None)\b|`(ask|tell|add|fail|explain|Study)`|Python"
)


def test_errors_speak_of_options_and_not_of_python(folder, oven):
    space = nr.Space(x=nr.Float(0, 1), k=nr.Choice("a", "b"))
    arms = nr.Arms.grid(0, 1, 5)
    stored(nr.gp_ucb(arms, K, noise=0.1), name="arms").ask()
    stored(nr.auto(space, context=nr.Space(day=nr.Float(0, 7))), name="seen")
    stored(nr.gp_ucb(arms, K, noise=0.1, constraints=nr.EveryRound(count=2)), name="limits").ask()
    stored(nr.auto(arms, reward="bernoulli"), name="clicks").ask()
    for name, text in {
        "bad.csv": "heat,kind,reward\n120,rye,nan\n", "row.csv": "heat,kind,reward\n120,oat,1\n", "bad.jsonl": "{",
        "bad.arrow": "no", "bad.parquet": "no", "bad.json": "{}", "empty.toml": "[parameters.x]\n",
        "kernel.toml": f"{FILE.partition('[policy]')[0]}[policy]\nalgorithm = 'gp_ucb'\nnoise = 0.1\nkernel = 'rbf'\n",
        "work.toml": f"trials = 2\n{FILE.partition('[policy]')[0]}[objective]\ncommand = 'echo x'\n",
    }.items():  # fmt: skip
        (folder / name).write_text(text)
    run("tell", "studies.db", "arms", 0, 0.5)
    here, said = "studies.db", {}
    for command in (
        ["explain", here, "oven", 0], ["explain", here, "arms", 0, "--among", "[9]"], ["tell", here, "arms", 0, 1],
        ["tell", here, "arms", 0, "nan"], ["tell", here, "arms", 7, 1], ["tell", here, "arms", 0, 1, "--constraint", 1],
        ["tell", here, "arms", 0, 1, "--plays", 3, "--scatter", 1], ["tell", here, "limits", 0, 1, "--constraint", 1],
        ["tell", here, "clicks", 0, 0.5], ["fail", here, "arms", 0, "why"], ["fail", here, "arms", 0, " "],
        ["abandon", here, "arms", 0, "why"], ["ask", here, "seen"], ["ask", here, "arms", "--context", "[3]"],
        ["ask", here, "seen", "--context", "{}"], ["ask", here, "arms", "--among", "[]"], ["ask", here],
        ["ask", here, "oven", "--exclude", "99"], ["ask", here, "arms", "--lease", "-1"], ["show", here, "none"],
        ["add", here, "arms", "[9]", 1], ["add", here, "oven", "{}", 1], ["add", here, "clicks", "[0.5]", 0.5],
        ["import", here, "oven", "bad.csv"], ["import", here, "oven", "row.csv"], ["import", here, "oven", "bad.jsonl"],
        ["import", here, "oven", "bad.arrow"], ["import", here, "oven", "bad.parquet"],
        ["report", here, "arms", 0, 3, 0.5], ["report", here, "limits", 0, -1, 0.5],
        ["report", here, "limits", 0, 1, "inf"], ["report", here, "limits", 9, 1, 1], ["stop", here, "arms", 0],
        ["stop", here, "limits", 0], ["stop", here, "limits", 0, " "], ["rename", here, "arms", "oven"],
        ["create", here, "oven", "oven.toml", "--seed", 9], ["create", here, "new", "bad.json"],
        ["create", here, "new", "empty.toml"], ["create", here, "new", "kernel.toml"], ["tune", "work.toml"],
        ["work", here, "seen", "m:f", "--trials", 3], ["work", here, "arms", "json:nothing", "--trials", 3],
        ["studies", "bad.csv"], ["papers", "none"], ["papers", "srinivas-3", "--jobs", 0],
    ):  # fmt: skip
        result = CliRunner().invoke(main, list(map(str, command)))
        assert isinstance(result.exception, SystemExit), command
        said[" ".join(map(str, command))] = result.stderr
    assert {command: text for command, text in said.items() if PYTHON.search(text) or not text} == {}
    assert "`--revise` of `nilregret tell`" in said["tell studies.db arms 0 1"]
    assert "Give it with --context." in said["ask studies.db seen"]


def test_the_command_alone_greets_with_three_commands():
    found = CliRunner().invoke(main, [])
    assert found.exit_code == 0
    named = re.findall(r"^  nilregret (\S+)", found.output, re.MULTILINE)
    assert named == ["tune", "show", "serve"]
    assert set(named) <= set(main.commands)


def test_every_topic_of_advice_has_words_for_commands():
    sources = Path(nr.__file__).parent.rglob("*.py")
    topics = {topic for source in sources for topic in re.findall(r'\btopic="(\w+)"', source.read_text())}
    assert topics == errors.ADVICE.keys()


def test_columns_of_contexts_come_first(folder):
    """A kernel of some parameters sees their columns, whose place depends on the contexts."""
    text = FILE.replace("grid = 5\n", "").replace(
        '{ type = "for_parameters" }', '{ type = "active", parameters = ["heat", "day"], kernel = { type = "linear" } }'
    )
    (folder / "shop.toml").write_text(text + "[context.day]\ntype = 'int'\nlow = 0\nhigh = 6\n")
    run("create", "studies.db", "shop", "shop.toml")
    assert nr.Study.open(storage="sqlite:///studies.db", name="shop").policy.kernel.dimensions == (1, 0)


def test_constraints_go_with_the_reward_or_alone(folder):
    (folder / "job.toml").write_text(FILE.replace("seed = 3\n", "constraints = 2\n"))
    run("create", "studies.db", "job", "job.toml")
    run("ask", "studies.db", "--count", 2)
    told = data("tell", "studies.db", "job", 0, "-1e-3", "--constraint", "-0.5", "--constraint", 1)
    assert (told["reward"], told["constraints"]) == (-1e-3, [-0.5, 1.0])
    alone = data("tell", "studies.db", "job", 1, "--constraint", 1, "--constraint", 2)
    assert (alone["state"], alone["constraints"]) == ("pending", [1.0, 2.0])
    assert data("tell", "studies.db", "job", 1, 3)["constraints"] == [1.0, 2.0]
    shown = data("show", "studies.db")
    assert shown["best"] is None
    assert "satisfied" in shown["why_no_best"]
    assert len(data("explain", "studies.db", "job", 0)["constraints"]) == 2
    run("ask", "studies.db")
    later = CliRunner().invoke(main, ["tell", "studies.db", "job", "2", "3.5"]).output
    assert "Note: trial 2 is not the best before its constraint values are told (--constraint)." in later
    assert data("tell", "studies.db", "job", 2, "--constraint", -1, "--constraint", -2)["constraints"] == [-1.0, -2.0]


def test_show_says_where_a_study_stands(folder):
    clock = iter(range(1000, 2000, 10))
    policy = nr.gp_ucb_sdf(nr.Arms.grid(0, 1, 9), K, noise=0.1, window=2, minimum=-2.0, memory=nr.slots.RestartEvery(8))
    study = stored(policy, name="late", clock=lambda: float(next(clock)))
    for i in range(12):
        study.ask()
        if i >= 4:
            study.tell(i - 4 * (i == 4 or i == 5), 0.1 * i)
    said = data("show", "studies.db", "late")
    assert said["trials"] == {"all": 12, "observed": 8, "pending": 4}
    assert [each["round"] for each in said["restarts"]] == study.restarts == [8]
    assert [trial["number"] for trial in said["pending"]] == [2, 3, 4, 5]
    assert said["progress"][0] == {"answers": 1, "best": 0.4}
    assert said["progress"][-1] == {"answers": 8, "best": 1.1}
    assert [each["answers"] for each in said["progress"]] == [1, 2, 5, 8]
    assert said["delays"]["late"] == 2
    assert said["delays"]["most_questions"] == 4
    assert said["delays"]["too_late"] == [0, 1]
    best = study.best()
    lower, upper = study.bounds(best.point[None])
    assert (said["best"]["lower"], said["best"]["upper"]) == (lower[0], upper[0])
    text = run("show", "studies.db", "late")
    assert "0.4 after 1, " in text  # trials are numbered from 0: a count says that it is one
    assert "1.1 after 8 answers" in text
    for words in ("restarts", "too late to count: trials 0, 1", "Waiting for an answer", "8 observed, 4 pending"):
        assert words in text
    average = stored(nr.gp_ucb(nr.Arms.grid(0, 1, 9), K, noise=0.1, constraints=nr.OnAverage(step=0.5)), name="cost")
    for _ in range(5):
        average.tell(average.ask(), 1.0, constraints=[0.5])
    said = data("show", "studies.db", "cost")
    assert said["multipliers"] == average.multipliers.tolist() != [0.0]
    assert "multipliers" in run("show", "studies.db", "cost")


def test_a_corrected_answer_is_no_late_one(folder):
    study = stored(nr.gp_ucb(nr.Arms.grid(0, 1, 9), K, noise=0.1))
    study.add([0.5], 1.0)
    study.tell(study.ask(), 0.5)
    study.ask()
    study.tell(0, 0.75, revise=True)
    study.tell(1, 0.25, revise=True)
    delays = data("show", "studies.db")["delays"]
    assert (delays["answers"], delays["late"], delays["most_questions"]) == (1, 0, 0)


def test_show_warns_of_what_does_not_fit(folder):
    study = stored(nr.gp_ucb(nr.Arms.grid(0, 1, 9), K, noise=0.1))
    for _ in range(5):
        study.tell(study.ask(), 1e6)
    assert "Rewards lie far from what is expected" in run("show", "studies.db")
    assert len(data("show", "studies.db")["notes"]) == 1


def test_show_of_a_study_without_answers_and_of_a_script(folder):
    SqlStorage("sqlite:///studies.db").close()
    assert "studies.db has no studies. `nilregret create` makes one." in run("show", "studies.db", code=1)
    stored(nr.auto(nr.Box([0], [1])), name="empty")
    assert "No trial has been answered" in run("show", "studies.db")
    assert data("show", "studies.db")["progress"] == []
    assert "no trials yet" in run("trials", "studies.db")
    script = stored(nr.algorithms.bandit_oco(nr.Box([0, 0], [1, 1]), step=0.1), name="script")
    for _ in range(3):
        script.tell(script.ask(), 0.5, constraints=[-1.0])
    assert data("show", "studies.db", "script")["best"]["reward"] == 0.5
    assert "mean" not in data("show", "studies.db", "script")["best"]
    assert "its script names" in run("explain", "studies.db", "script", 1)


def test_show_draws(oven, folder):
    for i in range(4):
        run("ask", *oven)
        run("tell", *oven, i, 0.1 * i)
    assert "Picture: a.png" in run("show", *oven, "--picture", "a.png")
    assert (folder / "a.png").read_bytes().startswith(b"\x89PNG")
    assert "must end in" in run("show", *oven, "--picture", "a.txt", code=1)
    assert "does not exist" in run("show", *oven, "--picture", "no/a.png", code=1)


def test_explain_is_that_of_the_study(oven):
    run("ask", *oven, "--count", 4)
    study = nr.Study.open(storage="sqlite:///studies.db", name="oven")
    assert run("explain", *oven, 2) == f"{study.explain(2)}\n"
    assert data("explain", *oven, 2) == json.loads(json.dumps(study.explain(2).to_dict()))
    assert [each["number"] for each in data("explain", *oven, 0, 3)] == [0, 3]


def test_a_policy_from_json(folder):
    policy = nr.gp_ts(nr.Box([0], [1]), K, noise=0.1, norm_bound=1.0, information_gain=1.0)
    (folder / "policy.json").write_text(policy.to_json())
    made = data("create", "studies.db", "a", "policy.json", "--goal", "minimize", "--seed", 7)
    assert (made["algorithm"], made["goal"], made["seed"]) == ("gp_ts", "minimize", 7)
    assert nr.Study.open(storage="sqlite:///studies.db", name="a").policy == policy


# -- what is refused -------------------------------------------------------------------------------------------------


def test_exit_codes(oven, folder):
    run("ask", *oven)
    assert "no study" in run("ask", "studies.db", "stove", code=1)
    assert "no such file" in run("studies", "nowhere.db", code=1)
    assert "three slashes" in run("studies", "mysql://somewhere", code=1)
    run("tell", *oven, 0, 0.5)
    run("tell", *oven, 0, 0.5)
    assert "told already" in run("tell", *oven, 0, 0.6, code=3)
    assert "no trial 7" in run("tell", *oven, 7, 0.5, code=3)
    assert "no trial 8" in run("fail", *oven, 8, "why", code=3)
    assert "no trial 9" in run("explain", *oven, 9, code=3)
    (folder / "other.db").write_bytes(b"not a database" * 100)
    assert "not a SQLite database" in run("studies", "other.db", code=4)
    run("tell", *oven, "first", 0.5, code=3)
    run("tell", *oven, 0, code=2)
    run("ask", *oven, "--cuont", 3, code=2)
    run("trials", *oven, "--state", "lost", code=2)
    assert len(data("trials", *oven)) == 1


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (
            ZeroDivisionError("what\nnobody expects"),
            4,
            "`nilregret ask` crashed: ZeroDivisionError: what nobody expects\n",
        ),
        (OSError(errno.ENOSPC, "No space left on device"), 4, "`nilregret ask` could not read or write: OSError:"),
        (KeyboardInterrupt(), 130, ""),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 1, ""),
    ],
    ids=["crash", "full disk", "interrupt", "broken pipe"],
)
def test_what_ends_a_command_prints_no_traceback(oven, monkeypatch, error, code, words):
    def end(_):
        raise error

    monkeypatch.setattr(errors, "echo", end)
    monkeypatch.delenv("NILREGRET_TRACEBACK", raising=False)
    ended = CliRunner().invoke(main, ["ask", *oven])
    assert (ended.exit_code, ended.stdout) == (code, "")
    assert words in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ("What was recorded is not lost." in ended.stderr) == bool(words)
    assert len(data("trials", *oven)) == 1
    monkeypatch.setenv("NILREGRET_TRACEBACK", "1")
    traced = CliRunner().invoke(main, ["ask", *oven]).stderr
    assert ("in end" in traced) == bool(words)
    assert "NILREGRET_TRACEBACK" not in traced


def test_help_on_a_full_disk_prints_no_traceback(monkeypatch):
    def end(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.delenv("NILREGRET_TRACEBACK", raising=False)
    monkeypatch.setattr("click.decorators.echo", end)
    ended = CliRunner().invoke(main, ["--help"])
    assert (ended.exit_code, ended.stdout) == (4, "")
    assert ended.stderr.startswith("Error: `nilregret` could not read or write: OSError: [Errno 28]")


@pytest.mark.parametrize("reward", ["nan", "inf", "-inf", "1e200"])
def test_no_reward_that_is_no_number(oven, reward):
    run("ask", *oven)
    assert "reward" in run("tell", *oven, 0, reward, code=1)
    assert data("trials", *oven)[0]["state"] == "pending"


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "NaN", "[[1], [2, 3]]", '{"a": 1}', '"x"', "[1e999]"])
@pytest.mark.parametrize("option", ["--among", "--exclude", "--context"])
def test_nonsense_in_json(oven, option, text):
    result = CliRunner().invoke(main, ["ask", *oven, option, text])
    assert result.exit_code == 1, result.output
    assert "Traceback" not in result.output
    assert isinstance(result.exception, SystemExit)
    assert data("trials", *oven) == []


def test_which_study_must_be_said_where_there_are_several(oven):
    run("create", "studies.db", "other", "oven.toml")
    for command in ("ask", "show", "trials"):
        assert "2 studies" in run(command, "studies.db", code=1)
    assert len(data("studies", "studies.db")) == 2


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.toml", "", "empty"),
        ("a.toml", "goal = ", "not valid TOML"),
        ("a.toml", "[parameters]", "nothing to decide"),
        ("a.toml", FILE + "\n[objective]\ncommand = 'true'", "nilregret tune"),
        ("a.toml", FILE.replace("minimize", "shrink"), "goal"),
        ("a.toml", FILE.replace("gp_ucb", "gp_ubc"), "gp_ucb"),
        ("a.toml", FILE.replace("grid", "gird"), "grid"),
        ("a.toml", FILE.replace("low = 120.0", "low = 300.0"), "heat"),
        ("a.json", "{", "JSON"),
        ("a.json", '{"type": "os.system"}', "as the library writes it"),
        ("a.json", "[1]", "policy"),
        ("a.json", '{"type": "SquaredExponential"}', "policy"),
        ("a.yaml", "", ".toml or .json"),
    ],
)
def test_files_that_describe_no_study(folder, name, text, words):
    (folder / name).write_text(text)
    assert words in run("create", "studies.db", "a", name, code=1)
    assert not (folder / "studies.db").exists()


def test_what_a_terminal_would_obey_is_shown_and_not_sent(folder):
    policy = nr.gp_ucb(nr.Space(x=nr.Choice("\x1b[31mred", "b")).grid(2), nr.Matern(2.5, 0.5), noise=0.1)
    stored_before(SqlStorage("sqlite:///studies.db"), "a\x1b]0;title\x07b", policy)
    study = nr.Study.open(storage="sqlite:///studies.db", name="a\x1b]0;title\x07b")
    study.fail(study.ask(), "line one\x1b[2J\nline two\x9b")
    for _ in range(3):
        study.tell(study.ask(), 0.1)
    for command in ("studies", "show", "trials", "ask"):
        text = run(command, "studies.db")
        assert "\x1b" not in text
        assert "\x9b" not in text
        assert "\\x1b" in text or command == "ask"
    assert "\x1b" not in run("explain", "studies.db", study.name, 0)
    assert "\x1b" not in run("tell", "studies.db", study.name, 99, 1, code=3)


# -- processes -------------------------------------------------------------------------------------------------------


def process(*args, **more):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **more}
    return subprocess.Popen(
        [sys.executable, "-m", "nilregret", *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env=environment,
    )  # fmt: skip


def test_processes_that_ask_at_once_get_trials_of_their_own(oven):
    running = [process("ask", *oven, "--count", 5, "--json") for _ in range(2)]
    found = [json.loads(each.communicate(timeout=LONG)[0]) for each in running]
    assert [each.returncode for each in running] == [0, 0]
    assert sorted(trial["number"] for trials in found for trial in trials) == list(range(10))


def test_a_terminal_of_few_letters(folder):
    stored(nr.gp_ucb(nr.Space(火=nr.Float(0, 1)).grid(3), nr.Matern(2.5, 0.5), noise=0.1), name="Öfen")
    asking = process("ask", "studies.db", PYTHONIOENCODING="latin-1")
    out, err = asking.communicate(timeout=LONG)
    assert asking.returncode == 0, err
    assert out.startswith("trial 0: \\u706b=")


def test_help_names_every_command():
    text = run("-h")
    for name in main.commands:
        assert name in text
        assert main.commands[name].help


def test_events_units_and_facts(folder):
    policy = nr.auto(nr.Arms(range(3)), reward="bernoulli")
    nr.Study(policy, storage="sqlite:///studies.db", name="banners", sticky=True).close()
    facts = ("--fact", "page=/shoes", "--fact", "price=9.5", "--fact", "new=true", "--fact", "order=A=1")
    first = data("ask", "studies.db", "banners", "--unit", "user-17", "--event", "visit-1", *facts)
    assert first["facts"] == {"page": "/shoes", "price": 9.5, "new": True, "order": "A=1"}
    assert (first["event"], first["unit"]) == ("visit-1", 0)
    assert data("ask", "studies.db", "banners", "--event", "visit-1")["number"] == 0
    assert data("ask", "studies.db", "banners", "--unit", "user-17", "--event", "7")["kept"] == 0
    assert data("tell", "studies.db", "banners", "visit-1", "1")["number"] == 0
    assert data("tell", "studies.db", "banners", "event:7", "0")["number"] == 1
    assert "no trial 'visit-2'" in run("tell", "studies.db", "banners", "visit-2", "1", code=3)
    assert data("forget", "studies.db", "banners", "user-17") == {"forgotten": True}
    assert "No trial is known" in run("forget", "studies.db", "banners", "user-17")
    for number, (command, *more) in enumerate([("fail", "lost"), ("abandon", "away"), ("report", "1", "1.0")]):
        data("ask", "studies.db", "banners", "--event", f"e{number}")
        assert data(command, "studies.db", "banners", f"e{number}", *more) is not None
    assert data("stop", "studies.db", "banners", "e2")["state"] == "stopped"
    assert "is not NAME=VALUE" in run("ask", "studies.db", "banners", "--fact", "page", code=2)
    assert "`event` names one decision" in run("ask", "studies.db", "--event", "x", "--count", "2", code=1)
