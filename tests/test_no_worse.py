"""A control that is kept (`nr.NoWorse`): its bounds, its budget, and what a study does with it.

The figures of 400 worlds are those of benchmarks/no_worse.py.
"""

from functools import partial

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import logsumexp

import nilregret as nr
from nilregret.slots.no_worse import GRID, PSI, RATES, Answers, Regression, boundary
from nilregret.storage import MemoryStorage

from .service import AT, Client

ARMS = nr.Arms(range(3))
BANNERS = nr.Space(banner=nr.Choice("control", "sale", "new")).grid()
RULE = nr.NoWorse(0, by=0.2)
CLICKS = nr.auto(ARMS, reward="bernoulli", constraints=RULE)
CONTEXT = nr.Space(hour=nr.Float(0, 24), device=nr.Choice("phone", "desk", "tablet"))


def standing(study, row=0, context=None):
    return study.replica.state.rounds.budgets[row].standing(context)


def played(study, rounds, rates=(0.4, 0.1, 0.6), seed=0, contexts=None, **more):
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        trial = study.ask(None if contexts is None else contexts(rng))
        study.tell(trial, float(rng.random() < rates[trial.arm]), **more)
    return study


# -- bounds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.5, 0.025, 1e-6])
def test_the_boundary_is_just_above_the_root_of_the_mixture(delta):
    for v in (0.0, 0.3, 10.0, 1e4, 1e8):
        shortfall = partial(lambda v, excess: logsumexp(RATES * excess - PSI * v) - np.log(len(RATES) / delta), v)
        root = brentq(shortfall, 0.0, 1e7)
        assert root * (1.0 - 1e-9) <= boundary(v, delta) <= 1.02 * root
    v = np.array([0.0, 5.0, 1e3])
    assert boundary(v, delta).tolist() == [float(boundary(each, delta)) for each in v]


def test_the_bounds_of_sums_hold_at_all_times():
    """Means change with what came before. Two thirds of the bounds may fail of .5, which the fewest do."""
    worlds, rounds, delta = 40, 250, 0.5
    rng, missed = np.random.default_rng(3), [0, 0]
    for _ in range(worlds):
        lower, upper, expected, broken = Answers(0), Answers(GRID), 0.0, [False, False]
        for t in range(rounds):
            mean = 0.1 + 0.5 * (lower._sum / GRID > 0.3 * t)
            y = float(rng.random() < mean)
            expected += mean
            for answers in (lower, upper):
                answers.ask(t)
                if rng.random() < 0.9:
                    answers.tell(t, round(GRID * y))
            broken = [broken[0] or lower.bound(delta) > expected, broken[1] or upper.bound(delta) < expected]
        missed = [one + bad for one, bad in zip(missed, broken, strict=True)]
    assert max(missed) <= delta * worlds  # Each is a sum of Bernoulli variables of a mean below .5.


def test_a_bound_of_open_answers_is_not_above_what_comes():
    rng = np.random.default_rng(0)
    for worst in (0, GRID):
        answers = Answers(worst)
        for t in range(40):
            answers.ask(t)
            answers.tell(t, round(GRID * rng.random()))
        for t in range(40, 60):
            answers.ask(t)
        for value in (0.0, 0.2, 0.5, 1.0):
            later = answers.copy()
            for t in range(40, 60):
                later.tell(t, round(GRID * value))
            assert (later.bound(0.05) >= answers.bound(0.05)) == (worst == 0) or later.bound(0.05) == answers.bound(
                0.05
            )
    assert answers.count == later.count == 60


