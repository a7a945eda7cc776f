"""Scores of expected gains of volume: targets, gradients, units and ties on tables and points."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

import nilregret as nr
from nilregret._utils.randomness import Draws, Randomness
from nilregret.errors import InvalidInput
from nilregret.slots.envelope import Envelope
from nilregret.slots.front_scores import REACH_ON_ARMS
from nilregret.slots.scores import Known
from nilregret.theory.fronts import boxes, log_ehvi, non_dominated, reference_point

SCORES = [
    nr.slots.HypervolumeImprovement(),
    nr.slots.ScalarisedImprovement(),
    nr.slots.ScalarisedImprovement(directions=4),
]


@dataclass
class Stand:
    """A round whose posteriors are known functions of the point, with answers at some points."""

    k: int = 2
    count: int = 9
    unit: float = 1.0
    given_reference: np.ndarray | None = None
    infeasible: tuple[int, ...] = ()
    failed: float = np.inf
    randomness: Randomness = field(default_factory=lambda: Randomness(0, 5))

    def moments(self, points):
        """Returns mean and std of each objective with gradients."""
        for j in range(self.k):
            far = points - (j + 0.5) / self.k
            mean, slope = -(far**2).sum(axis=1), -2.0 * far
            std = 0.05 + 0.2 * points[:, j % points.shape[1]]
            yield self.unit * mean, self.unit * std, self.unit * slope, self.unit * 0.2 * np.eye(2)[[j % 2] * len(far)]

    def objectives(self, points=None):
        points = self.points if points is None else points
        return [Envelope(mean, std, 2.0) for mean, std, _, _ in self.moments(points)]

    def objective_slopes(self, points):
        return [(Envelope(mean, std, 2.0), a, b) for mean, std, a, b in self.moments(points)]

    def known_objectives(self):
        points = Draws("known").random((self.count, 2))
        means = np.array([each[0] for each in self.moments(points)]).T
        feasible = np.ones(self.count, dtype=bool)
        feasible[list(self.infeasible)] = False
        return Known(points, means, feasible, means)

    def without_failed(self, points, scores):
        return np.where(points[:, 0] > self.failed, -np.inf, scores)

    points = Draws("points").random((40, 2))


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("score", SCORES, ids=["ehvi", "scalarised", "averaged"])
def test_gradients_are_those_of_the_values(score, k):
    """On points the values are those of a table, and gradients agree with differences."""
    view, at = Stand(k, given_reference=np.full(k, -0.9)), Stand.points
    surface = score.on_points(view)
    values, gradients = surface.slopes(at)
    assert values == pytest.approx(surface.values(at), rel=1e-9)
    view.randomness = Randomness(0, 5)
    assert values == pytest.approx(score.on_table(view), rel=1e-9)
    assert surface.resolution > 0.0
    for j in range(2):
        step = 1e-6 * np.eye(2)[j]
        differences = (surface.values(at + step) - surface.values(at - step)) / 2e-6
        assert differences == pytest.approx(gradients[:, j], rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("score", SCORES, ids=["ehvi", "scalarised", "averaged"])
def test_units_do_not_decide(score):
    """Scores in other units differ by rounding only, as sizes are those of the front."""
    values = score.on_table(Stand())
    for unit in (1e9, 1e-9):
        assert score.on_table(Stand(unit=unit)) == pytest.approx(values, rel=1e-6)


def test_the_front_has_feasible_points_and_a_given_reference():
    """EHVI is over the feasible means. A given reference counts, even one above all answers."""
    score, view = nr.slots.HypervolumeImprovement(), Stand(infeasible=(0, 3))
    mean, std = (np.array([each[i] for each in view.moments(view.points)]) for i in (0, 1))
    means = np.delete(view.known_objectives().means, [0, 3], axis=0)
    for given in (None, np.array([-0.4, -0.3]), np.array([0.5, 0.5])):
        view.given_reference = given
        target = score.target(view, reach=REACH_ON_ARMS)
        if given is not None:
            assert (target.reference == given).all()
        exact = log_ehvi(mean, std, boxes(means, target.reference))
        assert exact - score.on_table(view) == pytest.approx(np.log(target.size).sum(), rel=1e-9)


def test_a_round_without_answers_or_feasible_ones_has_a_score():
    """Without a front the gain is above the reference, and all scores are finite."""
    for score in SCORES:
        for view in (Stand(count=0), Stand(count=1), Stand(infeasible=tuple(range(9)))):
            assert np.isfinite(score.on_table(view)).all()
    empty, full = (nr.slots.HypervolumeImprovement().target(each) for each in (view, Stand()))
    assert len(empty.front) == 0
    assert (
        empty.reference == reference_point(view.known_objectives().means, full.front * full.size + full.reference)
    ).all()


def test_failed_points_are_left_out():
    """Near a failed trial both values and slopes are -inf."""
    view = Stand(failed=0.5)
    surface = nr.slots.HypervolumeImprovement().on_points(view)
    aside = view.points[:, 0] > 0.5
    assert (np.isneginf(surface.values(view.points)) == aside).all()
    assert (np.isneginf(surface.slopes(view.points)[0]) == aside).all()


def test_directions_are_counted():
    """Fewer than one direction is refused, and a fraction."""
    for wrong in (0, 1.5, -1):
        with pytest.raises(InvalidInput, match="directions"):
            nr.slots.ScalarisedImprovement(directions=wrong)


def test_a_front_is_not_looked_for_with_one_objective():
    """The sentence names the rule that is missing."""
    with pytest.raises(InvalidInput, match="Pareto"):
        nr.auto(nr.Box(0, 1)).using(score=nr.slots.HypervolumeImprovement())


@pytest.mark.parametrize("domain", [nr.Box([0, 0], [1, 2]), nr.Space(x=nr.Float(0, 1), y=nr.Float(1, 9, log=True))])
def test_a_search_starts_around_and_between_points_of_the_front(domain):
    """Where candidates are dense, each gap of the front has starts, inside the domain. Elsewhere there are few."""
    score, view = nr.slots.HypervolumeImprovement(), Stand(count=30)
    view.domain, view.sides = domain, domain.upper - domain.lower
    points, means, *_ = view.known_objectives()
    front = points[np.argsort(means[:, 0])][non_dominated(means[np.argsort(means[:, 0])])]
    starts = score.incumbents(view, dense=True)
    assert ((starts >= domain.lower) & (starts <= domain.upper)).all()
    for middle in 0.5 * (front[1:] + front[:-1]):
        assert (np.abs(starts - middle).max(axis=1) < 1e-9).any()
    assert (score.incumbents(view, dense=False) == front[:10]).all()


def test_a_narrow_gap_is_found():
    """Both objectives are best within a hundredth of the domain, and the next trial lies between the two best."""
    study = nr.Study(nr.auto(nr.Box(0, 1), objectives=2, noise=1e-3), seed=0, goal="minimize")
    for x in (0.0, 0.15, 0.28, 0.3, 0.31, 0.33, 0.45, 0.6, 0.8, 1.0):
        study.add([x], [(x - 0.3) ** 2, (x - 0.31) ** 2])
    assert 0.3 < study.ask().point[0] < 0.31


def test_the_end_of_a_front_of_arms_is_within_reach():
    """The best arm of one objective is played, though in the other one it is far below the front known before."""
    points = Draws("arms 0").random((60, 2))
    losses = [((points - best) ** 2).sum(axis=1) for best in ([0.3, 0.0], [0.6, 0.2])]
    losses[1] += 0.1 * np.sin(9.0 * points[:, 0])
    study = nr.Study(nr.auto(nr.Arms(points), objectives=2), seed=3, goal="minimize")
    for _ in range(18):
        trial = study.ask()
        study.tell(trial, [loss[trial.arm] for loss in losses])
    played = {trial.arm for trial in study.trials}
    assert {int(loss.argmin()) for loss in losses} <= played
