import math
import os

import loky
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

import nilregret as nr
from nilregret.environments import rkhs_function
from nilregret.simulation import metrics, runner

ARMS = nr.Arms.grid(0, 1, 40)


def environment(noise=0.1):
    return nr.Environment(lambda x: np.sin(9 * x[:, 0]), domain=ARMS, noise=noise)


def policy(**more):
    return nr.gp_ucb(ARMS, nr.SquaredExponential(0.2), noise=0.1, **more)


def test_a_run_is_a_pure_function():
    one, two = nr.simulate(policy(), environment(), 30, seed=5), nr.simulate(policy(), environment(), 30, seed=5)
    np.testing.assert_array_equal(one.rewards, two.rewards)
    np.testing.assert_array_equal(one.arms, two.arms)
    assert not np.array_equal(one.arms, nr.simulate(policy(), environment(), 30, seed=6).arms)


def test_shapes_and_regret():
    env = environment()
    run = nr.simulate(policy(), env, 25)
    assert run.points.shape == (25, 1)
    assert run.arms.shape == run.rewards.shape == run.regret.shape == (25,)
    np.testing.assert_allclose(run.regret, env.values.max() - env.values[run.arms])
    assert (run.regret >= 0).all()
    np.testing.assert_allclose(run.cumulative_regret, np.cumsum(run.regret))
    np.testing.assert_allclose(run.average_regret, np.cumsum(run.regret) / np.arange(1, 26))
    np.testing.assert_allclose(run.simple_regret, np.minimum.accumulate(run.regret))


def test_noise_is_paired_across_policies():
    env = environment()
    runs = [nr.simulate(policy(scale=scale), env, 40, seed=3) for scale in (0.1, 1.0)]
    noise = [run.rewards - env.values[run.arms] for run in runs]
    np.testing.assert_allclose(noise[0], noise[1], atol=1e-12)
    assert np.std(noise[0]) == pytest.approx(0.1, rel=0.5)


def test_replicates_do_not_depend_on_the_number_of_processes(monkeypatch):
    monkeypatch.setattr(runner, "START", 0.0)  # however little work it is
    runs = [
        nr.replicate(lambda seed: policy(scale=0.2 + 0.01 * seed), environment, 20, seeds=[3, 1, 2], jobs=jobs)
        for jobs in (1, 2, -1)
    ]
    for run in runs[1:]:
        for name in ("points", "arms", "rewards", "regret"):
            np.testing.assert_array_equal(getattr(run, name), getattr(runs[0], name))
    assert runs[0].points.shape == (3, 20, 1)
    assert runs[0].cumulative_regret.shape == (3, 20)
    alone = nr.simulate(policy(scale=0.21), environment(), 20, seed=1)
    np.testing.assert_array_equal(runs[0].arms[1], alone.arms)


def test_processes_are_kept_for_the_next_call(monkeypatch):
    """Each environment's rewards are the number of the process that made it."""
    monkeypatch.setattr(runner, "START", 0.0)

    def made_here():
        return nr.Environment(lambda x: np.full(len(x), os.getpid() * 1e-6), domain=ARMS, noise=0.0)

    calls = [nr.replicate(policy, made_here, 2, seeds=range(9), jobs=2) for _ in range(2)]
    first, second = ({round(value * 1e6) for value in run.rewards[2:].ravel()} for run in calls)
    assert len(first | second) <= 2  # new processes would have other numbers
    assert os.getpid() not in first | second


def test_little_work_starts_no_processes(monkeypatch):
    monkeypatch.setattr(runner, "START", math.inf)
    monkeypatch.setattr(loky, "get_reusable_executor", None)
    run = nr.replicate(policy, environment, 3, seeds=range(4), jobs=2)
    assert run.rewards.shape == (4, 3)


def test_an_error_in_another_process_reaches_the_caller(monkeypatch):
    monkeypatch.setattr(runner, "START", 0.0)

    def broken(seed):
        return environment() if seed == 0 else None

    with pytest.raises(nr.errors.InvalidInput, match="an environment"):
        nr.replicate(policy, broken, 2, seeds=range(4), jobs=2)
    assert nr.replicate(policy, environment, 2, seeds=range(4), jobs=2).rewards.shape == (4, 2)


def test_regret_falls():
    run = nr.replicate(policy, environment, 200, seeds=range(5))
    assert run.average_regret[:, -1].max() < 0.25 * run.average_regret[:, 9].min()