@pytest.mark.parametrize("context", [CONTEXT, nr.Arms([[0.0], [1.0], [5.0]]), nr.Box([0.0, -1.0], [1.0, 1.0])])
def test_the_bound_of_a_linear_control_holds(context):
    """The ellipsoid of delta .5 is wide: in 30 worlds it is left in none."""
    for seed in range(30):
        rng, model, expected = np.random.default_rng(seed), Regression(context, None), 0.0
        slope = rng.uniform(-0.5, 0.5)
        z = np.zeros(len(model._target))
        for t in range(60):
            if isinstance(context, nr.Space):
                x = context.encode(
                    {"hour": 24.0 * rng.random(), "device": ["phone", "desk", "tablet"][rng.integers(3)]}
                )
                mean = 0.5 + 0.6 * slope * (2.0 * x[0] - 1.0) + 0.3 * slope * (x[1] > 0.0)
            elif isinstance(context, nr.Arms):
                x = context.points[rng.integers(3)]
                mean = 0.5 + slope * (x[0] == 1.0)
            else:
                x = rng.uniform(context.lower, context.upper)
                mean = 0.5 + 0.5 * slope * x[1] + 0.4 * slope * (2.0 * x[0] - 1.0)
            phi = model.features(x)
            if t % 3:
                model.ask(t, phi)
                if t % 7:
                    model.tell(t, round(GRID * float(rng.random() < mean)))
            else:
                z, expected = z + phi, expected + mean - 0.5
            assert model.bound(z, 0.5) >= expected


def test_listed_contexts_near_a_line_have_a_large_norm():
    """The control's rate follows the small difference of two numbers, so its coefficients are large."""
    first = np.linspace(-1.0, 1.0, 100)
    more = np.where(np.arange(100) % 4 == 3, 0.01, -0.01)
    context, rng = nr.Arms(np.stack([first, first + more], axis=1)), np.random.default_rng(0)
    model, mean = Regression(context, None), 0.5 + 49.0 * more
    phi = np.array([model.features(x) for x in context.points]) / 2.0**16
    theta = np.linalg.lstsq(phi, mean - 0.5, rcond=None)[0]
    assert np.allclose(phi @ theta, mean - 0.5, atol=1e-3)
    assert 10.0 < np.linalg.norm(theta) <= model.norm_bound
    for t in range(300):
        at = rng.integers(100)
        if more[at] < 0.0:  # The control is played where it earns little.
            model.ask(t, model.features(context.points[at]))
            model.tell(t, round(GRID * float(rng.random() < mean[at])))
    assert model.bound(model.features(context.points[3]), 0.5) >= 0.49
    numbers = np.stack(np.meshgrid(first[::9], first[::9]), axis=-1).reshape(-1, 2)
    assert Regression(nr.Arms(numbers), None).norm_bound < 1.0  # 0.5, of a box


# -- the budget ------------------------------------------------------------------------------------------------------


def test_the_budget_is_that_of_the_formula():
    policy = nr.auto(BANNERS, reward=nr.slots.Bounded(low=2.0, high=10.0), constraints=nr.NoWorse("control", by=0.1))
    study = nr.Study(policy, seed=1)
    rng = np.random.default_rng(1)
    for _ in range(80):
        trial = study.ask()
        study.tell(trial, 2.0 + 8.0 * rng.random())
    others = [trial for trial in study.trials if trial.arm != 0]
    control = [trial for trial in study.trials if trial.arm == 0]
    known = standing(study)
    assert (known.others, known.control, known.than) == (len(others), len(control), 0)
    lower, upper = study.replica.state.rounds.budgets[0]._others, study.replica.state.rounds.budgets[0]._control
    least, most = lower.bound(0.025), upper.bound(0.025) / len(control)
    assert 0.0 <= least <= sum((trial.reward - 2.0) / 8.0 for trial in others)
    assert most >= np.mean([(trial.reward - 2.0) / 8.0 for trial in control])
    bound, m = 2.0 * (len(others) + 1) + 8.0 * least, 2.0 + 8.0 * most
    limit = 0.9 * m * (len(others) + 1) - 0.1 * m * len(control)
    weight = 0.9 * (len(others) + 1) - 0.1 * len(control)
    if weight > 0.0:
        assert known.bound - known.limit == pytest.approx(bound - limit)
    assert known.bears == (known.bound >= known.limit)


