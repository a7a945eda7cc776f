"""Values of several objectives on record: told, corrected, stored, and refused where they are damaged."""

import json
import math
import pickle
import sqlite3

import pytest
from sklearn.dummy import DummyClassifier

import nilregret as nr
from nilregret.errors import InvalidInput, NoRegretWarning, StorageError, TrialError
from nilregret.storage.trial import Other

SPACE = nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1))
POLICY = nr.auto(SPACE, objectives=("loss", "recall"))
LIMITED = nr.auto(SPACE, objectives=("loss", "recall"), constraints=1)
GOALS = ("minimize", "maximize")
ARMS = nr.Arms.grid(0, 1, 5)


def study_of(policy=POLICY, **more):
    return nr.Study(policy, goal=GOALS, **more)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (0.3, r"`reward` is 0.3, and a trial of this study has 2 objectives \(loss, recall\)"),
        ((0.3,), "1 number, .*a dict of these names"),
        ((1.0, 2.0, 3.0), "3 numbers"),
        ({"loss": 1.0}, "has no 'recall'.*tell all at once"),
        ({"loss": 1.0, "recal": 2.0}, "'recal'.*Did you mean 'recall'"),
        ({1: 2.0}, "names 1"),
        ((math.nan, 1.0), "`reward.loss` is nan: it must be finite.*fail"),
        ((1.0, math.inf), "`reward.recall` is inf"),
        ((1.0, None), "`reward.recall` must be a number"),
        ((1.0, [1.0, 2.0]), "`reward.recall` must be a number"),
        ({"loss": 1.0, "recall": "high"}, "`reward.recall` must be a number"),
        ("12", "`reward` is '12'"),
        (None, "`reward` is None.*fail"),
        ({1.0, 2.0}, "in this order"),
        (nr.study.Rewards(count=2, sum=1.0, squares=1.0), "2 objectives"),
    ],
)
def test_values_that_are_none(values, words):
    study = study_of()
    trial = study.ask()
    with pytest.raises(InvalidInput, match=words):
        study.tell(trial, values)
    with pytest.raises(InvalidInput, match=words):
        study.add({"x": 0.5, "y": 0.5}, values)
    with pytest.raises(InvalidInput, match=words):
        study.tell_many([(trial, values)])
    assert list(study.trials) == [trial]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"std": 0.1}, "`std` is 0.1, and a trial of this study has 2 objectives"),
        ({"std": (0.1, -1.0)}, "`std.recall` is -1"),
        ({"std": {"los": 0.1}}, "Did you mean 'loss'"),
        ({"constraints": [0.0]}, "no constraints: leave `constraints` out"),
    ],
)
def test_what_comes_with_values_and_does_not_fit(given, words):
    study = study_of()
    with pytest.raises(InvalidInput, match=words):
        study.tell(study.ask(), (1.0, 2.0), **given)


def test_constraint_values_come_with_the_objectives():
    study = study_of(LIMITED)
    trial = study.ask()
    with pytest.raises(InvalidInput, match="come together with the objectives"):
        study.tell(trial, constraints=[0.0])
    with pytest.raises(TrialError, match="told without their 1 constraint value"):
        study.tell(trial, (1.0, 2.0))
    assert study.tell(trial, (1.0, 2.0), constraints=[0.0]).feasible


def test_one_objective_takes_no_tuple():
    study = nr.Study(nr.auto(SPACE))
    for values in ((1.0, 2.0), {"loss": 1.0}):
        with pytest.raises(InvalidInput, match="`reward` must be a number"):
            study.tell(study.ask(), values)


def test_an_answer_is_idempotent_and_corrected():
    study = study_of(LIMITED)
    first = study.tell(study.ask(), {"recall": 12, "loss": 0.3}, std={"loss": 0.1}, constraints=[-1.0])
    assert (first.values, first.stds, first.reward, first.others) == ((0.3, 12.0), (0.1, None), 0.3, (Other(12.0),))
    assert study.tell(0, (0.3, 12.0), std=(0.1, None), constraints=[-1.0]) is first
    for other in ({"std": (0.1, 0.2)}, {"std": None}, {"constraints": [-2.0], "std": (0.1, None)}):
        with pytest.raises(TrialError, match=r"objectives \(0.3, 12.0\), constraints \[-1.0\]\), and now"):
            study.tell(0, (0.3, 12.0), **other)
    order = study.replica.record.order
    study.tell(0, (0.3, 13.0), revise=True)
    study.fail(0, "it was another file", revise=True)
    with pytest.raises(TrialError, match="told without their 1 constraint value"):
        study.tell(0, (0.4, 14.0), revise=True)
    now = study.tell(0, (0.4, 14.0), constraints=[0.0], revise=True)
    assert [(answer.reward, answer.others) for answer in now.corrected] == [
        (0.3, (Other(12.0),)), (0.3, (Other(13.0),)), (None, ()),
    ]  # fmt: skip
    assert [now.as_of(order + n).values for n in range(4)] == [(0.3, 12.0), (0.3, 13.0), None, (0.4, 14.0)]
    assert now.as_of(order) == first
    assert (now.asked().values, now.asked().others) == (None, ())
    assert pickle.loads(pickle.dumps(now)) == now != first
    assert "values=(0.4, 14.0)" in repr(now)
    assert "(0.4, 14.0)" in now._repr_html_()


