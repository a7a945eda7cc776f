"""Every decision keeps the known limits of a space, and the search ends on their borders."""

import itertools
from functools import partial

import numpy as np
import pytest

import nilregret as nr
from nilregret._utils.randomness import Draws
from nilregret.domains.search.boxes import AcquisitionFunction, PointSearch
from nilregret.domains.search.designs import design, mutated, neighbours, uniform

UNIT = {name: nr.Float(0, 1) for name in "abcd"}
SPACES = {
    "half of a cube": nr.Space(**UNIT).where("a + b + c + d <= 1"),
    "mixture": nr.Space(**UNIT).where("a + b + c + d == 1", "0.1 <= a <= 0.3"),
    "one line": nr.Space(**UNIT).where("a == b", "b == c", "c + d == 1"),
    "ring": nr.Space(**UNIT).where("0.2 <= (a - .5)**2 + (b - .5)**2 <= 0.21", "c > d"),
    "two corners": nr.Space(**UNIT).where("a + b <= 0.1 or a + b >= 1.9"),
    "network": nr.Space(
        layers=nr.Int(1, 64), width=nr.Int(16, 1024, log=True), kind=nr.Choice("sgd", "adam"), momentum=nr.Float(0, 1)
    ).where("layers * width <= 4096", "kind != 'sgd' or momentum > 0"),
    "conditional": nr.Space(
        kind=nr.Choice("sgd", "adam"), rate=nr.Float(1e-5, 1, log=True), momentum=nr.when("kind", "sgd", nr.Float(0, 1))
    ).where("rate * momentum <= 0.01", "rate >= 0.001"),
    "whole numbers": nr.Space(a=nr.Int(0, 9), b=nr.Int(0, 9)).where("a + b == 9 or a * b == 12"),
    "function": nr.Space(**UNIT).where(lambda a, b: a * b <= 0.25),
}


def bowl(**parameters):
    return -sum((value - 0.6) ** 2 for value in parameters.values() if isinstance(value, float))


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_every_point_keeps_the_limits(space):
    limits, rng = space.limits, Draws("test")
    points = design(space, 12, rng, middle=True)
    assert len(np.unique(points, axis=0)) == len(points) >= 6
    candidates = PointSearch(candidates=64).candidate_points(space, 1)
    drawn = uniform(space, 20, rng)
    around = mutated(space, points, 200, rng)
    near = np.concatenate([neighbours(space, point, np.ones(space.dimension, bool)) for point in points])
    for each in (points, candidates, drawn, around, near):
        assert limits.holds(each).all()
        assert np.array_equal(space.snap(each), each)
    study = nr.Study(nr.auto(space, budget=8), seed=3)
    for trial in itertools.chain.from_iterable(study.ask(count=2) for _ in range(4)):
        assert limits.holds(space.encode(trial.parameters)[None]).all()
        study.tell(trial, bowl(**trial.parameters))


@pytest.mark.parametrize("policy", [nr.gp_ucb, partial(nr.gp_ts, v=1.0)], ids=["gp_ucb", "gp_ts"])
def test_other_policies_keep_them_too(policy):
    space = SPACES["mixture"]
    study = nr.Study(policy(space, nr.Matern(2.5, 0.5), noise=0.1).using(explore=nr.slots.Uniform(0.5)), seed=1)
    for _ in range(8):
        trial = study.ask()
        assert space.limits.holds(trial.point[None]).all()
        study.tell(trial, bowl(**trial.parameters))


def test_the_search_ends_on_the_border():
    """A linear score over a polytope is largest at a vertex, and a parabola at a point that projection gives."""
    space = nr.Space(a=nr.Float(0, 1), b=nr.Float(0, 1), c=nr.Float(0, 1)).where("a + b + c <= 1", "a - b <= 0.25")
    peak = np.array([0.9, 0.3, 0.2])  # Its nearest point on a + b + c = 1 and a - b = 0.25.
    normals, bounds = np.array([[1.0, 1.0, 1.0], [1.0, -1.0, 0.0]]), np.array([1.0, 0.25])
    nearest = peak - normals.T @ np.linalg.solve(normals @ normals.T, normals @ peak - bounds)
    for slope, best in ((np.array([3.0, 2.0, 1.0]), np.array([0.625, 0.375, 0.0])), (None, nearest)):

        def slopes(points, slope=slope):
            if slope is not None:
                return points @ slope, np.tile(slope, (len(points), 1))
            return -np.square(points - peak).sum(axis=1), -2.0 * (points - peak)

        surface = AcquisitionFunction(lambda points, slopes=slopes: slopes(points)[0], slopes)
        search = PointSearch(candidates=128)
        candidates = search.candidate_points(space, 0)
        found = search.maximize(
            surface, space, candidates=candidates, scores=surface.values(candidates), incumbents=candidates[:0],
            rng=lambda: Draws("border"),
        )  # fmt: skip
        assert space.limits.holds(found.point[None])[0]
        assert found.point == pytest.approx(best, abs=1e-6)


