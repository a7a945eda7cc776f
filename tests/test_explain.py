"""Why a trial was chosen is recomputed exactly, for every policy, early and late, from memory and from a storage."""

import functools
import json
from dataclasses import dataclass, replace

import numpy as np
import pytest

import nilregret as nr
from nilregret.slots import Score, described
from nilregret.slots.envelope import ConstantWidth
from nilregret.study.direction import GOALS
from nilregret.study.explain import gain_of_front
from nilregret.study.explanation import OutputBounds
from nilregret.study.front import Front
from nilregret.testing.driver import Driver
from nilregret.theory.fronts import hypervolume, non_dominated
from tests.conformance.test_policies import POLICIES
from tests.marks import nightly

STEPS = 14  # with a failure, an addition, late answers, and some that never come
ARMS = nr.Arms.grid(0, 1, 25)
BOX = nr.Box([0, 0], [1, 2])
SPACE = nr.Space(x=nr.Float(1e-3, 1, log=True), n=nr.Int(1, 9), c=nr.Choice("a", "b"))
K = nr.SquaredExponential(0.2)
SMALL = nr.slots.PointSearch(candidates=64)

on_arms = functools.partial(nr.gp_ucb, ARMS, K, noise=0.1)
on_box = functools.partial(nr.gp_ucb, BOX, K, noise=0.1, width=ConstantWidth(value=2.0), search=SMALL)

OTHERS = {
    "arms under contexts": lambda: on_arms(context=nr.Arms.grid(0, 1, 3)),
    "arms under continuous contexts": lambda: nr.expected_improvement(ARMS, K, noise=0.1, context=nr.Box([0], [1])),
    "detector": lambda: on_arms(memory="adaptive"),
    "window": lambda: on_arms(memory=nr.slots.SlidingWindow(7)),
    "forgetting": lambda: on_arms(memory=nr.slots.Discount(0.05)),
    "every round": lambda: on_arms(constraints=nr.EveryRound()),
    "on average": lambda: on_arms(constraints=nr.OnAverage(count=2)),
    "safe": lambda: on_arms(constraints=nr.Safe(start=[[0.5]], scale=1.0)),
    "far from 0": lambda: on_arms(prior_mean=1e6),
    "nearest": lambda: on_arms(pending=nr.slots.NearestMeans()),
    "box": on_box,
    "box, forgetting": lambda: on_box(memory=nr.slots.Discount(0.05)),
    "box, drawn": lambda: nr.gp_ts(BOX, K, noise=0.1, norm_bound=1.0, information_gain=1.0, search=SMALL),
    "box, every round": lambda: on_box(constraints=nr.EveryRound()),
    "box, safe": lambda: on_box(constraints=nr.Safe(start=[[0.5, 0.5]], scale=1.0)),
    "box, uniform rounds": lambda: on_box().detecting_changes(threshold=3.0),
    "space": lambda: nr.auto(SPACE),
}
ALL = {name: functools.partial(make, domain=ARMS) for name, make in POLICIES.items()} | OTHERS


def played(policy, *, storage=None):
    """A study with answers at once, late, and never, a failure, and a point that was added."""
    driver = Driver(policy, seed=3, reward=None)
    study = driver.study(storage=storage)
    study.quiet = True
    return driver.play(study, 0, STEPS)


def asked(study):
    return [trial for trial in study.trials if trial.asked_order != trial.told_order]


@pytest.mark.parametrize("name", ALL)
def test_the_policy_decides_the_same_again(name):
    study = played(ALL[name]())
    for trial in asked(study)[::3]:
        said = study.explain(trial, draws=20)
        assert said.repeated, trial
        assert said.number == trial.number
        assert said.explored == trial.explored
        assert said.chosen.point == tuple(trial.point)
        assert said.chosen.arm == trial.arm
        assert said.chosen.parameters == trial.parameters
        assert said.chosen.lower <= said.mean <= said.chosen.upper
        if said.rule is None:
            assert trial.explored
            assert said.score is None
            assert said.forced_by == "UniformExploration"
        elif (
            said.runner_up is not None and "safe" not in name
        ):  # a step to learn what is safe has the best score of all
            assert said.score >= said.runner_up.score - 1e-9  # less: two that tie
        assert json.loads(json.dumps(said.to_dict()))["chosen"]["score"] == said.score
        assert f"Trial {trial.number}: " in str(said)


