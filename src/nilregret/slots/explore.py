"""Whether a round is forced: a uniform one, one of an initial design, or one that looks close to the best."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import numpy as np

from .._utils.checks import LARGEST_REWARD, Array, integer, many, number, shown
from .._utils.errors import InvalidInput
from .._utils.randomness import Randomness
from .._utils.serialize import described
from ..domains.domain import Arms, Domain
from ..domains.search.designs import coordinates, design, one_changed
from .base import Combination, Part
from .combined_memory import most_held
from .scores import PointwiseScore, PosteriorDeviation, UpperConfidenceBound

MOST_ROUNDS = 10_000  # of a design, and whatever else is counted here
COUNTED = "It counts rounds."
DESIGN, TURNS = (2**31 + 1,), (2**31 + 2,)  # keys of random streams that no trial has (a trial's is its number)


class Situation(NamedTuple):
    """What a forced round may look at.

    Attributes:
        domain: what may be played.
        context: known before the decision, or None.
        history: rounds that count, since the last restart or in the window.
        seed: of the study.
        randomness: of the trial.
        best: gives the point `(d,)` of the best posterior mean under the context, of those answered; None before any.
        tried: gives the points asked for so far that count, in any order, `(n, d)`.
    """

    domain: Domain
    context: Array | None
    history: int
    seed: int
    randomness: Randomness
    best: Callable[[], Array | None]
    tried: Callable[[], Array]


def _beyond(policy: Combination, rounds: int, what: str) -> None:
    """An error where a memory never gets beyond so many forced rounds at its beginning."""
    if (held := most_held(policy.memory)) <= rounds:
        raise InvalidInput(
            f"A window or period of {many(held, 'round')} never gets beyond {rounds} initial ones, so that every "
            f"round would be {what}: take a longer window or period, or fewer of them."
        )


class Explore(Part):
    """Forced exploration."""

    seeks_changes: ClassVar[bool] = False  # whether its rounds are for a test for changes (`UniformExploration`)
    ever: ClassVar[bool] = True  # whether any round is forced

    @abstractmethod
    def due(self, uniform: int, history: int, randomness: Randomness) -> bool:
        """Whether the next round is forced.

        Args:
            uniform: forced uniform rounds among those that count.
            history: rounds that count, since the last restart or in the window.
            randomness: of the trial; `randomness.generator` is made when it is first asked for.
        """

    @property
    def score(self) -> PointwiseScore | None:
        """What makes a point attractive in a forced round; None for a uniform draw."""
        return None

    def places(self, situation: Situation) -> Array | None:  # noqa: ARG002 - of most, anywhere
        """The points that a forced round is one of, `(n, d)`: the one of the best score (`score`, or the policy's own).

        None stands for the whole domain, and no points for a round that is not forced after all.
        """
        return None

    def forcing(self, uniform: int, history: int, randomness: Randomness) -> Explore | None:
        """The part that forces the next round, this one or a part of it; None where none does. Arguments of `due`."""
        return self if self.due(uniform, history, randomness) else None

    @property
    def uniform(self) -> bool:
        """Whether it makes uniform rounds, which tests of Avanesov's kind live on."""
        return self.ever and self.score is None


def checked_places(part: Explore, places: object, domain: Domain) -> Array:
    """What a part's `places` gave, `(n, d)`; errors where they are no points of the domain."""
    name, width = f"{type(part).__name__}.places", domain.dimension
    if not isinstance(places, np.ndarray) or places.ndim != 2 or places.shape[1] != width:
        raise InvalidInput(
            f"`{name}` gave {shown(places)}: it must be an array `(n, {width})` of points of the domain, with no rows "
            "where the round is not forced after all, or None for the whole domain."
        )
    return domain.inside(name, places) if len(places) else places


@final
@described
@dataclass(frozen=True)
class NoExploration(Explore):
    """Never."""

    ever: ClassVar[bool] = False

    def due(self, uniform: int, history: int, randomness: Randomness) -> bool:  # noqa: ARG002 - never
        """No."""
        return False


@final
@described
@dataclass(frozen=True)
class UniformExploration(Explore):
    """While |uniform| <= xi sqrt(|history|) (Avanesov, Algorithm 2, line 6), `xi` > 0.

    With xi = 0 the printed rule would still make the first round of each period a uniform one; here it makes none, so
    that the policy is then the one without forced rounds.
    """

    seeks_changes: ClassVar[bool] = True

    xi: float = math.sqrt(3.0)

    def __post_init__(self) -> None:
        why = "It sets how many rounds are uniform: about xi sqrt(t) of t."
        object.__setattr__(self, "xi", number("exploration", self.xi, low=0.0, high=LARGEST_REWARD, why=why))

    def due(self, uniform: int, history: int, randomness: Randomness) -> bool:  # noqa: ARG002 - by counting alone
        """Line 6."""
        return self.xi > 0.0 and uniform <= self.xi * math.sqrt(history)

    @property
    def uniform(self) -> bool:
        """Unless xi = 0."""
        return self.xi > 0.0


@final
@described
@dataclass(frozen=True)
class UncertaintySampling(Explore):
    """The first rounds play the largest posterior deviation (Desautels, Krause & Burdick 2014, initialisation).

    Afterwards no trial can tell much more than any other did, which keeps small what trials tell that are waited for
    (`conditional_gain_bound`). Needs no answers.
    """

    rounds: int

    def __post_init__(self) -> None:
        why = "It counts rounds of uncertainty sampling."
        object.__setattr__(self, "rounds", integer("rounds", self.rounds, low=1, why=why))

    def due(self, uniform: int, history: int, randomness: Randomness) -> bool:  # noqa: ARG002 - however many were uniform
        """The first rounds."""
        return history < self.rounds

    @property
    def score(self) -> PointwiseScore:
        """The posterior deviation."""
        return PosteriorDeviation()

    def check(self, policy: Combination) -> None:
        """A memory that grows beyond these rounds."""
        _beyond(policy, self.rounds, "one of uncertainty sampling")


@final
@described
@dataclass(frozen=True)
class InitialDesign(Explore):
    """The first rounds play scrambled Sobol points, one coordinate for each parameter, snapped and without repeats.

    The same points for the same seed, whatever is answered. Where the domain has fewer points, all of them in random
    order. After a restart the design begins anew.
    """

    rounds: int = 10

    def __post_init__(self) -> None:
        object.__setattr__(self, "rounds", integer("rounds", self.rounds, low=1, high=MOST_ROUNDS, why=COUNTED))

    def due(self, uniform: int, history: int, randomness: Randomness) -> bool:  # noqa: ARG002 - by counting alone
        """The first rounds."""
        return history < self.rounds

    @property
    def uniform(self) -> bool:
        """No: its points are spread, not drawn."""
        return False

    def places(self, situation: Situation) -> Array:
        """The next point of the design."""
        rng = np.random.default_rng([situation.seed, *DESIGN])
        points = design(situation.domain, self.rounds, rng)
        return points[situation.history : situation.history + 1]

    def check(self, policy: Combination) -> None:
        """A memory that grows beyond these rounds."""
        _beyond(policy, self.rounds, "of the design")


@final
@described
@dataclass(frozen=True, kw_only=True)
class CoordinateSearch(Explore):
    """Now and then a round that changes exactly one parameter of the best point so far, and has not been tried.

    Each parameter in turn, in an order drawn anew for each cycle; of the steps of all sizes (of a choice: of every
    option) the one with the highest upper bound. It finishes what a model of the whole domain leaves unfinished near
    the maximum, and looks once at what the model has written off. Without effect on arms, which are compared all.

    Attributes:
        every: rounds from one to the next.
        after: rounds before the first.
        steps: that are compared, where the parameter is a number.
    """

    every: int = 5
    after: int = 10
    steps: int = 100

    def __post_init__(self) -> None:
        for name, low in (("every", 2), ("after", 0), ("steps", 1)):
            value = integer(name, getattr(self, name), low=low, high=MOST_ROUNDS, why=COUNTED)
            object.__setattr__(self, name, value)

    def due(self, uniform: int, history: int, randomness: Randomness) -> bool:  # noqa: ARG002 - by counting alone
        """Every so many rounds of all, once so many count."""
        return history >= self.after and randomness.number % self.every == 0  # a window's history stands still

    @property
    def score(self) -> PointwiseScore:
        """The upper bound."""
        return UpperConfidenceBound()

    def places(self, situation: Situation) -> Array:
        """What differs from the best point in the parameter whose turn it is, but for what was tried."""
        domain = situation.domain
        best = None if isinstance(domain, Arms) else situation.best()
        if best is None or isinstance(domain, Arms):
            return np.zeros((0, domain.dimension))
        cycle, turn = divmod(situation.randomness.number // self.every, coordinates(domain))
        order = np.random.default_rng([situation.seed, *TURNS, cycle]).permutation(coordinates(domain))
        points = one_changed(domain, best, int(order[turn]), self.steps, situation.randomness.generator)
        tried = {point.tobytes() for point in situation.tried()}
        return np.array([point for point in points if point.tobytes() not in tried]).reshape(-1, domain.dimension)

    def check(self, policy: Combination) -> None:
        """A memory that ever holds so many rounds."""
        if (held := most_held(policy.memory)) < self.after:
            raise InvalidInput(
                f"The memory never holds more than {many(held, 'round')}, and the search of single parameters begins "
                f"after {self.after}, so it never would: take a longer window or period, or a smaller `after`."
            )


@final
@described
@dataclass(frozen=True)
class InTurn(Explore):
    """Several kinds of forced rounds: the first of the parts that is due decides."""

    parts: tuple[Explore, ...]

    def __post_init__(self) -> None:
        parts = tuple(self.parts) if isinstance(self.parts, tuple | list) else ()
        if not parts or not all(isinstance(part, Explore) for part in parts):
            raise InvalidInput(
                f"`parts` is {shown(self.parts)}: it must be several kinds of forced rounds.",
                advice="It is a tuple of parts of `nilregret.slots.explore`, such as InTurn((InitialDesign(5), "
                "CoordinateSearch())).",
            )
        object.__setattr__(self, "parts", parts)

    def due(self, uniform: int, history: int, randomness: Randomness) -> bool:
        """Whether any part is."""
        return self.forcing(uniform, history, randomness) is not None

    def forcing(self, uniform: int, history: int, randomness: Randomness) -> Explore | None:
        """The first part that is due."""
        for part in self.parts:
            if (found := part.forcing(uniform, history, randomness)) is not None:
                return found
        return None

    @property
    def uniform(self) -> bool:
        """Whether a part makes uniform rounds."""
        return any(part.uniform for part in self.parts)

    def check(self, policy: Combination) -> None:
        """Every part."""
        for part in self.parts:
            part.check(policy)


def forced_in_turn(explore: Explore, other: Explore) -> Explore:
    """Both kinds of forced rounds."""
    parts = tuple(part for part in (explore, other) if part.ever)
    return InTurn(parts) if len(parts) > 1 else next(iter(parts), explore)
