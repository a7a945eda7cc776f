"""Tuning under limits: in one call, from a file, and what is then the best."""

import json
import math
import re
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from click.testing import CliRunner

import nilregret as nr
from nilregret.__main__ import main
from nilregret.algorithms.baselines.oco import bandit_oco
from nilregret.errors import InvalidInput, NoRegretError, TrialError
from nilregret.tuning.open_study import check_constraint_count
from nilregret.tuning.outcome import constraint_reader
from nilregret.tuning.toml.config import load

SPACE = nr.Space(threads=nr.Int(1, 32), cache=nr.Float(1, 1000, log=True))


def served(threads, cache):
    return {"reward": threads * math.log(cache), "latency": 10 + 4 * threads, "memory": cache / 100}


def slowness(threads, cache):
    return 10 + 4 * threads - 50


def tuned(objective=served, space=SPACE, *, trials=14, constraints="latency <= 50", **more):
    return nr.maximize(objective, space, trials=trials, constraints=constraints, progress=False, **more)


# -- what the best is --------------------------------------------------------------------------------------------------


def test_what_violates_is_never_the_best():
    result = tuned()
    rows = result.history
    assert any(not row["feasible"] for row in rows)  # with a larger value than all others:
    assert max(row["value"] for row in rows) > result.best_value
    assert result.best_value == max(row["value"] for row in rows if row["feasible"])
    assert result.best_parameters["threads"] <= 10
    assert result.feasible is True
    assert result.infeasible is None
    assert f"feasible: {sum(row['feasible'] for row in rows)} of 14 trials" in repr(result)
    for row in rows:
        assert row["constraints"] == [4 * row["parameters"]["threads"] - 40]
        assert row["feasible"] == (row["constraints"][0] <= 0)


def test_a_table_has_the_constraint_values():
    table = tuned(trials=3).to_pandas()
    assert (table["constraints.0"] == 4 * table["parameters.threads"] - 40).all()


def test_where_nothing_is_feasible_there_is_no_best_and_it_is_said():
    result = tuned(constraints="latency <= 2", trials=14)
    assert result.feasible is False
    assert result.infeasible == 0.0  # of two standard deviations nothing is proved
    with pytest.raises(TrialError, match="None of the 14 answered trials satisfied all constraints"):
        _ = result.best_value
    closest = min(result.history, key=lambda row: row["constraints"][0])["number"]
    assert f"feasible: 0 of 14 trials; closest: trial {closest}" in repr(result)
    assert "nothing seems feasible" in repr(result)
    assert "not proved" in repr(result)


def test_proved_bounds_say_how_sure_it_is_that_nothing_is_feasible():
    arms = nr.Arms.grid(0.0, 1.0, 8)
    policy = nr.gp_ucb(arms, nr.SquaredExponential(0.5), noise=0.05, constraints=nr.EveryRound(noise=0.01))
    with pytest.warns(nr.errors.NoRegretWarning, match="No point can satisfy"):
        result = tuned(lambda x: (x[0], 2.0 + x[0]), arms, constraints=1, policy=policy, trials=12)
    assert result.infeasible == pytest.approx(0.9)  # one channel at delta 0.1
    assert "hold with probability at least 0.9" in repr(result)


def test_losses_have_limits_too():
    result = nr.minimize(lambda x: (x, [0.5 - x]), nr.Space(x=nr.Float(0, 1)), trials=14, constraints=1, progress=False)
    assert 0.5 <= result.best_value < 0.52


def test_without_constraints_nothing_is_said_of_them():
    result = nr.maximize(lambda x: x, nr.Space(x=nr.Float(0, 1)), trials=3, progress=False)
    assert result.feasible is None
    assert result.infeasible is None
    assert set(result.history[0]) == {"number", "state", "value", "reason", "seconds", "parameters", "point"}


