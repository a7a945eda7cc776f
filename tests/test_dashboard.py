"""What the dashboard's pages show, as data: right, small, and there for studies of every kind."""

import json
import math
import time

import numpy as np
import pytest

import nilregret as nr
from nilregret._utils.checks import many
from nilregret.cli.overview import _best_facts, _delays_text, overview
from nilregret.errors import InvalidInput
from nilregret.plots.ticks import spread_evenly, thinned
from nilregret.serve.dashboard.views.alternatives import doubt_of, fitted_noise, noise_of
from nilregret.serve.dashboard.views.comparison import compare
from nilregret.serve.dashboard.views.grid import PER_PAGE, grid_view
from nilregret.serve.dashboard.views.health import changes, constraints_view, delays
from nilregret.serve.dashboard.views.pictures import measured, short
from nilregret.serve.dashboard.views.posterior import posterior_view
from nilregret.serve.dashboard.views.progress import progress
from nilregret.serve.dashboard.views.settings import description
from nilregret.serve.dashboard.views.standing import standing, verdict
from nilregret.serve.dashboard.views.status import is_unchanged, order_of, status
from nilregret.serve.dashboard.views.studies_list import Wanted, items_of, listed, sparkline
from nilregret.serve.dashboard.views.trials import explanation_view, trial_record
from nilregret.serve.dashboard.views.value_of_learning import value_view
from nilregret.serve.work.deadlines import Rule
from nilregret.serve.work.study_notes import NONE, StudyNotes
from nilregret.storage import MemoryStorage
from nilregret.storage.sql import SqlStorage
from nilregret.study.curves import running_mean
from nilregret.study.formatting import duration

from .dashboard import KERNEL, KINDS, arms, hill, marks, noise, play, studies
from .reference import mapped

pytestmark = pytest.mark.usefixtures("few_draws")
NOW = 1_750_010_000.0
SHOWN = 6e-4  # pages are sent the four digits that are read


@pytest.fixture(scope="module")
def made():
    return studies()


# -- every kind of study -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_view_of_every_study_is_what_json_can_hold_and_looking_changes_nothing(made, kind):
    study = made[kind]
    before = (order_of(study), repr(study))
    found = [
        progress(study), value_view(study), posterior_view(study), delays(study, now=NOW), changes(study),
        constraints_view(study), status(study, now=NOW), description(study), grid_view(study, []),
    ]  # fmt: skip
    assert len(json.dumps(found, allow_nan=False)) > 500
    assert (order_of(study), repr(study)) == before


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("of_no_trial", "of_added_points")])
def test_every_decision_can_be_explained(made, kind):
    study = made[kind]
    said = explanation_view(study.explain(len(study.trials) - 1, draws=0))
    assert said["why"] == study.explain(len(study.trials) - 1, draws=0).why
    assert said["candidates"][0]["name"] == "chosen"
    assert json.dumps(said, allow_nan=False)


def test_a_study_without_trials_and_one_of_failures_say_so(made):
    empty, failed = made["of_no_trial"], made["of_failures"]
    assert "Nothing has been asked yet" in progress(empty)["summary"]
    assert "All of 4 trials failed" in progress(failed)["summary"]
    assert [status(each, now=NOW)["state"] for each in (empty, failed)] == ["empty", "failing"]
    assert value_view(failed)["facts"] == []
    assert status(failed, now=NOW)["best"] is None


def test_a_study_is_silent_after_a_day_and_an_hour_after_its_last_answer():
    study = nr.Study(arms(), clock=lambda: NOW)
    waits_for = study.ask()
    for _ in range(3):
        study.tell(study.ask(), 0.5)
    assert status(study, now=NOW + 86_000.0)["state"] == "active"  # an answer is waited for
    assert status(study, now=NOW + 90_000.0)["state"] == "silent"
    study.tell(waits_for, 0.5)
    assert [status(study, now=NOW + after)["state"] for after in (600.0, 7200.0)] == ["active", "silent"]
    known = status(study, now=NOW)["known"]
    assert [is_unchanged(study, known, now=NOW + after) for after in (600.0, 7200.0)] == [True, False]


def test_how_long_answers_are_waited_for_is_said_in_words():
    rule = Rule(deadline=7200.0, on_deadline="reward", default_reward=0.0)
    study = nr.Study(arms(), about={"who": "we", **rule.fact})
    facts = dict(description(study))
    assert facts["answers"] == "are waited for 2 h, then 0 is told instead"
    assert facts["who"] == "we"


# -- pieces --------------------------------------------------------------------------------------------------------


def test_thinning_keeps_the_lowest_and_the_highest_of_each_column():
    values = np.random.default_rng(0).normal(size=50_000)
    kept = thinned(values, 800)
    assert len(kept) <= 1601
    assert kept[-1] == 49_999
    for part in np.array_split(kept, 1):
        assert {int(values.argmin()), int(values.argmax())} <= set(part.tolist())
    edges = np.linspace(0, 50_000, 800, endpoint=False).astype(int)
    highest = np.maximum.reduceat(values, edges)
    assert np.array_equal(np.maximum.reduceat(values[kept], np.searchsorted(kept, edges)), highest)
    assert thinned(values[:1600], 800).tolist() == list(range(1600))


def test_running_means_and_even_spreads():
    values = np.arange(10.0)
    assert running_mean(values, 3).tolist() == [0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    assert spread_evenly(5, 9).tolist() == [0, 1, 2, 3, 4]
    assert spread_evenly(1000, 5).tolist() == [0, 250, 500, 749, 999]


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.123456, "0.1235"), (-2.5, "-2.5"), (123456.7, "123457"), (50_000, "50,000"), (None, "-"), (True, "True")],
)
def test_numbers_are_short(value, said):
    assert short(value) == said


def test_estimates_have_the_digits_that_are_known_and_ranges_hold_what_they_did():
    assert measured(2555.3, 661.2) == ("2560", "1890 to 3220")
    assert measured(98.87, 103.3) == ("100", "-10 to 210")
    assert measured(0.0081, 0.0473) == ("0.008", "-0.04 to 0.056")
    assert measured(5_640_034_839.0, 1.87e9) == ("5.6e9", "3.7e9 to 7.6e9")
    assert measured(1.819, 1e-9) == ("1.819", "1.81899 to 1.81901")
    assert measured(-0.001, 5.0) == ("0", "-5.1 to 5")
    assert measured(0.5, 0.0) == ("0.5", "0.5 to 0.5")
    assert measured(1e-300, 1e-300)[0] == "1e-300"
    assert measured(1e99, 1e98)[1] == "9e98 to 1.1e99"


def test_words_are_counted_in_english():
    said = [many(count, what) for count, what in ((1, "study"), (2, "study"), (0, "trial"), (1, "play"), (3, "play"))]
    assert said == ["1 study", "2 studies", "0 trials", "1 play", "3 plays"]
    assert many(2_000_000_000, "play") == "2,000,000,000 plays"