@pytest.mark.parametrize("name", ["gp_ucb_sdf", "gp_ts", "every round", "box", "space"])
def test_it_stays_the_same_whatever_comes_later(name, tmp_path):
    """Asked at once, at the end, and of a study opened again: every number is equal, to the last bit."""
    url = f"sqlite:///{tmp_path}/studies.db"
    driver = Driver(ALL[name](), seed=3, reward=None)
    study, early = driver.study(storage=url), {}
    for step in range(0, STEPS, 2):
        driver.play(study, step, step + 2)
        last = asked(study)[-1]
        early[last.number] = study.explain(last, draws=20)
    late = nr.Study.open(storage=url)
    assert {number: late.explain(number, draws=20) for number in early} == early


@pytest.mark.parametrize("name", ["gp_ucb", "gp_bucb", "igp_ucb", "kernel_ucb", "window", "detector", "far from 0"])
@pytest.mark.parametrize("goal", GOALS)
def test_the_numbers_are_those_of_that_moment(name, goal):
    """What a study says before it asks is what the explanation says afterwards."""
    study = nr.Study(ALL[name](), seed=1, goal=goal)
    for i in range(14):
        mean, std = study.predict()
        lower, upper = study.bounds()
        width, restarts = study.width, study.restarts
        waiting = tuple(trial.number for trial in study.trials if trial.state == "pending")
        trial = study.ask()
        said = study.explain(trial)
        arm = trial.arm
        assert (said.mean, said.chosen.std) == (mean[arm], std[arm])
        assert said.bounds == (lower[arm], upper[arm])
        assert said.width == width
        assert said.pending == waiting
        assert [cut.round for cut in said.restarts] == restarts
        optimistic = upper if goal == "maximize" else -lower
        if said.drawn is not None:
            optimistic = (mean if goal == "maximize" else -mean) + said.drawn * std
        np.testing.assert_allclose(said.score, optimistic[arm], rtol=1e-12, atol=1e-9)
        np.testing.assert_allclose(said.score, optimistic.max(), rtol=1e-12, atol=1e-9)
        others = np.delete(optimistic, arm)
        np.testing.assert_allclose(said.runner_up.score, others.max(), rtol=1e-12, atol=1e-9)
        if i % 4 != 2:
            study.tell(trial, study.policy.prior_mean + float(np.sin(9 * trial.point[0])))


def test_constraints_and_prices_are_those_of_that_moment():
    study = nr.Study(on_arms(constraints=nr.OnAverage(count=2, step=0.5)), seed=1)
    for _ in range(8):
        bounds = [study.bounds(channel=j) for j in (1, 2)]
        multipliers, feasible = study.multipliers, study.feasible()
        trial = study.ask()
        said = study.explain(trial)
        for g, (lower, upper) in zip(said.constraints, bounds, strict=True):
            np.testing.assert_allclose((g.lower, g.upper), (lower[trial.arm], upper[trial.arm]), rtol=1e-12)
        assert said.multipliers == tuple(multipliers)
        np.testing.assert_allclose(said.feasible, feasible[trial.arm], rtol=1e-12)
        study.tell(trial, 1.0, constraints=[0.3, -0.2])
    assert max(said.multipliers) > 0


