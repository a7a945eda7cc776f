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

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, cast, final

import numpy as np

from .._utils.checks import LARGEST_REWARD, Array, IndexArray
from .._utils.errors import NoRegretError
from .._utils.randomness import Randomness
from ..domains.search.arms import best_arms
from ..gp.arm_batches import ArmBatch
from ..gp.information_gain import GreedyDesign
from ..kernels.domains import prior_std
from ..policy.engines import table
from ..policy.policy import Policy
from ..slots.acquisition import TableView
from ..slots.envelope import Envelope, Progress, Symmetric, Width
from ..study.cautions import FIRST, Answered, cautions, next_check, suspicious
from ..study.direction import reward_check
from .environments import Environment
from .results import Run
from .truths import Truths


class NotTogether(NoRegretError):
    """A sign that worlds must be simulated one by one, such as an error of one of them."""


@final
class ManyWorlds:
    """The state of S runs.

    Args:
        policy: the policy of all worlds, which is `batched`.
        envs: the environment of each world.
        rounds: T.
        seeds: the seed of each world.
        posterior: the posteriors of all worlds, without observations.
    """

    def __init__(
        self, policy: Policy, envs: Sequence[Environment], rounds: int, *, seeds: Sequence[int], posterior: ArmBatch
    ) -> None:
        self.policy, self.rounds, self.seeds = policy, rounds, seeds
        self.truths = Truths(envs, rounds, seeds)
        self.posterior = posterior
        self.prior_std = prior_std(policy.domain, policy.context, policy.kernel)
        self.worlds = np.arange(len(seeds))
        shape = (len(seeds), rounds)
        self.arms = np.zeros(shape, dtype=np.intp)
        self.rewards, self.regret = np.zeros(shape), np.zeros(shape)
        self.best_rewards = np.full((len(seeds), self.truths.contexts), -np.inf)
        self.unsaid: list[dict[str, str]] = [{} for _ in seeds]

    def run(self) -> list[tuple[Run, dict[str, str]]]:
        """Plays all rounds. Returns the run of each world, with the warnings of its study by kind.

        Raises:
            NoRegretError: if some world raises an error. It raises the same error alone.
        """
        following: float = FIRST
        for t in range(self.rounds):
            arms = self.arms[:, t] = self._choose(t)
            values, best = self.truths.expected(t, arms)
            rewards = values + self.truths.noise[:, t]
            self.rewards[:, t], self.regret[:, t] = rewards, best - values
            self._check(rewards)
            self._learn(t, arms, rewards)
            if t + 1 >= following:
                following = next_check(t + 1, constrained=False)
                self._compare(t + 1)
        return [(self._run_of(world), self.unsaid[world]) for world in self.worlds.tolist()]

    # -- decisions -----------------------------------------------------------------------------------------------

    def _choose(self, t: int) -> IndexArray:
        """Returns the arm of each world in a round, `(S,)`."""
        score = self.policy.score
        view = ManyTables(self, t, Symmetric(self._width(t)))
        size = self.prior_std if score.in_rewards else 1.0
        return best_arms(score.on_table(view), size, view.randomness_of)

    def _width(self, t: int) -> float:
        """Returns the width of a round, or those of all worlds, `(S, 1)`."""
        progress = Progress(cast(Any, self.posterior), design=lambda: self._greedy_design)
        width = cast(Width, self.policy.confidence).width(t + 1, progress)
        if not (math.isfinite(width) if isinstance(width, float) else np.isfinite(width).all()):
            raise NotTogether("The width of a world is no finite number.")
        return width

    @cached_property
    def _greedy_design(self) -> GreedyDesign:
        policy = self.policy
        return GreedyDesign(policy.kernel, table(policy.domain, policy.context), policy.regularization)

    # -- learning ------------------------------------------------------------------------------------------------

    def _learn(self, t: int, arms: IndexArray, rewards: Array) -> None:
        targets = rewards - self.policy.prior_mean
        self.posterior.append(self.truths.cells(t, arms), targets)
        rows = self.truths.rows(t)
        self.best_rewards[self.worlds, rows] = np.maximum(self.best_rewards[self.worlds, rows], rewards)

    def _check(self, rewards: Array) -> None:
        """Raises an error for rewards that a study would not accept."""
        least, most = float(rewards.min()), float(rewards.max())
        if not (least >= -LARGEST_REWARD and most <= LARGEST_REWARD):
            raise NotTogether("A reward is too large.")
        check = reward_check(self.policy, "maximize")
        if check is not None:
            check(least)
            check(most)

    def _compare(self, asked: int) -> None:
        """Compares the rewards with the policy's scales, as a study does."""
        rewards, cells = self.rewards[:, :asked], self.truths.cells_until(self.arms[:, :asked])
        for world in np.flatnonzero(suspicious(self.policy, rewards, cells, asked)).tolist():
            answered = Answered.once(rewards[world], cells[world].tolist(), trials=asked)
            self.unsaid[world] = cautions(self.policy, answered, np.zeros(0)) | self.unsaid[world]

    # -- results -------------------------------------------------------------------------------------------------

    def _run_of(self, world: int) -> Run:
        rounds, g = self.rounds, np.zeros((self.rounds, 0))
        known_by = np.arange(rounds)
        return Run(
            points=self.policy.domain.points[self.arms[world]],
            arms=self.arms[world],
            contexts=self.truths.contexts_of(world),
            explored=np.zeros(rounds, dtype=bool),
            rewards=self.rewards[world],
            regret=self.regret[world],
            answered_by=known_by,
            limited_by=known_by,
            constraints=g,
            told_constraints=g,
            multipliers=g,
            restarts=(),
            batched=True,
        )


