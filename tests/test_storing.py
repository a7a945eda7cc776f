"""Databases in trouble: old, new, full, read-only, gone, restarted, forked; and what then is on record."""

import contextlib
import copy
import gc
import multiprocessing
import os
import pickle
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import traceback
import weakref
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy

import nilregret as nr
from nilregret._utils import executors as forks
from nilregret.storage import MemoryStorage, SqlStorage, tables
from nilregret.storage import postgresql as server
from nilregret.storage import sqlite as files
from nilregret.study import replica

from .postgres import Server
from .waiting import LONG

POLICY = nr.gp_ucb(nr.Arms.grid(0, 1, 30), nr.Matern(2.5, 0.2), noise=0.1)


def url_of(path):
    return f"sqlite:///{path}"


def made(url, rounds=4, **more):
    study = nr.Study(POLICY, storage=url, **more)
    for number in range(rounds):
        study.tell(study.ask(), 0.1 * number)
    study.ask()
    return study


def execute(path, *statements):
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@pytest.mark.parametrize("number", [0, tables.FORMAT, 10, 99])
def test_what_another_version_wrote_is_left_alone(places, kind, postgres, number, tmp_path):
    url = places(kind)()
    made(url).close()
    old = number != 99
    with SqlStorage(url).transaction(write=True) as connection:
        if kind == "sqlite":
            mark = files.OLD_APPLICATION_ID if old else files.APPLICATION_ID
            for name, value in (("user_version", number), ("application_id", mark)):
                connection.exec_driver_sql(f"PRAGMA {name} = {value}")
        else:
            connection.exec_driver_sql(f"UPDATE {server.MARK} SET format = {number}")
            if old:
                connection.exec_driver_sql(f"ALTER TABLE {server.MARK} RENAME TO nilregret_format")
    said = "earlier version.*nilregret export.*nilregret import" if old else r"newer version .*\(format 99.*Upgrade"
    for attempt in (lambda: nr.Study(POLICY, storage=url), lambda: nr.Study.open(storage=url)):
        with pytest.raises(nr.errors.StorageError, match=said):
            attempt()


def test_a_full_disk_is_said_and_loses_nothing(tmp_path):
    path = tmp_path / "a.db"
    study = made(url_of(path))
    kept = study.replica.handle.storage._database._writer
    pages = kept._raw.execute("PRAGMA page_count").fetchone()[0]
    kept._raw.execute(f"PRAGMA max_page_count = {pages}")

    def fill():
        for _ in range(200):
            study.tell(study.ask(count=3)[0], 0.3)

    with pytest.raises(nr.errors.StorageError, match=r"disk is full\. Make room"):
        fill()
    stored = list(study.trials)
    assert list(nr.Study.open(storage=url_of(path)).trials) == stored
    assert len(stored) > 5
    kept._raw.execute(f"PRAGMA max_page_count = {10 * pages}")
    replayed = nr.Study.open(storage=url_of(path))
    np.testing.assert_array_equal(study.predict(), replayed.predict())
    assert study.ask().number == len(stored)


@contextlib.contextmanager
def unwritable(folder):
    """Nobody may write there, not even the root user of a container, who becomes another one meanwhile."""
    folder.chmod(0o555)
    for file in folder.iterdir():
        file.chmod(0o444)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(0o755)


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_where_nothing_can_be_written_one_can_look(mode):
    folder = Path(tempfile.mkdtemp())
    try:
        study = made(url_of(folder / "a.db"))
        trials = list(study.trials)
        study.close()
        execute(folder / "a.db", f"PRAGMA journal_mode = {mode}")
        with unwritable(folder):
            again = nr.Study.open(storage=url_of(folder / "a.db"))
            assert list(again.trials) == trials
            for call in (again.ask, lambda: again.tell(4, 1.0)):
                with pytest.raises(nr.errors.StorageError, match="cannot be written to"):
                    call()
            assert list(again.trials) == trials
            again.close()
        assert [file.name for file in folder.iterdir()] == ["a.db"]
        (folder / "a.db").chmod(0o644)
        assert again.tell(4, 1.0).reward == 1.0
        again.close()
    finally:
        shutil.rmtree(folder)