def test_running_means_of_runs_count_every_play():
    values, times = np.array([0.0, 1.0, 4.0]), np.array([2.0, 8.0, 1.0])
    plays = np.repeat(values, times.astype(int))
    ends = np.cumsum(times).astype(int) - 1
    for window in (1, 3, 5, 20):
        assert np.allclose(running_mean(values, window, times), running_mean(plays, window)[ends])


def test_durations_in_words():
    assert [duration(seconds) for seconds in (0.25, 59, 150, 8000, 400_000)] == [
        "0.25 s", "59 s", "2.5 min", "2.2 h", "5 days",
    ]  # fmt: skip


# -- progress ------------------------------------------------------------------------------------------------------


def test_progress_has_every_reward_the_running_mean_and_the_best_so_far(made):
    study = made["of_losses"]
    picture = progress(study)
    rewards = [trial.reward for trial in study.trials]
    (told,), (mean,), (best,) = (marks(picture, name) for name in ("observed", "mean of the last 20", "best so far"))
    outside = len(rewards) - len(told["x"])
    assert not outside or len(marks(picture, f"{outside} outside, up to ")[0]["x"]) == outside
    assert np.isclose(np.array(told["y"])[:, None], rewards, rtol=SHOWN).any(axis=1).all()
    places = np.searchsorted(best["x"], np.arange(30), side="right") - 1  # of steps, where they change
    assert np.allclose(np.array(best["y"])[places], np.minimum.accumulate(rewards), rtol=SHOWN)
    assert np.allclose(mean["y"][-1], np.mean(rewards[-20:]), rtol=SHOWN)
    assert picture["scene"]["panels"][0]["y"]["label"] == "loss"
    assert picture["table"]["head"] == ["trial", "observed", "mean of the last 20", "best so far (lowest told)"]
    assert float(picture["table"]["rows"][-1][1]) == told["y"][-1]


def test_what_violates_a_constraint_is_marked_and_never_the_best(made):
    study = made["of_constraints"]
    picture = progress(study)
    (broken,), (best,) = marks(picture, "not feasible"), marks(picture, "best so far")
    violating = [trial for trial in study.trials if not trial.feasible]
    outside = sum(len(mark["x"]) for mark in marks(picture) if " outside, " in mark.get("label", ""))
    assert (broken["shape"], len(broken["x"]) + outside) == ("x", len(violating))
    satisfying = [trial.reward for trial in study.trials if trial.feasible]
    assert math.isclose(best["y"][-1], max(satisfying), rel_tol=SHOWN)


@pytest.mark.parametrize("count", [3_000, pytest.param(50_000, marks=pytest.mark.nightly)])
def test_many_trials_fit_on_a_screen(count):
    study = nr.Study(arms(4), seed=0)
    rewards = np.random.default_rng(0).normal(0.0, 0.1, size=count)
    for start in range(0, count, 1_000):
        trials = study.ask(count=1_000)
        study.tell_many(list(zip(trials, rewards[start : start + 1_000].tolist(), strict=True)))
    picture = progress(study)
    assert picture["thinned"]
    assert len(json.dumps(picture)) < 120_000
    (ends,) = marks(picture, "lowest and highest")
    assert (min(ends["y"]), max(ends["y"])) == pytest.approx((rewards.min(), rewards.max()), rel=SHOWN)
    assert f"{count:,} answers of {count:,} trials" in picture["summary"]
    assert len(json.dumps([value_view(study), posterior_view(study), delays(study, now=NOW)])) < 120_000


# -- cost and worth ------------------------------------------------------------------------------------------------


def test_the_account_is_kept_in_the_users_units(made):
    study = made["of_arms"]
    found = compare(study)
    trials, mean = study.trials, study.predict()[0]
    first, best = trials[0].arm, study.best().arm
    rewards = np.array([trial.reward for trial in trials])
    assert math.isclose(found.total, rewards.sum())
    assert math.isclose(found.first.total, 40 * mean[first])
    assert np.allclose(found.gained, np.cumsum(rewards - mean[first]))
    assert np.allclose(found.gained + found.missed, np.arange(1, 41) * (mean[best] - mean[first]))
    assert math.isclose(found.cost[0], 40 * mean[best] - rewards.sum())
    cost, gain = value_view(study)["pictures"]
    assert np.allclose(marks(cost, "lost against")[0]["y"], np.cumsum(mean[best] - rewards), rtol=SHOWN, atol=1e-5)
    assert np.allclose(marks(gain, "gained against")[0]["y"], np.cumsum(rewards - mean[first]), rtol=SHOWN, atol=1e-5)
    assert (cost["title"], gain["title"]) == ("What did it cost to learn?", "What is it worth?")


def test_the_rows_of_an_old_log_are_no_decisions_of_the_study():
    study = nr.Study(nr.auto(nr.Arms(range(2)), reward="bernoulli"), seed=0)
    for i in range(20):
        study.add([0.0], float(i % 4 == 0))
    assert compare(study) is None
    assert "Not counted: 20 trials that the study did not decide." in value_view(study)["verdict"]["said"]
    first = study.ask()
    study.tell(first, 0.0)
    study.tell(study.ask(), 1.0)
    found = compare(study)
    assert (found.total, found.trials.tolist(), found.called) == (1.0, [20.0, 21.0], "first choice")


@pytest.fixture
def decided(monkeypatch):
    """Takes trials that a test adds, at points of its choice, for decisions of the study."""
    monkeypatch.setattr("nilregret.serve.dashboard.views.comparison.was_asked", lambda trial: True)


@pytest.mark.usefixtures("decided")
@pytest.mark.parametrize("goal", ["maximize", "minimize"])
def test_what_costs_and_what_gains_is_so_whichever_way_is_better(goal):
    """Rewards of -1, then of 1; losses of 1, then of -1: 20 missed at first, nothing later, all of it gained."""
    sign = 1.0 if goal == "maximize" else -1.0
    study = nr.Study(nr.gp_ucb(nr.Arms([[0.0], [50.0]]), KERNEL, noise=0.01), goal=goal)
    study.quiet = True
    for x in [0.0] * 10 + [50.0] * 10:
        study.add([x], sign if x else -sign)
    found = value_view(study)
    cost, gain = (np.array(marks(each, kind="line")[-1]["y"]) for each in found["pictures"])
    assert np.allclose(cost[[9, 19]], 20.0, atol=0.1)
    assert np.allclose(gain[[9, 19]], [0.0, 20.0], atol=0.1)
    said = {fact["name"]: fact["value"] for fact in found["facts"]}
    assert float(said["Still lost a trial"]) == pytest.approx(1.0, abs=0.1)
    assert said["Worth from now on"].startswith("+2 ")
    assert found["verdict"]["tone"] == "good"


