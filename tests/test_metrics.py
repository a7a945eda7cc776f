"""Metrics: further numbers of an answer, which a trial keeps in the record, the tables and over HTTP."""

import math
import pickle
import re

import numpy as np
import pytest
from click.testing import CliRunner

import nilregret as nr
from nilregret.__main__ import main
from nilregret.client import Client
from nilregret.serve.dashboard.views.columns import columns_of
from nilregret.serve.dashboard.views.grid import grid_view, selected, wanted
from nilregret.serve.dashboard.views.health import constraints_view
from nilregret.serve.dashboard.views.posterior import posterior_view
from nilregret.serve.dashboard.views.trials import trial_record
from nilregret.storage import MemoryStorage
from nilregret.testing.serving import Serving

from .dashboard import Pages
from .service import AT, Clock, asked, plain, told
from .service import Client as InProcess

SPACE = nr.Space(x=nr.Float(0, 1))
POLICY = nr.auto(SPACE)
METRICS = {"accuracy": 0.9, "epochs": 3.0}


def quiet(objective, **options):
    return nr.minimize(objective, SPACE, progress=False, **{"trials": 3, **options})


def test_further_entries_of_an_answer_are_kept(tmp_path):
    storage = f"sqlite:///{tmp_path}/s.db"
    answers = iter(
        [{"reward": 1.0, "accuracy": np.float32(0.5), "epochs": 3, "ok": True}, 0.5, {"reward": 2.0, "lr": 0.1}]
    )
    result = quiet(lambda x: next(answers), storage=storage, name="s")
    wanted = [{"accuracy": 0.5, "epochs": 3.0, "ok": 1.0}, {}, {"lr": 0.1}]
    assert [trial.metrics for trial in result.trials] == wanted
    assert [row["metrics"] for row in result.history] == wanted
    again = nr.Study.open(storage=storage, name="s")
    assert list(again.trials) == list(result.trials)
    for table in (result.to_pandas(), again.to_pandas()):
        assert [name for name in table if name.startswith("metrics.")] == [
            f"metrics.{n}" for n in ("accuracy", "epochs", "ok", "lr")
        ]
        assert table["metrics.accuracy"].tolist()[0] == 0.5
        assert math.isnan(table["metrics.accuracy"].tolist()[1])
    assert "metrics.lr" in again.export(tmp_path / "t.csv").read_text().splitlines()[0]
    assert '"metrics": {"lr": 0.1}' in again.export(tmp_path / "t.jsonl").read_text()


def test_metrics_of_the_best_trial_are_shown():
    result = quiet(lambda x: {"reward": x, "accuracy": 0.25, "$<b>": 2})
    assert "metrics there: accuracy=0.25, $<b>=2" in repr(result)
    for html in (result._repr_html_(), result.study._repr_html_()):
        assert ">accuracy</th>" in html
        assert "$&lt;b&gt;" in html
    many = quiet(lambda x: {"reward": x, **{f"m{i}": i for i in range(20)}}, trials=1)
    assert "m7=7, ...\n" in repr(many) + "\n"
    clash = quiet(lambda x: {"reward": x, "x": 5.0}, trials=1)  # A parameter of the name keeps its column.
    assert "<strong>5</strong>" not in clash._repr_html_()


def test_without_metrics_tables_are_as_before():
    result = quiet(lambda x: x)
    assert "metrics" not in repr(result)
    assert "metrics" not in result.history[0]
    assert not [name for name in [*result.to_pandas(), *result.study.to_pandas()] if name.startswith("metrics")]
    assert result.trials[0].metrics == {}


def test_an_entry_with_a_limit_keeps_its_name_and_its_units():
    result = quiet(lambda x: {"reward": x, "ms": 40 + x, "mb": 8}, constraints=["ms <= 50", "mb >= 2"])
    for trial in result.trials:
        x = trial.parameters["x"]
        assert trial.metrics == {"ms": 40 + x, "mb": 8.0}
        assert trial.constraints.tolist() == [40 + x - 50, 2.0 - 8.0]
    labels = {column.label for column in columns_of(result.study).layout.values()}
    assert {"ms <= 50.0", "mb >= 2.0", "ms", "mb"} <= labels
    assert trial_record(result.study, 0)["constraints"].startswith("ms <= 50.0: ")
    assert [row["name"] for row in constraints_view(result.study)["rows"]] == ["ms <= 50.0", "mb >= 2.0"]


def test_what_is_no_metric_is_left_out_with_one_warning_and_the_reward_is_kept():
    answer = {"reward": 1.0, "model": "a.pkl", "losses": [1.0, 2.0], "f1": math.nan, "none": None, "two\nlines": 1.0}
    answer |= {"hidden": np.ma.masked, 3: 1.0, "fine": 2}
    with pytest.warns(
        nr.errors.NoRegretWarning, match="'model', 'losses', 'f1', 'none', .*, 'hidden', 3, which"
    ) as warned:
        result = quiet(lambda x: answer)
    assert len(warned) == 1
    assert [trial.state for trial in result.trials] == ["observed"] * 3
    assert [trial.metrics for trial in result.trials] == [{"fine": 2.0}] * 3


