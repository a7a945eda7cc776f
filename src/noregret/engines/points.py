"""Boxes and spaces of parameters, and any domain under continuous contexts."""

from __future__ import annotations

from typing import Any, final

import numpy as np
import numpy.typing as npt

from ..availability import Available
from ..blas import with_one_thread
from ..checks import Array, frozen
from ..domain import Arms, Box, Space
from ..errors import InvalidInput
from ..parts.lattice import best_on_grid
from ..parts.maximizers import best_arm
from ..parts.scores import PointwiseScore, ThompsonSample
from ..parts.search import Found, Surface, coarse, real_columns
from ..posterior import Gradients, PointPosterior, Standing, sample_path
from ..randomness import Randomness
from ..record import Trial
from .base import (
    Decision,
    Engine,
    Question,
    Setting,
    incumbent_of,
    none_left,
    nothing_left,
    row_of,
    rows_of,
    size_of_scores,
)

MOST_DRAWS = 1000  # of a uniform point that has not failed
NEARLY = 0.01  # share of the diagonal within which a point that has only failed is not tried again


@final
class PointEngine(Engine):
    """Boxes and spaces of parameters, and any domain under continuous contexts. Rows are (context, point)."""

    def __init__(self, setting: Setting, *, seed: int) -> None:
        self.setting = setting
        self._seed = seed
        width = 0 if setting.context is None else setting.context.dimension
        if setting.drift is not None:
            raise InvalidInput("Forgetting in time (`Discount`) needs arms: elsewhere give the time as a context.")
        self._posterior = PointPosterior(setting.kernel, width + setting.domain.dimension, setting.regularization)
        # Its targets are all 0: the variance of f, and draws of f - mu, come from here.
        self._queried = self._posterior.copy() if setting.hallucinate else self._posterior
        self._failed: dict[bytes, Array] = {}
        self._standing: Standing | None = None
        self._standing_queried: Standing | None = None
        self._candidates: Array | None = None
        self.found: Found | None = None  # how the last search ended

    @property
    def posterior(self) -> PointPosterior:
        """The posterior over (context, point), of all that was queried."""
        # Where nothing is pending both have the same variance, and that of the answers rounds as if nothing had been.
        return self._posterior if self._queried.count == self._posterior.count else self._queried

    @property
    def answers(self) -> PointPosterior:
        """The posterior over (context, point), of what was learned."""
        return self._posterior

    @with_one_thread
    def learn(self, trials: list[Trial], targets: list[float]) -> None:
        """Take in trials, all at once."""
        self._posterior.extend(np.array([row_of(trial) for trial in trials]), targets)

    @with_one_thread
    def revise(self, trial: Trial, old: float, new: float) -> None:
        """Change what a trial counts as."""
        if old != new:
            self._posterior.revise(row_of(trial), old, new)

    @with_one_thread
    def forget(self, trial: Trial, target: float) -> None:
        """Take a trial back out."""
        self._posterior.forget(row_of(trial), target)

    @with_one_thread
    def query(self, trial: Trial) -> None:
        """Let a trial shrink the variance."""
        self._queried.append(row_of(trial), 0.0)

    @with_one_thread
    def unquery(self, trial: Trial) -> None:
        """Take that back."""
        self._queried.forget(row_of(trial), 0.0)

    @with_one_thread
    def deviations(self, trials: list[Trial]) -> Array:
        """Posterior std of f at trials."""
        return self.posterior.predict(np.array([row_of(trial) for trial in trials]))[1]

    def fail(self, trial: Trial) -> None:
        """Set the neighbourhood of a point aside."""
        self._failed[trial.point.tobytes()] = trial.point

    def forgive(self, trial: Trial) -> None:
        """Set it aside no more."""
        self._failed.pop(trial.point.tobytes(), None)

    @with_one_thread
    def predict(self, points: Any, context: Array | None) -> tuple[Array, Array]:
        """Mean and std of f at points of the domain."""
        return self._moments(rows_of(context, self._inside(points)))

    def _moments(self, rows: Array) -> tuple[Array, Array]:
        spread = self.posterior
        if spread is self._posterior:
            return spread.predict(rows)
        return self._posterior.mean(rows), spread.predict(rows)[1]

    def _inside(self, points: Any) -> Array:
        domain = self.setting.domain
        if points is not None:
            return domain.inside("points", points)
        if not isinstance(domain, Arms):
            raise InvalidInput("This domain is continuous: say at which points, `(n, d)`, to predict.")
        return domain.points

    @with_one_thread
    def answered_means(self, trials: list[Trial]) -> Array:
        """Posterior mean at answered trials: O(n) for those that are data, once the weights are known."""
        return self._posterior.means_of(np.array([row_of(trial) for trial in trials]))

    @with_one_thread
    def choose(self, question: Question) -> Decision:
        """The best arm, or the best point that the search finds."""
        question = question.centred()
        domain, score = self.setting.domain, question.score or self.setting.score
        points = domain.points if isinstance(domain, Arms) else self._standing_points(domain)
        if isinstance(score, PointwiseScore):
            mean, std = self._look_at(points, question)
            incumbent = incumbent_of(score, question, lambda: self._best_mean(points, mean, question))
            surface = self._score_surface(score, question, incumbent)
            scores = self._without_failed(points, score(question.bounds(mean, std), incumbent))
        else:
            surface = self._path_surface(question)
            scores = surface.values(points)
        none_left(bool(np.isneginf(scores).all()))
        if isinstance(domain, Arms):
            prior = float(np.sqrt(self.setting.kernel.diagonal(rows_of(question.context, points)).max()))
            arm = best_arm(scores, size_of_scores(score, question, prior), question.randomness)
            return Decision(points[arm], arm, explored=False)
        self.found = self.setting.search.maximize(
            surface,
            domain,
            standing=points,
            scores=scores,
            incumbents=self._incumbents(question),
            rng=lambda: question.randomness.generator,
        )
        return Decision(frozen(self._placed(self.found.point, surface, question, points)), None, explored=False)

    def anywhere(self, randomness: Randomness) -> Decision:
        """A uniformly drawn point, or arm, away from what has failed."""
        domain, rng = self.setting.domain, randomness.generator
        for _ in range(MOST_DRAWS):
            if isinstance(domain, Arms):
                arm = int(rng.integers(len(domain)))
                decision = Decision(domain.points[arm], arm, explored=True)
            else:
                point = rng.uniform(domain.lower, domain.upper)
                point = domain.snap(point[None])[0] if isinstance(domain, Space) else point
                decision = Decision(frozen(point), None, explored=True)
            if not np.isneginf(self._without_failed(decision.point[None], np.zeros(1)))[0]:
                return decision
        raise nothing_left()

    @with_one_thread
    def scores_among(self, question: Question, available: Available) -> tuple[Array, float]:
        """Scores of some points, or arms."""
        score, rows = question.score or self.setting.score, rows_of(question.context, available.points)
        prior = float(np.sqrt(self.setting.kernel.diagonal(rows).max()))
        size = size_of_scores(score, question, prior)
        if not isinstance(score, PointwiseScore):
            return self._path_surface(question).values(available.points), size
        mean, std = self._moments(rows)
        incumbent = incumbent_of(score, question, lambda: float(mean.max()))
        return score(question.bounds(mean, std), incumbent), size

    def failed_among(self, available: Available) -> npt.NDArray[np.bool_]:
        """Which of some points are close to one that has been set aside."""
        return np.isneginf(self._without_failed(available.points, np.zeros(len(available.points))))

    def _standing_points(self, domain: Box | Space) -> Array:
        """The candidates that the search begins with."""
        if self._candidates is None:
            self._candidates = self.setting.search.standing(domain, self._seed)
        return self._candidates

    def _look_at(self, points: Array, question: Question) -> tuple[Array, Array]:
        """Mean and std of f at the arms or the standing candidates, fresh arrays."""
        if question.context is not None:
            return self._moments(rows_of(question.context, points))  # nothing can be kept from round to round
        if self._standing is None:
            self._standing = Standing(self._posterior, points)
        mean, std = self._standing.predict()
        if self.posterior is not self._posterior:
            if self._standing_queried is None:
                self._standing_queried = Standing(self._queried, points)
            std = self._standing_queried.predict()[1]
        return mean, std

    def _best_mean(self, points: Array, means: Array, question: Question) -> float:
        """The highest posterior mean over the domain, as far as it is known: of these points and those observed."""
        posterior, context = self._posterior, question.context
        if not posterior.rank or isinstance(self.setting.domain, Arms):
            return float(means.max())
        # The candidates' means may have been come by in several ways, which round differently: the best one anew.
        best = float(posterior.mean(rows_of(context, points[int(coarse(means).argmax())][None]))[0])
        if context is None:
            return max(best, float(posterior.observed_means().max()))
        observed = np.unique(posterior.points[:, len(context) :], axis=0)
        return max(best, float(posterior.mean(rows_of(context, observed)).max()))

    def _score_surface(self, score: PointwiseScore, question: Question, incumbent: float | None) -> Surface:
        """The score, to be maximised."""
        bounds, context = question.bounds, question.context

        def values(points: Array) -> Array:
            envelope = bounds(*self._moments(rows_of(context, points)))
            return self._without_failed(points, score(envelope, incumbent))

        def slopes(points: Array) -> tuple[Array, Array]:
            at = self._gradients(rows_of(context, points))
            envelope = bounds(at.mean, at.std)
            by_mean, by_std = score.partials(envelope, incumbent)
            gradient = by_mean[:, None] * at.mean_gradient + by_std[:, None] * at.std_gradient
            scores = self._without_failed(points, score(envelope, incumbent))
            return scores, bounds.unit * gradient[:, -points.shape[1] :]

        return Surface(values, slopes)

    def _gradients(self, rows: Array) -> Gradients:
        at = self.posterior.gradients(rows)
        if self.posterior is self._posterior:
            return at
        mean, slope = self._posterior.mean_gradient(rows)
        return at._replace(mean=mean, mean_gradient=slope)

    def _path_surface(self, question: Question) -> Surface:
        """GP-TS: a draw from GP(mu, v_t^2 cov)."""
        rng, context = question.randomness.generator, question.context
        path = sample_path(self.posterior, rng).widened(question.bounds.width)
        # Of what is queried the mean is 0: then the mean of what is answered is still to be added.
        apart = self.posterior is not self._posterior

        def values(points: Array) -> Array:
            rows = rows_of(context, points)
            drawn = path(rows)
            return self._without_failed(points, drawn + self._posterior.mean(rows) if apart else drawn)

        def slopes(points: Array) -> tuple[Array, Array]:
            rows = rows_of(context, points)
            drawn, gradients = path.slopes(rows)
            if apart:
                means, mean_gradients = self._posterior.mean_gradient(rows)
                drawn, gradients = drawn + means, gradients + mean_gradients
            return self._without_failed(points, drawn), gradients[:, -points.shape[1] :]

        return Surface(values, slopes)

    def _placed(self, point: Array, surface: Surface, question: Question, standing: Array) -> Array:
        """The point, or the best of the discretisation D_t, where one is wanted."""
        score, domain = question.score or self.setting.score, self.setting.domain
        if not isinstance(score, ThompsonSample) or score.grid is None or isinstance(domain, Arms):
            return point.copy()
        count = score.per_side(question.round, norm_growth=question.norm_growth)
        placed = best_on_grid(surface.values, domain, point, standing, count)
        none_left(bool(self._failed) and bool(np.isneginf(surface.values(placed[None]))[0]))
        return placed

    def _incumbents(self, question: Question) -> Array:
        """The last point asked for, and the best one so far.

        Best in posterior mean; where candidates are dense incumbents matter little, and the best average rewards, which
        cost O(n) and not O(n^2), will do.
        """
        posterior, domain = self._posterior, self.setting.domain
        width = 0 if question.context is None else len(question.context)
        points = [] if question.last is None else [question.last]
        if posterior.rank:
            dense = isinstance(domain, Box | Space) and self.setting.search.dense(domain)
            means = posterior.average if dense else posterior.observed_means()
            points.append(posterior.points[int(means.argmax()), width:])
        return np.array(points).reshape(len(points), self.setting.domain.dimension)

    def _without_failed(self, points: Array, scores: Array) -> Array:
        if not self._failed:
            return scores
        domain = self.setting.domain
        if isinstance(domain, Arms):
            real, unit = np.zeros(domain.dimension, dtype=bool), np.ones(domain.dimension)
        else:
            real, unit = real_columns(domain), domain.upper - domain.lower
        for failed in self._failed.values():
            offsets = np.abs(points - failed) / unit
            near = np.linalg.norm(offsets[:, real], axis=1) <= NEARLY * np.sqrt(domain.dimension)
            scores = np.where(near & (offsets[:, ~real] == 0.0).all(axis=1), -np.inf, scores)
        return scores

    def copy(self) -> PointEngine:
        """An independent engine in the same state."""
        other = PointEngine.__new__(PointEngine)
        other.__dict__.update(self.__dict__)
        other._posterior, other._failed = self._posterior.copy(), self._failed.copy()
        other._queried = other._posterior if self._queried is self._posterior else self._queried.copy()
        other._standing = other._standing_queried = None
        return other
