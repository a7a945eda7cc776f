"""Forced rounds: uniform ones, an initial design, and points close to the best one.

`AskAgain` forces rounds at points that were tried, since their answers were noisy.

| symbol | name | meaning | shape |
|---|---|---|---|
| mu, C | `mean`, `covariance` | posterior of f at the points tried | (n,), (n, n) |
| sigma_n | `noise` | standard deviation of the noise of one answer | scalar |
| s_ij | | C_ij / (C_ii + sigma_n^2)^{1/2}, how far an answer at i moves the mean at j, times Z | (n, n) |
| Z | | a standard normal number | |
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, final

import numpy as np

from .._utils.checks import LARGEST_REWARD, Array, flag, frozen, integer, many, number, points_array, settle, shown
from .._utils.copying import take_back
from .._utils.dataclass import replace
from .._utils.randomness import Draws, Randomness
from ..domains.domain import Arms, Domain, arm_of, keeping_limits, refuse_outside_limits
from ..domains.search.designs import coordinates, design, one_changed
from ..errors import InvalidInput
from ..serialize import description
from ..storage.trial import Trial
from .base import Part, Policy
from .memory import most_held
from .scores import PointwiseScore, PosteriorDeviation, UpperConfidenceBound

Chances = Sequence[tuple["Explore | None", float]]

MOST_ROUNDS = 10_000  # largest number of rounds in a setting
COUNTED = "It counts rounds."


class Answered(NamedTuple):
    """The most promising points that were tried and answered, with the joint posterior of f there.

    All numbers are in units of the posterior, in which rewards may be scaled and warped.

    Attributes:
        points: distinct points, `(n, d)`, the best posterior mean first.
        mean: posterior mean, `(n,)`.
        covariance: posterior covariance, `(n, n)`.
        noise: standard deviation of the noise of one answer.
        noise_share: this noise as a share of the prior deviation of f.
        noisy: False if points were tried twice and each gave the same answer again.
    """

    points: Array
    mean: Array
    covariance: Array
    noise: float
    noise_share: float
    noisy: bool


class Situation(NamedTuple):
    """Information for a forced round.

    Attributes:
        domain: the domain that is searched.
        context: context of the trial, or None.
        history: number of rounds that count, since the last restart or in the window.
        seed: seed of the study.
        randomness: random numbers of the trial.
        best: returns the observed point `(d,)` with the best posterior mean under the context, or None before any.
        tried: returns the points of the trials that count, in any order, `(n, d)`.
        answers: returns the answered trials that count, by number.
        open: returns the points of unanswered trials that count, `(k, d)`.
        policy: the policy of the run, or None where there is no run.
        kept: results that later rounds of the run need again, by what they follow from, or None where there is no run.
        answered: returns the posterior at the most promising points tried, or None before any answer.
    """

    domain: Domain
    context: Array | None
    history: int
    seed: int
    randomness: Randomness
    best: Callable[[], Array | None]
    tried: Callable[[], Array]
    answers: Callable[[], list[Trial]] = list
    open: Callable[[], Array] = lambda: np.zeros((0, 0))
    policy: Policy = None
    kept: dict[Any, Any] | None = None
    answered: Callable[[], Answered | None] = lambda: None


def _check_outgrown(policy: Policy, rounds: int, what: str) -> None:
    """Raises `InvalidInput` if the memory never holds more than these initial forced rounds."""
    if (held := most_held(policy.memory)) <= rounds:
        raise InvalidInput(
            f"A window or period of {many(held, 'round')} never gets beyond {rounds} initial ones, so that every "
            f"round would be {what}: take a longer window or period, or fewer of them."
        )


class Explore(Part):
    """Forced exploration."""

    seeks_changes: ClassVar[bool] = False  # True if its rounds feed a change test (`UniformExploration`)
    ever: ClassVar[bool] = True  # False if no round is ever forced

    def __init_subclass__(cls) -> None:
        """Takes back `chances` where the rounds are overridden."""
        super().__init_subclass__()
        take_back(cls, "chances", Explore.chances, ("due", "forcing"))

    @abstractmethod
    def due(self, uniform: int, history: int, randomness: Randomness) -> bool:
        """Returns True if the next round is forced.

        Args:
            uniform: number of forced uniform rounds among those that count.
            history: number of rounds that count, since the last restart or in the window.
            randomness: random numbers of the trial. `randomness.draws` is made at its first use.
        """

    @property
    def floor(self) -> float:
        """Least probability, in every round, that the round is uniform: 0 unless a part promises more."""
        return 0.0

    def floors(self, count: int) -> Array:
        """Returns the least probability of each of N arms in every round, `(N,)`, 0 where nothing is promised.

        Args:
            count: number of arms N.
        """
        return np.full(count, self.floor / count)

    def within(self, domain: Domain) -> Self:  # noqa: ARG002
        """Returns the same part with arms by number in place of names."""
        return self

    @property
    def score(self) -> PointwiseScore | None:
        """Score that a forced round maximises, or None for a uniform draw."""
        return None

    def places(self, situation: Situation) -> Array | None:  # noqa: ARG002
        """Returns the points `(n, d)` among which a forced round plays the best one.

        The best one is that of `score`, or of the policy's own score. None stands for the whole domain. An empty array
        means that the round is not forced after all.

        Args:
            situation: domain, context, history and randomness of the round.
        """
        return None

    def forcing(self, uniform: int, history: int, randomness: Randomness) -> Explore | None:
        """Returns the part that forces the next round, this one or a part of it, or None.

        The arguments are those of `due`.
        """
        return self if self.due(uniform, history, randomness) else None

    def chances(self, uniform: int, history: int, randomness: Randomness) -> Chances | None:
        """Returns each part that may force the next round, with its probability, and None for an unforced round.

        A part whose `due` draws random numbers overrides it. Otherwise nothing is said of the probability of a choice.
        The arguments are those of `due`.
        """
        found = self.forcing(uniform, history, randomness)
        return None if randomness.used else ((found, 1.0),)

    @property
    def uniform(self) -> bool:
        """True if the part forces uniform rounds, which Avanesov's tests need."""
        return self.ever and self.score is None


