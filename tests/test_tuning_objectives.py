"""Several objectives of `minimize`, `maximize`, `run`, tuning files and workers."""

import json
import math
import pickle
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from unittest import mock

import numpy as np
import pytest
from click.testing import CliRunner

import nilregret as nr
from nilregret import plots
from nilregret.__main__ import main
from nilregret.errors import InvalidInput, TrialError

pytestmark = pytest.mark.usefixtures("few_draws")
SPACE = nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1))
BOTH = {"loss": "minimize", "recall": "maximize"}


def both(x, y):
    return {"loss": (x - 0.3) ** 2 + y, "recall": math.sin(3 * x) + y / 2, "letters": 3}


def in_order(x, y):
    return tuple(both(x, y)[name] for name in BOTH)


def quiet(objective=both, space=SPACE, *, objectives=BOTH, trials=8, **more):
    return nr.minimize(objective, space, objectives=objectives, trials=trials, progress=False, **more)


def told(result):
    return [(trial.number, trial.point.tolist(), trial.state, trial.values) for trial in result.trials]


@pytest.fixture(scope="module")
def result():
    return quiet(trials=9)


# -- what comes back --------------------------------------------------------------------------------------------------


def test_a_dict_and_a_tuple_say_the_same(result):
    assert told(quiet(in_order, trials=9)) == told(result)
    assert told(quiet(lambda x, y: np.array(in_order(x, y)), trials=2)) == told(quiet(trials=2))
    assert result.study.goals == ("minimize", "maximize")
    assert result.study.policy.objective_names == ("loss", "recall")
    assert [trial.values for trial in result.trials] == [in_order(**trial.parameters) for trial in result.trials]
    assert {trial.metrics["letters"] for trial in result.trials} == {3.0}


def test_a_list_of_names_takes_the_goal_of_the_call():
    assert quiet(lambda x, y: (x, y), objectives=["a", "b"], trials=3).study.goals == ("minimize", "minimize")
    found = nr.maximize(lambda x, y: (x, y), SPACE, objectives=("a", "b"), trials=3, progress=False)
    assert found.study.goals == ("maximize", "maximize")


def test_the_front_and_the_best_for_weights(result):
    assert result.front == result.study.front()
    assert result.front[0].values[0] == min(trial.values[0] for trial in result.trials)
    assert result.best(weights={"loss": 1}).number == result.front[0].number
    assert result.best(weights=(1, 2)) in result.front
    for asked in ("best_trial", "best_value", "best_parameters", "probability_best", "expected_loss"):
        with pytest.raises(TrialError, match=r"this study has 2 \(loss, recall\).*`front\(\)`"):
            getattr(result, asked)
    with pytest.raises(TrialError, match=r"`best` is for one objective.*`front\(\)`"):
        result.best()
    with pytest.raises(InvalidInput, match="lost"):
        result.best(weights={"lost": 1})


def test_one_objective_has_a_best_trial_and_a_front_of_it():
    one = nr.minimize(lambda x: x, nr.Space(x=nr.Float(0, 1)), trials=4, progress=False)
    assert one.best() == one.best_trial
    assert one.front == [one.best_trial]


def test_texts_and_tables(result):
    assert repr(result).startswith("Result of 'both' (minimize, maximize): 9 trials\n  front: ")
    best = result.front[0]
    assert f"\n  best loss: trial {best.number} (told loss " in repr(result)
    assert "\n  best recall: trial " in repr(result)
    one = nr.maximize(lambda x, y: (x, x, -x), SPACE, objectives=["a", "b", "c"], trials=2, progress=False)
    assert "Result of 'maximize' (maximize): 2 trials\n  front: 2 trials, " in repr(one)
    assert "best a, b: trial " in repr(one)
    assert result.history[0]["values"] == dict(zip(BOTH, result.trials[0].values, strict=True))
    table = result.to_pandas()
    assert table["values.recall"].tolist() == [trial.values[1] for trial in result.trials]
    assert "stds.loss" not in table
    for page in (result._repr_html_(), result.study._repr_html_()):
        assert ">recall</th>" in page
        assert ">value</th>" not in page
    assert result._repr_html_().count("<tr><td") == 9
    assert f"<strong>{best.number}</strong>" in result._repr_html_()


