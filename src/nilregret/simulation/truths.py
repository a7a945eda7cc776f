"""The environments of many worlds that advance together: contexts, noise and expected values as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast, final

import numpy as np

from .._utils.checks import Array, IndexArray
from .._utils.randomness import simulation_generator
from ..domains.domain import Arms
from .environments import Environment


@final
class Truths:
    """The environments of S worlds with the same N arms and C contexts (1 without contexts).

    Args:
        envs: the environments, each with a `table`.
        rounds: T.
        seeds: the seed of each world.

    Attributes:
        noise: the noise of each round, `(S, T)`.
        contexts: C.
        rows: the number of the context of each round, `(S, T)`.
    """

    def __init__(self, envs: Sequence[Environment], rounds: int, seeds: Sequence[int]) -> None:
        self._envs, self._arms = envs, len(cast(Arms, envs[0].domain))
        self._worlds = np.arange(len(envs))
        generators = [simulation_generator(seed, "rewards") for seed in seeds]
        self.noise = np.array(
            [env.noise * rng.standard_normal(rounds) for env, rng in zip(envs, generators, strict=True)]
        )
        known = cast("Arms | None", envs[0].contexts)
        self.contexts = 1 if known is None else len(known)
        self._seen = np.zeros((len(envs), rounds, 0))
        self.rows = np.zeros((len(envs), rounds), dtype=np.intp)
        if known is not None:
            self._seen = np.array(
                [[env.draw_context(rng, t) for t in range(rounds)] for env, rng in zip(envs, generators, strict=True)]
            )
            each, which = np.unique(self._seen.reshape(-1, known.dimension), axis=0, return_inverse=True)
            self.rows = known.index(each)[which].reshape(self.rows.shape)
        self._still = not any(env.change_points or env.changes_in(1) for env in envs)
        self._values, self._best = np.zeros((0, 0)), np.zeros((0, 0))

    def expected(self, t: int, arms: IndexArray) -> tuple[Array, Array]:
        """Returns the expected reward of each world's arm, and the largest one, each `(S,)`."""
        if t == 0 or (not self._still and any(env.changes_in(t) for env in self._envs)):
            tables = [cast(tuple[Array, Array], env.table(t)) for env in self._envs]
            self._values = np.array([values.reshape(-1) for values, _ in tables])
            self._best = np.array([best for _, best in tables])
        if self.contexts == 1:
            return self._values[self._worlds, arms], self._best[:, 0]
        return self._values[self._worlds, self.cells(t, arms)], self._best[self._worlds, self.rows[:, t]]

    def cells(self, t: int, arms: IndexArray) -> IndexArray:
        """Returns the place of each world's arm in the table of contexts and arms, `(S,)`."""
        return arms if self.contexts == 1 else self.rows[:, t] * self._arms + arms

    def cells_now(self, t: int) -> IndexArray | None:
        """Returns the places of all arms under each world's context, `(S, N)`, or None if the table has no others."""
        return None if self.contexts == 1 else self.rows[:, t, None] * self._arms + np.arange(self._arms)

    def places(self, world: int, arms: IndexArray) -> IndexArray:
        """Returns the places of a world's arms in all rounds, `(T,)`."""
        return np.asarray(self.rows[world] * self._arms + arms)

    def contexts_of(self, world: int) -> Array:
        """Returns the context of each round of a world, `(T, c)`."""
        return np.asarray(self._seen[world])
