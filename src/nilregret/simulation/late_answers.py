"""The answers of many worlds that are under way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, IndexArray
from .._utils.randomness import simulation_generator
from ..environments import Environment
from .one_run import Deliveries


class Told(NamedTuple):
    """The k answers that came in one round, world by world, those of a world in the order in which they came.

    Attributes:
        worlds: `(k,)`.
        numbers: their trials, `(k,)`.
        times: seconds, `(k,)`.
    """

    worlds: IndexArray
    numbers: IndexArray
    times: Array

    def by_number(self) -> Told:
        """Returns the answers of each world in the order of their trials, as a world learns them."""
        order = np.lexsort((self.numbers, self.worlds))
        return Told(self.worlds[order], self.numbers[order], self.times[order])

    def some(self, which: npt.NDArray[np.bool_]) -> Told:
        """Returns the answers where `which`, `(k,)`, is True."""
        return Told(self.worlds[which], self.numbers[which], self.times[which])

    @property
    def ranks(self) -> IndexArray:
        """The number of answers of its world before each one, `(k,)`."""
        return np.arange(len(self.worlds)) - np.searchsorted(self.worlds, self.worlds)


@final
class LateAnswers:
    """The deliveries of S worlds.

    Args:
        envs: the environments.
        seeds: the seed of each world.
        clock: the time of each question and of the end, seconds, `(T + 1,)`.
    """

    def __init__(self, envs: Sequence[Environment], seeds: Sequence[int], clock: Array) -> None:
        self._each = [
            Deliveries(env.delay, simulation_generator(seed, "delays")) for env, seed in zip(envs, seeds, strict=True)
        ]
        self._clock = clock
        self._floating = np.geterr()  # Of the caller. NumPy warns in functions of delays as it does in one world.

    def after(self, t: int, points: Array, rewards: Array) -> Told:
        """Sends the answers of a round, and returns those that arrive before the next question.

        Args:
            t: the round, from 0.
            points: played points, `(S, d)`.
            rewards: `(S,)`.
        """
        now, following = self._clock.item(t), self._clock.item(t + 1)
        came: list[tuple[int, int, float]] = []
        with np.errstate(**self._floating):
            for each, point, reward in zip(self._each, points, rewards.tolist(), strict=True):
                each.send(t, now, point, reward)
        for world, each in enumerate(self._each):
            for when, number in each.due(t, following):
                came.append((world, number, now if when is None else max(when, now)))
        worlds, numbers, times = zip(*came, strict=True) if came else ((), (), ())
        return Told(np.array(worlds, dtype=np.intp), np.array(numbers, dtype=np.intp), np.array(times))
