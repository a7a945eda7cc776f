"""Long-term constraints: identities, multipliers, what is learned, and what happens to bad input."""

import dataclasses
import math
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import nilregret as nr
from nilregret.simulation import metrics
from nilregret.slots.objective import LARGEST, AdditivePenalty, MultiplicativePenalty, Multipliers, averages

ARMS = nr.Arms.grid(0, 1, 50)
KERNEL = nr.Matern(2.5, 0.2)
WORLDS = nr.environments
COMMON = {"noise": 0.1, "norm_bound": 1.0, "regularization": 0.01}
ALGORITHMS = {"noiseless": nr.gp_ucb_noiseless_constraints, "noisy": nr.gp_ucb_noisy_constraints}
SHARES = {"noiseless": 1, "noisy": 2}


@pytest.fixture(params=ALGORITHMS, name="kind")
def kind_fixture(request):
    return request.param


def make(kind, domain=ARMS, kernel=KERNEL, *, epoch=6, epochs=5, **more):
    return ALGORITHMS[kind](domain, kernel, epoch=epoch, epochs=epochs, **COMMON | more)


def reward(point):
    return math.sin(9 * point[0])


def g_of(point):
    return point[0] - 0.1


def play(study, rounds, *, constraint=g_of):
    for _ in range(rounds):
        trial = study.ask(*([[0.5]] if study.policy.context is not None else []))
        noise = np.random.default_rng([1, trial.number]).normal(scale=0.1)
        study.tell(trial, reward(trial.point) + noise, constraints=constraint(trial.point))
    return [trial.point.tolist() for trial in study.trials]


# -- identities --------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Constraint values are told")  # to a plain policy, on purpose
@pytest.mark.parametrize("memory", ["kept", "fresh"])
@pytest.mark.parametrize("solver", ["igp_ucb", "gp_ts"])
def test_inactive_constraints_change_nothing(kind, solver, memory):
    """The plays are those of the inner bandit at its share of delta (and, with fresh epochs, restarted as often)."""
    constrained = nr.Study(make(kind, solver=solver, memory=memory), seed=3)
    restarts = {"memory": nr.slots.RestartEvery(6)} if memory == "fresh" else {}
    inner = getattr(nr, solver)(ARMS, KERNEL, delta=0.1 / (SHARES[kind] * 5), **COMMON, **restarts)
    plain = nr.Study(inner, seed=3)
    assert play(constrained, 29, constraint=lambda x: -0.1 - x) == play(plain, 29)
    np.testing.assert_array_equal(constrained.predict(), plain.predict())
    assert constrained.width == plain.width
    np.testing.assert_array_equal(constrained.multipliers, [1.0] if kind == "noiseless" else [0.0])


def test_an_epoch_that_began_before_the_memory_was_cut_brings_nothing_back(kind):
    policy = dataclasses.replace(make(kind, memory="fresh", epoch=2), memory=nr.slots.RestartAt((7,)))
    study = nr.Study(policy, seed=0)
    for place in range(7):  # no question in between: epoch 3, from round 6 on, begins after the cut at round 7
        study.add(ARMS.points[place], 1.0, constraints=[0.1])
    assert study.restarts == [7]
    study.ask()
    study.add(ARMS.points[9], 1.0, constraints=[0.1])
    assert study.restarts == [7, 9]  # epochs are counted from the cut: the one of rounds 7 and 8 is over


@pytest.mark.parametrize("domain", [ARMS, nr.Box([0.0], [1.0])], ids=["arms", "box"])
def test_fresh_and_kept_agree_in_the_first_epoch(kind, domain):
    studies = [nr.Study(make(kind, domain, memory=memory, epoch=8), seed=5) for memory in ("kept", "fresh")]
    kept, fresh = (play(study, 20) for study in studies)
    assert kept[:8] == fresh[:8]
    assert kept != fresh
    assert [study.restarts for study in studies] == [[], [8, 16]]


