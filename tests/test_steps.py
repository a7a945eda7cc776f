"""Trials that report: curves on record, stopped trials, what they teach, and what of it lasts."""

import copy
import multiprocessing
import pickle
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
import pytest

import nilregret as nr
from nilregret.serialize import described
from nilregret.slots import Halving, Median, Pruning
from nilregret.storage import SqlStorage
from nilregret.storage.database import Database
from nilregret.study.pruning import retraced

from .format1.tables import restored
from .marks import nightly
from .test_storing import unwritable
from .waiting import LONG

SPACE = nr.Space(x=nr.Float(0, 1))
ARMS = nr.Arms.grid(0, 1, 11)
POSTGRESQL = nightly("postgresql")[0]


@final
@described
@dataclass(frozen=True, kw_only=True)
class Above(Pruning):
    """Trials stop below a level, or wait there."""

    level: float = 0.5
    waits: bool = False

    def verdict(self, courses):
        return "go" if courses.value >= self.level else "wait" if self.waits else "stop"

    def expected(self, courses):
        return courses.value + 0.1 * len(courses.finished) + 0.01 * len(courses.others) + 0.1, 0.2


@final
@described
@dataclass(frozen=True, kw_only=True)
class OddRule(Pruning):
    """A rule of one's own that says nonsense, as text."""

    says: str = "stop"
    because: str = "so"
    mean: float = 0.0
    std: float = 1.0

    def verdict(self, courses):
        return None if self.says == "None" else self.says

    def why(self, courses):
        return self.because

    def expected(self, courses):
        return self.mean * 1e200 * 1e200, self.std


def policy(rule=None, domain=ARMS):
    """Returns a policy that fits nothing."""
    kernel = nr.SquaredExponential(0.3)
    return nr.gp_ucb(domain, kernel, noise=0.1).using(pruning=rule)


def value(trial, step):
    return float(np.cos(3 * trial.point[0]) * (1.0 - 0.7**step))


def play(study, count, steps=4, until=None):
    """Trains trials, each of which reports and stops if it is not worth going on. Returns them."""
    played = []
    for _ in range(count):
        trial = study.ask()
        for step in range(1, steps + 1):
            if not study.report(trial, step, value(trial, step)):
                played.append(study.stop(trial))
                break
        else:
            played.append(study.tell(trial, value(trial, steps)))
    return played


def same(one, other):
    """Whether two studies have the same trials, curves included, and make the same next decision."""
    assert list(one.trials) == list(other.trials)
    assert [trial.curve for trial in one.trials] == [trial.curve for trial in other.trials]
    np.testing.assert_array_equal(one.predict(), other.predict())
    return one.ask().arm == other.ask().arm


@pytest.mark.parametrize("kind", ["memory", "sqlite", POSTGRESQL])
def test_curves_and_stopped_trials_are_on_record(kind, places):
    place = places(kind)()
    study = nr.Study(policy(Above(level=0.2)), storage=place)
    played = play(study, 8)
    assert {trial.state for trial in played} == {"observed", "stopped"}
    assert list(study.trials) == played
    for trial in played:
        kept = trial.state == "observed"
        assert trial.steps == [(step, value(trial, step)) for step in range(1, 5 if kept else len(trial.steps) + 1)]
        assert [report.verdict for report in trial.curve] == ["go"] * (len(trial.curve) - (not kept)) + ["stop"] * (
            not kept
        )
        assert (trial.reward is None, trial.values is None, trial.open) == (not kept, not kept, False)
    orders = [o for t in played for o in (t.asked_order, t.told_order, *(report.order for report in t.curve))]
    assert sorted(orders) == list(range(1, len(orders) + 1))
    again = nr.Study.open(storage=place)
    assert same(study, again)
    best = again.best()
    assert best.state == "observed"
    assert [trial.reward for trial in again.front()] == [best.reward]