def test_a_front_with_no_answer_is_empty():
    one = nr.maximize(lambda x, y: (x, y), SPACE, objectives=["a", "b"], trials=1, progress=False)
    assert [trial.number for trial in one.front] == [0]

    def violated(x, y):
        return {"a": x, "b": y, "c": 1.0}

    none = nr.maximize(violated, SPACE, objectives=["a", "b"], constraints="c <= 0", trials=3, progress=False)
    assert none.front == []
    assert "front: no trial, as nothing was feasible" in repr(none)
    assert none._repr_html_().count("<strong>") == 0
    with pytest.raises(TrialError, match="satisfied all constraints"):
        none.best(weights={"a": 1})


def test_the_picture_shows_the_front(result, tmp_path):
    result.plot(tmp_path / "front.png")
    assert (tmp_path / "front.png").read_bytes().startswith(b"\x89PNG")
    assert next(axes.get_xlabel() for axes in result.plot().axes).startswith("loss")


def test_a_copy_goes_its_own_way(result):
    copy = pickle.loads(pickle.dumps(result))
    assert copy.front == result.front
    assert repr(copy) == repr(result)


# -- noise, limits, failures ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("std", [{"loss": 0.1}, (0.1, None), [0.1, None]])
def test_noise_of_each_objective(std):
    found = quiet(lambda x, y: both(x, y) | {"std": std}, trials=3)
    assert [trial.stds for trial in found.trials] == [(0.1, None)] * 3
    assert found.history[0]["stds"] == {"loss": 0.1, "recall": None}
    assert found.to_pandas()["stds.loss"].tolist() == [0.1] * 3
    assert "metrics.std" not in found.to_pandas()


@pytest.mark.parametrize(
    ("constraints", "answer"),
    [
        ("letters <= 2.5", lambda x, y: both(x, y) | {"letters": 2 + x}),
        (["loss <= 0.2", lambda x, y: x - 0.5], both),  # The value of an objective may have a limit, too.
        (1, lambda x, y: (in_order(x, y), [x - 0.5])),
        (1, lambda x, y: both(x, y) | {"constraints": [x - 0.5]}),
    ],
)
def test_limits_stand_beside_the_objectives(constraints, answer):
    found = quiet(answer, trials=9, constraints=constraints)
    assert {trial.feasible for trial in found.trials} == {True, False}
    assert found.front
    assert all(trial.feasible for trial in found.front)
    assert f"feasible: {sum(trial.feasible for trial in found.trials)} of 9 trials" in repr(found)
    assert len(found.history[0]["constraints"]) == found.study.policy.constraint_count


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"recall": math.nan}, "its objective 'recall' is nan, which is not finite"),
        ({"loss": 1e200}, "its objective 'loss' is 1e200; it must lie within"),
        ({"std": {"recall": -1.0}}, "the std of 'recall' is -1, and a standard deviation is at least 0"),
    ],
)
def test_a_trial_fails_if_one_objective_does(bad, reason):
    found = quiet(lambda x, y: both(x, y) | (bad if y > 0.5 else {}))
    failed = [trial for trial in found.trials if trial.state == "failed"]
    assert failed
    assert all(reason in trial.reason and trial.values is None and trial.others == () for trial in failed)
    assert {trial.state for trial in found.front} == {"observed"}
    assert math.isfinite(found.study.hypervolume())


