"""The engine for boxes and spaces of parameters, and for any domain under continuous contexts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, cast, final
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from ..._utils.checks import Array, frozen
from ..._utils.copying import independent
from ..._utils.process_setting import one_thread, with_one_thread
from ..._utils.randomness import Randomness
from ...domains.domain import Arms, Box, Domain, Space, enclosing_box
from ...domains.parameters import Choice
from ...domains.search.arms import best_arm, checked_scores
from ...domains.search.boxes import AcquisitionFunction, Found, PointSearch, real_columns
from ...domains.search.designs import uniform
from ...domains.search.feasible import kept
from ...errors import InvalidInput
from ...gp import AtPoints, AveragedPoints, CandidateMoments, PointBelief, PointPosterior, RepeatedPlays, Terms
from ...gp.choice import posterior_at_points
from ...gp.context_bank import ContextPosterior
from ...gp.feature_maps import ArmColumns, arm_columns
from ...gp.tidal import TidalPosterior
from ...kernels import Kernel, Matern
from ...slots.envelope import Bounds, Envelope
from ...slots.sketch import Sketch
from ...storage.record import Trial
from ..availability import Available
from .arms import ArmEngine
from .base import Decision, Engine, Prior, Question, Units, none_left, nothing_left, row_of, rows_of

if TYPE_CHECKING:
    from .rounds import PointRound

MOST_DRAWS = 1000  # attempts to draw a uniform point that has not failed
NEARLY = 0.01  # share of the diagonal: points so near to one that has only failed are not played
LEAST_EXTENT = 1e-9  # of the points that keep known limits, as a share of a range
SHORT = 1e-3  # rounds: the lengthscale in time of a function that is new in each round

Standing = WeakKeyDictionary[PointPosterior, CandidateMoments]


def in_time(kernel: Kernel, rate: float, columns: int) -> Kernel:
    """Returns the kernel k(x, x') (1 - rate)^{|s - s'| / 2} on rows (s, x).

    See Bogunovic, Scarlett & Cevher 2016, section 3.2.
    """
    scale = -2.0 / math.log1p(-rate) if rate < 1.0 else SHORT
    return Matern(0.5, max(scale, SHORT)).on(0) * kernel.on(*range(1, columns))


@final
class PointEngine(Engine[PointBelief]):
    """The engine for boxes and spaces of parameters, and for any domain under continuous contexts.

    Cells are rows (context, point).

    Attributes:
        found: the result of the last search, or None.
    """

    OWNED = ("failed",)
    blas = one_thread

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
        self.failed: dict[bytes, Array] = {}
        self._standing: Standing = WeakKeyDictionary()  # predictions at the candidates, by posterior; they end with it
        self._followed = 0  # posteriors since all predictions were last dropped
        self._arms: dict[int, list[ArmColumns]] = {}  # columns that hold arms, by the number of columns of a row
        self._kernels = 1  # largest number of kernels of one output
        self._candidates: Array | None = None
        self.found: Found | None = None
        with one_thread:  # The first time takes milliseconds, which no decision should.
            pass

    def fresh(self, prior: Prior, *, apart: bool = False) -> PointBelief:
        """Returns an empty belief over (context, point)."""
        kernel, regularization, drift, _, bank, _, models = prior
        if models is not None and isinstance(self.domain, Arms):
            heights = self._heights()
            of_arms = ContextPosterior(
                kernel, self.domain, self.before, models, regularization=regularization, heights=heights
            )
            belief = TidalPosterior(of_arms) if self.tides else of_arms
            return PointBelief(cast(Any, belief))  # On arms nobody asks for gradients or landmarks.
        columns = self.domain.dimension + (0 if self.context is None else self.context.dimension)
        if bank is not None:
            each = bank.posteriors(lambda one, ridge: self._posterior(one, columns, ridge), regularization)
            return PointBelief(AveragedPoints(bank, each), apart=apart)
        if isinstance(drift, tuple):
            raise InvalidInput("Several rates of drift are compared on finitely many arms: elsewhere take `Discount`.")
        if drift is not None:
            columns += 1
            kernel = in_time(kernel, drift, columns)
        if self.runs:  # there are few distinct points, so the exact posterior is quick for every kernel
            return PointBelief(PointPosterior(kernel, columns, regularization), apart=apart)
        return PointBelief(self._posterior(kernel, columns, regularization), apart=apart)

    def _heights(self) -> Array | None:
        """Returns the largest value of each column of contexts that is the indicator of a level, and 0 of the others.

        These are the columns of parameters that may be unknown, `(c,)`. Without any, the result is None.
        """
        space = self.context
        if not isinstance(space, Space) or not space.unknown:
            return None
        heights = np.zeros(self.before)
        for parameter, columns in space.columns():
            if parameter.unknown:
                first = columns.start + (not isinstance(parameter, Choice))
                heights[int(self.drifts) + first : int(self.drifts) + columns.stop] = space.upper[first : columns.stop]
        return heights

    def _posterior(self, kernel: Kernel, columns: int, regularization: float) -> AtPoints:
        if columns not in self._arms:
            self._arms[columns] = arm_columns(self.domain, columns)
        return posterior_at_points(kernel, columns, regularization, terms=self._terms, arms=self._arms[columns])

    @property
    def before(self) -> int:
        """The number of columns before those of the point: the round if f drifts, and the context."""
        return int(self.drifts) + (0 if self.context is None else self.context.dimension)

    def rows(self, context: Array | None, points: Array) -> Array:
        """Returns the rows of points `(n, d)` now: (context, point), after the round if f drifts."""
        rows = rows_of(context, points)
        return rows if not self.drifts else np.hstack([np.full((len(rows), 1), float(self.now)), rows])

    def cell(self, trial: Trial) -> Array:
        """Returns the row of a trial."""
        return row_of(trial)

    def entry(self, trial: Trial) -> Array | RepeatedPlays:
        """Returns the row of a trial, after its round if f drifts or a level moves."""
        if trial.repeats > 1:
            return RepeatedPlays(row_of(trial), trial.times, trial.scatter)
        return (
            row_of(trial) if not (self.drifts or self.tides) else np.concatenate([[float(trial.number)], row_of(trial)])
        )

    def cell_now(self, trial: Trial) -> Array:
        """Returns the row of a trial, after the present round if f drifts."""
        return np.asarray(self.rows(trial.context, trial.point[None])[0])

    def cells_of(self, points: Array, contexts: Array | None) -> Array:
        """Returns the rows of points now, each under its context."""
        return self.rows(None, points if contexts is None else np.hstack([contexts, points]))

    def prior_covariance(self, kernel: Kernel, cells: list[Array], others: list[Array]) -> Array:
        """Returns the prior covariance between rows, `(a, b)`."""
        return kernel(np.array(cells), np.array(others))

    def largest_variance(self, kernel: Kernel) -> float:
        """Returns the largest prior variance at the ends of the domain."""
        ends = enclosing_box(self.domain, self.context)
        return float(kernel.diagonal(np.stack([ends.lower, ends.upper])).max())

    @with_one_thread
    def means(self, belief: PointBelief, trials: list[Trial]) -> Array:
        """Returns posterior means at answered trials. The cost is O(n) for trials in the data."""
        return belief.observed.means_of(self._rows_now(trials))

    @with_one_thread
    def deviations(self, belief: PointBelief, trials: list[Trial]) -> Array:
        """Returns posterior deviations of f at trials."""
        return belief.spread.predict(self._rows_now(trials))[1]

    def _rows_now(self, trials: list[Trial]) -> Array:
        """Returns `cell_now` of each trial, `(n, c + d)`."""
        contexts = None if self.context is None else np.array([trial.context for trial in trials])
        return self.cells_of(np.array([trial.point for trial in trials]), contexts)

    def most_deviations(self, belief: PointBelief, trials: list[Trial]) -> Array:
        """Returns upper bounds of the posterior deviations at answered trials."""
        spread = belief.spread
        if not isinstance(spread, PointPosterior):
            return self.deviations(belief, trials)
        return spread.most_deviations(self._rows_now(trials))

    @with_one_thread
    def envelope(
        self, belief: PointBelief, bounds: Bounds, units: Units, points: Any, context: Array | None
    ) -> Envelope:
        """Returns the bounds of f at points of the domain."""
        rows = self.rows(context, self._inside(points))
        return bounds(*units.rewards(*belief.predict(rows)), rows)

    def _inside(self, points: Any) -> Array:
        if self.strays and isinstance(points, np.ndarray) and points.ndim == 2:  # Of trials, which may lie outside.
            space = cast(Space, self.domain)
            beyond = np.any((points < space.lower) | (points > space.upper), axis=1, keepdims=True)
            return np.where(beyond, points, space.snap(points))
        if points is not None:
            return self.domain.inside("points", points)
        if not isinstance(self.domain, Arms):
            raise InvalidInput("`points` is missing: the domain is continuous, and has no list of all points.")
        return self.domain.points

    def candidates(self) -> Array:
        """Returns the arms, or the candidates with which a search begins."""
        return self.domain.points if isinstance(self.domain, Arms) else self._search_candidates(self.domain)

    def set_aside(self, trial: Trial) -> None:
        """Sets the neighbourhood of a failed point aside."""
        self.failed[trial.point.tobytes()] = trial.point

    def allow(self, trial: Trial) -> None:
        """Allows the neighbourhood of a point again."""
        self.failed.pop(trial.point.tobytes(), None)

    def allow_all(self) -> None:
        """Allows all points again."""
        self.failed = {}

    @with_one_thread
    def choose(self, belief: PointBelief, question: Question, available: Available | None) -> Decision:
        """Returns the best arm, or the best point that the search finds."""
        question = question.centred()
        domain, score = self.domain, question.score
        if isinstance(domain, Arms) or available is not None:
            return self._choose_one(belief, question, available)
        points = self._search_candidates(domain)
        view, surface = self._surface(belief, question, points)
        limits = question.limits
        scores = checked_scores(view.of_candidates(surface), len(points))
        none_left(bool(np.isneginf(scores).all()))
        self.found = self.search.maximize(
            surface,
            domain,
            candidates=points,
            scores=scores,
            incumbents=self._incumbents(belief, question, view),
            rng=lambda: question.randomness.draws,
        )
        placed = score.placed(self.found.point, surface, view)
        if limits is not None:
            placed = limits.rule.placed(placed, surface, view)
        if self.search.apart and self.context is None and (limits is None or limits.rule.movable):
            placed = self.search.moved_apart(
                placed, surface, domain, candidates=points, scores=scores,
                tried=question.tried(), rng=lambda: question.randomness.draws,
            )  # fmt: skip
        if domain.limits is not None and not domain.limits.holds(placed[None])[0]:
            placed = np.concatenate([kept(domain, placed[None], self.found.point[None]), self.found.point[None]])[0]
        none_left(bool(self.failed) and bool(np.isneginf(surface.values(placed[None]))[0]))
        return Decision(frozen(placed), None, explored=False)

    def _choose_one(self, belief: PointBelief, question: Question, available: Available | None) -> Decision:
        """Returns the best of finitely many points. Ties are broken at random."""
        view = self.view(belief, question, available)
        view.leads = not self.failed and question.limits is None  # The best one must not be ruled out later.
        scores, size = self._scores(view, question), self.size(belief, question, available)
        if available is not None:
            return self.best_among(scores, size, question.randomness, available)
        none_left(bool(np.isneginf(scores).all()))
        arm = best_arm(scores, size, question.randomness)
        return Decision(view.points[arm], arm, explored=False)

    @with_one_thread
    def scores(self, belief: PointBelief, question: Question, available: Available | None) -> tuple[Array, float]:
        """Returns the scores of all available points, and the size by which score differences are judged."""
        scores = self._scores(self.view(belief, question, available), question)
        return scores, self.size(belief, question, available)

    def _scores(self, view: PointRound, question: Question) -> Array:
        """Returns the scores of the points of a view, `(n,)`."""
        scores = checked_scores(question.score.on_points(view).values(view.points), len(view.points))
        if question.limits is not None:
            scores = checked_scores(question.limits.rule.judged(scores, view), len(view.points))
        return scores

    def view(self, belief: PointBelief, question: Question, available: Available | None) -> PointRound:
        """Returns the view of a round on the arms, or on the available points."""
        from .rounds import PointRound

        points = self.candidates() if available is None else available.points
        return PointRound(self, belief, question, points, alone=True)

    def size(self, belief: PointBelief, question: Question, available: Available | None) -> float:
        """Returns the largest prior standard deviation, or 1 for a score that is not in reward units."""
        if not question.score.in_rewards:
            return 1.0
        rows = self.rows(question.context, self.candidates() if available is None else available.points)
        return belief.observed.size_at(rows) * question.units.unit

    def _surface(
        self, belief: PointBelief, question: Question, points: Array
    ) -> tuple[PointRound, AcquisitionFunction]:
        """Returns the view of a round on a continuous domain, and the acquisition function to maximise."""
        from .rounds import PointRound

        view = PointRound(self, belief, question, points)
        surface = question.score.on_points(view)
        return view, surface if question.limits is None else question.limits.rule.on_points(surface, view)

    @with_one_thread
    def searched(self, belief: PointBelief, question: Question, point: Array) -> tuple[Array, Array]:
        """Returns the point with the candidates and the best points so far, and the scores of all."""
        standing = self.candidates()
        view, surface = self._surface(belief, question, standing)
        points = np.concatenate([point[None], standing, self._incumbents(belief, question, view)])
        return points, surface.values(points)

    def draw_uniform(self, randomness: Randomness, available: Available | None) -> Decision:
        """Returns a uniformly drawn point or arm that is not set aside."""
        if available is not None:
            return self.draw_uniform_among(randomness, available)
        domain, rng = self.domain, randomness.draws
        for _ in range(MOST_DRAWS):
            if isinstance(domain, Arms):
                arm = rng.integers(len(domain))
                decision = Decision(domain.points[arm], arm, explored=True)
            else:
                point = uniform(domain, 1, rng)[0]
                decision = Decision(frozen(point), None, explored=True)
            if not np.isneginf(self.without_failed(decision.point[None], np.zeros(1)))[0]:
                return decision
        raise nothing_left()

    def failed_among(self, available: Available) -> npt.NDArray[np.bool_]:
        """Returns which available points are close to a failed one."""
        return np.isneginf(self.without_failed(available.points, np.zeros(len(available.points))))

    def _search_candidates(self, domain: Box | Space) -> Array:
        """Returns the candidates with which the search begins."""
        if self._candidates is None:
            self._candidates = self.search.candidate_points(domain, self._seed)
        return self._candidates

    def predict_candidates(self, belief: PointBelief, points: Array) -> tuple[Array, Array]:
        """Returns mean and std at the arms or the candidates, as fresh arrays.

        They are updated from round to round, not computed anew.
        """
        spread, weights = belief.spread, belief.weights
        if weights is not None:
            return self._moments_of(spread, points).predict(weights=weights)
        moments = self._predicted(belief.observed, points)
        return moments if spread is belief.observed else (moments[0], self._predicted(spread, points)[1])

    def _predicted(self, posterior: AtPoints | AveragedPoints, points: Array) -> tuple[Array, Array]:
        if isinstance(posterior, AveragedPoints):
            self._kernels = len(posterior.each)
            return posterior.mixed(lambda each: self._predicted(each, points), points)
        if not isinstance(posterior, PointPosterior):  # for these an update is as dear as a new prediction
            return posterior.predict(self.rows(None, points))
        return self._moments_of(posterior, points).predict()

    def _moments_of(self, posterior: Any, points: Array) -> CandidateMoments:
        """Returns the predictions at the candidates that follow an exact posterior."""
        if posterior not in self._standing:
            if self._followed > 2 * self.outputs * self._kernels - 1:
                self._standing, self._followed = WeakKeyDictionary(), 0
            self._standing[posterior] = CandidateMoments(posterior, points)
            self._followed += 1
        return self._standing[posterior]

    def _incumbents(self, belief: PointBelief, question: Question, view: PointRound) -> Array:
        """Returns the point of the latest trial, and the best points so far by posterior mean, or those of the front.

        If candidates are dense, incumbents matter little. Then the best average rewards are used, which cost O(n) in
        place of O(n^2).
        """
        posterior, domain = belief.observed, self.domain
        dense = isinstance(domain, Box | Space) and self.search.dense(domain)
        if (own := question.score.incumbents(view, dense=dense)) is not None:
            return own
        points = [] if question.last is None else [question.last]
        if posterior.count:
            quick = dense and isinstance(posterior, PointPosterior)
            means = posterior.average if quick else posterior.landmark_means()
            count = self.search.incumbents
            if domain.limits is not None:
                holds = domain.limits.holds(domain.snap(posterior.landmarks[:, self.before :]))
                means = np.where(holds, means, -np.inf)
            best = [int(means.argmax())] if count == 1 else np.argsort(-means, kind="stable")[:count]
            points.extend((posterior.points if quick else posterior.landmarks)[best, self.before :])
        found = np.array(points).reshape(len(points), domain.dimension)
        return domain.snap(found) if self.strays and isinstance(domain, Space) else found

    def without_failed(self, points: Array, scores: Array) -> Array:
        """Returns the scores, with -inf at points close to a failed one."""
        if not self.failed:
            return scores
        domain = self.domain
        if isinstance(domain, Arms):
            real, unit = np.zeros(domain.dimension, dtype=bool), np.ones(domain.dimension)
        else:
            real, unit = real_columns(domain), domain.upper - domain.lower
            if domain.limits is not None:  # What is left may be smaller than that neighbourhood.
                unit = np.maximum(np.ptp(self._search_candidates(domain), axis=0), LEAST_EXTENT)
        for failed in self.failed.values():
            offsets = np.abs(points - failed) / unit
            near = np.linalg.norm(offsets[:, real], axis=1) <= NEARLY * np.sqrt(domain.dimension)
            scores = np.where(near & (offsets[:, ~real] == 0.0).all(axis=1), -np.inf, scores)
        return scores

    def copy(self) -> Self:
        """Returns an independent engine, which values its candidates anew."""
        return independent(self, self.OWNED, fresh={"_standing": WeakKeyDictionary(), "_followed": 0})


def make_engine(
    domain: Domain,
    context: Domain | None,
    search: PointSearch,
    sketch: Sketch | None = None,
    *,
    seed: int,
    by_rows: bool = False,
) -> Engine[Any]:
    """Returns the engine for a domain and contexts. If `by_rows`, cells are rows of coordinates on every domain."""
    if not by_rows and isinstance(domain, Arms) and isinstance(context, Arms | None):
        return ArmEngine(domain, context)
    return PointEngine(domain, context, search, seed=seed, sketch=None if sketch is None else sketch.terms)
