"""Snapshots of long studies: the same decisions to the bit, and whatever is wrong with one drops it."""

import json
import logging
import math
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import nilregret as nr
from nilregret.__main__ import main
from nilregret.errors import StorageError
from nilregret.storage import early_trials
from nilregret.storage.early_trials import EarlyTrials
from nilregret.storage.record import held_from
from nilregret.study import snapshots

ARMS, SQUARE = nr.Arms.grid(0, 1, 8), nr.Box([0, 0], [1, 1])


@pytest.fixture
def soon(monkeypatch):
    """Snapshots from 120 events on, and after 50 more."""
    monkeypatch.setattr(snapshots, "LEAST", 120)
    monkeypatch.setattr(snapshots, "EVERY", 50)
    monkeypatch.setattr(snapshots, "AT_CLOSE", 1)


KEPT = nr.NoWorse(0, by=0.6, span=(0, 1))


def policy(**options):
    return nr.auto(ARMS, context=SQUARE, **options)


def go_on(study, first, rounds, *, fails=False):
    """Plays rounds of a study, of which some wait, and returns the trials."""
    waiting, found = [], []
    for number in range(first, first + rounds):
        rng = np.random.default_rng(number)
        context = rng.random(2)
        trial = study.ask(context, event=f"e{number}", lease=1e9 if number % 7 == 0 else None)
        waiting.append(trial)
        found.append((trial.number, trial.arm, trial.propensity))
        if number % 5 == 4:
            for told in waiting[::-1][:4]:
                if fails and told.number % 11 == 3:
                    study.fail(told, "broken")
                else:
                    mean = 0.5 + 0.4 * np.sin(5 * told.context[0] + told.point[0])
                    study.tell(told, float(np.clip(mean + 0.1 * rng.standard_normal(), 0.0, 1.0)))
            waiting = waiting[:1]
    return found


def opened(url):
    study = nr.Study.open(storage=url, name="s")
    return study, not isinstance(study.replica.record.trials, list)


def twin(tmp_path, made, monkeypatch, rounds, more, **how):
    """What a study without snapshots plays."""
    with monkeypatch.context() as patch:
        patch.setattr(snapshots, "LEAST", math.inf)
        study = nr.Study(made, seed=3, storage=f"sqlite:///{tmp_path}/twin.db", name="s", **how)
        fails = how.get("goal") == "minimize"
        go_on(study, 0, rounds, fails=fails)
        return study, go_on(study, rounds, more, fails=fails)


@pytest.mark.parametrize(
    ("options", "how"),
    [
        ({"world": "switching", "constraints": KEPT}, {"goal": "minimize", "propensities": True}),
        pytest.param({}, {}, marks=pytest.mark.nightly),
        pytest.param({"reward": "bounded"}, {}, marks=pytest.mark.nightly),
    ],
    ids=["losses, failures, propensities, a control that is kept", "plain", "bounded"],
)
def test_a_study_goes_on_from_a_snapshot_to_the_bit(tmp_path, monkeypatch, soon, options, how):
    made, url = policy(**options), f"sqlite:///{tmp_path}/s.db"
    with nr.Study(made, seed=3, storage=url, name="s", **how) as study:
        go_on(study, 0, 80, fails=bool(how))
    again, quick = opened(url)
    assert quick
    near = held_from(again.trials, 0)
    assert len(near) < 60
    assert [trial for trial in near if trial.open] == [trial for trial in again.trials if trial.open]
    expected, arms = twin(tmp_path, made, monkeypatch, 80, 30, **how)
    if "constraints" in options:
        assert {arm for _, arm, _ in arms} > {0}  # Some rounds are held, and some are not.
    assert go_on(again, 80, 30, fails=bool(how)) == arms
    assert [trial.event for trial in again.trials] == [trial.event for trial in expected.trials]
    for one, other in zip(again.trials, expected.trials, strict=True):
        assert (one.arm, one.reward, one.reason, one.context.tobytes()) == (
            other.arm, other.reward, other.reason, other.context.tobytes(),
        )  # fmt: skip
    assert again.budgets(context=[0.3, 0.3]) == expected.budgets(context=[0.3, 0.3])
    for one, other in zip(again.predict(context=[0.3, 0.3]), expected.predict(context=[0.3, 0.3]), strict=True):
        assert np.array_equal(one, other)
    assert len(again.replica.state.reward.posterior.entries) == len(expected.replica.state.reward.posterior.entries)


