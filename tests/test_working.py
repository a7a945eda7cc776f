"""Workers from the command line, and replicates on executors."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from unittest import mock

import loky
import numpy as np
import pytest
from click.testing import CliRunner

import nilregret as nr
from nilregret import plots
from nilregret.__main__ import main
from nilregret.errors import StorageError
from nilregret.papers import find
from nilregret.simulation import runner
from nilregret.study.transaction import Transaction
from nilregret.tuning.loop import STOPPED, Lease, Loop
from nilregret.tuning.objective import Evaluation
from nilregret.tuning.outcome import Outcome

FILE = """
trials = 8
[parameters.x]
type = "float"
low = 0.0
high = 1.0
[objective]
function = "hills:score"
"""
HILLS = """
import os, signal, time
def score(x):
    return -(x - 0.4) ** 2
def process(x):
    return float(os.getpid())
def deadly(x):
    if x > 0.5:
        os.kill(os.getpid(), signal.SIGKILL)
    return x
def other(y):
    return y
def endless(x):
    open("begun", "w").close()
    time.sleep(600)
"""
LINE = nr.Space(x=nr.Float(0, 1))
STORAGE = "sqlite:///s.db"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    (tmp_path / "hills.py").write_text(HILLS)
    (tmp_path / "job.toml").write_text(FILE)
    yield tmp_path
    sys.modules.pop("hills", None)


def run(*args, code=0):
    with mock.patch.object(plots, "overview"):  # a picture takes as long as the run
        result = CliRunner().invoke(main, [str(arg) for arg in args])
    assert result.exit_code == code, result.output
    return result.output


def trials(name="job", storage="sqlite:///job.db"):
    return list(nr.Study.open(storage=storage, name=name).trials)


# -- tune -------------------------------------------------------------------------------------------------------------


def test_a_file_is_tuned_by_several_processes(folder):
    (folder / "job.toml").write_text(FILE.replace("score", "process"))
    run("tune", "job.toml", "--workers", 2)
    found = trials()
    assert len(found) == 8
    assert len({trial.reward for trial in found}) == 2
    assert os.getpid() not in {trial.reward for trial in found}
    assert len({trial.parameters["x"] for trial in found}) == 8  # kept apart from what is under way
    assert found[1].asked_order == 2


def test_a_process_that_is_killed_fails_its_trial_alone(folder):
    (folder / "job.toml").write_text(FILE.replace("score", "deadly"))
    said = run("tune", "job.toml", "--workers", 2, "--trials", 4)
    assert "its process ended without an answer (SIGKILL(-9))" in said
    assert [trial.state == "failed" for trial in trials()] == [trial.parameters["x"] > 0.5 for trial in trials()]
    assert {trial.state for trial in trials()} == {"failed", "observed"}


def test_a_command_is_tuned_by_several_workers(folder):
    (folder / "job.toml").write_text(FILE.replace('function = "hills:score"', 'command = "echo {x}"'))
    run("tune", "job.toml", "--workers", 2, "--trials", 3)
    assert [trial.reward for trial in trials()] == [trial.parameters["x"] for trial in trials()]


def test_a_file_is_tuned_on_a_cluster(folder, cluster):
    said = run("tune", "job.toml", "--cluster", cluster.scheduler.address)
    assert "8 trials\n" in said
    assert all(trial.reward == -((trial.parameters["x"] - 0.4) ** 2) for trial in trials())


def test_a_cluster_that_is_not_there_is_an_error_in_words(folder, monkeypatch):
    monkeypatch.setattr("nilregret.tuning.toml.run.CONNECT", 0.3)
    assert "There is no cluster at 'tcp://127.0.0.1:9'" in run(
        "tune", "job.toml", "--cluster", "tcp://127.0.0.1:9", code=1
    )
    assert "give one of both" in run("tune", "job.toml", "--cluster", "tcp://127.0.0.1:9", "--workers", 2, code=1)
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert "nilregret[dask]" in run("tune", "job.toml", "--cluster", "tcp://127.0.0.1:9", code=1)
    assert not (folder / "job.db").exists()


@pytest.mark.nightly
def test_a_tuning_run_that_is_ended_ends_its_processes_and_goes_on(folder):
    (folder / "job.toml").write_text(FILE.replace("score", "endless"))
    command = [sys.executable, "-m", "nilregret", "tune", "job.toml", "--workers", "2"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not (folder / "begun").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.terminate()
    said, complained = process.communicate()  # which waits for all who hold its output
    assert process.returncode == 130
    assert b"run the same command again" in said
    assert b"Traceback" not in complained
    assert [trial.state for trial in trials()] == ["pending"] * 2
    (folder / "hills.py").write_text(HILLS.replace("time.sleep(600)", "return x"))
    run("tune", "job.toml", "--trials", 2)
    assert [trial.state for trial in trials()] == ["observed"] * 2


# -- work -------------------------------------------------------------------------------------------------------------


def made(policy=None):
    return nr.Study(policy or nr.auto(LINE, parallel=2), seed=1, storage=STORAGE, name="hill")


def test_a_worker_joins_and_works_until_there_are_enough_trials(folder):
    made().ask(lease=1000)  # of another worker
    said = run("work", "s.db", "hill", "hills:score", "--trials", 5)
    assert "has 5 trials, 4 of them evaluated here, 1 pending with other workers" in said
    assert [trial.state for trial in trials("hill", STORAGE)] == ["pending"] + ["observed"] * 4
    assert all(trial.lease_until is not None for trial in trials("hill", STORAGE))
    assert "0 of them evaluated here" in run("work", "s.db", "hill", "hills:score", "--trials", 5)


def test_a_worker_takes_the_objective_of_a_tuning_file(folder):
    run("tune", "job.toml", "--trials", 2)
    run("work", "job.db", "job", "job.toml", "--trials", 4)
    assert [trial.state for trial in trials()] == ["observed"] * 4
    (folder / "job.toml").write_text(FILE.replace("high = 1.0", "high = 2.0"))
    assert "of other parameters" in run("work", "job.db", "job", "job.toml", "--trials", 6, code=1)


def test_what_a_worker_cannot_evaluate_is_refused_before_it_asks(folder):
    made()
    for objective, said in [
        ("hills", "must be 'module:function'"),
        ("hills:none", "could not be loaded"),
        ("nowhere:score", "could not be loaded"),
        ("hills:other", "cannot be called with"),
    ]:
        assert said in run("work", "s.db", "hill", objective, "--trials", 5, code=1)
    assert trials("hill", STORAGE) == []


def test_an_objective_that_hangs_or_raises_fails_its_trial(folder):
    made()
    run("work", "s.db", "hill", "hills:endless", "--trials", 1, "--timeout", 0.2)
    assert trials("hill", STORAGE)[0].reason == "no answer within 0.2 s"


@pytest.mark.parametrize("sent", [signal.SIGTERM, pytest.param(signal.SIGKILL, marks=pytest.mark.nightly)])
def test_a_worker_that_ends_leaves_its_trial_abandoned_or_under_a_lease(folder, sent):
    study = made()
    command = [sys.executable, "-m", "nilregret", "work", "s.db", "hill", "hills:endless", "--trials", "2"]
    process = subprocess.Popen([*command, "--lease", "600"], cwd=folder, stderr=subprocess.PIPE)
    while not (folder / "begun").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(sent)
    _, said = process.communicate()
    (trial,) = study.trials
    assert b"Traceback" not in said
    if sent == signal.SIGTERM:
        assert process.returncode == 130
        assert trial.abandoned.reason == STOPPED
    else:
        assert trial.state == "pending"
        later = nr.Study.open(storage=STORAGE, name="hill", clock=lambda: time.time() + 601)
        later.ask()
        assert later.trials[0].state == "abandoned"


def test_a_trial_whose_lease_is_over_counts_to_no_limit(folder):
    made().ask(lease=60)
    run("work", "s.db", "hill", "hills:score", "--trials", 1)
    assert [trial.state for trial in trials("hill", STORAGE)] == ["pending"]
    later = nr.Study.open(storage=STORAGE, name="hill", clock=lambda: time.time() + 61)
    worker(later, Evaluation(lambda x: x), trials=1).run()
    assert [trial.state for trial in later.trials] == ["abandoned", "observed"]
    ahead = [0.0]
    alone = nr.Study(nr.auto(LINE), goal="minimize", clock=lambda: time.time() + ahead[0])
    alone.ask(lease=60)
    ahead[0] = 61.0
    nr.run(alone, lambda x: x, trials=2, progress=False)
    assert [trial.state for trial in alone.trials] == ["abandoned", "observed", "observed"]


def worker(study, task, *, trials, say=print, wait=time.sleep):
    return Loop(study, task, trials=trials, ended=lambda trial: say(repr(trial)), lease=Lease(10, say, wait))


def test_an_answer_is_told_again_where_the_storage_was_away(folder, monkeypatch):
    study, waited, tell = made(), [], nr.Study.tell

    def away(self, *args, **kwargs):
        if len(waited) < 3:
            raise StorageError("away")
        return tell(self, *args, **kwargs)

    monkeypatch.setattr(nr.Study, "tell", away)
    worker(study, lambda trial: Outcome(trial.parameters["x"]), trials=1, wait=waited.append).run()
    assert waited == [1.0, 2.0, 4.0]
    assert study.trials[0].reward == study.trials[0].parameters["x"]


def test_a_worker_reports_each_step_and_waits_for_no_trial(folder, monkeypatch):
    study = nr.Study(nr.auto(LINE, pruning=nr.slots.Halving(steps=4, pause=True)), storage=STORAGE, name="hill")
    said, waited, reported = [], [], Transaction.report

    def away(self, *args):
        if len(waited) < 2:
            raise StorageError("away")
        return reported(self, *args)

    def trained(x):
        number = nr.current_trial().number
        for step in range(1, 5):
            if number == 2 and step == 3:
                nr.Study.open(storage=STORAGE, name="hill").fail(2, "by another worker")
            yield {0: 1.0, 1: 0.0, 2: 2.0}[number]

    monkeypatch.setattr(Transaction, "report", away)
    loop = worker(study, Evaluation(trained), trials=3, say=said.append, wait=waited.append)
    loop.run()
    assert waited == [1.0, 2.0]
    assert [(trial.state, len(trial.curve)) for trial in study.trials] == [
        ("observed", 4),
        ("stopped", 1),
        ("failed", 2),
    ]
    assert "trial 2: Trial 2 was told already" in said[-1]
    assert loop.evaluated == 2


def test_a_study_that_is_deleted_under_a_worker_is_said_to_be(folder):
    study = made()

    def deleting(trial):
        run("delete", "s.db", "hill", "--yes")
        return Outcome(1.0)

    with pytest.raises(StorageError):
        worker(study, deleting, trials=2, wait=lambda seconds: None).run()


def test_a_trial_that_somebody_answered_meanwhile_is_left_as_it_is(folder):
    study, said = made(), []

    def slow(trial):
        nr.Study.open(storage=STORAGE, name="hill").tell(len(study.trials) - 1, 3.0)
        return Outcome(1.0)

    loop = worker(study, slow, trials=1, say=said.append)
    loop.run()
    assert loop.evaluated == 1
    assert "was told already" in said[0]
    assert study.trials[0].reward == 3.0


# -- replicates and figures -------------------------------------------------------------------------------------------

ARMS, K = nr.Arms.grid(0, 1, 20), nr.SquaredExponential(0.2)


def make_policy():
    return nr.gp_ucb(ARMS, K, noise=0.1)


def make_env(seed):
    return nr.Environment(nr.environments.gp_sample(K, ARMS, seed=seed), domain=ARMS, noise=0.1)


@pytest.mark.parametrize("kind", ["threads", "processes", "dask", pytest.param("loky", marks=pytest.mark.nightly)])
def test_replicates_are_the_same_on_any_executor(kind, request):
    alone = nr.replicate(make_policy, make_env, 8, seeds=range(4))
    if kind == "dask":
        there = nr.replicate(
            lambda: make_policy(), make_env, 8, seeds=range(4),
            executor=request.getfixturevalue("cluster").get_executor(),
        )  # fmt: skip
    elif kind == "loky":
        pool = loky.get_reusable_executor(max_workers=2, timeout=runner.IDLE)
        there = nr.replicate(lambda: make_policy(), make_env, 8, seeds=range(4), executor=pool)
    else:
        with ThreadPoolExecutor(2) if kind == "threads" else ProcessPoolExecutor(2) as pool:
            there = nr.replicate(make_policy, make_env, 8, seeds=range(4), executor=pool)
    np.testing.assert_array_equal(there.rewards, alone.rewards)
    np.testing.assert_array_equal(there.arms, alone.arms)


def test_replicates_take_jobs_or_an_executor():
    with ThreadPoolExecutor(1) as pool, pytest.raises(nr.errors.InvalidInput, match="one of both"):
        nr.replicate(make_policy, make_env, 8, seeds=range(4), executor=pool, jobs=2)
    with pytest.raises(nr.errors.InvalidInput, match="must be a concurrent"):
        nr.replicate(make_policy, make_env, 8, seeds=range(4), executor=2)


def test_a_figure_is_the_same_on_a_cluster(cluster):
    figure, told = find("srinivas-5a"), []
    alone = figure.make(figure.job(trials=2, quick=True))
    there = figure.make(
        figure.job(trials=2, quick=True, executor=cluster.get_executor(), report=lambda *done: told.append(done))
    )
    assert told == [(0, 2), (1, 2), (2, 2)]
    assert repr(there) == repr(alone)