@pytest.mark.parametrize("goal", GOALS)
def test_a_price_is_part_of_the_rule_and_its_numbers_give_the_score(goal):
    study = nr.Study(nr.auto(nr.Arms.grid(0, 1, 4), constraints=nr.OnAverage(step=0.1)), goal=goal, seed=1)
    for i in range(40):
        trial = study.ask()
        study.tell(trial, float(i % 3 == 0), constraints=[0.6 * trial.point[0] - 0.1])
    why = study.explain(39)
    sign, word = (1.0, "less") if goal == "maximize" else (-1.0, "plus")
    assert f"randomised bound {word} price x expected use, of 4 points" in why.why
    plus, less = "+-"[:: int(sign)]
    (price,), (use,) = why.multipliers, why.constraints
    assert price > 0.0
    said = dict(why.facts)["score"]
    assert f"mean {plus} {why.drawn:.4g} std" in said
    assert f"{less} ({price:.4g} x {use.lower:.4g})" in said
    score = why.mean + sign * (why.drawn * why.chosen.std - price * use.lower)
    np.testing.assert_allclose(why.shown_score(why.chosen), score, rtol=1e-9)


def test_restarts_and_what_was_forgotten():
    study = nr.Study(on_arms(memory=nr.slots.RestartEvery(5)), seed=0)
    for _ in range(12):
        study.tell(study.ask(), 0.0)
    assert [study.explain(n).first_counted for n in (4, 5, 9, 10)] == [0, 5, 5, 10]
    assert [cut.round for cut in study.explain(11).restarts] == [5, 10]
    assert study.explain(11).round == 2
    assert "restarts" in str(study.explain(11))
    window = nr.Study(on_arms(memory=nr.slots.SlidingWindow(4)), seed=0)
    for _ in range(9):
        window.tell(window.ask(), 0.0)
    assert [window.explain(n).first_counted for n in (3, 4, 5, 8)] == [0, 0, 1, 4]


def test_the_kernel_in_force():
    study = nr.Study(on_arms(refit=nr.slots.Refit(every=5)), seed=0)
    for _ in range(12):
        trial = study.ask()
        study.tell(trial, float(np.sin(6 * trial.point[0])))
    assert not study.explain(4).fitted
    assert study.explain(4).kernel == K
    first, second = study.explain(6).kernel, study.explain(11).kernel
    assert study.explain(6).fitted
    assert len({K, first, second}) == 3
    assert "fitted" in str(study.explain(6))


def test_why_is_told_in_words():
    study = nr.Study(on_arms(), seed=0)
    study.ask()
    study.tell(study.ask(), 0.5)
    study.tell(study.ask(), 0.1)
    study.ask()
    text = str(study.explain(3))
    assert "Chosen by gp_ucb: the highest upper confidence bound of 25 points." in text
    assert "2 answers; waiting for trial 0" in text
    assert "proved for f" in text
    assert "one of 25 that tie" in str(study.explain(0))


def test_parts_and_scores_are_words_in_the_direction_of_the_goal():
    study = nr.Study(on_arms(), seed=0, goal="minimize")
    study.tell(study.ask(), 0.5)
    why = study.explain(study.ask())
    assert "the lowest lower confidence bound of 25 points" in why.why
    assert why.shown_score(why.chosen) == -why.score == pytest.approx(why.chosen.lower)
    assert "lower confidence bound, smaller is better" in str(why)
    searched = replace(why, forced_by="Elsewhere")  # One of its rounds that search the coordinates.
    assert 'the rule "Coordinate search"' in searched.to_dict()["why"]
    away = str(replace(searched, compared=1, runner_up=None))
    assert "Search away from the best point" in away
    assert "score  " not in away.split("known")[1]


LAST = 12  # trial beyond the initial design


def of_two_objectives(steps, **settings):
    """A study of two objectives, of which every fifth answer is late and the last two are waited for."""
    study = nr.Study(
        nr.auto(nr.Space(x=nr.Float(0, 1)), objectives=("loss", "recall"), **settings), goal=("minimize", "maximize")
    )
    for i in range(steps):
        x = study.ask().parameters["x"]
        if i % 5 != 4 and i < steps - 2:
            more = {"constraints": [x - 0.9]} if settings else {}
            study.tell(i, ((x - 0.3) ** 2, 12.0 + x), **more)
    return study


