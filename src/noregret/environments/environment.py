"""An environment: the true reward of every point, and the noise on what is seen of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..checks import Array, finite_array, frozen, number
from ..domain import Arms, Box, Domain, Space, check_domain
from ..errors import InvalidInput
from ..record import Trial

START_POWER = 12  # 2^12 quasi-random points when a maximum is searched for
ASCENTS = 8  # local ascents from the best of them


def search_maximum(values: Callable[[Array], Array], domain: Box | Space) -> float:
    """The maximum of a function of points `(n, d)` over a box or space, by quasi-random points and local ascents."""
    from scipy.optimize import minimize
    from scipy.stats import qmc

    unit = qmc.Sobol(domain.dimension, scramble=True, rng=np.random.default_rng(0)).random_base2(START_POWER)
    span = domain.upper - domain.lower

    def place(u: Array) -> Array:
        points = domain.lower + np.clip(np.atleast_2d(u), 0.0, 1.0) * span
        return domain.snap(points) if isinstance(domain, Space) else points

    def downhill(u: Array) -> float:
        return -float(values(place(u))[0])

    scores = values(place(unit))
    best = float(scores.max())
    for index in np.argsort(-scores)[:ASCENTS]:
        # A simplex needs no gradients: the reward may be any function.
        found = minimize(downhill, unit[index], method="Nelder-Mead", tol=1e-10)
        best = max(best, -float(found.fun))
    return best


class Environment:
    """A reward function, seen with Gaussian noise.

    Args:
        reward: maps points `(n, d)` (encoded ones, of a space) to expected rewards `(n,)`; with contexts, points and
            contexts `(n, c)`.
        domain: what may be played.
        noise: standard deviation of the noise, reward units.
        contexts: domain from which the context of each round is drawn uniformly, or None.
        best: the largest expected reward, against which regret is measured; with contexts a function from contexts
            `(n, c)` to it `(n,)`. Found unless given: exactly on arms, by a multi-start search elsewhere.
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
        check_domain("domain", domain)
        if contexts is not None:
            check_domain("contexts", contexts)
        if not callable(reward):
            raise InvalidInput(f"`reward` must be a function from points (n, d) to rewards (n,), not {reward!r}.")
        if callable(best) != (contexts is not None) and best is not None:
            raise InvalidInput("`best` is a number, or with contexts a function of them.")
        self.domain, self.contexts = domain, contexts
        self.noise = number("noise", noise, low=0.0, why="It is a standard deviation, in the units of the reward.")
        self._reward, self._best = reward, best
        # Without contexts the rewards of arms are known once and for all.
        self._values: Array | None = None
        if isinstance(domain, Arms) and contexts is None:
            self._values = frozen(self._evaluate(domain.points, None))

    @property
    def values(self) -> Array:
        """Expected reward of every arm, `(N,)`; errors where there are no arms, or contexts."""
        if self._values is None:
            raise InvalidInput("Only arms without contexts have a table of rewards.")
        return self._values

    @cached_property
    def best_value(self) -> float:
        """The largest expected reward; errors where there are contexts."""
        if self.contexts is not None:
            raise InvalidInput("With contexts, what is best depends on the context.")
        return self._largest(None) if self._best is None else number("best", self._best)

    def expected(self, trial: Trial) -> tuple[float, float]:
        """The trial's expected reward, and the largest one possible under its context."""
        if self._values is not None and trial.arm is not None:
            return float(self._values[trial.arm]), self.best_value
        if trial.context is None:
            return float(self._evaluate(trial.point[None], None)[0]), self.best_value
        seen = trial.context[None]
        value = float(self._evaluate(trial.point[None], seen)[0])
        if not callable(self._best):
            return value, max(self._largest(seen), value)
        best = finite_array("best(contexts)", self._best(seen))
        if best.size != 1:
            raise InvalidInput(
                f"`best` returned shape {best.shape} for one context; it must be one number for each row."
            )
        return value, max(float(best.reshape(-1)[0]), value)

    def _largest(self, context: Array | None) -> float:
        """The largest expected reward under a context `(1, c)`: of all arms, or what a search finds."""
        domain = self.domain

        def values(points: Array) -> Array:
            return self._evaluate(points, None if context is None else np.repeat(context, len(points), axis=0))

        if isinstance(domain, Arms):
            return float(values(domain.points).max())
        return search_maximum(values, domain)

    def draw_context(self, rng: np.random.Generator) -> Array | None:
        """The context of the next round, `(c,)`, or None."""
        if self.contexts is None:
            return None
        if isinstance(self.contexts, Arms):
            points: Array = self.contexts.points
            return np.asarray(points[int(rng.integers(len(points)))])
        point = np.asarray(rng.uniform(self.contexts.lower, self.contexts.upper))
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
