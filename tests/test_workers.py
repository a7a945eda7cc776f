"""Evaluations in threads, processes and on a real cluster, all here; workers die, and answers come in any order."""

import itertools
import os
import signal
import threading
from concurrent.futures import Executor, Future, ThreadPoolExecutor

import loky
import numpy as np
import pytest

import nilregret as nr
from nilregret.simulation import runner
from nilregret.tuning import loop

LINE = nr.Space(x=nr.Float(0, 1))


def policy(**changes):
    return nr.gp_bucb(nr.Arms.grid(0, 1, 40), nr.SquaredExponential(0.2), noise=0.1).using(**changes)


def hill(x):
    return -float((x[0] - 0.3) ** 2)


def named_hill(x):
    return -((x - 0.3) ** 2)


def quiet(study, objective, **arguments):
    return nr.run(study, objective, **{"trials": 12, "progress": False} | arguments)


def points(result):
    return [trial.point.tolist() for trial in result.trials]


class InOrder(Executor):
    """Another executor, whose answers come in an order that is fixed: the oldest, the youngest, the oldest, ...

    Nobody gets an answer before as many are under way as there can be.
    """

    def __init__(self, inner, *, at_once, total):
        self._inner, self._at_once, self._left, self._ranks = inner, at_once, total, itertools.cycle((0, -1, 1))
        self._lock, self._open, self._done, self._rank = threading.RLock(), [], {}, next(self._ranks)

    def submit(self, fn, /, *args, **kwargs):
        outer = Future()
        inner = self._inner.submit(fn, *args, **kwargs)
        with self._lock:
            self._open.append(outer)
        inner.add_done_callback(lambda future: self._note(outer, future))
        self._release()
        return outer

    def _note(self, outer, inner):
        with self._lock:
            self._done[outer] = inner
        self._release()

    def _release(self):
        with self._lock:
            while self._open and len(self._open) == min(self._at_once, self._left):
                next_one = self._open[self._rank]
                if next_one not in self._done:
                    return
                self._open.remove(next_one)
                self._left -= 1
                self._rank = next(self._ranks) if self._left > 2 else 0
                next_one.set_result(self._done.pop(next_one).result())


def by_hand(trials, at_once):
    """The points where somebody asks and tells in that order."""
    study, ranks = nr.Study(policy(), seed=3), itertools.cycle((0, -1, 1))
    under_way, rank, left = [study.ask() for _ in range(at_once)], next(ranks), trials
    while under_way:
        trial = under_way.pop(rank)
        study.tell(trial, hill(trial.point))
        left -= 1
        rank = next(ranks) if left > 2 else 0
        if len(study.trials) < trials:
            under_way.append(study.ask())
    return [trial.point.tolist() for trial in study.trials]


# -- what is asked depends on the order of answers alone --------------------------------------------------------------


@pytest.mark.parametrize("kind", ["threads", "processes", "dask"])
def test_what_is_tried_depends_on_the_order_of_answers_and_not_on_who_evaluates(kind, request):
    if kind == "threads":
        inner = ThreadPoolExecutor(3)
    elif kind == "processes":
        inner = loky.get_reusable_executor(max_workers=2, timeout=runner.IDLE)
    else:
        inner = request.getfixturevalue("cluster").get_executor()
    ordered = InOrder(inner, at_once=3, total=12)
    result = quiet(nr.Study(policy(), seed=3), hill, executor=ordered, in_flight=3)
    if kind == "threads":
        inner.shutdown()
    assert [trial.state for trial in result.trials] == ["observed"] * 12
    assert [trial.told_order for trial in result.trials] != sorted(trial.told_order for trial in result.trials)
    assert points(result) == by_hand(12, 3)


def test_trials_under_way_are_respected_where_the_library_chooses():
    with ThreadPoolExecutor(4) as pool:
        result = nr.maximize(named_hill, LINE, trials=12, executor=pool, progress=False)
    assert type(result.study.policy.pending).__name__ == "Hallucinated"
    assert len({trial.point[0] for trial in result.trials}) == 12


# -- a study of one's own ---------------------------------------------------------------------------------------------


def test_a_study_of_ones_own_is_run_in_its_own_direction_and_gone_on_with(tmp_path):
    place = f"sqlite:///{tmp_path}/s.db"
    study = nr.Study(policy(), goal="minimize", seed=3, storage=place, name="mine")
    assert study.storage.place == place
    first = quiet(study, lambda x: (x[0] - 0.3) ** 2, trials=6)
    assert first.study is study
    assert len(first.trials) == 6
    again = quiet(nr.Study.open(storage=place, name="mine"), lambda x: (x[0] - 0.3) ** 2, trials=12)
    assert len(again.trials) == 12
    whole = quiet(nr.Study(policy(), goal="minimize", seed=3), lambda x: (x[0] - 0.3) ** 2, trials=12)
    assert points(again) == points(whole)
    assert abs(whole.best_point[0] - 0.3) < 0.1