def test_a_row_is_written_for_each_report_and_that_of_the_trial_stays(tmp_path):
    study = nr.Study(policy(), storage=f"sqlite:///{tmp_path}/a.db")
    trial = study.ask()
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        before = connection.execute("SELECT * FROM trials").fetchall()
        for step in range(5):
            study.report(trial, step, 0.1 * step)
        assert connection.execute("SELECT * FROM trials").fetchall() == before
        rows = connection.execute("SELECT event, trial, step, value, verdict FROM steps ORDER BY event").fetchall()
        assert connection.execute("SELECT format, arms, events FROM studies").fetchall() == [(2, 6, 6)]
    assert rows == [(step + 2, 0, step, 0.1 * step, "go") for step in range(5)]


def test_a_study_without_reports_is_of_format_1(tmp_path):
    study = nr.Study(policy(Median(steps=5)), storage=f"sqlite:///{tmp_path}/a.db")
    study.tell(study.ask(), 0.5)
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        assert connection.execute("SELECT format, arms, stopped FROM studies").fetchall() == [(1, None, 0)]


@pytest.mark.parametrize(
    ("step", "given", "message"),
    [
        (-1, 0.1, "`step` is -1"),
        (1.5, 0.1, "`step` must be a whole number"),
        (True, 0.1, "`step` must be a whole number, not True"),
        (6, 0.1, r"`step` is 6, and a trial has 5 steps .*too low.* Report 5 at most, or begin another study"),
        (3, float("nan"), "`value` is nan.*"),
        (3, 1e300, "`value` is 1e300: it must lie"),
        (3, "much", "`value` must be a number, not 'much' .*stays on record"),
        (1, 0.3, "has reported 0.1 after step 1 already, and now that is 0.3"),
        (0, 0.3, "has reported step 2 already, and now step 0 comes"),
        (2, 0.3, "has reported 0.2 after step 2 already, and now that is 0.3"),
    ],
)
def test_what_no_trial_reports_is_refused_and_its_curve_stays(step, given, message):
    study = nr.Study(policy(Above(steps=5)))
    trial = study.ask()
    study.report(trial, 1, 0.1)
    study.report(trial, 2, 0.2)
    with pytest.raises((nr.errors.InvalidInput, nr.errors.TrialError), match=message):
        study.report(trial, step, given)
    assert study.trials[0].steps == [(1, 0.1), (2, 0.2)]
    assert study.replica.record.order == 3
    assert not study.report(trial, 1, 0.1)  # The same again is harmless.
    assert study.replica.record.order == 3
    study.tell(trial, 0.6)
    with pytest.raises(nr.errors.TrialError, match="Trial 0 was told already"):
        study.report(trial, 3, 0.3)
    with pytest.raises(nr.errors.TrialError):
        study.stop(trial)
    assert study.trials[0].steps == [(1, 0.1), (2, 0.2)]


def test_a_failed_or_abandoned_trial_keeps_its_curve_and_one_without_cannot_stop():
    study = nr.Study(policy())
    first, second, third = study.ask(count=3)
    for trial in (first, second):
        study.report(trial, 1, 0.3)
    assert study.fail(first, "it broke").steps == study.abandon(second).steps == [(1, 0.3)]
    study.report(second, 2, 0.4)  # It was only thought to be gone.
    assert study.trials[1].steps == [(1, 0.3), (2, 0.4)]
    with pytest.raises(nr.errors.TrialError, match="Trial 2 has reported no step yet"):
        study.stop(third)
    assert study.stop(second, "by hand").reason == "by hand"
    with pytest.raises(nr.errors.TrialError, match="no best one"):
        study.best()
    corrected = study.tell(second, 0.9, revise=True)
    assert (corrected.state, corrected.steps, study.best().number) == ("observed", [(1, 0.3), (2, 0.4)], 1)


