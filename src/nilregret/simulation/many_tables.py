"""A round of many worlds, as scores and widths see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, cast, final

import numpy as np

from .._utils.checks import Array, IndexArray
from .._utils.randomness import Randomness, Words, seed_words
from ..gp.information_gain import GreedyDesign
from ..policy.engines import table
from ..slots.acquisition import TableView
from ..slots.envelope import Envelope, Progress, Symmetric, Width
from .learning import Learning
from .truths import Truths


@final
class ManyTables(TableView):
    """The view of a round of S worlds. Its arrays have a leading axis of worlds, and its numbers are `(S, 1)`.

    Args:
        learning: what the worlds have learned.
        truths: their environments.
        seeds: the seed of each world.
    """

    def __init__(self, learning: Learning, truths: Truths, seeds: Sequence[int]) -> None:
        self._learning, self._policy, self._beliefs = learning, learning.policy, learning.beliefs
        self._truths, self._seeds = truths, seeds
        self.norm_growth = 1.0

    def begin(self, t: int) -> None:
        """Begins a round, from 0."""
        self.round, self._number = t + 1, t
        self._cells = self._truths.cells_now(t)
        self._drawn: dict[int, Randomness] = {}
        self._words: Words | None = None
        self.width = cast(Width, self._policy.confidence).width(t + 1, self._progress(t))

    def _progress(self, t: int) -> Progress:
        window = self._policy.window
        return Progress(
            cast(Any, self._beliefs.with_pending),
            design=lambda: self._greedy_design,
            recent=None if window is None else partial(self._learning.recent, t, window),
            answers=cast(Any, self._beliefs.observed),
        )

    @cached_property
    def _greedy_design(self) -> GreedyDesign:
        policy = self._policy
        return GreedyDesign(policy.kernel, table(policy.domain, policy.context), policy.regularization)

    def randomness_of(self, world: int) -> Randomness:
        """Returns the random numbers of a world's trial."""
        known = self._drawn.get(world)
        if known is None:
            known = self._drawn[world] = Randomness(self._seeds[world], self._number, partial(self._words_of, world))
        return known

    def _words_of(self, world: int) -> Words:
        """Returns the words of a world's trial, which are made for all worlds at once."""
        if self._words is None:
            self._words = seed_words(self._seeds, [self._number] * len(self._seeds))
        return np.asarray(self._words[world])

    def limits(self) -> list[Envelope]:
        """Returns an empty list, since worlds whose constraints have posteriors are simulated one by one."""
        return []

    def informs(self, places: IndexArray, goals: IndexArray) -> Array:
        """Returns an empty array, as there are no such constraints."""
        return np.zeros((0, len(places), len(goals)))

    def envelope(self) -> Envelope:
        """Returns the bounds of every arm, `(S, N)`."""
        return Symmetric(cast(float, self.width))(*self._beliefs.predict(self._cells))

    def best_mean(self) -> Any:
        """Returns the highest posterior mean of each world, `(S, 1)`."""
        return self._beliefs.predict(self._cells)[0].max(axis=1, keepdims=True)

    def best_reward(self) -> Any:
        """Returns the highest reward under the context of each world, `(S, 1)`, less the prior mean."""
        rows = self._truths.rows
        best = self._learning.best_rewards(self._number, rows, rows[:, self._number])
        return np.where(best > -np.inf, best - self._policy.prior_mean, 0.0)

    def drawn(self, width: Callable[[int, Randomness], float]) -> Any:
        """Returns the random width of each world, `(S, 1)`."""
        return np.array([[width(self.round, self.randomness_of(world))] for world in range(len(self._seeds))])

    def draw(self) -> Array:
        """Returns a draw from GP(mu, width^2 cov) of each world, `(S, N)`."""
        generators = [self.randomness_of(world).generator for world in range(len(self._seeds))]
        own = self._policy.score.own_width
        return self._beliefs.draw(generators, self._cells, width=cast(float, self.width) if own is None else own)
