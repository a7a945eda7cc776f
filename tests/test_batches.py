"""Worlds that advance together make the choices that they make alone (`nr.replicate`)."""

import warnings
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import pytest

import nilregret as nr
from nilregret import algorithms, environments
from nilregret.simulation import runner
from nilregret.simulation import runner as batches
from nilregret.simulation.metrics import Run
from nilregret.slots import described, envelope, explore, scores

from .marks import nightly

ARMS = nr.Arms.grid(0, 1, 12)
KERNEL = nr.SquaredExponential(0.25)
CONTEXTS = nr.Arms([[0.0], [0.5], [1.0]])
PAIR = nr.SquaredExponential([0.5, 0.25])
SEEDS = range(4)


def function(seed, amplitude=1.0):
    a, b = np.random.default_rng([9, seed]).uniform(2.0, 9.0, 2)
    return lambda x, *z: amplitude * np.sin(a * x[:, 0] + (b * z[0][:, 0] if z else b))


def env(seed, **more):
    return nr.Environment(**{"reward": function(seed), "domain": ARMS, "noise": 0.1} | more)


def contextual(seed, **more):
    return env(seed, contexts=CONTEXTS, **more)


def played(make, make_env, rounds, seeds):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        runs = nr.replicate(make, make_env, rounds, seeds=seeds)
    return runs, [str(each.message) for each in caught]


def compare(policy, make_env, rounds, *, batched=True, seeds=SEEDS):
    """Checks the runs of all seeds together against those one by one."""
    make = policy if callable(policy) else lambda: policy
    runs, said = played(make, make_env, rounds, seeds)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "_can_join", lambda *_: False)
        alone, said_alone = played(make, make_env, rounds, seeds)
    assert runs.batched is batched
    for name in Run.__dataclass_fields__:
        if name not in ("entries", "batched", "restarts"):
            found, wanted = getattr(runs, name), getattr(alone, name)
            np.testing.assert_array_equal(found, wanted, err_msg=name)
            assert found.dtype == wanted.dtype
    assert runs.restarts == alone.restarts
    assert said == said_alone
    return runs


BOUND = {"noise": 0.1, "norm_bound": 2.0}
POLICIES = {
    "gp_ucb": nr.gp_ucb(ARMS, KERNEL, noise=0.1, scale=0.2),
    "gp_ucb, a prior mean": nr.gp_ucb(ARMS, KERNEL, noise=0.1, prior_mean=3.0),
    "gp_ucb, bounded norm": nr.gp_ucb(ARMS, KERNEL, noise=0.1, width="rkhs", norm_bound=2.0, information_gain="greedy"),
    "igp_ucb": algorithms.igp_ucb(ARMS, KERNEL, **BOUND),
    "gp_ts": algorithms.gp_ts(ARMS, KERNEL, **BOUND),
    "expected_improvement": algorithms.expected_improvement(ARMS, KERNEL, noise=0.1),
    "the best reward": algorithms.expected_improvement(ARMS, KERNEL, noise=0.1).using(
        score=scores.ExpectedImprovement(incumbent="reward")
    ),
    "probability_of_improvement": algorithms.probability_of_improvement(ARMS, KERNEL, noise=0.1),
    "kernel_ucb": algorithms.kernel_ucb(ARMS, KERNEL, noise=0.1, eta=0.1, regularization=0.01),
    "irgp_ucb": algorithms.irgp_ucb(ARMS, KERNEL, noise=0.1),
    "the mean": nr.gp_ucb(ARMS, KERNEL, noise=0.1).using(score=scores.PosteriorMean()),
    "the deviation": nr.gp_ucb(ARMS, KERNEL, noise=0.1).using(score=scores.PosteriorDeviation()),
}


@pytest.mark.parametrize("name", POLICIES)
def test_the_same_runs_together_as_alone(name):
    compare(POLICIES[name], env, 40)