def test_runs_of_plays_count_as_often_as_they_were_played():
    error = noise(4)
    runs = nr.Study(arms().using(switching="lazy"), seed=1)
    for _ in range(80):
        trial = runs.ask()
        runs.tell(trial, [hill(trial) + error() for _ in range(trial.repeats)])
    trials, mean = runs.trials, runs.predict()[0]
    plays = np.array([trial.repeats for trial in trials])
    rewards = plays * [trial.reward for trial in trials]
    found = compare(runs)
    assert plays.max() > 1
    assert found.plays == plays.sum()
    assert math.isclose(found.total, rewards.sum())
    assert math.isclose(found.first.total, plays.sum() * mean[trials[0].arm])
    assert math.isclose(found.cost[0], plays.sum() * mean[runs.best().arm] - rewards.sum())
    assert noise_of(runs, runs.trials[:]) == runs.policy.noise
    said = " ".join(value_view(runs)["sentences"])
    assert f"{plays.sum():,} answers" in said
    assert "a play" in said


def test_what_is_lost_and_what_is_saved_are_told_apart():
    errors = [noise(5), noise(5)]
    up = play(nr.Study(arms(), seed=1), 40, lambda trial: hill(trial) + errors[0]())
    down = play(nr.Study(arms(), seed=1, goal="minimize"), 40, lambda trial: -(hill(trial) + errors[1]()))
    rewards, losses = compare(up), compare(down)
    assert np.allclose(rewards.gained, losses.gained)
    assert np.allclose(rewards.cost, losses.cost)
    assert rewards.total == -losses.total
    assert "gained" in str(value_view(up)).lower()
    assert "saved" in str(value_view(down)).lower()


def test_any_trial_may_be_what_others_are_compared_with(made):
    study = made["of_arms"]
    assert compare(study, baseline=30).first.mean[0] == study.predict()[0][study.trials[30].arm]
    with pytest.raises(InvalidInput, match="There is no trial 40 to compare with"):
        compare(study, baseline=40)


def test_after_a_restart_only_what_came_since_is_compared(made):
    study = made["of_changes"]
    assert study.restarts
    found = compare(study)
    assert found.since == study.restarts[-1]
    assert found.trials[0] == found.since
    assert any(f"Only trials from {found.since} on count" in note for note in value_view(study)["notes"])


def test_a_choice_that_violates_constraints_is_not_what_others_are_compared_with(made):
    study = made["of_constraints"]
    first = next(trial for trial in study.trials if trial.feasible)
    assert study.trials[0].number != first.number
    assert compare(study).first.mean[0] == study.predict()[0][first.arm]


def test_a_policy_without_beliefs_is_judged_by_what_was_told(made):
    study = made["of_a_budget"]
    found, first = compare(study), next(trial for trial in study.trials if trial.feasible)
    told = [trial.reward for trial in study.trials if trial.arm == first.arm]
    assert math.isclose(found.first.mean[0], np.mean(told))


def test_the_ranges_hold_what_they_promise():
    """True totals of functions from the prior: outside of two posterior deviations with probability 0.0455.

    Of 100 the number outside is binomial; more than 15 has probability 2e-5.
    """
    points = nr.Arms.grid(0, 1, 15)
    root = np.linalg.cholesky(KERNEL(points.points, points.points) + 1e-9 * np.eye(15))
    outside = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        f = root @ rng.normal(size=15)
        study = nr.Study(nr.gp_ucb(points, KERNEL, noise=0.3, regularization=0.09), seed=seed)
        study.quiet = True
        play(study, 25, lambda trial, f=f, rng=rng: float(f[trial.arm] + 0.3 * rng.normal()))
        found = compare(study, baseline=0)
        truth = 25 * f[study.trials[0].arm]
        outside += abs(truth - found.first.total) > 2 * found.first.std.sum()
    assert outside <= 15


# -- beliefs -------------------------------------------------------------------------------------------------------


def test_a_line_is_the_posterior_with_its_bounds(made):
    study = made["of_arms"]
    (picture,) = posterior_view(study)["slices"]
    lower, upper, median = (
        np.array(marks(picture, name)[0]["y"]) for name in ("lower confidence", "upper confidence", "median")
    )
    assert np.allclose(median, study.predict()[0], rtol=SHOWN, atol=1e-9)
    assert np.allclose([lower, upper], study.bounds(), rtol=SHOWN, atol=1e-9)
    assert len(marks(picture, "trials, faded")[0]["x"]) == 40 - len(marks(picture, kind="points")[1:-1])


def test_what_has_been_forgotten_is_not_drawn_as_what_is_known(made):
    study = made["of_changes"]
    (picture,) = posterior_view(study)["slices"]
    (told,), (before,) = marks(picture, "trials, faded"), marks(picture, "trials forgotten by now")
    numbers = [[int(each.split()[1].rstrip(":")) for each in mark["hover"].split("\n")] for mark in (told, before)]
    assert min(numbers[0]) >= study.restarts[-1] > max(numbers[1])
    assert (told["shape"], before["shape"]) == ("o", "d")
    assert not marks(posterior_view(made["of_arms"])["slices"][0], "trials forgotten")


def test_bounds_that_prove_nothing_are_not_called_proved(made):
    (picture,) = [each for each in posterior_view(made["of_a_space"])["slices"] if each["title"] == "Along rate"]
    assert not marks(picture, "lower confidence bound")
    (band,), (median,) = marks(picture, "95% of the posterior"), marks(picture, "median")  # quantiles of warped rewards
    assert (np.array(band["low"]) < np.array(median["y"])).all()


def test_a_study_under_contexts_settles_once_its_arms_are_told_apart():
    policy = nr.gp_ucb(nr.Arms.grid(0, 1, 2), KERNEL, noise=0.1, context=nr.Box([0.0], [1.0]))
    study = nr.Study(policy, seed=1)
    rng = np.random.default_rng(0)
    for number in range(150):
        trial = study.ask(context=[rng.random()])
        study.tell(trial, trial.point[0] + 0.1 * rng.normal())
        if number == 4:
            assert verdict(study).sentence == "Whether it has settled is said from 20 answers on."
        if number == 149:
            assert verdict(study).settled
    assert verdict(study).sentence.startswith("Under 20 recent contexts, finding out whether another arm is ")
    assert standing(study, now=time.time())["next"]["said"].startswith("Go on asking under each context.")


def test_recent_contexts_are_sorted_as_numbers():
    contexts = nr.Space(hour=nr.Int(0, 23), day=nr.Choice("mon", "fri"))
    study = nr.Study(nr.gp_ucb(nr.Arms.grid(0, 1, 2), KERNEL, noise=0.1, context=contexts))
    for hour, day in ((10, "mon"), (9, "mon"), (10, "fri"), (0, "fri")):
        study.tell(study.ask({"hour": hour, "day": day}), 1.0)
    shown = [row["context"] for row in standing(study, now=time.time())["under"]]
    assert shown == ["hour=0, day=fri", "hour=9, day=mon", "hour=10, day=fri", "hour=10, day=mon"]


