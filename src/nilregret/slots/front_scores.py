"""Scores of several objectives, by the volume that a point would add to a front.

| symbol | name | meaning | shape |
|---|---|---|---|
| r | `Target.reference` | the corner below which nothing counts | (k,) |
| s | `Target.size` | the way from r to the best value of the front | (k,) |
| Y | `Target.front` | posterior means that no others dominate, in sizes above r | (f, k) |
| mu, sigma | `Target.moments` | posteriors of the objectives at n points, in sizes above r | (k, n) |
| lambda | | a direction, uniform on the positive part of the unit sphere | (k,) |
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar, NamedTuple, final

import numpy as np

from .._utils.checks import Array, IndexArray, integer, settle
from .._utils.dataclass import dataclass
from ..domains.domain import Arms, Space
from ..domains.search.boxes import AcquisitionFunction, coarse
from ..errors import InvalidInput
from ..serialize import description
from ..theory.fronts import (
    REACH,
    Slopes,
    boxes,
    log_ehvi,
    log_ehvi_slopes,
    log_scalarised_improvement,
    non_dominated,
    reference_point,
    scalarised,
    sphere,
)
from .acquisition import LOG_RESOLUTION, AcquisitionContext, PointView, TableView
from .base import Policy
from .envelope import Envelope
from .scores import Score

MOST_STARTS = 10  # points of a front near which a search starts
MOST_GAPS = 24  # gaps between neighbours of the front within which a search starts
SHARES = np.array([0.25, 0.5, 0.75])  # of these gaps
STEPS = 0.02, 0.005  # from points of the front, as shares of a side, at which a search starts
MOST_DIRECTIONS = 1024
REACH_ON_ARMS = 10.0  # reach of the reference on arms, where a front does not grow in small steps

Gain = Callable[[Array, Array], Array]  # logarithms of gains, `(n,)`, of means and deviations, `(k, n)` each
GainSlopes = Callable[[Array, Array], Slopes]  # the same with derivatives


def evenly(count: int, most: int) -> IndexArray:
    """Returns at most so many indices below the count, evenly spread, with both ends."""
    return np.linspace(0, count - 1, min(count, most)).round().astype(np.intp)


class Target(NamedTuple):
    """A front that is to be improved.

    Attributes:
        reference: r, `(k,)`, in the units of `AcquisitionContext.objectives`.
        size: s, `(k,)`, in the same units.
        front: Y, `(f, k)`.
    """

    reference: Array
    size: Array
    front: Array

    def moments(self, found: list[Envelope]) -> tuple[Array, Array]:
        """Returns mean and standard deviation of each objective in sizes above r, `(k, n)` each."""
        reference, size = self.reference[:, None], self.size[:, None]
        return (np.array([one.mean for one in found]) - reference) / size, np.array([one.std for one in found]) / size


class FrontScore(Score):
    """A score of the outputs of several objectives (`AcquisitionContext.objectives`), for the rule `Pareto`."""

    in_rewards: ClassVar[bool] = False
    of_front: ClassVar[bool] = True

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` if the policy has a single objective."""
        super().check(policy)
        if policy.objective_count == 1:
            raise InvalidInput(
                f"`{type(self).__name__}` looks for a front of several objectives, and the policy has one.",
                advice="Give the policy `constraints=nr.slots.Pareto(objectives=2)`, or take another score.",
            )

    @final
    def incumbents(self, view: PointView, *, dense: bool) -> Array:
        """Returns points of the front of posterior means, evenly along it, `(n, d)`.

        If candidates are dense, points around and between these are among them. Gains peak there, more narrowly than
        candidates show.
        """
        points, means, feasible, _ = view.known_objectives()
        points, means = (points[feasible], means[feasible]) if feasible.any() else (points, means)
        means = np.stack([coarse(column) for column in means.T], axis=1) if len(means) else means
        front = np.flatnonzero(non_dominated(means))
        front = front[np.argsort(means[front, 0], kind="stable")]
        points, domain = points[front], view.domain
        found = points[evenly(len(points), MOST_STARTS)]
        if not dense or isinstance(domain, Arms):
            return np.asarray(found)
        steps = np.concatenate([np.eye(domain.dimension), -np.eye(domain.dimension)]) * view.sides
        near = [found, *(found[:, None] + share * steps for share in STEPS)]
        if len(points) > 1:
            ahead = np.concatenate([points[:1] - points[1:2], np.diff(points, axis=0), points[-1:] - points[-2:-1]])
            gaps = evenly(len(ahead), MOST_GAPS)
            near.append(np.concatenate([points[:1], points])[gaps] + SHARES[:, None, None] * ahead[gaps])
        rows = np.concatenate([each.reshape(-1, domain.dimension) for each in near])
        rows = np.clip(rows, domain.lower, domain.upper)
        return domain.snap(rows) if isinstance(domain, Space) else rows

    @final
    def target(self, view: AcquisitionContext, *, reach: float = REACH) -> Target:
        """Returns the front of posterior means at the points tried, with its reference and sizes.

        Points that violate a constraint in the mean are not on the front. If all do, the front is empty, and reference
        and sizes are those of the front without constraints.

        Args:
            view: the round.
            reach: as of `reference_point`.
        """
        _, means, feasible, _ = view.known_objectives()
        front = means[feasible]
        front = front[non_dominated(front)]
        best = front if len(front) else means[non_dominated(means)]
        reference = view.given_reference
        if reference is None:
            reference = reference_point(means, best, reach=reach)
        if not len(best):
            return Target(reference, np.ones(len(reference)), front)
        size, spread = best.max(axis=0) - reference, np.ptp(means, axis=0)
        size = np.where(size > 0.0, size, np.where(spread > 0.0, spread, 1.0))  # if a given r is above all answers
        return Target(reference, size, (front - reference) / size)