@pytest.mark.parametrize("settings", [{}, {"constraints": 1}])
def test_a_decision_of_several_objectives_has_all_posteriors_and_its_gain(settings):
    study = of_two_objectives(LAST + 1, **settings)
    early = study.explain(LAST)
    point = study.trials[LAST].point[None]
    later = nr.Study(study.policy, goal=study.goals)
    for trial in study.trials[:LAST]:
        later.ask()
        if trial.values:
            later.tell(trial.number, trial.values, constraints=trial.constraints)
    assert early.repeated
    for j, each in enumerate(early.chosen.objectives):
        mean, std = later.predict(point, channel=j)
        lower, upper = later.bounds(point, channel=j)
        assert (each.mean, each.std, each.lower, each.upper) == (mean[0], std[0], lower[0], upper[0])
    assert len(early.constraints) == len(settings)
    assert (early.feasible is None) == (not settings)
    study.tell(4, (0.5, 12.5), **({"constraints": [-0.1]} if settings else {}))
    assert study.explain(LAST) == early  # whatever came later
    text, said = str(early), json.loads(json.dumps(early.to_dict()))
    assert "It was expected to add " in text
    assert f"{early.front.size} trials, volume" in text
    assert "recall" in text
    assert said["objectives"] == ["loss", "recall"]
    assert said["goal"] == ["minimize", "maximize"]
    assert said["front"]["gain"] == early.front.gain
    first = study.explain(0).to_dict()
    assert first["front"] is None  # It was chosen by no score.
    assert "expected to add" not in str(study.explain(0))
    one = nr.Study(nr.auto(nr.Space(x=nr.Float(0, 1))))
    assert {"objectives", "front"}.isdisjoint(one.explain(one.ask()).to_dict())
    assert "others" not in one.explain(0).to_dict()["chosen"]


@pytest.mark.parametrize("goals", [("minimize", "maximize"), ("maximize", "maximize", "minimize")])
def test_the_expected_gain_of_a_front_is_the_mean_over_draws(goals):
    """4 standard errors, so each of four comparisons misses with probability 6e-5."""
    rng, k = np.random.default_rng(0), len(goals)
    signs = np.array([1.0 if goal == "maximize" else -1.0 for goal in goals])
    values = rng.uniform(size=(6, k))
    values = values[non_dominated(values)]
    trials = nr.Study(nr.auto(nr.Space(x=nr.Float(0, 1)))).ask(count=len(values))
    corner, pending = np.full(k, -0.1), signs * (values.max(axis=0)[None] - 0.1)
    front = Front(trials, signs * values, *[values] * 3, hypervolume(values, corner), signs * corner)
    mean, std = np.full(k, 0.7), np.linspace(0.2, 0.4, k)
    chosen = [OutputBounds(sign * m, s, 0.0, 0.0) for sign, m, s in zip(signs, mean, std, strict=True)]
    found = gain_of_front(front, goals, chosen, pending)
    draws = mean + std * rng.standard_normal((400, k))
    known = np.vstack([values, signs * pending])
    gains = np.array([hypervolume(np.vstack([known, row]), corner) for row in draws]) - hypervolume(known, corner)
    free = ~(known[None] >= draws[:, None]).all(axis=2).any(axis=1)
    for each, value in ((gains, found.gain), (free, found.chance)):
        assert value == pytest.approx(each.mean(), abs=4 * each.std() / len(draws) ** 0.5)
    assert (found.beaten_by is not None) == (values >= mean).all(axis=1).any()
    beaten = [OutputBounds(m - 0.1 * sign, 0.1, 0.0, 0.0) for m, sign in zip(front.mean[0], signs, strict=True)]
    again = gain_of_front(front, goals, beaten, pending)
    assert again.beaten_by == 0
    assert "Trial 0 is better in all means" in again.why
    assert gain_of_front(front._replace(trials=[]), goals, chosen, pending) is None


# -- propensities ----------------------------------------------------------------------------------------------------


def test_a_choice_without_chance_has_probability_1_and_a_tie_its_share():
    study = nr.Study(on_arms(), seed=0)
    for _ in range(6):
        study.tell(study.ask(), 0.1)
    first = study.explain(0)
    assert (first.tied, first.propensity) == (25, nr.study.explanation.Propensity(1 / 25))
    assert all(study.explain(n).propensity.value == 1 / study.explain(n).tied for n in range(6))
    assert study.explain(5).propensity.value == 1.0


