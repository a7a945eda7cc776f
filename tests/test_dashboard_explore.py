"""The tab Explore: which parameter matters, and the trials on parallel axes."""

import re

import numpy as np
import pytest

import nilregret as nr
from nilregret.plots.parallel_picture import MOST_BEST, MOST_LINES, OFF
from nilregret.serve.dashboard.rendering import middle, unbroken
from nilregret.serve.dashboard.views.columns import columns_of
from nilregret.serve.dashboard.views.explored import importance_view, parallel_view
from nilregret.serve.dashboard.views.posterior import posterior_view

from .dashboard import KERNEL, KINDS, Pages, marks, play, study_of


def of_a_sum(**more):
    study = nr.Study(nr.gp_ucb(nr.Box([0, 0], [1, 1]), KERNEL, noise=0.05), seed=0, **more)
    study.quiet = True
    for x, y in np.random.default_rng(0).random((40, 2)):
        study.add([x, y], 3.0 * x + y)
    return study


@pytest.mark.usefixtures("few_draws")
def test_the_parameter_that_matters_is_named_and_kept_until_the_study_changes():
    study = of_a_sum()
    found = importance_view(study)
    assert found["sentence"].startswith("What moves the reward: point[0] most. The trials determine 9")
    rows = found["pictures"][0]["table"]["rows"]
    assert [row[0] for row in rows] == ["point[0]", "point[1]"]
    assert int(rows[0][1].rstrip("%")) == pytest.approx(90, abs=8)
    assert [words for _, words in found["pictures"][1]["scene"]["panels"][0]["y"]["ticks"]] == ["point[1]", "point[0]"]
    assert importance_view(study) is found
    study.add([0.5, 0.5], 2.0)
    assert importance_view(study) is not found


@pytest.mark.parametrize("kind", ["of_no_trial", "of_failures", "of_a_line", "of_a_script"])
def test_where_nothing_can_be_said_the_reason_is(kind):
    study = study_of(kind)
    assert importance_view(study)["why_not"]
    assert importance_view(study)["pictures"] == []


def test_lines_go_through_the_places_of_the_parameters():
    space = nr.Space(rate=nr.Float(1e-4, 1, log=True), kind=nr.Choice("a", "b"), n=nr.Int(1, 5),
                     share=nr.when("kind", "b", nr.Float(0, 1)))  # fmt: skip
    study = nr.Study(nr.auto(space), seed=0)
    study.add({"rate": 0.01, "kind": "a", "n": 3}, 1.0)
    study.add({"rate": 1.0, "kind": "b", "n": 5, "share": 0.5}, 2.0)
    found = parallel_view(study)
    assert [side["key"] for side in found["sides"]] == ["rate", "kind", "n", "share", "reward"]
    assert [side["ends"][2] for side in found["sides"]] == [True, False, False, False, False]
    (others,), (best,) = marks(found["picture"], "others"), marks(found["picture"], "best tenth")
    np.testing.assert_allclose(others["y"][:5], [0.5, 0.0, 0.5, OFF, 0.0], atol=2e-3)
    np.testing.assert_allclose(best["y"], [1.0, 1.0, 1.0, 0.5, 1.0], atol=2e-3)
    assert [each["text"] for each in marks(found["picture"], kind="words")].count("off") == 1
    assert [each["key"] for each in found["picture"]["brush"]] == [side["key"] for side in found["sides"]]


def test_contexts_have_an_axis():
    study = nr.Study(nr.auto(nr.Arms.grid(0, 1, 3), context=nr.Space(device=nr.Choice("phone", "desktop"))), seed=0)
    study.quiet = True
    for i in range(20):
        study.add(study.policy.domain.points[i % 3], float(i % 5 == 0), context={"device": ("phone", "desktop")[i % 2]})
    found = parallel_view(study)
    assert [side["key"] for side in found["sides"]] == ["context.device", "point.0", "reward"]
    assert "Best tenth with ties: 4 of 20 trials" in found["picture"]["summary"]
    figure = nr.plots.parallel(study)
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["context device", "point", "reward"]


def test_the_axis_of_rewards_reaches_to_the_best_and_leaves_far_worse_ones_at_its_end():
    for goal, ends in (("maximize", ("1", "99")), ("minimize", ("1", "99"))):
        study = nr.Study(nr.gp_ucb(nr.Box([0, 0], [1, 1]), KERNEL, noise=0.1), goal=goal)
        study.quiet = True
        for i, reward in enumerate([-999.0 if goal == "maximize" else 999.0, *map(float, range(1, 100))]):
            study.add([0.01 * i, 0.5], reward)
        found = parallel_view(study)
        assert (found["sides"][-1]["low"], found["sides"][-1]["high"]) == ends
        heights = [mark["y"][2] for mark in marks(found["picture"], kind="line") if mark.get("color") != "text"]
        assert min(heights) >= -0.04