# -- mistakes of form -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "match"),
    [
        (0.3, "its answer is 0.3, and there are 2 objectives: it must be a dict with the entries 'loss', 'recall'"),
        (None, "its answer is None, and there are 2 objectives"),
        ("good", "its answer is 'good', and there are 2 objectives"),
        (np.array(0.3), r"its answer is array\(0.3\), and there are 2 objectives"),
        ((0.3,), r"its answer is \(0.3,\), and there are 2 objectives"),
        ((0.3, 1.0, 2.0), "and there are 2 objectives"),
        ({"loss": 0.3}, "its answer has no entry 'recall', which is an objective, only 'loss'"),
        ({"loss": 0.3, "reward": 1.0}, "no entry 'recall', which is an objective, only 'loss', 'reward'"),
        ({"loss": 0.3, "recall": "high"}, r"its objective 'recall' is not a number: 'high' \(str\)"),
        ((0.3, None), "its objective 'recall' is not a number but None"),
        ((0.3, True), "its objective 'recall' is not a number: True"),
        ({"loss": 0.3, "recall": [1.0, 2.0]}, "its objective 'recall' is not a number"),
        ({"loss": 0.3, "recall": 1.0, "std": 0.1}, "its entry 'std' is 0.1, and there are 2 objectives"),
        ({"loss": 0.3, "recall": 1.0, "std": (0.1,)}, r"its entry 'std' is \(0.1,\), and there are 2 objectives"),
        ({"loss": 0.3, "recall": 1.0, "std": {"los": 0.1}}, "'los'"),
        ({"loss": 0.3, "recall": 1.0, "sdt": 0.1}, "Did you mean 'std'"),
    ],
)
def test_a_first_answer_of_the_wrong_form_ends_the_run(answer, match):
    calls = []

    def wrong(x, y):
        calls.append(x)
        return answer

    with pytest.raises(InvalidInput, match=match):
        quiet(wrong, trials=20)
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("objective", "more", "match"),
    [
        (lambda x, y: x, {"constraints": lambda x, y: None}, "the answer of the constraint .* is not a number"),
        (lambda x, y: {"a": x, "b": y}, {"constraints": "c <= 0", "objectives": ["a", "b"]}, "no entry 'c'"),
        (lambda x, y: (x, y), {"constraints": "c <= 0", "objectives": ["a", "b"]}, "'c' has a limit: it must be a"),
        (lambda x, y: ((x, y), 1.0, 2.0), {"constraints": 1, "objectives": ["a", "b"]}, "no constraint values"),
    ],
)
def test_so_it_is_for_limits(objective, more, match):
    calls = []

    def counted(x, y):
        calls.append(x)
        return objective(x, y)

    with pytest.raises(InvalidInput, match=match):
        nr.maximize(counted, SPACE, trials=20, progress=False, **more)
    assert len(calls) == 1


@pytest.mark.parametrize("fault", [ZeroDivisionError, math.nan, math.inf])
def test_a_fault_of_the_evaluation_fails_its_trial_alone(fault):
    calls = []

    def sometimes(x, y):
        calls.append(x)
        if len(calls) == 1 and isinstance(fault, type):
            raise fault
        return {"loss": x, "recall": fault if len(calls) == 1 else y}

    assert [trial.state for trial in quiet(sometimes, trials=4).trials] == ["failed"] + ["observed"] * 3


# -- nonsense before the first trial ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"objectives": {"loss": "minimize"}}, "`objectives` has 1 entry: a front needs two at least"),
        ({"objectives": []}, "`objectives` has 0 entries"),
        ({"objectives": ["loss", "loss"]}, "Two objectives have the name 'loss'"),
        ({"objectives": "loss"}, "`objectives` is 'loss': it must be a dict with the goal of each"),
        ({"objectives": 2}, "`objectives` is 2: it must be a dict"),
        (
            {"objectives": {"loss": "minimise", "recall": "max"}},
            r"\[loss\] `goal` is 'minimise'.* Did you mean 'minimize'",
        ),
        ({"objectives": {"loss": None, "recall": "maximize"}}, "`goal` is None"),
        ({"objectives": ["loss", 3]}, "An objective has the name 3"),
        ({"objectives": ["loss", ""]}, "An objective has the name ''"),
        ({"objectives": ["loss", "a\nb"]}, "An objective has the name"),
        ({"objectives": ["constraints", "loss"]}, "An objective has the name 'constraints'"),
        ({"objectives": ["std", "loss"]}, "An objective has the name 'std'"),
        ({"objectives": [f"loss {i}" for i in range(11)]}, "`objectives` is 11"),
        ({"stop": "1%"}, "`stop` is for one objective"),
        ({"cost": "seconds"}, "`cost` is for one objective"),
        ({"like": []}, "`like` is for one objective"),
        ({"policy": nr.auto(SPACE)}, r"`objectives` are 'loss', 'recall', and `policy` has 1 objective: make it by"),
        ({"policy": nr.auto(SPACE, objectives=3)}, r"`policy` has 3 objectives \(objective 1, "),
        ({"policy": nr.auto(SPACE, objectives=("recall", "loss"))}, r"`policy` has 2 objectives \(recall, loss\)"),
        ({"policy": nr.auto(SPACE, objectives=2), "objectives": None}, "`policy` has 2 objectives .* give each a name"),
    ],
)
def test_nonsense_is_a_sentence_before_the_first_trial(change, match):
    calls = []
    with pytest.raises(InvalidInput, match=match):
        quiet(lambda x, y: calls.append(x), **change)
    assert calls == []


