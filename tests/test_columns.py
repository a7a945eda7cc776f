"""Simulations that keep arrays play, bit for bit, what a study plays, and say the same."""

from dataclasses import dataclass, fields
from datetime import timedelta

import numpy as np
import pytest

import nilregret as nr
from nilregret.policy.policy import Policy
from nilregret.simulation.one_run import DirectPlayer, Simulation
from nilregret.slots.explore import Explore, UniformExploration
from nilregret.slots.scores import ExpectedImprovement, PointwiseScore
from nilregret.study.cautions import UNWANTED
from nilregret.study.study import Study

ARMS, CONTEXTS, SE = nr.Arms.grid(0, 1, 12), nr.Arms([0.0, 0.5, 1.0]), nr.SquaredExponential(0.2)


@nr.slots.described
@dataclass(frozen=True)
class Returning(Explore):
    """Every seventh round plays the best point, or one that was never tried."""

    def due(self, uniform, history, randomness):
        return history % 7 == 6

    @property
    def score(self):
        return ExpectedImprovement()

    def places(self, situation):
        tried = {point.tobytes() for point in situation.tried()}
        new = [point for point in situation.domain.points if point.tobytes() not in tried]
        return np.array([situation.best(), *new[:2]])


@nr.slots.described
@dataclass(frozen=True)
class LaterImprovement(PointwiseScore):
    """An upper bound, and from some rewards on their best one."""

    def incumbent_in(self, view):
        return view.best_reward() if view.round > 20 else 0.0

    def __call__(self, envelope, incumbent=None):
        return np.maximum(envelope.upper, incumbent)


def f(x, c=0.0):
    return np.sin(5.0 * x[:, 0] + 3.0 * np.asarray(c).reshape(-1)[:1])


def env(**more):
    settings = {"domain": ARMS, "noise": 0.1} | more
    return nr.Environment(settings.pop("reward", f), **settings)


def limit(x, *c):
    return x - 0.5


ENVIRONMENTS = {
    "plain": env(),
    "late": env(noise=0.3, delay=3),
    "at random": env(delay=lambda rng, point, reward: float(rng.integers(5)), interval=0.1),
    "in time": env(delay=timedelta(seconds=2.5)),
    "limits": env(constraints=limit, constraint_noise=0.1),
    "late limits": env(constraints=limit, constraint_delay=2, delay=1),
    "changes": env(reward=[f, lambda x: -f(x)], change_points=[40]),
    "far away": env(reward=lambda x: 900.0 + x[:, 0]),
    "louder than told": env(noise=0.9),
    "contexts": env(contexts=CONTEXTS),
    "contexts in order": env(contexts=CONTEXTS, context_order=[[0.0], [1.0], [1.0]], delay=2, noise=0.9),
}

POLICIES = {
    "ucb": lambda **more: nr.gp_ucb(ARMS, noise=0.1, **more),
    "igp_ucb": lambda **more: nr.igp_ucb(ARMS, noise=0.1, norm_bound=2, **more),
    "thompson": lambda **more: nr.gp_ts(ARMS, noise=0.1, norm_bound=2, **more),
    "improvement": lambda **more: nr.expected_improvement(ARMS, noise=0.1, **more),
    "over rewards": lambda **more: nr.gp_ucb(ARMS, noise=0.1, **more).using(
        score=ExpectedImprovement(incumbent="reward")
    ),
    "of one's own": lambda **more: nr.gp_ucb(ARMS, noise=0.1, **more).using(score=LaterImprovement()),
    "explored": lambda **more: nr.gp_ucb(ARMS, noise=0.1, **more).using(explore=UniformExploration(0.5)),
    "returning": lambda **more: nr.gp_ucb(ARMS, noise=0.1, **more).using(explore=Returning()),
}


def played(policy, world, rounds, seed):
    simulation = Simulation(policy, world, rounds, seed=seed)
    return simulation, simulation.run(), {k: v for k, v in simulation.player.held_warnings.items() if k != UNWANTED}


