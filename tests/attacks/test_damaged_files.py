"""Files that were cut, overwritten, swapped, deleted or are somebody else's: refused in words, and never written to."""

import copy
import pickle
import random
import shutil
import sqlite3

import numpy as np
import pytest

import nilregret as nr

SPACE = nr.Space(x=nr.Float(0.1, 10.0, log=True), kind=nr.Choice("a", "b"))
POLICY = nr.gp_ucb(SPACE.grid(5), nr.Matern(2.5, 0.5), noise=0.1)


def url_of(path):
    return f"sqlite:///{path}"


def made(path, rounds=6, seed=0, name="study"):
    study = nr.Study(POLICY, seed=seed, storage=url_of(path), name=name)
    for _ in range(rounds):
        study.tell(study.ask(), 0.5)
    study.ask()
    study.close()  # what was written is in the file itself
    return study


def execute(path, *statements):
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


OPTUNA = [
    "CREATE TABLE studies (study_id INTEGER PRIMARY KEY, study_name VARCHAR(512) NOT NULL)",
    "CREATE TABLE trials (trial_id INTEGER PRIMARY KEY, number INTEGER, study_id INTEGER, state VARCHAR(8))",
    "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)",
    "INSERT INTO studies VALUES (1, 'theirs')",
]


@pytest.mark.parametrize(
    "statements",
    [
        OPTUNA,
        OPTUNA[1:2],
        ["CREATE TABLE notes (text TEXT)"],
        ["CREATE TABLE studies (id INTEGER)", "CREATE TABLE trials (study INTEGER)"],
        ["PRAGMA application_id = 77"],
        ["CREATE VIEW studies AS SELECT 1", "CREATE VIEW trials AS SELECT 1"],
    ],
)
def test_databases_of_other_programs_are_not_touched(tmp_path, statements):
    path = tmp_path / "optuna.db"
    execute(path, *statements)
    before = path.read_bytes()
    for attempt in (
        lambda: nr.Study(POLICY, storage=url_of(path)),
        lambda: nr.Study.open(storage=url_of(path)),
        lambda: nr.Study.open(storage=url_of(path), name="theirs"),
    ):
        with pytest.raises(nr.errors.StorageError, match="another program"):
            attempt()
        assert path.read_bytes() == before
        assert [file.name for file in tmp_path.iterdir()] == ["optuna.db"]


def test_opening_an_empty_file_makes_nothing_in_it(tmp_path):
    path = tmp_path / "empty.db"
    path.touch()
    with pytest.raises(nr.errors.InvalidInput, match="empty database"):
        nr.Study.open(storage=url_of(path))
    assert path.read_bytes() == b""
    made(path)
    assert len(nr.Study.open(storage=url_of(path)).trials) == 7


def test_a_file_of_a_missing_study_is_not_touched(tmp_path):
    path = tmp_path / "a.db"
    made(path)
    before = path.read_bytes()
    with pytest.raises(nr.errors.InvalidInput, match="no study 'other'"):
        nr.Study.open(storage=url_of(path), name="other")
    assert path.read_bytes() == before


def replacements():
    def another_study(path):
        made(path, seed=1)

    def same_study_made_again(path):
        made(path)

    def empty_database(path):
        path.touch()

    def foreign(path):
        execute(path, *OPTUNA)

    def text(path):
        path.write_text("notes " * 1000)

    return [another_study, same_study_made_again, empty_database, foreign, text]


@pytest.mark.parametrize("replace", replacements(), ids=lambda each: each.__name__)
def test_a_file_replaced_under_an_open_study_is_not_written_to(tmp_path, replace):
    path = tmp_path / "a.db"
    study = made(path)
    path.rename(tmp_path / "kept.db")
    replace(path)
    before = path.read_bytes()
    for call in (
        study.ask,
        lambda: study.tell(6, 1.0),
        lambda: study.fail(6, "no"),
        lambda: study.trials,
        study.predict,
    ):
        with pytest.raises(nr.errors.StorageError):
            call()
        assert path.read_bytes() == before
    path.unlink()
    (tmp_path / "kept.db").rename(path)
    assert study.tell(6, 1.0).reward == 1.0
    assert nr.Study.open(storage=url_of(path)).ask().arm == study.replica.state.settled().decide().arm


@pytest.mark.parametrize("more", [0, 3])
def test_an_older_copy_of_the_same_study_is_not_written_to(tmp_path, more):
    """It has the study's own token: only its last events tell it apart."""
    path, copy_of_it = tmp_path / "a.db", tmp_path / "copy.db"
    study = made(path)
    shutil.copy(path, copy_of_it)
    study.tell(6, 1.0)
    study.tell(study.ask(), 2.0)
    other = nr.Study.open(storage=url_of(copy_of_it))
    for _ in range(more):
        other.tell(other.ask(), -1.0)
    other.close()
    study.close()
    shutil.copy(copy_of_it, path)
    before = path.read_bytes()
    with pytest.raises(nr.errors.StorageError):
        study.ask()
    assert path.read_bytes() == before