def test_sums_are_recomputed_as_often():
    """A joint sample depends on the root of the covariance, which is another one after everything is recomputed."""
    compare(POLICIES["gp_ts"], env, 270, seeds=range(2))


@pytest.mark.parametrize("make", [nr.gp_ucb, algorithms.gp_ts, algorithms.expected_improvement])
def test_contexts(make):
    bound = {} if make is not algorithms.gp_ts else {"norm_bound": 2.0}
    policy = make(ARMS, PAIR, noise=0.1, context=CONTEXTS, **bound)
    runs = compare(policy, contextual, 30)
    assert len(np.unique(runs.contexts)) == 3
    compare(policy, lambda seed: contextual(seed, context_order=[[0.0], [0.5]]), 10)


LATE = {
    "rounds": environments.delays.PoissonDelay(3.0),
    "never": lambda rng, *_: np.inf if rng.random() < 0.3 else float(rng.geometric(1.0 / 3.0) - 1),
    "a batch": environments.delays.FixedDelay(4),
    "seconds": timedelta(seconds=2.5),
    "by the reward": lambda rng, point, reward: float(rng.integers(3)) + (reward < 0.0),
}
SDF = {"minimum": -3.0, "reward_bound": 6.0, **BOUND}
PENDING = {
    "ignored": POLICIES["gp_ucb"],
    "ignored, drawn": POLICIES["gp_ts"],
    "ignored, the best reward": POLICIES["the best reward"],
    "hallucinated": algorithms.gp_bucb(ARMS, KERNEL, noise=0.1),
    "hallucinated, inflated": algorithms.gp_bucb(ARMS, KERNEL, noise=0.1, inflation="realised"),
    "hallucinated, drawn": POLICIES["gp_ts"].using(pending=nr.slots.Hallucinated()),
    "censored": algorithms.gp_ucb_sdf(ARMS, KERNEL, window=4, **SDF),
    "censored, accepted late": algorithms.gp_ucb_sdf(ARMS, KERNEL, window=4, late="accept", **SDF),
    "censored, drawn": algorithms.gp_ts_sdf(ARMS, KERNEL, window=4, **SDF),
    "censored, minimum not known": algorithms.gp_ucb_sdf(ARMS, KERNEL, window=3, **SDF | {"minimum": None}),
    "censored, the best reward": POLICIES["the best reward"].using(
        pending=nr.slots.Censored(minimum=None, window=2), confidence=envelope.ConstantWidth(value=1.0)
    ),
    "censored by the clock": algorithms.gp_ucb_sdf(ARMS, KERNEL, window=timedelta(seconds=4), **SDF),
}


@pytest.mark.parametrize("name", PENDING)
@pytest.mark.parametrize("delay", LATE)
def test_late_answers(name, delay):
    compare(PENDING[name], lambda seed: env(seed, delay=LATE[delay]), 30, seeds=range(3))


@pytest.mark.parametrize("name", ["hallucinated, drawn", "censored, drawn", "censored, minimum not known"])
def test_late_answers_until_sums_are_recomputed(name):
    compare(PENDING[name], lambda seed: env(seed, delay=LATE["never"]), 300, seeds=range(2))


def test_late_answers_under_contexts():
    policy = algorithms.gp_bucb(ARMS, PAIR, noise=0.1, context=CONTEXTS)
    compare(policy, lambda seed: contextual(seed, delay=LATE["rounds"]), 30)


def test_worlds_that_change():
    policy = POLICIES["gp_ucb"]
    compare(policy, lambda seed: env(seed, reward=[function(seed), function(seed + 50)], change_points=[9]), 30)
    drifting = environments.Drifting(function(1), function(2), over=12)
    compare(policy, lambda seed: env(seed, reward=drifting), 30)


