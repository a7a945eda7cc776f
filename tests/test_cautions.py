"""Warnings of a wrong scale: each is given once, where there is cause and nowhere else."""

import itertools
import warnings
from functools import partial

import numpy as np
import pytest

import nilregret as nr
from nilregret.cli.overview import overview
from nilregret.environments import gp_sample, rkhs_function
from nilregret.serve.dashboard.views.standing import standing
from nilregret.study.function import reached_ends

ARMS = nr.Arms.grid(0, 1, 12)
SE = nr.SquaredExponential(0.2)


def f(point):
    return np.sin(7 * point[0])


def heard(policy, reward, rounds, constraints=None, **more):
    """The sentences of all warnings of a study."""
    study = nr.Study(policy, seed=0, **more)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(rounds):
            trial = study.ask()
            study.tell(trial, reward(trial), constraints=None if constraints is None else constraints(trial))
    assert all(each.category is nr.errors.NoRegretWarning for each in caught)
    assert all(each.filename == __file__ for each in caught)  # the line that called the study
    return [str(each.message) for each in caught]


def near_900(trial):
    return 900.0 + f(trial.point) + 0.1 * np.sin(99 * trial.number)


def small(trial):
    return 0.1 * f(trial.point)


def constrained(**more):
    settings = {"noise": 0.1, "norm_bound": 1.0, "epoch": 10, "epochs": 30, "regularization": 0.1} | more
    return nr.gp_ucb_noiseless_constraints(ARMS, SE, **settings)


