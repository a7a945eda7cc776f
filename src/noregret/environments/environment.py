"""An environment: the true reward of every point, and the noise on what is seen of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..checks import Array, finite_array, frozen, number
from ..domain import Arms, Box, Domain, Space
from ..errors import InvalidInput
from ..record import Trial


class Environment:
    """A reward function, seen with Gaussian noise.

    Args:
        reward: maps points `(n, d)` (encoded ones, of a space) to expected rewards `(n,)`; with contexts, points and
            contexts `(n, c)`.
        domain: what may be played.
        noise: standard deviation of the noise, reward units.
        contexts: domain from which the context of each round is drawn uniformly, or None.
        best: the largest expected reward, against which regret is measured; with contexts a function from contexts
            `(n, c)` to it `(n,)`. Needed on continuous domains, found on arms.
    """

    def __init__(
        self,
        reward: Callable[..., npt.ArrayLike],
        *,
        domain: Domain,
        noise: float = 0.0,
        contexts: Domain | None = None,
        best: float | Callable[[Array], npt.ArrayLike] | None = None,
    ) -> None:
        if not isinstance(domain, Arms | Box | Space):
            raise InvalidInput(f"`domain` must be Arms, a Box or a Space, not {domain!r}.")
        if contexts is not None and not isinstance(contexts, Arms | Box | Space):
            raise InvalidInput(f"`contexts` must be Arms, a Box or a Space, not {contexts!r}.")
        if not callable(reward):
            raise InvalidInput(f"`reward` must be a function from points (n, d) to rewards (n,), not {reward!r}.")
        if best is None and not isinstance(domain, Arms):
            raise InvalidInput(
                "On a continuous domain say what the `best` expected reward is: regret is measured by it."
            )
        if callable(best) != (contexts is not None) and best is not None:
            raise InvalidInput("`best` is a number, or with contexts a function of them.")
        self.domain, self.contexts = domain, contexts
        self.noise = number("noise", noise, low=0.0, why="It is a standard deviation, in the units of the reward.")
        self._reward, self._best = reward, best
        # Without contexts the rewards of arms are known once and for all.
        self._values = None
        if isinstance(domain, Arms) and contexts is None:
            self._values = frozen(self._evaluate(domain.points, None))

    @property
    def values(self) -> Array:
        """Expected reward of every arm, `(N,)`; errors where there are no arms, or contexts."""
        if self._values is None:
            raise InvalidInput("Only arms without contexts have a table of rewards.")
        return self._values

    @property
    def best_value(self) -> float:
        """The largest expected reward; errors where there are contexts."""
        if self.contexts is not None:
            raise InvalidInput("With contexts, what is best depends on the context.")
        return float(self.values.max()) if self._best is None else number("best", self._best)

    def expected(self, trial: Trial) -> tuple[float, float]:
        """The trial's expected reward, and the largest one possible under its context."""
        if self._values is not None and trial.arm is not None:
            return float(self._values[trial.arm]), self.best_value
        seen = None if trial.context is None else trial.context[None]
        value = float(self._evaluate(trial.point[None], seen)[0])
        if seen is None:
            return value, self.best_value
        if callable(self._best):
            return value, float(finite_array("best(contexts)", self._best(seen))[0])
        points = self.domain.points if isinstance(self.domain, Arms) else trial.point[None]
        return value, float(self._evaluate(points, np.repeat(seen, len(points), axis=0)).max())

    def draw_context(self, rng: np.random.Generator) -> Array | None:
        """The context of the next round, `(c,)`, or None."""
        if self.contexts is None:
            return None
        if isinstance(self.contexts, Arms):
            return self.contexts.points[int(rng.integers(len(self.contexts)))]
        point = rng.uniform(self.contexts.lower, self.contexts.upper)
        return self.contexts.snap(point[None])[0] if isinstance(self.contexts, Space) else point

    def _evaluate(self, points: Array, contexts: Array | None) -> Array:
        result: Any = self._reward(points) if contexts is None else self._reward(points, contexts)
        values = finite_array("reward(points)", result)
        if values.shape != (len(points),):
            raise InvalidInput(
                f"`reward` returned shape {values.shape} for points of shape {points.shape}; it must be "
                f"({len(points)},): one number for each row. For 1-d points use `points[:, 0]` inside the function."
            )
        return values
