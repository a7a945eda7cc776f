"""Improvement per cost, where trials differ in what they cost.

| symbol | name | meaning | shape |
|---|---|---|---|
| c | | cost of a trial at a point, the unit of the metric | (n,) |
| m | `mean` | posterior mean of log c | (n,) |
"""

from __future__ import annotations

from copy import copy
from typing import ClassVar, final

import numpy as np

from .._utils.checks import Array, settle, shown
from .._utils.dataclass import field
from .._utils.process_setting import with_one_thread
from ..domains.domain import Domain, sides
from ..domains.search.boxes import AcquisitionFunction
from ..errors import InvalidInput
from ..gp import AtPoints
from ..gp.choice import posterior_at_points
from ..kernels import kernel_for
from ..serialize import description
from ..storage.trial import Trial, is_metric_name
from .explore import Situation
from .refit import Refit
from .scores import ExpectedImprovement, PointView, Score, TableView

SECONDS = "seconds"  # The cost that each answer has: if it is no metric, the time from question to answer.
EVERY = 3  # The number of answers between two fits of the costs.


def cost_of(trial: Trial, name: str) -> float | None:
    """Returns the cost of an answered trial, or None if it has none above 0."""
    found = trial.metrics.get(name)
    if found is None and name == SECONDS and trial.told_at is not None:
        found = trial.told_at - trial.asked_at
    return found if found is not None and found > 0.0 else None


@final
class Costs:
    """A posterior of log c, by the costs of the answered trials.

    Args:
        domain: domain of the points.
        points: points with a known cost, `(n, d)`.
        costs: their costs, `(n,)`.
        seed: of the study.
    """

    def __init__(self, domain: Domain, points: Array, costs: Array, seed: int) -> None:
        logs, fit = np.log(costs), Refit(noise="unknown", prior="moderate", restarts=0)
        found = fit(kernel_for(domain, lengthscale=0.5), points, logs, sides(domain), noise=0.1, seed=seed)
        self._scale = found.scale
        self._posterior: AtPoints = posterior_at_points(found.kernel, points.shape[1], found.regularization)
        self._posterior.extend(points, found.targets(logs))

    def logs(self, points: Array) -> Array:
        """Returns the posterior mean m of log c at points `(n, d)`, `(n,)`."""
        return np.asarray(self._scale.back(self._posterior.mean(points)))

    def charged(self, surface: AcquisitionFunction) -> AcquisitionFunction:
        """Returns an acquisition function less m."""

        def values(points: Array) -> Array:
            return np.asarray(surface.values(points) - self.logs(points))

        def slopes(points: Array) -> tuple[Array, Array]:
            scores, gradients = surface.slopes(points)
            at = self._posterior.gradients(points)
            return scores - self._scale.back(at.mean), gradients - self._scale.std * at.mean_gradient

        return AcquisitionFunction(values, slopes, surface.resolution)


@final
@description(frozen=True)
class PerCost(Score):
    """The logarithm of the expected improvement less that of the cost (Snoek, Larochelle & Adams 2012, section 3.2).

    Once the largest of these is below the worth of a unit of cost, no trial is worth its cost (Xie et al. 2025). The
    costs are those on record, so a replay decides alike. Their logarithm has a posterior of its own over the points,
    whatever the context. Until an answer has a cost, all points cost the same. Forced rounds, such as those of an
    initial design, do not look at costs.

    Attributes:
        cost: name of a metric above 0, told with each reward. Without such a metric "seconds" is the time from question
            to answer, which each trial has.
        score: the logarithm of an improvement.

    >>> import nilregret as nr
    >>> space = nr.Space(x=nr.Float(0, 1))
    >>> policy = nr.auto(space).using(score=nr.slots.PerCost("dollars"))
    >>> study = nr.Study(policy)
    >>> study.tell(study.ask(), 0.3, metrics={"dollars": 2.5}).metrics
    {'dollars': 2.5}
    """

    cost: str
    score: Score = field(default_factory=ExpectedImprovement)

    in_rewards: ClassVar[bool] = False
    logarithm: ClassVar[bool] = True
    _costs: ClassVar[Costs | None] = None

    def __post_init__(self) -> None:
        if not is_metric_name(self.cost):
            raise InvalidInput(f"`cost` is {shown(self.cost)}: it must be the name of a metric, such as 'seconds'.")
        if not getattr(self.score, "logarithm", False):
            raise InvalidInput(f"`score` is {shown(self.score)}: it must be the logarithm of an improvement.")
        settle(self, cost=str(self.cost))

    @with_one_thread
    def of_round(self, situation: Situation) -> PerCost:
        """Returns the score with the costs of the trials that count.

        Raises:
            InvalidInput: no answer has such a metric.
        """
        told = [(trial.point, cost_of(trial, self.cost)) for trial in situation.answers()]
        known = [(point, cost) for point, cost in told if cost is not None]
        if told and not known and self.cost != SECONDS:
            raise InvalidInput(
                f"No answer has a metric {self.cost!r} above 0, which is the cost of a trial for this policy.",
                advice=f"Tell it with each reward: `study.tell(trial, reward, metrics={{{self.cost!r}: 2.5}})`, and "
                "with `revise=True` where the reward is on record.",
                topic="cost",
            )
        known = known[: max(len(known) // EVERY * EVERY, 1)]
        if not known:
            return self
        points, costs = np.array([point for point, _ in known]), np.array([cost for _, cost in known])
        kept = {} if situation.kept is None else situation.kept
        key = ("costs", self.cost, points.tobytes(), costs.tobytes())
        if key not in kept:
            kept.pop(kept.pop("costs", None), None)
            kept[key], kept["costs"] = Costs(situation.domain, points, costs, situation.seed), key
        found = copy(self)
        object.__setattr__(found, "_costs", kept[key])
        return found

    def of(self, score: Score) -> PerCost:
        """Returns another logarithm of an improvement less the costs of this round."""
        found = copy(self)
        object.__setattr__(found, "score", score)
        return found

    def at(self, point: Array) -> float:
        """Returns the median cost at a point `(1, d)`, the unit of the metric. It is 1 if no cost is known."""
        return 1.0 if self._costs is None else float(np.exp(self._costs.logs(point))[0])

    def on_table(self, view: TableView) -> Array:
        """Returns the scores of all arms."""
        scores = self.score.on_table(view)
        return scores if self._costs is None else scores - self._costs.logs(view.points)

    def on_points(self, view: PointView) -> AcquisitionFunction:
        """Returns the acquisition function with its gradients."""
        surface = self.score.on_points(view)
        return surface if self._costs is None else self._costs.charged(surface)