# -- how limits are said -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("constraints", "objective"),
    [
        (["latency <= 50"], served),
        (slowness, served),
        (lambda **p: [slowness(**p)], served),
        (1, lambda **p: (served(**p)["reward"], [slowness(**p)])),
        (1, lambda **p: (served(**p)["reward"], np.float64(slowness(**p)))),
        (1, lambda **p: {"reward": served(**p)["reward"], "constraints": np.array([slowness(**p)])}),
        ("-latency >= -50", lambda **p: {**served(**p), "-latency": -served(**p)["latency"]}),
    ],
)
def test_one_limit_said_in_several_ways_is_one_run(constraints, objective):
    if callable(constraints) and constraints is not slowness:
        constraints = [slowness]
    rows = tuned(objective, constraints=constraints, trials=6).history
    assert [row["point"] for row in rows] == [row["point"] for row in tuned(trials=6).history]


def test_several_constraint_reader_both_kinds():
    rows = tuned(constraints=["memory <= 2.5", slowness], trials=4).history
    for row in rows:
        parameters = row["parameters"]
        assert row["constraints"] == [pytest.approx(parameters["cache"] / 100 - 2.5), slowness(**parameters)]


def test_functions_on_a_box_get_points_of_their_own():
    def spoils(x):
        x[:] = 9.0
        return 1.0

    rows = tuned(spoils, nr.Box([0.0], [1.0]), constraints=lambda x: x[0] - 2.0, trials=3).history
    assert [row["constraints"] for row in rows] == [[row["point"][0] - 2.0] for row in rows]


def test_processes_are_sent_limits_too():
    with ProcessPoolExecutor(1) as pool:
        rows = tuned(constraints=["memory <= 2.5", slowness], trials=2, executor=pool).history
    assert all(len(row["constraints"]) == 2 for row in rows)


@pytest.mark.parametrize(
    ("answer", "constraints", "reason"),
    [
        ({"reward": 1.0, "latency": None}, "latency <= 50", "its entry 'latency' is not a number but None"),
        ((1.0, ["a"]), 1, "a constraint value of its answer is not a number: 'a'"),
        (1.0, lambda **_: "late", "the answer of the constraint <lambda> is not a number: 'late'"),
    ],
)
def test_a_first_answer_without_numbers_for_its_constraints_ends_the_run(answer, constraints, reason):
    with pytest.raises(NoRegretError, match="The run ends at trial 0") as raised:
        tuned(lambda **_: answer, constraints=constraints, trials=1)
    assert reason in str(raised.value)


