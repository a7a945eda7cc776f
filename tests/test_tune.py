"""The command line as a user meets it."""

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import types
from pathlib import Path
from unittest import mock

import pytest
from click.testing import CliRunner

import nilregret as nr
from nilregret import plots
from nilregret.__main__ import main
from nilregret._utils.numerals import numeral
from nilregret.tuning import loop, open_study
from nilregret.tuning.toml import evaluation
from nilregret.tuning.toml.config import load

from .waiting import until

pytestmark = pytest.mark.usefixtures("few_draws")
FILE = """
trials = 12
grid = 6
[parameters.x]
type = "float"
low = 0.0
high = 1.0
[parameters.kind]
type = "choice"
options = ["a", "b c"]
[policy]
algorithm = "gp_ucb"
noise = 0.1
kernel = { type = "matern", nu = 2.5, lengthscale = 0.5 }
[objective]
function = "objective:score"
"""
SCORE = """
def score(x, kind):
    return -(x - 0.4) ** 2 + (0.5 if kind == "b c" else 0.0)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "objective.py").write_text(SCORE)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.delitem(sys.modules, "objective", raising=False)
    yield tmp_path
    sys.modules.pop("objective", None)


def write(folder, *changes, text=FILE):
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "job.toml"
    path.write_text(text)
    return path


def tune(path, *options, drawn=False):
    """A run whose picture is not drawn, unless it is looked at: it takes as long as the run."""
    with contextlib.nullcontext() if drawn else mock.patch.object(plots, "overview"):
        return CliRunner().invoke(main, ["tune", str(path), *options])


def trials(folder, name="job"):
    return list(nr.Study.open(storage=f"sqlite:///{folder}/job.db", name=name).trials)


def test_it_tunes_and_shows(folder):
    result = tune(write(folder), drawn=True)
    assert result.exit_code == 0, result.output
    assert "trial 0: best so far " in result.output
    assert result.output.endswith(f"next: nilregret show {folder}/job.db job\n")
    assert "Result of 'job' (maximize): 12 trials\n  best value: " in result.output
    assert len(trials(folder)) == 12
    best = nr.Study.open(storage=f"sqlite:///{folder}/job.db", name="job").best()
    assert best.parameters == {"x": 0.4, "kind": "b c"}
    assert (folder / "job.png").read_bytes().startswith(b"\x89PNG")


def test_it_tunes_continuously_and_learns_the_kernel(folder):
    path = write(folder, ("grid = 6\n", ""), ("noise = 0.1", "noise = 0.1\nrefit = { every = 5 }"))
    result = tune(path, drawn=True)
    assert result.exit_code == 0, result.output
    assert (folder / "job.png").stat().st_size > 10_000
    assert len({trial.parameters["x"] for trial in trials(folder)}) > 6
    resumed = tune(path, "--trials", "14")
    assert resumed.exit_code == 0, resumed.output
    bad = tune(write(folder, ("noise = 0.1", "noise = 0.1\nrefit = { evry = 5 }")))
    assert "[policy] [refit] unknown evry. Did you mean 'every'?" in bad.output


POLICY = FILE[FILE.index("[policy]") : FILE.index("[objective]")]


def test_without_a_policy_a_file_does_what_maximize_does(folder):
    sys.path.insert(0, str(folder))
    path = write(folder, (POLICY, ""), ("grid = 6\n", ""))
    ended = tune(path, "--trials", "9")
    assert ended.exit_code == 0, ended.output
    from objective import score

    space = nr.Space(x=nr.Float(0, 1), kind=nr.Choice("a", "b c"))
    result = nr.maximize(score, space, trials=9, progress=False)
    assert [(t.parameters, t.reward) for t in trials(folder)] == [(t.parameters, t.reward) for t in result.trials]
    on_a_grid = tune(write(folder, (POLICY, ""), ("trials", 'name = "grid"\ntrials')), "--trials", "4")
    assert on_a_grid.exit_code == 0, on_a_grid.output
    assert "Result of 'grid' (maximize): 4 trials" in on_a_grid.output


def test_a_study_goes_on_with_the_policy_that_was_chosen_when_it_began(folder, monkeypatch):
    path = write(folder, (POLICY, ""))
    assert tune(path, "--trials", "2").exit_code == 0
    chosen = nr.Study.open(storage=f"sqlite:///{folder}/job.db", name="job").policy
    other = nr.algorithms.greedy_variance(
        chosen.domain, nr.Matern(2.5, 0.3), noise=0.1
    )  # as a later version might choose
    monkeypatch.setattr(open_study, "auto", lambda domain, **known: other)
    assert tune(path, "--trials", "4").exit_code == 0
    assert nr.Study.open(storage=f"sqlite:///{folder}/job.db", name="job").policy == chosen
    other_space = tune(write(folder, (POLICY, ""), ("low = 0.0", "low = 0.5")))
    assert "is of other parameters" in other_space.output


@pytest.mark.nightly
def test_a_function_that_hangs_is_ended_by_its_timeout(folder):
    (folder / "objective.py").write_text(
        "import time\ndef score(x, kind):\n    if kind == 'a': time.sleep(600)\n    return x"
    )
    lines = ('function = "objective:score"', 'function = "objective:score"\ntimeout = 0.5')
    result = tune(write(folder, lines), "--trials", "3")
    assert result.exit_code == 0, result.output
    assert {t.reason for t in trials(folder) if t.parameters["kind"] == "a"} == {"no answer within 0.5 s"}
    others = [trial for trial in trials(folder) if trial.parameters["kind"] == "b c"]  # a busy machine may be as slow
    assert all(trial.reward == trial.parameters["x"] or trial.reason == "no answer within 0.5 s" for trial in others)


def test_a_run_in_which_nothing_works_ends_early(folder):
    (folder / "objective.py").write_text("def score(x, kind): raise KeyError('data')")
    result = tune(write(folder))
    assert result.exit_code == 1
    assert "All 10 trials failed, the last one with \"KeyError: 'data'\"" in result.output
    assert len(trials(folder)) == 10


def test_a_finished_study_is_shown_and_raised_trials_go_on(folder):
    path = write(folder)
    tune(path)
    before = trials(folder)
    shown = tune(path)
    assert "12 trials\n" in shown.output
    assert "trial 12:" not in shown.output
    assert trials(folder) == before
    more = tune(path, "--trials", "15")
    assert more.exit_code == 0
    assert trials(folder)[:12] == before
    assert len(trials(folder)) == 15


def test_options_override_the_file(folder, tmp_path):
    storage, plot = f"sqlite:///{tmp_path}/other.db", tmp_path / "other.png"
    result = tune(write(folder), "--trials", "3", "--storage", storage, "--plot", str(plot), drawn=True)
    assert result.exit_code == 0, result.output
    assert len(nr.Study.open(storage=storage, name="job").trials) == 3
    assert plot.exists()
    assert not (folder / "job.db").exists()


def test_seconds_end_a_run_as_trials_do(folder, monkeypatch):
    now = iter(range(10**6))
    with monkeypatch.context() as patched:
        patched.setattr(loop, "monotonic", lambda: 10.0 * next(now))  # Each look takes ten seconds.
        result = tune(write(folder, ("trials = 12\n", "")), "--seconds", "60")
    assert result.exit_code == 0, result.output
    assert "seconds: the 60 s were over" in result.output
    assert "best value: " in result.output
    assert 0 < len(trials(folder)) <= 6
    sys.modules["objective"] = types.ModuleType("objective")  # Another one of this name, as of an earlier file.
    result = tune(write(folder, ("trials = 12\n", "seconds = 1000\n")), "--trials", str(len(trials(folder)) + 1))
    assert result.exit_code == 0, result.output
    assert "stopped" not in result.output


def test_shell_commands(folder):
    python = sys.executable
    command = (
        f"echo $NILREGRET_TRIAL >> numbers && {python} -c 'import sys; print(float(sys.argv[1]) * 2)' {{x}} {{kind}}"
    )
    result = tune(write(folder, ('function = "objective:score"', f"command = {json.dumps(command)}")), "--trials", "5")
    assert result.exit_code == 0, result.output
    for trial in trials(folder):
        assert trial.reward == pytest.approx(2 * trial.parameters["x"])
    assert (folder / "numbers").read_text().split() == list("01234")


def test_shell_arguments_are_quoted_and_json_is_read(folder):
    script = folder / "say.py"
    script.write_text("import json, sys\nprint(json.dumps({'reward': len(sys.argv), 'letters': len(sys.argv[1])}))")
    command = f"{sys.executable} say.py {{kind}}"
    result = tune(write(folder, ('function = "objective:score"', f"command = {json.dumps(command)}")), "--trials", "6")
    assert result.exit_code == 0, result.output
    assert {trial.reward for trial in trials(folder)} == {2.0}
    assert {trial.metrics["letters"] for trial in trials(folder)} <= {1.0, 3.0}
    assert "metrics there: letters=" in result.output


def test_losses_are_minimised_recorded_and_shown_as_they_are(folder):
    (folder / "objective.py").write_text("def score(x, kind): return 3 + (x - 0.4) ** 2")
    result = tune(write(folder, ("trials = 12", 'trials = 12\ngoal = "minimize"')))
    assert result.exit_code == 0, result.output
    losses = [trial.reward for trial in trials(folder)]
    assert all(3 <= loss < 4 for loss in losses)
    better = [i for i, loss in enumerate(losses) if loss < min(losses[:i], default=math.inf)]
    lines = [line for line in result.output.splitlines() if line.startswith("trial ")]
    assert [line.partition(",")[0] for line in lines] == [
        f"trial {i}: best so far {numeral(losses[i])}" for i in better
    ]
    assert "Result of 'job' (minimize): 12 trials\n  best value: 3, " in result.output
    assert nr.Study.open(storage=f"sqlite:///{folder}/job.db", name="job").best().reward == 3


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ([("trials = 12", 'trials = 12\ngoal = "min"')], "`goal` is 'min': .* Did you mean 'minimize'?"),
        ([('score"', 'score"\ngoal = "maximize"')], "`objective`: there is no entry `goal`. It belongs at the top"),
    ],
)
def test_a_goal_is_said_once_and_spelt_right(folder, changes, match):
    output = tune(write(folder, *changes)).output
    for part in match.split(" .* "):
        assert part in output
    assert not (folder / "job.db").exists()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("raise RuntimeError('out of memory')", "RuntimeError: out of memory"),
        ("return 'good'", "not a number: 'good'"),
        ("return None", "not a number"),
        ("return float('nan')", "nan, which is not finite"),
        ("return True", "not a number"),
        ("return 10**400", "not finite"),
        ("return 1e200", "must lie within"),
        ("raise ValueError", "ValueError"),
        ("raise ValueError('lone \\udcff')", "ValueError: lone"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
    ],
)
def test_a_failing_objective_fails_its_trial_and_the_run_goes_on(folder, body, reason):
    (folder / "objective.py").write_text(f"def score(x, kind):\n    if x > 0.5: {body}\n    return x")
    result = tune(write(folder, ("trials = 12", "trials = 12\nenqueue = [{ x = 0.0 }]")))
    assert result.exit_code == 0, result.output
    states = [trial.state for trial in trials(folder)]
    assert len(states) == 12
    assert states.count("failed") in range(1, 7)  # the six bad arms at most once each
    assert all(reason in trial.reason for trial in trials(folder) if trial.state == "failed")
    assert reason in result.output


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("exit 3", "exit status 3: it said nothing"),
        ("echo broken >&2; exit 1", "exit status 1: broken"),
        ("echo NaN", "not finite"),
        ("head -c 500 /dev/zero | tr '\\0' 9", "not finite"),
        ("sleep 600", "no answer within 0.2 s"),
    ],
)
def test_failing_commands_say_why_and_exit_with_an_error(folder, command, reason):
    lines = f"command = {json.dumps(command)}\ntimeout = {0.2 if 'no answer' in reason else 600}"
    result = tune(write(folder, ('function = "objective:score"', lines)), "--trials", "2")
    assert result.exit_code == 1
    assert reason in result.output
    assert "All 2 trials failed" in result.output
    assert [reason in trial.reason for trial in trials(folder)] == [True, True]


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("true", "it printed nothing; its last line must be a number or JSON. Usually"),
        ("echo 0.5; echo done", "its last line is neither a number nor JSON: 'done'. Usually"),
        ("head -c 100000 /dev/zero | tr '\\0' '['", "its last line is neither a number nor JSON"),
    ],
)
def test_a_first_command_that_prints_no_answer_ends_the_run(folder, command, reason):
    result = tune(write(folder, ('function = "objective:score"', f"command = {json.dumps(command)}")))
    assert result.exit_code == 1
    assert f"The run ends at trial 0: {reason}" in result.output
    assert [trial.state for trial in trials(folder)] == ["pending"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("trials = 12", "trials = 0"), "`trials` must be a whole number >= 1."),
        (("trials = 12", "trials = '12'"), "`trials` must be a whole number, and is a text."),
        (("trials = 12", "trials = nan"), "`trials` must be a whole number, and is not whole."),
        (("low = 0.0", "low = 1.0\nlgo = true"), "[parameters.x] there is no entry `lgo`. Did you mean `log`?"),
        (("trials = 12", "seconds = 0"), "`seconds` must be a number > 0.0."),
        (("trials = 12", ""), "the entry `trials` is missing"),
        (("trials = 12", "trials = 12\ntrails = 3"), "there is no entry `trails`. Did you mean `trials`?"),
        (("trials = 12", "trials = 12\nbudget = 3"), "there is no entry `budget`. The entries are: parameters"),
        (
            ("low = 0.0", "low = 0.0\nhihg = 3"),
            "[parameters.x] there is no entry `hihg`. Did you mean `high`?",
        ),
        (("trials = 12", 'trials = 12\nname = "a/b"'), "`name` is 'a/b'"),
        (("trials = 12", 'trials = 12\nplot = "x.xyz"'), "must end in one of .png"),
        (("trials = 12", 'trials = 12\nplot = "no/x.png"'), "does not exist: make it first"),
        (("trials = 12", f'trials = 12\nplot = "{"x" * 300}.png"'), "cannot be written: File name too long"),
        (("trials = 12", f'trials = 12\nname = "{"x" * 300}"'), "File name too long"),
        (("noise = 0.1", "noise = 1e200"), "[policy] `noise` is 1e200"),
        (('function = "objective:score"', 'command = "echo 1"\ntimeout = inf'), "`timeout` is inf"),
        (('function = "objective:score"', 'command = " "'), "`command` is empty"),
        (("[parameters.x]", '[parameters."a.b"]'), "cannot be called with the parameters"),
        (("trials = 12", "trials = "), "is not valid TOML"),
        (("low = 0.0", "low = 2.0"), "[parameters.x] Float needs low <= high"),
        (("low = 0.0", "low = 'zero'"), "[parameters.x] `low` must be a number, and is a text."),
        (("low = 0.0", "low = 0.0\nlog = true"), "[parameters.x] Float with `log` needs low > 0"),
        (
            ('type = "float"', 'type = "real"'),
            "[parameters.x] `type` is 'real': it must be 'float', 'int' or 'choice'. That is 'float'.",
        ),
        (('type = "float"', 'type = "Bool"'), "That is 'choice', with options = [true, false]."),
        (
            ('type = "float"', 'type = "mixture"'),
            "That is a 'float' for each ingredient, and their sum among the limits",
        ),
        (('type = "float"', 'type = "flaot"'), "it must be 'float', 'int' or 'choice'. Did you mean 'float'?"),
        (('["a", "b c"]', "[]"), "[parameters.kind] Choice needs at least one option"),
        (("noise = 0.1", "noise = -0.1"), "[policy] `noise` is -0.1"),
        (("noise = 0.1", ""), "[policy] missing noise"),
        (
            ("noise = 0.1", "noise = 0.1\nsclae = 2"),
            "[policy] unknown sclae. Did you mean 'scale'?",
        ),
        (('algorithm = "gp_ucb"\n', ""), "[policy] `algorithm` is missing: it must be one of 'asy_ts', 'auto'"),
        (("gp_ucb", "gp_ubc"), "[policy] `algorithm` is 'gp_ubc': it must be one of 'asy_ts'"),
        (("matern", "matérn"), "[policy] [kernel] `type` is 'matérn'"),
        (("lengthscale = 0.5", "lengthscale = 0"), "[policy] [kernel] `lengthscale` is 0"),
        (("lengthscale = 0.5", "lengthscale = [1, 2]"), "2 lengthscales and the points have 3 dimensions"),
        (("grid = 6", "grid = { y = 3 }"), "[grid] `per_dimension` names ['y']"),
        (("objective:score", "objective"), "write 'module:function'"),
        (("objective:score", "nothing_here:score"), "ModuleNotFoundError"),
        (("objective:score", "objective:scorn"), "the module 'objective' has no 'scorn'. Did you mean 'score'?"),
        (('function = "objective:score"', ""), "either `function` or `command`"),
        (('function = "objective:score"', 'command = "echo {z}"'), "names 'z'; the parameters are x, kind"),
        (('function = "objective:score"', 'command = "echo {x"'), "`command`"),
        (("trials = 12", 'trials = 12\nstorage = "nowhere"'), "must be a URL"),
    ],
)
def test_every_mistake_in_the_file_is_named(folder, change, message):
    result = tune(write(folder, change))
    assert result.exit_code == 1, result.output
    assert message in result.output
    assert "Traceback" not in result.output
    assert not (folder / "job.db").exists()


def test_a_function_that_does_not_take_the_parameters_is_found_before_the_first_trial(folder):
    (folder / "objective.py").write_text("def score(y): return 0")
    result = tune(write(folder))
    assert result.exit_code == 1
    assert "cannot be called with the parameters x, kind" in result.output
    assert not (folder / "job.db").exists()


CONDITION = '[parameters.y]\ntype = "float"\nlow = 0.0\nhigh = 1.0\nwhen = { kind = "b c" }\n[policy]'


def test_a_parameter_may_count_for_some_values_of_another_alone(folder):
    (folder / "objective.py").write_text(
        "def score(x, kind, y=None): return -(x - 0.4) ** 2 + (1.0 if y is None else y)"
    )
    result = tune(write(folder, ("[policy]", CONDITION)))
    assert result.exit_code == 0, result.output
    assert {len(trial.parameters) for trial in trials(folder)} == {2, 3}
    assert all(("y" in trial.parameters) == (trial.parameters["kind"] == "b c") for trial in trials(folder))


def test_a_condition_must_fit_and_its_parameter_needs_a_default(folder):
    result = tune(write(folder, ("[policy]", CONDITION)))
    assert "cannot be called with the parameters x, kind, y" in result.output
    (folder / "objective.py").write_text("def score(x, kind, y): return y")
    sys.modules.pop("objective", None)
    result = tune(write(folder, ("[policy]", CONDITION)))
    assert result.exit_code == 1
    assert "are left out where they do not count: give them defaults" in result.output
    result = tune(write(folder, ("[policy]", CONDITION.replace("b c", "c"))))
    assert "Parameter `y` counts only for some values of 'kind': 'c' is not among the options" in result.output


def test_a_command_gets_an_empty_word_for_what_does_not_count(folder):
    command = 'command = "test -n {y} && echo 1 || echo 0"'
    tune(write(folder, ("[policy]", CONDITION), ('function = "objective:score"', command)))
    assert {(trial.parameters["kind"], trial.reward) for trial in trials(folder)} == {("a", 0.0), ("b c", 1.0)}


def test_a_missing_file_and_a_changed_policy_are_explained(folder):
    assert "There is no file" in tune(folder / "none.toml").output
    tune(write(folder), "--trials", "2")
    changed = tune(write(folder, ("noise = 0.1", "noise = 0.2")))
    assert changed.exit_code == 1
    assert "was made with other values: noise (0.1 then, 0.2 now), regularization" in changed.output
    assert len(trials(folder)) == 2


def test_a_changed_goal_is_refused(folder):
    tune(write(folder), "--trials", "2")
    changed = tune(write(folder, ("trials = 12", 'trials = 12\ngoal = "minimize"')))
    assert changed.exit_code == 1
    assert 'was made with other values: goal ("maximize" then, "minimize" now). A study' in changed.output


def test_the_prior_mean_of_losses_is_a_loss(folder):
    changes = ("trials = 12", 'trials = 12\ngoal = "minimize"'), ("noise = 0.1", "noise = 0.1\nprior_mean = 5.0")
    result = tune(write(folder, *changes), "--trials", "1")
    assert result.exit_code == 0, result.output
    study = nr.Study.open(storage=f"sqlite:///{folder}/job.db", name="job")
    assert study.policy.prior_mean == 5.0
    seen = study.trials[0].parameters
    (far,), _ = study.predict({"x": 1.0 - seen["x"], "kind": "a" if seen["kind"] == "b c" else "b c"})
    assert 0.0 < far < 5.0  # between the loss that was told and the prior mean


def test_one_earlier_study_is_named_by_a_text(folder):
    policy = FILE[FILE.index("[policy]") : FILE.index("[objective]")]
    file = write(folder, ("trials = 12", 'trials = 12\nlike = "old.csv"'), (policy, ""))
    assert load(file).like == [str(folder / "old.csv")]


def test_one_tuner_at_a_time(folder):
    path = write(folder)
    (folder / "objective.py").write_text(
        "import subprocess, sys\n"
        "def score(x, kind):\n"
        f"    command = [sys.executable, '-m', 'nilregret', 'tune', {str(path)!r}]\n"
        "    return subprocess.run(command, capture_output=True).stderr.count(b'Another process is tuning')\n"
    )
    result = tune(path, "--trials", "1")
    assert "best so far 1, " in result.output


def test_a_timeout_ends_all_that_the_command_started(folder):
    os.mkfifo(folder / "held")
    held, said = os.open(folder / "held", os.O_RDONLY | os.O_NONBLOCK), b""
    command = f"exec 3> {folder}/held; echo begun >&3; sleep 600 & sleep 600"
    for number, seconds in enumerate((0.2, 2.0, 20.0), start=1):  # a busy machine may be slow to begin
        lines = f"command = {json.dumps(command)}\ntimeout = {seconds}"
        tune(write(folder, ('function = "objective:score"', lines)), "--trials", str(number))
        said = os.read(held, 100)
        if said:
            break
    assert said == b"begun\n"

    def let_go():
        with contextlib.suppress(BlockingIOError):  # somebody could still write to it
            return os.read(held, 100) == b""

    until(let_go)
    os.close(held)


@pytest.mark.parametrize(
    ("said", "reward"), [(".5", 0.5), ("5.", 5.0), ("+0.5", 0.5), ("1e3", 1000.0), ('{"reward": 2, "x": 1}', 2.0)]
)
def test_numbers_are_read_as_people_write_them(folder, said, reward):
    doubled = said.replace("{", "{{").replace("}", "}}")
    command = f"echo '{doubled}'"
    tune(write(folder, ('function = "objective:score"', f"command = {json.dumps(command)}")), "--trials", "1")
    assert trials(folder)[0].reward == reward


STOPPING = """
import os, signal
from pathlib import Path
calls = Path(__file__).with_name("calls")
def score(x, kind):
    with calls.open("a") as log:
        log.write("x")
    if len(calls.read_text()) == int(os.environ.get("STOP_AT", "-1")):
        os.kill(os.getpid(), getattr(signal, os.environ["STOP_BY"]))
    return -(x - 0.4) ** 2 + (0.5 if kind == "b c" else 0.0)
