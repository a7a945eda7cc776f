"""Scores of several objectives: the volume that a point would add to a front, or one random direction in each round.

| symbol | name | meaning | shape |
|---|---|---|---|
| r | `Target.reference` | the corner below which nothing counts | (k,) |
| s | `Target.size` | the way from r to the best value of the front | (k,) |
| Y | `Target.front` | posterior means that no others dominate, in sizes above r | (f, k) |
| mu, sigma | `Target.moments` | posteriors of the objectives at n points, in sizes above r | (k, n) |
| lambda | `weights` | a direction, uniform on the positive part of the unit sphere | (k,) |
| y | `heights` | upper bounds, or draws, of the k objectives at n points | k of (n,) |

Of a direction of the round (`corner` is r, `sizes` are s) the score of a point is min_i (y_i - r_i) / (lambda_i s_i).
Let u be its largest value over a set of points, or 0 if it is negative. Then c_k s_1 ... s_k E u^k over lambda is the
hypervolume of the set above r (`theory.fronts.scalarised`), so directions weigh together as volume does (Golovin &
Zhang 2020). The power k does not change which point is best. Below r the scores are negative in place of 0, so that a
search still finds its way up.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple, final

import numpy as np

from .._utils.checks import LARGEST_REWARD, Array, IndexArray, integer, number, settle
from .._utils.dataclass import dataclass
from ..domains.domain import Arms, Space
from ..domains.search.boxes import AcquisitionFunction, coarse
from ..errors import InvalidInput
from ..serialize import description
from ..theory import fronts
from .base import Policy
from .envelope import Envelope
from .scores import LOG_RESOLUTION, AcquisitionContext, PointView, Score, TableView

MOST_STARTS = 10  # points of a front near which a search starts
MOST_GAPS = 24  # gaps between neighbours of the front within which a search starts
SHARES = np.array([0.25, 0.5, 0.75])  # of these gaps
STEPS = 0.02, 0.005  # from points of the front, as shares of a side, at which a search starts
MOST_DIRECTIONS = 1024
REACH_ON_ARMS = 10.0  # reach of the reference on arms, where a front does not grow in small steps

Gain = Callable[[Array, Array], Array]  # logarithms of gains, `(n,)`, of means and deviations, `(k, n)` each
GainSlopes = Callable[[Array, Array], fronts.Slopes]  # the same with derivatives


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
        front = np.flatnonzero(fronts.non_dominated(means))
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
    def target(self, view: AcquisitionContext, *, reach: float = fronts.REACH) -> Target:
        """Returns the front of posterior means at the points tried, with its reference and sizes.

        Points that violate a constraint in the mean are not on the front. If all do, the front is empty, and reference
        and sizes are those of the front without constraints.

        Args:
            view: the round.
            reach: as of `reference_point`.
        """
        _, means, feasible, _ = view.known_objectives()
        front = means[feasible]
        front = front[fronts.non_dominated(front)]
        best = front if len(front) else means[fronts.non_dominated(means)]
        reference = view.given_reference
        if reference is None:
            reference = fronts.reference_point(means, best, reach=reach)
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
        tiles = fronts.boxes(target.front, np.zeros(len(target.size)))
        return lambda mean, std: fronts.log_ehvi(mean, std, tiles), lambda mean, std: fronts.log_ehvi_slopes(
            mean, std, tiles
        )


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
        weights, origin = fronts.sphere(view.randomness.draws, self.directions, k), np.zeros(k)
        best = fronts.scalarised(target.front, weights, origin).max(axis=1, initial=0.0)

        def slopes(mean: Array, std: Array) -> fronts.Slopes:
            each = [
                fronts.log_scalarised_improvement(mean, std, *one) for one in zip(weights, best.tolist(), strict=True)
            ]
            return each[0] if len(each) == 1 else averaged(each)

        return lambda mean, std: slopes(mean, std).values, slopes


def averaged(each: list[fronts.Slopes]) -> fronts.Slopes:
    """Returns the logarithm of the mean of several gains, with derivatives."""
    logs = np.array([one.values for one in each])
    top = logs.max(axis=0)
    shares = np.exp(logs - top)
    total = shares.sum(axis=0)
    by_mean, by_std = ((np.array([one[i] for one in each]) * shares[:, None]).sum(axis=0) / total for i in (1, 2))
    return fronts.Slopes(top + np.log(total / len(each)), by_mean, by_std)


class Direction(NamedTuple):
    """The direction of a round.

    Attributes:
        corner: r, `(k,)`, in the units of the models.
        pace: lambda_i s_i, `(k,)`.
    """

    corner: Array
    pace: Array

    def scores(self, heights: Sequence[Array]) -> Array:
        """Returns min_i (y_i - r_i) / (lambda_i s_i), `(n,)`."""
        return fronts.scalarised(np.stack(heights, axis=-1), self.pace, self.corner)

    def slopes(self, heights: Sequence[Array], gradients: Sequence[Array]) -> tuple[Array, Array]:
        """Returns the scores with their gradients, `(n, d)`: those of the objective that is least.

        Args:
            heights: k arrays `(n,)`.
            gradients: k arrays `(n, d)`.
        """
        each = (np.stack(heights, axis=-1) - self.corner) / self.pace
        least = each.argmin(axis=-1)
        rows = np.arange(len(each))
        return each[rows, least], np.stack(gradients)[least, rows] / self.pace[least][:, None]


@dataclass(frozen=True, kw_only=True)
class Scalarised(FrontScore):
    """A score along one random direction in each round, which is drawn from the trial's own random numbers.

    Attributes:
        sizes: the unit of each objective, in the units of the models. None takes the distance from the reference point
            to the best known value. Then, or without a reference point in `Pareto`, nothing is proved.
    """

    sizes: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.sizes is not None:
            each = (number("sizes", size, low=0.0, high=LARGEST_REWARD, open_low=True) for size in self.sizes)
            settle(self, sizes=tuple(each))

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` if there are more or fewer sizes than objectives."""
        super().check(policy)
        if self.sizes is not None and len(self.sizes) != policy.objective_count:
            raise InvalidInput(
                f"`sizes` has {len(self.sizes)} of the {policy.objective_count} objectives: give one for each, or none."
            )

    @final
    def direction(self, view: TableView | PointView) -> Direction:
        """Returns the direction of the round. It takes the first random numbers of the trial."""
        reference, size, _ = self.target(view)
        weights = fronts.sphere(view.randomness.draws, 1, len(reference))[0]
        return Direction(reference, weights * (size if self.sizes is None else np.array(self.sizes)))


