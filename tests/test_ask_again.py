"""Rounds that ask again at points that were tried, where answers are noisy."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import nilregret as nr
from nilregret.slots import AskAgain, Explore, InitialDesign, InTurn, described
from nilregret.slots.explore import knowledge_gradients
from nilregret.testing import check_policy

SQUARE = nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1))
MIXED = nr.Space(x=nr.Float(0, 1), n=nr.Int(1, 5), kind=nr.Choice("a", "b"))


def play(policy, rounds, *, noise, objective=None, **more):
    study, rng = nr.Study(policy, seed=1, **more), np.random.default_rng(0)
    for _ in range(rounds):
        trial = study.ask()
        value = float(np.cos(4.0 * trial.point - 1.5).sum()) if objective is None else objective(trial.point)
        study.tell(trial, value + noise * rng.standard_normal())
    return study


def places(study):
    return [trial.point.tobytes() for trial in study.trials]


def policy_of(domain=SQUARE, *, noise=0.1, part=None, **more):
    explore = InTurn((InitialDesign(6), part or AskAgain(budget=16, rounds=4, noise=0.05)))
    kernel = nr.Matern(2.5, [0.5] * domain.dimension)
    return nr.expected_improvement(domain, kernel, noise=noise).using(explore=explore, **more)


def test_knowledge_gradients_are_expectations():
    rng = np.random.default_rng(0)
    root = rng.standard_normal((5, 5))
    mean, covariance, noise = rng.standard_normal(5), root @ root.T, 0.7
    normal = rng.standard_normal(400_000)
    for i, found in enumerate(knowledge_gradients(mean, covariance, noise)):
        move = covariance[i] / np.sqrt(covariance[i, i] + noise**2)
        after = (mean[:, None] + move[:, None] * normal).max(axis=0).mean()
        assert found == pytest.approx(after - mean.max(), abs=0.02)
    assert knowledge_gradients(np.array([1.0, 0.0]), np.zeros((2, 2)), 1.0) == pytest.approx([0.0, 0.0])


def test_a_rare_change_of_mind_counts():
    # Two independent points, one of which is known: s phi(z) - d Phi(-z) with z = d / s = 3 (Frazier et al. 2009).
    found = knowledge_gradients(np.array([3.0, 0.0]), np.diag([0.0, 2.0]), np.sqrt(2.0))
    assert found == pytest.approx([0.0, 3.82154e-4], rel=1e-2, abs=1e-12)


@described
@dataclass(frozen=True)
class Noted(Explore):
    """A part that forces nothing and keeps the noise it is shown."""

    seen: ClassVar[list[float]] = []

    def due(self, uniform, history, randomness):
        return history > 0

    @property
    def uniform(self):
        return False

    def places(self, situation):
        self.seen.append(situation.answered().noise)
        return np.zeros((0, situation.domain.dimension))


def test_the_noise_of_an_answer_to_come_is_that_of_the_median_one():
    study = nr.Study(policy_of(noise=0.2).using(explore=Noted()), seed=0)
    for std in (0.2, None, 0.6, 0.6, 0.6):
        study.tell(study.ask(), 0.5, std=std)
        study.ask()
    assert pytest.approx([0.2, 0.2, 0.2, 0.2 / np.sqrt(5.0 / 9.0), 0.6]) == Noted.seen[::2]


@pytest.mark.parametrize("domain", [SQUARE, nr.Box([0.0, 0.0], [1.0, 1.0]), MIXED], ids=["space", "box", "mixed"])
def test_the_last_rounds_of_the_budget_ask_for_what_was_tried(domain):
    seen = places(play(policy_of(domain), 20, noise=0.1))
    assert all(point in seen[:12] for point in seen[12:16])
    assert seen[16] not in seen[:16]  # A longer run goes on as before.
    assert seen[:12] == places(play(policy_of(domain).using(explore=InitialDesign(6)), 12, noise=0.1))


def test_little_noise_forces_nothing():
    part = AskAgain(budget=16, rounds=4, noise=0.2)
    with_part = places(play(policy_of(part=part), 16, noise=0.1))
    assert with_part == places(play(policy_of().using(explore=InitialDesign(6)), 16, noise=0.1))


def test_one_answer_again_shows_that_there_is_no_noise():
    study = play(policy_of(), 16, noise=0.0)
    seen = places(study)
    assert seen[12] in seen[:12]
    assert len(set(seen)) == 15


def test_auto_asks_again_where_it_knows_the_budget_and_learns_of_noise():
    assert "AskAgain" not in nr.auto(SQUARE).to_json()
    assert "AskAgain" not in nr.auto(SQUARE, budget=20).to_json()
    for more in ({"context": SQUARE}, {"regret": "cumulative"}, {"world": "switching"}, {"constraints": 1}):
        assert "AskAgain" not in nr.auto(SQUARE, budget=60, **more).to_json()
    rng = np.random.default_rng(0)
    result = nr.maximize(lambda x, y: -x - y + rng.standard_normal(), SQUARE, trials=32, progress=False)
    assert len(set(places(result.study))) < 32
    assert result.best_trial == result.study.best()
    quiet = nr.maximize(lambda x, y: -((x - 0.2) ** 2) - y, SQUARE, trials=32, progress=False)
    plain = play(nr.auto(SQUARE), 32, noise=0.0, objective=lambda p: -((p[0] - 0.2) ** 2) - p[1])
    assert len(set(places(quiet.study))) == len(set(places(plain))) == 32


def test_it_keeps_the_promises_of_a_policy_and_its_arguments_make_sense():
    check_policy(policy_of(memory=nr.slots.SlidingWindow(12)), rounds=18)
    with pytest.raises(nr.errors.InvalidInput, match="some rounds must try points first"):
        AskAgain(budget=3, rounds=3)
    with pytest.raises(nr.errors.InvalidInput, match="`noise`"):
        AskAgain(budget=3, rounds=1, noise=-1.0)
