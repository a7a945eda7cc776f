"""The small form of `benchmarks/attack.py hostile`, and each kind of text or row that once did harm."""

import json
import re
import sqlite3
from contextlib import closing

import pytest

import nilregret as nr

from . import hostile


def test_hostile_texts_are_refused_or_describe_a_policy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    counts, faults = hostile.attack_texts(250, seed=1)
    assert faults == []
    assert counts["refused"] > 150
    assert counts["used"] > 3
    assert list(tmp_path.iterdir()) == []


def test_hostile_rows_are_refused_or_could_have_come_about(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    counts, faults = hostile.attack_rows(60, tmp_path, seed=1)
    assert faults == []
    assert counts["executions"] == 0
    assert counts["refused"] > 30
    assert counts["used"] > 2


@pytest.mark.parametrize("text", hostile.RAW, ids=range(len(hostile.RAW)))
def test_texts_that_are_no_policy(text):
    with pytest.raises(nr.errors.InvalidInput):
        nr.Policy.from_json(text)


POLICY = nr.gp_ucb(nr.Space(x=nr.Int(1, 3)).grid(3), nr.Matern(2.5, 0.5), noise=0.1)
NESTED = '{"type": "Sum", "left": ' * 2000 + "1" + "}" * 2000


@pytest.mark.parametrize(
    "change",
    [
        ("domain", {"type": []}),
        ("domain", {"type": "Arms", "points": [[0.0]], "space": 1}),
        ("domain", {"type": "Arms", "space": 1, "counts": [["x", 3]]}),
        ("domain", {"type": "Space", "parameters": [["x", 1]]}),
        ("domain", {"type": "Space", "parameters": [[["x"], 1]]}),
        ("confidence", ""),
        ("score", None),
        ("kernel", [1]),
        ("algorithm", 3),
        ("noise", 10**400),
        ("noise", "0.1"),
        ("noise", True),
        ("memory", {"type": "SlidingWindow", "rounds": 2.5}),
        ("memory", {"type": "RestartAt", "rounds": 10}),
        ("noise", {"type": "infinity", "sign": "x"}),
        ("extra", 1),
    ],
)
def test_a_field_that_does_not_fit_is_named(change):
    data = json.loads(POLICY.to_json())
    data[change[0]] = change[1]
    with pytest.raises(nr.errors.InvalidInput):
        nr.Policy.from_json(json.dumps(data))


@pytest.mark.parametrize(
    ("domain", "context", "kernel", "message"),
    [
        (lambda: nr.Arms.grid(0, 1, 3), lambda: None, lambda: nr.Matern(2.5, 1e-320), "`lengthscale` is"),
        (lambda: nr.Box([0.0], [1.0]), lambda: nr.Arms([-1e308, 1.0]), lambda: nr.Matern(2.5, 0.5), "beyond 1e"),
        (lambda: nr.Box([0.0], [1e200]), lambda: None, lambda: nr.Linear(), "beyond 1e"),
        (lambda: nr.Box([0.0], [1e90]), lambda: None, lambda: nr.Linear(), "The prior variance reaches 1e"),
    ],
)
def test_kernels_that_overflow_on_the_domain_are_refused_before_the_first_question(domain, context, kernel, message):
    """They came through as NaN, and the first question was a foreign exception."""
    with pytest.raises(nr.errors.InvalidInput, match=message):
        nr.algorithms.greedy_mean(domain(), kernel(), noise=0.1, context=context())


def test_nesting_without_end_is_refused_in_both_directions():
    with pytest.raises(nr.errors.InvalidInput):
        nr.Policy.from_json(NESTED)
    kernel = nr.Matern(2.5, 0.5)
    for _ in range(150):
        kernel = kernel + nr.Linear()
    with pytest.raises(nr.errors.InvalidInput, match="nested"):
        nr.gp_ucb(POLICY.domain, kernel, noise=0.1).to_json()


def stored(tmp_path):
    """Trials 0 told, 1 failed, 2 pending, 3 added, 4 told; events 1 to 8."""
    study = nr.Study(POLICY, storage=f"sqlite:///{tmp_path}/a.db")
    first, second, _ = study.ask(count=3)
    study.tell(second, 0.5)  # so that numbers and orders differ
    study.fail(first, "broken")
    study.add({"x": 3}, 1.5)
    study.tell(study.ask(), 0.25)
    study.close()
    return study


@pytest.mark.parametrize(
    ("number", "change"),
    [
        (1, "told_order = NULL"),
        (1, "told_order = 'x'"),
        (1, "told_order = 1"),
        (1, "told_order = 9"),
        (1, "told_order = told_order + 0.5"),
        (2, "told_order = 9"),
        (1, "told_at = NULL"),
        (0, "asked_order = 3000"),
        (0, "asked_order = 0"),
        (4, "asked_order = -1"),
        (3, "told_order = 99, asked_order = 99"),
        (1, "number = -1"),
        (4, "number = 5"),
        (0, "reward = 'x'"),
        (0, "reward = 'x', reason = NULL"),
        (0, "reason = ' '"),
        (0, "reward = 1.0"),
        (1, "reward = 9e999"),
        (1, "reward = 1e300"),
        (1, "reward = NULL, state = 'pending'"),
        (2, "state = 'observed'"),
        (2, "reward = 1.0"),
        (1, "constraints = '[NaN]'"),
        (1, "constraints = '0.5'"),
        (1, "constraints = '[1e200]'"),
        (2, "constraints = '[0.5]'"),
        (1, "explored = 1"),
        (1, "explored = 2"),
        (1, "explored = 'x'"),
        (1, "context = '[0.5]'"),
        (1, "arm = NULL"),
        (1, "arm = 0.5"),
        (1, "point = '[[0.5]]'"),
        (1, "point = '[1" + "0" * 400 + "]'"),
        (1, "point = '[0.123]'"),
        (1, "parameters = '[1]'"),
        (1, "parameters = NULL"),
        (1, "parameters = '{\"x\": true}'"),
        (1, "asked_at = 9e999"),
        (1, "asked_at = 'x'"),
        (1, "reason = 'why'"),
        (0, "reason = CAST(x'ff' AS TEXT)"),
    ],
)
def test_rows_that_cannot_be_are_refused_by_the_number_of_the_trial(tmp_path, number, change):
    stored(tmp_path)
    connection = sqlite3.connect(tmp_path / "a.db")
    connection.execute(f"UPDATE trials SET {change} WHERE number = {number}")
    connection.commit()
    connection.close()
    before = (tmp_path / "a.db").read_bytes()
    with pytest.raises(nr.errors.StorageError) as caught:
        nr.Study.open(storage=f"sqlite:///{tmp_path}/a.db")
    assert "CAST" in change or re.search(r"[Tt]rial -?\d", str(caught.value))  # a text that is none has no row
    assert (tmp_path / "a.db").read_bytes() == before


def test_constraints_of_another_length_are_refused(tmp_path):
    policy = nr.gp_ucb_noiseless_constraints(
        POLICY.domain, nr.Matern(2.5, 0.5), noise=0.1, norm_bound=1.0, epoch=5, epochs=3, constraints=2
    )
    study = nr.Study(policy, storage=f"sqlite:///{tmp_path}/a.db")
    study.tell(study.ask(), 0.5, constraints=[0.0, 1.0])
    study.close()
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        connection.execute("UPDATE trials SET constraints = '[0.0, 1.0, 2.0]'")
    with pytest.raises(nr.errors.StorageError, match=r"Trial 0 .*3 constraint values; the policy has 2"):
        nr.Study.open(storage=f"sqlite:///{tmp_path}/a.db")


@pytest.mark.parametrize(
    "change",
    ["about = ''", "about = '[]'", "about = '{'", "format = 'x'", "format = 0", "seed = '-1'", "seed = 'x'",
     "created_at = 'x'", "policy = CAST(x'ff' AS TEXT)", "policy = x'7b7d'", "policy = '1'"],
)  # fmt: skip
def test_damaged_studies_are_refused(tmp_path, change):
    stored(tmp_path)
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        connection.execute(f"UPDATE studies SET {change}")
    url = f"sqlite:///{tmp_path}/a.db"
    for attempt in (lambda: nr.Study.open(storage=url), lambda: nr.Study(POLICY, storage=url)):
        with pytest.raises((nr.errors.StorageError, nr.errors.InvalidInput)):
            attempt()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE trials SET told_order = 10, told_at = 1.0, state = 'observed', reward = 1e300 WHERE number = 2",
        "UPDATE trials SET told_order = 12, told_at = 1.0, state = 'observed', reward = 1.0 WHERE number = 2",
        "UPDATE trials SET reward = 7.0 WHERE number = 4",
        "UPDATE trials SET arm = 0, point = '[0.0]', parameters = '{\"x\": 1}', told_order = 9, told_at = 1.0, "
        "state = 'observed', reward = 1.0, asked_at = 0.5 WHERE number = 2",
        "INSERT INTO trials (study, number, state, arm, point, parameters, explored, reward, asked_order, asked_at, "
        "told_order, told_at, last_order) SELECT study, 5, state, arm, point, parameters, explored, reward, 10, "
        "asked_at, 10, told_at, 10 FROM trials WHERE number = 3",
        "DELETE FROM trials WHERE number = 4",
    ],
)
def test_what_is_read_later_is_checked_likewise(tmp_path, change):
    study = stored(tmp_path)
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        connection.execute(change)
        connection.execute("UPDATE trials SET last_order = max(asked_order, coalesce(told_order, 0))")
        connection.execute("UPDATE studies SET stamp = 'another'")  # who writes says so
    before = (tmp_path / "a.db").read_bytes()
    with pytest.raises(nr.errors.StorageError):
        study.ask()
    study.close()
    assert (tmp_path / "a.db").read_bytes() == before
