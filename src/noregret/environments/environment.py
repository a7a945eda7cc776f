"""An environment: the true reward of every point, and what stands between it and the decision maker.

Noise, contexts, changes of the reward function, delays of the answers, constraints: any of them, in any combination.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..checks import LARGEST_REWARD, Array, finite_array, frozen, integer, listed, number, shown
from ..domain import Arms, Box, Domain, Space, check_domain
from ..errors import InvalidInput
from ..record import Trial
from .delays import Delay, make_delay

START_POWER = 12  # 2^12 quasi-random points when a maximum is searched for
ASCENTS = 8  # local ascents from the best of them


def search_maximum(values: Callable[[Array], Array], domain: Box | Space) -> float:
    """The maximum of a function of points `(n, d)` over a box or space, by quasi-random points and local ascents.

    The function may be -inf where points do not count.
    """
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
    """A reward function and how it is seen.

    Args:
        reward: maps points `(n, d)` (encoded ones, of a space) to expected rewards `(n,)`; with contexts, points and
            contexts `(n, c)`. A function that returns one number for several points is taken for one of a single point
            `(d,)` (and context `(c,)`), and is called for each, which is slower. A sequence of such functions, one
            for each stationary period, goes with `change_points`.
        domain: what may be played.
        noise: standard deviation of the noise, reward units.
        delay: how many further questions are asked before an answer is known: a number, a part of
            `noregret.environments.delays`, or a function `delay(rng, point, reward)`; infinity for never. A
            `timedelta` instead of a number is a time, counted on the simulated clock.
        constraints: maps points `(n, d)` to `(n, m)` values g (or `(n,)` for one), satisfied on average when <= 0.
        constraint_noise: standard deviation of the normal noise on them, or a function `noise(rng, (rounds, m))` that
            draws another one.
        change_points: rounds, counted from 0, at which the next reward function begins (`even_changes` and
            `random_changes` make them); in a run that ends before, a change does not happen.
        contexts: domain from which the context of each round is drawn uniformly, or None.
        context_order: contexts `(n, c)` in the order in which they come, from the first again after the last, where
            they are not drawn.
        best: the largest expected reward (under constraints, of the points that satisfy them), against which regret is
            measured; with contexts a function from contexts `(n, c)` to it `(n,)`. Found unless given: exactly on
            arms, by a multi-start search elsewhere.
        interval: seconds from one question to the next on the simulated clock, for delays that are times.
    """

    def __init__(
        self,
        reward: Callable[..., npt.ArrayLike] | Sequence[Callable[..., npt.ArrayLike]],
        *,
        domain: Domain,
        noise: float = 0.0,
        delay: Any = None,
        constraints: Callable[..., npt.ArrayLike] | None = None,
        constraint_noise: float | Callable[[np.random.Generator, tuple[int, int]], npt.ArrayLike] = 0.0,
        change_points: Sequence[int] | None = None,
        contexts: Domain | None = None,
        context_order: npt.ArrayLike | None = None,
        best: float | Callable[[Array], npt.ArrayLike] | None = None,
        interval: float = 1.0,
    ) -> None:
        check_domain("domain", domain)
        if contexts is not None:
            check_domain("contexts", contexts)
        self.domain, self.contexts = domain, contexts
        if context_order is not None and contexts is None:
            raise InvalidInput("`context_order` needs `contexts`, the domain that they are of.")
        self._order = (
            None if contexts is None or context_order is None else contexts.inside("context_order", context_order)
        )
        self.noise = number(
            "noise", noise, low=0.0, high=LARGEST_REWARD, why="It is a standard deviation, in the units of the reward."
        )
        self.interval = number("interval", interval, low=0.0, why="It is a time in seconds.")
        self.delay: Delay | None = None if delay is None else make_delay(delay)
        self._rewards = _functions(reward)
        self.change_points = _checked_changes(change_points, periods=len(self._rewards))
        if constraints is not None and not callable(constraints):
            raise InvalidInput(
                f"`constraints` must be a function from points (n, d) to (n, m), not {shown(constraints)}."
            )
        self.constraints = constraints
        if not callable(constraint_noise):
            why = "It is a standard deviation, or a function that draws noise."
            constraint_noise = number("constraint_noise", constraint_noise, low=0.0, high=LARGEST_REWARD, why=why)
        self.constraint_noise = constraint_noise
        if callable(best) != (contexts is not None) and best is not None:
            raise InvalidInput("`best` is a number, or with contexts a function of them.")
        if best is not None and len(self._rewards) > 1:
            raise InvalidInput("`best` is for one reward function; with `change_points` it is found for each.")
        self._best = best if best is None or callable(best) else number("best", best)
        self._largest_of: dict[int, float] = {}  # of each period, where there are no contexts
        # Without contexts the rewards of arms are known once and for all.
        self._tables: list[Array] | None = None
        if isinstance(domain, Arms) and contexts is None:
            self._tables = [frozen(self._evaluate(f, domain.points, None)) for f in self._rewards]
        if isinstance(domain, Arms) and contexts is None and constraints is not None:
            self._constraint_table: Array | None = frozen(self._constraint_values(domain.points, None))
        else:
            self._constraint_table = None
        self.constraint_count = 0 if constraints is None else self._count_constraints()

    @property
    def values(self) -> Array:
        """Expected reward of every arm in the first period, `(N,)`; errors where there are no arms, or contexts."""
        if self._tables is None:
            raise InvalidInput("Only arms without contexts have a table of rewards.")
        return self._tables[0]

    @property
    def best_value(self) -> float:
        """The largest expected reward, in the first period; errors where there are contexts."""
        if self.contexts is not None:
            raise InvalidInput("With contexts, what is best depends on the context.")
        return self._best_of(0)

    def period(self, round_: int) -> int:
        """Which stationary period a round (counted from 0) is in."""
        return bisect_right(self.change_points, round_)

    def expected(self, trial: Trial) -> tuple[float, float]:
        """The trial's expected reward, and the largest one possible in its period under its context."""
        period = self.period(trial.number)
        if self._tables is not None and trial.arm is not None:
            return float(self._tables[period][trial.arm]), self._best_of(period)
        function = self._rewards[period]
        if trial.context is None:
            return float(self._evaluate(function, trial.point[None], None)[0]), self._best_of(period)
        seen = trial.context[None]
        value = float(self._evaluate(function, trial.point[None], seen)[0])
        if not callable(self._best):
            largest = self._largest(period, seen)
            return value, largest if self.constraints is not None else max(largest, value)
        best = finite_array("best(contexts)", self._best(seen))
        if best.size != 1:
            raise InvalidInput(
                f"`best` returned shape {best.shape} for one context; it must be one number for each row."
            )
        return value, max(float(best.reshape(-1)[0]), value)

    def constraint(self, trial: Trial) -> Array:
        """The trial's expected constraint values g, `(m,)`."""
        if self._constraint_table is not None and trial.arm is not None:
            return np.asarray(self._constraint_table[trial.arm])
        context = None if trial.context is None else trial.context[None]
        return np.asarray(self._constraint_values(trial.point[None], context)[0])

    def draw_constraint_noise(self, rng: np.random.Generator, rounds: int) -> Array:
        """Noise on the constraint values of so many rounds, `(rounds, m)`."""
        shape = (rounds, self.constraint_count)
        if not callable(self.constraint_noise):
            return np.asarray(self.constraint_noise * rng.standard_normal(shape))
        noise = finite_array("constraint_noise(rng, shape)", self.constraint_noise(rng, shape))
        if noise.shape != shape:
            raise InvalidInput(f"`constraint_noise` returned shape {noise.shape} where {shape} was asked for.")
        return noise

    def draw_context(self, rng: np.random.Generator, round_: int = 0) -> Array | None:
        """The context of a round (counted from 0), `(c,)`, or None."""
        if self.contexts is None:
            return None
        if self._order is not None:
            return np.asarray(self._order[round_ % len(self._order)])
        if isinstance(self.contexts, Arms):
            points: Array = self.contexts.points
            return np.asarray(points[int(rng.integers(len(points)))])
        point = np.asarray(rng.uniform(self.contexts.lower, self.contexts.upper))
        return self.contexts.snap(point[None])[0] if isinstance(self.contexts, Space) else point

    def _best_of(self, period: int) -> float:
        if self._best is not None and not callable(self._best):
            return number("best", self._best)
        if period not in self._largest_of:
            self._largest_of[period] = self._largest(period, None)
        return self._largest_of[period]

    def _largest(self, period: int, context: Array | None) -> float:
        """The largest expected reward of points that satisfy the constraints: of all arms, or what a search finds."""
        domain = self.domain

        def values(points: Array) -> Array:
            seen = None if context is None else np.repeat(context, len(points), axis=0)
            rewards = self._evaluate(self._rewards[period], points, seen)
            if self.constraints is None:
                return rewards
            return np.where((self._constraint_values(points, seen) <= 0.0).all(axis=1), rewards, -np.inf)

        best = float(values(domain.points).max()) if isinstance(domain, Arms) else search_maximum(values, domain)
        if not np.isfinite(best):
            raise InvalidInput("No point satisfies all constraints, so there is no best one to measure regret against.")
        return best

    def _evaluate(self, function: Callable[..., npt.ArrayLike], points: Array, contexts: Array | None) -> Array:
        values = _called("reward(points)", function, points, contexts)
        if values.shape != (len(points),):
            raise InvalidInput(
                f"`reward` returned shape {values.shape} for points of shape {points.shape}; it must be "
                f"({len(points)},): one number for each row. For 1-d points use `points[:, 0]` inside the function."
            )
        return values

    def _constraint_values(self, points: Array, contexts: Array | None) -> Array:
        if self.constraints is None:
            return np.zeros((len(points), 0))
        values = _called("constraints(points)", self.constraints, points, contexts)
        if values.ndim == 1:
            values = values[:, None]
        if values.ndim != 2 or len(values) != len(points):
            raise InvalidInput(
                f"`constraints` returned shape {values.shape} for points of shape {points.shape}; it must be "
                f"({len(points)}, m): one row for each point, one column for each constraint."
            )
        return values

    def _count_constraints(self) -> int:
        if self._constraint_table is not None:
            return int(self._constraint_table.shape[1])
        domain = self.domain
        point = domain.points[:1] if isinstance(domain, Arms) else domain.lower[None]
        if isinstance(domain, Space):
            point = domain.snap(point)
        context = None if self.contexts is None else self.draw_context(np.random.default_rng(0))
        return int(self._constraint_values(point, None if context is None else context[None]).shape[1])