def test_less_of_a_metric_is_better():
    rule = nr.NoWorse(0, by=0.05, metric="latency", higher="worse", span=(0.0, 500.0))
    study = nr.Study(nr.auto(ARMS, reward="bernoulli", constraints=rule), seed=0)
    for number in range(100):
        trial = study.ask()
        study.tell(trial, 1.0, metrics={"latency": 200.0 + number % 3})
    known = standing(study)
    weight = 1.05 * (known.others + 1) + 0.05 * known.control
    answers = study.replica.state.rounds.budgets[0]._control
    least = 500.0 * (1.0 - answers.bound(0.025) / answers.count)  # of the control's latency, at the least
    spent = 500.0 * (known.others + 1) - 500.0 * study.replica.state.rounds.budgets[0]._others.bound(0.025)
    assert known.less
    assert known.limit - known.bound == pytest.approx(weight * least - spent)
    assert known.bears == (known.bound <= known.limit)


def test_a_control_that_is_spent_to_the_last_is_kept():
    """`GreedyVariance` wants what is known least: the arms that earn nothing. No world of 20 is below at any time."""
    for seed in range(20):
        greedy = nr.algorithms.greedy_variance(ARMS, nr.SquaredExponential(0.01), noise=0.5)
        policy = greedy.using(constraints=nr.NoWorse(0, by=0.2, delta=0.05, span=(0, 1)))
        study = nr.Study(policy, seed=seed)
        played(study, 120, rates=(0.5, 0.0, 0.05), seed=seed)
        arms = np.array([trial.arm for trial in study.trials])
        budget = np.cumsum(np.array([0.5, 0.0, 0.05])[arms] - 0.8 * 0.5)
        assert budget.min() >= -1e-9
        assert 0 < (arms != 0).sum() <= 24 + 2


def test_a_better_arm_takes_over():
    study = played(nr.Study(CLICKS, seed=2, propensities=True), 700)
    arms = np.array([trial.arm for trial in study.trials])
    assert (arms[:20] == 0).mean() > 0.7
    assert (arms[-100:] == 2).mean() > 0.9
    held = [trial for trial in study.trials if trial.propensity == 1.0]
    assert {trial.arm for trial in held} == {0}


@pytest.mark.parametrize("case", ["clicks", "a metric", "contexts", "losses"])
def test_the_order_of_answers_leaves_no_trace(case):
    rules = {
        "clicks": RULE, "a metric": [RULE, nr.NoWorse(0, by=0.1, metric="m", higher="worse", span=(0, 2))],
        "contexts": RULE, "losses": RULE,
    }  # fmt: skip
    context = {"context": CONTEXT} if case == "contexts" else {}
    policy = nr.auto(ARMS, reward="bernoulli", constraints=rules[case], **context)
    one, other = (nr.Study(policy, seed=3, goal="minimize" if case == "losses" else "maximize") for _ in range(2))
    rng = np.random.default_rng(0)
    for _ in range(40):
        seen = {"hour": float(rng.integers(24)), "device": "desk"} if context else None
        trials = one.ask(seen, count=3), other.ask(seen, count=3)
        assert [a.arm for a in trials[0]] == [b.arm for b in trials[1]]
        answers = [(float(rng.random() < 0.5), {"m": float(rng.random())}) for _ in range(3)]
        for study, given, order in zip((one, other), trials, ([0, 1], [1, 0]), strict=True):  # The third is left open.
            for place in order:
                study.tell(given[place], answers[place][0], metrics=answers[place][1])
    rows = range(len(one.policy.guards))
    seen = None if not context else one.trials[-1].context
    assert [standing(one, row, seen) for row in rows] == [standing(other, row, seen) for row in rows]
    one.replica.rebuild()
    assert [standing(one, row, seen) for row in rows] == [standing(other, row, seen) for row in rows]


