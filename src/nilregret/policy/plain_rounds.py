"""Plain rounds: those of a policy that learns from arms and rewards alone (`Policy.direct`).

Most of what a round may pass is dormant in them: fits, limits, windows, imputed values, changes, several plays. A study
in memory and a simulation play them through `PlainRounds`, with the arithmetic of `State.receive` and `decide` in the
same order. So decisions and beliefs are equal to the bit.
"""

from __future__ import annotations

import math
from typing import Any, final

from .._utils.checks import Array
from .._utils.randomness import Randomness
from ..domains.search.arms import best_arm, sole_best
from ..gp.arms import ArmPosterior
from ..storage.trial import Trial
from .decide import decide
from .engines import REWARDS
from .engines.arms import ArmEngine
from .state import State


def _compares_bounds(state: State) -> bool:
    """Returns whether a round plays the arm with the largest bound mean + width * std, and nothing else."""
    policy, engine, posterior = state.policy, state.outputs.engine, state.reward.posterior
    by_bound = policy.score.highest_bound and policy.score.cost is None and policy.confidence.multiple
    whole = (
        isinstance(engine, ArmEngine) and engine.context is None and not (policy.explore.ever or state.outputs.others)
    )
    return by_bound and whole and posterior.units is REWARDS and isinstance(posterior.belief.observed, ArmPosterior)


@final
class PlainRounds:
    """The plain rounds of one state.

    What is dormant is found out here, once. A state that is made anew has new rounds.

    Args:
        state: of a policy that is `direct`.

    Attributes:
        state: as given. These rounds change it.
    """

    def __init__(self, state: State) -> None:
        self.state, self._rounds, self._reward = state, state.rounds, state.reward
        self._outcomes, self._posterior = state.reward.data.outcomes, state.reward.posterior
        self._confidence, self._progress = state.policy.confidence, state.reward.progress(math.inf)
        self._engine: Any = state.outputs.engine
        self._alone = state.policy.context is None
        self._compares = _compares_bounds(state)
        prior = self._posterior.belief.observed.prior if self._compares else None
        self._size = prior.size if prior is not None and state.policy.score.in_rewards else 1.0

    def learns(self, trial: Trial) -> bool:
        """Returns whether the outcome of a trial is a plain reward, and no failure came before it."""
        return trial.reward is not None and trial.std is None and trial.repeats == 1 and self._outcomes.points is None

    def learn(self, entry: Trial | int, arm: int, context: Array | None, reward: float) -> None:
        """Learns the reward of a play. Those between two decisions come by number.

        Args:
            entry: the trial, or its number after `TrainedPosterior.read_trials`.
            arm: which was played.
            context: of the play, or None.
            reward: of the play.
        """
        self._outcomes.observe_reward(reward, context)
        self._posterior.learn_cell(entry, arm if self._alone else self._engine.cell_at(arm, context), reward)

    def play(self, context: Array | None) -> tuple[Array, int | None, bool]:
        """Returns point and arm of the next decision, which is played, and whether it was forced."""
        rounds, engine = self._rounds, self._engine
        if not self._compares or engine.failed:
            return self._decided(context)
        known, progress = self._posterior.belief.observed, self._progress
        if progress.answers is not known:
            progress = self._progress = self._reward.progress(math.inf)
        upper = self._confidence.bounds(rounds.number, progress).upper(*known.moments())
        arm = sole_best(upper, self._size)
        if arm is None:
            arm = best_arm(upper, self._size, Randomness(rounds.seed, rounds.count))
        point = engine.point(arm)
        rounds.play(point, explored=False)
        return point, arm, False

    def _decided(self, context: Array | None) -> tuple[Array, int | None, bool]:
        """Returns the decision of the general way."""
        rounds = self._rounds
        randomness = Randomness(rounds.seed, rounds.count)
        point, arm, explored, _, _ = decide(self.state.memory, context, randomness, now=math.inf, available=None)
        rounds.play(point, explored=explored)
        return point, arm, explored