def _called(name: str, function: Callable[..., npt.ArrayLike], points: Array, contexts: Array | None) -> Array:
    """What a function says of points: asked of all at once, or one by one where it knows single points alone."""
    several: Any = function(points) if contexts is None else function(points, contexts)
    values = finite_array(name, several)
    if values.ndim and (values.size != 1 or len(points) == 1):
        return values
    if len(points) == 1:
        return values[None]
    seen = [()] * len(points) if contexts is None else [(context,) for context in contexts]
    return finite_array(name, [function(point, *context) for point, context in zip(points, seen, strict=True)])  # type: ignore[arg-type]  # refused there


def _functions(reward: Any) -> list[Callable[..., npt.ArrayLike]]:
    functions = [reward] if callable(reward) or not isinstance(reward, Sequence) else list(reward)
    if not functions or not all(map(callable, functions)):
        raise InvalidInput(f"`reward` must be a function from points (n, d) to rewards (n,), not {shown(reward)}.")
    return functions


def _checked_changes(change_points: Sequence[int] | None, *, periods: int) -> tuple[int, ...]:
    why = "They are rounds, counted from 0."
    given = [] if change_points is None else listed("change_points", change_points, why=why)
    rounds = tuple(integer("change_points", round_, low=1, why=why) for round_ in given)
    if list(rounds) != sorted(set(rounds)):
        raise InvalidInput(f"`change_points` are {shown(list(rounds))}: they must be in ascending order, each once.")
    if len(rounds) + 1 != periods:
        raise InvalidInput(
            f"{periods} reward function{'s' * (periods > 1)} and {len(rounds)} change points do not go together: there "
            "is one function more than there are changes."
        )
    return rounds