@pytest.mark.parametrize("learned", ["last", "predicted", "censored", "nothing"])
@pytest.mark.parametrize("goal", ["maximize", "minimize"])
def test_a_study_goes_on_and_explains_itself_with_what_stopped_trials_teach(learned, goal, tmp_path):
    rule = Above(level=0.2 if goal == "maximize" else -0.5, learned=learned)
    study = nr.Study(policy(rule), storage=f"sqlite:///{tmp_path}/a.db", goal=goal)
    running = study.ask()
    study.report(running, 1, 0.3)
    played = play(study, 10)
    study.report(running, 2, 0.4)
    study.tell(running, 0.4)  # When others were stopped, this was not known.
    assert {trial.state for trial in played} == {"observed", "stopped"}
    assert all(study.explain(number).repeated for number in range(11))
    again = nr.Study.open(storage=study.storage)
    assert same(study, again)
    revised = next(trial for trial in played if trial.state == "stopped")
    study.tell(revised, 0.4, revise=True)
    assert study.trials[revised.number].corrected[0].stopped
    assert same(study, again)
    assert same(again, nr.Study.open(storage=study.storage))


def test_the_policy_learns_the_last_value_or_nothing():
    means = {}
    for learned in ("last", "predicted", "nothing"):
        study = nr.Study(policy(Above(learned=learned)))
        trial = study.ask()
        study.report(trial, 1, 0.4)
        study.stop(trial)
        means[learned] = study.predict(trial.point[None])[0][0]
    assert means["nothing"] == 0.0 < means["last"] < means["predicted"]


def test_stopping_is_for_good_or_spared_by_seed_and_number():
    study = nr.Study(policy(Above(level=9.0, explore=0.5)), seed=3)
    spared = {}
    for trial in study.ask(count=20):
        found = {study.report(trial, step, 0.1) for step in range(1, 4)}
        assert len(found) == 1
        spared[trial.number] = found.pop()
    assert 3 < sum(spared.values()) < 17
    other = nr.Study(policy(Above(level=9.0, explore=0.5)), seed=3)
    trials = other.ask(count=20)
    assert {trial.number: other.report(trial, 1, -5.0) for trial in reversed(trials)} == spared


DAMAGE = [
    ("UPDATE steps SET event = 40 WHERE event = 3", "event"),
    ("DELETE FROM steps WHERE event = 3", "event"),
    ("DELETE FROM steps", "was stopped, and reported nothing"),
    ("UPDATE steps SET trial = 7 WHERE event = 3", "report of trial 7, which is not there"),
    ("UPDATE steps SET trial = 1 WHERE event = 3", "Trial 1 .*damaged"),
    ("UPDATE steps SET step = 1 WHERE event = 3", "reports .*step 1"),
    ("UPDATE steps SET step = -1 WHERE event = 2", "Event 2 .*damaged"),
    ("UPDATE steps SET step = 9 WHERE event = 3", "step 9"),
    ("UPDATE steps SET value = 9e999 WHERE event = 3", "Event 3 .*damaged"),
    ("UPDATE steps SET value = 1e200 WHERE event = 3", "damaged"),
    ("UPDATE steps SET value = 'x' WHERE event = 3", "Event 3 .*damaged"),
    ("UPDATE steps SET at = 9e999 WHERE event = 3", "Event 3 .*damaged"),
    ("UPDATE steps SET verdict = 'perhaps' WHERE event = 3", "Event 3 .*damaged"),
    ("UPDATE steps SET verdict = 'spared' WHERE event = 3", "'spared'"),
    ("UPDATE steps SET verdict = 'stop' WHERE step = 5", "'stop'"),
    ("UPDATE trials SET state = 'pending' WHERE number = 0", "Trial 0 .*damaged"),
    ("UPDATE trials SET state = 'stopped', reward = NULL, reason = 'x' WHERE number = 2", "reported nothing"),
    ("UPDATE trials SET state = 'stopped' WHERE number = 1", "Trial 1 .*damaged"),
    ("UPDATE trials SET reason = ' ' WHERE number = 0", "Trial 0 .*without a reason"),
]


