"""Boxes and spaces of parameters, and any domain under continuous contexts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, final

import numpy as np
import numpy.typing as npt

from ..._utils.blas import with_one_thread
from ..._utils.checks import Array, frozen
from ..._utils.errors import InvalidInput
from ..._utils.randomness import Randomness
from ...domains.domain import Arms, Box, Domain, Space, enclosing_box
from ...domains.search.acquisition import AcquisitionFunction
from ...domains.search.arms import best_arm, checked_scores
from ...domains.search.boxes import Found, PointSearch, real_columns
from ...gp import AtPoints, AveragedPoints, Bank, PointBelief, PointPosterior, RatePrior, Several, Standing, Terms
from ...gp.choice import posterior_at_points
from ...kernels import Kernel, Matern
from ...slots.envelope import Bounds, Envelope
from ...slots.memory import Drift
from ...storage.record import Trial
from ..availability import Available
from .base import Decision, Engine, Question, Units, none_left, nothing_left, row_of, rows_of
from .rounds import PointRound

MOST_DRAWS = 1000  # of a uniform point that has not failed
NEARLY = 0.01  # share of the diagonal within which a point that has only failed is not tried again
SHORT = 1e-3  # rounds: a function of which nothing is left in the next one


def in_time(kernel: Kernel, rate: float, columns: int) -> Kernel:
    """k(x, x') (1 - rate)^{|s - s'| / 2} on rows (s, x) (Bogunovic, Scarlett & Cevher 2016, section 3.2)."""
    scale = -2.0 / math.log1p(-rate) if rate < 1.0 else SHORT
    return Matern(0.5, max(scale, SHORT)).on(0) * kernel.on(*range(1, columns))


@final
class PointEngine(Engine[PointBelief]):
    """Boxes and spaces of parameters, and any domain under continuous contexts. Rows are (context, point)."""

    def __init__(
        self,
        domain: Domain,
        context: Domain | None,
        search: PointSearch,
        *,
        seed: int,
        sketch: Callable[[int], Terms] | None = None,
    ) -> None:
        self.domain, self.context, self.search = domain, context, search
        self._seed, self._terms = seed, None if sketch is None else sketch(seed)
        self._failed: dict[bytes, Array] = {}
        self._standing: dict[PointPosterior, Standing] = {}  # of the posteriors in use
        self._kernels = 1  # of each channel, the most that there are
        self._candidates: Array | None = None
        self.found: Found | None = None  # how the last search ended

    def fresh(
        self,
        kernel: Kernel,
        regularization: float,
        *,
        apart: bool,
        drift: Drift,
        known: RatePrior | None = None,  # noqa: ARG002 - of tables alone
        bank: Bank | None = None,
        noise_variance: float | None = None,  # noqa: ARG002 - likewise
    ) -> PointBelief:
        """A belief over (context, point)."""
        columns = self.domain.dimension + (0 if self.context is None else self.context.dimension)
        if bank is not None:
            pairs = itertools.product(bank.variances(regularization), bank.kernels)
            each = [posterior_at_points(one, columns, variance, terms=self._terms) for variance, one in pairs]
            return PointBelief(AveragedPoints(bank, each), apart=apart)
        if isinstance(drift, tuple):
            raise InvalidInput("Several rates of drift are compared on finitely many arms: elsewhere take `Discount`.")
        if drift is not None:
            columns += 1
            kernel = in_time(kernel, drift, columns)
        if self.runs:  # few distinct points, whatever the kernel
            return PointBelief(PointPosterior(kernel, columns, regularization), apart=apart)
        return PointBelief(posterior_at_points(kernel, columns, regularization, terms=self._terms), apart=apart)

    @property
    def before(self) -> int:
        """Columns of a row before those of the point: the round where f drifts, and the context."""
        return int(self.drifts) + (0 if self.context is None else self.context.dimension)

    def rows(self, context: Array | None, points: Array) -> Array:
        """What a kernel sees of points `(n, d)` now: (context, point), after the round where f drifts."""
        rows = rows_of(context, points)
        return rows if not self.drifts else np.hstack([np.full((len(rows), 1), float(self.now)), rows])

    def cell(self, trial: Trial) -> Array:
        """The row."""
        return row_of(trial)

    def entry(self, trial: Trial) -> Array | Several:
        """The row, after the round where f drifts."""
        if trial.repeats > 1:
            return Several(row_of(trial), trial.times, trial.scatter)
        return row_of(trial) if not self.drifts else np.concatenate([[float(trial.number)], row_of(trial)])

    def here(self, trial: Trial) -> Array:
        """The row, after the round that is asked about where f drifts."""
        return np.asarray(self.rows(trial.context, trial.point[None])[0])

    def between(self, kernel: Kernel, cells: list[Array], others: list[Array]) -> Array:
        """Prior covariance between rows, `(a, b)`."""
        return kernel(np.array(cells), np.array(others))

    def largest_variance(self, kernel: Kernel) -> float:
        """The largest prior variance at the ends of the domain."""
        ends = enclosing_box(self.domain, self.context)
        return float(kernel.diagonal(np.stack([ends.lower, ends.upper])).max())

    @with_one_thread
    def put(self, belief: PointBelief, cells: list[Any], values: list[float | None]) -> None:
        """All at once; what was played in runs one by one."""
        if any(type(cell) is Several for cell in cells):
            for cell, value in zip(cells, values, strict=True):
                belief.put(cell, value)
            return
        belief.put_all(np.array(cells), values)

    @with_one_thread
    def fill(self, belief: PointBelief, cells: list[Any], values: list[float | None]) -> None:
        """All at once; what was played in runs one by one."""
        if any(type(cell) is Several for cell in cells):
            for cell, value in zip(cells, values, strict=True):
                belief.revise(cell, None, value)
            return
        belief.fill_all(np.array(cells), values)

    @with_one_thread
    def revise(self, belief: PointBelief, cell: Array, old: float | None, new: float | None) -> None:
        """Change what a trial counts as."""
        belief.revise(cell, old, new)

    @with_one_thread
    def revise_all(
        self, belief: PointBelief, cells: list[Any], old: list[float | None], new: list[float | None]
    ) -> None:
        """Change what several trials count as."""
        belief.revise_all(cells, old, new)

    @with_one_thread
    def drop(self, belief: PointBelief, cell: Array, value: float | None) -> None:
        """Take a trial back out."""
        belief.drop(cell, value)

    @with_one_thread
    def means(self, belief: PointBelief, trials: list[Trial]) -> Array:
        """Posterior mean at answered trials: O(n) for those that are data, once the weights are known."""
        return belief.answered.means_of(np.array([self.here(trial) for trial in trials]))

    @with_one_thread
    def deviations(self, belief: PointBelief, trials: list[Trial]) -> Array:
        """Posterior std of f at trials."""
        return belief.spread.predict(np.array([self.here(trial) for trial in trials]))[1]

    @with_one_thread
    def envelope(
        self, belief: PointBelief, bounds: Bounds, units: Units, points: Any, context: Array | None
    ) -> Envelope:
        """The bounds of f at points of the domain."""
        rows = self.rows(context, self._inside(points))
        return bounds(*units.rewards(*belief.predict(rows)), rows)

    def _inside(self, points: Any) -> Array:
        if points is not None:
            return self.domain.inside("points", points)
        if not isinstance(self.domain, Arms):
            raise InvalidInput("This domain is continuous: say at which points, `(n, d)`, to predict.")
        return self.domain.points

    def candidates(self) -> Array:
        """The arms, or the candidates that a search begins with."""
        return self.domain.points if isinstance(self.domain, Arms) else self._standing_points(self.domain)

    def fail(self, trial: Trial) -> None:
        """Set the neighbourhood of a point aside."""
        self._failed[trial.point.tobytes()] = trial.point

    def forgive(self, trial: Trial) -> None:
        """Set it aside no more."""
        self._failed.pop(trial.point.tobytes(), None)

    def forgive_all(self) -> None:
        """Set nothing aside any more."""
        self._failed = {}

    @with_one_thread
    def choose(self, belief: PointBelief, question: Question, available: Available | None) -> Decision:
        """The best arm, or the best point that the search finds."""
        question = question.centred()
        domain, score = self.domain, question.score
        if isinstance(domain, Arms) or available is not None:
            return self._choose_one(belief, question, available)
        points = self._standing_points(domain)
        view, surface = self._surface(belief, question, points)
        limits = question.limits
        scores = checked_scores(view.of_candidates(surface), len(points))
        none_left(bool(np.isneginf(scores).all()))
        self.found = self.search.maximize(
            surface,
            domain,
            standing=points,
            scores=scores,
            incumbents=self._incumbents(belief, question),
            rng=lambda: question.randomness.generator,
        )
        placed = score.placed(self.found.point, surface, view)
        if limits is not None:
            placed = limits.rule.placed(placed, surface, view)
        if self.search.apart and self.context is None and (limits is None or limits.rule.movable):
            placed = self.search.moved_apart(
                placed, surface, domain, standing=points, scores=scores,
                tried=belief.asked.points[:, self.before :], noisy=belief.answered.noisy,
                rng=lambda: question.randomness.generator,
            )  # fmt: skip
        none_left(bool(self._failed) and bool(np.isneginf(surface.values(placed[None]))[0]))
        return Decision(frozen(placed), None, explored=False)

    def _choose_one(self, belief: PointBelief, question: Question, available: Available | None) -> Decision:
        """The best of finitely many points, ties broken at random."""
        domain = self.domain
        points = domain.points if available is None else available.points  # type: ignore[union-attr]  # of arms
        scores, size = self.scores(belief, question, available)
        if available is not None:
            return self.best_among(scores, size, question.randomness, available)
        none_left(bool(np.isneginf(scores).all()))
        arm = best_arm(scores, size, question.randomness)
        return Decision(points[arm], arm, explored=False)

    @with_one_thread
    def scores(self, belief: PointBelief, question: Question, available: Available | None) -> tuple[Array, float]:
        """Of the points that are all there is to choose from."""
        points = self.candidates() if available is None else available.points
        view, score = PointRound(self, belief, question, points, alone=True), question.score
        scores = checked_scores(score.on_points(view).values(points), len(points))
        if question.limits is not None:
            scores = checked_scores(question.limits.rule.judged(scores, view), len(points))
        prior = float(np.sqrt(belief.answered.kernel.diagonal(self.rows(question.context, points)).max()))
        return scores, prior * question.units.unit if score.in_rewards else 1.0

    def _surface(
        self, belief: PointBelief, question: Question, points: Array
    ) -> tuple[PointRound, AcquisitionFunction]:
        """A round on a continuous domain, and what is maximised over it."""
        view = PointRound(self, belief, question, points)
        surface = question.score.on_points(view)
        return view, surface if question.limits is None else question.limits.rule.on_points(surface, view)

    @with_one_thread
    def searched(self, belief: PointBelief, question: Question, point: Array) -> tuple[Array, Array]:
        """This point, the candidates that stand ready, and the best so far."""
        standing = self.candidates()
        points = np.concatenate([point[None], standing, self._incumbents(belief, question)])
        return points, self._surface(belief, question, standing)[1].values(points)

    def anywhere(self, randomness: Randomness, available: Available | None) -> Decision:
        """A uniformly drawn point, or arm, away from what has failed."""
        if available is not None:
            return self.anywhere_among(randomness, available)
        domain, rng = self.domain, randomness.generator
        for _ in range(MOST_DRAWS):
            if isinstance(domain, Arms):
                arm = int(rng.integers(len(domain)))
                decision = Decision(domain.points[arm], arm, explored=True)
            else:
                point = rng.uniform(domain.lower, domain.upper)
                point = domain.snap(point[None])[0] if isinstance(domain, Space) else point
                decision = Decision(frozen(point), None, explored=True)
            if not np.isneginf(self.without_failed(decision.point[None], np.zeros(1)))[0]:
                return decision
        raise nothing_left()

    def failed_among(self, available: Available) -> npt.NDArray[np.bool_]:
        """Which of some points are close to one that has been set aside."""
        return np.isneginf(self.without_failed(available.points, np.zeros(len(available.points))))

    def _standing_points(self, domain: Box | Space) -> Array:
        """The candidates that the search begins with."""
        if self._candidates is None:
            self._candidates = self.search.standing(domain, self._seed)
        return self._candidates

    def standing(self, posterior: AtPoints | AveragedPoints, points: Array) -> tuple[Array, Array]:
        """Mean and std at the arms or the standing candidates, fresh arrays, kept up to date from round to round."""
        if isinstance(posterior, AveragedPoints):
            self._kernels = len(posterior.each)
            return posterior.mixed(lambda each: self.standing(each, points), points)
        if not isinstance(posterior, PointPosterior):  # a round costs no more where they are made afresh
            return posterior.predict(self.rows(None, points))
        if posterior not in self._standing:
            if len(self._standing) > 2 * self.outputs * self._kernels - 1:
                self._standing = {}  # those of posteriors that a fit or a restart has replaced too
            self._standing[posterior] = Standing(posterior, points)
        return self._standing[posterior].predict()

    def _incumbents(self, belief: PointBelief, question: Question) -> Array:
        """The last point asked for, and the best one so far.

        Best in posterior mean; where candidates are dense incumbents matter little, and the best average rewards, which
        cost O(n) and not O(n^2), will do.
        """
        posterior, domain = belief.answered, self.domain
        points = [] if question.last is None else [question.last]
        if posterior.count:
            dense = isinstance(domain, Box | Space) and self.search.dense(domain)
            quick = dense and isinstance(posterior, PointPosterior)
            means = posterior.average if quick else posterior.landmark_means()
            count = self.search.incumbents
            best = [int(means.argmax())] if count == 1 else np.argsort(-means, kind="stable")[:count]
            points.extend((posterior.points if quick else posterior.landmarks)[best, self.before :])
        return np.array(points).reshape(len(points), domain.dimension)

    def without_failed(self, points: Array, scores: Array) -> Array:
        """The scores, none where a point has failed."""
        if not self._failed:
            return scores
        domain = self.domain
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
        other._failed, other._standing = self._failed.copy(), {}
        return other