CAUSES = {
    "rewards far away": (nr.gp_ucb(ARMS, nr.Matern(2.5, 0.1), noise=0.1), near_900, None, "half of the 4 told are "),
    "rewards far away, box": (nr.gp_ucb(nr.Box([0.0], [1.0]), SE, noise=0.1), near_900, None, "prior mean of 0,"),
    "beyond the norm bound": (
        nr.igp_ucb(ARMS, SE, noise=0.1, norm_bound=5.0), lambda trial: 40.0, None, "with a norm bound of 5",
    ),
    "large lambda": (
        nr.gp_ucb_noiseless_constraints(
            ARMS, nr.SquaredExponential(0.2, scale=0.01), noise=0.01, norm_bound=1.0, epoch=10, epochs=30
        ),
        small, lambda trial: [trial.point[0] - 0.5], "times the prior variance 0.01",
    ),
    "noise": (
        nr.gp_ucb(ARMS, SE, noise=0.01, scale=0.2),
        lambda trial: f(trial.point) + 0.3 * np.sin(99 * trial.number), None, "`noise` is 0.01",
    ),
    "no noise": (
        nr.gp_ucb(ARMS, SE, noise=0.0, regularization=1e-4, scale=0.2),
        lambda trial: f(trial.point) + 0.3 * np.sin(99 * trial.number), None, "`noise` is 0;",
    ),
    "multipliers": (constrained(epoch=5), small, lambda trial: [0.9], "The multipliers of the constraints run away"),
    "constraints forgotten": (constrained(), small, None, "16 rewards have been told and none with the constraint"),
    "constraints not wanted": (
        nr.gp_ucb(ARMS, SE, noise=0.1), small, lambda trial: [1.0], "gp_ucb has no constraints: they are recorded",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CAUSES)
def test_each_is_said_once(name):
    policy, reward, constraints, words = CAUSES[name]
    sentences = heard(policy, reward, 70, constraints)
    assert len(sentences) == 1
    assert words in sentences[0]
    assert " Usually " in sentences[0]  # what happened, why it usually does, and then what to try


def test_multipliers_are_warned_of_long_before_they_are_cut_off():
    sentences = heard(constrained(epoch=2), small, 33, lambda trial: [1.0])
    assert ["run away" in sentence for sentence in sentences] == [True, False]
    assert "the largest is 1097" in sentences[0]
    assert "has reached 1000000" in sentences[1]


def test_added_points_count_and_a_resumed_study_says_it_again(tmp_path):
    policy, place = nr.gp_ucb(ARMS, SE, noise=0.1), {"storage": f"sqlite:///{tmp_path}/a.db"}
    study = nr.Study(policy, **place)
    for arm in range(3):
        study.add(ARMS.points[arm], 900.0)
    with pytest.warns(nr.errors.NoRegretWarning, match="Rewards lie far"):
        study.add(ARMS.points[4], 900.0)
    study.add(ARMS.points[5], 900.0)
    with pytest.warns(nr.errors.NoRegretWarning, match="half of the 6 told"):
        nr.Study(policy, **place).add(ARMS.points[6], 900.0)


def test_a_simulation_says_it_at_its_end():
    env = nr.Environment(lambda x: 900.0 + x[:, 0], domain=ARMS, noise=0.1)
    policy = nr.gp_ucb(ARMS, SE, noise=0.1)
    with pytest.warns(nr.errors.NoRegretWarning, match="Rewards lie far") as caught:
        nr.simulate(policy, env, 20)
    assert (len(caught), caught[0].filename) == (1, __file__)
    with pytest.warns(nr.errors.NoRegretWarning, match="Rewards lie far") as caught:
        nr.replicate(lambda: policy, lambda: env, 20, seeds=range(3))
    assert len(caught) == 1


def test_an_environment_may_have_more_constraints_than_a_policy_knows():
    env = nr.Environment(lambda x: x[:, 0], domain=ARMS, noise=0.1, constraints=lambda x: x - 0.5)
    nr.simulate(nr.gp_ucb(ARMS, SE, noise=0.1), env, 20)  # warnings are errors here


def test_noise_is_not_called_too_small_where_it_is_not():
    """As large as told, Gaussian or of two values, on arms that are repeated hundreds of times."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        draw = (lambda rng=rng: 0.3 * rng.standard_normal()) if seed % 2 else lambda rng=rng: 0.3 * rng.choice([-1, 1])
        policy = nr.gp_ucb(ARMS, SE, noise=0.3, scale=0.2)
        assert heard(policy, lambda trial, draw=draw: f(trial.point) + draw(), 257) == []


def test_a_world_that_changes_is_no_noise():
    policy = nr.gp_ucb(ARMS, SE, noise=0.05, memory=nr.slots.SlidingWindow(20))
    assert heard(policy, lambda trial: float(trial.number % 40 < 20), 70) == []


def test_a_fit_finds_the_scale_by_itself():
    policy = nr.gp_ucb(nr.Box([0.0], [1.0]), SE, noise=0.1, refit=nr.slots.Refit(every=4))
    assert heard(policy, near_900, 20) == []


@pytest.mark.parametrize(
    "make",
    [
        nr.gp_ucb, nr.gp_bucb, nr.algorithms.gp_bts, nr.algorithms.asy_ts, nr.expected_improvement,
        nr.algorithms.probability_of_improvement,
        nr.algorithms.greedy_mean, nr.algorithms.greedy_variance, partial(nr.gp_ucb_cpd, horizon=70),
    ],
)  # fmt: skip
def test_well_scaled_samples_of_the_prior_say_nothing(make):
    for seed, noise in ((0, 0.05), (1, 0.5)):
        env = nr.Environment(gp_sample(SE, ARMS, seed=seed), domain=ARMS, noise=noise)
        nr.simulate(make(ARMS, SE, noise=noise), env, 70, seed=seed)  # warnings are errors here


@pytest.mark.parametrize("make", [nr.igp_ucb, nr.gp_ts])
def test_well_scaled_functions_of_bounded_norm_say_nothing(make):
    env = nr.Environment(rkhs_function(SE, ARMS, seed=0, norm=9.0), domain=ARMS, noise=0.2)
    nr.simulate(make(ARMS, SE, noise=0.2, norm_bound=9.0), env, 70)


@pytest.mark.parametrize("make", [nr.gp_ucb_noiseless_constraints, nr.gp_ucb_noisy_constraints])
def test_well_scaled_constraints_say_nothing(make):
    env = nr.Environment(lambda x: x[:, 0], domain=ARMS, noise=0.1, constraints=lambda x: x - 0.5)
    nr.simulate(make(ARMS, SE, noise=0.1, norm_bound=1.0, epoch=10, epochs=30), env, 257)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_recommended_trial_at_the_end_of_a_range_is_said_everywhere(sign):
    space = nr.Space(
        rate=nr.Float(1e-4, 0.1, log=True), count=nr.Int(2, 20), share=nr.Float(0, 1), few=nr.Int(7, 9),
        kind=nr.Choice("a", "b"),
    )  # fmt: skip
    goal = "maximize" if sign > 0 else "minimize"
    study = nr.Study(nr.auto(space), goal=goal)
    for i in range(24):
        a, b, c = i / 23, i * 7 % 24 / 23, i * 11 % 24 / 23
        at = {"rate": 1e-4 * 1000.0**a, "count": round(2 + 18 * b), "share": c, "few": 7 + i % 3, "kind": "ab"[i % 2]}
        study.add(at, sign * (a - b + c + at["few"]))
    study.add({"rate": 0.1, "count": 2, "share": 1.0, "few": 9, "kind": "b"}, 11.0 * sign)
    ends = reached_ends(study)
    assert [each.partition(", and")[0] for each in ends] == [
        "The best rate is at the upper end of its range, 0.1", "The best count is at the lower end of its range, 2",
    ]  # fmt: skip
    assert overview(study)["notes"] == standing(study, now=0.0)["ends"] == ends
    said = repr(nr.Result(study=study, trials=tuple(study.trials), wanted=None))
    assert said.split("\n  ")[-2:] == [f"note: {each}" for each in ends]


@pytest.mark.parametrize("f", [lambda a, b: -((a - 0.6) ** 2) - (b - 2.5) ** 2, lambda a, b: -((b - 2.5) ** 2)])
def test_nothing_is_said_of_ends_where_the_best_lies_inside_or_a_number_says_nothing(f):
    study = nr.Study(nr.auto(nr.Space(a=nr.Float(0.1, 1.1), b=nr.Float(2, 3))))
    for i in range(12):
        a, b = 0.1 + i / 11, 2 + (i * 5 % 12) / 11
        study.add({"a": a, "b": b}, f(a, b))
    study.add({"a": 0.1, "b": 2.5}, f(0.1, 2.5))
    assert reached_ends(study) == []


@pytest.mark.parametrize(
    "policy",
    [
        nr.auto(nr.Space(a=nr.Float(1, 2), b=nr.Float(1, 2)).where("a + b <= 4")),
        nr.auto(nr.Space(a=nr.Float(1, 2), b=nr.Float(1, 2)).grid(5)),
        nr.auto(nr.Space(a=nr.Float(1, 2), b=nr.Float(1, 2)), constraints=1),
    ],
    ids=["limits", "arms", "constraints"],
)
def test_nothing_is_said_of_ends_under_limits_and_constraints_and_of_arms(policy):
    study = nr.Study(policy)
    for a, b in itertools.product((1.0, 1.25, 1.5, 1.75, 2.0), repeat=2):
        study.add({"a": a, "b": b}, a + b, constraints=[-1.0] if policy.constraint_count else None)
    assert reached_ends(study) == []
    assert study.best().parameters == {"a": 2.0, "b": 2.0}