def checked_places(part: Explore, places: object, domain: Domain) -> Array:
    """Returns the points that `places` gave, `(n, d)`, or raises `InvalidInput`."""
    name, width = f"{type(part).__name__}.places", domain.dimension
    if not isinstance(places, np.ndarray) or places.ndim != 2 or places.shape[1] != width:
        raise InvalidInput(
            f"`{name}` gave {shown(places)}: it must be an array `(n, {width})` of points of the domain, with no rows "
            "where the round is not forced after all, or None for the whole domain."
        )
    if not len(places):
        return places
    return keeping_limits(domain, domain.inside(name, places))


@final
@description(frozen=True)
class NoExploration(Explore):
    """No forced rounds."""

    ever: ClassVar[bool] = False
    batched = True

    def due(self, uniform: int, history: int, randomness: Randomness) -> bool:  # noqa: ARG002
        """Returns False."""
        return False


@final
@description(frozen=True)
class UniformExploration(Explore):
    """Uniform rounds while |uniform| <= xi sqrt(|history|) (Avanesov, Algorithm 2, line 6), `xi` > 0.

    With xi = 0 the printed rule would still make the first round of each period uniform. Here xi = 0 makes no round
    uniform, so that the policy has no forced rounds.
    """

    seeks_changes: ClassVar[bool] = True

    xi: float = math.sqrt(3.0)

    def __post_init__(self) -> None:
        why = "It sets how many rounds are uniform: about xi sqrt(t) of t."
        settle(self, xi=number("exploration", self.xi, low=0.0, high=LARGEST_REWARD, why=why))

    def due(self, uniform: int, history: int, randomness: Randomness) -> bool:  # noqa: ARG002
        """Returns True if line 6 forces the round."""
        return self.xi > 0.0 and uniform <= self.xi * math.sqrt(history)

    @property
    def uniform(self) -> bool:
        """True unless xi = 0."""
        return self.xi > 0.0


