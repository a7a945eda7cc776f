"""The one reader of tables: `add_from`, `like=`, `nr.evaluate` and `nilregret import` read the same files."""

import gzip
import warnings

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import nilregret as nr
from nilregret.__main__ import main
from nilregret._utils.tables import csv_cell, csv_writer, read_table
from nilregret.tuning.toml.config import load

SPACE = nr.Space(t=nr.Float(40, 90), c=nr.Choice("a", "b", "=SUM(A1)", "-1.5", "@ö"))
PLAIN = "t,c,reward\n50.5,a,-10.5\n60,b,20\n70,a,1e1\n"
FORMS = {
    "plain": PLAIN.encode(),
    "mark": PLAIN.encode("utf-8-sig"),
    "utf-16": PLAIN.encode("utf-16"),
    "utf-32": PLAIN.encode("utf-32"),
    "packed": gzip.compress(PLAIN.encode()),
    "mac": PLAIN.replace("\n", "\r").encode(),
    "capitals": PLAIN.replace("reward", " Reward ").encode(),
    "value": PLAIN.replace("reward", "VALUE").encode(),
    "tabs": PLAIN.replace(",", "\t").encode(),
    "semicolons": b"t;c;reward\r\n50,5;a;-10,5\r\n60;b;20\r\n70;a;1,0e1\r\n",
    "said": b"sep=;\r\nt;c;reward;\r\n50,5;a;-10,5;\r\n60;b;20;\r\n70;a;10;\r\n;;;\r\n",
    "index": b",t,c,reward\n0,50.5,a,-10.5\n1,60,b,20\n2,70,a,10\n",
    "quoted": b'"parameters.t","params.c","c","reward"\n"50.5","","a","-10.5"\n60,,b,20\n70,,a,10\n',
    "lines": b'{"parameters": {"t": 50.5, "c": "a"}, "value": -10.5}\n'
    b'{"parameters": {"t": 60, "c": "b"}, "value": 20}\n'
    b'{"parameters": {"t": 70, "c": "a"}, "value": 10}',
    "list": b'[{"t": 50.5, "c": "a", "reward": -10.5}, {"t": 60, "c": "b", "reward": 20},\n'
    b'{"t": 70, "c": "a", "reward": 10}]',
}
WANTED = [(50.5, "a", -10.5), (60.0, "b", 20.0), (70.0, "a", 10.0)]


def study(**more):
    return nr.Study(nr.auto(SPACE), **more)


def facts(trials):
    return [(*trial.parameters.values(), trial.reward) for trial in trials]


