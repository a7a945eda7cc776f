"""Sources of all random numbers, with a separate stream for each purpose and without global state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import Any, Literal, cast, final

import numpy as np
import numpy.typing as npt
from numpy.random.bit_generator import ISeedSequence

from ..errors import InvalidInput
from .checks import LARGEST_SEED, integer

# Spawn keys of the noise of a simulated environment, which no trial of a policy shares.
_SIMULATION = {"rewards": (1,), "delays": (1, 1), "constraints": (1, 2), "constraint delays": (1, 3)}
_PROPENSITY = 5  # spawn key of the draws for the estimate of a propensity
_SKETCH = 6  # spawn key of the draws of inducing points
_WORLD = {"arms": 2, "function": 3, "changes": 4}  # spawn keys of the parts of a simulated problem

Words = npt.NDArray[np.uint64]


class Randomness:
    """The generator of one trial, `default_rng([seed, number])`, made on first use.

    Most decisions need no random number, and making a generator costs as much as half a round.

    Args:
        seed: of the study.
        number: of the trial.
        words: returns the words of its generator (see `seed_words`), `(4,)`. None if nobody has made them.
    """

    _replaced = False  # whether `again` has replaced the generator

    def __init__(self, seed: int, number: int, words: Callable[[], Words] | None = None) -> None:
        self._key, self._words = [seed, number], words

    @property
    def number(self) -> int:
        """Number of the trial."""
        return self._key[1]

    @cached_property
    def generator(self) -> np.random.Generator:
        """Generator of the trial, which depends only on the seed and the trial number."""
        if self._words is None:
            return np.random.default_rng(self._key)
        return np.random.Generator(
            np.random.PCG64(cast(Any, _Known(self._words())))
        )  # Type stubs know one kind of sequence.

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


@final
class _Known(ISeedSequence):
    """A seed sequence whose words are known. Its generator cannot spawn others, so searches do not use it.

    Args:
        words: `(4,)`.
    """

    def __init__(self, words: Words) -> None:
        self._words = words

    def generate_state(self, n_words: int, dtype: Any = np.uint64) -> Words:  # noqa: ARG002
        """Returns the words. A generator asks for four of 64 bits."""
        return self._words


def seed_words(seeds: Sequence[int], numbers: Sequence[int]) -> Words:
    """Returns the words from which `default_rng([seed, number])` starts, `(k, 4)`.

    It is the hash of `numpy.random.SeedSequence`, which NumPy keeps as it is, for many keys at a tenth of the cost.

    Args:
        seeds: k seeds.
        numbers: k numbers.
    """
    if max(*seeds, *numbers) > _MASK:  # Such keys have more than two numbers of 32 bits.
        keys = zip(seeds, numbers, strict=True)
        return np.array([np.random.SeedSequence(key).generate_state(4, np.uint64) for key in keys])
    pool = np.zeros((4, len(seeds)), dtype=np.uint32)
    pool[0], pool[1] = seeds, numbers
    pool = _hashed(pool, _POOL[:5])
    for source in range(4):
        others = [place for place in range(4) if place != source]
        first = 4 + 3 * source
        mixed = _MIX_LEFT * pool[others] - _MIX_RIGHT * _hashed(pool[source], _POOL[first : first + 4])
        pool[others] = mixed ^ mixed >> _HALF
    return np.ascontiguousarray(_hashed(pool[[0, 1, 2, 3] * 2], _STATE).T).view(np.uint64)


def _hashed(values: npt.NDArray[np.uint32], constants: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Returns the hash of rows, each with its constant and the next one, `(n, k)`."""
    mixed = (values ^ constants[:-1]) * constants[1:]
    return np.asarray(mixed ^ mixed >> _HALF)


def _powers(first: int, factor: int, count: int) -> npt.NDArray[np.uint32]:
    """Returns the constants of a hash as a column, `(count, 1)`."""
    return np.array([[first * pow(factor, i, _MASK + 1) & _MASK] for i in range(count)], dtype=np.uint32)


# The constants of `numpy.random.SeedSequence`.
_MASK = 0xFFFFFFFF
_POOL, _STATE = _powers(0x43B0D7E5, 0x931E8875, 17), _powers(0x8B51F9DD, 0x58F38DED, 9)
_MIX_LEFT, _MIX_RIGHT, _HALF = np.uint32(0xCA01F9DD), np.uint32(0x4973F715), np.uint32(16)


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