@final
@description(frozen=True)
class Uniform(Explore):
    """A floor under the probability of every arm: each round is uniform with probability `rate`, 0 < rate <= 1.

    Each of N arms that may be played has at least the probability rate / N. A log with a floor says what another policy
    would have earned. Its cost is that share of the rounds. Under `nr.Safe` no policy takes it.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ucb(arms, kernel, noise=0.1).using(explore=nr.slots.Uniform(0.1))
    >>> study = nr.Study(policy, propensities=True)
    >>> round(study.ask().propensity, 3)
    0.091
    """

    rate: float

    def __post_init__(self) -> None:
        why = "It is the probability with which a round is uniform."
        settle(self, rate=number("rate", self.rate, low=0.0, high=1.0, open_low=True, why=why))

    def due(self, uniform: int, history: int, randomness: Randomness) -> bool:  # noqa: ARG002
        """Returns True with probability `rate`."""
        return bool(randomness.draws.random() < self.rate)

    @property
    def floor(self) -> float:
        """The rate."""
        return self.rate

    def chances(self, uniform: int, history: int, randomness: Randomness) -> Chances:  # noqa: ARG002
        """Returns this part with `rate`, and None with the rest."""
        return ((self, self.rate), (None, 1.0 - self.rate))


@final
@description(frozen=True)
class Shares(Explore):
    """A floor under the probability of some arms: each plays at least its share of all rounds, by chance.

    With probability `shares[a]` a round plays arm a, whatever the policy would play. So the probability of arm a is
    share + (1 - all shares) times that of the policy. A control that always has a share stays comparable. If an arm may
    not be played (it is retired, left out by `exclude` or `among`, or has failed), its share is the policy's.

    Attributes:
        shares: the share of each arm, above 0, together below 1. Arms are given by number, or by their option if they
            are the arms of a space with one choice. A policy holds their numbers.

    >>> import nilregret as nr
    >>> banners = nr.Space(banner=nr.Choice("control", "sale", "new")).grid()
    >>> policy = nr.auto(banners, reward="bernoulli").using(explore=nr.slots.Shares({"control": 0.05}))
    >>> policy.explore
    Shares(shares=((0, 0.05),))
    >>> study = nr.Study(policy, propensities=True)
    >>> bool(study.probabilities()[0] > 0.05)
    True
    """

    shares: tuple[tuple[int | str, float], ...]

    if TYPE_CHECKING:  # arguments are converted

        def __init__(
            self, shares: Mapping[int, float] | Mapping[str, float] | Sequence[tuple[int | str, float]]
        ) -> None: ...

    def __post_init__(self) -> None:
        given: Any = self.shares
        pairs = list(given.items() if isinstance(given, Mapping) else given if isinstance(given, tuple | list) else [])
        if not pairs or not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
            raise InvalidInput(
                f"`shares` is {shown(given)}: it must have the share of an arm at least.", advice="Such as {0: 0.05}."
            )
        why = "It is the share of the rounds that an arm plays at least."
        found = [
            (
                arm if isinstance(arm, str) else integer("shares", arm, low=0, why="An arm is given by its number."),
                number("shares", share, low=0.0, high=1.0, open_low=True, why=why),
            )
            for arm, share in pairs
        ]
        if sum(share for _, share in found) >= 1.0:
            raise InvalidInput(
                f"The shares {shown(dict(found))} leave nothing to the policy: their sum must be less than 1."
            )
        settle(self, shares=tuple(found))

    def within(self, domain: Domain) -> Shares:
        """Returns the shares with arms by number."""
        found = tuple((arm_of("shares", domain, arm), share) for arm, share in self.shares)
        if len(dict(found)) < len(found):
            raise InvalidInput(f"`shares` names an arm twice: {shown(self.shares)}.")
        return self if found == self.shares else Shares(found)

    def due(self, uniform: int, history: int, randomness: Randomness) -> bool:
        """Returns True with the probability of all shares."""
        return self.forcing(uniform, history, randomness) is not None

    def forcing(self, uniform: int, history: int, randomness: Randomness) -> Shares | None:  # noqa: ARG002
        """Returns the share of the arm that is drawn, or None."""
        drawn = float(randomness.draws.random())
        for arm, share in self.shares:
            if drawn < share:
                return Shares(((arm, share),))
            drawn -= share
        return None

    def chances(self, uniform: int, history: int, randomness: Randomness) -> Chances:  # noqa: ARG002
        """Returns the share of each arm, and None with the rest."""
        each = [(Shares(((arm, share),)), share) for arm, share in self.shares]
        return (*each, (None, 1.0 - sum(share for _, share in each)))

    def floors(self, count: int) -> Array:
        """Returns the shares, `(N,)`."""
        found = np.zeros(count)
        for arm, share in self.shares:
            found[int(arm)] = share
        return found

    @property
    def uniform(self) -> bool:
        """False, since the arm is given."""
        return False

    def places(self, situation: Situation) -> Array:
        """Returns the arm, if one alone has a share."""
        return np.array([situation.domain.points[int(arm)] for arm, _ in self.shares])  # type: ignore[union-attr]  # Arms