@pytest.mark.parametrize("name", POLICIES)
def test_arrays_hold_what_a_study_plays(name, monkeypatch):
    said = set()
    for seed, world in enumerate(ENVIRONMENTS.values()):
        contexts = world.contexts
        kernel = SE if contexts is None else nr.SquaredExponential(0.5).on(0) * SE.on(1)
        policy = POLICIES[name](kernel=kernel, context=contexts)
        direct, run, warned = played(policy, world, 70, seed)
        with monkeypatch.context() as patch:
            patch.setattr(Policy, "direct", False)
            studied, expected, wanted = played(policy, world, 70, seed)
        assert (type(direct.player), type(studied.player)) == (DirectPlayer, Study)
        assert warned == wanted
        said |= warned.keys()
        for each in fields(nr.simulation.Run):
            one, other = getattr(run, each.name), getattr(expected, each.name)
            if isinstance(one, np.ndarray):
                assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes()), each.name
            else:
                assert one == other
    assert said == ({"rewards"} if name == "explored" else {"rewards", "noise"})  # which may look for changes


def test_rewards_of_a_known_kind_are_learned_and_checked(monkeypatch):
    policy = nr.gp_ucb(ARMS, SE, noise=0.5).using(objective=nr.slots.Bernoulli())
    assert policy.direct
    with pytest.raises(nr.errors.InvalidInput, match="neither 0 nor 1"):
        nr.simulate(policy, env(), 9)
    sure = env(reward=lambda x: (x[:, 0] > 0.5) * 1.0, noise=0.0)
    run = nr.simulate(policy, sure, 40)
    monkeypatch.setattr(Policy, "direct", False)
    assert run.arms.tobytes() == nr.simulate(policy, sure, 40).arms.tobytes()


def test_entries_are_made_when_somebody_looks():
    policy, world = POLICIES["ucb"](kernel=SE), ENVIRONMENTS["plain"]
    simulation, run, _ = played(policy, world, 30, 0)
    study = nr.Study(policy, seed=0)
    for reward in run.rewards.tolist():
        study.tell(study.ask(), reward)
    posterior, known = simulation.player._rounds.state.reward.posterior, study.replica.current().reward.posterior
    assert not posterior._entries
    for number, (trial, target) in posterior.entries.items():  # the last reward has not been learned
        told = known.entries[number].trial
        assert (trial.reward, trial.arm, trial.point.tobytes()) == (told.reward, told.arm, told.point.tobytes())
        assert target == known.entries[number].target
    assert list(posterior.entries) == list(range(29))


BOX = nr.Box([0.0], [1.0])


@nr.slots.described
@dataclass(frozen=True)
class Halved(nr.slots.Objective):
    """A target of one's own."""

    revises = False

    def target(self, trial, multipliers):
        return 0.5 * trial.reward


@pytest.mark.parametrize(
    "policy",
    [
        nr.gp_ucb(BOX, SE, noise=0.1),
        nr.gp_ucb(ARMS, SE, noise=0.1, context=BOX),
        nr.gp_ucb(ARMS, SE, noise=0.1).using(memory=nr.slots.SlidingWindow(9)),
        nr.gp_ucb(ARMS, SE, noise=0.1, memory="adaptive"),
        nr.gp_ucb(ARMS, SE, noise=0.1, pending="hallucinate"),
        nr.gp_ucb(ARMS, SE, noise=0.1).using(objective=Halved()),
        nr.gp_ucb(ARMS, SE, noise=0.1, constraints=nr.EveryRound()),
        nr.gp_ucb(ARMS, SE, noise=0.1, switching="lazy"),
        nr.gp_ucb_sdf(ARMS, SE, noise=0.1, norm_bound=2.0, minimum=-2.0, window=5),
        nr.auto(ARMS),
    ],
)
def test_other_policies_are_played_through_a_study(policy):
    assert not policy.direct