def test_it_is_replayed_and_goes_on_from_a_storage():
    storage = MemoryStorage()
    whole, begun = (
        nr.Study(CLICKS, seed=4, propensities=True),
        nr.Study(CLICKS, seed=4, propensities=True, storage=storage),
    )
    rng = np.random.default_rng(4)
    for number in range(240):
        if number == 120:
            begun = nr.Study.open(storage=storage)
        trial, same = whole.ask(), begun.ask()
        assert (trial.arm, trial.propensity) == (same.arm, same.propensity)
        if number % 5:
            reward = float(rng.random() < (0.4, 0.1, 0.6)[trial.arm])
            whole.tell(trial, reward)
            begun.tell(same, reward)
    for number in range(0, 240, 12):
        why = whole.explain(number)
        assert why.repeated
        assert why.propensity.value == pytest.approx(whole.trials[number].propensity, abs=1e-12)


def test_a_correction_changes_the_budget():
    one, other = (nr.Study(CLICKS, seed=0) for _ in range(2))
    for study, reward in ((one, 0.0), (other, 1.0)):
        for told in [*[1.0] * 40, reward]:
            study.enqueue(2)
            study.tell(study.ask(), told)
    assert standing(one) != standing(other)
    one.tell(40, 1.0, revise=True)
    assert standing(one) == standing(other)


# -- what counts -----------------------------------------------------------------------------------------------------


def budget_of(*events, rule=RULE):
    """The budget after ("arm", reward, or "open", "failed", "added")."""
    study = nr.Study(nr.auto(ARMS, reward="bernoulli", constraints=rule), seed=0)
    for arm, what in events:
        if isinstance(what, tuple):
            study.add([float(arm)], what[0])
            continue
        study.enqueue(arm)
        trial = study.ask()
        if what == "failed":
            study.fail(trial, "broken")
        elif what == "abandoned":
            study.abandon(trial, "gone")
        elif what != "open":
            study.tell(trial, what)
    return standing(study)


def test_what_is_not_known_counts_as_the_worst():
    known = [(0, 1.0)] * 20 + [(2, 1.0)] * 6
    least = budget_of(*known, (2, 0.0))
    assert budget_of(*known, (2, "failed")) == least
    assert budget_of(*known, (2, "open")).bound <= least.bound
    assert budget_of(*known, (2, "abandoned")) == budget_of(*known, (2, "open"))
    low = [(0, 0.0)] * 20 + [(2, 1.0)] * 20
    assert budget_of(*low, (0, "open")).limit >= budget_of(*low, (0, 1.0)).limit
    assert budget_of(*low, (0, "failed")).limit == budget_of(*low, (0, 0.0)).limit


def test_trials_that_were_added_are_no_decisions():
    fresh, known = budget_of(), budget_of(*[(0, (0.0,))] * 60, (2, (1.0,)))
    assert (known.others, known.control) == (0, 0)
    assert fresh.limit == pytest.approx(0.8)
    assert known.limit < 0.2


def test_a_metric_that_was_not_told_counts_as_the_worst():
    rule = nr.NoWorse(0, by=0.2, metric="m", span=(0.0, 1.0))
    study = played(nr.Study(nr.auto(ARMS, reward="bernoulli", constraints=rule), seed=0), 40)
    told = played(nr.Study(nr.auto(ARMS, reward="bernoulli", constraints=rule), seed=0), 40, metrics={"m": 0.5})
    assert {trial.arm for trial in study.trials if trial.number < 4} == {0}
    assert standing(study).others <= standing(told).others


def test_values_beyond_the_span_count_as_its_ends():
    rule, far = nr.NoWorse(0, by=0.2, span=(0.0, 10.0)), nr.NoWorse(0, by=0.2, span=(0.0, 10.0))
    studies = [nr.Study(nr.auto(ARMS, constraints=each), seed=0) for each in (rule, far)]
    for reward, study in zip((10.0, 50.0), studies, strict=True):
        study.tell(study.ask(), reward)
    assert standing(studies[0]) == standing(studies[1])