@pytest.mark.parametrize("domain", [ARMS, nr.Box([0.0], [1.0])], ids=["arms", "box"])
@pytest.mark.parametrize("context", [None, nr.Arms.grid(0, 1, 3)], ids=["", "context"])
def test_weighing_anew_is_learning_the_new_targets(kind, domain, context):
    kernel = KERNEL if context is None else nr.Matern(2.5, [1.0, 0.2])
    policy = make(kind, domain, kernel, context=context)
    study = nr.Study(policy, seed=1)
    play(study, 25)
    targets = [policy.objective.target(trial, study.multipliers) for trial in study.trials]
    plain = nr.Study(nr.igp_ucb(domain, kernel, context=context, **COMMON))
    at = [0.5] if context is not None else None
    for trial, target in zip(study.trials, targets, strict=True):
        plain.add(trial.point, target, context=trial.context)
    points = np.linspace(0, 1, 50)[:, None]
    assert (study.multipliers > (1.0 if kind == "noiseless" else 0.0)).all()
    np.testing.assert_allclose(study.predict(points, context=at), plain.predict(points, context=at), atol=1e-10)
    assert study.information_gain == pytest.approx(plain.information_gain, abs=1e-10)


def test_several_constraints_add_up(kind):
    """Twice the same constraint is one, for as long as the charges add up to the same."""
    one, two = (nr.Study(make(kind, constraints=m, epoch=40, epochs=1), seed=2) for m in (1, 2))
    for study, m in ((one, 1), (two, 2)):
        for i in range(12):
            study.add(ARMS.points[4 * i], reward(ARMS.points[4 * i]), constraints=[g_of(ARMS.points[4 * i])] * m)
    if kind == "noiseless":  # kappa starts at 1 for each
        charged = [MultiplicativePenalty(epoch=1, epochs=1, constraints=m).penalty_of for m in (1, 2)]
        assert charged[1](np.array([0.3, 0.3]), np.ones(2)) == pytest.approx(
            2 * charged[0](np.array([0.3]), np.ones(1))
        )
    else:
        np.testing.assert_array_equal(one.predict(), two.predict())
    with pytest.raises(nr.errors.InvalidInput, match="2 numbers, one for each constraint"):
        two.add(ARMS.points[0], 0.0, constraints=[0.1])


# -- the paper's formulas ----------------------------------------------------------------------------------------------


