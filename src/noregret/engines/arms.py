"""Arms, with finitely many contexts or none: a table that is searched whole."""

from __future__ import annotations

from typing import final

import numpy as np
import numpy.typing as npt

from ..availability import Available
from ..checks import Array, IndexArray
from ..domain import Arms
from ..errors import InvalidInput
from ..parts.maximizers import best_arm
from ..parts.scores import Improvement, PointwiseScore
from ..posterior import ArmPosterior, DriftingPosterior, posterior_on_arms
from ..randomness import Randomness
from ..record import Trial
from .base import Decision, Engine, Question, Setting, incumbent_of, none_left, size_of_scores, table


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
        score = setting.score
        self._pointwise = score if isinstance(score, PointwiseScore) else None
        self._improves = isinstance(score, Improvement)

    @property
    def posterior(self) -> ArmPosterior | DriftingPosterior:
        """The posterior over the table, of all that was queried."""
        # Where nothing is pending both have the same variance, and that of the answers rounds as if nothing had been.
        return self._posterior if self._queried.count == self._posterior.count else self._queried

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
        return self.posterior.predict([self._cell(trial) for trial in trials])[1]

    def fail(self, trial: Trial) -> None:
        """Set an arm aside, and those that coincide with it."""
        self._failed |= self._arms_at(trial)

    def forgive(self, trial: Trial) -> None:
        """Set them aside no more."""
        self._failed -= self._arms_at(trial)

    def _arms_at(self, trial: Trial) -> set[int]:
        return set(np.flatnonzero((self._arms.points == trial.point).all(axis=1)).tolist())

    def predict(self, points: npt.ArrayLike | None, context: Array | None) -> tuple[Array, Array]:
        """Mean and std of f at some arms, given as points, or at all."""
        cells = None if self._contexts is None else self._cells(context)
        if points is not None:
            arms = self._arms.index(points)
            cells = arms if cells is None else cells[arms]
        mean, std = self._posterior.predict(cells)
        spread = self.posterior
        return mean, std if spread is self._posterior else spread.predict(cells)[1]

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
            none_left(len(self._failed) == len(scores))
            scores[list(self._failed)] = -np.inf
        size = size_of_scores(question.score or self.setting.score, question, self._posterior.prior.size)
        arm = best_arm(scores, size, question.randomness)
        return Decision(self._arms.points[arm], arm, explored=False)

    def anywhere(self, randomness: Randomness) -> Decision:
        """A uniformly drawn arm."""
        left = [arm for arm in range(len(self._arms)) if arm not in self._failed]
        none_left(not left)
        arm = left[int(randomness.generator.integers(len(left)))]
        return Decision(self._arms.points[arm], arm, explored=True)

    def scores_among(self, question: Question, available: Available) -> tuple[Array, float]:
        """Scores of some arms. A draw (GP-TS) is made at all of them, whichever are available."""
        score, arms = self._pointwise if question.score is None else question.score, available.arms
        size = size_of_scores(question.score or self.setting.score, question, self._posterior.prior.size)
        if score is None:
            return self._scores(question)[arms], size
        mean, std = self.predict(None, question.context)
        mean, std = mean[arms], std[arms]
        incumbent = incumbent_of(score, question, lambda: float(mean.max()))
        return score(question.bounds(mean, std), incumbent), size

    def failed_among(self, available: Available) -> npt.NDArray[np.bool_]:
        """Which of some arms have been set aside."""
        return np.isin(np.arange(len(self._arms)) if available.arms is None else available.arms, list(self._failed))

    def _scores(self, question: Question) -> Array:
        """The score of every arm, a fresh array `(N,)`."""
        score = self._pointwise if question.score is None else question.score
        if score is not None:
            mean, std = self.predict(None, question.context)
            incumbent = incumbent_of(score, question, lambda: float(mean.max())) if self._improves else None
            return score(question.bounds(mean, std), incumbent)
        cells = None if self._contexts is None else self._cells(question.context)
        mean, _ = self._posterior.predict(cells)
        spread = self.posterior
        deviation = spread.sample(question.randomness.generator, cells)[0]
        if spread is self._posterior:  # otherwise its own mean is 0
            deviation -= mean
        return np.asarray(mean + question.bounds.width * deviation)  # GP-TS: a draw from GP(mu, v_t^2 cov)

    def copy(self) -> ArmEngine:
        """An independent engine in the same state."""
        other = ArmEngine.__new__(ArmEngine)
        other.__dict__.update(self.__dict__)
        other._posterior, other._failed = self._posterior.copy(), self._failed.copy()
        other._queried = other._posterior if self._queried is self._posterior else self._queried.copy()
        return other