@dataclass(frozen=True, kw_only=True)
class VolumeScore(FrontScore):
    """The logarithm of an expected gain of volume, between the front of posterior means and the reference point.

    Open trials count with their means, so several workers keep apart. Without `reference` of `Pareto` it follows from
    the answers (`nilregret.theory.fronts.reference_point`).
    """

    logarithm: ClassVar[bool] = True

    @abstractmethod
    def gains(self, view: AcquisitionContext, target: Target) -> tuple[Gain, GainSlopes]:
        """Returns the logarithm of the expected gain, in sizes above r, without and with its derivatives."""

    @final
    def on_table(self, view: TableView) -> Array:
        """Returns the logarithms of the gains of all arms."""
        target = self.target(view, reach=REACH_ON_ARMS)
        gain, _ = self.gains(view, target)
        return gain(*target.moments(view.objectives()))

    @final
    def on_points(self, view: PointView) -> AcquisitionFunction:
        """Returns the logarithms of the gains, with gradients."""
        target = self.target(view)
        gain, gain_slopes = self.gains(view, target)

        def values(points: Array) -> Array:
            return view.without_failed(points, gain(*target.moments(view.objectives(points))))

        def slopes(points: Array) -> tuple[Array, Array]:
            each = view.objective_slopes(points)
            found = gain_slopes(*target.moments([envelope for envelope, _, _ in each]))
            by_mean, by_std = (slope / target.size[:, None] for slope in (found.by_mean, found.by_std))
            gradients = sum(
                by_mean[i][:, None] * of_mean + by_std[i][:, None] * of_std
                for i, (_, of_mean, of_std) in enumerate(each)
            )
            return view.without_failed(points, found.values), np.asarray(gradients)

        return AcquisitionFunction(values, slopes, LOG_RESOLUTION)


@final
@description(frozen=True, kw_only=True)
class HypervolumeImprovement(VolumeScore):
    """The logarithm of the expected hypervolume improvement, exactly (Emmerich et al. 2016, Ament et al. 2023).

    >>> import nilregret as nr
    >>> policy = nr.auto(nr.Box(0, 1), objectives=2).using(score=nr.slots.HypervolumeImprovement())
    >>> nr.Study(policy, seed=0).ask().number
    0
    """

    def gains(self, view: AcquisitionContext, target: Target) -> tuple[Gain, GainSlopes]:  # noqa: ARG002
        """Returns log EHVI."""
        tiles = boxes(target.front, np.zeros(len(target.size)))
        return lambda mean, std: log_ehvi(mean, std, tiles), lambda mean, std: log_ehvi_slopes(mean, std, tiles)


@final
@description(frozen=True, kw_only=True)
class ScalarisedImprovement(VolumeScore):
    """The logarithm of the expected improvement along random directions, whose mean is that of the hypervolume.

    The improvement is that of max_y min_i ((y_i - r_i) / (lambda_i s_i))^k (Golovin & Zhang 2020), with directions
    drawn anew in each round. Its cost grows in proportion to the number of objectives.

    Attributes:
        directions: number of directions in a round, whose improvements are averaged.

    >>> import nilregret as nr
    >>> policy = nr.auto(nr.Box(0, 1), objectives=3).using(score=nr.slots.ScalarisedImprovement())
    >>> nr.Study(policy, seed=0).ask().number
    0
    """

    directions: int = 1

    def __post_init__(self) -> None:
        settle(self, directions=integer("directions", self.directions, low=1, high=MOST_DIRECTIONS))

    def gains(self, view: AcquisitionContext, target: Target) -> tuple[Gain, GainSlopes]:
        """Returns the logarithm of the mean improvement along the directions of the round."""
        k = len(target.size)
        weights, origin = sphere(view.randomness.draws, self.directions, k), np.zeros(k)
        best = scalarised(target.front, weights, origin).max(axis=1, initial=0.0)

        def slopes(mean: Array, std: Array) -> Slopes:
            each = [log_scalarised_improvement(mean, std, *one) for one in zip(weights, best.tolist(), strict=True)]
            return each[0] if len(each) == 1 else averaged(each)

        return lambda mean, std: slopes(mean, std).values, slopes


def averaged(each: list[Slopes]) -> Slopes:
    """Returns the logarithm of the mean of several gains, with derivatives."""
    logs = np.array([one.values for one in each])
    top = logs.max(axis=0)
    shares = np.exp(logs - top)
    total = shares.sum(axis=0)
    by_mean, by_std = ((np.array([one[i] for one in each]) * shares[:, None]).sum(axis=0) / total for i in (1, 2))
    return Slopes(top + np.log(total / len(each)), by_mean, by_std)
