"""What is maximised over a domain, and what it is made from: how a score sees a round."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

import numpy as np

from .._utils.checks import Array, IndexArray, frozen
from .._utils.randomness import Randomness
from ..domains.domain import Domain
from ..domains.search.acquisition import AcquisitionFunction
from .constraint_state import DualState
from .envelope import Envelope


class Pointwise(Protocol):
    """A score of the envelope at one point, with its derivatives in mean and standard deviation where it knows them."""

    def __call__(self, envelope: Envelope, incumbent: float | None = None) -> Array:
        """Scores `(n,)`."""

    def partials(self, envelope: Envelope, incumbent: float | None = None) -> tuple[Array, Array] | None:
        """Derivatives, each `(n,)`, or None."""


class AcquisitionContext(ABC):
    """One round as a score sees it, under the context of the question. Rewards are in the user's units.

    Attributes:
        round: t, from 1, since the last restart.
        width: multiplier of the standard deviation; None where the bounds are no such multiple.
        randomness: of the trial; `randomness.generator` is made when it is first asked for.
        norm_growth: how many times larger the guess of the norm in force is than the first, where it is guessed.
        points: the points that may be played, `(n, d)`; of a continuous domain the candidates that the search begins
            with, of which a surface's values cost little.
        context: of the question, or None.
        books: what the world of the constraints keeps, prices among them.
        limit_sizes: prior standard deviation of each constraint, in its units, `(m,)`.
    """

    norm_growth: float
    round: int
    width: float | None
    randomness: Randomness
    points: Array
    context: Array | None = None
    books: DualState = DualState()  # of no constraints: nothing is kept
    limit_sizes: Array = frozen(np.zeros(0))

    @abstractmethod
    def limits(self) -> list[Envelope]:
        """Bounds of each constraint, of the points that may be played, `(n,)` each; none without constraints."""

    @abstractmethod
    def informs(self, places: IndexArray, goals: IndexArray) -> Array:
        """How far an answer at some points would move each constraint at others, in prior deviations, `(m, p, g)`."""

    @abstractmethod
    def best_mean(self) -> float:
        """The highest posterior mean over what may be played, as far as is known; before any answer the prior mean."""

    @abstractmethod
    def best_reward(self) -> float:
        """The highest reward told under this very context; the prior mean before any."""


class TableView(AcquisitionContext):
    """A round on finitely many arms."""

    @abstractmethod
    def envelope(self) -> Envelope:
        """Of every arm that may be played, fresh arrays `(n,)`."""

    @abstractmethod
    def draw(self) -> Array:
        """A function drawn from GP(mu, width^2 cov), at each of them, `(n,)`."""


class PointView(AcquisitionContext):
    """A round on a continuous domain, or under contexts of a continuous one.

    Attributes:
        domain: what may be played.
        sides: of the domain, `(d,)`.
        limits_symmetric: whether the bounds of all constraints are multiples of the standard deviation.
    """

    domain: Domain
    sides: Array
    limits_symmetric: bool

    @abstractmethod
    def limits(self, points: Array | None = None) -> list[Envelope]:
        """Bounds of each constraint at points `(n, d)`, or at the view's own."""

    @abstractmethod
    def limit_slopes(self, points: Array) -> list[tuple[Envelope, Array, Array]]:
        """Of each constraint its bounds at points `(n, d)`, and the gradients of mean and std, each `(n, d)`."""

    @abstractmethod
    def of_candidates(self, surface: AcquisitionFunction) -> Array:
        """What a surface is worth at the view's points, `(n,)`, up to rounding that may be another in a replay."""

    @abstractmethod
    def tried(self) -> Array:
        """The distinct points asked for so far that count, `(n, d)`."""

    @abstractmethod
    def at(self, points: Array) -> PointView:
        """The same round, where only these points `(n, d)` may be played."""

    @abstractmethod
    def envelope(self, points: Array) -> Envelope:
        """At points `(m, d)`, fresh arrays `(m,)`."""

    @abstractmethod
    def surface(self, score: Pointwise, incumbent: float | None) -> AcquisitionFunction:
        """A score that depends on mean and standard deviation alone, with its gradients."""

    @abstractmethod
    def path(self) -> AcquisitionFunction:
        """A function drawn from GP(mu, width^2 cov), with its gradients."""

    @abstractmethod
    def without_slopes(self, values: Callable[[Array], Array]) -> AcquisitionFunction:
        """Any function `(m, d)` -> `(m,)`, with gradients by differences: d + 1 evaluations a point."""
