"""What an engine is asked and what it answers.

An engine knows how a trial enters the posterior, what the bounds are at points or arms, and which point has the best
score. What it keeps besides the posterior is a cache of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ..availability import Available
from ..checks import Array, frozen
from ..domain import Arms, Domain
from ..errors import InvalidInput, NoRegretError
from ..kernels import Kernel
from ..parts.confidence import Bounds
from ..parts.maximizers import best_arm
from ..parts.scores import Improvement, PointwiseScore, Score
from ..parts.search import PointSearch
from ..posterior import Posterior
from ..randomness import Randomness
from ..record import Trial


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
        best_reward: the best reward that counts under this very context, or None before the first.
        randomness: of the trial.
        score: what makes a point attractive in this round; None for the policy's own.
        norm_growth: how many times larger the guess of the norm in force is than the first, where it is guessed.
    """

    round: int
    bounds: Bounds
    context: Array | None
    last: Array | None
    best_reward: float | None
    randomness: Randomness
    score: PointwiseScore | None = None
    norm_growth: float = 1.0

    def centred(self) -> Question:
        """The same question about rewards less the centre of the bounds, which would only cost digits."""
        if not self.bounds.center:
            return self
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
        """Set the point of a trial aside, until it is forgiven; the same maximum would be asked for forever."""

    @abstractmethod
    def forgive(self, trial: Trial) -> None:
        """Set the point of a trial aside no more."""

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

    @abstractmethod
    def scores_among(self, question: Question, available: Available) -> tuple[Array, float]:
        """The score of each available point, `(n,)`, failed or not, and the size that differences of scores have.

        Improvements are measured against the best of these points. See `size_of_scores`.
        """

    @abstractmethod
    def failed_among(self, available: Available) -> npt.NDArray[np.bool_]:
        """Which of the available points have been set aside, `(n,)`."""

    def choose_among(self, question: Question, available: Available) -> Decision:
        """The available point of the best score, ties broken at random."""
        question = question.centred()
        scores, size = self.scores_among(question, available)
        scores[self._set_aside(available)] = -np.inf
        return _decision(available, best_arm(scores, size, question.randomness), explored=False)

    def anywhere_among(self, randomness: Randomness, available: Available) -> Decision:
        """A uniformly drawn one of the available points, for a forced round."""
        left = np.flatnonzero(~self._set_aside(available))
        return _decision(available, int(left[randomness.generator.integers(len(left))]), explored=True)

    def _set_aside(self, available: Available) -> npt.NDArray[np.bool_]:
        """Which of the available points have failed; errors if all have."""
        failed = self.failed_among(available)
        if failed.all():
            raise NoRegretError(
                f"All of the {len(failed)} points that may be played now have failed, and a point that has only failed "
                "is not asked for again. Ask when others are available, or look at the reasons in `study.trials`."
            )
        return failed

    def tick(self) -> None:  # noqa: B027 - nothing, where f does not drift
        """One round passes."""

    @abstractmethod
    def copy(self) -> Self:
        """An independent engine in the same state."""


def _decision(available: Available, place: int, *, explored: bool) -> Decision:
    arm = None if available.arms is None else int(available.arms[place])
    return Decision(frozen(available.points[place].copy()), arm, explored)


def incumbent_of(score: Score, question: Question, best_mean: Callable[[], float]) -> float | None:
    """What an improvement is measured against, reward units; see `Improvement.incumbent`.

    Args:
        score: None is returned where it measures none.
        question: what is to be decided.
        best_mean: the highest posterior mean over the domain under the question's context, in the posterior's units.
    """
    if not isinstance(score, Improvement):
        return None
    bounds = question.bounds
    if score.incumbent == "reward":
        return bounds.center if question.best_reward is None else question.best_reward
    return bounds.center + bounds.unit * best_mean()


def size_of_scores(score: Score, question: Question, prior_std: float) -> float:
    """What differences of scores are measured against: the prior standard deviation, or 1 for pure numbers."""
    if not score.in_rewards:
        return 1.0
    return prior_std * question.bounds.unit if isinstance(score, PointwiseScore) else prior_std


def row_of(trial: Trial) -> Array:
    """What a kernel sees of a trial: (context, point)."""
    return np.asarray(rows_of(trial.context, trial.point[None])[0])


def rows_of(context: Array | None, points: Array) -> Array:
    """What a kernel sees of points `(n, d)` under a context: (context, point), `(n, c + d)`."""
    if context is None:
        return points
    return np.asarray(np.concatenate([np.broadcast_to(context, (len(points), len(context))), points], axis=1))


def table(domain: Domain, context: Domain | None) -> Arms:
    """Every (context, arm), contexts outermost; errors where there are infinitely many."""
    if not isinstance(domain, Arms) or not isinstance(context, Arms | None):
        raise InvalidInput("There is no table of all (context, arm) on a continuous domain.")
    if context is None:
        return domain
    return Arms(np.concatenate([rows_of(each, domain.points) for each in context.points]))


def none_left(is_so: bool) -> None:
    """An error where everything has failed."""
    if is_so:
        raise nothing_left()


def nothing_left() -> NoRegretError:
    """That error."""
    return NoRegretError(
        "Everything that could be asked for has failed, so there is nothing left. Look at the reasons in "
        "`study.trials`: usually the objective cannot run at all. After mending it, start a study with a new name."
    )