@pytest.mark.filterwarnings("ignore:.*not read. 'params.c'")
@pytest.mark.parametrize("form", FORMS)
def test_a_table_is_read_in_every_form(form, tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(FORMS[form])
    assert facts(study().add_from(path)) == WANTED
    (earlier,) = nr.auto(SPACE, like=path).refit.studies
    assert len(earlier.points) == 3


FRAME = pd.DataFrame({"t": [50.5, 60, 70], "c": ["a", "b", "a"], "reward": [-10.5, 20, 10]})


class Frame:
    """A data frame of another library: names of columns, and columns by name."""

    columns = tuple(FRAME.columns)

    def __getitem__(self, name):
        return FRAME[name].to_numpy()


@pytest.mark.parametrize(
    "table",
    [
        FRAME, FRAME.astype({"c": "category", "t": "Float64"}), FRAME.set_index("t", drop=False), Frame(),
        FRAME.to_dict("records"), FRAME.to_dict("list"),
        {**FRAME.to_dict("list"), "reward": np.array([-10.5, 20, 10]), "std": np.ma.masked_all(3)},
    ],
)  # fmt: skip
def test_tables_in_memory(table):
    assert facts(study().add_from(table)) == WANTED
    assert len(nr.auto(SPACE, like=table).refit.studies[0].points) == 3


def test_frames_of_arrow_and_polars():
    arrow = pytest.importorskip("pyarrow")
    assert facts(study().add_from(arrow.Table.from_pandas(FRAME))) == WANTED
    named = {name: column for name, column in FRAME.to_dict("list").items() if name in SPACE.parameters}
    points = SPACE.inside("points", arrow.table(named))
    assert (
        points.tolist()
        == SPACE.inside(
            "points", [dict(zip(named, row, strict=True)) for row in zip(*named.values(), strict=True)]
        ).tolist()
    )
    polars = pytest.importorskip("polars")
    assert facts(study().add_from(polars.DataFrame(FRAME.to_dict("list")))) == WANTED


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ("t,c,reward\n50,ö,1\n".encode("latin-1"), "not UTF-8 .byte 0xf6 in line 2.*CSV UTF-8"),
        (PLAIN.encode("utf-16-le"), "NUL characters.*UTF-16 without a byte order mark"),
        (b"\x89PNG\r\n\x1a\n\0\0", "NUL characters.*no text at all"),
        (b"PK\x03\x04rest", "workbook.*save its sheet as CSV"),
        (b"SQLite format 3\0", "is a database"),
        (
            b"t;c;reward\n50,5;a;10.5\n",
            r"decimal comma \(50,5 in column t\) and others with a point \(10.5 in col",
        ),
        (
            b"t;c;reward\n50.5;a;1.250,5\n",
            r"50\.5 in column t, and ',' is the decimal mark, as other numbers show: write",
        ),
        (b"t,c,reward\n50,5,a,10,5\n", "Line 2 of .* has 5 cells where the first line has 3"),
        (b"t,c,reward\n50,a\n", "Line 2 of .* has 2 cells"),
        (b't,c,reward\n50,"a,1\n60,a,2\n', "is no CSV table"),
        (b"t,c,reward,reward\n50,a,1,2\n", "Column 'reward' of .* is there twice"),
        (b't,c,reward\n50,a,"1,5"\n', "Decimal commas are read in files that separate by semicolons"),
        (b"t,c,reward\n50,a,1_000\n", "'1_000' in column reward: it must be a number"),
        (b"t,c,yield\n50,a,1\n", r"has the columns \['t', 'c', 'yield'\]: one of them must be `reward`"),
        (b"t,c,reward\n50,a,\n", r"has the columns \['t', 'c', 'reward'\], and no row has a reward"),
        (b"t,c,loss\n50,a,1\n", "is a loss by its name, and the study maximises"),
        (b"", "is empty"),
    ],
)
def test_what_cannot_be_read_is_said(data, sentence, tmp_path):
    (tmp_path / "table.csv").write_bytes(data)
    made = study()
    with pytest.raises(nr.errors.InvalidInput, match=sentence):
        made.add_from(tmp_path / "table.csv")
    assert len(made.trials) == 0