@final
@description(frozen=True, kw_only=True)
class ScalarisedBound(Scalarised):
    """Optimism along a random direction: scalarised upper bounds of all objectives (Paria et al. 2019, section 3.3).

    Each objective has bounds of its own. The direction is uniform on the sphere, and the scalarisation is that of
    Golovin & Zhang 2020. Each objective's bounds hold with its own `delta`.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.algorithms.hypervolume_ucb(arms, kernel, noise=0.1, reference=(-2.0, -2.0))
    >>> policy.score
    ScalarisedBound(sizes=(1.0, 1.0))
    """

    def on_table(self, view: TableView) -> Array:
        """Returns the scalarised upper bounds of all arms."""
        return self.direction(view).scores([each.upper for each in view.objectives()])

    def on_points(self, view: PointView) -> AcquisitionFunction:
        """Returns the scalarised upper bounds. Gradients are numerical if bounds are no multiple of the deviation."""
        direction = self.direction(view)

        def values(points: Array) -> Array:
            return view.without_failed(points, direction.scores([each.upper for each in view.objectives(points)]))

        def slopes(points: Array) -> tuple[Array, Array]:
            each = view.objective_slopes(points)
            rises = [by_mean + (found.width or 0.0) * by_std for found, by_mean, by_std in each]
            scores, gradients = direction.slopes([found.upper for found, _, _ in each], rises)
            return view.without_failed(points, scores), gradients

        smooth = view.objectives_symmetric
        return AcquisitionFunction(values, slopes) if smooth else view.without_slopes(values)


@final
@description(frozen=True, kw_only=True)
class ScalarisedSample(Scalarised):
    """Thompson sampling along a random direction: one draw of each objective (Paria et al. 2019, section 3.3).

    The draws are joint over all points and independent between objectives.

    Attributes:
        width: multiple of the posterior deviation in the draws. 1 is the posterior itself, as in the paper.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.algorithms.hypervolume_thompson(arms, kernel, noise=0.1, reference=(-2.0, -2.0))
    >>> policy.score
    ScalarisedSample(sizes=(1.0, 1.0), width=1.0)
    """

    width: float = 1.0

    draws: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, width=number("width", self.width, low=0.0, high=LARGEST_REWARD, open_low=True))

    @property
    def own_width(self) -> float:
        """The width of the draws."""
        return self.width

    def on_table(self, view: TableView) -> Array:
        """Returns the scalarised draws at every arm."""
        return self.direction(view).scores(view.objective_draws())

    def on_points(self, view: PointView) -> AcquisitionFunction:
        """Returns the scalarised sample paths."""
        direction, paths = self.direction(view), view.objective_paths()

        def slopes(points: Array) -> tuple[Array, Array]:
            each = [path.slopes(points) for path in paths]
            return direction.slopes([heights for heights, _ in each], [gradients for _, gradients in each])

        return AcquisitionFunction(lambda points: direction.scores([path.values(points) for path in paths]), slopes)
