"""Why a state decides as it does: what was compared, what forced the round, and how probable the choice was.

Nothing here decides: it asks the state and its engine for what they ask themselves, with the same random numbers.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .._utils.checks import Array, IndexArray
from .._utils.randomness import Randomness, propensity_generator
from ..domains.domain import Arms, Box, Domain
from ..gp import Belief
from ..slots.feasibility import Mask
from ..storage.record import Trial
from .availability import Available
from .decide import Posed, pose
from .engines import Compared, Engine, Question
from .state import State

APART = 0.02  # share of the diagonal of a continuous domain within which a point is no other one


class Propensity(NamedTuple):
    """How probable it was that a trial would be what it is, given the record before it.

    Attributes:
        value: the probability; of a uniform round on a box, which has infinitely many points, the density there. Where
            it is estimated what was chosen counts as one of the draws, for it was drawn by the same chance: never 0,
            and 1 / value is (1 - (1 - p)^(draws + 1)) / p on average, of a probability p.
        standard_error: of `value`; 0 where it is exact.
        draws: that it was estimated from; 0 where it is exact.
        density: whether it is a density, per unit of volume in the coordinates of `trial.point`.
    """

    value: float
    standard_error: float = 0.0
    draws: int = 0
    density: bool = False


class Reasons(NamedTuple):
    """What a state decides from.

    Attributes:
        forced_by: the part that forces the round, or None.
        rule: the score that makes points attractive in this round; None of a uniform one.
        compared: what was compared, by the numbers that decide; None of a uniform round.
        shown: scores of what was compared, in reward units where a score is in such, `(n,)`.
        propensity: of the trial; None on continuous domains, but for uniform rounds on a box, and of initial designs.
        width: what multiplied the standard deviation, where the score drew it; None elsewhere.
    """

    forced_by: str | None
    rule: str | None
    compared: Compared | None
    shown: Array
    propensity: Propensity | None
    width: float | None = None


class Inquiry(NamedTuple):
    """A question about one decision.

    Attributes:
        state: after all that happened before the trial, and nothing else; it has just decided (`State.decide`).
        trial: that was asked for then.
        now: Unix seconds, as of that decision.
        available: what could be played.
        draws: from which a propensity is estimated where it cannot be worked out.
        repeated: whether the state has decided as the trial was.
    """

    state: State
    trial: Trial
    now: float
    available: Available | None
    draws: int
    repeated: bool

    def reasons(self) -> Reasons:
        """Why."""
        randomness = self._randomness()
        forcing, question, left = self._posed(randomness)
        forced_by = None if forcing is None else type(forcing).__name__
        by_chance = randomness.used  # by now: then chance decides whether the round is forced
        if question is None:
            propensity = self._estimated(None, None) if by_chance else self._of_uniform(left)
            return Reasons(forced_by, None, None, np.zeros(0), propensity)
        point = self.trial.point
        compared = self._engine.compared(self._belief, question.centred(), left, point)
        if compared.tied is None or (forcing is not None and forcing.score is None):
            propensity = None  # places that a part drew for the whole study leave nothing to chance now
        elif by_chance:
            propensity = self._estimated(None, None)
        elif randomness.used:  # by a score that draws
            propensity = self._estimated(question, left)
        else:
            propensity = self._of_ties(compared) if self._is_finite() else None
        shown, width = self._shown(question, compared), question.score.drawn_width(question.round, self._randomness())
        return Reasons(forced_by, type(question.score).__name__, compared, shown, propensity, width)

    def _randomness(self) -> Randomness:
        return Randomness(self.state.rounds.seed, self.trial.number)

    @property
    def _engine(self) -> Engine[Any]:
        return self.state.outputs.engine

    @property
    def _belief(self) -> Belief[Any]:
        return self.state.reward.posterior.belief

    def _posed(self, randomness: Randomness) -> Posed:
        return pose(self.state.memory, self.trial.context, randomness, now=self.now, available=self.available)

    def _shown(self, question: Question, compared: Compared) -> Array:
        """The scores, in reward units: those that decide may be less a centre."""
        if not (question.units.center and question.score.in_rewards):
            return compared.scores
        _, again, left = self._posed(self._randomness())
        if again is None:  # it was a question a moment ago
            return compared.scores
        return self._engine.compared(self._belief, again, left, self.trial.point).scores

    def _is_finite(self) -> bool:
        """Whether there were finitely many points to choose from."""
        return self.available is not None or isinstance(self.state.policy.domain, Arms)

    # -- how probable it was -------------------------------------------------------------------------------------

    def _is(self, points: Array, arms: IndexArray | None) -> Mask:
        """Which of some choices are the trial's, `(n,)`."""
        return np.asarray(arms == self.trial.arm if arms is not None else (points == self.trial.point).all(axis=1))

    def _of_ties(self, compared: Compared) -> Propensity:
        """One of those that share the draw among the best; where there is one alone, certain."""
        tied = compared.tied
        return Propensity(float(self._is(compared.points, compared.arms)[tied].mean()))

    def _of_uniform(self, available: Available | None) -> Propensity | None:
        """One of those left; a density where there are infinitely many (of a box, what has failed included)."""
        left, domain = self._engine.left(available), self.state.policy.domain
        if left is not None:
            return Propensity(float(self._is(left.points, left.arms).mean()))
        if not isinstance(domain, Box):
            return None
        return Propensity(float(np.prod(1.0 / (domain.upper - domain.lower))), density=True)

    def _estimated(self, question: Question | None, left: Available | None) -> Propensity | None:
        """How often the trial comes when it is decided again by other random numbers.

        Args:
            question: of this round, where chance has no part in it; None to pose it anew each time.
            left: what the question is about.
        """
        seed, number = self.state.rounds.seed, self.trial.number
        if not self.draws or not self._is_finite():
            return None
        generator, hits = propensity_generator(seed, number), 0
        for _ in range(self.draws):
            randomness, posed, among = Randomness.again(seed, number, generator), question, left
            if posed is None:
                _, posed, among = self._posed(randomness)
            if posed is None:
                decision = self._engine.anywhere(randomness, among)
            else:
                decision = self._engine.choose(self._belief, posed._replace(randomness=randomness), among)
            arms = None if decision.arm is None else np.array([decision.arm])
            hits += int(self._is(decision.point[None], arms)[0])
        share = (hits + 1) / (self.draws + 2)  # for the error alone: 0 hits of many are no certainty
        itself = int(self.repeated)
        value = (hits + itself) / (self.draws + itself)
        return Propensity(value, math.sqrt(share * (1.0 - share) / self.draws), self.draws)


def runner_up(compared: Compared, trial: Trial, domain: Domain) -> int | None:
    """The place of the best that was compared besides what was chosen; None where there is none.

    On a continuous domain it is at least 2% of the diagonal away: beside every maximum there are points nearly as good.
    """
    scores = compared.scores.copy()
    if compared.arms is not None:
        scores[compared.arms == trial.arm] = -np.inf
    elif compared.tied is not None or isinstance(domain, Arms):
        scores[(compared.points == trial.point).all(axis=1)] = -np.inf
    else:
        offsets = (compared.points - trial.point) / (domain.upper - domain.lower)
        scores[np.einsum("ij,ij->i", offsets, offsets) <= APART**2 * domain.dimension] = -np.inf
    best = int(scores.argmax())
    return best if np.isfinite(scores[best]) else None