def test_a_front_is_no_earlier_study_and_no_rule_says_when_it_is_enough(result, tmp_path):
    storage = f"sqlite:///{tmp_path}/studies.db"
    quiet(trials=2, storage=storage)
    for like in (result, result.study, storage):
        with pytest.raises(InvalidInput, match="Earlier study 'both' has 2 objectives, and `like` learns from one"):
            nr.auto(SPACE, like=like)
    with pytest.raises(InvalidInput, match="auto has 2 objectives, so that no single trial is the best"):
        nr.Enough("1%")(result.study)


def test_a_policy_without_names_takes_those_of_the_call():
    found = quiet(policy=nr.auto(SPACE, objectives=2, noise=0.1), trials=3)
    assert found.study.policy.objective_names == ("loss", "recall")
    assert [trial.values for trial in found.trials] == [in_order(**trial.parameters) for trial in found.trials]


# -- run, storage, workers --------------------------------------------------------------------------------------------


def test_run_evaluates_a_study_of_ones_own():
    study = nr.Study(nr.auto(SPACE, objectives=("loss", "recall")), goal=("minimize", "maximize"))
    found = nr.run(study, both, trials=4, progress=False)
    assert found.study is study
    assert [trial.values for trial in study.trials] == [in_order(**trial.parameters) for trial in study.trials]
    with pytest.raises(InvalidInput, match="`stop` is for one objective"):
        nr.run(study, both, trials=5, stop="1%", progress=False)
    unnamed = nr.Study(nr.auto(SPACE, objectives=2, constraints=1), goal=("minimize", "maximize"))
    assert nr.run(unnamed, lambda x, y: (in_order(x, y), [x - 1]), trials=3, progress=False).front
    with pytest.raises(InvalidInput, match="has no entry 'objective 1', which is an objective"):
        nr.run(unnamed, lambda x, y: both(x, y) | {"constraints": [0.0]}, trials=4, progress=False)


def test_a_run_goes_on_from_its_storage(tmp_path):
    storage = f"sqlite:///{tmp_path}/studies.db"
    calls = []

    def cut(x, y):
        calls.append(x)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return both(x, y)

    stopped = quiet(cut, storage=storage, name="both")
    assert [trial.state for trial in stopped.trials] == ["observed"] * 3 + ["pending"]
    again = quiet(storage=storage)
    assert told(again) == told(quiet())
    for other, match in [
        ({"loss": "minimize", "f1": "maximize"}, r"`objectives` are 'loss', 'f1', .* 2 objectives \(loss, recall\)"),
        ({"recall": "maximize", "loss": "minimize"}, r"`objectives` are 'recall', 'loss'"),
        ({"loss": "maximize", "recall": "maximize"}, r"'minimize', 'maximize'"),
        (None, r"`policy` has 2 objectives \(loss, recall\)"),
    ]:
        with pytest.raises(InvalidInput, match=match):
            quiet(trials=9, objectives=other, storage=storage)
    assert len(nr.Study.open(storage=storage, name="both").trials) == 8


def test_a_study_of_one_objective_stays_one(tmp_path):
    storage = f"sqlite:///{tmp_path}/studies.db"
    nr.minimize(lambda x, y: x, SPACE, trials=3, storage=storage, name="both", progress=False)
    with pytest.raises(InvalidInput, match=r"`policy` has 1 objective: .*another `name` begins a new one"):
        quiet(storage=storage)


