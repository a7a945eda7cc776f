"""The multipliers of earlier rounds, worked out from the record, are those that were in force."""

import numpy as np
import pytest

import nilregret as nr
from nilregret.algorithms.baselines import admmbo, bandit_oco
from nilregret.storage.record import Record

from .marks import nightly

KERNEL = nr.SquaredExponential(0.2)
ARMS = nr.Arms.grid(0, 1, 9)
EPOCHS = {"norm_bound": 1.0, "epoch": 4, "epochs": 8}


def average(**more):
    more = {"count": 2, "step": 0.3, **more}
    return nr.gp_ucb(ARMS, KERNEL, noise=0.1, constraints=nr.OnAverage(**more))


POLICIES = {
    "on_average": average(),
    "on_average_by_epochs": average(epoch=3, most=0.2),
    "on_average_and_restarts": average().using(memory=nr.slots.RestartEvery(7)),
    "noisy": nr.gp_ucb_noisy_constraints(ARMS, KERNEL, noise=0.1, constraints=2, **EPOCHS),
    "noiseless": nr.gp_ucb_noiseless_constraints(ARMS, KERNEL, noise=0.1, constraints=2, **EPOCHS),
    "forgetting": nr.gp_ucb_noisy_constraints(ARMS, KERNEL, noise=0.1, constraints=2, memory="fresh", **EPOCHS),
    "noisy_and_changes": nr.gp_ucb_noisy_constraints(ARMS, KERNEL, noise=0.1, constraints=2, **EPOCHS).using(
        memory=nr.slots.EDetector(delta=0.9)
    ),
    "noiseless_and_restarts": nr.gp_ucb_noiseless_constraints(
        ARMS, KERNEL, noise=0.1, constraints=2, **EPOCHS
    ).using(memory=nr.slots.RestartAt((11, 25))),
    "script": bandit_oco(nr.Box([0, 0], [1, 1]), step=0.3, constraints=2),
}  # fmt: skip


def values_at(trial):
    return [float(trial.point[0] - 0.3), float(0.4 - trial.point[0])]


def play(study, rounds, seen):
    """Answers at once, late, by halves, corrected, never; what was in force is noted."""
    late = []
    for i in range(rounds):
        trial = study.ask()
        seen[trial.number] = study.last_multipliers
        g = values_at(trial)
        if i % 7 == 3:
            late.append(trial)
        elif i % 7 == 5 and isinstance(study.policy, nr.Policy) and study.policy.constraints is not None:
            study.tell(trial, constraints=g)
            late.append(trial)
        elif i == 6:
            study.fail(trial, "no power")
        elif i % 11 != 9:
            study.tell(trial, float(trial.point[0]), constraints=g)
        if i == 12:
            study.add(trial.point, 0.5, constraints=g)
        if i % 10 == 8:
            for each in reversed(late):
                known = None if study.trials[each.number].constraints is not None else values_at(each)
                study.tell(each, -0.1, constraints=known)
            late = []
    return study


@pytest.mark.parametrize("goal", ["maximize", *nightly("minimize")])
@pytest.mark.parametrize("name", POLICIES)
def test_the_history_is_what_was_in_force(name, goal, tmp_path):
    storage, seen = f"sqlite:///{tmp_path}/studies.db", {}
    study = nr.Study(POLICIES[name], seed=1, goal=goal, storage=storage)
    study.quiet = True
    play(study, 40, seen)
    numbers, values = study.multiplier_history()
    assert numbers.tolist() == sorted(seen)
    assert values.tolist() == [seen[number].tolist() for number in sorted(seen)]
    assert len(np.unique(values, axis=0)) > 2
    numbers, again = nr.Study.open(storage=storage).multiplier_history()
    assert again.tolist() == values.tolist()


def test_a_correction_is_counted_as_if_it_had_been_told_first():
    policy = POLICIES["on_average"].using(noise=0.5)  # few arms are played, and the rewards of each differ
    study = play(nr.Study(policy, seed=1), 30, {})
    study.tell(0, 0.2, constraints=[2.0, -1.0], revise=True)
    again = nr.Study(policy, seed=1)
    again.replica.state.receive(Record().apply([trial.as_corrected() for trial in study.trials]))
    assert study.multiplier_history()[1][1].tolist() == [0.6, 0.0]
    assert study.multiplier_history()[1].tolist()[-1] == study.last_multipliers.tolist()
    assert again.replica.state.multipliers.tolist() == study.last_multipliers.tolist()


@pytest.mark.parametrize("constraints", [None, nr.EveryRound(), nr.Safe(start=[0], scale=1.0)])
def test_of_a_policy_that_charges_nothing_there_is_none(constraints):
    policy = nr.gp_ucb(ARMS, KERNEL, noise=0.1, constraints=constraints)
    study = nr.Study(policy)
    assert study.multiplier_history()[1].shape == (0, 0)
    study.tell(study.ask(), 0.5, constraints=None if constraints is None else [-0.1])
    numbers, values = study.multiplier_history()
    assert numbers.tolist() == [0]
    assert values.shape == (1, 0)


def test_multipliers_of_other_constraints_are_none():
    study = nr.Study(admmbo(nr.Box([0, 0], [1, 1])))
    study.tell(study.ask(), 0.5, constraints=[0.1])
    assert study.multiplier_history()[1].shape == (1, 0)


def test_the_last_decision_may_be_that_of_another_object():
    storage = nr.storage.MemoryStorage()
    one, two = (nr.Study(average(count=1), storage=storage) for _ in range(2))
    for _ in range(3):
        one.tell(one.ask(), 0.0, constraints=[2.0])
    assert two.last_multipliers.tolist() == one.last_multipliers.tolist() == pytest.approx([1.2])
