"""Fits that are made apart from decisions: on record with the first decision after them, and replayed from there."""

import pickle
import threading
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pytest

import nilregret as nr
from nilregret.serve.wire.settings import Settings
from nilregret.slots import refit as refits
from nilregret.storage import MemoryStorage
from nilregret.storage.sql import SqlStorage

from .marks import thinned
from .service import AT, Client, asked, plain, told
from .test_fits import POLICIES, answer, said

LONG = 30.0  # seconds, after which a test fails


class Held:
    """An executor whose calls begin when a test says so."""

    def __init__(self):
        self.waiting = []

    def submit(self, make):
        self.waiting.append((make, Future()))
        return self.waiting[-1][1]

    def run(self):
        waiting, self.waiting = self.waiting, []
        for make, future in waiting:
            try:
                future.set_result(make())
            except Exception as error:
                future.set_exception(error)


def points(study):
    return [trial.point.tobytes() for trial in study.trials]


def play(study, rounds, between=lambda: None):
    for _ in range(rounds):
        answer(study, study.ask())
        between()
    return study


@pytest.mark.parametrize("name", POLICIES)
def test_fits_that_are_ready_at_once_change_nothing(name):
    inline, pending = nr.Study(POLICIES[name], seed=1), nr.Study(POLICIES[name], seed=1, fits="pending")
    play(inline, 16).ask()
    play(pending, 16, pending.fit_pending).ask()
    assert points(pending) == points(inline)
    assert pending.fits == inline.fits
    assert said(pending) == said(inline)


@pytest.mark.parametrize(
    ("name", "goal"),
    [
        *((name, "maximize") for name in POLICIES),
        *thinned([(name, "minimize") for name in POLICIES], ("a box", "minimize")),
    ],
)
def test_a_study_with_late_fits_is_replayed_to_the_bit_from_any_trial(name, goal, monkeypatch):
    storage, executor = MemoryStorage(), Held()
    study = nr.Study(POLICIES[name], seed=1, goal=goal, storage=storage, fits=executor)
    lags = iter([0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0])
    for number, late in enumerate(lags):
        answer(study, study.ask())
        if number > 2:
            assert said(nr.Study.open(storage=storage, fits="pending")) == said(study)
        if late:
            executor.run()
    study.ask()
    assert [fit.trial for fit in study.fits if fit.channel == 0] == [7, 14, 16]
    monkeypatch.setattr(refits, "fit", None)
    again = nr.Study.open(storage=storage)
    assert list(again.trials) == list(study.trials)
    assert all(again.explain(number).repeated for number in (4, 5, 6, 7, 12, 14, 15, 16))
    assert again.fits == study.fits


def test_without_fits_nothing_waits_for_them():
    study = play(nr.Study(POLICIES["a box"], seed=1, fits="pending"), 12)
    assert study.fits == []
    assert {trial.fits for trial in study.trials} == {()}
    assert study.fit_pending() == 1
    assert study.fit_pending() == 0
    assert study.ask().fits[0].number == 2  # the last that is due
    assert nr.Study(POLICIES["a box"]).fit_pending() == 0


@pytest.fixture
def held_fit(monkeypatch):
    """Events: a fit has begun, and may end."""
    begun, may_end, right = threading.Event(), threading.Event(), refits.fit

    def fit(*args, **more):
        begun.set()
        assert may_end.wait(LONG)
        return right(*args, **more)

    monkeypatch.setattr(refits, "fit", fit)
    yield begun, may_end
    may_end.set()


def test_asks_go_on_while_a_fit_runs_in_a_thread(held_fit):
    begun, may_end = held_fit
    with ThreadPoolExecutor(1) as executor:
        study = play(nr.Study(POLICIES["a box"], seed=1, fits=executor), 5)
        assert begun.wait(LONG)
        play(study, 3)
        assert (study.late_fits.under_way, study.fits) == (1, [])
        may_end.set()
    assert (study.late_fits.under_way, study.late_fits.made, study.late_fits.late) == (0, 1, 3)
    assert [(fit.number, len(study.trials)) for fit in study.ask().fits] == [(1, 9)]