@final
@description(frozen=True)
class UncertaintySampling(Explore):
    """Initial rounds that play the largest posterior deviation (Desautels, Krause & Burdick 2014, initialisation).

    Afterwards no trial is much more informative than any earlier one. This keeps the information in pending trials
    small (`conditional_gain_bound`). No rewards are needed.
    """

    rounds: int

    def __post_init__(self) -> None:
        why = "It counts rounds of uncertainty sampling."
        settle(self, rounds=integer("rounds", self.rounds, low=1, why=why))

    def due(self, uniform: int, history: int, randomness: Randomness) -> bool:  # noqa: ARG002
        """Returns True in the first rounds."""
        return history < self.rounds

    @property
    def score(self) -> PointwiseScore:
        """Posterior standard deviation."""
        return PosteriorDeviation()

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` if the memory never holds more than these rounds."""
        _check_outgrown(policy, self.rounds, "one of uncertainty sampling")


@final
@description(frozen=True)
class InitialDesign(Explore):
    """Initial rounds that play scrambled Sobol points, one coordinate for each parameter, rounded and without repeats.

    The same seed gives the same points, whatever the rewards are. If the domain has fewer points, all of them are
    played in random order. Points that were told before (`Study.add`) are left out. After a restart the design begins
    again.

    Attributes:
        rounds: number of points.
        middle: True to begin with every number in the middle of its range. In many dimensions that is much closer to
            most points than they are to each other. It has no effect on arms.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ucb(arms, kernel, noise=0.1).using(explore=nr.slots.InitialDesign(10))
    >>> study = nr.Study(policy, propensities=True)
    >>> round(study.ask().propensity, 3)
    1.0
    """

    rounds: int = 10
    middle: bool = False

    def __post_init__(self) -> None:
        settle(self, rounds=integer("rounds", self.rounds, low=1, high=MOST_ROUNDS, why=COUNTED))
        settle(self, middle=flag("middle", self.middle))

    def due(self, uniform: int, history: int, randomness: Randomness) -> bool:  # noqa: ARG002
        """Returns True in the first rounds."""
        return history < self.rounds

    @property
    def uniform(self) -> bool:
        """False, since design points are spread and not drawn independently."""
        return False

    def places(self, situation: Situation) -> Array:
        """Returns the next point of the design."""
        points = _design_of(situation.domain, self.rounds, situation.seed, self.middle)[situation.history :]
        if isinstance(situation.domain, Arms):  # Several may be at one point.
            return points[:1]
        tried = {point.tobytes() for point in situation.tried()}
        return next((points[i : i + 1] for i, point in enumerate(points) if point.tobytes() not in tried), points[:0])

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` if the memory never holds more than these rounds."""
        _check_outgrown(policy, self.rounds, "of the design")


@final
@description(frozen=True, kw_only=True)
class TimedDesign(Explore):
    """An initial design in a run of a known length of time, which it may not use up.

    With t the median time from question to answer so far, `seconds` are enough for `parallel * seconds / t` trials. The
    design ends after its points, or after this share of these trials. Times are on record, so a replay decides alike.

    Attributes:
        design: the points.
        seconds: length of the run.
        parallel: number of trials that are evaluated at a time.
        share: share of the trials that the design may take.
    """

    design: InitialDesign
    seconds: float
    parallel: int = 1
    share: float = 1 / 3

    def __post_init__(self) -> None:
        if not isinstance(self.design, InitialDesign):
            raise InvalidInput(f"`design` is {shown(self.design)}: it must be an `InitialDesign`.")
        why = "It is the length of the run."
        settle(
            self,
            seconds=number("seconds", self.seconds, low=0.0, open_low=True, why=why),
            parallel=integer("parallel", self.parallel, low=1, high=MOST_ROUNDS, why="It counts trials."),
            share=number("share", self.share, low=0.0, high=1.0, why="It is a share of the trials."),
        )

    def due(self, uniform: int, history: int, randomness: Randomness) -> bool:
        """Returns True in the first rounds."""
        return self.design.due(uniform, history, randomness)

    @property
    def uniform(self) -> bool:
        """False, since design points are spread and not drawn independently."""
        return False

    def places(self, situation: Situation) -> Array:
        """Returns the next point of the design, or none if the design has taken its share of the time."""
        took = [trial.told_at - trial.asked_at for trial in situation.answers() if trial.told_at is not None]
        each = float(np.median(took)) if took else 0.0
        most = self.parallel * self.seconds / each if each > 0.0 else math.inf
        over = situation.history >= max(self.share * most, self.parallel)
        return self.design.places(situation)[: 0 if over else None]

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` if the memory never holds more than the rounds of the design."""
        self.design.check(policy)


