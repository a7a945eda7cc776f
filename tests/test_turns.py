"""A detector where only a yes is ever answered: silence is shown to it too, in the order of the questions."""

import dataclasses

import numpy as np
import pytest

import nilregret as nr
from nilregret.environments.delays import GeometricDelay
from nilregret.policy.state import State
from nilregret.slots import described
from nilregret.slots.envelope import ConstantWidth
from nilregret.slots.memory import Detector, Memory
from nilregret.storage.record import Record

from .marks import nightly

ARMS = nr.Arms.grid(0, 1, 8)
KERNEL = nr.SquaredExponential(0.25, scale=0.0625)
MEAN = 3.0  # delay, questions
PENDING = {
    "imputed": nr.slots.Imputed(),
    "told law": nr.slots.Imputed(delay=GeometricDelay(MEAN), minimum=None),
    "late or never": nr.slots.LateOrNever(),
}


class Listening(Detector):
    """Remembers what it is shown."""

    joins = True

    def __init__(self, seen=()):
        self.seen = list(seen)

    def see(self, seen):
        self.seen.append((seen.trial.number, seen.trial.reward, seen.trial.constraints))

    def reset(self):
        self.seen = []

    def copy(self):
        return Listening(self.seen)


@described
@dataclasses.dataclass(frozen=True)
class Listens(Memory):
    def watch(self, world):
        return Listening()


def policy_of(pending, memory="adaptive", **more):
    return nr.gp_ucb(
        ARMS, KERNEL, noise=0.5, width=ConstantWidth(value=2.0), prior_mean=0.3, pending=pending, memory=memory, **more
    )


def shop(policy, rounds, *, seed, switch=None, limits=False):
    """A yes of 1.0 about the middle of demand, which moves from 0.7 to 0.1 in a round; a no is never reported."""
    rng, due, study = np.random.default_rng(seed), {}, nr.Study(policy, seed=seed)
    for t in range(rounds):
        trial = study.ask()
        center = 0.7 if switch is None or t < switch else 0.1
        if rng.uniform() < 0.05 + 0.7 * np.exp(-(((trial.point[0] - center) / 0.2) ** 2)):
            due.setdefault(t + int(rng.geometric(1.0 / (1.0 + MEAN))) - 1, []).append(trial)
        for told in due.pop(t, []):
            study.tell(told, 1.0, **({"constraints": [0.1]} if limits else {}))
    return study


def told(study):
    """(number, reward, constraints) of what the watch has been shown."""
    return study.replica.current().memory.detector.seen


@pytest.mark.parametrize("seeds", [2, *nightly(4)])
@pytest.mark.parametrize("pending", PENDING.values(), ids=PENDING)
def test_a_switch_of_demand_is_found_though_nobody_ever_says_no(pending, seeds):
    """It is missed in some runs, such as with seed 1 and `LateOrNever`."""
    found = [shop(policy_of(pending), 190, seed=seed, switch=120).restarts for seed in range(2, 2 + seeds)]
    assert all(any(abs(cut - 120) <= 6 for cut in cuts) for cuts in found), found
    assert not any(cut < 110 for cuts in found for cut in cuts), found


@pytest.mark.parametrize("seeds", [4, *nightly(8)])
def test_no_alarm_where_demand_stays(seeds):
    assert not any(shop(policy_of(nr.slots.Imputed()), 150, seed=1000 + seed).restarts for seed in range(seeds))


@pytest.mark.parametrize("seeds", [2, *nightly(4)])
def test_fits_that_see_nothing_but_yeses_raise_no_alarm(seeds):
    policy = nr.auto(ARMS, world="switching", answers="silent no")
    policy = policy.using(refit=dataclasses.replace(policy.refit, restarts=0))
    assert not any(shop(policy, 100, seed=seed).restarts for seed in range(seeds))