def test_bands_hold_their_share_of_the_posterior_in_the_picture_and_in_its_table(made):
    study = made["of_arms"]
    (picture,) = posterior_view(study)["slices"]
    mean, std = study.predict()
    for name, far in (("95% of the posterior", 1.96), ("80%", 1.2816), ("50%", 0.6745)):  # of a normal distribution
        (band,) = marks(picture, name)
        assert np.allclose(band["low"], mean - far * std, rtol=1e-2, atol=1e-3)
        assert np.allclose(band["to"], mean + far * std, rtol=1e-2, atol=1e-3)
    head, (first, *_) = picture["table"]["head"], picture["table"]["rows"]
    assert head[:3] == ["point", "95% of the posterior, from", "95% of the posterior, to"]
    (band,) = marks(picture, "95%")
    assert [*map(float, first[1:3])] == [band["low"][0], band["to"][0]]


def test_trials_beside_a_line_are_paler_the_less_they_say_about_it(made):
    study = made["of_a_box"]
    for picture in posterior_view(study)["slices"]:
        points = [each for each in marks(picture, kind="points") if each["shape"] in "ov^"]
        shown = {
            int(words.split()[1].rstrip(":")): opacity
            for each in points
            for words, opacity in zip(each["hover"].split("\n"), each["opacity"], strict=True)
        }
        assert len(shown) == 12
        assert max(shown.values()) == 1.0
        assert min(shown.values()) >= 0.12


def test_the_maps_are_the_median_and_its_uncertainty_at_their_cells(made):
    study = made["of_a_box"]
    mean, spread = posterior_view(study, {"p0": "0.5"})["maps"]
    (median,), (half,) = marks(mean, kind="heat"), marks(spread, kind="heat")
    xs, ys = ([*map(float, median[side].split("\n"))] for side in ("across", "up"))
    found, std = (float(each[0]) for each in study.predict([[xs[3], ys[7]]]))
    at = 7 * len(xs) + 3
    assert median["z"][at] == pytest.approx(found, rel=1e-2, abs=1e-4)
    assert half["z"][at] == pytest.approx(std, rel=2e-2)
    assert "widest at" in spread["summary"]
    assert len(marks(mean, kind="points")[0]["x"]) == 12
    assert mean["table"]["head"][0] == "point[1] \\ point[0]"


def test_the_map_of_a_constraint_says_where_it_is_lowest():
    limits = lambda trial: [trial.point[0] - 0.5]  # noqa: E731
    policy = nr.gp_ucb(nr.Box([0, 0], [1, 1]), KERNEL, noise=0.1, constraints=nr.EveryRound(count=1))
    study = play(nr.Study(policy), 6, hill, constraints=limits)
    found = posterior_view(study, {"channel": "1"})["maps"][0]
    assert "lowest at" in found["summary"]
    (heat,) = marks(found, kind="heat")
    assert heat["label"] == "constraint 1"


def test_arms_on_a_grid_have_a_map_and_those_without_an_order_a_rank(made):
    grid = posterior_view(made["of_a_grid"])["maps"][0]
    (heat,) = marks(grid, kind="heat")
    assert heat["up"].split("\n") == ["a", "b"]
    assert (len(heat["y"]), len(heat["z"])) == (3, 12)
    (ranked,) = posterior_view(made["of_unordered_arms"])["slices"]
    (mean,) = marks(ranked, "posterior mean")
    assert mean["y"] == sorted(mean["y"], reverse=True)
    assert len(mean["y"]) == 30


def test_contexts_are_chosen_by_hand(made):
    study = made["of_contexts"]
    found = posterior_view(study, {"c0": "0.9", "c1": "1"})
    (picture,) = found["slices"]
    mean, _ = study.predict(context={"load": 0.9, "day": "weekend"})
    assert np.allclose(marks(picture, "median")[0]["y"], mean, rtol=SHOWN, atol=1e-9)
    assert [field["name"] for field in found["context_fields"]] == ["load", "day"]
    assert found["context_fields"][1]["options"][1]["chosen"]


def test_what_hangs_on_a_choice_is_asked_for_only_where_it_counts(made):
    study = made["of_a_space"]
    names = {kind: [f["name"] for f in posterior_view(study, {"p2": kind})["fields"]] for kind in "01"}
    assert names == {"0": ["rate", "depth", "kind"], "1": ["rate", "depth", "kind", "share"]}
    assert posterior_view(study, {"p1": "5"})["fields"][1]["value"] in ("4", "6")  # of steps of 2


@pytest.mark.parametrize(
    "query",
    [{"p0": "much"}, {"p0": "nan"}, {"p2": "7"}, {"p2": "-1"}, {"x": "9"}, {"x": "a"}, {"channel": "1"}],
)
def test_what_is_not_there_is_refused(made, query):
    with pytest.raises(InvalidInput):
        posterior_view(made["of_a_space"], query)


def test_numbers_beyond_a_range_are_taken_for_its_end(made):
    assert posterior_view(made["of_a_space"], {"p0": "1e300"})["fields"][0]["value"] == "1.0"


def test_each_constraint_can_be_looked_at(made):
    study = made["of_constraints"]
    found = posterior_view(study, {"channel": "2"})
    (band,) = marks(found["slices"][0], "confidence bounds")
    assert np.allclose([band["low"], band["high"]], study.bounds(channel=2), rtol=SHOWN, atol=1e-9)
    assert marks(found["slices"][0], "the limit")[0]["y"] == [0, 0]


def test_the_line_of_a_constraint_is_its_mean():
    """Not the middle of its bounds, which is elsewhere where the belief is skew."""
    policy = nr.auto(nr.Box([0.0], [1.0]), constraints=1)
    study = nr.Study(policy, seed=0)
    for i in range(9):
        study.add([i / 8.0], 0.1 * i, constraints=[(-1.0) ** i * 3.0 ** (i - 4)])
    (picture,) = posterior_view(study, {"channel": "1"})["slices"]
    (line,), band = marks(picture, "posterior mean"), marks(picture, kind="band")[0]
    mean, lower, upper = (np.array(each) for each in (line["y"], band["low"], band["high"]))
    points = np.array(line["x"])[:, None]
    warp = study.replica.current().outputs.constraints[0].posterior.units.warp
    believed = study.replica.current().outputs.constraints[0].envelope(points, None)
    wanted = mapped(warp.back, np.zeros(1), believed.mean, believed.std)
    assert np.allclose(study.predict(points, channel=1), wanted, rtol=1e-5)
    assert np.allclose(mean, wanted[0], rtol=1e-3, atol=1e-6)
    assert np.allclose([lower, upper], study.bounds(points, channel=1), rtol=1e-3, atol=1e-6)
    assert np.abs(mean - (lower + upper) / 2.0).max() > 0.1 * np.abs(mean).max()
    with pytest.raises(InvalidInput, match="`channel`"):
        study.predict(points, channel=2)