def test_the_best_of_a_mixture_is_found_on_its_face():
    space = nr.Space(m=nr.Mixture("a", "b", "c", total=1.0))
    result = nr.minimize(lambda a, b, c: (a - 0.7) ** 2 + (b - 0.3) ** 2 + c, space, trials=20, progress=False)
    assert result.best_value < 1e-4
    assert all(abs(sum(row["parameters"].values()) - 1.0) <= 1e-9 for row in result.history)


def test_offered_points_outside_are_left_out():
    study = nr.Study(nr.auto(SPACES["half of a cube"]))
    inside, outside = {"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4}, {"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0}
    assert study.ask(among=[outside, inside]).parameters == inside
    with pytest.raises(nr.errors.InvalidInput, match="no point of `among` keeps the limits"):
        study.ask(among=[outside])


def test_a_point_outside_teaches_and_is_not_recommended():
    study = nr.Study(nr.auto(SPACES["half of a cube"]))
    study.add({"a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0}, 9.0)
    with pytest.raises(nr.errors.TrialError, match="No answered trial is in the space and its limits"):
        study.best()
    for _ in range(3):
        study.tell(study.ask(), 0.5)
    assert study.best().number > 0


def test_given_points_outside_are_refused_and_those_of_earlier_studies_left_out():
    space = nr.Space(a=nr.Float(0, 1), b=nr.Float(0, 1))
    given = nr.slots.GivenPoints([[0.9, 0.9]])
    with pytest.raises(nr.errors.InvalidInput, match=r"A given point is outside of the limit 'a \+ b <= 1'"):
        nr.gp_ucb(space.where("a + b <= 1"), nr.Matern(2.5, 0.5), noise=0.1).using(explore=given)
    earlier = nr.maximize(lambda a, b: a + b, space, trials=8, progress=False).study
    study = nr.Study(nr.auto(space.where("a + b <= 1"), like=earlier, budget=8))
    for _ in range(3):
        trial = study.ask()
        assert sum(trial.parameters.values()) <= 1.0
        study.tell(trial, 0.0)


def test_a_script_refuses_limits():
    with pytest.raises(nr.errors.InvalidInput, match="keeps no known limits"):
        nr.algorithms.admmbo(SPACES["mixture"])


def test_a_border_is_kept_without_the_help_of_rounding():
    space = nr.Space(c=nr.Float(-1e-3, 1000)).where("529.4791061996613 <= c <= 530.3887285807904")
    study = nr.Study(nr.gp_ucb(space, nr.Matern(2.5, 0.3), noise=0.1), seed=0)
    for _ in range(4):
        trial = study.ask()
        study.tell(trial, 10.0 * (trial.parameters["c"] - 530.0))
    assert trial.parameters["c"] == pytest.approx(530.3887285807904, abs=1e-7)
    assert trial.parameters["c"] <= 530.3887285807904
    assert study.ask(among=[trial.parameters]).parameters == trial.parameters


def test_a_failed_trial_leaves_the_rest_of_a_thin_slice():
    study = nr.Study(nr.auto(nr.Space(a=nr.Float(0, 1)).where("0.3 <= a <= 0.301")), seed=0)
    failed = study.ask()
    study.fail(failed, "out of memory")
    for _ in range(6):
        trial = study.ask()
        assert trial.point != failed.point
        study.tell(trial, 1.0)


def test_a_design_of_whole_numbers_has_no_repeats():
    space = nr.Space(**{name: nr.Int(0, 7) for name in "abcde"}).where("a <= b")
    points = design(space, 64, Draws("whole"))
    assert len(np.unique(points, axis=0)) == 64


def test_a_safe_point_outside_of_the_limits_is_refused_and_not_moved_inside():
    space = nr.Space(a=nr.Float(0, 1), b=nr.Float(0, 1)).where("a + b <= 1")
    with pytest.raises(nr.errors.InvalidInput, match=r"A point of `start` is outside of the limit 'a \+ b <= 1'"):
        nr.auto(space, noise=0.05, constraints=nr.Safe(start=[{"a": 0.9, "b": 0.9}], scale=1.0, noise=0.05))
    limits = nr.Safe(start=[{"a": 0.25, "b": 0.5}], scale=1.0, noise=0.05)
    study = nr.Study(nr.auto(space, noise=0.05, constraints=limits))
    assert study.ask().parameters == {"a": 0.25, "b": 0.5}