def test_a_policy_with_constraints_takes_them_from_the_answer_or_from_rules():
    limited = nr.auto(LINE, constraints=1)
    counted = quiet(nr.Study(limited), lambda x: (x, [x - 0.5]), trials=4)
    ruled = quiet(nr.Study(limited), lambda x: {"reward": x, "x": x}, trials=4, constraints="x <= 0.5")
    assert [trial.constraints.tolist() for trial in counted.trials] == [t.constraints.tolist() for t in ruled.trials]


def test_what_makes_no_sense_is_refused_before_anything_is_asked():
    study = nr.Study(policy())
    for wrong, said in [
        (dict(trials=0), "trials"),
        (dict(executor=4), "must be a concurrent.futures.Executor"),
        (dict(in_flight=2), "is for an `executor`"),
        (dict(constraints=1), "takes 0"),
        (dict(timeout=0), "timeout"),
    ]:
        with pytest.raises(nr.errors.InvalidInput, match=said):
            quiet(study, hill, **wrong)
    with pytest.raises(nr.errors.InvalidInput, match="takes a study and then the objective"):
        quiet(hill, study)
    with pytest.raises(nr.errors.InvalidInput, match="must be a function"):
        quiet(study, 3)
    with pytest.raises(nr.errors.InvalidInput, match="needs a context"):
        quiet(nr.Study(nr.auto(LINE, context=nr.Space(day=nr.Float(0, 1)))), hill)
    assert len(study.trials) == 0


def test_a_trial_with_a_lease_is_left_to_its_worker_and_one_without_is_taken_up():
    study = nr.Study(policy(), seed=3)
    left, leased = study.ask(), study.ask(lease=1000)
    result = quiet(study, hill, trials=5)
    assert [trial.state for trial in result.trials] == ["observed", "pending", "observed", "observed", "observed"]
    assert result.trials[left.number].point == left.point
    study.tell(leased, 0.0)


# -- executors that give up -------------------------------------------------------------------------------------------


class Cancelling(Executor):
    """It cancels the calls that it is told to, and evaluates the others at once."""

    def __init__(self, cancelled):
        self._cancelled, self.calls = cancelled, 0

    def submit(self, fn, /, *args, **kwargs):
        self.calls += 1
        future = Future()
        if self._cancelled(self.calls):
            future.cancel()
        else:
            future.set_result(fn(*args, **kwargs))
        return future


def test_a_cancelled_evaluation_is_an_abandoned_trial_and_the_run_goes_on():
    result = quiet(nr.Study(policy()), hill, executor=Cancelling(lambda call: call in (2, 3)), in_flight=2)
    assert [trial.state for trial in result.trials] == ["observed", "abandoned", "abandoned"] + ["observed"] * 9
    assert result.trials[1].abandoned.reason == "its evaluation was cancelled"
    assert [row["reason"] for row in result.history[:3]] == [None] + ["its evaluation was cancelled"] * 2
    assert "12 trials, 2 abandoned" in repr(result)
    assert result.stopped == "trials"


def test_an_executor_that_cancels_everything_ends_the_run_and_what_is_left_goes_on_elsewhere():
    study = nr.Study(policy())
    result = quiet(study, hill, trials=40, executor=Cancelling(lambda call: call > 1), in_flight=2)
    assert result.stopped.startswith(f"cancelled: {loop.HOPELESS} evaluations one after the other after 11")
    assert [trial.state for trial in study.trials] == ["observed"] + ["abandoned"] * loop.HOPELESS + ["pending"]
    result = quiet(study, hill, trials=40)
    assert [trial.state for trial in result.trials].count("observed") == 30
    assert result.stopped == "trials"