def test_theorem_1_covers():
    """Theorem 1 on functions from the prior: bounds fail anywhere in at most delta = 0.1 of runs (Lemma 5.1).

    60 runs; if the failure probability were exactly 0.1, more failures than the limit have probability below 1e-3.
    """
    kernel, delta, runs = nr.SquaredExponential(0.2), 0.1, 60
    root = np.linalg.cholesky(kernel(ARMS.points, ARMS.points) + 1e-10 * np.eye(40))
    failures = 0
    for seed in range(runs):
        values = root @ np.random.default_rng([17, seed]).standard_normal(40)
        study = nr.Study(nr.gp_ucb(ARMS, kernel, noise=0.3, delta=delta), seed=seed)
        noise, failed = np.random.default_rng([18, seed]), False
        for _ in range(30):
            lower, upper = study.bounds()
            failed |= bool(((values < lower) | (values > upper)).any())
            trial = study.ask()
            study.tell(trial, values[trial.arm] + 0.3 * noise.standard_normal())
        failures += failed
    assert failures <= binom.ppf(1 - 1e-3, runs, delta)


@pytest.mark.parametrize("make", [nr.igp_ucb, nr.gp_ts])
def test_the_bounds_of_chowdhury_and_gopalan_cover(make):
    """Theorem 2 with the realised gain, on functions of known norm: in at most delta = 0.1 of runs f leaves the bounds.

    60 runs; if the failure probability were exactly 0.1, more failures than the limit have probability below 1e-3.
    """
    kernel, delta, runs, rounds = nr.SquaredExponential(0.2), 0.1, 60, 30
    failures = 0
    for seed in range(runs):
        values = rkhs_function(kernel, ARMS, seed=seed, norm=2.0)(ARMS.points)
        study = nr.Study(make(ARMS, kernel, noise=0.3, norm_bound=2.0, horizon=rounds, delta=delta), seed=seed)
        noise, failed = np.random.default_rng([18, seed]), False
        for _ in range(rounds):
            lower, upper = study.bounds()
            failed |= bool(((values < lower) | (values > upper)).any())
            trial = study.ask()
            study.tell(trial, float(values[trial.arm] + 0.3 * noise.standard_normal()))
        failures += failed
    assert failures <= binom.ppf(1 - 1e-3, runs, delta)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nr.Environment(lambda x: x, domain=ARMS), "returned shape"),
        (lambda: nr.Environment(lambda x: np.full(len(x), np.nan), domain=ARMS), "not finite"),
        (lambda: nr.Environment(3.0, domain=ARMS), "must be a function"),
        (lambda: nr.Environment(lambda x: x[:, 0], domain=[0.0, 1.0]), "`domain`"),
        (lambda: nr.Environment(lambda x: x[:, 0], domain=ARMS, contexts="c"), "`contexts`"),
        (lambda: nr.Environment(lambda x, c: x[:, 0], domain=ARMS, contexts=ARMS, best=1.0), "`best`"),
        (lambda: environment(noise=-1.0), "`noise` is -1"),
        (lambda: nr.simulate(policy(), environment(), 0), "`rounds` is 0"),
        (lambda: nr.simulate(policy(), environment(), 5, seed=-2), "`seed`"),
        (lambda: nr.replicate(policy, environment, 5, seeds=[]), "`seeds`"),
        (lambda: nr.replicate(policy, environment, 5, seeds=3), "`seeds`"),
        (lambda: nr.replicate(policy, environment, 5, seeds=[1], jobs=0), "`jobs`"),
    ],
)
def test_nonsense_is_explained(make, message):
    with pytest.raises(nr.errors.InvalidInput, match=message):
        make()


def test_policy_and_environment_must_have_the_same_arms():
    other = nr.gp_ucb(nr.Arms.grid(0, 2, 40), nr.Matern(), noise=0.1)
    with pytest.raises(nr.errors.InvalidInput, match="different domains"):
        nr.simulate(other, environment(), 5)


def test_a_simulation_is_about_one_objective():
    front = nr.auto(nr.Arms.grid(0, 1, 40), objectives=("loss", "recall"))
    with pytest.raises(nr.errors.InvalidInput, match=r"2 objectives, .* the regret of one reward. .*hypervolume"):
        nr.simulate(front, environment(), 5)
    with pytest.raises(nr.errors.InvalidInput, match="2 objectives"):
        nr.replicate(lambda: front, environment, 5, seeds=range(2))
    with pytest.raises(nr.errors.InvalidInput, match=r"\[front\] .*The policy has 2 objectives"):
        nr.compare({"auto": policy(), "front": front}, environment(), rounds=5, seeds=range(2))


@given(st.lists(st.floats(0, 100), min_size=1, max_size=30))
def test_metrics_identities(regret):
    total, average = metrics.cumulative_regret(regret), metrics.average_regret(regret)
    assert total[-1] == pytest.approx(sum(regret), abs=1e-9)
    np.testing.assert_allclose(average * np.arange(1, len(regret) + 1), total, atol=1e-12)
    simple = metrics.simple_regret(regret)
    assert simple[-1] == min(regret)
    assert (np.diff(simple) <= 0).all()
    assert simple[-1] <= average[-1] + 1e-9


def test_simple_regret_counts_answered_rounds_only():
    np.testing.assert_array_equal(
        metrics.simple_regret([3.0, 1.0, 2.0, 0.5], answered=[False, False, True, True]), [np.inf, np.inf, 2.0, 0.5]
    )
