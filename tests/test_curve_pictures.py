"""The picture of the curves of trials that report, and the open marks of stopped trials in all pictures."""

import numpy as np
import pytest

import nilregret as nr
from nilregret.plots.curves_picture import MOST, curves_panel, ended_at
from nilregret.plots.history_picture import History, history_panels
from nilregret.plots.parallel_picture import axes_of_trials, parallel_panel
from nilregret.plots.scene import Line, Points
from nilregret.plots.slices_picture import slice_panels, slices_of
from nilregret.plots.source import centre_of
from nilregret.study.quantities import quantity

PLANE = nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1))


def reported(curves, *, goal="minimize", policy=None, steps=None):
    """A study whose trials reported these values and ended: "stop", "fail", "go" (pending), else they told the last."""
    policy = nr.gp_ucb(PLANE.grid(6), nr.SquaredExponential(0.4), noise=0.1) if policy is None else policy
    study = nr.Study(policy if steps is None else policy.using(pruning=nr.slots.Never(steps=steps)), seed=0, goal=goal)
    for values, end in curves:
        trial = study.ask()
        for step, value in enumerate(values, 1):
            study.report(trial, step, value)
        if end == "stop":
            study.stop(trial)
        elif end == "fail":
            study.fail(trial, "it crashed")
        elif end != "go":
            study.tell(trial, values[-1])
    return study


def panel_of(study, **options):
    return curves_panel(quantity(study, None), None, "loss", **options)


def points(panel, label):
    return [mark for mark in panel.marks if isinstance(mark, Points) and mark.label == label]


SOME = [([3.0, 2.0], "tell"), ([2.5, 1.0], "tell"), ([4.0], "stop"), ([3.9], "fail"), ([2.0], "go")]


def test_each_way_to_end_has_a_mark_and_the_best_is_highlighted():
    panel = panel_of(reported(SOME))
    (stopped,), (finished,) = points(panel, "stopped"), points(panel, "finished")
    assert (stopped.shape, stopped.x.tolist(), stopped.y.tolist()) == ("O", [1.0], [4.0])
    assert stopped.hover == ["trial 2: stopped at step 1 with 4"]
    assert (finished.shape, finished.y.tolist()) == ("o", [2.0])  # The best is apart.
    best = [mark for mark in panel.marks if isinstance(mark, Line) and mark.label]
    assert [(mark.label, mark.y.tolist()) for mark in best] == [("trial 1, lowest told", [2.5, 1.0])]
    assert [mark.shape for mark in panel.marks if isinstance(mark, Points)][-1] == "*"
    assert {mark.label for mark in panel.marks if isinstance(mark, Points)} >= {"failed", "pending"}
    assert points(panel, "pending")[0].opacity < finished.opacity
    assert panel.title == "2 finished, 1 stopped, 1 pending, 1 failed\nstopping saved 17% of the steps"


def test_the_share_that_stopping_saved_is_of_the_full_length():
    assert "saved 17%" in panel_of(reported(SOME)).title  # 1 of 3 * 2 steps
    assert "saved 30%" in panel_of(reported(SOME, steps=10)).title  # 9 of 3 * 10 steps
    assert "saved" not in panel_of(reported(SOME[:2])).title


def test_the_title_says_how_many_stops_would_have_been_better_as_the_spared_ones_show():
    rule = nr.slots.Median(steps=2, finished=1, explore=0.5)
    study = nr.Study(nr.gp_ucb(PLANE.grid(6), nr.SquaredExponential(0.4), noise=1.0).using(pruning=rule), seed=0)
    for i in range(20):
        trial = study.ask()
        if study.report(trial, 1, 1.0 - 0.1 * i):
            study.report(trial, 2, 1.0 + i % 2)
            study.tell(trial, 1.0 + i % 2)
        else:
            study.stop(trial)
    found = study.pruned()
    assert found.finished > found.missed > 0
    assert f"; about {round(found.regretted)} of {found.stopped} stops would have been" in panel_of(study).title


def test_of_many_curves_the_best_and_those_not_ended_are_drawn():
    values = np.random.default_rng(0).uniform(1.0, 2.0, 150)
    curves = [([3.0, float(value)], "stop" if i % 2 else "tell") for i, value in enumerate(values)]
    curves[20] = ([3.0, 0.5], "tell")
    study = reported(
        [*curves, ([1.0], "go")], policy=nr.gp_ucb(nr.Arms.grid(0, 1, 9), nr.SquaredExponential(0.2), noise=1.0)
    )
    panel = panel_of(study)
    assert f"drawn are {MOST} of 151 curves" in panel.title
    assert len(points(panel, "pending")[0].x) == 1
    assert "*" in [mark.shape for mark in panel.marks if isinstance(mark, Points)]
    assert sum(len(mark.x) for mark in panel.marks if isinstance(mark, Points)) == MOST


def test_a_long_curve_is_drawn_through_its_lowest_and_highest_values():
    values = np.linspace(2.0, 1.0, 5000)
    values[3000] = 9.0
    panel = panel_of(reported([(values.tolist(), "tell")]))
    line = next(mark for mark in panel.marks if isinstance(mark, Line))
    assert len(line.x) < 200
    assert line.y.max() == 9.0


@pytest.mark.parametrize(
    ("curve", "log"),
    [
        ([8.0, 2.0, 0.4, 0.2, 0.1, 0.1, 0.1, 0.1], True),
        ([0.9, 0.8, 0.7, 0.6, 0.5, 0.5, 0.4, 0.4], False),
        ([8.0, 2.0, 0.4, 0.2, 0.1, 0.1, 0.0, 0.1], False),
        ([-8.0, -2.0, -0.4, -0.2, -0.1, -0.1, -0.1, -0.1], False),
    ],
)
def test_an_axis_is_logarithmic_where_positive_numbers_crowd_at_the_low_end(curve, log):
    panel = panel_of(reported([(curve, "tell"), (curve[:3], "stop")]))
    assert (panel.x.log, panel.y.log) == (False, log)


