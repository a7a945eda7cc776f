"""Where every random number comes from: no global state, and a stream of its own for each purpose."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from hashlib import blake2b
from typing import Literal, cast

import numpy as np

from .checks import LARGEST_SEED, integer
from .errors import InvalidInput

# Spawn keys of what a simulated environment draws, which no trial of a policy shares.
_SIMULATION = {"rewards": (1,), "delays": (1, 1), "constraints": (1, 2), "constraint delays": (1, 3)}
_PROPENSITY = 5  # spawn key of the draws that a propensity is estimated from
_SKETCH = 6  # spawn key of the draws of inducing points
_WORLD = {"arms": 2, "function": 3, "changes": 4}  # spawn keys of what a simulated world is made of


class Randomness:
    """The generator of one trial, `default_rng([seed, number])`, made only when something asks for it.

    Most decisions need no random number, and making a generator costs as much as half a round.
    """

    _replaced = False  # whether the generator is another than its own

    def __init__(self, seed: int, number: int) -> None:
        self._key = [seed, number]

    @property
    def number(self) -> int:
        """Of the trial."""
        return self._key[1]

    @cached_property
    def generator(self) -> np.random.Generator:
        """The trial's generator: the same for the same seed and trial number, whatever happened in between."""
        return np.random.default_rng(self._key)

    @cached_property
    def uniform(self) -> float:
        """One number of the trial, uniform on (0, 1] and independent of the generator: a hash of (seed, number).

        For what needs one number in every round: it costs a tenth of making the generator.
        """
        if self._replaced:
            return 1.0 - self.generator.random()
        digest = blake2b(b"%d,%d" % tuple(self._key), digest_size=8).digest()
        return ((int.from_bytes(digest, "little") >> 11) + 1) * 2.0**-53

    @property
    def used(self) -> bool:
        """Whether anything has asked for a random number."""
        return "generator" in self.__dict__ or "uniform" in self.__dict__

    @classmethod
    def again(cls, seed: int, number: int, generator: np.random.Generator) -> Randomness:
        """That of a trial which is decided once more, by other random numbers."""
        other = cls(seed, number)
        other.__dict__["generator"], other._replaced = generator, True
        return other


def propensity_generator(seed: int, number: int) -> np.random.Generator:
    """What a trial's propensity is estimated with: the same for the same trial, and apart from its own draws."""
    return np.random.default_rng(np.random.SeedSequence([seed, number], spawn_key=(_PROPENSITY,)))


def sketch_generator(seed: int, number: int) -> np.random.Generator:
    """What the inducing points of a sketch are drawn with after so many observations: apart from any trial's own."""
    return np.random.default_rng(np.random.SeedSequence([seed, number], spawn_key=(_SKETCH,)))


def simulation_generator(
    seed: int, purpose: Literal["rewards", "delays", "constraints", "constraint delays"]
) -> np.random.Generator:
    """The generator of a simulated environment's noise: independent of every decision made under the same seed."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=_SIMULATION[purpose]))


def world_generator(seed: int | Sequence[int], purpose: Literal["arms", "function", "changes"]) -> np.random.Generator:
    """The generator that draws a world: arms and function under one seed are independent of each other and of a run's.

    Without keys of their own they would not be: `default_rng(7)` and a policy's `default_rng([7, 0])` are one stream.
    """
    why = "It is a whole number, or a sequence of them."
    several = isinstance(seed, Sequence) and not isinstance(seed, str | bytes)
    parts = list(cast("Sequence[int]", seed)) if several else [seed]
    if not parts:
        raise InvalidInput(f"`seed` is empty. {why}")
    listed = [integer("seed", part, low=0, high=LARGEST_SEED, why=why) for part in parts]
    return np.random.default_rng(np.random.SeedSequence(listed, spawn_key=(_WORLD[purpose],)))
