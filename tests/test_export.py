"""Trials as tables and files, and files read again."""

import csv
import json
import math
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import nilregret as nr
from nilregret.study.export import rows

from .marks import nightly

MIXED = nr.Space(
    rate=nr.Float(1e-4, 1, log=True),
    layers=nr.Int(1, 9),
    odd=nr.Choice("1", 1, True, None, "", 1.5, 'ä,\n"b"'),
    way=nr.Choice("walk", "ride"),
    load=nr.when("way", "ride", nr.Float(0, 1)),
    gear=nr.when("way", "ride", nr.Choice(None, "low")),
)
KINDS = [".csv", ".jsonl", ".parquet", ".arrow"]


def mixed_study():
    study = nr.Study(nr.auto(MIXED, context=nr.Space(hour=nr.Float(0, 24), day=nr.Choice("mon", "tue"))), seed=3)
    for number in range(20):
        trial = study.ask({"hour": number / 3, "day": "mon" if number % 2 else "tue"})
        if number % 5 == 4:
            study.fail(trial, 'out of, memory\n"now"')
        elif number != 7:
            study.tell(trial, 0.1 * number + 1 / 3)
    return study


def limited_study():
    study = nr.Study(nr.auto(nr.Box([0, -1], [1, 1]), constraints=2), goal="minimize", seed=1)
    for number in range(8):
        trial = study.ask()
        if number % 3 == 2:
            study.tell(trial, float(number))
        else:
            study.tell(trial, 1 / (number + 3), constraints=[trial.point[0] - 0.5, 1e-300])
    return study


def arm_study():
    study = nr.Study(nr.gp_ucb(nr.Arms.grid(0, 1, 7), nr.SquaredExponential(0.2), noise=0.1), seed=0)
    for _ in range(6):
        study.tell(trial := study.ask(), trial.arm * 0.1)
    return study


STUDIES = {"mixed": mixed_study, "limited": limited_study, "arms": arm_study}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *(("mixed", kind) for kind in KINDS),
        *((name, KINDS[0]) for name in ("limited", "arms")),
        *nightly(*((name, kind) for name in ("limited", "arms") for kind in KINDS[1:])),
    ],
)
def test_a_file_read_again_tells_the_same(name, kind, tmp_path):
    study = STUDIES[name]()
    path = study.export(tmp_path / f"trials{kind}")
    again = nr.Study(study.policy, goal=study.goal, seed=9)
    added = again.add_from(str(path))
    observed = [trial for trial in study.trials if trial.state == "observed"]
    assert list(again.trials) == added
    for trial, other in zip(observed, added, strict=True):
        assert other.parameters == trial.parameters
        assert {type(each) for each in (other.parameters or {}).values()} == {
            type(each) for each in (trial.parameters or {}).values()
        }
        assert (other.reward, other.context_parameters, other.arm) == (
            trial.reward, trial.context_parameters, trial.arm,
        )  # fmt: skip
        np.testing.assert_allclose(other.point, trial.point, rtol=1e-11, atol=1e-11)  # parameters have twelve digits
        assert (other.constraints is None) == (trial.constraints is None)
        assert other.constraints is None or other.constraints.tolist() == trial.constraints.tolist()


def test_every_row_has_every_column():
    study = mixed_study()
    found = list(rows(study.policy, study.trials))
    assert len({tuple(row) for row in found}) == 1
    assert list(found[0]) == [
        "number", "state", "reward", "reason", "parameters.rate", "parameters.layers", "parameters.odd",
        "parameters.way", "parameters.load", "parameters.gear", "context.hour", "context.day", "explored", "late",
        "asked_at", "told_at",
    ]  # fmt: skip
    assert found[4]["reason"] == 'out of, memory\n"now"'
    assert found[7]["state"] == "pending"
    assert list(rows(study.policy, [])) == []


def test_what_became_of_abandoned_trials(tmp_path):
    study = arm_study()
    lost, late = study.ask(), study.ask()
    study.abandon(lost, "its worker is gone")
    study.abandon(late, "its worker seemed gone")
    study.tell(late, 0.5)
    table = study.to_pandas()
    assert table["state"].tolist()[-2:] == ["abandoned", "observed"]
    assert table["reason"].tolist()[-2] == "its worker is gone"
    assert table["late"].tolist() == [False] * 7 + [True]
    assert len(nr.Study(study.policy).add_from(study.export(tmp_path / "trials.csv"))) == 7


def test_pandas():
    study = limited_study()
    table = study.to_pandas()
    assert list(table.columns) == [
        "number", "state", "reward", "reason", "point.0", "point.1", "constraints.0", "constraints.1", "explored",
        "late", "asked_at", "told_at",
    ]  # fmt: skip
    assert table["reward"].tolist() == [trial.reward for trial in study.trials]
    assert table["constraints.0"].isna().tolist() == [number % 3 == 2 for number in range(8)]
    assert arm_study().to_pandas()["arm"].dtype == np.int64
    assert len(nr.Study(study.policy).to_pandas()) == 0