def test_what_is_recommended_and_what_was_told_have_names_of_their_own(made):
    """Of a lucky value the posterior says that it was luck."""
    for goal, word in (("maximize", "highest"), ("minimize", "lowest")):
        study = nr.Study(arms(), goal=goal)
        study.quiet = True
        sign = 1.0 if goal == "maximize" else -1.0
        for reward in (0.3, 1.5, 0.2, 0.25):
            study.add([0.0], sign * reward)
        study.add([1.0], sign * 0.9)
        drawn = progress(study)
        (told,) = marks(drawn, "best so far")
        assert (told["label"], told["y"][-1]) == (f"best so far ({word} told)", sign * 1.5)
        assert f"the {word} told is {short(sign * 1.5)}" in drawn["summary"]
        assert status(study, now=NOW)["best"]["number"] == study.best().number == 4
        assert marks(posterior_view(study)["slices"][0], "recommended")[0]["shape"] == "*"
    assert posterior_view(made["of_a_box"])["where"].startswith("Through trial ")
    assert posterior_view(made["of_a_box"], {"p0": "0.12"})["where"].startswith("Through ")


def test_only_rounds_that_must_satisfy_a_constraint_violate_it():
    for world, violations in ((nr.OnAverage(), 0), (nr.EveryRound(), 6), (nr.Safe(start=[0.0], kernel=KERNEL), 6)):
        study = play(nr.Study(arms(constraints=world)), 1, hill, constraints=lambda trial: [-1.0])
        for _ in range(6):
            study.add([1.0], 1.0, constraints=[0.5])
        crosses = marks(progress(study), "not feasible")
        assert sum(len(each["x"]) for each in crosses) == violations
        assert sum(row["violates"] for row in grid_view(study, [])["rows"]) == violations
        highest = marks(progress(study), "best so far")
        assert [each["label"] for each in highest] == (
            ["best so far (highest told without a violation)"] if violations else []  # of budgets the mean is drawn
        )
        assert not highest or highest[0]["y"][-1] < 1.0


def test_each_constraint_has_a_name(made):
    found = posterior_view(made["of_constraints"], {"channel": "2"})
    assert [each["text"] for each in found["channels"]] == ["reward", "constraint 1", "constraint 2"]


def test_a_script_has_no_posterior(made):
    assert "keeps no posterior" in posterior_view(made["of_a_script"])["why"]


# -- waiting, changes, budgets -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_late_answers_are_counted_as_the_command_line_does(made, kind):
    study = made[kind]
    found, said = delays(study, now=NOW), overview(study)["delays"]
    assert found["too_late_count"] == len(said["too_late"])
    assert found["pending_count"] == len([trial for trial in study.trials if trial.state == "pending"])
    assert found["late_count"] >= said["late"]


def test_what_is_told_at_a_deadline_is_no_late_answer():
    rule = Rule(deadline=60.0, on_deadline="reward", default_reward=0.0)
    study = nr.Study(arms(), about=rule.fact, clock=lambda: NOW)
    for trial in [study.ask() for _ in range(3)]:
        if trial.number < 2:
            study.abandon(trial, "no answer within 60 s")
        study.tell(trial, 0.0 if trial.number < 2 else 0.7)
    found = delays(study, now=NOW)
    assert [row["number"] for row in found["late"]] == []
    assert "No answer came in time to 2 trials, and they counted as 0." in found["sentence"]
    assert "1 answer" not in found["sentence"]
    assert [trial_record(study, number)["marks"] for number in (0, 2)] == [["no answer in time"], []]
    said = overview(study)["delays"]
    assert (said["answers"], said["of_abandoned"], said["set_at_deadline"]) == (1, [], 2)
    assert _delays_text(said).endswith("; none in time to 2 trials")
    assert _delays_text(said | {"of_abandoned": list(range(30))}).count("19 and 10 more; none in time") == 1


def test_arms_are_named_where_a_trial_is_said():
    study = nr.Study(nr.gp_ucb(nr.Arms(range(3)), KERNEL, noise=0.05), seed=0)
    study.describe_arm(2, name="scarf")
    study.add([2], 1.0)
    study.ask(among=[2])
    study.ask(among=[0])
    assert trial_record(study, 0)["where"] == "scarf, arm 2 (2)"
    assert [row["where"] for row in delays(study, now=NOW)["pending"]] == ["scarf, arm 2 (2)", "arm 0 (0)"]
    assert status(study, now=NOW)["best"]["where"] == "scarf, arm 2 (2)"
    assert dict(_best_facts(overview(study)))["recommended"] == "trial 0 at scarf, arm 2 (2): 1"


def test_late_answers_say_whether_they_count(made):
    found = delays(made["of_late_answers"], now=NOW)
    words = {each["number"]: each["what"] for each in found["late"]}
    assert words[0] == "came too late to count"
    assert words[6].endswith("after it had been given up")
    assert {each["number"] for each in found["pending"]} >= {7, 8}


def test_restarts_have_a_reason_and_the_evidence_a_threshold(made):
    study = made["of_changes"]
    found = changes(study)
    assert [each["round"] for each in found["restarts"]] == study.restarts
    assert all(each["reason"] for each in found["restarts"])
    (evidence,), (enough,) = marks(found["picture"], "evidence for"), marks(found["picture"], "enough")
    assert math.isclose(max(evidence["y"]), study.evidence.values.max(), rel_tol=SHOWN)
    assert math.isclose(enough["y"][0], study.evidence.threshold, rel_tol=SHOWN)
    assert f"in at most {math.exp(-study.evidence.threshold):.2%} of runs" in found["picture"]["summary"]
    assert "does not weigh" in changes(made["of_arms"])["picture"]["summary"]


def test_budgets_are_sums_of_the_constraint_values(made):
    study = made["of_constraints"]
    found = constraints_view(study)
    used = np.sum([trial.constraints for trial in study.trials], axis=0)
    violated = np.sum([np.maximum(trial.constraints, 0.0) for trial in study.trials], axis=0)
    assert not found["averaged"]
    (picture,) = found["pictures"]
    lines = marks(picture, "constraint", "line")
    assert np.allclose([each["y"][-1] for each in lines], violated, rtol=SHOWN)
    assert [each["total"] for each in found["rows"]] == [short(float(total)) for total in used]
    count = sum(not trial.feasible for trial in study.trials)
    assert f"{count} of 25 answered trials violated a constraint" in found["sentence"]
    assert constraints_view(made["of_arms"]) is None


def test_a_budget_has_its_history_and_that_of_what_violating_it_costs(made):
    study = made["of_a_budget"]
    found, (numbers, history) = constraints_view(study), study.multiplier_history()
    used, costs = found["pictures"]
    values = np.cumsum([trial.constraints[0] for trial in study.trials])
    zero, line = marks(used, kind="line")
    assert np.allclose(line["y"], values, rtol=SHOWN)
    assert zero["label"] == "the budget, used to the full"
    (charge,) = marks(costs, kind="line")
    assert charge["x"] == [*numbers.tolist(), len(study.trials)]  # the next one, too
    assert np.allclose(charge["y"], [*history[:, 0], study.multipliers[0]], rtol=SHOWN)
    assert len(np.unique(history)) > 2
    (row,) = found["rows"]
    assert row["multiplier"] == short(study.multipliers[0])
    assert row["highest"] == short(max(history.max(), study.multipliers[0]))
    assert row["verdict"] == ("over the budget" if values[-1] > 0 else "within the budget")


