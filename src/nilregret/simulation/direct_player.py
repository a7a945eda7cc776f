"""Rounds of a policy that needs no trials: what a study would keep of them is in the columns of a simulation."""

from __future__ import annotations

from typing import NamedTuple, final

import numpy as np

from .._utils.checks import Array
from ..policy.policy import Policy
from ..policy.state import State
from ..storage.trial import Trial
from ..study.cautions import FIRST, Answered, cautions, next_check
from ..study.inputs import Inputs
from .results import Columns


class Played(NamedTuple):
    """A decision, with the attributes of a `Trial` that an environment reads."""

    number: int
    point: Array
    arm: int | None
    context: Array | None
    explored: bool


@final
class DirectPlayer:
    """A player in place of a study, with the same decisions and warnings.

    Args:
        policy: a policy that is `direct`.
        columns: of the simulation, which holds the decisions and rewards.
        seed: of the policy's choices.

    Attributes:
        held_warnings: sentences of warnings, by kind.
        restarts: rounds at which the memory was cut, of which there are none.
        last_multipliers: multipliers of the constraints, of which there are none.
    """

    def __init__(self, policy: Policy, columns: Columns, *, seed: int) -> None:
        self._policy, self._columns, self._inputs = policy, columns, Inputs(policy, "maximize")
        self._state = State(policy, seed=seed)
        self._state.reward.posterior.read_trials(self._trial)
        self._count = 0
        self._told: list[int] = []  # Numbers of rewards since the last decision.
        self._has_contexts = policy.context is not None
        self._contexts: dict[bytes, Array | None] = {}  # Contexts that were checked.
        self._next_check: float = FIRST
        self.held_warnings: dict[str, str] = {}
        self.restarts: list[int] = []
        self.last_multipliers: Array = np.zeros(0)

    def ask(self, context: Array | None) -> Played:
        """Returns the next decision."""
        if self._told:
            self._learn()
        if context is not None:
            context = self._checked(context)
        point, arm, explored, _, _ = self._state.play(context)
        number, self._count = self._count, self._count + 1
        return Played(number, point, arm, context, explored)

    def _learn(self) -> None:
        arms, rewards, told = self._columns.arms, self._columns.rewards, self._told
        for number in sorted(told) if len(told) > 1 else told:
            context = self._columns.contexts[number] if self._has_contexts else None
            self._state.learn(number, arms.item(number), context, rewards.item(number))
        told.clear()

    def _checked(self, context: Array) -> Array | None:
        key = context.tobytes()
        if key not in self._contexts:
            self._contexts[key] = self._inputs.context(context)
        return self._contexts[key]

    def tell(self, number: int, reward: float | None = None, *, constraints: Array | None = None) -> None:  # noqa: ARG002
        """Tells the reward of a round, which the columns hold. Constraint values teach a direct policy nothing."""
        if reward is None:
            return
        self._inputs.reward(reward)
        self._told.append(number)
        if self._count >= self._next_check:
            self._check()

    def _check(self) -> None:
        """Compares the rewards with the policy's scales, at 4, 16, 64, ... rounds."""
        count, columns = self._count, self._columns
        self._next_check = next_check(count, constrained=False)
        known = np.flatnonzero(columns.answered_by[:count] < len(columns.answered_by))
        arms, contexts = columns.arms[known].tolist(), columns.contexts[known]
        where = zip(arms, map(bytes, contexts), strict=True) if self._has_contexts else arms
        answered = Answered.once(columns.rewards[known], where, trials=count)
        said = self.held_warnings  # First, so that kinds stay in their order, and last, so that sentences stay.
        self.held_warnings = said | cautions(self._policy, answered, self.last_multipliers) | said

    def _trial(self, number: int) -> Trial:
        """Returns a round as a trial, as far as a direct policy reads it: without the times of its events."""
        columns = self._columns
        asked = Trial(
            number, columns.point(number), columns.arms.item(number), None, 2 * number + 1, 0.0,
            columns.contexts[number] if self._has_contexts else None, columns.explored.item(number),
        )  # fmt: skip
        return asked.answered(reward=columns.rewards.item(number), order=2 * number + 2, time=0.0)
