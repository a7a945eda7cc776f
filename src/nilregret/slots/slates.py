"""Slates: what the answers of several places teach, where a place may not have been seen.

Somebody looks at several arms in places, and answers some. An answer of 0 may say that the arm does not attract, or
that the place was not seen. A model of places says how much each answer counts: as its share, the probability that the
place was seen, given the answers.

| symbol | name | meaning |
|---|---|---|
| l | `place` | place of a slate, from 0 |
| k_l | `weights` | probability that place l is seen |
| a | `attraction` | probability that the arm is answered by another value than 0, if its place is seen |

`Cascade` is the model of Kveton, Szepesvari, Wen & Ashkan (2015, "Cascading bandits: learning to rank in the cascade
model", section 2). `Positions` is that of Lagree, Vernade & Cappe (2016, "Multiple-play bandits in the position-based
model", section 2): an answer comes with probability k_l a. Under it a place without an answer was seen with probability

    k_l (1 - a) / (1 - k_l a)

by Bayes' rule. Observations of arm i that count by these shares have the fixed point a of the expectation-maximisation
algorithm (Dempster, Laird & Rubin 1977), which is the attraction. So a posterior of clicks stays right, if k is.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import NamedTuple, final

import numpy as np

from .._utils.checks import Array, finite_array, many, number, settle, shown
from ..errors import InvalidInput
from ..serialize import description
from .base import Part, Policy

MOST_PLACES = 1_000
PASSES = 60  # Alternations, which converge in some ten where arms have changed places, and in hundreds where few have.
PRIOR = 4.0  # Answers by which a weight is drawn to 1, and an attraction to the average.


class Place(NamedTuple):
    """A place of a slate, as it is known.

    Attributes:
        arm: the arm in it.
        reward: its answer in the units told, or None if there is none.
        over: True if it has an answer, has failed or was given up.
    """

    arm: int
    reward: float | None
    over: bool

    @property
    def answered(self) -> bool:
        """True if the answer is another value than 0."""
        return bool(self.reward)


class Looked(NamedTuple):
    """Weights of places and attractions of arms, as earlier slates show them.

    Attributes:
        weights: of each place, within [0, 1], the largest is 1, `(places,)`.
        attraction: of each arm, `(N,)`.
        average: attraction of an arm that was not shown.
    """

    weights: Array
    attraction: Array
    average: float

    def of(self, arm: int) -> float:
        """Returns the attraction of an arm."""
        return float(self.attraction[arm]) if arm < len(self.attraction) else self.average


NOTHING = Looked(np.ones(0), np.zeros(0), 0.0)


class SlateModel(Part):
    """A model of places. It fills the slot `slate` of a policy on arms."""

    @abstractmethod
    def shares(self, places: Sequence[Place], looked: Looked) -> list[float | None]:
        """Returns the share by which the answer of each place counts, within [0, 1]. None while it is not known.

        A place whose share is 0 teaches nothing. Further answers of the slate change no share that is known.

        Args:
            places: all of the slate, from the first.
            looked: what earlier slates say (`look`).
        """

    @property
    def learns(self) -> bool:
        """True if `shares` depends on what earlier slates say."""
        return False

    def look(self, seen: Iterable[tuple[int, int, bool]]) -> Looked:  # noqa: ARG002
        """Returns what earlier slates say, if the model `learns`.

        Args:
            seen: place and arm of each answer, and whether it is another value than 0.
        """
        return NOTHING

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` for policies without arms, and those that play a trial several times."""
        super().check(policy)
        if policy.objective_count > 1 or policy.constraint_count:
            raise InvalidInput(
                "`slate` is for one reward of each place, and the policy has several objectives or constraints.",
                advice="Leave `slate` out: each place's answers then count as they are.",
            )
        if not hasattr(policy.domain, "points") or policy.switching is not None:
            raise InvalidInput("`slate` is for policies on `Arms` that play each choice once: leave it out.")

    def check_places(self, count: int) -> None:
        """Raises `InvalidInput` if a slate has more places than the model knows."""


@final
@description(frozen=True)
class Cascade(SlateModel):
    """The cascade model: places are looked at in turn, until the first that attracts.

    The places after it were not seen, and teach nothing. A place without an answer teaches once all places before it
    are over, or as soon as a later one is answered.

    >>> import nilregret as nr
    >>> policy = nr.auto(nr.Arms(range(6)), reward="bernoulli", slate="cascade")
    >>> study = nr.Study(policy, seed=0)
    >>> page = study.ask(count=3, slate=True)
    >>> [trial.reward for trial in study.tell_slate(page, clicked=1)]
    [0.0, 1.0, 0.0]
    """

    def shares(self, places: Sequence[Place], looked: Looked) -> list[float | None]:  # noqa: ARG002
        """Returns 1 up to the first answer, and 0 after it."""
        found: list[float | None] = []
        last = max((i for i, place in enumerate(places) if place.answered), default=-1)
        ended, known = False, True  # Whether somebody stopped before, and whether it is known that nobody did.
        for i, place in enumerate(places):
            found.append(0.0 if ended else 1.0 if known or i <= last else None)
            ended, known = ended or place.answered, known and place.over
        return found