def test_penalties_are_those_of_the_paper():
    g = np.array([-1.0, 0.0, 0.5, 2.0])
    exp = MultiplicativePenalty(epoch=1, epochs=1, constraints=4, c=0.7)
    np.testing.assert_allclose(exp.psi(g), np.where(g <= 0, 1.0, np.exp(0.7 * g)), rtol=1e-14)
    power = MultiplicativePenalty(epoch=1, epochs=1, constraints=4, penalty="power", c=0.7, n=3.0)
    np.testing.assert_allclose(power.psi(g), np.where(g <= 0, 1.0, (0.7 * g + 1) ** 3), rtol=1e-14)
    kappa = np.array([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(exp.updated(kappa, g), kappa * exp.psi(g))
    assert exp.penalty_of(g, kappa) == pytest.approx(3 * (math.exp(0.35) - 1) + 4 * (math.exp(1.4) - 1))
    add = AdditivePenalty(epoch=1, epochs=1, constraints=4, step=0.5)
    np.testing.assert_allclose(add.updated(kappa, g), [0.5, 2.0, 3.25, 5.0])
    np.testing.assert_array_equal(add.updated(kappa, np.full(4, -20.0)), np.zeros(4))
    assert add.penalty_of(g, kappa) == pytest.approx(-1.0 + 1.5 + 8.0)
    assert add.noise_factor(kappa) == pytest.approx(math.sqrt(31.0))
    assert exp.noise_factor(kappa) == 1.0


@pytest.mark.parametrize("penalty", ["exp", "power"])
def test_assumption_2(penalty):
    """Psi is 1 up to 0, increasing and convex, and psi(x) psi(y) >= psi(x + y)."""
    psi = MultiplicativePenalty(epoch=1, epochs=1, penalty=penalty, c=1.3, n=2.0).psi
    x = np.linspace(-2, 4, 61)
    assert (psi(x[x <= 0]) == 1.0).all()
    assert (np.diff(psi(x[x >= 0])) > 0).all()
    assert (np.diff(psi(x), 2) >= -1e-12).all()
    X, Y = np.meshgrid(x, x)
    assert (psi(X) * psi(Y) >= psi(X + Y) * (1 - 1e-12)).all()


def test_widths_split_delta_and_widen_the_noise():
    gamma = 0.0
    for solver, parts in (("igp_ucb", 1), ("gp_ts", 2)):
        for kind, shares in SHARES.items():
            study = nr.Study(make(kind, solver=solver, delta=0.2))
            spread = math.sqrt(2 * (gamma + 1 + math.log(parts * shares * 5 / 0.2)))
            assert study.width == pytest.approx(1.0 + 0.1 * spread)  # kappa = 0 in Algorithm 3: the noise is R
    study = nr.Study(make("noisy", step=2.0))
    play(study, 6, constraint=lambda x: 1.5)
    study.ask()
    np.testing.assert_allclose(study.multipliers, [3.0])
    spread = math.sqrt(2 * (study.information_gain + 1 + math.log(2 * 5 / 0.1)))
    assert study.width == pytest.approx(1.0 + math.sqrt(10.0) * 0.1 * spread)


def test_the_ridge_is_that_of_the_theorem_and_the_step_shrinks():
    arguments = {"noise": 0.1, "norm_bound": 1.0, "epoch": 20, "epochs": 16}
    for algorithm in ALGORITHMS.values():
        assert algorithm(ARMS, KERNEL, **arguments).regularization == pytest.approx(1 + 2 / 320)
        assert algorithm(ARMS, KERNEL, memory="fresh", **arguments).regularization == pytest.approx(1 + 2 / 20)
    assert nr.gp_ucb_noisy_constraints(ARMS, KERNEL, **arguments).objective.step == pytest.approx(0.5)


def test_multipliers_follow_from_the_average_of_the_epoch(kind):
    study, g = nr.Study(make(kind, epoch=4, epochs=3), seed=0), [0.5, -0.1, 0.4, 0.0, -3.0, 0.1, 0.1, 0.1]
    seen = []
    for value in g:
        coming = study.multipliers
        trial = study.ask()
        np.testing.assert_array_equal(study.last_multipliers, coming)
        seen.append(float(coming[0]))
        study.tell(trial, 0.0, constraints=[value])
    study.ask()
    first, second = np.mean(g[:4]), np.mean(g[4:])
    assert second < 0
    step = 2 / math.sqrt(3)
    expected = [1.0, math.exp(first), math.exp(first)] if kind == "noiseless" else [0.0, step * first, 0.0]
    assert seen == pytest.approx([expected[0]] * 4 + [expected[1]] * 4)
    assert study.multipliers == pytest.approx([expected[2]])


def test_what_is_proved():
    assert make("noiseless", regularization=1.1).valid_for == "f"
    assert make("noiseless", regularization=1.1, memory="fresh").valid_for == "f"
    assert make("noisy", regularization=1.1, memory="fresh").valid_for == "f"
    # Multipliers are made of noise that the kept observations are charged with.
    assert make("noisy", regularization=1.1).valid_for == "none"
    assert make("noiseless", regularization=1.1, memory=nr.slots.SlidingWindow(20)).valid_for == "none"


# -- epochs ------------------------------------------------------------------------------------------------------------


def test_the_last_epoch_goes_on(kind):
    study = nr.Study(make(kind, epoch=5, epochs=2), seed=0)
    play(study, 10, constraint=lambda x: 0.5)
    settled = study.multipliers
    assert settled == pytest.approx([math.exp(0.5)] if kind == "noiseless" else [0.5 * math.sqrt(2)])
    play(study, 13, constraint=lambda x: 0.5)
    np.testing.assert_array_equal(study.multipliers, settled)
    fresh = nr.Study(make(kind, epoch=5, epochs=2, memory="fresh"), seed=0)
    play(fresh, 23)
    assert fresh.restarts == [5]
    assert fresh.restart_reasons == ["a new epoch"]


def test_late_answers_count_under_the_multipliers_in_force(kind):
    policy = make(kind, epoch=5, epochs=4)
    study = nr.Study(policy, seed=0)
    late = study.ask()
    play(study, 11)
    study.ask()
    before = study.multipliers
    study.tell(late, 0.7, constraints=[0.3])
    study.ask()
    np.testing.assert_array_equal(study.multipliers, before)  # its epoch is over
    trial, target = study.replica.state.reward.posterior.entries[late.number]
    assert target == policy.objective.target(trial, study.multipliers)
    fresh = nr.Study(make(kind, epoch=5, epochs=4, memory="fresh"), seed=0)
    late = fresh.ask()
    play(fresh, 11)
    fresh.ask()
    unmoved = fresh.predict()
    fresh.tell(late, 50.0, constraints=[0.3])
    np.testing.assert_array_equal(fresh.predict(), unmoved)


def test_missing_constraint_values_teach_nothing(kind):
    study = nr.Study(make(kind, epoch=4), seed=0)
    for value in (0.5, None, 0.1, None):
        study.tell(study.ask(), 0.3, constraints=value)
    study.ask()
    assert study.multipliers == pytest.approx([math.exp(0.3)] if kind == "noiseless" else [2 / math.sqrt(5) * 0.3])
    assert sorted(study.replica.state.reward.posterior.entries) == [0, 2]
    assert study.trials[1].reward == 0.3
    silent = nr.Study(make(kind, epoch=4), seed=0)
    for _ in range(9):
        silent.tell(silent.ask(), 0.3)
    np.testing.assert_array_equal(silent.multipliers, [1.0] if kind == "noiseless" else [0.0])
    with pytest.raises(nr.errors.TrialError, match="with constraint values"):
        silent.best()


def test_many_epochs_may_be_added_at_once(kind):
    added, asked = (nr.Study(make(kind, epoch=4, epochs=4), seed=0) for _ in range(2))
    play(asked, 18)
    for trial in asked.trials:
        added.add(trial.point, trial.reward, constraints=trial.constraints)
    np.testing.assert_allclose(added.multipliers, asked.multipliers, rtol=1e-14)
    assert added.ask().arm == asked.ask().arm


def test_replay_is_exact_through_sqlite(kind, tmp_path):
    url = f"sqlite:///{tmp_path}/studies.db"
    policy = make(kind, constraints=2, epoch=5)

    def pair(x):
        return [g_of(x), 0.9 - x[0]]

    straight = nr.Study(policy, seed=4)
    play(straight, 24, constraint=pair)
    for stop in (3, 7, 14):
        play(nr.Study(policy, seed=4, storage=url) if stop == 3 else nr.Study.open(storage=url), stop, constraint=pair)
    again = nr.Study.open(storage=url)
    assert [t.point.tolist() for t in again.trials] == [t.point.tolist() for t in straight.trials]
    assert all(np.array_equal(a.constraints, b.constraints) for a, b in zip(again.trials, straight.trials, strict=True))
    np.testing.assert_array_equal(again.multipliers, straight.multipliers)
    np.testing.assert_array_equal(again.predict(), straight.predict())
    assert again.ask().arm == straight.ask().arm


# -- the best trial ----------------------------------------------------------------------------------------------------


def test_the_best_trial_satisfies_the_constraints(kind):
    study = nr.Study(make(kind, epoch=30, epochs=2), seed=0)
    with pytest.raises(nr.errors.TrialError, match="No trial has been answered"):
        study.best()
    for point, value, g in ((0.1, 5.0, 0.2), (0.3, 4.0, 0.05)):
        study.add([ARMS.points[round(point * 49)][0]], value, constraints=[g])
    with pytest.raises(nr.errors.TrialError, match=r"None of the 2 .* smallest violation was 0\.05, by trial 1"):
        study.best()
    study.add(ARMS.points[30], 1.0, constraints=[0.0])
    study.add(ARMS.points[40], 2.0, constraints=[-0.5])
    assert study.best().number == 3
    study.add(ARMS.points[40], 2.0, constraints=[0.7])  # on average it does not, after all
    assert study.best().number == 2


def test_the_best_trial_is_judged_by_its_reward_alone():
    """Slack earns a linear penalty's learner something, which is no reward."""
    study = nr.Study(make("noisy", epoch=2, epochs=5, step=4.0), seed=0)
    for _ in range(10):
        study.add(ARMS.points[25], -1.0, constraints=[2.0])
    study.add(ARMS.points[10], 1.0, constraints=[-0.01])
    study.add(ARMS.points[40], 0.5, constraints=[-1.0])
    mean = study.predict()[0]
    assert study.multipliers[0] > 1.0
    assert mean[40] > mean[10]
    assert study.best().arm == 10


def test_averages_are_by_point_and_context():
    study = nr.Study(make("noiseless", constraints=2), seed=0)
    for arm, g in ((3, [1.0, 2.0]), (4, [0.0, 0.0]), (3, [3.0, 0.0])):
        study.add(ARMS.points[arm], 0.0, constraints=g)
    values = [trial.constraints for trial in study.trials]
    np.testing.assert_array_equal(averages(study.trials, values), [[2.0, 1.0], [0.0, 0.0], [2.0, 1.0]])


# -- bad input and saturation ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.1, 0.2], "one for each constraint"),
        ([], "one for each constraint"),
        ([[0.1]], "one for each constraint"),
        ([math.nan], "not finite"),
        ([math.inf], "not finite"),
        ([1e101], "`constraints` is 1e101"),
        (["much"], "not an array of numbers"),
    ],
)
def test_bad_constraint_values_are_refused(kind, values, message):
    study = nr.Study(make(kind))
    trial = study.ask()
    with pytest.raises(nr.errors.InvalidInput, match=message):
        study.tell(trial, 0.1, constraints=values)
    assert study.trials[0].state == "pending"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epoch": 0}, "`epoch` is 0"),
        ({"epochs": 2.5}, "`epochs` must be a whole number"),
        ({"constraints": 0}, "`constraints` is 0"),
        ({"solver": "sgd"}, "`solver` is 'sgd'"),
        ({"memory": "kpet"}, "`memory` is 'kpet'"),
        ({"penalty": "l2"}, "`penalty` is 'l2'"),
        ({"c": 0.0}, "`c` is 0"),
        ({"n": 0.5, "penalty": "power"}, "`n` is 0.5"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(nr.errors.InvalidInput, match=message):
        make("noiseless", **arguments)


@pytest.mark.parametrize("more", [{"c": 300.0}, {"c": 1e308}, {"penalty": "power", "n": 1000.0, "c": 5.0}])
def test_saturation_is_said_once(more):
    study = nr.Study(make("noiseless", epoch=3, **more), seed=0)
    with pytest.warns(nr.errors.NoRegretWarning, match="has reached 1000000") as caught:
        play(study, 20, constraint=lambda x: 1.0)
    assert len(caught) == 1
    assert study.saturated
    np.testing.assert_array_equal(study.multipliers, [LARGEST])
    assert np.isfinite(study.predict()).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        study.predict()
        play(study, 5, constraint=lambda x: 1.0)


def test_linear_penalties_saturate_too():
    study = nr.Study(make("noisy", epoch=3, epochs=9, step=1e6), seed=0)
    with pytest.warns(nr.errors.NoRegretWarning) as caught:
        play(study, 20, constraint=lambda x: 1e90)
    assert len(caught) == 1
    np.testing.assert_array_equal(study.multipliers, [LARGEST])


@pytest.mark.parametrize("jobs", [1, 2])
def test_simulations_say_it_once_for_all_replicates(jobs):
    env = nr.Environment(lambda x: x[:, 0], domain=ARMS, noise=0.1, constraints=lambda x: 1.0 + x, best=1.0)
    policy = make("noiseless", c=5.0, epoch=3)
    with pytest.warns(nr.errors.NoRegretWarning, match="has reached") as caught:
        nr.replicate(lambda: policy, lambda: env, 15, seeds=range(3), jobs=jobs)
    assert len(caught) == 1
    with pytest.warns(nr.errors.NoRegretWarning, match="has reached") as caught:
        nr.simulate(policy, env, 15)
    assert len(caught) == 1


def test_multipliers_that_are_not_used_are_not_kept():
    multipliers = Multipliers(MultiplicativePenalty(epoch=2, epochs=2))
    study = nr.Study(make("noiseless"), seed=0)
    for _ in range(30):
        multipliers.hear(study.add(ARMS.points[0], 0.0, constraints=[0.1]))
        multipliers.advance(len(study.trials))
    assert not multipliers._values_by_epoch


def test_a_file_cannot_tell_constraint_values(tmp_path):
    from nilregret.tuning.toml import config

    file = tmp_path / "tune.toml"
    file.write_text(
        """
trials = 3
[parameters.x]
type = "float"
low = 0.0
high = 1.0
[objective]
command = "echo 1"
[policy]
algorithm = "gp_ucb_noiseless_constraints"
noise = 0.1
norm_bound = 1.0
epoch = 2
epochs = 2
[policy.kernel]
type = "matern"
"""
    )
    with pytest.raises(nr.errors.InvalidInput, match="needs constraint values with every reward"):
        config.load(file)


# -- simulation and metrics --------------------------------------------------------------------------------------------


def test_violation_is_soft_and_strong():
    g = np.array([[0.3, -1.0], [-0.5, 0.4], [0.6, 1.0]])
    np.testing.assert_allclose(metrics.violation(g), [0.3, 0.0, math.hypot(0.4, 0.4)])
    np.testing.assert_allclose(metrics.strong_violation(g), [0.3, 0.7, 2.3])
    np.testing.assert_allclose(metrics.recent_violation(g, rounds=2), 1.0)
    np.testing.assert_allclose(metrics.recent_violation([[-1.0], [-1.0], [1.0], [-1.0]], rounds=4), 0.25)
    np.testing.assert_allclose(metrics.positive_regret([1.0, -2.0, 0.5]), [1.0, 1.0, 1.5])


def test_a_run_knows_the_multipliers_of_every_round(kind):
    env = nr.Environment(lambda x: x[:, 0], domain=ARMS, constraints=lambda x: x - 0.3, noise=0.1)
    run = nr.simulate(make(kind, epoch=4, epochs=3), env, 14)
    objective = make(kind, epoch=4, epochs=3).objective
    expected = [objective.first()]
    for epoch in range(2):
        expected.append(objective.updated(expected[-1], run.constraints[4 * epoch : 4 * epoch + 4].mean(axis=0)))
    np.testing.assert_allclose(run.multipliers, np.repeat(expected, [4, 4, 6], axis=0), rtol=1e-14)
    assert np.isnan(nr.simulate(nr.gp_ucb(ARMS, KERNEL, noise=0.1), env, 3).multipliers).all()


def test_noise_on_constraints_of_any_kind():
    def draw(rng, shape):
        return rng.uniform(-0.2, 0.2, shape)

    env = nr.Environment(
        lambda x: x[:, 0], domain=ARMS, noise=0.1, constraints=lambda x: 0.0 * x, constraint_noise=draw, best=1.0
    )
    policy = make("noisy", epoch=200)
    run = nr.simulate(policy, env, 20)
    np.testing.assert_array_equal(run.constraints, np.zeros((20, 1)))
    rng = np.random.default_rng(0)
    noise = env.draw_constraint_noise(rng, 500)
    assert noise.shape == (500, 1)
    assert 0.15 < np.abs(noise).max() <= 0.2
    with pytest.raises(nr.errors.InvalidInput, match="`constraint_noise`"):
        nr.Environment(lambda x: x[:, 0], domain=ARMS, constraints=lambda x: x, constraint_noise=-1.0)
    wrong = nr.Environment(
        lambda x: x[:, 0], domain=ARMS, constraints=lambda x: 0.0 * x, constraint_noise=lambda rng, shape: np.zeros(3)
    )
    with pytest.raises(nr.errors.InvalidInput, match="shape"):
        nr.simulate(policy, wrong, 3)


def test_regret_is_measured_against_the_best_feasible_point():
    problem = WORLDS.small_feasible_region
    assert problem.best == pytest.approx(1 - math.asin(0.95))
    assert problem.constraint(problem.argmax[None])[0, 0] == pytest.approx(0.0, abs=1e-12)
    points = problem.domain.grid(121).points
    feasible = points[problem.constraint(points)[:, 0] <= 0]
    assert 0.01 < len(feasible) / len(points) < 0.025
    assert problem.best - 0.06 < problem.reward(feasible).max() <= problem.best
    run = nr.simulate(make("noiseless", problem.domain, nr.Matern(2.5, 1.0)), problem.environment(), 12)
    np.testing.assert_allclose(run.regret, problem.best - problem.reward(run.points), atol=1e-12)
    np.testing.assert_allclose(run.constraints, problem.constraint(run.points), atol=1e-12)


@pytest.mark.parametrize(
    ("a", "b", "best", "x"),
    [
        ((10, 10, 10, 10), (1, 1, 1, 1), 3.12166, (1.4155, 0.9796, 1.2665, 0.2599)),
        ((10, 2, 10, 2), (0.5, 1, 1, 1), 2.96240, (0.9143, 1.5069, 1.2645, 0.1690)),
        ((5, 5, 5, 5), (1, 1, 1, 1), 2.81887, (1.6544, 0.9687, 1.3177, 0.1896)),
        ((20, 5, 20, 5), (0.5, 1, 1.5, 1), 2.88182, (0.7301, 0.8599, 1.6576, 0.1533)),
    ],
)
def test_data_rates(a, b, best, x):
    """Optima as two other searches found them."""
    problem = WORLDS.data_rates(a, b)
    assert problem.best == pytest.approx(best, abs=1e-5)
    np.testing.assert_allclose(problem.argmax, x, atol=1e-3)
    assert problem.constraint(problem.argmax[None])[0, 0] == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(problem.reward(np.array([[0.0] * 4, [2.0] * 4])), [0.0, 4.0], atol=1e-12)
    np.testing.assert_allclose(problem.constraint(np.array([[0.0] * 4, [1.0] * 4])), [[-2.0], [0.6]])


def test_data_rates_refuse_nonsense():
    with pytest.raises(nr.errors.InvalidInput, match="four positive numbers"):
        WORLDS.data_rates(a=(1.0, 2.0))
    with pytest.raises(nr.errors.InvalidInput, match="four positive numbers"):
        WORLDS.data_rates(b=(1.0, 0.0, 1.0, 1.0))


@pytest.mark.parametrize("seeds", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_violation_falls(seeds):
    """Algorithm 2 on the test problem, fixed seeds."""
    problem = WORLDS.small_feasible_region
    policy = make("noiseless", problem.domain, nr.Matern(2.5, 1.0), epoch=20, epochs=6)
    runs = nr.replicate(lambda: policy, problem.environment, 120, seeds=range(seeds))
    average = runs.violation / np.arange(1, 121)
    assert (average[:, -1] < 0.6 * average[:, 39]).all()
    assert (runs.multipliers[:, -1, 0] > 1.5).all()


# -- the example -------------------------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_the_router_runs_and_goes_on_where_it_was(tmp_path):
    script = Path(__file__).parents[1] / "examples" / "router.py"
    outputs = []
    for rounds in ("4", "8"):
        command = [sys.executable, str(script), "--hours", rounds, "--folder", str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout)
    assert "hour   4" in outputs[0]
    assert "resumed after 4 hours" in outputs[1]
    assert (tmp_path / "router.png").read_bytes().startswith(b"\x89PNG")


def test_looking_between_answers_leaves_no_trace_in_a_fit():
    """A fit made for a look must not serve when later answers have changed the multipliers of the same epoch."""
    arms, kernel = nr.Arms.grid(0, 1, 9), nr.Matern(2.5, lengthscale=0.3)
    plain = nr.gp_ucb_noisy_constraints(arms, kernel, noise=0.1, norm_bound=1.0, epoch=4, epochs=3, step=2.0)
    policy = dataclasses.replace(plain, refit=nr.slots.Refit(every=3))
    means = []
    for look in (False, True):
        study = nr.Study(policy, seed=0)
        trials = study.ask(count=4)
        for trial, reward in zip(trials[:3], (0.1, 0.9, 0.4), strict=True):
            study.tell(trial, reward, constraints=[0.5 - trial.point[0]])
        if look:
            study.predict()
        study.tell(trials[3], 0.2, constraints=[3.0])
        study.ask()
        means.append(study.predict()[0])
    np.testing.assert_array_equal(*means)
