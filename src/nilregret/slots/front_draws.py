"""Scores of several objectives along one random direction in each round: upper bounds, or draws.

| symbol | name | meaning | shape |
|---|---|---|---|
| r | `corner` | reference point: values below it do not count | (k,) |
| s | `sizes` | unit of each objective | (k,) |
| lambda | `weights` | direction of the round, uniform on the positive part of the unit sphere | (k,) |
| y | `heights` | upper bounds, or draws, of the k objectives at n points | k of (n,) |

The score of a point is min_i (y_i - r_i) / (lambda_i s_i). Let u be its largest value over a set of points, or 0 if it
is negative. Then c_k s_1 ... s_k E u^k over lambda is the hypervolume of the set above r (`theory.fronts.scalarised`),
so directions weigh together as volume does (Golovin & Zhang 2020). The power k does not change which point is best.
Below r the scores are negative in place of 0, so that a search still finds its way up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple, final

import numpy as np

from .._utils.checks import LARGEST_REWARD, Array, number, settle
from .._utils.dataclass import dataclass
from ..domains.search.boxes import AcquisitionFunction
from ..errors import InvalidInput
from ..serialize import description
from ..theory.fronts import scalarised, sphere
from .acquisition import PointView, TableView
from .base import Policy
from .front_scores import FrontScore


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
        return scalarised(np.stack(heights, axis=-1), self.pace, self.corner)

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
        weights = sphere(view.randomness.draws, 1, len(reference))[0]
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