def test_a_constraint_value_that_is_not_finite_fails_its_trial():
    with pytest.raises(NoRegretError, match=r"The only trial failed.*not finite"):
        tuned(lambda **_: {"reward": 1.0, "latency": math.nan}, constraints="latency <= 50", trials=1)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("latency < 50", "Write it as 'latency <= 50'"),
        ("latency <= 50 ms", "Write it as"),
        ("latency <= 1.2.3", "Write it as"),
        ([], "is empty"),
        (0, "at least 1"),
        (True, "it must be a number of constraint values"),
        ([3.0], "it must be a number of constraint values"),
    ],
)
def test_limits_that_cannot_be_read(given, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        constraint_reader(given)


def test_a_policy_and_limits_must_agree():
    policy = nr.auto(SPACE, constraints=2)
    with pytest.raises(InvalidInput, match="The objective has 1 constraint, and `policy` takes 2"):
        tuned(policy=policy)
    safe = nr.auto(
        SPACE,
        constraints=nr.Safe(
            start={"threads": 1, "cache": 1.0}, slope={"threads": 1.0, "cache": 1.0}, noise=0.1, count=2
        ),
    )
    with pytest.raises(InvalidInput, match=r"constraints=nr\.Safe\(count=1\)"):
        tuned(policy=safe)
    scripted = bandit_oco(nr.Box([0, 0], [1, 1]), step=0.1, constraints=2)
    with pytest.raises(InvalidInput, match=r"constraints=nr\.EveryRound\(count=1\)"):
        check_constraint_count(scripted, constraint_reader(["latency <= 50"]))
    with pytest.raises(InvalidInput, match="say with `constraints=` where they come from"):
        nr.maximize(served, SPACE, trials=2, policy=policy)
    with pytest.raises(InvalidInput, match="A function in `constraints` cannot be called"):
        tuned(constraints=lambda threads: 0.0)


def test_a_run_goes_on_with_its_limits_and_with_no_others(tmp_path):
    stored = {"storage": f"sqlite:///{tmp_path / 'runs.db'}"}
    first = tuned(trials=6, callbacks=[lambda _, trial: trial.number == 2], **stored)
    assert len(first.trials) == 3
    result = tuned(trials=6, **stored)
    assert [row["point"] for row in result.history] == [row["point"] for row in tuned(trials=6).history]
    with pytest.raises(NoRegretError, match="latency <= 60"):
        tuned(trials=9, constraints="latency <= 60", **stored)


# -- from a file -------------------------------------------------------------------------------------------------------

FILE = """
trials = 14
[parameters.threads]
type = "int"
low = 1
high = 32
[objective]
command = "echo '{{\\"reward\\": '{threads}', \\"latency\\": '$((10 + 4 * 1))'}}'"
constraints = ["latency <= 50"]
"""
SERVER = """
def served(threads):
    return {"reward": threads**0.5, "latency": 10 + 4 * threads}
"""
OF_FUNCTION = FILE.replace(FILE[FILE.index("command") : FILE.index("constraints")], 'function = "{}:served"\n')


def file_of(folder, *changes, text=OF_FUNCTION):
    """A tuning file with an objective under a name of its own: a module is imported once in a process."""
    module = f"server_{abs(hash(folder.name)) % 10**8}"
    (folder / f"{module}.py").write_text(SERVER)
    text = text.replace("{}:served", f"{module}:served")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "job.toml"
    path.write_text(text)
    return path


def run(path):
    done = CliRunner().invoke(main, ["tune", str(path)])
    return done.exit_code, done.output


def test_a_file_has_limits(tmp_path):
    path = file_of(tmp_path)
    code, output = run(path)
    assert code == 0, output
    assert re.search(r"best value: .*threads=(\d|10)\b", output, re.S)
    study = nr.Study.open(storage=f"sqlite:///{tmp_path / 'job.db'}", name="job")
    assert study.best().parameters["threads"] <= 10
    assert json.loads(json.dumps(study.about)) == {"constraints": "latency <= 50.0"}


def test_a_file_says_that_nothing_satisfied_its_limits(tmp_path):
    code, output = run(file_of(tmp_path, ("<= 50", "<= 2"), ("trials = 14", "trials = 3")))
    assert code == 0, output
    assert "best value: none, as nothing was feasible" in output
    assert "feasible: 0 of 3 trials" in output


def test_a_command_prints_what_has_limits(tmp_path):
    text = FILE.replace("$((10 + 4 * 1))", "50").replace("trials = 14", "trials = 2")
    path = tmp_path / "job.toml"
    path.write_text(text)
    code, output = run(path)
    assert code == 0, output
    assert nr.Study.open(storage=f"sqlite:///{tmp_path / 'job.db'}", name="job").trials[0].constraints.tolist() == [0.0]


def test_every_algorithm_of_a_file_takes_limits(tmp_path):
    policy = '\n[policy]\nalgorithm = "gp_ucb"\nnoise = 0.1\nkernel = { type = "matern" }\n'
    job = load(file_of(tmp_path, ('constraints = ["latency <= 50"]', 'constraints = ["latency <= 50"]' + policy)))
    assert job.policy.constraints == nr.EveryRound(count=1)
    job = load(file_of(tmp_path, ("[objective]", '[policy]\nalgorithm = "auto"\n[objective]')))
    assert job.policy == nr.auto(job.space, constraints=1)


def test_a_limit_that_a_file_says_wrongly(tmp_path):
    with pytest.raises(InvalidInput, match=r"\[objective\].*Write it as 'latency <= 50'"):
        load(file_of(tmp_path, ("<= 50", "= 50")))