@pytest.mark.parametrize("gone", ["retired", "left out", "failed"])
def test_a_control_that_may_not_be_played_holds_nothing(gone):
    study = nr.Study(CLICKS, seed=0, propensities=True)
    offered = {}
    if gone == "retired":
        study.retire_arm(0)
    elif gone == "left out":
        offered = {"exclude": [0]}
    else:
        study.fail(study.ask(), "broken")
    arms = {study.ask(**offered).arm for _ in range(20)}
    assert arms == {1, 2}
    assert standing(study).others == 20
    assert study.probabilities(**offered)[0] == 0.0
    if gone == "retired":
        study.restore_arm(0)
        assert study.ask().arm == 0


def test_it_goes_before_shares_and_floors():
    for explore in (nr.slots.Shares({2: 0.5}), nr.slots.Uniform(0.9)):
        study = nr.Study(CLICKS.using(explore=explore), seed=0, propensities=True)
        assert {study.ask().arm for _ in range(3)} == {0}
        assert study.probabilities().tolist() == [1.0, 0.0, 0.0]
    floor = nr.slots.Shares({0: 0.25, 2: 0.25})
    study = played(nr.Study(CLICKS.using(explore=floor), seed=0, propensities=True), 600)
    free = [trial.propensity for trial in study.trials if trial.arm == 2]
    assert min(free) >= 0.25
    study.quiet = True
    bounded = nr.evaluate(study, 0)
    assert bounded.lower < 0.4 < bounded.upper
    with pytest.raises(nr.errors.InvalidInput, match="has a budget of its own ones"):
        nr.evaluate(study, CLICKS)


def test_arms_that_are_added_are_held_too():
    study = played(nr.Study(CLICKS, seed=2), 300)
    study.add_arms([[3.0]])
    assert study.policy.guards == CLICKS.guards
    before = standing(study)
    study.ask()
    assert standing(study).others + standing(study).control == before.others + before.control + 1


def test_several_guards_hold_together():
    rules = [nr.NoWorse(0, by=0.3), nr.NoWorse(0, by=0.1, metric="latency", higher="worse", span=(0.0, 100.0))]
    study = nr.Study(nr.auto(ARMS, reward="bernoulli", constraints=rules), seed=0)
    rng = np.random.default_rng(0)
    for _ in range(1500):
        trial = study.ask()
        slow = 80.0 if trial.arm == 2 else 20.0
        study.tell(trial, float(rng.random() < (0.4, 0.42, 0.9)[trial.arm]), metrics={"latency": slow})
    arms = np.array([trial.arm for trial in study.trials])
    assert 60.0 * (arms == 2).sum() <= 0.1 * 20.0 * len(arms)  # The slow arm has all the clicks.


# -- explanations ----------------------------------------------------------------------------------------------------


def test_a_round_that_is_held_says_so():
    study = played(
        nr.Study(nr.auto(BANNERS, reward="bernoulli", constraints=nr.NoWorse("control", by=0.1)), seed=1), 30
    )
    found = [study.explain(number) for number in range(30)]
    held = [each for each in found if each.instead is not None]
    assert len(held) > 20
    other = next(each for each in held if each.instead.arm != 0)
    assert other.why == f"Held to the control: the budget does not bear {other.instead.name}."
    assert any(each.why == "Held to the control: the policy would have played it too." for each in held)
    assert "must come to at least" in str(other)
    assert other.to_dict()["budgets"][0]["by"] == 0.1
    free = next(each for each in found if each.instead is None)
    assert "Thompson" in free.why or "thompson" in free.why
    assert free.budgets[0].bears
    plain = played(nr.Study(nr.auto(ARMS, reward="bernoulli")), 3).explain(0)
    assert not {"budgets", "instead"} & plain.to_dict().keys()


def test_a_study_tells_its_budgets_and_warns_of_open_decisions():
    study = nr.Study(CLICKS, seed=0)
    assert study.budgets() == [standing(study)]
    assert nr.Study(nr.auto(ARMS, reward="bernoulli")).budgets() == []
    asked = nr.Study(nr.auto(ARMS, reward="bernoulli", context=CONTEXT, constraints=RULE))
    assert not asked.budgets(context={"hour": 3.0, "device": "desk"})[0].bears
    study.quiet = True
    for number in range(258):
        trial = study.ask()
        if number % 3 == 0:
            study.tell(trial, 1.0)
    assert study.budgets()[0].open == 172
    assert "170 of 256 decisions have no answer and count as the worst" in study.held_warnings["budget"]