@pytest.mark.parametrize(("change", "message"), DAMAGE)
def test_damaged_curves_are_refused(change, message, tmp_path):
    study = nr.Study(policy(Above(steps=5)), storage=f"sqlite:///{tmp_path}/b.db")
    first = study.ask()  # event 1
    study.report(first, 1, 0.6)
    study.report(first, 2, 0.1)
    study.stop(first)  # event 4
    second = study.ask()
    study.report(second, 5, 0.6)
    study.tell(second, 0.6)
    study.tell(study.ask(), 0.1)
    assert len(nr.Study.open(storage=study.storage).trials) == 3
    study.close()
    with closing(sqlite3.connect(tmp_path / "b.db")) as connection, connection:
        connection.execute(change)
    with pytest.raises(nr.errors.StorageError, match=message):
        nr.Study.open(storage=f"sqlite:///{tmp_path}/b.db")


def test_a_rule_that_never_stops_has_stopped_nothing(tmp_path):
    study = nr.Study(policy(), storage=f"sqlite:///{tmp_path}/a.db")
    study.report(study.ask(), 1, 0.6)
    study.close()
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        connection.execute("UPDATE steps SET verdict = 'stop'")
    with pytest.raises(nr.errors.StorageError, match="'stop'"):
        nr.Study.open(storage=f"sqlite:///{tmp_path}/a.db")


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "frame"])
def test_tables_and_files_keep_curves_and_stopped_trials(ending, tmp_path):
    study = nr.Study(policy(Above(level=0.2), SPACE.grid(9)), storage=f"sqlite:///{tmp_path}/a.db")
    play(study, 6)
    failed, pending = study.ask(count=2)
    study.report(failed, 1, 0.5)
    study.fail(failed, "broken")
    study.report(pending, 1, 0.7)
    study.tell(study.ask(), 0.1)
    table = study.to_pandas() if ending == "frame" else study.export(tmp_path / f"trials.{ending}")
    other = nr.Study(study.policy, storage=f"sqlite:///{tmp_path}/b.db", seed=1)
    other.add_from(table)
    wanted = [trial for trial in study.trials if trial.state in ("observed", "stopped")]
    facts = [(trial.arm, trial.state, trial.reward, trial.reason, trial.steps) for trial in wanted]
    assert [(t.arm, t.state, t.reward, t.reason, t.steps) for t in other.trials] == facts
    assert {state for _, state, *_ in facts} == {"observed", "stopped"}
    np.testing.assert_allclose(study.predict(), other.predict(), atol=1e-12)
    orders = [o for t in other.trials for o in {t.asked_order, t.told_order, *(r.order for r in t.curve)}]
    assert sorted(orders) == list(range(1, len(orders) + 1))
    assert same(other, nr.Study.open(storage=other.storage))
    before = study.replica.record.order
    study.add_from(table)  # The same again is harmless.
    assert study.replica.record.order == before


def test_a_table_of_trials_without_reports_has_no_column_for_them():
    study = nr.Study(policy(Above()))
    study.tell(study.ask(), 0.3)
    assert "steps" not in study.to_pandas().columns