@final
@description(frozen=True)
class Positions(SlateModel):
    """The position-based model: an answer comes with the weight of the place times the attraction of the arm.

    An answer other than 0 counts whole. A 0 counts by the probability that the place was seen. Attractions, and weights
    that are not given, follow from earlier slates (`looked`). They are taken anew each time that a quarter more trials
    were asked for, from the last 50,000, so a replay finds the same.

    Where contexts decide which arm comes first, learned weights lean towards the places of sure choices. Where a policy
    has become sure, hardly an arm changes places, and they drift. Then give weights that were measured with places at
    random: the posterior of an arm is right as far as they are.

    Attributes:
        weights: probability that each place is seen, the first one first, or None to learn them.

    >>> import nilregret as nr
    >>> policy = nr.auto(nr.Arms(range(6)), reward="bernoulli", slate=nr.slots.Positions((1.0, 0.6, 0.3)))
    >>> study = nr.Study(policy, seed=0)
    >>> [trial.place for trial in study.ask(count=3, slate=True)]
    [0, 1, 2]
    """

    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.weights is None:
            return
        given = finite_array("weights", self.weights)
        if given.ndim != 1 or not 0 < len(given) <= MOST_PLACES:
            raise InvalidInput(f"`weights` is {shown(self.weights)}: it must be a number for each place.")
        for each in given:
            number("weights", float(each), low=0.0, high=1.0, open_low=True, why="A place is seen with some chance.")
        settle(self, weights=tuple(map(float, given)))

    def shares(self, places: Sequence[Place], looked: Looked) -> list[float | None]:
        """Returns 1 for an answer other than 0, else the probability that the place was seen."""
        found: list[float | None] = []
        weights = looked.weights if self.weights is None else self.weights
        for i, place in enumerate(places):
            k, a = float(weights[i]) if i < len(weights) else 1.0, looked.of(place.arm)
            found.append(1.0 if place.answered or k == 1.0 else k * (1.0 - a) / (1.0 - k * a))
        return found

    @property
    def learns(self) -> bool:
        """True, since attractions are learned, and weights if they are not given."""
        return True

    def look(self, seen: Iterable[tuple[int, int, bool]]) -> Looked:
        """Returns weights, given or learned, and attractions that explain earlier answers."""
        return looked_at(seen, self.weights)

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` for policies that cannot weigh answers."""
        super().check(policy)
        from .silence import weighs

        told = policy.memory.weighs and policy.confidence.weighs and policy.objective.is_reward and policy.noise > 0.0
        if not weighs(policy) and (policy.fitting is not None or not told):
            raise InvalidInput(
                "`Positions` counts some answers less than others, which this policy cannot do: its noise is fitted, "
                "or its bounds or its memory are for one noise of all answers.",
                advice="Take `nr.auto(arms, context=..., reward='bernoulli', slate='positions')`, or `Cascade`.",
            )

    def check_places(self, count: int) -> None:
        """Raises `InvalidInput` if a slate has more places than there are weights."""
        if self.weights is not None and count > len(self.weights):
            raise InvalidInput(
                f"The slate has {many(count, 'place')}, and `Positions` has {many(len(self.weights), 'weight')}: give "
                "one for each place, or leave `weights` out to learn them."
            )


def looked_at(seen: Iterable[tuple[int, int, bool]], known: Sequence[float] | None = None) -> Looked:
    """Returns weights and attractions that explain answers.

    They solve, for each place l and each arm i, the moment equations of the position-based model,

        sum of answers = sum of k_l a_i over the places shown,

    with `PRIOR` answers more as if k_l were 1 and a_i the average. Sums run in one order on every processor.

    Args:
        seen: place and arm of each answer, and whether it is another value than 0.
        known: weights that are given, or None.
    """
    shows: dict[tuple[int, int], list[int]] = {}
    for place, arm, answered in seen:
        cell = shows.setdefault((place, arm), [0, 0])
        cell[0] += 1
        cell[1] += answered
    if not shows:
        return NOTHING
    places, arms = (1 + max(cell[axis] for cell in shows) for axis in (0, 1))
    n, s = np.zeros((places, arms)), np.zeros((places, arms))
    for (place, arm), (count, clicks) in shows.items():
        n[place, arm], s[place, arm] = count, clicks
    average = float(_down(_down(s)[:, None])[0]) / float(_down(_down(n)[:, None])[0])
    if average == 0.0:
        return Looked(np.ones(places), np.zeros(arms), 0.0)
    weights, attraction = np.ones(places), np.full(arms, average)
    if known is not None:
        weights[: len(known)] = known[:places]
    by_arm, by_place = _down(s), _down(np.ascontiguousarray(s.T))
    for _ in range(PASSES):
        attraction = np.minimum((by_arm + PRIOR * average) / (_down(n * weights[:, None]) + PRIOR), 1.0)
        if known is not None:
            break
        expected = _down(np.ascontiguousarray((n * attraction).T))
        weights = (by_place + PRIOR) / (expected + PRIOR)
        weights = weights / weights.max()
    return Looked(np.minimum(weights, 1.0), attraction, float(_down(attraction[:, None])[0]) / arms)


def _down(table: Array) -> Array:
    """Returns the sums of columns, added row by row, `(n,)`."""
    return np.asarray(np.add.accumulate(table, axis=0)[-1])