# -- making ----------------------------------------------------------------------------------------------------------


def test_it_stands_beside_other_constraints_and_in_json():
    policy = nr.auto(ARMS, noise=0.1, constraints=[nr.NoWorse(0, span=(0, 1)), nr.EveryRound(count=1)])
    assert policy.constraint_count == 1
    assert policy.guards == (nr.NoWorse(0, span=(0.0, 1.0)),)
    assert nr.Policy.from_json(policy.to_json()) == policy
    assert policy.using(constraints=None).guards is None
    assert nr.auto(ARMS, noise=0.1, constraints=1).using(constraints=nr.NoWorse(0, span=(0, 1))).constraint_count == 1
    ucb = nr.gp_ucb(ARMS, nr.SquaredExponential(1.0), noise=0.1, constraints=nr.NoWorse(0, span=(0, 1)))
    assert ucb.guards == policy.guards
    assert "guards" not in nr.auto(ARMS).to_json()
    by_option = nr.auto(BANNERS, reward="bernoulli", constraints=nr.NoWorse({"banner": "sale"})).guards[0]
    assert (by_option.than, by_option.span) == (1, (0.0, 1.0))


KERNEL, SPANNED = nr.SquaredExponential(1.0), nr.NoWorse(0, span=(0, 1))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: nr.NoWorse(0, by=0.0), "`by` is 0"),
        (lambda: nr.NoWorse(0, by=1.0), "`by` is 1"),
        (lambda: nr.NoWorse(0, delta=0.0), "`delta` is 0"),
        (lambda: nr.NoWorse(0, span=(-1.0, 1.0)), "A share of a sum that may be negative says nothing"),
        (lambda: nr.NoWorse(0, span=(1.0, 1.0)), "the lowest must be below the highest"),
        (lambda: nr.NoWorse(0, span=3), "`span` is 3: it must be"),
        (lambda: nr.NoWorse(0, higher="worse"), "the goal of the study says so"),
        (lambda: nr.NoWorse(0, higher="better or not"), "`higher` is"),
        (lambda: nr.NoWorse(0, metric=""), "`metric` is ''"),
        (lambda: nr.NoWorse(0, norm_bound=-1), "`norm_bound` is -1"),
        (lambda: nr.auto(ARMS, constraints=nr.NoWorse(0)), "needs the least and the largest reward"),
        (lambda: nr.auto(ARMS, reward="poisson", constraints=nr.NoWorse(0)), "needs the least and the largest reward"),
        (lambda: nr.auto(ARMS, reward="bernoulli", constraints=nr.NoWorse(0, metric="m")), "the largest 'm'"),
        (lambda: nr.auto(ARMS, reward="bernoulli", constraints=nr.NoWorse(7)), "`than` has arm 7"),
        (lambda: nr.auto(ARMS, reward="bernoulli", constraints=nr.NoWorse("old")), "`than` has the arm 'old'"),
        (lambda: nr.auto(nr.Box(0, 1), constraints=nr.NoWorse(0, span=(0, 1))), "it plays a Box"),
        (lambda: CLICKS.using(constraints=[RULE, nr.NoWorse(1, metric="m", span=(0, 1))]), "name one arm"),
        (lambda: nr.auto(ARMS, reward="bernoulli", constraints=[RULE, RULE]), "guard the same number"),
        (lambda: nr.auto(ARMS, constraints=[RULE, nr.EveryRound(), nr.OnAverage()]), "has 2 rules beside `NoWorse`"),
        (lambda: nr.auto(ARMS, objectives=2, constraints=RULE), "`constraints` is a number"),
        (lambda: CLICKS.using(guards=3), "`guards` is 3"),
        (lambda: nr.gp_ucb(ARMS, KERNEL, noise=0.1, switching="lazy", constraints=SPANNED), "the slot `switching`"),
    ],
)  # fmt: skip
def test_what_cannot_be_kept_is_refused(make, sentence):
    with pytest.raises(nr.errors.InvalidInput, match=sentence):
        make()