def test_rows_tell_the_rest_of_a_curve_to_a_trial_that_runs():
    study = nr.Study(policy(Above(level=0.2)))
    running, _ = study.ask(count=2)
    study.report(running, 1, 0.5)
    rows = [
        {"number": 0, "reward": 0.9, "steps": "[[1, 0.5], [2, 0.7]]"},
        {"number": 1, "reward": None, "state": "stopped", "reason": "too slow", "steps": [[3, 0.3]]},
    ]
    study.add_from(rows)
    found = [(trial.state, trial.steps, trial.reason) for trial in study.trials]
    assert found == [("observed", [(1, 0.5), (2, 0.7)], None), ("stopped", [(3, 0.3)], "too slow")]


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ("[1, 2]", "Row 1 .*pairs"),
        ("many", "Row 1 .*pairs"),
        ("[[1, 0.5], [1, 0.6]]", "Row 1 .*steps grow"),
        ("[[9, 0.5]]", "Row 1 .*`step` is 9"),
        ("[[1, null]]", "Row 1 .*`value`"),
        (7.0, "Row 1 .*pairs"),
    ],
)
def test_curves_of_a_table_that_cannot_be_are_refused(steps, message):
    study = nr.Study(policy(Above(steps=5)))
    with pytest.raises(nr.errors.InvalidInput, match=message):
        study.add_from([{"arm": 1, "reward": 0.5, "steps": steps}])
    assert not study.trials


def test_a_parameter_may_be_called_steps(tmp_path):
    study = nr.Study(policy(Above(level=0.2), nr.Space(steps=nr.Int(1, 9)).grid(9)))
    play(study, 4)
    study.add_from([{"steps": 3, "reward": 0.5}])
    assert study.trials[4].parameters == {"steps": 3}
    other = nr.Study(study.policy)
    other.add_from(study.export(tmp_path / "a.csv"))
    assert [(t.arm, t.state, t.steps) for t in other.trials] == [(t.arm, t.state, t.steps) for t in study.trials]
    assert "steps" in study.sheet(1).columns


DIES = (
    "import os, signal, sys; import nilregret as nr; from tests.test_steps import Above, policy; "
    "study = nr.Study(policy(Above(level=0.2)), storage=sys.argv[1]); trial = study.ask(); "
    "study.report(trial, 1, 0.5); "
    "write = type(study.replica)._save; "
    "type(study.replica)._save = lambda self, *rest: (write(self, *rest), os.kill(os.getpid(), signal.SIGKILL)); "
    "study.{}"
)


@pytest.mark.parametrize("call", ["report(trial, 2, 0.4)", "stop(trial)", "tell(trial, 0.4)"])
def test_a_process_that_is_killed_within_a_call_leaves_the_curve_as_it_was(call, tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    command = [sys.executable, "-c", DIES.format(call), url]
    died = subprocess.run(command, cwd=Path(__file__).parents[1], check=False)
    assert died.returncode < 0
    study = nr.Study.open(storage=url)
    assert [(trial.state, trial.steps) for trial in study.trials] == [("pending", [(1, 0.5)])]
    assert study.report(0, 2, 0.4)
    assert not study.report(0, 3, 0.1)
    assert study.stop(0).steps == [(1, 0.5), (2, 0.4), (3, 0.1)]
    assert same(study, nr.Study.open(storage=url))


def test_a_call_that_fails_in_a_group_leaves_no_report():
    def reports(calls):
        calls.report(0, 1, 0.5)

    def breaks(calls):
        calls.report(0, 2, 0.1)
        raise ValueError("no")

    study = nr.Study(policy(Above(level=0.2)), storage=nr.storage.MemoryStorage())
    study.ask()
    study.group_commit([reports, breaks], seconds=LONG)
    assert study.trials[0].steps == [(1, 0.5)]
    assert study.report(0, 2, 0.9)
    assert [report.order for report in nr.Study.open(storage=study.storage).trials[0].curve] == [2, 3]


def work(url):
    """Trains five trials in a process of its own, or a thread."""
    with nr.Study.open(storage=url) as study:
        play(study, 5)


@pytest.mark.parametrize("kind", ["sqlite", POSTGRESQL])
def test_several_processes_report_to_one_study(kind, places):
    url = places(kind)()
    study = nr.Study(policy(Above(level=0.2)), storage=url)
    study.ask()
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pool.map(work, [url] * 2)
    trials = list(study.trials)
    assert [trial.state for trial in trials].count("pending") == 1
    assert all(trial.steps == [(s, value(trial, s)) for s in range(1, len(trial.curve) + 1)] for trial in trials)
    orders = [trial.asked_order for trial in trials] + [trial.told_order for trial in trials[1:]]
    orders += [report.order for trial in trials for report in trial.curve]
    assert sorted(orders) == list(range(1, study.replica.record.order + 1))
    assert same(study, nr.Study.open(storage=url))
    assert all(study.explain(number).repeated for number in range(len(trials)))


def test_what_another_process_reports_is_seen_at_the_next_call(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    one = nr.Study(policy(Above(level=0.2)), storage=url)
    other = nr.Study.open(storage=url)
    trial = one.ask()
    other.report(trial, 1, 0.5)
    assert one.trials[0].steps == [(1, 0.5)]
    one.report(trial, 2, 0.4)
    assert one.report(trial, 2, 0.4)
    other.report(trial, 3, 0.1)
    assert one.stop(trial) == other.trials[0]
    assert same(one, other)


def test_a_deleted_study_leaves_no_report_to_the_next_one(tmp_path):
    study = nr.Study(policy(), storage=f"sqlite:///{tmp_path}/a.db")
    study.report(study.ask(), 1, 0.5)
    study.storage.delete(study.name)
    other = nr.Study(policy(), storage=study.storage, name=study.name)
    assert other.report(other.ask(), 3, 0.1)
    assert nr.Study.open(storage=study.storage).trials[0].steps == [(3, 0.1)]


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda study: pickle.loads(pickle.dumps(study))])
def test_copies_of_studies_and_trials_keep_curves(way, tmp_path):
    study = nr.Study(policy(Above(level=0.2)), storage=f"sqlite:///{tmp_path}/a.db")
    play(study, 3)
    assert [way(trial).curve for trial in study.trials] == [trial.curve for trial in study.trials]
    assert same(study, way(study))


