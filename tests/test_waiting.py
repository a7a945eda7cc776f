"""Summaries count a decision once its wait is over, with its default, and not before."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import nilregret as nr
from nilregret.__main__ import main
from nilregret.cli.overview import overview, overview_parts
from nilregret.plots.history_picture import History, numbers_told, said
from nilregret.plots.several import best_so_far
from nilregret.serve.dashboard.views.compared import compared_view, facts_of
from nilregret.serve.dashboard.views.comparison import compare
from nilregret.serve.dashboard.views.health import delays
from nilregret.serve.dashboard.views.progress import progress
from nilregret.serve.dashboard.views.status import is_unchanged, status
from nilregret.serve.dashboard.views.value_of_learning import value_view
from nilregret.storage import MemoryStorage
from nilregret.study.terminal import plain
from nilregret.study.waiting import counted_trials, overdue, told_counted, wait_of

from .service import AT, Client, asked
from .service import Clock as ServiceClock

ARMS = nr.Arms(range(3))
RULE = {"deadline": 100.0, "on_deadline": "reward", "default_reward": 0.0, "late": "drop"}


class Clock:
    """Seconds that a test moves on."""

    now = 0.0

    def __call__(self):
        return self.now


def study(rounds, *, rule=None, propensities=True, goal="maximize", storage=None, **more):
    """Clicks with a rate of 1 in 10, each told at once. No silence is told. A decision takes a second."""
    clock, rng = Clock(), np.random.default_rng(0)
    policy = nr.auto(ARMS, reward="bernoulli", **more).using(explore=nr.slots.Uniform(0.3))
    about = {} if rule is None else {"service": rule}
    made = nr.Study(
        policy, seed=0, goal=goal, propensities=propensities, about=about, clock=clock, storage=storage, name="clicks"
    )
    yes = 0.0 if goal == "minimize" else 1.0
    for _ in range(rounds):
        trial = made.ask()
        if rng.random() < 0.1:
            made.tell(trial, yes)
        clock.now += 1.0
    return made, clock


def clicks_among(made, first, last):
    return [float(made.trials[number].reward or 0.0) for number in range(first, last)]


def test_a_decision_counts_once_its_deadline_is_over():
    made, clock = study(300, rule=RULE)
    known = counted_trials(made)
    assert ([trial.number for trial in known.trials], known.waiting) == (list(range(201)), 99)
    assert [trial.reward for trial in known.answered] == clicks_among(made, 0, 201)
    assert known.left_out == "99 trials still waited for, answered or not"
    clock.now += 100.0
    assert [trial.reward for trial in counted_trials(made).answered] == clicks_among(made, 0, 300)


def test_a_stopped_trial_was_not_silent():
    made, clock = study(0, rule=RULE)
    first, _ = made.ask(count=2)
    made.report(first, 1, 0.0)
    made.stop(first)
    clock.now += 200.0
    assert [trial.number for trial in counted_trials(made).answered] == [1]  # The other one counts as silent.
    assert counted_trials(made).trials[0].state == "stopped"


def test_if_nothing_is_open_everything_counts():
    made, _ = study(20, rule=RULE)
    for trial in made.trials[: len(made.trials)]:
        if trial.state == "pending":
            made.tell(trial, 0.0)
    assert len(counted_trials(made).answered) == 20
    assert counted_trials(made).left_out == ""


def test_a_rule_without_a_default_leaves_silence_without_a_reward():
    made, _ = study(300, rule=RULE | {"on_deadline": "abandon", "default_reward": None})
    known = counted_trials(made)
    assert known.waiting == 99
    assert {trial.reward for trial in known.answered} == {1.0}
    assert counted_trials(made, valued=True).waiting == 0


def test_a_decision_may_have_a_deadline_of_its_own():
    made, clock = study(0, rule=RULE)
    made.ask(lease=10.0)
    made.ask()
    clock.now = 50.0
    assert [trial.number for trial in counted_trials(made).trials] == [0]


def test_failed_and_added_trials_are_not_waited_for():
    made, _ = study(10, rule=RULE)
    made.fail(9, "no picture")
    made.abandon(8, "the page fell over")
    made.add(1, 1.0)
    known = counted_trials(made)
    assert [(trial.number, trial.reward) for trial in known.trials] == [(8, None), (9, None), (10, 1.0)]
    assert known.waiting == 8


@pytest.mark.parametrize("goal", ["maximize", "minimize"])
def test_where_silence_means_no_the_wait_is_learned(goal):
    part = nr.slots.Imputed(minimum=1.0 if goal == "minimize" else 0.0, delay=None)
    rng = np.random.default_rng(1)
    policy = nr.gp_ts(ARMS, nr.SquaredExponential(0.3), noise=0.3, norm_bound=1.0, pending=part)
    made = nr.Study(policy, goal=goal, seed=0)
    yes, due = 1.0 - part.minimum, {}
    made.tell(made.ask(), yes)
    assert wait_of(made).length == np.inf  # Fewer than five answers tell no law.
    for number in range(200):
        trial = made.ask()
        if rng.random() < 0.3:
            due.setdefault(number + int(rng.integers(20)), []).append(trial)
        for late in due.pop(number, []):
            made.tell(late, yes)
    wait, known = wait_of(made), counted_trials(made)
    assert 15 <= wait.length <= 40
    assert (wait.in_time, wait.default) == (False, part.minimum)
    assert known.waiting == wait.length
    assert {trial.reward for trial in known.answered} == {0.0, 1.0}


def test_a_window_of_questions_is_a_wait():
    policy = nr.gp_ucb_sdf(
        ARMS, nr.SquaredExponential(0.3), noise=0.1, window=3, minimum=0.0, beta=1.0, regularization=0.01
    )
    made = nr.Study(policy, seed=0)
    trials = [made.ask() for _ in range(7)]
    made.tell(trials[0], 0.7)  # six questions later, which is too late to count
    made.tell(trials[5], 0.5)
    known = counted_trials(made)
    assert [trial.reward for trial in known.trials] == [0.0, 0.0, 0.0]
    assert known.waiting == 4


# -- the readers -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def banners():
    return study(400, rule=RULE)[0]


MEAN, LEFT_OUT = pytest.approx(0.1, abs=0.05), "99 trials still waited for, answered or not"


def test_evaluate(banners):
    result = nr.evaluate(banners, "uniform")
    assert result.lower < 0.1 < result.upper < 0.3
    assert result.logged == np.mean(clicks_among(banners, 0, 301))
    assert result.left_out == {"still waited for, answered or not": 99}
    verdict = str(result).splitlines()[0]
    assert verdict.endswith("Not counted yet: 99 decisions still waited for, answered or not.")
    assert nr.evaluate(banners, "uniform", default_reward=0.0).value == result.value  # not for young decisions


def test_evaluate_says_what_it_waits_for():
    made, _ = study(50, rule=RULE)
    with pytest.raises(nr.errors.InvalidInput, match="All 50 decisions are still waited for"):
        nr.evaluate(made, "uniform")


def test_worth(banners):
    found = compare(banners)
    assert found.total / found.plays == np.mean(clicks_among(banners, 0, 301))
    view = value_view(banners)
    assert view["verdict"]["said"].endswith(f"Not counted yet: {LEFT_OUT}.")
    assert not any("\N{MINUS SIGN}" in said for said in view["sentences"] if "kept throughout" not in said)
    assert view["notes"][-1].startswith("Kernel") or "Not counted" not in view["notes"][-1]


def test_worth_before_anything_counts():
    made, _ = study(50, rule=RULE)
    assert value_view(made)["verdict"]["said"].endswith("Not counted yet: 50 trials still waited for, answered or not.")


def test_rates_and_pictures(banners):
    assert numbers_told(banners).values.mean() == MEAN
    assert progress(banners)["summary"].endswith(f"Not counted yet: {LEFT_OUT}.")
    assert History(banners).values.mean() == MEAN
    assert said(History(banners)).split("\n")[1].split("; expected")[0].endswith(f"not counted yet: {LEFT_OUT}")
    view = compared_view([facts_of(banners, name, now=0.0) for name in ("one", "two")])
    assert float(view["rows"][0]["mean"]) == MEAN
    assert f"Not counted yet in two: {LEFT_OUT}." in view["caution"]


def test_show(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    study(300, rule=RULE | {"deadline": 1e12}, storage=url)  # in the time of the command, which has another clock
    shown = json.loads(CliRunner().invoke(main, ["show", url, "--json"], catch_exceptions=False).stdout)
    assert shown["not_counted_yet"] == "300 trials still waited for, answered or not"
    assert shown["progress"] == []
    text = CliRunner().invoke(main, ["show", url], catch_exceptions=False).stdout
    assert "not counted yet" in text


def test_show_says_the_rate(banners):
    said = overview(banners)
    assert (said["rate"], said["rate_of"]) == (np.mean(clicks_among(banners, 0, 301)), 301)
    facts = str(overview_parts(said, banners)[0].columns[1]._cells)
    assert f"in 301 trials; not counted yet: {LEFT_OUT}" in facts


def overdue_study():
    """Three trials with a lease of 10 s, of which one is told, one reports after 8 s, and one is silent."""
    clock = Clock()
    made = nr.Study(nr.auto(nr.Space(x=nr.Float(0, 1))), seed=0, clock=clock)
    made.tell(made.ask(lease=10.0), 0.5)
    made.ask(lease=10.0)
    running = made.ask(lease=10.0)
    made.ask()
    clock.now = 8.0
    made.report(running, 1, 0.3)
    return made, clock


def test_trials_past_their_deadline_are_counted_by_the_clock_and_nothing_is_written():
    made, clock = overdue_study()
    order = made.replica.record.order
    for clock.now, past in ((9.0, 0), (10.0, 1), (17.0, 1), (18.0, 2), (1e6, 2)):
        assert overdue(made, clock.now) == past
    assert (made.replica.record.order, [trial.state for trial in made.trials].count("pending")) == (order, 3)
    made.ask()  # A write ends their wait.
    assert overdue(made, clock.now) == 0
    assert [trial.state for trial in made.trials].count("abandoned") == 2


def test_rewards_that_are_collected_wait_until_the_deadline_of_the_rule():
    made, clock = study(3, rule=RULE | {"reward": "sum"})
    clock.now = 101.0
    assert overdue(made, 101.0) == sum(trial.state == "pending" and trial.number < 2 for trial in made.trials)
    assert overdue(study(3, rule=RULE | {"on_deadline": "censor"})[0], 1e6) == 0  # They stay pending.


def test_each_page_that_counts_pending_trials_says_how_many_are_past_their_deadline():
    made, clock = overdue_study()
    assert "overdue" not in plain(overview_parts(overview(made), made)[0])
    clock.now = 12.0
    text = plain(overview_parts(overview(made), made)[0])
    assert overview(made)["overdue"] == 1
    assert "1 pending trial past the deadline, until the next call that writes" in text
    at, later = status(made, now=12.0), status(made, now=20.0)
    assert (at["pending"], at["overdue"], later["overdue"]) == (3, 1, 2)
    assert is_unchanged(made, at["known"], now=17.0)
    assert not is_unchanged(made, at["known"], now=19.0)
    assert "3 trials wait for an answer. 1 of them is past the deadline" in delays(made, now=12.0)["sentence"]


def test_the_service_says_it_and_the_next_request_that_writes_ends_it():
    clock = ServiceClock()
    with Client(MemoryStorage(), clock=clock) as client:
        assert client.put(AT, {"arms": [[0.0], [1.0]], **RULE})[0] == 201
        asked(client), asked(client)
        assert client.get(AT)[1]["trials"] == {"all": 2, "pending": 2}
        clock.now += 101.0
        assert client.get(AT)[1]["trials"] == {"all": 2, "pending": 2, "overdue": 2}
        assert b'nilregret_overdue{study="shop",tenant="default"} 2.0' in client.get("/metrics")[1]
        asked(client)
        assert client.get(AT)[1]["trials"] == {"all": 3, "observed": 2, "pending": 1}


@pytest.mark.parametrize("goal", ["maximize", "minimize"])
def test_a_trial_without_constraint_values_is_not_the_best_told(goal):
    study = nr.Study(nr.auto(nr.Box(0, 1), constraints=1), goal=goal)
    sign = 1.0 if goal == "maximize" else -1.0
    study.add([0.2], sign * 1.0, constraints=[-1.0])
    study.add([0.8], sign * 2.0)
    told, words = told_counted(study)
    assert [trial.number for trial in told] == [0]
    assert words == "without 1 trial whose constraint values are missing"
    assert best_so_far(study).tolist() == numbers_told(study).best_so_far.tolist() == [sign, sign]
    assert overview(study)["progress"] == [{"answers": 1, "best": sign}, {"answers": 2, "best": sign}]
    study.tell(1, constraints=[-0.5])
    assert (told_counted(study)[0][-1].number, best_so_far(study)[-1]) == (1, sign * 2.0)