def test_metrics_are_told_repeated_and_corrected(tmp_path):
    study = nr.Study(POLICY, storage=f"sqlite:///{tmp_path}/s.db", name="s")
    trial = study.ask()
    told = study.tell(trial, 1.0, metrics=METRICS)
    assert told.metrics == METRICS
    told.metrics["accuracy"] = 0.0
    assert study.trials[0].metrics == METRICS  # a new dict each time
    assert study.tell(trial, 1.0) is study.trials[0]
    assert study.tell(trial, 1.0, metrics=dict(reversed(METRICS.items()))) is study.trials[0]
    with pytest.raises(nr.errors.TrialError, match=r"'epochs': 3\.0.*comes.*'epochs': 4\.0"):
        study.tell(trial, 1.0, metrics={"epochs": 4})
    assert study.tell(trial, 2.0, revise=True).metrics == METRICS  # as constraint values on record stay
    assert study.tell(trial, 2.0, metrics={"epochs": 4}, revise=True).metrics == {"epochs": 4.0}
    assert study.fail(trial, "it was a wrong run", revise=True).metrics == {}
    added = study.add({"x": 0.5}, 1.0, metrics=METRICS)
    many = study.tell_many([{"trial": study.ask(), "reward": 0.5, "metrics": {"lr": np.float64(0.1)}}])
    assert (added.metrics, many[0].metrics) == (METRICS, {"lr": 0.1})
    again = nr.Study.open(storage=f"sqlite:///{tmp_path}/s.db", name="s")
    assert list(again.trials) == list(study.trials)
    assert [dict(each.measured) for each in again.trials[0].corrected] == [METRICS, METRICS, {"epochs": 4.0}]
    assert pickle.loads(pickle.dumps(added)) == added
    assert "metrics={'accuracy': 0.9, 'epochs': 3.0}" in repr(added)
    before = added.as_of(added.told_order), again.trials[0].as_of(1)
    assert [each.metrics for each in before] == [METRICS, {}]


@pytest.mark.parametrize(
    ("metrics", "words"),
    [
        ([0.9], "must be a dict"),
        ({"a": math.nan}, "`metrics` is nan: it must be finite. It is of 'a'"),
        ({"a": "0.9"}, "`metrics` must be a number"),
        ({"a": np.ma.masked}, "must be a number"),
        ({"a": 1e200}, "must lie in"),
        ({"": 1.0}, "one line"),
        ({"a\nb": 1.0}, "one line"),
        ({"a" * 201: 1.0}, "one line"),
        ({3: 1.0}, "one line"),
        (dict.fromkeys(map(str, range(101)), 1.0), "at most 100"),
    ],
)
def test_what_is_no_metric_is_refused(metrics, words):
    study = nr.Study(POLICY)
    for tell in (
        lambda: study.tell(study.ask(), 1.0, metrics=metrics),
        lambda: study.add({"x": 0.5}, 1.0, metrics=metrics),
        lambda: study.tell_many([{"trial": 0, "reward": 1.0, "metrics": metrics}]),
    ):
        with pytest.raises(nr.errors.InvalidInput, match=words):
            tell()
    assert [trial.state for trial in study.trials] == ["pending"]


def test_metrics_need_a_reward():
    study = nr.Study(nr.auto(SPACE, constraints=1))
    with pytest.raises(nr.errors.InvalidInput, match="`metrics` belongs to a reward"):
        study.tell(study.ask(), constraints=[0.0], metrics=METRICS)


# -- over HTTP and on pages -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def client():
    with Serving() as service:
        yield Client(service.url)


def test_metrics_over_http(client):
    study = client.create("metrics", POLICY)
    first, second, third = study.ask(count=3)
    assert study.tell(first, 1.0, metrics={"accuracy": np.float64(0.9), "epochs": 3}).metrics == METRICS
    assert study.tell(first, 1.0).metrics == METRICS
    (told,) = study.tell_many([{"trial": second, "reward": 0.5, "metrics": {"ok": True}}])
    assert told.answer.metrics == {"ok": 1.0}
    assert study.tell(third, 0.5).metrics == {}
    with pytest.raises(nr.errors.TrialError, match=r"'epochs': 3\.0.*another answer comes"):
        study.tell(first, 1.0, metrics={"epochs": 4})
    assert study.tell(first, 2.0, metrics={"epochs": 4}, revise=True).metrics == {"epochs": 4.0}
    found = study.decision(first)
    assert (found.metrics, [each.metrics for each in found.corrected]) == ({"epochs": 4.0}, [METRICS])
    study.add({"x": 0.25}, 1.0, metrics=METRICS)
    assert [row.get("metrics") for row in study.trials()] == [{"epochs": 4.0}, {"ok": 1.0}, None, METRICS]
    assert b",metrics.epochs,metrics.ok,metrics.accuracy" in study.export("csv").splitlines()[0]