def test_several_answers_at_once():
    study = study_of(LIMITED)
    trials = study.ask(count=2)
    told = study.tell_many([
        (trials[0], (1.0, 2.0), [0.1]),
        {"trial": 1, "reward": {"loss": 3, "recall": 4}, "constraints": [-1.0], "std": (None, 0.1)},
    ])  # fmt: skip
    assert [trial.values for trial in told] == [(1.0, 2.0), (3.0, 4.0)]
    assert told[1].stds == (None, 0.1)


ROW = {"others": [[12.0, None]], "constraints": [-1.0]}


@pytest.mark.parametrize(
    "stored",
    [
        "{}",
        json.dumps({"others": [[12.0, None]], "constraint": [-1.0]}),
        json.dumps(ROW | {"more": 1}),
        json.dumps(ROW | {"others": 12.0}),
        json.dumps(ROW | {"others": [12.0]}),
        json.dumps(ROW | {"others": [["12", None]]}),
        json.dumps(ROW | {"others": [[True, None]]}),
        json.dumps(ROW | {"others": [[12.0, "0.1"]]}),
        json.dumps(ROW | {"others": [[12.0, -0.1]]}),
        json.dumps(ROW | {"others": [[12.0, None], [1.0, None]]}),
        json.dumps(ROW | {"others": []}),
        json.dumps(ROW | {"constraints": None}),
        json.dumps(ROW | {"constraints": [0.0, 0.0]}),
        '{"others": [[1e999, null]], "constraints": [-1.0]}',
        '{"others": [[NaN, null]], "constraints": [-1.0]}',
        "[-1.0]",
        "NULL",
    ],
)
@pytest.mark.parametrize("corrected", [False, True])
def test_damaged_values_are_refused(tmp_path, stored, corrected):
    path = tmp_path / "front.db"
    with study_of(LIMITED, storage=f"sqlite:///{path}") as study:
        study.tell(study.ask(), (0.3, 12.0), constraints=[-1.0])
        if corrected:
            study.tell(0, (0.4, 13.0), constraints=[-1.0], revise=True)
    connection = sqlite3.connect(path)
    if not corrected:
        connection.execute("UPDATE trials SET constraints = ?", (None if stored == "NULL" else stored,))
    else:
        (text,) = connection.execute("SELECT corrected FROM trials").fetchone()
        (answer,) = json.loads(text)
        given = json.loads("null" if stored == "NULL" else stored)
        answer |= {"others": given.get("others")} | given if isinstance(given, dict) else {"others": given}
        connection.execute("UPDATE trials SET corrected = ?", (json.dumps([answer]),))
    connection.commit()
    connection.close()
    with pytest.raises(StorageError, match=r"Trial 0 .*damaged"):
        nr.Study.open(storage=f"sqlite:///{path}")


def test_values_of_several_objectives_in_a_study_of_one_are_damage(tmp_path):
    path = tmp_path / "one.db"
    with nr.Study(nr.auto(SPACE), storage=f"sqlite:///{path}") as study:
        study.tell(study.ask(), 0.3)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE trials SET constraints = ?", (json.dumps(ROW),))
    connection.commit()
    connection.close()
    with pytest.raises(StorageError, match=r"further objectives are \[12.0\], and the policy has 1"):
        nr.Study.open(storage=f"sqlite:///{path}")


def test_each_objective_is_compared_with_its_scales():
    kernel = nr.Matern(2.5, 0.5)
    policy = nr.algorithms.hypervolume_ucb(ARMS, kernel, noise=0.01, objectives=2, reference=(-5.0, -5.0))
    study = nr.Study(policy, goal="maximize")
    for n in range(3):
        study.tell(study.ask(), (0.1 * n, 1000.0))
    trial = study.ask()
    with pytest.warns(NoRegretWarning, match=r"Objective 'objective 2': Rewards lie far"):
        study.tell(trial, (0.3, 1000.0))
    assert "rewards of objective 2" in study._warned
    assert "rewards" not in study._warned


def test_what_learns_from_one_reward_says_so(tmp_path):
    study = study_of(storage=f"sqlite:///{tmp_path}/front.db")
    study.tell(study.ask(), (0.3, 12.0))
    for like in (study, f"sqlite:///{tmp_path}/front.db"):
        with pytest.raises(InvalidInput, match="has 2 objectives, and `like` learns from one"):
            nr.auto(SPACE, like=like)
    search = pytest.importorskip("nilregret.integrations.sklearn").NoRegretSearchCV
    with pytest.raises(InvalidInput, match="has 2 objectives, and a search maximises one score"):
        search(DummyClassifier(), SPACE, policy=POLICY).fit([[0.0], [1.0]], [0, 1])
