"""A class that derives from a finished part or kernel plays by what it overrides, in every fast path."""

from dataclasses import dataclass

import numpy as np
import pytest

import nilregret as nr
from nilregret.policy.policy import Policy
from nilregret.policy.trained_posterior import TrainedPosterior
from nilregret.slots.envelope import Envelope, FiniteBayes, Symmetric
from nilregret.slots.objective import RewardAlone
from nilregret.slots.rewards import Bernoulli
from nilregret.slots.scores import UpperConfidenceBound

ARMS = nr.Arms.grid(0, 1, 12)
POLICY = nr.gp_ucb(ARMS, nr.Matern(2.5, 0.3), noise=0.1)


def part(cls):
    return nr.slots.described(dataclass(frozen=True)(cls))


@part
class MeanAlone(UpperConfidenceBound):  # type: ignore[misc]
    def __call__(self, envelope, incumbent=None):
        return envelope.mean


@part
class MeanPromised(MeanAlone):
    highest_bound = True  # says so itself


@part
class TurnedReward(RewardAlone):  # type: ignore[misc]
    def target(self, trial, multipliers):
        return -trial.reward


@part
class TurnedClick(Bernoulli):  # type: ignore[misc]
    def target(self, trial, multipliers):
        return 1.0 - trial.reward


class NoWidth(Symmetric):  # type: ignore[misc]
    def __call__(self, mean, std, rows=None):
        return Envelope(mean, std, 0.0)


@part
class NoWidths(FiniteBayes):  # type: ignore[misc]
    def bounds(self, t, progress):
        return NoWidth(3.0)


@part
class SquaredAgain(nr.SquaredExponential):  # type: ignore[misc]
    def __call__(self, A, B):
        return super().__call__(A, B) ** 2


CHANGED = {
    "score": POLICY.using(score=MeanAlone()),
    "objective": POLICY.using(objective=TurnedReward()),
    "bounds": POLICY.using(confidence=NoWidths(size=12)),
}


@pytest.mark.parametrize("name", CHANGED)
def test_an_overridden_method_decides(name, monkeypatch):
    policy = CHANGED[name]
    env = nr.Environment(lambda x: np.sin(5.0 * x[:, 0]), domain=ARMS, noise=0.1)
    together = nr.replicate(lambda: policy, lambda: env, 12, seeds=[3, 4])
    assert not together.batched
    alone, study = nr.simulate(policy, env, 12, seed=3), nr.Study(policy, seed=3)
    for arm, reward in zip(alone.arms.tolist(), alone.rewards.tolist(), strict=True):
        trial = study.ask()
        mean = study.predict()[0]
        assert trial.arm == arm
        if name != "objective":
            assert mean[arm] == mean.max()
        study.tell(trial, reward)
    monkeypatch.setattr(Policy, "direct", False)
    slow = nr.simulate(policy, env, 12, seed=3).arms
    assert slow.tolist() == alone.arms.tolist() == together.arms[0].tolist()


def test_promises_end_where_methods_are_overridden():
    assert not MeanAlone.highest_bound
    assert MeanPromised.highest_bound
    assert not TurnedReward.is_reward
    assert not TurnedClick.is_reward
    assert not CHANGED["objective"].direct
    assert Bernoulli.is_reward
    assert POLICY.batched


def test_values_that_a_kernel_shares_follow_its_own():
    kernel, X, B = SquaredAgain(0.4), np.array([[0.1], [0.4]]), np.array([[0.0], [0.7], [0.9]])
    np.testing.assert_array_equal(kernel.cross_and_pullback(B, X)[0], kernel(B, X))


def test_entries_that_are_replaced_leave_none_to_be_made():
    study = nr.Study(POLICY)
    for _ in range(4):
        study.tell(study.ask(), 0.5)
    study.ask()
    posterior = study.replica.current().reward.posterior
    assert len(posterior._unmade)
    posterior.entries = {}
    assert posterior.entries == {}


@pytest.mark.parametrize(
    "pending",
    [
        nr.slots.Ignored(),
        nr.slots.Hallucinated(),
        nr.slots.Censored(minimum=-1.0, window=4),
        nr.slots.Imputed(minimum=-1.0),
        nr.slots.LateOrNever(minimum=-1.0),
    ],
)
def test_batches_decide_alike_whether_entries_are_made_when_looked_at_or_at_once(pending, monkeypatch):
    def play(policy, seed):
        study, rng, open_ = nr.Study(policy, seed=seed), np.random.default_rng(seed), []
        for _ in range(25):
            open_ += study.ask(count=int(rng.integers(1, 4)))
            for _ in range(int(rng.integers(0, len(open_) + 1))):
                trial = open_.pop(int(rng.integers(len(open_))))
                if rng.random() < 0.15:
                    study.fail(trial, "lost")
                else:
                    study.tell(trial, float(rng.integers(2)))
            if not study.trials[0].open and rng.random() < 0.1:
                study.tell(0, float(rng.integers(2)), revise=True)
        entries = study.replica.current().reward.posterior.entries
        return list(study.trials), list(entries.items())

    policies = [
        nr.auto(ARMS, reward="bernoulli"),
        nr.gp_bucb(ARMS, nr.Matern(2.5, 0.3), noise=0.5).using(pending=pending),
    ]
    found = [play(policy, seed) for policy in policies for seed in range(3)]
    monkeypatch.setattr(TrainedPosterior, "is_imputed", lambda posterior, number: number in posterior.entries)
    assert repr(found) == repr([play(policy, seed) for policy in policies for seed in range(3)])


def test_answers_to_batches_of_clicks_make_no_entries():
    study = nr.Study(nr.auto(ARMS, reward="bernoulli"))
    for _ in range(3):
        study.tell_many([(trial, 1.0) for trial in study.ask(count=5)])
    study.ask()
    posterior = study.replica.state.reward.posterior
    assert not posterior._entries
    assert len(posterior._unmade) == 15