def test_a_wider_space_keeps_curves_and_what_stopped_trials_teach(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    study = nr.Study(nr.auto(SPACE, pruning=Above(level=0.3, learned="predicted")), storage=url)
    before = play(study, 6)
    assert "stopped" in {trial.state for trial in before}
    study.widen(x=nr.Float(0, 2))
    play(study, 2)
    assert [trial.curve for trial in study.trials[:6]] == [trial.curve for trial in before]
    again = nr.Study.open(storage=url)
    assert list(again.trials) == list(study.trials)
    assert all(again.explain(number).repeated for number in range(8))
    assert again.ask().parameters == study.trials[8].parameters


def test_like_learns_from_the_finished_trials_of_an_earlier_study(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    earlier = nr.Study(nr.auto(SPACE, pruning=Above(level=0.1)), storage=url)
    finished = [trial for trial in play(earlier, 12) if trial.state == "observed"]
    assert 3 <= len(finished) < 12
    rows = [trial.parameters | {"reward": trial.reward} for trial in finished]
    of_study, of_table = nr.auto(SPACE, like=earlier), nr.auto(SPACE, like=rows)
    assert nr.Study(of_study).ask().parameters == nr.Study(of_table).ask().parameters


def test_a_trial_and_a_study_say_what_was_stopped():
    study = nr.Study(policy(Above(level=0.5)))
    trial = study.ask()
    study.report(trial, 3, 0.25)
    stopped = study.stop(trial)
    assert "stopped" in repr(stopped)
    assert "3: 0.25" in repr(stopped)
    assert "reason=" in repr(stopped)
    assert "1 stopped" in repr(study.replica.record)
    for page in (stopped._repr_html_(), study._repr_html_()):
        assert "stopped" in page
        assert "0.25" in page


def made_earlier(url):
    """Takes from a database what came with reports and visits, as if an earlier version had made it."""
    with closing(SqlStorage(url)) as storage, storage.transaction(write=True) as connection:
        steps, studies = storage.tables.steps.name, storage.tables.studies.name
        connection.exec_driver_sql(f"DROP TABLE {steps}")
        connection.exec_driver_sql(f"ALTER TABLE {studies} DROP COLUMN stopped")
        connection.exec_driver_sql(f"ALTER TABLE {storage.tables.trials.name} DROP COLUMN visit")


@pytest.mark.parametrize("kind", ["sqlite", POSTGRESQL])
def test_a_database_of_an_earlier_version_takes_reports_once_it_is_opened(kind, places):
    url = places(kind)()
    study = nr.Study(policy(Above(level=0.2)), storage=url)
    for _ in range(3):
        study.tell(study.ask(), 0.5)
    known = list(study.trials)
    study.close()
    made_earlier(url)
    with ThreadPoolExecutor(4) as pool:
        opened = list(pool.map(lambda _: nr.Study.open(storage=url), range(4)))
    assert [list(study.trials) for study in opened] == [known] * 4
    play(opened[0], 4)
    assert same(opened[1], opened[2])
    assert [summary.stopped for _, summary in opened[3].storage.summaries()] == [
        sum(trial.state == "stopped" for trial in opened[3].trials)
    ]


def test_an_upgrade_that_is_interrupted_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path}/a.db"
    nr.Study(policy(), storage=url).close()
    made_earlier(url)
    upgrade = Database.upgrade

    def interrupted(self, connection):
        upgrade(self, connection)
        raise KeyError

    with monkeypatch.context() as patch:
        patch.setattr(Database, "upgrade", interrupted)
        with pytest.raises(KeyError):
            nr.Study.open(storage=url)
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        assert "steps" not in {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    study = nr.Study.open(storage=url)
    assert study.report(study.ask(), 1, 0.5)


def test_spared_trials_say_what_stopping_has_missed():
    study = nr.Study(policy(Above(level=9.0, explore=0.5)), seed=3)
    assert str(study.pruned()).startswith("0 trials were stopped. None ran on, so what stopping misses is not known")
    spared = []
    for trial in study.ask(count=12):
        if study.report(trial, 1, 0.1):
            spared.append(trial)
        else:
            study.stop(trial)
    assert study.pruned() == (12 - len(spared), len(spared), 0, 0)
    assert "none of them has finished" in str(study.pruned())
    first, second, third, fourth, *_ = spared
    study.add([0.5], 0.4)
    study.tell(first, 0.3)
    study.tell(second, 0.5)
    study.tell(third, 0.5)
    study.fail(fourth, "broken")
    found = study.pruned()
    assert found == (12 - len(spared), len(spared), 3, 1)
    assert found.regretted == pytest.approx(found.stopped / 3)
    assert f"3 finished, and 1 became the best so far. By that share, {round(found.stopped / 3)} of " in str(found)
    worse = nr.Study(policy(Above(level=9.0, explore=1.0)), goal="minimize")
    for loss in (0.5, 0.7, 0.3):
        trial = worse.ask()
        assert worse.report(trial, 1, loss)
        worse.tell(trial, loss)
    assert worse.pruned() == (0, 3, 3, 2)


@pytest.mark.parametrize("rule", [Above(level=0.2, explore=0.4), Median(finished=2), Halving(steps=4, first=0.5)])
def test_a_rule_gives_its_verdicts_again_from_the_record(rule, tmp_path):
    study = nr.Study(policy(rule), storage=f"sqlite:///{tmp_path}/a.db", seed=5)
    play(study, 4)
    open_ones = study.ask(count=3)
    for step in (1, 2):
        for trial in open_ones:
            study.report(trial, step, value(trial, step))
    play(study, 6)
    study.add_from([{"arm": 3, "reward": 0.5, "steps": [[1, -9.0]]}])
    again = nr.Study.open(storage=study.storage)
    verdicts = {report.verdict for trial in again.trials for report in trial.curve}
    assert verdicts >= {"go", "stop"}
    assert retraced(again) == []
    again.close()
    study.close()
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        connection.execute("UPDATE steps SET verdict = 'stop' WHERE event = (SELECT min(event) FROM steps)")
    assert [report.step for report in retraced(nr.Study.open(storage=study.storage))] == [1]


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_a_file_of_an_earlier_version_can_be_looked_at_where_nothing_can_be_written(mode):
    folder = Path(tempfile.mkdtemp())
    try:
        url = restored("misfortunes", folder)
        with closing(sqlite3.connect(folder / "misfortunes.db")) as connection:
            connection.execute(f"PRAGMA journal_mode = {mode}")
        with unwritable(folder):
            study = nr.Study.open(storage=url, name="misfortunes")
            known = list(study.trials)
            ((_, summary),) = study.storage.summaries()
            assert (summary.trials, summary.stopped) == (len(known), 0)
            with pytest.raises(nr.errors.StorageError, match="cannot be written to"):
                study.ask()
            study.close()
        (folder / "misfortunes.db").chmod(0o644)
        study = nr.Study.open(storage=url, name="misfortunes")
        assert list(study.trials) == known
        assert study.report(study.ask(), 1, 0.5)
        study.close()
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (OddRule(says="halt"), "`OddRule.verdict` returned 'halt', and nothing was recorded"),
        (OddRule(says="None"), "`OddRule.verdict` returned None"),
        (OddRule(because=" "), "must say in words why the trial was stopped"),
    ],
)
def test_what_a_rule_of_ones_own_may_not_say_is_not_recorded(rule, message, tmp_path):
    study = nr.Study(policy(rule), storage=f"sqlite:///{tmp_path}/a.db")
    trial = study.ask()
    if rule.says == "stop":
        assert not study.report(trial, 1, 0.5)
    with pytest.raises(nr.errors.InvalidInput, match=message):
        study.stop(trial) if rule.says == "stop" else study.report(trial, 1, 0.5)
    assert study.trials[0].state == "pending"
    assert list(nr.Study.open(storage=study.storage).trials) == list(study.trials)
    assert study.tell(trial, 0.5).state == "observed"