def test_a_database_deleted_in_use_is_an_error_and_leaves_no_file(tmp_path):
    path = tmp_path / "a.db"
    study = made(path)
    path.unlink()
    for call in (study.ask, lambda: study.tell(6, 1.0), lambda: study.trials):
        with pytest.raises(nr.errors.StorageError, match="deleted or moved"):
            call()
        assert list(tmp_path.iterdir()) == []


def test_a_database_deleted_between_two_calls_is_an_error_and_none_is_made(tmp_path):
    """With a connection that is open: it could go on writing to a file without a name."""
    path = tmp_path / "a.db"
    study = made(path)
    study.ask()
    path.unlink()
    for call in (study.ask, lambda: study.tell(6, 1.0), lambda: study.trials):
        with pytest.raises(nr.errors.StorageError, match="deleted or moved"):
            call()
        assert not path.exists()


def test_cut_and_overwritten_files_are_refused_or_whole(tmp_path):
    """Never another exception, never another record; what is refused is left as it is."""
    path = tmp_path / "a.db"
    study = made(path, rounds=30)
    whole, trials = path.read_bytes(), list(study.trials)
    study.close()
    luck = random.Random(5)
    refused = 0
    for number in range(40):
        data = bytearray(whole)
        if number % 2:
            del data[luck.randrange(len(data)) :]
        else:
            start, length = luck.randrange(len(data) - 200), luck.randrange(40, 200)
            data[start : start + length] = luck.randbytes(length)
        path = (
            tmp_path / f"{number}.db"
        )  # of its own: a connection that is not collected yet keeps a log beside its file
        path.write_bytes(data)
        try:
            again = nr.Study.open(storage=url_of(path))
        except (nr.errors.StorageError, nr.errors.InvalidInput):
            refused += 1
            assert path.read_bytes() == data
        else:
            assert list(again.trials) == trials
            again.tell(again.ask(), 0.5)
            assert again.policy == POLICY
            again.close()
    assert refused > 10


@pytest.mark.parametrize("url", ["sqlite:///" + "x" * 300 + ".db", "sqlite:///a\udcff.db", "sqlite:////dev/null"])
def test_names_that_no_file_can_have_are_explained(tmp_path, monkeypatch, url):
    monkeypatch.chdir(tmp_path)
    for attempt in (lambda: nr.Study(POLICY, storage=url), lambda: nr.Study.open(storage=url)):
        with pytest.raises(nr.errors.InvalidInput, match="`storage`"):
            attempt()
    assert list(tmp_path.iterdir()) == []


def test_names_and_facts_that_cannot_be_stored_are_refused_at_once(tmp_path):
    with pytest.raises(nr.errors.InvalidInput, match="`name`"):
        nr.Study(POLICY, name="a\udcff")
    for about in ({"a": float("nan")}, {"a": {1, 2}}, 5, {"a": 1, 2: "b"}):
        with pytest.raises(nr.errors.InvalidInput, match="`about`"):
            nr.Study(POLICY, storage=url_of(tmp_path / "a.db"), about=about)
    assert list(tmp_path.iterdir()) == []


def test_a_relative_place_is_the_same_file_wherever_one_goes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study = nr.Study(POLICY, storage="sqlite:///a.db")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    study.ask()
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert len(pickle.loads(pickle.dumps(study)).trials) == 1


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda study: pickle.loads(pickle.dumps(study))])
def test_a_copy_of_a_stored_study_shares_its_record(tmp_path, way):
    study = made(tmp_path / "a.db", name="kiln")
    twin = way(study)
    assert (twin.policy, twin.seed, twin.name) == (study.policy, study.seed, "kiln")
    trial = twin.ask()
    assert list(study.trials) == list(twin.trials)
    study.tell(trial, 0.25)
    assert twin.trials[trial.number].reward == 0.25
    with pytest.raises(nr.NoRegretError, match="in memory cannot be copied"):
        way(nr.Study(POLICY))


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_copies_of_descriptions_and_trials_cannot_be_written_to(way):
    contexts = nr.Box([0.0, 0.0], [1.0, 1.0])
    for box in (contexts, way(contexts), way((contexts,))[0]):
        for side in (box.lower, box.upper):
            assert not side.flags.writeable
    arms = nr.Arms([[0.0, 1.0], [1.0, 0.0]])
    policy = nr.gp_ucb(arms, nr.kernels.Empirical(np.eye(2)), noise=0.1)
    twin = way(policy)
    assert twin == policy
    assert twin.to_json() == policy.to_json()
    assert not twin.domain.points.flags.writeable
    assert not twin.kernel.covariance.flags.writeable
    study = nr.Study(nr.gp_ucb(contexts, nr.Matern(), noise=0.1, context=nr.Arms([[0.5]])), seed=1)
    trial = study.tell(study.ask([0.5]), 1.0, constraints=[1.0])
    again = way(trial)
    assert again == trial
    assert again.parameters == trial.parameters
    for array in (again.point, again.context, again.constraints):
        assert not array.flags.writeable
