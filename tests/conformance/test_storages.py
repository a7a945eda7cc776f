"""Every storage joins by one line in STORAGES."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import nilregret as nr
from nilregret import storage, testing

POSTGRESQL = pytest.param("postgresql", marks=pytest.mark.nightly)  # what it does like SQLite
STORAGES = ["memory", "sqlite", POSTGRESQL]
POLICY = nr.gp_ucb(nr.Arms.grid(0, 1, 30), nr.Matern(2.5, 0.2), noise=0.1)
SPACE = nr.Space(x=nr.Float(1e-3, 10.0, log=True), kind=nr.Choice("a", "b", 3), n=nr.Int(1, 4))
ON_SPACE = nr.gp_ucb(SPACE.grid(4), nr.Matern(2.5, 0.5), noise=0.1)


@pytest.fixture(params=STORAGES)
def url(request, places):
    return places(request.param)()


@pytest.fixture(params=STORAGES[1:])
def shared(request, places):
    return places(request.param)()


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgresql"])
def test_keeps_the_promises_of_every_storage(kind, places):
    testing.check_storage(places(kind))


def test_every_storage_is_here():
    kinds = {kind.__name__ for kind in storage.Storage.__subclasses__()}
    assert kinds == {"MemoryStorage", "SqlStorage"}  # the latter is of two databases


def test_studies_of_one_file_are_apart(url):
    one, two = nr.Study(POLICY, storage=url, name="one"), nr.Study(POLICY, storage=url, name="two", seed=1)
    one.tell(one.ask(), 1.0)
    assert len(two.trials) == 0
    assert len(nr.Study.open(storage=url, name="one").trials) == 1
    with pytest.raises(nr.errors.InvalidInput, match=r"no study 'three'.*'one', 'two'"):
        nr.Study.open(storage=url, name="three")


def test_another_policy_or_seed_is_refused(url):
    nr.Study(POLICY, storage=url)
    other = nr.gp_ucb(POLICY.domain, nr.Matern(1.5, 0.2), noise=0.2)
    with pytest.raises(
        nr.errors.InvalidInput,
        match=r"other values: kernel.nu \(2.5 then, 1.5 now\), noise \(0.1 then, 0.2 now\), regularization",
    ):
        nr.Study(other, storage=url)
    with pytest.raises(nr.errors.InvalidInput, match="other values: seed"):
        nr.Study(POLICY, seed=1, storage=url)


def test_a_policy_written_before_there_were_other_slots_is_the_same_policy(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    study = nr.Study(POLICY, seed=1, storage=url)
    study.tell(study.ask(), 0.5)
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        (text,) = connection.execute("SELECT policy FROM studies").fetchone()
        old = {key: value for key, value in json.loads(text).items() if key not in ("memory", "explore", "pending")}
        connection.execute("UPDATE studies SET policy = ?", (json.dumps(old),))
    assert nr.Study(POLICY, seed=1, storage=url).trials[0].reward == 0.5


def test_two_studies_of_one_name_see_each_other(url):
    left, right = nr.Study(POLICY, storage=url), nr.Study(POLICY, storage=url)
    for number in range(10):
        asker, teller = (left, right) if number % 2 else (right, left)
        trial = asker.ask()
        assert trial.number == number
        teller.tell(trial, float(trial.point[0]))
    np.testing.assert_array_equal(left.predict(), right.predict())
    with pytest.raises(nr.errors.TrialError, match="told already"):
        left.tell(3, -1.0)
    decided = right.replica.state.settled().decide()
    trial = left.ask()
    assert trial.arm == decided.arm
    assert right.trials[-1] == trial


DIES = (
    "import sys; sys.path.insert(0, sys.argv[1]); from tests.conformance.test_storages import work; "
    "work(sys.argv[2], die_at=int(sys.argv[3]))"
)


def work(url, die_at=None):
    """The arms of a run of 20 rounds, which goes on where it was."""
    study = nr.Study(POLICY, seed=11, storage=url)

    def told(trial):
        study.tell(
            trial, float(np.sin(9 * trial.point[0]) + np.random.default_rng([1, trial.number]).normal(scale=0.1))
        )

    for trial in list(study.trials):
        if trial.state == "pending":
            told(trial)
    while len(study.trials) < 20:
        trial = study.ask()
        if trial.number == die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        told(trial)
    return [trial.arm for trial in study.trials]


@pytest.mark.skipif(not hasattr(os, "kill"), reason="kill -9 needs a POSIX system")
@pytest.mark.parametrize("deaths", [(7,), pytest.param((0, 7, 19), marks=pytest.mark.nightly)])
def test_killed_processes_continue_the_identical_run(shared, deaths):
    for die_at in deaths:
        command = [sys.executable, "-c", DIES, str(Path(__file__).parents[2]), shared, str(die_at)]
        died = subprocess.run(command, capture_output=True, text=True, check=False)
        assert died.returncode == -signal.SIGKILL, died.stderr
    assert work(shared) == work(None)


def test_what_was_written_before_an_error_is_taken_back(url, monkeypatch):
    from nilregret.storage import memory
    from nilregret.storage import sql as sql_writer

    def failing(save):
        def save_and_fail(*given, **more):
            save(*given, **more)
            raise KeyboardInterrupt

        return save_and_fail

    study = nr.Study(POLICY, seed=1, storage=url)
    study.tell(study.ask(), 0.5)
    known = list(study.trials)
    with monkeypatch.context() as patch:
        for writer in (sql_writer.SqlWriter, memory._Writer):
            patch.setattr(writer, "save", failing(writer.save))
        with pytest.raises(KeyboardInterrupt):
            study.ask()
    assert list(study.trials) == known
    assert list(nr.Study.open(storage=url).trials) == known


def test_a_write_that_fails_loses_nothing(url, monkeypatch):
    from nilregret.storage import memory
    from nilregret.storage import sql as sql_writer

    study, reference = nr.Study(POLICY, seed=1, storage=url), nr.Study(POLICY, seed=1)
    for s in (study, reference):
        for _ in range(5):
            trial = s.ask()
            s.tell(trial, float(trial.point[0]))
        s.tell(s.ask(), 0.3)
    with monkeypatch.context() as patch:
        for writer in (sql_writer.SqlWriter, memory._Writer):
            patch.setattr(writer, "save", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            study.ask()
    assert len(study.trials) == 6
    for _ in range(5):
        trials = study.ask(), reference.ask()
        assert trials[0].arm == trials[1].arm
        study.tell(trials[0], 0.1)
        reference.tell(trials[1], 0.1)
    np.testing.assert_array_equal(study.predict(), reference.predict())


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("studies.db", "must be a URL"),
        ("sqlite://", "names no file"),
        ("sqlite:///:memory:", "names no file"),
        ("sqlite:///two.db#x", "storage='sqlite:///two.db' with name='x'"),
        ("sqlite+aiosqlite:///x.db", "only SQLite and PostgreSQL"),
        ("mysql://host/x", "only SQLite and PostgreSQL"),
        ("postgresql://host:port/x", "no URL of a database"),
        (None.__class__, "must be a URL"),
        ("sqlite:////no/such/folder/x.db", "does not exist"),
    ],
)
def test_bad_urls_are_explained(bad, message):
    with pytest.raises(nr.errors.InvalidInput, match=message):
        nr.Study(POLICY, storage=bad)


def test_files_that_are_no_database_or_too_new_are_left_alone(tmp_path):
    wrong = tmp_path / "notes.txt"
    wrong.write_text("no database at all, " * 100)
    with pytest.raises(nr.errors.StorageError, match="not a SQLite database"):
        nr.Study(POLICY, storage=f"sqlite:///{wrong}")
    assert wrong.read_text().startswith("no database")
    newer = f"sqlite:///{tmp_path}/newer.db"
    nr.Study(POLICY, storage=newer)
    with closing(sqlite3.connect(tmp_path / "newer.db")) as connection, connection:
        connection.execute("UPDATE studies SET format = 99")
    with pytest.raises(nr.errors.StorageError, match="newer version"):
        nr.Study(POLICY, storage=newer)


@pytest.mark.parametrize("name", ["a?b=c.db", "50%20.db", "a b.db", "\N{SNOWMAN}.db", "#1.db"])
def test_file_names_are_taken_as_they_are(tmp_path, name):
    study = nr.Study(POLICY, storage=f"sqlite:///{tmp_path}/{name}")
    study.ask()
    assert {path.name for path in tmp_path.iterdir()} == {name, f"{name}-wal", f"{name}-shm"}
    study.close()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_opening_a_file_that_is_not_there_makes_none(tmp_path):
    with pytest.raises(nr.errors.InvalidInput, match="no such file"):
        nr.Study.open(storage=f"sqlite:///{tmp_path}/typo.db")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", " ", None, 5, "a\0b"])
def test_study_names_are_text(url, name):
    with pytest.raises(nr.errors.InvalidInput, match="`name`"):
        nr.Study(POLICY, storage=url, name=name)


def test_reasons_are_stored_whatever_they_hold(url):
    study = nr.Study(POLICY, storage=url)
    study.fail(study.ask(), "lone surrogate \udcff")
    assert nr.Study(POLICY, storage=url).trials[0].reason == "lone surrogate ?"


def test_facts_about_a_study_must_be_the_same_when_it_is_resumed(url):
    nr.Study(POLICY, storage=url, about={"goal": "minimize"})
    with pytest.raises(nr.errors.InvalidInput, match=r"other values: about\.goal"):
        nr.Study(POLICY, storage=url, about={"goal": "maximize"})
    assert nr.Study.open(storage=url).about == {"goal": "minimize"}


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM trials WHERE number = 1",
        "UPDATE trials SET point = 'x' WHERE number = 1",
        "UPDATE trials SET reward = 'high' WHERE number = 1",
        "UPDATE trials SET reward = NULL WHERE number = 1",
        "UPDATE trials SET state = 'lost' WHERE number = 1",
        "UPDATE trials SET arm = arm + 1 WHERE number = 1",
        "UPDATE trials SET arm = 99 WHERE number = 1",
        "UPDATE studies SET policy = '{'",
        "UPDATE studies SET policy = '[]'",
        "UPDATE studies SET seed = 'x'",
        "DROP TABLE trials",
    ],
)
def test_damaged_files_are_refused_and_left_alone(tmp_path, damage):
    url = f"sqlite:///{tmp_path}/a.db"
    study = nr.Study(POLICY, storage=url)
    for _ in range(3):
        study.tell(study.ask(), 0.5)
    connection = sqlite3.connect(tmp_path / "a.db")
    connection.execute(damage)
    connection.commit()
    connection.close()
    before = (tmp_path / "a.db").read_bytes()
    with pytest.raises(nr.errors.StorageError, match="damaged"):
        nr.Study(POLICY, storage=url)
    assert (tmp_path / "a.db").read_bytes() == before


def test_changes_of_a_study_stay_in_their_place_among_its_events(url):
    study, other = (nr.Study(POLICY, storage=url) for _ in range(2))
    study.tell(study.ask(), 0.5)
    study.enqueue(4)
    study.retire_arm(3)
    study.withdraw(0)
    trial = other.ask()
    point = POLICY.domain.points[4].tolist()
    assert [(each.order, each.kind, each.body) for each in other.changes] == [
        (3, "enqueued", {"entries": [{"point": point, "arm": 4}]}), (4, "retired", None),
        (5, "taken", {"entry": 0, "trial": None, "reason": "it was withdrawn"}),
    ]  # fmt: skip
    assert [change.kind for change in other.arm_changes] == ["retired"]
    assert trial.asked_order == 6
    again = nr.Study(POLICY, storage=url)
    assert (again.changes, list(again.trials)) == (study.changes, list(study.trials))
    with pytest.raises(ZeroDivisionError):
        study.replica.write(lambda: (study._calls.enqueue(5), 1 / 0))
    assert study.changes == other.changes == again.changes


def test_a_study_with_a_change_that_older_versions_do_not_know_is_kept_from_them(tmp_path, monkeypatch):
    studies = [nr.Study(POLICY, storage=f"sqlite:///{tmp_path}/a.db", name=name) for name in ("plain", "changed")]
    for study in studies:
        study.retire_arm(3)
    studies[1].enqueue(4)
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        formats = connection.execute("SELECT name, format FROM studies").fetchall()
        assert dict(formats) == {"plain": 1, "changed": 2}
    monkeypatch.setattr("nilregret.storage.sql.STUDY_FORMAT", 1)
    nr.Study.open(storage=f"sqlite:///{tmp_path}/a.db", name="plain").ask()
    with pytest.raises(nr.errors.StorageError, match=r"'changed' .* newer version of nilregret \(format 2"):
        nr.Study.open(storage=f"sqlite:///{tmp_path}/a.db", name="changed")


@pytest.mark.parametrize("stored", ["[]", "3", "{", '{"a": 1'])
def test_a_damaged_change_is_refused(tmp_path, stored):
    study = nr.Study(POLICY, storage=f"sqlite:///{tmp_path}/a.db")
    study.enqueue(4)
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        connection.execute("UPDATE arms SET arms = ?", (stored,))
    with pytest.raises(nr.errors.StorageError, match=r"Event 1 .*a change of the study, has been damaged"):
        nr.Study.open(storage=f"sqlite:///{tmp_path}/a.db")


def test_a_storage_that_keeps_changes_of_arms_alone_refuses_others(monkeypatch):
    study = nr.Study(POLICY, storage=storage.MemoryStorage())
    monkeypatch.setattr("nilregret.study.stored.KeepsChanges", int)
    study.retire_arm(3)
    with pytest.raises(nr.NoRegretError, match=r"no changes such as points to try first.*KeepsChanges"):
        study.enqueue(4)
    assert [change.kind for change in study.changes] == ["retired"]