@pytest.mark.parametrize("rule", [OddRule(mean=1.0, learned="predicted"), OddRule(std=-1.0, learned="predicted")])
def test_a_prediction_that_is_no_number_is_none(rule):
    study = nr.Study(policy(rule))
    study.report(study.ask(), 1, 0.5)
    study.stop(0)
    plain = nr.Study(policy(OddRule(learned="last")))
    plain.report(plain.ask(), 1, 0.5)
    plain.stop(0)
    np.testing.assert_array_equal(study.predict(), plain.predict())


def test_a_report_is_a_value_that_the_policy_could_be_told():
    study = nr.Study(nr.auto(ARMS, reward="bernoulli"))
    with pytest.raises(nr.errors.InvalidInput, match=r"0\.3"):
        study.report(study.ask(), 1, 0.3)
    assert study.trials[0].steps == []


def test_a_report_begins_the_lease_anew(tmp_path):
    now = [1000.0]
    url = f"sqlite:///{tmp_path}/a.db"
    study = nr.Study(nr.auto(nr.Space(x=nr.Float(0, 1))), storage=url, name="a", clock=lambda: now[0])
    running, silent = study.ask(lease=60), study.ask(lease=60)
    for step in range(1, 6):
        now[0] += 50
        assert study.report(running, step, 0.1 * step)
        study = nr.Study.open(storage=url, name="a", clock=lambda: now[0])
    assert [trial.state for trial in study.trials] == ["pending", "abandoned"]
    assert study.trials[silent.number].abandoned.reason == "its lease of 60 s ran out"
    now[0] += 61
    study.ask()
    assert study.trials[running.number].abandoned.reason == "its lease of 60 s ran out after its last report"
    assert len(study.trials[running.number].steps) == 5