def test_long_names_lose_their_middle_and_lines_break_between_parameters():
    assert middle("learning_rate_of_group_3", 15) == "learnin\u2026group_3"
    assert middle("rate", 15) == "rate"
    assert unbroken("a=<1>, b=0.25") == '<span class="part">a=&lt;1&gt;,</span> <span class="part">b=0.25</span>'


def test_many_trials_are_drawn_in_part_with_the_best():
    study = nr.Study(nr.gp_ucb(nr.Arms.grid(0, 1, 50), KERNEL, noise=0.1))
    study.quiet = True
    trials = study.ask(count=3000)
    rewards = np.random.default_rng(0).normal(0.0, 0.1, 3000)
    study.tell_many(list(zip(trials, rewards.tolist(), strict=True)))
    picture = parallel_view(study)["picture"]
    (others,) = marks(picture, "others")
    best = [mark for mark in marks(picture, kind="line") if mark["color"] == "best"]
    assert len(best) == MOST_BEST
    assert others["x"].count(None) + len(best) <= MOST_LINES
    assert best[-1]["hover"].startswith(f"trial {int(rewards.argmax())}:")
    assert "Best tenth: 300 of 3,000 trials; drawn are" in picture["summary"]


def test_the_tab_names_what_it_loads():
    pages = Pages()
    play(nr.Study(nr.gp_ucb(nr.Box([0, 0], [1, 1]), KERNEL, noise=0.1), storage=pages.storage, name="a"), 6,
         lambda trial: trial.point[0])  # fmt: skip
    text = pages.get("/studies/a/explore").text
    assert {"importance", "parallel", "beliefs"} <= set(re.findall(r"part/(\w+)", text))
    assert '"key":"point.0"' in pages.get("/studies/a/part/parallel").text


@pytest.mark.parametrize("kind", KINDS)
def test_the_grid_takes_the_key_of_each_axis(kind):
    study = study_of(kind)
    assert {side["key"] for side in parallel_view(study)["sides"]} <= set(columns_of(study).layout)


def test_a_range_on_the_axis_of_a_study_with_one_coordinate_selects():
    pages = Pages()
    play(nr.Study(nr.gp_ucb(nr.Box([0], [1]), KERNEL, noise=0.1), storage=pages.storage, name="a"), 6,
         lambda trial: trial.point[0])  # fmt: skip
    (key,) = set(re.findall(r'"key":"([^"]+)"', pages.get("/studies/a/part/parallel").text)) - {"reward"}
    answer = pages.get(f"/studies/a/part/grid?from.{key}=0&to.{key}=1")
    assert (answer.status, "6 trials" in answer.text) == (200, True)


def test_ends_of_axes_are_numbers_however_small():
    space = nr.Space(rate=nr.Float(1e-7, 1e-2, log=True), kind=nr.Choice("a", "b", "c"))
    study = nr.Study(nr.auto(space), seed=0)
    study.quiet = True
    play(study, 4, lambda trial: 1.0 * trial.number)
    rate, kind, _ = parallel_view(study)["sides"]
    assert (rate["ends"], kind["ends"], kind["options"]) == ([1e-7, 1e-2, True], [0.0, 2.0, False], ["a", "b", "c"])


def test_arms_are_called_by_their_names():
    study = nr.Study(nr.gp_ucb(nr.Arms([[0.0, 0.0], [0.0, 1.0]]), KERNEL, noise=0.05), seed=0)
    study.add_arms([[1.0, 0.0]], names=["half price"])
    for point, reward in (([0, 0], 0.1), ([0, 1], 0.2), ([1, 0], 0.9)):
        study.add(point, reward)
    picture = posterior_view(study)["slices"][0]
    assert picture["table"]["rows"][0][0] == "half price"
    assert "First is half price, arm 2 (1, 0), with" in picture["summary"]
    labels = [text.get_text() for text in nr.plots.posterior(study).axes[0].get_xticklabels()]
    assert labels == ["half price", "1", "0"]


def test_arms_that_all_have_names_have_no_order():
    study = nr.Study(nr.gp_ucb(nr.Arms(range(3)), KERNEL, noise=0.05), seed=0)
    for arm, (name, reward) in enumerate([("plain", 0.1), ("bold $", 0.9), ("loud", 0.2)]):
        study.add([arm], reward)
        study.describe_arm(arm, name=name)
    (picture,) = posterior_view(study)["slices"]
    assert [row[0] for row in picture["table"]["rows"]] == ["bold $", "loud", "plain"]
    assert "First is bold $, arm 1 (1), with" in picture["summary"]
    axis = picture["scene"]["panels"][0]["x"]
    assert axis["ticks"] == [[0.0, "bold $"], [1.0, "loud"], [2.0, "plain"]]
    labels = [text.get_text() for text in nr.plots.posterior(study).axes[0].get_xticklabels()]
    assert labels == [r"bold \$", "loud", "plain"]