def test_json_lines_are_objects_for_other_languages(tmp_path):
    lines = mixed_study().export(tmp_path / "trials.jsonl").read_text(encoding="utf-8").splitlines()
    first = json.loads(lines[0])
    assert set(first) == {
        "number", "state", "reward", "reason", "parameters", "point", "arm", "context", "constraints", "explored",
        "late", "asked_at", "told_at",
    }  # fmt: skip
    assert first["context"] == {"hour": 0.0, "day": "tue"}
    assert len(lines) == 20


def test_a_file_of_nothing(tmp_path):
    for kind in KINDS:
        study = nr.Study(nr.auto(MIXED))
        with pytest.raises(nr.errors.InvalidInput, match=r"none.* (has the columns|is empty)"):
            study.add_from(study.export(tmp_path / f"none{kind}"))


def test_a_table_from_elsewhere(tmp_path):
    path = tmp_path / "old.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["layers", "rate", "reward"], ["3", "0.5", "1.25"], ["4.0", "0.25", ""]])
    study = nr.Study(nr.auto(nr.Space(rate=nr.Float(0, 1), layers=nr.Int(1, 9))))
    with pytest.warns(nr.errors.NoRegretWarning, match=r"^1 of 2 rows of .* has no answer .*left out: line 3\.$"):
        (added,) = study.add_from(path)
    assert (added.parameters, added.reward) == ({"rate": 0.5, "layers": 3}, 1.25)
    pd.DataFrame({"parameters.rate": [0.1, 0.2], "layers": [2, 3], "reward": [1.0, math.nan]}).to_parquet(
        tmp_path / "old.parquet"
    )
    with pytest.warns(nr.errors.NoRegretWarning, match=r"left out: row 2\.$"):
        assert len(study.add_from(tmp_path / "old.parquet")) == 1  # pandas writes NaN as nothing


def test_all_are_added_or_none(tmp_path):
    path = tmp_path / "old.csv"
    study = nr.Study(nr.auto(nr.Space(rate=nr.Float(0, 1))))
    for wrong in ("2,1", "0.5,nan", "0.5,1e300"):
        path.write_text(f"rate,reward\n0.1,1\n{wrong}\n")
        with pytest.raises(nr.errors.InvalidInput, match=r"Line 3 of .*old.csv.* Nothing was recorded"):
            study.add_from(path)
    assert len(study.trials) == 0


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.txt", "", "is empty: it must be a CSV table"),
        ("a.csv", "rate,reward\n0.5,1\n", "no column way or parameters.way"),
        ("a.csv", "way,reward\nfly,1\n", "Line 2 of .*a.csv has 'fly' in column way: it must be one of"),
        ("a.csv", "way,reward\nwalk,much\n", "'much' in column reward: it must be a number"),
        ("a.csv", "way,reward\n,1\n", "`way`"),
        ("a.jsonl", "{}\n", "has the columns"),
        ("a.jsonl", '{"parameters": {"way": "walk"}, "reward": 1}\n{"par', "Line 2"),
        ("a.jsonl", "[" * 100_000, "is no JSON list"),
        ("a.jsonl", '{"parameters": {"way": "fly"}, "reward": 1}', "'fly' in column parameters.way"),
        ("a.jsonl", '{"parameters": {"way": "walk"}, "reward": "__import__"}', "'__import__' in column reward"),
    ],
)
def test_files_that_say_nothing(name, text, sentence, tmp_path):
    (tmp_path / name).write_text(text)
    study = nr.Study(nr.auto(nr.Space(way=nr.Choice("walk", "ride"))))
    with pytest.raises(nr.errors.InvalidInput, match=sentence):
        study.add_from(tmp_path / name)


@pytest.mark.parametrize(("missing", "call"), [("pandas", "to_pandas()"), ("pyarrow", "export('trials.parquet')")])
def test_what_is_not_installed_is_said(missing, call, tmp_path):
    script = (
        f"import sys; sys.modules[{missing!r}] = None\nimport nilregret as nr\n"
        "study = nr.Study(nr.auto(nr.Box([0], [1])))\n"
        f"try:\n    study.{call}\nexcept nr.errors.MissingExtra as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "pip install 'nilregret[export]'" in done.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_trials_may_have_been_told_different_numbers_of_constraints(kind, tmp_path):
    study = nr.Study(nr.gp_ucb(nr.Arms.grid(0, 1, 5), nr.Matern(2.5, 0.2), noise=0.1))  # heeds none, and keeps all
    study.quiet = True
    for g in (None, [0.5], [-1.0, 2.0, 3.0], None):
        study.tell(study.ask(), 0.25, constraints=g)
    file = study.export(tmp_path / f"trials{kind}")
    again = nr.Study(study.policy)
    again.quiet = True
    again.add_from(file)
    told = [None if trial.constraints is None else trial.constraints.tolist() for trial in again.trials]
    assert told == [None, [0.5], [-1.0, 2.0, 3.0], None]