def test_a_study_of_losses_keeps_them_below():
    reward, rule = nr.slots.Bounded(low=0.0, high=1.0), nr.NoWorse(0, by=0.2)
    study = nr.Study(nr.auto(ARMS, reward=reward, constraints=rule), goal="minimize", seed=0)
    other = nr.NoWorse(0, by=0.2, metric="loss", higher="worse", span=(0.0, 1.0))
    same = nr.Study(nr.auto(ARMS, reward=reward, constraints=other), goal="minimize", seed=0)
    assert study.replica.state.policy.guards[0].losses
    assert not study.policy.guards[0].losses
    for _ in range(60):
        for each in (study, same):
            trial = each.ask()
            each.tell(trial, (0.5, 0.25, 1.0)[trial.arm], metrics={"loss": (0.5, 0.25, 1.0)[trial.arm]})
    assert standing(study)._replace(metric="loss") == standing(same)
    assert [trial.arm for trial in study.trials] == [trial.arm for trial in same.trials]
    assert standing(study).less


def test_over_http_and_again_after_a_restart():
    recipe = {
        "space": {"banner": {"type": "choice", "options": ["control", "sale", "new"]}}, "grid": {},
        "propensities": True, "policy": {
            "algorithm": "auto", "reward": "bernoulli",
            "constraints": [
                {"type": "no_worse", "than": "control", "by": 0.1},
                {"type": "no_worse", "than": 0, "by": 0.1, "metric": "ms", "higher": "worse", "span": [0, 900]},
            ],
        },
    }  # fmt: skip
    storage = MemoryStorage()
    for turn in range(2):
        with Client(storage) as client:
            assert client.put(AT, recipe)[0] == (200 if turn else 201)
            for number in range(8):
                (given,) = client.post(f"{AT}/decisions", {}, key=f"{turn} {number}")[1]["decisions"]
                client.put(f"{AT}/decisions/{given['id']}/reward", {"reward": 1.0, "metrics": {"ms": 100}})
            _, why = client.get(f"{AT}/explain/0")
            assert [each["metric"] for each in why["budgets"]] == [None, "ms"]
            assert why["instead"] is not None
    study = nr.Study.open(storage=storage, name="shop")
    assert [(budget.others + budget.control, budget.open) for budget in study.budgets()] == [(16, 0)] * 2
    wrong = {**recipe, "policy": {"algorithm": "auto", "constraints": {"type": "no_worse", "than": "old"}}}
    with Client(MemoryStorage()) as client:
        status, said = client.put(AT, wrong)
        assert status == 422
        assert said["error"]["sentence"].startswith("`policy`: `than` has the arm 'old'")


def test_a_budget_goes_on_after_a_level_was_declared():
    context = nr.Space(device=nr.Choice("phone", "desk", unknown=True))
    study = nr.Study(nr.auto(nr.Arms(range(3)), reward="bernoulli", context=context, constraints=nr.NoWorse(0)), seed=0)
    for number in range(20):
        study.tell(study.ask({"device": ("phone", "tablet")[number % 2]}), float(number % 3 == 0))
        if number == 9:
            study.widen(context={"device": nr.Choice("phone", "desk", "tablet", unknown=True)})
    (budget,) = study.budgets(context={"device": "tablet"})
    assert np.isfinite(budget.bound)


def test_several_decisions_at_once_are_all_held():
    context = nr.Space(device=nr.Choice("phone", "desk"))
    study = nr.Study(nr.auto(nr.Arms(range(3)), reward="bernoulli", context=context, constraints=nr.NoWorse(0)), seed=0)
    assert [trial.arm for trial in study.ask({"device": "phone"}, count=3)] == [0, 0, 0]
