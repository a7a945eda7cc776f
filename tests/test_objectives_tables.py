"""Trials of several objectives in tables, files and sheets."""

import json
import warnings
from contextlib import nullcontext

import pytest

import nilregret as nr

SPACE = nr.Space(x=nr.Float(0, 1))
POLICY = nr.auto(SPACE, objectives=("loss", "recall"))
LIMITED = nr.auto(SPACE, objectives=("loss", "recall"), constraints=1)
GOALS = ("minimize", "maximize")


def study_of(policy=POLICY, **more):
    return nr.Study(policy, goal=GOALS, **more)


def answered():
    study = study_of()
    study.add({"x": 0.1}, (0.3, 12.0), std=(0.1, None), metrics={"epochs": 3})
    study.add({"x": 0.2}, (-0.5, 1e-7))
    study.fail(study.ask(), "burned")
    study.ask()
    return study


@pytest.fixture(autouse=True)
def strict():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet", ".arrow"])
def test_a_file_has_all_values_and_is_read_again(tmp_path, ending):
    if ending in (".parquet", ".arrow"):
        pytest.importorskip("pyarrow")
    study, other = answered(), study_of()
    path = study.export(tmp_path / f"trials{ending}")
    for warns in (nullcontext(), pytest.warns(nr.errors.NoRegretWarning, match="Of 2 rows, 2 repeated")):
        with warns:
            other.add_from(path)
        study.add_from(path)  # Its own trials have these answers.
        assert len(study.trials) == 4
    assert [trial.values for trial in other.trials[:2]] == [(0.3, 12.0), (-0.5, 1e-7)]
    assert [trial.stds for trial in other.trials[:2]] == [(0.1, None), None]
    assert other.trials[0].metrics == {"epochs": 3.0}


def test_columns_of_a_table():
    frame = pytest.importorskip("pandas") and answered().to_pandas()
    assert {"values.loss", "values.recall", "stds.loss"} <= set(frame.columns)
    assert not {"std", "stds.recall"} & set(frame.columns)
    assert frame["values.recall"].tolist()[:2] == [12.0, 1e-7]
    empty = study_of().to_pandas()
    assert len(empty) == 0


def test_a_table_of_ones_own_has_a_column_for_each_objective():
    study = study_of()
    with pytest.warns(nr.errors.NoRegretWarning, match=r"^1 of 2 rows of `table` has no answer .*: row 2\.$"):
        study.add_from([{"x": 0.5, "loss": 1.0, "recall": 2.0}, {"x": 0.6, "loss": None, "recall": None}])
    study.add_from({"x": [0.7], "values.recall": [3], "loss": ["2.5"], "stds.recall": [0.25]})
    assert [trial.values for trial in study.trials] == [(1.0, 2.0), (2.5, 3.0)]
    assert study.trials[1].stds == (None, 0.25)
    with pytest.warns(nr.errors.NoRegretWarning, match="not read: 'recal'"):
        study.add_from({"x": [0.8], "loss": [1.0], "recall": [2.0], "recal": [3.0]})


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"x": [0.5], "reward": [1.0]}, "`values.loss`, the value of an objective"),
        ({"x": [0.5], "loss": [1.0]}, "`values.recall`, the value of an objective"),
        ({"x": [0.5], "loss": [1.0], "recall": [None]}, r"Row 1 .*no 'recall'"),
        ({"x": [0.5], "loss": [None], "recall": [1.0]}, r"Row 1 .*no 'loss'"),
        ({"x": [0.5], "loss": [1.0], "recall": ["high"]}, r"'high' in column recall: it must be a number"),
        ({"x": [0.5], "loss": [1.0], "recall": [2.0], "stds.loss": [-1.0]}, r"Row 1 .*`std.loss`"),
        ({"x": [0.5], "loss": [None], "recall": [None]}, "no row has a reward"),
    ],
)
def test_what_is_no_table_of_all_objectives_is_said(table, words):
    study = study_of()
    with pytest.raises(nr.errors.InvalidInput, match=words):
        study.add_from(table)
    assert not study.trials


def test_limits_come_with_the_values():
    study = study_of(LIMITED)
    study.add_from({"x": [0.5], "loss": [1.0], "recall": [2.0], "constraints.0": [-1.0]})
    assert study.trials[0].constraints.tolist() == [-1.0]
    with pytest.raises(nr.errors.TrialError, match=r"Row 1 .*without their 1 constraint value"):
        study.add_from({"x": [0.6], "loss": [1.0], "recall": [2.0]})
    assert len(study.trials) == 1


def test_a_sheet_has_a_column_for_each_objective(tmp_path):
    study = study_of(name="kiln")
    made = study.sheet(3)
    assert made.columns == [
        "number",
        "x",
        "values.loss",
        "values.recall",
        "stds.loss",
        "stds.recall",
        "remarks",
        "sheet",
    ]
    page = made.to_html()
    assert '<th class="empty">loss</th><th class="empty">recall</th>' in page
    head, *rows = made.to_csv().splitlines()
    cells = [row.split(",") for row in rows]
    for cell, values in zip(cells, (["1.5", "2"], ["", "failed"], ["", ""]), strict=True):
        cell[2:4] = values
    path = tmp_path / "done.csv"
    path.write_text("\n".join([head, *map(",".join, cells)]))
    for _ in range(2):
        study.add_from(path)
        assert [trial.state for trial in study.trials] == ["observed", "failed", "pending"]
        assert study.trials[0].values == (1.5, 2.0)
    cells[2][2] = "1"
    path.write_text("\n".join([head, *map(",".join, cells)]))
    with pytest.raises(nr.errors.InvalidInput, match=r"`values.loss` has a value and `values.recall` has none"):
        study.add_from(path)


def test_lines_of_json_name_what_was_told(tmp_path):
    lines = answered().export(tmp_path / "trials.jsonl").read_text().splitlines()
    first, second, failed, _ = map(json.loads, lines)
    assert (first["reward"], first["values"], first["std"], first["stds"]) == (0.3, [0.3, 12.0], 0.1, [0.1, None])
    assert (second["values"], "stds" in second, "values" in failed) == ([-0.5, 1e-7], False, False)