"""


@pytest.mark.nightly
@pytest.mark.skipif(not hasattr(os, "kill"), reason="signals need a POSIX system")
def test_interrupted_and_killed_runs_continue_without_losing_or_repeating_a_trial(folder):
    (folder / "objective.py").write_text(STOPPING)
    path = write(folder)

    def work(**environment):
        command = [sys.executable, "-c", "from nilregret.__main__ import main; main()", "tune", str(path)]
        return subprocess.run(
            command,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
            # A test run in the background of a shell is deaf to SIGINT, and so would be what it starts.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    interrupted = work(STOP_AT="4", STOP_BY="SIGINT")
    assert interrupted.returncode == 130, interrupted.stderr
    assert "by Ctrl-C after 3 of 12 trials; run the same command again" in interrupted.stdout
    killed = work(STOP_AT="9", STOP_BY="SIGKILL")
    assert killed.returncode == -9
    finished = work()
    assert finished.returncode == 0, finished.stderr
    assert "12 trials\n" in finished.stdout
    pieces = trials(folder)
    straight = Path(folder, "straight")
    straight.mkdir()
    (straight / "objective.py").write_text(SCORE)
    (straight / "job.toml").write_text(FILE)
    sys.modules.pop("objective", None)
    sys.path.insert(0, str(straight))
    assert tune(straight / "job.toml").exit_code == 0
    assert [(t.number, t.arm, t.reward) for t in pieces] == [(t.number, t.arm, t.reward) for t in trials(straight)]
    # Two evaluations were cut short and done again: 12 trials, 14 calls.
    assert len((folder / "calls").read_text()) == 14


def test_the_shipped_example(tmp_path):
    example = Path(__file__).parents[1] / "examples" / "svm.toml"
    result = tune(
        example,
        "--trials",
        "6",
        "--storage",
        f"sqlite:///{tmp_path}/svm.db",
        "--plot",
        f"{tmp_path}/svm.png",
        drawn=True,
    )
    assert result.exit_code == 0, result.output
    assert (tmp_path / "svm.png").stat().st_size > 10_000
    study = nr.Study.open(storage=f"sqlite:///{tmp_path}/svm.db", name="svm")
    assert all(0.5 < trial.reward < 1.0 for trial in study.trials)


def test_help():
    for arguments in (["--help"], ["tune", "-h"], ["--version"]):
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 0
        assert "TOML" in result.output or "nilregret, version" in result.output


def test_without_matplotlib_everything_but_the_picture(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = tune(write(folder), "--trials", "2", drawn=True)
    assert result.exit_code == 0, result.output
    assert "pip install 'nilregret[plot]'" in result.output


def test_whole_numbers_in_steps(folder):
    steps = '[parameters.n]\ntype = "int"\nlow = 16\nhigh = 64\nstep = 16\n[parameters.kind]'
    job = load(write(folder, ("[parameters.kind]", steps)))
    assert job.space.parameters["n"] == nr.Int(16, 64, step=16)


REPORTING = """
trials = 4
goal = "minimize"
steps = 3
pruning = { type = "median", finished = 1 }
[parameters.x]
type = "float"
low = 0.0
high = 1.0
[objective]
command = "echo log {x}; for i in 5 4 3; do echo $i$NILREGRET_TRIAL; test $NILREGRET_TRIAL = 0 || sleep 600; done"
"""


def test_lines_of_a_command_are_refused_where_a_growing_file_cannot_be_read(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "pread")
    with pytest.raises(nr.errors.InvalidInput, match="Take `function` in place of `command`"):
        next(evaluation.run("echo 1", tmp_path, None, by_lines=True))


def test_a_command_prints_a_line_after_each_step_and_is_ended_when_it_is_stopped(folder):
    result = tune(write(folder, text=REPORTING), "--trials", "2")
    assert result.exit_code == 0, result.output
    first, second = trials(folder)
    assert (first.steps, first.reward) == ([(1, 50.0), (2, 40.0), (3, 30.0)], 30.0)
    assert (second.state, second.steps) == ("stopped", [(1, 51.0)])
    assert second.reason.startswith("median: ")
    assert nr.Study.open(storage=f"sqlite:///{folder}/job.db", name="job").policy.pruning == nr.slots.Median(
        steps=3, finished=1
    )


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("echo 1; echo 2; exit 3", "exit status 3: "),
        ("echo 1; echo 2; echo nan; echo 4", "its answer is nan, which is not finite"),
        ('echo 1; echo \'{{\\"reward\\": 2, \\"layers\\": 3}}\'; sleep 600', "no answer within 1 s"),
    ],
)
def test_a_command_that_fails_half_way_keeps_its_curve(folder, command, reason):
    changes = [(REPORTING.splitlines()[-1], f'command = "test $NILREGRET_TRIAL = 1 || {{{{ {command}; }}}}; echo 9"')]
    changes += [('echo 9"', 'echo 9"\ntimeout = 1.0')] if "sleep" in command else []
    result = tune(write(folder, *changes, text=REPORTING), "--trials", "2")
    assert result.exit_code == 0, result.output
    failed, done = trials(folder)
    assert (failed.state, [value for _, value in failed.steps]) == ("failed", [1.0, 2.0])
    assert failed.reason.removeprefix("after step 2: ").startswith(reason)
    assert done.reward == 9.0


def test_a_file_of_steps_is_checked(folder):
    silent = write(folder, (REPORTING.splitlines()[-1], 'command = "echo done"'), text=REPORTING)
    assert "it printed no line that is a number or a JSON object" in tune(silent).output
    wrong = write(folder, ('{ type = "median", finished = 1 }', '"mean"'), text=REPORTING)
    assert "`pruning`" in tune(wrong).output
    generator = "def score(x, kind):\n    for step in range(3):\n        yield x + step\n"
    (folder / "objective.py").write_text(generator)
    more = 'name = "other"\nstorage = "sqlite:///job.db"\nof = "best"\ngoal = "minimize"'
    result = tune(write(folder, ("trials = 12", f"trials = 3\n{more}")))
    assert result.exit_code == 0, result.output
    found = trials(folder, "other")
    assert [len(trial.steps) for trial in found] == [3] * 3
    assert [trial.reward for trial in found] == [trial.steps[0][1] for trial in found]