def test_of_many_constraints_those_most_in_the_way_are_drawn():
    policy = arms(constraints=nr.OnAverage(count=60, step=0.1))
    study = play(nr.Study(policy), 6, hill, constraints=lambda trial: [0.01 * j - 0.295 for j in range(60)])
    found = constraints_view(study)
    assert [len(marks(picture, "constraint")) for picture in found["pictures"]] == [4, 4]
    assert [each["label"] for each in marks(found["pictures"][0], "constraint")] == [
        "constraint 57", "constraint 58", "constraint 59", "constraint 60",
    ]  # fmt: skip
    assert (len(found["rows"]), found["left_out"]) == (50, 10)
    assert "and 26 more" in found["sentence"]


# -- trials --------------------------------------------------------------------------------------------------------


def test_trials_are_listed_page_by_page_the_latest_first(made):
    study = made["of_changes"]
    first, last = grid_view(study, []), grid_view(study, [("page", "4")])
    assert [each["number"] for each in first["rows"]] == list(range(159, 159 - PER_PAGE, -1))
    assert [each["number"] for each in last["rows"]] == list(range(9, -1, -1))
    assert grid_view(study, [("page", "99")])["page"] == 4
    assert grid_view(made["of_failures"], [("state", "failed")])["count"] == 4


def test_a_trial_shows_what_was_told_before_it_was_corrected(made):
    study = made["of_late_answers"]
    assert trial_record(study, 0)["corrected"][0]["reward"] == short(hill(study.trials[0]))
    assert trial_record(study, 0)["marks"] == ["corrected"]
    assert trial_record(study, 99) is None
    assert not trial_record(made["of_added_points"], 2)["asked"]


def test_the_page_of_a_trial_says_on_which_side_of_a_limit_it_lies():
    space = nr.Space(x=nr.Float(0, 100))
    study = nr.Study(nr.auto(space, constraints=2), about={"constraints": "latency <= 50.0, size >= 2"})
    study.add({"x": 62}, 1.0, constraints=[12.0, -0.5], metrics={"latency": 62})
    found = trial_record(study, 0)
    assert found["constraints"] == "latency <= 50.0: 12 over the limit, size >= 2: 0.5 within the limit"
    assert found["metrics"] == [("latency", "62")]


# -- what others would have brought, under contexts --------------------------------------------------------------------


def told_under_contexts(seed, contexts, truth):
    """What `account` says of rewards under contexts of a box, where the first choice is arm 0 of two."""
    study = nr.Study(nr.gp_ucb(nr.Arms.grid(0, 1, 2), nr.SquaredExponential(0.4), noise=0.1, context=nr.Box(0.0, 1.0)))
    study.quiet = True
    rng = np.random.default_rng([5, seed])
    for i, context in enumerate(contexts):
        arm = min(i % 3, 1)
        study.add([float(arm)], truth(arm, context) + 0.1 * rng.standard_normal(), context=[context])
    return study, compare(study)


@pytest.mark.usefixtures("decided")
def test_each_context_of_a_week_stands_for_itself():
    """Of 100 trials under 7 contexts that come in turn: as `predict` has it of each trial."""
    study, found = told_under_contexts(0, [(i % 7) / 7 for i in range(100)], lambda arm, c: np.sin(6 * c) + arm * c)
    contexts = [trial.context for trial in study.trials]
    rewards = np.array([trial.reward for trial in study.trials])
    first = np.array([study.predict([[0.0]], context=context)[0][0] for context in contexts])
    best = np.array([study.predict(context=context)[0].max() for context in contexts])
    np.testing.assert_allclose(found.gained, np.cumsum(rewards - first), atol=1e-9)
    np.testing.assert_allclose(found.missed, np.cumsum(best - rewards), atol=1e-9)


@pytest.mark.usefixtures("decided")
def test_the_best_choice_under_a_context_is_among_all_that_were_tried():
    """The 24 points that were tried first are not the best ones."""
    study = nr.Study(nr.gp_ucb(nr.Box(0.0, 1.0), nr.SquaredExponential(0.4), noise=0.1, context=nr.Box(0.0, 1.0)))
    for i in range(40):
        x, context = (0.01 * i, 0.9) if i < 25 else (0.5 + 0.03 * (i - 24), 0.9 + 0.01 * (i % 3))
        study.add([x], -abs(x - context), context=[context])
    tried = np.array([trial.point for trial in study.trials])
    best = [study.predict(tried, context=trial.context)[0].max() for trial in study.trials]
    np.testing.assert_allclose(compare(study).best.mean, best, atol=1e-9)


@pytest.mark.usefixtures("decided")
def test_ranges_allow_for_a_fit_that_takes_noise_for_the_function():
    """Repeats differ by more than the fitted noise. Where nothing is fitted, posterior deviations count as they are."""
    rng, study = np.random.default_rng(4), nr.Study(nr.auto(nr.Arms.grid(0, 1, 5)), seed=0)
    for i in range(20):
        study.add([0.25 * (i % 5)], 0.1 * (i % 5) + rng.normal())
    answered = list(study.trials)
    variance, units = fitted_noise(study)
    scaled = np.array([(units.warped(trial.reward) - units.center) / units.unit for trial in answered]).reshape(4, 5)
    apart = np.sqrt(((scaled - scaled.mean(axis=0)) ** 2).sum() / 15)
    doubt = doubt_of(study, answered)
    assert doubt == pytest.approx(max(1.0, apart / np.sqrt(variance)))
    assert doubt > 1.0
    found = compare(study)
    _, std = study.predict(study.best().point[None])
    np.testing.assert_allclose(found.best.std, doubt * std[0])
    assert doubt_of(nr.Study(arms()), answered) == 1.0


@pytest.mark.parametrize("told", [(0.0, 1.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0)])
@pytest.mark.parametrize("context", [None, nr.Arms(range(3))], ids=["alone", "under contexts"])
def test_four_answers_to_many_questions_prove_nothing(told, context):
    """A fit to four rewards found hardly any noise, and the page said that learning has cost 2.98 (2.63 to 3.33)."""
    study = nr.Study(nr.auto(nr.Arms(range(4)), context=context, answers="late"), seed=1)
    study.quiet = True
    trials = [study.ask(None if context is None else [float(i % 3)]) for i in range(30)]
    for trial, reward in zip(trials, told, strict=False):
        study.tell(trial, reward)
    verdict = value_view(study)["verdict"]
    if context is None or not any(told):
        assert "not known yet" in verdict["said"]
        assert verdict["tone"] == "unsure"
    else:  # Its range was from -38 to 38, of rewards of 0 and 1.
        assert verdict == {"said": "Of the first choice too little is known to compare with it.", "tone": ""}