@pytest.mark.parametrize(
    ("number", "dot", "comma"), [("1.250", 1.25, 1250), ("1,250", 1250, 1.25), ("\u22121,250", -1250, -1.25)]
)
def test_a_mark_that_may_group_thousands_is_no_guess(number, dot, comma, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(f"t;c;reward\n50;a;{number}\n")
    with pytest.raises(nr.errors.InvalidInput, match=rf"{number} in column reward, which may be \S+ or .*--decimal"):
        study().add_from(path)
    found = [study().add_from(path, decimal=mark)[0].reward for mark in ".,"]
    assert found == [dot, comma]
    with pytest.raises(nr.errors.InvalidInput, match="`decimal`"):
        study().add_from(path, decimal=";")


@pytest.mark.parametrize(
    ("cells", "rewards"),
    [
        (["1.250", "0.5"], [1.25, 0.5]),
        (["1,250", "\u22120,5"], [1.25, -0.5]),
        (["1.250,5", "1.250"], [1250.5, 1250]),
        (["1.250.000", "3"], [1250000, 3]),
        (["2.", "3"], [2, 3]),
    ],
)
def test_another_number_shows_the_decimal_mark(cells, rewards, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("t;c;reward\n" + "".join(f"50;a;{cell}\n" for cell in cells))
    assert [trial.reward for trial in study().add_from(path)] == rewards


def test_the_name_of_an_event_is_no_number(tmp_path):
    (tmp_path / "table.csv").write_text("event;t;c;reward\n12.345.678;50,5;a;1\n0,5;51,5;b;2\n")
    assert [trial.event for trial in study().add_from(tmp_path / "table.csv")] == ["12.345.678", "0,5"]


def test_thousands_beside_decimals_are_read_if_the_mark_is_given(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("t;c;reward\n50,5;a;1.250\n")
    assert study().add_from(path, decimal=",")[0].reward == 1250
    with pytest.raises(nr.errors.InvalidInput, match=r"50,5 in column t, and '.' is the .*mark, as `decimal` says: wr"):
        study().add_from(path, decimal=".")
    path.write_text('t,c,reward\n50,a,"1,250"\n')
    assert study().add_from(path, decimal=".")[0].reward == 1250
    with pytest.raises(nr.errors.InvalidInput, match=r"1,250.*--decimal"):
        study().add_from(path)


def test_losses_by_their_name(tmp_path):
    (tmp_path / "table.csv").write_text(PLAIN.replace("reward", "loss"))
    assert facts(study(goal="minimize").add_from(tmp_path / "table.csv")) == WANTED
    # Earlier studies are of rewards: a loss is minus one, whatever the goal.
    named, minus = (
        nr.auto(SPACE, like=tmp_path / "table.csv"),
        nr.auto(SPACE, like=FRAME.assign(reward=-FRAME["reward"])),
    )
    assert np.array_equal(named.refit.studies[0].targets, minus.refit.studies[0].targets)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "arrow"])
def test_exports_are_read_again_by_all(ending, tmp_path):
    told = study()
    for option in SPACE.parameters["c"].options:
        told.add({"t": 50, "c": option}, 1.0)
    path = told.export(tmp_path / f"trials.{ending}")
    assert facts(study().add_from(path)) == facts(told.trials)
    like = nr.auto(SPACE, like=str(path)).refit.studies[0]
    assert np.array_equal(like.points, [trial.point for trial in told.trials])


def test_a_spreadsheet_computes_nothing(tmp_path):
    lines = study_of_formulas().export(tmp_path / "trials.csv").read_text().splitlines()
    assert [line.split(",")[2:6:3] for line in lines[1:]] == [["-1.0", "'=SUM(A1)"], ["1.0", "-1.5"], ["1.0", "'@ö"]]
    texts = ["=1", "'=1", "''=1", "-1.5", "+1", "-x", "@", "'", "''", "a=1", "", "\t", "-inf", "'-1.5"]
    cells = [csv_cell(text) for text in texts]
    assert not [cell for cell in cells if cell[:1] in tuple("=@\t") or cell in ("-x",)]
    assert csv_cell(-1.5) == -1.5
    with (tmp_path / "texts.csv").open("w", newline="") as file:
        write_row = csv_writer(file)
        for row in [["text", "row"], *([text, i] for i, text in enumerate(texts))]:
            write_row(row)
    assert read_table(tmp_path / "texts.csv").columns["text"] == [text or None for text in texts]


def study_of_formulas():
    made = study()
    for option, reward in (("=SUM(A1)", -1.0), ("-1.5", 1.0), ("@ö", 1.0)):
        made.add({"t": 50, "c": option}, reward)
    return made


# -- answers to trials that were asked for -------------------------------------------------------------------------


def filled(made, path, rewards, edit=lambda row: row):
    table = made.to_pandas()
    table.loc[list(rewards), "reward"] = list(rewards.values())
    edit(table).to_csv(path, index=False)
    return path


def test_a_table_that_is_read_twice_is_said():
    made = study()
    rows = [{"t": 50, "c": "a", "reward": 1.0}, {"t": 60, "c": "a", "reward": 1.0}]
    made.add_from(rows)
    with pytest.warns(nr.errors.NoRegretWarning, match="Of 3 rows, 2 repeated the point and the answer of trials"):
        made.add_from([*rows, {"t": 50, "c": "a", "reward": 2.0}])
    assert len(made.trials) == 5


@pytest.mark.parametrize("storage", [None, "sqlite"])
def test_numbers_of_asked_trials_are_answers(storage, tmp_path):
    made = study(seed=0, storage=storage and f"sqlite:///{tmp_path}/a.db")
    made.add({"t": 50, "c": "a"}, 1 / 3)
    made.ask(count=3)
    path = filled(made, tmp_path / "filled.csv", {1: 10.5, 3: 20.5})
    assert [trial.number for trial in made.add_from(path)] == [0, 1, 3]
    assert [trial.reward for trial in made.trials] == [1 / 3, 10.5, None, 20.5]
    assert [trial.number for trial in made.add_from(path)] == [0, 1, 3]  # once, and harmless again
    rounded = filled(made, path, {}, lambda table: table.round({"reward": 8, "parameters.t": 6, "asked_at": 0}))
    assert [trial.number for trial in made.add_from(rounded)] == [0, 1, 3]
    with pytest.raises(nr.errors.TrialError, match=r"Line 5 of .*filled.csv: .*20.5.*nothing was recorded"):
        made.add_from(filled(made, path, {2: 1.0, 3: 20.0}))
    assert [trial.reward for trial in made.trials] == [1 / 3, 10.5, None, 20.5]
    edited = filled(made, path, {2: 1.0}, lambda table: table.assign(**{"parameters.t": 41.25}))
    with pytest.raises(nr.errors.InvalidInput, match=r"Line 2 of .*was asked at .*Without the column `number`"):
        made.add_from(edited)


def test_a_number_alone_says_of_which_trial_an_answer_is(tmp_path):
    made = study()
    made.ask(count=2)
    (tmp_path / "told.csv").write_text("Number;Reward\n1;2,5\n0;\n")
    assert [trial.reward for trial in made.add_from(tmp_path / "told.csv")] == [2.5]
    with pytest.raises(nr.errors.InvalidInput, match=r"Row 1 .* has no trial 7"):
        made.add_from({"number": [7], "reward": [1.0]})
    assert [trial.reward for trial in made.trials] == [None, 2.5]


def test_points_are_compared_in_units_of_their_ranges():
    made = nr.Study(nr.auto(nr.Box([1e6], [1e6 + 1e-3])))
    (asked,) = made.ask().point
    with pytest.raises(nr.errors.InvalidInput, match="and the row is of another point"):
        made.add_from({"point.0": [1e6 + 1e-4], "number": [0], "reward": [1.0]})
    made.add_from({"point.0": [asked + 1e-10], "number": [0], "reward": [1.0]})
    assert [trial.reward for trial in made.trials] == [1.0]


def test_numbers_of_another_study_are_new_trials(tmp_path):
    clock = iter(range(10**6)).__next__
    other, made = study(seed=1, clock=clock), study(seed=2, clock=clock)
    for each in (other, made):
        each.tell(each.ask(), 1.0)
    assert [trial.number for trial in made.add_from(other.export(tmp_path / "other.csv"))] == [1]


def test_columns_that_were_not_read_are_said(tmp_path):
    (tmp_path / "table.csv").write_text("t,c,reward,sd\n50.5,a,10.5,0.2\n")
    with pytest.warns(nr.errors.NoRegretWarning, match="not read: 'sd'. Read are .*`std`"):
        study().add_from(tmp_path / "table.csv")


# -- logs ------------------------------------------------------------------------------------------------------------


CLICKS = nr.auto(nr.Arms(range(3)), context=nr.Space(hour=nr.Float(0, 24)), reward="bernoulli")


def log(action="action", names=(0, 1, 2)):
    return {"context.hour": [i % 24 for i in range(60)], action: [names[i % 3] for i in range(60)],
            "propensity": [1 / 3] * 60, "Reward": [i % 2 for i in range(60)]}  # fmt: skip


@pytest.mark.parametrize("column", ["action", "arm", "point.0"])
def test_a_log_can_be_learned_from(column, tmp_path):
    path = tmp_path / "log.csv"
    pd.DataFrame(log(column)).to_csv(path)
    for given in (path, log(column)):
        made = nr.Study(CLICKS, seed=0, propensities=True)
        made.add_from(given)
        assert [trial.arm for trial in made.trials] == [0, 1, 2] * 20
        assert {trial.propensity for trial in made.trials} == {1 / 3}
        made.tell(made.ask({"hour": 1}), 1)
    if column != "point.0":
        assert nr.evaluate(path, "uniform").value == nr.evaluate(log(column), "uniform").value


def test_propensities_are_kept_from_study_to_study(tmp_path):
    old = nr.Study(CLICKS.using(explore=nr.slots.Uniform(0.9)), seed=0, propensities=True)
    for hour in range(20):
        old.tell(old.ask({"hour": hour}), float(hour % 2))
    new = nr.Study(CLICKS, seed=0, propensities=True)
    new.add_from(old.export(tmp_path / "old.jsonl"))
    with pytest.warns(nr.errors.NoRegretWarning, match="few decisions"):
        found = [nr.evaluate(each, "uniform", floor=0.3).to_dict() for each in (old, new)]
    assert found[0]["value"] == found[1]["value"]
    assert found[1]["rows"] == 20


def test_arms_by_their_names():
    made = nr.Study(nr.auto(nr.Arms(range(2)), reward="bernoulli"), seed=0)
    made.add_arms([[2.0]], names=["scarf"])
    made.add_from({"action": ["scarf", 1], "reward": [1, 0]})
    assert [trial.arm for trial in made.trials] == [2, 1]
    with pytest.raises(nr.errors.InvalidInput, match="'hat' in column action: it must be an arm, 0 to 2, or the name"):
        made.add_from({"action": ["hat"], "reward": [1]})


@pytest.mark.parametrize(("spent", "said"), [(1.0, True), (0.5, False), (0.4, False)])
def test_a_log_that_overspent_a_budget_says_that_the_study_pays_it_back(spent, said):
    made = nr.Study(nr.auto(nr.Arms(range(2)), reward="bernoulli", constraints=nr.OnAverage(step=0.1)), seed=0)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        made.add_from({"arm": [1] * 30, "reward": [1, 0] * 15, "constraints.0": [spent - 0.5] * 30})
    assert ["add up to 15 above the limit" in str(each.message) for each in found] == [True] * said
    made.add_from({"arm": [1] * 30, "reward": [1, 0] * 15})  # Without the column nothing is owed, and nothing is said.


def test_the_arms_of_one_parameter_go_by_its_options_in_a_study_and_in_an_evaluation():
    table = {"action": ["video", "sale", "news"] * 70, "propensity": [1 / 3] * 210, "reward": [1, 0, 0] * 70}
    made = nr.Study(nr.auto(nr.Space(banner=nr.Choice("sale", "news", "video")).grid()), propensities=True)
    made.add_from(table)
    assert [trial.parameters["banner"] for trial in made.trials] == table["action"]
    assert nr.evaluate(table, "video").value == nr.evaluate(made, "video").value == 1.0
    with pytest.raises(nr.errors.InvalidInput, match="'radio' in column action: it must be an arm, 0 to 2, or"):
        made.add_from({"action": ["radio"], "reward": [1]})


@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_logs_in_every_form(ending, tmp_path):
    wanted, path = nr.evaluate(log(), "uniform"), tmp_path / f"log.{ending}"
    frame = pd.DataFrame(log())
    {
        "csv": lambda: frame.to_csv(path, sep=";", decimal=",", encoding="utf-16"),
        "parquet": lambda: frame.to_parquet(path),
        "json": lambda: frame.to_json(path, orient="records"),
    }[ending]()
    assert nr.evaluate(path, "uniform").value == pytest.approx(wanted.value)


def test_a_column_that_a_log_does_not_need_is_said():
    with pytest.warns(nr.errors.NoRegretWarning, match="Columns 'hour' of the log were not read"):
        nr.evaluate({"hour": [0] * 60, **log()}, "uniform")
    with pytest.raises(nr.errors.InvalidInput, match="`cost` is a loss by its name"):
        nr.evaluate({("cost" if name == "Reward" else name): column for name, column in log().items()}, "uniform")


# -- other files that users name -------------------------------------------------------------------------------------

TOML = "# Öfen\ntrials = 3\n[parameters.x]\ntype = 'float'\nlow = 0\nhigh = 1\n[objective]\ncommand = 'echo {x}'\n"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
def test_encodings_of_files_of_tunings_studies_and_policies(encoding, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    chances = "0,25;0,25;0,5\n" * 60
    text = {
        "tune.toml": TOML,
        "study.toml": TOML.partition("[objective]")[0].replace("trials = 3\n", ""),
        "policy.json": nr.auto(nr.Space(x=nr.Choice("ö", "ä"))).to_json().replace("\\u00f6", "ö"),
        "chances.csv": chances + '"";"";"ö"' * (encoding == "latin-1"),
    }
    for name, each in text.items():
        (tmp_path / name).write_bytes(each.encode(encoding))
    pd.DataFrame(log()).to_csv("log.csv")
    if encoding != "latin-1":
        assert load(tmp_path / "tune.toml").trials == 3
    said = [
        CliRunner().invoke(main, command)
        for command in (
            ["create", "a.db", "s", "study.toml"],
            ["create", "a.db", "t", "policy.json"],
            ["evaluate", "log.csv", "--policy", "chances.csv"],
            *([["tune", "tune.toml"]] if encoding == "latin-1" else []),
        )
    ]
    if encoding == "latin-1":
        assert all("not UTF-8 (byte 0x" in each.output and "Save it as UTF-8" in each.output for each in said)
    assert [each.exit_code for each in said] == ([1] * 4 if encoding == "latin-1" else [0] * 3)


@pytest.mark.parametrize("dtype", ["datetime64[ns]", "timedelta64[ns]", "datetime64[us]"])
def test_times_are_no_numbers_whatever_their_unit(dtype):
    study = nr.Study(nr.gp_ucb(nr.Box(0.0, 2e18), nr.Matern(2.5, 1e17), noise=0.1))
    for columns in ({"x": [0.5], "reward": np.array([1], dtype)}, {"0": np.array([1], dtype), "reward": [0.5]}):
        with pytest.raises(nr.errors.InvalidInput):
            study.add_from(columns)
    assert not study.trials


@pytest.mark.parametrize("flag", [True, np.True_])
def test_true_is_an_answer_and_no_point(flag):
    study = nr.Study(nr.gp_ucb(nr.Space(x=nr.Float(0, 1)), nr.Matern(2.5, 0.5), noise=0.1))
    with pytest.raises(nr.errors.InvalidInput, match="column x"):
        study.add_from([{"x": flag, "reward": 0.5}])
    study.add_from({"x": np.array([0.5]), "reward": np.array([flag])})
    assert [trial.reward for trial in study.trials] == [1.0]


def test_a_value_of_a_parameter_that_does_not_count_is_refused_in_a_table():
    space = nr.Space(kind=nr.Choice("a", "none"), load=nr.when("kind", "a", nr.Float(0, 2)))
    table = {"kind": ["a", "none"], "load": [1.0, 1.25], "reward": [1.0, 2.0]}
    with pytest.raises(nr.errors.InvalidInput, match=r"`load` is 1\.25, and it counts only where"):
        nr.Study(nr.auto(space)).add_from(table)
    assert len(nr.Study(nr.auto(space)).add_from(table | {"load": [1.0, None]})) == 2
