"""The tab Explore: which parameter matters, and the trials on parallel axes."""

import re

import numpy as np
import pytest

import nilregret as nr
from nilregret.serve.dashboard.views.columns import columns_of
from nilregret.serve.dashboard.views.explored import MOST_LINES, importance_view, parallel_view

from .dashboard import KERNEL, Pages, play, studies


def of_a_sum(**more):
    study = nr.Study(nr.gp_ucb(nr.Box([0, 0], [1, 1]), KERNEL, noise=0.05), seed=0, **more)
    study.quiet = True
    for x, y in np.random.default_rng(0).random((40, 2)):
        study.add([x, y], 3.0 * x + y)
    return study


def test_the_parameter_that_matters_is_named_and_kept_until_the_study_changes():
    study = of_a_sum()
    found = importance_view(study)
    assert found["sentence"].startswith("point[0] matters most. The trials determine 9")
    assert [row["name"] for row in found["rows"]] == ["point[0]", "point[1]"]
    assert found["rows"][0]["value"]["total"] == pytest.approx(90, abs=8)
    assert importance_view(study) is found
    study.add([0.5, 0.5], 2.0)
    assert importance_view(study) is not found


@pytest.mark.parametrize("kind", ["of_no_trial", "of_failures", "of_a_line", "of_a_script"])
def test_where_nothing_can_be_said_the_reason_is(kind):
    study = studies()[kind]
    assert importance_view(study)["why_not"]
    assert importance_view(study)["rows"] == []


def test_lines_go_through_the_places_of_the_parameters():
    space = nr.Space(rate=nr.Float(1e-4, 1, log=True), kind=nr.Choice("a", "b"), n=nr.Int(1, 5),
                     share=nr.when("kind", "b", nr.Float(0, 1)))  # fmt: skip
    study = nr.Study(nr.auto(space), seed=0)
    study.add({"rate": 0.01, "kind": "a", "n": 3}, 1.0)
    study.add({"rate": 1.0, "kind": "b", "n": 5, "share": 0.5}, 2.0)
    found = parallel_view(study)
    assert [side["key"] for side in found["sides"]] == ["rate", "kind", "n", "share", "reward"]
    assert [side["ends"][2] for side in found["sides"]] == [True, False, False, False, False]
    bottom, top = found["bottom"], found["top"]
    heights = [[(bottom - float(point.split(",")[1])) / (bottom - top) for point in line["points"].split()]
               for line in sorted(found["lines"], key=lambda each: each["number"])]  # fmt: skip
    np.testing.assert_allclose(heights, [[0.5, 0.0, 0.5, -0.06, 0.0], [1.0, 1.0, 1.0, 0.5, 1.0]], atol=2e-3)
    assert [line["fifth"] for line in found["lines"]] == [0, 2]


def test_many_trials_are_drawn_in_part_with_the_best():
    study = nr.Study(nr.gp_ucb(nr.Arms.grid(0, 1, 50), KERNEL, noise=0.1))
    study.quiet = True
    trials = study.ask(count=3000)
    rewards = np.random.default_rng(0).normal(0.0, 0.1, 3000)
    study.tell_many(list(zip(trials, rewards.tolist(), strict=True)))
    found = parallel_view(study)
    assert len(found["lines"]) <= MOST_LINES
    assert found["lines"][-1]["number"] == int(rewards.argmax()) or found["lines"][-1]["fifth"] == 4
    assert "of 3,000 answered trials, the best and others evenly spread" in found["sentence"]


def test_the_tab_names_what_it_loads():
    pages = Pages()
    play(nr.Study(nr.gp_ucb(nr.Box([0, 0], [1, 1]), KERNEL, noise=0.1), storage=pages.storage, name="a"), 6,
         lambda trial: trial.point[0])  # fmt: skip
    text = pages.get("/studies/a/explore").text
    assert {"importance", "parallel", "beliefs"} <= set(re.findall(r"part/(\w+)", text))
    assert 'data-axis="point.0"' in pages.get("/studies/a/part/parallel").text


@pytest.mark.parametrize("kind", sorted(studies()))
def test_the_grid_takes_the_key_of_each_axis(kind):
    study = studies()[kind]
    assert {side["key"] for side in parallel_view(study)["sides"]} <= set(columns_of(study).layout)


def test_a_range_on_the_axis_of_a_study_with_one_coordinate_selects():
    pages = Pages()
    play(nr.Study(nr.gp_ucb(nr.Box([0], [1]), KERNEL, noise=0.1), storage=pages.storage, name="a"), 6,
         lambda trial: trial.point[0])  # fmt: skip
    (key,) = set(re.findall(r'data-axis="([^"]+)"', pages.get("/studies/a/part/parallel").text)) - {"reward"}
    answer = pages.get(f"/studies/a/part/grid?from.{key}=0&to.{key}=1")
    assert (answer.status, "6 trials" in answer.text) == (200, True)


def test_ends_of_axes_are_numbers_however_small():
    space = nr.Space(rate=nr.Float(1e-7, 1e-2, log=True), kind=nr.Choice("a", "b", "c"))
    study = nr.Study(nr.auto(space), seed=0)
    study.quiet = True
    play(study, 4, lambda trial: 1.0 * trial.number)
    rate, kind, _ = parallel_view(study)["sides"]
    assert (rate["ends"], kind["ends"], kind["high"]) == ([1e-7, 1e-2, True], [0.0, 2.0, False], "c")
