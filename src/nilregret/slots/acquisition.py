"""Views of a round from which a score makes its acquisition function."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, IndexArray, frozen
from .._utils.randomness import Randomness
from ..domains.domain import Domain
from ..domains.search.boxes import AcquisitionFunction
from .envelope import DualState, Envelope
from .propensities import ScoreLaw

Mask = npt.NDArray[np.bool_]

LOG_RESOLUTION = 0.003  # nats: a third of a percent of an expected improvement is not worth another step


class Pointwise(Protocol):
    """A score of the bounds at one point, with derivatives in mean and standard deviation if these are known."""

    def __call__(self, envelope: Envelope, incumbent: float | None = None) -> Array:
        """Returns the scores `(n,)`."""

    def with_partials(self, envelope: Envelope, incumbent: float | None = None) -> tuple[Array, Array, Array] | None:
        """Returns the scores and their derivatives in mean and in standard deviation, each `(n,)`, or None."""


class Known(NamedTuple):
    """The objectives at the points that were tried.

    Attributes:
        points: distinct points of answered and open trials, `(n, d)`.
        means: posterior mean of each objective there, `(n, k)`, in the units of the models.
        feasible: whether they satisfy all constraints in the posterior mean, `(n,)`.
        observed: average of the answers at each point, `(n, k)`, in the same units, or nan before the first one.
    """

    points: Array
    means: Array
    feasible: Mask
    observed: Array


class AcquisitionContext(ABC):
    """A round as a score sees it, under the context of the trial. Rewards are in the user's units.

    Attributes:
        round: t, counted from 1 since the last restart.
        width: multiplier of the standard deviation in draws: that of the score (`Score.own_width`), else of the bounds.
            None if the bounds have another form.
        randomness: random numbers of the trial. `randomness.draws` is made at its first use.
        norm_growth: ratio of the current guess of the norm to the first guess, where the norm is guessed.
        points: the points that may be played, `(n, d)`. On a continuous domain these are the candidates with which the
            search begins. Acquisition values at these candidates are cheap.
        context: context of the trial, or None.
        dual_state: run-time state of the constraint rule, such as prices.
        limit_sizes: prior standard deviation of each constraint in its units, `(m,)`.
    """

    norm_growth: float
    round: int
    width: float | None
    randomness: Randomness
    points: Array
    context: Array | None = None
    dual_state: DualState = DualState()  # Without constraints there is no state.
    limit_sizes: Array = frozen(np.zeros(0))

    @abstractmethod
    def limits(self) -> list[Envelope]:
        """Returns the bounds of each constraint at the points that may be played, `(n,)` each.

        The list is empty without constraints.
        """

    @abstractmethod
    def objectives(self) -> list[Envelope]:
        """Returns the bounds of each objective at the points that may be played, fresh arrays `(n,)` each.

        All objectives are maximised, in the units of their models less their centres.
        """

    def known_objectives(self) -> Known:
        """Returns the objectives at the points that were tried. There are none before the first answer."""
        return Known(self.points[:0], np.zeros((0, 1)), np.zeros(0, dtype=bool), np.zeros((0, 1)))

    @property
    def given_reference(self) -> Array | None:
        """The reference point of the rule, `(k,)`, in the units of `objectives`, or None if none is given."""
        return None

    @abstractmethod
    def informs(self, places: IndexArray, goals: IndexArray) -> Array:
        """Returns how far a reward at some points would move each constraint at others, `(m, p, g)`.

        The unit is the prior standard deviation.

        Args:
            places: indices of the p points that would be played.
            goals: indices of the g points whose constraints would move.
        """

    @abstractmethod
    def moments(self) -> tuple[Array, Array]:
        """Returns posterior mean and standard deviation of f at the points that may be played, `(n,)` each."""

    def law_of_draw(self) -> ScoreLaw | None:
        """Returns the law of a draw from GP(mu, width^2 cov) at these points, or None if it is not known."""
        return None

    def drawn(self, width: Callable[[int, Randomness], float]) -> float:
        """Returns a random width of the round. `width` is a function of the round and its randomness."""
        return width(self.round, self.randomness)

    @abstractmethod
    def best_mean(self) -> float:
        """Returns the highest known posterior mean over the domain, or the prior mean before the first reward."""

    def best_pending_mean(self) -> float:
        """Returns the highest posterior mean at pending points that `best_mean` is not over, -inf without any."""
        return -math.inf

    @abstractmethod
    def best_reward(self) -> float:
        """Returns the highest reward observed under this very context, or the prior mean before the first."""


class TableView(AcquisitionContext):
    """A round on finitely many arms."""

    @abstractmethod
    def envelope(self) -> Envelope:
        """Returns the bounds of every arm that may be played, as fresh arrays `(n,)`."""

    def moments(self) -> tuple[Array, Array]:
        """Returns posterior mean and standard deviation of f at these arms, `(n,)` each."""
        found = self.envelope()
        return found.mean, found.std

    @abstractmethod
    def draw(self) -> Array:
        """Returns a draw from GP(mu, width^2 cov) at these arms, `(n,)`."""

    def objectives(self) -> list[Envelope]:
        """Returns the bounds of each objective at these arms."""
        return [self.envelope()]

    def objective_draws(self) -> list[Array]:
        """Returns a draw of each objective at these arms, `(n,)` each. The objectives are independent."""
        return [self.draw()]


class PointView(AcquisitionContext):
    """A round on a continuous domain, or on arms under continuous contexts.

    Attributes:
        domain: the domain that is searched.
        sides: side lengths of the domain, `(d,)`.
        limits_symmetric: True if the bounds of all constraints are multiples of the standard deviation.
    """

    domain: Domain
    sides: Array
    limits_symmetric: bool

    @abstractmethod
    def limits(self, points: Array | None = None) -> list[Envelope]:
        """Returns the bounds of each constraint at points `(n, d)`, or at the points of the view."""

    @abstractmethod
    def limit_slopes(self, points: Array) -> list[tuple[Envelope, Array, Array]]:
        """Returns for each constraint the bounds at points `(n, d)`, with gradients of mean and std.

        Each gradient has the shape `(n, d)`.
        """

    @abstractmethod
    def objectives(self, points: Array | None = None) -> list[Envelope]:
        """Returns the bounds of each objective at points `(n, d)`, or at the points of the view."""

    @abstractmethod
    def objective_slopes(self, points: Array) -> list[tuple[Envelope, Array, Array]]:
        """Returns for each objective the bounds at points `(n, d)`, with gradients of mean and std, each `(n, d)`."""

    @abstractmethod
    def objective_paths(self) -> list[AcquisitionFunction]:
        """Returns a drawn function for each objective, with its gradients. The objectives are independent."""

    @property
    @abstractmethod
    def objectives_symmetric(self) -> bool:
        """True if the bounds of all objectives are multiples of the standard deviation."""

    @abstractmethod
    def without_failed(self, points: Array, scores: Array) -> Array:
        """Returns the scores `(n,)` of points `(n, d)`, with -inf near trials that have only failed.

        The other methods of a view that return an acquisition function do so themselves.
        """

    @abstractmethod
    def of_candidates(self, surface: AcquisitionFunction) -> Array:
        """Returns the values of an acquisition function at the points of the view, `(n,)`.

        Rounding may differ between a run and its replay.
        """

    @abstractmethod
    def tried(self) -> Array:
        """Returns the distinct points of the trials that count, `(n, d)`."""

    @abstractmethod
    def at(self, points: Array) -> PointView:
        """Returns the same round in which only these points `(n, d)` may be played."""

    @abstractmethod
    def envelope(self, points: Array) -> Envelope:
        """Returns the bounds at points `(m, d)`, as fresh arrays `(m,)`."""

    @abstractmethod
    def leading(self, points: Array, factors: Array) -> Array | None:
        """Returns mean + factor * std at points `(m, d)`, exact where one may be the largest, `(m,)`.

        None if it would not be quicker than `envelope`.
        """

    def moments(self) -> tuple[Array, Array]:
        """Returns posterior mean and standard deviation of f at the points of the view, `(n,)` each."""
        found = self.envelope(self.points)
        return found.mean, found.std

    @abstractmethod
    def surface(self, score: Pointwise, incumbent: float | None) -> AcquisitionFunction:
        """Returns the acquisition function of a score of mean and standard deviation, with gradients."""

    @abstractmethod
    def path(self) -> AcquisitionFunction:
        """Returns a function drawn from GP(mu, width^2 cov), with its gradients."""

    @abstractmethod
    def without_slopes(self, values: Callable[[Array], Array]) -> AcquisitionFunction:
        """Returns the acquisition function of any function `(m, d)` -> `(m,)`.

        Gradients are finite differences, at d + 1 evaluations for each point.
        """
