"""Reasons for a decision: the points compared, the part that forced the round, and the probability of the choice.

Nothing here decides. The state and its engine are asked again, with the same random numbers.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .._utils.checks import Array
from .._utils.randomness import Draws, Randomness
from ..domains.domain import Arms, Box, Domain, alike
from ..gp import Belief
from ..slots.no_worse import Standing
from ..storage.record import Trial
from .availability import Available
from .decide import Posed, held, pose, propensity
from .engines import Compared, Decision, Engine, Question
from .state import State

APART = 0.02  # share of the diagonal of a continuous domain: nearer points count as the same point


class Propensity(NamedTuple):
    """The probability of a choice, given the record before it.

    Attributes:
        value: the probability. Of a uniform round on a box it is the density at the point. An estimate counts the
            choice itself as one of the draws, since it was drawn by the same chance. So it is never 0, and for a
            probability p the mean of 1 / value is (1 - (1 - p)^(draws + 1)) / p.
        standard_error: the standard error of `value`, or 0 if it is exact.
        draws: the number of draws of an estimate, or 0 if it is exact.
        density: whether `value` is a density, per unit of volume in the coordinates of `trial.point`.
    """

    value: float
    standard_error: float = 0.0
    draws: int = 0
    density: bool = False


class Reasons(NamedTuple):
    """The reasons for a decision.

    Attributes:
        forced_by: the name of the part that forced the round, or None.
        rule: the name of the score of the round, or None if the round was uniform.
        compared: the points that were compared, or None if the round was uniform.
        shown: the scores of these points, `(n,)`, in reward units if the score has such units.
        propensity: the probability of the trial. None on continuous domains, except for uniform rounds on a box.
        width: the multiple of the standard deviation that the score drew, or None if it drew none.
        budgets: the budgets of `nr.NoWorse` before the decision.
        instead: the decision of the policy, if a budget held the round to the control, or None.
    """

    forced_by: str | None
    rule: str | None
    compared: Compared | None
    shown: Array
    propensity: Propensity | None
    width: float | None = None
    budgets: tuple[Standing, ...] = ()
    instead: Decision | None = None


class Inquiry(NamedTuple):
    """A question about one decision.

    Attributes:
        state: the state before the trial. It has just decided (`State.decide`).
        trial: the trial that was asked for.
        now: the time of the decision, Unix seconds.
        available: what could be played, or None for everything.
        draws: the number of draws for a propensity by a law that a part does not say.
        repeated: whether the state has decided for the same point as the trial's.
    """

    state: State
    trial: Trial
    now: float
    available: Available | None
    draws: int
    repeated: bool

    def reasons(self) -> Reasons:
        """Returns the reasons for the decision."""
        found, memory, trial = self._reasons(), self.state.memory, self.trial
        if not memory.rounds.budgets:
            return found
        budgets = tuple(budget.standing(trial.context) for budget in memory.rounds.budgets)
        instead = (
            self._decided(self._randomness(), guarded=False) if held(memory, trial.context, self.available) else None
        )
        return found._replace(budgets=budgets, instead=instead)

    def _reasons(self) -> Reasons:
        randomness = self._randomness()
        forcing, question, left = self._posed(randomness)
        forced_by = None if forcing is None else type(forcing).__name__
        surely_uniform = question is None and not randomness.used
        found = self._propensity() or (self._density() if surely_uniform else None)
        if question is None:
            return Reasons(forced_by, None, None, np.zeros(0), found)
        compared = self._engine.compared(self._belief, question.centred(), left, self.trial.point)
        shown, width = self._shown(question, compared), question.score.drawn_width(question.round, self._randomness())
        return Reasons(forced_by, type(question.score).__name__, compared, shown, found, width)

    def _randomness(self) -> Randomness:
        return Randomness(self.state.rounds.seed, self.trial.number)

    @property
    def _engine(self) -> Engine[Any]:
        return self.state.outputs.engine

    @property
    def _belief(self) -> Belief[Any]:
        return self.state.reward.posterior.belief

    def _posed(self, randomness: Randomness, *, guarded: bool = True) -> Posed:
        asked: dict[str, Any] = {"now": self.now, "available": self.available, "guarded": guarded}
        return pose(self.state.memory, self.trial.context, randomness, **asked)

    def _decided(self, randomness: Randomness, *, guarded: bool = True) -> Decision:
        """Returns the decision by these random numbers."""
        _, question, left = self._posed(randomness, guarded=guarded)
        if question is None:
            return self._engine.draw_uniform(randomness, left)
        return self._engine.choose(self._belief, question, left)

    def _shown(self, question: Question, compared: Compared) -> Array:
        """Returns the scores in reward units. Those that decide may be less a centre."""
        if not (question.units.center and question.score.in_rewards):
            return compared.scores
        _, again, left = self._posed(self._randomness())
        if again is None:  # it was a question a moment ago
            return compared.scores
        return self._engine.compared(self._belief, again, left, self.trial.point).scores

    def _is_finite(self) -> bool:
        """Returns whether there were finitely many points to choose from."""
        return self.available is not None or isinstance(self.state.policy.domain, Arms)

    # -- how probable it was -------------------------------------------------------------------------------------

    def _propensity(self) -> Propensity | None:
        """Returns the probability of the trial by the laws of the parts, or else an estimate."""
        trial, memory = self.trial, self.state.memory
        decision = Decision(trial.point, trial.arm, trial.explored)
        value = propensity(memory, decision, trial.context, now=self.now, available=self.available)
        return self._estimated() if value is None else Propensity(value)

    def _density(self) -> Propensity | None:
        """Returns the density of a uniform round on a box, or None elsewhere. It includes places that have failed."""
        domain = self.state.policy.domain
        if self._is_finite() or not isinstance(domain, Box):
            return None
        return Propensity(float(np.prod(1.0 / (domain.upper - domain.lower))), density=True)

    def _estimated(self) -> Propensity | None:
        """Returns the share of decisions by other random numbers that choose the trial, or None if there is none."""
        seed, number = self.state.rounds.seed, self.trial.number
        if not self.draws or not self._is_finite():
            return None
        draws, hits = Draws(f"propensity {seed} {number}"), 0
        for _ in range(self.draws):
            decision = self._decided(Randomness(seed, number, draws))
            same = alike(self.state.policy.domain, decision.point, self.trial.point)
            hits += decision.arm == self.trial.arm if decision.arm is not None else same
        share = (hits + 1) / (self.draws + 2)  # for the error alone: 0 hits of many are no certainty
        itself = int(self.repeated)
        value = (hits + itself) / (self.draws + itself)
        return Propensity(value, math.sqrt(share * (1.0 - share) / self.draws), self.draws)


def runner_up(compared: Compared, trial: Trial, domain: Domain) -> int | None:
    """Returns the index of the best compared point other than the choice, or None if there is none.

    On a continuous domain that point is at least 2% of the diagonal away, since points near a maximum are nearly as
    good.
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