def test_uniform_rounds_are_exact():
    study = nr.Study(on_arms().detecting_changes(threshold=3.0), seed=0)
    for n in range(12):
        trial = study.ask()
        study.fail(trial, "broken") if n == 0 else study.tell(trial, 0.1)
    uniform = [trial.number for trial in study.trials if trial.explored]
    assert uniform[0] == 0
    assert len(uniform) > 3
    assert [study.explain(n).propensity.value for n in uniform] == [1 / 25] + [1 / 24] * (len(uniform) - 1)
    box = nr.Study(on_box().detecting_changes(threshold=3.0), seed=0)
    said = box.explain(box.ask())
    assert (said.propensity.value, said.propensity.density, said.propensity.draws) == (0.5, True, 0)


def thompson(seed, policy=None):
    policy = policy or nr.gp_ts(nr.Arms.grid(0, 1, 4), K, noise=0.3, norm_bound=1.0)
    study = nr.Study(policy, seed=seed)
    for place, reward in ((0, 0.2), (1, 0.4), (2, 0.5), (3, -0.1)):
        study.add([place / 3], reward)
    return study, study.ask()


@described
@dataclass(frozen=True)
class Secretive(Score):
    """Draws f and does not say by which law."""

    draws = True

    def on_table(self, view):
        return view.draw()

    def on_points(self, view):
        return view.path()


def secretive(seed):
    policy = nr.gp_ts(nr.Arms.grid(0, 1, 4), K, noise=0.3, norm_bound=1.0).using(score=Secretive())
    return thompson(seed, policy)


@pytest.mark.parametrize("seeds", [3, *nightly(8)])
def test_what_no_part_says_is_estimated_and_agrees_with_what_one_says(seeds):
    for seed in range(seeds):
        study, trial = secretive(seed)
        estimated = study.explain(trial, draws=4000).propensity
        exact = thompson(seed)[0].explain(trial.number).propensity
        assert (estimated.draws, exact.draws) == (4000, 0)
        assert abs(estimated.value - exact.value) < 4.5 * estimated.standard_error + 0.005
        assert study.probabilities() is None


def test_what_was_chosen_was_not_impossible():
    """Of 300 arms, hardly any comes again in 20 draws, and what came is divided by its propensity."""
    policy = nr.gp_ts(nr.Arms.grid(0, 1, 300), nr.SquaredExponential(0.05), noise=0.3, norm_bound=1.0)
    study = nr.Study(policy.using(score=Secretive()), seed=0)
    said = [study.explain(study.ask(), draws=20) for _ in range(5)]
    assert min(why.propensity.value for why in said) == 1 / 21
    other = (study.trials[4].arm + 150) % 300
    blind = nr.Study(study.policy, seed=0)
    assert blind.explain(blind.ask(among=[other]), draws=20).propensity.value == 0.0  # of everything it is not chosen


def test_propensities_are_keyed_by_seed_and_trial():
    study, trial = secretive(0)
    first = study.explain(trial)
    assert study.explain(trial) == first
    assert first.propensity.standard_error > 0
    assert study.explain(trial, draws=0).propensity is None
    again, other = secretive(0)
    assert again.explain(other).propensity == first.propensity
    assert "(1,000 draws)" in str(first)


def test_continuous_domains_have_none():
    study = nr.Study(on_box(), seed=0)
    study.tell(study.ask(), 0.3)
    assert study.explain(study.ask()).propensity is None


