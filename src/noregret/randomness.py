"""Where every random number comes from: no global state, and a stream of its own for each purpose."""

from __future__ import annotations

from functools import cached_property

import numpy as np

_SIMULATION = 1  # spawn key of the environment's noise, which no trial of a policy shares


class Randomness:
    """The generator of one trial, `default_rng([seed, number])`, made only when something asks for it.

    Most decisions need no random number, and making a generator costs as much as half a round.
    """

    def __init__(self, seed: int, number: int) -> None:
        self._key = [seed, number]

    @cached_property
    def generator(self) -> np.random.Generator:
        """The trial's generator: the same for the same seed and trial number, whatever happened in between."""
        return np.random.default_rng(self._key)


def simulation_generator(seed: int) -> np.random.Generator:
    """The generator of a simulated environment's noise: independent of every decision made under the same seed."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_SIMULATION,)))
