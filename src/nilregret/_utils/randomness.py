"""Sources of all random numbers, with a separate stream for each purpose and without global state."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from hashlib import blake2b
from typing import Literal, cast

import numpy as np

from .checks import LARGEST_SEED, integer
from .errors import InvalidInput

# Spawn keys of the noise of a simulated environment, which no trial of a policy shares.
_SIMULATION = {"rewards": (1,), "delays": (1, 1), "constraints": (1, 2), "constraint delays": (1, 3)}
_PROPENSITY = 5  # spawn key of the draws for the estimate of a propensity
_SKETCH = 6  # spawn key of the draws of inducing points
_WORLD = {"arms": 2, "function": 3, "changes": 4}  # spawn keys of the parts of a simulated problem


class Randomness:
    """The generator of one trial, `default_rng([seed, number])`, made on first use.

    Most decisions need no random number, and making a generator costs as much as half a round.
    """

    _replaced = False  # whether `again` has replaced the generator

    def __init__(self, seed: int, number: int) -> None:
        self._key = [seed, number]

    @property
    def number(self) -> int:
        """Number of the trial."""
        return self._key[1]

    @cached_property
    def generator(self) -> np.random.Generator:
        """Generator of the trial, which depends only on the seed and the trial number."""
        return np.random.default_rng(self._key)

    @cached_property
    def uniform(self) -> float:
        """A number of the trial, uniform on (0, 1] and independent of the generator: a hash of (seed, number).

        It is for uses in every round, at a tenth of the cost of making the generator.
        """
        if self._replaced:
            return 1.0 - self.generator.random()
        digest = blake2b(b"%d,%d" % tuple(self._key), digest_size=8).digest()
        return ((int.from_bytes(digest, "little") >> 11) + 1) * 2.0**-53

    @property
    def used(self) -> bool:
        """True if a random number has been used."""
        return "generator" in self.__dict__ or "uniform" in self.__dict__

    @classmethod
    def again(cls, seed: int, number: int, generator: np.random.Generator) -> Randomness:
        """Returns the randomness of a trial that is decided once more, with other random numbers."""
        other = cls(seed, number)
        other.__dict__["generator"], other._replaced = generator, True
        return other


def propensity_generator(seed: int, number: int) -> np.random.Generator:
    """Returns the generator for the propensity of a trial, independent of the generator of its decision."""
    return np.random.default_rng(np.random.SeedSequence([seed, number], spawn_key=(_PROPENSITY,)))


def sketch_generator(seed: int, number: int) -> np.random.Generator:
    """Returns the generator of the inducing points after `number` observations, independent of all trials."""
    return np.random.default_rng(np.random.SeedSequence([seed, number], spawn_key=(_SKETCH,)))


def simulation_generator(
    seed: int, purpose: Literal["rewards", "delays", "constraints", "constraint delays"]
) -> np.random.Generator:
    """Returns the generator of a simulated environment's noise, independent of all decisions under the same seed."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=_SIMULATION[purpose]))


def world_generator(seed: int | Sequence[int], purpose: Literal["arms", "function", "changes"]) -> np.random.Generator:
    """Returns the generator of a simulated problem. Arms and function under one seed are independent.

    They are also independent of a run under this seed. Without spawn keys they would not be: `default_rng(7)` and a
    policy's `default_rng([7, 0])` are one stream.
    """
    why = "It is a whole number, or a sequence of them."
    several = isinstance(seed, Sequence) and not isinstance(seed, str | bytes)
    parts = list(cast("Sequence[int]", seed)) if several else [seed]
    if not parts:
        raise InvalidInput(f"`seed` is empty. {why}")
    listed = [integer("seed", part, low=0, high=LARGEST_SEED, why=why) for part in parts]
    return np.random.default_rng(np.random.SeedSequence(listed, spawn_key=(_WORLD[purpose],)))