# -- what a record does not hold -------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [on_arms(), nr.gp_ts(ARMS, K, noise=0.1, norm_bound=1.0)])
def test_what_could_be_played_is_passed_again(policy):
    study = nr.Study(policy, seed=1)
    for i in range(6):
        trial = study.ask(among=[3, 11] if i == 4 else None)
        study.tell(trial, float(np.sin(6 * trial.point[0])))
    blind, told = study.explain(4), study.explain(4, among=[3, 11])
    assert not blind.repeated
    assert "among" in str(blind)
    assert blind.runner_up.score > blind.score
    assert told.repeated
    assert told.compared == 2
    assert "among" not in str(told)
    assert {told.chosen.arm, told.runner_up.arm} == {3, 11}
    assert told.propensity.value > blind.propensity.value
    with pytest.raises(nr.errors.InvalidInput, match="not among what you say"):
        study.explain(4, exclude=[3, 11])
    offered = nr.Study(on_box(), seed=0)
    offered.tell(offered.ask(), 0.2)
    trial = offered.ask(among=[[0.1, 0.1], [0.9, 1.9], [0.4, 0.6]])
    told = offered.explain(trial, among=[[0.1, 0.1], [0.9, 1.9], [0.4, 0.6]])
    assert told.repeated
    assert (told.compared, told.propensity.value) == (3, 1.0)


def test_later_corrections_and_answers_to_the_abandoned_change_nothing_of_what_was_known(tmp_path):
    clock = iter(range(1000))
    url = f"sqlite:///{tmp_path}/studies.db"
    policy = nr.gp_bucb(ARMS, K, noise=0.1)
    study = nr.Study(policy, seed=2, storage=url, clock=lambda: float(next(clock)))
    first = study.ask()
    study.ask(lease=5.0)
    early = {}
    for i in range(10):
        trial = study.ask()
        early[trial.number] = study.explain(trial)
        waiting = [other.number for other in study.trials if other.state == "pending"]
        assert [*early[trial.number].pending, trial.number] == waiting
        study.tell(trial, float(np.sin(9 * trial.point[0])))
        if i == 3:
            study.abandon(first, "the machine was switched off")
        if i == 5:
            study.tell(trial, 2.0, revise=True)
        if i == 7:
            study.tell(first, 0.3)
            study.fail(trial, "it was no answer", revise=True)
    assert {said.pending for said in early.values()} == {(0, 1), (0,), ()}
    assert all(said.repeated for said in early.values())
    assert {number: study.explain(number) for number in early} == early
    again = nr.Study.open(storage=url)
    assert {number: again.explain(number) for number in early} == early


def test_scripts_name_their_points():
    study = nr.Study(nr.algorithms.bandit_oco(BOX, step=0.1), seed=0)
    said = study.explain(study.ask())
    assert said.repeated
    assert (said.rule, said.score, said.mean, said.propensity) == (None, None, None, None)
    assert "its script names" in str(said)


@pytest.mark.parametrize("goal", GOALS)
def test_contexts_and_names_are_said(goal):
    space = nr.Space(x=nr.Float(0, 1), n=nr.Int(1, 3)).grid(3)
    study = nr.Study(nr.gp_ucb(space, K, noise=0.1, context=nr.Space(day=nr.Int(0, 6))), seed=0, goal=goal)
    trial = study.ask({"day": 3})
    study.tell(trial, 1.0)
    said = study.explain(trial)
    assert said.to_dict()["context"] == {"day": 3}
    assert said.chosen.parameters == trial.parameters
    assert dict(said.facts)["context"] == "day=3"
    assert said.trial.state == "pending"


def test_what_cannot_be_explained():
    study = nr.Study(on_arms(), seed=0)
    with pytest.raises(nr.errors.TrialError, match="no trial 0"):
        study.explain(0)
    study.add([0.5], 1.0)
    study.ask()
    with pytest.raises(nr.errors.TrialError, match="was not asked for"):
        study.explain(0)
    for number in (-1, 2, True, "1", 1.0, None):
        with pytest.raises(nr.errors.TrialError, match="no trial"):
            study.explain(number)
    for draws in (-1, 0.5, "many", 10**12):
        with pytest.raises(nr.errors.InvalidInput, match="draws"):
            study.explain(1, draws=draws)
    for point in ([0.5], {"x": 0.5}):
        with pytest.raises(nr.errors.InvalidInput, match=r"which is a point.*study\.feasible"):
            study.explain(point)
    foreign = nr.Study(on_arms(), seed=5).add([0.0], 1.0)
    with pytest.raises(nr.errors.TrialError, match="another study"):
        study.explain(foreign)