@pytest.mark.parametrize("metrics", [{"a": math.nan}, {"a": "text"}, {"two\nlines": 1.0}, {"a": 1e200}, [1.0]])
def test_what_is_no_metric_is_refused_over_http(client, metrics):
    study = client.create("refused", POLICY)
    with pytest.raises(nr.errors.InvalidInput, match="`metrics"):
        study.tell(study.ask(), 1.0, metrics=metrics)
    with pytest.raises(nr.errors.InvalidInput, match="`metrics"):
        study.add({"x": 0.25}, 1.0, metrics=metrics)
    assert {row["state"] for row in study.trials()} == {"pending"}


@pytest.mark.parametrize("late", ["drop", "count"])
def test_metrics_of_a_late_reward_are_kept(late):
    clock = Clock()
    with InProcess(MemoryStorage(), clock=clock) as service:
        rule = {"deadline": 60.0, "on_deadline": "reward", "default_reward": 0.0, "late": late}
        service.put(AT, {"policy": plain(POLICY), **rule})
        decision = asked(service)
        clock.now += 120.0
        asked(service)
        status, said = told(service, decision, 1.0, metrics=METRICS)
        assert (status, said["late_reward"], said["counted"]) == (200, 1.0, late == "count")
        known = service.get(f"{AT}/decisions/{decision['id']}")[1]["metrics"]
        assert said["metrics"] == known == (METRICS if late == "count" else {})


def test_metrics_on_pages():
    study = nr.Study(POLICY)
    for i in range(4):
        study.tell(study.ask(), 0.1 * i, metrics={"accuracy": 0.5 + 0.1 * i, "<b>": 1.0} if i % 2 else None)
    record = trial_record(study, 1)
    assert record["metrics"] == [("accuracy", "0.6"), ("<b>", "1")]
    assert trial_record(study, 0)["metrics"] == []
    columns = columns_of(study)
    query = [("sort", "metrics.accuracy"), ("descending", "1")]
    assert selected(columns, wanted(columns, query)).tolist() == [3, 1, 0, 2]
    shown = grid_view(study, [])
    assert "accuracy" in [head["label"] for head in shown["heads"]]


def test_metrics_on_the_page_that_compares():
    pages = Pages()
    for name in ("one", "other"):
        study = nr.Study(POLICY, storage=pages.storage, name=name)
        study.tell(study.ask(), 1.0, metrics={"<b>": 0.25})
    text = pages.get("/compare?study=one&study=other").text
    assert text.count('<span class="dim under">&lt;b&gt;=0.25</span>') == 2
    assert "&lt;b&gt;=0.25" in pages.get("/studies/one").text


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_metrics_are_read_from_files(tmp_path, ending):
    study = nr.Study(POLICY)
    for i in range(3):
        study.tell(study.ask(), 0.1 * i, metrics=METRICS if i else None)
    path = study.export(tmp_path / f"t.{ending}")
    assert study.add_from(path) == list(study.trials)
    other = nr.Study(POLICY, seed=1)
    assert [trial.metrics for trial in other.add_from(path)] == [{}, METRICS, METRICS]
    with pytest.raises(nr.errors.TrialError, match=r"Row 1 .*another answer comes"):
        study.add_from([{"number": 1, "reward": 0.1, "metrics": {"epochs": 4}}])


def test_constraints_have_their_names_in_pictures_and_notebooks():
    result = quiet(lambda x: {"reward": x, "ms": 40 + x}, constraints="ms <= 50")
    figure = nr.plots.posterior(result, channel=1)
    assert figure.axes[0].get_ylabel() == "ms <= 50.0, satisfied at most 0"
    assert posterior_view(result.study, {"channel": "1"})["channels"][1]["text"] == "ms <= 50.0"
    assert "ms &lt;= 50.0" in result.study._repr_html_()
    assert "ms &lt;= 50.0" in result._repr_html_()


def test_metrics_on_the_command_line(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    nr.Study(nr.auto(nr.Space(x=nr.Float(0, 1))), storage=url, name="a").ask()
    run = CliRunner().invoke
    told = run(main, ["tell", url, "a", "0", "0.5", "--metric", "accuracy=0.9", "--metric", "a=b=-2"])
    assert told.exit_code == 0, told.output
    added = run(main, ["add", url, "a", '{"x": 0.5}', "0.5", "--metric", "epochs=3"])
    assert added.exit_code == 0, added.output
    assert [trial.metrics for trial in nr.Study.open(storage=url).trials] == [
        {"accuracy": 0.9, "a=b": -2.0}, {"epochs": 3.0}
    ]  # fmt: skip
    listed, best = run(main, ["trials", url, "a", "--wide"]).output, run(main, ["show", url, "a"]).output
    assert "accuracy=0.9, a=b=-2" in listed
    assert re.search(r"metrics there +(accuracy=0.9, a=b=-2|epochs=3)", best)
    for wrong in ("0.9", "=0.9", "accuracy=high"):
        refused = run(main, ["tell", url, "a", "0", "0.5", "--metric", wrong])
        assert refused.exit_code == 2
        assert "NAME=NUMBER" in refused.output
