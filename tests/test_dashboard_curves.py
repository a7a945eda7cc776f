"""The dashboard of trials that report: curves, the state "stopped", and forms that report, stop and choose a rule."""

from types import SimpleNamespace
from urllib.parse import urlencode

import numpy as np
import pytest

import nilregret as nr
from nilregret.plots.curves_picture import MOST
from nilregret.serve.dashboard.views.columns import columns_of
from nilregret.serve.dashboard.views.compared import compared_view, facts_of
from nilregret.serve.dashboard.views.grid import grid_view
from nilregret.serve.dashboard.views.new_study import code_of, request_of
from nilregret.serve.dashboard.views.progress import curves_view
from nilregret.serve.dashboard.views.standing import verdict
from nilregret.serve.dashboard.views.status import status
from nilregret.storage import MemoryStorage

from .dashboard import Pages, marks, study_of
from .test_dashboard_actions import Forms, trial
from .test_dashboard_compare import words

KIND = "of_stopped_trials"


@pytest.fixture(scope="module")
def study():
    return study_of(KIND)


@pytest.fixture(scope="module")
def pages():
    found = Pages()
    study_of(KIND, found.storage)
    return found


def curved(rule=None, *, name="a", length=4, storage=None):
    policy = nr.auto(nr.Space(x=nr.Float(0, 1)), pruning=rule)
    return nr.Study(policy, goal="minimize", storage=storage, name=name)


def test_the_overview_has_the_curves_and_counts_those_stopped(study, pages):
    picture = curves_view(study)
    assert picture["summary"].startswith("7 trials reported: 3 finished, 3 stopped, 1 pending")
    (stopped,) = marks(picture, "stopped")
    assert (stopped["shape"], len(stopped["x"])) == ("O", 3)
    text = pages.get(f"/studies/{KIND}").text
    assert 'id="picture-curves"' in text
    assert "3 answered, 3 stopped" in words(text)
    assert 'id="picture-curves"' in pages.get(f"/studies/{KIND}/part/curves").text


def test_the_page_of_a_trial_has_its_curve_its_last_report_and_why_it_stopped(study, pages):
    stopped = next(trial for trial in study.trials if trial.state == "stopped")
    text = words(pages.get(f"/studies/{KIND}/trials/{stopped.number}").text)
    assert "○ stopped" in text
    assert "after step 3" in text
    assert stopped.reason in text
    table = curves_view(study, stopped)["table"]["rows"]
    assert [row[0] for row in table] == ["1", "2", "3"]
    assert "the rule says to stop" in words(pages.get(f"/studies/{KIND}/trials/6").text)  # It is pending.


def test_the_grid_has_the_last_report_and_a_filter_of_the_state(study, pages):
    found = grid_view(study, [("state", "stopped"), ("sort", "curve.value")])
    assert found["count"] == 3
    assert {"curve.step", "curve.value"} <= {head["key"] for head in found["heads"]}
    assert all(cell["text"] == "3" for row in found["rows"] for cell in row["cells"] if cell["key"] == "curve.step")
    assert '<option value="stopped">' in pages.get(f"/studies/{KIND}/trials").text


def test_a_study_without_a_report_says_nothing_of_curves():
    pages = Pages()
    study_of("of_a_box", pages.storage)
    for tab in ("", "/trials", "/trials/3"):
        text = pages.get(f"/studies/of_a_box{tab}").text
        assert "stopped" not in text
        assert "urve" not in text
    assert "No trial has reported" in pages.get("/studies/of_a_box/part/curves").text
    with pytest.raises(nr.NoRegretError, match="there are observed, pending, failed, abandoned"):
        grid_view(study_of("of_a_box"), [("state", "stopped")])


def test_a_trial_that_waits_is_called_paused():
    study = curved(nr.slots.Halving(steps=9, first=0.3, pause=True))
    for i in range(4):
        study.report(study.ask(), 3, float(i))
    assert [row["marks"] for row in grid_view(study, [("sort", "number")])["rows"]][-1] == ["paused"]
    assert "1 pending, 3 paused" in curves_view(study)["summary"]


def test_a_study_with_a_rule_waits_for_its_first_report():
    pages = Pages()
    curved("median", storage=pages.storage)
    assert "No trial has reported a step yet" in pages.get("/studies/a").text


def test_a_report_changes_what_is_seen_and_no_verdict():
    study = curved()
    trial = study.ask()
    before, found = status(study, now=0.0)["known"], verdict(study)
    study.report(trial, 1, 1.0)
    assert status(study, now=0.0)["known"] != before
    assert verdict(study) is found
    study.stop(trial)
    assert verdict(study) is not found
    assert columns_of(study).array("state").tolist() == [4.0]


def test_a_study_whose_trials_all_stop_is_neither_failing_nor_waiting():
    study = curved()
    for _ in range(3):
        trial = study.ask()
        study.report(trial, 1, 1.0)
        study.stop(trial)
    now = study.trials[-1].told_at
    assert status(study, now=now)["state"] == "active"


@pytest.fixture
def forms():
    found = Forms()
    study = curved("median", storage=found.storage)
    study.ask()
    return found