@pytest.mark.usefixtures("decided")
def test_a_budget_is_kept_by_the_choices_compared_with_as_far_as_is_known():
    """One lucky value at x = 8 does not make it a choice that keeps the budget. Mixed with x = 2 it is part of one."""
    limits = nr.OnAverage(step=1.0, noise=1.0, kernel=nr.SquaredExponential(1.0, scale=4.0))
    policy = nr.gp_ucb(nr.Arms.grid(0, 10, 11), nr.SquaredExponential(3.0), noise=2.0, constraints=limits)
    study = nr.Study(policy)
    for x, value in ((8.0, -0.2), (8.0, 3.0), (2.0, -1.0), (2.0, -1.5), (9.0, 2.0)):
        study.add([x], x, constraints=[value])
    found = compare(study)
    mix = study.mix()
    assert (found.first.name, study.best().arm) == ("arm 2 (2)", 2)
    assert [trial.arm for trial in mix.trials] == [2, 8]
    assert found.best.name.endswith("% arm 8 (8)")
    np.testing.assert_allclose(found.best.mean, mix.reward)
    assert mix.reward > study.predict([[2.0]])[0][0]
    assert mix.use[0] == pytest.approx(0.0, abs=1e-9)
    assert any("is a mix of the points tried" in note for note in value_view(study)["notes"])
    assert status(study, now=NOW)["best"]["mix"].endswith(overview(study)["mix"]["said"])
    assert overview(study)["budgets"] == [{"name": "constraint 1", "mean": pytest.approx(0.46), "of": 5}]


@pytest.mark.usefixtures("decided")
def test_ranges_allow_for_contexts_that_stand_for_others():
    """Of 20 runs the truth is outside for at most 5: both hold with 0.999 where ranges are right 19 times in 20."""
    outside = np.zeros(2, dtype=int)
    for seed in range(20):
        contexts = np.random.default_rng(seed).uniform(0.0, 1.0, 150)
        study, found = told_under_contexts(seed, contexts, lambda arm, c: np.sin(6 * c) + arm * c)
        rewards = np.array([trial.reward for trial in study.trials])
        truth = [(rewards - np.sin(6 * contexts)).sum(), (np.sin(6 * contexts) + contexts - rewards).sum()]
        said = [(found.gained[-1], found.gained_half[-1]), found.cost]
        outside += [abs(value - true) > half for (value, half), true in zip(said, truth, strict=True)]
    assert (outside <= 5).all()


@pytest.mark.parametrize("later", [10.0, 2 * 3600.0, 2 * 86400.0])
@pytest.mark.parametrize("outcomes", ["ppp", "oop", "ooo", "offf", "fp", "of" + 20 * "p", "fofa", 5 * "o" + 20 * "f"])
def test_a_line_of_a_study_that_nobody_has_opened_says_what_it_says_of_an_open_one(tmp_path, outcomes, later):
    storage = SqlStorage(f"sqlite:///{tmp_path}/s.db")
    study = nr.Study(nr.gp_ucb(nr.Arms.grid(0, 1, 99), KERNEL, noise=0.1), storage=storage, name="s")
    for number in range(0, len(outcomes) + 1, len(outcomes)):  # The second look follows what the first one remembers.
        for outcome in outcomes:
            trial = study.ask()
            if outcome == "o":
                study.tell(trial, 1.0)
            elif outcome != "p":
                study.fail(trial, "why") if outcome == "f" else study.abandon(trial, "why")
        now = trial.asked_at + later
        (line,), opened = items_of(storage, [("s", storage.listed()[0])], [NONE], now=now), status(study, now=now)
        known = line.stored.summary
        assert (line.state, line.why) == (opened["state"], opened["state_why"]), number
        assert (known.trials, known.pending, known.last_at) == (opened["trials"], opened["pending"], opened["last_at"])
    storage.close()


@pytest.mark.parametrize("where", ["memory", "sqlite"])
def test_the_list_finds_sorts_and_pages(where, tmp_path):
    storage = MemoryStorage() if where == "memory" else SqlStorage(f"sqlite:///{tmp_path}/s.db")
    for i in range(120):
        storage.find_or_make(f"study {i}", policy=arms().to_json(), goal="maximize", seed=0, about="{}")
    study = nr.Study.open(storage=storage, name="study 7")
    rewards = [0.5, -1.0, 2.0]
    for reward in rewards:
        study.tell(study.ask(), reward)
    study.ask()
    tagged = {3: StudyNotes(tags=("shop",)), 4: StudyNotes(archived=True), 5: StudyNotes(note="Old Oven")}
    own = [(each.name, each) for each in storage.listed()]
    items = items_of(storage, own, [tagged.get(i, NONE) for i in range(120)], now=0.0)

    def names(**query):
        shown, facts = listed(items, Wanted.of(query), now=0.0)
        return [item.name for item in shown], facts

    first, facts = names()
    assert (first[0], len(first), facts["count"], facts["pages"], facts["archived"]) == ("study 119", 50, 119, 3, 1)
    assert names(page="3")[0][-1] == names(page="99")[0][-1] == "study 0"
    assert names(q="shop")[0] == names(tag="shop")[0] == ["study 3"]
    assert names(q="oven OLD")[0] == ["study 5"]
    assert names(archived="1")[0] == ["study 4"]
    assert names(sort="-trials")[0][0] == names(state="active")[0][0] == "study 7"
    assert names(q="no such")[1]["count"] == 0
    outcomes = [*(("observed", reward) for reward in rewards[1:]), ("pending", None)]
    assert storage.latest([storage.find("study 7").id], 3) == {storage.find("study 7").id: outcomes}
    storage.close()


@pytest.mark.parametrize(
    "query", [{"state": "x"}, {"age": "2"}, {"sort": "x"}, {"page": "0"}, {"page": "x"}, {"page": "9" * 20}]
)
def test_a_list_of_nonsense_is_refused(query):
    with pytest.raises(nr.errors.InvalidInput, match="There is no"):
        Wanted.of(query)


def test_a_sparkline_stays_within_its_box():
    for rewards in ([1.0, 1.0], [0.0, 1e308, -1e308], [3.0], [], [1e-300, 2e-300, 5.0]):
        points = [tuple(map(float, point.split(","))) for point in sparkline(rewards).split()]
        assert len(points) == (len(rewards) if len(rewards) > 1 else 0)
        assert all(0 <= x <= 96 and 0 <= y <= 24 for x, y in points)


def of_many(count, seed=0):
    """Most rewards lie near 0, one in fifty at 3 or -3: extremes alone would draw two bands and a void."""
    study, rng = nr.Study(arms()), np.random.default_rng(seed)
    study.quiet = True
    trials = study.ask(count=count)
    rewards = rng.normal(0.0, 0.1, count) + 3.0 * rng.choice([0, 1, -1], count, p=[0.96, 0.02, 0.02])
    study.tell_many(list(zip(trials, rewards.tolist(), strict=True)))
    return study, rewards