def test_steps_that_grow_by_factors_have_a_logarithmic_axis():
    study = reported([])
    trial = study.ask()
    for k in range(10):
        study.report(trial, 2**k, 1.0)
    assert panel_of(study).x.log


def test_a_curve_that_diverges_does_not_crush_the_others():
    low, high = panel_of(reported([([3.0, 2.0], "tell")] * 8 + [([-3.0, 1e9], "stop")])).y.limits
    assert -4.0 < low < high < 4.0


def test_the_range_and_the_label_are_those_given():
    ax = nr.plots.curves(reported(SOME), range=(0.0, 5.0), label="error").axes[0]
    assert (ax.get_ylim(), ax.get_ylabel()) == ((0.0, 5.0), "error")


def test_the_page_of_a_trial_highlights_it_beside_the_best():
    study = reported(SOME)
    labels = [mark.label for mark in panel_of(study, chosen=2).marks]
    assert "trial 2, stopped" in labels
    assert "trial 1, lowest told" in labels
    assert [mark.label for mark in panel_of(study, chosen=1).marks] == [mark.label for mark in panel_of(study).marks]


def test_a_study_without_a_report_has_no_picture():
    study = reported([])
    study.tell(study.ask(), 1.0)
    with pytest.raises(nr.NoRegretError, match="No trial has reported a step"):
        nr.plots.curves(study)


def test_curves_without_an_answer_are_drawn_without_a_best():
    panel = panel_of(reported([([2.0, 1.0], "stop"), ([2.0], "go")]))
    assert not any(mark.label.startswith("trial") for mark in panel.marks)


def test_a_study_of_stopped_trials_alone_names_the_picture_that_shows_them():
    study = reported([([1.0], "fail"), ([1.0], "stop"), ([2.0], "stop")])
    with pytest.raises(nr.NoRegretError, match=r"draw: 1 trial failed and 2 trials stopped early.*nr\.plots\.curves"):
        nr.plots.history(study)


def test_contexts_have_no_best_curve():
    policy = nr.gp_ucb(nr.Arms.grid(0, 1, 5), nr.SquaredExponential([0.2, 0.2]), noise=0.1, context=nr.Box([0], [1]))
    study = nr.Study(policy, seed=0)
    trial = study.ask([0.5])
    study.report(trial, 1, 1.0)
    study.tell(trial, 1.0)
    panel = panel_of(study)
    assert "Each context has a best of its own" in panel.title
    assert not any(mark.label.startswith("trial") for mark in panel.marks)


def test_with_a_fidelity_the_best_is_one_at_the_full_setting():
    study = nr.Study(nr.auto(PLANE, fidelity=nr.Fidelity("rows", 10, 1000)), goal="minimize", seed=0)
    for _ in range(7):
        trial = study.ask()
        study.tell(trial, trial.parameters["x"] + 1.0 - 10.0 / trial.context_parameters["rows"])  # Cheap ones lie.
    assert History(study).best.number == study.best().number
    assert study.best().context_parameters["rows"] == 1000
    assert "Each context" not in nr.plots.timeline(study).axes[0].get_title(loc="left")


def test_stopped_trials_are_open_marks_at_their_last_value_in_pictures_of_trials():
    study = reported(SOME)
    name, where = "stopped, at the last value", ["trial 2: stopped at step 1 with 4"]
    history = history_panels(History(study), None, "loss")[0]
    (mark,) = points(history, name)
    assert (mark.shape, mark.x.tolist(), mark.y.tolist(), list(mark.hover)) == ("O", [2.0], [4.0], where)
    through = centre_of(study)
    for panel in slice_panels(slices_of(study, through, None), study, through, (0.0, 5.0), "loss"):
        (mark,) = points(panel, name)
        assert (mark.shape, mark.y.tolist(), list(mark.hover)) == ("O", [4.0], where)
    lines = parallel_panel(study, axes_of_trials(study), (0.0, 8.0))
    (mark,) = points(lines, name)
    assert (mark.x.tolist(), mark.y.tolist()) == ([2.0], [0.5])
    assert [each.label for each in lines.marks if isinstance(each, Line) and each.dashed] == ["stopped"]
    assert "stopped" in {text.get_text() for text in nr.plots.timeline(study).legends[0].get_texts()}


def test_a_last_value_beyond_the_axis_is_at_its_edge_and_says_its_number():
    study = reported([*SOME, ([1e9], "stop")])
    panel = history_panels(History(study), (0.0, 5.0), "loss")[0]
    (mark,) = points(panel, "1 stopped outside, up to 1e9")
    assert mark.y[0] == panel.y.limits[1] > 5.0  # No value is there, as of other trials beyond the axis.
    assert mark.shape == "^"
    assert list(mark.hover) == [ended_at(study.trials[5])] == ["trial 5: stopped at step 1 with 1e9"]
    (others,) = points(panel, "stopped, at the last value")
    assert others.y.tolist() == [4.0]


def test_stopped_trials_are_never_the_best_and_end_a_line_of_the_distribution():
    study = reported([*SOME, ([0.0], "stop")])
    assert History(study).best_value == 1.0
    assert History(study).ended == 5
    assert nr.plots.edf(study).axes[0].get_lines()[0].get_ydata()[-1] == pytest.approx(2 / 5)