def test_a_step_is_reported_and_a_trial_stopped_by_hand(forms):
    menu = forms.get("/studies/a/trials/0").text
    assert "actions/report?trial=0" in menu
    assert "actions/stop" not in menu  # It has no report yet.
    done = forms.act("a", "report", trial="0", step="3", value="0.25")
    assert "0.25 after step 3" in words(done.text)
    assert "actions/stop?trial=0" in done.text
    done = forms.act("a", "stop", trial="0", why="")
    assert "stopped" in words(done.text)
    ended = trial(forms, 0)
    assert (ended.state, ended.steps, ended.reason) == ("stopped", [(3, 0.25)], "by hand after step 3")
    assert len(forms.log("a")) == 2


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"step": "x", "value": "1"}, "it must be a whole number"),
        ({"step": "-1", "value": "1"}, "it must be a whole number"),
        ({"step": "1", "value": "nan"}, "it must be a number"),
        ({"step": "1", "value": ""}, "it must be a number"),
    ],
)
def test_a_report_that_cannot_be_used_is_refused(forms, typed, said):
    first = forms.hidden(forms.open("a", "report", trial=0).text) | {"trial": "0"} | typed
    page = forms.send("a", "report", first)
    assert said in words(page.text)
    assert not trial(forms, 0).curve


def test_steps_out_of_order_and_stops_without_a_report_are_refused(forms):
    assert "has reported no step yet" in words(forms.act("a", "stop", trial="0", why="slow").text)
    forms.act("a", "report", trial="0", step="3", value="0.25")
    assert "step 3" in words(forms.act("a", "report", trial="0", step="2", value="0.5").text)
    assert trial(forms, 0).steps == [(3, 0.25)]


def test_a_correction_keeps_that_a_trial_was_stopped(forms):
    forms.act("a", "report", trial="0", step="3", value="0.25")
    forms.act("a", "stop", trial="0", why="too slow")
    done = words(forms.act("a", "correct", trial="0", reward="0.125").text)
    assert "told before stopped: too slow" in done
    assert (trial(forms, 0).state, trial(forms, 0).steps) == ("observed", [(3, 0.25)])


TYPED = {"p-name-0": "x", "p-type-0": "float", "p-low-0": "0", "p-high-0": "1"}


@pytest.mark.parametrize(
    ("more", "rule", "code"),
    [
        ({"pruning": "median"}, "median", "pruning='median'"),
        ({"pruning": "halving", "steps": "50"}, {"type": "halving", "steps": 50}, "nr.slots.Halving(steps=50)"),
        ({"pruning": "predicted", "of": "best"}, {"type": "predicted", "of": "best"}, "Predicted(of='best')"),
        ({"pruning": "median", "explore": ".1"}, {"type": "median", "explore": 0.1}, "nr.slots.Median(explore=0.1)"),
        ({"steps": "9"}, {"type": "never", "steps": 9}, "nr.slots.Never(steps=9)"),
    ],
)
def test_the_form_of_a_new_study_chooses_a_rule(more, rule, code, monkeypatch):
    body = request_of(TYPED | more)
    assert body["policy"] == {"algorithm": "auto", "pruning": rule}
    python = next(each["code"] for each in code_of("s", body, "http://x") if each["title"] == "Python")
    assert code in python
    sent = []
    monkeypatch.setattr("nilregret.client.Client", lambda _: SimpleNamespace(create=lambda *given: sent.append(given)))
    exec(python, {})
    ((_, policy),) = sent
    forms = Forms()
    page = forms.post("/new", "&".join(f"{k}={v}" for k, v in ({"name": "s"} | TYPED | more).items()).encode())
    hidden = forms.hidden(page.text)
    assert forms.post("/new", "&".join(f"{k}={v}" for k, v in hidden.items()).encode()).status == 200
    assert nr.Study.open(storage=forms.storage, name="s").policy.pruning == policy.pruning


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"pruning": "mean"}, "mean"),
        ({"steps": "x"}, "The full number of steps is 'x'"),
        ({"steps": "0"}, "steps is 0: it must be at least 1"),
        ({"pruning": "median", "explore": "2"}, "explore is 2: it must lie in"),
        (
            {"pruning": "median", "o-name-0": "a", "o-goal-0": "minimize", "o-name-1": "b", "o-goal-1": "minimize"},
            "several",
        ),
    ],
)
def test_a_rule_that_cannot_be_is_refused_and_no_study_is_made(more, said):
    forms = Forms()
    page = forms.post("/new", urlencode({"name": "s"} | TYPED | more).encode())
    sent = forms.hidden(page.text)
    page = forms.post("/new", urlencode(sent).encode()) if "confirmed" in sent else page
    assert page.status == 422
    assert said in words(page.text)
    assert forms.storage.find("s") is None


def test_studies_whose_trials_report_are_compared_by_their_steps():
    studies = []
    for name, stops in (("whole", False), ("stopping", True)):
        study = curved(name=name, storage=MemoryStorage())
        for i in range(8):
            trial = study.ask()
            last = 2 if stops and i % 2 else 10
            study.report(trial, last, 1.0)
            if last == 10:
                study.tell(trial, 1.0 / (i + 1))
            else:
                study.stop(trial)
        studies.append(facts_of(study, name, now=0.0))
    found = compared_view(studies)
    lines = marks(found["pictures"][0])
    assert lines[0]["x"] == np.arange(10, 81, 10).tolist()
    assert lines[1]["x"] == [10, 22, 34, 46]
    assert "After 46 steps each" in found["pictures"][0]["summary"]
    assert "by number of steps of all trials" in found["pictures"][0]["summary"]
    assert found["rows"][1]["at"]["stopped"] == 4


def test_a_picture_of_many_long_curves_has_a_bounded_size():
    study = nr.Study(nr.gp_ucb(nr.Arms.grid(0, 1, 9), nr.SquaredExponential(0.2), noise=1.0), seed=0)
    study.quiet = True
    for _ in range(MOST + 20):
        trial = study.ask()
        for step in range(200):
            study.report(trial, step, 0.5)
        study.stop(trial)
    assert len(str(curves_view(study)["scene"])) < 400_000
