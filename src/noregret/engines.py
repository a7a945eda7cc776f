"""Where posterior, domain and maximiser meet: one engine for finitely many arms, one for everything else.

An engine knows how a trial enters the posterior, what the bounds are at points or arms, and which point has the best
score. What it keeps besides the posterior is a cache of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, Self, final

import numpy as np
import numpy.typing as npt

from .checks import Array, IndexArray, frozen
from .domain import Arms, Box, Domain, Space
from .errors import InvalidInput, NoRegretError
from .kernels import Kernel
from .parts.confidence import Bounds
from .parts.maximizers import best_arm
from .parts.scores import Improvement, PointwiseScore, Score, ThompsonSample
from .parts.search import Found, PointSearch, Surface, neighbours_on_grid, real_columns
from .posterior import (
    ArmPosterior,
    DriftingPosterior,
    Gradients,
    PointPosterior,
    Posterior,
    Standing,
    posterior_on_arms,
    sample_path,
)
from .randomness import Randomness
from .record import Trial

MOST_DRAWS = 1000  # of a uniform point that has not failed
NEARLY = 0.01  # share of the diagonal within which a point that has only failed is not tried again


class Decision(NamedTuple):
    """What to play next."""

    point: Array
    arm: int | None
    explored: bool


class Setting(NamedTuple):
    """What an engine works with; the same for the whole life of a policy."""

    domain: Domain
    context: Domain | None
    kernel: Kernel
    regularization: float
    score: Score
    search: PointSearch
    hallucinate: bool = False  # whether trials that are asked for shrink the variance before they are answered
    drift: float | None = None  # share of f that is new in each round


class Question(NamedTuple):
    """What is to be decided.

    Attributes:
        round: t, from 1, since the last restart.
        bounds: of f in this round.
        context: known before the decision, or None.
        last: the point asked for before this one, or None.
        best_reward: the best reward that counts, or None before the first.
        randomness: of the trial.
    """

    round: int
    bounds: Bounds
    context: Array | None
    last: Array | None
    best_reward: float | None
    randomness: Randomness

    def centred(self) -> Question:
        """The same question about rewards less the centre of the bounds, which would only cost digits."""
        best = None if self.best_reward is None else self.best_reward - self.bounds.center
        return self._replace(bounds=replace(self.bounds, center=0.0), best_reward=best)


class Engine(ABC):
    """A posterior over a domain, and the choice of a point in it."""

    setting: Setting

    @property
    @abstractmethod
    def posterior(self) -> Posterior:
        """The posterior of f - prior_mean: its variance, after all that was queried."""

    @property
    @abstractmethod
    def answers(self) -> Posterior:
        """The posterior of f - prior_mean after what was learned: the one that the mean is of."""

    @abstractmethod
    def learn(self, trials: list[Trial], targets: list[float]) -> None:
        """Take in trials, in order; those queried before need not be queried again."""

    @abstractmethod
    def revise(self, trial: Trial, old: float, new: float) -> None:
        """Change what a trial counts as."""

    @abstractmethod
    def forget(self, trial: Trial, target: float) -> None:
        """Take a trial of this target back out."""

    @abstractmethod
    def query(self, trial: Trial) -> None:
        """Let a trial shrink the variance, whatever its answer will be; only with `hallucinate`."""

    @abstractmethod
    def unquery(self, trial: Trial) -> None:
        """Take that back."""

    @abstractmethod
    def deviations(self, trials: list[Trial]) -> Array:
        """Posterior std of f at trials, `(n,)`."""

    @abstractmethod
    def fail(self, trial: Trial) -> None:
        """Set a point that has failed aside until it is answered; the same maximum would be asked for forever."""

    @abstractmethod
    def forgive(self) -> None:
        """Set nothing aside any more."""

    @abstractmethod
    def predict(self, points: Any, context: Array | None) -> tuple[Array, Array]:
        """Mean and std of f at points of the domain (all arms, where it has them and None is given)."""

    @abstractmethod
    def answered_means(self, trials: list[Trial]) -> Array:
        """Posterior mean of f - prior_mean at answered trials."""

    @abstractmethod
    def choose(self, question: Question) -> Decision:
        """The point of the best score."""

    @abstractmethod
    def anywhere(self, randomness: Randomness) -> Decision:
        """A uniformly drawn point, for a forced round."""

    def tick(self) -> None:  # noqa: B027 - nothing, where f does not drift
        """One round passes."""

    @abstractmethod
    def copy(self) -> Self:
        """An independent engine in the same state."""


def make_engine(setting: Setting, *, seed: int) -> Engine:
    """The engine that suits the domain and the contexts."""
    if isinstance(setting.domain, Arms) and (setting.context is None or isinstance(setting.context, Arms)):
        return ArmEngine(setting)
    return PointEngine(setting, seed=seed)


@final
class ArmEngine(Engine):
    """Arms, with finitely many contexts or none: a table with a row for each context and a column for each arm."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        domain, context = setting.domain, setting.context
        if not isinstance(domain, Arms) or not isinstance(context, Arms | None):
            raise InvalidInput("An ArmEngine needs arms and, if any, finitely many contexts.")
        self._arms, self._contexts = domain, context
        everything = table(domain, context)
        self._posterior: ArmPosterior | DriftingPosterior
        if setting.drift is None:
            self._posterior = posterior_on_arms(everything, setting.kernel, setting.regularization)
        else:
            self._posterior = DriftingPosterior(everything, setting.kernel, setting.regularization, rate=setting.drift)
        # Its targets are all 0: the variance of f, and draws of f - mu, come from here.
        self._queried = self._posterior.copy() if setting.hallucinate else self._posterior
        self._failed: set[int] = set()

    @property
    def posterior(self) -> ArmPosterior | DriftingPosterior:
        """The posterior over the table, of all that was queried."""
        return self._queried

    @property
    def answers(self) -> ArmPosterior | DriftingPosterior:
        """The posterior over the table, of what was learned."""
        return self._posterior

    def _cell(self, trial: Trial) -> int:
        if trial.arm is None:
            raise InvalidInput(f"Trial {trial.number} has no arm, but the policy plays arms.")
        return self._row(trial.context) * len(self._arms) + trial.arm

    def _row(self, context: Array | None) -> int:
        return 0 if self._contexts is None or context is None else int(self._contexts.index(context[None])[0])

    def learn(self, trials: list[Trial], targets: list[float]) -> None:
        """Take in trials, one by one."""
        for trial, target in zip(trials, targets, strict=True):
            self._posterior.append(self._cell(trial), target)
            if self._failed and trial.reward is not None:
                self._failed.discard(int(trial.arm or 0))

    def revise(self, trial: Trial, old: float, new: float) -> None:
        """Change what a trial counts as."""
        if old != new:
            self._posterior.revise(self._cell(trial), old, new)

    def forget(self, trial: Trial, target: float) -> None:
        """Take a trial back out."""
        self._posterior.forget(self._cell(trial), target)

    def query(self, trial: Trial) -> None:
        """Let a trial shrink the variance."""
        self._queried.append(self._cell(trial), 0.0)

    def unquery(self, trial: Trial) -> None:
        """Take that back."""
        self._queried.forget(self._cell(trial), 0.0)

    def tick(self) -> None:
        """One round passes, where f drifts."""
        if isinstance(self._posterior, DriftingPosterior):
            self._posterior.tick()

    def deviations(self, trials: list[Trial]) -> Array:
        """Posterior std of f at trials."""
        return self._queried.predict([self._cell(trial) for trial in trials])[1]

    def fail(self, trial: Trial) -> None:
        """Set an arm aside."""
        if trial.arm is not None:
            self._failed.add(trial.arm)

    def forgive(self) -> None:
        """Set nothing aside any more."""
        self._failed = set()

    def predict(self, points: npt.ArrayLike | None, context: Array | None) -> tuple[Array, Array]:
        """Mean and std of f at some arms, given as points, or at all."""
        cells = None if self._contexts is None else self._cells(context)
        if points is not None:
            arms = self._arms.index(points)
            cells = arms if cells is None else cells[arms]
        mean, std = self._posterior.predict(cells)
        return mean, std if self._queried is self._posterior else self._queried.predict(cells)[1]

    def _cells(self, context: Array | None) -> IndexArray:
        """Where the arms stand under a context."""
        start = self._row(context) * len(self._arms)
        return np.arange(start, start + len(self._arms))

    def answered_means(self, trials: list[Trial]) -> Array:
        """Posterior mean at answered trials."""
        return self._posterior.predict([self._cell(trial) for trial in trials])[0]

    def choose(self, question: Question) -> Decision:
        """The best arm, ties broken at random."""
        question = question.centred()
        scores = self._scores(question)
        if self._failed:
            _none_left(len(self._failed) == len(scores))
            scores[list(self._failed)] = -np.inf
        size = _size(self.setting.score, question, self._posterior.prior.size)
        arm = best_arm(scores, size, question.randomness)
        return Decision(self._arms.points[arm], arm, explored=False)

    def anywhere(self, randomness: Randomness) -> Decision:
        """A uniformly drawn arm."""
        left = [arm for arm in range(len(self._arms)) if arm not in self._failed]
        _none_left(not left)
        arm = left[int(randomness.generator.integers(len(left)))]
        return Decision(self._arms.points[arm], arm, explored=True)

    def _scores(self, question: Question) -> Array:
        """The score of every arm, a fresh array `(N,)`."""
        score = self.setting.score
        if isinstance(score, PointwiseScore):
            envelope = question.bounds(*self.predict(None, question.context))
            return score(envelope, _incumbent(score, question, envelope.mean))
        cells = None if self._contexts is None else self._cells(question.context)
        mean, _ = self._posterior.predict(cells)
        deviation = self._queried.sample(question.randomness.generator, cells)[0]
        if self._queried is self._posterior:
            deviation -= mean
        return np.asarray(mean + question.bounds.width * deviation)  # GP-TS: a draw from GP(mu, v_t^2 cov)

    def copy(self) -> ArmEngine:
        """An independent engine in the same state."""
        other = ArmEngine.__new__(ArmEngine)
        other.__dict__.update(self.__dict__)
        other._posterior, other._failed = self._posterior.copy(), self._failed.copy()
        other._queried = other._posterior if self._queried is self._posterior else self._queried.copy()
        return other


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
        self._failed: list[Array] = []
        self._standing: Standing | None = None
        self._standing_queried: Standing | None = None
        self._candidates: Array | None = None
        self.found: Found | None = None  # how the last search ended

    @property
    def posterior(self) -> PointPosterior:
        """The posterior over (context, point), of all that was queried."""
        return self._queried

    @property
    def answers(self) -> PointPosterior:
        """The posterior over (context, point), of what was learned."""
        return self._posterior

    def learn(self, trials: list[Trial], targets: list[float]) -> None:
        """Take in trials, all at once."""
        self._posterior.extend(np.array([row_of(trial) for trial in trials]), targets)
        if self._failed:
            answered = {trial.point.tobytes() for trial in trials if trial.reward is not None}
            self._failed = [point for point in self._failed if point.tobytes() not in answered]

    def revise(self, trial: Trial, old: float, new: float) -> None:
        """Change what a trial counts as."""
        if old != new:
            self._posterior.revise(row_of(trial), old, new)

    def forget(self, trial: Trial, target: float) -> None:
        """Take a trial back out."""
        self._posterior.forget(row_of(trial), target)

    def query(self, trial: Trial) -> None:
        """Let a trial shrink the variance."""
        self._queried.append(row_of(trial), 0.0)

    def unquery(self, trial: Trial) -> None:
        """Take that back."""
        self._queried.forget(row_of(trial), 0.0)

    def deviations(self, trials: list[Trial]) -> Array:
        """Posterior std of f at trials."""
        return self._queried.predict(np.array([row_of(trial) for trial in trials]))[1]

    def fail(self, trial: Trial) -> None:
        """Set the neighbourhood of a point aside."""
        self._failed.append(trial.point)

    def forgive(self) -> None:
        """Set nothing aside any more."""
        self._failed = []

    def predict(self, points: Any, context: Array | None) -> tuple[Array, Array]:
        """Mean and std of f at points of the domain."""
        return self._moments(_rows(context, self._inside(points)))

    def _moments(self, rows: Array) -> tuple[Array, Array]:
        if self._queried is self._posterior:
            return self._posterior.predict(rows)
        return self._posterior.mean(rows), self._queried.predict(rows)[1]

    def _inside(self, points: Any) -> Array:
        domain = self.setting.domain
        if points is not None:
            return domain.inside("points", points)
        if not isinstance(domain, Arms):
            raise InvalidInput("This domain is continuous: say at which points, `(n, d)`, to predict.")
        return domain.points

    def answered_means(self, trials: list[Trial]) -> Array:
        """Posterior mean at answered trials."""
        return self._posterior.mean(np.array([row_of(trial) for trial in trials]))

    def choose(self, question: Question) -> Decision:
        """The best arm, or the best point that the search finds."""
        question = question.centred()
        domain = self.setting.domain
        surface = self._surface(question)
        if isinstance(domain, Arms):
            return self._choose_arm(domain, surface, question)
        standing, scores = self._standing_scores(domain, surface, question)
        _none_left(bool(np.isneginf(scores).all()))
        self.found = self.setting.search.maximize(
            surface,
            domain,
            standing=standing,
            scores=scores,
            incumbents=self._incumbents(question),
            rng=lambda: question.randomness.generator,
        )
        return Decision(frozen(self._placed(self.found.point, surface, question)), None, explored=False)

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
        raise _nothing_left()

    def _choose_arm(self, domain: Arms, surface: Surface, question: Question) -> Decision:
        scores = surface.values(domain.points)
        _none_left(bool(np.isneginf(scores).all()))
        prior = float(np.sqrt(self.setting.kernel.diagonal(_rows(question.context, domain.points)).max()))
        arm = best_arm(scores, _size(self.setting.score, question, prior), question.randomness)
        return Decision(domain.points[arm], arm, explored=False)

    def _surface(self, question: Question) -> Surface:
        """What is maximised: the score, or a path drawn from the posterior."""
        score, bounds, context = self.setting.score, question.bounds, question.context
        if isinstance(score, ThompsonSample):
            return self._path_surface(question)
        if not isinstance(score, PointwiseScore):
            raise InvalidInput(f"{score!r} is neither a PointwiseScore nor a ThompsonSample.")
        incumbent = _incumbent(score, question, lambda: self._means_of_observed(question))

        def values(points: Array) -> Array:
            envelope = bounds(*self._moments(_rows(context, points)))
            return self._without_failed(points, score(envelope, incumbent))

        def slopes(points: Array) -> tuple[Array, Array]:
            at = self._gradients(_rows(context, points))
            envelope = bounds(at.mean, at.std)
            by_mean, by_std = score.partials(envelope, incumbent)
            gradient = by_mean[:, None] * at.mean_gradient + by_std[:, None] * at.std_gradient
            scores = self._without_failed(points, score(envelope, incumbent))
            return scores, bounds.unit * gradient[:, -points.shape[1] :]

        return Surface(values, slopes)

    def _gradients(self, rows: Array) -> Gradients:
        at = self._queried.gradients(rows)
        if self._queried is self._posterior:
            return at
        mean, slope = self._posterior.mean_gradient(rows)
        return at._replace(mean=mean, mean_gradient=slope)

    def _path_surface(self, question: Question) -> Surface:
        """GP-TS: a draw from GP(mu, v_t^2 cov)."""
        rng, context = question.randomness.generator, question.context
        path = sample_path(self._queried, rng).widened(question.bounds.width)
        # Of what is queried the mean is 0: then the mean of what is answered is still to be added.
        apart = self._queried is not self._posterior

        def values(points: Array) -> Array:
            rows = _rows(context, points)
            drawn = path(rows)
            return self._without_failed(points, drawn + self._posterior.mean(rows) if apart else drawn)

        def slopes(points: Array) -> tuple[Array, Array]:
            rows = _rows(context, points)
            drawn, gradients = path.slopes(rows)
            if apart:
                means, mean_gradients = self._posterior.mean_gradient(rows)
                drawn, gradients = drawn + means, gradients + mean_gradients
            return self._without_failed(points, drawn), gradients[:, -points.shape[1] :]

        return Surface(values, slopes)

    def _means_of_observed(self, question: Question) -> Array:
        """Posterior means, reward units, of the points observed so far (under this context); of none before."""
        bounds, context = question.bounds, question.context
        if context is None or not self._posterior.rank:
            return bounds.center + bounds.unit * self._posterior.observed_means()
        points = self._posterior.points[:, len(context) :]
        return bounds.center + bounds.unit * self._posterior.mean(_rows(context, points))

    def _placed(self, point: Array, surface: Surface, question: Question) -> Array:
        """The point, or of the discretisation D_t, where one is wanted, the best next to it."""
        score, domain = self.setting.score, self.setting.domain
        if not isinstance(score, ThompsonSample) or score.grid is None or isinstance(domain, Arms):
            return point.copy()
        near = neighbours_on_grid(point, domain.lower, domain.upper, score.grid * question.round**2)
        return np.asarray(near[int(surface.values(near).argmax())])

    def _standing_scores(self, domain: Box | Space, surface: Surface, question: Question) -> tuple[Array, Array]:
        score = self.setting.score
        if self._candidates is None:
            self._candidates = self.setting.search.standing(domain, self._seed)
        if question.context is not None or not isinstance(score, PointwiseScore):
            return self._candidates, surface.values(self._candidates)  # nothing can be kept from round to round
        if self._standing is None:
            self._standing = Standing(self._posterior, self._candidates)
        incumbent = _incumbent(score, question, lambda: self._means_of_observed(question))
        mean, std = self._standing.predict()
        if self._queried is not self._posterior:
            if self._standing_queried is None:
                self._standing_queried = Standing(self._queried, self._candidates)
            std = self._standing_queried.predict()[1]
        scores = score(question.bounds(mean, std), incumbent)
        return self._candidates, self._without_failed(self._candidates, scores)

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
        for failed in self._failed:
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