def test_warnings_are_the_same():
    """A noise that is too small, rewards far from the prior mean, and a ridge that is too large."""
    compare(POLICIES["gp_ucb"], lambda seed: env(seed, noise=5.0), 70)
    compare(POLICIES["gp_ucb"], lambda seed: env(seed, reward=function(seed, 1e4)), 20)
    compare(nr.gp_ucb(ARMS, KERNEL, noise=0.1, regularization=100.0), env, 20)
    said = played(lambda: POLICIES["gp_ucb"], lambda seed: env(seed, noise=5.0), 70, SEEDS)[1]
    assert {sentence.split()[0] for sentence in said} == {"Repeats", "Rewards"}


def test_equal_policies_go_together_and_others_alone():
    compare(lambda seed: nr.gp_ucb(ARMS, KERNEL, noise=0.1, scale=0.2 + seed % 2), env, 15)
    compare(lambda seed: nr.gp_ucb(ARMS, KERNEL, noise=0.1, scale=0.2 + seed), env, 15, batched=False)


@pytest.mark.parametrize("jobs", [1, *nightly(2)])
def test_results_do_not_depend_on_processes_or_blocks(jobs, monkeypatch):
    usual = nr.replicate(lambda: POLICIES["gp_ucb"], env, 20, seeds=range(11))
    monkeypatch.setattr(runner, "START", 0.0)
    monkeypatch.setattr(batches, "ROOM", 1000)
    monkeypatch.setattr(batches, "MOST_SEEDS", 9)
    run = nr.replicate(lambda: POLICIES["gp_ucb"], env, 20, seeds=range(11), jobs=jobs)
    np.testing.assert_array_equal(run.arms, usual.arms)
    np.testing.assert_array_equal(run.rewards, usual.rewards)


@described
@dataclass(frozen=True)
class Mine(scores.PointwiseScore):
    """A score that knows nothing of several worlds."""

    def __call__(self, envelope, incumbent=None):
        assert envelope.mean.ndim == 1
        return envelope.mean + 2.0 * envelope.std


@described
@dataclass(frozen=True, kw_only=True)
class MyImprovement(scores.Improvement):
    """A subclass of a shipped part knows nothing of them either."""

    def __call__(self, envelope, incumbent=None):
        assert envelope.mean.ndim == 1
        return envelope.mean - incumbent + envelope.std