def within_time(explore: Explore, seconds: float, *, parallel: int) -> Explore:
    """Returns the forced rounds with an initial design that takes a third at most of a run of so many seconds."""
    parts = explore.parts if isinstance(explore, InTurn) else (explore,)
    timed = tuple(
        TimedDesign(design=part, seconds=seconds, parallel=parallel) if isinstance(part, InitialDesign) else part
        for part in parts
    )
    return InTurn(timed) if isinstance(explore, InTurn) else timed[0]


@lru_cache(maxsize=16)
def _design_of(domain: Domain, rounds: int, seed: int, middle: bool) -> Array:
    """Returns the points of a run's initial design, read-only. Each of its rounds asks for them."""
    return frozen(design(domain, rounds, Draws(f"design {seed}"), middle=middle))


@final
@description(frozen=True, eq=False)
class GivenPoints(Explore):
    """Initial rounds that play given points in their order, such as the best points of earlier studies.

    After a restart they begin again.

    Attributes:
        points: the points, `(n, d)`, in the coordinates of the domain.
    """

    points: Array

    def __post_init__(self) -> None:
        settle(self, points=frozen(points_array("points", self.points).copy()))
        if not len(self.points):
            raise InvalidInput("`points` is empty: give at least one point, or leave this part out.")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GivenPoints) and np.array_equal(self.points, other.points)

    def __hash__(self) -> int:
        return hash(self.points.tobytes())

    def due(self, uniform: int, history: int, randomness: Randomness) -> bool:  # noqa: ARG002
        """Returns True in the first rounds."""
        return history < len(self.points)

    @property
    def uniform(self) -> bool:
        """False, since the points are given."""
        return False

    def places(self, situation: Situation) -> Array:
        """Returns the next point."""
        return self.points[situation.history : situation.history + 1]

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` if a point is outside the domain, or the memory never holds more than these rounds."""
        refuse_outside_limits(policy.domain, policy.domain.inside("points", self.points), "A given point")
        _check_outgrown(policy, len(self.points), "one of the given points")


@final
@description(frozen=True, kw_only=True)
class CoordinateSearch(Explore):
    """Occasional rounds that change exactly one parameter of the best point so far, to a value not yet tried.

    Each parameter has its turn, in an order drawn for each cycle. Among steps of all sizes (for a choice, among all
    options) the round plays the one with the highest upper bound. This finishes the search near the maximum, where a
    model of the whole domain stops early. It also tests values that the model considers bad. It has no effect on arms,
    which are all compared anyway.

    Attributes:
        every: rounds from one such round to the next.
        after: rounds before the first such round.
        steps: number of steps compared for a numeric parameter.
    """

    every: int = 5
    after: int = 10
    steps: int = 100

    def __post_init__(self) -> None:
        for name, low in (("every", 2), ("after", 0), ("steps", 1)):
            value = integer(name, getattr(self, name), low=low, high=MOST_ROUNDS, why=COUNTED)
            object.__setattr__(self, name, value)

    def due(self, uniform: int, history: int, randomness: Randomness) -> bool:  # noqa: ARG002
        """Returns True every so many rounds, once enough rounds count."""
        # The history of a window stops growing, so the number of the trial decides.
        return history >= self.after and randomness.number % self.every == 0

    @property
    def score(self) -> PointwiseScore:
        """Upper confidence bound."""
        return UpperConfidenceBound()

    def places(self, situation: Situation) -> Array:
        """Returns untried points that differ from the best point in the one parameter whose turn it is."""
        domain = situation.domain
        best = None if isinstance(domain, Arms) else situation.best()
        if best is None or isinstance(domain, Arms):
            return np.zeros((0, domain.dimension))
        cycle, turn = divmod(situation.randomness.number // self.every, coordinates(domain))
        order = Draws(f"turns {situation.seed} {cycle}").permutation(coordinates(domain))
        points = one_changed(domain, best, int(order[turn]), self.steps, situation.randomness.draws)
        tried = {point.tobytes() for point in situation.tried()}
        return np.array([point for point in points if point.tobytes() not in tried]).reshape(-1, domain.dimension)

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` if the memory never holds enough rounds to begin."""
        if (held := most_held(policy.memory)) < self.after:
            raise InvalidInput(
                f"The memory never holds more than {many(held, 'round')}, and the search of single parameters begins "
                f"after {self.after}, so it never would: take a longer window or period, or a smaller `after`."
            )


@final
@description(frozen=True)
class InTurn(Explore):
    """Several kinds of forced rounds, of which the first part that is due decides.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> explore = nr.slots.InTurn((nr.slots.InitialDesign(10), nr.slots.Uniform(0.1)))
    >>> study = nr.Study(nr.gp_ucb(arms, kernel, noise=0.1).using(explore=explore))
    >>> study.ask().explored  # the first place of the design
    False
    """

    parts: tuple[Explore, ...]

    def __post_init__(self) -> None:
        parts = tuple(self.parts) if isinstance(self.parts, tuple | list) else ()
        if not parts or not all(isinstance(part, Explore) for part in parts):
            raise InvalidInput(
                f"`parts` is {shown(self.parts)}: it must be several kinds of forced rounds.",
                advice="It is a tuple of parts of `nilregret.slots.explore`, such as InTurn((InitialDesign(5), "
                "CoordinateSearch())).",
            )
        settle(self, parts=parts)

    def within(self, domain: Domain) -> InTurn:
        """Returns the parts with arms by number."""
        parts = tuple(part.within(domain) for part in self.parts)
        return self if parts == self.parts else InTurn(parts)

    def due(self, uniform: int, history: int, randomness: Randomness) -> bool:
        """Returns True if any part is due."""
        return self.forcing(uniform, history, randomness) is not None

    def forcing(self, uniform: int, history: int, randomness: Randomness) -> Explore | None:
        """Returns the first part that is due."""
        for part in self.parts:
            if (found := part.forcing(uniform, history, randomness)) is not None:
                return found
        return None

    def chances(self, uniform: int, history: int, randomness: Randomness) -> Chances | None:
        """Returns the chances of each part, if no part before it is due."""
        found: list[tuple[Explore | None, float]] = []
        left = 1.0
        for part in self.parts:
            of_part = part.chances(uniform, history, randomness)
            if of_part is None:
                return None
            found += [(forcing, left * chance) for forcing, chance in of_part if forcing is not None]
            left *= sum(chance for forcing, chance in of_part if forcing is None)
        return (*found, (None, left))

    @property
    def uniform(self) -> bool:
        """True if any part forces uniform rounds."""
        return any(part.uniform for part in self.parts)

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` if some part does not fit the policy."""
        for part in self.parts:
            part.check(policy)


