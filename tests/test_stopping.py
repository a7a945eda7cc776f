"""`nr.Enough` ends a run once further trials are not worth it, `cost=` divides by what a trial costs."""

import json
import math
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import nilregret as nr
from nilregret.errors import InvalidInput
from nilregret.slots.costs import cost_of
from nilregret.testing import check_policy
from nilregret.tuning.loop import Loop
from nilregret.tuning.objective import Evaluation

SPACE = nr.Space(x=nr.Float(-5, 5), y=nr.Float(0, 1))
ARMS = nr.Arms.grid(0, 1, 20)
quiet = partial(nr.minimize, progress=False)


def bowl(x, y):
    return (x - 2) ** 2 + 3 * (y - 0.3) ** 2 + 1


def paid(x, y):
    return {"reward": bowl(x, y), "euros": 10.0**y}


def values(result):
    return [row["value"] for row in result.history]


@pytest.fixture(scope="module")
def ended():
    return quiet(bowl, SPACE, trials=60, stop="1%")


def test_a_run_ends_once_further_trials_are_not_worth_it(ended):
    assert 20 <= len(ended.trials) < 60
    assert ended.stopped.startswith("enough: 10 more trials would gain about ")
    assert ended.stopped.endswith(f" after {len(ended.trials)} of 60 trials")  # The same call would not go on.
    assert ended.best_value < 1.2
    assert "stopped: enough" in repr(ended)


def test_the_rule_changes_no_decision(ended):
    assert values(quiet(bowl, SPACE, trials=60))[: len(ended.trials)] == values(ended)


def test_a_resumed_run_ends_at_the_same_trial(ended, tmp_path):
    calls, storage = [], f"sqlite:///{tmp_path}/s.db"

    def counted(x, y):
        calls.append(x)
        return bowl(x, y)

    run = partial(quiet, counted, SPACE, storage=storage)
    run(trials=15, policy=nr.auto(SPACE, budget=60))
    assert values(run(trials=60, stop=nr.Enough("1%"))) == values(ended)
    again = run(trials=60, stop=nr.Enough("1%"))
    assert (len(calls), again.stopped) == (len(ended.trials), ended.stopped)
    assert run(trials=15).stopped == "trials"


def test_by_hand_and_as_a_callback_it_is_the_same_rule(ended):
    enough, study = nr.Enough("1%"), nr.Study(nr.auto(SPACE, budget=60), goal="minimize")
    assert enough(study) is False
    while not enough(study):
        trial = study.ask()
        study.tell(trial, bowl(**trial.parameters))
    assert [trial.reward for trial in study.trials] == values(ended)
    called = quiet(bowl, SPACE, trials=60, callbacks=[enough])
    assert (values(called), called.stopped.partition(":")[0]) == (values(ended), "callback")


def test_units_of_the_value(ended):
    assert len(quiet(bowl, SPACE, trials=60, stop=50.0).trials) == 20  # never before that many
    assert quiet(bowl, SPACE, trials=25, stop=1e-9).stopped == "trials"


def study_of(told, *, feasible=None, **more):
    study = nr.Study(nr.auto(SPACE, **more))
    for i, value in enumerate(told):
        limits = {} if feasible is None else {"constraints": [-1.0 if feasible[i] else 1.0]}
        study.add({"x": 4 * math.sin(i), "y": i % 7 / 7}, value, **limits)
    return study


def test_equal_values_have_no_spread_of_which_one_percent_is_enough():
    assert not nr.Enough("100%")(study_of([1.0] * 30))


def test_what_still_rises_is_not_enough():
    still, rising = [math.sin(i) for i in range(30)], [math.sin(i) for i in range(30)]
    rising[25] = 1.5
    assert nr.Enough(1e6)(study_of(still))
    assert nr.Enough(2.0)(study_of(rising)) is False
    assert "gain" in nr.Enough(1e6).reason(study_of(rising))  # 0.5 is less than a tenth of it


def test_values_that_violate_a_constraint_do_not_count():
    told = [float(i % 5) for i in range(40)]
    assert nr.Enough(1e6).reason(study_of(told, feasible=[False] * 40, constraints=1)) is None
    told[38] = 6.0  # The best value is a late one, but not feasible.
    assert nr.Enough(15.0).reason(study_of(told, feasible=[i != 38 for i in range(40)], constraints=1))
    assert nr.Enough(15.0).reason(study_of(told, feasible=[True] * 40, constraints=1)) is None


def test_points_that_wait_are_tried_first():
    study = study_of([math.sin(i) for i in range(30)])
    study.enqueue([{"x": 1.0}])
    assert not nr.Enough(1e6)(study)


def test_new_points_are_tried_before_it_is_enough():
    study = study_of([math.sin(i) for i in range(30)])
    study.widen(x=nr.Float(-6, 6))
    for i in range(10):
        assert not nr.Enough(1e6)(study)
        study.add({"x": 6 * math.sin(i), "y": 0.5}, math.sin(i))
    assert nr.Enough(1e6)(study)