def test_many_answers_are_drawn_by_their_quantiles():
    study, rewards = of_many(5000)
    found = progress(study)
    assert found["thinned"]
    parts = np.array_split(rewards, 200)
    (median,), bands = marks(found, "median of 25 values"), marks(found, kind="band")
    np.testing.assert_allclose(median["y"], [np.median(part) for part in parts], atol=5e-3)
    np.testing.assert_allclose(bands[0]["low"], [np.quantile(part, 0.05) for part in parts], atol=5e-3)
    assert [band["label"] for band in bands] == ["9 in 10 of 25 values", "the middle half"]
    (ends,) = marks(found, "lowest and highest of 25 values")
    assert len(ends["x"]) <= 400
    assert len(json.dumps(found)) < 60_000


def test_a_part_of_many_answers_has_points_again():
    study, rewards = of_many(5000)
    found = progress(study, between=(100.0, 220.0))
    (told,) = marks(found, "observed")
    assert np.isclose(np.array(told["y"])[:, None], rewards[100:221], rtol=SHOWN).any(axis=1).all()
    assert len(told["x"]) > 100
    assert found["scene"]["panels"][0]["x"]["limits"] == [100.0, 220.0]
    assert found["summary"] == progress(study)["summary"]
    assert not marks(progress(study, between=(9e9, 1e10)), "observed")  # nothing is there


# -- which trials count, and which do not --------------------------------------------------------------------------


def limited(constraints, rewards=((0.2, 1.0, -1.0), (0.4, 9.0, 1.0), (0.6, 2.0, -1.0), (0.8, 1.5, -1.0))):
    study = nr.Study(arms(11, constraints=constraints))
    for x, reward, value in rewards:
        study.add([x], reward, constraints=[value])
    return study


def test_the_highest_told_leaves_out_violations_and_says_so_and_all_sentences_agree():
    study = limited(nr.EveryRound())
    found = status(study, now=NOW)["told"]
    assert (found["number"], "without 1 trial that violated a limit" in found["said"]) == (2, True)
    for _ in range(20):
        study.add([0.2], 0.5, constraints=[-1.0])
    assert verdict(study).sentence.endswith("The highest told is that of trial 2, 21 trials ago.")
    recommended = status(study, now=NOW)["best"]["number"]
    assert ("recommended is the best posterior mean" in status(study, now=NOW)["told"]["said"]) == (recommended != 2)


def test_of_constraints_on_average_all_trials_count_and_the_page_says_so():
    found = status(limited(nr.OnAverage(step=0.5)), now=NOW)["told"]
    assert (found["number"], "trials above a limit count" in found["said"]) == (1, True)


def test_the_highest_told_is_one_since_the_last_restart(made):
    study = made["of_changes"]
    (*_, last) = study.restarts
    found = status(study, now=NOW)["told"]
    assert found["number"] >= last
    assert f"of the trials from {last} on" in found["said"]
    shown = overview(study)
    assert shown["best_told"]["number"] == found["number"]
    assert found["said"].startswith(shown["best_told_of"])
    assert "highest told since the last restart" in progress(study)["summary"]
    best = [reward for reward in (trial.reward for trial in study.trials[last:]) if reward is not None]
    assert marks(progress(study), "best so far")[0]["y"][-1] == pytest.approx(max(best), rel=SHOWN)


def test_a_paused_study_says_so_and_what_to_do(made):
    study = made["of_arms"]
    found = standing(study, now=NOW, paused=True)
    assert (found["at"]["state"], found["next"]["link"]) == ("paused", "Go on")
    known = found["at"]["known"]
    assert [is_unchanged(study, known, now=NOW, paused=paused) for paused in (True, False)] == [True, False]


def test_a_study_of_long_ago_has_ended():
    study = nr.Study(arms(), clock=lambda: NOW)
    study.tell(study.ask(), 0.5)
    assert [status(study, now=NOW + days * 86_400.0)["state"] for days in (29, 31)] == ["silent", "ended"]


@pytest.mark.usefixtures("decided")
def test_a_gain_over_a_choice_that_was_not_the_first_praises_nothing():
    rewards = ((0.2, 1.0, 1.0), *((x, reward, -1.0) for x, reward in ((0.4, 0.0), (0.6, 2.0)) for _ in range(30)))
    found = value_view(limited(nr.EveryRound(), rewards))["verdict"]
    assert "against the first choice within the limits" in found["said"]
    assert found["tone"] == ""
    study = nr.Study(arms())
    for reward in (0.0, *[2.0] * 30):
        study.add([reward / 2], reward)
    assert value_view(study)["verdict"]["said"].startswith("Learning has paid")
    assert "against the choice of trial 5" in value_view(study, baseline=5)["pictures"][1]["summary"]


def test_clicks_have_a_rate_and_no_highest_and_contexts_have_a_table():
    contexts = nr.Space(device=nr.Choice("phone", "desktop"))
    study = nr.Study(nr.auto(nr.Arms.grid(0, 1, 3), reward="bernoulli", context=contexts), clock=lambda: NOW)
    for i in range(24):
        trial = study.ask({"device": ("phone", "desktop")[i % 2]})
        study.tell(trial, int(trial.number % 3 == 0))
    found = standing(study, now=NOW)
    assert (found["at"]["told"], found["at"]["best"]["mean_of"]) == (None, "rate")
    assert [row["context"] for row in found["under"]] == ["device=desktop", "device=phone"]
    picture = progress(study)
    assert [each["label"] for each in marks(picture, kind="line")] == ["rate of the last 20"]
    assert "the rate is" in picture["summary"]


def test_where_nothing_was_answered_words_stand_for_pictures_of_the_posterior(made):
    found = posterior_view(made["of_no_trial"])
    assert (found["slices"], found["maps"]) == ([], [])
    assert found["why"].startswith("No trial has been answered yet")


def test_axes_of_whole_numbers_have_whole_ticks(made):
    axes = [each["scene"]["panels"][0]["x"] for each in posterior_view(made["of_a_space"])["slices"]]
    found = {axis["label"]: [float(words) for _, words in axis["ticks"]] for axis in axes if axis["label"] != "kind"}
    assert all(tick.is_integer() for tick in found["depth"])
    assert not all(tick.is_integer() for tick in found["rate"])


def test_slices_come_by_how_much_the_mean_varies_and_those_left_out_are_named():
    space = nr.Space(**{f"x{i}": nr.Float(0, 1) for i in range(10)})
    study = nr.Study(nr.gp_ucb(space, nr.SquaredExponential(1.0), noise=0.1))
    rng = np.random.default_rng(0)
    for point in rng.random((30, 10)):
        study.add(point, 3.0 * point[9] + point[5] + 0.1 * point[0])
    found = posterior_view(study)
    assert [each["title"] for each in found["slices"]][:2] == ["Along x9", "Along x5"]
    assert (len(found["slices"]), len(found["left_out"])) == (8, 2)
