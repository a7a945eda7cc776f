"""Many worlds of one policy on finitely many arms, which advance together round by round.

| symbol | name | meaning | shape |
|---|---|---|---|
| S | `worlds` | simulated worlds, each with its seed and environment | |
| N, C | | arms, and contexts (1 without contexts) | |
| T | `rounds` | rounds | |

The policy's own parts decide. They are called once for all worlds (`Part.batched`), with arrays `(S, N)` of all arms.
Random numbers are those of each world's own study, so each world makes the choices that it makes alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast, final

import numpy as np

from .._utils.checks import Array, IndexArray
from .._utils.errors import NoRegretError
from ..domains.search.arms import best_arms
from ..gp.arm_batches import ArmBeliefs
from ..gp.low_rank_arms import LowRankPosterior
from ..policy.policy import Policy
from ..study.cautions import FIRST, Answered, cautions, next_check, suspicious
from ..study.inputs import Inputs
from .environments import Environment
from .late_answers import LateAnswers, Told
from .learning import Learning
from .many_tables import ManyTables
from .results import Run
from .truths import Truths


class NotTogether(NoRegretError):
    """A sign that worlds must be simulated one by one, such as an error of one of them."""


@final
class ManyWorlds:
    """The state of S runs.

    Args:
        policy: the policy of all worlds, which is `batched`.
        envs: the environment of each world. All have delays, with the same interval, or none has.
        rounds: T.
        seeds: the seed of each world.
        empty: the posterior before the first observation.
    """

    def __init__(
        self, policy: Policy, envs: Sequence[Environment], rounds: int, *, seeds: Sequence[int], empty: LowRankPosterior
    ) -> None:
        self.policy, self.rounds, self.seeds = policy, rounds, seeds
        self.truths = Truths(envs, rounds, seeds)
        clock = np.concatenate([[0.0], np.cumsum(np.full(rounds, envs[0].interval))])
        self.late = None if envs[0].delay is None else LateAnswers(envs, seeds, clock)
        shape = (len(seeds), rounds)
        self.arms, self.answered_by = np.zeros(shape, dtype=np.intp), np.full(shape, rounds, dtype=np.intp)
        self.rewards, self.regret = np.zeros(shape), np.zeros(shape)
        apart = self.late is not None and policy.pending.hallucinates
        self.learning = Learning(policy, ArmBeliefs(empty, len(seeds), apart=apart), self.rewards, clock)
        self.tables = ManyTables(self.learning, self.truths, seeds)
        self._next_check: list[float] = [FIRST] * len(seeds)
        self.unsaid: list[dict[str, str]] = [{} for _ in seeds]

    def run(self) -> list[tuple[Run, dict[str, str]]]:
        """Plays all rounds. Returns the run of each world, with the warnings of its study by kind.

        Raises:
            NoRegretError: if some world raises an error. It raises the same error alone.
        """
        for t in range(self.rounds):
            arms = self.arms[:, t] = self._choose(t)
            values, best = self.truths.expected(t, arms)
            rewards = self.rewards[:, t] = values + self.truths.noise[:, t]
            self.regret[:, t] = best - values
            if self.late is None:
                self.answered_by[:, t] = t
                self.learning.learn_at_once(t, self.truths.cells(t, arms), rewards)
                if t + 1 >= self._next_check[0]:
                    self._next_check[0] = next_check(t + 1, constrained=False)
                    self._compare_all(t + 1)
                continue
            came = self.late.after(t, self.policy.domain.points[arms], rewards)
            self._compare_told(t + 1, came)
            self.answered_by[came.worlds, came.numbers] = t
            self.learning.learn(t, self.truths.cells(t, arms), came)
        self._check()
        return [(self._run_of(world), self.unsaid[world]) for world in range(len(self.seeds))]

    def _choose(self, t: int) -> IndexArray:
        """Returns the arm of each world in a round, `(S,)`."""
        score, tables = self.policy.score, self.tables
        tables.begin(t)
        if type(tables.width) is not float and not np.isfinite(cast(Array, tables.width)).all():
            raise NotTogether("The width of a world is no finite number.")
        size = self.learning.beliefs.observed.size if score.in_rewards else 1.0
        return best_arms(score.on_table(tables), size, tables.randomness_of)

    # -- checks of a study ---------------------------------------------------------------------------------------

    def _check(self) -> None:
        """Raises an error for rewards that a study would not accept."""
        told, inputs = self.rewards[self.answered_by < self.rounds], Inputs(self.policy, "maximize")
        if told.size:
            inputs.reward(float(told.min()))
            inputs.reward(float(told.max()))

    def _compare_all(self, asked: int) -> None:
        """Compares the rewards of all trials with the policy's scales, as a study does."""
        cells = self.learning.cells[:, :asked]
        for world in np.flatnonzero(suspicious(self.policy, self.rewards[:, :asked], cells, asked)).tolist():
            self._compare(world, np.arange(asked), asked)

    def _compare_told(self, asked: int, came: Told) -> None:
        """Compares the rewards told so far, where a check is due at the first answer of a round."""
        first = came.some(came.ranks == 0)
        for world, number in zip(first.worlds.tolist(), first.numbers.tolist(), strict=True):
            if asked >= self._next_check[world]:
                self._next_check[world] = next_check(asked, constrained=False)
                self.answered_by[world, number] = asked - 1
                self._compare(world, np.flatnonzero(self.answered_by[world] < self.rounds), asked)

    def _compare(self, world: int, numbers: IndexArray, asked: int) -> None:
        where = self.truths.places(world, self.arms[world])[numbers].tolist()
        answered = Answered.once(self.rewards[world, numbers], where, trials=asked)
        said = self.unsaid[world]  # First, so that kinds stay in their order, and last, so that sentences stay.
        self.unsaid[world] = said | cautions(self.policy, answered, np.zeros(0)) | said

    # -- results -------------------------------------------------------------------------------------------------

    def _run_of(self, world: int) -> Run:
        rounds, g = self.rounds, np.zeros((self.rounds, 0))
        return Run(
            points=self.policy.domain.points[self.arms[world]],
            arms=self.arms[world],
            contexts=self.truths.contexts_of(world),
            explored=np.zeros(rounds, dtype=bool),
            rewards=self.rewards[world],
            regret=self.regret[world],
            answered_by=self.answered_by[world],
            limited_by=self.answered_by[world],
            constraints=g,
            told_constraints=g,
            multipliers=g,
            restarts=(),
            batched=True,
        )