def test_noise_that_no_repeat_showed_may_hide_a_shape():
    draws = np.random.default_rng(0).normal(size=40)
    told = [float(draw) if i != 3 else 9.0 for i, draw in enumerate(draws)]
    study = study_of(told)
    assert nr.Enough(1.0).reason(study) is None
    study.add(study.trials[3].parameters, 8.5)
    study.add(study.trials[3].parameters, 8.7)
    assert nr.Enough(1.0)(study) in (True, False)  # Now the gain alone decides.


def test_certified_bounds_are_a_proof():
    study = nr.Study(nr.gp_ucb(ARMS, nr.SquaredExponential(0.3), noise=0.1))
    result = nr.run(study, lambda x: float(np.sin(5 * x[0])), trials=200, stop=0.5, progress=False)
    assert result.stopped.startswith("enough: by certified bounds the best trial loses ")
    lower, upper = study.bounds()
    best = study.best().arm
    assert upper.max() - lower[best] <= 0.5
    before = nr.Study(study.policy)
    for trial in study.trials[:-1]:
        before.tell(before.ask(), trial.reward)
    lower, upper = before.bounds()
    assert upper.max() - lower[before.best().arm] > 0.5


def test_certified_bounds_of_a_box():
    box = nr.Box([0.0], [1.0])
    policy = nr.igp_ucb(box, nr.SquaredExponential(0.3), noise=0.05, norm_bound=1.0, information_gain="realised")
    study = nr.Study(policy)
    assert study.valid_for == "f"
    result = nr.run(study, lambda x: float(np.sin(5 * x[0])), trials=60, stop=0.8, progress=False)
    _, upper = study.bounds(np.linspace(0, 1, 300)[:, None])
    assert result.stopped.startswith("enough: by certified")
    assert upper.max() - study.bounds(study.best().point[None])[0][0] <= 0.8 + 1e-3


def test_what_is_under_way_may_change_the_answer():
    reasons = iter([None] * 5 + ["enough: first"] + [None] * 20)
    study, told = nr.Study(nr.auto(SPACE, parallel=3)), []

    with ThreadPoolExecutor(3) as pool:
        loop = Loop(
            study, Evaluation(bowl), trials=12, ended=lambda trial: told.append(trial.number),
            executor=pool, in_flight=3, enough=lambda: next(reasons),
        )  # fmt: skip
        assert loop.run() is None
    assert (len(told), {trial.state for trial in study.trials}) == (12, {"observed"})


def test_no_trial_is_left_open_when_several_run_at_once():
    with ThreadPoolExecutor(3) as pool:
        result = quiet(bowl, SPACE, trials=80, stop="2%", executor=pool)
    assert result.stopped.startswith("enough: ")
    assert all(trial.state == "observed" for trial in result.trials)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "needs a gain, such as 0.01 or '1%'"),
        ({"gain": 0}, "`gain` is 0"),
        ({"gain": -0.1}, "`gain` is -0.1"),
        ({"gain": math.nan}, "`gain` is nan"),
        ({"gain": True}, "`gain`"),
        ({"gain": "1"}, "a text is a share of the spread"),
        ({"gain": "0%"}, "above 0% and at most 100%"),
        ({"gain": "101%"}, "above 0% and at most 100%"),
        ({"gain": "-1%"}, "above 0%"),
        ({"cost": 0.0}, "what one unit of cost is worth"),
    ],
)
def test_rules_that_make_no_sense(given, said):
    with pytest.raises(InvalidInput, match=said):
        nr.Enough(**given)


@pytest.mark.parametrize("stop", [True, [0.1], len, "early"])
def test_what_is_no_rule(stop):
    with pytest.raises(InvalidInput, match=r"`stop` is .*: it must be the gain .* such as '1%' is a share"):
        quiet(bowl, SPACE, trials=3, stop=stop)


@pytest.mark.parametrize(
    ("policy", "rule", "said"),
    [
        (nr.auto(ARMS, context=nr.Box([0.0], [1.0])), nr.Enough(1.0), "under contexts"),
        (nr.auto(SPACE, constraints=nr.OnAverage()), nr.Enough(1.0), "on average"),
        (nr.algorithms.admmbo(nr.Box([0.0], [1.0])), nr.Enough(1.0), "no posterior"),
        (nr.auto(SPACE), nr.Enough(cost=1.0), "does not know what trials cost: give `cost='seconds'`"),
    ],
)
def test_policies_of_which_the_rule_says_nothing(policy, rule, said):
    with pytest.raises(InvalidInput, match=said):
        rule(nr.Study(policy))


# -- costs -----------------------------------------------------------------------------------------------------------


def test_a_run_ends_when_no_trial_is_worth_its_cost():
    result = quiet(paid, SPACE, trials=60, cost="euros", stop=nr.Enough(cost=0.01))
    assert result.stopped.startswith("enough: no trial would gain more than ")
    assert "for each unit of 'euros', less than 0.01" in result.stopped
    assert len(result.trials) < 60


