"""Rounds away from a basin in which the local search has ended."""

import dataclasses

import numpy as np
import pytest

import nilregret as nr
from nilregret.slots import CoordinateSearch, Elsewhere, InTurn

BOX = nr.Box([0.0] * 3, [1.0] * 3)
MIXED = nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1), n=nr.Int(0, 9), kind=nr.Choice("a", "b"))
NOWHERE = Elsewhere(until=0, otherwise=CoordinateSearch(after=15))


def quick(domain, part, **options):
    """`auto` with short searches, and with this part in its place."""
    policy = nr.auto(domain, **options)
    return policy.using(
        search=dataclasses.replace(policy.search, candidates=128, mutations=64, around=8, starts=1),
        refit=dataclasses.replace(policy.refit, restarts=0),
        explore=InTurn((nr.slots.InitialDesign(10), part)),
    )


def elsewhere(**options):
    return Elsewhere(after=20, hope=2e-3, otherwise=CoordinateSearch(after=15), **options)


def two_hills(point):
    """A wide hill of height 1, and one of height 1.15 with a seventh of its volume."""
    hill = [np.exp(-np.square(point - at).sum() / (2.0 * width**2)) for at, width in ((0.3, 0.3), (0.8, 0.13))]
    return float(hill[0] + 1.15 * hill[1])


def play(study, rounds, reward=lambda trial: two_hills(trial.point)):
    for _ in range(rounds):
        trial = study.ask()
        study.tell(trial, reward(trial))
    return study


def points(study):
    return np.array([trial.point for trial in study.trials])


def best(study):
    return max(trial.reward for trial in study.trials)


@pytest.fixture(scope="module")
def found():
    """A study that leaves the first hill for the second one."""
    return play(nr.Study(quick(BOX, elsewhere()), seed=7), 50)


def test_the_second_hill_is_found_where_the_search_would_have_stayed(found):
    stayed = play(nr.Study(quick(BOX, CoordinateSearch(after=15)), seed=7), 50)
    assert best(stayed) < 1.01
    assert best(found) > 1.15
    same = (points(stayed) == points(found)).all(axis=1)
    first = int(np.flatnonzero(~same)[0])
    assert first >= 20
    assert same[:first].all()  # Nothing changes before the first phase.


def test_without_a_phase_the_decisions_are_those_of_the_other_search():
    def slope(trial):  # It has one hill, so nothing lies outside of its basin.
        return -float(np.square(trial.point - 0.4).sum())

    here, there = (
        play(nr.Study(quick(BOX, part), seed=0), 34, slope) for part in (CoordinateSearch(after=15), elsewhere())
    )
    assert np.array_equal(points(here), points(there))


@pytest.mark.parametrize("number", [24, 31, 40])
def test_a_reopened_study_decides_the_same_to_the_last_bit(found, number, tmp_path):
    path = f"sqlite:///{tmp_path / 'study.db'}"
    with nr.Study(quick(BOX, elsewhere()), seed=7, storage=path) as study:
        for trial in list(found.trials)[:number]:
            asked = study.ask()
            assert np.array_equal(asked.point, trial.point)
            study.tell(asked, trial.reward)
    with nr.Study.open(storage=path) as study:
        for trial in list(found.trials)[number : number + 3]:
            asked = study.ask()
            assert np.array_equal(asked.point, trial.point)
            study.tell(asked, trial.reward)


def test_the_description_is_kept_and_a_study_follows_it():
    policy = quick(BOX, elsewhere(stall=7))
    assert type(policy).from_json(policy.to_json()) == policy


@pytest.mark.parametrize(
    ("domain", "options"),
    [
        (nr.Arms.grid(0, 1, 30), {}),
        (BOX, {"context": nr.Box([0.0], [1.0]), "regret": "simple"}),
        (BOX, {"constraints": 1}),
        (BOX, {"world": "switching"}),
        (BOX, {"regret": "cumulative"}),
        (BOX, {"answers": "unknown"}),
    ],
)
def test_auto_leaves_no_basin_where_other_answers_count(domain, options):
    assert "Elsewhere" not in nr.auto(domain, **options).to_json()
    assert "Elsewhere" in nr.auto(BOX).to_json()


def answered(part, reward, *, ahead=0, rounds=44, domain=BOX, **options):
    """The points of a study in which so many trials wait at any time, and those at one side fail."""
    study = nr.Study(quick(domain, part, parallel=max(ahead, 1), **options), seed=7)
    waiting = []
    for number in range(rounds):
        waiting.append(study.ask())
        if len(waiting) > ahead:
            trial = waiting.pop(0)
            if trial.point[0] > 0.95:
                study.fail(trial, "it broke")
            else:
                study.tell(trial, reward(trial, number))
    return points(study)


@pytest.mark.parametrize("ahead", [0, 3])
def test_failures_and_open_trials_are_no_places_to_go_again(ahead):
    seen = answered(elsewhere(), lambda trial, number: two_hills(trial.point), ahead=ahead)
    assert len(np.unique(seen, axis=0)) == len(seen)
    stayed = answered(CoordinateSearch(after=15), lambda trial, number: two_hills(trial.point), ahead=ahead)
    assert not np.array_equal(seen, stayed)


def test_under_noise_no_basin_counts_as_exhausted():
    noise = 0.1 * np.random.default_rng(3).standard_normal(60)
    each = [
        answered(part, lambda trial, number: two_hills(trial.point) + noise[number], rounds=36)
        for part in (elsewhere(), NOWHERE)
    ]
    assert np.array_equal(*each)


@pytest.mark.parametrize("minimise", [False, True])
def test_choices_and_whole_numbers(minimise):
    def value(trial):
        x, y, n, kind = trial.parameters.values()
        at = np.array([x, y, n / 9])
        return -two_hills(at) if minimise else two_hills(at) + 0.1 * (kind == "a")

    study = nr.Study(quick(MIXED, elsewhere()), seed=0, goal="minimize" if minimise else "maximize")
    play(study, 40, value)
    assert all(0 <= trial.parameters["n"] <= 9 for trial in study.trials)


@pytest.mark.parametrize(
    "wrong",
    [{"after": 3}, {"hope": 2.0}, {"stall": 0}, {"rest": 0}, {"until": -1}, {"restarts": -1}, {"otherwise": "search"}],
)
def test_values_that_make_no_sense_are_refused(wrong):
    with pytest.raises(nr.errors.InvalidInput, match=next(iter(wrong))):
        Elsewhere(**wrong)
