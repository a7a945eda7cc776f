"""An environment: the true reward of every point, and the noise on what is seen of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy.typing as npt

from ..checks import Array, finite_array, frozen, number
from ..domain import Arms
from ..errors import InvalidInput


class Environment:
    """A reward function on arms, seen with Gaussian noise.

    Args:
        reward: maps points `(n, d)` to expected rewards `(n,)`.
        domain: the arms.
        noise: standard deviation of the noise, reward units.

    Attributes:
        values: expected reward of every arm, `(N,)`.
        best_value: the largest of them: regret is measured against it.
    """

    def __init__(self, reward: Callable[[Array], npt.ArrayLike], *, domain: Arms, noise: float = 0.0) -> None:
        if not isinstance(domain, Arms):
            raise InvalidInput(f"`domain` must be `Arms`, not {domain!r}.")
        if not callable(reward):
            raise InvalidInput(f"`reward` must be a function from points (n, d) to rewards (n,), not {reward!r}.")
        self.domain = domain
        self.noise = number("noise", noise, low=0.0, why="It is a standard deviation, in the units of the reward.")
        values: Any = reward(domain.points)
        self.values = frozen(finite_array("reward(points)", values))
        if self.values.shape != (len(domain),):
            raise InvalidInput(
                f"`reward` returned shape {self.values.shape} for points of shape {domain.points.shape}; it must be "
                f"({len(domain)},): one number for each row. For 1-d points use `points[:, 0]` inside the function."
            )
        self.best_value = float(self.values.max())