@final
class ManyTables(TableView):
    """The view of a round of S worlds. Its arrays have a leading axis of worlds, and its numbers are `(S, 1)`."""

    def __init__(self, worlds: ManyWorlds, t: int, bounds: Symmetric) -> None:
        self._worlds, self._bounds = worlds, bounds
        self.round, self.width, self.norm_growth = t + 1, bounds.width, 1.0
        self._number = t
        self._cells = worlds.truths.cells_now(t)
        self._drawn: dict[int, Randomness] = {}

    def randomness_of(self, world: int) -> Randomness:
        """Returns the random numbers of a world's trial."""
        known = self._drawn.get(world)
        if known is None:
            known = self._drawn[world] = Randomness(self._worlds.seeds[world], self._number)
        return known

    def limits(self) -> list[Envelope]:
        """Returns an empty list, since worlds under constraints are simulated one by one."""
        return []

    def informs(self, places: IndexArray, goals: IndexArray) -> Array:
        """Returns an empty array, as there are no constraints."""
        return np.zeros((0, len(places), len(goals)))

    def envelope(self) -> Envelope:
        """Returns the bounds of every arm, `(S, N)`."""
        return self._bounds(*self._worlds.posterior.predict(self._cells))

    def best_mean(self) -> Any:
        """Returns the highest posterior mean of each world, `(S, 1)`."""
        return self._worlds.posterior.predict(self._cells)[0].max(axis=1, keepdims=True)

    def best_reward(self) -> Any:
        """Returns the highest reward under the context of each world, `(S, 1)`, less the prior mean."""
        worlds = self._worlds
        best = worlds.best_rewards[worlds.worlds, worlds.truths.rows(self._number)][:, None]
        return np.where(best > -np.inf, best - worlds.policy.prior_mean, 0.0)

    def drawn(self, width: Callable[[int, Randomness], float]) -> Any:
        """Returns the random width of each world, `(S, 1)`."""
        return np.array([[width(self.round, self.randomness_of(world))] for world in self._worlds.worlds.tolist()])

    def draw(self) -> Array:
        """Returns a draw from GP(mu, width^2 cov) of each world, `(S, N)`."""
        posterior = self._worlds.posterior
        generators = [self.randomness_of(world).generator for world in self._worlds.worlds.tolist()]
        return posterior.predict(self._cells)[0] + self._bounds.width * posterior.deviate(generators, self._cells)