def told_costs(policy, *, rounds, storage=None):
    study = nr.Study(policy, goal="minimize", storage=storage, name="s")
    while len(study.trials) < rounds:
        trial = study.ask()
        answer = paid(**trial.parameters)
        study.tell(trial, answer["reward"], metrics={"euros": answer["euros"]})
    return study


def test_cheap_trials_come_first_and_a_replay_decides_alike(tmp_path):
    policy = nr.auto(SPACE, cost="euros")
    cheap, plain = told_costs(policy, rounds=16), told_costs(nr.auto(SPACE), rounds=16)
    spent = [sum(trial.metrics["euros"] for trial in study.trials[10:]) for study in (cheap, plain)]
    assert spent[0] < spent[1]
    storage = f"sqlite:///{tmp_path}/s.db"
    told_costs(policy, rounds=12, storage=storage).close()
    again = told_costs(policy, rounds=16, storage=storage)
    assert [trial.point.tolist() for trial in again.trials] == [trial.point.tolist() for trial in cheap.trials]
    assert again.explain(14).rule == "PerCost"
    assert nr.Policy.from_json(policy.to_json()) == policy


def test_costs_on_arms_and_under_constraints():
    study = nr.Study(nr.auto(ARMS, cost="euros"))
    for _ in range(14):
        trial = study.ask()
        study.tell(trial, float(trial.point[0]), metrics={"euros": 1.0 + trial.arm})
    answer = {"reward": 1.0, "load": 2.0, "euros": 3.0}
    result = quiet(lambda **_: answer, SPACE, trials=13, constraints="load <= 5", cost="euros")
    assert result.trials[12].metrics == {"euros": 3.0, "load": 2.0}


def test_seconds_are_on_record():
    study = nr.Study(nr.auto(SPACE, cost="seconds"))
    trial = study.ask()
    took = study.tell(trial, 1.0)
    assert cost_of(took, "seconds") == (took.told_at - took.asked_at or None)
    measured = study.tell(study.ask(), 1.0, metrics={"seconds": 7.0})
    assert (cost_of(measured, "seconds"), cost_of(measured, "euros")) == (7.0, None)
    assert len(quiet(bowl, SPACE, trials=12, cost="seconds").trials) == 12


def test_mistakes_about_costs():
    with pytest.raises(InvalidInput, match="its answer has no number 'dollars', which `cost=` names"):
        quiet(paid, SPACE, trials=3, cost="dollars")
    with pytest.raises(InvalidInput, match="it must be the name of an entry"):
        quiet(paid, SPACE, trials=3, cost="")
    free = quiet(lambda x, y: {"reward": x, "euros": 0.0 if x < 3 else 1.0}, SPACE, trials=12, cost="euros")
    assert free.history[0]["reason"] == "its entry 'euros' is 0, and a cost is above 0"
    with pytest.raises(InvalidInput, match="does not divide by it: make it with cost='euros'"):
        quiet(paid, SPACE, trials=3, cost="euros", policy=nr.auto(SPACE))
    with pytest.raises(InvalidInput, match="does not divide by it"):
        nr.run(nr.Study(nr.auto(SPACE)), paid, trials=3, cost="euros", progress=False)
    with pytest.raises(InvalidInput, match="here every reward counts"):
        nr.auto(ARMS, cost="euros", regret="cumulative")
    with pytest.raises(InvalidInput, match="it must be the logarithm of an improvement"):
        nr.slots.PerCost("euros", nr.slots.UpperConfidenceBound())
    with pytest.raises(InvalidInput, match="must be the name of a metric"):
        nr.slots.PerCost("")
    study = nr.Study(nr.auto(SPACE, cost="euros"))
    study.tell(study.ask(), 1.0)
    with pytest.raises(InvalidInput, match=r"No answer has a metric 'euros' above 0.*`revise=True` where"):
        study.ask()


def test_the_policy_keeps_its_promises():
    check_policy(nr.auto(SPACE, cost="seconds"))


def test_a_tuning_file_has_both(tmp_path):
    from nilregret.tuning.toml import config, run

    (tmp_path / "mine.py").write_text("def f(x):\n    return {'reward': -(x - 1) ** 2, 'euros': 2.0}\n")
    text = """
trials = 60
stop = "1%"
cost = "euros"
[objective]
function = "mine:f"
[parameters.x]
type = "float"
low = -3
high = 3
"""
    file = tmp_path / "job.toml"
    file.write_text(text)
    result = run.run(config.load(file))
    assert result.stopped.startswith("enough")
    assert json.loads(result.study.policy.to_json())["score"]["cost"] == "euros"
    file.write_text(text.replace('"1%"', '"1"'))
    with pytest.raises(InvalidInput, match="A text such as '1%' is a share"):
        config.load(file)