def test_a_fit_that_was_lost_is_made_again(tmp_path):
    """As when the process is killed between the fit and the decision."""
    url, executor = f"sqlite:///{tmp_path}/a.db", Held()
    study = play(nr.Study(POLICIES["a box"], seed=1, storage=url, fits=executor), 7)
    executor.run()
    other = nr.Study.open(storage=url, fits=executor)
    assert other.ask().fits == ()
    executor.run()
    mine = other.ask().fits
    assert [fit.number for fit in mine] == [1]
    assert study.ask().fits == ()  # the fit that waits here was in force already
    assert said(study) == said(other) == said(nr.Study.open(storage=url))


@pytest.mark.parametrize("name", ["a box", "a constraint"])
def test_two_processes_with_fits_of_their_own_keep_one_record(name, tmp_path, monkeypatch):
    url, executors = f"sqlite:///{tmp_path}/a.db", (Held(), Held())
    studies = [nr.Study(POLICIES[name], seed=1, storage=url, fits=executor) for executor in executors]
    for number in range(24):
        answer(studies[number % 2], studies[number % 2].ask())
        if number % 3 == 2:
            executors[number // 3 % 2].run()
    monkeypatch.setattr(refits, "fit", None)
    again = nr.Study.open(storage=url)
    numbers = [fit.number for trial in again.trials for fit in trial.fits if fit.channel == 0]
    assert len(numbers) >= 3
    assert numbers == sorted(set(numbers))
    assert all(again.explain(number).repeated for number in range(5, 24, 3))
    assert [list(study.trials) for study in studies] == [list(again.trials)] * 2


def test_a_fit_can_be_made_in_another_process():
    study = play(nr.Study(POLICIES["warped"], seed=1, fits="pending"), 6)
    (job,) = study.replica.fit_jobs()
    assert pickle.loads(pickle.dumps(job))() == job()


def test_a_decision_that_was_not_recorded_leaves_the_fit_to_the_next_one(tmp_path):
    url, executor = f"sqlite:///{tmp_path}/a.db", Held()
    study = play(nr.Study(POLICIES["a box"], seed=1, storage=url, fits=executor), 6)
    executor.run()
    put = study.replica.put
    study.replica.put = lambda trial, kind: 1 / 0
    with pytest.raises(ZeroDivisionError):
        study.ask()
    study.replica.put = put
    assert study.fits == []
    assert [fit.number for fit in study.ask().fits] == [1]


def test_a_fit_of_an_answer_that_was_corrected_does_not_come_into_force():
    storage, executor = MemoryStorage(), Held()
    study = play(nr.Study(POLICIES["a box"], seed=1, storage=storage, fits=executor), 6)
    study.tell(2, 9.0, revise=True)
    executor.run()  # of the wrong answer, after which the right one is due
    assert study.ask().fits == ()
    executor.run()
    right = study.ask().fits
    assert [fit.number for fit in right] == [1]
    assert right[0].values["mean"] > 1.0
    assert said(nr.Study.open(storage=storage)) == said(study)


@pytest.mark.parametrize("number", [0, 2])
def test_a_fit_of_an_answer_that_became_a_failure_does_not_come_into_force(number):
    executor = Held()
    study = play(nr.Study(POLICIES["a box"], seed=1, fits=executor), 6)
    study.fail(number, "a broken sensor", revise=True)
    executor.run()
    assert study.ask().fits == ()


def test_a_fit_of_data_that_a_restart_has_dropped_does_not_come_into_force():
    policy = POLICIES["a box"].using(memory=nr.slots.RestartAt([8]))
    executor = Held()
    study = play(nr.Study(policy, seed=1, fits=executor), 8)
    assert len(executor.waiting) == 1
    executor.run()
    assert study.ask().fits == ()
    straight = play(nr.Study(policy.using(refit=None), seed=1), 8).ask()
    assert study.trials[-1].point.tobytes() == straight.point.tobytes()
    play(study, 5)
    executor.run()
    assert [fit.number for fit in study.ask().fits] == [1]


def test_a_window_that_moves_on_keeps_a_late_fit():
    executor = Held()
    study = play(nr.Study(POLICIES["a window"], seed=1, fits=executor), 15)
    executor.run()
    assert [fit.number for fit in study.ask().fits] == [1]


def test_a_fit_that_fails_is_said_once_and_the_next_one_is_made(monkeypatch):
    executor = Held()
    study = play(nr.Study(POLICIES["a box"], seed=1, fits=executor), 6)
    with monkeypatch.context() as during:
        during.setattr(refits, "fit", None)
        executor.run()
    with pytest.warns(nr.errors.NoRegretWarning, match="A fit of the hyperparameters has failed"):
        play(study, 1)
    assert executor.waiting == []  # nothing new is due
    play(study, 3)
    executor.run()
    assert [fit.number for fit in study.ask().fits] == [2]


def test_an_executor_that_was_shut_down_stops_no_decision():
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    study = play(nr.Study(POLICIES["a box"], seed=1, fits=executor), 7)
    assert (study.fits, study.late_fits.under_way) == ([], 0)
    assert study.fit_pending() == 1
    assert len(study.ask().fits) == 1


def test_what_cannot_fit_is_refused():
    with pytest.raises(nr.errors.InvalidInput, match="`fits` is 'late': it must be 'inline', 'pending' or an executor"):
        nr.Study(POLICIES["a box"], fits="late")


def test_what_is_believed_follows_a_fit_that_is_ready():
    study = play(nr.Study(POLICIES["a box"], seed=1, fits="pending"), 6)
    study.ask()
    before = study.predict(np.array([[1.0, 0.0]]))
    study.fit_pending()
    after = study.predict(np.array([[1.0, 0.0]]))
    study.ask()
    assert after != before
    assert study.predict(np.array([[1.0, 0.0]])) == after


def served(client, rounds):
    """The numbers of the fits that came into force with each decision."""
    for _ in range(rounds):
        decision = asked(client)
        told(client, decision, float(np.sin(7.0 * decision["point"][0])))


def metric(client, name):
    (line,) = [line for line in client.get("/metrics")[1].decode().splitlines() if line.startswith(f"{name}{{")]
    return float(line.split()[-1])


def test_no_decision_of_the_service_waits_for_a_fit(held_fit):
    begun, may_end = held_fit
    storage = MemoryStorage()
    with Client(storage) as client:
        client.put(AT, {"policy": plain(POLICIES["a box"])})
        served(client, 5)
        assert begun.wait(LONG)
        served(client, 2)
        assert metric(client, "nilregret_process_fits_under_way") == 1.0
        (worker,) = client.service.workers.open
        done = worker.study.late_fits
        may_end.set()
        client.service.workers._fitters.close(drop=True)  # which waits for it
        assert (done.under_way, metric(client, "nilregret_process_fits_total")) == (0, 1.0)
        assert metric(client, "nilregret_process_trials_before_fit_total") == 2.0
        served(client, 5)  # without a thread for the next fit
    study = nr.Study.open(storage=storage, name="shop")
    assert [fit.trial for fit in study.fits] == [7]
    assert all(study.explain(number).repeated for number in (6, 7, 11))


def test_a_page_shows_what_a_fresh_study_does_once_a_fit_that_was_due_is_made():
    storage = MemoryStorage()
    study = play(nr.Study(POLICIES["a box"], seed=1, storage=storage, name="shop"), 10)
    with Client(storage) as client:
        client.get(AT)
        client.service.workers._fitters.close(drop=False)  # which waits for it
        (worker,) = client.service.workers.open
        assert worker.study.late_fits.made == 1
        np.testing.assert_array_equal(worker.study.bounds([[0.3, 0.3]]), study.bounds([[0.3, 0.3]]))


def test_a_service_without_threads_for_fits_makes_them_with_decisions():
    storage = MemoryStorage()
    with Client(storage, settings=Settings(fitters=0)) as client:
        client.put(AT, {"policy": plain(POLICIES["a box"])})
        served(client, 11)
    assert [fit.trial for fit in nr.Study.open(storage=storage, name="shop").fits] == [5, 10]


@pytest.mark.parametrize("delete", [True, False])
def test_a_study_that_is_gone_while_its_fit_runs_leaves_no_thread_and_no_error(delete, held_fit, tmp_path, caplog):
    begun, may_end = held_fit
    before = set(threading.enumerate())
    with Client(SqlStorage(f"sqlite:///{tmp_path}/a.db")) as client:
        client.put(AT, {"policy": plain(POLICIES["a box"])})
        served(client, 5)
        assert begun.wait(LONG)
        served(client, 5)  # so that another fit is due when this one ends
        if delete:
            client.service.storage.delete("shop")
        may_end.set()
    after = set(threading.enumerate()) - before
    assert not [each for each in after if each.name.startswith("nilregret-")]
    assert caplog.records == []
