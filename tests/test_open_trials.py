"""Yeses come at once and noes at a deadline: what is said where open trials count as nothing."""

import numpy as np
import pytest

import nilregret as nr
from nilregret.cli.overview import overview
from nilregret.serve.dashboard.views.health import health
from nilregret.serve.work.deadlines import Rule
from nilregret.storage import MemoryStorage

from .service import AT, Client, Clock, asked, plain, told

ARMS = nr.Arms(range(3))
RULE = Rule(60.0, "reward", 0.0)
BUDGET = nr.OnAverage(count=1)
AVERAGED = nr.gp_ucb(ARMS, nr.kernel_for(ARMS), noise=0.5, prior_mean=0.3, constraints=BUDGET)
CLICKS = nr.auto(ARMS, reward="bernoulli")


def played(policy, rounds, *, rate=0.35, no_at_once=0.0, rule=RULE, goal="maximize", seed=0, noes=True):
    """A decision a second. A yes comes within three seconds, and a no at the deadline, as the service records it."""
    clock, rng, wait, due = Clock(), np.random.default_rng(seed), 60, {}
    study = nr.Study(rule.policy(policy, goal), goal=goal, about=rule.fact, seed=seed, clock=clock)
    study.quiet, yes = True, float(goal == "maximize")
    for t in range(rounds):
        clock.now += 1.0
        for trial, reward, late in due.pop(t, []):
            if late:
                study.abandon(trial)
            study.tell(trial, reward)
        trial = study.ask(lease=1e6)
        if policy.constraint_count:
            study.tell(trial, constraints=[0.1 * rng.standard_normal()])
        clicked, early = rng.random() < rate, rng.random() < no_at_once
        if clicked or early:
            due.setdefault(t + 1 + int(rng.integers(3)), []).append((trial, yes if clicked else 1.0 - yes, False))
        elif noes:
            due.setdefault(t + wait, []).append((trial, 1.0 - yes, True))
    return study


def factor(study):
    """The believed rate of the arm that was played most, over the true one."""
    arms = [trial.arm for trial in study.trials]
    return study.predict()[0][max(range(3), key=arms.count)] / 0.35


def test_rates_are_too_high_while_most_trials_are_open_and_the_study_says_so():
    study = played(AVERAGED, 90)
    waiting = sum(trial.state == "pending" for trial in study.trials)
    said = study.remarks["open"]
    assert factor(study) > 1.4
    assert f"Believed rewards are too high: {waiting} of 90 trials are open" in said
    early = [trial.reward for trial in study.trials if trial.reward is not None]
    last = max(trial.number for trial in study.trials if trial.late)
    over = [trial.reward for trial in study.trials[: last + 1] if trial.reward is not None]
    assert f"average {np.mean(early):.3g}, and {np.mean(over):.3g} where" in said
    assert "on one side of the default reward 0" in played(AVERAGED, 55).remarks["open"]  # No deadline has passed.


@pytest.mark.parametrize("advised", ["silence", "silent no"])
def test_what_the_sentence_advises_counts_open_trials(advised):
    answers, rule = ("prompt", Rule(None, "silence", 0.0)) if advised == "silence" else (advised, RULE)
    policy = nr.auto(ARMS, reward="bernoulli", constraints=BUDGET, answers=answers)
    study = played(policy, 90, rule=rule, noes=advised == "silent no")
    assert 0.6 < factor(study) < 1.4
    assert study.remarks == {}


@pytest.mark.parametrize(
    ("rounds", "more"),
    [
        (15, {}),  # Few answers.
        (400, {}),  # Few open trials.
        (90, {"no_at_once": 0.7}),  # Noes come at once, too.
        (90, {"rate": 0.97}),  # Nearly all are yeses.
        (90, {"rule": Rule(60.0, "abandon")}),  # Silence means nothing.
        (90, {"rule": Rule(60.0, "censor", 0.0), "noes": False}),  # Open trials count as noes.
        (90, {"rule": Rule(60.0, "reward", 0.0, reward="sum")}),  # Yeses, too, are told at the deadline.
    ],
)
def test_nothing_is_said_without_need(rounds, more):
    policy = nr.gp_ucb(ARMS, nr.kernel_for(ARMS), noise=0.5, prior_mean=0.3)
    assert played(policy, rounds, **more).remarks == {}


def test_losses_are_believed_too_low():
    study = played(nr.gp_ucb(ARMS, nr.kernel_for(ARMS), noise=0.5), 90, goal="minimize", rule=Rule(60.0, "reward", 1.0))
    assert "Believed rewards are too low" in study.remarks["open"]


def test_exposure_is_learned_from_the_first_deadline():
    early, later = played(CLICKS, 55), played(CLICKS, 90)
    assert factor(early) > 1.5
    assert "may be far off, mostly too high: " in early.remarks["open"]
    assert factor(later) < 1.4
    assert later.remarks == {}
    assert played(CLICKS.using(memory=nr.slots.RestartEvery(140)), 195).remarks == {}  # It was learned before a cut.


def test_where_rates_drift_the_latest_trials_weigh_most():
    policy = nr.gp_ucb(ARMS, nr.kernel_for(ARMS), noise=0.5, prior_mean=0.3, memory=nr.slots.Discount(0.03))
    study = played(policy, 400)
    assert " of 100 trials are open" in study.remarks["open"]
    assert factor(study) > 1.2


def test_a_default_reward_has_no_constraint_values():
    study = nr.Study(AVERAGED, about=RULE.fact)
    study.quiet = True
    for number in range(40):
        trial = study.ask()
        if number % 2:
            study.tell(trial, 1.0, constraints=[-0.5])
        else:
            study.abandon(trial)
            study.tell(trial, 0.0)
    assert "20 trials have a default reward and no constraint values" in study.remarks["default constraints"]


def test_an_explanation_says_what_held_then():
    study = played(AVERAGED, 90)
    (said,) = study.explain(89).cautions
    assert said.startswith("Believed rewards are too high")
    assert ("caution", said) in study.explain(89).facts
    assert study.explain(89).to_dict()["cautions"] == [said]
    assert "cautions" not in study.explain(5).to_dict()


def test_every_page_shows_it():
    study = played(AVERAGED, 90)
    said = study.remarks["open"]
    assert said in overview(study)["notes"]
    assert said in health(study, now=0.0)["remarks"]


def test_it_is_among_the_cautions_over_http():
    clock = Clock()
    with Client(MemoryStorage(), clock=clock) as client:
        body = {"policy": plain(nr.gp_ucb(ARMS, nr.kernel_for(ARMS), noise=0.5)), **RULE.fact["service"]}
        assert client.put(AT, body)[0] == 201
        for number in range(40):
            clock.now += 1.0
            decision = asked(client)
            if number % 2:
                assert told(client, decision, 1)[0] == 200
        (said,) = client.get(AT)[1]["cautions"]
        assert said.startswith("Believed rewards are too high: 20 of 40 trials are open")
        (then,) = client.get(f"{AT}/explain/39")[1]["cautions"]
        assert then.startswith("Believed rewards are too high: 20 of 39 trials are open")


def test_a_row_of_a_log_is_no_decision_not_even_a_corrected_one():
    study = played(AVERAGED, 90)
    study.tell(study.add(0, 1.0, constraints=[0.0]), 0.0, revise=True)
    assert "of 90 trials are open" in study.remarks["open"]