def begun_with(explore: Explore, points: Array, *, rounds: int) -> Explore:
    """Returns the forced rounds with these points `(n, d)` in place of the first ones.

    Args:
        explore: the forced rounds.
        points: the points to begin with.
        rounds: most rounds of the initial design, with these.
    """
    parts = explore.parts if isinstance(explore, InTurn) else (explore,)
    shorter = tuple(
        replace(part, rounds=min(part.rounds, rounds)) if isinstance(part, InitialDesign) else part for part in parts
    )
    return InTurn((GivenPoints(points), *shorter) if len(points) else shorter)


def forced_in_turn(explore: Explore, other: Explore) -> Explore:
    """Returns a part with the forced rounds of both parts."""
    parts = tuple(part for part in (explore, other) if part.ever)
    return InTurn(parts) if len(parts) > 1 else next(iter(parts), explore)


VALUES = np.linspace(-6.0, 6.0, 193)  # values of Z over which a knowledge gradient is averaged,
DENSITIES = np.exp(-0.5 * VALUES**2) / np.exp(-0.5 * VALUES**2).sum()  # and how likely each is


@final
@description(frozen=True, kw_only=True)
class AskAgain(Explore):
    """Last rounds of a known budget that decide between the points tried, if their answers are noisy.

    Each of these rounds asks again at the point whose answer is worth most for the choice of the best. That is the
    point i with the largest knowledge gradient E max_j (mu_j + s_ij Z) - max_j mu_j (Frazier, Powell & Dayanik 2009).

    A round is not forced if the noise is a small share of what f varies by. It is not forced either if points were
    asked for twice and always gave the same answer, since then there is no noise. So an objective without noise, which
    a fit takes for a noisy one, loses one round.

    Attributes:
        budget: number of trials in all.
        rounds: number of the last of them that ask again.
        noise: least standard deviation of the noise, as a share of the prior deviation of f.
    """

    budget: int
    rounds: int = 3
    noise: float = 0.3

    def __post_init__(self) -> None:
        settle(
            self,
            budget=integer("budget", self.budget, low=1, why="It is how many trials there will be."),
            rounds=integer("rounds", self.rounds, low=1, high=MOST_ROUNDS, why=COUNTED),
            noise=number("noise", self.noise, low=0.0, why="It is a share of the prior deviation of f."),
        )
        if self.rounds >= self.budget:
            raise InvalidInput(
                f"`rounds` is {self.rounds} of a budget of {self.budget}: some rounds must try points first. Take "
                "fewer rounds."
            )

    def due(self, uniform: int, history: int, randomness: Randomness) -> bool:  # noqa: ARG002
        """Returns True in the last rounds of the budget."""
        return self.budget - self.rounds <= randomness.number < self.budget

    @property
    def uniform(self) -> bool:
        """False, since the points are those of earlier trials."""
        return False

    def places(self, situation: Situation) -> Array:
        """Returns the point to ask for again, `(1, d)`, or none if the noise is small."""
        tried = situation.answered()
        if tried is None or not tried.noisy or tried.noise_share < self.noise:
            return np.zeros((0, situation.domain.dimension))
        best = int(knowledge_gradients(tried.mean, tried.covariance, tried.noise).argmax())
        return tried.points[best : best + 1]


def knowledge_gradients(mean: Array, covariance: Array, noise: float) -> Array:
    """Returns the expected rise of the best posterior mean of n points by one answer at each of them, `(n,)`.

    The expectation is a sum over values of Z, whose error is below a half percent of the largest.

    Args:
        mean: posterior mean, `(n,)`.
        covariance: posterior covariance, `(n, n)`.
        noise: standard deviation of the noise of the answer.
    """
    moves = covariance / np.sqrt(np.maximum(covariance.diagonal(), 0.0) + noise**2)[:, None]
    after = mean[None, :, None] + moves[:, :, None] * VALUES
    return np.asarray(after.max(axis=1) @ DENSITIES - mean.max())