def test_arms_that_came_and_left_and_answers_of_early_trials(tmp_path, monkeypatch, soon):
    made, url = policy(), f"sqlite:///{tmp_path}/s.db"
    studies = []
    for least in (120, math.inf):
        monkeypatch.setattr(snapshots, "LEAST", least)
        where = url if least == 120 else f"sqlite:///{tmp_path}/twin.db"
        study = nr.Study(made, seed=3, storage=where, name="s")
        go_on(study, 0, 40)
        study.add_arms([1.5])
        study.retire_arm(2)
        go_on(study, 40, 40)
        study.close()
        study = nr.Study.open(storage=where, name="s")
        assert isinstance(study.replica.record.trials, list) == (least == math.inf)
        pending = [trial for trial in study.trials if trial.state == "pending" and trial.number < 45]
        study.tell(pending[0], 0.7)  # of an early trial
        study.abandon(pending[1].number, "gone")
        study.tell(f"e{pending[2].number}", 0.1)
        arms = go_on(study, 80, 10)
        study.tell(pending[0], 0.9, revise=True)  # A correction replays the record.
        studies.append((arms, go_on(study, 90, 10), [trial.reward for trial in study.trials]))
    assert studies[0] == studies[1]


def test_two_programs_and_a_call_that_is_rolled_back(tmp_path, soon):
    url = f"sqlite:///{tmp_path}/s.db"
    one = nr.Study(policy(), seed=3, storage=url, name="s")
    go_on(one, 0, 100)
    other, quick = opened(url)
    assert quick
    for number in range(100, 120, 2):  # Each is told of the other's trials, and its own attempt may come too late.
        go_on(one, number, 1)
        go_on(other, number + 1, 1)
    assert other.ask([0.5, 0.5]).arm == nr.Study.open(storage=url, name="s").trials[-1].arm
    one.replica.record.trials.own.clear()
    assert [trial.number for trial in one.trials] == list(range(len(other.trials)))


def change(path, statement, *values):
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(statement, values).rowcount > 0


def another_head(path, **facts):
    with closing(sqlite3.connect(path)) as connection, connection:
        (head,) = connection.execute("SELECT data FROM snapshots WHERE part = -1").fetchone()
        text = json.dumps(json.loads(head[snapshots.DIGEST :]) | facts).encode()
        digest = snapshots.hashlib.sha256(text).hexdigest().encode()
        connection.execute("UPDATE snapshots SET data = ? WHERE part = -1", (digest + text,))


