"""What version 0.2, which was called noregret, has stored is read."""

import json
import sqlite3
from pathlib import Path

import optuna
import pytest
import sqlalchemy as sql

import nilregret as nr
from nilregret.integrations.optuna import NoRegretSampler
from nilregret.serve.auth.login import cookie_of

STUDIES = Path(__file__).parent / "golden" / "studies_0_2.sql"  # what 0.2 wrote into an SQLite file, as SQL


@pytest.fixture
def old_file(tmp_path):
    path = tmp_path / "old.db"
    connection = sqlite3.connect(path)
    connection.executescript(STUDIES.read_text())
    connection.close()
    return f"sqlite:///{path}"


def test_studies_in_an_old_file_go_on_with_the_decisions_of_0_2(old_file):
    with nr.Study.open(storage=old_file, name="shop") as study:
        assert [trial.state for trial in study.trials].count("observed") == 12
        assert study.trials[3].reason == "broken"
        asked = study.ask().parameters
        assert asked["kind"] == "b"
        assert asked["price"] == pytest.approx(3.907, rel=1e-3)  # as near as the search of an ask ends to the maximum
    with nr.Study.open(storage=old_file, name="changing") as study:
        assert study.ask().arm == 25


def test_old_tables_on_a_server_are_renamed_when_they_are_opened(postgres):
    url, old = postgres.url(), "noregret_"
    arms = nr.Arms.grid(0, 1, 9)
    policy = nr.gp_ucb(arms, nr.Matern(2.5, 0.2), noise=0.1)
    with nr.Study(policy, storage=url, name="old") as study:
        study.tell(study.ask(), 0.5)
    engine = sql.create_engine(url)
    with engine.begin() as connection:
        for name in sql.inspect(connection).get_table_names():
            connection.exec_driver_sql(f"ALTER TABLE {name} RENAME TO {name.replace('nilregret_', old)}")
    with nr.Study.open(storage=url, name="old") as study:
        assert study.trials[0].reward == 0.5
        study.tell(study.ask(), 0.7)
    with engine.connect() as connection:
        assert not [name for name in sql.inspect(connection).get_table_names() if name.startswith(old)]
    engine.dispose()


def test_running_trials_of_an_old_study_of_optuna_are_known():
    """Each worker knows what another one's sampler of 0.2 has decided before it is suggested."""
    study = optuna.create_study(sampler=NoRegretSampler(seed=0))
    for _ in range(3):
        trial = study.ask()
        study.tell(trial, trial.suggest_float("x", 0.0, 1.0))
    running = study.ask()
    assert set(running.relative_params) == {"x"}
    notes = study._storage.get_trial(running._trial_id).system_attrs
    (key,) = [key for key in notes if key.startswith("nilregret:relative")]
    values = []
    for prefix in ("nilregret", "noregret"):
        other = optuna.create_study(sampler=NoRegretSampler(seed=0))
        for each in study.trials[:3]:
            other.add_trial(each)
        trial = other.ask()
        for i, part in enumerate([json.dumps([{"x": 0.25}, ["x"]])]):
            other._storage.set_trial_system_attr(trial._trial_id, f"{prefix}:relative:{i}", part)
        values.append(other.ask().relative_params["x"])
    assert values[0] == values[1]
    assert key == "nilregret:relative:0"


def test_browsers_that_logged_in_to_0_2_stay_logged_in():
    assert cookie_of({"cookie": "noregret_session=old"}) == "old"
    assert cookie_of({"cookie": "noregret_session=old; nilregret_session=new"}) == "new"
    assert cookie_of({"cookie": "__Host-noregret_session=old"}, tls=True) == "old"
    assert cookie_of({"cookie": "noregret_session=old"}, tls=True) is None