def dies_at_first(x, marker):
    """Kills its process with the first call of all, in mid-task."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return -float((x[0] - 0.3) ** 2)
    os.kill(os.getpid(), signal.SIGKILL)
    return 0.0


class DiesAtFirst:
    def __init__(self, marker):
        self.marker = str(marker)

    def __call__(self, x):
        return dies_at_first(x, self.marker)


def test_a_killed_process_of_a_pool_ends_the_run_and_the_study_goes_on_with_another(tmp_path):
    study = nr.Study(policy(), seed=3)
    quiet(study, hill, trials=2)
    with loky.ProcessPoolExecutor(1) as pool:
        result = quiet(study, DiesAtFirst(tmp_path / "died"), executor=pool)
    assert result.stopped.startswith("executor: it broke: TerminatedWorkerError")
    assert [trial.state for trial in study.trials] == ["observed", "observed", "pending"]
    result = quiet(study, hill)
    assert [trial.state for trial in result.trials] == ["observed"] * 12
    assert points(result) == points(quiet(nr.Study(policy(), seed=3), hill))


# -- a cluster of Dask ------------------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_a_worker_of_a_cluster_is_killed_in_mid_task_and_no_answer_is_missing(cluster, tmp_path):
    study = nr.Study(policy(), seed=3)
    result = quiet(study, DiesAtFirst(tmp_path / "died"), executor=cluster.get_executor(), in_flight=2)
    assert (tmp_path / "died").exists()
    assert result.stopped == "trials"
    assert [trial.reward for trial in result.trials] == [hill(trial.point) for trial in result.trials]


def kills_above(x):
    if x > 0.5:
        os.kill(os.getpid(), signal.SIGKILL)
    return x


@pytest.mark.nightly
def test_a_point_that_kills_its_workers_fails_and_the_run_goes_on(cluster, monkeypatch):
    monkeypatch.setattr(cluster.cluster.scheduler, "allowed_failures", 0)
    study = nr.Study(nr.auto(LINE, parallel=2), seed=3)
    study.add({"x": 0.1}, 0.1)
    result = quiet(study, kills_above, trials=4, executor=cluster.get_executor(), in_flight=1)
    reasons = [trial.reason for trial in result.trials if trial.parameters["x"] > 0.5]
    assert reasons
    assert all(reason.startswith("KilledWorker") for reason in reasons)
    assert all(trial.reward == trial.parameters["x"] for trial in result.trials if trial.parameters["x"] <= 0.5)


def test_a_cluster_that_goes_away_ends_the_run_and_the_study_goes_on_elsewhere(cluster):
    from distributed import Client

    study = nr.Study(policy(), seed=3)
    with Client(cluster.cluster) as second:

        def leave(study, trial):
            if trial.number == 2:
                second.close()

        result = quiet(study, hill, executor=second.get_executor(), in_flight=1, callbacks=[leave])
    assert result.stopped.startswith("executor: it broke: BrokenExecutor: ")
    assert [trial.state for trial in study.trials] == ["observed"] * 3 + ["pending"]
    assert points(quiet(study, hill)) == points(quiet(nr.Study(policy(), seed=3), hill))


def drawn(x):
    return float(np.random.default_rng().random())


def test_two_trials_of_one_point_are_two_evaluations_on_a_cluster(cluster):
    """Dask takes equal calls for one, and gives both the first's answer."""
    one = nr.gp_bucb(nr.Arms([[0.5]]), nr.SquaredExponential(0.2), noise=0.1)
    result = quiet(nr.Study(one), drawn, trials=8, executor=cluster.get_executor(), in_flight=4)
    assert len({trial.reward for trial in result.trials}) == 8


def test_what_a_cluster_cannot_be_sent_is_said_before_the_first_trial(cluster):
    lock = threading.Lock()
    study = nr.Study(policy())
    with pytest.raises(nr.errors.InvalidInput, match="cannot be sent to the processes"):
        quiet(study, lambda x: bool(lock), executor=cluster.get_executor())
    with pytest.raises(nr.errors.InvalidInput, match=r"client.get_executor\(\)"):
        quiet(study, hill, executor=cluster)
    assert len(study.trials) == 0


def test_as_many_are_under_way_as_a_cluster_has_threads(cluster):
    cluster.wait_for_workers(2)

    def objective(x):
        return {"reward": -((x - 0.3) ** 2), "number": nr.current_trial().number}

    result = nr.maximize(objective, LINE, trials=6, executor=cluster.get_executor(), progress=False)
    assert [trial.metrics["number"] for trial in result.trials] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert result.trials[1].asked_order == 2
    assert result.trials[2].asked_order > 2


def raises(x):
    if x > 0.5:
        raise ValueError("too far")
    return x


def test_an_objective_that_raises_fails_its_trial_on_a_cluster_and_a_wrong_type_ends_the_run(cluster):
    study = nr.Study(nr.auto(LINE, parallel=2), seed=3)
    result = quiet(study, raises, trials=6, executor=cluster.get_executor())
    assert {row["reason"] for row in result.history} == {None, "ValueError: too far"}
    study.add({"x": 0.1}, 0.1)
    with pytest.raises(nr.errors.InvalidInput, match=r"at trial 7: its answer is not a number: 'high' \(str\)"):
        quiet(study, lambda x: "high", trials=8, executor=cluster.get_executor())
