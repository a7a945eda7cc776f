"""The view of a round at points, for scores and for searches."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, final

import numpy as np

from ..._utils.checks import Array, IndexArray
from ...domains.domain import Arms, Domain
from ...domains.search.boxes import AcquisitionFunction, coarse
from ...gp import PointBelief
from ...gp.points import Related
from ...slots.envelope import Envelope
from ...slots.scores import LOG_RESOLUTION, Known, PointView, Pointwise
from .base import Limit, Limits, Question, best_admitted, law_of_draw, moved, multiple

if TYPE_CHECKING:
    from ...slots.propensities import ScoreLaw

STEP = 1e-5  # step of numerical derivatives, as a share of a standard deviation or of a side of the domain


class Ground(Protocol):
    """An engine of points, as far as a round uses it."""

    drifts: bool

    @property
    def domain(self) -> Domain:
        """The domain of decisions."""

    @property
    def before(self) -> int:
        """The number of columns before those of the point."""

    @property
    def strays(self) -> bool:
        """True if trials may lie outside of the domain, since it has changed."""

    def rows(self, context: Array | None, points: Array) -> Array:
        """Returns the rows of points `(n, d)` now."""

    def kept(self, points: Array) -> Array:
        """Returns the points `(n, d)` of trials that may be played again, `(m, d)`."""

    def predict_candidates(self, belief: PointBelief, points: Array) -> tuple[Array, Array]:
        """Returns mean and std at points that are the same in every round."""

    def without_failed(self, points: Array, scores: Array) -> Array:
        """Returns the scores, with -inf at points close to a failed one."""


@final
class PointRound(PointView):
    """The view of a round at points.

    Args:
        engine: the engine of the policy.
        belief: the belief about f.
        question: the question of the round.
        points: arms, or candidates.
        alone: whether only these points may be played.

    Attributes:
        leads: whether nothing but the best of these points is asked for.
    """

    def __init__(
        self, engine: Ground, belief: PointBelief, question: Question, points: Array, *, alone: bool = False
    ) -> None:
        self.leads = False
        self._engine, self._belief, self._question, self._alone = engine, belief, question, alone
        self.domain, self.points, self.norm_growth = engine.domain, points, question.norm_growth
        self.round, self.width, self.randomness = question.round, question.width, question.randomness
        self._known: tuple[Array, Array] | None = None
        # Without contexts and drift, predictions at the candidates are updated from round to round.
        self._stands = not alone and question.context is None and not engine.drifts
        self._coarse = False
        self.limits_symmetric = True
        if question.limits is not None:
            self._prepare(question.limits)

    @cached_property
    def sides(self) -> Array:  # type: ignore[override]  # few scores ask for them
        """Side lengths of the domain, `(d,)`."""
        domain = self.domain
        if isinstance(domain, Arms):
            return np.asarray(np.maximum(np.ptp(domain.points, axis=0), 1e-300))
        return domain.upper - domain.lower

    def _prepare(self, limits: Limits) -> None:
        rows = self._engine.rows(self._question.context, self.points[:1])
        sizes = np.array([each.belief.observed.size_at(rows) * each.units.unit for each in limits.constraints])
        self.dual_state, self.context = limits.dual, self._question.context
        self.limit_sizes = np.maximum(sizes, 1e-100)
        self.limits_symmetric = all(
            each.bounds.pointwise and each.bounds.width is not None for each in limits.constraints
        )

    def _each(self) -> tuple[Limit, ...]:
        limits = self._question.limits
        return () if limits is None else limits.constraints

    @cached_property
    def _aims(self) -> tuple[Limit, ...]:
        """The beliefs about all objectives, in units without a centre."""
        return self._question.aims(self._belief)

    def limits(self, points: Array | None = None) -> list[Envelope]:
        """Returns the bounds of each constraint at points `(n, d)`, or at the view's own points."""
        return self._bounds(self._each(), points)

    def objectives(self, points: Array | None = None) -> list[Envelope]:
        """Returns the bounds of each objective at points `(n, d)`, or at the view's own points."""
        return self._bounds(self._aims, points)

    def _bounds(self, each: tuple[Limit, ...], points: Array | None) -> list[Envelope]:
        points = self.points if points is None else points
        rows = self._engine.rows(self._question.context, points)
        standing = self._coarse and points is self.points and self._stands
        found = []
        for belief, bounds, units in each:
            moments = self._engine.predict_candidates(belief, self.points) if standing else belief.predict(rows)
            found.append(bounds(*units.rewards(*moments), rows))
        return found

    def limit_slopes(self, points: Array) -> list[tuple[Envelope, Array, Array]]:
        """Returns the bounds of each constraint, with the gradients of mean and std, each `(n, d)`."""
        return self._slopes(self._each(), points)

    def objective_slopes(self, points: Array) -> list[tuple[Envelope, Array, Array]]:
        """Returns the bounds of each objective, with the gradients of mean and std, each `(n, d)`."""
        return self._slopes(self._aims, points)

    @property
    def objectives_symmetric(self) -> bool:
        """True if the bounds of all objectives are multiples of the standard deviation."""
        return all(each.bounds.pointwise and each.bounds.width is not None for each in self._aims)

    def objective_paths(self) -> list[AcquisitionFunction]:
        """Returns a drawn function for each objective."""
        return [self._path(one.belief, one.units.unit) for one in self._aims]

    def known_objectives(self) -> Known:
        """Returns the objectives at the points that were tried."""
        question = self._question
        return question.known_objectives(self._belief, lambda points: self._engine.rows(question.context, points))

    def without_failed(self, points: Array, scores: Array) -> Array:
        """Returns the scores, with -inf at points close to a failed one."""
        return self._engine.without_failed(points, scores)

    @property
    def given_reference(self) -> Array | None:
        """The reference point that is given, in the units of `objectives`, or None."""
        front = self._question.front
        return None if front is None else front.reference

    def _slopes(self, each: tuple[Limit, ...], points: Array) -> list[tuple[Envelope, Array, Array]]:
        rows, found = self._engine.rows(self._question.context, points), []
        for one in each:
            at, unit = one.belief.gradients(rows), one.units.unit
            envelope = one.bounds(*one.units.rewards(at.mean, at.std), rows)
            slopes = [unit * gradient[:, -points.shape[1] :] for gradient in (at.mean_gradient, at.std_gradient)]
            found.append((envelope, *slopes))
        return found

    def informs(self, places: IndexArray, goals: IndexArray) -> Array:
        """Returns the effect of an answer at places on each constraint at goals, in prior deviations, `(m, p, g)`."""
        rows = self._engine.rows(self._question.context, self.points)
        each = zip(self._each(), self.limit_sizes, strict=True)
        return np.array([moved(one.belief, rows[places], rows[goals]) * one.units.unit / size for one, size in each])

    def tried(self) -> Array:
        """Returns the distinct points of trials that count, `(n, d)`."""
        before = self._engine.before
        points = self._belief.with_pending.points[:, before:]
        return points.copy() if not before else np.unique(points, axis=0)

    def at(self, points: Array) -> PointRound:
        """Returns the view of the same round if only these points may be played."""
        return PointRound(self._engine, self._belief, self._question, points, alone=True)

    def of_candidates(self, surface: AcquisitionFunction) -> Array:
        """Returns the scores of the candidates, `(n,)`, with which the search begins."""
        self._coarse = True
        try:
            return surface.values(self.points)
        finally:
            self._coarse = False

    def _moments(self, points: Array) -> tuple[Array, Array]:
        """Returns mean and std in the belief's units, as fresh arrays. Those of the candidates are computed once."""
        if points is not self.points or not self._stands:
            return self._belief.predict(self._engine.rows(self._question.context, points))
        if self._known is None:
            self._known = self._engine.predict_candidates(self._belief, points)
        return self._known[0].copy(), self._known[1].copy()

    def envelope(self, points: Array) -> Envelope:
        """Returns the bounds at points `(m, d)`, as fresh arrays `(m,)`."""
        question = self._question
        rows = self._engine.rows(question.context, points)
        # Updated predictions at the candidates round differently in a reopened study. That does not matter where a
        # search begins. But a score that takes their maximum, say, would carry the difference everywhere.
        moments = self._moments(points) if self._coarse else self._belief.predict(rows)
        return question.bounds(*question.units.rewards(*moments), rows)

    def leading(self, points: Array, factors: Array) -> Array | None:
        """Returns mean + factor * std, exact where one may be the largest, or None (see `PointView.leading`)."""
        leading, question = self._belief.leading, self._question
        if leading is None or not self.leads:
            return None
        found = leading(self._engine.rows(question.context, points), factors)
        return None if found is None else question.units.rewards(found, found[:0])[0]

    def best_mean(self) -> float:
        """Returns the highest posterior mean over the points that may be played, as far as is known."""
        return self._question.units.center + self._question.units.unit * self._best_mean()

    def _best_mean(self) -> float:
        """Returns the best mean over the candidates and the observed points, in the belief's units."""
        posterior, context = self._belief.observed, self._question.context
        if self._each():
            return self._best_mean_inside()
        means = self._moments(self.points)[0]
        if not posterior.count or self._alone:
            return float(means.max())
        # Updated means of the candidates may round differently, so the best of them is computed anew.
        best = float(posterior.mean(self._engine.rows(context, self.points[int(coarse(means).argmax())][None]))[0])
        if context is None and not self._engine.drifts:
            if not self._engine.strays:
                return max(best, float(posterior.landmark_means().max()))
            means = posterior.means_of(self._engine.kept(posterior.landmarks))
            return max(best, float(means.max(initial=-math.inf)))
        observed = self._engine.kept(np.unique(posterior.landmarks[:, self._engine.before :], axis=0))
        return max(best, float(posterior.mean(self._engine.rows(context, observed)).max(initial=-math.inf)))

    def best_pending_mean(self) -> float:
        """Returns the highest posterior mean at the pending points, under this context."""
        waiting = np.zeros((0, 0)) if self._each() else self._belief.waiting
        waiting = self._engine.kept(waiting[:, self._engine.before :])
        if not len(waiting):
            return -math.inf
        rows = self._engine.rows(self._question.context, waiting)
        units = self._question.units
        return units.center + units.unit * float(self._belief.mean(rows).max())

    def _best_mean_inside(self) -> float:
        """Returns the best mean over observed points that satisfy the constraints in the mean.

        Before the first answer, the candidates take their place.
        """
        observed = self.points if self._alone or not self._belief.observed.count else self._engine.kept(self.tried())
        observed = observed if len(observed) else self.points
        means = self._belief.predict(self._engine.rows(self._question.context, observed))[0]
        return best_admitted(means, self.limits(observed))

    def best_reward(self) -> float:
        """Returns the highest reward under this context, or the prior mean before the first."""
        best = self._question.best_reward(self._question.context)
        return self._question.units.center if best is None else best

    def surface(self, score: Pointwise, incumbent: float | None, given: Related | None = None) -> AcquisitionFunction:
        """Returns the acquisition function of a score of mean and standard deviation, with its gradients.

        Args:
            score: of bounds.
            incumbent: the value to improve on, or None.
            given: the points from which the std is computed, in place of all observed ones.
        """

        def values(points: Array) -> Array:
            return self._engine.without_failed(points, score(self.envelope(points), incumbent))

        def slopes(points: Array) -> tuple[Array, Array]:
            question = self._question
            at = self._belief.gradients(self._engine.rows(question.context, points), given)
            mean, std = question.units.rewards(at.mean, at.std)
            envelope = question.bounds(mean, std)
            scores, by_mean, by_std = score.with_partials(envelope, incumbent) or self._differences(
                score, mean, std, incumbent
            )
            gradient = by_mean[:, None] * at.mean_gradient + by_std[:, None] * at.std_gradient
            return self._engine.without_failed(points, scores), question.units.unit * gradient[:, -points.shape[1] :]

        if not self._question.bounds.pointwise:
            return self.without_slopes(values)
        resolution = LOG_RESOLUTION if getattr(score, "logarithm", False) else 0.0
        rough = self._rough(score, incumbent, given)
        if given is not None and rough is not None:
            return AcquisitionFunction(rough, slopes, resolution)

        def near(points: Array, count: int) -> AcquisitionFunction | None:
            some = self._belief.related(self._engine.rows(self._question.context, points), count)
            return None if some is None else self.surface(score, incumbent, some)

        return AcquisitionFunction(values, slopes, resolution, rough, near)

    def _rough(
        self, score: Pointwise, incumbent: float | None, given: Related | None
    ) -> Callable[[Array], Array] | None:
        """Returns the scores of approximate predictions, or None if exact predictions are as quick."""
        question, predict = self._question, self._belief.predict_roughly
        if predict is None:
            return None

        def rough(points: Array) -> Array:
            moments = predict(self._engine.rows(question.context, points), given=given)
            return self._engine.without_failed(
                points, score(question.bounds(*question.units.rewards(*moments)), incumbent)
            )

        return rough

    def _differences(
        self, score: Pointwise, mean: Array, std: Array, incumbent: float | None
    ) -> tuple[Array, Array, Array]:
        """Returns a score and its numerical derivatives in mean and std."""
        step = STEP * np.maximum(std, STEP)

        def at(mean: Array, std: Array) -> Array:
            return score(self._question.bounds(mean, std), incumbent)

        by_mean = (at(mean + step, std.copy()) - at(mean - step, std.copy())) / (2.0 * step)
        by_std = (at(mean.copy(), std + step) - at(mean.copy(), np.maximum(std - step, 0.0))) / (
            step + np.minimum(std, step)
        )
        return at(mean, std), by_mean, by_std

    def path(self) -> AcquisitionFunction:
        """Returns a function drawn from GP(mu, width^2 cov), with its gradients."""
        return self._path(self._belief, self._question.units.unit)

    def _path(self, belief: PointBelief, unit: float) -> AcquisitionFunction:
        context, engine = self._question.context, self._engine
        drawn = belief.path(self.randomness.draws, width=multiple(self.width))

        def values(points: Array) -> Array:
            return engine.without_failed(points, unit * drawn(engine.rows(context, points)))

        def slopes(points: Array) -> tuple[Array, Array]:
            heights, gradients = drawn.slopes(engine.rows(context, points))
            return engine.without_failed(points, unit * heights), unit * gradients[:, -points.shape[1] :]

        return AcquisitionFunction(values, slopes)

    def law_of_draw(self) -> ScoreLaw | None:
        """Returns the law of a draw at the points of the view."""
        rows = self._engine.rows(self._question.context, self.points)
        return law_of_draw(self._belief, rows, self.width, self._question.units.unit)

    def without_slopes(self, values: Callable[[Array], Array]) -> AcquisitionFunction:
        """Returns the acquisition function of any function `(m, d)` -> `(m,)`, with numerical gradients."""
        domain = self.domain
        sides = np.ones(domain.dimension) if isinstance(domain, Arms) else domain.upper - domain.lower
        steps = STEP * sides

        def kept(points: Array) -> Array:
            return self._engine.without_failed(points, values(points))

        def slopes(points: Array) -> tuple[Array, Array]:
            # Steps go into the domain, so that no point outside of it is evaluated.
            signs = (
                np.ones(points.shape)
                if isinstance(domain, Arms)
                else np.where(points + steps > domain.upper, -1.0, 1.0)
            )
            moved = points[:, None, :] + (signs * steps)[:, None, :] * np.eye(points.shape[1])
            around = values(moved.reshape(-1, points.shape[1])).reshape(len(points), -1)
            here = values(points)
            with np.errstate(invalid="ignore"):  # a path is -inf near a failed trial
                rises = around - here[:, None]
            slopes_here = np.where(np.isfinite(rises), rises, 0.0) / (signs * steps)
            return self._engine.without_failed(points, here), slopes_here

        return AcquisitionFunction(kept, slopes)