def _incumbent(score: PointwiseScore, question: Question, means: Array | Callable[[], Array]) -> float | None:
    """What an improvement is measured against; before anything was observed, what is expected beforehand."""
    if not isinstance(score, Improvement):
        return None
    if score.incumbent == "reward":
        return question.bounds.center if question.best_reward is None else question.best_reward
    known = means() if callable(means) else means
    return float(known.max()) if len(known) else question.bounds.center


def _size(score: Score, question: Question, prior_std: float) -> float:
    """What differences of scores are measured against: the prior standard deviation, or 1 for pure numbers."""
    if not score.in_rewards:
        return 1.0
    return prior_std * question.bounds.unit if isinstance(score, PointwiseScore) else prior_std


def row_of(trial: Trial) -> Array:
    """What a kernel sees of a trial: (context, point)."""
    return np.asarray(_rows(trial.context, trial.point[None])[0])


def _rows(context: Array | None, points: Array) -> Array:
    if context is None:
        return points
    return np.asarray(np.concatenate([np.broadcast_to(context, (len(points), len(context))), points], axis=1))


def table(domain: Domain, context: Domain | None) -> Arms:
    """Every (context, arm), contexts outermost; errors where there are infinitely many."""
    if not isinstance(domain, Arms) or not isinstance(context, Arms | None):
        raise InvalidInput("There is no table of all (context, arm) on a continuous domain.")
    if context is None:
        return domain
    return Arms(np.concatenate([_rows(each, domain.points) for each in context.points]))


def _none_left(is_so: bool) -> None:
    if is_so:
        raise _nothing_left()


def _nothing_left() -> NoRegretError:
    return NoRegretError(
        "Everything that could be asked for has failed, so there is nothing left. Look at the reasons in "
        "`study.trials`: usually the objective cannot run at all. After mending it, start a study with a new name."
    )