def test_a_file_is_complete_when_the_last_study_in_it_is_closed(tmp_path):
    made(url_of(tmp_path / "a.db")).close()
    assert [file.name for file in tmp_path.iterdir()] == ["a.db"]
    script = f"""
        import nilregret as nr
        study = nr.Study.open(storage={url_of(tmp_path / "a.db")!r})
        study.tell(4, 1.0)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)
    assert [file.name for file in tmp_path.iterdir()] == ["a.db"]
    assert nr.Study.open(storage=url_of(tmp_path / "a.db")).trials[4].reward == 1.0


def test_a_study_that_nobody_refers_to_lets_go_of_its_file_at_once(tmp_path):
    gc.disable()  # no cycle of references, which would keep the file open until somebody looks for such
    try:
        study = nr.Study(POLICY, storage=url_of(tmp_path / "studies.db"))
        study.tell(study.ask(), 1.0)
        storage = weakref.ref(study.storage)
        del study
        assert storage() is None
    finally:
        gc.enable()
    assert [path.name for path in tmp_path.iterdir()] == ["studies.db"]


def test_commits_reach_the_disk(tmp_path):
    study = made(url_of(tmp_path / "a.db"))
    raw = study.replica.handle.storage._database._writer._raw
    assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert raw.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL


class Reads:
    """Counts what a storage reads of its file."""

    def __init__(self, storage, monkeypatch):
        database, self.count = storage._database, 0
        for owner, name in ((database, "rows"), (database, "transaction"), (storage, "_writer")):
            monkeypatch.setattr(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, call):
        def counted(*given, **more):
            self.count += not more.get("write", False)
            return call(*given, **more)

        return counted

    def of(self, call):
        before = self.count
        call()
        return self.count - before


def test_a_study_is_read_again_only_after_somebody_else_has_written(tmp_path, monkeypatch):
    path = tmp_path / "a.db"
    study = made(url_of(path))
    beside = nr.Study(POLICY, storage=study.storage, name="beside")
    other = nr.Study(POLICY, storage=url_of(path))
    reads = Reads(study.storage, monkeypatch)
    assert reads.of(lambda: study.tell(study.ask(), 0.5)) == 0
    beside.ask()  # over the same connection
    assert reads.of(lambda: (study.tell(study.ask(), 0.5), len(study.trials))) == 0
    other.tell(4, 0.9)  # over another one
    assert reads.of(study.ask) > 0
    assert study.trials[4].reward == 0.9
    assert reads.of(study.ask) == 0
    execute(path, "UPDATE studies SET stamp = 'another'")  # by hand
    assert reads.of(lambda: len(study.trials)) > 0
    twin = nr.Study(POLICY, storage=study.storage)  # over the same connection: versions are equal, and stamps differ
    twin.tell(7, 0.7)
    assert study.trials[7].reward == 0.7
    twin.storage.delete("study")
    with pytest.raises(nr.errors.StorageError, match="no longer holds"):
        len(study.trials)


def test_a_round_is_two_transactions_that_ask_once_what_is_new(tmp_path, monkeypatch):
    monkeypatch.setattr(replica, "INSTANT", np.inf)
    path, looks, statements, stat = tmp_path / "a.db", [], [], os.stat
    study = made(url_of(path))
    reads = Reads(study.storage, monkeypatch)

    def counted(file, **more):
        looks.append(str(file))
        return stat(file, **more)

    monkeypatch.setattr(os, "stat", counted)
    study.replica.handle.storage._database._writer._raw.set_trace_callback(statements.append)
    assert reads.of(lambda: study.tell(study.ask(), 0.5)) == 0
    begin, new = ["BEGIN IMMEDIATE", "PRAGMA data_version"], ["UPDATE studies", "COMMIT"]
    wanted = [*begin, "INSERT INTO", *new, *begin, "UPDATE trials", *new]
    assert [" ".join(statement.split()[:2]) for statement in statements] == wanted
    assert looks.count(str(path)) == 2


def test_a_trial_that_changes_several_times_in_a_commit_is_written_whole(tmp_path):
    study = made(url_of(tmp_path / "a.db"))

    def changes(calls):
        calls.tell(study.inputs.answer(4, 0.5))
        calls.tell(study.inputs.answer(4, 0.6), revise=True)
        asked = calls.ask(None, None, None)
        calls.abandon(asked.number, "gone")
        calls.tell(study.inputs.answer(asked.number, 0.7))

    study.group_commit([lambda calls: calls.ask(None, None, None)], seconds=LONG)
    study.group_commit([changes, lambda calls: calls.abandon(5, "gone")], seconds=LONG)
    study.group_commit([lambda calls: calls.tell(study.inputs.answer(5, 0.1))], seconds=LONG)
    assert list(nr.Study.open(storage=study.storage.place).trials) == list(study.trials)
    assert [len(study.trials[4].corrected), study.trials[5].late, study.trials[6].late] == [1, True, True]


def test_a_deleted_study_is_not_written_to_under_the_id_that_another_has_now(tmp_path):
    storage = SqlStorage(url_of(tmp_path / "a.db"))
    facts = {"policy": "{}", "goal": "maximize", "seed": 1, "about": "{}"}
    old = storage.find_or_make("study", **facts)
    storage.delete("study")
    new = storage.find_or_make("study", **facts)
    assert old.id == new.id
    with storage.writing(new) as writer:  # Nobody else writes, so the next transaction reads no row of the study.
        writer.save([], order=0)
    with pytest.raises(nr.errors.StorageError, match="no longer holds"), storage.writing(old):
        pass


def test_an_interrupt_before_a_commit_leaves_no_lock(tmp_path, monkeypatch):
    study = made(url_of(tmp_path / "a.db"))
    known = list(study.trials)

    def interrupted(_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(files.SqliteConnection, "commit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            study.ask()
    monkeypatch.setattr(files, "LOCK_SECONDS", 0.0)
    other = nr.Study(POLICY, storage=url_of(tmp_path / "a.db"))
    assert list(other.trials) == known
    other.ask()
    assert list(study.trials) == list(other.trials)


@pytest.mark.parametrize("written", [False, True])
def test_a_commit_that_fails_leaves_no_wrong_memory_of_the_file(tmp_path, monkeypatch, written):
    study, straight = (made(url_of(tmp_path / name)) for name in ("a.db", "b.db"))
    commit = files.SqliteConnection.commit

    def failing(connection):
        if written:  # It has reached the disk, and still there is an error.
            commit(connection)
        raise sqlite3.OperationalError("disk I/O error")

    for each in (study, straight):
        with monkeypatch.context() as patched, contextlib.ExitStack() as stack:
            if each is study:
                patched.setattr(files.SqliteConnection, "commit", failing)
                stack.enter_context(pytest.raises(nr.errors.StorageError, match="Make room"))
            if each is study or written:
                each.ask()
    for each in (study, straight):
        each.tell(each.ask(), 0.3)
    assert [(t.number, t.arm, t.reward) for t in study.trials] == [(t.number, t.arm, t.reward) for t in straight.trials]
    again = nr.Study.open(storage=url_of(tmp_path / "a.db"))
    assert list(again.trials) == list(study.trials)
    assert again.storage.summaries()[0][1] == straight.storage.summaries()[0][1]._replace(
        last_at=study.trials[-1].told_at
    )


def _fork_and_work(study, number, queue):
    queue.put((number, study.tell(number, 0.5).reward, study.ask().number))


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork")  # in later Pythons; that is what is tried
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_study_goes_on_in_processes_that_are_forked(places, kind):
    url = places(kind)()
    study = made(url)
    study.ask(count=3)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    workers = [context.Process(target=_fork_and_work, args=(study, number, queue)) for number in (4, 5, 6)]
    for worker in workers:
        worker.start()
    done = [queue.get(timeout=LONG) for _ in workers]
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert sorted(number for *_, number in done) == [8, 9, 10]
    assert [study.trials[number].reward for number in (4, 5, 6)] == [0.5] * 3
    study.tell(7, 0.25)
    assert nr.Study.open(storage=url).trials[7].reward == 0.25


def _forked(act):
    """Returns the exit code of a forked process: 0 if `act` returns, 3 after an error, 14 if it hangs."""
    child = os.fork()
    if child == 0:
        signal.alarm(int(LONG))
        try:
            act()
        except BaseException:
            traceback.print_exc()
            os._exit(3)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


FORKS = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork")


@FORKS
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgresql"])
def test_a_process_that_is_forked_while_threads_use_a_study_does_not_hang(places, kind):
    study, stop = made(None if kind == "memory" else places(kind)()), threading.Event()

    def work():
        while not stop.is_set():
            study.tell(study.ask(), 0.0)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    codes = [_forked(lambda: study.tell(study.ask(), 0.01)) for _ in range(5)]
    stop.set()
    for thread in threads:
        thread.join()
    assert codes == [0] * 5
    assert sum(trial.reward == 0.01 for trial in study.trials) == (0 if kind == "memory" else 5)


@FORKS
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_file_in_use_at_a_fork_is_refused_in_the_child_and_not_read_wrongly(tmp_path, monkeypatch):
    study, inside, go_on = made(url_of(tmp_path / "a.db")), threading.Event(), threading.Event()
    monkeypatch.setattr(forks, "SECONDS", 0.01)

    def work():
        with study.storage.writing(study.replica.handle.study):
            inside.set()
            go_on.wait(LONG)

    def refused():
        with pytest.raises(nr.errors.StorageError, match="another thread was using it when this process was forked"):
            study.ask()

    thread = threading.Thread(target=work)
    thread.start()
    assert inside.wait(LONG)
    code = _forked(refused)
    go_on.set()
    thread.join()
    assert code == 0
    assert _forked(study.ask) == 0


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_many_write_at_once_and_none_waits_in_vain(places, kind):
    url = places(kind)()
    made(url, 0)
    problems = []

    def work():
        try:
            mine = nr.Study.open(storage=url)
            for _ in range(6):
                trial = mine.ask()
                mine.tell(trial, float(trial.point[0]))
            mine.close()
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert [trial.number for trial in nr.Study.open(storage=url).trials] == list(range(49))


def test_two_processes_that_make_a_study_at_once_have_the_same(places):
    for kind in ("sqlite", "postgresql"):
        url, found = places(kind)(), []

        def make(url=url, found=found):
            study = nr.Study(POLICY, storage=url)
            found.append(study.replica.handle.study)
            study.close()

        threads = [threading.Thread(target=make) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 6
        assert len(set(found)) == 1


def test_a_lock_that_is_held_too_long_is_explained(tmp_path, monkeypatch):
    study = made(url_of(tmp_path / "a.db"))
    monkeypatch.setattr(files, "LOCK_SECONDS", 0.2)
    with contextlib.closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(nr.errors.StorageError, match=r"locked\. Other processes have been writing"):
            study.ask()
        assert len(study.trials) == 5  # readers do not wait
    assert study.ask().number == 5


# -- a server --------------------------------------------------------------------------------------------------------


def test_a_server_that_is_not_there_is_explained():
    with pytest.raises(nr.errors.StorageError, match="The server cannot be reached"):
        nr.Study(POLICY, storage="postgresql://nobody@/none?host=/tmp/no-such-folder")
    with pytest.raises(nr.errors.StorageError, match=r"postgresql\+psycopg://me:\*\*\*@localhost:1/none") as caught:
        nr.Study(POLICY, storage="postgresql://me:hunter2@localhost:1/none")
    assert "hunter2" not in str(caught.value)


def test_postgresql_without_its_driver_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(nr.errors.MissingExtra, match=r"nilregret\[postgresql\]"):
        nr.Study(POLICY, storage="postgresql://somebody@/database")


def test_a_server_that_is_restarted_is_found_again():
    with Server() as own:
        url = own.url()
        study, reference = made(url), made(None)
        own.stop(signal.SIGQUIT)  # as in a crash
        with pytest.raises(nr.errors.StorageError, match="The server cannot be reached, or ended the connection"):
            study.ask()
        own.start()
        assert study.ask().arm == reference.ask().arm
        assert (
            list(study.trials)[:4]
            == [
                trial._replace(asked_at=again.asked_at, told_at=again.told_at)
                for trial, again in zip(reference.trials, study.trials, strict=False)
            ][:4]
        )


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_reader_sees_one_moment_in_all_its_statements(places, kind):
    study = made(places(kind)())
    tables, known = study.storage.tables, len(study.trials)
    with study.storage._database.transaction(write=False) as connection:
        counts = [
            sqlalchemy.select(sqlalchemy.func.count()).select_from(table) for table in (tables.trials, tables.arms)
        ]
        assert connection.execute(counts[0]).scalar_one() == known
        study.enqueue(0)
        study.ask()  # A change, and the trial that goes with it.
        assert [connection.execute(count).scalar_one() for count in counts] == [known, 0]
    assert study.ask().number == known + 1


def test_connections_that_the_server_has_closed_are_replaced(postgres):
    study = made(postgres.url())
    postgres.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid != pg_backend_pid()")
    assert study.ask().number == 5


@pytest.mark.parametrize("write", [False, True])
def test_a_connection_that_is_lost_within_a_transaction_is_an_error_of_the_storage(postgres, write):
    database = server.PostgresDatabase(postgres.url())

    def lost():
        with database.transaction(write=write) as connection:
            postgres.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid != pg_backend_pid()")
            connection.exec_driver_sql("SELECT 1")

    with pytest.raises(nr.errors.StorageError, match="The server cannot be reached"):
        lost()
    with database.transaction(write=write) as another:
        assert another.exec_driver_sql("SELECT 1").scalar_one() == 1
    database.close()


def test_a_server_that_may_not_be_written_to_is_explained(postgres):
    url = postgres.url()
    study = made(url)
    reader = nr.Study.open(storage=url + "%20-cdefault_transaction_read_only%3Don")
    assert list(reader.trials) == list(study.trials)
    with pytest.raises(nr.errors.StorageError, match="may not write there"):
        reader.ask()


def test_nothing_outlives_a_transaction_on_a_server(postgres):
    """As behind a pool that hands out another connection for each: no locks, no settings, no prepared statements."""
    url = postgres.url()
    study = made(url, rounds=12)
    database = study.replica.handle.storage._database
    engine = sqlalchemy.create_engine(database.place)
    with engine.connect() as connection:
        locks = connection.exec_driver_sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").scalar_one()
        assert locks == 0
    with database.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM pg_prepared_statements").scalar_one() == 0
        assert connection.exec_driver_sql("SHOW lock_timeout").scalar_one() == "0"
    engine.dispose()
    study.close()


def test_foreign_tables_on_a_server_are_left_alone(postgres):
    url = postgres.url()
    place = SqlStorage(url)
    with place._database.transaction(write=True) as connection:
        connection.exec_driver_sql("CREATE TABLE trials (theirs integer)")
        connection.exec_driver_sql("CREATE TABLE studies (theirs integer)")
    made(url)
    with place._database.transaction(write=True) as connection:
        connection.exec_driver_sql(f"DROP TABLE {server.PREFIX}trials")
    with pytest.raises(nr.errors.StorageError, match="no 'nilregret_trials'"):
        nr.Study.open(storage=url)


# -- anything that is a storage --------------------------------------------------------------------------------------


def test_a_storage_may_be_given_itself(tmp_path):
    place = SqlStorage(url_of(tmp_path / "a.db"))
    one = made(place, name="one")
    assert list(nr.Study.open(storage=place, name="one").trials) == list(one.trials)
    assert place.names() == ["one"]
    place.close()
    one.ask()
    with pytest.raises(nr.errors.InvalidInput, match="no study 'two'"):
        nr.Study.open(storage=place, name="two")
    assert "a.db" in repr(place)


def test_studies_in_memory_are_shared_by_name_and_not_copied():
    place = MemoryStorage()
    one, again = made(place), nr.Study.open(storage=place)
    assert list(again.trials) == list(one.trials)
    again.tell(4, 1.0)
    assert one.trials[4].reward == 1.0
    with pytest.raises(nr.NoRegretError, match="in memory cannot be copied"):
        one.__reduce__()


def test_a_clock_that_goes_back_changes_no_order(tmp_path):
    times = iter([1e9, 9e8, 8e8, 1e9 + 5, 7e8, 6e8, 5e8])
    study = nr.Study(POLICY, storage=url_of(tmp_path / "a.db"), clock=lambda: next(times))
    for _ in range(3):
        study.tell(study.ask(), 0.5)
    again = nr.Study.open(storage=url_of(tmp_path / "a.db"))
    assert list(again.trials) == list(study.trials)
    assert [trial.asked_order for trial in again.trials] == [1, 3, 5]
    assert time.time() > 1e9


@pytest.mark.parametrize("kind", ["memory", "postgresql"])
def test_a_run_goes_on_wherever_its_record_is(places, kind):
    place, box = places(kind)(), nr.Box([0.0], [1.0])
    for trials in (3, 5):
        result = nr.minimize(lambda x: (x[0] - 0.3) ** 2, box, trials=trials, storage=place, name="a", progress=False)
        assert len(result.history) == trials
    assert len(nr.Study.open(storage=place, name="a").trials) == 5


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_copy_of_a_study_that_was_renamed_is_of_that_study(places, kind):
    url = places(kind)()
    policy = nr.gp_ucb(nr.Arms.grid(0, 1, 9), nr.Matern(2.5, lengthscale=0.3), noise=0.1)
    study = nr.Study(policy, seed=0, storage=url, name="oven")
    study.tell(study.ask(), 0.5)
    packed, place = pickle.dumps(study), SqlStorage(url)
    place.rename("oven", "kiln")
    nr.Study(policy, seed=1, storage=url, name="oven")  # another, under the name that it had
    for copied in (copy.deepcopy(study), pickle.loads(packed)):
        assert (copied.name, copied.seed, list(copied.trials)) == ("kiln", 0, list(study.trials))
    place.delete("kiln")
    with pytest.raises(nr.errors.StorageError, match=r"no longer holds the study 'oven'.* copied or pickled"):
        pickle.loads(packed)
    place.close()


def test_names_that_cannot_be_are_refused_in_one_sentence(places):
    policy = nr.gp_ucb(nr.Arms.grid(0, 1, 9), nr.Matern(2.5, lengthscale=0.3), noise=0.1)
    for storage in (MemoryStorage(), SqlStorage(places("sqlite")()), SqlStorage(places("postgresql")())):
        nr.Study(policy, storage=storage, name="oven")
        nr.Study(policy, storage=storage, name="other")
        for name in ("", " ", "a\0b", "\ud800", 3, None):
            with pytest.raises(nr.errors.InvalidInput, match="`new` must be some text that can be written as UTF-8"):
                storage.rename("oven", name)
            with pytest.raises(nr.errors.InvalidInput, match="There is no study"):
                nr.Study.open(storage=storage, name=name)
        with pytest.raises(nr.errors.InvalidInput, match="there is a study 'other' already"):
            storage.rename("oven", "other")
        with pytest.raises(nr.errors.InvalidInput, match="there is no study 'stove'"):
            storage.rename("stove", "kiln")
        storage.close()


def test_tables_whose_definition_is_no_text_are_damaged_ones(tmp_path):
    path = tmp_path / "studies.db"
    policy = nr.gp_ucb(nr.Arms.grid(0, 1, 9), nr.Matern(2.5, lengthscale=0.3), noise=0.1)
    nr.Study(policy, storage=f"sqlite:///{path}").close()
    whole = path.read_bytes()
    assert b"tabletrialstrials" in whole
    path.write_bytes(
        whole.replace(b"tabletrialstrials", b"tabletr\xfcalstrials").replace(b"TABLE trials", b"TABLE (rials")
    )
    with pytest.raises(nr.errors.StorageError, match="damaged; choose another file, or restore a copy"):
        nr.Study.open(storage=f"sqlite:///{path}")