def test_each_trial_is_shown_once_in_the_order_of_the_questions_whatever_came_of_it():
    study = shop(policy_of(nr.slots.Imputed(delay=GeometricDelay(MEAN)), Listens()), 120, seed=0)
    seen = told(study)
    numbers = [number for number, _, _ in seen]
    assert numbers == list(range(len(seen)))
    age = 1 + next(a for a in range(100) if GeometricDelay(MEAN).within(a) >= 0.99)
    assert len(study.trials) - age <= len(seen) < len(study.trials)  # the youngest of them may still be answered
    assert {reward for _, reward, _ in seen} == {0.0, 1.0}
    for number, reward, _ in seen:
        assert reward == (study.trials[number].reward or 0.0)  # no answer took longer, in this run


def test_an_answer_after_its_silence_was_shown_says_no_more():
    study = nr.Study(policy_of(nr.slots.Imputed(delay=GeometricDelay(0.5)), Listens()), seed=0)
    late = study.ask()
    for _ in range(12):
        study.tell(study.ask(), 1.0)
    study.tell(late, 1.0)
    study.ask()
    assert [reward for number, reward, _ in told(study) if number == 0] == [0.0]


def test_failures_keep_nobody_waiting_and_points_that_were_added_wait_for_none():
    study = nr.Study(policy_of(nr.slots.Imputed(delay=GeometricDelay(20.0)), Listens()), seed=0)
    first, second, third = study.ask(count=3)
    study.add([0.0], 0.5)
    study.tell(second, 1.0)
    study.tell(third, 1.0)
    study.ask()
    study.fail(first, reason="no stock")
    assert [number for number, _, _ in told(study)] == [3, 1, 2]


def test_where_delays_have_nothing_to_do_with_rewards_answers_are_shown_as_they_come():
    study = nr.Study(policy_of(nr.slots.LateOrNever(), Listens()), seed=0)
    trials = study.ask(count=3)
    study.tell(trials[2], 0.3)
    study.ask()
    study.tell(trials[0], 0.1)
    assert [number for number, _, _ in told(study)] == [2, 0]


def test_constraint_values_that_only_come_with_a_buy_are_silent_too():
    limits = nr.EveryRound(pending=nr.slots.Imputed(minimum=-0.5), confidence=ConstantWidth(value=2.0))
    silent = shop(policy_of(nr.slots.Imputed(), Listens(), constraints=limits), 80, seed=0, limits=True)
    assert {(reward, float(g[0])) for _, reward, g in told(silent)} == {(0.0, -0.5), (1.0, 0.1)}
    unknown = shop(policy_of(nr.slots.Imputed(), Listens(), constraints=nr.EveryRound()), 80, seed=0, limits=True)
    assert {(reward, g is None) for _, reward, g in told(unknown)} == {(0.0, True), (1.0, False)}


def test_silence_is_heard_beside_constraints_that_are_not_told():
    limits = nr.EveryRound(confidence=ConstantWidth(value=2.0))
    study = shop(policy_of(nr.slots.Imputed(), constraints=limits), 190, seed=0, switch=120, limits=True)
    assert any(abs(cut - 120) <= 6 for cut in study.restarts)


@pytest.mark.parametrize("pending", PENDING.values(), ids=PENDING)
def test_a_state_rebuilt_from_the_record_has_seen_the_same(pending):
    study = shop(policy_of(pending), 150, seed=2, switch=80)
    again = State(study.policy, seed=2)
    again.receive(Record().apply(study.trials))
    again = again.settled()
    np.testing.assert_array_equal(again.evidence.trials, study.evidence.trials)
    np.testing.assert_array_equal(again.evidence.values, study.evidence.values)
    assert again.decide().arm == study.ask().arm


def test_who_is_abandoned_keeps_nobody_waiting_and_says_no_more():
    study = nr.Study(policy_of(nr.slots.Imputed(delay=GeometricDelay(20.0)), Listens()), seed=0)
    first, second = study.ask(count=2)
    study.tell(second, 1.0)
    study.abandon(first)
    study.ask()
    study.tell(first, 1.0)
    assert [number for number, _, _ in told(study)] == [1]