def test_in_threads_with_callbacks_points_first_and_a_time_limit():
    seen = []
    with ThreadPoolExecutor(2) as pool:
        found = quiet(
            trials=6, executor=pool, enqueue=[{"x": 0.5}], seconds=1000, callbacks=[lambda study, t: seen.append(t)]
        )
    assert len(seen) == len(found.trials) == 6
    assert found.trials[0].parameters["x"] == 0.5
    stopped = quiet(trials=6, callbacks=[lambda study, trial: len(study.front()) > 0])
    assert len(stopped.trials) == 1


@pytest.mark.nightly
def test_in_processes():
    with ProcessPoolExecutor(2) as pool:
        found = quiet(trials=5, executor=pool, timeout=30)
    assert [trial.values for trial in found.trials] == [in_order(**trial.parameters) for trial in found.trials]


def test_progress_says_what_joined_the_front(capsys):
    nr.minimize(both, SPACE, objectives=BOTH, trials=3)
    lines = capsys.readouterr().err.splitlines()
    first = next(iter(lines))
    assert first.startswith("trial 0: on the front ")
    assert ", x=" in first
    assert lines[-1].startswith("both: 3 trials, front of ")


# -- files and commands -----------------------------------------------------------------------------------------------

FILE = """
trials = 5
objectives = { loss = "minimize", recall = "maximize" }
[parameters.x]
type = "float"
low = 0.0
high = 1.0
[parameters.y]
type = "float"
low = 0.0
high = 1.0
[objective]
function = "objective:both"
"""
BODY = """
import math
def both(x, y):
    return {"loss": (x - 0.3) ** 2 + y, "recall": math.sin(3 * x) + y / 2, "letters": 3}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "objective.py").write_text(BODY)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.delitem(sys.modules, "objective", raising=False)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("objective", None)


def command(folder, *words, changes=(), drawn=False):
    text = FILE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "job.toml").write_text(text)
    with mock.patch.object(plots, "overview") as overview:
        ended = CliRunner().invoke(main, list(words))
    assert overview.called == drawn
    return ended


def opened(folder, name="job"):
    return nr.Study.open(storage=f"sqlite:///{folder}/job.db", name=name)


def test_a_file_does_what_minimize_does(folder):
    ended = command(folder, "tune", "job.toml", drawn=True)
    assert ended.exit_code == 0, ended.output
    assert "trial 0: on the front " in ended.output
    assert "Result of 'job' (minimize, maximize): 5 trials\n  front: " in ended.output
    assert "hypervolume" in ended.output
    study, same = opened(folder), quiet(trials=5)
    assert told(study) == told(same)
    assert study.goals == ("minimize", "maximize")
    header, _, *rows = ended.output[ended.output.index("\ntrial  ") + 1 :].splitlines()[: len(same.front) + 2]
    assert all(f"{each}, told" in header for each in ("loss", "recall"))
    assert [int(row.split()[0]) for row in rows] == [trial.number for trial in same.front]
    more = command(folder, "tune", "job.toml", "--trials", "6", drawn=True)
    assert more.exit_code == 0, more.output
    assert len(opened(folder).trials) == 6


@pytest.mark.parametrize("printed", ['{"loss": 0.5, "recall": 2}', "[0.5, 2]"])
def test_a_command_prints_the_numbers(folder, printed):
    line = f"command = {json.dumps(f'echo {{x}} >> seen; echo {chr(39)}{printed}{chr(39)}')}".replace("{x}", "{x}")
    line = line.replace(printed.replace('"', '\\"'), printed.replace('"', '\\"').replace("{", "{{").replace("}", "}}"))
    ended = command(
        folder, "tune", "job.toml", "--trials", "2", changes=[('function = "objective:both"', line)], drawn=True
    )
    assert ended.exit_code == 0, ended.output
    assert [trial.values for trial in opened(folder).trials] == [(0.5, 2.0)] * 2


@pytest.mark.parametrize(
    ("shell", "match"),
    [
        ("echo 0.5", "its answer is 0.5, and there are 2 objectives"),
        ("echo '[0.5]'", "its answer is [0.5], and there are 2 objectives"),
    ],
)
def test_a_command_of_the_wrong_form_ends_the_run(folder, shell, match):
    line = f"command = {json.dumps(shell)}"
    ended = command(folder, "tune", "job.toml", changes=[('function = "objective:both"', line)])
    assert ended.exit_code == 1
    assert f"The run ends at trial 0: {match}" in ended.output
    assert [trial.state for trial in opened(folder).trials] == ["pending"]


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ([("trials = 5", 'trials = 5\ngoal = "minimize"')], "`goal` stands beside `objectives`"),
        ([('"minimize"', '"min"')], "`goal` is 'min': it must be 'maximize' or 'minimize'"),
        ([(', recall = "maximize"', "")], "`objectives` has 1 entry"),
        ([("trials = 5", 'trials = 5\nstop = "1%"')], "`stop` is for one objective"),
        ([("trials = 5", 'trials = 5\ncost = "seconds"')], "`cost` is for one objective"),
        ([("trials = 5", 'trials = 5\nlike = "old.db"')], "`like` is for one objective"),
        ([("[objective]", '[policy]\nalgorithm = "auto"\nobjectives = 2\n[objective]')], "`objectives` cannot be set"),
        (
            [("[objective]", '[policy]\nalgorithm = "gp_ucb"\nnoise = 0.1\nkernel = { type = "matern" }\n[objective]')],
            "[policy] `algorithm` 'gp_ucb' has one objective, and the file has several: it must be one of 'auto'",
        ),
        (
            [('{ loss = "minimize", recall = "maximize" }', "2")],
            "`objectives` must be a list or a table, and",
        ),
        (
            [('{ loss = "minimize", recall = "maximize" }', '["loss", "recall"]\ngoal = ["minimize"]')],
            "`goal` has 1 entry, and there are 2 objectives",
        ),
    ],
)
def test_nonsense_in_a_file_is_a_sentence(folder, changes, match):
    ended = command(folder, "tune", "job.toml", changes=changes)
    assert ended.exit_code == 1
    assert match in ended.output
    assert not (folder / "job.db").exists()


@pytest.mark.parametrize("goal", ['["minimize", "maximize"]', '"minimize"'])
def test_a_file_may_list_names_beside_the_goal(folder, goal):
    changes = [('{ loss = "minimize", recall = "maximize" }', f'["loss", "recall"]\ngoal = {goal}')]
    ended = command(folder, "tune", "job.toml", "--trials", "1", changes=changes, drawn=True)
    assert ended.exit_code == 0, ended.output
    assert opened(folder).goals == (("minimize", "maximize") if "[" in goal else ("minimize", "minimize"))


def test_a_file_has_limits_and_a_policy_beside_objectives(folder):
    policy = '[policy]\nalgorithm = "auto"\nnoise = 0.01\n[objective]\nconstraints = ["letters <= 5"]'
    ended = command(folder, "tune", "job.toml", changes=[("[objective]", policy)], drawn=True)
    assert ended.exit_code == 0, ended.output
    assert opened(folder).policy.constraint_count == 1
    assert opened(folder).policy.noise == 0.01
    assert "feasible: 5 of 5 trials" in ended.output


def test_workers_share_a_study_of_several_objectives(folder):
    storage = f"sqlite:///{folder}/job.db"
    text = FILE.replace("trials = 5\n", "")
    (folder / "study.toml").write_text(text[: text.index("[objective]")])
    made = command(folder, "create", "job.db", "job", "study.toml")
    assert made.exit_code == 0, made.output
    assert nr.Study.open(storage=storage, name="job").policy.objective_names == ("loss", "recall")
    for objective, trials in [("objective:both", 2), ("job.toml", 4)]:
        ended = command(folder, "work", "job.db", "job", objective, "--trials", str(trials))
        assert ended.exit_code == 0, ended.output
    study = opened(folder)
    assert [trial.values for trial in study.trials] == [in_order(**trial.parameters) for trial in study.trials]
    (folder / "objective.py").write_text(BODY.replace('"recall"', '"recalled"'))
    sys.modules.pop("objective", None)
    ended = command(folder, "work", "job.db", "job", "objective:both", "--trials", "9")
    assert ended.exit_code == 1
    assert "its answer has no entry 'recall', which is an objective" in ended.output
    assert [trial.state for trial in opened(folder).trials][4:] == ["abandoned"]
    other = [('recall = "maximize"', 'recall = "minimize"')]
    ended = command(folder, "work", "job.db", "job", "job.toml", "--trials", "9", changes=other)
    assert "another goal" in ended.output