FAULTS = {
    "head": lambda path: change(path, "UPDATE snapshots SET data = substr(data, 2) WHERE part = -1"),
    "no head, as after a kill": lambda path: change(path, "DELETE FROM snapshots WHERE part = -1"),
    "part": lambda path: change(path, "UPDATE snapshots SET data = zeroblob(length(data)) WHERE part = 0"),
    "part gone": lambda path: change(path, "DELETE FROM snapshots WHERE part = 0"),
    "text for bytes": lambda path: change(path, "UPDATE snapshots SET data = 'x' WHERE part = 0"),
    "format": lambda path: another_head(path, format=0),
    "version": lambda path: another_head(path, version="0.0.1"),
    "machine": lambda path: another_head(path, machine="abacus"),
    "policy": lambda path: another_head(path, policy="0"),
    "seed": lambda path: another_head(path, seed="4"),
    "numbers": lambda path: another_head(path, learned={"dict": []}),
    "class": lambda path: another_head(path, learned={"new": 0, "class": "os", "kept": {}}),
    "shape": lambda path: another_head(path, arrays=[]),
    "ahead of the record": lambda path: another_head(path, count=10_000),
    "last trial": lambda path: change(path, "UPDATE trials SET asked_at = asked_at + 1 WHERE number = 87"),
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A file with a snapshot, and what the study predicts."""
    folder = tmp_path_factory.mktemp("kept")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshots, "LEAST", 120)
        patch.setattr(snapshots, "AT_CLOSE", 1)
        with nr.Study(policy(), seed=3, storage=f"sqlite:///{folder}/s.db", name="s") as study:
            go_on(study, 0, 88)
            predicted = study.predict(context=[0.3, 0.3])
        assert opened(f"sqlite:///{folder}/s.db")[1]
    return folder / "s.db", predicted


@pytest.fixture
def path(kept, tmp_path):
    return shutil.copy(kept[0], tmp_path / "s.db")


@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_is_wrong_drops_a_snapshot(path, kept, soon, caplog, fault):
    FAULTS[fault](path)
    with caplog.at_level(logging.WARNING, "nilregret.study"):
        again, quick = opened(f"sqlite:///{path}")
    assert not quick
    assert ("The record is replayed" in caplog.text) == (fault != "no head, as after a kill")
    assert np.array_equal(again.predict(context=[0.3, 0.3]), kept[1])
    go_on(again, 88, 1)
    assert opened(f"sqlite:///{path}")[1]  # from a new one


def rows(path, statement):
    with closing(sqlite3.connect(path)) as connection, connection:
        (found,) = connection.execute(statement).fetchone()
    return found


def test_another_study_of_the_name_has_no_snapshot(path, soon):
    study, _ = opened(f"sqlite:///{path}")
    assert rows(path, "SELECT count(*) FROM snapshots") > 1
    study.replica.handle.storage.delete("s")
    assert rows(path, "SELECT count(*) FROM snapshots") == 0
    assert nr.Study(policy(), seed=4, storage=f"sqlite:///{path}", name="s").ask([0.1, 0.1]).number == 0


def test_early_trials_are_checked_when_they_are_read(path, soon):
    change(path, "UPDATE trials SET context = '[0.5, 7.0]' WHERE number = 8")
    again, quick = opened(f"sqlite:///{path}")
    assert quick
    with pytest.raises(StorageError, match="damaged: its context"):
        list(again.trials)
    done = CliRunner().invoke(main, ["studies", str(path), "--check"])
    assert done.exit_code == 4
    assert "Trial 8 of study 's'" in done.output
    change(path, "DELETE FROM trials WHERE number = 8")
    with pytest.raises(StorageError, match="no longer all in the storage"):
        again.trials[8]


@pytest.mark.nightly
def test_a_kill_while_snapshots_are_written(tmp_path, monkeypatch):
    """Each decision writes a snapshot, so that most kills come while one is being written."""
    url, script = f"sqlite:///{tmp_path}/s.db", (
        "import sys, itertools; from nilregret.study import snapshots; import nilregret as nr\n"
        "from tests.test_snapshots import go_on, policy\n"
        "snapshots.LEAST, snapshots.EVERY, snapshots.CHUNK = 30, 2, 2**14\n"
        "study = nr.Study(policy(), seed=3, storage=sys.argv[1], name='s')\n"
        "for number in itertools.count(len(study.trials)): go_on(study, number, 1); print(number, flush=True)\n"
    )  # fmt: skip
    for kill in (45, 50):
        command = [sys.executable, "-c", script, url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1]) as process:
            while int(process.stdout.readline()) < kill:
                pass
            process.kill()
        found = []
        for least in (30, math.inf):
            monkeypatch.setattr(snapshots, "LEAST", least)
            study, quick = opened(url)
            assert quick == (least == 30)
            found.append(([trial.arm for trial in study.trials], study.predict(context=[0.3, 0.3])))
        assert found[0][0] == found[1][0]
        assert len(found[0][0]) > kill
        assert np.array_equal(found[0][1], found[1][1])


@pytest.mark.parametrize(
    "options",
    [{"answers": "silent no"}, {"world": "tidal"}, {"constraints": 1}, {"regret": "simple"}],
    ids=lambda options: next(iter(options.values())),
)
def test_others_and_short_studies_leave_nothing_behind(tmp_path, soon, monkeypatch, options):
    monkeypatch.setattr(snapshots, "LEAST", 10)
    url = f"sqlite:///{tmp_path}/s.db"
    with nr.Study(policy(**options), seed=3, storage=url, name="s") as study:
        for _ in range(8):
            more = {"constraints": [-1.0]} if "constraints" in options else {}
            study.tell(study.ask([0.5, 0.5]), 0.1, **more)
    monkeypatch.setattr(snapshots, "LEAST", 100_000)
    with nr.Study(policy(), seed=3, storage=url, name="t") as study:
        go_on(study, 0, 8)
    assert rows(f"{tmp_path}/s.db", "SELECT count(*) FROM sqlite_master WHERE name = 'snapshots'") == 0


def test_of_two_that_are_written_at_once_one_is_left(path):
    study, _ = opened(f"sqlite:///{path}")
    handle = study.replica.handle
    head, parts = handle.snapshots.read(handle.study)

    def slowly():
        for part in parts:
            yield part
            handle.snapshots.write(handle.study, head, parts)

    handle.snapshots.write(handle.study, b"late", slowly())
    assert handle.snapshots.read(handle.study) == (head, parts)
    assert rows(path, "SELECT count(*) FROM snapshots") == 1 + len(parts)


def test_a_snapshot_that_cannot_be_written_is_not_missed(tmp_path, soon, monkeypatch, caplog):
    url = f"sqlite:///{tmp_path}/s.db"
    study = nr.Study(policy(), seed=3, storage=url, name="s")

    def full(*_):
        raise StorageError("The disk is full.")

    monkeypatch.setattr(study.replica.handle.storage.snapshots, "write", full)
    with caplog.at_level(logging.WARNING, "nilregret.study"):
        go_on(study, 0, 88)
    assert "No snapshot of study 's' was written: The disk is full." in caplog.text
    assert isinstance(study.replica.record.trials, list)


@pytest.mark.parametrize("most", [0, 8], ids=["read again", "held"])
def test_early_trials_are_a_list(monkeypatch, most):
    monkeypatch.setattr(early_trials, "HELD", most)
    study = nr.Study(nr.auto(nr.Box(0, 1)))
    trials = [study.tell(study.ask(), 0.5) for _ in range(12)]
    reads = []

    def read(first, before):
        reads.append((first, before))
        return trials[first:before]

    found = EarlyTrials(8, read, 16, [trials[3]], trials[8:])
    assert list(found) == trials
    assert [found[i] for i in (0, 1, 2, 3, 8, -1, -5)] == [trials[i] for i in (0, 1, 2, 3, 8, -1, -5)]
    assert reads == ([(0, 8)] if most else [(0, 8), (0, 1), (1, 8)])  # One by one, and then onwards.
    assert list(found[:]) == trials
    assert len(reads) == (1 if most else 4)
    assert found[2:10:3] == trials[2:10:3]
    copy = found[:]
    found[9:10] = (trials[0],)
    found[4] = trials[1]
    found.append(trials[2])
    assert (found[9], found[4], found[12], len(found)) == (trials[0], trials[1], trials[2], 13)
    assert list(copy) == trials
    assert found.at_hand == [trials[3], trials[1], trials[8], trials[0], trials[10], trials[11], trials[2]]
    del found[10:]
    assert len(found) == 10
    for index in (10, -11):
        with pytest.raises(IndexError):
            found[index]