ROUGH = nr.Arms.grid(0, 1, 200)
BASE = POLICIES["gp_ucb"]
BOX = nr.Box([0.0], [1.0])
ALONE = {
    "a window": (BASE.using(memory=nr.slots.SlidingWindow(5)), {}),
    "restarts": (BASE.using(memory=nr.slots.RestartEvery(7)), {}),
    "forced rounds": (BASE.using(explore=explore.UniformExploration(1.0)), {}),
    "fits": (BASE.using(refit=nr.slots.Refit(every=10)), {}),
    "a norm that is guessed": (algorithms.igp_ucb(ARMS, KERNEL, guess_norm=True, **BOUND), {}),
    "noise that is not known": (algorithms.igp_ucb(ARMS, KERNEL, noise="unknown", norm_bound=2.0), {}),
    "a score of one's own": (BASE.using(score=Mine()), {}),
    "an improvement of one's own": (BASE.using(score=MyImprovement()), {}),
    "a rough kernel on many arms": (nr.gp_ucb(ROUGH, nr.Matern(0.5, 0.1), noise=0.1), {"domain": ROUGH}),
    "a box": (nr.gp_ucb(BOX, KERNEL, noise=0.1), {"domain": BOX}),
    "a best value by context": (
        nr.gp_ucb(ARMS, PAIR, noise=0.1, context=CONTEXTS), {"contexts": CONTEXTS, "best": lambda z: np.ones(len(z))}
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ALONE)
def test_what_runs_one_by_one(name):
    policy, more = ALONE[name]
    compare(policy, lambda seed: env(seed, **more), 9, batched=False, seeds=range(2))


def test_an_environment_of_ones_own_runs_one_by_one():
    class Shifted(nr.Environment):
        def expected(self, trial):
            value, best = super().expected(trial)
            return value + 1.0, best + 1.0

    compare(BASE, lambda seed: Shifted(function(seed), domain=ARMS, noise=0.1), 9, batched=False, seeds=range(2))


def test_an_error_of_one_world_is_that_of_the_world_alone():
    censored = BASE.using(pending=nr.slots.Censored(minimum=0.0, window=5))
    with pytest.raises(nr.errors.InvalidInput, match="below the declared minimum") as alone:
        nr.simulate(censored, env(0, reward=lambda x: -5.0 * x[:, 0]), 20)
    with pytest.raises(nr.errors.InvalidInput, match="below the declared minimum") as together:
        nr.replicate(lambda: censored, lambda: env(0, reward=lambda x: -5.0 * x[:, 0]), 20, seeds=range(3))
    assert str(alone.value) == str(together.value)


def outcome(make, rounds=12, *, seeds=range(4)):
    """Returns what `replicate` gives, or its error, and the sentences of warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = nr.replicate(lambda: BASE, make, rounds, seeds=seeds).rewards.tolist()
        except Exception as error:
            found = repr(error)
    return found, [str(each.message) for each in caught]


def both(make, **more):
    together = outcome(make, **more)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "_can_join", lambda *_: False)
        return together, outcome(make, **more)


def test_the_first_world_that_fails_says_why():
    def failing(seed):
        def delay(rng, point, reward):
            if seed == 3:
                raise ValueError("world 3")
            return 1.0

        return env(seed, reward=lambda x: 1e200 + 0.0 * x[:, 0] if seed == 1 else x[:, 0], delay=delay)

    together, alone = both(failing)
    assert together == alone
    assert "1e200" in together[0]


def test_numpy_warns_in_functions_of_delays():
    together, alone = both(lambda: env(0, delay=lambda *_: float(np.isnan(np.log(np.float64(-1.0))))))
    assert together == alone
    assert "invalid value" in alone[1][0]


def test_a_function_may_fail_under_contexts_that_never_come():
    def reward(x, z):
        if z[0, 0] == 1.0:
            raise RuntimeError("unknown context")
        return x[:, 0]

    policy = nr.gp_ucb(ARMS, PAIR, noise=0.1, context=CONTEXTS)
    compare(policy, lambda seed: contextual(seed, reward=reward, context_order=[[0.0], [0.5]]), 9, batched=False)


@pytest.mark.parametrize("rounds", [0, -1, 2.5, "3", True, None, 10**9])
def test_numbers_of_rounds_are_checked_first(rounds):
    with pytest.raises(nr.errors.InvalidInput, match="`rounds`"):
        nr.replicate(lambda: BASE, env, rounds, seeds=SEEDS)


def test_no_seed_is_left_over_alone(monkeypatch):
    monkeypatch.setattr(runner, "START", 0.0)
    monkeypatch.setattr(batches, "MOST_SEEDS", 8)
    for seeds, jobs in ((range(9), 1), (range(9), 2), (range(3), 2)):
        assert nr.replicate(lambda: BASE, env, 3, seeds=seeds, jobs=jobs).batched


def test_warnings_come_in_the_order_of_a_study():
    """A kind that is found later comes later, in a batch, in columns and in a study."""
    policy = algorithms.gp_bucb(ARMS, nr.Matern(0.5, 6.7), noise=0.1)
    said = played(lambda: policy, lambda seed: env(seed, noise=5.0), 17, [3, 0, 3])[1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "_can_join", lambda *_: False)
        assert played(lambda: policy, lambda seed: env(seed, noise=5.0), 17, [3, 0, 3])[1] == said
        patch.setattr("nilregret.policy.policy.Policy.direct", False)
        assert played(lambda: policy, lambda seed: env(seed, noise=5.0), 17, [3, 0, 3])[1] == said
